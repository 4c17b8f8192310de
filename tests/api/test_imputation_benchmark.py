"""The script behind the table of filled-in tables scores as it says."""

from contextlib import nullcontext

import numpy as np
import pytest

from benchmarks import fillers, gaps, imputation


def test_scores_of_samples_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    points, weights, truth = rng.normal(size=(4, 9)), rng.random((4, 9)), rng.normal(size=4)
    weights /= weights.sum(axis=1, keepdims=True)
    found = fillers.sample_score(points, weights, truth)
    for x, w, y, score in zip(points, weights, truth, found, strict=True):
        apart = w @ np.abs(x[:, None] - x[None]) @ w
        assert score == pytest.approx(w @ np.abs(x - y) - apart / 2)


def test_laws_that_have_it_right_are_held_in_nine_of_ten_whatever_comes_back():
    values, shares = np.array([0.0, 1.0, 3.0]), np.array([0.03, 0.9, 0.07])
    below = np.cumsum(shares) - shares
    inside = fillers.share_inside(below, below + shares)
    assert shares @ inside == pytest.approx(0.9)
    np.testing.assert_allclose(inside, [0.0, 0.88 / 0.9, 0.02 / 0.07])
    points = np.broadcast_to(values, (3, 3))
    np.testing.assert_allclose(fillers.place(points, shares, values), [below, below + shares])
    assert fillers.closed_by_itself(np.repeat(values, [3, 90, 7])) == 0.97
    assert fillers.closed_by_itself(np.arange(1000.0)) == pytest.approx(0.9, abs=0.002)


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
    scores = {name: [0.5, 0.6] for name in fillers.METHODS}
    scores |= {"joint normal": [0.4, 0.4], "KNNImputer": [0.39, 0.42]}
    of_table = {name: {"score": score, **measures} for name, score in scores.items()}
    tables = {"made up": {"rows": 9, "columns": 2, "itself": 0.95, **of_table}}
    errors = {"rmse": {"DependencyNetwork": [0.05, 0.06], "joint normal": [0.07, 0.07]}}
    without = {name: each for name, each in tables["made up"].items() if name != "KNNImputer"}
    found = dict.fromkeys(gaps.MECHANISMS, tables) | {"not at random": {"made up": without}}
    text = imputation.page(found | {"breast cancer": errors})
    assert "in 0 of 1 tables with gaps completely at random, 0 of 1 tables with gaps at random, 0 of 1" in text
    assert "its error is 0.0550 (standard error 0.0050, 2 times)" in text
    assert text.split(".. list-table::")[1].count("     - 1\n") == 7  # joint normal four times, KNNImputer three times
    assert text.count("not run") == 2
    assert text.split(".. list-table::")[3].count("**") == 4
    assert "     - **0.400**\n     - **0.405**\n" in text


def test_gaps_depend_on_what_they_should():
    rng = np.random.default_rng(8_400_000)
    table = rng.normal(size=(20_000, 3)) + rng.normal(size=(20_000, 1))
    n = table.size
    for name in gaps.MECHANISMS:
        hidden = gaps.hidden(table, 0.15, name, 8_400_001)
        assert abs(hidden.mean() - 0.15) < 4 * np.sqrt(0.15 * 0.85 / n)
        assert name in (gaps.MECHANISMS[0], gaps.MECHANISMS[-1]) or not hidden.all(axis=1).any()
        # Gaps may go with the residual of a column given the others, or only with these others.
        others = table.sum(axis=1, keepdims=True) - table
        slope = np.sum(others * table) / np.sum(others**2)
        residual = table - slope * others
        shift = residual[hidden].mean() / (residual.std() / np.sqrt(hidden.sum()))
        apart = (others[hidden].mean() - others.mean()) / (others.std() / np.sqrt(hidden.sum()))
        if name in ("not at random", "in the largest values"):
            assert shift > 10
        else:
            assert abs(shift) < 4
            assert (apart > 10) == (name == "at random")


def test_tables_that_miceforest_draws_are_scored_cell_by_cell(monkeypatch):
    truth = np.random.default_rng(8_400_002).normal(size=(40, 3))
    hidden = gaps.hidden(truth, 0.2, "not at random", 8_400_003)

    class Drawing:
        def start(self, rows):
            return nullcontext(self)

        def ask(self, which, draws, method):
            assert method == "miceforest"
            return np.stack([truth + (k - (draws - 1) / 2) for k in range(draws)])

    monkeypatch.setattr(fillers, "MICEFOREST", Drawing())
    mean, score, share, closed = fillers.METHODS["miceforest"](np.where(hidden, np.nan, truth), truth)
    np.testing.assert_allclose(mean, truth[hidden])
    np.testing.assert_allclose(score, score[0])
    assert share.all()
    assert closed.all()


def test_tables_that_a_peer_fills_in_are_dressed_in_their_errors(monkeypatch):
    truth = np.random.default_rng(8_400_004).normal(size=(60, 3))
    hidden = gaps.hidden(truth, 0.2, "not at random", 8_400_005)

    class Filling:
        def start(self, rows):
            assert rows.shape == (fillers.DRESSINGS + 1, 60, 3)
            return nullcontext(self)

        def ask(self):
            return np.stack([truth + 0.5] * (fillers.DRESSINGS + 1))

    monkeypatch.setattr(fillers, "HYPERIMPUTE", Filling())
    mean, score, share, closed = fillers.METHODS["HyperImpute"](np.where(hidden, np.nan, truth), truth)
    np.testing.assert_allclose(mean, truth[hidden] + 0.5)
    np.testing.assert_allclose(score, 0, atol=1e-12)  # each cell was .5 too high, and so is every error
    assert share.shape == closed.shape == mean.shape


def test_peers_run_where_a_python_has_them(monkeypatch):
    for name in ("MEANMAP_MICEFOREST", "MEANMAP_HYPERIMPUTE"):
        monkeypatch.delenv(name, raising=False)
    assert fillers.available() == list(fillers.METHODS)[:-4]
    monkeypatch.setenv("MEANMAP_MICEFOREST", "python")
    assert fillers.available() == [name for name in fillers.METHODS if name != "HyperImpute"]
    monkeypatch.setenv("MEANMAP_HYPERIMPUTE", "python")
    assert fillers.available() == list(fillers.METHODS)
