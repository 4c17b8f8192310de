"""Figure 4 at its smallest scale, where the ozone data are."""

import os

import pytest

from meanmap.experiments.experiment import Setting, verdict
from meanmap.experiments.kernel_learning.ozone import EXPERIMENT


@pytest.mark.slow
@pytest.mark.skipif("MEANMAP_DATA" not in os.environ, reason="set MEANMAP_DATA to a folder with ozone/ozone_330x10.csv")
def test_the_search_joins_temperature_and_ozone():
    outcome = EXPERIMENT.run(Setting("smoke"))
    assert outcome.numbers["edge"].value == 1
    assert outcome.numbers["edge with our test"].value == 1
    assert outcome.numbers["seconds of the search"].value < 300
    # The paper's third statement, of the median, is what does not hold here.
    assert verdict(EXPERIMENT.claims, outcome.numbers, "smoke") == "partly"
    assert outcome.table[0][0] == "pair"
    assert "temperature and ozone" in outcome.answer
