"""Depth of each cell separately, by what a practitioner would try first, on standardised features."""

from typing import Any

import numpy as np

__all__ = ["REGRESSIONS", "by_cell"]

# Cells that kernel ridge regression learns from, and how it is chosen.
LANDMARKS = 600
WIDTHS = (0.25, 0.5, 1.0, 2.0)  # of the median heuristic
RIDGES = np.logspace(-4, 3, 15)


def _ridge(inputs: np.ndarray, targets: np.ndarray, seed: int) -> Any:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    del seed
    return make_pipeline(StandardScaler(), RidgeCV(RIDGES)).fit(inputs, targets)


def _kernel_ridge(inputs: np.ndarray, targets: np.ndarray, seed: int) -> Any:
    """On landmarks; width and ridge are the best on the last third of the cells, which are from other scenes."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def expanded(width: float) -> Any:
        # Of d standardised columns the median squared distance is about 2 d.
        rate, size = 0.25 / inputs.shape[1] / width**2, min(LANDMARKS, len(inputs) // 2)
        return make_pipeline(StandardScaler(), Nystroem(gamma=rate, n_components=size, random_state=seed))

    begin, tried = len(inputs) * 2 // 3, []
    level = targets[:begin].mean()
    for width in WIDTHS:
        phi = expanded(width).fit_transform(inputs)
        values, vectors = np.linalg.eigh(phi[:begin].T @ phi[:begin])
        moments, late = vectors.T @ (phi[:begin].T @ (targets[:begin] - level)), phi[begin:] @ vectors
        for ridge in RIDGES:
            guess = late @ (moments / (np.maximum(values, 0) + ridge)) + level
            tried.append((float(np.mean((guess - targets[begin:]) ** 2)), width, float(ridge)))
    _, width, ridge = min(tried)
    return make_pipeline(expanded(width), Ridge(ridge)).fit(inputs, targets)


def _boosting(inputs: np.ndarray, targets: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(early_stopping="auto", max_iter=300, random_state=seed).fit(inputs, targets)


REGRESSIONS = {
    "kernel ridge regression of each cell": _kernel_ridge,
    "ridge regression of each cell": _ridge,
    "boosting of each cell": _boosting,
}


def by_cell(name: str, features: np.ndarray, depth: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Predicted depth (n, h, w) of test scenes (n, h, w, d), learned from the cells of others whose depth is known."""
    inputs, targets = features.reshape(-1, features.shape[-1]), depth.ravel()
    known = np.isfinite(targets)
    fitted = REGRESSIONS[name](inputs[known], targets[known], seed)
    return fitted.predict(test.reshape(-1, test.shape[-1])).reshape(test.shape[:3])
