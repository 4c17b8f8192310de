"""What is particular to one family: constructors, quantiles, accuracy at large parameters, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap.core import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Laplace,
    Mixture,
    MultivariateNormal,
    Normal,
    PointMass,
    Uniform,
)

P = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])


SCALAR = {
    "Normal(1, 4)": lambda: (Normal(1.0, 4.0), scipy.stats.norm(1.0, 2.0)),
    "Beta(2, 5)": lambda: (Beta(2.0, 5.0), scipy.stats.beta(2.0, 5.0)),
    "Beta(2000, 3000)": lambda: (Beta(2000.0, 3000.0), scipy.stats.beta(2000.0, 3000.0)),
    "Beta(0.3, 0.4)": lambda: (Beta(0.3, 0.4), scipy.stats.beta(0.3, 0.4)),
    "Gamma(2, 5)": lambda: (Gamma(2.0, 5.0), scipy.stats.gamma(2.0, scale=0.2)),
    "Gamma(0.05, 1e-3)": lambda: (Gamma(0.05, 1e-3), scipy.stats.gamma(0.05, scale=1e3)),
    "Laplace(1, 2)": lambda: (Laplace(1.0, 2.0), scipy.stats.laplace(1.0, 2.0)),
    "Uniform(-1, 3)": lambda: (Uniform(-1.0, 3.0), scipy.stats.uniform(-1.0, 4.0)),
}


@pytest.mark.parametrize("case", SCALAR)
def test_scalar_laws_against_scipy(case):
    law, judge = SCALAR[case]()
    x = judge.ppf(P)
    np.testing.assert_allclose(law.quantile(P), x, rtol=1e-9)
    np.testing.assert_allclose(law.cdf(x), P, rtol=1e-9)
    np.testing.assert_allclose(law.log_density(x[1:]), judge.logpdf(x[1:]), rtol=1e-10, atol=1e-9)
    assert law.mean() == pytest.approx(judge.mean())
    assert law.sd() == pytest.approx(judge.std())
    assert law.entropy() == pytest.approx(float(judge.entropy()), rel=1e-9)


def test_densities_outside_the_support():
    for law, x in ((Beta(2.0, 2.0), [-0.1, 1.1]), (Gamma(2.0, 1.0), [-1.0, -2.0]), (Uniform(0.0, 1.0), [-1.0, 2.0])):
        np.testing.assert_array_equal(law.log_density(x), -np.inf)
    np.testing.assert_array_equal(Bernoulli(0.3).log_density([0.5, 2.0]), -np.inf)
    np.testing.assert_array_equal(Categorical([0.5, 0.5]).log_density([0.5, 2, -1]), -np.inf)
    np.testing.assert_array_equal(Dirichlet([2.0, 2.0]).log_density([[0.5, 0.6], [-0.1, 1.1]]), -np.inf)


def test_densities_at_the_edges():
    np.testing.assert_allclose(Beta([1.0, 2.0, 0.5], 2.0).log_density(0.0), [np.log(2), -np.inf, np.inf])
    np.testing.assert_allclose(Beta(2.0, [1.0, 2.0, 0.5]).log_density(1.0), [np.log(2), -np.inf, np.inf])
    np.testing.assert_allclose(Gamma([1.0, 2.0, 0.5], 3.0).log_density(0.0), [np.log(3), -np.inf, np.inf])


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_divergences_of_large_parameters_keep_their_digits(scale):
    # For large parameters a Gamma in log x is N(log m, 1/a) up to O(1/a): moving the mean by one sd costs 1/2.
    p, q = Gamma(scale, scale), Gamma(scale, scale * (1 + 1 / np.sqrt(scale)))
    r = 1 + 1 / np.sqrt(scale)
    assert p.kl(q) == pytest.approx(scale * (1 / np.sqrt(scale) - np.log1p(1 / np.sqrt(scale))), rel=1e-9)
    assert r > 1
    # Beta(a, a) against Beta(a + h, a + h): Fisher information in a, 2ψ′(a) − 4ψ′(2a) ≈ 1/(2a²), gives h²/(4a²).
    h = 1e-3 * scale
    assert Beta(scale, scale).kl(Beta(scale + h, scale + h)) == pytest.approx(0.25e-6, rel=1e-2)
    assert Beta(scale, scale).entropy() == pytest.approx(
        0.5 * np.log(2 * np.pi * np.e / (8 * scale + 4)), abs=1 / scale
    )


def test_matching_the_variance_instead():
    rng = np.random.default_rng(0)
    x, weights = rng.beta(2.0, 5.0, size=2000), rng.normal(size=2000)
    w = np.exp(weights) / np.exp(weights).sum()
    for kind in (Beta, Gamma):
        matched = kind.from_weighted_samples(x, weights, match="variance")
        assert matched.mean() == pytest.approx(w @ x)
        assert matched.var() == pytest.approx(w @ (x - w @ x) ** 2)
        projected = kind.from_weighted_samples(x, weights)
        assert projected.expected_statistics[0] == pytest.approx(w @ np.log(x))
        with pytest.raises(InputError, match="match is 'median'; expected 'statistics' or 'variance'"):
            kind.from_weighted_samples(x, weights, match="median")


def test_narrow_normal_far_from_zero_keeps_its_variance():
    x = 1e6 + 1e-3 * np.array([-1.0, 0.0, 1.0])
    assert Normal.from_weighted_samples(x, np.zeros(3)).var() == pytest.approx(2e-6 / 3, rel=1e-6)


def test_multivariate_normal_against_dense_formulas():
    mean, covariance = np.array([1.0, -1.0, 0.5]), np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]])
    law = MultivariateNormal(mean, covariance)
    np.testing.assert_allclose(law.precision, np.linalg.inv(covariance), rtol=1e-12)
    np.testing.assert_allclose(law.cov(), covariance, rtol=1e-12)
    np.testing.assert_allclose(law.var(), np.diag(covariance), rtol=1e-12)
    w = np.random.default_rng(0).normal(size=(7, 3))
    exact = np.exp(1j * w @ mean - np.einsum("wi,ij,wj->w", w, covariance, w) / 2)
    np.testing.assert_allclose(law.characteristic_function(w), exact, atol=1e-14)
    draws = law.sample(20_000, rng=3)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5 * 2 * np.sqrt(2 / 20_000))
    assert "mean=[1, -1, 0.5]" in repr(law)


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"variance is -1\. at \[1\]; expected values above 0"):
        Normal(0.0, [1.0, -1.0])
    with pytest.raises(ParameterError, match=r"a is 0\.; expected values above 0"):
        Beta(0.0, 1.0)
    with pytest.raises(ParameterError, match="b is -2"):
        Beta(1.0, -2.0)
    with pytest.raises(ParameterError, match="shape is -1"):
        Gamma(-1.0, 1.0)
    with pytest.raises(ParameterError, match=r"rate is 0\. at \[0, 1\], \[1, 1\]"):
        Gamma(1.0, [[1.0, 0.0], [2.0, 0.0]])
    with pytest.raises(ParameterError, match="between 0 and 1; for certainty use PointMass"):
        Bernoulli([0.5, 1.0])
    with pytest.raises(ParameterError, match="sum to 1; for certainty use PointMass"):
        Categorical([0.5, 0.6])
    with pytest.raises(ShapeError, match="last axis has length 1; expected 2 or more labels"):
        Categorical([1.0])
    with pytest.raises(ParameterError, match=r"concentration is \[ 1\. -1\.\]"):
        Dirichlet([1.0, -1.0])
    with pytest.raises(ShapeError, match=r"concentration has shape \(\); expected at least 1 axes"):
        Dirichlet(1.0)
    with pytest.raises(ShapeError, match="last axis has length 1; expected 2 or more entries"):
        Dirichlet([1.0])
    with pytest.raises(ParameterError, match=r"scale is 0\."):
        Laplace(0.0, 0.0)
    with pytest.raises(ParameterError, match="high is 0"):
        Uniform(1.0, 0.0)
    with pytest.raises(ParameterError, match="mean is 2"):
        Beta.from_mean_variance(2.0, 0.1)
    with pytest.raises(ParameterError, match=r"variance is 0\.3; expected values above 0 and below mean \(1 - mean\)"):
        Beta.from_mean_variance(0.5, 0.3)
    with pytest.raises(ParameterError, match="mean is -2"):
        Gamma.from_mean_variance(-2.0, 0.1)
    with pytest.raises(ParameterError, match=r"the mean is 1\.; expected values between 0 and 1"):
        Bernoulli.from_moments(1.0)


def test_bad_covariances():
    with pytest.raises(ParameterError, match=r"covariance is not symmetric: entries differ from the transpose by 0\.1"):
        MultivariateNormal([0.0, 0.0], [[1.0, 0.1], [0.0, 1.0]])
    with pytest.raises(ParameterError, match=r"not positive definite at \[1\]: its least eigenvalue is -1"):
        MultivariateNormal(np.zeros((2, 2)), [np.eye(2), [[1.0, 2.0], [2.0, 1.0]]])
    with pytest.raises(ShapeError, match=r"got a vector of length 2 and a matrix of shape \(3, 3\)"):
        MultivariateNormal([0.0, 0.0], np.eye(3))
    with pytest.raises(ShapeError, match=r"covariance has shape \(2,\); expected at least 2 axes"):
        MultivariateNormal([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ParameterError, match="precision is not symmetric"):
        MultivariateNormal.from_natural([0.0, 0.0], [[1.0, 0.1], [0.0, 1.0]])
    with pytest.raises(InputError, match="covariance holds NaN"):
        MultivariateNormal([0.0, 0.0], [[1.0, np.nan], [np.nan, 1.0]])
    with pytest.raises(ParameterError, match="least eigenvalue of the covariance is -"):
        MultivariateNormal.from_moments([1.0, 1.0], -np.eye(2) / 4)


def test_bad_draws_and_probabilities():
    with pytest.raises(ParameterError, match="draws above 0"):
        Gamma.from_weighted_samples([1.0, 0.0], [0.0, 0.0])
    with pytest.raises(ParameterError, match=r"x is 1\. at \[1\]; expected draws strictly between 0 and 1"):
        Beta.from_weighted_samples([0.5, 1.0], [0.0, 0.0])
    with pytest.raises(ParameterError, match="zeros and ones"):
        Bernoulli.from_weighted_samples([0.5, 1.0], [0.0, 0.0])
    with pytest.raises(ParameterError, match="every entry above 0"):
        Dirichlet.from_weighted_samples([[0.5, 0.5], [1.0, 0.0]], [0.0, 0.0])
    with pytest.raises(ParameterError, match="not labels"):
        Categorical.from_weighted_samples([0.5, 1.0], [0.0, 0.0])
    with pytest.raises(ParameterError, match="x holds label 3; expected labels below k=2"):
        Categorical.from_weighted_samples([3, 1], [0.0, 0.0], k=2)
    with pytest.raises(ParameterError, match="k is None"):
        jax.jit(lambda x: Categorical.from_weighted_samples(x, jnp.zeros(2)).logits)(jnp.array([0, 1]))
    with pytest.raises(EmptyError, match="x has no draws"):
        Categorical.from_weighted_samples([], [])
    with pytest.raises(ParameterError, match=r"use jax\.nn\.one_hot"):
        Categorical.statistics([0, 1])
    with pytest.raises(ShapeError, match="expected draws along the first axis"):
        Normal.from_weighted_samples(1.0, [0.0])
    with pytest.raises(ParameterError, match=r"q holds values outside \[0, 1\]"):
        Normal().quantile(1.5)
    with pytest.raises(KindError, match="MultivariateNormal has no quantiles here"):
        MultivariateNormal.standard(2).quantile(0.5)
    with pytest.raises(KindError, match="Categorical has no distribution function"):
        Categorical.standard(3).cdf(1)
    for law in (Beta(1.0, 2.0), Gamma(1.0, 2.0)):
        with pytest.raises(KindError, match="computed by SciPy on the host: call quantile outside jit"):
            jax.jit(lambda p, law=law: law.quantile(p))(0.5)


def test_mixture():
    parts = Normal([[-1.0, 1.0], [0.0, 4.0]], [1.0, 0.25])
    mixture = Mixture(parts, [[0.5, 0.5], [0.2, 0.8]])
    assert mixture.shape == (2,)
    np.testing.assert_allclose(mixture.mean(), [0.0, 3.2])
    np.testing.assert_allclose(mixture.var(), [1.625, 0.2 * 1 + 0.8 * (0.25 + 16) - 3.2**2])
    x = np.array([0.3, 3.0])
    density = [
        w @ scipy.stats.norm.pdf(xi, m, [1.0, 0.5]) for w, xi, m in zip(mixture.weights, x, parts.mean(), strict=True)
    ]
    np.testing.assert_allclose(mixture.log_density(x), np.log(density), rtol=1e-12)
    projected = mixture.project()
    np.testing.assert_allclose(projected.mean(), mixture.mean(), atol=1e-14)
    np.testing.assert_allclose(projected.var(), mixture.var(), rtol=1e-12)
    assert mixture[0].shape == ()
    assert mixture[0].cdf(0.0) == pytest.approx(0.5 * (scipy.stats.norm.cdf(1) + scipy.stats.norm.cdf(-2)))
    vectors = Mixture(MultivariateNormal.standard(2, (3,)), np.ones(3) / 3)
    assert vectors.sample(5, rng=0).shape == (5, 2)
    assert vectors.log_density(np.zeros((4, 2))) == pytest.approx(-np.log(2 * np.pi))
    single = jax.jit(lambda m: m.var())(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), mixture))
    assert single.dtype == jnp.float32
    with pytest.raises(KindError, match="components is a list"):
        Mixture([Normal()], [1.0])
    with pytest.raises(ShapeError, match="components is one distribution"):
        Mixture(Normal(), [1.0])
    with pytest.raises(ShapeError, match="got 2 components but 3 weights"):
        Mixture(parts, np.ones(3) / 3)
    with pytest.raises(ParameterError, match="at least 0 that sum to 1"):
        Mixture(parts, [1.5, -0.5])
    with pytest.raises(KindError, match="Laplace is not an exponential family"):
        Mixture(Laplace([0.0, 1.0]), [0.5, 0.5]).project()
    assert isinstance(PointMass(1.0).sample(2, rng=0), np.ndarray)


@pytest.mark.parametrize(
    "family",
    [
        Normal([0.0, 1.0], [1.0, 4.0]),
        MultivariateNormal([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]]),
        Dirichlet([[1.0, 2.0, 3.0], [0.1, 4.0, 1.0]]),
        Categorical([[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]]),
        PointMass([1.0, 2.0], event_axes=1),
        Mixture(Normal([0.0, 3.0], 1.0), [0.3, 0.7]),
        Mixture(MultivariateNormal([[0.0, 0.0], [3.0, 1.0]], np.eye(2)), [0.3, 0.7]),
        Mixture(Dirichlet([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]]), [0.3, 0.7]),
    ],
    ids=repr,
)
def test_every_family_has_a_covariance(family):
    """Of a number it is the variance; of several entries a matrix, symmetric, with the variances on its diagonal."""
    cov, var = family.cov(), family.var()
    if var.ndim == len(family.shape):
        np.testing.assert_array_equal(cov, var)
        return
    assert cov.shape == (*var.shape, var.shape[-1])
    np.testing.assert_allclose(np.diagonal(cov, axis1=-2, axis2=-1), var, rtol=1e-13)
    np.testing.assert_allclose(cov, np.swapaxes(cov, -2, -1), atol=1e-15)


def test_covariances_are_those_of_the_formulas():
    a = np.array([1.0, 2.0, 3.0])
    expected = (np.diag(a) * 6 - np.outer(a, a)) / (36 * 7)
    np.testing.assert_allclose(Dirichlet(a).cov(), expected, rtol=1e-13)
    p = np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(Categorical(p).cov(), np.diag(p) - np.outer(p, p), rtol=1e-12)
    law = Mixture(MultivariateNormal([[0.0, 0.0], [3.0, 1.0]], np.eye(2)), [0.3, 0.7])
    np.testing.assert_allclose(law.cov(), np.eye(2) + 0.21 * np.array([[9.0, 3.0], [3.0, 1.0]]), rtol=1e-12)
