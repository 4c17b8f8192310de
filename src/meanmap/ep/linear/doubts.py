"""Notes on parameters of a formula that the data do not identify."""

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np

from meanmap.core.held import holds_floats
from meanmap.core.language import in_digits, in_few_words
from meanmap.core.tables.labels_meant import odd_labels
from meanmap.core.tables.order import holds_dates
from meanmap.core.tables.sentinels import Sentinels
from meanmap.core.tables.wild import WildCells
from meanmap.core.tables.written import Written, words_of
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.formula import Formula, Groups, Rows
from meanmap.ep.linear.levels import cell_of, respelled_groups
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.sites import Settled

__all__ = ["doubts", "far_outside", "fractions", "overdispersed", "read_as_text"]

# A column that keeps less than this share of its variance given other columns is a linear combination of them.
_COLLINEAR = 1e-10
# Added to counts.
_HALF = 0.5
# More labels than this that all read as dates are likely to be dates.
_LABELS = 20
# What to do about codes and words for missing values.
_REPLACED = "write NaN instead and pass missing='drop'"
# The mean of weights that are precisions in units of their mean.
_ONE = 1e-6
# Scatter below this makes standard deviations at most an eighth too small; draws that it is compared with.
_SCATTER, _DRAWS, _NO_PARAMETERS = 1.3, 199, np.zeros(0)
# Functions that extrapolate badly, and how far outside the data counts as far, in ranges of the data: for these, and
# for straight lines.
_CURVES, _BEYOND, _STRAIGHT = ("bs(", "poly(", "I("), 0.5, 3.0


def doubts(formula: Formula, predictor: Predictor, family: Family, single: bool = False) -> list[str]:
    """Notes on collinear columns, on factors with one group or one row per group, on effects of the same groups, and on
    numbers far from all others or given as text. `single` says whether the response is one label in each row.
    """
    found, noisy = [], "sigma" in family.parameters
    if formula.names:
        columns = predictor.blocks[0].design
        gram = columns.T @ columns
        scale = np.sqrt(np.diag(gram))
        scale[scale == 0] = 1.0
        for at in range(1, len(gram)):
            before = gram[:at, :at] / np.outer(scale[:at], scale[:at])
            beside = gram[:at, at] / (scale[:at] * scale[at])
            if 1 - beside @ np.linalg.pinv(before, rcond=1e-12, hermitian=True) @ beside < _COLLINEAR:
                found.append(
                    f"{formula.names[at]!r} is a linear combination of columns before it: "
                    "their separate effects depend on the prior"
                )
    for group in formula.rows.groups:
        if len(group.levels) == 1:
            found.append(f"{group.name!r} has one group, so the data do not show how groups differ")
        elif (noisy or single) and len(group.levels) == len(group.index):
            found += [_one_row_each(group.name, single)] if "Intercept" in group.labels else []
        else:
            found += _in_shared(formula, group)
    found += _of_same_groups(formula.rows.groups)
    for name, levels in formula.unused.items():
        listed = ", ".join(map(repr, levels))
        found.append(f"no row has the level{'s' if len(levels) > 1 else ''} {listed} of {name!r}: left out")
    found += [
        f"no row has the combination {name!r}: its effect is that of the prior, and so are predictions there"
        for name in formula.empty
    ]
    texts = read_as_text(formula)
    return [*formula.unlike, *found, *texts.values(), *_odd_cells(formula, texts, family)]


def fractions(weights: np.ndarray, family: str) -> list[str]:
    """A note on weights that are hardly numbers of rows, though the noise is estimated from as many."""
    if family != "gaussian" or (weights == np.round(weights)).all() or abs(weights.mean() - 1) < _ONE:
        return []
    counted = f"weights count rows, here {weights.sum():g} in place of {len(weights)}, but are not whole numbers"
    return [f"{counted}: if they are precisions, as in lme4, divide them by their mean"]


def overdispersed(family: Family, observed: Observed, settled: Settled) -> list[str]:
    """A note on counts that scatter more than their family has it, by Pearson's chi-squared over degrees of freedom.

    It must exceed that of all draws from the fitted model: a right one is named once in 200 times at most.
    """
    if not (family.name == "poisson" or (family.of_trials and (observed.trials > 1).any())):
        return []
    at = settled.means + observed.offset
    mean = family.mean(observed, at, _NO_PARAMETERS)
    spread = mean * (1 - mean / np.maximum(observed.trials, 1)) if family.of_trials else mean
    share = observed.weights / np.maximum(spread, np.finfo(float).tiny)
    free = float(observed.weights.sum() - settled.weights @ settled.variances)
    ratio = float(share @ (observed.response - mean) ** 2) / free if free > 0 else 0.0
    if ratio < _SCATTER:
        return []
    generator = np.random.default_rng(0)
    for _ in range(_DRAWS):
        drawn = family.draw(observed, at, _NO_PARAMETERS, generator)
        if share @ (drawn - mean) ** 2 >= ratio * observed.weights.sum():
            return []
    other = "" if family.of_trials else "type family='negativebinomial', or "
    times, too_small = in_digits(ratio), in_digits(np.sqrt(ratio))
    note = (
        f"responses scatter {times} times as much around their means as {family.name} ones (Pearson's chi-squared "
        f"over its degrees of freedom), so standard deviations are about {too_small} times too small: {other}"
        "give each row an effect, (1 | row), with a column row that numbers the rows"
    )
    return [note]


def far_outside(formula: Formula, rows: Rows) -> list[str]:
    """Notes on new rows: columns more than half their range beyond the fitted ones in splines and powers, or three
    ranges in anything else, and groups that are new by their spelling.
    """
    common, found = formula.matrices.common, []
    shared = [] if common is None else [term for term in common.terms.values() if term.kind != "offset"]
    for term in [*shared, *formula.of_groups]:
        for component in getattr(term, "components", ()):
            curved = component.name.startswith(_CURVES)
            for name in (each for each in component.var_names if each in rows.frame):
                seen, new = formula.rows.frame[name], rows.frame[name]
                if component.kind == "categoric" or not holds_floats(seen):
                    continue
                low, high = seen.min(), seen.max()
                beyond = np.maximum(low - new, new - high)
                if beyond.max() > (_BEYOND if curved else _STRAIGHT) * (high - low):
                    value = new.iloc[int(beyond.argmax())]
                    where, what = f"far outside the data ({low:g} to {high:g})", "is an extrapolation"
                    found.append(
                        f"{component.name} of {name!r} is needed at {value:g}, {where}, where its curve {what}"
                        if curved
                        else f"{name!r} is {value:g} in row {int(beyond.argmax())}, {where}: the prediction {what}, or "
                        "the unit is another one"
                    )
    for group in rows.groups if rows.grouped else ():
        known = formula.levels[group.name]
        keys = group.name.split(":")
        columns = [rows.frame[key].tolist() for key in keys]
        found += respelled_groups(group.name, columns[0] if len(keys) == 1 else list(zip(*columns, strict=True)), known)
    return list(dict.fromkeys(found))


def _in_shared(formula: Formula, group: Groups) -> list[str]:
    """A note on effects that shared columns already give to each group, such as C(g) beside (1 | g)."""
    shared, count, found = formula.rows.shared, len(group.levels), []
    if count > shared.shape[1]:
        return []
    lengths = np.sqrt((shared**2).sum(0))
    columns, rows = shared / np.where(lengths > 0, lengths, 1.0), np.arange(len(shared))
    for label, design in zip(group.labels, group.design.T, strict=True):
        own = np.zeros((len(shared), count))
        own[rows, group.index] = design
        left = own - columns @ np.linalg.lstsq(columns, own)[0]
        if ((left**2).sum(0) <= _COLLINEAR * (own**2).sum(0)).all():
            what = "an intercept" if label == "Intercept" else f"a coefficient of {label!r}"
            found.append(
                f"fixed effects already give each group of {group.name!r} {what} of its own: the data do not determine "
                f"sd({label} | {group.name}), and only the priors separate the two. Leave out these "
                f"columns, or {'(1' if label == 'Intercept' else f'(0 + {label}'} | {group.name})"
            )
    return found


def _of_same_groups(groups: Sequence[Groups]) -> list[str]:
    """Notes on two effects of the same groups whose columns are proportional within each group: rows show their sum."""
    found, effects = [], [(group, at) for group in groups if len(group.levels) > 1 for at in range(len(group.labels))]
    for (first, one), (second, other) in combinations(effects, 2):
        if len(first.levels) == len(first.index) if first is second else not _are_same(first, second):
            continue
        u, v = first.design[:, one], second.design[:, other]
        names = f"sd({first.labels[one]} | {first.name})", f"sd({second.labels[other]} | {second.name})"
        by, label, times = first.labels[one], second.labels[other], _times(u, v, first.index)
        if times is None:
            by, label, times = label, by, _times(v, u, first.index)
        if times is None:
            continue
        if np.ptp(times) <= _COLLINEAR * np.abs(times).max():
            found.append(
                f"the effects of {names[0]} and {names[1]} are proportional in all rows: the data show only their sum, "
                "and the priors decide how much of its variance belongs to each"
            )
            continue
        how = "the same in all rows" if by == "Intercept" else f"proportional to {by!r} in the rows"
        found.append(
            f"{label!r} is {how} of each group of {second.name!r}, so the data show only the sum of two effects of a "
            f"group: only how much groups differ where {label!r} differs tells {names[0]} and {names[1]} apart, and "
            "the priors decide the rest"
        )
    return found


def _are_same(first: Groups, second: Groups) -> bool:
    """Whether two factors divide the rows into the same groups."""
    met = len(np.unique(first.index * len(second.levels) + second.index))
    return met == len(first.levels) == len(second.levels)


def _times(u: np.ndarray, v: np.ndarray, index: np.ndarray) -> np.ndarray | None:
    """What v is times u in each group; None if it is not proportional to it in one."""
    squares = np.bincount(index, u * u)
    times = np.bincount(index, u * v) / np.where(squares > 0, squares, 1.0)
    left = np.bincount(index, (v - times[index] * u) ** 2)
    return times if (left <= _COLLINEAR**2 * np.bincount(index, v * v)).all() else None


def _one_row_each(name: str, single: bool) -> str:
    if single:
        return (
            f"each group of {name!r} has one row, and one label does not show how groups differ: "
            f"sd(Intercept | {name}) is that of the prior, and coefficients grow with it"
        )
    return (
        f"each group of {name!r} has one row: the data identify only sd(Intercept | {name})² + sigma², and the priors "
        "decide how much of it belongs to each"
    )


def _odd_cells(formula: Formula, texts: Collection[str], family: Family) -> list[str]:
    """Numbers far from all others, codes for missing values, labels written in two ways, and columns with one label.

    Where the logarithm of the mean response is modelled, its tail is judged there.
    """
    frame, found, common = formula.rows.frame, [], _shared_columns(formula)
    for name in frame:
        column, where = frame[name].to_numpy(), f"column {name!r} of data"
        if holds_floats(column):
            codes = Sentinels.in_column(column)
            if codes is not None:
                found.append(codes.note(where, _REPLACED, "group" if name in formula.grouping else ""))
            numbers, kept = column, formula.rows.kept
            if codes is not None:
                others = ~np.isin(column, codes.values)
                numbers, kept = column[others], kept[others]
            # With half a count more, counts of 0 have a logarithm.
            half = _HALF if family.link == "log" and name in formula.of_response and column.min() == 0 else 0.0
            wild = WildCells.of(numbers + half if half else numbers)
            if wild is not None:
                rows = in_few_words([str(kept[row]) for row in wild.rows], 1)
                first = numbers[wild.rows[0]]
                advice = " from all others, and may dominate the estimates: if it is an error, leave the row out"
                if family.heavy and name in formula.of_response:
                    advice = " from all others: family t gives it little weight, and it shows in a smaller nu"
                found.append(
                    f"{name!r} is {first:g} in row {rows}, {wild.times.min():.0f} robust standard deviations{advice}"
                )
            continue
        labels = np.unique(column.astype(str))
        if name in common and len(labels) == 1:
            found.append(f"{name!r} is {str(labels[0])!r} in all rows, so the data do not show its effect")
        words = words_of([column])
        if words and name not in texts:
            found += odd_labels(words, where, _REPLACED)
    return found


def _shared_columns(formula: Formula) -> set[str]:
    """The columns of effects that all rows share."""
    common = formula.matrices.common
    return {
        name for term in (() if common is None else common.terms.values()) for name in getattr(term, "var_names", ())
    }


def read_as_text(formula: Formula) -> dict[str, str]:
    """Columns of text, of effects that all rows share, that look like numbers or dates: each cell is a label."""
    found = {}
    for name in sorted(_shared_columns(formula) & set(formula.rows.frame)):
        column = formula.rows.frame[name]
        words = words_of([column]) or ()
        written = Written.of(words)
        if len(words) > _LABELS and holds_dates(np.array(list(words))):
            found[name] = f"{name!r} holds dates or times as text, read as {len(words)} labels"
        elif written is not None and written.many:
            cell = cell_of(written, column.to_numpy().astype(str), formula.rows.kept)
            found[name] = (
                f"{name!r} is text that looks like {written}, {cell}, read as {len(words)} labels: {written.advice}"
            )
    return found
