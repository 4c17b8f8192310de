"""Intervals of standard deviations against integrals on a grid, and what takes the place of nodes."""

import numpy as np
import pytest
import scipy.stats

pytest.importorskip("formulae")

from meanmap.ep.linear import fit
from meanmap.ep.linear.mixtures import Normals, around_points


def outside(y, groups, per_group, unit, ends):
    """The exact probability of a standard deviation of groups below and above two ends, for `y ~ 1 + (1 | g)`."""
    logs = np.log(unit) + np.linspace(-7, 2.5, 500)
    noise = np.log(unit) + np.linspace(-2, 1.5, 300)
    a, s = np.meshgrid(logs, noise, indexing="ij")
    table = y.reshape(groups, per_group)
    means = table.mean(1)
    within, between = ((table - means[:, None]) ** 2).sum(), ((means - means.mean()) ** 2).sum()
    total = np.exp(2 * a) + np.exp(2 * s) / per_group
    height = -groups * (per_group - 1) * s - within * np.exp(-2 * s) / 2
    height += -(groups - 1) / 2 * np.log(total) - between / total / 2
    height -= np.log((2.5 * unit) ** 2 + total / groups) / 2
    height += sum(scipy.stats.t(3, scale=2.5 * unit).logpdf(np.exp(log)) + log for log in (a, s))
    share = np.exp(height - height.max()).sum(1)
    below = np.interp(np.log(ends), logs, np.cumsum(share) / share.sum())
    return below[0], 1 - below[1]


@pytest.mark.parametrize(("groups", "per_group", "spread"), [(24, 10, 0.7), (15, 4, 0.0), (8, 6, 0.3), (24, 10, 0.2)])
def test_intervals_of_standard_deviations_near_zero_and_away(groups, per_group, spread):
    """By a Normal law of the log an upper end was twice what it is, and had .000 to .002 above it."""
    for seed in (11, 12, 13):
        rng = np.random.default_rng([seed, groups, per_group])
        y = spread * np.repeat(rng.normal(size=groups), per_group) + rng.normal(size=groups * per_group)
        found = fit("y ~ 1 + (1 | g)", {"y": y, "g": np.repeat(np.arange(groups), per_group)})
        ends = found.to_frame().loc["sd(Intercept | g)", ["low", "high"]].to_numpy(float)
        below, above = outside(y, groups, per_group, y.std(), ends)
        assert 0.017 < below < 0.035
        assert 0.006 < above < 0.035
        drawn = found.draws(20_000, rng=0)["sd(Intercept | g)"]
        np.testing.assert_allclose(np.log(np.quantile(drawn, [0.025, 0.975])), np.log(ends), atol=0.2)


def test_normals_in_place_of_points_keep_means_and_variances():
    rng = np.random.default_rng(0)
    points, shares = np.cumsum(rng.exponential(size=(9, 2)), axis=0), rng.dirichlet(np.ones(9))
    means, sds = around_points(points, shares)
    middle = shares @ points
    np.testing.assert_allclose(shares @ means, middle)
    np.testing.assert_allclose(shares @ (sds**2 + (means - middle) ** 2), shares @ (points - middle) ** 2)
    law = Normals(means.T, sds.T, shares)
    np.testing.assert_allclose(law.moments, [middle, np.sqrt(shares @ (points - middle) ** 2)])
    for p in (0.025, 0.5, 0.9):
        at = law.quantiles(p)
        np.testing.assert_allclose(
            [scipy.stats.norm.cdf(at[j], means[:, j], sds[:, j]) @ shares for j in range(2)], p, atol=1e-9
        )
    one = Normals(np.array([[3.0]]), np.array([[0.0]]), np.ones(1))
    np.testing.assert_allclose(one.interval(0.9), 3.0)
