"""Samples with missing values: which rows are there, and only these."""

from typing import Any

import numpy as np

from meanmap.core.arrays import count_missing
from meanmap.core.errors import EmptyError, KindError, ShapeError
from meanmap.core.points import is_sparse, rows
from meanmap.core.table import Table, raw_columns

__all__ = ["length", "present", "read_present", "take"]


def length(sample: Any) -> int:
    """How many points there are in a sample as it came."""
    shape = getattr(sample, "shape", None)
    if shape:
        return int(shape[0])
    if shape is not None or not hasattr(sample, "__len__"):
        raise KindError(f"a sample is a {type(sample).__name__}; expected points: a list, an array or a table.")
    return len(sample)


def present(sample: Any) -> np.ndarray:
    """Which rows have no missing value."""
    number = length(sample)
    if is_sparse(sample) or hasattr(sample, "as_matrix"):
        return np.ones(number, dtype=bool)
    if hasattr(sample, "isna"):
        missing = np.asarray(sample.isna())
    elif hasattr(sample, "is_null"):
        missing = np.asarray(sample.is_null())
    else:
        array = np.asarray(sample)
        if array.dtype.kind == "f":
            missing = np.isnan(array)
        elif array.dtype.kind == "O":
            missing = np.array([count_missing(np.array([value], dtype=object)) > 0 for value in array.ravel()])
            missing = missing.reshape(array.shape)
        else:
            missing = np.zeros(number, dtype=bool)
    return np.asarray(~missing.any(axis=tuple(range(1, missing.ndim))))


def take(sample: Any, index: np.ndarray) -> Any:
    """Some of the rows."""
    if hasattr(sample, "iloc"):
        return sample.iloc[index]
    if hasattr(sample, "dtype") or is_sparse(sample) or hasattr(sample, "as_matrix"):
        return rows(sample, index) if not hasattr(sample, "as_matrix") else sample[index]
    return [sample[i] for i in index]


def read_present(data: Any, argument: str = "table") -> tuple[Table, np.ndarray]:
    """Each column of a table on the rows where it is there, and which these are, (n, d).

    The columns of the result differ in length where values are missing.
    """
    names, columns = raw_columns(data, argument)
    columns = dict(zip(names, columns, strict=True))
    masks = {name: present(column) for name, column in columns.items()}
    lengths = {name: len(mask) for name, mask in masks.items()}
    if len(set(lengths.values())) > 1:
        raise ShapeError(f"the columns of {argument} differ in length: {lengths}.")
    read = {}
    for name, column in columns.items():
        mask = masks[name]
        if not mask.any():
            raise EmptyError(f"{argument}[{name!r}] has no value that is not missing.")
        values = column if mask.all() else take(column, np.flatnonzero(mask))
        read |= Table.of({name: values}, argument).columns
    return Table(read), np.stack(list(masks.values()), axis=1)
