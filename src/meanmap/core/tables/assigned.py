"""Columns that name the units, such as users, of which each was assigned to a sample with all of its rows."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meanmap.core.held import holds_numbers, holds_text
from meanmap.core.language import in_python
from meanmap.core.tables.apart import typed_by_name, values_there
from meanmap.core.tables.chunks import tables_of
from meanmap.core.tables.missing import length, take
from meanmap.core.tables.table import raw_columns

__all__ = [
    "Kept",
    "Units",
    "clustered_or_left_out",
    "in_ranges",
    "names_units",
    "together",
    "units_in",
    "without_units",
]

# Fewer values may be those of an ordinary column.
LEAST_UNITS = 20
# Ids in separate ranges skip few numbers: samples have at least this share of the whole numbers between their ends.
DENSE = 0.8
# Of columns whose rows were assigned one by one, fewer than this share are taken for units.
BY_CHANCE = 1e-9
# Of units that were assigned whole at most this share has rows in several samples, as where a user lost a cookie.
MOST_CROSSED = 0.1
# Most columns have a larger share of such values within these first rows, and need not be read further.
FIRST, MOST_CROSSED_AT_FIRST = 1000, 0.5


class Kept(NamedTuple):
    """Columns that stay in the samples as part of their design, and whether it says which rows belong together."""

    names: Sequence[str]
    clustered: bool = False


class Units(NamedTuple):
    """A column that names units, for sure or perhaps (`in_ranges`), and how many of them are in several samples."""

    sure: bool
    crossed: int = 0


def without_units(
    samples: Sequence[Any], names: Sequence[str], kept: Kept | None, kinds: Mapping[str, Any] | None = None
) -> tuple[list[Any], tuple[str, ...]]:
    """Tables without the columns that name units which were assigned whole, and a note on these columns. Those of the
    design, with declared `kinds`, or named by the user stay; the note then only says how to keep units together. So do
    numbers `in_ranges`, which may be a difference. All stay if `kept` is None.

    Examples
    --------
    >>> users = np.repeat(np.arange(40), 5)
    >>> tables = [{"user": users[users % 3 == k], "age": [31] * int((users % 3 == k).sum())} for k in range(2)]
    >>> print(without_units(tables, ["x", "y"], Kept([]))[1][0])
    each value of 'user' occurs in one sample only, as when whole units are assigned: their rows are then not \
independent: pass clusters='user'. 'user' is left out; to compare it, pass kinds={'user': 'number'}.
    """
    keeps = () if kept is None else (*kept.names, *map(str, kinds or ()))
    units = {} if kept is None or kept.clustered else units_in(samples, names, keeps)
    if kept is None or not units:
        return list(samples), ()
    tables = [raw_columns(sample, name) for sample, name in zip(samples, names, strict=True)]
    left_out = [name for name, found in units.items() if found.sure and not typed_by_name(name)]
    if any(set(table) <= {*left_out, *kept.names} for table in tables):
        left_out = []
    notes = tuple(
        _note(name, found, tables[0][name], name in left_out)
        if found.sure
        else f"{together(name)}: {clustered_or_left_out(name)}. {name!r} is compared as a number."
        for name, found in units.items()
    )
    if not left_out:
        return list(samples), notes
    return [{name: part for name, part in table.items() if name not in left_out} for table in tables], notes


def units_in(samples: Sequence[Any], names: Sequence[str], keeps: Collection[str] = ()) -> dict[str, Units]:
    """The columns of tables in memory that name units which were assigned whole, but for those in `keeps`.

    Examples
    --------
    >>> users = np.repeat(np.arange(40), 5)
    >>> units_in([{"user": users[users % 3 == k]} for k in range(3)], ["x", "y", "z"])
    {'user': Units(sure=True, crossed=0)}
    """
    if not (tables := tables_of(samples, names)):
        return {}
    shared = [name for name in tables[0] if name not in keeps and all(name in table for table in tables)]
    found = {name: _assigned([table[name] for table in tables]) for name in shared}
    return {name: units for name, units in found.items() if units is not None}


def _note(name: str, units: Units, column: Any, left_out: bool) -> str:
    values = values_there(column)
    kind = "label" if values is None or holds_text(values) else "number"
    kinds = in_python(f"kinds={{{name!r}: {kind!r}}}", f"--kinds {shlex.quote(f'{name}={kind}')}")
    left = f" {name!r} is left out; to compare it, pass {kinds}." * left_out
    rest = f"leave out the rows of the {units.crossed} others, and pass" if units.crossed else "pass"
    return f"{together(name, units.crossed)}: {rest} {_clusters(name)}.{left}"


def clustered_or_left_out(name: str) -> str:
    """What to type where a column that is compared may name units."""
    left = in_python("leave it out of the table", f"leave it out with --exclude {shlex.quote(name)}")
    return f"pass {_clusters(name)}, or {left}"


def _clusters(name: str) -> str:
    return in_python(f"clusters={name!r}", f"--clusters {shlex.quote(name)}")


def together(name: str, crossed: int = 0) -> str:
    """What the rows of units are like, to be followed by what it does or what to type."""
    each = f"each value of {name!r} but {crossed} occurs" if crossed else f"each value of {name!r} occurs"
    return f"{each} in one sample only, as when whole units are assigned: their rows are then not independent"


def _assigned(columns: Sequence[Any]) -> Units | None:
    """The units that a column names, for sure or perhaps; None if it does not."""
    first = [values_there(take(column, np.arange(min(FIRST, length(column))))) for column in columns]
    known = [each for each in first if each is not None and len(each)]
    if len(known) < len(first) or not all(map(_may_name, known)):
        return None
    counts = _counts(known)
    if counts is None or _crossed(counts) > MOST_CROSSED_AT_FIRST * counts.shape[1]:
        return None
    values = [values_there(column) for column in columns]
    crossed = _crossed_units(values)
    if crossed is not None:
        return Units(True, crossed)
    return Units(False) if in_ranges(values) else None


def _counts(columns: Sequence[np.ndarray]) -> np.ndarray | None:
    """The rows of each column with each value, the values in order; None if some are text and others are not."""
    if len(set(map(holds_text, columns))) > 1:
        return None
    values, places = np.unique(np.concatenate(columns), return_inverse=True)
    parts = np.split(places, np.cumsum(list(map(len, columns)))[:-1])
    return np.stack([np.bincount(part, minlength=len(values)) for part in parts])


def _crossed(counts: np.ndarray) -> int:
    """The number of values that several columns have."""
    return int((np.sum(counts > 0, axis=0) > 1).sum())


def names_units(columns: Sequence[np.ndarray | None]) -> bool:
    """Whether the values of a column, sample by sample, name units that were assigned to the samples at random: whole
    numbers or labels, nearly each of which is in one sample only although several rows have it, and which alternate
    between the samples in sorted order.

    If rows were assigned one by one, this has a probability below 10⁻⁹ for any column. A value v with cᵥ rows would be
    in one sample with the probability qᵥ = Σₛ pₛ^cᵥ, where a share pₛ of all rows is in sample s. That at most k values
    are in several samples then has at most the probability minᵤ u⁻ᵏ ∏ᵥ (qᵥ + (1 − qᵥ) u) over the probability of these
    numbers of rows (Chernoff's bound; ∏ᵥ qᵥ for k = 0). Values that lie in different ranges, as where all of one sample
    are larger, are a difference between samples and stay.

    Examples
    --------
    >>> users = np.repeat(np.arange(40), 5)
    >>> names_units([users[users % 2 == 0], users[users % 2 == 1]]), names_units([users[:100], users[100:]])
    (True, False)
    """
    return _crossed_units(columns) is not None


def _crossed_units(columns: Sequence[np.ndarray | None]) -> int | None:
    """The number of units in several samples, of those that a column names; None if it names none."""
    known = [column for column in columns if column is not None and column.ndim == 1 and len(column)]
    if len(known) < max(len(columns), 2) or not all(map(_may_name, known)):
        return None
    from scipy.special import gammaln

    counts = _counts(known)
    if counts is None:
        return None
    number, crossed = counts.shape[1], _crossed(counts)
    if number < LEAST_UNITS or crossed > MOST_CROSSED * number:
        return None
    rows = counts.sum(axis=1).astype(float)
    shares = rows / rows.sum()
    pure = np.sum(shares[:, None] ** counts.sum(axis=0), axis=0)
    powers = np.geomspace(1e-4, 1, 41) if crossed else np.zeros(1)
    bounds = np.log(pure + np.outer(powers, 1 - pure)).sum(axis=1) - (crossed * np.log(powers) if crossed else 0)
    sizes = gammaln(rows.sum() + 1) - gammaln(rows + 1).sum() + (rows * np.log(shares)).sum()
    if bounds.min() - sizes > np.log(BY_CHANCE):
        return None
    owner = counts.argmax(axis=0)
    units = np.bincount(owner, minlength=len(known))
    expected = (number**2 - (units**2).sum()) / number
    return crossed if (np.diff(owner) != 0).sum() > expected / 2 else None


def in_ranges(columns: Sequence[np.ndarray | None]) -> bool:
    """Whether the values of a column, sample by sample, may be ids of units whose samples were numbered one after the
    other: whole numbers that skip few in a sample, of which most have several rows, but in one sample only.

    Examples
    --------
    >>> users = np.repeat(np.arange(40), 5)
    >>> in_ranges([users[:100], users[100:]]), in_ranges([users[:100], 7 * users[100:]]), in_ranges([users, users])
    (True, False, False)
    """
    known = [column for column in columns if column is not None and column.ndim == 1 and len(column)]
    if len(known) < max(len(columns), 2) or any(map(holds_text, known)) or not all(map(_may_name, known)):
        return False
    counts: Any = _counts(known)  # none of them is text
    whole = sum(float(column.max()) - float(column.min()) + 1 for column in known)
    dense = counts.shape[1] >= max(LEAST_UNITS, DENSE * whole)
    return bool(dense and np.mean(counts.sum(axis=0) > 1) > 0.5 and not _crossed(counts))


def _may_name(column: np.ndarray) -> bool:
    if holds_text(column):
        return True
    return holds_numbers(column) and np.array_equal(column, np.round(column))
