"""Gaps in tables: what is hidden depends on nothing, on what remains, or on what is hidden, gently or strongly."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

__all__ = ["MECHANISMS", "hidden"]

# Where gaps depend on values, a row that has gaps has this share of its cells hidden.
TOGETHER = 0.3
# The chance of the largest values to be hidden, where only these are.
LARGEST = 0.9
MECHANISMS = ("completely at random", "at random", "not at random", "in the largest values")


def hidden(table: np.ndarray, share: float, mechanism: str, seed: int) -> np.ndarray:
    """Which cells to hide, about this share of them, as amputation does it (Schouten, Lugtig & Vink 2018).

    Each row draws the cells that it may lose. It loses them with a probability that rises, along a logistic curve, with
    the sum of its other cells where gaps are at random, and of these very cells where they are not. In the largest
    values, nine of ten of those of each column are lost, which is not at random either.
    """
    random = np.random.default_rng(seed)
    if mechanism == "completely at random":
        return random.random(table.shape) < share
    if mechanism == "in the largest values":
        return (table > np.quantile(table, 1 - share / LARGEST, axis=0)) & (random.random(table.shape) < LARGEST)
    columns = table.shape[1]
    many = max(1, round(TOGETHER * columns))
    candidates = np.argsort(random.random(table.shape), axis=1) < many
    counted = {"at random": ~candidates, "not at random": candidates}[mechanism]
    score = np.where(counted, (table - table.mean(axis=0)) / table.std(axis=0), 0).sum(axis=1)
    score = (score - score.mean()) / score.std()
    rows = share * columns / many
    shift = brentq(lambda b: expit(score + b).mean() - rows, -50, 50)
    return candidates & (random.random(len(table)) < expit(score + shift))[:, None]
