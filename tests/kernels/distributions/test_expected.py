from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from meanmap.core.errors import ColumnError, InputError, KindError, ParameterError, ShapeError
from meanmap.families import (
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    Gamma,
    Mixture,
    MultivariateNormal,
    Normal,
    PointMass,
    Uniform,
)
from meanmap.kernels import RBF, EmbeddingGaussian, ExpectedProduct, Laplace, Matern


def rbf(x, y, lengthscale):
    return np.exp(-((x[:, None] - y[None, :]) ** 2) / (2 * lengthscale**2))


legendre = cache(np.polynomial.legendre.leggauss)


def discretised(density, low, high, n=800):
    """Gauss-Legendre points with the weights of a density."""
    points, weights = legendre(n)
    points = low + (high - low) * (points + 1) / 2
    weights = weights * (high - low) / 2 * density(points)
    return points, weights


def by_quadrature(laws, low, high, lengthscale):
    """The Gram matrix of densities on an interval, by quadrature on both sides."""
    sets = [discretised(law, low, high) for law in laws]
    kernel = rbf(sets[0][0], sets[0][0], lengthscale)
    weights = np.stack([w for _, w in sets])
    return weights @ kernel @ weights.T


@pytest.mark.slow
def test_gram_of_tuples_agrees_with_monte_carlo(tuples):
    kernel = ExpectedProduct((RBF(2.0), RBF(0.3)))
    gram, rng = kernel(tuples), np.random.default_rng(3)
    draws, means = 120, []
    for law, lengthscale in zip(tuples, (2.0, 0.3), strict=True):
        x, y = (np.asarray(law.sample(draws, rng)).T for _ in range(2))  # (40, draws)
        values = rbf(x.ravel(), y.ravel(), lengthscale).reshape(40, draws, 40, draws)
        means.append(values.mean(axis=(1, 3)))
    error = np.abs(gram - means[0] * means[1])
    # Kernel values in [0, 1] have a standard deviation of at most 1/2, so each mean has a standard error below .065.
    assert error.max() < 0.2
    assert np.sqrt(np.mean(error**2)) < 0.03


@pytest.mark.parametrize("lengthscale", [0.05, 0.3, 2.0])
def test_beta_laws_agree_with_quadrature(lengthscale):
    a, b = np.array([2.0, 5.0, 1.0, 30.0]), np.array([3.0, 2.0, 1.0, 40.0])
    expected = by_quadrature([scipy.stats.beta(*ab).pdf for ab in zip(a, b, strict=True)], 0, 1, lengthscale)
    np.testing.assert_allclose(ExpectedProduct(RBF(lengthscale))(Beta(a, b)), expected, atol=2e-13)


def test_log_and_logit_coordinates_agree_with_quadrature():
    gammas = [scipy.stats.loggamma(c, -np.log(r)).pdf for c, r in ((2.0, 1.0), (5.0, 0.1), (20.0, 300.0))]
    kernel = ExpectedProduct(RBF(0.7), coordinate="log")
    expected = by_quadrature(gammas, -25, 12, 0.7)
    np.testing.assert_allclose(kernel(Gamma([2.0, 5.0, 20.0], rate=[1.0, 0.1, 300.0])), expected, atol=1e-13)

    def logit(a, b):
        return lambda t: np.exp(scipy.stats.beta(a, b).logpdf(1 / (1 + np.exp(-t))) - t - 2 * np.log1p(np.exp(-t)))

    expected = by_quadrature([logit(2.0, 1.0), logit(6.0, 9.0)], -45, 45, 0.7)
    kernel = ExpectedProduct(RBF(0.7), coordinate="logit")
    np.testing.assert_allclose(kernel(Beta([2.0, 6.0], [1.0, 9.0])), expected, atol=1e-13)


def test_normal_laws_follow_appendix_b3():
    """⟨μ_p, μ_q⟩ = (|Σ| / |V_p + V_q + Σ|)^(1/2) exp(−½ δᵀ (V_p + V_q + Σ)⁻¹ δ), by plain linear algebra."""
    rng = np.random.default_rng(0)
    means, roots = rng.normal(size=(6, 3)), rng.normal(size=(6, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(3)
    sigma = np.diag(np.array([0.5, 1.0, 2.0]) ** 2)
    expected = np.empty((6, 6))
    for i in range(6):
        for j in range(6):
            total, delta = covariances[i] + covariances[j] + sigma, means[i] - means[j]
            root = np.sqrt(np.linalg.det(sigma) / np.linalg.det(total))
            expected[i, j] = root * np.exp(-delta @ np.linalg.inv(total) @ delta / 2)
    gram = ExpectedProduct(RBF([0.5, 1.0, 2.0]))(MultivariateNormal(means, covariances))
    np.testing.assert_allclose(gram, expected, atol=1e-12)
    line = ExpectedProduct(RBF(0.5))(Normal(means[:, 0], covariances[:, 0, 0]))
    total = covariances[:, 0, 0][:, None] + covariances[:, 0, 0] + 0.25
    expected = 0.5 / np.sqrt(total) * np.exp(-((means[:, :1] - means[:, 0]) ** 2) / total / 2)
    np.testing.assert_allclose(line, expected, atol=1e-12)


def test_mixtures_points_and_labels_agree_with_sums():
    mixture = Mixture(Normal([[-1.0, 1.0], [0.0, 3.0]], [[1.0, 0.5], [2.0, 1.0]]), [[0.3, 0.7], [0.5, 0.5]])
    parts = ExpectedProduct(RBF(0.8))(Normal([-1.0, 1.0, 0.0, 3.0], [1.0, 0.5, 2.0, 1.0]))
    weights = np.array([[0.3, 0.7, 0, 0], [0, 0, 0.5, 0.5]])
    np.testing.assert_allclose(ExpectedProduct(RBF(0.8))(mixture), weights @ parts @ weights.T, atol=1e-14)
    betas = Mixture(Beta([[1.0, 5.0]], [[2.0, 3.0]]), [0.25, 0.75])
    parts = ExpectedProduct(RBF(0.3))(Beta([1.0, 5.0], [2.0, 3.0]))
    expected = np.array([0.25, 0.75]) @ parts @ np.array([0.25, 0.75])
    np.testing.assert_allclose(ExpectedProduct(RBF(0.3))(betas), [[expected]], atol=1e-13)
    np.testing.assert_allclose(
        ExpectedProduct(RBF(0.8))(PointMass([0.0, 1.0, 3.0])), RBF(0.8)([0.0, 1.0, 3.0]), atol=1e-15
    )
    p = np.array([0.2, 0.9])
    masses = np.stack([1 - p, p], 1)
    np.testing.assert_allclose(ExpectedProduct(RBF(0.8))(Bernoulli(p)), masses @ RBF(0.8)([0.0, 1.0]) @ masses.T)
    table = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
    expected = table @ RBF(0.8)(np.eye(3)) @ table.T
    np.testing.assert_allclose(ExpectedProduct(RBF(0.8))(Categorical(table)), expected)


def test_a_law_without_decaying_characteristic_function():
    expected = by_quadrature([lambda t: np.ones_like(t)], 0, 1, 0.4)
    np.testing.assert_allclose(ExpectedProduct(RBF(0.4))(Uniform([0.0], [1.0])), expected, atol=1e-13)


def test_gram_diagonal_and_products_agree_with_each_other(tuples):
    kernel = ExpectedProduct.at_scale_of(tuples)
    gram = kernel(tuples)
    assert isinstance(gram, np.ndarray)
    assert gram.dtype == np.float64
    np.testing.assert_allclose(gram, gram.T, atol=1e-15)
    np.testing.assert_allclose(kernel.diag(tuples), np.diag(gram), atol=1e-15)
    first, second = (tuple(law[part] for law in tuples) for part in (slice(0, 15), slice(15, 40)))
    np.testing.assert_allclose(kernel(first, second), gram[:15, 15:], atol=1e-13)
    v = np.random.default_rng(0).normal(size=(25, 2))
    np.testing.assert_allclose(kernel.matvec(first, second, v), gram[:15, 15:] @ v, atol=1e-12)
    np.testing.assert_allclose(kernel.mean(first, second), gram[:15, 15:].mean(1), atol=1e-13)
    np.testing.assert_allclose((2.0 * kernel**2)(tuples), 2 * gram**2, atol=1e-12)
    np.testing.assert_allclose(ExpectedProduct(tuple(3.0 * k for k in kernel.kernel), "auto")(tuples), 9 * gram)


def test_gram_is_positive_semidefinite(tuples):
    gram = ExpectedProduct.at_scale_of(tuples)(tuples)
    assert np.linalg.eigvalsh(gram).min() > -1e-13


def test_named_variables_need_no_order(tuples):
    plain = ExpectedProduct((RBF(2.0), RBF(0.3)), ("x", "logit"))(tuples)
    kernel = ExpectedProduct({"z": RBF(2.0), "p": RBF(0.3)}, {"p": "logit", "z": "x"})
    np.testing.assert_allclose(kernel({"z": tuples[0], "p": tuples[1]}), plain, atol=1e-15)
    np.testing.assert_allclose(kernel({"p": tuples[1], "z": tuples[0]}), plain, atol=1e-15)


@pytest.mark.slow
def test_more_messages_than_a_tile():
    rng = np.random.default_rng(0)
    messages = Normal(rng.normal(size=700), rng.uniform(0.1, 2, 700)), Beta(rng.uniform(1, 9, 700), 2.0)
    kernel = EmbeddingGaussian.at_scale_of(messages)
    gram = kernel(messages)
    some = np.array([3, 500, 699])
    np.testing.assert_allclose(gram[np.ix_(some, some)], kernel(tuple(law[some] for law in messages)), atol=1e-12)


def test_widths_are_the_variance_of_the_mixture():
    messages = Normal([0.0, 4.0], [1.0, 3.0])
    assert ExpectedProduct.at_scale_of(messages).kernel.lengthscale == pytest.approx(np.sqrt(2 + 4))
    assert ExpectedProduct.at_scale_of(messages, widths="within").kernel.lengthscale == pytest.approx(np.sqrt(2))
    kernel = ExpectedProduct.at_scale_of((messages, Beta([1.0, 2.0], [2.0, 2.0]), Gamma([1.0, 2.0], 1.0)))
    assert kernel.coordinate == ("x", "logit", "log")


def test_pure_gram_under_jit_vmap_and_grad(tuples):
    with jax.enable_x64(True):
        on_device = jax.tree.map(jnp.asarray, tuples)
        kernel = ExpectedProduct((RBF(2.0), RBF(0.3)))
        gram = kernel(tuples)
        traced = jax.jit(lambda x: kernel(x))(on_device)
        assert isinstance(traced, jax.Array)
        np.testing.assert_allclose(traced, gram, atol=1e-13)
        stacked = jax.tree.map(lambda leaf: leaf.reshape(2, 20), on_device)
        np.testing.assert_allclose(jax.vmap(kernel)(stacked)[1], gram[20:, 20:], atol=1e-13)

        @jax.jit
        def total(lengthscale, shift):
            moved = (Normal(on_device[0].mean() + shift, on_device[0].var()), on_device[1])
            return ExpectedProduct((RBF(2.0), RBF(lengthscale)))(moved, on_device).sum()

        step = 1e-5
        slopes = jax.grad(total, argnums=(0, 1))(0.3, 0.2)
        by_length = (total(0.3 + step, 0.2) - total(0.3 - step, 0.2)) / (2 * step)
        by_shift = (total(0.3, 0.2 + step) - total(0.3, 0.2 - step)) / (2 * step)
        np.testing.assert_allclose(slopes, [by_length, by_shift], rtol=1e-7)


def test_single_precision_follows_jax(tuples):
    kernel = ExpectedProduct.at_scale_of(tuples)
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tuples)
    gram = kernel(single)
    assert gram.dtype == jnp.float32
    np.testing.assert_allclose(gram, kernel(tuples), atol=2e-5)


NORMALS = Normal([0.0, 1.0], 1.0)
BETAS = Beta([2.0, 1.0], [1.0, 2.0])
IMPROPER = Normal.from_natural(np.array([0.0, 1.0, 0.0, 2.0]), np.array([1.0, -1.0, 1.0, 0.0]))


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ((NORMALS, Beta([1.0] * 3, 1.0)), ShapeError, r"x\[0\] 2, x\[1\] 3; expected one of each for every point"),
        (Normal(0.0, 1.0), ShapeError, r"x is one Normal; expected a batch.*x.reshape\(1\)"),
        ((NORMALS, Beta(1.0, 1.0)), ShapeError, r"x\[1\] is one Beta"),
        (Normal([[0.0]], 1.0), ShapeError, r"batch shape \(1, 1\).*reshape\(-1\)"),
        (IMPROPER, ParameterError, r"x \(Normal\) is improper at \[1\], \[3\].*is_proper"),
        ({"z": IMPROPER}, ParameterError, r"x\['z'\] \(Normal\) is improper at \[1\]"),
        ("messages.csv", KindError, "x is a str; expected a batch of distributions"),
        ((), InputError, "x holds no variables"),
    ],
)
def test_bad_messages_are_named(data, error, words):
    with pytest.raises(error, match=words):
        ExpectedProduct()(data)


def test_bad_settings_are_named():
    with pytest.raises(ParameterError, match=r"coordinate of x is 'logit'; Normal has 'x'"):
        ExpectedProduct(RBF(1.0), "logit")(NORMALS)
    with pytest.raises(ParameterError, match=r"coordinate of x\[1\] is 'log'; Beta has 'x', 'logit'"):
        ExpectedProduct(RBF(1.0), ("x", "log"))((NORMALS, BETAS))
    with pytest.raises(KindError, match="x is Normal and y is Beta; expected the same family"):
        ExpectedProduct()(NORMALS, BETAS)
    with pytest.raises(KindError, match=r"x has the variables 0, 1 and y has one distribution per point"):
        ExpectedProduct()((NORMALS, BETAS), NORMALS)
    with pytest.raises(ShapeError, match=r"kernel has 2 entries and x has 1 variable; expected one each"):
        ExpectedProduct((RBF(1.0), RBF(1.0)))(NORMALS)
    with pytest.raises(ColumnError, match=r"kernel is given for the variables 'a' and x has the variables 'b'"):
        ExpectedProduct({"a": RBF(1.0)})({"b": NORMALS})
    with pytest.raises(ColumnError, match="pass kernel by name too"):
        ExpectedProduct((RBF(1.0),))({"b": NORMALS})
    with pytest.raises(ShapeError, match="lengthscale has 3 entries"):
        ExpectedProduct(RBF([1.0, 1.0, 1.0]))(MultivariateNormal.standard(2, (4,)))
    with pytest.raises(ShapeError, match="lengthscale has 2 entries"):
        ExpectedProduct(RBF([1.0, 1.0]))(BETAS)
    with pytest.raises(KindError, match=r"known exactly under RBF.*TwoStage"):
        ExpectedProduct(Matern(1.0))(BETAS)
    with pytest.raises(KindError, match="expected a kernel on points"):
        ExpectedProduct("rbf")
    with pytest.raises(KindError, match="coordinate is 3"):
        ExpectedProduct(RBF(1.0), coordinate=3)
    with pytest.raises(ParameterError, match="widths is 'wide'; expected 'total'"):
        ExpectedProduct.at_scale_of(NORMALS, widths="wide")
    with pytest.raises(InputError, match="no spread in some column"):
        ExpectedProduct.at_scale_of(PointMass([1.0, 1.0]))
    with pytest.raises(KindError, match="Dirichlet has no exact expected product"):
        ExpectedProduct(RBF(1.0), "log")(Dirichlet([[1.0, 2.0, 3.0]]))


def test_a_lengthscale_too_small_for_its_laws_is_refused():
    with pytest.raises(ParameterError, match="too small for distributions that spread over"):
        ExpectedProduct(RBF(1e-5))(Gamma([2.0], 1.0))
    narrow = 2.0 * ExpectedProduct(RBF(0.01), "logit")
    with pytest.raises(ParameterError, match="in a sum or product of kernels"):
        narrow(Beta([2.0, 1.0], [1.0, 2.0]))
    with pytest.raises(ParameterError, match="up to 256"):
        (2.0 * ExpectedProduct(RBF(0.01)))(BETAS)
    # On its own the kernel takes as many frequencies as it needs.
    wide = by_quadrature([scipy.stats.beta(2, 3).pdf], 0, 1, 0.01)
    np.testing.assert_allclose(ExpectedProduct(RBF(0.01))(Beta([2.0], [3.0])), wide, atol=1e-12)


def test_laplace_kernel_needs_bags():
    with pytest.raises(KindError, match="bags of samples"):
        ExpectedProduct(Laplace(1.0))(NORMALS)
