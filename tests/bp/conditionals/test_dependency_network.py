"""Every column given the others: pieces against slow obvious answers, the whole against laws that are known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import meanmap as mm
from meanmap.bp.beliefs.tails import with_tails
from meanmap.bp.conditionals.column_conditional import Member
from meanmap.bp.conditionals.joint_normal import JointNormal
from meanmap.bp.conditionals.row_weights import grown, nearest, row_weights
from meanmap.bp.conditionals.stacking import mixture_weights
from meanmap.bp.conditionals.thresholds import Thresholds
from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError

FEW = [ExtraTreesRegressor(12, min_samples_leaf=5, random_state=0)]


def make_table(m: int = 240, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, m))
    c = a * np.sign(b) + 0.2 * rng.normal(size=m)
    return {"a": a, "b": b, "c": c, "k": np.where(c + 0.3 * rng.normal(size=m) > 0, "up", "down")}


@pytest.fixture(scope="module")
def model():
    return mm.bp.DependencyNetwork(FEW).fit(make_table())


def with_gaps(table: dict, share: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(table)
    return frame.mask(rng.random(frame.shape) < share)


def test_gaps_get_the_conditional_law():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    law = JointNormal(rng.normal(size=4), root @ root.T)
    rows = np.where(rng.random((30, 4)) < 0.5, np.nan, rng.normal(size=(30, 4)))
    means, deviations = law.given(rows)
    for row, mean, deviation in zip(rows, means, deviations, strict=True):
        gap, seen = np.isnan(row), ~np.isnan(row)
        gain = law.covariance[np.ix_(gap, seen)] @ np.linalg.inv(law.covariance[np.ix_(seen, seen)])
        np.testing.assert_allclose(mean[gap], law.mean[gap] + gain @ (row - law.mean)[seen], rtol=1e-8)
        left = law.covariance[np.ix_(gap, gap)] - gain @ law.covariance[np.ix_(seen, gap)]
        np.testing.assert_allclose(deviation[gap] ** 2, np.diag(left), rtol=1e-6)
        assert (mean[seen] == row[seen]).all()


def test_rows_with_the_same_gaps_share_what_is_computed(monkeypatch):
    """Patterns of eighteen to twenty gaps, two with the same gaps among some eight columns and none or all among the
    others: as by the formula, with an inverse for each pattern.
    """
    rng = np.random.default_rng(0)
    root = rng.normal(size=(24, 24))
    law = JointNormal(rng.normal(size=24), root @ root.T + np.eye(24))
    patterns = np.array([rng.permutation(24) < number for number in (18, 18, 20)])
    apart = [np.arange(24) < 18, np.arange(24) >= 6]
    rows = np.where(np.tile([*patterns, *apart], (10, 1)), np.nan, rng.normal(size=(50, 24)))
    sizes, inverse = [], np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda matrices: sizes.append(len(matrices)) or inverse(matrices))
    means, deviations = law.given(rows)
    monkeypatch.undo()
    assert sum(sizes[1:]) == 5  # after the precision
    for row, mean, deviation in zip(rows, means, deviations, strict=True):
        gap, seen = np.isnan(row), ~np.isnan(row)
        gain = law.covariance[np.ix_(gap, seen)] @ np.linalg.inv(law.covariance[np.ix_(seen, seen)])
        np.testing.assert_allclose(mean[gap], law.mean[gap] + gain @ (row - law.mean)[seen], rtol=1e-8)
        left = law.covariance[np.ix_(gap, gap)] - gain @ law.covariance[np.ix_(seen, gap)]
        np.testing.assert_allclose(deviation[gap] ** 2, np.diag(left), rtol=1e-6)


def test_a_law_is_learned_through_gaps():
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([1.0, -1.0, 0.0], [[1, 0.8, 0.3], [0.8, 1, 0.5], [0.3, 0.5, 1]], size=4000)
    x[:, 1][x[:, 0] > 1.5] = np.nan  # which cells are missing depends on what is seen
    law = JointNormal.fit(x)
    np.testing.assert_allclose(law.mean, [1, -1, 0], atol=0.07)
    np.testing.assert_allclose(law.covariance, [[1, 0.8, 0.3], [0.8, 1, 0.5], [0.3, 0.5, 1]], atol=0.1)


@pytest.mark.parametrize("regression", [FEW[0], KNeighborsRegressor(7)], ids=["forest", "neighbours"])
def test_weights_average_to_what_the_regression_predicts(regression):
    rng = np.random.default_rng(0)
    x, y, new = rng.normal(size=(80, 3)), rng.normal(size=80), rng.normal(size=(20, 3))
    fitted = regression.fit(x, y)
    weights = row_weights(fitted, x).sparse(new)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights @ y, fitted.predict(new), rtol=1e-10)


def test_neighbours_are_the_nearest_rows_and_what_is_as_near():
    """Also of wild rows, in tables of few rows, and where rows come several times."""
    rng = np.random.default_rng(1)
    new = rng.normal(size=(30, 4)) * np.where(np.arange(30) == 3, 1e6, 1)[:, None]
    for n in (6, 25, 400):
        rows = rng.normal(size=(n, 4))
        rows[n // 2 :] = rows[: n - n // 2]
        rows[: n // 3] = rows[0]
        weights = nearest(rows, rows[:, :1]).sparse(new).toarray()
        apart = np.linalg.norm(new[:, None] - rows, axis=2)
        expected = apart <= np.sort(apart, axis=1)[:, [min(10, n) - 1]] * (1 + 1e-12)
        np.testing.assert_allclose(weights, expected / expected.sum(axis=1, keepdims=True))


def test_beliefs_are_weighted_shares_of_training_rows():
    """Distribution functions by the formula, row by row, also where rows are drawn again."""
    rng = np.random.default_rng(2)
    rows, values = rng.normal(size=(60, 4)), rng.normal(size=60).round(1)
    rows[:, -1], at = 0.5 + rng.random(60), np.linspace(-2, 2, 9).round(1)
    new = rows[:5] + 0.1
    member = Member.fit(rows, values, [grown, nearest], np.arange(60))
    for each in (member, member.resampled(rng.multinomial(60, np.full(60, 1 / 60)))):
        found = each.beliefs(new, at)
        for i, row in enumerate(new):
            points = row[-2] + row[-1] * (values - rows[:, -2]) / rows[:, -1]
            laws = [law.sparse(new).toarray()[i] * each.counts for law in member.weights]
            pairs = [(points, each.counts), *((points, law) for law in laws), *((values, law) for law in laws)]
            for k, (shown, weights) in enumerate(pairs, 1):
                below = (shown[:, None] <= at).T @ weights / weights.sum()
                np.testing.assert_allclose(found[k, i], below, atol=1e-12)


def test_regressions_of_one_target_are_refused_in_words():
    with pytest.raises(KindError, match="has no weights on training rows"):
        mm.bp.DependencyNetwork([GradientBoostingRegressor(n_estimators=2)]).fit(make_table())


def test_mixtures_have_the_least_score():
    errors = np.random.default_rng(0).normal(size=(3, 40, 5)) + np.array([0.1, 0.5, 0.0])[:, None, None]
    widths = np.array([1.0, 2.0, 1.0, 0.5, 0.0])
    found = mixture_weights(errors, widths)
    grid = [(i / 50, j / 50) for i in range(51) for j in range(51 - i)]
    scores = [
        np.sum((np.array([p, q, 1 - p - q]) @ errors.reshape(3, -1)).reshape(40, 5) ** 2 * widths) for p, q in grid
    ]
    best = np.sum((found @ errors.reshape(3, -1)).reshape(40, 5) ** 2 * widths)
    assert best <= min(scores) * 1.001
    assert found.sum() == pytest.approx(1)


def test_values_that_come_back_are_points():
    """A narrow bin ends in each; values of 2% of the rows, however many others there are."""
    values = np.concatenate([np.repeat([0.0, 1.0, 3.0], [50, 30, 20]), np.linspace(0.1, 2.9, 200)])
    found = Thresholds.of(values)
    assert found.edges[1:][found.points].tolist() == [0, 1, 3]
    assert (np.diff(found.at)[found.points] < 0.011 * np.diff(np.unique(values)).min()).all()
    assert (np.diff(found.at) > 0).all()
    bins = found.bins(values)
    assert (found.points[bins] == np.isin(values, [0, 1, 3])).all()
    assert (found.at[bins] < values).all()
    assert (values <= found.at[bins + 1]).all()
    assert not Thresholds.of(np.linspace(0, 1, 30)).points.any()  # each came once


def test_few_values_are_all_there_is():
    found = Thresholds.of(np.repeat([0.0, 1.0, 3.0], [50, 45, 5]))
    assert found.at[1:-1].tolist() == [0.5, 2.0]
    assert found.edges[1:].tolist() == [0, 1, 3]
    values, shares = np.array([[0.0], [1.0], [3.0], [2.0], [9.0]]), np.tile([0.5, 0.3, 0.2], (5, 1))
    chances = np.exp(found.log_density(shares, values, 1.0))
    np.testing.assert_allclose(chances[:3], np.array([0.5, 0.3, 0.2]) * 100 / 101)
    assert 2e-3 > chances[3] > chances[4] > 0


def test_scores_of_ratings_are_probabilities_that_add_up_to_one():
    """Every number above 5 had the probability .003, however far: over 1000 whole numbers they added up to 3."""
    rng = np.random.default_rng(5)
    rating = rng.choice([1, 2, 3, 4, 5], 400, p=[0.1, 0.1, 0.2, 0.3, 0.3])
    table = {
        "rating": rating,
        "half": rating / 2 + 0.5,
        "coin": rng.random(400) < 0.3,
        "x": rating + rng.normal(size=400),
    }
    model = mm.bp.DependencyNetwork(FEW).fit(table | {"coin": table["coin"] * 1, "far": 9 * (rating == 1) + rating})
    whole = np.arange(-2000, 2001)
    for name, values in (("rating", whole), ("coin", whole), ("far", whole), ("half", whole / 2)):
        shares = np.exp(model.score({name: values}))
        assert 1 - 3 / 400 < shares.sum() < 1 + 1 / 400
        beyond = shares[values > values[shares > 0.01].max()]
        assert (np.diff(beyond) < 0).all()
    far, shares = model.score({"rating": [6, 10, 1_000_000]}), np.exp(model.score({"rating": [6]}))
    assert shares < 2e-3
    assert far[0] > far[1] > far[2] + 15
    assert far[2] > -60
    known = model.score({"rating": whole, "x": np.full(len(whole), 4.0)}) - model.score({"x": [4.0]})
    assert np.isfinite(known).all()


@pytest.fixture(scope="module")
def counts():
    """A count, a coin and a number that hang together."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    return {"x": x, "count": rng.poisson(np.exp(0.5 * x)).astype(float), "coin": (x + rng.normal(size=300) > 1.2) * 1.0}


def test_intervals_end_at_values_that_columns_have(counts):
    """The ends of an interval are values of the column, and it holds at least what it says."""
    fitted = mm.bp.DependencyNetwork(FEW).fit(counts)
    belief = fitted.predict({"x": np.linspace(-2, 2, 9)}, ["coin"])["coin"]
    chance = 1 - belief.cdf([0.5])[:, 0]
    assert set(np.round(belief.mean() - chance, 9)) == {0.0}
    ends = belief.quantile([0.05, 0.95])
    assert set(ends.ravel()) <= {0.0, 1.0}
    np.testing.assert_array_equal(ends[:, 1] == 1, chance > 0.05)
    np.testing.assert_array_equal(ends[:, 0] == 1, chance >= 0.95)
    assert set(fitted.sample(200, rng=0)["coin"]) == {0.0, 1.0}


def test_scores_give_a_value_that_comes_back_its_own_bin(counts):
    """More is given to a coin that fell as it mostly does than to the other side, and far more than to no side."""
    fitted = mm.bp.DependencyNetwork(FEW).fit(counts)
    rows = {"x": np.full(3, -1.5), "coin": np.array([0.0, 1.0, 0.5])}
    usual, rare, never = fitted.score(rows)
    assert usual > rare > never


def test_a_saved_network_says_the_same(model, tmp_path):
    frame = with_gaps(make_table(20, seed=9), 0.3, 10)
    loaded = mm.load(mm.save(model, tmp_path / "network.meanmap"))
    pd.testing.assert_frame_equal(loaded.impute(frame), model.impute(frame))
    np.testing.assert_array_equal(loaded.score(frame), model.score(frame))
    assert str(loaded) == str(model)
    near = mm.bp.DependencyNetwork([KNeighborsRegressor(5)]).fit(make_table(60))
    near.impute(frame)  # what is kept for the next rows is not saved
    loaded = mm.load(mm.save(near, tmp_path / "near.meanmap"))
    pd.testing.assert_frame_equal(loaded.impute(frame), near.impute(frame))


def test_gaps_are_filled_where_no_line_helps(model):
    truth = make_table(400, seed=1)
    frame = with_gaps(truth, 0.25, 2)
    whole = model.impute(frame)
    lone = frame["c"].isna() & frame["a"].notna() & frame["b"].notna()
    error = np.sqrt(np.mean((whole["c"] - truth["c"])[lone] ** 2))
    assert error < 0.6 * truth["c"].std()
    gone = frame["k"].isna() & frame["c"].notna()
    right = int((whole["k"][gone] == truth["k"][gone]).sum())
    assert binom.sf(right, int(gone.sum()), 0.93) < 1 - 1e-5  # as often as can be, .93
    assert (whole["a"][frame["a"].notna()] == frame["a"].dropna()).all()
    assert not whole.isna().to_numpy().any()


def test_intervals_hold_what_they_say(model):
    """Of two tables together: which 240 rows were learned from moves the share by .02."""
    inside = 0
    for seed in (3, 13):
        truth = make_table(500, seed=seed)
        low, high = model.predict(with_gaps(truth, 0.2, seed + 1), ["c"])["c"].quantile([0.05, 0.95]).T
        inside += int(((low <= truth["c"]) & (truth["c"] <= high)).sum())
    assert 0.86 < inside / 1000 < 0.96


def test_columns_are_judged_beside_simpler_laws(model, normal):
    """Ranked probability scores of N(0, s²) beside itself are s / √π: of b alone, and given a, of which a third is
    missing in the mean.
    """
    held = model.held_out
    assert held["c"]["this"] < 0.9 * held["c"]["joint normal"]  # no line helps
    assert held["k"]["this"] < 0.8 * held["k"]["alone"]
    assert "joint normal" not in held["k"]
    of_b = normal.held_out["b"]
    assert of_b["alone"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.05)
    assert of_b["this"] == pytest.approx(of_b["joint normal"], rel=0.03)
    assert of_b["this"] == pytest.approx((2 / 3 / np.sqrt(2) + 1 / 3) / np.sqrt(np.pi), rel=0.06)


def test_held_out_rows_have_the_gaps_of_the_table_once():
    """Of b, which is all but a, in a table of which two fifths are missing: a is there in three fifths of rows."""
    a, noise = np.random.default_rng(4).normal(size=(2, 400))
    table = with_gaps({"a": a, "b": a + 0.1 * noise}, 0.4, 5)
    held = mm.bp.DependencyNetwork(FEW).fit(table).held_out["b"]
    near = 0.1 / np.sqrt(1.01)
    assert held["joint normal"] == pytest.approx((0.6 * near + 0.4) / np.sqrt(np.pi), rel=0.15)


@pytest.mark.slow
def test_intervals_of_gaps_in_what_is_learned_hold_what_they_say():
    """Of eight tables whose relations are no lines, with 1900 gaps: two hundredths for width, two standard errors."""
    inside = []
    for seed in range(8):
        truth = {name: column for name, column in make_table(400, seed=seed).items() if name != "k"}
        frame = with_gaps(truth, 0.2, 100 + seed)
        model = mm.bp.DependencyNetwork().fit(frame)
        for name, column in truth.items():
            gone = frame[name].isna()
            low, high = model.predict(frame[gone], [name])[name].quantile([0.05, 0.95]).T
            inside.extend(((low <= column[gone]) & (column[gone] <= high)).tolist())
    error = np.sqrt(0.09 / len(inside))
    assert 0.88 - 2 * error < np.mean(inside) < 0.92 + 2 * error


def test_a_label_that_is_always_the_same_is_known(tmp_path):
    table = make_table(60) | {"k": np.full(60, "up")}
    fitted = mm.bp.DependencyNetwork(FEW).fit(table)
    assert fitted.impute({"a": [0.0], "k": np.array([None], dtype=object)})["k"].tolist() == ["up"]


def test_a_query_is_a_prediction_of_one_row(model):
    beliefs = model.query({"a": 1.0, "k": "up"})
    rows = model.predict({"a": [1.0], "k": ["up"]}, ["b", "c"])
    assert tuple(beliefs) == ("b", "c")
    np.testing.assert_array_equal(beliefs["c"].quantile([0.1, 0.9]), rows["c"].quantile([0.1, 0.9])[0])
    assert model.query({"a": 1e6}, ["c"]).report.notes[0].startswith("evidence['a'] has 1 value far outside")
    assert "frame['a'] has 2 values far outside" in model.predict({"a": [1e6, -1e6]}, ["c"]).report.notes[0]
    assert model.query({"a": 1.0}, ["c"]).report.notes == ()
    with pytest.raises(InputError, match="a target and also given"):
        model.query({"a": 1.0}, ["a"])
    with pytest.raises(InputError, match="no column 'z'"):
        model.query({"a": 1.0}, ["z"])


def test_scores_are_the_chain_rule(model):
    frame = with_gaps(make_table(8, seed=5), 0.3, 6)
    scores = model.score(frame)
    for i in range(8):
        total, before = 0.0, {"a": [np.nan]}
        for name in "abck":
            value = frame[name][i]
            if pd.isna(value):
                continue
            belief = model.predict(before, [name])[name]
            # Of 241 rows one is kept for labels that never came, and 1e-4 for bins and for numbers far from all.
            if name == "k":
                total += np.log(belief.probabilities()[value] * 240 / 241)[0].item()
            else:
                ends = model.conditionals["abc".index(name)].thresholds.at[[0, -1], None]
                whole = np.maximum(belief.weights, 1e-4 / belief.weights.shape[1]).sum()
                density = belief.density([value]).ravel() / whole
                total += with_tails(np.log(density), np.array([[value]]), *ends).item()
            before[name] = [value]
        assert scores[i] == pytest.approx(total, rel=1e-9)


def test_a_number_far_beyond_the_data_has_a_low_score_not_an_infinite_one():
    """A number beyond all bins, or of a sign that none had, made the mean over rows −∞."""
    a, noise = np.exp(np.random.default_rng(0).normal(size=(2, 1100)))
    fitted = mm.bp.DependencyNetwork(FEW).fit({"a": a[:100], "b": (a * noise)[:100]})
    new = fitted.score({"a": a[100:], "b": (a * noise)[100:]})
    (law, _), beyond = fitted.conditionals, a[100:] > 1.5 * a[:100].max()
    assert beyond.any()
    assert np.isfinite(new).all()
    assert new[beyond].max() < np.median(new[~beyond]) - 4
    end = law.thresholds.at[-1]
    near, far, negative = fitted.score({"a": [1.1 * end, 1e6 * end, -1.0]})
    assert -60 < far < near < new.max()
    assert -60 < negative < new.max()
    low, high = law.thresholds.at[0], end
    grid = np.concatenate([low - np.geomspace(1e-9, 1e9, 4000)[::-1], high + np.geomspace(1e-9, 1e9, 4000)])
    tails = np.exp(law.thresholds.log_density(np.ones((len(grid), len(law.thresholds.at) - 1)), grid[:, None], 0.0))
    beyond = np.trapezoid(tails[:4000], grid[:4000]) + np.trapezoid(tails[4000:], grid[4000:])
    assert beyond == pytest.approx(1e-4 / 2, rel=0.01)


@pytest.fixture(scope="module")
def normal():
    """b = a + noise, both of variance one: 800 rows."""
    a, noise = np.random.default_rng(0).normal(size=(2, 800))
    return mm.bp.DependencyNetwork(FEW).fit({"a": a, "b": a + noise})


def test_scores_of_normal_rows_are_near_their_densities(normal):
    a, noise = np.random.default_rng(1).normal(size=(2, 400))
    scores = normal.score({"a": a, "b": a + noise})
    assert abs(np.mean(scores - norm.logpdf(a) - norm.logpdf(noise))) < 0.1


def test_draws_follow_the_joint_law(normal):
    drawn = normal.sample(1500, rng=0)
    np.testing.assert_allclose(np.cov(drawn["a"], drawn["b"]), [[1, 1], [1, 2]], atol=0.25)
    back = normal.sample(1500, {"b": 2.0}, rng=0)["a"]
    np.testing.assert_allclose([back.mean(), back.var()], [1, 0.5], atol=0.15)


def test_draws_keep_what_is_known_and_are_repeatable(model):
    drawn = model.sample(50, {"b": -1.0, "k": "up"}, rng=0)
    assert set(drawn["b"]) == {-1.0}
    assert set(drawn["k"]) == {"up"}
    again = model.sample(50, {"b": -1.0, "k": "up"}, rng=0)
    assert all((drawn[name] == again[name]).all() for name in drawn)
    rows = model.sample(3, with_gaps(make_table(5, seed=7), 0.4, 8), rng=0)
    assert rows["k"].shape == rows["a"].shape == (5, 3)


def test_the_same_table_learns_the_same(model):
    frame = with_gaps(make_table(20, seed=9), 0.3, 10)
    again = mm.bp.DependencyNetwork(FEW).fit(make_table())
    pd.testing.assert_frame_equal(model.impute(frame), again.impute(frame))


def test_times_truth_values_and_gaps_in_what_is_learned():
    rng = np.random.default_rng(0)
    hours = rng.uniform(0, 24 * 60, 120)
    table = pd.DataFrame({"at": pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, unit="h"), "x": hours / 24})
    table["late"] = (table["x"] > 30).astype(object)
    table = table.mask(rng.random(table.shape) < 0.1)
    whole = mm.bp.DependencyNetwork(FEW).fit(table).impute(table)
    assert not whole.isna().to_numpy().any()
    gone = table["at"].isna() & table["x"].notna()
    assert abs((whole["at"] - pd.Timestamp("2024-01-01"))[gone].dt.total_seconds() / 3600 - hours[gone]).max() < 48
    assert set(whole["late"]) == {True, False}


def test_what_cannot_be_learned_is_refused(model):
    with pytest.raises(KindError, match="has no weights on training rows"):
        mm.bp.DependencyNetwork([LinearRegression()]).fit(make_table(40))
    with pytest.raises(KindError, match="has no weights on training rows"):
        mm.bp.DependencyNetwork([KNeighborsRegressor(5, weights="distance")]).fit(make_table(40))
    with pytest.raises(EmptyError, match="has 6 rows; expected at least 10"):
        mm.bp.DependencyNetwork().fit(make_table(6))
    with pytest.raises(ShapeError, match="one column"):
        mm.bp.DependencyNetwork().fit({"a": np.arange(30.0)})
    with pytest.raises(InputError, match="no column 'z'"):
        model.predict({"a": [1.0]}, ["z"])
    with pytest.raises(InputError, match="expected some of the model's columns"):
        model.impute({"z": [1.0]})
    with pytest.raises(KindError, match="expected a number column"):
        model.impute({"a": ["x"]})


def test_intervals_that_are_too_wide_and_many_gaps_are_told():
    """b is twice a, which bins are too wide for: intervals of 50% hold all fresh values, and a note says it."""
    rng = np.random.default_rng(40)
    a, c, fresh = rng.normal(size=(3, 200))
    table = {"a": a, "b": 2 * a + 1e-4 * rng.normal(size=200), "c": np.where(rng.random(200) < 0.2, np.nan, c + a)}
    model = mm.bp.DependencyNetwork(FEW).fit(table)
    beliefs = model.predict({"a": fresh, "b": np.full(200, np.nan)}, ["b", "c"])
    low, high = beliefs["b"].quantile(0.25), beliefs["b"].quantile(0.75)
    assert np.mean((low <= 2 * fresh) & (2 * fresh <= high)) > 0.6
    told = beliefs.report.notes
    assert sum("intervals of 'b' are too wide" in note for note in told) == 1
    assert not any("intervals of 'c' are too wide" in note for note in told)
    assert [note.split(".")[0] for note in told if "is missing" in note][-1].endswith("% of 'c' is missing in the data")
    assert [note for note in told if "is missing" in note][-1].endswith("covered .46 to .86 of them: see mm.bp.pooled.")
    assert not any("% of 'c'" in note for note in model.predict({"c": [0.0]}, ["a"]).report.notes)


def test_what_a_column_determines_is_drawn_nowhere_else():
    """One draw of 12,000 lay anywhere in twice the range of the column."""
    rng = np.random.default_rng(41)
    a, c = rng.normal(size=(2, 300))
    fresh = rng.uniform(-1.5, 1.5, 200)
    model = mm.bp.DependencyNetwork(FEW).fit({"a": a, "b": 2 * a + 1e-3 * rng.normal(size=300), "c": c})
    belief = model.predict({"a": fresh}, ["b"])["b"]
    far = [each.cdf([2 * f - 1, 2 * f + 1]) for each, f in zip(belief, fresh, strict=True)]
    assert max(low + 1 - high for low, high in far) < 1e-6


def test_no_number_within_reach_is_impossible():
    """Narrow beliefs leave nothing far away but rounding, on both sides."""
    a = np.random.default_rng(41).normal(size=(200, 1)) + 0.01 * np.random.default_rng(42).normal(size=(200, 3))
    model = mm.bp.DependencyNetwork().fit(dict(zip("xyz", a.T, strict=True)))
    for side in (-1, 1):
        score = model.score({"x": [-2.0 * side], "y": [-2.0 * side], "z": [2.0 * side]})
        assert -100 < score[0] < -5


def test_gaps_that_go_with_other_columns_have_a_note_on_shifts():
    """No rows show whether gaps depend on what is missing; the note says what to type."""
    rng = np.random.default_rng(17)
    x = rng.normal(size=300)
    y = x + rng.normal(size=300)
    some = {"x": x, "y": np.where(rng.random(300) < 1 / (1 + np.exp(-3 * x)), np.nan, y)}
    none = {"x": x, "y": np.where(rng.random(300) < 0.3, np.nan, y)}
    told, quiet = (" ".join(mm.bp.DependencyNetwork().fit(table).notes) for table in (some, none))
    assert "table['x'] + 0.5 * gap" in told
    assert "gap is 1" not in quiet


def test_the_number_of_rows_behind_regressions_is_noted():
    """Of 100,000 rows that are read 4000 are used, whatever the number of all."""
    a = np.random.default_rng(0).normal(size=100_100)
    model = mm.bp.DependencyNetwork([KNeighborsRegressor(10)])
    for n, ending in ((5000, "spread over the table."), (100_100, "drawn at random.")):
        fitted = model.fit({"a": a[:n], "b": a[:n] ** 2})
        assert f"learned from {len(fitted.rows)} of {n} rows, {ending}" in fitted.notes


@pytest.mark.parametrize("unit", [3.0, 1e6])
def test_imputed_cells_have_the_unit_of_their_column(unit):
    """Equally good splits of trees were chosen by the last digits: cells moved by .03 standard deviations."""
    table = with_gaps(make_table(), 0.1, 5)
    before = mm.bp.DependencyNetwork(FEW).fit(table).impute(table)
    for name in "ac":
        scaled = table.assign(**{name: table[name] * unit})
        after = mm.bp.DependencyNetwork(FEW).fit(scaled).impute(scaled)
        for other in "abc":
            expected = before[other] * (unit if other == name else 1)
            assert after[other].to_numpy() == pytest.approx(expected.to_numpy(), rel=1e-9, abs=1e-12)
        assert (after["k"] == before["k"]).all()
