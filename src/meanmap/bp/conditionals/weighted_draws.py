"""Draws weighted by evidence: how many they amount to, and densities smoothed from them."""

import numpy as np

from meanmap.bp.beliefs.densities import NormalMixture
from meanmap.core.errors import InputError

__all__ = ["FEW_DRAWS", "agreeing", "effective", "evenly", "normalised", "smoothed"]

# If the effective number of draws given the evidence is below this, a note says so.
FEW_DRAWS = 100
# The shortest interval with half of a normal distribution has this many standard deviations; the width of a kernel is
# this many of them for one draw (Silverman 1986, equation 3.31).
HALF, THUMB = 1.349, 0.9
# Widths are reduced to this share at most.
LEAST = 1e-3


def agreeing(weights: np.ndarray, n: int) -> tuple[float, tuple[str, ...]]:
    """The number of draws that weights amount to, and a note if these are few of n."""
    count = float(1 / np.sum(weights**2))
    note = (
        f"{count:.3g} of {n} draws agree with the evidence, which is improbable: beliefs rest on these, and their "
        "means and intervals are rough."
    )
    return count, (note,) if count < FEW_DRAWS else ()


def effective(log_weights: np.ndarray) -> float:
    """The number of draws that weights amount to."""
    weights = normalised(log_weights)
    return float(1 / np.sum(weights**2))


def normalised(log_weights: np.ndarray) -> np.ndarray:
    """Weights of draws that sum to one."""
    if not np.isfinite(log_weights.max()):
        raise InputError("no draw agrees with the evidence: its labels never occurred with such parents.")
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def evenly(weights: np.ndarray, n: int) -> np.ndarray:
    """The places of n draws that count alike, instead of others by weight: each as often as its weight says, up to
    one.
    """
    return np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n).clip(max=len(weights) - 1)


def smoothed(draws: np.ndarray, weights: np.ndarray, most: np.ndarray) -> NormalMixture:
    """Densities of draws (B, m) with these weights, smoothed by at most such widths (B, m).

    Widths are those by which residuals are smoothed, and less where evidence leaves less: the rule of thumb for the
    shortest interval with half of the weight. Where widths are zero draws stay; others are shrunk towards their mean,
    so that mean and variance are those of the draws (Silverman & Young 1987).
    """
    order = np.argsort(draws, axis=1)
    x, each = (np.take_along_axis(values, order, axis=1) for values in (draws, weights))
    rising = np.cumsum(each, axis=1)
    ends = [np.searchsorted(row, row - own + 0.5 - 1e-9) for row, own in zip(rising, each, strict=True)]
    ends = np.array(ends, dtype=int).reshape(draws.shape)
    last = np.take_along_axis(x, ends.clip(max=draws.shape[1] - 1), axis=1)
    half = np.where(ends < draws.shape[1], last - x, np.inf).min(axis=1, keepdims=True)
    moving = np.where(most > 0, weights, 0.0)
    total = np.maximum(moving.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    thumb = THUMB * half / HALF * ((moving / total) ** 2).sum(axis=1, keepdims=True) ** (1 / 5)
    widths = np.clip(thumb, LEAST * most, most)
    mean = (moving * draws).sum(axis=1, keepdims=True) / total
    variance = (moving * (draws - mean) ** 2).sum(axis=1, keepdims=True)
    added = (moving * widths**2).sum(axis=1, keepdims=True)
    nearer = np.sqrt(1 - np.minimum(added / np.maximum(variance, np.finfo(float).tiny), 1.0))
    return NormalMixture(weights, np.where(widths > 0, mean + nearer * (draws - mean), draws), widths**2)
