"""The script behind the table of filled-in tables scores as it says."""

import numpy as np
import pytest

from benchmarks import imputation


def test_scores_of_samples_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    points, weights, truth = rng.normal(size=(4, 9)), rng.random((4, 9)), rng.normal(size=4)
    weights /= weights.sum(axis=1, keepdims=True)
    found = imputation.sample_score(points, weights, truth)
    for x, w, y, score in zip(points, weights, truth, found, strict=True):
        apart = w @ np.abs(x[:, None] - x[None]) @ w
        assert score == pytest.approx(w @ np.abs(x - y) - apart / 2)


def test_laws_that_have_it_right_are_held_in_nine_of_ten_whatever_comes_back():
    values, shares = np.array([0.0, 1.0, 3.0]), np.array([0.03, 0.9, 0.07])
    below = np.cumsum(shares) - shares
    inside = imputation.share_inside(below, below + shares)
    assert shares @ inside == pytest.approx(0.9)
    np.testing.assert_allclose(inside, [0.0, 0.88 / 0.9, 0.02 / 0.07])
    points = np.broadcast_to(values, (3, 3))
    np.testing.assert_allclose(imputation.place(points, shares, values), [below, below + shares])
    assert imputation.closed_by_itself(np.repeat(values, [3, 90, 7])) == 0.97
    assert imputation.closed_by_itself(np.arange(1000.0)) == pytest.approx(0.9, abs=0.002)


def test_methods_agree_where_all_is_normal():
    a, noise = np.random.default_rng(1).normal(size=(2, 150))
    truth = np.stack([a, (a + 0.5 * noise) / 1.118], axis=1)
    found = imputation.compared("normal", truth, [0], ["joint normal", "IterativeImputer, ridge", "DependencyNetwork"])
    ours, theirs = found["joint normal"], found["IterativeImputer, ridge"]
    assert ours["rmse"][0] == pytest.approx(theirs["rmse"][0], rel=0.05)
    assert ours["score"][0] == pytest.approx(theirs["score"][0], rel=0.15)
    assert 0.75 < ours["inside"][0] <= 1
    assert found["DependencyNetwork"]["inside"] == pytest.approx(found["DependencyNetwork"]["closed"], abs=0.05)


def test_the_best_and_what_is_near_it_are_bold():
    measures = {"rmse": [1.0, 1.0], "inside": [0.9, 0.9], "closed": [0.9, 0.9], "seconds": [1.0, 1.0]}
    scores = {name: [0.5, 0.6] for name in imputation.METHODS}
    scores |= {"joint normal": [0.4, 0.4], "KNNImputer": [0.39, 0.42]}
    of_table = {name: {"score": score, **measures} for name, score in scores.items()}
    text = imputation.page({"made up": {"rows": 9, "columns": 2, "itself": 0.95, **of_table}})
    assert text.split(".. list-table::")[1].count("**") == 4
    assert "     - **0.400**\n     - **0.405**\n" in text
