"""Regressions of likelihoods against refits without each point."""

import numpy as np
import pytest

from meanmap.bp.edges.coordinates import transformed
from meanmap.bp.edges.observations import sample_of
from meanmap.bp.edges.regression import Regression, Regressor
from meanmap.kernels import RBF


def data(m=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=m)
    return x, 2 * x + np.sin(2 * x) + x**2 + 0.2 * rng.normal(size=m)


@pytest.mark.parametrize("lengthscale", [0.5, 20.0])
def test_leave_one_out_residuals_are_those_of_refits(lengthscale):
    """A wide kernel is nearly a line itself; what it shares with the line is not counted twice."""
    x, y = data()
    regressor = Regressor.on(sample_of(x, RBF(lengthscale), "x"))
    regression, left = regressor.fit(y[:, None])
    assert regression.features is not None
    assert regression.weights is not None
    np.testing.assert_allclose(regressor.fitted(regression), regression(x[:, None]), rtol=1e-6, atol=1e-7)
    phi = transformed(regression.features, x[:, None])
    design = np.stack([np.ones_like(x), x], axis=1)
    both = np.concatenate([design, phi], axis=1)
    # The shift m λ that was chosen, read off the normal equations of w: up to rounding one of the grid.
    rest = y - regression(x[:, None])[:, 0]
    read = np.sum(phi.T @ rest * regression.weights[:, 0]) / np.sum(regression.weights**2)
    (basis,) = regressor.bases.values()
    shift = basis.rotated.shifts[np.argmin(np.abs(np.log(basis.rotated.shifts / read)))]
    assert read == pytest.approx(shift, rel=0.1)
    penalty = np.sqrt(shift) * np.eye(both.shape[1])[2:]
    for i in (0, 1, 17):
        kept = np.arange(len(x)) != i
        solved = np.linalg.lstsq(np.concatenate([both[kept], penalty]), np.r_[y[kept], np.zeros(len(penalty))])[0]
        assert left[i, 0] == pytest.approx(y[i] - both[i] @ solved, rel=1e-6)


def test_the_line_is_not_shrunk():
    x, y = data()
    regression, _ = Regression.fit(sample_of(x, None, "x"), y[:, None])
    rest = y - regression(x[:, None])[:, 0]
    np.testing.assert_allclose([rest.mean(), (rest * x).mean()], 0, atol=1e-10)


def test_indicators_of_all_labels_are_counted_once():
    """They add up to the constant: no row's residual is told of by a direction that is rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z, label = rng.normal(size=60), rng.integers(0, 3, 60)
        label[0] = 3  # this row is alone with its label
        points = np.column_stack([np.eye(4)[label], z])
        y = z + label + rng.normal(size=60)
        regression, left = Regression.fit(sample_of(points, RBF(1e6), "x"), y[:, None])
        assert regression.features is None
        assert left[0, 0] == pytest.approx(y[0] - y[1:].mean())
        for i in (1, 7):
            kept = np.arange(60) != i
            solved = np.linalg.lstsq(points[kept], y[kept])[0]
            assert left[i, 0] == pytest.approx(y[i] - points[i] @ solved, rel=1e-9)


def test_units_and_offsets_of_columns_do_not_matter():
    x, y = data()
    found = [
        Regression.fit(sample_of(points, RBF(1e12), "x"), y[:, None])[1]
        for points in (np.stack([x, x**3], axis=1), np.stack([1e7 + x, 1e-7 * x**3], axis=1))
    ]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6, atol=1e-6)


def test_the_line_is_that_of_all_rows():
    """w is learned from 4000 of them; what the line is beside it all rows say."""
    rng = np.random.default_rng(0)
    label, z = rng.random(9000) < 0.02, rng.normal(size=9000)
    points = np.column_stack([label, ~label, z]).astype(float)
    for bent in (0.0, 1.0):
        y = 3 * label + bent * z**2 + rng.normal(size=9000)
        regression, left = Regression.fit(sample_of(points, None, "x"), y[:, None])
        rest = y - regression(points)[:, 0]
        np.testing.assert_allclose([rest.mean(), rest[label].mean()], 0, atol=1e-9)
        assert left.shape == (4000, 1)
        assert left.std() == pytest.approx(1, abs=0.05)


def test_regressions_of_several_targets_on_the_same_points_share_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    sample = sample_of(x, None, "x")
    regressor = Regressor.on(sample)
    for targets in (np.sin(3 * x), x + 0.1 * rng.normal(size=300), np.abs(x)):
        shared, left = regressor.fit(targets[:, None])
        alone, again = Regression.fit(sample, targets[:, None])
        np.testing.assert_array_equal(left, again)
        np.testing.assert_array_equal(shared(x[:, None]), alone(x[:, None]))
        np.testing.assert_allclose(regressor.fitted(shared), shared(x[:, None]), rtol=1e-7, atol=1e-9)
