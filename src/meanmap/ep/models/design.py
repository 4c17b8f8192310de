"""The columns and outcomes of a regression: read by name and standardised; coefficients in the units of the data."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import check_finite, check_not_tiny, check_rows
from meanmap.core.errors import ColumnError, ParameterError, ShapeError
from meanmap.core.held import counts_as_numbers, holds_floats, holds_text
from meanmap.core.language import in_python
from meanmap.core.notes import warn_of
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.kinds import advice, described
from meanmap.core.tables.schema import Schema, admitted
from meanmap.core.tables.table import Table, refuse_labels
from meanmap.core.tables.wild import wild_notes
from meanmap.core.types import Data
from meanmap.core.values import label_text

__all__ = ["Design", "as_given", "read_codes", "read_labels", "read_outcomes", "warn_of_doubts"]

# A column counts as constant where its spread is within rounding of its values.
_CONSTANT = 1e-12
# Numbers with more different values than this are hardly levels.
MOST_LEVELS = 10
# What to do about labels.
INDICATORS = (
    "pass an indicator column of zeros and ones for each label but one, as "
    "pandas.get_dummies(X, drop_first=True) makes them"
)


@dataclass(frozen=True)
class Design:
    """How the columns of a table become those of a linear map, and back.

    Attributes
    ----------
    names : tuple of str
        The columns, in order.
    centre, scale : (d,) arrays
        What is subtracted from each column, and by what it is divided.
    intercept : bool
        Whether a column of ones comes first.
    schema : Schema or None
        The kinds of the columns, by which new rows are read too.
    """

    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    intercept: bool
    schema: Schema | None = None

    @classmethod
    def of(
        cls,
        X: Data,
        *,
        standardise: bool,
        intercept: bool,
        centre: bool | None = None,
        kinds: Mapping[str, Any] | None = None,
    ) -> tuple["Design", np.ndarray]:
        """The design of a table, and its matrix.

        With an intercept, or something else that takes the place of one (`centre`), standardised columns have mean 0
        and standard deviation 1; without, they keep their zero and have mean square 1.
        """
        given, ((X,), _) = X, admitted((X,), ("X",), "raise", kinds)
        centred = intercept if centre is None else centre
        names, values = _columns(X)
        warn_of_doubts(given, told=kinds or ())
        check_rows(len(values), "X", least=2)
        check_not_tiny(values, "X")
        spread = values.std(0) if centred else np.sqrt((values**2).mean(0))
        constant = spread <= _CONSTANT * np.abs(values).max(0)
        if constant.any():
            name, value = names[np.argmax(constant)], values[0, np.argmax(constant)]
            raise ColumnError(
                f"column {name!r} of X is {value:g} in all {len(values)} rows: "
                + ("the intercept includes it. Remove it." if centred else "it has no information. Remove it.")
            )
        middle = values.mean(0) if centred and standardise else np.zeros(len(names))
        scale = spread if standardise else np.ones(len(names))
        schema = Schema.of(given, kinds=kinds, names=("X",)) if kinds else Schema.of_points(given, "X")
        design = cls(names, middle, scale, bool(intercept), schema)
        return design, design._with_ones((values - middle) / design.scale)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return ("intercept", *self.names) if self.intercept else self.names

    def matrix(self, X: Data) -> np.ndarray:
        """New rows in their own units, ones first: columns are found by name, and of an array there must be as many.

        Where there is no intercept to take up the centre of the columns, it is subtracted.
        """
        if self.schema is not None:
            X = self.schema.later(X, "X")
        _, values = _columns(Table.with_names(X, _bases(self.names), "X"))
        if values.shape[1] != len(self.names):
            raise ShapeError(f"X has {values.shape[1]} columns; expected {len(self.names)}: {', '.join(self.names)}.")
        return self._with_ones(values if self.intercept else values - self.centre)

    def in_units(self, mean: np.ndarray, covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the coefficients of the columns as they are, from those of standardised ones."""
        turn = np.diag(1 / self.scale)
        if self.intercept:
            turn = np.block([[np.ones((1, 1)), -(self.centre / self.scale)[None]], [np.zeros((len(turn), 1)), turn]])
        return turn @ mean, turn @ covariance @ turn.T

    def _with_ones(self, values: np.ndarray) -> np.ndarray:
        return np.column_stack([np.ones(len(values)), values]) if self.intercept else values


def warn_of_doubts(data: Data, name: str = "X", told: Collection[str] = ()) -> None:
    """Warn about columns whose kind is doubtful, except those with a declared kind, and about gross outliers."""
    warn_of(doubts([data], [name], told, then="leave out these rows, or fill them in"))
    warn_of(wild_notes([data], [name], told, then="leave out the row"))


def _columns(X: Data) -> tuple[tuple[str, ...], np.ndarray]:
    table = Table.of(X, "X")
    refuse_labels(table, "X", INDICATORS)
    names: list[str] = []
    for name in table.names:
        column = np.asarray(table.columns[name])
        names += [name] if column.ndim == 1 else [f"{name}[{at}]" for at in range(column.shape[1])]
    values = np.asarray(table.matrix(), dtype=np.float64)
    check_finite(values, "X")
    return tuple(names), values


def _bases(names: tuple[str, ...]) -> list[str]:
    """Names of columns of a table; a block of several is one."""
    return list(dict.fromkeys(name.split("[")[0] if name.endswith("]") else name for name in names))


def read_labels(y: Data, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The two labels of an outcome, in order, and for each row which it has: 0 or 1."""
    values = _outcome(y, rows, "y")
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) != 2:
        shown = ", ".join(label_text(label) for label in classes[:5]) + (", ..." if len(classes) > 5 else "")
        raise ParameterError(
            f"y holds {len(classes)} label{'s' if len(classes) > 1 else ''} ({shown}); expected two."
            + _instead(classes)
        )
    return classes, codes.reshape(-1)


def _instead(classes: np.ndarray) -> str:
    """What to use where there are not two labels."""
    if len(classes) < 2:
        return " There is nothing to learn."
    if len(classes) > MOST_LEVELS and counts_as_numbers(classes):
        return in_python(
            " For counts use poisson_regression, for other numbers robust_regression.",
            " For counts use `meanmap ep poisson`, for other numbers `meanmap ep robust`.",
        )
    levels = ",".join(map(label_text, classes))
    return in_python(
        " For ordered labels use ordinal_regression.",
        f" For ordered labels, from the lowest, use `meanmap ep ordinal --levels {levels}`.",
    )


def read_codes(y: Data, rows: int, levels: object) -> tuple[np.ndarray, np.ndarray]:
    """Ordered labels, from the lowest, and for each row which it has: 0, 1, ..."""
    values = _outcome(y, rows, "y")
    if levels is None:
        if not counts_as_numbers(values):
            raise ParameterError("y holds text, which has no order: pass levels=[lowest, ..., highest].")
        classes = np.unique(values)
    else:
        classes = np.asarray(levels)
        if classes.ndim != 1 or len(set(classes.tolist())) < len(classes):
            raise ParameterError(f"levels is {levels!r}; expected every label once, from the lowest to the highest.")
    known = {label: code for code, label in enumerate(classes.tolist())}
    strange = [value for value in values.tolist() if value not in known]
    if strange:
        raise ParameterError(f"y holds {strange[0]!r}, which is not among levels: {', '.join(map(str, known))}.")
    codes = np.array([known[value] for value in values.tolist()])
    absent = sorted(set(range(len(classes))) - set(codes.tolist()))
    if len(classes) < 2 or absent:
        what = f"never {label_text(classes[absent[0]])}" if absent else "only one label"
        raise ParameterError(f"y holds {what}; expected at least two ordered labels, each in some row.")
    return classes, codes


def read_outcomes(y: Data, rows: int, name: str = "y") -> np.ndarray:
    """Numbers, one for each row."""
    values = _outcome(y, rows, name)
    if not counts_as_numbers(values):
        hint = advice(values, name) if holds_text(values) else ""
        raise ParameterError(
            f"{name} holds {described(values)}; expected numbers, one for each row of X. {hint}".strip()
        )
    warn_of_doubts(values, name)
    return values.astype(np.float64)


def as_given(data: Data, values: np.ndarray) -> np.ndarray:
    """Labels as they came: a table turns whole numbers and truth values into floating-point ones."""
    raw = np.asarray(data)
    return raw if counts_as_numbers(raw) and not holds_floats(raw) and raw.shape == values.shape else values


def _outcome(y: Data, rows: int, name: str) -> np.ndarray:
    table = Table.of({name: y}, name)  # refuses missing values
    values = np.asarray(table.columns[name])
    if values.ndim != 1:
        raise ShapeError(f"{name} has {values.shape[1]} columns; expected one outcome for each row.")
    values = as_given(y, values)
    if holds_floats(values):
        check_finite(values, name)
    if len(values) != rows:
        raise ShapeError(f"X has {rows} rows and {name} has {len(values)}; expected one outcome for each row.")
    return values
