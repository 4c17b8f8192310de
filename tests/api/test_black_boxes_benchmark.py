"""The page of ten black boxes: errors within what is stated, and fewer evaluations than rivals that are as exact."""

import numpy as np
import pytest
from scipy.integrate import quad

from benchmarks import black_boxes, pages

FOUND = pages.stored()["black_boxes"]


def test_every_case_is_on_the_page():
    assert list(FOUND) == list(black_boxes.CASES)


@pytest.mark.parametrize("name", FOUND)
def test_errors_are_within_what_is_stated(name):
    _, error, stated = FOUND[name]["ours"]
    assert error <= max(stated, 1e-6)


@pytest.mark.parametrize("name", FOUND)
def test_no_rival_that_is_as_exact_evaluates_much_less(name):
    points, *_ = FOUND[name]["ours"]
    for way in ("plain", "adaptive", "importance"):
        rival, error = FOUND[name][way]
        assert points < 1.2 * rival or error > 1e-6


def test_the_reference_is_that_of_adaptive_quadrature_told_where_to_look():
    case = black_boxes.CASES["jump"]
    x, y = case.data()
    log = case.log_factor(x[0], y[0])
    moments = np.zeros(2)
    for low, high, peak in ((-9.5, 0.3, y[0]), (0.3, 9.5, y[0] - 1)):
        for power in (0, 1):
            if low < peak < high:
                integrand = lambda z, power=power: z**power * np.exp(log(z) - z**2 / 2)  # noqa: E731
                moments[power] += quad(integrand, low, high, epsabs=0, limit=500, points=[peak])[0]
    mean = moments[1] / moments[0]
    assert black_boxes.beliefs(case)[0, 0, 0] == pytest.approx(mean, abs=1e-9)


@pytest.mark.slow
def test_a_case_measured_again_costs_what_the_page_says():
    found = black_boxes.measure(["vector valued"])["vector valued"]
    assert found["plain"] == FOUND["vector valued"]["plain"]
    assert found["ours"][0] == pytest.approx(FOUND["vector valued"]["ours"][0], rel=0.2)


def test_the_page_says_what_is_wrong():
    one = {"ours": [40.0, 1e-9, 1.0], "plain": [257.0, 2e-7], "adaptive": [21.0, 3.0], "importance": [1e4, 0.1]}
    page = black_boxes.page({"narrow": one})
    assert "     - 40\n     - 1e-9\n     - 1 or more\n     - 257\n" in page
    assert "     - 21\n     - wrong\n" in page
