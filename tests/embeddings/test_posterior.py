import numpy as np
import pytest
import scipy.sparse
import scipy.stats

import meanmap as mm
from meanmap.core.errors import EmptyError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Matern, Smoothed

FAILURE_RATE = 1e-5


def by_hand(x, kernel, z, noise, at):
    """Mean and covariance of a Gaussian process given noisy values, from the joint normal law."""
    prior = Smoothed(kernel)
    prior = (kernel(z)[0, 0] / prior(z)[0, 0]) * prior
    observed = kernel(x, z).mean(axis=0)
    whole = prior(z) + noise
    cross = prior(at, z)
    mean = cross @ np.linalg.solve(whole, observed)
    return mean, prior(at) - cross @ np.linalg.solve(whole, cross.T)


@pytest.mark.parametrize("kernel", [RBF(0.7), RBF([0.7, 1.5]), Matern(1.0, 1.5)])
@pytest.mark.parametrize("noise", ["empirical", 1.0])
def test_the_posterior_is_that_of_a_joint_normal_law(kernel, noise):
    rng = np.random.default_rng(0)
    x, z, at = rng.normal(size=(50, 2)), rng.normal(size=(6, 2)), rng.normal(size=(9, 2))
    covariance = np.cov(kernel(x, z).T) / 50 + 1e-8 * np.eye(6) if noise == "empirical" else np.eye(6) / 50
    g = mm.embeddings.posterior_embedding(x, kernel, landmarks=z, noise=noise)
    mean, cov = by_hand(x, kernel, z, covariance, at)
    np.testing.assert_allclose(g.mean(at), mean, atol=1e-7)
    np.testing.assert_allclose(g.cov(at), cov, atol=1e-7)
    np.testing.assert_allclose(g.sd(at), np.sqrt(np.diag(cov)), atol=1e-6)


@pytest.mark.parametrize("kernel", [RBF([0.7, 1.5]), RBF([0.7, 1.5]) + RBF([0.2, 0.4])], ids=["one", "a sum"])
def test_units_do_not_matter(kernel):
    """The volume under a kernel has a unit: as a prior's size it made intervals of nothing, or of all."""
    rng = np.random.default_rng(6)
    x, at, units = rng.normal(size=(50, 2)), rng.normal(size=(5, 2)), np.array([1e-6, 1e3])
    terms = [RBF(each.lengthscale * units) for each in (getattr(kernel, "members", (kernel,)))]
    scaled = terms[0] if len(terms) == 1 else terms[0] + terms[1]
    plain, other = (
        mm.embeddings.posterior_embedding(x * u, k, landmarks=x[:9] * u)
        for u, k in ((np.ones(2), kernel), (units, scaled))
    )
    np.testing.assert_allclose(other.mean(at * units), plain.mean(at), rtol=1e-6)
    np.testing.assert_allclose(other.interval(at * units), plain.interval(at), rtol=1e-5, atol=1e-8)
    with pytest.raises(ParameterError, match="out of range: change the units of the columns"):
        mm.embeddings.posterior_embedding(x * 1e-200, RBF([1e-200, 1e-200]))


def test_with_the_kernel_as_prior_it_is_the_shrinkage_estimate():
    """Flaxman et al. (2016), after eq. 8: r = k, τ² = n² λ."""
    x = np.random.default_rng(1).normal(size=(30, 1))
    kernel, ridge = RBF(1.0), 0.01
    g = mm.embeddings.posterior_embedding(x, kernel, prior=kernel, landmarks=x, noise=30**2 * ridge)
    gram = kernel(x)
    expected = gram @ np.linalg.solve(gram + 30 * ridge * np.eye(30), gram.mean(axis=1))
    np.testing.assert_allclose(g.mean(x), expected, atol=1e-10)
    shrunk = mm.embed(x, kernel, estimator="shrinkage", ridge=ridge)
    np.testing.assert_allclose(g.mean(x), shrunk(x), atol=1e-8)


def mixture(rng, n):
    """Three normals, whose embedding under an RBF kernel is known."""
    return rng.choice([-1.5, 0.0, 1.2], n) + 0.4 * rng.normal(size=n)


def truth(at, lengthscale):
    variance = lengthscale**2 + 0.4**2
    return np.mean(
        [lengthscale / np.sqrt(variance) * np.exp(-((at - c) ** 2) / 2 / variance) for c in (-1.5, 0.0, 1.2)], axis=0
    )


@pytest.mark.parametrize(("n", "lengthscale"), [(50, 1.0), (400, 0.25), (400, 1.0)])
def test_intervals_cover_as_they_say(n, lengthscale):
    """Share of [-2.5, 3.5] where the 80% interval holds the truth, over 60 samples: .76 to .88."""
    at = np.linspace(-2.5, 3.5, 61)
    shares = []
    for seed in range(60):
        g = mm.embeddings.posterior_embedding(mixture(np.random.default_rng(seed), n), RBF(lengthscale))
        low, high = g.interval(at, 0.8)
        shares.append(np.mean((low < truth(at, lengthscale)) & (truth(at, lengthscale) < high)))
    assert 0.76 <= np.mean(shares) <= 0.88, np.mean(shares)


def test_draws_have_the_law_they_are_drawn_from():
    x = np.random.default_rng(2).normal(size=60)
    g, at = mm.embeddings.posterior_embedding(x, RBF(1.0)), np.array([-1.0, 0.0, 2.0])
    draws = g.sample(at, 4000, rng=0)
    assert draws.shape == (4000, 3)
    for i in range(3):
        assert scipy.stats.kstest((draws[:, i] - g.mean(at)[i]) / g.sd(at)[i], "norm").pvalue > FAILURE_RATE
    np.testing.assert_allclose(np.corrcoef(draws.T)[0, 1], g.cov(at)[0, 1] / g.sd(at)[:2].prod(), atol=0.1)
    assert (g.sample(at, 2, rng=7) == g.sample(at, 2, rng=7)).all()


def test_the_witness_has_its_doubt():
    rng = np.random.default_rng(3)
    k = RBF(1.0)
    first = mm.embeddings.posterior_embedding(rng.normal(size=200), k)
    witness = first - mm.embeddings.posterior_embedding(rng.laplace(3.0, 1.0, size=200), k)
    at = np.array([0.0, 3.0])
    np.testing.assert_allclose(witness.cov(at), witness.first.cov(at) + witness.second.cov(at))
    assert witness.excludes_zero(at, 0.99).all()
    assert witness.mean(at)[0] > 0 > witness.mean(at)[1]
    same = first - mm.embeddings.posterior_embedding(rng.normal(size=200), k)
    assert same.excludes_zero(np.linspace(-2, 2, 41), 0.95).mean() < 0.5


def test_many_points_take_landmarks_that_span_them():
    g = mm.embeddings.posterior_embedding(np.random.default_rng(4).normal(size=(20_000, 2)), RBF(1.0))
    assert len(g.landmarks) <= 200
    assert g.mean([[0.0, 0.0]])[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        (([0.0], RBF(1.0)), {}, EmptyError, "at least 2"),
        (([0.0, 1.0], mm.kernels.Laplace(1.0)), {}, KindError, "pass prior="),
        (([0.0, 1.0], RBF(1.0)), {"noise": -1.0}, ParameterError, "expected 'empirical'"),
        (([0.0, 1.0], RBF(1.0)), {"landmarks": np.eye(3)}, ShapeError, "differ in their columns"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.embeddings.posterior_embedding(*arguments, **settings)


def test_sparse_points_are_refused_in_words():
    with pytest.raises(KindError, match=r"x is sparse, .* pass x\.toarray\(\)"):
        mm.embeddings.posterior_embedding(scipy.sparse.csr_array(np.eye(3)), RBF(1.0))


def test_bad_questions():
    g = mm.embeddings.posterior_embedding([0.0, 1.0, 3.0], RBF(1.0))
    with pytest.raises(ParameterError, match="between 0 and 1"):
        g.interval([0.0], 80)
    with pytest.raises(ParameterError, match="at least 1"):
        g.sample([0.0], 0)
    with pytest.raises(ShapeError, match="differ in their columns"):
        g.mean([[0.0, 1.0]])
