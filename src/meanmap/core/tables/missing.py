"""Samples with missing values: which rows are complete, and the policy that all functions share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.arrays import check_lengths, refuse_name
from meanmap.core.containers import is_pandas, is_rotations, is_sparse, refuse_unread
from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.foreign import absent, is_missing, unmasked
from meanmap.core.held import holds_truth, is_plain
from meanmap.core.language import a_type, in_python, with_and
from meanmap.core.meant import did_you_mean
from meanmap.core.points import rows
from meanmap.core.settings import one_of
from meanmap.core.tables.marks import policy_and_marks, without_marks
from meanmap.core.tables.table import Table, named_columns, raw_columns
from meanmap.core.tables.zones import check_zones
from meanmap.core.types import Data

__all__ = [
    "BY_PAIRS",
    "MISSING_LABEL",
    "POLICIES",
    "as_found",
    "by_pairs",
    "chosen_rows",
    "gaps_in",
    "incomplete",
    "left_out",
    "length",
    "present",
    "read_present",
    "rows_called",
    "settle",
    "settle_pieces",
    "take",
]

# Values of `missing=`, and the label that "category" gives to missing values.
POLICIES = ("raise", "drop", "category")
MISSING_LABEL = "(missing)"
# If at least this share and number of rows are left out, a note says how to keep them.
MANY, LEAST = 0.05, 20
# The note on missing values in tables whose columns are used in pairs.
BY_PAIRS = "are left out where a value of the pair is missing"


def length(sample: Any) -> int:
    """The number of points in a sample before conversion."""
    refuse_unread(sample, "sample")
    if isinstance(sample, Mapping):
        return len(next(iter(sample.values()), ()))
    shape = getattr(sample, "shape", None)
    if shape:
        return int(shape[0])
    refuse_name(sample, "a sample", "points: a list, an array or a table")
    if shape is not None or not hasattr(sample, "__len__"):
        raise KindError(f"a sample is {a_type(sample)}; expected points: a list, an array or a table.")
    return len(sample)


def present(sample: Any) -> np.ndarray:
    """Which rows have no missing value."""
    number = length(sample)
    if is_sparse(sample) or is_rotations(sample):
        return np.ones(number, dtype=bool)
    try:
        missing = absent(sample)
    except ValueError:  # of lists of different lengths
        return np.array([not is_missing(value) for value in sample])
    return np.asarray(~missing.any(axis=tuple(range(1, missing.ndim))))


def take(sample: Any, index: np.ndarray) -> Any:
    """Some of the rows."""
    if is_pandas(sample):
        return sample.iloc[index]
    if hasattr(sample, "dtype") or is_sparse(sample) or is_rotations(sample):
        return rows(sample, index) if not is_rotations(sample) else sample[index]
    return [sample[i] for i in index]


def read_present(data: Data, argument: str = "table") -> tuple[Table, np.ndarray]:
    """The observed values of each column of a table, and which rows these are, (n, d). The columns of the result differ
    in length if values are missing.
    """
    columns = raw_columns(data, argument)
    masks = {name: present(column) for name, column in columns.items()}
    check_lengths({name: len(mask) for name, mask in masks.items()}, argument)
    read = {}
    for name, column in columns.items():
        mask = masks[name]
        if not mask.any():
            raise EmptyError(f"{argument}[{name!r}] has no observed values.")
        values = column if mask.all() else take(column, np.flatnonzero(mask))
        read |= Table.of({name: values}, argument).columns
    return Table(read), np.stack(list(masks.values()), axis=1)


def settle(
    samples: Sequence[Any], names: Sequence[str], missing: object, paired: bool = False, least: int = 1
) -> tuple[list[Any], tuple[str, ...]]:
    """Samples with missing values handled, and notes about it. "raise" leaves them unchanged, for their reader to
    refuse; "drop" leaves out rows with a missing value, from all samples if they are `paired`; "category" treats
    missing labels as a label of their own. A list of codes, such as ["?", -999], drops rows with these values too.

    Examples
    --------
    >>> samples, notes = settle([{"age": [31.0, None, 47.0]}], ["x"], "drop")
    >>> samples[0]["age"], notes
    ([31.0, 47.0], ("1 of 3 rows of x was left out: a value is missing in 'age' (1).",))
    """
    policy, _ = policy_and_marks(missing)
    if policy not in POLICIES:
        expected = f"{', '.join(map(repr, POLICIES))}, or a list of codes for missing values, such as ['?', -999]"
        raise ParameterError(f"missing is {policy!r}{did_you_mean(policy, POLICIES)}; expected one of {expected}.")
    samples = [unmasked(sample) for sample in samples]
    if not paired and not all(map(is_plain, samples)):
        check_zones(samples, names)
    found, gaps, kept = _settle(samples, names, missing, paired)
    told = list(zip(names, kept, map(_where, gaps), strict=True))
    if paired and policy == "drop":
        wheres = [_of(where, name) if len(names) > 1 else where for name, _, where in told if where]
        told = [(with_and(names), kept[0], ", ".join(wheres))]
    notes = []
    columns = sum(len(named_columns(sample, name) or [None]) for sample, name in zip(samples, names, strict=True))
    for name, keep, where in told:
        if where:
            about = name, len(keep), int(keep.sum()), where, columns > len(names)
            if not keep.all() and keep.sum() < least:
                raise EmptyError(left_out(*about, least=least))
            notes.append(left_out(*about))
    return found, tuple(notes)


def as_found(samples: Sequence[Any], names: Sequence[str], missing: object) -> list[Any]:
    """Samples with all of their rows, without codes for missing values."""
    _, marks = policy_and_marks(missing)
    found = [unmasked(sample) for sample in samples]
    return [without_marks(each, name, marks) for each, name in zip(found, names, strict=True)] if marks else found


def rows_called(came: Sequence[Any], left: Sequence[Any], names: Sequence[str], missing: object) -> np.ndarray | None:
    """The numbers of the rows that are `left` of paired samples, as they `came`: None if all are, empty if a design
    left out others than those with a missing value.
    """
    if left[0] is came[0] or length(left[0]) == length(came[0]):
        return None
    _, _, (kept, *_) = _settle([unmasked(sample) for sample in came], names, missing, paired=True)
    found = np.flatnonzero(kept)
    return found if len(found) == length(left[0]) else found[:0]


def settle_pieces(parts: Sequence[Any], names: Sequence[str], missing: object) -> tuple[list[Any], dict[str, int]]:
    """Parts of samples side by side, as `settle` returns them, possibly without rows, and the number of missing values
    in each column, with the name of the part if there are several.
    """
    found, gaps, _ = _settle(parts, names, missing, paired=True)
    beside = len(names) > 1
    counts = [
        (_of(key, name) if beside else key, n)
        for name, each in zip(names, gaps, strict=True)
        for key, n in each.items()
    ]
    return found, dict(counts)


def left_out(name: str, rows: int, kept: int, where: str, beside: bool = False, least: int | None = None) -> str:
    """The note on missing values: which rows were left out, or that they are a label. Where many were, and there are
    columns `beside`, it says that these rows can be kept.
    """
    if kept == rows:
        said = f"missing values of {name} are a label, {MISSING_LABEL!r}"
        return f"{said} {where[3:]}." if where.startswith("it (") else f"{said}: {where}."
    gone = rows - kept
    said = f"{gone} of {rows} rows of {name} {'was' if gone == 1 else 'were'} left out: a value is missing in {where}."
    said = said if least is None else f"{said[:-1]}, and {kept} are left; expected at least {least}."
    if not beside or gone < max(MANY * rows, LEAST):
        return said
    return f"{said} To keep these rows, leave out columns that are not needed{in_python('', ', with --exclude')}."


def _settle(
    parts: Sequence[Any], names: Sequence[str], missing: object, paired: bool
) -> tuple[list[Any], list[dict[str, int]], list[np.ndarray]]:
    """The remaining parts, the number of missing values in each column, and which rows remain."""
    policy, marks = policy_and_marks(missing)
    if policy == "raise":
        return list(parts), [{} for _ in parts], [np.ones(0, bool) for _ in parts]
    if marks:
        parts = [without_marks(part, name, marks) for part, name in zip(parts, names, strict=True)]
    masks = [_masks(part, name) for part, name in zip(parts, names, strict=True)]
    gaps = list(map(_gaps, masks))
    if policy == "category":
        found = [_filled(*each) for each in zip(parts, masks, gaps, names, strict=True)]
        return found, gaps, [np.ones(len(next(iter(mask.values()))), bool) for mask in masks]
    kept = [np.all(list(mask.values()), axis=0) for mask in masks]
    if paired:
        sizes = dict(zip(names, map(len, kept), strict=True))
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ShapeError(f"there are {shown}; expected one row of each for every observation.")
        kept = [np.all(kept, axis=0)] * len(kept)
    chosen = zip(parts, kept, strict=True)
    return [p if keep.all() else chosen_rows(p, np.flatnonzero(keep)) for p, keep in chosen], gaps, kept


def _of(where: str, name: str) -> str:
    """Columns of a sample, and of one without columns the sample itself."""
    return name + where[2:] if where == "it" or where.startswith("it (") else f"{where} of {name}"


def by_pairs(table: Data, name: str, missing: object, least: int = 1) -> tuple[Any, tuple[str, ...]]:
    """As `settle` for one table whose columns are looked at two by two: "pairwise" leaves all rows, and says so.

    Examples
    --------
    >>> by_pairs({"age": [31.0, None, 47.0]}, "table", "pairwise")[1]
    ("rows of table are left out where a value of the pair is missing: 'age' (1).",)
    """
    missing, marks = policy_and_marks(missing)
    table = without_marks(table, name, marks) if marks else table
    one_of(missing, "missing", ("pairwise", *POLICIES))
    if missing in ("drop", "category"):
        (table,), notes = settle((table,), (name,), missing, least=least)
    else:
        where = _where(_gaps(_masks(table, name)))
        if where and missing == "raise":
            raise incomplete(name, where)
        notes = (f"rows of {name} {BY_PAIRS}: {where}.",) if where else ()
    return table, notes


def incomplete(name: str, where: str, remedy: str = "pass missing='drop'") -> NonFiniteError:
    """The error for a table with missing values in these columns."""
    return NonFiniteError(f"{name} has missing values in {where}: fill them in, or {remedy}.")


def gaps_in(sample: Any, name: str, missing: object) -> dict[str, np.ndarray]:
    """Which values of each column are missing, or stand for missing ones.

    Examples
    --------
    >>> {key: gaps.tolist() for key, gaps in gaps_in({"age": [31.0, None], "town": ["?", "Bonn"]}, "x", ["?"]).items()}
    {"'age'": [False, True], "'town'": [True, False]}
    """
    _, marks = policy_and_marks(missing)
    sample = unmasked(sample)
    return {key: ~there for key, there in _masks(without_marks(sample, name, marks) if marks else sample, name).items()}


def _masks(sample: Data, name: str) -> dict[str, np.ndarray]:
    """Which values of each column are observed."""
    if named := named_columns(sample, name):
        masks = {key: present(column) for key, column in named.items()}
        check_lengths({key: len(mask) for key, mask in masks.items()}, name)
        return {repr(key): mask for key, mask in masks.items()}
    array = np.asarray(sample) if not is_sparse(sample) and not is_rotations(sample) else None
    if array is not None and array.ndim == 2:
        return {f"column {j}": present(array[:, j]) for j in range(array.shape[1])}
    return {"it": present(sample)}


def _gaps(masks: Mapping[str, np.ndarray]) -> dict[str, int]:
    return {key: int((~mask).sum()) for key, mask in masks.items() if not mask.all()}


def _where(gaps: Mapping[str, int]) -> str:
    return ", ".join(f"{key} ({number})" for key, number in gaps.items())


def chosen_rows(sample: object, index: np.ndarray) -> Any:
    """Some rows of a sample, of the same type; a table for a polars frame."""
    if isinstance(sample, Table):
        return rows(sample, index)
    if isinstance(sample, Mapping):
        return {name: take(column, index) for name, column in sample.items()}
    if Table.looks_like_one(sample) and not is_pandas(sample) and not isinstance(sample, np.ndarray):
        return Table.of({name: take(column, index) for name, column in raw_columns(sample, "sample").items()})
    return take(sample, index)


def _filled(sample: Data, masks: Mapping[str, np.ndarray], gaps: Mapping[str, int], name: str) -> Any:
    """A sample with missing labels as a label of their own; missing numbers are refused.

    Truth values are labels even without gaps: another sample, or a later one, may have some.
    """
    columns = named_columns(sample, name)
    if not gaps and not any(map(_are_truths, columns.values() if columns else [sample] if "it" in masks else [])):
        return sample
    if columns:
        keys = list(columns) if Table.has_names(sample) else [f"x{j}" for j in range(len(columns))]
        wheres = (f"{name}[{key!r}]" for key in keys)
        return dict(zip(keys, map(_labels, columns.values(), masks.values(), wheres), strict=True))
    if "it" in masks:
        return _labels(sample, masks["it"], name)
    where = _where(gaps)
    raise KindError(f"{name} has missing values in {where}; missing='category' is for labels: pass 'drop'.")


def _labels(column: Data, there: np.ndarray, where: str) -> Any:
    if there.all():
        return np.asarray(column).astype(str) if _are_truths(column) else column
    if not there.any():  # whatever its declared kind
        return np.full(len(there), MISSING_LABEL)
    held = Table.of({"it": take(column, np.flatnonzero(there))}, where).columns["it"]
    if held.dtype.kind not in "Ub":
        raise KindError(
            f"{where} has {(~there).sum()} missing numbers; missing='category' is for labels: pass missing='drop'."
        )
    filled = np.full(len(there), MISSING_LABEL, dtype=object)
    filled[there] = held.astype(str)
    return filled


def _are_truths(column: Data) -> bool:
    try:
        array = np.asarray(column)
    except ValueError:  # of lists of different lengths
        return False
    return holds_truth(array) or (array.dtype == object and all(isinstance(v, bool | np.bool_) for v in array.flat))
