"""Features from the data: the certificate of pivoted Cholesky, landmarks, tensor powers."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from meanmap.core import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.features import FeatureKernel, Nystrom, PivotedCholesky, TensorProduct, lowrank
from meanmap.kernels import RBF, Delta, Hamming, Laplace, Linear, Matern, OnColumns, Polynomial, Precomputed, Spectrum
from tests.alone import run_alone
from tests.kernels.laws import LAWS

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 2))
TABLE = {"a": X[:, 0], "b": [str(i % 3) for i in range(120)]}


class TestPivotedCholesky:
    @pytest.mark.oldest
    @pytest.mark.parametrize("tolerance", [1e-1, 1e-4, 1e-8])
    def test_trace_is_certified(self, tolerance):
        """K − Φ Φᵀ is positive semidefinite with the trace that is stated, which is below what was asked for."""
        for kernel in (RBF(1.0), 2.0 * RBF(1.0) + Linear(), RBF(1.3) ** 2):
            phi = PivotedCholesky.fit(kernel, X, tolerance=tolerance)
            rest = kernel(X) - phi(X) @ phi(X).T
            assert phi.relative_error <= tolerance
            np.testing.assert_allclose(phi.relative_error, rest.trace() / kernel.diag(X).sum(), atol=1e-13)
            assert np.linalg.eigvalsh(rest)[0] > -1e-12 * kernel.diag(X).sum()
            assert phi.size == phi.rank == phi.report.steps == len(phi.report.residuals) - 1
            assert phi.report.converged
            np.testing.assert_allclose(phi.report.residuals[-1], phi.relative_error)
            before_last = phi.report.residuals[-2]
            assert before_last > tolerance  # not one feature more than needed

    def test_exact_on_its_pivots_and_for_all_other_points_nystroms_projection(self):
        phi = PivotedCholesky.fit(RBF(1.0), X, tolerance=1e-3)
        k, new = RBF(1.0), RNG.normal(size=(20, 2))
        np.testing.assert_allclose(phi(phi.pivots) @ phi(phi.pivots).T, k(phi.pivots), atol=1e-12)
        cross = k(new, phi.pivots)
        np.testing.assert_allclose(phi(new) @ phi(new).T, cross @ np.linalg.solve(k(phi.pivots), cross.T), atol=1e-9)

    @pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csr_array, jnp.asarray])
    def test_rough_kernels_of_many_columns_are_not_refused(self, made, monkeypatch):
        """Distances by expansion leave 1e-16 at zero, of which a root makes 1e-8 in a column alone."""
        monkeypatch.setattr(lowrank, "SPARSE_ROWS", 0)
        x = np.random.default_rng(0).normal(size=(200, 5))
        phi = PivotedCholesky.fit(Matern(0.1, smoothness=0.5), made(x), tolerance=0.5, max_rank=20)
        assert phi.rank == 20

    @pytest.mark.parametrize(
        ("kernel", "points"),
        [
            (OnColumns(Matern(1.0), "a") * OnColumns(Hamming(1.0), "b"), TABLE),
            (OnColumns(RBF(1.0), "a") + OnColumns(Delta(), "b"), TABLE),
            (Delta(), TABLE["b"]),
            (Spectrum(2), ["abab", "baba", "cdcd", "abcd"]),
            (Precomputed(RBF(1.0)(X[:10])), np.arange(10)),
            (Laplace(1.0), X[:30]),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_any_kernel_on_any_points(self, kernel, points):
        phi = PivotedCholesky.fit(kernel, points, tolerance=1e-10)
        np.testing.assert_allclose(phi(points) @ phi(points).T, kernel(points), atol=1e-4)
        np.testing.assert_allclose(phi.mean(points), phi(points).mean(axis=0), atol=1e-12)

    def test_as_many_features_as_labels(self):
        phi = PivotedCholesky.fit(Delta(), TABLE["b"])
        assert phi.size == 3
        assert phi.relative_error == 0

    def test_stops_at_max_rank_and_says_so(self):
        phi = PivotedCholesky.fit(RBF(0.1), X, tolerance=1e-9, max_rank=7)
        assert phi.size == 7
        assert not phi.report.converged
        assert "max_rank" in phi.report.status

    def test_stops_at_rounding_and_says_so(self):
        phi = PivotedCholesky.fit(Polynomial(2), X, tolerance=0.0)
        assert phi.size in (6, 7)  # 1, x, y, x², xy, y²
        assert "rounding" in phi.report.status
        assert phi.report.notes

    @pytest.mark.oldest
    def test_fixed_rank_is_the_same_choice(self):
        free = PivotedCholesky.fit(RBF(1.0), X, tolerance=0.0, max_rank=9)
        fixed = PivotedCholesky.fit(RBF(1.0), X, rank=9)
        assert fixed.size == 9
        np.testing.assert_allclose(fixed.pivots, free.pivots)
        np.testing.assert_allclose(fixed(X), free(X), atol=1e-9)
        np.testing.assert_allclose(fixed.relative_error, free.relative_error, rtol=1e-9)
        assert type(fixed(X)) is np.ndarray

    @pytest.mark.slow
    @pytest.mark.oldest
    def test_fixed_rank_under_jit_vmap_and_grad(self):
        with jax.enable_x64(True):
            x = jnp.asarray(X[:40])

            def error(scale):
                phi = PivotedCholesky.fit(RBF(scale), x, rank=5)
                return phi.relative_error, phi(x)

            scales = jnp.array([0.9, 1.7])
            errors, features = jax.jit(jax.vmap(error))(scales)
            for i, scale in enumerate([0.9, 1.7]):
                expected = PivotedCholesky.fit(RBF(scale), X[:40], rank=5)
                np.testing.assert_allclose(errors[i], expected.relative_error, rtol=1e-9)
                np.testing.assert_allclose(features[i], expected(X[:40]), atol=1e-9)
            slope = jax.jit(jax.grad(lambda scale: error(scale)[0]))
            moved = [error(1.7 + step)[0] for step in (1e-6, -1e-6)]
            np.testing.assert_allclose(slope(1.7), (moved[0] - moved[1]) / 2e-6, rtol=1e-5)

    @pytest.mark.slow
    @pytest.mark.oldest
    def test_features_beyond_the_numerical_rank_are_zero(self):
        points = np.repeat(X[:4], 3, axis=0)
        phi = PivotedCholesky.fit(RBF(1.0), points, rank=9)
        assert (phi.size, phi.rank) == (9, 4)
        np.testing.assert_array_equal(phi(X)[:, 4:], 0)
        np.testing.assert_allclose(phi(points) @ phi(points).T, RBF(1.0)(points), atol=1e-12)
        assert "numerical rank 4: the other features are zero" in str(phi.report)
        low = PivotedCholesky.fit(RBF(1.0), points[:, :1] * 0, rank=2)
        np.testing.assert_allclose(low([0.0, 9.0]) @ low([0.0, 9.0]).T, [[1, 0], [0, 0]], atol=1e-12)

    def test_jax_in_jax_out(self):
        x = jnp.asarray(X)
        phi = PivotedCholesky.fit(RBF(1.0), x, tolerance=1e-4)
        assert phi(x).dtype == jnp.float32
        np.testing.assert_allclose(phi(x) @ phi(x).T, RBF(1.0)(X), atol=1e-2)
        assert float(phi.relative_error) <= 1e-4
        mixed = PivotedCholesky.fit(RBF(1.0), X, tolerance=1e-4)(x)
        assert mixed.dtype == jnp.float32

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    def test_feature_kernel_obeys_every_law(self, law):
        law(FeatureKernel(PivotedCholesky.fit(RBF(1.0), X, tolerance=1e-3)), X[:9])

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: PivotedCholesky.fit("rbf", X), KindError, "kernel is 'rbf'; expected a kernel"),
            (lambda: PivotedCholesky.fit(RBF(1.0), []), EmptyError, "x is empty"),
            (lambda: PivotedCholesky.fit(RBF(1.0), X, tolerance=-1), ParameterError, "tolerance is -1.0"),
            (
                lambda: PivotedCholesky.fit(RBF(1.0), X, tolerance=1.5),
                ParameterError,
                "tolerance is 1.5; expected a fraction",
            ),
            (lambda: PivotedCholesky.fit(RBF(1.0), X, max_rank=0), ParameterError, "max_rank is 0"),
            (lambda: PivotedCholesky.fit(RBF(1.0), X, rank=0), ParameterError, "rank is 0"),
            (
                lambda: PivotedCholesky.fit(RBF(1.0), X, rank=121),
                ParameterError,
                "rank is 121, but the matrix has only 120 rows",
            ),
            (
                lambda: PivotedCholesky.fit(Linear(), np.zeros((3, 2))),
                InputError,
                "zero for every point of x: there is nothing",
            ),
            (
                lambda: PivotedCholesky.fit(RBF(1.0), X)(X[:, :1]),
                ShapeError,
                "x and the points of the fit differ in their columns",
            ),
            (
                lambda: PivotedCholesky.fit(Delta(), ["a"])(np.array([["a", "b"]])),
                ShapeError,
                "differ in their columns",
            ),
            (
                lambda: jax.jit(lambda x: PivotedCholesky.fit(RBF(1.0), x)(x))(X),
                ParameterError,
                "inside jit .* pass, for example, rank=50",
            ),
            (
                lambda: PivotedCholesky.fit(RBF(1.0), scipy.sparse.eye_array(4), rank=2),
                KindError,
                "x is sparse, and rank= works on dense",
            ),
            (
                lambda: PivotedCholesky.fit(Precomputed([[1.0, 2.0], [2.0, 1.0]]), [0, 1]),
                InputError,
                "not positive semidefinite",
            ),
        ],
    )
    def test_what_cannot_be_used_is_explained(self, call, error, message):
        with pytest.raises(error, match=message):
            call()

    def test_a_report_needs_known_numbers(self):
        with pytest.raises(KindError, match="a report needs concrete values"):
            jax.jit(lambda x: PivotedCholesky.fit(RBF(1.0), x, rank=2).report.steps)(X[:5])


@pytest.mark.slow
def test_twenty_thousand_points_to_a_millionth():
    """In seconds and under 1 GiB, where the Gram matrix would take 3 GiB."""
    start = time.perf_counter()
    _, memory = run_alone("""
        x = rng.normal(size=(20_000, 2))
        phi = features.PivotedCholesky.fit(kernels.RBF(0.5), x, tolerance=1e-6)
        assert phi.relative_error <= 1e-6 and phi.report.converged
        some = x[::997]
        assert np.abs(phi(some) @ phi(some).T - kernels.RBF(0.5)(some)).max() <= 20_000 * 1e-6
    """)
    assert memory < 1024
    assert time.perf_counter() - start < 60


def test_many_points_in_little_memory():
    """Twenty thousand points to a coarser tolerance: 1,000 MiB less than the Gram matrix, imports included."""
    _, memory = run_alone("""
        x = rng.normal(size=(20_000, 2))
        phi = features.PivotedCholesky.fit(kernels.RBF(1.5), x, tolerance=1e-4)
        assert phi.relative_error <= 1e-4
    """)
    assert memory < 400


class TestTensorProduct:
    @pytest.mark.oldest
    @pytest.mark.parametrize("q", [1, 2, 3])
    def test_power(self, q):
        phi = PivotedCholesky.fit(RBF(2.0), X[:20], tolerance=1e-3)
        psi = TensorProduct.power(phi, q)
        assert psi.size == phi.size**q
        np.testing.assert_allclose(psi(X) @ psi(X).T, (phi(X) @ phi(X).T) ** q, atol=1e-12)
        assert psi.kernel(X[:3]) == pytest.approx(RBF(2.0)(X[:3]) ** q)

    def test_compressed_power_is_the_same_kernel(self):
        psi = PivotedCholesky.fit(RBF(1.0) ** 3, X, tolerance=1e-10)
        np.testing.assert_allclose(psi(X) @ psi(X).T, RBF(1.0)(X) ** 3, atol=1e-4)

    def test_product_of_kernels_on_columns(self):
        k = OnColumns(RBF(1.0), "a") * OnColumns(Hamming(1.0), "b")
        members = (
            PivotedCholesky.fit(RBF(1.0), X[:, 0], tolerance=1e-10),
            PivotedCholesky.fit(Hamming(1.0), TABLE["b"]),
        )
        psi = TensorProduct(k, members)
        np.testing.assert_allclose(psi(TABLE) @ psi(TABLE).T, k(TABLE), atol=1e-4)

    @pytest.mark.parametrize("q", [0, -1, 1.5])
    def test_powers_that_are_refused(self, q):
        phi = PivotedCholesky.fit(RBF(2.0), X[:20], tolerance=1e-2)
        with pytest.raises(ParameterError, match=r"power is .*; expected a whole number"):
            TensorProduct.power(phi, q)

    def test_points_of_other_columns_are_refused(self):
        phi = PivotedCholesky.fit(RBF(2.0), X[:20], tolerance=1e-2)
        with pytest.raises(ShapeError, match="differ in their columns"):
            TensorProduct.power(phi, 2)(X[:, 0])


class TestNystrom:
    @pytest.mark.oldest
    def test_exact_on_its_landmarks(self):
        k = Matern(0.5, 0.5)
        phi = Nystrom.fit(k, X, n_landmarks=30, rng=0)
        np.testing.assert_allclose(phi(phi.landmarks) @ phi(phi.landmarks).T, k(phi.landmarks), atol=1e-10)
        np.testing.assert_allclose(phi(phi.landmarks) @ phi(X).T, k(phi.landmarks, X), atol=1e-10)

    def test_it_is_the_projection_on_the_landmarks(self):
        k = Matern(0.5, 0.5)
        phi = Nystrom.fit(k, X, n_landmarks=30, rng=0)
        cross = k(X, phi.landmarks)
        expected = cross @ np.linalg.solve(k(phi.landmarks), cross.T)
        np.testing.assert_allclose(phi(X) @ phi(X).T, expected, atol=1e-9)
        rest = k(X) - expected
        assert np.linalg.eigvalsh(rest)[0] > -1e-10

    def test_all_points_as_landmarks_are_exact(self):
        phi = Nystrom.fit(Matern(0.5, 0.5), X, n_landmarks=120, rng=0)
        np.testing.assert_allclose(phi(X) @ phi(X).T, Matern(0.5, 0.5)(X), atol=1e-9)

    def test_singular_landmarks_lose_directions_not_digits(self):
        points = np.repeat(X[:5], 4, axis=0)
        phi = Nystrom.fit(RBF(1.0), points, n_landmarks=20, rng=0)
        assert phi.size == 5
        np.testing.assert_allclose(phi(points) @ phi(points).T, RBF(1.0)(points), atol=1e-10)

    def test_landmarks_are_different_points_and_follow_the_seed(self):
        draws = [Nystrom.fit(RBF(1.0), X, 10, rng=rng) for rng in (0, 0, 1, jax.random.key(0))]
        assert len(np.unique(draws[0].landmarks, axis=0)) == 10
        np.testing.assert_array_equal(draws[0].landmarks, draws[1].landmarks)
        np.testing.assert_array_equal(draws[0].landmarks, draws[3].landmarks)
        assert (draws[0].landmarks != draws[2].landmarks).any()

    @pytest.mark.parametrize("points", [TABLE, X], ids=["table", "array"])
    def test_any_points(self, points):
        k = OnColumns(RBF(1.0), "a") * OnColumns(Delta(), "b") if isinstance(points, dict) else RBF(1.0)
        phi = Nystrom.fit(k, points, 60, rng=0)
        assert np.abs(phi(points) @ phi(points).T - k(points)).mean() < 0.02

    def test_jax_in_jax_out(self):
        x, k = jnp.asarray(X), Matern(0.5, 0.5)  # whose landmarks are well conditioned in float32 too
        phi, exact = Nystrom.fit(k, x, 40, rng=0), Nystrom.fit(k, X, 40, rng=0)(X)
        assert phi(x).dtype == jnp.float32
        np.testing.assert_allclose(jax.jit(lambda x: phi(x))(x), phi(x), atol=1e-4)
        np.testing.assert_allclose(phi(x) @ phi(x).T, exact @ exact.T, atol=1e-3)

    @pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
    def test_feature_kernel_obeys_every_law(self, law):
        law(FeatureKernel(Nystrom.fit(Matern(0.5, 0.5), X, 10, rng=0)), X[:9])

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (
                lambda: Nystrom.fit(RBF(1.0), X, 121),
                ParameterError,
                "n_landmarks is 121; expected 1 to 120, the number of points in x",
            ),
            (lambda: Nystrom.fit(RBF(1.0), X, 0), ParameterError, "n_landmarks is 0"),
            (lambda: Nystrom.fit(RBF(1.0), X, 2.5), ParameterError, "n_landmarks is 2.5; expected a whole number"),
            (lambda: Nystrom.fit(RBF(1.0), X, 5, rng=-1), ParameterError, "rng is -1"),
            (
                lambda: Nystrom.fit(RBF(1.0), X, 5, rng=0)(X[:, :1]),
                ShapeError,
                "x and the landmarks differ in their columns",
            ),
            (
                lambda: jax.jit(lambda x: Nystrom.fit(RBF(1.0), x, 5, rng=0)(x))(X),
                KindError,
                "runs on the host and cannot be traced: use Pivoted",
            ),
            (lambda: Nystrom.fit(None, X), KindError, "kernel is None"),
        ],
    )
    def test_what_cannot_be_used_is_explained(self, call, error, message):
        with pytest.raises(error, match=message):
            call()
