"""Results do not move when code does, and files of earlier versions answer as they did when they were written."""

import numpy as np
import pytest

from tests.golden.cases import MODELS, OUTPUTS
from tests.golden.record import UNKEPT, machine, outputs, stored, unpacked

STORED = stored()
# On the processor and the versions that recorded them; elsewhere sums are rounded otherwise, and iterations that stop
# at a tolerance of 1e-6 carry that on.
CLOSE = 1e-12 if str(STORED["machine"]) == machine() else 1e-5


def by_day(name, day):
    return pytest.param(name, marks=[] if day else pytest.mark.slow)


def check(name, model=None):
    found = outputs(name, model)
    wanted = [STORED[f"{name}/{i}"] for i in range(sum(key.split("/")[0] == name for key in STORED))]
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("name", [by_day(name, each[-1]) for name, each in [*MODELS.items(), *OUTPUTS.items()]])
def test_results_are_those_that_were_recorded(name):
    check(name)


@pytest.mark.parametrize("name", [by_day(name, each[-1]) for name, each in MODELS.items() if name not in UNKEPT])
def test_a_file_of_an_earlier_version_answers_as_it_did(name, tmp_path):
    check(name, unpacked(name, tmp_path))
