"""How much of a message counts round cycles, chosen by labels that are left out."""

from collections.abc import Callable

import numpy as np

from meanmap.bp.evidence.field_evidence import Evidence

__all__ = ["COUNTED_FLOOR", "Answers", "chosen_counting"]

SHARES = (1.0, 0.7, 0.5)
# Counting divides by messages; where it is less than whole, values are raised to this share of the largest at least.
COUNTED_FLOOR = 0.03
# With fewer seen labels the choice would be luck.
LEAST_LABELS = 100
# A fifth of the labels is left out, twice.
FOLDS, TRIED = 5, 2

# The probabilities of their labels at some nodes, with some evidence and a share: (B, nodes).
Answers = Callable[[Evidence, np.ndarray, float], np.ndarray]


def chosen_counting(labelled: np.ndarray, seen: Evidence, probabilities: Answers) -> float:
    """The share with the least log loss of labels that are left out, with all else that is known of their nodes.

    1 where there are few labels.

    Parameters
    ----------
    labelled : array (k,)
        Nodes whose labels were seen.
    seen : Evidence
        What is known of all nodes.
    probabilities : callable
        What the field answers.
    """
    if len(labelled) < LEAST_LABELS:
        return SHARES[0]
    order = np.random.default_rng(0).permutation(labelled)
    folds = [order[start::FOLDS] for start in range(TRIED)]
    losses = [np.concatenate([_loss(probabilities(seen.without(fold), fold, mu)) for fold in folds]) for mu in SHARES]
    return SHARES[int(np.argmin([loss.mean() for loss in losses]))]


def _loss(probabilities: np.ndarray) -> np.ndarray:
    """−log p of each node, the mean over queries."""
    return -np.log(np.maximum(probabilities, np.finfo(float).tiny)).mean(axis=0)
