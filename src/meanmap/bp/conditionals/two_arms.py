"""The distributions of two arms of a cause: a smooth regression on all rows, corrected by weighted residuals.

For a function h of the outcome, and m(t, z) = E[h | t, z] of the distribution given the cause and what is adjusted for,
the mean of h with the cause set to a is estimated by

    Σᵢ m(a, zᵢ) / n + Σᵢ wᵢ (h(yᵢ) − m(tᵢ, zᵢ)).

With a regression m = φᵀ(φφᵀ + Λ)⁻¹φ y, Λ the penalty of its smooth parts and φ̄ the mean of φ(a, zᵢ), the weights
v = φᵀ(φφᵀ + Λ)⁻¹ φ̄ are those of Σᵢ m(a, zᵢ) / n itself: they turn averages over rows into averages at a as well as
noise allows (Hirshberg & Wager 2021). They do not depend on the outcome, so that no sample splitting is needed for
residuals. With w = v, the estimate of a mean is linear in the outcome, Σ uᵢ yᵢ with u = 2 v − H v and H the matrix that
fits, and the bias of shrinkage comes in squares (Stuetzle & Mittal 1979 call it twicing).

Of a cause that is a number there are several regressions: straight in it, with gentle curves, with any, each with one
slope and with a slope that varies with z; with products of curves and z; and with rough parts. Estimates are their
mean, weighted by the evidence of each, and draws come from all (Hoeting et al. 1999): where rows show no curve,
allowing for one costs little. A slope that varies has a part of its own, as the variance of products of curves is that
of curves with z, too: where slopes differed by a label, intervals of small steps were three times as wide. Curves
do not need such a slope: where they did, straight regressions had most of the evidence along doses that saturate.

Where the outcome jumps or bends in a number, and where the cause does in what is adjusted for, the regression gets a
column that does, too (`breaks`): no smooth function fits a step, and the bias would not shrink as fast as intervals.

Between close values of a number, bias where its curve is steepest exceeds the part that intervals have for it, which is
that of a usual function. There w is computed with a larger Λ⁻¹ of slow curves, and u = w + v − H w: what Λ shrinks of
such curves is hardly left in residuals' averages, and intervals are wider by the noise of these.

Intervals have three sources. Noise, and which z came: rows, or clusters, weighted anew by the Bayesian bootstrap (Rubin
1981), with residuals over √(1 − leverage). Functions that the smooth parts do not fit: errors with the covariance
bᵀΛ⁻¹b, b = φu − φ̄, as if the function were drawn from the prior that Λ stands for (Wahba 1983); so bias widens
intervals. And few influential rows: deviations have Student's distribution with (Σu²)² / Σu⁴ degrees of freedom, u of
the difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from meanmap.bp.conditionals.breaks import Break, breaks
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.smooth import SmoothRegression
from meanmap.bp.conditionals.smooth_parts import SmoothParts
from meanmap.core.points import slices, spread_rows

__all__ = ["TwoArms", "compared", "quartiles_apart"]

DRAWS = 1000
ROWS_AT_ONCE = 2000
# Residuals are divided by at least the root of LEAST_FREE; their sizes count as at least LEAST_SIZE of the mean one.
LEAST_FREE, LEAST_SIZE = 0.05, 1e-3
# If the two values are less than SMALL_STEP interquartile ranges apart, rows are weighted with prior variances of slow
# curves that are (SMALL_STEP / share) ** FREER times as large, ten thousand times from SMALLEST_STEP down.
SMALL_STEP, SMALLEST_STEP, FREER = 0.5, 0.28, 16
# The distribution and the covariance of residuals are computed from this many of them.
RESIDUALS = 2000


@dataclass(frozen=True, eq=False)
class TwoArms:
    """Averages of both arms (2, K), draws of them (2, DRAWS, K), effective numbers of rows (2,), the share of
    regressions that are linear in the cause with one slope, and that of all that are linear in it.
    """

    plain: np.ndarray
    drawn: np.ndarray
    rows: np.ndarray
    straight: float = 0.0
    linear: float = 0.0

    @classmethod
    def of_all(cls, said: np.ndarray, units: np.ndarray | None, random: np.random.Generator) -> "TwoArms":
        """Two equal arms."""
        plain = said.mean(axis=0)
        drawn = _reweighted([np.stack([part - plain] * 2) for part in _pieces(said)], DRAWS, random, units)
        return cls(np.stack([plain] * 2), plain + drawn, np.full(2, float(len(said))))


def compared(
    y: np.ndarray,
    at: np.ndarray | None,
    t: np.ndarray,
    z: np.ndarray,
    columns: tuple[CodedColumn, tuple[int, ...]],
    arms: Sequence[np.ndarray],
    hits: np.ndarray | None,
    random: np.random.Generator,
    units: np.ndarray | None = None,
) -> tuple[TwoArms, np.ndarray]:
    """Both arms, and what smooth parts leave of the outcome, (n,), of rows that are left out. Rows of one of the
    `units`, numbers from 0, depend on one another.
    """
    n, (column, widths) = len(y), columns
    if hits is not None and column.labels is None and len(np.unique(t)) > 2:
        # Numbers whose arms have rows of their own are also treated as labels.
        t, of_cause = np.concatenate([t, hits], axis=1), (1, 2)
        arms = [np.concatenate([arm, np.eye(2)[[k]]], axis=1) for k, arm in enumerate(arms)]
    else:
        of_cause = (t.shape[1],)
    both = np.concatenate([t, z], axis=1)
    parts = SmoothParts.of(both, (*of_cause, *widths), len(of_cause), _breaks(y, both, of_cause, widths))
    design = _design(parts, both)

    def set_to(k: int, rows: slice) -> np.ndarray:
        return parts(np.concatenate([np.repeat(arms[k], len(z[rows]), axis=0), z[rows]], axis=1))

    pieces = list(slices(n, ROWS_AT_ONCE))
    means = np.stack([np.sum([set_to(k, rows).sum(axis=0) for rows in pieces], axis=0) / n for k in (0, 1)])
    freer = _freer(t[:, 0], [arm[0, 0] for arm in arms]) if column.labels is None and hits is None else 1.0
    gram = design.T @ design if freer > 1 else None

    def answer(law: _Law, draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Averages, (2, K), draws of them, and the weights of rows, (n, 2)."""
        inverse = law.regression.inverse
        balanced = inverse if gram is None else law.regression.freed(gram, parts.slow, freer)
        v = design @ (balanced @ means.T)
        u = v + design @ (inverse @ (means.T - design.T @ v))
        plain, said, residuals = np.zeros((2, law.width)), [], []
        for rows in pieces:
            set_here = np.stack([law.expected(set_to(k, rows)) for k in (0, 1)])
            left = functions(y[rows], at) - law.expected(design[rows])
            plain += set_here.sum(axis=1) / n + np.einsum("ia,ik->ak", v[rows], left)
            residuals.append(left)
            said.append(set_here)
        freed = _freed(np.concatenate(residuals), law.free, design, inverse, units)
        residuals = [freed[rows] for rows in pieces]
        said = [h + n * u[rows].T[:, :, None] * freed[rows] for h, rows in zip(said, pieces, strict=True)]
        centre = np.sum([each.sum(axis=1) for each in said], axis=0) / n
        drawn = _reweighted([each - centre[:, None] for each in said], draws, random, units)
        unbalanced = design.T @ u - means.T
        drawn += _missed(unbalanced, law.regression.variances, np.concatenate(residuals), draws, random)
        between = np.abs(u[:, 1] - u[:, 0])
        between = (between if units is None else np.bincount(units, between)) ** 2
        freedom = np.sum(between) ** 2 / np.sum(between**2)
        drawn *= np.sqrt(freedom / random.chisquare(freedom, size=draws))[:, None]
        return plain, plain[:, None] + drawn, u

    laws = _Law.averaged(design, parts, y, at)
    shares = np.array([share for share, _ in laws])
    draws = np.diff(np.round(DRAWS * np.cumsum([0.0, *shares]))).astype(int)
    plain, drawn, u = zip(*(answer(law, count) for count, (_, law) in zip(draws, laws, strict=True)), strict=True)
    u, walks = np.einsum("m,mia->ia", shares, u), parts.walks
    varies, bends = (
        np.array([law.regression.variances[columns].any() for _, law in laws])
        for columns in (parts.of_the_cause, parts.curved)
    )
    averaged = np.einsum("m,mak->ak", shares, plain)
    rows = 1 / np.sum(u**2, axis=0)
    found = TwoArms(averaged, np.concatenate(drawn, axis=1), rows, float(shares @ ~varies), float(shares @ ~bends))
    left = [law.left[:, 0] / law.free + design[:, walks] @ law.regression.weights[walks, 0] for _, law in laws]
    return found, shares @ np.array(left)


@dataclass(frozen=True, eq=False)
class _Law:
    """The outcome given rows of a design: probabilities of labels, or the mean of a number and the probabilities of
    values up to each level, for m(x) + s(x) r with the residuals r of all rows.

    Attributes
    ----------
    regression : SmoothRegression
    sizes : SmoothRegression or None
        Of log s, of a number.
    residuals : array
        Sorted; at most 2000 of them.
    at : array (G,) or None
    left, free : array (n, k), (n,)
        Residuals of the regression, and what each row leaves free: one less its leverage.
    """

    regression: SmoothRegression
    sizes: SmoothRegression | None
    residuals: np.ndarray
    at: np.ndarray | None
    left: np.ndarray
    free: np.ndarray

    @classmethod
    def averaged(
        cls, design: np.ndarray, parts: SmoothParts, y: np.ndarray, at: np.ndarray | None
    ) -> list[tuple[float, "_Law"]]:
        """The distributions by several regressions, with the share of each."""
        spread = np.maximum(y.std(axis=0), np.finfo(float).tiny)
        regressions = SmoothRegression.averaged(design, parts, y / spread)
        fitted = [(share, replace(one, weights=one.weights * spread)) for share, one in regressions]
        return [(share, cls.fit(one, design, parts, y, at)) for share, one in fitted]

    @classmethod
    def fit(
        cls, found: SmoothRegression, design: np.ndarray, parts: SmoothParts, y: np.ndarray, at: np.ndarray | None
    ) -> "_Law":
        """The distribution by a given regression."""
        left = y - found(design)
        free = np.maximum(1 - np.sum((design @ found.inverse) * design, axis=1), LEAST_FREE)
        if at is None:
            return cls(found, None, np.zeros(0), at, left, free)
        away = np.abs(left[:, 0]) / np.sqrt(free)
        of_size = SmoothRegression.fit(design, parts, np.log(np.maximum(away, LEAST_SIZE * away.mean()))[:, None])
        residuals = np.sort(left[:, 0] / np.sqrt(free) / np.exp(of_size(design)[:, 0]))
        residuals = np.quantile(residuals, np.linspace(0, 1, min(len(left), RESIDUALS)))
        return cls(found, of_size, residuals, at, left, free)

    @property
    def width(self) -> int:
        """The number of functions that are averaged."""
        return self.left.shape[1] if self.at is None else 1 + len(self.at)

    def expected(self, design: np.ndarray) -> np.ndarray:
        """At rows of a design, (m, K)."""
        means = self.regression(design)
        if self.at is None or self.sizes is None:
            return means
        away = (self.at - means) / np.exp(self.sizes(design))
        return np.concatenate([means, np.interp(away, self.residuals, np.linspace(0, 1, len(self.residuals)))], axis=1)


def quartiles_apart(t: np.ndarray) -> float:
    """The interquartile range of a number."""
    return float(np.diff(np.quantile(t, [0.25, 0.75]))[0])


def _freer(t: np.ndarray, arms: Sequence[float]) -> float:
    """By which factor prior variances of slow curves are larger where rows are weighted."""
    share = abs(arms[1] - arms[0]) / max(quartiles_apart(t), np.finfo(float).tiny)
    return float(SMALL_STEP / np.clip(share, SMALLEST_STEP, SMALL_STEP)) ** FREER


def _breaks(y: np.ndarray, rows: np.ndarray, of_cause: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Break, ...]:
    """Breaks of the outcome in the numbers of t and z, and breaks of the cause in the adjustment variables.

    If both jump at the same point, even a small jump of the outcome biases the effect (Belloni et al. 2014).
    """
    found, start = _broken(rows, (*of_cause, *widths), len(of_cause), y), sum(of_cause)
    of_z = _broken(rows[:, start:], widths, len(widths), rows[:, : of_cause[0]]) if widths else ()
    return tuple(dict.fromkeys((*found, *(each.moved(start) for each in of_z))))


def _broken(rows: np.ndarray, widths: tuple[int, ...], of_cause: int, targets: np.ndarray) -> tuple[Break, ...]:
    """The breaks of targets (n, k) in numeric columns."""
    if 1 not in widths:
        return ()
    parts = SmoothParts.of(rows, widths, of_cause, rough=False)
    design, targets = _design(parts, rows), targets / np.maximum(targets.std(axis=0), np.finfo(float).tiny)
    smooth = SmoothRegression.fit(design, parts, targets)
    return breaks(rows, widths, design, smooth.inverse, targets - smooth(design))


def _design(parts: SmoothParts, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([parts(piece) for piece in _pieces(rows)])


def _pieces(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[part] for part in slices(len(rows), ROWS_AT_ONCE)]


def _freed(
    left: np.ndarray, free: np.ndarray, design: np.ndarray, inverse: np.ndarray, units: np.ndarray | None
) -> np.ndarray:
    """Residuals (n, K) without what their own rows took from them, or their own clusters (Bell & McCaffrey 2002)."""
    if units is None:
        return left / np.sqrt(free[:, None])
    sizes, turn = np.linalg.eigh(inverse)
    found, root = left.copy(), turn * np.sqrt(np.maximum(sizes, 0))
    order = np.argsort(units, kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(units))[:-1]):
        turn, sizes, _ = np.linalg.svd(design[rows] @ root, full_matrices=False)
        more = 1 / np.sqrt(np.maximum(1 - sizes**2, LEAST_FREE)) - 1
        found[rows] += (turn * more) @ (turn.T @ left[rows])
    return found


def _reweighted(
    said: Sequence[np.ndarray], draws: int, random: np.random.Generator, units: np.ndarray | None
) -> np.ndarray:
    """Means of contributions of rows (2, m, K) about their mean, with random weights of rows, or of clusters:
    (2, draws, K).
    """
    sums, weights = np.zeros((2, draws, said[0].shape[2])), np.zeros(draws)
    if units is not None:
        whole, counts = np.concatenate(said, axis=1), np.bincount(units)
        member = csr_array((np.ones(len(units)), (units, np.arange(len(units)))))
        drawn = random.exponential(size=(draws, len(counts)))
        return np.stack([drawn @ (member @ each) for each in whole]) / (drawn @ counts)[:, None]
    for each in said:
        drawn = random.exponential(size=(draws, each.shape[1]))
        sums, weights = sums + drawn @ each, weights + drawn.sum(axis=1)
    return sums / weights[:, None]


def _missed(
    unbalanced: np.ndarray, variances: np.ndarray, left: np.ndarray, draws: int, random: np.random.Generator
) -> np.ndarray:
    """Errors by functions that smooth parts do not follow, (2, draws, K), from what weights leave unbalanced, (p, 2),
    the prior variances of weights, and residuals (n, K): what is averaged varies together as these do.
    """
    _, sizes, right = np.linalg.svd(np.sqrt(variances)[:, None] * unbalanced, full_matrices=False)
    root = (right.T * sizes) @ right  # of the covariance of both arms, whatever the signs of singular vectors
    some = left[spread_rows(len(left), RESIDUALS)]
    drawn = random.normal(size=(2, draws, len(some))) @ (some / np.sqrt(len(some)))
    return np.einsum("ab,bdk->adk", root, drawn)


def functions(y: np.ndarray, at: np.ndarray | None) -> np.ndarray:
    """Functions of the outcome that are averaged: labels, or the number and whether it is at most each level."""
    return y if at is None else np.concatenate([y, y <= at], axis=1)
