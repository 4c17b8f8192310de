"""Results do not move when code does, and a saved model answers as it did."""

import numpy as np
import pytest

import meanmap as mm
from tests.golden.cases import MODELS, OUTPUTS
from tests.golden.record import machine, numbers, outputs, stored

STORED = stored()
# On the processor and the versions that recorded them; elsewhere sums are rounded otherwise, and iterations that stop
# at a tolerance of 1e-6 carry that on.
CLOSE = 1e-12 if str(STORED["machine"]) == machine() else 1e-5


def check(name, found):
    wanted = [STORED[f"{name}/{i}"] for i in range(sum(key.split("/")[0] == name for key in STORED))]
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("name", OUTPUTS)
def test_results_are_those_that_were_recorded(name):
    check(name, outputs(name))


@pytest.mark.parametrize("name", MODELS)
def test_answers_of_models_are_those_that_were_recorded_before_and_after_saving(name, tmp_path):
    made, asked = MODELS[name]
    model = made()
    check(name, numbers(asked(model)))
    check(name, numbers(asked(mm.load(mm.save(model, tmp_path / "model")))))
