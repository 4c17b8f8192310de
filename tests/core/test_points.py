"""Points as pytrees: counting, cutting, padding, sizes."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from meanmap.core.containers import is_sparse
from meanmap.core.points import any_sparse, bucket, count, joined, one_row, pad, rows

SPARSE = scipy.sparse.csr_array(np.eye(3))


@given(st.integers(1, 10**9))
def test_bucket_is_little_above_and_seldom_new(n):
    size = bucket(n)
    assert n <= size <= max(16, 2 * n if n <= 256 else 1.25 * n)
    assert bucket(size) == size
    assert bucket(n + 1) >= size


def test_buckets_are_few():
    assert len({bucket(n) for n in range(1, 100_000)}) < 45


def test_pytrees_are_counted_cut_and_padded_together():
    points = (np.arange(6).reshape(3, 2), {"a": jnp.arange(3)})
    assert count(points) == 3
    assert one_row(points)[0].tolist() == [[0, 1]]
    assert rows(points, slice(1, 3))[1]["a"].tolist() == [1, 2]
    longer = pad(points, 5)
    assert longer[0].tolist() == [[0, 1], [2, 3], [4, 5], [0, 1], [0, 1]]
    assert longer[1]["a"].tolist() == [0, 1, 2, 0, 0]
    assert type(longer[0]) is np.ndarray
    assert pad(points, 3)[0] is points[0]


def test_sparse_points_are_told_counted_cut_and_padded():
    points = (SPARSE, np.arange(3))
    assert is_sparse(SPARSE)
    assert not is_sparse(np.eye(3))
    assert any_sparse(points)
    assert not any_sparse((np.eye(3), None))
    assert count(points) == 3
    longer = pad(points, 5)[0]
    assert scipy.sparse.issparse(longer)
    np.testing.assert_array_equal(longer.toarray(), np.eye(3)[[0, 1, 2, 0, 0]])
    assert rows(points, np.array([2]))[0].toarray().tolist() == [[0, 0, 1]]


@pytest.mark.oldest
def test_very_wide_sparse_points_are_padded():
    wide = scipy.sparse.csr_array((np.ones(2), [5, 2**61], [0, 1, 2]), shape=(2, 2**62))
    assert pad(wide, 4).shape == (4, 2**62)


def test_points_are_joined_whatever_they_are():
    both = joined((np.ones((2, 1)), SPARSE), (np.zeros((1, 1)), SPARSE))
    assert both[0].ravel().tolist() == [1, 1, 0]
    np.testing.assert_array_equal(both[1].toarray(), np.vstack([np.eye(3), np.eye(3)]))
    assert isinstance(joined(jnp.ones((1, 2)), np.ones((2, 2))), jnp.ndarray)
