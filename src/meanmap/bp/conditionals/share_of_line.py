"""How far a line in a number with few values is supported, beside a mean of its own at each of them."""

import numpy as np

from meanmap.bp.conditionals.smooth import SmoothRegression
from meanmap.bp.conditionals.smooth_parts import STRAIGHT, SmoothParts

__all__ = ["share_of_line"]

# Values with fewer rows than this are not judged; with more values than MOST_VALUES lines are not tried.
LEAST_ROWS, MOST_VALUES = 10, 20
# Directions of the values that parts leave less than this share of are not counted.
FLAT = 1e-6


def share_of_line(y: np.ndarray, t: np.ndarray, z: np.ndarray, widths: tuple[int, ...]) -> float:
    """The weight of a line in a cause t (n, 1), with slopes that vary with z (n, q), in the mean of a number y (n, 1).

    With X² the score statistic of k means of values off the line, it is 1 / (1 + exp(X² - k)): a half where they are
    off it as far as noise takes them on average. Averages by evidence
    favour a line more: with a step of .9 standard deviations 11 of 20 90% intervals held in tables of 300 rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> t = rng.integers(0, 7, (400, 1)) - 3.0
    >>> noise, none = rng.normal(size=(400, 1)), np.zeros((400, 0))
    >>> bool(share_of_line(t + noise, t, none, ()) > 0.5), bool(share_of_line(abs(t) + noise, t, none, ()) < 0.01)
    (True, True)
    """
    values, counts = np.unique(t, return_counts=True)
    if not 2 < len(values) <= MOST_VALUES:
        return 0.0
    rows = np.concatenate([t, z], axis=1)
    parts = SmoothParts.of(rows, (1, *widths), 1, most=STRAIGHT)
    design = parts(rows)
    found = SmoothRegression.fit(design, parts, y / max(float(y.std()), np.finfo(float).tiny))
    left = y / max(float(y.std()), np.finfo(float).tiny) - found(design)
    means = (t == values[counts >= LEAST_ROWS]).astype(float)
    means -= design @ (found.inverse @ (design.T @ means))
    turn, sizes, _ = np.linalg.svd(means, full_matrices=False)
    turn = turn[:, sizes > FLAT * np.sqrt(len(t))]
    free = len(t) - np.sum((design @ found.inverse) * design) - turn.shape[1]
    explained = np.sum((turn.T @ left) ** 2)
    statistic = explained * free / (np.sum(left**2) - explained)
    return float(1 / (1 + np.exp(np.clip(statistic - turn.shape[1], -50, 50))))
