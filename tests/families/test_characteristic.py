"""Characteristic functions against 60-digit numbers, and against a trapezium rule in the logit or log coordinate."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core import InputError, NonFiniteError, ParameterError, ShapeError
from meanmap.families import Beta, Gamma, Laplace, Mixture, MultivariateNormal, Normal, PointMass, Uniform

_spec = importlib.util.spec_from_file_location("reference", Path(__file__).parent / "reference_characteristic.py")
assert _spec is not None
assert _spec.loader is not None
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)


@pytest.mark.parametrize(
    ("kind", "coordinate", "table"),
    [
        (Beta, "x", reference.BETA_X),
        (Beta, "logit", reference.BETA_LOGIT),
        (Gamma, "x", reference.GAMMA_X),
        (Gamma, "log", reference.GAMMA_LOG),
    ],
)
def test_against_high_precision(kind, coordinate, table):
    first, second, w, real, imaginary = np.array(table).T
    for frequency in np.unique(w):
        rows = w == frequency
        values = kind(first, second).characteristic_function(frequency, coordinate)  # all rows: one shape
        assert np.abs(values - (real + 1j * imaginary))[rows].max() < 1e-12


@pytest.mark.parametrize(("a", "b"), [(0.3, 4.0), (1.0, 2.0), (20.0, 5.0), (300.0, 700.0), (2000.0, 3000.0)])
@pytest.mark.parametrize("coordinate", ["x", "logit"])
def test_beta_against_a_trapezium_rule(a, b, coordinate):
    # In u = logit x the density is analytic and falls off as exp(au), exp(−bu): the rule, with its own sum as the
    # normaliser, converges beyond all powers of the step and shares nothing with the library's formulas.
    u = np.linspace(-40 / a - 10, 40 / b + 10, 8001)
    logs = -a * np.logaddexp(0, -u) - b * np.logaddexp(0, u)
    density = np.exp(logs - logs.max())
    w = np.linspace(-41, 41, 165)
    x = 1 / (1 + np.exp(-u)) if coordinate == "x" else u
    expected = np.exp(1j * np.outer(w, x)) @ density / density.sum()
    np.testing.assert_allclose(Beta(a, b).characteristic_function(w, coordinate), expected, atol=1e-12)


@pytest.mark.parametrize(("shape", "rate"), [(0.3, 1e-3), (2.0, 1.0), (40.0, 20.0), (1e3, 1e4)])
@pytest.mark.parametrize("coordinate", ["x", "log"])
def test_gamma_against_a_trapezium_rule(shape, rate, coordinate):
    u = np.linspace(-40 / shape - 2, 5.0, 40001)  # log of x over its mean
    logs = shape * (u - np.exp(u))
    density = np.exp(logs - logs.max())
    # Up to 41, and no further than the rule resolves e^{iwx}.
    w = np.linspace(-41, 41, 21) if coordinate == "log" else np.linspace(-1, 1, 21) * min(41, 5 * rate / np.sqrt(shape))
    x = np.exp(u) * shape / rate if coordinate == "x" else u + np.log(shape / rate)
    expected = np.exp(1j * np.outer(w, x)) @ density / density.sum()
    np.testing.assert_allclose(Gamma(shape, rate).characteristic_function(w, coordinate), expected, atol=1e-12)


def test_laws_of_characteristic_functions(law, frequencies):
    w = frequencies(law)
    for coordinate in law.coordinates:
        values = law.characteristic_function(w, coordinate)
        assert values.shape == (3, 5)
        assert values.dtype == np.complex128
        assert (np.abs(values) <= 1 + 1e-14).all()
        np.testing.assert_allclose(law.characteristic_function(-w, coordinate), values.conj(), atol=1e-14)
        np.testing.assert_allclose(law.characteristic_function(0 * w, coordinate), 1, atol=1e-14)


def test_derivatives_at_zero_are_moments(costly_law, frequencies):
    law = costly_law
    step = 1e-4
    w = frequencies(law)
    for coordinate in law.coordinates:
        if w.ndim == 1:
            directions = np.array([step])
        else:
            directions = step * np.eye(w.shape[-1])
        values = law.characteristic_function(directions, coordinate)
        mean, variance = law.mean_in(coordinate), law.variance_in(coordinate)
        mean, variance = (m.reshape(values.shape) for m in (mean, variance))
        np.testing.assert_allclose(values.imag / step, mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(2 * (1 - values.real) / step**2, variance + mean**2, rtol=1e-4, atol=1e-6)


def test_agrees_with_samples(costly_law, frequencies):
    law = costly_law
    w = frequencies(law)
    n = 10_000
    draws = law.sample(n, rng=1)
    if type(law).__name__ == "Categorical":
        draws = np.eye(3)[draws]
    for coordinate in law.coordinates:
        x = {"x": lambda x: x, "log": np.log, "logit": lambda x: np.log(x / (1 - x))}[coordinate](draws)
        phase = x[..., None] * w if w.ndim == 1 else np.einsum("nbd,wd->nbw", x, w)
        # Each part is a mean of n numbers within [-1, 1]; 5 standard errors.
        error = np.exp(1j * phase).mean(0) - law.characteristic_function(w, coordinate)
        assert np.abs(error).max() < 5 * np.sqrt(2 / n)


@pytest.mark.parametrize("frequency", [pytest.param(100.0, marks=pytest.mark.slow), 5000.0])
def test_beta_at_large_frequencies(frequency):
    # Beta(1, 2): ∫ 2 (1 − x) e^{iwx} dx = 2 (i/w + (1 − e^{iw})/w²).
    exact = 2 * (1j / frequency + (1 - np.exp(1j * frequency)) / frequency**2)
    assert abs(Beta(1.0, 2.0).characteristic_function(frequency) - exact) < 1e-13


def test_frequencies_of_any_shape():
    w = np.linspace(-2, 2, 6).reshape(2, 3)
    for law in (
        Normal([0.0, 1.0], 1.0),
        Beta([2.0, 1.0], 3.0),
        Gamma([2.0, 1.0], 3.0),
        Laplace(),
        Uniform(),
        PointMass(2.0),
    ):
        values = law.characteristic_function(w)
        assert values.shape == (*law.shape, 2, 3)
        np.testing.assert_allclose(values[..., 1, 2], law.characteristic_function(w[1, 2]), atol=1e-14)
    vectors = MultivariateNormal.standard(2, (4,)).characteristic_function(np.ones((2, 3, 2)))
    np.testing.assert_allclose(vectors, np.exp(-1) * np.ones((4, 2, 3)), atol=1e-14)


def test_traced_frequencies():
    w = jnp.array([1.0, -30.0, 250.0, 257.0])
    values = jax.jit(lambda w: Beta(2.0, 3.0).characteristic_function(w))(w)
    known = Beta(2.0, 3.0).characteristic_function(np.asarray(w))
    np.testing.assert_allclose(values[:3], known[:3], atol=1e-5)
    assert np.isnan(values[3])


@pytest.mark.parametrize("coordinate", [pytest.param("x", marks=pytest.mark.slow), "logit"])
def test_gradients_against_differences(coordinate):
    with jax.enable_x64(True):

        def value(parameters):
            values = Beta(parameters[0], parameters[1]).characteristic_function(np.array([0.7, 13.0]), coordinate)
            return (values.real + 2 * values.imag).sum()

        at = jnp.array([3.0, 5.0])
        step = 1e-6 * np.eye(2)
        both = jax.jit(jax.value_and_grad(value))
        differences = [(both(at + h)[0] - both(at - h)[0]) / 2e-6 for h in step]
        np.testing.assert_allclose(both(at)[1], differences, atol=1e-8)


def test_mixture_mixes(frequencies):
    parts = Normal([0.0, 2.0], [1.0, 0.5])
    w = frequencies(parts)
    mixed = Mixture(parts, [0.25, 0.75]).characteristic_function(w)
    np.testing.assert_allclose(mixed, [0.25, 0.75] @ parts.characteristic_function(w), atol=1e-15)


def test_messages():
    with pytest.raises(ParameterError, match=r"coordinate is 'log'; Beta has 'x', 'logit'"):
        Beta(1.0, 1.0).characteristic_function(1.0, "log")
    with pytest.raises(ShapeError, match=r"w has shape \(3,\); expected \(..., 2\)"):
        MultivariateNormal.standard(2).characteristic_function(np.ones(3))
    with pytest.raises(NonFiniteError, match="w holds NaN at \\[1\\]"):
        Normal().characteristic_function([0.0, np.nan])
    with pytest.raises(InputError, match="w holds infinity"):
        Beta(1.0, 1.0).characteristic_function(np.inf)
    with pytest.raises(ParameterError, match=r"Normal is improper at \[1\], so it has no characteristic function"):
        Normal.from_natural([0.0, 0.0], [1.0, -1.0]).characteristic_function(1.0)
    with pytest.raises(ParameterError, match="points above 0 for the coordinate 'log'"):
        PointMass(-1.0).characteristic_function(1.0, "log")
