"""Columns looked at one by one beside kernels of all: what one column alone shows is seen, however many there are."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.door import Door
from meanmap.stats.collections import together
from meanmap.stats.permutations import Permuted, assignments
from meanmap.stats.samples import feature_statistics, k_sample, rank_features, scores
from meanmap.stats.samples.comparing import differences
from meanmap.stats.samples.scores import Scores, grouped_forms, permuted_forms, soft_maximum

RNG = np.random.default_rng(12)
POOLED = np.column_stack([RNG.normal(size=40), np.round(RNG.normal(size=40)), RNG.standard_cauchy(40) * 1e6])
NAMES = ("a", "b", "c")


def of_columns(pooled):
    return Scores.of(None, pooled, [f"column {j}" for j in range(pooled.shape[1])])


def test_scores_are_those_of_ranks():
    """The first is the normal score, the second its square; units do not matter, ties share their rank."""
    found = of_columns(POOLED)
    normal = scipy.stats.norm.ppf((scipy.stats.rankdata(POOLED[:, 1]) - 0.5) / 40)
    expected = scipy.stats.zscore(np.column_stack([normal, normal**2]), axis=0)
    np.testing.assert_allclose(found.matrix[:, found.columns == 1][:, :2], expected, atol=1e-12)
    np.testing.assert_allclose(found.matrix.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose((found.matrix**2).mean(axis=0), 1, atol=1e-12)
    assert found.shares.sum() == pytest.approx(1)
    moved = of_columns(np.column_stack([POOLED[:, 0] * 1e-9, POOLED[:, 1] + 7, np.arctan(POOLED[:, 2] / 1e6)]))
    np.testing.assert_allclose(moved.matrix, found.matrix, atol=1e-9)


def test_two_columns_that_vary_are_needed():
    assert of_columns(POOLED[:, :1]) is None
    assert of_columns(np.column_stack([POOLED[:, 0], np.ones(40)])) is None
    assert of_columns(np.column_stack([POOLED[:, 0], np.ones(40), POOLED[:, 1]])).names == ("column 0", "column 2")


def test_squares_of_scores_are_those_of_their_definition():
    found, z = of_columns(POOLED), assignments(15, 25, 8, RNG)
    squares = permuted_forms(z, 15)(found.matrix)
    for row, square in zip(z, squares, strict=True):
        x, y = found.matrix[row == 1], found.matrix[row == 0]
        deviation = found.matrix.std(axis=0, ddof=1) * np.sqrt(1 / 15 + 1 / 25)
        np.testing.assert_allclose(square, ((x.mean(axis=0) - y.mean(axis=0)) / deviation) ** 2, rtol=1e-9)
    labels = (1 - z).astype(int)
    np.testing.assert_allclose(grouped_forms(labels, (15, 25))(found.matrix), squares, rtol=1e-9)


def test_soft_maximum_is_that_of_its_definition(monkeypatch):
    found, z = of_columns(POOLED), assignments(15, 25, 8, RNG)
    monkeypatch.setattr(scores, "AT_ONCE", 5)
    values, strongest = soft_maximum(found.matrix, np.log(found.shares), permuted_forms(z, 15))
    terms = found.shares * np.exp(0.45 * permuted_forms(z, 15)(found.matrix))
    np.testing.assert_allclose(values, np.log(terms.sum(axis=1)), rtol=1e-12)
    assert strongest == np.argmax(terms[0])


def test_parts_are_judged_by_their_tails():
    """Whatever the units of the parts; what one of them alone sees comes first, with 19 draws too."""
    for draws in (19, 999):
        values = np.random.default_rng(1).normal(size=(2, draws + 1))
        values[1, 0] = 9.0
        found, first = together([Permuted(values[0], 0.0), Permuted(values[1], 0.0)], (0.7, 0.3))
        other, _ = together([Permuted(values[0] * 1e6 - 5, 0.0), Permuted(values[1], 0.0)], (0.7, 0.3))
        assert first == 1
        assert found.values.argmax() == 0
        np.testing.assert_allclose(found.values, other.values, rtol=1e-9)


def test_parts_that_see_nothing_tie():
    found, _ = together([Permuted(np.ones(20), 0.0), Permuted(np.ones(20), 0.0)], (0.7, 0.3))
    assert np.ptp(found.values) == 0


@pytest.mark.parametrize("columns", [10, 33, 50])
def test_one_wide_column_of_many_is_seen(columns):
    """Ten in ten with a width of 2.4; without looking at columns alone hardly any of 50."""
    x, y = np.random.default_rng([4, columns]).normal(size=(2, 100, columns))
    y[:, 3] *= 2.4
    few = {"n_permutations": 199, "rng": 0}
    assert mm.two_sample_test(x, y, **few).pvalue == pytest.approx(1 / 200)
    assert mm.k_sample_test([x, y], **few).pvalue == pytest.approx(1 / 200)
    assert mm.two_sample_test(x, y, null="wild", **few).pvalue == pytest.approx(1 / 200)
    within = np.tile(np.arange(2), 100)
    assert mm.two_sample_test(x, y, within=within, **few).pvalue == pytest.approx(1 / 200)
    assert mm.k_sample_test([x, y], within=within, **few).pvalue == pytest.approx(1 / 200)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [50, 200])
@pytest.mark.parametrize("what", ["shift", "width"])
def test_one_column_of_many_is_seen_nearly_as_often_as_by_tests_of_columns(columns, what):
    """As by t-tests or Levene's with Bonferroni's correction, to within .1 and three standard errors."""
    ours, theirs = [], []
    for trial in range(100):
        x, y = np.random.default_rng([8, columns, trial]).normal(size=(2, 100, columns))
        y[:, 0] = y[:, 0] + 0.68 if what == "shift" else 1.9 * y[:, 0]
        test = scipy.stats.ttest_ind if what == "shift" else scipy.stats.levene
        theirs.append(columns * min(test(x[:, j], y[:, j]).pvalue for j in range(columns)) <= 0.05)
        ours.append(mm.two_sample_test(x, y, n_permutations=299, rng=0).reject(0.05))
    difference = np.array(theirs, float) - np.array(ours)
    assert difference.mean() <= 0.1 + 3 * difference.std() / 10, (np.mean(ours), np.mean(theirs))


@pytest.mark.parametrize("test", ["two_sample_test", "k_sample_test"])
def test_features_look_at_each_column_too(test, monkeypatch):
    """What is for more than 3000 points, on fewer."""
    monkeypatch.setattr(feature_statistics, "LANDMARKS", 40)
    for module in (k_sample, scores):
        monkeypatch.setattr(module, "WHOLE", 100)
    x, y = np.random.default_rng(7).normal(size=(2, 150, 8))
    y[:, 3] *= 2.2
    few = {"n_permutations": 199, "rng": 0}
    if test == "two_sample_test":
        result = mm.two_sample_test(x, y, statistic="features", **few)
        alone = mm.two_sample_test(x, y, result.kernel, statistic="features", **few)
    else:
        result = mm.k_sample_test([x, y], **few)
        alone = mm.k_sample_test([x, y], result.kernel, **few)
    assert "ranks in each of 8 columns" in result.method
    assert "ranks" not in alone.method
    assert result.pvalue == pytest.approx(1 / 200)


def test_the_column_that_differs_is_the_witness():
    x, y = RNG.normal(size=(2, 80, 6))
    result = mm.two_sample_test(x, y * [1, 1, 4, 1, 1, 1], n_permutations=99, rng=0)
    assert (
        "fused over 5 kernels, combined with tests of ranks in each of 6 columns and in pairs of columns"
        in result.method
    )
    assert result.witness.kernel.lengthscale.argmin() == 2
    assert np.isfinite(result.witness(x)).all()


def test_a_column_of_labels_beside_numbers_is_seen():
    """A mixed table has one kernel, of all columns at once: 12 others hide one."""
    x, y = ({f"x{j}": RNG.normal(size=100) for j in range(12)} for _ in range(2))
    x["town"], y["town"] = (RNG.choice(["Ulm", "Bonn"], 100, p=p) for p in ((0.5, 0.5), (0.9, 0.1)))
    assert mm.two_sample_test(x, y, n_permutations=199, rng=0).pvalue == pytest.approx(1 / 200)


def test_columns_of_any_size_are_compared():
    x, y = RNG.normal(size=(2, 20, 3)) * [1e-161, 1e150, 1.0]
    assert 0 < mm.two_sample_test(x, y, n_permutations=99, rng=0).pvalue <= 1


def test_one_column_of_many_rows_is_seen_wherever_the_rows_lie(tmp_path):
    """More than 20,000 rows: scores are functions of a row, by the quantiles of some of the rows."""
    x, y = np.random.default_rng(9).normal(size=(2, 10_500, 33))
    y[:, 3] *= 1.12
    x[:, 5], y[:, 5] = np.round(x[:, 5]), np.round(y[:, 5])
    result = mm.two_sample_test(x, y, n_permutations=199, rng=0)
    assert "ranks in each of 33 columns" in result.method
    assert "pairs" not in result.method
    assert result.pvalue == pytest.approx(1 / 200)
    assert mm.two_sample_test(x, y, result.kernel, n_permutations=199, rng=0).pvalue > 1 / 200
    plan = mm.stats.plan("two samples", x, y, rng=0)
    mm.save(plan, tmp_path / "plan")
    plan = mm.load(tmp_path / "plan")
    again = plan.result(plan.state(x[5000:]).merge(plan.state(x[:5000])), plan.state(y), n_permutations=199)
    assert again.statistic == result.statistic
    np.testing.assert_array_equal(again.witness(x[:5]), result.witness(x[:5]))
    assert mm.k_sample_test([x, y], n_permutations=199, rng=0).pvalue == pytest.approx(1 / 200)


def test_scores_of_rows_are_those_of_ranks():
    found = rank_features.RankFeatures.of(mm.kernels.RBF(1.0), POOLED)
    mine = found(POOLED)
    scores = of_columns(POOLED)
    number, expected = scores.matrix.shape[1], np.concatenate([scores.matrix, scores.each_pair], axis=1)
    assert found.size == expected.shape[1] > number
    np.testing.assert_allclose([np.exp(part).sum() for part in np.split(found.shares, [number])], 1)
    for one, other in zip(mine.T, expected.T, strict=True):
        assert abs(np.corrcoef(one, other)[0, 1]) > 0.98
    wide = np.random.default_rng(0).normal(size=(50, 200))
    assert rank_features.RankFeatures.of(mm.kernels.RBF(1.0), wide).size == 401
    assert rank_features.RankFeatures.of(mm.kernels.RBF(1.0), np.tile(wide, 2)) is None


def users(rng, n, lift=0.0):
    """A table of labels and numbers with two arms, and a rare event that is more frequent in one of them."""
    second = rng.random(n) < 0.5
    event = rng.random(n) < np.where(second, 0.08 + lift, 0.08)
    table = {
        "revenue": np.where(event, rng.lognormal(3, 1.4, n), 0),
        "event": event.astype(int),
        "visits": rng.geometric(0.3, n),
        "age": rng.gamma(9, 4, n),
        "device": rng.choice(["ios", "android", "web"], n, p=[0.3, 0.4, 0.3]),
        "country": rng.choice(["DE", "FR", "US", "MT"], n, p=[0.4, 0.3, 0.299, 0.001]),
    }
    table = pd.DataFrame(table)
    return table[~second], table[second]


def test_a_rare_event_is_seen_in_many_rows_of_labels_and_numbers(tmp_path):
    """More than 20,000 rows; a z test of the event alone has a p-value of 2e-8 or so. Files give the same p-value."""
    x, y = users(np.random.default_rng(14), 24_000, 0.02)
    result = mm.two_sample_test(x, y, n_permutations=199, rng=0)
    assert "ranks in each of 6 columns" in result.method
    assert result.pvalue == pytest.approx(1 / 200)
    assert mm.two_sample_test(x, y, result.kernel, n_permutations=199, rng=0).pvalue > 0.05
    assert mm.k_sample_test([x, y], n_permutations=199, rng=0).pvalue == pytest.approx(1 / 200)
    plan = mm.stats.plan("two samples", x, y, rng=0)
    mm.save(plan, tmp_path / "plan")
    plan = mm.load(tmp_path / "plan")
    states = plan.state(x[5000:]).merge(plan.state(x[:5000])), plan.state(y)
    again = plan.result(*states, n_permutations=199)
    assert again.statistic == result.statistic
    assert again.column_pvalues() == result.column_pvalues()


def test_pvalues_of_columns_of_many_rows_are_corrected_for_their_number(tmp_path):
    """They were refused above 20,000 rows. One column is constant, and one has a label that a single row has."""
    x, y = users(np.random.default_rng(18), 24_000, 0.02)
    x, y = (part.assign(still=1.0, odd="no") for part in (x, y))
    x.iloc[3, -1] = "yes"
    result = mm.two_sample_test(x, y, n_permutations=999, rng=0)
    pvalues = result.column_pvalues()
    assert {name for name, pvalue in pvalues.items() if pvalue <= 0.05} == {"revenue", "event"}
    assert pvalues["still"] == pvalues["odd"] == 1
    assert list(pvalues) == sorted(pvalues, key=pvalues.get)
    assert "(of each column by itself; adjusted for 8 columns)" in str(result)
    mm.save(result, tmp_path / "result")
    assert mm.load(tmp_path / "result").column_pvalues() == pvalues
    several = mm.k_sample_test([x, y[:6000], y[6000:]], n_permutations=199, rng=0).column_pvalues()
    assert {name for name, pvalue in several.items() if pvalue <= 0.005} == {"revenue", "event"}


@pytest.mark.slow
def test_family_of_pvalues_of_columns_of_many_rows():
    """No column of a table without any difference is named in more than one in twenty tables."""
    named = 0
    for t in range(400):
        x, y = users(np.random.default_rng([19, t]), 4000)
        result = mm.two_sample_test(x, y, statistic="features", null="spectral", n_permutations=199, rng=t)
        named += min(result.alone.values()) <= 0.05
    assert named <= scipy.stats.binom.ppf(0.995, 400, 0.05), named


def test_a_label_that_changes_is_seen_in_many_rows():
    """No column has numbers."""
    rng = np.random.default_rng(15)
    first = {f"c{j}": rng.choice(["a", "b", "c"], 10_500) for j in range(6)}
    second = {**{f"c{j}": rng.choice(["a", "b", "c"], 10_500) for j in range(6)}}
    second["c2"] = rng.choice(["a", "b", "c"], 10_500, p=[0.37, 0.33, 0.3])
    assert mm.two_sample_test(first, second, n_permutations=199, rng=0).pvalue == pytest.approx(1 / 200)


def test_scores_of_labels_are_those_of_small_tables():
    rng = np.random.default_rng(16)
    table = pd.concat(users(rng, 3000))
    kernel = mm.kernels.OnColumns(mm.kernels.RBF(1.0), ["revenue", "event", "visits", "age"])
    kernel = kernel * mm.kernels.OnColumns(mm.kernels.Hamming(1.0), ["device", "country"])
    with Door() as door:
        points = kernel.domain.read(table, "table", door)
    found, expected = rank_features.RankFeatures.of(kernel, points), Scores.of(kernel.domain, points)
    mine = found(table)
    assert np.abs(mine).max() <= 1
    np.testing.assert_allclose(np.exp(found.shares[: -found.pairs[1].shape[1]]).sum(), 1)
    for label in expected.matrix[:, expected.columns >= 4].T:
        assert np.abs(np.corrcoef(mine.T, label)[-1, :-1]).max() == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("second", [0.5, 0.01])
def test_level_of_the_limit_with_columns_of_labels_alone(second):
    """Also if one sample is small, and forty labels are rare."""
    rejected = 0
    for t in range(400):
        rng = np.random.default_rng([17, t])
        shares = np.r_[np.full(40, 0.002), 0.42, 0.5]
        n = 6000
        table = pd.DataFrame({f"c{j}": rng.choice(len(shares), n, p=shares).astype(str) for j in range(3)})
        table["event"], table["cost"] = (rng.random(n) < 0.01).astype(int), rng.lognormal(0, 1, n)
        in_second = rng.random(n) < second
        parts = table[~in_second], table[in_second]
        settings = {"statistic": "features", "null": "spectral", "n_permutations": 199}
        rejected += mm.two_sample_test(*parts, **settings, rng=t).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, 400, 0.05)
    assert low <= rejected <= high, rejected


@pytest.mark.slow
def test_level_of_the_limit_with_columns_alone():
    rejected = 0
    for t in range(400):
        x, y = np.random.default_rng([10, t]).exponential(size=(2, 1000, 12))
        rejected += mm.two_sample_test(x, y, statistic="features", null="spectral", rng=t).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, 400, 0.05)
    assert low <= rejected <= high, rejected


def rejections(draw, number, n_columns, **settings):
    rejected = 0
    for t in range(number):
        x, y = draw(np.random.default_rng([5, n_columns, t]), (2, 30, n_columns))
        rejected += mm.two_sample_test(x, y, n_permutations=99, rng=t, **settings).reject(0.05)
    return rejected


LAWS = {
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "tied": lambda rng, shape: np.round(rng.standard_t(2, size=shape)),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n_columns", [2, 7, 40])
def test_level_with_columns_alone(law, n_columns):
    rejected = rejections(LAWS[law], 1000, n_columns)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= rejected <= high, rejected


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"null": "wild"}, {"within": np.tile(np.arange(3), 20)}])
def test_level_with_columns_alone_under_other_exchanges(settings):
    rejected = rejections(LAWS["exponential"], 1000, 7, **settings)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= rejected <= high, rejected


def test_a_rare_label_is_not_blamed_where_another_column_differs():
    """Products of a label that hardly any row has, with a column that differs, blamed it in a third of tables."""
    runs, blamed, found = 30, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        label = rng.choice(["a", "b", "c"], 2000, p=[0.5, 0.3, 0.2])
        label[rng.choice(2000, 5, replace=False)] = ["x", "x", "y", "y", "y"]
        table = pd.DataFrame({"label": label, "number": rng.normal(size=2000) + 0.25 * (np.arange(2000) >= 1000)})
        pvalues = mm.two_sample_test(table[:1000], table[1000:], rng=seed).column_pvalues(rng=seed, n_permutations=199)
        blamed += pvalues["label"] <= 0.02
        found += pvalues["number"] <= 0.02
    assert blamed <= scipy.stats.binom.ppf(0.999, runs, 0.02)
    assert found >= 0.9 * runs


def test_a_rare_label_does_not_drive_what_another_column_does():
    """Of sixty such tables none had an interval of the label's share above zero; the number was first in all."""
    for seed in range(4):
        rng = np.random.default_rng([10, seed])
        label = rng.choice(["a", "b", "c"], 1000, p=[0.6, 0.3, 0.1])
        label[rng.choice(1000, 5, replace=False)] = ["x", "x", "y", "y", "y"]
        table = pd.DataFrame({"label": label, "number": rng.normal(size=1000) + 0.8 * (np.arange(1000) >= 500)})
        found = mm.two_sample_test(table[:500], table[500:], n_permutations=99, rng=seed)
        shares = found.driving_columns(rng=seed, confidence=0.95)
        assert next(iter(shares)) == "number"
        assert shares["number"].low > 0.5
        assert shares["label"].low == 0


def correlated(rng, n, d, correlation):
    rows = rng.normal(size=(n, d))
    rows[:, 1] = correlation * rows[:, 0] + np.sqrt(1 - correlation**2) * rows[:, 1]
    return rows


def test_one_correlation_of_many_is_compared_by_itself():
    # Fisher's z is 6 to 9 in each of these; sums over 21 pairs of columns gave p-values of .1 to .8.
    rng = np.random.default_rng(81)
    for seed in range(5):
        first, second = correlated(rng, 300, 7, 0.8), correlated(rng, 200, 7, 0.4)
        assert mm.two_sample_test(first, second, rng=seed).pvalue <= 0.01
        labelled = [
            {"site": rng.choice(["n", "s"], len(x)), **dict(zip("abcdefg", x.T, strict=True))} for x in (first, second)
        ]
        assert mm.two_sample_test(*labelled, rng=seed).pvalue <= 0.01
        assert mm.DriftMonitor.of(correlated(rng, 500, 7, 0.8), rng=seed).step(second).pvalues[0] <= 0.01
        third = correlated(rng, 300, 7, 0.8)
        assert mm.k_sample_test([first, second, third], rng=seed).pvalue <= 0.01


def test_moved_means_and_spreads_are_no_changed_correlations():
    # What is compared does not change to first order if a column moves or spreads: columns have a part of their own.
    rng = np.random.default_rng(82)
    rows = correlated(rng, 4000, 2, 0.7)
    for moved in (rows + np.array([0.3, 0.0]), rows * np.array([1.3, 1.0])):
        each = Scores.of(mm.kernels.RBF(1.0).domain, np.concatenate([rows, moved]), "ab").each_pair
        assert each.shape == (8000, 1)
        assert abs(each[4000:].mean()) < 0.05


def test_one_correlation_of_many_is_compared_in_tests_of_many_rows_too():
    rng = np.random.default_rng(83)
    first, second = correlated(rng, 1500, 7, 0.8), correlated(rng, 25_000, 7, 0.7)
    assert mm.two_sample_test(first, second, rng=0).pvalue <= 0.01
    assert mm.k_sample_test([first, second, correlated(rng, 1500, 7, 0.7)], rng=0).pvalue <= 0.01
    labelled = [{"site": rng.choice(["n", "s"], len(x)), "x": x[:, 0], "y": x[:, 1]} for x in (first, second)]
    assert mm.two_sample_test(*labelled, rng=0).pvalue <= 0.01


def test_few_rows_beside_many_differ_as_rarely_as_they_should():
    # The limit of large samples is used: with fewer than 180 rows in one sample no pair is compared.
    rng = np.random.default_rng(84)
    found = []
    for k in range(24):
        first, second = correlated(rng, [100, 200, 400][k % 3], 4, 0.8), correlated(rng, 20_000, 4, 0.8)
        found.append(mm.two_sample_test(first, second, n_permutations=199, rng=k).pvalue)
    assert np.sum(np.array(found) <= 0.05) <= scipy.stats.binom.ppf(1 - 1e-4, 24, 0.05)


def test_a_label_that_is_not_among_the_most_frequent_has_a_row_if_its_shares_differ():
    """A country of 5% that had become 7% was in no row, beside three frequent ones that had not changed."""
    rng = np.random.default_rng(8)
    names, shares = [f"country {k}" for k in range(12)], np.r_[0.3, 0.2, 0.15, np.full(9, 0.35 / 9)]
    more = shares + np.r_[-0.01, -0.01, 0, 0, 0.03, np.full(7, -0.01 / 7)]
    before, after = ({"country": rng.choice(names, 8000, p=p / p.sum())} for p in (shares, more))
    found = differences(before, after)
    assert found[0].label == "country 4"
    assert found[0].clear
    assert len(found) == found.comparisons == 12
