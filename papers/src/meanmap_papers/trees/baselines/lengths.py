"""Retrieval by length alone: a translation is about as long as its original (Gale & Church 1991)."""

from collections.abc import Sequence

import numpy as np

__all__ = ["length_distance", "normalised"]


def normalised(lengths: np.ndarray) -> np.ndarray:
    """Lengths with mean zero and variance one within the language."""
    return (lengths - lengths.mean()) / lengths.std()


def length_distance(evidence: Sequence[np.ndarray], candidates: np.ndarray) -> np.ndarray:
    """Between the mean normalised length of each query over its languages and that of candidates."""
    return np.abs(np.mean(evidence, axis=0)[:, None] - candidates)
