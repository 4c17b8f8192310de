"""Grids over two numbers of which one reaches much further than its core."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from meanmap import ep


@pytest.mark.parametrize("seed", [31, 32])
def test_a_change_point_is_exact_without_an_alarm(seed):
    generator = np.random.default_rng(seed)
    y = np.concatenate([generator.poisson(2, 20), generator.poisson(5, 15)])
    before, k, n = np.append(0, np.cumsum(y)[:-1]), np.arange(len(y)), len(y)
    a, b = ep.Variable("a", ep.Gamma(2.0, 1.0)), ep.Variable("b", ep.Gamma(2.0, 1.0))

    def log_likelihood(a, b):
        logs = before * jnp.log(a) - k * a + (y.sum() - before) * jnp.log(b) - (n - k) * b
        return jax.nn.logsumexp(logs) - jnp.log(n)

    post = ep.infer(ep.FactorGraph(ep.Density(log_likelihood, a, b)))
    assert post.report.status == "converged"
    one, other = 2 + before, 2 + y.sum() - before
    logs = special.gammaln(one) + special.gammaln(other) - one * np.log(1 + k) - other * np.log(1 + n - k)
    mass = np.exp(logs - special.logsumexp(logs))
    means = mass @ (one / (1 + k)), mass @ (other / (1 + n - k))
    np.testing.assert_allclose([post["a"].mean(), post["b"].mean()], means, rtol=1e-5)
    assert post.log_evidence == pytest.approx(special.logsumexp(logs) - np.log(n), abs=1e-5)


def test_a_number_with_a_tail_of_thousands_in_its_logarithm():
    t, b = ep.Variable("t", ep.Gamma(0.01, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda t, b: -t - b * b, t, b)))
    assert post.report.status == "converged"
    np.testing.assert_allclose([post["t"].mean(), post["t"].var()], [0.005, 0.0025], rtol=1e-4)
    assert post.log_evidence == pytest.approx(-0.01 * np.log(2) - np.log(3) / 2, abs=1e-6)
