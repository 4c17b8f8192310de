"""Weights of rows that turn averages over a number as it came into averages with it set to one value."""

from collections.abc import Sequence

import numpy as np

__all__ = ["representers"]

KNOTS = (0.25, 0.5, 0.75)
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)


def representers(
    t: np.ndarray, z: np.ndarray, arms: Sequence[np.ndarray], new_t: np.ndarray, new_z: np.ndarray
) -> np.ndarray:
    """wₐ at new rows, (m, A), with E[wₐ(t, z) f(t, z)] = E f(a, z) for all f in the span of some features.

    The features are a cubic spline of t, z, and their products with t; wₐ minimises E w² − 2 E w(a, z) plus a ridge,
    chosen by the same on the other half of the rows (Chernozhukov et al. 2022). New rows beyond all that it is learned
    from count as the last of these: nothing was learned there, and one cube could weigh more than all other rows.

    Parameters
    ----------
    t, z : array (n, 1), (n, q)
        Rows to learn from.
    arms : sequence of array (1, 1)
        The values.
    new_t, new_z : array (m, 1), (m, q)
        Rows that are weighted.
    """
    knots = np.quantile(t, KNOTS)
    new_t, new_z = (np.clip(new, old.min(axis=0), old.max(axis=0)) for new, old in ((new_t, t), (new_z, z)))
    basis = _features(t, z, knots)
    centre, scale = basis.mean(axis=0), basis.std(axis=0)
    kept = scale > 1e-9

    def standard(raw: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(raw)), ((raw - centre) / np.where(kept, scale, 1.0))[:, kept]])

    phi, new = standard(basis), standard(_features(new_t, new_z, knots))
    half = np.arange(len(t)) % 2 == 0
    found = []
    for arm in arms:
        target = standard(_features(np.repeat(arm, len(t), axis=0), z, knots))
        losses = []
        for ridge in RIDGES:
            a = _solved(phi[half], target[half], ridge)
            losses.append(np.mean((phi[~half] @ a) ** 2) - 2 * np.mean(target[~half] @ a))
        found.append(new @ _solved(phi, target, RIDGES[int(np.argmin(losses))]))
    return np.stack(found, axis=1)


def _features(t: np.ndarray, z: np.ndarray, knots: np.ndarray) -> np.ndarray:
    return np.concatenate([t, t**2, t**3, np.maximum(t - knots, 0) ** 3, z, t * z, z**2], axis=1)


def _solved(phi: np.ndarray, target: np.ndarray, ridge: float) -> np.ndarray:
    gram = phi.T @ phi / len(phi) + ridge * np.diag(np.arange(phi.shape[1]) > 0)
    return np.linalg.lstsq(gram, target.mean(axis=0))[0]
