"""Regressions of likelihoods against refits without each point."""

import numpy as np
import pytest

from meanmap.bp.edges.coordinates import transformed
from meanmap.bp.edges.observations import sample_of
from meanmap.bp.edges.regression import Regression
from meanmap.kernels import RBF


def data(m=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=m)
    return x, 2 * x + np.sin(2 * x) + x**2 + 0.2 * rng.normal(size=m)


@pytest.mark.parametrize("lengthscale", [0.5, 20.0])
def test_leave_one_out_residuals_are_those_of_refits(lengthscale):
    """A wide kernel is nearly a line itself; what it shares with the line is not counted twice."""
    x, y = data()
    regression, left = Regression.fit(sample_of(x, RBF(lengthscale), "x"), y[:, None])
    assert regression.features is not None
    phi = transformed(regression.features, x[:, None])
    design = np.stack([np.ones_like(x), x], axis=1)
    both = np.concatenate([design, phi], axis=1)
    # The shift m λ that was chosen, read off the normal equations of w.
    rest = y - regression(x[:, None])[:, 0]
    shift = np.sum(phi.T @ rest * regression.weights[:, 0]) / np.sum(regression.weights**2)
    penalty = np.sqrt(shift) * np.eye(both.shape[1])[2:]
    for i in (0, 1, 17):
        kept = np.arange(len(x)) != i
        solved = np.linalg.lstsq(np.concatenate([both[kept], penalty]), np.r_[y[kept], np.zeros(len(penalty))])[0]
        assert left[i, 0] == pytest.approx(y[i] - both[i] @ solved, rel=1e-3)


def test_the_line_is_not_shrunk():
    x, y = data()
    regression, _ = Regression.fit(sample_of(x, None, "x"), y[:, None])
    rest = y - regression(x[:, None])[:, 0]
    np.testing.assert_allclose([rest.mean(), (rest * x).mean()], 0, atol=1e-10)
