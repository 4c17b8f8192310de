"""Moments of parts, merged, are those of the whole."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import ShapeError
from meanmap.linalg import Moments


def rows(n=50, r=3, offset=0.0):
    return np.random.default_rng(0).normal(size=(n, r)) @ np.triu(np.ones((r, r))) + offset


@pytest.mark.parametrize("cuts", [(10,), (1, 2, 49), (0, 25)])
def test_parts_about_any_origins_merge_to_the_whole(cuts):
    z = rows()
    parts = [Moments.of(part, z[k]) for k, part in enumerate(np.split(z, cuts))]
    found = Moments.merged(parts)
    assert found.n == 50
    np.testing.assert_allclose(found.mean, z.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(found.second, z.T @ z / 50, rtol=1e-12)
    np.testing.assert_allclose(found.covariance(), np.cov(z.T), rtol=1e-11)
    np.testing.assert_allclose(found.covariance(lost=0), np.cov(z.T, bias=True), rtol=1e-11)


def test_the_same_parts_in_the_same_order_are_equal_bit_by_bit():
    z = rows()
    first, again = (Moments.merged(Moments.of(part) for part in np.split(z, 5)) for _ in range(2))
    assert first == again


def test_an_origin_near_the_mean_keeps_the_digits_of_a_covariance():
    z = rows(offset=1e6)
    error = np.abs(Moments.of(z, z[0]).covariance() - np.cov(z.T)).max()
    assert error < 1e-9 < np.abs(Moments.of(z).covariance() - np.cov(z.T)).max()


def test_no_rows_change_nothing():
    found = Moments.of(rows())
    assert Moments.none(3).merge(found) == found == found.merge(Moments.none(3))


def test_they_are_saved_and_loaded(tmp_path):
    found = Moments.of(rows(), rows()[0])
    assert mm.load(mm.save(found, tmp_path / "moments")) == found


def test_parts_of_other_lengths_are_refused():
    with pytest.raises(ShapeError, match=r"rows of length 3 and the other of 2"):
        Moments.none(3).merge(Moments.none(2))
