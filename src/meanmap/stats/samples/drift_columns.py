"""How the columns of batches that drifted differ from the reference, in the units of the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.moments import seconds
from meanmap.core.tables.apart import columns_named
from meanmap.core.tables.kinds import family_of
from meanmap.core.tables.table import Table
from meanmap.core.values import Value, label_shown, label_text
from meanmap.stats.samples.attribution import Attributed
from meanmap.stats.samples.by_column import ColumnDifference
from meanmap.stats.samples.comparing import differences_of_all
from meanmap.stats.samples.drift_cells import pvalue_of
from meanmap.stats.samples.drift_circles import MeanPlace, parts_of
from meanmap.stats.samples.drift_counts import SHARE_OF_COUNTS, counts_of_column
from meanmap.stats.samples.drift_gaps import Gaps
from meanmap.stats.samples.drift_words import RARELY
from meanmap.stats.samples.own_rows import OwnRows
from meanmap.stats.samples.relations import LEAST_CHANCE, changed_relations
from meanmap.stats.samples.two_sample import two_sample_test
from meanmap.stats.settings import LEAST_POINTS

__all__ = ["Rows", "moved_columns", "over_time", "share_of", "typical", "without_numbers"]

# The spread of a column, and a value that became frequent, are also shown if the column's p-value is at most this. The
# spread is shown if the mean does not clearly differ, or if the spread differs by this many standard errors; a value is
# shown if its frequency has a probability of at most this.
LEVEL, ERRORS, CHANCE = 0.05, 4.0, 1e-4
# P-values of counts are exact. They count where they are smaller than the others, even times the number of columns over
# `SHARE_OF_COUNTS`: hardly any more columns without a change are named.
# P-values of columns use separate permutations, so the test of all columns, whose p-value is not used, takes few.
# P-values are from at most this many rows of each side, drawn at random; means and shares are those of all rows.
FEWEST_DRAWS, MOST_TESTED = 19, 8192


@dataclass(frozen=True, eq=False, repr=False)
class Rows(Value):
    """Rows of a table without missing values; which values of all rows are missing, if this is watched; the values of
    columns that more rows have than are complete; and the kinds of columns on a circle.
    """

    columns: dict[str, np.ndarray] = field(default_factory=dict)
    gaps: dict[str, np.ndarray] = field(default_factory=dict)
    own: dict[str, np.ndarray] = field(default_factory=dict)
    circles: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def some(self, most: int, generator: np.random.Generator) -> "Rows":
        """At most this many of the rows, drawn at random."""

        def drawn(parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            n = len(next(iter(parts.values()), ()))
            if n <= most:
                return parts
            chosen = np.sort(generator.choice(n, most, replace=False))
            return {name: part[chosen] for name, part in parts.items()}

        own = {name: column for each, part in self.own.items() for name, column in drawn({each: part}).items()}
        return Rows(drawn(self.columns), drawn(self.gaps), own, self.circles)

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The values of each column in all rows that have it, as parts of the cycle on a circle."""
        return {
            name: parts_of(column, self.circles[name]) if name in self.circles else self.own.get(name, column)
            for name, column in self.columns.items()
        }

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """The rows of several batches, one after another, in the columns that all of them have."""
        full = [part for part in parts if len(part)]
        shared = [name for name in full[0].columns if all(name in part.columns for part in full)] if full else []
        columns = {name: np.concatenate([part.columns[name] for part in full]) for name in shared}
        gaps = {name: np.concatenate([part.gaps[name] for part in parts]) for name in parts[0].gaps}
        wider = [name for name in shared if any(name in part.own for part in full)]
        own = {name: np.concatenate([part.own.get(name, part.columns[name]) for part in full]) for name in wider}
        return cls(columns, gaps, own, parts[0].circles)


def moved_columns(before: Rows, here: Rows, seed: int) -> list[dict[str, Any]]:
    """For each column the reference, these batches and their difference, the smallest p-value first; "cells" are these
    three as texts.
    """
    found = _missing(before, here)
    kept = {name: column for name, column in before.columns.items() if name in here.columns or not len(here)}
    before = Rows(kept, own=before.own, circles=before.circles)
    pairs = [(column, here.columns[name]) for name, column in before.columns.items()] if len(here) > 1 else []
    if all((one[:1] == part).all() for one, other in pairs for part in (one, other)):  # all columns are constant
        return found
    reference, rows = Table(before.columns), Table({name: here.columns[name] for name in before.columns})
    generator = np.random.default_rng(seed)
    some = [Table(Rows(dict(side.columns)).some(MOST_TESTED, generator).columns) for side in (reference, rows)]
    pvalues = Attributed({}, {})
    if min(map(len, (before, here))) >= LEAST_POINTS:
        with columns_named(list(before.columns)):
            tested = two_sample_test(*some, n_permutations=FEWEST_DRAWS, rng=seed)
            pvalues = tested.attributed(seed)
    names = list(before.columns)
    all_of = {"x": before.observed, "y": {name: column for name, column in here.observed.items() if name in names}}
    wider = [name for name in names if name in before.own or name in here.own]
    means = MeanPlace.of_all(before.circles, before.columns)
    sides = {side: _as_shown(part, all_of[side], means) for side, part in zip("xy", (before, here), strict=True)}
    compared = differences_of_all(sides, own=OwnRows(all_of) if wider else None)
    own = {name: min(2 * pvalue, 1.0) for name, pvalue in pvalues.own.items()} if pvalues.dependence else pvalues.own
    if wider:
        own = {name: min(2 * pvalue, 1.0) for name, pvalue in own.items()}
    for name in wider:
        pvalue = 2 * len(before.columns) * pvalue_of(all_of["x"][name], all_of["y"][name], seed, name)
        own[name] = min(own.get(name, 1.0), pvalue)
    # Counts, which raise alarms by themselves, are compared too: a label or a number in many of the rows.
    single = [name for name in own if all_of["x"][name].ndim == 1] if pvalues.own else []
    for name in single:
        counted = len(single) * counts_of_column(all_of["x"][name], all_of["y"][name]) / SHARE_OF_COUNTS
        own[name] = min(own[name], counted)
    relations = _relations(before, here, pvalues, min(own.values(), default=1.0) > RARELY)
    found += relations
    related = {name for row in relations for name in row["column"]}
    found += [
        without_numbers(name, f"dependence of {name} on other columns", min(2 * p, 1.0), True)
        for name, p in pvalues.dependence.items()
        if 2 * p <= RARELY and name not in related
    ]
    shown = [(each.column, each.label) for each in compared]
    seen = {each.column for each in compared}
    for each in compared:
        (what, *cells), said = each.cells(), each.to_dict()
        row: dict[str, Any] = {
            "column": each.column,
            "what": what,
            "reference": said["first"],
            "batches": said["second"],
        }
        row |= {"difference": {end: said[end] for end in ("estimate", "low", "high")}}
        row |= {"pvalue": own.get(each.column), "clear": each.clear, "label": each.label}
        row |= {"cells": cells, "of": _kind(each)}
        if each.column in means:  # numbers around a mean: their spreads and frequent values mean nothing
            row |= means[each.column].row(each) | {"pvalue": own.get(means[each.column].name)}
            found += [row] * (each.label is None and each.without is None)
            continue
        found.append(row)
        if each.medians is None or each.without is not None or own.get(each.column, 1.0) > LEVEL:
            continue
        pair = tuple(np.asarray(part[each.column], float) for part in all_of.values())
        other: dict[str, Any] = {"difference": None, "of": ""}
        if _spreads_differ(*pair) or not each.clear:
            for what, ends in (("sd", (_sd(pair[0]), _sd(pair[1]))), ("median", each.medians)):
                cells = [*(f"{number:.4g}" for number in ends), ""]
                other |= {"what": f"{what} {each.column}", "reference": float(ends[0]), "batches": float(ends[1])}
                other |= {"clear": _spreads_differ(*pair) if what == "sd" else None}  # medians have no test
                found.append({**row, **other, "cells": cells})
        if (frequent := _frequent(*pair)) is None:
            continue
        value, *shares = frequent
        if (each.column, label_text(value)) not in shown:
            other |= {"what": f"share of {each.column} = {value:g}", "reference": shares[0], "batches": shares[1]}
            other |= {"clear": True}
            found.append({**row, **other, "cells": [*(f"{100 * share:.3g}%" for share in shares), ""]})
    frequent_labels = set[tuple[str, str]]()
    for name in single:
        if name in before.circles or (new := _frequent_label(all_of["x"][name], all_of["y"][name])) is None:
            continue
        frequent_labels.add((name, new[0]))
        rows_of = [row for row in found if (row["column"], row["label"], row["of"]) == (name, new[0], "share")]
        found += [share_of(name, *new) | {"pvalue": own[name]}] * (not rows_of)
        for row in rows_of:
            row["clear"] = True
    found += [
        without_numbers(name, f"distribution of {name}", own.get(name), False)
        for name, column in before.columns.items()
        if name not in seen and not all((column[:1] == part).all() for part in (column, here.columns[name]))
    ]
    sizes = {name: _distance(np.asarray(column), np.asarray(all_of["y"][name])) for name, column in all_of["x"].items()}
    # A clear change of a spread precedes the mean, if that does not clearly differ.
    order = {True: 0, False: 1, None: 2}

    def place(row: dict[str, Any]) -> tuple[Any, ...]:
        known = (row["column"], row["label"]) not in frequent_labels
        return 1.0 if row["pvalue"] is None else row["pvalue"], -_size(row, sizes), known, order[row["clear"]]

    return sorted(found, key=place)


def _as_shown(rows: Rows, observed: Mapping[str, np.ndarray], means: Mapping[str, MeanPlace]) -> dict[str, np.ndarray]:
    """The columns of which means and shares are compared: those on a circle by parts, and around their mean."""
    parts = {name: observed[name] for name in rows.circles if name in observed}
    around = {key: place.around(rows.columns[place.name]) for key, place in means.items()}
    return {**{name: rows.columns[name] for name in observed}, **parts, **around}


def without_numbers(name: str, what: str, pvalue: float | None, clear: bool) -> dict[str, Any]:
    """A change that is none of means, shares or correlations: of a dependence, or of vectors or spans of time."""
    row = {"column": name, "what": what, "reference": None, "batches": None, "difference": None}
    return {**row, "pvalue": pvalue, "clear": clear, "label": None, "of": "", "cells": ["", "", ""]}


def _relations(before: Rows, here: Rows, pvalues: Attributed, every: bool) -> list[dict[str, Any]]:
    """Correlations that changed, of columns with small p-values, or of every two columns; their own p-values are at
    most `LEAST_CHANCE`.
    """
    merged = pvalues.merged()
    names = [name for name, pvalue in merged.items() if every or pvalue <= LEVEL]
    found = []
    for each in changed_relations(before.columns, here.columns, names):
        what, *cells = each.cells()
        change, one, other = each.second - each.first, *each.pair
        row: dict[str, Any] = {"column": each.pair, "what": what}
        row |= {"reference": each.first, "batches": each.second, "label": None, "of": "", "clear": True}
        row |= {"difference": {"estimate": change, "low": each.low, "high": each.high}}
        found.append({**row, "pvalue": min(max(merged[one], merged[other]), LEAST_CHANCE), "cells": cells})
    return found


def _missing(before: Rows, here: Rows) -> list[dict[str, Any]]:
    """The shares of missing values of each column, in the reference and in these rows."""
    if not before.gaps:
        return []
    compared = Gaps(tuple(before.gaps), np.stack(list(before.gaps.values()), axis=1))
    compared = compared.step(here.gaps, False, np.random.default_rng(0))
    found = []
    for name, pvalue in compared.columns.items():
        first, second = compared.shares[name]
        row = {"column": name, "what": f"missing {name}", "reference": first, "batches": second}
        row |= {"difference": {"estimate": second - first, "low": None, "high": None}}
        # Fewer are not drift.
        row |= {"pvalue": pvalue if second > first else None, "clear": pvalue <= LEVEL, "of": "missing", "label": None}
        cells = [f"{100 * first:.3g}%", f"{100 * second:.3g}%", f"{100 * (second - first):.3g} points"]
        found.append({**row, "cells": cells})
    return found


def typical(rows: Rows) -> dict[str, Any]:
    """The summary of a batch that is kept: means and shares of its columns, and shares of missing values."""
    single = {name: column for name, column in rows.observed.items() if column.ndim == 1} if len(rows) else {}
    means = {name: _typical(column) for name, column in single.items()}
    return {"typical": means, "missing": {name: float(gaps.mean()) for name, gaps in rows.gaps.items()}}


def over_time(row: Mapping[str, Any], batches: Sequence[Mapping[str, Any]]) -> list[float]:
    """The mean of each batch, or the share of a label or of missing values; none if there is no such number."""
    name, of = row["column"], row["of"]
    if not of:
        return []
    if of == "missing":
        return [batch["missing"].get(name, 0.0) for batch in batches]
    seen = [batch["typical"][name] for batch in batches if name in batch["typical"]]
    if seen and isinstance(seen[0], dict):
        return [shares.get(row["label"], 0.0) for shares in seen]
    return seen if of == "mean" else []


def _kind(difference: ColumnDifference) -> str:
    """The number that is kept for each batch: its mean or the share of a label; "" for parts of a column of numbers."""
    if difference.without is not None:
        return ""
    return "mean" if difference.label is None else "share"


def _size(row: dict[str, Any], sizes: dict[str, float]) -> float:
    """The change of a column by itself, from 0 to 1. Among columns with equal p-values it puts those that changed
    before those that are only related to them.
    """
    if row["what"] == f"missing {row['column']}" or isinstance(row["column"], tuple):
        return abs(row["batches"] - row["reference"])
    return sizes[row["column"]]


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """The distance between two distributions of a column: for labels the total variation distance, else the larger of
    the maximal difference of distribution functions and the maximal difference in the share of one value; that of the
    coordinate of vectors that changed most.
    """
    if first.ndim > 1:
        return max(_distance(*pair) for pair in zip(first.T, second.T, strict=True))
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    parts = codes[: len(first)], codes[len(first) :]
    change = np.subtract(*(np.bincount(part, minlength=len(values)) / len(part) for part in parts))
    if family_of(first) in ("label", "boolean"):
        return float(np.abs(change).sum() / 2)
    return float(max(np.abs(np.cumsum(change)).max(), np.abs(change).max()))


def _sd(column: np.ndarray) -> float:
    """The standard deviation, exactly zero if all values are equal."""
    return float(column.std(ddof=1)) if column.min() < column.max() else 0.0


def _spreads_differ(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether log standard deviations differ by many standard errors, each √((kurtosis − 1) / 4n)."""
    sds = _sd(first), _sd(second)
    if min(sds) == 0.0:
        return max(sds) > 0.0
    kurtoses = [np.mean(((each - each.mean()) / each.std()) ** 4) for each in (first, second)]  # rounding aside, from 1
    variance = sum(
        max(kurtosis - 1, 0) / (4 * len(each)) for kurtosis, each in zip(kurtoses, (first, second), strict=True)
    )
    return bool(abs(np.log(sds[0] / sds[1])) > ERRORS * np.sqrt(variance))


def _frequent(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float] | None:
    """The most frequent value of `second` and its share in both, if it became more frequent than chance explains."""
    from scipy.stats import hypergeom

    values, counts = np.unique(second, return_counts=True)
    value, here = values[counts.argmax()], int(counts.max())
    before = np.count_nonzero(first == value)
    chance = hypergeom.sf(here - 1, len(first) + len(second), before + here, len(second)) * len(values)
    if here == 1 or chance > CHANCE:
        return None
    return float(value), before / len(first), here / len(second)


def _frequent_label(first: np.ndarray, second: np.ndarray) -> tuple[str, float, float] | None:
    """The label of `second` that became more frequent than chance explains, the least probable one, and its share in
    both.
    """
    from scipy.stats import hypergeom

    if family_of(first) not in ("label", "boolean"):
        return None
    labels, counts = np.unique(second, return_counts=True)
    before = np.array([np.count_nonzero(first == label) for label in labels])
    chances = hypergeom.sf(counts - 1, len(first) + len(second), before + counts, len(second)) * len(labels)
    at = int(chances.argmin())
    return None if chances[at] > CHANCE else (label_text(labels[at]), before[at] / len(first), counts[at] / len(second))


def share_of(name: str, label: str, before: float, here: float) -> dict[str, Any]:
    """The row of a label that is not among those with intervals."""
    row = {"column": name, "what": f"{name} = {label_shown(label)}", "reference": float(before), "batches": float(here)}
    row |= {"difference": {"estimate": float(here - before), "low": None, "high": None}, "clear": True, "of": "share"}
    cells = [f"{100 * before:.3g}%", f"{100 * here:.3g}%", f"{100 * (here - before):.3g} points"]
    return {**row, "label": label, "cells": cells}


def _typical(column: np.ndarray) -> Any:
    """The mean of numbers or times (in seconds), or the share of rows that each label has."""
    family = family_of(column)
    if family in ("label", "boolean"):
        labels, counts = np.unique(column, return_counts=True)
        return {label_text(label): count / len(column) for label, count in zip(labels, counts.tolist(), strict=True)}
    return float(np.mean(column if family == "number" else seconds(column, "batch")))
