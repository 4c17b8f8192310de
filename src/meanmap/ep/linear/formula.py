"""A formula in the notation of Bambi and lme4, read with a frame: columns of shared effects, and effects of groups."""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.containers import handed_over
from meanmap.core.errors import ColumnError, InputError, NonFiniteError, ParameterError
from meanmap.core.held import holds_floats
from meanmap.core.language import a_type
from meanmap.core.tables.selection import selection_notes
from meanmap.core.tables.table import Table
from meanmap.core.types import Data
from meanmap.ep.linear.brackets import check_powers, check_whole, read_brackets
from meanmap.ep.linear.frames import as_frame, distinct, formulae, holds_truths, unused_levels
from meanmap.ep.linear.levels import refused_levels
from meanmap.ep.linear.limits import censored, truncated
from meanmap.ep.linear.margins import margins_of
from meanmap.ep.linear.told import hint, told

__all__ = ["Formula", "Groups", "Rows"]

# Names inside C(...) that say how labels are coded.
_CODINGS = ("Sum", "Treatment")


@dataclass(frozen=True)
class Groups:
    """A grouping factor: the group and design of each row, names of its effects, and the groups in order.

    Groups unknown when the model was fitted have the indices −1, −2, ... `sets` gives the sizes of the sets of
    correlated effects, in order, and `margins` the columns within each that its products are made of.
    """

    name: str
    index: np.ndarray
    design: np.ndarray
    labels: tuple[str, ...]
    levels: tuple[Any, ...]
    sets: tuple[int, ...]
    margins: tuple[dict[int, list[int]], ...]


@dataclass(frozen=True)
class Rows:
    """The design of a formula for the rows of a frame; `kept` says which these are, and `grouped` whether effects of
    groups count.
    """

    shared: np.ndarray
    offset: np.ndarray
    groups: tuple[Groups, ...]
    frame: Any
    kept: np.ndarray
    grouped: bool = True


class Formula:
    """A formula and the frame that it was first read with; later frames use the levels and transformations of that
    frame.
    """

    def __init__(self, text: str, data: Data, missing: str, also: tuple[str, ...] = ()):
        if not isinstance(text, str):
            raise ParameterError(f"formula is {a_type(text)}; expected text first: 'y ~ x + (1 | group)'.")
        if "~" not in text:
            raise ParameterError(f"formula is {text!r}; expected text such as 'y ~ x + (1 | group)'.")
        package, environment = formulae(), formulae("formulae.environment").Environment
        self.text = text
        try:
            check_powers(text)
            plain, self.brackets = read_brackets(text)
            model = package.model_description(plain)
        except InputError:
            raise
        except Exception as error:
            raise ParameterError(f"formula {text!r} cannot be read: {hint(text, str(error))}") from error
        self.terms = [term for together in self.brackets for term in together.terms]
        _check_once(text, [term.name for term in self.terms])
        if model.response is None:
            raise ParameterError(f"formula {text!r} has no response; expected one, such as 'y ~ x + (1 | group)'.")
        model.group_terms = []
        # In k/x one object stands for k in both terms, and has the labels of the second.
        model.common_terms = list(map(deepcopy, model.common_terms))
        if re.search(r"\bIntercept\b", text) and "Intercept" in Table.names_in(handed_over(data), "data"):
            raise ColumnError(
                f"formula {text!r} has Intercept, which means the constant, and data has a column of this name: rename "
                "the column."
            )
        grouped = self._names_of(self.terms)
        response = set(model.response.var_names) - {""}
        without = self._names_of(model.common_terms)
        numbers = [name for name in {*without, *grouped} if not isinstance(name, str)]
        if numbers:
            raise ParameterError(
                f"formula {text!r} has the number {numbers[0]} as a term; expected columns. For products and sums of "
                "numbers type I(2 * x)."
            )
        asked = sorted({*without, *grouped} - {""})
        names = list(dict.fromkeys([*sorted(response), *asked, *also]))
        frame, kept, gaps = as_frame(data, names, missing, "data", _CODINGS if re.search(r"\bC\(", text) else ())
        names = list(frame)
        check_whole(text, plain)
        self.of_response = tuple(sorted(response))
        self.asked = tuple(name for name in asked if name in names)
        self.without_groups = tuple(name for name in self.asked if name in without)
        columns: Any = data
        there = dict(zip(names, ~gaps.T, strict=True))
        self.unlike = selection_notes({name: columns[name] for name in names}, there, against=sorted(response))
        self.truths = tuple(name for name in self.asked if holds_truths(columns[name]))
        used = (*sorted(response), *self.asked)
        self.unused = {name: found for name in used if (found := unused_levels(columns[name]))}
        with told(text):
            known = environment([{"np": np, "censored": censored, "truncated": truncated}])
            self.matrices = formulae("formulae.matrices").DesignMatrices(model, frame, known)
            # Labels in a bracket have the columns that they have among shared effects: 1 + k:x has a slope for each.
            read, model_of = formulae("formulae.matrices").DesignMatrices, formulae("formulae.terms").Model
            exprs = [[deepcopy(term.expr) for term in together.terms] for together in self.brackets]
            self.designs = [read(model_of(*each), frame, environment([{"np": np}])).common for each in exprs]
        self.levels: dict[str, tuple[Any, ...]] = {}
        self.rows = self._rows(frame, kept, self.matrices.common, new=False)
        index = getattr(handed_over(data), "index", None)
        self.index = kept if index is None else index[kept]  # what the rows of the fit are called

    @staticmethod
    def _names_of(terms: Any) -> set[str]:
        return {name for term in terms for name in term.var_names}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the effects that all rows share."""
        if self.matrices.common is None:
            return ()
        terms = self.matrices.common.terms.values()
        return tuple(_whole(label) for term in terms if term.kind != "offset" for label in term.labels)

    @property
    def margins(self) -> dict[int, list[int]]:
        """The columns that those of products and functions of numbers are made of."""
        return margins_of(self.matrices.common.terms.values()) if self.matrices.common is not None else {}

    @property
    def empty(self) -> tuple[str, ...]:
        """Combinations of labels among these effects that no row has."""
        terms = self.matrices.common.terms.values() if self.matrices.common is not None else ()
        labels = [
            term for term in terms if sum(each.kind == "categoric" for each in getattr(term, "components", ())) > 1
        ]
        if not labels:
            return ()
        none = {name for name, column in zip(self.names, self.rows.shared.T, strict=True) if not column.any()}
        return tuple(name for term in labels for name in map(_whole, term.labels) if name in none)

    @property
    def has_intercept(self) -> bool:
        """Whether one of them is a constant."""
        return "Intercept" in self.names

    @property
    def references(self) -> dict[str, str]:
        """For each column of labels, the reference level."""
        found = {}
        for term in self.matrices.common.terms.values() if self.matrices.common is not None else ():
            for component in getattr(term, "components", ()):
                levels, contrasts = getattr(component, "levels", None), getattr(component, "contrast_matrix", None)
                if component.kind == "categoric" and levels is not None and contrasts is not None:
                    left = [
                        str(level)
                        for level, row in zip(levels, contrasts.matrix, strict=True)
                        if str(level) not in map(str, contrasts.labels) and not np.any(row)
                    ]
                    found |= {component.name: _whole(f"[{left[0]}]")[1:-1]} if len(left) == 1 else {}
        return found

    @property
    def labelled(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each column of labels among the effects that all rows share."""
        return self._labels(self.matrices.common.terms.values() if self.matrices.common is not None else ())

    def _labels(self, terms: Iterable[Any]) -> dict[str, tuple[Any, ...]]:
        found = {}
        for term in terms:
            for component in getattr(term, "components", ()):
                names = [name for name in component.var_names if name in self.rows.frame]
                if component.kind == "categoric" and len(names) == 1:
                    levels = tuple(map(_as_typed, component.levels))
                    # Those of a function of the column are not its own.
                    found |= {names[0]: levels} if set(levels) & set(self.rows.frame[names[0]]) else {}
        return found

    @property
    def of_groups(self) -> list[Any]:
        """The terms whose effects depend on groups."""
        return [term for design in self.designs for term in design.terms.values()]

    @property
    def grouping(self) -> set[str]:
        """The columns of the grouping factors."""
        return {key for factor in self.levels for key in factor.split(":")}

    def later(self, data: Data | None, grouped: bool = True) -> Rows:
        """The design of rows of another frame, read like the first one; None for the rows of the first.

        Without effects of groups, columns that only these need may be missing.
        """
        if data is None:
            return replace(self.rows, grouped=grouped)
        asked = self.asked if grouped else self.without_groups
        frame, kept, _ = as_frame(data, asked, "refuse", "data")
        for name in (each for each in asked if each not in self.grouping):
            if holds_floats(self.rows.frame[name]) and not holds_floats(frame[name]):
                raise ColumnError(
                    f"column {name!r} of data holds {frame[name].iloc[0]!r}; expected numbers"
                    + (" or truth values" if name in self.truths else "")
                    + ", as in the data of the fit."
                )
        for name, levels in (self.labelled | self._labels(self.of_groups)).items():
            if name not in frame:
                continue
            said = refused_levels(name, list(map(_as_typed, frame[name].tolist())), levels)
            if said is not None:
                raise ColumnError(said)
        with told(self.text):
            common = None if self.matrices.common is None else self.matrices.common.evaluate_new_data(frame)
            if common is not None and len(self.names):
                self._check_row_by_row()
        return self._rows(frame, kept, common, new=True, grouped=grouped)

    def _check_row_by_row(self) -> None:
        """Refuse columns such as I(x - np.mean(x)), whose values in one row depend on the other rows."""
        two = [0, len(self.rows.kept) - 1]
        again = self.matrices.common.evaluate_new_data(self.rows.frame.iloc[two].reset_index(drop=True))
        again = self._rows(self.rows.frame.iloc[two].reset_index(drop=True), np.arange(2), again, new=True).shared
        apart = ~np.isclose(again, self.rows.shared[two], rtol=1e-9, atol=1e-12).all(0)
        if apart.any():
            raise ColumnError(
                f"{self.names[int(np.argmax(apart))]!r} changes its value in a row when other rows change (it uses a "
                "mean of the column, for example), so it is undefined in new rows; type center(x) or scale(x), which "
                "keep the values of the fit."
            )

    def _rows(self, frame: Any, kept: np.ndarray, common: Any, new: bool, grouped: bool = True) -> Rows:
        matrix = np.zeros((len(frame), 0)) if common is None else np.asarray(common.design_matrix, float)
        matrix = matrix.reshape(len(matrix), -1)
        kinds = [
            t.kind == "offset"
            for t in (self.matrices.common.terms.values() if common is not None else ())
            for _ in t.labels
        ]
        is_offset = np.array(kinds, bool)
        _check_computed(matrix, self.text)
        if len(matrix) != len(frame):  # only constants: formulae leaves them as one row
            matrix = np.broadcast_to(matrix, (len(frame), matrix.shape[1]))
        if grouped:
            groups = tuple(self._group(name, frame, new) for name in dict.fromkeys(t.factor.name for t in self.terms))
        else:
            none = np.zeros(len(frame), int)
            groups = tuple(replace(each, index=none, design=each.design[none]) for each in self.rows.groups)
        shared = matrix[:, ~is_offset] if is_offset.any() else matrix
        return Rows(shared, matrix[:, is_offset].sum(1), groups, frame, kept, grouped)

    def _group(self, name: str, frame: Any, new: bool) -> Groups:
        brackets = [together for together in self.brackets if together.factor == name]
        columns, labels, sets, margins = [], [], [], []
        for design in (self.designs[at] for at, each in enumerate(self.brackets) if each.factor == name):
            with told(self.text):
                part = np.asarray((design.evaluate_new_data(frame) if new else design).design_matrix, float)
            part = part.reshape(len(part), -1)
            columns.append(np.broadcast_to(part, (len(frame), part.shape[1])))  # only constants: one row
            labels += [_whole(label) for term in design.terms.values() for label in term.labels]
            sets.append(part.shape[1])
            margins.append(margins_of(design.terms.values()))
        _check_computed(np.concatenate(columns, axis=1), self.text)
        keys = [component.name for component in brackets[0].terms[0].factor.components]
        if any(key not in frame for key in keys):
            raise ParameterError(f"the groups {name!r} are computed; expected columns, or some joined by ':'.")
        places, rows = distinct(frame, keys)
        if not new:
            self.levels[name] = tuple(_ordered(set(map(_as_typed, rows))))
        else:
            _check_type(name, rows, self.levels[name])
        place = {level: at for at, level in enumerate(self.levels[name])}
        for row in rows:
            place.setdefault(row, len(self.levels[name]) - 1 - len(place))
        index = np.array([place[row] for row in rows])[places]
        design, known = np.concatenate(columns, axis=1), self.levels[name]
        return Groups(name, index, design, tuple(labels), known, tuple(sets), tuple(margins))


def _check_once(text: str, names: list[str]) -> None:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ParameterError(f"formula {text!r} has the effect {twice[0]!r} in several brackets; expected it in one.")


def _check_type(name: str, rows: list[Any], known: tuple[Any, ...]) -> None:
    """Refuse groups that look like known ones but have another type, or are numbers where all known ones are text, and
    would silently count as new.
    """
    written, texts = {_written(level): level for level in known}, all(isinstance(level, str) for level in known)
    for row in map(_as_typed, dict.fromkeys(rows)):
        like = written.get(_written(row), row if isinstance(row, str | tuple) or not texts else known[0])
        if like != row:
            raise ColumnError(
                f"the groups {name!r} are {row!r} here, and {like!r} in the data of the fit: give them the same type."
            )


def _written(level: object) -> tuple[str, ...]:
    return tuple(map(str, level if isinstance(level, tuple) else (level,)))


def _check_computed(matrix: np.ndarray, text: str) -> None:
    if not np.isfinite(matrix).all():
        row = int(np.argmin(np.isfinite(matrix).all(1)))
        raise NonFiniteError(
            f"formula {text!r} gives {matrix[row][~np.isfinite(matrix[row])][0]} at row {row} of the data."
        )


def _whole(label: str) -> str:
    """C(year)[2000] instead of C(year)[2000.0], if the column holds integers."""
    return re.sub(r"(?<=\[)(-?\d+)\.0(?=\])", r"\1", label)


def _as_typed(level: object) -> Any:
    """Write groups numbered 1, 2, 3 without decimals."""
    if isinstance(level, tuple):
        return tuple(map(_as_typed, level))
    return int(level) if isinstance(level, float) and level.is_integer() else level


def _ordered(levels: set[Any]) -> list[Any]:
    try:
        return sorted(levels)
    except TypeError:
        return sorted(levels, key=str)
