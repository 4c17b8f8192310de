"""The effect of a cause on an outcome: reading the data, refusals, and notes."""

from collections.abc import Hashable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from meanmap.bp.conditionals.causal_effect import Arm, CausalEffect, Estimate
from meanmap.bp.conditionals.codes import notes_of_codes
from meanmap.bp.conditionals.columns import CodedColumn, CodedTable
from meanmap.bp.conditionals.few_behind import mean_of_few
from meanmap.bp.conditionals.given_parents import joined
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.laws import pooled_note
from meanmap.bp.conditionals.seasons import seasons
from meanmap.bp.conditionals.two_arms import TwoArms, compared, functions, quartiles_apart
from meanmap.core.errors import EmptyError, InputError
from meanmap.core.language import in_percent, with_and
from meanmap.core.tables.doubts import for_clusters
from meanmap.core.tables.missing import BY_PAIRS
from meanmap.core.tables.order import alike_in_order, counters
from meanmap.core.values import label_shown
from meanmap.stats.shown import Shown

__all__ = ["effect_of"]

LEVELS = 200
# The smallest number of rows in all, and at a value that forms an arm of its own.
LEAST_ROWS, LEAST_AT = 50, 20
# The outcome is compared among the rows of both values if the cause has at most this many, or if this share of all rows
# has each; of rounded numbers, such as ages, other rows say as much about a curve.
MOST_LEVELS, OFTEN = 20, 0.1
# Fewer clusters say little about how they differ; with fewer than FEW_CLUSTERS a note says so.
LEAST_CLUSTERS, FEW_CLUSTERS = 20, 50
# A value of a number stands out if at least this many times as many rows have it as any other value.
STANDS_OUT = 4
# Values of a number are too close if fewer than this share of the rows are between them, and they differ by less than
# the other share of the interquartile range: in simulations intervals of such effects held too rarely.
LEAST_BETWEEN, LEAST_STEP = 0.02, 0.1
# Otherwise, for the check of support, the arm of a number is this share of the rows, the nearest ones.
NEAR = 0.1
# Labels that were merged are noted, and refused if more than a share NOTED of the rows has them.
# An arm has little support in rows where its probability is below the share RARER of the average. If the effect is not
# linear, it is noted if this concerns a share NOTED of the rows, and refused from a share REFUSED.
RARER, NOTED, REFUSED = 0.1, 0.05, 0.5
# Labels that a share LACKING of the rows has, all with one of the two values, are named, MOST_LACKING at most.
LACKING, MOST_LACKING = 0.02, 3
# With fewer rows of a label than FEW_HITS, or a smaller share than RARE if the cause is a number, a note says that
# intervals are too narrow.
FEW_HITS, RARE = 20, 0.15
# The consequence of serially dependent rows.
HARM = "intervals are too narrow. Use the residuals of structure.prewhiten, or rows that lie far enough apart"
# What was measured at steps of .05 to .4 interquartile ranges along 11 curves (sine, logarithm, root, exponential,
# tangents, logistic, saturation, spline, bump, square), most with confounders: 20 tables of 500 rows for each, at two
# places. With weights as for wide steps it was .57 to .98.
OF_STEPS = "In simulations with 500 rows 90% intervals of such steps covered .75 to 1.00"
# What was measured where the mean of costs rests on few rows.
OF_COSTS = (
    "In simulations 90% intervals of differences of such means covered .85 (51 of 60 tables of 2000 rows, most of "
    "them zero and the others lognormal with σ = 2). "
)


def effect_of(
    table: CodedTable,
    numbers: Mapping[Hashable, np.ndarray],
    on: Hashable,
    of: Hashable,
    ends: tuple[Any, Any],
    adjusted: Sequence[Hashable] | None,
    random: np.random.Generator,
    notes: tuple[str, ...] = (),
    units: np.ndarray | None = None,
) -> CausalEffect:
    """Estimate the effect of changing `of` between two values; `adjusted` is None if there is no directed path."""
    ends = tuple(end.item() if isinstance(end, np.number | np.bool_) else end for end in ends)
    there: Any = ~np.isnan(np.concatenate(list(numbers.values()), axis=1)).any(axis=1)
    columns, raw = table.columns, numbers[on][there]
    used = table.standardised({name: values[there] for name, values in numbers.items()})
    y, t, n = used[on], used[of], int(there.sum())
    if units is not None:
        units = np.unique(units[there], return_inverse=True)[1].ravel()
        notes = (*for_clusters(notes, True), *_few_clusters(1 + int(units.max(initial=-1))))
    if n < LEAST_ROWS:
        raise EmptyError(f"{n} rows have all of {', '.join(map(repr, numbers))}; expected at least {LEAST_ROWS}.")
    notes = _of_gaps(numbers, there) + tuple(note for note in notes if BY_PAIRS not in note)
    for name in adjusted or ():
        _check_labels(columns[name], name, used[name], on, of)
    notes += tuple(filter(None, (pooled_note(columns[name], name, on) for name in adjusted or ())))
    arms = [_value(columns[of], of, value, t, name) for value, name in zip(ends, ("from_", "to"), strict=True)]
    if np.array_equal(arms[0], arms[1]):
        raise InputError(f"from_ and to are both {ends[0]!r}; expected two values of {of!r}.")
    if units is None:
        values = {str(name): each.argmax(axis=1) if each.shape[1] > 1 else each[:, 0] for name, each in used.items()}
        notes += alike_in_order([values], ["data"], HARM, paired=True)
    for name in (of, *(adjusted or ())):
        if columns[name].labels is None:
            notes += counters(columns[name].back(used[name][:, 0]), repr(name))
    parts = [part for name in adjusted or () for part in (used[name], *seasons(columns[name], used[name]))]
    z, widths = joined(parts, n), tuple(part.shape[1] for part in parts)
    at = levels = None
    if columns[on].labels is None:
        order = np.argsort(raw[:, 0], kind="stable")
        order = order[np.unique((np.linspace(0, 1, LEVELS + 1) * (n - 1)).round().astype(int))]
        levels, first = np.unique(raw[order, 0], return_index=True)
        at = y[order[first], 0]
    of_arm = np.stack([np.all(t == arm, axis=1) for arm in arms], axis=1)
    exact = _has_levels(columns[of], t) or bool((of_arm.mean(axis=0) >= OFTEN).all())
    exact = exact and bool((of_arm.sum(axis=0) >= LEAST_AT).all())
    if not exact and columns[of].labels is not None:
        k = int(np.argmin(of_arm.sum(axis=0)))
        raise InputError(f"{of!r} is {ends[k]!r} in {of_arm[:, k].sum()} rows; expected at least {LEAST_AT}.")
    if columns[of].labels is None:
        notes += _of_few_rows(t[:, 0], [arm[0, 0] for arm in arms], on, of, ends)
    if adjusted is None:
        found = TwoArms.of_all(functions(y, at), units, random)
        unsupported, residuals = 0.0, np.zeros(n)
    else:
        shares, usual = _shares(z, widths, of_arm if exact else _near(t, arms))
        unsupported = float(np.any(shares(z) < RARER * usual, axis=1).mean())
        found, residuals = compared(y, at, t, z, (columns[of], widths), arms, of_arm if exact else None, random, units)
    notes += notes_of_codes(columns, used, adjusted or (), on, residuals, y, units)
    if adjusted and unsupported > REFUSED:
        raise InputError(
            f"in {in_percent(unsupported)}% of rows one of the values of {of!r}, {ends[0]!r} or {ends[1]!r}, almost "
            f"never occurs with such values of {with_and([*map(repr, adjusted)])}: these rows do not determine the "
            "effect on all. Choose more frequent values, or rows among which both occur."
        )
    # No row shows whether the effect of two values is the same where one of them is rare; along a line others do.
    trusted = found.straight if len(np.unique(t)) > 2 else 0.0
    if adjusted and unsupported * (1 - trusted) > NOTED:
        rare = f"in {in_percent(unsupported)}% of rows one of the two values is rare"
        notes += (f"{rare}: there the effect is extrapolated, which intervals do not account for.",)
    if columns[of].labels is None and not exact and adjusted is not None and found.linear < 0.5:
        notes += _of_small_step(t[:, 0], [arm[0, 0] for arm in arms], on, of)
    if exact and columns[of].labels is None and len(np.unique(t)) > 2 and adjusted is not None:
        notes += (_by_value(on, of),)
    if exact:
        for name in adjusted or ():
            notes += _never(columns[name], name, used[name], of_arm, of, ends)
    if columns[on].column.kind in ("time", "duration"):
        notes += (f"{on!r} holds times: means, quantiles and their differences are in seconds.",)
    notes += _few(columns[on], y, columns[of], t)
    if levels is not None and np.isfinite(columns[on].limits).any():
        notes += mean_of_few(on, raw[:, 0], np.full(n, 1 / n), n, OF_COSTS)
    told = [_arm(columns[on], levels, found.plain[k], found.drawn[k], float(found.rows[k])) for k in (0, 1)]
    labels = () if columns[on].labels is None else tuple(columns[on].states)
    basis = tuple(adjusted or ()), adjusted is not None, unsupported, n, notes
    shown = _shown(columns, numbers, there, (on, of), ends, of_arm if exact else None)
    of_units = None if units is None else 1 + int(units.max())
    return CausalEffect(on, of, *ends, (told[0], told[1]), labels, *basis, shown, of_units)


def _shown(
    columns: Mapping[Hashable, CodedColumn],
    numbers: Mapping[Hashable, np.ndarray],
    there: np.ndarray,
    names: tuple[Hashable, Hashable],
    ends: tuple[Any, Any],
    of_arm: np.ndarray | None,
) -> Shown | None:
    """The outcome in the rows of each arm, or against a cause whose values hardly repeat."""
    y, t = (columns[name].seen_in(numbers[name][there]) for name in names)
    on, of = map(str, names)
    if of_arm is None:
        return Shown.of(({of: t}, {on: y}), (of, on), paired=True)
    arms = [{on: y[of_arm[:, k]]} for k in (0, 1)]
    return Shown.of(arms, [f"{of} = {label_shown(end)}" for end in ends], paired=False)


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
            has = "has no rows of its own" if merged else "does not occur"
            raise InputError(f"{argument}={value!r} {has} in {name!r}; its labels are {shown}.")
    elif not seen.min() <= found[0, 0] <= seen.max():
        low, high = column.back(np.array([seen.min(), seen.max()]))
        raise InputError(f"{argument}={value!r} is outside the data: {name!r} ranges from {low:.6g} to {high:.6g}.")
    else:
        column.check_two(column.numbers([value], argument), argument, name)
    return found


def _check_labels(column: CodedColumn, name: Hashable, seen: np.ndarray, on: Hashable, of: Hashable) -> None:
    """Refuse to adjust for labels that many rows have and that count as one."""
    merged = 0 if column.labels is None else len(column.labels) - column.width + 1
    if merged > 1 and seen[:, -1].mean() > NOTED:
        raise InputError(
            f"the {merged} rarest of the {merged + column.width - 1} labels of {name!r} count as one here, and "
            f"{in_percent(seen[:, -1].mean())}% of the rows have them: the effect would not be adjusted for "
            f"differences among them. Expected fewer labels: merge those that are alike, or fit "
            f"'{on} ~ {of} + (1 | {name})' with mm.fit."
        )


def _of_gaps(numbers: Mapping[Hashable, np.ndarray], there: np.ndarray) -> tuple[str, ...]:
    """A note on the rows that are left out, and the columns that cause it."""
    gaps = {name: int(np.isnan(values).any(axis=1).sum()) for name, values in numbers.items()}
    shown = ", ".join(f"{name!r} ({count})" for name, count in gaps.items() if count)
    return (
        (f"{(~there).sum()} of {len(there)} rows are left out because a value is missing: {shown}.",) if shown else ()
    )


def _few_clusters(number: int) -> tuple[str, ...]:
    """A note that intervals may be too narrow; far fewer clusters are refused."""
    if number < LEAST_CLUSTERS:
        raise EmptyError(f"clusters has {number} clusters; expected at least {LEAST_CLUSTERS}.")
    if number < FEW_CLUSTERS:
        return (f"{number} clusters are few: with 24, 90% intervals covered .80 in simulations (48 of 60 tables).",)
    return ()


def _few(column: CodedColumn, y: np.ndarray, cause: CodedColumn, t: np.ndarray) -> tuple[str, ...]:
    """A note that intervals may be too narrow: so few rows say little about their own uncertainty."""
    if column.labels is None:
        return ()
    number = y.sum(axis=0).min()
    hits = f"{column.states[int(y.sum(axis=0).argmin())]!r} occurs in {number:.0f} of {len(y)} rows"
    if number < FEW_HITS:
        return (f"{hits}: with so few, 90% intervals of its share covered .83 to .92 in simulations.",)
    if number < RARE * len(y) and cause.labels is None and len(np.unique(t)) > 2:
        low = "in simulations effects of a number on the share of such a rare label were half a standard error too low"
        return (f"{hits}: {low}, and 90% intervals covered .83 (60 of 72 tables of 1000 rows).",)
    return ()


def _never(
    column: CodedColumn, name: Hashable, hits: np.ndarray, of_arm: np.ndarray, of: Hashable, ends: tuple[Any, Any]
) -> tuple[str, ...]:
    """Notes on labels that are adjusted for, where no row has one of the two values: no row shows its effect there."""
    if column.labels is None:
        return ()
    rows, number = hits.sum(axis=0), hits.T @ of_arm
    lacking = [
        (k, arm) for k, arm in np.argwhere(number == 0).tolist() if rows[k] >= max(LEAST_AT, LACKING * len(hits))
    ]
    return tuple(
        f"no row has {of!r} {ends[arm]!r} where {name!r} is {column.states[k]!r} ({rows[k]:.0f} rows): the effect "
        "there is taken from other rows. Leave these rows out for the effect on the others."
        for k, arm in lacking[:MOST_LACKING]
    )


def _of_few_rows(
    t: np.ndarray, arms: Sequence[float], on: Hashable, of: Hashable, ends: tuple[Any, Any]
) -> tuple[str, ...]:
    """Notes on values of a number that stand out and have few rows, as those of the few who never took a dose: an
    effect may jump there. Refused if few rows are near one of the values, as for 0 and 1: nearer than the other value
    is, or than the interquartile range if that is wider. Refused, too, if the values are so close that rows say little
    about so small a step.
    """
    told, spread = [], quartiles_apart(t)
    between = int(((t >= min(arms)) & (t <= max(arms))).sum())
    if between < LEAST_BETWEEN * len(t) and abs(arms[1] - arms[0]) < LEAST_STEP * spread:
        raise InputError(
            f"{of!r} lies between {ends[0]!r} and {ends[1]!r} in {between} of {len(t)} rows, which say little about so "
            "small a step. Choose values farther apart: effects of small steps are proportional to their size."
        )
    for here, other, end in zip(arms, reversed(arms), ends, strict=True):
        near = int((np.abs(t - here) < max(abs(other - here), spread)).sum())
        same = int((t == here).sum())
        if near < LEAST_AT:
            raise InputError(f"{of!r} is near {end!r} in {near} rows; expected at least {LEAST_AT}.")
        if LEAST_AT > same >= STANDS_OUT * np.unique(t[t != here], return_counts=True)[1].max():
            told.append(
                f"{of!r} is {end!r} in {same} rows: so few do not show whether {on!r} jumps there, and intervals "
                "assume that it does not."
            )
    return tuple(told)


def _has_levels(column: CodedColumn, t: np.ndarray) -> bool:
    """Whether a cause has labels or few numbers, of which each may have an effect of its own."""
    return column.labels is not None or len(np.unique(t)) <= MOST_LEVELS


def _of_small_step(t: np.ndarray, arms: Sequence[float], on: Hashable, of: Hashable) -> tuple[str, ...]:
    """A note that the smooth curve of an outcome may be less certain between close values than its intervals say."""
    share = abs(arms[1] - arms[0]) / max(quartiles_apart(t), np.finfo(float).tiny)
    if share >= 1:
        return ()
    apart = f"{on!r} bends along {of!r}, and the two values are {share:.2g} interquartile ranges apart"
    return (
        f"{apart}: intervals of such small steps may be too narrow where the curve bends or is steepest. {OF_STEPS}.",
    )


def _by_value(on: Hashable, of: Hashable) -> str:
    """A note that rows of other values of the cause say little."""
    return (
        f"rows with the two values of {of!r} are compared, without a line through all of its values: intervals are up "
        f"to twice as wide as along one. If you know that {on!r} follows a line, regress it with mm.fit."
    )


def _near(t: np.ndarray, arms: Sequence[np.ndarray]) -> np.ndarray:
    """Whether each row is among those nearest to each value, (n, 2)."""
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


def _arm(column: CodedColumn, levels: np.ndarray | None, plain: np.ndarray, drawn: np.ndarray, rows: float) -> Arm:
    """The result for one value of the cause, in the unit of the outcome."""
    if levels is None:
        return Arm(Estimate(_shares_of(plain), _shares_of(drawn), labels=tuple(column.states)), None, None, rows)
    mean = Estimate(*(column.centre + column.scale * each[..., 0] for each in (plain, drawn)))
    # Sorting brings the estimates nearer to the true distribution function (Chernozhukov et al. 2010).
    below = Estimate(*(np.clip(np.sort(each[..., 1:], axis=-1), 0, 1) for each in (plain, drawn)))
    return Arm(mean, levels, below, rows)


def _shares_of(found: np.ndarray) -> np.ndarray:
    kept = np.maximum(found, 0.0)
    return kept / kept.sum(axis=-1, keepdims=True)
