"""The bandwidth of density estimates, also with several modes."""

import numpy as np

from meanmap.core.bisection import zero

__all__ = ["around", "diffusion_widths"]

BINS = 1024
# Derivatives from this order on are estimated as if the density were normal.
FIRST_ORDER = 7
# The fixed point, a variance in squared lengths of the bins together, is located to this.
CLOSEST = 2e-12


def diffusion_widths(points: np.ndarray) -> np.ndarray:
    """A standard deviation of Gaussian smoothing for each column of points (n, d), by the improved Sheather-Jones rule.

    Scott's rule assumes a normal sample and smooths two modes into one. This one estimates the curvature of the
    density: the bandwidth is the fixed point t = ξγ(t) of Botev, Grotowski & Kroese (2010), found in the cosine
    transform of binned points. For d columns it is widened from n^(−1/5) to n^(−1/(d + 4)). A column without a fixed
    point, such as one with a handful of different values, gets Scott's width.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> modes = np.where(rng.random((400, 1)) < 0.5, -5.0, 5.0) + rng.normal(size=(400, 1))
    >>> diffusion_widths(modes).round(1).tolist(), (modes.std(axis=0) * 400 ** (-1 / 5)).round(1).tolist()
    ([0.4], [1.5])
    """
    n, d = points.shape
    widths = [_width(column) * n ** (1 / 5 - 1 / (d + 4)) for column in points.T]
    return np.array(widths)


def around(points: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Points √d widths from each point along each axis, in both directions, (2 d n, d): exact means of quadratics."""
    steps = np.sqrt(points.shape[1]) * np.concatenate([np.diag(widths), -np.diag(widths)])
    return (points[:, None, :] + steps).reshape(-1, points.shape[1])


def _width(column: np.ndarray) -> float:
    n = len(column)
    scott = max(float(column.std()) * n ** (-1 / 5), 1e-12)
    low, high = column.min(), column.max()
    span = 1.5 * (high - low)  # so that reflection at the ends of the bins has no effect
    if span == 0:
        return scott
    counts = np.histogram(column, BINS, (low - span / 6, high + span / 6))[0]
    # The cosine transform, which SciPy has too, but importing its parts takes longer than all of this.
    mirrored = np.fft.rfft(np.concatenate([counts, counts[::-1]]) / (2 * n))[1:BINS]
    squares = (mirrored * np.exp(-0.5j * np.pi * np.arange(1, BINS) / BINS)).real ** 2
    frequencies = np.arange(1, BINS) ** 2.0

    def gap(t: float) -> float:
        """t − ξγ(t)."""
        norm = _roughness(FIRST_ORDER, t, frequencies, squares)
        for order in range(FIRST_ORDER - 1, 1, -1):
            constant = (1 + 0.5 ** (order + 0.5)) / 3 * np.prod(np.arange(1.0, 2 * order, 2)) / np.sqrt(2 * np.pi)
            time = (2 * constant / (n * norm)) ** (2 / (3 + 2 * order)) if norm > 0 else np.inf
            norm = _roughness(order, time, frequencies, squares)
        return t - (2 * n * np.sqrt(np.pi) * norm) ** (-2 / 5) if norm > 0 else -np.inf

    least = (0.5 / BINS) ** 2  # half a bin
    if not gap(least) < 0 < gap(0.1):
        return scott
    return float(np.sqrt(zero(gap, least, 0.1, CLOSEST))) * span


def _roughness(order: int, time: float, frequencies: np.ndarray, squares: np.ndarray) -> float:
    """‖f^(order)‖² of the density smoothed for `time`, on bins with a total length of one."""
    terms = frequencies**order * squares * np.exp(-frequencies * np.pi**2 * time)
    return float(2 * np.pi ** (2 * order) * terms.sum())
