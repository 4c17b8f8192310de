import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.families import Beta, Gamma, MultivariateNormal, Normal
from meanmap.features import FeatureKernel, Fourier, TwoStage, mean_features
from meanmap.kernels import (
    RBF,
    EmbeddingGaussian,
    ExpectedProduct,
    Laplace,
    Linear,
    Matern,
    MeanVariance,
    TupleProduct,
    TupleSum,
)


def messages(n, seed=0):
    rng = np.random.default_rng(seed)
    normal = Normal(rng.normal(0, 2, n), np.exp(rng.normal(0, 1, n)))
    return normal, Beta(rng.uniform(0.5, 9, n), rng.uniform(0.5, 9, n))


TUPLES = messages(40)


def rms(features, gram, data=TUPLES):
    phi = features(data)
    return np.sqrt(np.mean((phi @ phi.T - gram)[np.triu_indices(len(gram), 1)] ** 2))


@pytest.mark.parametrize("coordinate", ["auto", "x"])
@pytest.mark.parametrize(("d_in", "d_out", "most"), [(300, 500, 0.05), (1000, 2000, 0.03)])
def test_gram_of_features_is_near_the_kernel(coordinate, d_in, d_out, most):
    kernel = EmbeddingGaussian.at_scale_of(TUPLES, coordinate)
    gram = kernel(TUPLES)
    errors = [rms(TwoStage.draw(kernel, TUPLES, d_in, d_out, rng=seed), gram) for seed in range(4)]
    assert max(errors) < most


def test_phases_of_the_paper_are_no_worse_than_double():
    kernel = EmbeddingGaussian.at_scale_of(TUPLES, "x", "within")
    gram = kernel(TUPLES)
    assert rms(TwoStage.draw(kernel, TUPLES, 1000, 2000, "cos-phase", rng=0), gram) < 0.03


def test_algorithm_1_by_hand_for_normal_laws():
    """Lines 1-6 with the frequencies and phases of the features, by NumPy."""
    rng = np.random.default_rng(0)
    means, roots = rng.normal(size=(7, 2)), rng.normal(size=(7, 2, 2))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(2)
    laws = MultivariateNormal(means, covariances)
    kernel = EmbeddingGaussian(ExpectedProduct(RBF([1.0, 2.0])), width=0.4)
    psi = TwoStage.draw(kernel, laws, 50, 70, "cos-phase", rng=3)
    (inner,) = psi.inner
    w = inner.frequencies[0] / [1.0, 2.0]
    decay = np.exp(-np.einsum("di,nij,dj->nd", w, covariances, w) / 2)
    phi = np.sqrt(2 / 50) * np.cos(means @ w.T + inner.phases) * decay
    expected = np.sqrt(2 / 70) * np.cos(phi @ psi.frequencies.T / 0.4 + psi.phases)
    np.testing.assert_allclose(psi(laws), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["cos-sin", "cos-phase"])
@pytest.mark.parametrize("inner", [RBF(1.5), Matern(2.0), Laplace(2.0), 2.0 * RBF(1.0)], ids=repr)
def test_mean_features_of_bags_are_means_of_features(inner, kind):
    rng = np.random.default_rng(0)
    bags = [rng.normal(size=(size, 2)) for size in (1, 5, 30)]
    features = TwoStage.draw(ExpectedProduct(inner), bags, 40, kind=kind, rng=0)
    w = features.frequencies[0] / inner.kernel.lengthscale if hasattr(inner, "kernel") else None
    w = features.frequencies[0] / inner.lengthscale if w is None else w
    scale = np.sqrt(2 / 40 * inner.diag(np.zeros((1, 2)))[0])
    for i, bag in enumerate(bags):
        angles = bag @ w.T
        waves = [np.cos(angles), np.sin(angles)] if kind == "cos-sin" else [np.cos(angles + features.phases)]
        np.testing.assert_allclose(features(bags)[i], scale * np.concatenate(waves, 1).mean(0), atol=1e-13)


@pytest.mark.parametrize("places", [("x", "x"), ("x", "logit")])
def test_expected_product_features_approximate_it(places):
    kernel = ExpectedProduct.at_scale_of(TUPLES, places)
    gram = kernel(TUPLES)
    features = TwoStage.draw(kernel, TUPLES, d_in=20_000, rng=0)
    assert features.size == 20_000
    assert rms(features, gram) < 0.01
    product = TupleProduct(tuple(ExpectedProduct(k, p) for k, p in zip(kernel.kernel, places, strict=True)))
    joint = TwoStage.draw(product, TUPLES, d_in=20_000, rng=0)
    np.testing.assert_allclose(joint(TUPLES), features(TUPLES), atol=1e-13)


@pytest.mark.slow
def test_products_and_sums_have_features():
    first = EmbeddingGaussian.at_scale_of(TUPLES[0])
    second = MeanVariance.at_scale_of(TUPLES[1])
    product = TupleProduct((first, second))
    assert rms(TwoStage.draw(product, TUPLES, 1000, 2000, rng=0), product(TUPLES)) < 0.03
    total = TupleSum({"z": first, "p": ExpectedProduct(RBF(1.0), "logit")})
    named = {"z": TUPLES[0], "p": TUPLES[1]}
    features = TwoStage.draw(total, named, 1000, 2000, rng=0)
    assert features.size == 3_000
    assert rms(features, total(named), named) < 0.05
    whole = EmbeddingGaussian.at_scale_of(TUPLES) + EmbeddingGaussian.at_scale_of(TUPLES, widths="within")
    assert rms(TwoStage.draw(whole, TUPLES, 1000, 2000, rng=0), whole(TUPLES)) < 0.05
    fourier = TwoStage.draw(MeanVariance.at_scale_of(TUPLES), TUPLES, d_out=200, rng=0)
    assert isinstance(fourier, Fourier)


def test_the_seed_draws_them_again():
    kernel = EmbeddingGaussian.at_scale_of(TUPLES)
    psi = TwoStage.draw(kernel, TUPLES, 20, 30)
    again = TwoStage.draw(kernel, TUPLES, 20, 30, rng=psi.seed)
    np.testing.assert_array_equal(psi(TUPLES), again(TUPLES))
    with jax.enable_x64(True):
        assert TwoStage.draw(kernel, TUPLES, 20, 30, rng=jax.random.key(5)).seed == 5


def test_equal_messages_are_mapped_once_and_alike():
    """Two labels send two Betas; the table has the bits of the plain map."""
    labels = np.random.default_rng(0).integers(0, 2, 300)
    data = Normal(np.linspace(-3, 3, 300), 1.0), Beta(1.0 + labels, 2.0 - labels)
    psi = TwoStage.draw(EmbeddingGaussian.at_scale_of(data), data, 100, 100, rng=0)
    entry = psi.gather(data, tabulate=True)[0][1]
    assert entry.values.shape == (2, 50)
    with jax.enable_x64(True):
        plain = psi.transform(jax.tree.map(jnp.asarray, data))
    np.testing.assert_allclose(psi(data), plain, atol=1e-13)


@pytest.mark.slow
def test_many_messages_come_in_chunks():
    data = messages(4200)
    psi = TwoStage.draw(EmbeddingGaussian.at_scale_of(data), data, 20, 30, rng=0)
    out = psi(data)
    assert out.shape == (4200, 30)
    np.testing.assert_allclose(out[4100:], psi(tuple(law[4100:] for law in data)), atol=1e-13)
    np.testing.assert_allclose(psi.mean(data), out.mean(axis=0), atol=1e-13)


def test_numpy_in_numpy_out_and_jax_in_jax_out():
    psi = TwoStage.draw(EmbeddingGaussian.at_scale_of(TUPLES), TUPLES, 20, 30, rng=0)
    out = psi(TUPLES)
    assert isinstance(out, np.ndarray)
    assert out.dtype == np.float64
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), TUPLES)
    assert psi(single).dtype == jnp.float32
    np.testing.assert_allclose(psi(single), out, atol=1e-4)
    np.testing.assert_allclose(jax.jit(lambda x: psi(x))(single), psi(single), atol=1e-5)
    np.testing.assert_allclose(FeatureKernel(psi)(TUPLES), out @ out.T, atol=1e-13)


def test_features_under_vmap_and_grad():
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, TUPLES)
        psi = TwoStage.draw(EmbeddingGaussian.at_scale_of(TUPLES), TUPLES, 20, 30, rng=0)
        stacked = jax.tree.map(lambda leaf: leaf.reshape(2, 20), data)
        np.testing.assert_allclose(jax.vmap(psi)(stacked)[1], psi(TUPLES)[20:], atol=1e-13)

        @jax.jit
        def total(shift):
            return psi((Normal(data[0].mean() + shift, data[0].var()), data[1])).sum()

        step = 1e-6
        slope = (total(0.2 + step) - total(0.2 - step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(total)(0.2), slope, rtol=1e-6)


def test_mean_features_of_a_single_law():
    phi = Fourier.draw(RBF(1.5), like=1, n_features=60, kind="cos-phase", rng=0)
    draws = Gamma(2.0, 1.0).sample(200_000, 0)
    np.testing.assert_allclose(mean_features(phi, Gamma(2.0, 1.0)), phi(draws).mean(0), atol=0.005)
    with pytest.raises(KindError, match="no exact mean under a distribution"):
        mean_features(TwoStage.draw(ExpectedProduct(), TUPLES, 4, rng=0), Gamma(2.0, 1.0))


def test_bad_input_is_named():
    kernel = EmbeddingGaussian.at_scale_of(TUPLES)
    psi = TwoStage.draw(kernel, TUPLES, 20, 30, rng=0)
    with pytest.raises(KindError, match=r"Fourier\.draw"):
        TwoStage.draw(RBF(1.0), TUPLES)
    with pytest.raises(ParameterError, match="d_out is 31; cosines and sines come in pairs"):
        TwoStage.draw(kernel, TUPLES, 20, 31)
    with pytest.raises(ParameterError, match="d_in is 0"):
        TwoStage.draw(kernel, TUPLES, 0, 30)
    with pytest.raises(ParameterError, match="kind is 'sin'"):
        TwoStage.draw(kernel, TUPLES, kind="sin")
    with pytest.raises(KindError, match="has no random features: they exist for"):
        TwoStage.draw(TupleProduct((ExpectedProduct(), EmbeddingGaussian())), TUPLES)
    with pytest.raises(KindError, match="no spectral density"):
        TwoStage.draw(ExpectedProduct(Linear()), TUPLES, 10)
    with pytest.raises(ShapeError, match="differ in their number of distributions"):
        psi((TUPLES[0], TUPLES[1][:3]))
    with pytest.raises(ParameterError, match=r"coordinate of x\[1\] is 'logit'; Normal has 'x'"):
        psi((TUPLES[0], TUPLES[0]))
    flat = TwoStage.draw(ExpectedProduct(RBF(1.0)), MultivariateNormal.standard(2, (3,)), 10, rng=0)
    with pytest.raises(ShapeError, match=r"variables of \[3\] columns; these features were drawn for \[2\]"):
        flat(MultivariateNormal.standard(3, (3,)))
    narrow = TwoStage.draw(ExpectedProduct(RBF(0.003)), TUPLES[1], 100, rng=0)
    with pytest.raises(ParameterError, match="use coordinate 'logit'"):
        narrow(TUPLES[1])
