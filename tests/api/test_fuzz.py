"""Public functions on whatever users may hand over: an answer, or a refusal in words, and nothing is changed.

By day a few examples; MEANMAP_TEST_PROFILE=night and -m "slow or not slow" search for long.
"""

import csv
import os
import random
import warnings

import jax
import numpy as np
import pytest
import scipy.special  # noqa: F401 - it sets a filter of warnings when it is first imported
import sklearn  # noqa: F401 - and this one variables of the environment
from hypothesis import given, settings
from hypothesis import strategies as st

import meanmap as mm
from meanmap.core.errors import InputError, KindError
from tests.api.hostile import fingerprint, triples

DRAWS = {"n_permutations": 19, "rng": 0}
FUNCTIONS = {
    "two_sample_test": lambda x, y, z: mm.two_sample_test(x, y, **DRAWS),
    "two_sample_test spectral": lambda x, y, z: mm.two_sample_test(x, y, mm.kernels.RBF(1.0), null="spectral", **DRAWS),
    "k_sample_test": lambda x, y, z: mm.k_sample_test([x, y, z], **DRAWS),
    "independence_test": lambda x, y, z: mm.independence_test(x, y, **DRAWS),
    "conditional_independence_test": lambda x, y, z: mm.conditional_independence_test(x, y, z, **DRAWS),
    "embed": lambda x, y, z: mm.embed(x).norm(),
    "condition": lambda x, y, z: mm.condition(x, y),
    "default_kernel": lambda x, y, z: mm.default_kernel(x),
    "median_heuristic": lambda x, y, z: mm.median_heuristic(x),
    "DriftMonitor": lambda x, y, z: mm.DriftMonitor.of(x, **DRAWS).step(y),
    "Table": lambda x, y, z: mm.Table.of(x),
}
SLOW = {
    "joint_independence_test": lambda x, y, z: mm.joint_independence_test([x, y, z], **DRAWS),
    "posterior_embedding": lambda x, y, z: mm.embeddings.posterior_embedding(x, mm.kernels.RBF(1.0)),
    "learn_kernel": lambda x, y, z: mm.learn_kernel(x, draws=1, rng=0),
    "chow_liu": lambda x, y, z: mm.chow_liu(x, rng=0),
    "pc": lambda x, y, z: mm.pc(x, rng=0),
    "learned": lambda x, y, z: mm.two_sample_test(x, y, "learned", **DRAWS),
}


def state() -> tuple:
    """What is shared by all that runs in a process."""
    numbers = np.random.get_state()  # noqa: NPY002 - to see that it stays
    return (
        np.geterr(), jax.config.jax_enable_x64, numbers[1].tobytes(), numbers[2], random.getstate(),
        tuple(map(str, warnings.filters)), csv.field_size_limit(), dict(os.environ), os.getcwd(), np.get_printoptions(),
    )  # fmt: skip


def check(function, x, y, z) -> None:
    before, inputs = state(), fingerprint([x, y, z])
    try:
        result = function(x, y, z)
    except (InputError, KindError) as refusal:
        said = str(refusal)
    else:
        said = str(result)
        pvalue = getattr(result, "pvalue", None)
        if pvalue is not None:
            assert np.isfinite(result.statistic)
            assert 0 < pvalue <= 1
        if isinstance(result, float):
            assert np.isfinite(result)
    assert 0 < len(said) < 2000
    assert state() == before
    assert fingerprint([x, y, z]) == inputs


@pytest.mark.parametrize("name", FUNCTIONS)
@given(triples())
def test_an_answer_or_a_refusal(name, data):
    check(FUNCTIONS[name], *data)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@given(triples())
def test_an_answer_or_a_refusal_of_slower_functions(name, data):
    check(SLOW[name], *data)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(triples(), st.sampled_from(sorted(FUNCTIONS)))
def test_many_at_random(data, name):
    check(FUNCTIONS[name], *data)
