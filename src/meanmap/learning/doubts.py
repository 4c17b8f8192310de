"""Notes on doubtful learned kernels, from the data and from the modes."""

from itertools import combinations, pairwise

import numpy as np

from meanmap.core.arrays import out_of_range
from meanmap.core.errors import ColumnError
from meanmap.core.language import counted, in_few_words, in_python
from meanmap.core.tables.column import middle_units
from meanmap.core.types import Seed
from meanmap.kernels.base import Kernel
from meanmap.kernels.terms import terms_of
from meanmap.learning.default import median_heuristic
from meanmap.learning.modes import SAME, Mode

__all__ = ["check_columns", "data_doubts", "left_out", "mode_doubts", "unseen_columns"]

# A column with fewer different values than this share of its rows is counted or rounded, not measured.
FEW_VALUES = 0.5
# Robust standard deviations (1.48 times the median absolute deviation) beyond which a point is an outlier. One point at
# 100 standard deviations in 500 was seen to multiply the learned lengthscale by 7.
FAR = 10.0
# Rows between gaps of this many robust standard deviations, far away, are a group and no outliers if they are this
# share of all, this many, and as far from all others as from each other. So were 312 of 8200 Cauchy, lognormal, Pareto
# and t columns of 100 to 10,000 rows.
GAP, GROUP, FEWEST = 2.0, 0.01, 5
# From this many columns on the pseudolikelihood was seen to choose a constant fraction of the median distance.
MANY_COLUMNS = 5
FRACTION = (0.4, 0.8)
# The square of a deviation of this size still has all its digits.
LEAST_SPREAD = 1e-150
# Where a lengthscale is this many standard deviations of a column, two rows that are two standard deviations apart in
# this column alone have a kernel of .92 k(x, x).
UNSEEN = 5.0
# Several modes, none the highest of this many draws of landmarks: they disagree.
AGREED = 0.8


def check_columns(x: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuse columns for which no density exists."""
    for name, column in zip(names, x.T, strict=True):
        if (column == column[0]).all():
            raise ColumnError(f"{name} of x is constant, so that no density of x exists: drop it.")
    scales = x.std(axis=0)
    if scales.min() < LEAST_SPREAD:
        raise out_of_range(f"a column of x varies by {scales.min():.1g} only")
    scaled = (x - x.mean(axis=0)) / scales
    if len(x) > x.shape[1] and np.linalg.matrix_rank(scaled, tol=1e-9 * len(x) ** 0.5) < x.shape[1]:
        raise ColumnError(
            "a column of x is a linear combination of others, so that no density of x exists: drop one of them."
        )


def data_doubts(x: np.ndarray, names: tuple[str, ...]) -> list[str]:
    """Counted or rounded columns, groups of rows far from the others, and outliers."""
    found = []
    for name, column in zip(names, x.T, strict=True):
        different = len(np.unique(column))
        if different < FEW_VALUES * len(column):
            found.append(
                f"{name} takes {different} values in {len(column)} rows: it is discrete, and has no density to learn "
                "from. Use kernel='median', or mm.kernels.Delta for labels."
            )
            continue
        found += _far_doubts(name, column)
    return found


def _far_doubts(name: str, column: np.ndarray) -> list[str]:
    """Groups of rows far from the middle, and outliers, which are in none."""
    middle = np.median(column)
    robust = max(1.4826 * np.median(np.abs(column - middle)), middle_units(column))
    if robust <= 0:
        return []
    rising, found, alone = np.sort(column), [], 0
    gaps = np.diff(rising, prepend=-np.inf, append=np.inf)
    starts = np.flatnonzero(gaps > GAP * robust)
    for start, stop in pairwise(starts):
        near = rising[start:stop]
        far = int(np.sum(np.abs(near - middle) > FAR * robust))
        apart = near[-1] - near[0] <= min(gaps[start], gaps[stop])
        if far and apart and len(near) >= max(GROUP * len(column), FEWEST):
            found.append(
                f"{len(near)} values of {name} ({100 * len(near) / len(column):.2g}% of the rows) lie close together "
                f"near {np.median(near):.4g}, far from the others: a group of rows, not outliers. The gap can pull the "
                "lengthscale up: compare with lengthscales learned from each group alone."
            )
        else:
            alone += far
    if alone:
        found.append(
            f"{counted(alone, 'value')} of {name} {'lies' if alone == 1 else 'lie'} more than {FAR:g} robust standard "
            "deviations away: outliers pull the lengthscale up. Trim them, or transform the column."
        )
    return found


def left_out(names: tuple[str, ...], without: list[str]) -> list[str]:
    """Columns that the kernel is not on."""
    if not without:
        return []
    are = "is" if len(without) == 1 else "are"
    return [f"the kernel is on {', '.join(names)} alone: {', '.join(without)} {are} left out."]


def mode_doubts(modes: list[Mode], x: np.ndarray, score: str, rng: Seed) -> list[str]:
    """Optimum on a bound, draws that disagree, a constant multiple of the median."""
    best, found = modes[0], []
    if best.at_bound:
        found.append(
            "the best lengthscale lies at an end of the search range: the objective has no maximum inside, and the "
            "kernel does not describe the data."
            if np.size(best.vector) == 1
            else "a lengthscale lies at an end of the search range: its factor, term or column adds nothing, or "
            "the kernel does not describe the data."
        )
    if len(modes) > 1 and max(mode.share for mode in modes) < AGREED:
        found.append("draws of landmarks disagree on which mode is the highest: look at all modes.")
    found += [
        f"two terms of {mode.kernel!r} have the same lengthscales: they are one kernel, and a sum adds nothing to it."
        for mode in modes
        if _doubled(mode.kernel)
    ]
    d = x.shape[1]
    if score == "pseudolikelihood" and d >= MANY_COLUMNS and len(modes) == 1 and np.size(best.vector) == 1:
        ratio = float(np.exp(best.vector[0])) / median_heuristic(x, rng=rng)
        if FRACTION[0] < ratio < FRACTION[1]:
            found.append(
                f"in {d} columns the lengthscale is {ratio:.2f} times the median distance, as for data without any "
                "structure: the median heuristic would do as well."
            )
    return found


def unseen_columns(kernel: Kernel, x: np.ndarray, columns: tuple[str, ...]) -> list[str]:
    """Columns that vary much less than the lengthscales which they share with wider columns."""
    d = x.shape[1]
    factors = [factor for term in terms_of(kernel) for factor in term.factors]
    inverses = np.zeros((len(factors), d))
    for own, factor in zip(inverses, factors, strict=True):
        own[list(factor.on(d))] = 1 / np.asarray(factor.kernel.lengthscale)
    seen = x.std(axis=0) * inverses.max(axis=0)
    unseen = [name for name, size in zip(columns, seen, strict=True) if size < 1 / UNSEEN]
    if not 0 < len(unseen) < d:
        return []
    it = "it" if len(unseen) == 1 else "them"
    remedy = in_python(f"give it one per column, such as mm.kernels.RBF(np.ones({d}))", "add --each")
    note = (
        f"one lengthscale is for all columns, and the standard deviation of {in_few_words(unseen)} is less than a "
        f"fifth of it, so that the kernel hardly depends on {it}: {remedy}."
    )
    return [note]


def _doubled(kernel: Kernel) -> bool:
    """Whether two terms of a sum differ in their weights only."""
    forms = [
        [(f.smoothness, f.columns, np.log(np.asarray(f.kernel.lengthscale, float))) for f in term.factors]
        for term in terms_of(kernel)
    ]
    return any(
        [each[:2] for each in one] == [each[:2] for each in other]
        and all(np.abs(a - b).max() < SAME for (*_, a), (*_, b) in zip(one, other, strict=True))
        for one, other in combinations(forms, 2)
    )
