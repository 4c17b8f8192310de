import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError
from meanmap.families import Beta, Normal
from meanmap.kernels import RBF, EmbeddingGaussian, ExpectedProduct, TupleProduct
from meanmap.kernels.spectral import coordinates


def test_gaussian_of_the_distance_of_embeddings(tuples):
    inner = ExpectedProduct((RBF(2.0), RBF(0.3)))
    gram, norms = inner(tuples), inner.diag(tuples)
    expected = np.exp(-(norms[:, None] + norms - 2 * gram) / (2 * 0.3**2))
    kernel = EmbeddingGaussian(inner, width=0.3)
    np.testing.assert_allclose(kernel(tuples), expected, atol=1e-13)
    assert (np.diag(kernel(tuples)) == 1).all()
    assert (kernel.diag(tuples) == 1).all()
    assert np.linalg.eigvalsh(kernel(tuples)).min() > -1e-12
    first = tuple(law[:7] for law in tuples)
    np.testing.assert_allclose(kernel(first, tuples), expected[:7], atol=1e-13)


def test_width_is_half_the_median_squared_distance(tuples):
    kernel = EmbeddingGaussian.at_scale_of(tuples)
    gram = kernel.inner(tuples)
    squares = (np.diag(gram)[:, None] + np.diag(gram) - 2 * gram)[np.triu_indices(40, 1)]
    assert kernel.width**2 == pytest.approx(np.median(squares) / 2)
    some = EmbeddingGaussian.at_scale_of(tuples, most=10)
    assert 0.5 < some.width / kernel.width < 2
    paper = EmbeddingGaussian.at_scale_of(tuples, coordinate="x", widths="within")
    assert paper.inner.kernel[1].lengthscale == pytest.approx(np.sqrt(tuples[1].var().mean()))
    assert isinstance(kernel.width, np.ndarray)


def test_pure_gram_under_jit_vmap_and_grad(tuples):
    laws = tuples[0]
    with jax.enable_x64(True):
        on_device = jax.tree.map(jnp.asarray, laws)
        kernel = EmbeddingGaussian.at_scale_of(laws)
        np.testing.assert_allclose(jax.jit(lambda x: kernel(x))(on_device), kernel(laws), atol=1e-12)
        stacked = jax.tree.map(lambda leaf: leaf.reshape(2, 20), on_device)
        np.testing.assert_allclose(jax.vmap(kernel)(stacked)[0], kernel(laws)[:20, :20], atol=1e-12)

        @jax.jit
        def total(width):
            return EmbeddingGaussian(kernel.inner, width)(on_device).sum()

        step = 1e-5
        slope = (total(0.4 + step) - total(0.4 - step)) / (2 * step)
        np.testing.assert_allclose(jax.grad(total)(0.4), slope, rtol=1e-7)
        scaled = EmbeddingGaussian.at_scale_of(on_device)
        np.testing.assert_allclose(scaled.width, kernel.width, rtol=1e-12)


def test_algebra_of_kernels_on_messages(tuples):
    kernel = EmbeddingGaussian.at_scale_of(tuples)
    gram = kernel(tuples)
    np.testing.assert_allclose((0.5 * kernel + kernel * kernel)(tuples), 0.5 * gram + gram**2, atol=1e-12)


def test_any_inner_product_of_distributions_will_do(tuples):
    inner = TupleProduct((ExpectedProduct(RBF(2.0)), ExpectedProduct(RBF(0.3))))
    joint = ExpectedProduct((RBF(2.0), RBF(0.3)))
    np.testing.assert_allclose(EmbeddingGaussian(inner, 0.4)(tuples), EmbeddingGaussian(joint, 0.4)(tuples), atol=1e-13)


def test_bad_settings_are_named():
    with pytest.raises(KindError, match="expected a kernel on distributions such as ExpectedProduct"):
        EmbeddingGaussian(RBF(1.0))
    with pytest.raises(ParameterError, match="width"):
        EmbeddingGaussian(ExpectedProduct(), width=-1.0)
    with pytest.raises(InputError, match="all messages are equal"):
        EmbeddingGaussian.at_scale_of(Normal([1.0, 1.0], 1.0))
    with pytest.raises(EmptyError, match="expected at least 2"):
        EmbeddingGaussian.at_scale_of(Normal([1.0], 1.0))
    with pytest.raises(KindError, match="TwoStage"):
        coordinates(EmbeddingGaussian(), Normal([1.0], 1.0))
    with pytest.raises(KindError, match=r"x\[1\] is Normal and y\[1\] is Beta"):
        EmbeddingGaussian()((Normal([0.0], 1.0), Normal([0.0], 1.0)), (Normal([0.0], 1.0), Beta([1.0], 1.0)))
