import decimal
import itertools
from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap.core.errors import ColumnError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Laplace, Matern, OnColumns, Smoothed
from meanmap.kernels.terms import terms_of
from meanmap.learning.pseudolikelihood import log_pseudolikelihood, log_volumes, objective

WIDE = 1e4 * np.random.default_rng(7).normal(size=(150, 100))


def dense(kernel, x, z, noise, width):
    """The m n dimensional normal density of all k(xᵢ, z), times the volumes of finite-difference Jacobians."""
    n, m, d = len(x), len(z), x.shape[1]
    prior = Smoothed(kernel, width)(z)
    covariance = np.kron(np.ones((n, n)), prior) + noise * np.eye(n * m)
    gaussian = scipy.stats.multivariate_normal(np.zeros(n * m), covariance).logpdf(kernel(x, z).ravel())
    volume = 0.0
    for point in x:
        slopes = sum(
            -w * k(point[None], z).T * (point - z) / np.broadcast_to(k.lengthscale, (d,)) ** 2
            for w, k in [(term.weight, term.factors[0].kernel) for term in terms_of(kernel)]
        )
        volume += np.log(np.linalg.svd(slopes, compute_uv=False)).sum()
    return gaussian + volume


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("width", [None, 1.7])
def test_it_is_the_density_of_all_values(columns, width):
    rng = np.random.default_rng(columns)
    x, z = rng.normal(size=(12, columns)), rng.normal(size=(9, columns))
    one = RBF(rng.uniform(0.5, 1.5, columns))
    for noise in (1.0, 0.3):
        found = log_pseudolikelihood(one, x, z, noise=noise, width=width)
        assert found == pytest.approx(dense(one, x, z, noise, width), abs=1e-8)


@pytest.mark.parametrize(("columns", "several"), [(2, True), (5, False), pytest.param(5, True, marks=pytest.mark.slow)])
def test_sums_and_many_columns(columns, several):
    rng = np.random.default_rng(columns)
    x, z = rng.normal(size=(12, columns)), rng.normal(size=(9, columns))
    kernel = RBF(rng.uniform(0.5, 1.5, columns))
    kernel = 0.5 * kernel + 0.2 * RBF(2.0) if several else kernel
    assert log_pseudolikelihood(kernel, x, z) == pytest.approx(dense(kernel, x, z, 1.0, None), abs=1e-8)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_matern_kernel_against_sums_over_a_grid(smoothness, columns):
    """∫ k(z, u) k(u, z') du summed over a fine grid, and slopes of k by finite differences: no formula is shared."""
    rng = np.random.default_rng(8)
    x, z = rng.normal(size=(6, columns)), rng.normal(size=(4, columns))
    kernel = Matern(rng.uniform(0.6, 1.2, columns), smoothness)
    step = {1: 0.002, 2: 0.06}[columns]
    axis = np.arange(-18.0, 18.0, step) + 0.37 * step
    prior = np.zeros((4, 4))
    for first in axis if columns == 2 else [None]:
        u = axis[:, None] if first is None else np.column_stack([np.full_like(axis, first), axis])
        values = kernel(z, u)
        prior += values @ values.T * step**columns
    n, m = len(x), len(z)
    covariance = np.kron(np.ones((n, n)), prior) + np.eye(n * m)
    gaussian = scipy.stats.multivariate_normal(np.zeros(n * m), covariance).logpdf(kernel(x, z).ravel())
    volume = 0.0
    for point in x:
        shifts = 1e-6 * np.eye(columns)
        slopes = (kernel(point + shifts, z) - kernel(point - shifts, z)) / 2e-6
        volume += np.log(np.linalg.svd(slopes, compute_uv=False)).sum()
    assert log_pseudolikelihood(kernel, x, z) == pytest.approx(gaussian + volume, abs=2e-3)


@pytest.mark.parametrize("width", [None, 2.0])
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.8) + 0.5 * Matern([0.6, 1.2], 0.5),
        Matern(0.5, 0.5) + Matern(1.5, 2.5),
        RBF([0.8, 2.0]) * Matern(0.9, 2.5) + 0.3 * RBF(2.0),
        OnColumns(Matern(0.7, 1.5), [1]) * OnColumns(RBF(1.1), [0]),
    ],
    ids=["sum", "two Matern", "product", "columns"],
)
def test_sums_and_products_with_matern_kernels_are_the_density_of_all_values(kernel, width):
    """The density written out, with slopes by finite differences; r is checked in test_smoothed."""
    rng = np.random.default_rng(10)
    x, z = rng.normal(size=(2, 6, 2))
    n, m = len(x), len(z)
    covariance = np.kron(np.ones((n, n)), Smoothed(kernel, width)(z)) + np.eye(n * m)
    expected = scipy.stats.multivariate_normal(np.zeros(n * m), covariance).logpdf(kernel(x, z).ravel())
    for point in x:
        shifts = 1e-5 * np.eye(2)
        slopes = (kernel(point + shifts, z) - kernel(point - shifts, z)) / 2e-5
        expected += np.log(np.linalg.svd(slopes, compute_uv=False)).sum()
    assert log_pseudolikelihood(kernel, x, z, width=width) == pytest.approx(expected, abs=1e-6)


def test_a_point_near_one_landmark_only_keeps_its_volume():
    """By Cauchy and Binet the determinant is a sum over pairs of landmarks without any cancellation."""
    x, z = np.array([[0.31, 0.11], [-0.4, 0.73]]), np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.1], [-1.0, 0.5]])
    scale = 0.1
    expected = []
    for point in x:
        gap = point - z
        logs = -np.sum(gap**2, axis=1) / scale**2 - 4 * np.log(scale)
        pairs = [
            logs[i] + logs[j] + 2 * np.log(abs(np.linalg.det(gap[[i, j]])))
            for i, j in itertools.combinations(range(4), 2)
        ]
        expected.append(np.logaddexp.reduce(pairs) / 2)
    with jax.enable_x64(True):
        found = log_volumes(RBF(scale), jnp.asarray(x), jnp.asarray(z))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


EXACT = decimal.Context(prec=1000, Emin=-(10**15))


def exact_volume(point, z, scale):
    """log γ in decimal arithmetic of a thousand digits."""
    with decimal.localcontext(EXACT):
        d = len(point)
        moments = [[Decimal(0)] * d for _ in range(d)]
        for landmark in z:
            gap = [Decimal(float(a)) - Decimal(float(b)) for a, b in zip(point, landmark, strict=True)]
            weight = (-sum(g * g for g in gap) / scale**2).exp() / scale**4
            for i, j in itertools.product(range(d), repeat=2):
                moments[i][j] += weight * gap[i] * gap[j]
        total = Decimal(0)
        for k in range(d):
            total += moments[k][k].ln()
            for i, j in itertools.product(range(k + 1, d), repeat=2):
                moments[i][j] -= moments[i][k] * moments[k][j] / moments[k][k]
        return total / 2


@pytest.mark.parametrize(("columns", "scale"), [(3, 0.05), (5, 0.3), (8, 0.3), (8, 5.0)])
def test_short_lengthscales_in_many_columns_have_the_volume_of_exact_arithmetic(columns, scale):
    rng = np.random.default_rng(columns)
    z = rng.normal(size=(2 * columns + 4, columns))
    x = np.stack([z[0], rng.normal(size=columns)])  # one of them a landmark
    expected = [exact_volume(point, z, Decimal(scale)) for point in x]
    with jax.enable_x64(True):
        found = log_volumes(RBF(scale), jnp.asarray(x), jnp.asarray(z))
    np.testing.assert_allclose(found, np.array(expected, dtype=float), rtol=1e-12)


def test_short_lengthscales_have_the_slope_of_exact_arithmetic():
    rng = np.random.default_rng(3)
    z, scale, step = rng.normal(size=(10, 3)), 0.05, Decimal(10) ** -30
    point = rng.normal(size=3)
    with decimal.localcontext(EXACT):
        above, below = (exact_volume(point, z, Decimal(scale) * (1 + sign * step)) for sign in (1, -1))
        expected = float((above - below) / (2 * step))
    with jax.enable_x64(True):
        x, marks = jnp.asarray(point[None]), jnp.asarray(z)
        for kernel in (lambda s: RBF(s * jnp.ones(3)), lambda s: 0.5 * RBF(s) + 0.5 * RBF(s)):
            found = jax.grad(lambda t, kernel=kernel: log_volumes(kernel(scale * jnp.exp(t)), x, marks)[0])(0.0)
            assert float(found) == pytest.approx(expected, rel=1e-12)


def test_landmarks_on_a_line_through_a_point_give_it_no_volume():
    line = np.arange(1.0, 6.0)[:, None] * np.array([1.0, 2.0, 3.0])
    with jax.enable_x64(True):
        assert log_volumes(RBF(1.0), jnp.zeros((1, 3)), jnp.asarray(line))[0] == -np.inf


@pytest.mark.parametrize("width", [None, 2.0])
def test_gradients_are_those_of_finite_differences(width):
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=(40, 2)), rng.normal(size=(7, 2))

    def value(parameters):
        return objective(RBF(jnp.exp(parameters[:2])), jnp.asarray(x), jnp.asarray(z), jnp.exp(parameters[2]), width)

    with jax.enable_x64(True):
        at = jnp.array([0.1, -0.4, 0.2])
        found = jax.grad(value)(at)
        for i in range(3):
            step = jnp.zeros(3).at[i].set(1e-5)
            difference = float(value(at + step) - value(at - step)) / 2e-5
            assert float(found[i]) == pytest.approx(difference, abs=1e-6, rel=1e-7)


def test_landmarks_among_the_points_and_short_lengthscales_are_finite():
    x = np.random.default_rng(6).normal(size=(50, 1))
    for scale in (1e-3, 1.0, 1e3):
        for kernel in (RBF(scale), *(Matern(scale, smoothness) for smoothness in (0.5, 1.5, 2.5))):
            assert np.isfinite(log_pseudolikelihood(kernel, x, x[:10]))


@pytest.mark.parametrize(
    "form",
    [
        *(lambda scales, nu=nu: Matern(scales, nu) for nu in (0.5, 1.5, 2.5)),
        lambda scales: RBF(scales[0]) + Matern(scales[1], 0.5),
        lambda scales: Matern(scales[0], 0.5) + Matern(scales[1], 1.5),
        lambda scales: RBF(scales[0]) * Matern(scales[1], 2.5),
        lambda scales: OnColumns(RBF(scales[0]), [0]) * OnColumns(Matern(scales[1], 2.5), [1]),
    ],
    ids=["0.5", "1.5", "2.5", "sum", "two", "product", "columns"],
)
def test_gradients_of_matern_kernels_are_those_of_finite_differences(form):
    x = np.random.default_rng(9).normal(size=(30, 2))  # seven of them are landmarks

    def value(logs):
        return objective(form(jnp.exp(logs)), jnp.asarray(x), jnp.asarray(x[:7]), jnp.ones(()))

    with jax.enable_x64(True):
        at = jnp.array([0.1, -0.4])
        found = jax.grad(value)(at)
        for i in range(2):
            step = jnp.zeros(2).at[i].set(1e-5)
            difference = float(value(at + step) - value(at - step)) / 2e-5
            assert float(found[i]) == pytest.approx(difference, abs=1e-6, rel=1e-6)


def test_rescaling_the_data_rescales_the_best_lengthscale():
    rng = np.random.default_rng(7)
    x, z = rng.normal(size=(100, 1)), rng.normal(size=(10, 1))
    scales = np.geomspace(0.05, 5, 30)
    best = [np.argmax([log_pseudolikelihood(RBF(c * s), c * x, c * z) for s in scales]) for c in (1.0, 10.0)]
    assert abs(best[0] - best[1]) <= 1


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((Laplace(1.0), [0.0, 1.0], [0.0]), {}, KindError, "expected RBF"),
        ((RBF(1.0), np.eye(3), np.eye(3)[:2]), {}, ShapeError, "at least as many"),
        ((RBF(1.0), [0.0, 1.0], [0.5]), {"noise": 0.0}, ParameterError, "above 0"),
        ((RBF(1.0), [2.0, 2.0], [2.0]), {}, ColumnError, "constant"),
        ((RBF(1.0), np.eye(3), np.eye(3)), {"width": [1.0, 2.0]}, ShapeError, "width has 2 entries"),
        ((RBF(1.0), np.eye(3), np.eye(3)), {"width": -1.0}, ParameterError, "above 0"),
        ((RBF(1e5), WIDE, WIDE), {}, ParameterError, r"lengthscales multiply to .*change the units"),
        ((RBF(1.0), [0.0, 1.0], [[0.5, 1.0]]), {}, ShapeError, "differ in their columns"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        log_pseudolikelihood(*arguments, **settings)
