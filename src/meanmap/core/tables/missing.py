"""Samples with missing values: which rows are there, and the one policy that functions share."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.arrays import check_lengths, count_missing, unmasked
from meanmap.core.errors import EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.core.points import is_sparse, refuse_unread, rows
from meanmap.core.tables.doubts import copied_rows, doubts
from meanmap.core.tables.table import Table, raw_columns
from meanmap.core.types import Data

__all__ = [
    "MISSING_LABEL",
    "POLICIES",
    "by_pairs",
    "chosen_rows",
    "length",
    "present",
    "read_present",
    "seen_beside",
    "seen_to",
    "settled",
    "take",
]

# What `missing=` may say, and the label that "category" gives to what is missing.
POLICIES = ("raise", "drop", "category")
MISSING_LABEL = "(missing)"


def length(sample: Data) -> int:
    """How many points there are in a sample as it came."""
    refuse_unread(sample, "sample")
    shape = getattr(sample, "shape", None)
    if shape:
        return int(shape[0])
    if shape is not None or not hasattr(sample, "__len__"):
        raise KindError(f"a sample is a {type(sample).__name__}; expected points: a list, an array or a table.")
    return len(sample)


def present(sample: Data) -> np.ndarray:
    """Which rows have no missing value."""
    number = length(sample)
    if is_sparse(sample) or hasattr(sample, "as_matrix"):
        return np.ones(number, dtype=bool)
    if hasattr(sample, "isna"):
        missing = np.asarray(sample.isna())
        if getattr(getattr(sample, "dtype", None), "kind", "") == "f":  # nullable ones of pandas tell NaN from NA
            missing = missing | np.isnan(sample.to_numpy(np.float64, na_value=np.nan))
    elif hasattr(sample, "is_null"):
        values = np.asarray(sample)  # polars tells NaN from null
        missing = np.asarray(sample.is_null()) | (np.isnan(values) if values.dtype.kind == "f" else False)
    else:
        array = np.asarray(unmasked(sample))
        if array.dtype.kind in "fmM":
            missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
        elif array.dtype.kind == "O":
            missing = np.array([count_missing(np.array([value], dtype=object)) > 0 for value in array.ravel()])
            missing = missing.reshape(array.shape)
        else:
            missing = np.zeros(number, dtype=bool)
    return np.asarray(~missing.any(axis=tuple(range(1, missing.ndim))))


def take(sample: Data, index: np.ndarray) -> Any:
    """Some of the rows."""
    if hasattr(sample, "iloc"):
        return sample.iloc[index]
    if hasattr(sample, "dtype") or is_sparse(sample) or hasattr(sample, "as_matrix"):
        return rows(sample, index) if not hasattr(sample, "as_matrix") else sample[index]
    return [sample[i] for i in index]


def read_present(data: Data, argument: str = "table") -> tuple[Table, np.ndarray]:
    """Each column of a table on the rows where it is there, and which these are, (n, d).

    The columns of the result differ in length where values are missing.
    """
    names, columns = raw_columns(data, argument)
    columns = dict(zip(names, columns, strict=True))
    masks = {name: present(column) for name, column in columns.items()}
    check_lengths({name: len(mask) for name, mask in masks.items()}, argument)
    read = {}
    for name, column in columns.items():
        mask = masks[name]
        if not mask.any():
            raise EmptyError(f"{argument}[{name!r}] has no value that is not missing.")
        values = column if mask.all() else take(column, np.flatnonzero(mask))
        read |= Table.of({name: values}, argument).columns
    return Table(read), np.stack(list(masks.values()), axis=1)


def settled(
    samples: Sequence[Any], names: Sequence[str], missing: str, paired: bool = False, least: int = 1
) -> tuple[list[Any], tuple[str, ...]]:
    """Samples whose missing values are seen to, and what was done, in words.

    "raise" leaves them as they are, for what reads them to refuse; "drop" leaves out rows with a missing value, of
    samples that are `paired` in all of them; "category" makes missing labels a label of their own.

    Examples
    --------
    >>> samples, notes = settled([{"age": [31.0, None, 47.0]}], ["x"], "drop")
    >>> samples[0]["age"], notes
    ([31.0, 47.0], ("1 of 3 rows of x was left out: a value is missing in 'age' (1).",))
    """
    if missing not in POLICIES:
        raise ParameterError(f"missing is {missing!r}; expected one of {', '.join(map(repr, POLICIES))}.")
    samples = [unmasked(sample) for sample in samples]
    if missing == "raise":
        return samples, ()
    masks = [_masks(sample, name) for sample, name in zip(samples, names, strict=True)]
    if missing == "category":
        found = [_filled(*each) for each in zip(samples, masks, names, strict=True)]
        return [sample for sample, _ in found], tuple(note for _, note in found if note)
    kept = [np.all(list(mask.values()), axis=0) for mask in masks]
    told = list(zip(names, kept, map(_where, masks), strict=True))
    if paired:
        sizes = dict(zip(names, map(len, kept), strict=True))
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ShapeError(f"there are {shown}; expected one row of each for every observation.")
        kept = [np.all(kept, axis=0)] * len(kept)
        wheres = [_of(where, name) if len(names) > 1 else where for name, _, where in told if where]
        told = [(_listed(names), kept[0], ", ".join(wheres))]
    notes = []
    for name, keep, where in told:
        if where:
            gone = int((~keep).sum())
            was = f"{gone} of {len(keep)} rows of {name} {'was' if gone == 1 else 'were'} left out"
            notes.append(f"{was}: a value is missing in {where}.")
            if keep.sum() < least:
                raise EmptyError(f"{notes[-1][:-1]}, and {keep.sum()} are left; expected at least {least}.")
    chosen = zip(samples, kept, strict=True)
    return [s if keep.all() else chosen_rows(s, np.flatnonzero(keep)) for s, keep in chosen], tuple(notes)


def seen_to(sample: Data, name: str, missing: str) -> tuple[Any, dict[str, int]]:
    """A piece of a sample as `settled` leaves it, which may be without any row, and what was missing in each column."""
    if missing == "raise":
        return sample, {}
    masks = _masks(sample, name)
    gaps = {key: int((~mask).sum()) for key, mask in masks.items() if not mask.all()}
    if missing == "category":
        return _filled(sample, masks, name)[0], gaps
    keep = np.all(list(masks.values()), axis=0)
    return (sample if keep.all() else chosen_rows(sample, np.flatnonzero(keep))), gaps


def seen_beside(parts: Sequence[Any], names: Sequence[str], missing: str) -> tuple[list[Any], dict[str, int]]:
    """As `seen_to` for parts that lie side by side: a row stays where it is there in all of them."""
    if missing != "drop":
        found = [seen_to(part, name, missing) for part, name in zip(parts, names, strict=True)]
        return [part for part, _ in found], _by_name([gaps for _, gaps in found], names)
    masks = [_masks(part, name) for part, name in zip(parts, names, strict=True)]
    gaps = [{key: int((~mask).sum()) for key, mask in each.items() if not mask.all()} for each in masks]
    keep = np.all([mask for each in masks for mask in each.values()], axis=0)
    kept = list(parts) if keep.all() else [chosen_rows(part, np.flatnonzero(keep)) for part in parts]
    return kept, _by_name(gaps, names)


def _by_name(gaps: Sequence[Mapping[str, int]], names: Sequence[str]) -> dict[str, int]:
    return {_of(key, name): n for name, each in zip(names, gaps, strict=True) for key, n in each.items()}


def _of(where: str, name: str) -> str:
    """Columns of a sample, and of one without columns the sample itself."""
    return name + where[2:] if where == "it" or where.startswith("it (") else f"{where} of {name}"


def by_pairs(
    table: Data, name: str, missing: str, least: int = 1, told: Collection[str] = ()
) -> tuple[Any, tuple[str, ...]]:
    """As `settled` for one table whose columns are looked at two by two: "pairwise" leaves all rows, and says so.

    Columns that may not be what they seem are told of, but for those that are `told` to be something, and copied rows.

    Examples
    --------
    >>> by_pairs({"age": [31.0, None, 47.0]}, "table", "pairwise")[1]
    ("rows of table are left out where a value of the pair is missing: 'age' (1).",)
    """
    if missing not in ("pairwise", *POLICIES):
        expected = ", ".join(map(repr, ("pairwise", *POLICIES)))
        raise ParameterError(f"missing is {missing!r}; expected one of {expected}.")
    if missing in ("drop", "category"):
        (table,), notes = settled((table,), (name,), missing, least=least)
    else:
        where = _where(_masks(table, name))
        if where and missing == "raise":
            raise NonFiniteError(f"{name} has missing values in {where}: fill them in, or pass missing='drop'.")
        notes = (f"rows of {name} are left out where a value of the pair is missing: {where}.",) if where else ()
    return table, (*notes, *doubts([table], [name], told), *copied_rows([table], [name]))


def _masks(sample: Data, name: str) -> dict[str, np.ndarray]:
    """Which values of each column are there."""
    if Table.looks_like_one(sample):
        return {repr(key): present(column) for key, column in zip(*raw_columns(sample, name), strict=True)}
    array = np.asarray(sample) if not is_sparse(sample) and not hasattr(sample, "as_matrix") else None
    if array is not None and array.ndim == 2:
        return {f"column {j}": present(array[:, j]) for j in range(array.shape[1])}
    return {"it": present(sample)}


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _where(masks: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"{key} ({(~mask).sum()})" for key, mask in masks.items() if not mask.all())


def chosen_rows(sample: Data, index: np.ndarray) -> Any:
    """Some rows of a sample, which stays what it is; of a frame of polars a table."""
    if isinstance(sample, Table):
        return rows(sample, index)
    if isinstance(sample, Mapping):
        return {name: take(column, index) for name, column in sample.items()}
    if Table.looks_like_one(sample) and not hasattr(sample, "iloc") and not isinstance(sample, np.ndarray):
        names, columns = raw_columns(sample, "sample")
        return Table.of({name: take(column, index) for name, column in zip(names, columns, strict=True)})
    return take(sample, index)


def _filled(sample: Data, masks: Mapping[str, np.ndarray], name: str) -> tuple[Any, str]:
    """A sample whose missing labels are a label of their own; missing numbers are refused."""
    where = _where(masks)
    if not where:
        return sample, ""
    if not Table.looks_like_one(sample):
        filled = _labels(sample, masks["it"], name) if "it" in masks else None
        if filled is None:
            raise KindError(f"{name} has missing values in {where}; missing='category' is for labels: pass 'drop'.")
        return filled, f"missing values of {name} are a label, {MISSING_LABEL!r}: {where}."
    keys, columns = raw_columns(sample, name)
    keys = keys if Table.has_names(sample) else [f"x{j}" for j in range(len(keys))]
    found = [_labels(*each) for each in zip(columns, masks.values(), (f"{name}[{key!r}]" for key in keys), strict=True)]
    return dict(zip(keys, found, strict=True)), f"missing values of {name} are a label, {MISSING_LABEL!r}: {where}."


def _labels(column: Data, there: np.ndarray, where: str) -> Any:
    if there.all():
        return column
    held = Table.of({"it": take(column, np.flatnonzero(there))}, where).columns["it"]
    if held.dtype.kind not in "Ub":
        raise KindError(
            f"{where} has {(~there).sum()} missing numbers; missing='category' is for labels: pass missing='drop'."
        )
    filled = np.full(len(there), MISSING_LABEL, dtype=object)
    filled[there] = held.astype(str)
    return filled
