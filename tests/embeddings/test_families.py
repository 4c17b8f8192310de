"""Exact embeddings of distributions against quadrature, the closed form of the draft, and Monte Carlo."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

import meanmap as mm
from meanmap.core import KindError, ParameterError, ShapeError
from meanmap.embeddings import FamilyEmbedding

ELL = 0.8
K = mm.kernels.RBF(ELL)
F = mm.families
AT = np.array([-1.0, 0.3, 2.0])

LAWS = {
    "normal": (F.Normal(0.5, 2.0), scipy.stats.norm(0.5, 2**0.5), (-14, 15)),
    "beta": (F.Beta(2.5, 4.0), scipy.stats.beta(2.5, 4.0), (0, 1)),
    "gamma": (F.Gamma(3.0, rate=2.0), scipy.stats.gamma(3.0, scale=0.5), (0, 30)),
    "laplace": (F.Laplace(0.2, 0.7), scipy.stats.laplace(0.2, 0.7), (-30, 30)),
    "uniform": (F.Uniform(-1.0, 2.0), scipy.stats.uniform(-1.0, 3.0), (-1, 2)),
}


def integral(g, law, ends):
    """E g(X) by quadrature, cut at the median, where densities may have a kink."""
    cuts = sorted({ends[0], float(law.ppf(1e-3)), float(law.median()), float(law.ppf(0.999)), ends[1]})
    pieces = pairwise(cuts)
    return sum(quad(lambda x: g(x) * law.pdf(x), a, b, epsabs=1e-14, epsrel=1e-13, limit=200)[0] for a, b in pieces)


def rbf(x, y):
    return np.exp(-((x - y) ** 2) / (2 * ELL**2))


@pytest.mark.parametrize("name", LAWS)
def test_embeddings_are_the_integrals(name):
    family, law, ends = LAWS[name]
    mu = mm.embed(family, K)
    expected = [integral(lambda x, t=t: rbf(x, t), law, ends) for t in AT]
    np.testing.assert_allclose(mu(AT), expected, atol=1e-12)
    np.testing.assert_allclose(mm.embed(family, 2.5 * K)(AT), 2.5 * np.array(expected), atol=1e-12)
    assert mu.norm() ** 2 == pytest.approx(integral(lambda x: mu([x])[0], law, ends), abs=1e-10)


@pytest.mark.parametrize("name", LAWS)
def test_mean_fourier_features_are_the_integrals(name):
    family, law, ends = LAWS[name]
    phi = mm.features.Fourier.draw(K, like=1, n_features=6, rng=0)
    exact = mm.embed(family, phi).coefficients
    expected = [integral(lambda x, j=j: phi([x])[0, j], law, ends) for j in range(6)]
    np.testing.assert_allclose(exact, expected, atol=1e-11)


@pytest.mark.parametrize(
    ("family", "law", "coordinate", "into"),
    [
        (F.Gamma(0.7, rate=3.0), scipy.stats.gamma(0.7, scale=1 / 3), "log", np.log),
        (F.Beta(0.6, 2.0), scipy.stats.beta(0.6, 2.0), "logit", scipy.special.logit),
    ],
)
def test_log_and_logit_coordinates(family, law, coordinate, into):
    mu = FamilyEmbedding.of(family, K, coordinate)
    # With u uniform, X = quantile(u): the integrand is bounded whatever the density does at zero.
    for t, value in zip(AT, mu(AT), strict=True):
        judge = quad(lambda u, t=t: rbf(into(law.ppf(u)), t), 0, 1, epsabs=1e-10, limit=400)[0]
        assert value == pytest.approx(judge, abs=1e-8)
    phi = mm.features.Fourier.draw(K, like=1, n_features=40, rng=1)
    values = phi(into(law.rvs(size=200_000, random_state=0)))
    z = (FamilyEmbedding.of(family, phi, coordinate).coefficients - values.mean(0)) / (values.std(0) / 200_000**0.5)
    assert np.abs(z).max() < 4.5
    with pytest.raises(KindError, match=f"one embedding is in coordinate '{coordinate}', the other in 'x'"):
        mu.inner(FamilyEmbedding.of(F.Normal.standard(), K))


def test_inner_products_of_normal_laws_are_those_of_the_draft():
    """Jitkrittum et al. (2015), draft, appendix B.3, in three dimensions with a lengthscale per column."""
    rng = np.random.default_rng(0)
    ell = np.array([0.5, 1.0, 2.0])
    means = rng.normal(size=(2, 3))
    roots = rng.normal(size=(2, 3, 3))
    p, q = (F.MultivariateNormal(m, a @ a.T + 0.1 * np.eye(3)) for m, a in zip(means, roots, strict=True))
    d_pq = np.linalg.inv(p.cov() + q.cov() + np.diag(ell**2))
    delta = means[0] - means[1]
    expected = np.sqrt(np.linalg.det(d_pq) / np.linalg.det(np.diag(ell**-2.0))) * np.exp(-delta @ d_pq @ delta / 2)
    k = mm.kernels.RBF(ell)
    assert mm.embed(p, k).inner(mm.embed(q, k)) == pytest.approx(expected, rel=1e-12)
    # And the embedding at points is the inner product with a point mass.
    x = rng.normal(size=(4, 3))
    shifted = np.linalg.inv(p.cov() + np.diag(ell**2))
    dx = x - means[0]
    values = np.sqrt(np.prod(ell**2) * np.linalg.det(shifted)) * np.exp(-np.einsum("ni,ij,nj->n", dx, shifted, dx) / 2)
    np.testing.assert_allclose(mm.embed(p, k)(x), values, rtol=1e-12)


def test_mixtures_are_weighted_sums():
    parts = F.Normal(np.array([-1.0, 2.0]), np.array([0.5, 1.5]))
    mixture = mm.embed(F.Mixture(parts, [0.3, 0.7]), K)
    first, second = (mm.embed(F.Normal(m, v), K) for m, v in ((-1.0, 0.5), (2.0, 1.5)))
    combined = 0.3 * first + 0.7 * second
    np.testing.assert_allclose(mixture(AT), combined(AT), rtol=1e-13)
    assert mixture.norm() == pytest.approx(combined.norm(), rel=1e-12)
    assert mixture.inner(first) == pytest.approx(combined.inner(first), rel=1e-12)
    assert (mixture - combined).norm() < 1e-7


def test_kinds_of_laws_and_samples_mix_in_one_space():
    gamma, laplace = mm.embed(LAWS["gamma"][0], K), mm.embed(LAWS["laplace"][0], K)
    judge = integral(lambda x: gamma([x])[0], LAWS["laplace"][1], LAWS["laplace"][2])
    assert gamma.inner(laplace) == pytest.approx(judge, abs=1e-10)
    sample = mm.embed(np.array([0.0, 1.0]), K)
    assert sample.inner(gamma) == pytest.approx(gamma([0.0, 1.0]).mean(), rel=1e-13)
    f = sample - 2 * gamma + laplace / 2
    np.testing.assert_allclose(f(AT), sample(AT) - 2 * gamma(AT) + laplace(AT) / 2, atol=1e-14)
    square = (
        sample.norm() ** 2 + 4 * gamma.norm() ** 2 + laplace.norm() ** 2 / 4
        - 4 * sample.inner(gamma) + sample.inner(laplace) - 2 * gamma.inner(laplace)
    )  # fmt: skip
    assert f.norm() ** 2 == pytest.approx(square, abs=1e-14)
    assert (3 * gamma).inner(2 * gamma) == pytest.approx(6 * gamma.norm() ** 2)


def test_batches_of_laws_and_gradients():
    means = np.array([0.0, 1.0, 2.0])
    batch = mm.embed(F.Normal(means, 1.0), K)
    one = mm.embed(F.Normal(0.3, 0.5), K)
    assert batch.batch == (3,)
    assert batch(AT).shape == (3, 3)
    np.testing.assert_allclose(batch.inner(one), [mm.embed(F.Normal(m, 1.0), K).inner(one) for m in means], rtol=1e-13)
    np.testing.assert_allclose((batch * means)(AT), batch(AT) * means[:, None], rtol=1e-14)
    assert (batch - one).norm().shape == (3,)
    with jax.enable_x64(True):

        def value(m):
            return mm.embed(F.Normal(m, jnp.asarray(1.0)), K)(jnp.asarray([0.5]))[0]

        h = 1e-6
        numeric = (value(jnp.asarray(0.2 + h)) - value(jnp.asarray(0.2 - h))) / (2 * h)
        assert float(jax.jit(jax.grad(value))(jnp.asarray(0.2))) == pytest.approx(float(numeric), rel=1e-6)


def test_messages():
    with pytest.raises(KindError, match=r"for the RBF kernel, not for Matern.*mm.features.Fourier.draw"):
        mm.embed(F.Normal.standard(), mm.kernels.Matern(1.0))
    with pytest.raises(ShapeError, match="the points have 2 columns; Normal has 1"):
        mm.embed(F.Normal.standard(), K)(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="lengthscale has 2 entries; Normal has dimension 1"):
        mm.embed(F.Normal.standard(), mm.kernels.RBF([1.0, 2.0]))
    with pytest.raises(ParameterError, match="coordinate is 'log'; Normal has x"):
        FamilyEmbedding.of(F.Normal.standard(), K, "log")
    with pytest.raises(KindError, match="PivotedCholesky has no exact mean"):
        mm.embed(F.Normal.standard(), mm.features.PivotedCholesky.fit(K, AT))
