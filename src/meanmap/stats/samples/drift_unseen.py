"""Labels that only one row has: are they more frequent in the latest batches than in the rows before?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from meanmap.stats.samples.drift_tally import Part, Risen

__all__ = ["UNSEEN", "newer", "rows_alone"]

# What such a change is called among the changes of a column.
UNSEEN = "unseen"


def newer(
    parts: Sequence[Part], reference: Mapping[str, Mapping[str, int]], batch: Mapping[str, Mapping[str, int]]
) -> dict[str, Risen]:
    """For each column of labels the latest batches in which labels of one row are most surely too frequent.

    Where labels are many, each is too rare to be tested by itself, but if they are replaced, nearly every row of a
    batch has a label that no other row has, here or before. Of n + m exchangeable rows s have such a label: the number
    of these among the m latest rows is hypergeometric given s, whatever the distribution of labels. Such rows of the
    reference estimate how often a new label is expected (Good 1953). The correction for columns is Bonferroni's; the
    latest j parts of the batches have the weight 1 / j(j + 1), and these add to one.
    """
    from scipy.stats import hypergeom

    found = {}
    for name, before in reference.items():
        if not batch.get(name):
            continue
        sides = [before, batch[name]]
        if name in parts[0].counts and not any(part.unlisted[name] for part in parts):  # parts have all labels
            sides = [part.counts[name] for part in parts]
        total = sum(map(Counter, sides), Counter())
        alone = np.array([sum(total[label] == 1 for label in side) for side in sides])
        rows = np.array([sum(side.values()) for side in sides])
        here, m = (np.cumsum(each[:0:-1]) for each in (alone, rows))
        order = np.arange(1, len(here) + 1)
        chances = hypergeom.sf(here - 1, rows.sum(), alone.sum(), m) * order * (order + 1) * len(reference)
        at = int(np.argmin(chances))
        lengths = [1] if len(sides) == 2 else [part.batches for part in parts[:0:-1]]
        (c, k), (s, n) = (int(here[at]), int(m[at])), (int(alone.sum()), int(rows.sum()))
        batches = list(accumulate(lengths))[at]
        found[name] = Risen(batches, (c, k), (s - c, n - k), min(1.0, float(chances[at])), False)
    return found


def rows_alone(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The shares of rows of two columns whose label no other row of both has."""
    _, codes, counts = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    alone = counts[codes] == 1
    return float(alone[: len(first)].mean()), float(alone[len(first) :].mean())
