"""Equivalence tests: are two distributions closer than a margin, or further apart?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.core.language import a_type, in_few_words, with_and
from meanmap.core.points import rows
from meanmap.core.rng import Rng
from meanmap.core.settings import is_number, one_of
from meanmap.core.synonyms import own_words
from meanmap.core.tables.doubts import for_clusters
from meanmap.core.tables.indices import check_order_beside
from meanmap.core.types import Data, KernelLike, Seed
from meanmap.core.values import is_sequence
from meanmap.stats.designs.reading import kept_columns
from meanmap.stats.effects.arranged import arranged, cells_of, doubts_of, says_little, tails_of, tails_of_other
from meanmap.stats.effects.groups import AtShift, Difference, difference_of
from meanmap.stats.result import Null, TestResult
from meanmap.stats.samples.comparing import mostly_one_value
from meanmap.stats.samples.moved import moved_further
from meanmap.stats.samples.samples import Samples, read_samples
from meanmap.stats.samples.two_sample import two_samples
from meanmap.stats.settings import LEAST_PVALUE
from meanmap.stats.shown import Shown
from meanmap.stats.texts import read_texts

__all__ = ["ClosenessResult", "closeness_test"]

HEAVY = (
    "So no difference can be shown to exceed a shift in standard deviations: pass unit='share', or take logarithms or "
    "ranks of the columns with heavy tails."
)
FAR = "claim='far' is confirmed too often. Pass unit='share'."

DRAWS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class ClosenessResult(TestResult):
    """The outcome of an equivalence test: the claim is confirmed if `result.reject(0.05)`.

    Attributes
    ----------
    claim : {"close", "far"}
        What a small p-value confirms: the distance is below the margin, or above it.
    margin : str
        The margin in words.
    distance, bound : float
        The estimated distance between the distributions, and the margin as a distance.
    """

    claim: str = "close"
    margin: str = ""
    distance: float = 0.0
    bound: float = 0.0

    @property
    def _claimed(self) -> str:
        return f"{'closer' if self.claim == 'close' else 'further apart'} than {self.margin}"

    def _question(self, shown: Shown) -> str:
        return f"Are {with_and(shown.names)} {self._claimed}?"

    def _answer(self) -> str:
        said = "Yes, shown" if self.pvalue <= 0.05 else "Not shown"
        return f"{said} at level 0.05 (p = {self.pvalue:.3g})."

    def lines(self) -> list[tuple[str, str]]:
        """The result in words."""
        shown = "shown" if self.pvalue <= 0.05 else "not shown"
        told = [("claim", f"{self._claimed}: {shown} at level 0.05"), ("p-value", f"{self.pvalue:.4g}")]
        told.append(("distance", f"{self.distance:.4g}, the margin is {self.bound:.4g}"))
        return told + [line for line in super().lines() if line[0] not in ("p-value", "statistic", "null")]


@own_words
def closeness_test(
    x: Data,
    y: Data = None,
    margin: Any = 0.1,
    kernel: KernelLike = None,
    *,
    claim: str = "close",
    unit: str = "shift",
    by: str | None = None,
    within: Data = None,
    clusters: Data = None,
    weights: Data = None,
    scale: bool = True,
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
    rng: Seed = None,
) -> ClosenessResult:
    """Test whether two distributions are closer than a margin, or further apart than it (an equivalence test).

    With enough data, a test of equality rejects any difference, and not rejecting is no evidence of equality. The null
    hypothesis of this test has a margin, so it can show that samples are close enough, or that they are not.

    Parameters
    ----------
    x, y : points
        As for `two_sample_test`.
    margin : float, or two samples
        The largest distance that still counts as close. A number is a shift of all columns of x by this many standard
        deviations; samples are then not close if the mean of one column is shown to differ by more. With unit="share",
        it is the distance after moving this share of the rows as far as any two rows lie apart. For two reference
        samples (a, b) that are known to be similar enough, the margin is their estimated distance, taken as exact,
        without `within`, `clusters` and `weights`.
    claim : {"close", "far"}
        What to show. "close": the null hypothesis is that the distance is at least the margin; "far": it is at most the
        margin.
    unit : {"shift", "share"}
        The meaning of a number as `margin`.
    by, kernel, scale, missing, kinds : as for `two_sample_test`
        With several kernels, as by default, their mean is used.
    within, clusters, weights : as for `two_sample_effect`
        Which rows belong together, and the weight of each.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks and the rows that are shifted; `rng=result.seed` repeats the run.

    Returns
    -------
    ClosenessResult

    Notes
    -----
    The p-value is that of ‖μ̂_P − μ̂_Q‖² if the true distance equals the margin and the difference points in the least
    favourable direction, in which the estimate varies most: see `two_sample_effect`. The p-value includes the
    uncertainty about the distance of the shift. If tails are too heavy for a standard deviation to be estimated, a
    warning names the columns and nothing is "far". If only the second sample has such tails, a warning says that the
    unit, the standard deviation of the first, may be underestimated. (Of 60 pairs of normal samples with one row of
    twenty ten times as far out, 14 were rejected at the margin, 12 with a warning.) The level is that of the normal
    approximation of means. Zhou et al. (2025, arXiv:2507.12843) test a distance normalised by the norms of the
    embeddings, by its normal limit.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2000, 1)), rng.normal(0.01, 1.0, size=(2000, 1))
    >>> closeness_test(x, y, margin=0.2, rng=0).reject()
    True
    >>> closeness_test(x, y + 0.5, margin=0.2, claim="far", rng=0).reject()
    True
    """
    one_of(claim, "claim", ("close", "far"))
    one_of(unit, "unit", ("shift", "share"))
    random = Rng.of(rng)
    reference = _reference(margin)
    keeps = kept_columns(kernel, within, clusters, weights) if reference is None else None
    check_order_beside((x, y), ("x", "y"), within=within, clusters=clusters, weights=weights)
    (x, y), names, told = two_samples(x, y, by, missing, kinds, keeps)
    (x, y), design, heard = arranged((x, y), names, (within, clusters, weights), missing, by)
    told = (*for_clusters(told, clusters is not None), *heard)
    with Door() as door:
        more = [] if reference is None else two_samples(*reference, None, missing, kinds)[0]
        if more and design is not None:
            raise ParameterError("a margin of two samples is for rows without within=, clusters= or weights=.")
        called = (*names, *("margin[0]", "margin[1]")[: len(more)])
        listed, heard = read_texts((x, y, *more), called, kernel, kinds)
        told += heard
        together = read_samples(listed, called, kernel, random.generator, door, scale)
        columns = mostly_one_value(x, y, (str(names[0]), str(names[1])), 0.95)
        pair = _pair(together, 0)
        cells = cells_of(pair.sizes, names, design)
        found = difference_of(pair, random.generator, door, cells)
        if reference is not None:
            alike = replace(_pair(together, 2), kernels=(found.kernel,))
            other = difference_of(alike, random.generator, door, moved=False)
            at, words = AtShift(other.law.estimate, 0.0, 0.0), "the two reference samples are"
            if at.distance <= 0:
                raise InputError("the reference samples do not differ by more than chance: they give no margin.")
        else:
            at, words = _bound(found, margin, unit)
    law, sizes, bound = found.law, together.sizes[:2], at.distance
    error = at.near if claim == "close" else at.far
    heavy = reference is None and unit == "shift"
    told += tails_of_other(found, pair, names, FAR) if heavy and claim == "far" else ()
    told += says_little(columns) if heavy else ()
    null = Null("null distribution at the margin", law.draws(bound, random.generator, DRAWS, error), exact=False)
    pvalue = law.below(bound, error=error) if claim == "close" else law.above(bound, error)
    further = (
        moved_further(x, y, (called[0], called[1]), float(margin))
        if heavy and claim == "close" and design is None
        else []
    )
    if further:
        pvalue, told = 1.0, (*told, _alone(further, float(margin)))
    return ClosenessResult(
        law.squared,
        max(float(pvalue), LEAST_PVALUE),
        null,
        found.kernel,
        f"test of closeness of {names[0]} and {names[1]}",
        sizes,
        random.seed,
        (*told, *together.doubts, *doubts_of(found, pair, cells), *(tails_of(found, pair, HEAVY) if heavy else ())),
        claim=claim,
        shown=Shown.of((x, y), names, paired=False),
        margin=words,
        distance=law.estimate,
        bound=bound,
    )


def _reference(margin: object) -> tuple[Any, Any] | None:
    """The two reference samples, or None if the margin is a number."""
    if is_number(margin):
        if not 0 < margin < np.inf:
            raise ParameterError(f"margin is {margin!r}; expected a positive number, such as 0.1.")
        return None
    if is_sequence(margin) and len(margin) == 2:
        return margin[0], margin[1]
    raise ParameterError(f"margin is {a_type(margin)}; expected a number, such as 0.1, or two samples, (a, b).")


def _bound(found: Difference, margin: float, unit: str) -> tuple[AtShift, str]:
    """The margin as a distance with its standard errors, and in words."""
    if unit == "share":
        if margin >= 1:
            raise ParameterError(
                f"margin is {margin!r} with unit='share'; expected a share of rows below 1, such as 0.1."
            )
        return AtShift(margin * found.reach, 0.0, 0.0), f"if {100 * margin:g}% of the rows had moved"
    if found.shifts is None:
        raise KindError("these samples have no numeric column to shift: pass unit='share', or two samples as margin.")
    at = found.at(float(margin))
    if at.distance <= 0:
        raise InputError(
            f"the first sample has too few rows to estimate the distance of a shift by {margin:g} standard deviations."
        )
    return at, f"after a shift of all columns by {margin:g} standard deviations"


def _alone(further: list[tuple[str, float]], margin: float) -> str:
    """The note if single columns differ by more than the margin, so that the samples are not close."""
    said = in_few_words([f"{name} by {shift:.2g}" for name, shift in further], 3)
    return (
        f"not close, although all columns together may be: means of single columns differ by more than {margin:g} "
        f"standard deviations: {said}"
    )


def _pair(samples: Samples, start: int) -> Samples:
    """Two neighbouring samples of several."""
    ends = np.cumsum([0, *samples.sizes])
    chosen = np.arange(ends[start], ends[start + 2])
    return replace(samples, pooled=rows(samples.pooled, chosen), sizes=samples.sizes[start : start + 2])
