"""Empirical, weighted and shrinkage estimates against dense formulas and refits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core import EmptyError, InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.embeddings import FamilyEmbedding, shrinkage

K = mm.kernels.RBF(1.5)


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(25, 3))


def test_spectral_weights_are_the_operator_form(x):
    """(C + λ I)⁻¹ C μ̂ in coordinates that are exact on the sample."""
    lam, n = 0.03, len(x)
    gram = K(x)
    mu = mm.embed(x, K, "shrinkage", ridge=lam)
    np.testing.assert_allclose(mu.weights, np.linalg.solve(gram + n * lam * np.eye(n), gram.mean(1)), atol=1e-14)
    values, vectors = np.linalg.eigh(gram)
    phi = vectors * np.sqrt(np.maximum(values, 0))
    covariance = phi.T @ phi / n
    f = np.linalg.solve(covariance + lam * np.eye(n), covariance @ phi.mean(0))
    np.testing.assert_allclose(mu(x), phi @ f, atol=1e-12)
    assert mu.norm() == pytest.approx(np.linalg.norm(f), abs=1e-12)


def test_factors_are_those_of_the_papers(x):
    gram, n = K(x), len(x)
    off = (gram.sum() - np.trace(gram)) / (n * (n - 1))
    risk = (np.trace(gram) / n - off) / n
    np.testing.assert_allclose(mm.embed(x, K, "james-stein").weights, off / (off + risk) / n, rtol=1e-12)
    np.testing.assert_allclose(mm.embed(x, K, "ridge", ridge=0.25).weights, 0.8 / n, rtol=1e-14)


def refit_errors(gram, weights_of):
    """Mean over i of |estimate without i, minus φ(xᵢ)|², by refitting n times."""
    n = len(gram)
    errors = []
    for i in range(n):
        kept = np.delete(np.arange(n), i)
        w = weights_of(gram[np.ix_(kept, kept)])
        errors.append(w @ gram[np.ix_(kept, kept)] @ w - 2 * w @ gram[kept, i] + gram[i, i])
    return np.mean(errors)


def test_closed_form_leave_one_out_of_the_spectral_estimate_is_refitting(x):
    gram = K(x)
    vectors, values = shrinkage.spectrum_of_gram(gram)
    ridges = np.array([1e-5, 1e-3, 1e-1, 1.0, 30.0])
    closed = shrinkage.spectral_leave_one_out(vectors, values, np.diag(gram), ridges)

    def at(lam):
        return lambda g: np.linalg.solve(g + len(g) * lam * np.eye(len(g)), g.mean(1))

    np.testing.assert_allclose(closed, [refit_errors(gram, at(lam)) for lam in ridges], rtol=1e-9)


def test_closed_form_leave_one_out_is_right_where_features_are_fewer_than_points(x):
    phi = mm.features.Fourier.draw(K, like=3, n_features=8, rng=0)
    gram = phi(x) @ phi(x).T
    vectors, values = shrinkage.spectrum_of_features(phi(x))
    closed = shrinkage.spectral_leave_one_out(vectors, values, np.diag(gram), np.array([0.02]))
    expected = refit_errors(gram, lambda g: np.linalg.solve(g + len(g) * 0.02 * np.eye(len(g)), g.mean(1)))
    np.testing.assert_allclose(closed, expected, rtol=1e-9)
    dual = mm.embed(x, mm.features.FeatureKernel(phi), "shrinkage", ridge=0.02)
    np.testing.assert_allclose(mm.embed(x, phi, "shrinkage", ridge=0.02)(x), dual(x), atol=1e-12)
    scaled = mm.embed(x, mm.features.FeatureKernel(phi), "james-stein")
    np.testing.assert_allclose(mm.embed(x, phi, "james-stein")(x), scaled(x), atol=1e-12)


def test_the_factor_of_least_leave_one_out_error_is_found(x):
    gram, n = K(x), len(x)
    chosen = mm.embed(x, K, "ridge").weights[0] * n
    factors = np.linspace(0, 1, 2001)
    errors = [refit_errors(gram, lambda g, s=s: np.full(len(g), s / len(g))) for s in factors[::50]]
    best = refit_errors(gram, lambda g: np.full(len(g), chosen / len(g)))
    assert best <= min(errors) + 1e-12


def test_the_ridge_of_least_leave_one_out_error_is_chosen(x):
    gram = K(x)
    vectors, values = shrinkage.spectrum_of_gram(gram)
    ridges = shrinkage.RIDGE_GRID
    closed = shrinkage.spectral_leave_one_out(vectors, values, np.diag(gram), ridges)
    expected = mm.embed(x, K, "shrinkage", ridge=ridges[np.argmin(closed)]).weights
    np.testing.assert_allclose(mm.embed(x, K, "shrinkage").weights, expected, rtol=1e-12)


def risks(estimators, n, d, seeds, kernel_of):
    """Squared RKHS errors, (seeds, estimators), with the exact embedding of a mixture as the truth."""
    centres = np.random.default_rng(99).uniform(-5, 5, size=(4, d))
    truth = mm.families.Mixture(
        mm.families.MultivariateNormal(centres, np.broadcast_to(2 * np.eye(d), (4, d, d))), np.full(4, 0.25)
    )
    out = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        x = centres[rng.integers(4, size=n)] + np.sqrt(2) * rng.normal(size=(n, d))
        kernel = kernel_of(x)
        mu = mm.embed(truth, kernel)
        out.append([(mm.embed(x, kernel, name) - mu).norm() ** 2 for name in estimators])
    return np.array(out)


@pytest.mark.slow
def test_shrinkage_beats_the_average_for_small_samples_in_many_dimensions():
    """Muandet et al. (2016), section 6.1: small samples of a Gaussian mixture in 30 dimensions, median lengthscale."""
    names = ("empirical", "james-stein", "ridge", "shrinkage")
    errors = risks(names, 20, 30, 25, lambda x: mm.kernels.RBF(mm.median_heuristic(x)))
    gain = errors[:, :1] - errors[:, 1:]
    z = gain.mean(0) / (gain.std(0, ddof=1) / np.sqrt(len(gain)))
    assert (z > 3).all(), (z, errors.mean(0))


def test_weights_are_used_as_they_are(x):
    w = np.random.default_rng(1).normal(size=25)
    np.testing.assert_allclose(mm.embed(x, K, weights=w)(x), K(x) @ w, atol=1e-13)
    phi = mm.features.Fourier.draw(K, like=3, n_features=8, rng=0)
    np.testing.assert_allclose(mm.embed(x, phi, weights=w).coefficients, w @ phi(x), atol=1e-13)
    batch = mm.embed(x, phi, weights=np.stack([w, 2 * w]))
    np.testing.assert_allclose(batch.coefficients, np.stack([w @ phi(x), 2 * w @ phi(x)]), atol=1e-13)
    traced = jax.jit(lambda w: mm.embed(x, K, weights=w)(x))(jnp.asarray(w, jnp.float32))
    np.testing.assert_allclose(traced, K(x) @ w, atol=1e-4)


def test_batches_of_laws_are_points_of_a_kernel_on_distributions():
    laws = mm.families.Normal(np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 0.5]))
    k = mm.kernels.ExpectedProduct(mm.kernels.RBF(1.0))
    f = mm.embed(laws, k)
    assert f.weights.shape == (3,)
    np.testing.assert_allclose(f(laws), k(laws).mean(1), rtol=1e-12)
    assert isinstance(mm.embed(laws, mm.kernels.RBF(1.0)), FamilyEmbedding)


def test_messages(x):
    with pytest.raises(ParameterError, match=r"estimator is 'median'; expected one of 'empirical', 'james-stein'"):
        mm.embed(x, K, "median")
    with pytest.raises(ParameterError, match=r"ridge needs estimator='shrinkage' or 'ridge', not 'empirical'"):
        mm.embed(x, K, ridge=0.1)
    with pytest.raises(ParameterError, match=r"ridge is -1\.0; expected values above 0"):
        mm.embed(x, K, "shrinkage", ridge=-1.0)
    with pytest.raises(ParameterError, match="weights need estimator='empirical'"):
        mm.embed(x, K, "shrinkage", weights=np.ones(25))
    with pytest.raises(ShapeError, match=r"weights has shape \(24,\); expected \(25,\) or \(..., 25\)"):
        mm.embed(x, K, weights=np.ones(24))
    with pytest.raises(NonFiniteError, match="weights"):
        mm.embed(x, K, weights=np.full(25, np.nan))
    with pytest.raises(EmptyError, match="x has 1 point; expected at least 2"):
        mm.embed(x[:1], K, "shrinkage")
    with pytest.raises(EmptyError, match="x is empty"):
        mm.embed(x[:0], K)
    with pytest.raises(KindError, match=r"kernel is 'rbf'; expected a kernel such as mm.kernels.RBF\(1.0\)"):
        mm.embed(x, "rbf")
    with pytest.raises(InputError, match="chooses its shrinkage on the host: call it outside jit"):
        jax.jit(lambda x: mm.embed(x, K, "shrinkage").weights)(jnp.asarray(x))
    normal = mm.families.Normal.standard()
    for settings in ({"estimator": "shrinkage"}, {"weights": [1.0]}, {"estimator": "ridge", "ridge": 1.0}):
        with pytest.raises(ParameterError, match="exact: do not pass estimator, weights or ridge"):
            mm.embed(normal, K, **settings)
    with pytest.raises(KindError, match="a distribution's embedding needs one"):
        mm.embed(normal)


def test_no_kernel_is_chosen_under_jit(x):
    with pytest.raises(InputError, match="inside jit no kernel can be chosen from the data"):
        jax.jit(lambda x: mm.embed(x).weights)(jnp.asarray(x))
