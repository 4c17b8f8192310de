"""Pivoted Cholesky against LAPACK's pstrf, dense traces and eigenvalues, and finite differences."""

import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from meanmap.core import InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.linalg import pivoted_cholesky, pivoted_cholesky_fixed
from meanmap.linalg.pivoted import pivoted_cholesky_whole


def gram(points, scale=1.0):
    return np.exp(-((points[:, None] - points[None]) ** 2).sum(-1) / (2 * scale**2))


@pytest.fixture
def matrix():
    """A Gaussian Gram matrix with unequal variances, so that no two pivots tie."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, size=150)
    return gram(rng.normal(size=(150, 2))) * weights[:, None] * weights


def host(K, **options):
    return pivoted_cholesky(K.diagonal(), lambda i: K[:, i], **options)


def fixed(K, rank):
    return pivoted_cholesky_fixed(jnp.diag(K), lambda i: K[:, i], rank)


@pytest.mark.parametrize("route", ["host", "fixed"])
def test_pivots_and_factor_are_those_of_lapack(matrix, route):
    rank = 40
    upper, pivots, _, _ = scipy.linalg.lapack.dpstrf(matrix, tol=0.0)
    if route == "host":
        low = host(matrix, tolerance=0.0, max_rank=rank)
    else:
        low = pivoted_cholesky_fixed(np.diag(matrix), lambda i: jnp.asarray(matrix)[:, i], rank)
    np.testing.assert_array_equal(low.pivots, pivots[:rank] - 1)
    expected = np.empty((150, rank))
    expected[pivots - 1] = np.triu(upper).T[:, :rank]
    np.testing.assert_allclose(low.factor, expected, atol=1e-10)


@pytest.mark.parametrize(
    ("tolerance", "most", "stopped"), [(1e-3, None, "tolerance"), (1e-3, 7, "max_rank"), (0.0, None, "rounding")]
)
def test_a_whole_matrix_is_factored_as_column_by_column(matrix, tolerance, most, stopped):
    found = pivoted_cholesky_whole(matrix, tolerance=tolerance, max_rank=most)
    slow = host(matrix, tolerance=tolerance, max_rank=most)
    assert found.stopped == slow.stopped == stopped
    some = min(found.rank, slow.rank, 25)  # what rounding decides comes after these
    np.testing.assert_array_equal(found.pivots[:some], slow.pivots[:some])
    np.testing.assert_allclose(found.factor[:, :some], slow.factor[:, :some], atol=1e-9)
    np.testing.assert_allclose(found.trace_errors[:some], slow.trace_errors[:some], atol=1e-10)
    if stopped != "rounding":
        assert found.rank == slow.rank
        np.testing.assert_allclose(found.residual_diagonal, slow.residual_diagonal, atol=1e-12)


def test_a_whole_matrix_may_be_zero_or_of_full_rank_and_no_less_than_positive():
    full = pivoted_cholesky_whole(np.diag([1.0, 3.0, 2.0]), tolerance=0.0)
    np.testing.assert_array_equal(full.pivots, [1, 2, 0])
    np.testing.assert_allclose(full.factor @ full.factor.T, np.diag([1.0, 3.0, 2.0]))
    assert pivoted_cholesky_whole(np.zeros((2, 2)), tolerance=1e-6).rank == 0
    with pytest.raises(InputError, match="not positive semidefinite"):
        pivoted_cholesky_whole(np.array([[1.0, 2.0], [2.0, 1.0]]), tolerance=1e-6)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6, 1e-9])
def test_trace_is_certified_and_bounds_the_operator_norm(matrix, tolerance):
    low = host(matrix, tolerance=tolerance)
    error = matrix - low.factor @ low.factor.T
    np.testing.assert_allclose(np.diag(error), low.residual_diagonal, atol=1e-13)
    np.testing.assert_allclose(np.trace(error), low.trace_errors[-1], atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(error)
    assert eigenvalues.min() > -1e-13
    assert eigenvalues.max() <= low.residual_diagonal.sum()
    relative = low.trace_errors / np.trace(matrix)
    assert relative[-1] <= tolerance < relative[-2]
    assert (np.diff(low.trace_errors) < 0).all()
    assert low.report.converged
    assert low.report.steps == low.rank == low.factor.shape[1]


def test_error_is_close_to_the_best_possible(matrix):
    low = host(matrix, tolerance=1e-6)
    eigenvalues = np.sort(np.linalg.eigvalsh(matrix))[::-1]
    assert low.trace_errors[-1] < 30 * eigenvalues[low.rank :].sum()


def test_pivot_factor_maps_new_points_to_the_nystrom_kernel():
    rng = np.random.default_rng(1)
    x, new = rng.normal(size=(80, 2)), rng.normal(size=(7, 2))
    K = gram(np.vstack([x, new]))
    low = host(K[:80, :80], tolerance=1e-3)
    cross = K[80:, low.pivots]
    coordinates = low.coordinates(cross)
    nystrom = cross @ np.linalg.solve(K[np.ix_(low.pivots, low.pivots)], cross.T)
    np.testing.assert_allclose(coordinates @ coordinates.T, nystrom, atol=1e-10)
    np.testing.assert_allclose(low.coordinates(K[:80, low.pivots]), low.factor, atol=1e-10)
    assert (np.triu(low.pivot_factor, 1) == 0).all()
    with pytest.raises(ShapeError, match=r"cross has shape \(3, 2\); expected \(m, "):
        low.coordinates(np.ones((3, 2)))


def test_stops_at_the_rounding_floor_with_a_note():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 5))
    low = host(features @ features.T, tolerance=0.0)
    assert low.rank == 5
    assert not low.report.converged
    assert "numerical rank 5 in float64" in low.report.notes[0]
    np.testing.assert_allclose(low.factor @ low.factor.T, features @ features.T, atol=1e-12)
    assert len(set(low.pivots.tolist())) == 5


def test_full_rank_matrix_is_factored_exactly():
    K = np.array([[4.0, 2.0], [2.0, 3.0]])
    low = host(K, tolerance=0.0)
    np.testing.assert_allclose(low.factor @ low.factor.T, K, rtol=1e-15)
    assert low.report.status == "reached the trace tolerance"
    assert low.trace_errors[-1] == 0


def test_zero_matrix_has_rank_zero():
    low = host(np.zeros((3, 3)))
    assert low.factor.shape == (3, 0)
    assert low.coordinates(np.zeros((2, 0))).shape == (2, 0)
    assert low.report.converged


def test_max_rank_is_reported(matrix):
    low = host(matrix, tolerance=1e-6, max_rank=3)
    assert low.rank == 3
    assert not low.report.converged
    assert low.report.status == "stopped at max_rank before the trace tolerance"


def test_large_problem_is_never_formed():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(20_000, 2))

    def column(i):
        return np.exp(-((x - x[i]) ** 2).sum(1) / (2 * 0.5**2))

    tracemalloc.start()
    low = pivoted_cholesky(np.ones(20_000), column, tolerance=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert low.report.converged
    assert peak < 2**30
    rows = rng.integers(20_000, size=200)
    error = gram(x[rows], 0.5) - low.factor[rows] @ low.factor[rows].T
    np.testing.assert_allclose(np.diag(error), low.residual_diagonal[rows], atol=1e-13)
    assert np.linalg.eigvalsh(error).min() > -1e-12


def test_jax_in_gives_jax_out_and_inputs_stay(matrix):
    diagonal = np.diag(matrix).copy()
    kept = diagonal.copy()
    assert isinstance(pivoted_cholesky(diagonal, lambda i: matrix[:, i]).factor, np.ndarray)
    np.testing.assert_array_equal(diagonal, kept)
    single = jnp.asarray(matrix, jnp.float32)
    low = host(single, tolerance=1e-4)
    assert isinstance(low.factor, jax.Array)
    assert low.factor.dtype == jnp.float32
    error = matrix - np.asarray(low.factor, float) @ np.asarray(low.factor, float).T
    np.testing.assert_allclose(np.trace(error), low.residual_diagonal.sum(), atol=1e-4)
    assert np.linalg.norm(error, 2) <= low.residual_diagonal.sum()


def test_messages():
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(ShapeError, match=r"diagonal has shape \(2, 2\).*numpy.diag\(K\)"):
        pivoted_cholesky(K, lambda i: K[:, i])
    with pytest.raises(InputError, match=r"diagonal\[1\] is -1"):
        pivoted_cholesky(np.array([1.0, -1.0]), lambda i: K[:, i])
    with pytest.raises(NonFiniteError, match="diagonal holds 1 value"):
        pivoted_cholesky(np.array([1.0, np.nan]), lambda i: K[:, i])
    with pytest.raises(ParameterError, match="tolerance is 2"):
        host(K, tolerance=2)
    with pytest.raises(ParameterError, match="tolerance is -1"):
        host(K, tolerance=-1.0)
    with pytest.raises(ParameterError, match="max_rank is 0"):
        host(K, max_rank=0)
    with pytest.raises(ShapeError, match=r"column\(0\) has shape \(3,\); expected \(2,\)"):
        pivoted_cholesky(np.ones(2), lambda i: np.ones(3))
    with pytest.raises(InputError, match=r"column\(0\)\[0\] is 0.5 but diagonal\[0\] is 1; expected the same number"):
        pivoted_cholesky(np.ones(2), lambda i: K[:, 1 - i])
    with pytest.raises(InputError, match="not positive semidefinite: after the column of row 0"):
        host(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(KindError, match="use pivoted_cholesky_fixed"):
        jax.jit(lambda d: pivoted_cholesky(d, lambda i: K[:, i]).factor)(jnp.ones(2))
