"""Densities that outgrow the priors leave no posterior, and the run says so; whatever has one is left alone."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep

Y = np.random.default_rng(3).normal(3.0, size=10)


def posterior(log_factor, *priors, given=(), plate=None):
    unknowns = [ep.Variable(name, prior, plate=plate) for name, prior in zip("ab", priors, strict=False)]
    return ep.infer(ep.FactorGraph(ep.Density(log_factor, *unknowns, *given, name="mine")))


WITHOUT = {
    "a wrong sign": lambda: posterior(lambda m: 0.5 * jnp.sum((Y - m) ** 2), ep.Normal(0.0, 10.0)),
    "of plain Python": lambda: posterior(lambda m: float(0.5 * np.sum((Y - m) ** 2)), ep.Normal(0.0, 10.0)),
    "row by row": lambda: posterior(lambda m, y: 0.5 * (y - m) ** 2, ep.Normal(0.0, 10.0), given=[Y]),
    "one of a plate": lambda: posterior(lambda m, c: c * m**2, ep.Normal(0.0, 1.0), given=[[0.1, -1.0, 0.8]], plate=3),
    "a square": lambda: posterior(lambda a: 0.6 * a**2, ep.Normal(0.0, 1.0)),
    "a fourth power": lambda: posterior(lambda a: a**4, ep.Normal(0.0, 1.0)),
    "a product": lambda: posterior(lambda a, b: 2 * a * b, ep.Normal(0.3, 1.0), ep.Normal(0.0, 1.0)),
    "a product of plain Python": lambda: posterior(
        lambda a, b: 2 * float(a) * float(b), ep.Normal(0.0, 1.0), ep.Normal(0.0, 1.0)
    ),
}


def third_power(t):
    return -3 * jnp.log(t)


# Proper: a little slower than the prior falls, heavy tails far away, ends, a large constant, narrow and far away.
WITH = {
    "slower": lambda: posterior(lambda a: 0.4 * a**2, ep.Normal(0.0, 1.0)),
    "much slower": lambda: posterior(lambda a: 1e6 + 0.49 * a**2, ep.Normal(0.0, 1.0)),
    "Cauchy": lambda: posterior(lambda a: 1e6 - jnp.log1p((a - 1e3) ** 2), ep.Normal(0.0, 1.0)),
    "ends": lambda: posterior(lambda a: jnp.where(jnp.abs(a) < 3, 1e6 + a**4, -jnp.inf), ep.Normal(0.0, 1.0)),
    "far": lambda: posterior(lambda a: 1e12 - (a - 1e6) ** 2 / 2, ep.Normal(0.0, 1.0)),
    "narrow prior": lambda: posterior(lambda a: 1e16 - (a - 1) ** 2 / 2e-8, ep.Normal(0.0, 1e-16)),
    "counts": lambda: posterior(lambda a: 1e6 + 3 * a - jnp.exp(a), ep.Normal(0.0, 4.0)),
    "a product": lambda: posterior(lambda a, b: 1e6 + 0.5 * a * b, ep.Normal(0.3, 1.0), ep.Normal(0.0, 1.0)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "Python" in name else []) for name in WITHOUT]
)
def test_a_model_without_a_posterior_says_so(name):
    found = WITHOUT[name]()
    assert (found.report.status, found.report.converged) == ("stopped without a posterior", False)
    assert found.log_evidence == np.inf
    assert found.report.notes[0].startswith("this model has no posterior: mine grows faster with 'a'")


@pytest.mark.parametrize("shape", [1.0, 3.0])
def test_a_power_that_is_too_large_at_zero_leaves_no_posterior(shape):
    found = posterior(third_power, ep.Gamma(shape, 1.0))
    assert (found.report.status, found.log_evidence) == ("stopped without a posterior", np.inf)
    assert "mine grows too fast for an integral as 'a' nears 0" in found.report.notes[0]


@pytest.mark.parametrize("shape", [3.0001, 3.01, 3.1])
def test_a_power_goes_on_below_all_numbers(shape):
    found = posterior(third_power, ep.Gamma(shape, 1.0))
    assert found.report.status == "converged"
    exact = math.lgamma(shape - 3) - math.lgamma(shape)
    assert found.log_evidence == pytest.approx(exact, rel=1e-9)
    np.testing.assert_allclose([found["a"].mean(), found["a"].var()], shape - 3, rtol=1e-8)


@pytest.mark.slow
def test_powers_of_shares_go_on_as_well():
    found = posterior(third_power, ep.Beta(3.001, 3.0))
    beta = [math.lgamma(a) + math.lgamma(3) - math.lgamma(a + 3) for a in (0.001, 3.001)]
    assert (found.report.status, found.log_evidence) == ("converged", pytest.approx(beta[0] - beta[1], rel=1e-9))
    none = posterior(third_power, ep.Beta(3.0, 3.0))
    assert none.report.status == "stopped without a posterior"
    one = posterior(lambda t, k: -k * jnp.log(t), ep.Gamma(2.0, 1.0), given=[[1.0, 2.5, 0.0]], plate=3)
    assert one.report.status == "stopped without a posterior"
    fast = posterior(lambda t: 2 * t, ep.Gamma(2.0, 1.0))
    assert "mine grows faster with 'a'" in fast.report.notes[0]


@pytest.mark.slow
def test_what_is_no_power_below_all_numbers_is_in_doubt():
    level = posterior(lambda t: -t, ep.Gamma(0.001, 1.0))
    assert level.report.status == "converged"
    assert level.log_evidence == pytest.approx(-0.001 * math.log(2), abs=1e-7)
    found = posterior(lambda t: -jnp.log(1 + jnp.log1p(1 / t)), ep.Gamma(0.001, 1.0))
    assert found.report.status == "converged, but standard deviations may be wrong"


# Numbers of this size have no digits left to tell whether a is 0 or 1e-8.
ROUNDED = {"narrow prior"}


@pytest.mark.parametrize("name", WITH)
def test_a_model_with_a_posterior_is_left_alone(name):
    found = WITH[name]()
    doubt = ", but standard deviations may be wrong" if name in ROUNDED else ""
    assert found.report.status == "converged" + doubt
    assert np.isfinite(found.log_evidence)
    assert not any("no posterior" in note for note in found.report.notes)


def test_functions_are_asked_far_out_only_where_the_evidence_is_enormous():
    asked = []

    def log_factor(a):
        asked.append(float(a))
        return -((float(a) - 1.0) ** 2)

    posterior(log_factor, ep.Normal(0.0, 1.0))
    assert max(map(abs, asked)) < 90


def test_a_function_that_cannot_be_called_far_out_is_not_judged():
    def log_factor(a):
        if abs(a) > 1e3:
            raise OverflowError("too far")
        return 1e6 - (float(a) - 1.0) ** 2

    assert posterior(log_factor, ep.Normal(0.0, 1.0)).report.status == "converged"
