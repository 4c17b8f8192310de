"""Five and more components, integrated by weighted draws, beside long Markov chains on exact marginal likelihoods."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, sampled
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.mixtures import quantiles
from meanmap.ep.linear.problem import Height
from meanmap.ep.linear.surface import SplitNormal

TAILS = np.array([0.025, 0.975])


def chains(log_density, start, steps, rng):
    """Draws of an ensemble of walkers (Goodman & Weare 2010), without the first quarter."""
    x, half, size = start.copy(), len(start) // 2, start.shape[1]
    heights, kept = log_density(x), []
    for step in range(steps):
        for own, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            z = (1 + rng.random(half)) ** 2 / 2
            partner = x[other][rng.integers(0, half, half)]
            moved = partner + z[:, None] * (x[own] - partner)
            new = log_density(moved)
            taken = np.log(rng.random(half)) < (size - 1) * np.log(z) + new - heights[own]
            x[own], heights[own] = np.where(taken[:, None], moved, x[own]), np.where(taken, new, heights[own])
        if step >= steps // 4 and step % 10 == 0:
            kept.append(x.copy())
    return np.concatenate(kept)


def half_student(logs):
    return (-2 * np.log1p((np.exp(logs) / 2.5) ** 2 / 3) + logs).sum(-1)


# Groups differ in two labels, or in all.
TWO, ALL = [[1.0, 0, 0.5], [0, 0, 0], [0, 0, 0.5]], [[1.2, 0.5, 0.3], [0, 1.2, 0.4], [0, 0, 1.2]]


def labels_table(effects=TWO, groups=12, each=4):
    """Labels of three kinds in every group."""
    rng = np.random.default_rng(3)
    g, k = (part.ravel() for part in np.meshgrid(np.arange(groups), np.repeat(np.arange(3), each), indexing="ij"))
    y = rng.normal(size=(groups, 3)) @ np.array(effects)
    return {"y": y[g, k] + rng.normal(size=len(g)) + 0.5 * k, "g": g, "k": np.array(list("abc"))[k]}


def by_chains_labels(table, groups=12, each=4):
    """Draws of sds, correlations and sigma of `y ~ k + (0 + k | g)`: cell means are Normal, their means too."""
    rng, unit = np.random.default_rng(0), table["y"].std()
    cells = ((table["y"] - table["y"].mean()) / unit).reshape(groups, 3, each)
    means, free = cells.mean(2), groups * 3 * (each - 1)
    within, middle = ((cells - means[:, :, None]) ** 2).sum(), means.mean(0)
    scatter = (means - middle).T @ (means - middle)
    columns = np.stack([np.ones(3), *((np.eye(3)[j] - 1 / 3) / np.sqrt(2 / 9) for j in (1, 2))], axis=1)
    prior = 2.5**2 * columns @ columns.T

    def log_density(phi):
        logs, z, noise = phi[:, :3], phi[:, 3:6], np.exp(2 * phi[:, 6])
        r = np.tanh(z)
        correlation = np.tile(np.eye(3), (len(phi), 1, 1))
        for at, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
            correlation[:, i, j] = correlation[:, j, i] = r[:, at]
        good = np.linalg.det(correlation) > 1e-12
        sds = np.exp(logs)
        law = sds[:, :, None] * np.where(good[:, None, None], correlation, np.eye(3)) * sds[:, None, :]
        law = law + (noise / each)[:, None, None] * np.eye(3)
        around = law / groups + prior
        found = -free * phi[:, 6] - within / noise / 2 - (groups - 1) / 2 * np.linalg.slogdet(law)[1]
        found -= (np.linalg.inv(law) * scatter).sum((1, 2)) / 2 + np.linalg.slogdet(around)[1] / 2
        found -= np.einsum("a,nab,b->n", middle, np.linalg.inv(around), middle) / 2
        # Columns of labels are scaled by their root mean squares; correlations are uniform.
        found += half_student(logs - np.log(3) / 2) + half_student(phi[:, 6:]) + np.log(1 - r**2).sum(1)
        return np.where(good & (np.abs(phi) < 30).all(1), found, -np.inf)

    drawn = chains(log_density, 0.1 * rng.normal(size=(400, 7)) - 0.3, 4000, rng)
    return np.concatenate([unit * np.exp(drawn[:, :3]), np.tanh(drawn[:, 3:6]), unit * np.exp(drawn[:, 6:])], axis=1)


NAMES = [*(f"sd(k[{one}] | g)" for one in "abc"), *(f"cor(k[{a}], k[{b}] | g)" for a, b in ("ab", "ac", "bc")), "sigma"]


@pytest.mark.parametrize("effects", [TWO, ALL])
def test_sds_and_correlations_of_labels_by_group(effects):
    """Upper ends were .6 to .9 standard deviations too low; where groups differ in all labels, without a word."""
    table = labels_table(effects)
    found = fit("y ~ k + (0 + k | g)", table)
    assert found.report.status == "converged"
    exact, shown = by_chains_labels(table), found.to_frame().loc[NAMES].to_numpy()
    sds, ends = exact.std(0), np.quantile(exact, TAILS, axis=0).T
    np.testing.assert_allclose((shown[:, 0] - exact.mean(0)) / sds, 0, atol=0.1)
    np.testing.assert_allclose(shown[:, 1] / sds, 1, atol=0.1)
    np.testing.assert_allclose((shown[:, 2:] - ends) / sds[:, None], 0, atol=0.15)
    # Joint draws were off by up to .3 where the ends of the table were not.
    drawn = found.draws(20_000, rng=0)[NAMES].quantile(TAILS).to_numpy().T
    np.testing.assert_allclose((drawn - shown[:, 2:]) / sds[:, None], 0, atol=0.12)


SIZES = (5, 3, 2, 2)


def nested_table(each):
    """Four nested factors of which two do not differ, and `each` rows in the smallest groups."""
    rng = np.random.default_rng(8)
    a, b, c, d, _ = (part.ravel() for part in np.meshgrid(*map(np.arange, (*SIZES, each)), indexing="ij"))
    sizes = np.cumprod(SIZES)
    codes = [np.arange(len(a)) // (len(a) // size) for size in sizes]
    effects = (1.0, 0.0, 0.7, 0.05)
    y = sum(sd * rng.normal(size=size)[code] for sd, size, code in zip(effects, sizes, codes, strict=True))
    return {"y": y + rng.normal(size=len(a)), "a": a, "b": b, "c": c, "d": d}


def by_chains_nested(table):
    """Draws of the five sds: sums of squares of a balanced layout are independent."""
    rng, unit, sizes = np.random.default_rng(0), table["y"].std(), (*SIZES, len(table["y"]) // np.prod(SIZES))
    cells = ((table["y"] - table["y"].mean()) / unit).reshape(sizes)
    free, squares, rows = [], [], np.cumprod(sizes[::-1])[::-1]
    outer, before = cells.mean(), 1
    for level in range(1, 6):
        inner, count = cells.mean(tuple(range(level, 5)), keepdims=True), np.prod(sizes[:level])
        squares.append(cells.size / count * ((inner - outer) ** 2).sum())
        free.append(count - before)
        outer, before = inner, count
    multiples = np.array([*rows[1:], 1.0])
    free, squares = np.array(free, float), np.array(squares)

    def log_density(phi):
        # The variance of the sum of squares of a level: its own effects and those within, times the rows they meet.
        parts = np.exp(2 * phi) * multiples
        strata = np.cumsum(parts[:, ::-1], axis=1)[:, ::-1]
        found = -(free * np.log(strata) + squares / strata).sum(1) / 2
        # The mean of all rows, which is 0, around an intercept with standard deviation 2.5.
        found -= np.log(strata[:, 0] / cells.size + 2.5**2) / 2
        return np.where((np.abs(phi) < 30).all(1), found + half_student(phi), -np.inf)

    return unit * np.exp(chains(log_density, 0.1 * rng.normal(size=(400, 5)) - 0.7, 4000, rng))


@pytest.mark.parametrize("each", [2, 500])
def test_five_nested_components_of_which_some_may_be_0(each):
    """With more than 20,000 rows ends were off by up to a standard deviation, with a note: a design replaced draws."""
    table = nested_table(each)
    found = fit("y ~ 1 + (1 | a/b/c/d)", table)
    assert found.report.status == "converged"
    exact = by_chains_nested(table)
    names = [*(f"sd(Intercept | {g})" for g in ("a", "a:b", "a:b:c", "a:b:c:d")), "sigma"]
    shown, sds = found.to_frame().loc[names].to_numpy(), exact.std(0)
    np.testing.assert_allclose((shown[:, 0] - exact.mean(0)) / sds, 0, atol=0.1)
    np.testing.assert_allclose((shown[:, 2:] - np.quantile(exact, TAILS, axis=0).T) / sds[:, None], 0, atol=0.2)


class _Skewed:
    """A problem whose posterior is of independent logs of Gamma variables, turned."""

    worth = np.inf

    family, stack, size = SimpleNamespace(exact=True), True, 100
    components = SimpleNamespace(logs_of_sds=np.zeros(0, int))

    def __init__(self, size, shape):
        self.shape, self.turn = shape, np.linalg.qr(np.random.default_rng(size).normal(size=(size, size)))[0]

    def heights(self, psis, starts, sloped=True):
        t = psis @ self.turn.T / np.sqrt(self.shape)
        return [Height(float(value), np.zeros(len(self.turn)), None) for value in self.shape * (t - np.exp(t)).sum(1)]


@pytest.mark.parametrize(("size", "shape"), [(5, 1.0), (7, 2.0), (9, 50.0)])
def test_draws_have_the_quantiles_and_the_mass_of_skewed_distributions(size, shape):
    from scipy.special import gammaln
    from scipy.stats import gamma

    problem = _Skewed(size, shape)
    first = SplitNormal(2.0, np.full((size, 2), 2.0), np.zeros(size), np.eye(size))
    middle = (np.zeros(size), 0.0, problem.heights(np.zeros((1, size)), [None])[0])
    laid = sampled.sampled(problem, Coordinates((), ()), first, {(0,): middle})
    assert problem.worth > 300
    points = np.array([psi for psi, _, _ in laid.values()])
    logs = np.array([height.value + weight for _, weight, height in laid.values()])
    exact = size * (gammaln(shape) + np.log(shape) / 2 - shape * np.log(shape))
    np.testing.assert_allclose(np.log(np.exp(logs - exact).sum()), 0, atol=0.1)
    shares = np.exp(logs - logs.max())
    for values in (points @ problem.turn.T).T:
        ends = np.sqrt(shape) * np.log(gamma(shape).ppf(TAILS) / shape)
        sd = values.std()
        np.testing.assert_allclose(quantiles(values, shares / shares.sum(), TAILS) / sd, ends / sd, atol=0.25)


@pytest.mark.parametrize("kind", ["sides", "kernels"])
def test_a_proposal_is_a_density_of_its_points(kind):
    rng, axes = np.random.default_rng(0), np.array([[1.0, 0.5], [0.0, 2.0]])
    if kind == "sides":
        # The drops say that standard deviations below and above are 1, 3 and .5, .5.
        drops = 2 / np.array([[1.0, 3.0], [0.5, 0.5]]) ** 2
        law = sampled.Sides(SplitNormal(2.0, drops, np.array([1.0, -2.0]), axes))
    else:
        points = rng.normal(size=(300, 2)) @ axes.T
        bent = np.array([0.0, 0.2]) * points[:, :1] ** 2
        law = sampled.Kernels.of(np.array([0]), points + bent, rng.dirichlet(np.ones(300)))
    x, y = np.meshgrid(np.linspace(-60, 60, 1201), np.linspace(-60, 60, 1201), indexing="ij")
    grid = np.concatenate([np.exp(law.log_density(row)) for row in np.stack([x, y], axis=2)]).reshape(x.shape)
    assert grid.sum() * 0.01 == pytest.approx(1, abs=2e-3)
    drawn = law.places(rng.random((40_000, 4)))
    for a, b in ((3.05, -1.05), (0.05, 0.05)):
        share = ((drawn[:, 0] < a) & (drawn[:, 1] < b)).mean()
        assert share == pytest.approx((grid * ((x < a) & (y < b))).sum() * 0.01, abs=0.012)


def test_points_are_chosen_as_often_as_their_shares_say():
    chosen = sampled.evenly_chosen(np.array([0.5, 0.0, 0.3, 0.2]), 10)
    assert np.bincount(chosen, minlength=4).tolist() == [5, 0, 3, 2]


def test_tamed_coordinates_go_out_and_back():
    law = sampled.Tamed(np.array([0, 2]), np.array([0.5, 2.0]))
    phis = np.stack([np.linspace(-40, 6, 400), np.linspace(-2, 2, 400), np.linspace(5, -60, 400)], axis=1)
    y, _ = law.out(phis)
    np.testing.assert_allclose(law.back(y), phis, atol=1e-6)
    np.testing.assert_array_equal(y[:, 1], phis[:, 1])
    for k in (0, 2):
        step = 1e-5 * np.eye(3)[k]
        alone = sampled.Tamed(np.array([k]), law.scales[[k // 2]])
        moved = (alone.out(phis + step)[0] - alone.out(phis - step)[0])[:, k] / 2e-5
        np.testing.assert_allclose(np.exp(alone.out(phis)[1]), moved, rtol=1e-3)
    # Half Normals with these scales are Normals.
    drawn = np.abs(np.random.default_rng(0).normal(size=(20_000, 3))) * np.array([0.5, 1.0, 2.0])
    found = law.out(np.log(drawn))[0][:, [0, 2]]
    np.testing.assert_allclose(found.mean(0), 0, atol=0.03)
    np.testing.assert_allclose(found.std(0), 1, atol=0.03)
