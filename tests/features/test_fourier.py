"""Random Fourier features: unbiased, with an error that falls as it should, and the same for the same seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.transform import Rotation as ScipyRotation

from meanmap.core import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.features import Concatenated, FeatureKernel, Fourier
from meanmap.kernels import RBF, Delta, Laplace, Linear, Matern, OnColumns, RationalQuadratic, Rotation, Torus
from tests.kernels.laws import LAWS

RNG = np.random.default_rng(7)
POINTS = RNG.normal(size=(8, 3))
TABLE = {"a": POINTS[:, 0], "b": POINTS[:, 1]}
CASES = {
    "rbf": (RBF(0.9), POINTS),
    "rbf, per column": (RBF([0.5, 1.0, 3.0]), POINTS),
    "laplace": (Laplace([1.0, 2.0, 3.0]), POINTS),
    "matern 1/2": (Matern(1.5, 0.5), POINTS),
    "matern 3/2": (Matern(1.5, 1.5), POINTS),
    "matern 5/2": (Matern(1.5, 2.5), POINTS),
    "rational quadratic": (RationalQuadratic(0.9, 0.7), POINTS),
    "torus": (Torus([0.8, 1.0, 1.5]), 3 * POINTS),
    "rotation": (Rotation(1.0), ScipyRotation.random(8, random_state=0).as_matrix()),
    "scaled": (2.5 * RBF(0.9), POINTS),
    "product": (3.0 * RBF(0.9) * Laplace(2.0), POINTS),
    "power": (Matern(2.0, 1.5) ** 3, POINTS),
    "power of a scaled kernel": ((1.5 * RBF(2.0)) ** 2, POINTS),
    "sum": (RBF(0.9) + 0.5 * Matern(2.0, 0.5), POINTS),
    "on columns": (OnColumns(RBF(0.9), [2, 0]), POINTS),
    "columns of a table": (OnColumns(RBF(0.9), "a") * OnColumns(Laplace(2.0), "b"), TABLE),
    "sum over columns of a table": (OnColumns(RBF(0.9), "a") + OnColumns(Laplace(2.0), "b"), TABLE),
}
N_DRAWS = 40


def assert_unbiased(kernel, points, **options):
    """The mean over draws is within five standard errors of the kernel, for each of 28 pairs."""
    draws = []
    for seed in range(N_DRAWS):
        phi = Fourier.draw(kernel, like=points, n_features=64, rng=seed, **options)(points)
        draws.append(phi @ phi.T)
    pairs = np.triu_indices(8, 1)
    errors = np.stack(draws)[:, *pairs] - kernel(points)[pairs]
    standard = errors.std(axis=0, ddof=1) / np.sqrt(N_DRAWS)
    assert (np.abs(errors.mean(axis=0)) < 5 * standard).all()
    assert np.sqrt((errors**2).mean()) < 2 * kernel.diag(points).max() / np.sqrt(64)


@pytest.mark.oldest
@pytest.mark.parametrize("case", CASES)
def test_unbiased_for_every_stationary_kernel(case):
    assert_unbiased(*CASES[case])


@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("rbf, per column", {"kind": "cos-phase"}),
        ("laplace", {"kind": "cos-phase"}),
        ("matern 3/2", {"kind": "cos-phase", "orthogonal": True}),
        ("rbf", {"orthogonal": True}),
        ("matern 1/2", {"orthogonal": True}),
        ("rational quadratic", {"orthogonal": True}),
        ("torus", {"orthogonal": True}),
        ("rotation", {"orthogonal": True}),
        ("power", {"orthogonal": True}),
        ("sum", {"orthogonal": True}),
    ],
)
def test_unbiased_of_each_kind(case, options):
    assert_unbiased(*CASES[case], **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cos-sin", "cos-phase"])
def test_error_falls_like_one_over_root(kind):
    """Slope of log error over log D, from the mean over 20 draws at each of five sizes: −1/2 within 0.06."""
    x = RNG.normal(size=(40, 3))
    gram = RBF(1.0)(x)
    sizes = np.array([16, 64, 256, 1024, 4096])
    errors = []
    for size in sizes:
        phis = (Fourier.draw(RBF(1.0), like=3, n_features=int(size), kind=kind, rng=seed)(x) for seed in range(20))
        errors.append(np.mean([np.sqrt(np.mean((phi @ phi.T - gram) ** 2)) for phi in phis]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.06


def squared_errors(x, n_draws, **options):
    gram = RBF(4.0)(x)
    return np.array(
        [
            np.mean((phi(x) @ phi(x).T - gram) ** 2)
            for phi in (Fourier.draw(RBF(4.0), like=x, n_features=64, rng=seed, **options) for seed in range(n_draws))
        ]
    )


@pytest.mark.slow
def test_orthogonal_frequencies_are_better():
    """Paired by seed, in sixteen columns: less squared error by more than six standard errors (Yu et al. 2016)."""
    x = RNG.normal(size=(40, 16))
    gain = squared_errors(x, 80) - squared_errors(x, 80, orthogonal=True)
    assert gain.mean() > 6 * gain.std(ddof=1) / np.sqrt(80)


def test_cosine_and_sine_are_better_for_rbf():
    """Sutherland & Schneider (2015), section 3.3."""
    x = RNG.normal(size=(40, 16))
    gain = squared_errors(x, 80, kind="cos-phase") - squared_errors(x, 80)
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(80)


@pytest.mark.parametrize("case", ["rbf", "scaled", "power of a scaled kernel", "torus"])
def test_cosine_and_sine_have_the_exact_length(case):
    kernel, points = CASES[case]
    phi = Fourier.draw(kernel, like=points, n_features=10, rng=0)
    np.testing.assert_allclose((phi(points) ** 2).sum(axis=1), kernel.diag(points), rtol=1e-12)


def test_orthogonal_frequencies_are_orthogonal_in_blocks():
    phi = Fourier.draw(Matern(1.0), like=4, n_features=20, orthogonal=True, rng=0)
    for block in (phi.frequencies[:4], phi.frequencies[4:8], phi.frequencies[8:]):
        product = block @ block.T
        np.testing.assert_allclose(product - np.diag(product.diagonal()), 0, atol=1e-10 * product.max())


class TestSeeds:
    @pytest.mark.parametrize(
        "make", [lambda: 5, lambda: np.random.default_rng(5), lambda: jax.random.key(5), lambda: jax.random.PRNGKey(5)]
    )
    @pytest.mark.parametrize("kind", ["cos-sin", "cos-phase"])
    def test_same_rng_same_features(self, make, kind):
        first, second = (Fourier.draw(RBF(1.0), like=3, n_features=8, kind=kind, rng=make()) for _ in range(2))
        np.testing.assert_array_equal(first(POINTS), second(POINTS))

    def test_an_integer_is_the_key_of_jax(self):
        first, second = (Fourier.draw(RBF(1.0), like=3, n_features=8, rng=rng) for rng in (5, jax.random.key(5)))
        np.testing.assert_array_equal(first(POINTS), second(POINTS))

    def test_other_rng_other_features(self):
        generator = np.random.default_rng(5)
        draws = [
            Fourier.draw(RBF(1.0), like=3, n_features=8, rng=rng).frequencies
            for rng in (1, 2, None, None, generator, generator)
        ]
        assert len({draw.tobytes() for draw in draws}) == 6

    def test_members_of_a_sum_draw_apart(self):
        phi = Fourier.draw(RBF(1.0) + RBF(1.0), like=3, n_features=8, rng=0)
        assert (phi.members[0].frequencies != phi.members[1].frequencies).all()

    def test_data_and_their_number_of_columns_are_alike(self):
        first, second = (Fourier.draw(RBF(1.0), like=like, n_features=8, rng=0) for like in (3, POINTS))
        np.testing.assert_array_equal(first(POINTS), second(POINTS))


class TestForms:
    @pytest.mark.oldest
    def test_numpy_in_numpy_out(self):
        phi = Fourier.draw(RBF(1.0), like=3, n_features=8, rng=0)
        out = phi(POINTS)
        assert (type(out), out.dtype, out.shape) == (np.ndarray, np.float64, (8, 8))
        out[0, 0] = 1.0
        np.testing.assert_allclose(phi.mean(POINTS), phi(POINTS).mean(axis=0), atol=1e-15)
        np.testing.assert_allclose(phi(POINTS.tolist()), phi(POINTS))
        np.testing.assert_allclose(phi(POINTS[:1]), phi(POINTS)[:1], atol=1e-15)

    @pytest.mark.oldest
    @pytest.mark.parametrize("case", ["laplace", "torus", "sum", "columns of a table"])
    def test_jax_in_jax_out(self, case):
        kernel, points = CASES[case]
        phi = Fourier.draw(kernel, like=points, n_features=8, rng=0)
        expected = phi(points)
        single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), points)
        for result in (phi(single), jax.jit(lambda x: phi(x))(single)):
            assert result.dtype == jnp.float32
            np.testing.assert_allclose(result, expected, atol=1e-4)
        np.testing.assert_allclose(phi.mean(single), expected.mean(axis=0), atol=1e-4)
        with jax.enable_x64(True):
            assert phi(single).dtype == jnp.float32
            double = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), points)
            np.testing.assert_allclose(phi(double), expected, atol=1e-12)

    def test_drawn_in_the_precision_of_the_sample(self):
        phi = Fourier.draw(RBF(1.0), like=jnp.ones((2, 3)), n_features=8, rng=0)
        assert isinstance(phi.frequencies, jax.Array)
        assert phi(jnp.ones((2, 3))).dtype == jnp.float32
        with jax.enable_x64(True):
            assert (
                Fourier.draw(RBF(1.0), like=jnp.ones((2, 3), jnp.float32), n_features=8, rng=0).frequencies.dtype
                == jnp.float32
            )

    def test_under_jit_vmap_and_grad(self):
        x = jnp.asarray(POINTS)

        def value(scale, key):
            phi = Fourier.draw(RBF(scale), like=x, n_features=8, rng=key)
            return (phi(x) @ phi(x).T).sum()

        keys = jax.random.split(jax.random.key(0), 3)
        several = jax.jit(jax.vmap(value, in_axes=(None, 0)))(1.0, keys)
        np.testing.assert_allclose(several, [value(jnp.float32(1.0), key) for key in keys], rtol=1e-4)
        with jax.enable_x64(True):
            x = jnp.asarray(POINTS)
            slope = jax.grad(value)(jnp.float64(1.3), keys[0])
            moved = [value(jnp.float64(1.3 + step), keys[0]) for step in (1e-6, -1e-6)]
            np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6)

    def test_chunks_make_the_whole(self):
        x = RNG.normal(size=(9000, 2))
        phi = Fourier.draw(RBF(1.0), like=2, n_features=4, rng=0)
        angles = x @ phi.frequencies.T
        np.testing.assert_allclose(phi(x), np.sqrt(0.5) * np.hstack([np.cos(angles), np.sin(angles)]), atol=1e-12)
        np.testing.assert_allclose(phi.mean(x), phi(x).mean(axis=0), atol=1e-14)

    def test_sparse_points(self):
        sparse = scipy.sparse.random(10, 50, density=0.2, random_state=0, format="csr")
        for kernel in (RBF(1.0), RBF(1.0) * Matern(2.0), RBF(1.0) + RBF(2.0), RBF(2.0) ** 2):
            phi = Fourier.draw(kernel, like=sparse, n_features=6, rng=0)
            np.testing.assert_allclose(phi(sparse), phi(sparse.toarray()), atol=1e-12)

    def test_sizes_and_repr(self):
        phi = Fourier.draw(RBF(1.0) + Matern(1.0), like=2, n_features=6, rng=0)
        assert isinstance(phi, Concatenated)
        assert phi.size == phi(POINTS[:, :2]).shape[1] == 12
        assert Fourier.draw(RBF(1.0), like=2, n_features=5, kind="cos-phase").size == 5
        assert repr(phi.members[0]) == "Fourier(6 features of RBF(lengthscale=1.0))"


@pytest.mark.oldest
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_feature_kernel_obeys_every_law(law):
    law(FeatureKernel(Fourier.draw(RBF(1.0) + Laplace(1.0), like=3, n_features=6, rng=0)), POINTS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: Fourier.draw(RBF(1.0), 2, n_features=5),
            ParameterError,
            "n_features is 5; cosines and sines come in pairs: use an even",
        ),
        (
            lambda: Fourier.draw(RBF(1.0), 2, n_features=0),
            ParameterError,
            "n_features is 0; expected a whole number of at least 1",
        ),
        (lambda: Fourier.draw(RBF(1.0), 2, n_features=2.0), ParameterError, "n_features is 2.0"),
        (
            lambda: Fourier.draw(RBF(1.0), 2, kind="sin"),
            ParameterError,
            r"kind is 'sin' \(did you mean 'cos-sin'\?\); expected 'cos-sin' or 'cos-phase'",
        ),
        (lambda: Fourier.draw("rbf", 2), KindError, "kernel is 'rbf'; expected a kernel such as mm.kernels.RBF"),
        (lambda: Fourier.draw(RBF(1.0), 0), ParameterError, "like is 0; expected a number of columns of at least 1"),
        (lambda: Fourier.draw(RBF(1.0), -2), ParameterError, "like is -2"),
        (lambda: Fourier.draw(RBF(1.0), []), EmptyError, "like is empty"),
        (lambda: Fourier.draw(RBF(1.0), [[np.nan]]), NonFiniteError, "like holds 1 value"),
        (lambda: Fourier.draw(RBF([1.0, 2.0]), 3), ShapeError, "lengthscale has 2 entries but like has 3 columns"),
        (lambda: Fourier.draw(Linear(), 2), KindError, "Linear has no spectral density.*mm.features.Nystrom"),
        (lambda: Fourier.draw(Delta(), ["a"]), KindError, "Delta has no spectral density"),
        (lambda: Fourier.draw(RBF(1.0) * Linear(), 2), KindError, "Linear has no spectral density"),
        (
            lambda: Fourier.draw(Laplace(1.0), 2, orthogonal=True),
            KindError,
            "Laplace has no radial spectral density.*orthogonal=False",
        ),
        (
            lambda: Fourier.draw(RBF(1.0) * RBF(2.0), 2, orthogonal=True),
            KindError,
            "Product has no radial spectral density",
        ),
        (lambda: Fourier.draw(RBF(1.0), 2, rng=-1), ParameterError, "rng is -1"),
        (lambda: Fourier.draw(RBF(1.0), 2, rng="a"), KindError, "rng is a str"),
        (
            lambda: Fourier.draw(RBF(1.0), 2, rng=0)(POINTS),
            ShapeError,
            "x does not have the columns of the sample.*3 coordinates where 2",
        ),
        (lambda: Fourier.draw(RBF(1.0), 2, rng=0).mean(POINTS), ShapeError, "does not have the columns"),
        (lambda: Fourier.draw(RBF(1.0) + RBF(2.0), 2, rng=0)(POINTS), ShapeError, "does not have the columns"),
        (lambda: FeatureKernel(Fourier.draw(RBF(1.0), 2, rng=0))(POINTS), ShapeError, "x does not have the columns"),
        (lambda: Fourier.draw(Torus(1.0), 2, rng=0)(jnp.ones((2, 3))), ShapeError, "6 coordinates where 4"),
    ],
)
def test_what_cannot_be_used_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()
