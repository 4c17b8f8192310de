"""From expected log statistics back to parameters: maximum likelihood of Gamma, Beta and Dirichlet distributions.

Both solves are Newton's method in the logarithm of the parameters, with a fixed number of steps, so that they batch and
compile; derivatives come from the implicit function theorem and do not pass through the steps.
"""

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.families.real_gamma import digamma_minus_log, trigamma, trigamma_minus_inverse
from meanmap.families.simplex import expected_logs_and_slopes, with_total

__all__ = ["parameters_from_expected_logs", "shape_from_log_gap"]

# From the starts below, every case of shapes from 1e-6 to 1e12 and of Dirichlet parameters from 1e-2 to 2e6 (ratios up
# to 2e8) reaches rounding within 4 and 9 steps; the rest is reserve.
_SHAPE_STEPS = 6
_DIRICHLET_STEPS = 14
_LARGEST_STEP = 2.0  # of a logarithm: no parameter moves by more than a factor e² at once


@jax.custom_jvp
def shape_from_log_gap(gap: Array) -> Array:
    """The shape a of a Gamma distribution with log E[x] − E[log x] = `gap` > 0, that is log a − ψ(a) = gap.

    Newton on log(log a − ψ(a)) as a function of log a, which is nearly a line of slope −1 at both ends, from the start
    of Minka (2002), "Estimating a Gamma distribution", which is accurate to 1.5%.
    """
    log_gap = jnp.log(gap)
    log_shape = jnp.log((3 - gap + jnp.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap))

    def improve(_, log_shape):
        shape = jnp.exp(log_shape)
        value, slope = _with_slope(shape)
        step = (jnp.log(-value) - log_gap) * value / (slope * shape)
        return log_shape - jnp.clip(step, -_LARGEST_STEP, _LARGEST_STEP)

    return jnp.exp(jax.lax.fori_loop(0, _SHAPE_STEPS, improve, log_shape))


@shape_from_log_gap.defjvp
def _shape_derivative(primals, tangents):
    shape = shape_from_log_gap(*primals)
    _, slope = _with_slope(shape)
    return shape, -tangents[0] / slope


def _with_slope(shape):
    """ψ(a) − log a and its derivative."""
    return digamma_minus_log(shape), trigamma_minus_inverse(shape)


@jax.custom_jvp
def parameters_from_expected_logs(logs: Array) -> Array:
    """The parameters α > 0 of the Dirichlet distribution with E[log xᵢ] = `logs`, over the last axis.

    Newton's method of Minka (2000), "Estimating a Dirichlet distribution", in log α: the Jacobian is diagonal plus rank
    one, so a step costs O(k). An error of ε in `logs` changes α by about 2 ε Σα in relative terms: the problem is that
    ill-conditioned for any method.
    """

    def improve(_, log_parameters):
        parameters = jnp.exp(log_parameters)
        found, slopes = expected_logs_and_slopes(parameters)
        step = _solve_jacobian(slopes, logs - found) / parameters
        # Increases take the full Newton step to α (1 + step); for decreases its logarithm may not exist.
        step = jnp.where(step > 0, jnp.log1p(jnp.maximum(step, 0)), step)
        longest = jnp.maximum(jnp.abs(step).max(-1, keepdims=True), _LARGEST_STEP)
        return log_parameters + step * (_LARGEST_STEP / longest)

    # Where all α are large, Σ exp(logs) = 1 − (k − 1)/(2 Σα) and αᵢ = ½ + Σα exp(logsᵢ) to first order.
    shares = jnp.exp(logs)
    rest = 1 - shares.sum(-1, keepdims=True)
    # If this is within rounding of zero, or negative (which violates Jensen's inequality), no parameters fit: NaN.
    rest = jnp.where(rest > 4 * jnp.finfo(logs.dtype).eps, rest, jnp.nan)
    start = jnp.log(0.5 + shares * (logs.shape[-1] - 1) / (2 * rest))
    return jnp.exp(jax.lax.fori_loop(0, _DIRICHLET_STEPS, improve, start))


@parameters_from_expected_logs.defjvp
def _parameters_derivative(primals, tangents):
    parameters = parameters_from_expected_logs(*primals)
    return parameters, _solve_jacobian(trigamma(with_total(parameters)), tangents[0])


def _solve_jacobian(slopes, value):
    """(diag ψ′(α) − ψ′(Σα) 1 1ᵀ)⁻¹ value, by Sherman and Morrison, from ψ′ of α and Σα."""
    weight, joint = 1 / slopes[..., :-1], slopes[..., -1:]
    share = joint * (weight * value).sum(-1, keepdims=True) / (1 - joint * weight.sum(-1, keepdims=True))
    return weight * (value + share)
