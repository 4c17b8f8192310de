"""Input of scikit-learn's estimators, read by its rules."""

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from sklearn.utils.validation import validate_data

from meanmap.core.containers import handed_over, no_frame, refuse_unread
from meanmap.core.errors import NonFiniteError
from meanmap.core.foreign import unmasked
from meanmap.core.notes import warn_of
from meanmap.core.pieces.source import Stream
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.chunks import sampled
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import complete_part, refuse_labels
from meanmap.core.tables.wild import wild_notes, without_wild_cells
from meanmap.core.types import Data

__all__ = ["MOST_ROWS", "learned_from", "read"]

# Kernels, features and operators are learned from up to this many rows, drawn by row number only: always the same ones,
# wherever the data are stored. An operator of this many takes most of a gigabyte.
MOST_ROWS = 100_000
# The advice about labels.
INDICATORS = "turn them into indicator columns, as sklearn.preprocessing.OneHotEncoder does"


@overload
def read(estimator: Any, X: Data, /, **settings: object) -> np.ndarray: ...
@overload
def read(estimator: Any, X: Data, y: Data, /, **settings: object) -> tuple[np.ndarray, np.ndarray]: ...
def read(estimator: Any, *data: Data, **settings: object) -> Any:
    """X, or X and y, by the rules of scikit-learn; integers too long for a float are refused, too.

    `schema_` describes the columns of X at the fit. A warning names numbers that may be codes for missing values, gross
    outliers and, in later calls, numbers far outside the range.
    """
    data = _handed_over(data)
    for each, name in zip(data, ("X", "y"), strict=False):
        refuse_unread(each, name)
    try:
        found = validate_data(estimator, *map(unmasked, data), dtype=np.float64, **settings)
    except ValueError as problem:
        if "could not convert" in str(problem):
            for each, name in zip(data, ("X", "y"), strict=False):
                if table := complete_part(each, name):
                    refuse_labels(table, name, INDICATORS)
        raise
    except OverflowError:
        raise NonFiniteError("X or y holds an integer that is too large for a float; expected at most 1e308.") from None
    X: Any = found[0] if len(data) > 1 else found
    if settings.get("reset", True):
        names = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
        estimator.schema_ = Schema.of(dict(zip(names, X.T, strict=True)), names=("X",))
        for column in estimator.schema_.columns:
            warn_of(column.strange(f"X[{column.name!r}]"))
        _warn_of_outliers(dict(zip(names, X.T, strict=True)), "X", settings)
        if settings.get("y_numeric"):
            warn_of(doubts([found[1]], ["y"], then="leave out these rows"))
            _warn_of_outliers({None: np.asarray(found[1])}, "y", settings)
    else:
        warn_of(estimator.schema_.notes(dict(zip(estimator.schema_.names, X.T, strict=True)), "X"))
    return found


def _warn_of_outliers(columns: Mapping[Any, np.ndarray], argument: str, settings: Mapping[str, object]) -> None:
    """Warn about outliers: estimators that accept missing values treat them as missing, others as numbers."""
    if settings.get("ensure_all_finite") != "allow-nan":
        table = columns.get(None, columns)
        warn_of(wild_notes([table], [argument], then="leave out the row"))
        return
    for name, column in columns.items():
        _, note = without_wild_cells(column, argument if name is None else f"{argument}[{name!r}]")
        warn_of([note] if note else [])


@overload
def learned_from(estimator: Any, X: Data, /, **settings: object) -> np.ndarray: ...
@overload
def learned_from(estimator: Any, X: Data, y: Data, /, **settings: object) -> tuple[np.ndarray, np.ndarray]: ...
def learned_from(estimator: object, *data: Data, **settings: object) -> Any:
    """As `read`, but at most `MOST_ROWS` rows; of files and Dask collections only these are read."""
    names = ("X", "y")[: len(data)]
    data = _handed_over(data)
    for each, name in zip(data, names, strict=True):
        if Stream.holds(each):
            refuse_unread(each, name)
    if any(map(comes_in_pieces, data)):
        data = tuple(sampled(data, np.random.default_rng(0), names, MOST_ROWS))
    found = read(estimator, *data, **settings)
    kept = sampled(found if len(data) > 1 else [found], np.random.default_rng(0), names, MOST_ROWS)
    return kept if len(data) > 1 else kept[0]


def _handed_over(data: tuple[Data, ...]) -> tuple[Data, ...]:
    """X, or X and y, converted from other libraries; mappings of columns are refused."""
    found = tuple(map(handed_over, data))
    for came, each, name in zip(data, found, ("X", "y"), strict=False):
        if isinstance(each, Mapping):
            raise no_frame(came, name)
    return found
