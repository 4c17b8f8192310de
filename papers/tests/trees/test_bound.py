"""What the proof of theorem 3 takes for granted: the norm of an estimated embedding operator."""

import numpy as np
import pytest


def norm(K: np.ndarray, L: np.ndarray, ridge: float) -> float:
    """‖Φ (K + ridge·I)⁻¹ Υᵀ‖ from the Gram matrices of x and y; `ridge` is λm."""
    inverse = np.linalg.inv(K + ridge * np.eye(len(K)))
    values = np.linalg.eigvals(inverse @ L @ inverse @ K)
    return float(np.sqrt(values.real.max()))


def test_it_is_not_at_most_one():
    K = np.array([[1.0, 0.9], [0.9, 1.0]])
    assert norm(K, np.eye(2), 0.1) == pytest.approx(np.sqrt(0.1) / 0.2)  # 1.58


def test_it_is_at_most_one_over_twice_the_root_of_the_ridge():
    rng = np.random.default_rng(0)
    for ridge in (0.001, 0.01, 0.1):
        for _ in range(50):
            x, y = rng.normal(size=(2, 20))
            K, L = (np.exp(-0.5 * np.subtract.outer(v, v) ** 2) for v in (x, y))
            assert norm(K, L, 20 * ridge) <= 0.5 / np.sqrt(ridge) + 1e-9
