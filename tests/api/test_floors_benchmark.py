"""Floors are made of what the answers are made of, and calls take no more time where others keep the cores busy."""

import numpy as np

from benchmarks import floors


def test_floors_give_the_answers_that_they_stand_for():
    y = floors.counts(40)
    np.testing.assert_allclose(floors.black_boxes(y), floors.thirty_two_nodes(y), atol=2e-4)
    data = floors.many_labels(4000, 22)
    np.testing.assert_allclose(floors.logistic_by_ep(data), floors.logistic_by_newton(data), atol=0.01)


def test_ridge_leaves_what_least_squares_leaves_but_for_its_penalty():
    rng = np.random.default_rng(0)
    features, values = 100 * rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    expected = values - features @ np.linalg.lstsq(features, values)[0]
    np.testing.assert_allclose(floors.ridge(features, values), expected, atol=1e-4)


def test_busy_cores_cost_no_processor_seconds():
    """Threads that waited for each other took fifteen times as many."""
    found, one_thread = floors.beside_others("KernelGraph.fit, busy cores")
    assert found < 2 * one_thread


def test_the_page_says_aims_as_ratios_or_seconds():
    page = floors.page({"two_sample_test": [0.8, 0.9], "pc": [8.0, 0.15], "KernelGraph.fit, busy cores": [0.3, 0.3]})
    assert "     - 0.9\n     - 1.0 s\n" in page
    assert "     - 53\n     - 2.0 s\n" in page
    assert "     - 1.0\n     - 1.1 times\n" in page
