"""Figure 4 at its smallest scale, where the ozone data are."""

import os

import pytest

from meanmap_papers.experiment import Setting
from meanmap_papers.kernel_learning.ozone import EXPERIMENT, MEDIAN, READINGS


@pytest.mark.slow
@pytest.mark.skipif("MEANMAP_DATA" not in os.environ, reason="set MEANMAP_DATA to a folder with ozone/ozone_330x10.csv")
def test_the_search_joins_temperature_and_ozone_at_the_median():
    outcome = EXPERIMENT.run(Setting("smoke"))
    assert outcome.numbers[f"edge, {MEDIAN[0]}"].value == 1
    assert outcome.numbers["edge, default test"].value == 1
    assert {f"edge, {name}" for name in READINGS} <= set(outcome.numbers)
    assert outcome.table[0][0] == "pair"
    assert outcome.answer.startswith("Temperature and ozone are joined")
