"""Regressions by formula: dense algebra on fine grids is the judge, and units, order and containers change nothing."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats

pytest.importorskip("formulae")

from meanmap.core.errors import ColumnError, InputError, NonFiniteError, ParameterError
from meanmap.ep.linear import fit

GROUPS = np.repeat(np.arange(12), 6)


def frame(seed=0):
    rng = np.random.default_rng(seed)
    n = len(GROUPS)
    x = 3 + rng.normal(size=n)
    y = 10 + 2 * (0.5 * x + rng.normal(size=12)[GROUPS] + rng.normal(size=n))
    labels = np.array(["lo", "mid", "hi"])[rng.integers(0, 3, n)]
    counts = rng.poisson(np.exp((y - 11) / 4))
    return pd.DataFrame(
        {"y": y, "x": x, "g": GROUPS, "k": labels, "h": np.arange(n) % 5, "b": (y > y.mean()).astype(int), "c": counts}
    )


DATA = frame()


def half_student(log, scale):
    return np.log(2) + scipy.stats.t(3, scale=scale).logpdf(np.exp(log)) + log


def by_grid(design, z, y, spreads, z_scale):
    """Mean, sd and log evidence of fixed effects, and mean of both sds, over a grid of log sds, all in units of y."""
    unit = y.std()
    centred = design.copy()
    centred[:, 1:] -= design[:, 1:].mean(0)
    prior = np.diag((2.5 * unit / np.concatenate([[1.0], spreads])) ** 2)
    total, found = [], []
    logs = np.linspace(np.log(unit) - 4.5, np.log(unit) + 2, 60)
    for a in logs:
        for s in np.linspace(np.log(unit) - 1.5, np.log(unit) + 1, 60):
            noise = np.exp(2 * a) * z @ z.T + np.exp(2 * s) * np.eye(len(y))
            marginal = scipy.stats.multivariate_normal(np.full(len(y), y.mean()), centred @ prior @ centred.T + noise)
            solved = np.linalg.solve(noise, np.column_stack([centred, y - y.mean()]))
            covariance = np.linalg.inv(np.linalg.inv(prior) + centred.T @ solved[:, :-1])
            height = marginal.logpdf(y) + half_student(a, 2.5 * unit / z_scale) + half_student(s, 2.5 * unit)
            total.append(height)
            found.append((covariance @ centred.T @ solved[:, -1], covariance, np.exp(a), np.exp(s)))
    total = np.array(total)
    share = np.exp(total - total.max())
    cell = (logs[1] - logs[0]) * (2.5 / 59)
    log_evidence = np.log(share.sum() * cell) + total.max()
    share /= share.sum()
    means = np.stack([f[0] for f in found])
    mean = share @ means
    spread = np.einsum("k,kab->ab", share, np.stack([f[1] for f in found])) + (means - mean).T * share @ (means - mean)
    turn = np.eye(len(mean))
    turn[0, 1:] = -design[:, 1:].mean(0)
    mean[0] += y.mean()
    return turn @ mean, np.sqrt(np.diag(turn @ spread @ turn.T)), log_evidence, share @ np.array([f[2:] for f in found])


@pytest.mark.slow
def test_normal_responses_against_dense_algebra_on_a_grid():
    found = fit("y ~ x + k + (1 | g)", DATA)
    design = np.column_stack([np.ones(len(DATA)), DATA.x, DATA.k == "lo", DATA.k == "mid"]).astype(float)
    mean, sd, log_evidence, components = by_grid(
        design, np.eye(12)[GROUPS], DATA.y.to_numpy(), design[:, 1:].std(0), 1.0
    )
    assert found.formula.names == ("Intercept", "x", "k[lo]", "k[mid]")
    np.testing.assert_allclose((found.mean - mean) / sd, 0, atol=0.03)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), sd, rtol=0.02)
    assert found.log_evidence == pytest.approx(log_evidence, abs=0.05)
    table = found.to_frame()
    np.testing.assert_allclose(table.loc[["sd(Intercept | g)", "sigma"], "estimate"], components, rtol=0.03)


def test_labels_against_a_grid_over_the_intercept_and_the_groups():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights /= weights.sum()
    found = fit("b ~ 1 + (1 | g)", DATA, "bernoulli")
    constant, log_sd = np.linspace(-5, 5, 161), np.linspace(-5, 3, 121)
    sign = np.where(DATA.b == 1, 1, -1)
    height = np.zeros((161, 121))
    for j in range(12):
        eta = constant[:, None, None] + np.exp(log_sd)[None, :, None] * nodes
        successes, failures = (int((sign[j == GROUPS] == s).sum()) for s in (1, -1))
        log = -successes * np.logaddexp(0, -eta) - failures * np.logaddexp(0, eta)
        height += np.log(np.exp(log) @ weights)
    height += scipy.stats.norm(0, 2.5).logpdf(constant)[:, None] + half_student(log_sd, 2.5)
    share = np.exp(height - height.max())
    evidence = np.log(share.sum() * (constant[1] - constant[0]) * (log_sd[1] - log_sd[0])) + height.max()
    share /= share.sum()
    mean = share.sum(1) @ constant
    sd = np.sqrt(share.sum(1) @ (constant - mean) ** 2)
    assert abs(found.mean[0] - mean) < 0.02 * sd
    # Six labels a group: without the correction of the evidence both are 5% too small, and the evidence .25.
    assert np.sqrt(found.covariance[0, 0]) == pytest.approx(sd, rel=0.02)
    assert found.log_evidence == pytest.approx(evidence, abs=0.03)
    table = found.to_frame()
    exact = share.sum(0) @ np.exp(log_sd)
    assert table.loc["sd(Intercept | g)", "estimate"] == pytest.approx(exact, rel=0.02)
    spread = np.sqrt(share.sum(0) @ (np.exp(log_sd) - exact) ** 2)
    assert table.loc["sd(Intercept | g)", "sd"] == pytest.approx(spread, rel=0.05)


FORMULAS = {
    "gaussian": "y ~ x + k + (1 + x | g)",
    "bernoulli": "b ~ x + (1 | g)",
    "poisson": "c ~ x * k + (1 | g) + (1 | h)",
}


@pytest.mark.parametrize("family", list(FORMULAS))
def test_order_containers_and_names_of_groups_change_nothing(family):
    formula = FORMULAS[family]
    wanted = fit(formula, DATA, family).to_frame()
    order = np.random.default_rng(1).permutation(len(DATA))
    others = {
        "order": DATA.iloc[order],
        "polars": pl.from_pandas(DATA),
        "mapping": {name: DATA[name].to_numpy() for name in DATA},
        "names of groups": DATA.assign(g=[f"group {g:02}" for g in GROUPS]),
        "types": DATA.assign(g=DATA.g.astype("Int64"), b=DATA.b.astype(bool), k=DATA.k.astype("string")),
    }
    for name, other in others.items():
        found = fit(formula, other, family).to_frame()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=name)


def test_units_move_estimates_along():
    plain = fit("y ~ x + (1 + x | g)", DATA).to_frame()
    moved = fit("y ~ x + (1 + x | g)", DATA.assign(y=DATA.y * 1000 - 7, x=DATA.x / 10)).to_frame()
    factor = np.array([1000.0, 10_000, 1000, 10_000, 1, 1000])
    np.testing.assert_allclose(moved["sd"], plain["sd"] * factor, rtol=1e-6)
    np.testing.assert_allclose(moved["estimate"], plain["estimate"] * factor - [7, 0, 0, 0, 0, 0], rtol=1e-6)


def test_weights_count_rows_and_offsets_move_the_predictor():
    counts = 1 + np.arange(len(DATA)) % 3
    many = DATA.iloc[np.repeat(np.arange(len(DATA)), counts)]
    by_weight = fit("c ~ x + (1 | g)", DATA.assign(w=counts), "poisson", weights="w")
    np.testing.assert_allclose(by_weight.to_frame(), fit("c ~ x + (1 | g)", many, "poisson").to_frame(), rtol=5e-3)
    with_offset = fit("y ~ x + offset(h) + (1 | g)", DATA)
    np.testing.assert_allclose(
        with_offset.to_frame(), fit("y ~ x + (1 | g)", DATA.assign(y=DATA.y - DATA.h)).to_frame(), rtol=1e-8
    )
    shown = with_offset.predict(DATA)["estimate"] - with_offset.predict(DATA.assign(h=0))["estimate"]
    np.testing.assert_allclose(shown, DATA.h, atol=1e-8)


def test_predictions_for_groups_old_and_new():
    found = fit("y ~ x + (1 | g)", DATA)
    old, new = found.predict(DATA), found.predict(DATA.assign(g=DATA.g + 1000))
    assert list(old.columns) == ["estimate", "sd", "low", "high"]
    table = found.to_frame()
    flat = found.mean[0] + found.mean[1] * DATA.x
    np.testing.assert_allclose(new["estimate"], flat, rtol=1e-8)
    assert (old["estimate"] - flat).std() > 0.5 * table.loc["sd(Intercept | g)", "estimate"]
    # The variance of a new group is that of the mean and that of groups: E sd² ≥ (E sd)².
    assert (new["sd"] > table.loc["sd(Intercept | g)", "estimate"]).all()
    assert (old["sd"] < 0.6 * new["sd"]).all()
    np.testing.assert_allclose(found.predict(DATA.iloc[5:7]), old.iloc[5:7])
    shares = fit("b ~ x + (1 | g)", DATA, "bernoulli").predict(DATA.assign(g=-1))
    assert ((shares > 0) & (shares < 1)).all(axis=None)
    assert ((shares["low"] < shares["estimate"]) & (shares["estimate"] < shares["high"])).all()


def test_intervals_of_new_groups_hold_their_means():
    rng = np.random.default_rng(5)
    groups, held, total = np.repeat(np.arange(15), 8), 0, 0
    for _ in range(40):
        effects = rng.normal(size=25)
        y = 1 + effects[groups] + rng.normal(size=120)
        found = fit("y ~ 1 + (1 | g)", {"y": y, "g": groups}).predict({"g": np.arange(15, 25)}, confidence=0.9)
        held += int(((found["low"] < 1 + effects[15:]) & (1 + effects[15:] < found["high"])).sum())
        total += 10
    # Ten groups of a fit share its errors: the standard error is at most that of as many fits as there were, doubled.
    assert abs(held / total - 0.9) < 4 * np.sqrt(0.09 / total)


def test_nested_and_crossed_groups_and_interactions_are_read():
    found = fit("y ~ x:k + (1 | g/h) + (1 | k)", DATA)
    sizes = {group.name: len(group.levels) for group in found.formula.rows.groups}
    assert sizes == {"g": 12, "g:h": 12 * 5, "k": 3}
    assert "sd(Intercept | g:h)" in found.to_frame().index
    printed = str(fit("y ~ k + (1 | g)", DATA))
    assert "compared with k = hi" in printed
    assert "72 rows, g: 12 groups" in printed
    shares = fit("p(s, t) ~ x + (1 | g)", DATA.assign(s=DATA.b * 3, t=4), "binomial")
    assert shares.predict(DATA)["estimate"].between(0, 1).all()
    asked = fit("k['lo'] ~ x", DATA, "bernoulli")
    np.testing.assert_allclose(asked.mean, fit("z ~ x", DATA.assign(z=DATA.k == "lo"), "bernoulli").mean)


def test_brackets_say_what_is_correlated():
    apart = fit("y ~ x + (1 | g) + (0 + x | g)", DATA).to_frame()
    assert list(apart.index) == ["Intercept", "x", "sd(Intercept | g)", "sd(x | g)", "sigma"]
    pd.testing.assert_frame_equal(fit("y ~ x + (1 + x || g)", DATA).to_frame(), apart)
    assert "cor(Intercept, x | g)" in fit("y ~ x + (1 + x | g)", DATA).to_frame().index
    three = fit("y ~ x + (1 + k | g) + (0 + x | g)", DATA).to_frame()
    assert [name for name in three.index if name.startswith("cor")] == [
        "cor(Intercept, k[lo] | g)", "cor(Intercept, k[mid] | g)", "cor(k[lo], k[mid] | g)"
    ]  # fmt: skip
    # Without an intercept in its bracket a column of labels has an effect for each.
    labels = fit("y ~ (1 + k || g)", DATA).to_frame().index
    assert [name for name in labels if name.startswith("sd")] == [
        "sd(Intercept | g)", "sd(k[hi] | g)", "sd(k[lo] | g)", "sd(k[mid] | g)"
    ]  # fmt: skip


def test_rare_counts_settle():
    """Twenty events in 400 rows: sites of counts of 0 began ten times too heavy, and sweeps ran away."""
    for seed in (4, 6, 77):
        rng = np.random.default_rng([seed, 17])
        groups, x = np.repeat(np.arange(20), 20), rng.normal(size=400)
        y = rng.poisson(np.exp(-3 + 0.5 * x + 0.7 * rng.normal(size=20)[groups]))
        report = fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": groups}, "poisson").report
        assert report.status == "converged"
        assert report.measures["effective share"] > 0.9


@pytest.mark.parametrize("rows", [1000, 100_000])
def test_the_intercept_of_rare_counts_has_the_prior_that_help_states(rows):
    """It was around log(mean + .001): of five events in 10^5 rows the evidence was .78 too low, "converged"."""
    found = fit("y ~ 1", {"y": np.repeat([1, 0], [5, rows - 5])}, "poisson")
    middle = np.log(5 / rows)
    eta = np.linspace(middle - 12, middle + 5, 20_001)
    height = 5 * eta - rows * np.exp(eta) + scipy.stats.norm(middle, 2.5).logpdf(eta)
    mass = np.exp(height - height.max())
    evidence = height.max() + np.log(mass.sum() * (eta[1] - eta[0]))
    mean = mass @ eta / mass.sum()
    sd = np.sqrt(mass @ (eta - mean) ** 2 / mass.sum())
    row = found.to_frame().iloc[0]
    assert found.log_evidence == pytest.approx(evidence, abs=0.03)
    assert abs(row["estimate"] - mean) < 0.02 * sd
    assert row["sd"] == pytest.approx(sd, rel=0.02)


def test_positive_responses_in_other_units_move_the_intercept_alone():
    rng = np.random.default_rng(5)
    x = rng.normal(size=80)
    y = rng.gamma(3.0, np.exp(0.4 * x))
    here, there = (fit("y ~ x", {"y": unit * y, "x": x}, "gamma").to_frame() for unit in (1.0, 1e-6))
    moved = here["estimate"].to_numpy() - there["estimate"].to_numpy()
    np.testing.assert_allclose(moved, [6 * np.log(10), *np.zeros(len(moved) - 1)], atol=1e-6)
    np.testing.assert_allclose(here["sd"], there["sd"], rtol=1e-6)


def test_more_columns_than_rows_are_as_dense_algebra_on_a_grid_has_it():
    """They were refused, as they explain any response exactly; but the priors are proper."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(8, 12))
    names = [f"x{j}" for j in range(12)]
    y = x[:, 0] + 0.5 * rng.normal(size=8)
    priors = dict.fromkeys([*names, "Intercept"], (0.0, 1.0)) | {"sigma": 1.0}
    found = fit(f"y ~ {' + '.join(names)}", pd.DataFrame(x, columns=names).assign(y=y), priors=priors)
    design = np.column_stack([np.ones(8), x - x.mean(axis=0)])  # the intercept is that of a row of means
    sigma = np.exp(np.linspace(-7, 3, 600))
    covariances = design @ design.T + sigma[:, None, None] ** 2 * np.eye(8)
    gains = np.linalg.solve(covariances, np.broadcast_to(design, (600, 8, 13))).swapaxes(1, 2)
    means, squares = gains @ y, 1 - np.einsum("sij,ji->si", gains, design) + (gains @ y) ** 2
    logs = np.array([scipy.stats.multivariate_normal.logpdf(y, np.zeros(8), each) for each in covariances])
    logs += np.log(2) + scipy.stats.t.logpdf(sigma, 3) + np.log(sigma)
    weights = np.exp(logs - logs.max())
    evidence = np.log(weights.sum() * np.log(sigma[1] / sigma[0])) + logs.max()
    weights /= weights.sum()
    mean = weights @ means
    sd = np.sqrt(weights @ squares - mean**2)
    table = found.to_frame().loc[names]
    np.testing.assert_allclose(table["estimate"], mean[1:], atol=0.01 * sd[1:].max())
    np.testing.assert_allclose(table["sd"], sd[1:], rtol=0.01)
    assert found.log_evidence == pytest.approx(evidence, abs=0.01)


def test_what_a_table_cannot_tell_is_said():
    twice = fit("y ~ x + z + (1 | one)", DATA.assign(z=2 * DATA.x - 1, one="a"))
    assert twice.report.notes == (
        "'z' is a linear combination of columns before it: their separate effects depend on the prior",
        "'one' has one group, so the data do not show how groups differ",
    )
    text = fit("y ~ s", DATA.assign(s=[f"{value:.1f}" for value in DATA.x]))
    assert "'s' is text that looks like numbers, '" in text.report.notes[0]
    assert fit("y ~ x + (1 | g)", DATA).report.notes == ()
    for formula in ("y ~ y", "z ~ x + (1 | g)"):
        with pytest.raises(ParameterError, match="explain the response exactly"):
            fit(formula, DATA.assign(z=2 * DATA.x + 1))
    with pytest.raises(ParameterError, match="has 0 trials at row 0"):
        fit("p(s, t) ~ x", DATA.assign(s=0, t=0), "binomial")
    with pytest.raises(ParameterError, match="formula is a DataFrame; expected text first"):
        fit(DATA, "y ~ x")
    with pytest.raises(InputError, match=r"missing values in 'x' .1.: fill them in, or leave out these rows"):
        fit("y ~ x", DATA).predict({"x": [1.0, np.nan]})


@pytest.mark.parametrize(
    ("formula", "named"),
    [
        ("y ~ C(g) + (1 | g)", "(1 | g)"),
        ("y ~ x + C(h) + (1 | g)", ""),
        ("y ~ x * C(g) + (1 + x | g)", "(1 | g), (0 + x | g)"),
        ("y ~ pair + (1 | half)", "(1 | half)"),
        ("y ~ x + (1 | g)", ""),
    ],
)
def test_shared_columns_that_give_each_group_a_value_of_its_own_are_noted(formula, named):
    """There was no word, though the priors alone decide between C(g) and (1 | g)."""
    # Two groups with a column that differs between them are the same.
    half = DATA.g > DATA.g.median()
    notes = fit(formula, DATA.assign(half=half.map({True: "b", False: "a"}), pair=3.0 - half)).report.notes
    listed = [note for note in notes if note.startswith("fixed effects already give each")]
    assert [note.split("Leave out these columns, or ")[1] for note in listed] == [n for n in named.split(", ") if n]


def test_categories_keep_their_order_and_whole_numbers_their_names():
    """The first category is the reference, as in R and pandas; labels came in alphabetical order without a word."""
    found = fit("y ~ k + C(h) + (1 | h)", DATA.assign(k=pd.Categorical(DATA.k, ["lo", "mid", "hi"])))
    assert found.formula.references == {"k": "lo", "C(h)": "0"}
    assert found.formula.names[:4] == ("Intercept", "k[mid]", "k[hi]", "C(h)[1]")
    assert found.group_effects().index.get_level_values("group").tolist() == [0, 1, 2, 3, 4]
    assert "0.0" not in str(found).split("estimate")[0]
    plain = fit("y ~ k + C(h) + (1 | h)", DATA)
    difference = plain.mean[1:3] - [0, plain.mean[1]]
    np.testing.assert_allclose(found.mean[[2, 1]], [-plain.mean[1], difference[1]], rtol=0.02)
    np.testing.assert_allclose(found.predict(DATA), found.predict(DATA.assign(k=pd.Categorical(DATA.k))))
    pd.testing.assert_frame_equal(found.predict(), found.predict(DATA))
    success = fit("k ~ x", DATA[DATA.k != "mid"].assign(k=lambda f: pd.Categorical(f.k, ["lo", "hi"])), "bernoulli")
    assert success.response == "k[hi]"


def test_a_number_of_trials_for_all_rows():
    by_column = fit("p(s, t) ~ x", DATA.assign(s=DATA.b * 3, t=4), "binomial")
    pd.testing.assert_frame_equal(
        fit("p(s, 4) ~ x", DATA.assign(s=DATA.b * 3), "binomial").to_frame(), by_column.to_frame()
    )


def test_columns_that_depend_on_other_rows_are_not_predicted():
    remembered = fit("y ~ center(x)", DATA)
    np.testing.assert_allclose(remembered.predict(DATA)[:1], remembered.predict(DATA[:1]), rtol=1e-9)
    with pytest.raises(ColumnError, match=r"I\(x - np.mean\(x\)\)' changes its value .* type center\(x\)"):
        fit("y ~ I(x - np.mean(x))", DATA).predict(DATA[:3])


def test_one_number_far_out_does_not_move_a_student_family():
    """The unit is that of the others."""
    rng = np.random.default_rng(0)
    groups, x = np.repeat(np.arange(15), 20), rng.normal(size=300)
    y = 1 + 0.5 * x + rng.normal(size=15)[groups] + rng.normal(size=300)
    plain = fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": groups}, "t").to_frame()
    y[7] = 1e8
    far = fit("y ~ x + (1 | g)", {"y": y, "x": x, "g": groups}, "t")
    shown = far.to_frame()
    assert abs(shown.loc["x", "estimate"] - plain.loc["x", "estimate"]) < plain.loc["x", "sd"]
    assert shown.loc["x", "sd"] < 1.5 * plain.loc["x", "sd"]
    assert shown.loc["sigma", "estimate"] < plain.loc["sigma", "estimate"]
    assert far.report.status == "converged"


def test_priors_are_in_the_units_of_the_data():
    """Given sigma, a coefficient of a line about the means is a Normal times a Normal."""
    moved = DATA.assign(y=100 * DATA.y, x=DATA.x / 10)
    found = fit("y ~ x", moved, priors={"x": (300.0, 50.0), "Intercept": (1200.0, 20.0)})
    x, y = moved.x - moved.x.mean(), moved.y
    noise = np.array([np.exp(node.phi[0]) * found.scaled.unit for node in found.model.nodes])
    shares = np.array([node.probability for node in found.model.nodes])
    slopes = (x @ y / noise**2 + 300 / 50**2) / (x @ x / noise**2 + 1 / 50**2)
    middles = (y.sum() / noise**2 + 1200 / 20**2) / (len(y) / noise**2 + 1 / 20**2)
    np.testing.assert_allclose(found.mean[1], shares @ slopes, rtol=1e-8)
    np.testing.assert_allclose(found.mean[0], shares @ (middles - slopes * moved.x.mean()), rtol=1e-8)
    wide = fit("y ~ x + (1 | g)", DATA).to_frame()
    tight = fit("y ~ x + (1 | g)", DATA, priors={"sd(Intercept | g)": 0.05, "sigma": 1.0}).to_frame()
    assert tight.loc["sd(Intercept | g)", "estimate"] < 0.85 * wide.loc["sd(Intercept | g)", "estimate"]
    for priors, words in [
        ({"z": 1.0}, r"priors names 'z'; expected one of 'Intercept', 'x', 'sd\(Intercept \| g\)', 'sigma'"),
        ({"x": 1.0}, r"priors\['x'\] is 1.0; expected a mean and a standard deviation"),
        ({"sigma": 0}, r"priors\['sigma'\] holds 0; expected a scale above 0"),
    ]:
        with pytest.raises(ParameterError, match=words):
            fit("y ~ x + (1 | g)", DATA, priors=priors)
    with pytest.raises(ParameterError, match="priors is a float; expected a mapping"):
        fit("y ~ x", DATA, priors=1.0)


def test_gaps_are_refused_or_left_out():
    holes = DATA.assign(x=DATA.x.where(DATA.h > 0), unused=np.nan)
    with pytest.raises(InputError, match=r"missing values in 'x' .15.: fill them in, or pass missing='drop'"):
        fit("y ~ x + (1 | g)", holes)
    found = fit("y ~ x + (1 | g)", holes, missing="drop")
    np.testing.assert_allclose(found.to_frame(), fit("y ~ x + (1 | g)", DATA[DATA.h > 0]).to_frame(), rtol=1e-8)
    assert "(15 left out with gaps)" in str(found)
    assert "the gaps of" not in str(found)


def test_gaps_that_go_with_the_response_are_noted():
    high = DATA.y > DATA.y.median()
    found = fit("y ~ x + (1 | g)", DATA.assign(x=DATA.x.mask(high)), missing="drop")
    means = f"{DATA.y.mean():.3g} in all rows and {DATA.y[~high].mean():.3g} in those where 'x' is known"
    assert f"the gaps of 'x' go with 'y': its mean is {means}. Answers may hold only for rows without" in str(found)
    gaps_of_response = DATA.assign(y=DATA.y.mask(DATA.x > DATA.x.median()))
    assert "the gaps of" not in str(fit("y ~ x + (1 | g)", gaps_of_response, missing="drop"))


@pytest.mark.parametrize(
    ("formula", "family", "error", "words"),
    [
        ("y ~ x + (1 | g", "gaussian", ParameterError, "cannot be read"),
        ("y ~ (1 | g) + (1 + x | g)", "gaussian", ParameterError, r"has the effect '1\|g' in several brackets"),
        ("y ~ x + 1 | g", "gaussian", ParameterError, r"has a \| outside of brackets; type \(1 \| group\)"),
        ("x + (1 | g)", "gaussian", ParameterError, "expected text such as"),
        ("y ~ z", "gaussian", ColumnError, "data has no column 'z'; it has 'y', 'x'"),
        ("y ~ x", "ordinal", ParameterError, "expected one of 'gaussian', 't', .* 'ordinal' is 'cumulative' here"),
        ("log(y) ~ x", "gaussian", ColumnError, r"has 'log', which is not a known function.* np.log\(x\)"),
        ("cbind(b, c) ~ x", "binomial", ColumnError, r"numbers of successes are p\(successes, trials\)"),
        ("y ~ factor(k)", "gaussian", ColumnError, r"Type C\(x\) for labels"),
        ("censored(y, b) ~ x", "gaussian", ColumnError, "status in censored.* holds numbers"),
        ("y ~ x + (x - 1 | g)", "gaussian", ParameterError, r"type \(0 \+ x \| group\)"),
        ("y ~ .", "gaussian", ParameterError, "for all other columns is not supported; name them"),
        ("b / c ~ x", "binomial", ParameterError, r"response is several terms; expected .* p\(successes, trials\)"),
        ("y ~ x^2", "gaussian", ParameterError, r"powers are I\(x \*\* 2\)"),
        ("y ~ x", "beta", ParameterError, "family is 'beta'; expected one of"),
        ("y ~ x", "poisson", ParameterError, r"expects counts: 0, 1, 2"),
        ("y ~ x", "binomial", ParameterError, r"type p\(successes, trials\)"),
        (
            "k ~ x",
            "bernoulli",
            ParameterError,
            r"holds 3 labels: '.*' \(\d+ rows\), .*; expected two, or the label to be .*: k\['",
        ),
        (
            "k ~ x",
            "gaussian",
            ParameterError,
            "holds text, such as '.*' in row 0; expected numbers .* family='bernoulli'",
        ),
        ("y ~ x + I(0 * x)", "gaussian", ColumnError, "is 0 in all rows"),
        ("y ~ np.log(x - 100)", "gaussian", NonFiniteError, "gives nan at row 0"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_refusals_say_what_to_type(formula, family, error, words):
    with pytest.raises(error, match=words):
        fit(formula, DATA, family)


def test_containers_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="in another order, but rows are paired by position"):
        fit("y ~ x", {"y": DATA.y, "x": DATA.x.iloc[::-1]})
    with pytest.raises(NonFiniteError, match="column 'x' of data holds inf"):
        fit("y ~ x", DATA.assign(x=np.inf))
    with pytest.raises(ColumnError, match="holds times"):
        fit("y ~ x", DATA.assign(x=pd.Timestamp("2020-01-01")))
    for factor, words in (
        (1e-200, "largest number of column 'y' of data is 1.61e-199"),
        (1e200, "choose another unit"),
    ):
        with pytest.raises(ColumnError, match=words):
            fit("y ~ x", DATA.assign(y=DATA.y / DATA.y.max() * 16.1 * factor))
    for value, kind in ((1j, "complex"), ([1], "list"), (Decimal(3), "Decimal")):
        with pytest.raises(ColumnError, match=f"of type {kind}; expected numbers or labels"):
            fit("y ~ z", DATA.assign(z=[value] * len(DATA)))
    with pytest.raises(ColumnError, match="data has 2 columns named 'x'; expected one"):
        fit("y ~ x", pd.concat([DATA, DATA[["x"]]], axis=1))
    with pytest.raises(ParameterError, match=r"no noise to estimate. 'x' is text that looks like numbers, '"):
        fit("y ~ x", DATA.assign(x=DATA.x.astype(str)))
    with pytest.raises(InputError, match="columns have names"):
        fit("y ~ x", np.zeros((5, 2)))
    with pytest.raises(ParameterError, match="expected the name of a column"):
        fit("y ~ x", DATA, weights=np.ones(len(DATA)))
    with pytest.raises(ParameterError, match="link of poisson is 'logit'; expected 'log'"):
        fit("c ~ x", DATA, "poisson", link="logit")


def test_without_the_parser_the_error_says_what_to_type(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "formulae", None)
    with pytest.raises(ImportError, match=r"needs formulae.*meanmap\[formulas\]"):
        fit("y ~ x", DATA)


def test_groups_of_another_type_are_no_new_groups():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": np.repeat(np.arange(6), 10), "x": rng.normal(size=60)})
    frame["y"] = frame["g"] + frame["x"] + rng.normal(size=60)
    fitted = fit("y ~ x + (1 | g)", frame)
    asked = pd.DataFrame({"g": [0, 7], "x": [0.0, 0.0]})
    assert len(fitted.predict(asked)) == 2
    with pytest.raises(ColumnError, match="groups 'g' are '0' here, and 0 in the data of the fit"):
        fitted.predict(asked.astype({"g": str}))


def test_rows_of_the_table_that_are_there_twice_are_counted():
    for data, weights, said in ((DATA, None, 0), (pd.concat([DATA, DATA[:6]]), None, 1), (DATA, "h", 0)):
        notes = fit("y ~ x + (1 | g)", data, weights=weights).report.notes
        assert sum(note.startswith("6 of 78 rows of data repeat another row in every column") for note in notes) == said


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        (
            "y ~ x + (1 | g) + (1 | same)",
            ["the effects of sd(Intercept | g) and sd(Intercept | same) are proportional"],
        ),
        (
            "y ~ x + (0 + x | g) + (0 + twice | same)",
            ["the effects of sd(x | g) and sd(twice | same) are proportional"],
        ),
        ("y ~ x + (1 + of_group | g)", ["'of_group' is the same in all rows of each group of 'g'"]),
        ("y ~ x + (1 + of_group || g)", ["'of_group' is the same in all rows of each group of 'g'"]),
        ("y ~ x + (1 + late | g)", []),
        ("y ~ x + (1 | g) + (1 | h)", []),
    ],
)
def test_effects_of_the_same_groups_are_named(formula, said):
    """Only priors share out the variance of such effects; late hardly varies beside its size, but varies in groups."""
    rng = np.random.default_rng(3)
    g, x = np.repeat(np.arange(12), 6), rng.normal(size=72)
    data = pd.DataFrame({"g": g, "same": [f"s{one}" for one in g], "h": rng.integers(0, 5, 72), "x": x, "twice": 2 * x})
    data = data.assign(
        of_group=rng.normal(size=12)[g], late=1e7 + x, y=x + rng.normal(size=12)[g] + rng.normal(size=72)
    )
    notes = fit(formula, data).report.notes
    assert len(notes) == len(said)
    assert all(note.startswith(words) for note, words in zip(notes, said, strict=True))


def test_a_response_that_varies_little_beside_its_size():
    """It was refused as explained by the columns, though only rounding may keep the noise from being seen."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=60)
    noise = x + rng.normal(size=60)
    plain = fit("y ~ x", {"y": noise, "x": x}).to_frame()
    small = fit("y ~ x", {"y": 1000 + 1e-7 * noise, "x": x}).to_frame()
    np.testing.assert_allclose(small.loc[["x", "sigma"]], 1e-7 * plain.loc[["x", "sigma"]], rtol=1e-4)
    with pytest.raises(ParameterError, match=r"varies by .* around 1e\+06, .* rounding: subtract a constant"):
        fit("y ~ x", {"y": 1e6 + 1e-7 * noise, "x": x})
    with pytest.raises(ParameterError, match="explain the response exactly"):
        fit("y ~ x", {"y": 1000 + 1e-7 * x, "x": x})
