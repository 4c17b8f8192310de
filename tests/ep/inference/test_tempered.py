"""Beliefs of other families than Normals beside draws from the posterior."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import betaln
from scipy import special, stats

from meanmap import ep


def mixture(y, switch=False):
    """Two components with a weight, summed over in the density or by a label for each row."""
    a, b = ep.Variable("a", ep.Normal(-1.0, 9.0)), ep.Variable("b", ep.Normal(1.0, 9.0))
    w = ep.Variable("w", ep.Beta(1.0, 1.0))
    if not switch:

        def log_mixture(a, b, w, y):
            return jnp.logaddexp(jnp.log(w) - (y - a) ** 2 / 2, jnp.log1p(-w) - (y - b) ** 2 / 2)

        return ep.FactorGraph(ep.Density(log_mixture, a, b, w, y))
    s = ep.Variable("s", ep.Bernoulli, plate=len(y))
    chosen = ep.Density(lambda s, a, b, y: -((y - jnp.where(s > 0.5, a, b)) ** 2) / 2, s, a, b, y)
    return ep.FactorGraph(ep.Bernoulli(w, s), chosen)


def share_of_the_other(y):
    """The share of the mass where a is above b, and the mean and standard deviation of a, on a grid."""
    axis, weights = np.linspace(-4.5, 4.5, 181), np.linspace(0.01, 0.99, 50)
    a, b, w = np.meshgrid(axis, axis, weights, indexing="ij")
    logs = stats.norm.logpdf(a, -1, 3) + stats.norm.logpdf(b, 1, 3)
    for each in y:
        logs += np.logaddexp(np.log(w) - (each - a) ** 2 / 2, np.log1p(-w) - (each - b) ** 2 / 2)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = (mass * a).sum()
    return mass[a > b].sum(), mean, np.sqrt((mass * (a - mean) ** 2).sum())


@pytest.mark.parametrize(("switch", "points"), [(False, 1000), pytest.param(True, 20_000, marks=pytest.mark.slow)])
def test_the_other_mode_of_a_mixture_with_a_weight_is_found(switch, points):
    generator = np.random.default_rng(8)
    y = np.concatenate([generator.normal(-2, 1, 20), generator.normal(2, 1, 10)])
    post = ep.infer(mixture(y, switch), messages=ep.ImportanceSampling(points), rng=0)
    assert post.report.status == "converged, but at one of several modes"
    (note,) = (each for each in post.report.notes if "another mode" in each)
    share, mean, sd = share_of_the_other(y)
    # Few draws pass between modes: shares of the modes are rough.
    assert float(re.search(r"roughly (\d+)%", note)[1]) / 100 == pytest.approx(share, abs=0.15)
    found = re.search(r"'a' (\S+) ± ([^, ]+)", note)
    assert float(found[1]) == pytest.approx(mean, abs=0.15 * 4)
    assert float(found[2]) == pytest.approx(sd, rel=0.25)
    assert abs(post["a"].mean() - mean) > 4 * post["a"].sd()


def test_beliefs_of_gammas_are_compared_with_draws():
    y = stats.beta(2, 5).rvs(25, random_state=4)
    a, b = ep.Variable("a", ep.Gamma(2.0, 0.5)), ep.Variable("b", ep.Gamma(2.0, 0.5))

    def log_beta(a, b, y):
        return -betaln(a, b) + (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y)

    post = ep.infer(ep.FactorGraph(ep.Density(log_beta, a, b, y)), ep.Quadrature(), rng=0)
    assert post.report.status != "converged"  # separate beliefs about both are too narrow
    (note,) = (each for each in post.report.notes if "draws from the posterior" in each)
    axis = np.exp(np.linspace(-2, 4, 400))
    one, other = np.meshgrid(axis, axis, indexing="ij")
    logs = 2 * np.log(one) + 2 * np.log(other) - (one + other) / 2 - 25 * special.betaln(one, other)
    mass = np.exp(logs + (one - 1) * np.log(y).sum() + (other - 1) * np.log1p(-y).sum())
    mass /= mass.sum()
    mean = (mass * one).sum()
    sd = np.sqrt((mass * (one - mean) ** 2).sum())
    found = re.search(r"'a' (\S+) ± (\S+),", note)
    assert [float(found[1]), float(found[2])] == pytest.approx([mean, sd], rel=0.15)


def test_no_word_where_there_is_one_mode():
    y = np.concatenate([np.full(10, -2.0), np.full(10, 2.0)]) + np.linspace(-1, 1, 20)
    m, t = ep.Variable("m", ep.Normal(0.0, 100.0)), ep.Variable("t", ep.Gamma(1.0, 1.0))
    normal = ep.Density(lambda m, t, y: jnp.log(t) / 2 - t * (y - m) ** 2 / 2, m, t, y)
    post = ep.infer(ep.FactorGraph(normal), ep.Quadrature())
    assert post.report.status == "converged"
    assert not [note for note in post.report.notes if "draws" in note]
