"""Round trips between natural and mean parameters over the whole range of scales, with the problem's own condition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import ParameterError
from meanmap.families import Beta, Dirichlet, Gamma, Normal
from meanmap.families.inversion import parameters_from_expected_logs, shape_from_log_gap

EPS = np.finfo(float).eps
SHAPES, RATES = (g.ravel() for g in np.meshgrid(np.geomspace(0.05, 1e5, 40), np.geomspace(1e-3, 2e4, 20)))
GRID = np.geomspace(1e-2, 1e6, 30)
A, B = (g.ravel() for g in np.meshgrid(GRID, GRID))


def test_beta_over_the_required_range():
    a, b = np.array([0.3, 1.0, 2.0, 20.0, 300.0, 2000.0, 0.01]), np.array([4.0, 1.0, 1.0, 5.0, 700.0, 3000.0, 0.01])
    family = Beta(a, b)
    back = Beta.from_moments(*family.expected_statistics)
    np.testing.assert_allclose(back.a, a, rtol=1e-10)
    np.testing.assert_allclose(back.b, b, rtol=1e-10)


def test_beta_over_eight_decades():
    family = Beta(A, B)
    moments = family.expected_statistics
    back = Beta.from_moments(*moments)
    # The mean parameters come back to 1e-10 (in fact to rounding) everywhere ...
    for found, expected in zip(back.expected_statistics, moments, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    # ... and the parameters as well as the mean parameters, rounded to doubles, determine them: at Beta(1e6, 1e6) an
    # E[log x] of −0.69 moves by 2.5e-7 for a relative change of a + b, so its last bit is worth 4e-10 there.
    tolerance = np.maximum(1e-10, 6 * EPS * (A + B))
    assert (np.abs(back.a / A - 1) < tolerance).all()
    assert (np.abs(back.b / B - 1) < tolerance).all()


def test_gamma_over_the_required_range():
    family = Gamma(SHAPES, RATES)
    moments = family.expected_statistics
    back = Gamma.from_moments(*moments)
    for found, expected in zip(back.expected_statistics, moments, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    # log E[x] − E[log x] is 1/(2 shape) from two logarithms of size |log mean|: the last bits of those, times 2 shape.
    tolerance = np.maximum(1e-10, 4 * EPS * np.maximum(1, np.abs(np.log(SHAPES / RATES))) * SHAPES)
    assert (np.abs(back.shape_parameter / SHAPES - 1) < tolerance).all()
    assert (np.abs(back.rate / RATES - 1) < tolerance).all()
    assert tolerance.max() < 2e-9


def test_normal_over_sixteen_decades():
    variance = np.geomspace(1e-8, 1e8, 33)
    mean = np.linspace(-1e3, 1e3, 33)
    family = Normal(mean, variance)
    back = Normal.from_mean_variance(family.mean(), family.var())
    for found, expected in zip(back.natural, family.natural, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    centred = Normal(np.sqrt(variance), variance)
    back = Normal.from_moments(*centred.expected_statistics)
    for found, expected in zip(back.natural, centred.natural, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_mean_and_variance_round_trips():
    beta = Beta([0.3, 20.0, 2000.0], [4.0, 5.0, 3000.0])
    back = Beta.from_mean_variance(beta.mean(), beta.var())
    np.testing.assert_allclose([back.a, back.b], [beta.a, beta.b], rtol=1e-12)
    gamma = Gamma(SHAPES, RATES)
    back = Gamma.from_mean_variance(gamma.mean(), gamma.var())
    np.testing.assert_allclose(back.shape_parameter, SHAPES, rtol=1e-12)
    np.testing.assert_allclose(back.rate, RATES, rtol=1e-12)


@pytest.mark.parametrize("k", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_dirichlet_of_many_scales(k):
    alpha = 10 ** np.random.default_rng(0).uniform(-2, 4, (200, k))
    back = Dirichlet.from_moments(*Dirichlet(alpha).expected_statistics)
    np.testing.assert_allclose(back.concentration, alpha, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_by_the_implicit_function_theorem():
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(shape_from_log_gap))
        curvature = jax.jit(jax.grad(jax.grad(shape_from_log_gap)))
        for gap in (1e-4, 0.3, 20.0):
            h = 1e-5 * gap
            difference = (shape_from_log_gap(gap + h) - shape_from_log_gap(gap - h)) / (2 * h)
            assert slope(gap) == pytest.approx(float(difference), rel=1e-6)
            assert curvature(gap) == pytest.approx(float((slope(gap + h) - slope(gap - h)) / (2 * h)), rel=1e-6)
        logs = jnp.array([-1.3, -0.9, -2.0])
        jacobian = jax.jit(jax.jacrev(parameters_from_expected_logs))(logs)
        solve = jax.jit(parameters_from_expected_logs)
        columns = [(solve(logs + h) - solve(logs - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(jacobian, np.stack(columns, -1), rtol=1e-6)


def test_gradients_are_finite_at_the_ends_of_the_range():
    with jax.enable_x64(True):

        def total(a, b):
            logs = Beta(a, b).expected_statistics
            return Beta._of(Beta._natural_from_moments(*logs)).mean()

        slopes = jax.jit(jax.vmap(jax.grad(total, argnums=(0, 1))))(jnp.asarray(A), jnp.asarray(B))
        expected = [B / (A + B) ** 2, -A / (A + B) ** 2]
        for slope, exact in zip(slopes, expected, strict=True):
            assert np.isfinite(slope).all()
            np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-12)


def test_impossible_moments():
    with pytest.raises(ParameterError, match=r"log E\[x\] - E\[log x\] is 0.*at \[1\].*Jensen"):
        Gamma.from_moments([0.0, 1.0], [2.0, np.e])
    with pytest.raises(ParameterError, match=r"E\[x\] is -1"):
        Gamma.from_moments(0.0, -1.0)
    with pytest.raises(ParameterError, match=r"exp E\[log x\] \+ exp E\[log\(1 - x\)\] is 1\.2"):
        Beta.from_moments(np.log(0.6), np.log(0.6))
    with pytest.raises(ParameterError, match="the sum of exp E"):
        Dirichlet.from_moments(np.log([0.5, 0.3, 0.2]))
    with pytest.raises(ParameterError, match=r"the variance -2 E\[-x²/2\] - E\[x\]² is -1"):
        Normal.from_moments(1.0, 0.0)
    assert np.isnan(jax.jit(lambda s: Gamma.from_moments(s, 1.0).shape_parameter)(1.0))
