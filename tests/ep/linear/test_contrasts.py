"""Differences between levels and groups, and predictions for groups old and new, against dense algebra."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")

from meanmap.core.errors import ColumnError, ParameterError
from meanmap.ep.linear import fit
from tests.ep.linear.test_fit import DATA, GROUPS


def dense(found, rows, design, asked):
    """Mean and covariance of asked rows of fixed and group effects (in units of the data) by least squares at nodes.

    `rows`, `asked`: fixed columns, and columns by group (Z), of the table and of what is asked; `design` the priors.
    """
    (X, Z), (X_asked, Z_asked), prior_sd = rows, asked, design
    y = DATA.y.to_numpy()
    first, second = np.zeros(len(X_asked)), np.zeros((len(X_asked), len(X_asked)))
    for node in found.model.nodes:
        turn = found.scaled.unit * found.scaled.groups[0].turn
        law = turn @ found.model.components.covariances(node.phi)[0] @ turn.T
        K = np.zeros((X.shape[1] + Z.shape[1],) * 2)
        K[: X.shape[1], : X.shape[1]] = np.diag(prior_sd**2)
        K[X.shape[1] :, X.shape[1] :] = np.kron(np.eye(Z.shape[1] // len(law)), law)
        A, B = np.hstack([X, Z]), np.hstack([X_asked, Z_asked])
        noise = np.exp(2 * node.phi[-1]) * found.scaled.unit**2
        gain = B @ K @ A.T @ np.linalg.inv(A @ K @ A.T + noise * np.eye(len(y)))
        mean = gain @ (y - y.mean())
        covariance = B @ K @ B.T - gain @ A @ K @ B.T
        first += node.probability * mean
        second += node.probability * (covariance + np.outer(mean, mean))
    return first, second - np.outer(first, first)


def by_group(index, design, groups=12):
    """Columns of group effects."""
    found = np.zeros((len(index), groups, design.shape[1]))
    known = index >= 0
    found[np.flatnonzero(known), index[known]] = design[known]
    return found.reshape(len(index), -1)


@pytest.fixture(scope="module")
def slopes():
    return fit("y ~ x + k + (1 + x | g)", DATA)


def fixed(x, k):
    """Columns about their means in the table, without sds."""
    columns = np.column_stack([np.ones(len(x)), x, k == "lo", k == "mid"]).astype(float)
    table = np.column_stack([DATA.x, DATA.k == "lo", DATA.k == "mid"])
    columns[:, 1:] -= table.mean(0)
    unit = DATA.y.std(ddof=0)
    return columns, 2.5 * unit / np.concatenate([[1.0], table.std(0)])


def table_rows():
    X, prior = fixed(DATA.x.to_numpy(), DATA.k.to_numpy())
    return (X, by_group(GROUPS, np.column_stack([np.ones(72), DATA.x]))), prior


def test_differences_of_levels_and_groups_against_dense_algebra(slopes):
    rows, prior = table_rows()
    middle = DATA.x.mean()
    labels = np.array(["hi", "lo", "mid"])
    asked = fixed(np.full(3, middle), labels)[0], np.zeros((3, 24))
    mean, covariance = dense(slopes, rows, prior, asked)
    found = slopes.contrasts("k")
    assert list(found.index) == ["hi - lo", "hi - mid", "lo - mid"]
    for row, (a, b) in zip(found.itertuples(), combinations(range(3), 2), strict=True):
        spread = np.sqrt(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        np.testing.assert_allclose([row.estimate, row.sd], [mean[a] - mean[b], spread], rtol=1e-5, atol=1e-8)
        assert row.low < row.estimate < row.high
        assert row.high - row.low == pytest.approx(2 * 1.96 * row.sd, rel=0.05)
    # The reference beside the others is their coefficient, turned around.
    np.testing.assert_allclose(found.estimate.iloc[:2], -slopes.to_frame().estimate.iloc[2:4])
    X = fixed(np.full(12, 4.0), np.full(12, "lo"))[0]
    mean, covariance = dense(slopes, rows, prior, (X, by_group(np.arange(12), np.tile([1.0, 4.0], (12, 1)))))
    groups = slopes.contrasts("g", at={"x": 4.0})
    assert len(groups) == 66
    assert list(groups.index[:2]) == ["0 - 1", "0 - 2"]
    for name, a, b in (("0 - 1", 0, 1), ("3 - 11", 3, 11)):
        spread = np.sqrt(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        np.testing.assert_allclose(groups.loc[name, ["estimate", "sd"]], [mean[a] - mean[b], spread], rtol=1e-5)


def test_predictions_of_groups_old_and_new_against_dense_algebra(slopes):
    rows, prior = table_rows()
    x, k, g = np.array([2.0, 5.0, 5.0]), np.array(["lo", "hi", "hi"]), np.array([3, 7, -1])
    asked = fixed(x, k)[0], by_group(g, np.column_stack([np.ones(3), x]))
    mean, covariance = dense(slopes, rows, prior, asked)
    variance = np.diag(covariance).copy()
    turn = slopes.scaled.unit * slopes.scaled.groups[0].turn
    for node in slopes.model.nodes:  # a new group has the law of all groups
        law = turn @ slopes.model.components.covariances(node.phi)[0] @ turn.T
        variance[2] += node.probability * np.array([1.0, 5.0]) @ law @ np.array([1.0, 5.0])
    found = slopes.predict({"x": x, "k": k, "g": g})
    np.testing.assert_allclose(found.estimate, mean + DATA.y.mean(), rtol=1e-6)
    np.testing.assert_allclose(found.sd, np.sqrt(variance), rtol=1e-5)


def test_labels_beside_are_averaged_over_their_levels_and_slopes_are_met_where_asked():
    data = DATA.assign(h=DATA.h.map(lambda h: "abcde"[h]))
    found = fit("y ~ x * k + k * h + offset(x) + (1 | g)", data)
    names, (mean, covariance) = list(found.formula.names), (found.mean, found.covariance)
    weights = np.zeros(len(names))
    weights[[names.index("k[lo]"), names.index("k[mid]")]] = 1, -1
    weights[[names.index("x:k[lo]"), names.index("x:k[mid]")]] = data.x.mean(), -data.x.mean()
    for h in "bcde":
        weights[[names.index(f"k[lo]:h[{h}]"), names.index(f"k[mid]:h[{h}]")]] = 0.2, -0.2
    row = found.contrasts("k").loc["lo - mid"]
    np.testing.assert_allclose(row[["estimate", "sd"]], [weights @ mean, np.sqrt(weights @ covariance @ weights)])
    there = found.contrasts("k", at={"x": 10.0, "h": "a"}).loc["lo - mid", "estimate"]
    at = names.index("x:k[lo]"), names.index("x:k[mid]"), names.index("k[lo]"), names.index("k[mid]")
    assert there == pytest.approx(mean[at[2]] - mean[at[3]] + 10 * (mean[at[0]] - mean[at[1]]))


def test_contrasts_of_categories_nested_groups_and_other_families():
    data = DATA.assign(k=pd.Categorical(DATA.k, ["lo", "mid", "hi"]))
    counts = fit("c ~ k + (1 | g/h)", data, "poisson")
    assert list(counts.contrasts("k").index) == ["lo - mid", "lo - hi", "mid - hi"]
    np.testing.assert_allclose(counts.contrasts("k").estimate.iloc[:2], -counts.mean[1:])
    pairs, effects = counts.contrasts("g:h"), counts.group_effects().estimate.droplevel("effect")
    whole = [effects["g", g] + effects["g:h", f"{g}:{h}"] for g, h in ((0, 0), (1, 3))]
    # Differences have shapes of their own, so that their means are not quite those of the joint Gaussian.
    assert pairs.estimate["0:0 - 1:3"] == pytest.approx(whole[0] - whole[1], rel=1e-3)
    grades = fit("h ~ k", data, "cumulative")
    np.testing.assert_allclose(grades.contrasts("k").estimate.iloc[:2], -grades.mean[4:], rtol=1e-6)
    numbered = fit("y ~ C(h)", DATA)
    assert numbered.contrasts("h").index[0] == "0 - 1"
    np.testing.assert_allclose(numbered.contrasts("h").sd.iloc[0], numbered.to_frame().sd.iloc[1])


def test_contrasts_of_what_has_no_levels_are_refused(slopes):
    for column in ("x", "nothing"):
        with pytest.raises(ParameterError, match=f"column is '{column}'; expected one of labels or groups: 'k', 'g'"):
            slopes.contrasts(column)
    with pytest.raises(ParameterError, match="at has 'k'; expected columns of the formula other than 'k': 'g', 'x'"):
        slopes.contrasts("k", at={"k": "lo"})
    with pytest.raises(ColumnError, match=r"'k' of data holds 'other' .* expected 'hi', 'lo', 'mid'"):
        slopes.contrasts("g", at={"k": "other"})
    many = DATA.loc[np.repeat(DATA.index, 4)].assign(i=np.arange(288) % 250)
    with pytest.raises(ParameterError, match="'i' has 250 levels, more than the 200"):
        fit("y ~ x + (1 | i)", many).contrasts("i")


def test_truth_values_are_labels_of_contrasts():
    data = DATA.assign(b=DATA.x > DATA.x.median())
    found = fit("y ~ b + k + (1 | g)", data)
    pair = found.contrasts("b")
    assert list(pair.index) == ["False - True"]
    np.testing.assert_allclose(pair.iloc[0, :2], found.to_frame().loc["b", ["estimate", "sd"]] * [-1, 1])
    with_k = fit("y ~ b * k", data)
    there = with_k.contrasts("b", at={"k": "lo"}).estimate.iloc[0]
    assert there == pytest.approx(-with_k.mean[1] - with_k.mean[list(with_k.formula.names).index("b:k[lo]")])
    with pytest.raises(ColumnError, match="column 'b' of data holds 'yes'; expected numbers or truth values"):
        found.predict({"b": ["yes"], "k": ["lo"], "g": [0]})
    with pytest.raises(ColumnError, match="column 'b' of data holds 'yes'; expected numbers or truth values"):
        found.contrasts("k", at={"b": "yes"})


def test_groups_of_another_type_are_refused_in_contrasts(slopes):
    with pytest.raises(
        ColumnError, match="the groups 'g' are '0' here, and 0 in the data of the fit: give them the sa"
    ):
        slopes.contrasts("k", at={"g": "0"})
    np.testing.assert_allclose(slopes.contrasts("k", at={"g": 0}).estimate, slopes.contrasts("k").estimate)


def test_numbers_are_compared_where_they_are_named(slopes):
    said = r"'k', 'g'. It holds numbers: pass those to compare, at=\{'x': \[1, 2\]\}, or for labels type C\(x\) in"
    with pytest.raises(ParameterError, match=said):
        slopes.contrasts("x")
    pairs, table = slopes.contrasts("x", at={"x": [2.0, 4.0, 5.0]}), slopes.to_frame().loc["x"]
    assert list(pairs.index) == ["2.0 - 4.0", "2.0 - 5.0", "4.0 - 5.0"]
    turned = -2 * table[["estimate", "sd", "high", "low"]].to_numpy() * [1, -1, 1, 1]
    np.testing.assert_allclose(pairs.iloc[0], turned, rtol=1e-6)
    curve = fit("y ~ poly(x, 2) * k", DATA)
    pair = curve.contrasts("x", at={"x": [2, 4], "k": "lo"})
    ends = curve.predict({"x": [2.0, 4.0], "k": ["lo", "lo"]}).estimate
    assert pair.estimate["2 - 4"] == pytest.approx(ends[0] - ends[1])
    for wrong in (3.0, [3.0], "ab"):
        with pytest.raises(ParameterError, match=r"at\['x'\] is .*; expected the numbers to compare, such as \[1, 2\]"):
            slopes.contrasts("x", at={"x": wrong})
    with pytest.raises(ColumnError, match="column 'x' of data holds 'a'; expected numbers"):
        slopes.contrasts("x", at={"x": ["a", "b"]})


@pytest.mark.parametrize("curve", ["bs(x, df=5)", "poly(x, 2)", "I(x**2)"])
def test_curves_far_outside_of_the_data_are_noted_in_predictions(curve):
    found = fit(f"y ~ {curve}", DATA)
    low, high = DATA.x.min(), DATA.x.max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.predict()
        found.predict({"x": [low - 0.4 * (high - low), high + 0.4 * (high - low)]})
    with pytest.warns(UserWarning, match=rf"of 'x' is needed at .*, far outside the data \({low:g} to {high:g}\)"):
        found.predict({"x": [low, high + 2 * (high - low)]})
    line = fit("y ~ x", DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line.predict({"x": [low - 2.9 * (high - low), high + 2.9 * (high - low)]})
    with pytest.warns(UserWarning, match=r"'x' is 1000 in row 1, far outside the data .* or the unit is another one"):
        line.predict({"x": [low, 1000.0]})


def test_an_ordered_level_that_no_row_has_gets_a_word():
    ordered = pd.Categorical(DATA.k, ["lo", "mid", "hi", "top"], ordered=True)
    (note,) = fit("y ~ k", DATA.assign(k=ordered)).report.notes
    assert note == "no row has the level 'top' of 'k': left out"
    assert fit("y ~ k", DATA.assign(k=pd.Categorical(DATA.k, ["lo", "mid", "hi", "top"]))).report.notes == ()
    (note,) = fit("k ~ x", DATA.assign(k=ordered), "cumulative").report.notes
    assert note == "no row has the level 'top' of 'k': left out"


@pytest.mark.parametrize("away", [2000.0, -50.0])
def test_slopes_by_group_do_not_depend_on_where_x_is_0(away, slopes):
    """With x a year all components were at one point, and sigma a fifth too small: the correlation is nearly -1."""
    moved = fit("y ~ x + k + (1 + x | g)", DATA.assign(x=DATA.x + away))
    same = ["x", "k[lo]", "k[mid]", "sd(x | g)", "sigma"]
    np.testing.assert_allclose(moved.to_frame().loc[same], slopes.to_frame().loc[same], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moved.predict(), slopes.predict(), rtol=1e-5)
    by_x = [each.group_effects().xs("x", level="effect") for each in (moved, slopes)]
    np.testing.assert_allclose(*by_x, rtol=1e-4, atol=1e-5)
    assert moved.log_evidence == pytest.approx(slopes.log_evidence, abs=1e-4)
    # Intercepts by group are those where x is 0.
    at_0 = moved.contrasts("g", at={"x": away, "k": "lo"})
    np.testing.assert_allclose(at_0, slopes.contrasts("g", at={"x": 0.0, "k": "lo"}), rtol=1e-4, atol=1e-5)
    effects = moved.group_effects()["estimate"].unstack("effect")
    apart = effects["Intercept"] + away * effects["x"]
    np.testing.assert_allclose(apart, slopes.group_effects()["estimate"].unstack("effect")["Intercept"], atol=1e-3)


def test_the_spread_of_intercepts_is_that_where_x_is_0():
    rng = np.random.default_rng(5)
    g, x = np.repeat(np.arange(60), 10), rng.uniform(4, 10, 600)
    effects = rng.multivariate_normal([0, 0], [[1.0, 0.1], [0.1, 0.04]], 60)
    y = 3 + effects[g, 0] + (0.5 + effects[g, 1]) * x + 0.5 * rng.normal(size=600)
    shown = fit("y ~ x + (1 + x | g)", {"y": y, "x": x, "g": g}).to_frame()
    for name, truth in (("sd(Intercept | g)", 1.0), ("sd(x | g)", 0.2), ("cor(Intercept, x | g)", 0.5), ("sigma", 0.5)):
        assert abs(shown.estimate[name] - truth) < 3 * shown.sd[name], name
        assert shown.low[name] < shown.estimate[name] < shown.high[name]
    assert shown.sd["sd(Intercept | g)"] < 0.4
    with pytest.raises(ColumnError, match="'c' is 7 in all rows, so it has no effects by group"):
        fit("y ~ x + (1 + c | g)", {"y": y, "x": x, "g": g, "c": np.full(600, 7.0)})


def test_predictions_where_effects_of_groups_are_0_against_dense_algebra(slopes):
    """As re.form=NA in lme4: new groups have the same estimate, and the spread of groups on top."""
    rows, prior = table_rows()
    new = {"x": [2.0, 5.0], "k": ["lo", "hi"]}
    mean, covariance = dense(slopes, rows, prior, (fixed(np.array(new["x"]), np.array(new["k"]))[0], np.zeros((2, 24))))
    found = slopes.predict(new, groups=False)
    np.testing.assert_allclose(found.estimate, mean + DATA.y.mean(), rtol=1e-6)
    np.testing.assert_allclose(found.sd, np.sqrt(np.diag(covariance)), rtol=1e-5)
    assert (slopes.predict({**new, "g": [77, 77]}).sd > 1.2 * found.sd).all()
    np.testing.assert_allclose(slopes.expected(new, 4000, rng=0, groups=False).mean(0), found.estimate, rtol=0.02)
    old = slopes.predict(groups=False)
    np.testing.assert_allclose(old, slopes.predict(DATA[["x", "k"]], groups=False))
    labels = fit("b ~ x + (1 | g/h)", DATA, "bernoulli")
    there = labels.predict({"x": [9.0]}, groups=False)
    drawn = labels.draws(20_000, rng=0)
    by_hand = 1 / (1 + np.exp(-drawn["Intercept"] - 9 * drawn["x"]))
    np.testing.assert_allclose(
        there.iloc[0], [by_hand.mean(), by_hand.std(), *by_hand.quantile([0.025, 0.975])], atol=0.01
    )
    with pytest.raises(ColumnError, match="data has no column 'g'"):
        slopes.predict(new)
