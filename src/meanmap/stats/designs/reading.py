"""The design of a test: from the columns or arrays that say how rows belong together (within=, clusters=, weights=)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.errors import (
    ColumnError,
    InputError,
    KindError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from meanmap.core.held import holds_numbers
from meanmap.core.meant import no_column
from meanmap.core.settings import is_whole
from meanmap.core.tables.assigned import Kept
from meanmap.core.tables.matching import aligned
from meanmap.core.tables.missing import length
from meanmap.core.tables.picked import check_no_names, names_of
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.table import Table, named_columns, raw_columns, read_column, values_of
from meanmap.core.types import KernelLike
from meanmap.learning.default import is_default
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.nested import check_apart, check_nested
from meanmap.stats.settings import LEAST_POINTS

__all__ = [
    "check_exchange",
    "check_permuted",
    "design_of",
    "from_strata",
    "kept_columns",
    "observed",
    "units_of",
    "without_design",
]


def check_permuted(statistic: str, null: str, *statistics: str) -> None:
    """Refuse a statistic or null distribution that does not work with a design."""
    for name, value, known in (
        ("statistic", statistic, ("auto", *statistics)),
        ("null", null, ("auto", "permutation")),
    ):
        if value not in known:
            raise ParameterError(
                f"{name} is {value!r}; with within=, clusters= or weights= expected {' or '.join(map(repr, known))}."
            )


def kept_columns(kernel: KernelLike, within: object, clusters: object, weights: object) -> Kept | None:
    """Columns that stay although they identify the rows: those of the design. None, all of them, for a kernel of
    the user's own, which may read them.
    """
    names = [name for wanted in (within, clusters, weights) for name in names_of(wanted)]
    return Kept(names, clusters is not None or isinstance(within, Exchange)) if is_default(kernel) else None


def without_design(samples: Sequence[Any], names: Sequence[str], *columns: object) -> list[Any]:
    """The samples without the columns that say how rows belong together."""
    used = [name for wanted in columns for name in _names(wanted, samples[0], names[0])]
    if not used:
        return list(samples)
    found = []
    for sample, name in zip(samples, names, strict=True):
        _check_names(sample, name)
        table = Table.of(sample, name)
        left = [each for each in table.names if each not in used]
        if not left:
            raise ColumnError(f"{name} has no column left to test: all of them are in within=, clusters= or weights=.")
        found.append(table.select(left))
    return found


def design_of(
    samples: Sequence[Any],
    names: Sequence[str],
    within: object,
    clusters: object,
    weights: object,
    missing: str = "raise",
    by: str | None = None,
) -> Exchange | None:
    """The design of samples one after another; None if nothing was said.

    Each of the three is the name of a column, or several, of every sample, or an array with a value for each row of all
    samples; `clusters` may be a whole number, for as many consecutive rows of a sample.
    """
    given = {"within": within, "clusters": clusters, "weights": weights}
    if all(value is None for value in given.values()):
        return None
    _check_no_switch(**given)
    _check_for_each_row(within=within, weights=weights)
    for argument, value in given.items():
        if by is not None and str(by) in names_of(value):
            raise ParameterError(
                f"{argument} names {str(by)!r}, whose values define the samples; expected another column."
            )
    arrays = [
        each
        for each in given.values()
        if each is not None and not is_whole(each) and not _names(each, samples[0], names[0])
    ]
    if arrays and (by is not None or missing != "raise"):
        said, does = (
            ("by=", "puts rows into groups") if by is not None else (f"missing={missing!r}", "may leave rows out")
        )
        raise ParameterError(
            f"{said} {does}, and within=, clusters= or weights= is an array with a value for each row passed: "
            "make it a column of the table and give its name."
        )
    sizes = list(map(length, samples))
    strata = np.zeros(sum(sizes), int) if within is None else _labels(samples, names, within, "within")
    if is_whole(clusters):
        units = _consecutive(sizes, clusters)
    elif clusters is None:
        units = np.arange(sum(sizes))
    else:
        units = _labels(samples, names, clusters, "clusters")
        if within is not None:
            check_nested(strata, units, within, clusters, _columns(samples, names, within, "within"))
        check_apart(np.repeat(np.arange(len(sizes)), sizes), units, _columns(samples, names, clusters, "clusters"))
    mass = np.ones(sum(sizes)) if weights is None else _weights(samples, names, weights)
    _check_compared(sizes, names, strata, mass)
    return Exchange(strata, _in_strata(strata, units), mass)


def observed(
    variables: Sequence[Any],
    names: Sequence[str],
    within: object,
    clusters: object,
    missing: str,
    kinds: Mapping[str, Any] | None,
    *,
    across: bool = False,
) -> tuple[list[Any], Exchange | None, tuple[str, ...]]:
    """Variables of the same observations without rows where a value is missing, their design, and notes.

    `within` and `clusters` have a value for each row, which goes with it. Where nothing is exchanged a cluster may lie
    `across` strata; otherwise this is refused, and blocks of consecutive rows end where a stratum does.
    """
    _check_no_switch(within=within, clusters=clusters)
    blocks = is_whole(clusters)
    if blocks:
        clusters = _consecutive((length(variables[0]),), clusters)
    apart = {name: part for name, part in (("within", within), ("clusters", clusters)) if part is not None}
    check_no_names(**apart)
    _check_for_each_row(**apart)
    (*parts,), told = admitted(
        (*variables, *apart.values()), (*names, *apart), missing, kinds, paired=True, least=LEAST_POINTS
    )
    if not apart:
        return parts, None, told
    n = length(parts[0])
    rows, beside = ([None] * n,), zip(apart, parts[len(names) :], strict=True)
    said = {name: _labels(rows, names, part, name) for name, part in beside}
    strata, units = said.get("within", np.zeros(n, int)), said.get("clusters", np.arange(n))
    if not across and not blocks and len(said) == 2:
        strata_by = _columns(rows, names, parts[len(names)], "within")
        check_nested(strata, units, apart["within"], apart["clusters"], strata_by)
    if not across:
        units = _in_strata(strata, units)
    return parts[: len(names)], Exchange(strata, units, np.ones(n)), told


def units_of(columns: Mapping[str, Any], clusters: object) -> np.ndarray:
    """The cluster of each row of a table, counted from 0: of columns, by name, an array, or consecutive rows."""
    _check_no_switch(clusters=clusters)
    if is_whole(clusters):
        return _consecutive((length(next(iter(columns.values()))),), clusters)
    return _labels([columns], ["data"], clusters, "clusters")


def check_exchange(exchange: Exchange, drawn: str, rows: int, others: Sequence[Any]) -> None:
    """Refuse a custom design that is not for these rows, or lacks what a test draws."""
    own = type(exchange)
    if any(other is not None for other in others):
        raise ParameterError("within= is an Exchange of the rows as passed: leave out by=, clusters= and weights=.")
    if own is not Exchange and getattr(own, drawn) is getattr(Exchange, drawn):
        raise KindError(f"{own.__name__} has no {drawn} of its own, which this test needs: define a method {drawn}.")
    if drawn == "orders" and np.ptp(exchange.weights) > 0:
        raise ParameterError("weights of an Exchange are for tests of samples: give all rows the same.")
    if len(exchange.units) != rows:
        raise ShapeError(f"within is an Exchange of {len(exchange.units)} rows; expected one of {rows}.")


def _check_for_each_row(**given: object) -> None:
    """Refuse an integer, except for `clusters`, where it is the length of blocks."""
    for name, value in given.items():
        if isinstance(value, Exchange):
            raise KindError(f"{name} is an Exchange, for tests of samples and of independence only: pass columns.")
        if is_whole(value):
            raise KindError(f"{name} is {value}; expected the name of a column, as text, or a value for each row.")


def _in_strata(strata: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Units that differ from those of the same name in another stratum."""
    return np.unique(np.stack([strata, units]), axis=1, return_inverse=True)[1].ravel()


def from_strata(samples: Sequence[Any], names: Sequence[str], design: Exchange | None) -> list[Any]:
    """The samples with their numbers centred within strata; everything else unchanged.

    Exchanges within strata do not change these means, and default kernels then detect differences within strata however
    far apart the strata lie; of pairs, they compare the differences.
    """
    if design is None or not design.strata.any():
        return list(samples)
    ends = np.cumsum(list(map(length, samples)))[:-1]
    if all(map(Table.has_names, samples)):
        tables, _ = aligned([Table.of(s, name) for s, name in zip(samples, names, strict=True)], samples, names)
        found = [dict(table.columns) for table in tables]
        for column in tables[0].names:
            parts = [np.asarray(table.columns[column]) for table in tables]
            if all(holds_numbers(part) for part in parts):
                for columns, part in zip(found, _less_means(parts, design, ends), strict=True):
                    columns[column] = part
        return [Table(columns) for columns in found]
    parts = [p for p in map(values_of, samples, names) if p is not None and holds_numbers(p)]
    return _less_means(parts, design, ends) if len(parts) == len(samples) else list(samples)


def _less_means(parts: Sequence[np.ndarray], design: Exchange, ends: np.ndarray) -> list[np.ndarray]:
    whole = np.concatenate(parts).astype(float)
    return np.split(design.centred(whole.reshape(len(whole), -1)).reshape(whole.shape), ends)


def _names(wanted: object, sample: object, argument: str) -> list[str]:
    """The column names given, none for an array; a list of text is an array unless it names columns."""
    listed = names_of(wanted)
    if not listed or isinstance(wanted, str):
        return listed
    known = Table.names_in(sample, argument) if Table.has_names(sample) else []
    return listed if set(listed) <= set(known) else []


def _check_names(sample: object, name: str) -> None:
    if not Table.has_names(sample):
        raise KindError(f"{name} has no columns with names: pass within=, clusters= and weights= as arrays.")


def _columns(samples: Sequence[Any], names: Sequence[str], wanted: object, argument: str) -> list[np.ndarray]:
    """The requested columns, of all rows."""
    columns = _names(wanted, samples[0], names[0])
    total = sum(map(length, samples))
    if columns:
        tables = []
        for sample, name in zip(samples, names, strict=True):
            _check_names(sample, name)
            found = raw_columns(sample, name)
            lacking = [each for each in columns if each not in found]
            if lacking:
                raise no_column(f"{argument} names {lacking[0]!r}, and {name}", lacking[0], list(found))
            tables.append(Table.of({each: found[each] for each in columns}, name))
        return [np.concatenate([np.asarray(table.columns[each]) for table in tables]) for each in columns]
    if isinstance(wanted, list | tuple) and [np.size(each) for each in wanted] == list(map(length, samples)):
        raise ShapeError(
            f"{argument} holds an array for each sample; expected one for all {total} rows: pass "
            f"{argument}=numpy.concatenate({argument})."
        )
    named = named_columns(wanted, argument)
    found = list(Table.of(named, argument).columns.values()) if named else [read_column(wanted, argument)]
    if len(found[0]) != total:
        raise ShapeError(f"{argument} has {len(found[0])} values; expected one for each of the {total} rows.")
    return [np.asarray(column) for column in found]


def _labels(samples: Sequence[Any], names: Sequence[str], wanted: object, argument: str) -> np.ndarray:
    """Labels of all rows, counted from 0; several columns are combined."""
    codes = [np.unique(column, return_inverse=True)[1] for column in _columns(samples, names, wanted, argument)]
    return np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()


def _weights(samples: Sequence[Any], names: Sequence[str], wanted: object) -> np.ndarray:
    column = _columns(samples, names, wanted, "weights")[0]
    if not holds_numbers(column):
        raise KindError(f"weights are labels, such as {str(column[0])!r}; expected numbers that are not negative.")
    weights = column.astype(float)
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise NonFiniteError(
            "weights has negative, infinite or no positive values; expected numbers that are zero or larger."
        )
    return weights / weights.mean()


def _check_compared(sizes: Sequence[int], names: Sequence[str], strata: np.ndarray, mass: np.ndarray) -> None:
    """Refuse samples of weight zero, overall or within every stratum that has another sample."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    held = csr_array((mass, (groups, strata))).toarray()
    for name, own in zip(names, held, strict=True):
        if not own.any():
            raise InputError(f"all weights of {name} are 0: there is nothing to compare.")
    if (held > 0).sum(axis=0).max() < 2:
        weighing = "rows" if mass.all() else "rows of positive weight"
        raise InputError(
            f"no stratum has {weighing} of two samples: there is nothing to compare, and nothing can be exchanged. "
            "Pass coarser within=."
        )


def _check_no_switch(**given: object) -> None:
    """Refuse True, False and fractions, which do not describe rows."""
    for argument, value in given.items():
        if isinstance(value, bool | np.bool_ | float):
            count = ", or a whole number of consecutive rows" if argument == "clusters" else ""
            raise ParameterError(
                f"{argument} is {value}; expected the name of a column, or an array with a value for each row{count}."
            )


def _consecutive(sizes: Sequence[int], size: int) -> np.ndarray:
    """Units of this many consecutive rows of each sample."""
    if not 2 <= size <= max(sizes):
        where = "there are" if len(sizes) == 1 else "the largest sample has"
        least = f"2 consecutive rows in each, and no more than {where}, {max(sizes)}"
        raise ParameterError(f"clusters is {size}; expected at least {least}.")
    found, start = [], 0
    for rows in sizes:
        found.append(start + np.arange(rows) // size)
        start = int(found[-1][-1]) + 1
    return np.concatenate(found)
