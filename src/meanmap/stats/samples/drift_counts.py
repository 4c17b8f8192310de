"""Counts with exact p-values, which can be far smaller than those from random subsets."""

from collections.abc import Collection, Iterable, Iterator

import jax
import numpy as np

from meanmap.core.labels import are_codes, as_whole
from meanmap.core.moments import seconds
from meanmap.core.points import count
from meanmap.core.tables.kinds import family_of
from meanmap.core.types import Points

__all__ = ["SHARE_OF_COUNTS", "counts_of_column", "smallest_of", "smallest_of_counts", "with_counts"]

# The share of false alarms that counts may raise, so small that other p-values hardly increase. Half of it is for
# values beyond nearly all others, counted at these depths.
SHARE_OF_COUNTS = 0.02
DEPTHS = np.array(sorted({*2 ** np.arange(30), *3 * 2 ** np.arange(30)}))


def with_counts(pvalue: float, pool: Points, batch: Points) -> float:
    """Combine a p-value from random subsets with that of counts, by a weighted Bonferroni correction.

    With B subsets no p-value is below 1/(B + 1), however far a batch is from the pool. Given pool and batch together,
    the number of rows of the batch among the largest values of a column, among its smallest, or with a label, is
    hypergeometric while rows are exchangeable.
    """
    return float(min(pvalue / (1 - SHARE_OF_COUNTS), counts_pvalue(pool, batch) / SHARE_OF_COUNTS, 1.0))


def counts_pvalue(pool: Points, batch: Points) -> float:
    """The smallest p-value of all counts, corrected for their number. With m rows in the batch, or in a smaller pool,
    counts are of rows of the batch among the m largest and the m smallest values of each column, and above or below a
    value that ties with many. Rows with the most frequent value, as of a sensor that is stuck, and with and without
    each label are counted, too. Rows of the batch among the largest 1, 2, 3, 4, 6, ... values, fewer than m, and among
    the smallest, detect a few readings outside the range of all others. Together they have half of the level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pool, batch = rng.normal(size=(200, 1)), rng.normal(size=(20, 1))
    >>> counts_pvalue(pool, batch) > 0.05, counts_pvalue(pool, batch + 9) < 1e-20
    (True, True)
    >>> batch[:5] += 9
    >>> counts_pvalue(pool, batch) < 1e-3
    True
    """
    return _smallest(_counted(pool, batch, min(count(batch), count(pool))), count(batch), count(pool))


def counts_of_column(before: np.ndarray, here: np.ndarray) -> float:
    """The p-value of the counts of one column alone.

    Examples
    --------
    >>> usual = np.repeat([f"city {k}" for k in range(50)], 20)
    >>> counts_of_column(usual, np.append(usual[::10], ["Ulm"] * 8)) < 1e-5
    True
    """
    m, n = len(here), len(before)
    if family_of(before) in ("label", "boolean"):
        return _smallest(((False, counts) for counts in _of_labels(before, here)), m, n)
    return _smallest(_of_numbers(seconds(before)[:, None], seconds(here)[:, None], min(m, n)), m, n)


def _smallest(found: Iterable[tuple[bool, np.ndarray]], m: int, n: int) -> float:
    counted: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for of_few, counts in found:
        counted[of_few].append(counts)
    together = [np.concatenate(counts, axis=1) for counts in counted if counts]
    return smallest_of([smallest_of_counts(inside, total, m, n + m) for total, inside in together])


def smallest_of(pvalues: Collection[float]) -> float:
    """The smallest of some p-values, corrected for their number (Bonferroni); 1 if there is none."""
    return min([1.0, *(len(pvalues) * pvalue for pvalue in pvalues)])


def smallest_of_counts(inside: np.ndarray, total: np.ndarray, m: int, n: int) -> float:
    """The smallest p-value of counts as large or larger in a batch of m of all n rows, corrected for their number."""
    from scipy.stats import hypergeom

    many = inside * n > total * m  # counts above their expectation; other p-values are near 1
    least = hypergeom.sf(inside[many] - 1, n, total[many], m).min(initial=1.0)
    return float(min(least * max(np.count_nonzero((total > 0) & (total < n)), 1), 1.0))


def _counted(pool: Points, batch: Points, k: int) -> Iterator[tuple[bool, np.ndarray]]:
    """Each count in pool and batch together, and in the batch alone, (2, counts), and whether it is of fewer than k
    extreme values.
    """
    for before, here in zip(jax.tree.leaves(pool), jax.tree.leaves(batch), strict=True):
        if are_codes(before):
            for one, other in zip(as_whole(before).T, as_whole(here).T, strict=True):
                yield from ((False, counts) for counts in _of_labels(one, other))
        elif isinstance(before, np.ndarray) and before.ndim == 2:
            yield from _of_numbers(before, here, k)


def _of_labels(before: np.ndarray, here: np.ndarray) -> Iterator[np.ndarray]:
    """Counts of rows with each label, and without it."""
    labels, codes = np.unique(np.concatenate([before, here]), return_inverse=True)
    with_label = np.stack([np.bincount(part, minlength=len(labels)) for part in (codes, codes[len(before) :])])
    yield with_label
    if len(labels) > 2:  # of two labels one is counted by the other
        yield np.array([[len(codes)], [len(here)]]) - with_label


def _of_numbers(before: np.ndarray, here: np.ndarray, k: int) -> Iterator[tuple[bool, np.ndarray]]:
    """Counts of rows among the largest and the smallest values of columns, and with the most frequent value."""
    both = np.sort(np.concatenate([before, here]), axis=0)
    for all_of, some in ((both, here), (-both[::-1], -here)):
        yield from _largest(all_of, some, k)
    modes = np.array([_mode(column) for column in both.T])
    yield False, np.stack([(both == modes).sum(axis=0), (here == modes).sum(axis=0)])


def _largest(both: np.ndarray, here: np.ndarray, k: int) -> Iterator[tuple[bool, np.ndarray]]:
    """Counts of rows with one of the `k` largest values of each column of `both`, which is sorted, and of the largest
    1, 2, 3, ... If ties with the smallest of the k more than double the number of rows, as for zeros beside rare
    events, rows above it are counted, too.
    """
    least = both[-k]
    no_less = (both >= least).sum(axis=0)
    yield False, np.stack([no_less, (here >= least).sum(axis=0)])
    tied = no_less > 2 * k
    if tied.any():
        yield False, np.stack([(each[:, tied] > least[tied]).sum(axis=0) for each in (both, here)])
    before = np.zeros_like(no_less)
    for depth in DEPTHS[: np.searchsorted(DEPTHS, k)]:
        counts = np.stack([(each >= both[-depth]).sum(axis=0) for each in (both, here)])
        new = (counts[0] > before) & (counts[0] < no_less)  # ties make counts of several depths equal
        yield True, counts[:, new]
        before = counts[0]


def _mode(ordered: np.ndarray) -> float:
    """The most frequent of sorted values, the smallest one if several are."""
    starts = np.flatnonzero(np.diff(ordered, prepend=np.nan) != 0)
    return float(ordered[starts[np.argmax(np.diff(starts, append=len(ordered)))]])
