"""Columns of a dependency network given one to three others."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.conditionals.few_known import MOST_KNOWN

AT = np.array([-0.8, -0.4, 0.0, 0.4, 0.8])


def chain(n: int, seed: int) -> dict[str, np.ndarray]:
    """A sine of a in b, a line of b in c, and a label of b."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = np.sin(2 * a) + 0.3 * rng.normal(size=n)
    c = 2 * b + 1 + 0.5 * rng.normal(size=n)
    label = np.where(rng.random(n) < 1 / (1 + np.exp(-3 * b)), "hi", "lo")
    return {"a": a, "b": b, "c": c, "l": label}


@pytest.mark.parametrize("columns", ["abcl", "acl", "ac"])
def test_means_given_one_column_are_not_shrunk_by_others_that_are_hidden(columns):
    truth, deviation = 2 * np.sin(2 * AT) + 1, np.sqrt(0.61)
    errors, ratios = [], []
    for seed in range(4):
        table = chain(3000, 910 + seed)
        model = mm.bp.DependencyNetwork().fit({name: table[name] for name in columns})
        belief = model.predict({"a": AT}, targets=["c"])["c"]
        errors.append(belief.mean() - truth)
        ratios.append(np.sqrt(belief.var()) / deviation)
    # Before, means at the ends were .3 to .9 too close to that of all rows, in each of 12 fits.
    shrunk = np.mean(np.asarray(errors) * -np.sign(truth - 1), axis=0)[[0, 1, 3, 4]]
    assert np.all(shrunk < 0.25)
    assert np.sqrt(np.mean(np.square(errors))) < 0.3
    assert np.mean(ratios) < 1.25


def test_intervals_given_one_column_have_their_probability_and_width():
    table, fresh = chain(3000, 921), chain(4000, 922)
    belief = mm.bp.DependencyNetwork().fit(table).predict({"a": fresh["a"]}, targets=["c", "l"])
    low, high = belief["c"].quantile(0.05), belief["c"].quantile(0.95)
    assert 0.88 < np.mean((low <= fresh["c"]) & (fresh["c"] <= high)) < 0.94
    assert np.mean(high - low) < 1.25 * 2 * 1.645 * np.sqrt(0.61)
    draws = np.random.default_rng(0).normal(size=(1, 20_000))
    truth = np.mean(1 / (1 + np.exp(-3 * (np.sin(2 * fresh["a"][:200, None]) + 0.3 * draws))), axis=1)
    chance = belief["l"].probabilities()["hi"][:200]
    assert np.sqrt(np.mean((chance - truth) ** 2)) < 0.11


def test_each_row_is_answered_as_if_it_were_alone():
    model = mm.bp.DependencyNetwork().fit(chain(400, 931))
    gap = np.nan
    frame = {"a": [0.5, gap, 0.5, gap, -1.0], "b": [gap, 0.3, 0.3, gap, 0.0], "l": ["hi", None, "lo", None, None]}
    whole = model.predict(frame, targets=["c"])["c"]
    for row in range(5):
        alone = model.predict({name: values[row : row + 1] for name, values in frame.items()}, targets=["c"])["c"]
        np.testing.assert_allclose(alone.mean()[0], whole.mean()[row], atol=1e-9)
        np.testing.assert_allclose(alone.quantile(0.9)[0], whole.quantile(0.9)[row], atol=1e-9)


def test_what_is_filled_in_drawn_and_scored_follows_the_same_law():
    """Before, fills and draws were shrunk, to -.5 for -1 given a = -.8, where beliefs were not."""
    model = mm.bp.DependencyNetwork().fit(chain(1000, 961))
    frame = {"a": AT, "b": [np.nan] * 5, "c": [np.nan] * 5, "l": [None] * 5}
    found = model.predict(frame, targets=["b", "c", "l"])
    whole, drawn = model.impute(frame), model.sample(2000, frame, rng=0)
    for name in "bc":
        np.testing.assert_allclose(whole[name], found[name].mean(), atol=1e-9)
    # The first hidden column is drawn given those that are known alone: at six standard errors.
    assert np.max(np.abs(drawn["b"].mean(axis=1) - found["b"].mean()) / found["b"].sd()) < 6 / np.sqrt(2000)
    chances = found["l"].probabilities()
    assert whole["l"].tolist() == np.where(chances["hi"] > chances["lo"], "hi", "lo").tolist()
    gains = model.score({"a": AT, "l": ["hi"] * 5}) - model.score({"a": AT})
    np.testing.assert_allclose(gains, np.log(chances["hi"]), atol=2e-3)  # scores keep one row in 1000 for new labels


def test_zeros_of_costs_and_gaps_of_the_table_are_kept():
    rng = np.random.default_rng(941)
    a, other = rng.normal(size=(2, 2000))
    used = rng.random(2000) < 1 / (1 + np.exp(-2 * a))
    cost = np.where(used, np.exp(0.5 * a + 0.3 * other), 0.0)
    a[rng.random(2000) < 0.2] = np.nan
    model = mm.bp.DependencyNetwork().fit({"a": a, "other": other, "cost": cost})
    belief = model.predict({"a": [-1.0, 1.0]}, targets=["cost"])["cost"]
    zero = belief.quantile(np.array([0.5]))
    assert float(np.ravel(zero)[0]) == 0.0
    shares = 1 / (1 + np.exp(np.array([2.0, -2.0])))
    expected = shares * np.exp(0.5 * np.array([-1.0, 1.0]) + 0.045)
    np.testing.assert_allclose(belief.mean(), expected, atol=0.25)


def test_given_regressions_and_rows_with_more_known_are_answered_by_one_regression():
    from sklearn.ensemble import ExtraTreesRegressor

    table = chain(300, 951)
    wide = table | {f"x{k}": np.random.default_rng(k).normal(size=300) for k in range(3)}
    model = mm.bp.DependencyNetwork().fit(wide)
    known = {name: values[:5] for name, values in wide.items() if name != "c"}
    model.predict(known, targets=["c"])
    assert len(known) > MOST_KNOWN
    assert not model._few
    forest = mm.bp.DependencyNetwork([ExtraTreesRegressor(20, min_samples_leaf=5, random_state=0)]).fit(table)
    forest.predict({"a": AT}, targets=["c"])
    assert not forest._few
