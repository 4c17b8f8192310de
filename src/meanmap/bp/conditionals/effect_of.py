"""The laws of two arms of a cause: a smooth regression on all rows, corrected by weighted residuals.

For a function h of the outcome, and m(t, z) = E[h | t, z] of the law given the cause and what is adjusted for, the mean
of h with the cause set to a is estimated by

    Σᵢ m(a, zᵢ) / n + Σᵢ wᵢ (h(yᵢ) − m(tᵢ, zᵢ)).

With a regression m = φᵀ(φφᵀ + Λ)⁻¹φ y, Λ the penalty of its smooth parts and φ̄ the mean of φ(a, zᵢ), the weights
v = φᵀ(φφᵀ + Λ)⁻¹ φ̄ are those of Σᵢ m(a, zᵢ) / n itself: they turn averages over rows into averages at a as well as
noise allows (Hirshberg & Wager 2021). They know nothing of the outcome, so that residuals need no rows of their own.
With w = v, the estimate of a mean is linear in the outcome, Σ uᵢ yᵢ with u = 2 v − H v and H the matrix that fits, and
the bias of shrinkage comes in squares (Stuetzle & Mittal 1979 call it twicing).

Where the outcome jumps or bends in a number, and where the cause does in what is adjusted for, the regression gets a
column that does, too (`breaks`): no smooth function follows a step, and its bias does not shrink as fast as intervals.

Intervals have three sources. Noise, and which z came: rows weighted anew by the Bayesian bootstrap (Rubin 1981), with
residuals over √(1 − leverage). Functions that the smooth parts do not follow: a law of errors with the covariance
bᵀΛ⁻¹b, b = φu − φ̄, as if the function were drawn from the prior that Λ stands for (Wahba 1983); so bias widens
intervals. And few rows that decide: deviations are those of Student's law with (Σu²)² / Σu⁴ degrees of freedom, u of
the difference.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any

import numpy as np

from meanmap.bp.conditionals.breaks import Break, breaks
from meanmap.bp.conditionals.causal_effect import Arm, CausalEffect, Estimate
from meanmap.bp.conditionals.codes import notes_of_codes
from meanmap.bp.conditionals.columns import CodedColumn, CodedTable
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.laws import pooled_note
from meanmap.bp.conditionals.smooth_parts import Smooth, SmoothParts
from meanmap.core.errors import EmptyError, InputError
from meanmap.core.points import slices, spread_rows
from meanmap.core.tables.missing import BY_PAIRS
from meanmap.core.tables.order import alike_in_order, counters

__all__ = ["effect_of"]

DRAWS, LEVELS = 1000, 200
# Rows that are needed altogether, and at a value that is an arm of its own.
LEAST_ROWS, LEAST_AT = 50, 20
# A number without such rows has those nearest to it as its arm, where support is asked for.
NEAR = 0.1
# Below this share of its usual probability an arm has little support; of so many rows a note says so, or a refusal.
RARER, NOTED, REFUSED = 0.1, 0.05, 0.5
ROWS_AT_ONCE = 2000
# A residual is not divided by less than the root of this, and is this share of the mean one at least where sizes count.
LEAST_FREE, LEAST_SIZE = 0.05, 1e-3
# The law of residuals is that of so many of them, and so is their covariance.
RESIDUALS = 2000
# With fewer rows of a label intervals are said to be narrow.
FEW_HITS = 20
# What comes of rows that follow each other as a series does.
HARM = "intervals are too narrow. Use the residuals of structure.prewhiten, or rows that lie far enough apart"


def effect_of(
    table: CodedTable,
    numbers: Mapping[Hashable, np.ndarray],
    on: Hashable,
    of: Hashable,
    ends: tuple[Any, Any],
    adjusted: Sequence[Hashable] | None,
    random: np.random.Generator,
    notes: tuple[str, ...] = (),
) -> CausalEffect:
    """From numbers of each variable, the two values, what is adjusted for, None without a path, and notes."""
    there: Any = ~np.isnan(np.concatenate(list(numbers.values()), axis=1)).any(axis=1)
    columns, raw = table.columns, numbers[on][there]
    used = table.standardised({name: values[there] for name, values in numbers.items()})
    y, t, n = used[on], used[of], int(there.sum())
    if n < LEAST_ROWS:
        raise EmptyError(f"{n} rows have all of {', '.join(map(repr, numbers))}; expected at least {LEAST_ROWS}.")
    notes = _of_gaps(numbers, there) + tuple(note for note in notes if BY_PAIRS not in note)
    notes += tuple(filter(None, (pooled_note(columns[name], name, on) for name in adjusted or ())))
    arms = [_value(columns[of], of, value, t, name) for value, name in zip(ends, ("from_", "to"), strict=True)]
    if np.array_equal(arms[0], arms[1]):
        raise InputError(f"from_ and to are both {ends[0]!r}; expected two values of {of!r}.")
    notes += alike_in_order(
        [{str(name): each.argmax(axis=1) if each.shape[1] > 1 else each[:, 0] for name, each in used.items()}],
        ["data"],
        HARM,
        paired=True,
    )
    for name in (of, *(adjusted or ())):
        if columns[name].labels is None:
            notes += counters(columns[name].back(used[name][:, 0]), repr(name))
    z = joined([used[name] for name in adjusted or ()], n)
    widths = tuple(used[name].shape[1] for name in adjusted or ())
    at = levels = None
    if columns[on].labels is None:
        order = np.argsort(raw[:, 0], kind="stable")
        order = order[np.unique((np.linspace(0, 1, LEVELS + 1) * (n - 1)).round().astype(int))]
        levels, first = np.unique(raw[order, 0], return_index=True)
        at = y[order[first], 0]
    of_arm = np.stack([np.all(t == arm, axis=1) for arm in arms], axis=1)
    exact = bool((of_arm.sum(axis=0) >= LEAST_AT).all())
    if not exact and columns[of].labels is not None:
        k = int(np.argmin(of_arm.sum(axis=0)))
        raise InputError(f"{of!r} is {ends[k]!r} in {of_arm[:, k].sum()} rows; expected at least {LEAST_AT}.")
    if adjusted is None:
        found = _Found.of_all(_functions(y, at), random)
        unsupported, residuals = 0.0, np.zeros(n)
    else:
        shares, usual = _shares(z, widths, of_arm if exact else _near(t, arms))
        unsupported = float(np.any(shares(z) < RARER * usual, axis=1).mean())
        found, residuals = _compared(y, at, t, z, (columns[of], widths), arms, of_arm if exact else None, random)
    notes += notes_of_codes(columns, used, adjusted or (), on, residuals)
    if adjusted and unsupported > REFUSED:
        raise InputError(
            f"in {100 * unsupported:.0f} % of rows {of!r} is hardly ever near {ends[0]!r} or {ends[1]!r}, given "
            f"{', '.join(map(repr, adjusted))}: these rows do not determine the effect on all. Expected more frequent "
            f"values, or a table in which both values occur."
        )
    if adjusted and unsupported > NOTED:
        notes += (
            f"in {100 * unsupported:.0f} % of rows one of the two values is rare: there the effect is extrapolated.",
        )
    if columns[on].column.kind in ("time", "duration"):
        notes += (f"{on!r} holds times: means, quantiles and their differences are in seconds.",)
    notes += _few(columns[on], y)
    told = [_arm(columns[on], levels, found.plain[k], found.drawn[k], float(found.rows[k])) for k in (0, 1)]
    labels = () if columns[on].labels is None else tuple(columns[on].states)
    basis = tuple(adjusted or ()), adjusted is not None, unsupported, n, notes
    return CausalEffect(on, of, *ends, (told[0], told[1]), labels, *basis)


@dataclass(frozen=True, eq=False)
class _Found:
    """Of both arms what is averaged (2, K), draws of it (2, DRAWS, K), and how many rows they are worth (2,)."""

    plain: np.ndarray
    drawn: np.ndarray
    rows: np.ndarray

    @classmethod
    def of_all(cls, said: np.ndarray, random: np.random.Generator) -> "_Found":
        """Of two arms that are the same."""
        plain = said.mean(axis=0)
        drawn = _reweighted([np.stack([part - plain] * 2) for part in _pieces(said)], random)
        return cls(np.stack([plain] * 2), plain + drawn, np.full(2, float(len(said))))


def _compared(
    y: np.ndarray,
    at: np.ndarray | None,
    t: np.ndarray,
    z: np.ndarray,
    columns: tuple[CodedColumn, tuple[int, ...]],
    arms: Sequence[np.ndarray],
    hits: np.ndarray | None,
    random: np.random.Generator,
) -> tuple[_Found, np.ndarray]:
    """Both arms, and what smooth parts leave of the outcome, (n,), of rows that are left out."""
    n, (column, widths) = len(y), columns
    if hits is not None and column.labels is None and len(np.unique(t)) > 2:
        # Numbers whose arms have rows of their own: these count as labels, too.
        t, of_cause = np.concatenate([t, hits], axis=1), (1, 2)
        arms = [np.concatenate([arm, np.eye(2)[[k]]], axis=1) for k, arm in enumerate(arms)]
    else:
        of_cause = (t.shape[1],)
    both = np.concatenate([t, z], axis=1)
    parts = SmoothParts.of(both, (*of_cause, *widths), len(of_cause), _breaks(y, both, of_cause, widths))
    design = _design(parts, both)

    def set_to(k: int, rows: slice) -> np.ndarray:
        return parts(np.concatenate([np.repeat(arms[k], len(z[rows]), axis=0), z[rows]], axis=1))

    law = _Law.fit(design, parts, y, at)
    pieces = list(slices(n, ROWS_AT_ONCE))
    means = np.stack([np.sum([set_to(k, rows).sum(axis=0) for rows in pieces], axis=0) / n for k in (0, 1)])
    inverse = law.regression.inverse
    v = design @ (inverse @ means.T)
    u = 2 * v - design @ (inverse @ (design.T @ v))
    plain, said, functions = np.zeros((2, law.width)), [], []
    for rows in pieces:
        set_here = np.stack([law.expected(set_to(k, rows)) for k in (0, 1)])
        left = _functions(y[rows], at) - law.expected(design[rows])
        plain += set_here.sum(axis=1) / n + np.einsum("ia,ik->ak", v[rows], left)
        left /= np.sqrt(law.free[rows, None])
        said.append(set_here + n * u[rows].T[:, :, None] * left)
        functions.append(left)
    centre = np.sum([each.sum(axis=1) for each in said], axis=0) / n
    drawn = _reweighted([each - centre[:, None] for each in said], random)
    drawn += _missed(design.T @ u - means.T, law.regression.variances, np.concatenate(functions), random)
    between = (u[:, 1] - u[:, 0]) ** 2
    freedom = np.sum(between) ** 2 / np.sum(between**2)
    drawn *= np.sqrt(freedom / random.chisquare(freedom, size=DRAWS))[:, None]
    found = _Found(plain, plain[:, None] + drawn, 1 / np.sum(u**2, axis=0))
    walks = parts.walks
    return found, law.left[:, 0] / law.free + design[:, walks] @ law.regression.weights[walks, 0]


@dataclass(frozen=True, eq=False)
class _Law:
    """What is averaged of the outcome, given rows of a design: shares of labels, or of a number its mean and how
    probable it is to be up to each level, m(x) + s(x) r with residuals r of all rows.

    Attributes
    ----------
    regression : Smooth
    sizes : Smooth or None
        Of log s, of a number.
    residuals : array
        Sorted; at most 2000 of them.
    at : array (G,) or None
    left, free : array (n, k), (n,)
        Residuals of the regression, and what each row leaves free: one less its leverage.
    """

    regression: Smooth
    sizes: Smooth | None
    residuals: np.ndarray
    at: np.ndarray | None
    left: np.ndarray
    free: np.ndarray

    @classmethod
    def fit(cls, design: np.ndarray, parts: SmoothParts, y: np.ndarray, at: np.ndarray | None) -> "_Law":
        spread = np.maximum(y.std(axis=0), np.finfo(float).tiny)
        found = Smooth.fit(design, parts, y / spread)
        found = replace(found, weights=found.weights * spread)
        left = y - found(design)
        free = np.maximum(1 - np.sum((design @ found.inverse) * design, axis=1), LEAST_FREE)
        if at is None:
            return cls(found, None, np.zeros(0), at, left, free)
        away = np.abs(left[:, 0]) / np.sqrt(free)
        of_size = Smooth.fit(design, parts, np.log(np.maximum(away, LEAST_SIZE * away.mean()))[:, None])
        residuals = np.sort(left[:, 0] / np.sqrt(free) / np.exp(of_size(design)[:, 0]))
        residuals = np.quantile(residuals, np.linspace(0, 1, min(len(left), RESIDUALS)))
        return cls(found, of_size, residuals, at, left, free)

    @property
    def width(self) -> int:
        """How many functions are averaged."""
        return self.left.shape[1] if self.at is None else 1 + len(self.at)

    def expected(self, design: np.ndarray) -> np.ndarray:
        """At rows of a design, (m, K)."""
        means = self.regression(design)
        if self.at is None or self.sizes is None:
            return means
        away = (self.at - means) / np.exp(self.sizes(design))
        return np.concatenate([means, np.interp(away, self.residuals, np.linspace(0, 1, len(self.residuals)))], axis=1)


def _breaks(y: np.ndarray, rows: np.ndarray, of_cause: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Break, ...]:
    """Those of the outcome in what is a number of t and z, side by side, and those of the cause in what is adjusted
    for: where both jump together, a small jump of the outcome is much of the effect (Belloni et al. 2014).
    """
    found, start = _broken(rows, (*of_cause, *widths), len(of_cause), y), sum(of_cause)
    of_z = _broken(rows[:, start:], widths, len(widths), rows[:, : of_cause[0]]) if widths else ()
    return tuple(dict.fromkeys((*found, *(replace(each, column=each.column + start) for each in of_z))))


def _broken(rows: np.ndarray, widths: tuple[int, ...], of_cause: int, targets: np.ndarray) -> tuple[Break, ...]:
    """Where targets (n, k) break in numbers among the columns."""
    numbers = [sum(widths[:k]) for k, width in enumerate(widths) if width == 1]
    if not numbers:
        return ()
    parts = SmoothParts.of(rows, widths, of_cause, rough=False)
    design, targets = _design(parts, rows), targets / np.maximum(targets.std(axis=0), np.finfo(float).tiny)
    smooth = Smooth.fit(design, parts, targets)
    return breaks(rows, numbers, design, smooth.inverse, targets - smooth(design))


def _design(parts: SmoothParts, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([parts(piece) for piece in _pieces(rows)])


def _pieces(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[part] for part in slices(len(rows), ROWS_AT_ONCE)]


def _reweighted(said: Sequence[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """Means of what rows say, pieces (2, m, K) about their mean, with random weights: (2, DRAWS, K)."""
    sums, weights = np.zeros((2, DRAWS, said[0].shape[2])), np.zeros(DRAWS)
    for each in said:
        drawn = random.exponential(size=(DRAWS, each.shape[1]))
        sums, weights = sums + drawn @ each, weights + drawn.sum(axis=1)
    return sums / weights[:, None]


def _missed(unbalanced: np.ndarray, variances: np.ndarray, left: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Errors by functions that smooth parts do not follow, (2, DRAWS, K), from what weights leave unbalanced, (p, 2),
    the prior variances of weights, and residuals (n, K): what is averaged varies together as these do.
    """
    _, sizes, right = np.linalg.svd(np.sqrt(variances)[:, None] * unbalanced, full_matrices=False)
    root = (right.T * sizes) @ right  # of the covariance of both arms, whatever the signs of singular vectors
    some = left[spread_rows(len(left), RESIDUALS)]
    drawn = random.normal(size=(2, DRAWS, len(some))) @ (some / np.sqrt(len(some)))
    return np.einsum("ab,bdk->adk", root, drawn)


def _value(column: CodedColumn, name: Hashable, value: object, seen: np.ndarray, argument: str) -> np.ndarray:
    """A value of the cause as numbers (1, width), refused where no row is near."""
    if column.column.kind == "boolean":
        if value not in (True, False):
            raise InputError(f"{argument} is {value!r}; expected True or False, which {name!r} holds.")
        value = bool(value)
    elif column.column.kind in ("number", "count"):
        if isinstance(value, bool | np.bool_) and set(column.back(np.unique(seen))) <= {0, 1}:
            value = int(value)
        if isinstance(value, bool | np.bool_ | str):
            low, high = column.back(np.array([seen.min(), seen.max()]))
            raise InputError(f"{argument} is {value!r}; expected a number, as {name!r} holds, from {low} to {high}.")
    elif column.labels is not None and column.told is None and isinstance(value, bool | np.bool_ | Number):
        shown = ", ".join(map(repr, column.states[:10]))
        raise InputError(f"{argument} is {value!r}; expected a label, as {name!r} holds, such as {shown}.")
    found = column.read([value], argument)
    if np.isnan(found).any():
        raise InputError(f"{argument} is missing; expected a value of {name!r}.")
    if column.labels is not None:
        merged = column.width < len(column.labels) and bool(found[0, -1])
        if merged or not found.any():
            shown = ", ".join(map(repr, column.states[:10]))
            raise InputError(f"{argument} is {value!r}; expected a label of {name!r} that has rows, such as {shown}.")
    elif not seen.min() <= found[0, 0] <= seen.max():
        low, high = column.back(np.array([seen.min(), seen.max()]))
        raise InputError(f"{argument} is {value!r}, beyond all rows; expected {name!r} from {low} to {high}.")
    return found


def _of_gaps(numbers: Mapping[Hashable, np.ndarray], there: np.ndarray) -> tuple[str, ...]:
    """Which rows are left out, and for which columns."""
    gaps = {name: int(np.isnan(values).any(axis=1).sum()) for name, values in numbers.items()}
    shown = ", ".join(f"{name!r} ({count})" for name, count in gaps.items() if count)
    return (f"{(~there).sum()} of {len(there)} rows are left out, where a value is missing: {shown}.",) if shown else ()


def _few(column: CodedColumn, y: np.ndarray) -> tuple[str, ...]:
    """A note that intervals may be too narrow: so few rows say little about their own uncertainty."""
    if column.labels is None or y.sum(axis=0).min() >= FEW_HITS:
        return ()
    rarest = column.states[int(y.sum(axis=0).argmin())]
    hits = f"{rarest!r} occurs in {y.sum(axis=0).min():.0f} rows"
    return (f"{hits}: with so few, intervals of 90 % of its share were measured to hold .83 to .92.",)


def _near(t: np.ndarray, arms: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows are the nearest to each value, (n, 2)."""
    gaps = np.stack([np.abs(t[:, 0] - arm[0, 0]) for arm in arms], axis=1)
    return gaps <= np.quantile(gaps, NEAR, axis=0)


def _shares(z: np.ndarray, widths: tuple[int, ...], hits: np.ndarray) -> tuple[Any, np.ndarray]:
    """The probability of each arm given what is adjusted for, as a function (m, q) -> (m, 2), and in all rows."""
    usual = hits.mean(axis=0)
    if not widths:
        return lambda rows: np.broadcast_to(usual, (len(rows), 2)), usual
    # As labels: the first arm, the second, or neither; where rows are near both, each arm or not.
    if not hits.all(axis=1).any():
        labels = np.column_stack([hits, ~hits.any(axis=1)]).astype(float)
        of_all = LabelsGivenParents.fit(z, widths, labels[:, labels.any(axis=0)])
        return lambda rows: of_all.shares(rows)[:, :2], usual
    laws = []
    for k in (0, 1):
        two = np.stack([hits[:, k], ~hits[:, k]], axis=1).astype(float)
        laws.append(LabelsGivenParents.fit(z, widths, two))
    return lambda rows: np.stack([law.shares(rows)[:, 0] for law in laws], axis=1), usual


def _functions(y: np.ndarray, at: np.ndarray | None) -> np.ndarray:
    """What is averaged of the outcome: labels, or the number and whether it is up to each level."""
    return y if at is None else np.concatenate([y, y <= at], axis=1)


def _arm(column: CodedColumn, levels: np.ndarray | None, plain: np.ndarray, drawn: np.ndarray, rows: float) -> Arm:
    """In the unit of the outcome."""
    if levels is None:
        return Arm(Estimate(_shares_of(plain), _shares_of(drawn)), None, None, rows)
    mean = Estimate(*(column.centre + column.scale * each[..., 0] for each in (plain, drawn)))
    # In order, which brings them nearer to the law (Chernozhukov et al. 2010).
    below = Estimate(*(np.clip(np.sort(each[..., 1:], axis=-1), 0, 1) for each in (plain, drawn)))
    return Arm(mean, levels, below, rows)


def _shares_of(found: np.ndarray) -> np.ndarray:
    kept = np.maximum(found, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)
