"""Families and NumPyro's distributions say the same of the same law, in both directions."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from meanmap import families
from meanmap.core.errors import KindError
from meanmap.families import from_numpyro, to_numpyro

COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
PAIRS = {
    "normal": (lambda: dist.Normal(np.array([0.5, -1.0]), 2.0), families.Normal([0.5, -1.0], 4.0)),
    "multivariate": (
        lambda: dist.MultivariateNormal(np.ones(2), scale_tril=np.linalg.cholesky(COVARIANCE)),
        families.MultivariateNormal(np.ones(2), COVARIANCE),
    ),
    "beta": (lambda: dist.Beta(2.0, np.array([3.0, 4.0])), families.Beta(2.0, [3.0, 4.0])),
    "gamma": (lambda: dist.Gamma(2.0, 0.5), families.Gamma(2.0, 0.5)),
    "exponential": (lambda: dist.Exponential(np.array([0.5, 2.0])), families.Gamma(1.0, [0.5, 2.0])),
    "bernoulli": (lambda: dist.Bernoulli(probs=0.3), families.Bernoulli(0.3)),
    "bernoulli logits": (lambda: dist.Bernoulli(logits=np.log(0.3 / 0.7)), families.Bernoulli(0.3)),
    "categorical": (lambda: dist.Categorical(probs=np.array([0.2, 0.5, 0.3])), families.Categorical([0.2, 0.5, 0.3])),
    "categorical logits": (
        lambda: dist.Categorical(logits=np.log(np.array([0.2, 0.5, 0.3])) + 1.0),
        families.Categorical([0.2, 0.5, 0.3]),
    ),
    "dirichlet": (lambda: dist.Dirichlet(np.array([1.0, 2.0, 3.0])), families.Dirichlet([1.0, 2.0, 3.0])),
    "laplace": (lambda: dist.Laplace(1.0, 2.0), families.Laplace(1.0, 2.0)),
    "uniform": (lambda: dist.Uniform(-1.0, 3.0), families.Uniform(-1.0, 3.0)),
    "delta": (lambda: dist.Delta(np.array([1.0, 2.0])), families.PointMass([1.0, 2.0])),
    "mixture": (
        lambda: dist.MixtureSameFamily(
            dist.Categorical(probs=np.array([0.2, 0.8])), dist.Normal(np.array([0.0, 3.0]), 1.0)
        ),
        families.Mixture(families.Normal([0.0, 3.0], 1.0), [0.2, 0.8]),
    ),
    "expanded": (lambda: dist.Normal(1.0, 1.0).expand([3]), families.Normal([1.0] * 3, 1.0)),
    "event": (lambda: dist.Normal(np.zeros(3), 1.0).to_event(1), families.Normal([0.0] * 3, 1.0)),
}


def leaves(distribution):
    """Its numbers; the constant that may be added to all logits of a categorical is taken out."""
    found = [np.asarray(leaf) for leaf in jax.tree.leaves(distribution)]
    return [leaf - leaf.mean() for leaf in found] if isinstance(distribution, families.Categorical) else found


@pytest.mark.parametrize("name", PAIRS)
def test_parameters_there_and_back(name):
    make, ours = PAIRS[name]
    with jax.enable_x64(True):
        read, again = from_numpyro(make()), from_numpyro(to_numpyro(ours))
        for found in (read, again):
            assert type(found) is type(ours)
            assert found.shape == ours.shape
            for leaf, expected in zip(leaves(found), leaves(ours), strict=True):
                assert np.allclose(leaf, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_the_same_law(name):
    """Log densities at NumPyro's own draws, moments, and those of what went back."""
    make, ours = PAIRS[name]
    with jax.enable_x64(True):
        theirs = make()
        read, back = from_numpyro(theirs), to_numpyro(ours)
        draws = np.asarray(theirs.sample(jax.random.key(0), (4,)))
        expected, found = np.asarray(theirs.log_prob(draws)), np.asarray(back.log_prob(draws))
        axis = tuple(range(expected.ndim, found.ndim))  # `to_event` sums over what is a batch here
        assert np.allclose(found.sum(axis), expected)
        assert np.allclose(read.mean(), ours.mean())
        assert np.allclose(read.var(), ours.var())
        if name != "delta":
            assert np.allclose(np.asarray(read.log_density(draws)).sum(axis), expected)


def test_a_prior_of_numpyro_in_expectation_propagation():
    from meanmap import ep

    mu = ep.Variable("mu", from_numpyro(dist.Normal(0.0, 1.0)))
    assert ep.infer(ep.FactorGraph(ep.Gaussian(mu, observed=2.0)))["mu"].mean() == pytest.approx(1.0)


def test_what_has_no_counterpart():
    with pytest.raises(KindError, match="Cauchy has no counterpart here; from_numpyro reads Normal, "):
        from_numpyro(dist.Cauchy(0.0, 1.0))
    with pytest.raises(KindError, match="distribution is a float; expected one of numpyro"):
        from_numpyro(1.0)
    with pytest.raises(KindError, match="Flat has no known counterpart"):
        to_numpyro(families.Flat())
