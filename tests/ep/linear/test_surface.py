"""Intervals of components, from the log posterior between the nodes of a lattice, wherever that lattice ends."""

import numpy as np
import pytest
import scipy.stats

pytest.importorskip("formulae")

from meanmap.ep.linear import fit, lattice, sampled
from meanmap.ep.linear.mixtures import quantiles
from meanmap.ep.linear.problem import Height
from meanmap.ep.linear.surface import SplitNormal, Surface

TAILS = np.array([0.025, 0.25, 0.975])


class _Skewed:
    """A problem whose posterior is of independent logs of Gamma variables, turned."""

    most_nodes, together = 2000, 16

    def __init__(self, size, shape):
        self.shape, self.turn = shape, np.linalg.qr(np.random.default_rng(size).normal(size=(size, size)))[0]

    def heights_at(self, chart, psis, starts):
        # About the mode, in standard deviations by the curvature there.
        t = psis @ self.turn.T / np.sqrt(self.shape)
        values, slopes = self.shape * (t - np.exp(t)).sum(1), np.sqrt(self.shape) * (1 - np.exp(t)) @ self.turn
        return [Height(float(value), slope, None) for value, slope in zip(values, slopes, strict=True)]

    def ends(self):
        """Of each t, in standard deviations."""
        return np.sqrt(self.shape) * np.log(scipy.stats.gamma(self.shape).ppf(TAILS) / self.shape)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize(("shape", "depth"), [(3.0, 7.0), (3.0, 10.0), (1000.0, 7.0), (1000.0, 5.5)])
def test_quantiles_of_skewed_laws_do_not_depend_on_where_the_lattice_ends(size, shape, depth, monkeypatch):
    monkeypatch.setattr(lattice, "_DEPTH", depth)
    problem = _Skewed(size, shape)
    half = lattice.APART[size] / 2
    found = lattice.lattice(problem, None, np.zeros(size), np.eye(size), None)
    heights = np.array([place[2].value for place in found.values()])
    slopes = half * np.stack([place[2].gradient for place in found.values()])
    steps = np.array(lattice.steps_of(size))
    surface = Surface(np.array(list(found)), steps, heights, slopes, half**2, np.zeros(size), half * np.eye(size))
    points, shares = surface.points()
    for values in (points @ problem.turn.T).T:
        np.testing.assert_allclose(quantiles(values, shares, TAILS), problem.ends(), atol=0.025)


def test_a_lattice_of_one_node_has_the_curvature_at_the_mode():
    alone = Surface(np.zeros((1, 2), int), np.array(lattice.steps_of(2)), np.zeros(1), np.zeros((1, 2)), 1.0,
                    np.zeros(2), np.eye(2))  # fmt: skip
    np.testing.assert_allclose(alone._curvatures(), [np.eye(2)], atol=1e-12)


def by_integration(groups, each, y, index):
    """Ends of both standard deviations of a balanced one-way layout, in units of the data, on a grid of logs."""
    unit, n = y.std(), groups * each
    z = (y - y.mean()) / unit
    means = z.reshape(groups, each).mean(1)
    within = ((z.reshape(groups, each) - means[:, None]) ** 2).sum()
    a, b = np.meshgrid(np.linspace(-12, 4, 900), np.linspace(-2, 2, 500), indexing="ij")
    v, s = np.exp(2 * a), np.exp(2 * b)
    of_mean = v + s / each
    # Means of groups are N(intercept, of_mean); the intercept N(0, 2.5²) a priori.
    ones, dot, square = groups / of_mean, means.sum() / of_mean, (means**2).sum() / of_mean
    height = -(n - groups) / 2 * np.log(s) - within / (2 * s) - groups / 2 * np.log(of_mean) - square / 2
    height += dot**2 / (ones + 2.5**-2) / 2 - np.log(ones * 2.5**2 + 1) / 2
    for log in (a, b):
        height += np.log(scipy.stats.t(3, scale=2.5).pdf(np.exp(log))) + log
    p = np.exp(height - height.max())
    found = []
    for axis, log in ((1, a[:, 0]), (0, b[0])):
        mass = p.sum(axis) / p.sum()
        values, reached = np.exp(log) * unit, np.cumsum(mass) - mass / 2
        mean = mass @ values
        found.append([mean, np.sqrt(mass @ (values - mean) ** 2), *np.interp([0.025, 0.975], reached, values)])
    return np.array(found)


@pytest.mark.parametrize("spread", [0.2, 2.0])
@pytest.mark.parametrize("depth", [7.0, 11.0])
def test_intervals_of_components_beside_numerical_integration(spread, depth, monkeypatch):
    """Ends differed by up to .13 standard deviations between lattices."""
    monkeypatch.setattr(lattice, "_DEPTH", depth)
    rng = np.random.default_rng(11)
    index = np.repeat(np.arange(6), 5)
    y = 3 * (rng.normal(size=6) * spread + rng.normal(size=(5, 6))).T.ravel()
    exact = by_integration(6, 5, y, index)
    found = fit("y ~ 1 + (1 | g)", {"y": y, "g": index})
    shown = found.to_frame().loc[["sd(Intercept | g)", "sigma"]].to_numpy()
    np.testing.assert_allclose((shown[:, 2:] - exact[:, 2:]) / exact[:, 1:2], 0, atol=0.02)
    np.testing.assert_allclose((shown[:, 0] - exact[:, 0]) / exact[:, 1], 0, atol=0.02)
    drawn = found.draws(400_000, rng=0)[["sd(Intercept | g)", "sigma"]].quantile([0.025, 0.975]).to_numpy().T
    np.testing.assert_allclose((drawn - exact[:, 2:]) / exact[:, 1:2], 0, atol=0.06)


def test_more_than_four_components_are_noted_where_a_design_misses_them(monkeypatch):
    """Standard deviations near 0 were off by one of theirs, and intervals of sigma ended at -1.3 and +3.2 of its."""
    monkeypatch.setattr(sampled, "_SIZE", (100, 100, 100))
    rng = np.random.default_rng(3)
    g, k = rng.integers(0, 12, 240), rng.integers(0, 3, 240)
    table = {"y": rng.normal(size=12)[g] + rng.normal(size=240), "g": g, "k": np.array(list("abc"))[k]}
    found = fit("y ~ k + (k | g)", table)
    assert found.report.status == "converged, but standard deviations may be wrong"
    (note,) = found.report.notes
    assert note.startswith("the data do not rule out that sd(k[b] | g), sd(k[c] | g) is 0, and with more than four")
    clear = table["y"] + 2 * rng.normal(size=(12, 3))[g, k]
    assert fit("y ~ k + (k | g)", {**table, "y": clear}).report.status == "converged"
    sigma = found.to_frame().loc["sigma"]
    assert (sigma.high - sigma.estimate) / (sigma.estimate - sigma.low) == pytest.approx(1, abs=0.3)
    assert (found.draws(20_000, rng=0)["sigma"].std() / sigma["sd"]) == pytest.approx(1, abs=0.05)


def test_split_normals_have_their_sides():
    split = SplitNormal(2.0, np.array([[2.0, 0.5], [2.0, 2.0]]), np.array([1.0, 0.0]), np.eye(2))
    np.testing.assert_allclose(split.sides, [[1, 2], [1, 1]])
    points, shares = split.points()
    # A third of the mass is below the middle; the ends are those of the Normals of both sides.
    law = scipy.stats.norm
    ends = [1 + law.ppf(0.025 * 1.5), 1 + 2 * law.ppf(1 - 0.025 * 3 / 4)]
    np.testing.assert_allclose(quantiles(points[:, 0], shares, np.array([0.025, 0.975])), ends, atol=0.01)
    np.testing.assert_allclose(quantiles(points[:, 1], shares, TAILS), law.ppf(TAILS), atol=0.01)
