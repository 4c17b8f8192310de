"""Effects within strata, of clusters and of weighted rows: against closed forms, and how often intervals cover."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, ParameterError
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.effects.zero import chance_by_features, chance_of_difference
from meanmap.stats.samples import cells as cells_of_samples
from meanmap.stats.samples.cells import Cells

KERNEL = mm.kernels.RBF(1.0)
FAILURE_RATE = 1e-5


def distance(shift, deviation=1.0):
    """Between normal laws of this deviation, a shift apart, under RBF(1)."""
    whole = 1 + 2 * deviation**2
    return np.sqrt(2 / np.sqrt(whole) * -np.expm1(-(shift**2) / (2 * whole)))


def test_designs_that_say_nothing_change_nothing():
    x, y = np.random.default_rng(0).normal(size=(2, 40, 2))
    plain = mm.two_sample_effect(x, y, KERNEL, rng=0)
    for said in ({"weights": np.full(80, 3.0)}, {"clusters": np.arange(80)}, {"within": np.zeros(80, int)}):
        found = mm.two_sample_effect(x, y, KERNEL, rng=0, **said)
        for name in ("distance", "share", "shift"):
            ours, theirs = getattr(found, name), getattr(plain, name)
            assert (ours.estimate, ours.low, ours.high) == pytest.approx((theirs.estimate, theirs.low, theirs.high))
        assert mm.closeness_test(x, y, 0.9, KERNEL, rng=0, **said).pvalue == pytest.approx(
            mm.closeness_test(x, y, 0.9, KERNEL, rng=0).pvalue
        )
    one, other = (mm.k_sample_effect([x, y], KERNEL, rng=0, **said) for said in ({}, {"weights": np.ones(80)}))
    assert other.distance.high == pytest.approx(one.distance.high)


def test_means_within_strata_written_out():
    """Linear kernel: the weighted mean difference of strata, and its variance by rows."""
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=(24, 1)), np.repeat([0, 1], 12)
    strata, weights = np.tile([0, 0, 0, 0, 1, 1], 4), rng.random(24) + 0.5
    cells = Cells.of([12, 12], Exchange(strata, np.arange(24), weights))
    law, total, parts, variance = cells.law_of_gram(values @ values.T), 0.0, [], 0.0
    for s in (0, 1):
        held = [weights[(groups == g) & (strata == s)] for g in (0, 1)]
        rows = [values[(groups == g) & (strata == s), 0] for g in (0, 1)]
        means = [np.average(row, weights=held[g]) for g, row in enumerate(rows)]
        size = held[0].sum() * held[1].sum() / (held[0].sum() + held[1].sum())
        shares = [each / each.sum() for each in held]
        own = [
            np.sum((m * (row - mean)) ** 2 / (1 - 2 * m + np.sum(m**2)))
            for m, row, mean in zip(shares, rows, means, strict=True)
        ]
        parts.append((size, means[0] - means[1], sum(own)))
        total += size
    difference = sum(size * each for size, each, _ in parts) / total
    variance = sum(size**2 * each for size, _, each in parts) / total**2
    assert law.squared == pytest.approx(difference**2)
    assert law.trace == pytest.approx(variance)
    again = cells.law_of_features(values.__getitem__)[0]
    assert (again.squared, again.trace) == pytest.approx((law.squared, law.trace))
    assert max(cells.effective([12, 12])) < 12
    assert Cells.of([12, 12], Exchange(0 * strata, np.arange(24), np.ones(24))).effective([12, 12]) == [12, 12]


@pytest.mark.parametrize("heavy", [1.0, 4.0, 40.0])
def test_the_variance_of_uneven_weights_is_that_of_the_mean(heavy):
    """Over draws of normal rows, with one row or cluster that is `heavy` times as heavy as the others."""
    rng, n, draws = np.random.default_rng(9), 12, 4000
    weights = np.r_[heavy, np.ones(n - 1), np.ones(n)]
    values = rng.normal(size=(2 * n, draws))
    for repeats in (np.ones(2 * n, int), np.r_[5, np.ones(2 * n - 1, int)]):  # rows of one value are one cluster
        units = np.repeat(np.arange(2 * n), repeats)
        sizes = [int(repeats[:n].sum()), int(repeats[n:].sum())]
        cells = Cells.of(sizes, Exchange(0 * units, units, (weights / repeats)[units]))
        traces = cells.law_of_features(values[units].__getitem__)[0].trace / draws
        shares = weights[:n] / weights[:n].sum()
        # Of a mean of variances, each of a few degrees of freedom: one at least.
        truth = np.sum(shares**2) + 1 / n
        assert traces == pytest.approx(truth, abs=5 * np.sqrt(2 / draws) * truth)


def test_few_that_weigh_nearly_all_are_warned_of_or_refused():
    """One row of 100 with two thirds of the weight: shifts of .42 at least were told of where there is none."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 100))
    weights = np.ones(200)
    weights[0] = 200
    for ask in (mm.two_sample_effect, mm.closeness_test):
        with pytest.raises(InputError, match=r"x has an effective sample size of 2\.2 rows or clusters"):
            ask(x, y, weights=weights, rng=0)
    with pytest.raises(InputError, match=r"effective sample size of 2\.2 rows"):
        mm.k_sample_effect([y, x], weights=np.roll(weights, 100), rng=0)
    weights[0] = 20
    doubt = "the normal approximation of means is doubtful for an effective sample size of 28.4 independent rows"
    assert doubt in " ".join(mm.two_sample_effect(x, y, KERNEL, weights=weights, rng=0).warnings)
    sizes = np.r_[np.ones(50, int), np.full(10, 40)]
    units = np.repeat(np.arange(120), np.tile(sizes, 2))
    rows = rng.normal(size=120)[units]
    told = mm.two_sample_effect(*np.split(rows, 2), KERNEL, clusters=units, rng=0).warnings
    assert "an effective sample size of 12.6 independent rows, clusters" in " ".join(told)


def test_pairs_vary_as_their_differences_and_clusters_as_their_sums():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 15))
    values, pairs = np.r_[x, y][:, None], np.tile(np.arange(15), 2)
    law = Cells.of([15, 15], Exchange(pairs, np.arange(30), np.ones(30))).law_of_gram(values @ values.T)
    assert law.squared == pytest.approx(np.mean(x - y) ** 2)
    assert law.trace == pytest.approx(np.var(x - y, ddof=1) / 15)
    units = np.arange(30) // 3
    law = Cells.of([15, 15], Exchange(np.zeros(30, int), units, np.ones(30))).law_of_gram(values @ values.T)
    means = x.reshape(5, 3).mean(axis=1), y.reshape(5, 3).mean(axis=1)
    assert law.trace == pytest.approx(sum(np.var(each, ddof=1) / 5 for each in means))


def test_several_samples_within_strata_are_compared_as_in_the_test():
    """Σ_g ‖S_g‖² / (N N_g) with S_g = Σ_s N_gs (μ_gs − μ_s), and the same parts in features."""
    rng = np.random.default_rng(3)
    values, groups, strata = rng.normal(size=(30, 2)), np.repeat([0, 1, 2], 10), rng.integers(0, 2, 30)
    cells, expected = Cells.of([10, 10, 10], Exchange(strata, np.arange(30), np.ones(30))), 0.0
    for g in range(3):
        total = np.zeros(2)
        for s in (0, 1):
            here = strata == s
            total += np.sum(here & (groups == g)) * (values[here & (groups == g)].mean(0) - values[here].mean(0))
        expected += total @ total / (30 * 10)
    law, again = cells.law_of_gram(values @ values.T), cells.law_of_features(values.__getitem__)[0]
    assert law.squared == pytest.approx(expected)
    assert (again.squared, again.trace) == pytest.approx((law.squared, law.trace))
    assert again.spectrum.max() == pytest.approx(law.spectrum.max())


def clustered(rng, number, shift=0.0):
    """Four rows of each of so many people, two thirds of whose variance they share; standard normal in all."""
    rows = np.sqrt(2 / 3) * np.repeat(rng.normal(size=number), 4) + np.sqrt(1 / 3) * rng.normal(size=4 * number)
    return rows + shift


def draws(design, rng, number, shift):
    """Two samples, what is said of them, and the true distance."""
    if design == "clusters":
        x, y = clustered(rng, number), clustered(rng, number, shift)
        return x, y, {"clusters": np.arange(8 * number) // 4}, distance(shift)
    if design == "pairs":  # before and after, of people who differ
        person = rng.normal(size=number)
        x, y = person + 0.3 * rng.normal(size=number), person + shift + 0.3 * rng.normal(size=number)
        return x, y, {"within": np.tile(np.arange(number), 2)}, distance(shift, np.sqrt(1.09))
    if design == "strata":  # two sites that differ, and another mix of them
        sites = [rng.random(number) < share for share in (0.3, 0.6)]
        x, y = (3.0 * site + rng.normal(size=number) + by for site, by in zip(sites, (0.0, shift), strict=True))
        masses = np.array([[np.sum(site == s) for s in (False, True)] for site in sites], float)
        part = masses[0] * masses[1] / masses.sum(axis=0)
        return x, y, {"within": np.concatenate(sites)}, between_sites(part / part.sum(), shift)
    # Rows of a half normal law of which a share was seen, each counting for those that were not.
    x, y = rng.normal(size=4 * number), rng.normal(shift, 1.0, size=4 * number)
    seen = [rng.random(4 * number) < np.where(each > 0.5, 1.0, 0.4) for each in (x, y)]
    weights = np.concatenate([np.where(each > 0.5, 1.0, 2.5)[kept] for each, kept in zip((x, y), seen, strict=True)])
    return x[seen[0]], y[seen[1]], {"weights": weights}, distance(shift)


def between_sites(part, shift):
    """Of mixtures of N(0, 1) and N(3, 1), the second a shift away."""
    ends = np.array([0.0, 3.0, shift, 3.0 + shift])
    weight = np.r_[part, -part]
    gram = np.exp(-((ends[:, None] - ends) ** 2) / 6) / np.sqrt(3)
    return np.sqrt(max(weight @ gram @ weight, 0.0))


def covered(design, shift, number, trials, seed):
    found = 0
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        x, y, said, truth = draws(design, rng, number, shift)
        effect = mm.two_sample_effect(x, y, KERNEL, confidence=0.9, rng=trial, **said).distance
        found += effect.low <= truth + 1e-12 and truth <= effect.high
    return found


DESIGNS = ("clusters", "pairs", "strata", "weights")


@pytest.mark.parametrize("design", DESIGNS)
def test_coverage_by_day(design):
    assert covered(design, 0.5, 30, 12, seed=4) >= scipy.stats.binom.ppf(FAILURE_RATE, 12, 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("number", [60, 120])
@pytest.mark.parametrize("design", DESIGNS)
def test_coverage_at_length(design, number, shift):
    trials = 500
    found = covered(design, shift, number, trials, seed=5)
    print(f"coverage of {design}, {number}, {shift}: {found} of {trials}")
    assert found >= scipy.stats.binom.ppf(0.01, trials, 0.9)


def test_clusters_widen_intervals_and_pairs_narrow_them():
    rng = np.random.default_rng(6)
    x, y = clustered(rng, 60), clustered(rng, 60, 0.8)
    width = lambda **said: np.ptp([(e := mm.two_sample_effect(x, y, KERNEL, rng=0, **said).distance).low, e.high])  # noqa: E731
    assert width(clusters=4) > 1.2 * width()
    pairs = draws("pairs", rng, 100, 0.4)
    apart, together = (mm.two_sample_effect(*pairs[:2], KERNEL, rng=0, **said).shift for said in ({}, pairs[2]))
    assert together.high - together.low < 0.8 * (apart.high - apart.low)


def test_columns_of_a_table_say_it():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "g": np.repeat(["u", "v"], 60),
            "site": np.tile([1, 2, 3], 40),
            "person": np.arange(120) // 2,
            "w": rng.random(120) + 0.1,
            "a": rng.normal(size=120),
        }
    )
    several = mm.k_sample_effect(frame, by="g", within="site", weights="w", rng=0)
    two = mm.two_sample_effect(frame, by="g", within="site", weights="w", rng=0)
    assert several.sizes == two.sizes == (60, 60)
    by_person = mm.closeness_test(frame, None, 0.5, by="g", clusters="person", weights="w", rng=0)
    assert "independent rows, clusters or strata of equal weight" in " ".join(by_person.warnings)
    many = mm.two_sample_effect(*(rng.normal(size=(700, 1)) for _ in range(2)), weights=np.ones(1400), rng=0)
    assert many.distance.low == 0.0


def test_one_stratum_with_one_row_of_a_sample_is_left_out():
    rng = np.random.default_rng(18)
    x, y = rng.normal(size=20), rng.normal(1.0, 1.0, 21)
    within = np.r_[np.zeros(10), np.ones(9), 2, np.zeros(10), np.ones(8), np.full(3, 2)]
    assert 0 < mm.two_sample_test(x, y, within=within, n_permutations=99, rng=0).pvalue <= 1
    found = mm.two_sample_effect(x, y, KERNEL, within=within, rng=0)
    said = "4 of 41 rows are left out: their stratum has only one row, or one cluster, of a sample."
    assert said in found.warnings, found.warnings
    kept, values = within < 2, np.r_[x, y][:, None]
    laws = []
    for rows, sizes in ((np.ones(41, bool), (20, 21)), (kept, (19, 18))):
        design = Exchange(within[rows].astype(int), np.arange(rows.sum()), np.ones(rows.sum()))
        laws.append(Cells.of(sizes, design).law_of_gram(values[rows] @ values[rows].T))
    assert (laws[0].squared, laws[0].trace) == pytest.approx((laws[1].squared, laws[1].trace))
    assert mm.k_sample_effect([x, y], KERNEL, within=within, rng=0).distance.high < np.inf


def test_what_cannot_be_right_is_refused():
    x, y = np.random.default_rng(8).normal(size=(2, 20))
    with pytest.raises(InputError, match="20 of 20 clusters have rows in more than one sample"):
        mm.two_sample_effect(x, y, clusters=np.tile(np.arange(20), 2))
    with pytest.raises(InputError, match="no stratum has rows of two samples"):
        mm.two_sample_effect(x, y, within=np.arange(40))
    with pytest.raises(InputError, match="a sample has one row, or one cluster, in a stratum"):
        mm.k_sample_effect([x, y], clusters=20)
    with pytest.raises(ParameterError, match="a margin of two samples is for rows without within="):
        mm.closeness_test(x, y, (x, y + 1), within=np.tile(np.arange(10), 4))
    told = mm.two_sample_effect(x, y, within=np.r_[np.tile([0, 1], 10), np.tile([0, 2], 10)], rng=0).warnings
    assert "20 of 40 rows are in strata with only one sample and contribute nothing." in told


def test_features_are_summed_in_parts(monkeypatch):
    """The features of a million rows in clusters took 6.6 GB at once; sums over parts of the rows are the same."""
    rng = np.random.default_rng(3)
    values, strata = rng.normal(size=(60, 4)), np.repeat([0, 1, 2, 3], [24, 24, 6, 6])
    units = np.arange(60) // 2
    design = Exchange(strata, units, rng.uniform(0.5, 2.0, 30)[units])
    order = np.argsort(units % 2, kind="stable")
    values, design = values[order], design.among(order)
    cells = Cells.of([30, 30], design)
    whole = cells.law_of_gram(values @ values.T)
    monkeypatch.setattr(cells_of_samples, "ROWS", 7)
    law, sums = cells.law_of_features(values.__getitem__)
    assert sums == pytest.approx(cells.weights.T @ values)
    assert law.squared == pytest.approx(whole.squared)
    assert law.spectrum[-1] == pytest.approx(whole.spectrum[-1])
    assert law.trace == pytest.approx(whole.trace)
    gram = values @ values.T
    expected = chance_of_difference(lambda weights: float(np.sum(weights * (gram @ weights))), [30, 30], design, 0.9)
    assert chance_by_features(values.__getitem__, [30, 30], design, 0.9) == expected
