"""Beliefs of other families than the Normal beside quadrature, where one function says all about a number."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from meanmap import ep

SQUARES = np.array([45.0, 90.0, 2.0])


def of_variance(v, square):
    return -3 * jnp.log(2 * jnp.pi * v) - square / (2 * v)


def moments(log_density, points):
    """Mean and standard deviation by the trapezium rule."""
    weights = np.exp(log_density - log_density.max()) * np.gradient(points)
    mean = weights @ points / weights.sum()
    return mean, np.sqrt(weights @ (points - mean) ** 2 / weights.sum())


def of_variances(squares):
    v = np.exp(np.linspace(-18, 14, 20_001))
    logs = [stats.gamma.logpdf(v, 1.0, scale=100.0) - 3 * np.log(v) - square / (2 * v) for square in squares]
    return [moments(each, v) for each in logs]


def told(post):
    """The one note, which comes with a status."""
    assert post.report.status == "converged, but standard deviations may be wrong"
    (note,) = [each for each in post.report.notes if "by quadrature" in each]
    return note


def test_one_variance_has_the_right_numbers_in_a_note():
    v = ep.Variable("v", ep.Gamma(1.0, 0.01))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda v: of_variance(v, SQUARES[0]), v)))
    ((mean, sd),) = of_variances(SQUARES[:1])
    assert float(post["v"].sd()) < 0.8 * sd
    assert f"'v' {mean:.3g} ± {sd:.2g}" in told(post)
    assert "not close to a Gamma" in told(post)


def test_members_of_a_plate_are_named_worst_first():
    v = ep.Variable("v", ep.Gamma(1.0, 0.01), plate=3)
    note = told(ep.infer(ep.FactorGraph(ep.Density(of_variance, v[[2, 0]], SQUARES[[2, 0]]))))
    first, second = of_variances(SQUARES[[2, 0]])
    assert f"'v' at [2] {first[0]:.3g} ± {first[1]:.2g}, 'v' at [0] {second[0]:.3g} ± {second[1]:.2g}" in note


def test_functions_on_the_host_are_not_called_for_it():
    calls = 0

    def on_host(v):
        nonlocal calls
        calls += 1
        return -3 * math.log(2 * math.pi * float(v)) - SQUARES[0] / (2 * float(v))

    v = ep.Variable("v", ep.Gamma(1.0, 0.01))
    post = ep.infer(ep.FactorGraph(ep.Density(on_host, v, name="likelihood")))
    ((mean, sd),) = of_variances(SQUARES[:1])
    assert f"'v' {mean:.3g} ± {sd:.2g}" in told(post)
    assert calls <= post.report.counts["likelihood: evaluations of its function"] + 2


def test_two_modes_of_a_beta():
    p = ep.Variable("p", ep.Beta(1.0, 1.0))
    normal = jax.scipy.stats.norm.logpdf
    post = ep.infer(
        ep.FactorGraph(ep.Density(lambda p: jnp.logaddexp(normal(p, 0.1, 0.03), normal(p, 0.9, 0.03) - 2), p))
    )
    x = np.linspace(0, 1, 20_001)
    mean, sd = moments(np.logaddexp(stats.norm.logpdf(x, 0.1, 0.03), stats.norm.logpdf(x, 0.9, 0.03) - 2), x)
    assert f"'p' {mean:.3g} ± {sd:.2g}" in told(post)


def test_what_a_function_gives():
    z, r = ep.Variable("z", ep.Normal(0.0, 0.5)), ep.Variable("r", ep.Gamma)
    law = stats.lognorm(s=np.sqrt(0.5))
    assert f"'r' {law.mean():.3g} ± {law.std():.2g}" in told(ep.infer(ep.FactorGraph(ep.BlackBox(jnp.exp, z, r))))


@pytest.mark.parametrize(
    ("prior", "log_factor"),
    [(ep.Gamma(3.0, 2.0), lambda x: 4 * jnp.log(x) - x), (ep.Beta(2.0, 3.0), lambda x: 5 * jnp.log(x) + jnp.log1p(-x))],
    ids=["gamma", "beta"],
)
def test_conjugate_likelihoods_have_no_note(prior, log_factor):
    post = ep.infer(ep.FactorGraph(ep.Density(log_factor, ep.Variable("x", prior))))
    assert post.report.status == "converged"
    assert post.report.notes == ()
