import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap.core.errors import ColumnError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Laplace, Smoothed
from meanmap.learning.pseudolikelihood import log_pseudolikelihood, objective


def dense(kernel, x, z, noise, width):
    """The m n dimensional normal density of all k(xᵢ, z), times the volumes of finite-difference Jacobians."""
    n, m, d = len(x), len(z), x.shape[1]
    prior = Smoothed(kernel, width)(z)
    covariance = np.kron(np.ones((n, n)), prior) + noise * np.eye(n * m)
    gaussian = scipy.stats.multivariate_normal(np.zeros(n * m), covariance).logpdf(kernel(x, z).ravel())
    scale = np.broadcast_to(kernel.lengthscale, (d,))
    volume = 0.0
    for point in x:
        slopes = -kernel(point[None], z).T * (point - z) / scale**2
        volume += 0.5 * np.linalg.slogdet(slopes.T @ slopes)[1]
    return gaussian + volume


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("width", [None, 1.7])
def test_it_is_the_density_of_all_values(columns, width):
    rng = np.random.default_rng(columns)
    x, z = rng.normal(size=(12, columns)), rng.normal(size=(5, columns))
    kernel = RBF(rng.uniform(0.5, 1.5, columns))
    for noise in (1.0, 0.3):
        found = log_pseudolikelihood(kernel, x, z, noise=noise, width=width)
        assert found == pytest.approx(dense(kernel, x, z, noise, width), abs=1e-8)


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
        assert np.isfinite(log_pseudolikelihood(RBF(scale), x, x[:10]))


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
        ((RBF(1.0), [0.0, 1.0], [[0.5, 1.0]]), {}, ShapeError, "differ in their columns"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        log_pseudolikelihood(*arguments, **settings)
