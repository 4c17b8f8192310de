"""Regressions with a switch for each row, which says that it is an outlier."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.families import Bernoulli

ROWS, SHARE, NARROW, WIDE = 40, 0.1, 0.25, 25.0


def log_row(z, outlier, y):
    variance = jnp.where(outlier > 0.5, WIDE, NARROW)
    return -0.5 * ((y - z) ** 2 / variance + jnp.log(2 * jnp.pi * variance))


def exactly(x, y):
    """Means and standard deviations of intercept and slope, and the log evidence, on a grid."""
    a, b = np.linspace(-4, 4, 801), np.linspace(-4, 4, 801)
    logs = -0.5 * (a[:, None] ** 2 + b**2) / 4 - np.log(2 * np.pi * 4)
    for own, seen in zip(x, y, strict=True):
        off = (seen - a[:, None] - b * own) ** 2
        each = [
            np.log(share) - 0.5 * off / variance - 0.5 * np.log(2 * np.pi * variance)
            for share, variance in ((SHARE, WIDE), (1 - SHARE, NARROW))
        ]
        logs += np.logaddexp(*each)
    mass = np.exp(logs - logs.max())
    evidence = np.log(mass.sum() * 0.01**2) + logs.max()
    mass /= mass.sum()
    means = np.array([mass.sum(1) @ a, mass.sum(0) @ b])
    squares = np.array([mass.sum(1) @ a**2, mass.sum(0) @ b**2])
    return means, np.sqrt(squares - means**2), evidence


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_are_nearly_certain_leave_no_messages_out(seed):
    r = np.random.default_rng(500 + seed)
    x, outlier = r.normal(size=ROWS), r.random(ROWS) < 0.15
    y = 1 - x + np.where(outlier, 8.0, 0.5) * r.normal(size=ROWS)
    y[0] = 60.0  # whose share of no outlier rounds to 0
    w = ep.Variable("w", ep.MultivariateNormal(np.zeros(2), 4 * np.eye(2)))
    z, switch = ep.Variable("z", ep.Normal, plate=ROWS), ep.Variable("switch", Bernoulli(SHARE), plate=ROWS)
    design = np.column_stack([np.ones(ROWS), x])
    post = ep.infer(ep.FactorGraph(ep.Dot(design, w, z), ep.Density(log_row, z, switch, y)))
    mean, sd, evidence = exactly(x, y)
    assert post.report.status == "converged"
    np.testing.assert_allclose(post["w"].mean(), mean, atol=0.02 * sd.max())
    np.testing.assert_allclose(np.sqrt(np.diag(post["w"].cov())), sd, rtol=0.02)
    assert abs(post.log_evidence - evidence) < 0.02
    assert post["switch"].logit[0] > 1000
