"""The statistic of a conditional test from residuals of regressions, and its null distribution."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.features.states.passes import SAMPLE
from meanmap.stats.conditional.asking_again import asked_again
from meanmap.stats.conditional.leftover import NOTHING, Leftover
from meanmap.stats.conditional.passes import Passes, Streamed
from meanmap.stats.conditional.regression import variance_parts, variance_ratios
from meanmap.stats.conditional.residuals import MOST_ROWS, Given, Residuals, residuals
from meanmap.stats.conditional.statistics import Products, beyond, permuted
from meanmap.stats.conditional.straight import Straight
from meanmap.stats.conditional.variables import Variable
from meanmap.stats.limits import limit_null
from meanmap.stats.result import Null

__all__ = ["Fitted", "judge", "judge_streamed", "law_of", "nothing_left", "pairs_of", "passes_of"]

# The weight in the statistic of features of the unregressed numbers. Among weights from .25 to .6, this had the
# smallest loss of power in the worst of eight kinds of dependence, and kept the level up to 500 points. With these
# features alone the rejection rate under the null rose from .05 to .08.
PLAIN = 0.4
# If z leaves less than this share of the variance of both sides, the rest may be functions that the regressions miss.
# With 50 to 400 points they left up to .001 of the variance of smooth functions and of |z|, and .02 to .04 of that of
# steps.
MISSED = 0.05


def judge(
    left: Residuals,
    right: Residuals,
    given: Given,
    method: str,
    null: str,
    n_draws: int,
    generator: np.random.Generator,
    units: np.ndarray | None = None,
    missed: Leftover = NOTHING,
) -> tuple[float, Null]:
    """The statistic and its null distribution, whose draws are inflated for the variance shared by fits to the same
    points.

    `units` are the rows' clusters, whose signs the bootstrap flips together. The largest contribution of `missed`
    functions of z is subtracted from the statistic.
    """
    if left.determined or right.determined:
        return 0.0, nothing_left(n_draws)
    bias = missed.bias * len(given.columns)
    if method == "residuals":
        assert left.first is not None
        assert right.first is not None
        truth, signed = variance_parts(left.first, 1 - left.first.shrinkage, right.first, 1 - right.first.shrinkage)
        ratio = truth.sum() / signed.sum()
        values = permuted(left.features, right.features, n_draws, generator)
        size = float(np.mean(np.sum(left.features**2, axis=1)) * np.mean(np.sum(right.features**2, axis=1)))
        return beyond(float(values[0]), bias * size), Null(
            "permutation of the residuals", ratio * values[1:], exact=False
        )
    ratios = once = variance_ratios(left.second, 1 - left.second.shrinkage, right.second, 1 - right.second.shrinkage)
    # Both regressions act on the linear part of the features, but only the second acts on the rest.
    if left.first is not None and right.first is not None:
        twice = variance_ratios(left.first, _twice(left), right.first, _twice(right))
        ratios = once + left.share * right.share * np.maximum(0, twice - once)
    pairs, shares = pairs_of(left, right, method)
    if len(pairs) > 1:
        one, other = (side.third or side.second for side in (left, right))
        plain = variance_ratios(one, 1 - one.shrinkage, other, 1 - other.shrinkage)
        ratios = shares[0] * ratios + shares[1] * plain
    products, straight = Products(pairs, shares, given.local), _straight(left, right, units is None)
    if null == "bootstrap":
        return products.bootstrap(ratios, n_draws, generator, units, straight, bias)
    return products.limit(null, ratios, n_draws, generator, straight, bias)


def pairs_of(left: Residuals, right: Residuals, method: str) -> tuple[list[tuple[np.ndarray, np.ndarray]], list[float]]:
    """Features of both sides whose products are tested, and the share of each pair in the statistic."""
    if method == "residuals":
        return [(left.features, right.features)], [1.0]
    pairs = [(left.left, right.left)]
    if left.plain is None and right.plain is None:
        return pairs, [1.0]
    u, v = (side.left if side.plain is None else side.plain for side in (left, right))
    return [*pairs, (u, v)], [1 - PLAIN, PLAIN]


def judge_streamed(
    sides: Sequence[Any], conditions: Variable, null: str, n_draws: int, generator: np.random.Generator, door: Door
) -> tuple[float, Null, Any, "Fitted"]:
    """The statistic, its null, kernels and fits: everything is chosen on a sample, then sums run over all rows."""
    n = len(conditions.columns)
    sample = np.arange(n) if n <= SAMPLE else np.sort(generator.choice(n, SAMPLE, replace=False))
    some, given = [side.rows(sample) for side in sides], conditions.rows(sample)
    passes, used, fitted = passes_of(some, given, generator, door)
    if passes is None:
        return 0.0, nothing_left(n_draws), used, fitted
    points = tuple((each.numbers, each.indicators) for each in (*sides, conditions))
    while passes.left > 1:
        passes = passes.after(passes.sums([points]))
    value, law, fitted = law_of(passes.result(passes.sums([points])), fitted, n, null, n_draws, generator)
    return value, law, used, fitted


def passes_of(
    sides: Sequence[Variable], conditions: Variable, generator: np.random.Generator, door: Door
) -> tuple[Passes | None, tuple[Any, Any], "Fitted"]:
    """The passes (None if x or y has no residual variance), kernels and first fits, chosen on a sample of rows."""
    n = len(conditions.columns)
    few = np.arange(n) if n <= MOST_ROWS else np.sort(generator.choice(n, MOST_ROWS, replace=False))
    given, some = Given.of(conditions.rows(few), generator, streamed=True), [side.rows(few) for side in sides]
    left, right = (residuals(side, "median", given, door, generator) for side in some)
    used, fitted = (left.kernel, right.kernel), Fitted.of(left, right)
    if left.determined or right.determined:
        return None, used, fitted
    three = tuple(zip(some, (left, right), strict=True))
    found = asked_again(
        left, right, lambda: [residuals(s, "median", given, door, generator, missed=m) for s, m in three]
    )
    if found is not None:
        left, right, missed = found
        used, fitted = (left.kernel, right.kernel), Fitted.of(left, right, missed)
    sample = tuple((each.numbers, each.indicators) for each in (*sides, conditions))
    return Passes.of(left, right, given, sample), used, fitted


def law_of(
    streamed: Streamed, fitted: "Fitted", n: int, null: str, n_draws: int, generator: np.random.Generator
) -> tuple[float, Null, "Fitted"]:
    """The statistic of n rows, its limiting distribution, and the degrees of freedom of the regressions."""
    value, spectrum = streamed.statistic, streamed.ratio * np.linalg.eigvalsh(streamed.covariance)
    law = limit_null(null, spectrum, n_draws, generator)
    less = beyond(value, fitted.missed.bias * n * float(np.trace(streamed.covariance)))
    return value, law, replace(fitted, freedom=streamed.freedom, sure=law.pvalue(less))


@dataclass(frozen=True)
class Fitted:
    """The outcome of the regressions of x and of y on z.

    Attributes
    ----------
    freedom : float
        The degrees of freedom of the regressions.
    rest : pair of floats
        The shares of the variance of x and of y that are unexplained.
    determined : pair of bools
        Whether x, or y, is a function of z.
    missed : Leftover
        The remaining correlation between residuals of neighbours in z, if it was checked.
    sure : float
        The p-value after subtracting the largest contribution of missed functions of z.
    before : float or None
        The p-value from regressions alone, if the reported one comes from permutations among neighbours in z.
    """

    freedom: float
    rest: tuple[float, float]
    determined: tuple[bool, bool]
    missed: Leftover = NOTHING
    sure: float = 0.0
    before: float | None = None

    @classmethod
    def of(cls, left: Residuals, right: Residuals, missed: Leftover = NOTHING) -> "Fitted":
        """The outcome for the residuals of both sides."""
        determined = left.determined, right.determined
        return cls(max(left.freedom, right.freedom), (left.rest, right.rest), determined, missed)

    @property
    def nearly(self) -> bool:
        """Whether the residual variance of both is so small that it may consist of functions that the regressions
        miss.
        """
        return not any(self.determined) and max(self.rest) < MISSED


def _straight(left: Residuals, right: Residuals, apart: bool) -> Straight | None:
    """Products of residuals that detect linear dependence; None for chosen kernels, or if neither side has numbers."""
    if left.line is None or right.line is None or (left.first is None and right.first is None):
        return None
    return Straight.of(left.line, right.line, apart=apart)


def nothing_left(n_draws: int) -> Null:
    """The null distribution if x or y is a function of z."""
    return Null("nothing is left to test", np.zeros(n_draws), exact=False)


def _twice(side: Residuals) -> np.ndarray:
    """The share of each direction left by the first regression, or by both if they have the same directions."""
    first, second = side.first, side.second
    assert first is not None
    return (1 - first.shrinkage) * (1 - second.shrinkage if second.basis is first.basis else 1.0)
