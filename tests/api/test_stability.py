"""The page about stability says which packages are public, and how randomness comes in, as they are."""

import re
from pathlib import Path

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError
from tests.api.interface import interface

PAGE = (Path(__file__).parents[2] / "docs" / "stability.rst").read_text(encoding="utf-8")
INTERFACE = interface()


def test_the_packages_of_public_names_are_those_that_a_release_stores():
    listed = re.findall(r"``(meanmap[\w.]*)``", PAGE.split("Each release")[0].split("reference <")[1])
    assert listed == sorted({path.rpartition(".")[0] for path in INTERFACE})


def test_functions_that_draw_take_rng():
    """All but estimators, one regression, and a few that are not called by users; results record the seed."""
    found = set()
    for path, of in INTERFACE.items():
        if isinstance(of, dict):
            calls = {path: of.get("takes"), **{f"{path}.{name}": each for name, each in of.get("members", {}).items()}}
            for call, taken in calls.items():
                names = {word.rstrip("=") for word in taken or ()}
                found |= {call} if {"seed", "random_state"} & names else set()
    others = {call for call in found if not call.startswith("meanmap.estimators.")}
    recorded = {"meanmap.ep.Posterior.of", "meanmap.learning.KernelDraws"}
    assert others == {"meanmap.ep.learned.KernelRegression", *recorded}


@pytest.mark.parametrize(
    "rng", [[1, 2], np.random.SeedSequence(1), np.random.PCG64(1)], ids=lambda rng: type(rng).__name__
)
def test_what_rng_refuses_becomes_a_generator(rng):
    x, y = np.arange(20.0), np.arange(20.0) ** 2
    with pytest.raises(KindError, match="rng is a"):
        mm.two_sample_test(x, y, "median", n_permutations=19, rng=rng)
    assert mm.two_sample_test(x, y, "median", n_permutations=19, rng=np.random.default_rng(rng)).pvalue <= 1
