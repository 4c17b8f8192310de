"""How p-values are formed: ties, rounding, and what has no rank."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import NonFiniteError, ParameterError
from meanmap.stats.result import Null, flat, larger_and_tied

DRAWS = np.array([1.0, 2.0, 3.0, 4.0])


def test_draws_as_large_and_ties_count():
    assert larger_and_tied(3.0, DRAWS, 0.0) == (1, 1)
    assert Null("", DRAWS, exact=True).pvalue(3.0) == 3 / 5
    assert Null("", DRAWS, exact=True).pvalue(5.0) == 1 / 5


def test_what_rounding_may_have_moved_ties():
    """A statistic that is the small difference of large sums has fewer digits than its own size says."""
    assert Null("", DRAWS * 1e-9, exact=True).pvalue(5e-9) == 1 / 5
    law = Null("", DRAWS * 1e-9, exact=True, rounding=1e-8)
    assert law.pvalue(5e-9) == 1.0
    assert "the same under every permutation" in flat(law, 5e-9)[0]
    assert not flat(Null("", DRAWS, exact=True), 3.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_has_no_rank(bad):
    """Comparisons with NaN are false, so that it would be larger than every draw."""
    with pytest.raises(NonFiniteError, match=f"is {bad}: numbers in the data are too large or too small"):
        Null("", DRAWS, exact=True).pvalue(bad)
    with pytest.raises(NonFiniteError, match="one of its draws"):
        Null("", np.append(DRAWS, bad), exact=True).pvalue(1.0)


@pytest.fixture(scope="module")
def result():
    return mm.two_sample_test(range(20), range(10, 30), mm.kernels.RBF(5.0), n_permutations=99, rng=0)


@pytest.mark.parametrize(("pvalue", "verdict"), [(0.05, "rejected"), (0.051, "not rejected")])
def test_the_verdict_is_that_of_level_005(result, pvalue, verdict):
    assert f"({verdict} at level 0.05)" in str(replace(result, pvalue=pvalue))


def test_the_picture_goes_into_axes_that_are_given(result):
    axes = plt.figure().add_subplot()
    assert result.plot(axes) is axes
    assert result.plot() is not axes


@pytest.mark.parametrize("level", [0, 1, 1.5, True, "0.1"])
def test_a_level_is_between_zero_and_one(result, level):
    with pytest.raises(ParameterError, match="level"):
        result.reject(level)


def test_levels_that_no_pvalue_reaches_are_refused(result):
    assert result.reject(0.01)
    with pytest.raises(
        ParameterError, match=r"n_permutations is 99; expected .* at least 999, which level 0.001 needs"
    ):
        result.reject(0.001)
