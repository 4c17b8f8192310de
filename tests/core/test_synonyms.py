"""Arguments by the names that the command line and other libraries have for them."""

import inspect

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.synonyms import DESIGNS, own_words

TABLE = {"a": np.arange(20.0), "b": np.arange(20.0) ** 2}
CALLS = {
    "two_sample_test": ((TABLE, TABLE), "seed"),
    "k_sample_test": (([TABLE, TABLE],), "seed"),
    "independence_test": ((TABLE["a"], TABLE["b"]), "random_state"),
    "joint_independence_test": (([TABLE["a"], TABLE["b"]],), "seed"),
    "conditional_independence_test": ((TABLE["a"], TABLE["b"], TABLE["b"]), "seed"),
    "conditional_independence_effect": ((TABLE["a"], TABLE["b"], TABLE["b"]), "seed"),
    "two_sample_effect": ((TABLE, TABLE), "seed"),
    "k_sample_effect": (([TABLE, TABLE],), "seed"),
    "independence_effect": ((TABLE["a"], TABLE["b"]), "random_state"),
    "closeness_test": ((TABLE, TABLE), "seed"),
    "test": (("a ~ b", TABLE), "seed"),
    "pc": ((TABLE,), "seed"),
    "chow_liu": ((TABLE,), "seed"),
    "learn_kernel": ((TABLE["a"],), "seed"),
    "sample_kernel": ((TABLE["a"],), "seed"),
    "median_heuristic": ((TABLE["a"],), "seed"),
    "default_kernel": ((TABLE,), "seed"),
    "at_median": ((mm.kernels.RBF(), TABLE["a"]), "seed"),
    "kernel_for": ((TABLE["a"],), "seed"),
    "posterior_witness": ((TABLE["a"], TABLE["b"]), "seed"),
    "rejection_rate": ((None, None), "seed"),
    "power_curve": ((None, None, [10]), "seed"),
}
PUBLIC = {
    name: function
    for folder in (mm, mm.stats, mm.learning, mm.embeddings)
    for name in folder.__all__
    if inspect.isfunction(function := getattr(folder, name))
}


@pytest.mark.parametrize("name", CALLS)
def test_another_word_for_rng_is_answered_with_ours(name):
    arguments, word = CALLS[name]
    with pytest.raises(TypeError, match=rf"{name}\(\) takes no {word}=; here it is called rng: type rng=7\."):
        PUBLIC[name](*arguments, **{word: 7})


def test_every_public_function_with_rng_says_so():
    assert {name for name, function in PUBLIC.items() if "rng" in inspect.signature(function).parameters} == set(CALLS)


def test_levels_are_for_results():
    with pytest.raises(TypeError, match=r"two_sample_test\(\) takes no alpha=: .* result\.reject\(0\.01\)"):
        mm.two_sample_test(TABLE, TABLE, alpha=0.01)
    with pytest.raises(TypeError, match=r"pc\(\) takes no alpha=; here it is called level: type level=0\.01"):
        mm.pc(TABLE, alpha=0.01)
    result = mm.two_sample_test(np.arange(9.0), np.arange(9.0), n_permutations=19, rng=0)
    with pytest.raises(TypeError, match=r"reject\(\) takes no alpha=; here it is called level"):
        result.reject(alpha=0.05)
    with pytest.raises(TypeError, match=r"of\(\) takes no seed=; here it is called rng"):
        mm.DriftMonitor.of(TABLE, seed=0)


def test_all_else_stays_as_it_was():
    def draw(n: int, rng=None) -> int:
        """So many."""
        return n

    told = own_words(draw)
    assert inspect.signature(told) == inspect.signature(draw)
    assert (told.__doc__, told.__name__, told.__module__) == (draw.__doc__, "draw", draw.__module__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        told(3, colour=1)


@pytest.mark.parametrize("word", DESIGNS)
def test_designs_that_a_function_does_not_take_are_refused_with_those_that_do(word):
    named = {part for part in DESIGNS[word].replace(" and ", ", ").split(", ") if "." not in part}
    known = {name for name in CALLS if word in inspect.signature(PUBLIC[name]).parameters}
    assert named <= known <= named | {"conditional_independence_effect", "test"}
    with pytest.raises(TypeError, match=rf"takes no {word}=; these do: .*two_sample_test"):
        mm.stats.TwoSampleBet.of(TABLE, **{word: TABLE["a"]})
    with pytest.raises(TypeError, match=r"DriftMonitor\.of\(\) takes no weights=; these do"):
        mm.DriftMonitor.of(TABLE, weights=TABLE["a"])
