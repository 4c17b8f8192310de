"""Whole numbers and probabilities as settings."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from meanmap.core.bisection import bisect, highest
from meanmap.core.errors import ParameterError
from meanmap.core.settings import one_of, probability, whole_number


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_whole_numbers_are_those_of_python_and_numpy(value):
    found = whole_number(value, "steps", 2)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [1, True, 2.0, np.float64(3), "3", None, [3]])
def test_what_is_no_whole_number_is_refused_with_its_name(value):
    with pytest.raises(ParameterError, match=r"^steps is .*; expected a whole number of at least 2"):
        whole_number(value, "steps", 2)


@pytest.mark.parametrize("value", [0, 1, True, -0.1, "0.5", None, float("nan")])
def test_what_is_no_probability_is_refused(value):
    with pytest.raises(ParameterError, match=r"^confidence is .*; expected a number between 0 and 1, such as 0.95"):
        probability(value)
    assert probability(np.float32(0.5)) == 0.5


def test_bisection_finds_each_root_between_its_ends():
    roots = np.array([0.0, 0.3, 1.7])
    low, high = bisect(lambda x: x < roots, np.full(3, -1.0), np.full(3, 2.0), 40)
    assert ((low <= roots) & (roots <= high) & (high - low <= 3 * 2.0**-40)).all()


@pytest.mark.parametrize(
    "value",
    [
        lambda s: -np.cosh(2 * (s - 0.4)),
        lambda s: -(abs(s - 1.3) ** 1.5),  # no parabola
        lambda s: max(-abs(s + 0.7), -1.0),  # flat on both sides
        lambda s: s,  # highest at an end
    ],
)
def test_the_top_is_found_in_as_many_steps_as_by_scipy(value):
    ours, theirs = [], []
    top, height = highest(lambda s: ours.append(s) or value(s), -2.0, 2.5, within=1e-3)
    options = {"xatol": 1e-3}
    found = minimize_scalar(
        lambda s: theirs.append(s) or -value(s), bounds=(-2.0, 2.5), method="bounded", options=options
    )
    assert top == pytest.approx(found.x, abs=1e-3)
    assert height == value(top) == max(map(value, ours))
    assert len(ours) <= len(theirs) + 2


@pytest.mark.parametrize(
    ("value", "known", "said"),
    [
        ("Rank", ("ranks", "hsic"), r"method is 'Rank' \(did you mean 'ranks'\?\); expected 'ranks' or 'hsic'\."),
        ([1], ("gp", "ar"), r"method is \[1\]; expected 'gp' or 'ar'\."),
        (None, ("a", "b", "c"), r"method is None; expected one of 'a', 'b', 'c'\."),
    ],
)
def test_one_of_those_that_are_known(value, known, said):
    with pytest.raises(ParameterError, match=said):
        one_of(value, "method", known)
    assert one_of(known[1], "method", known) == known[1]
