import numpy as np
import pytest

from meanmap.linalg.cross_validation import best_shift, generalised, relative_ridges


def test_generalised_cross_validation_is_that_of_the_dense_smoother():
    rng = np.random.default_rng(4)
    basis = np.linalg.qr(rng.normal(size=(30, 6)))[0]
    y, values, shifts = rng.normal(size=(30, 2)), np.array([3.0, 1.0, 0.4, 0.1]), np.array([0.1, 1.0])
    free, bent = basis[:, :2], basis[:, 2:]
    rest = y - free @ (free.T @ y)
    found = generalised(shifts, values, np.sum((bent.T @ rest) ** 2, axis=1), np.sum(rest**2), 2, 30, charge=1.4)
    for shift, score in zip(shifts, found, strict=True):
        hat = free @ free.T + bent @ np.diag(values / (values + shift)) @ bent.T
        wanted = np.sum((y - hat @ y) ** 2) / 30 / (1 - 1.4 * np.trace(hat) / 30) ** 2
        assert score == pytest.approx(wanted, rel=1e-10)
    few = generalised(shifts, values, np.ones(4), 9.0, 2, 30, most=0.15)
    assert np.isinf(few).tolist() == [True, False]
    assert best_shift(shifts, values, np.ones(4), 9.0, 2, 30, most=0.15) == (1.0, few[1])


def test_no_ridge_is_below_rounding():
    assert relative_ridges()[[0, -1]] == pytest.approx([1e-8, 1.0], rel=1e-12)
    assert relative_ridges(np.float32)[0] == pytest.approx(1e3 * 2.0**-23)
