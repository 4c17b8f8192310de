"""Units: columns are divided by their standard deviation, a normal response by its own, and priors follow."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from meanmap.core.errors import ColumnError, ParameterError
from meanmap.core.meant import did_you_mean, listed
from meanmap.core.settings import is_number
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.components import Components, GammaLog, HalfStudent
from meanmap.ep.linear.doubts import read_as_text
from meanmap.ep.linear.family import Family
from meanmap.ep.linear.formula import Formula, Groups, Rows
from meanmap.ep.linear.ordered import GAP
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.units import Units, constants_of

__all__ = ["Scaled"]

# Prior standard deviation of a coefficient, in standard deviations of the response per standard deviation of the
# column; of the intercept, in those of the response.
_WIDE = 2.5
# Of numbers of this size relative to the largest response rounding decides: it is 1e-16 in each operation.
_ROUNDED = 1e-12


@dataclass(frozen=True)
class Scaled:
    """The units of the columns and the response.

    Attributes
    ----------
    shared : Units
        Of the columns of effects that all rows share; the scale of `constants` is 1.
    groups : tuple of Units
        Of the columns of each grouping factor; effects of a group are turned to those of the columns as they are, over
        `unit`.
    base, unit : number
        Centre and scale of the response, the latter also of offsets; 0 and 1 except for the identity link.
    centre : number
        The prior mean of the intercept, on the scale of the predictor.
    intercept : int, optional
        The column of the intercept.
    constants : tuple of int
        Columns of which one is 1 in each row: the intercept, or without it a column for each label. All have the prior
        of the intercept.
    """

    shared: Units
    groups: tuple[Units, ...]
    base: float
    unit: float
    centre: float
    intercept: int | None
    constants: tuple[int, ...]

    @classmethod
    def of(
        cls, formula: Formula, response: np.ndarray, family: Family, weights: np.ndarray, priors: Collection[str] = ()
    ) -> "Scaled":
        """Compute units from the rows of the fit; columns with priors of the user's are subtracted from no other."""
        rows, names = formula.rows, formula.names
        at = names.index("Intercept") if formula.has_intercept else None
        share, constants = weights / weights.sum(), constants_of(names, rows.shared)
        shared = Units.of(names, rows.shared, share, _without(formula.margins, names, priors))
        # The effect of a combination of labels that no row has keeps its prior.
        ones = [*constants, *map(names.index, formula.empty)]
        shared = replace(shared, spread=np.where(np.isin(np.arange(len(names)), ones), 1.0, shared.spread))
        flat = shared.flat(rows.shared)
        if flat is not None:
            _refuse_flat(names[flat], rows.shared[:, flat], ": the intercept includes it. Remove it.")
        groups = tuple(_of_groups(group, share, priors) for group in rows.groups)
        base, unit, centre = 0.0, 1.0, 0.0
        if family.link == "identity":
            left = response - rows.offset
            _check_noise(left, shared.scaled(rows.shared), np.sqrt(share), list(read_as_text(formula).values()))
            base = float(share @ left) if constants else 0.0
            unit = float(np.sqrt(share @ (left - base) ** 2)) or 1.0
            if family.heavy:
                middling = _median(left, share)
                distance = _median(np.abs(left - middling), share) / 0.6745
                base, unit = (middling if constants else 0.0), distance or unit
        elif family.link == "log":
            # If all counts are 0, half an event in all rows.
            mean = share @ response if share @ response > 0 else 0.5 / weights.sum()
            centre = float(np.log(mean / (share @ np.exp(rows.offset))))
        return cls(shared, groups, base, unit, centre, at, constants)

    def predictor(self, rows: Rows) -> Predictor:
        """The linear predictor of rows in these units; new groups contribute 0."""
        blocks = [Block.fixed(self.shared.scaled(rows.shared))] if self.width else []
        for group, scaled in zip(rows.groups, self.group_designs(rows), strict=True):
            known = group.index >= 0
            design = np.where(known[:, None], scaled, 0.0)
            blocks.append(Block(np.where(known, group.index, 0), design, len(group.levels)))
        return Predictor(tuple(blocks))

    def group_designs(self, rows: Rows) -> list[np.ndarray]:
        """The columns of each grouping factor in these units; 0 if effects of groups do not count."""
        if not rows.grouped:
            return [np.zeros(group.design.shape) for group in rows.groups]
        return [units.scaled(group.design) for group, units in zip(rows.groups, self.groups, strict=True)]

    def components(self, formula: Formula, parameters: tuple[str, ...], priors: Mapping[str, Any]) -> Components:
        """The priors: the defaults of `fit`, or those given in the units of the data."""
        mean, wide = np.zeros(self.width), np.full(self.width, _WIDE)
        mean[list(self.constants)] = self.centre
        groups = formula.rows.groups
        effects = [
            (name, width)
            for group, units in zip(groups, self.groups, strict=True)
            for name, width in zip(_sds(group), units.spread, strict=True)
        ]
        scales = {name: width / self.unit for name, width in effects}
        if "sigma" in parameters:
            scales["sigma"] = 1 / self.unit
        others: dict[str, Any] = {"nu": GammaLog(2.0, 0.1), "alpha": HalfStudent(1.0, 10.0)}
        others = {name: law for name, law in others.items() if name in parameters}
        for name, asked in priors.items():
            if name in formula.names:
                at = formula.names.index(name)
                middle, sd = _middle_and_sd(name, asked)
                middle -= self.base if at in self.constants else 0.0
                mean[at], wide[at] = np.array([middle, sd]) * self.shared.spread[at] / self.unit
            elif name in scales:
                scales[name] *= _above_0(name, asked)
            elif name in others:
                others[name] = (
                    GammaLog(*_shape_and_rate(name, asked)) if name == "nu" else HalfStudent(1.0, _above_0(name, asked))
                )
            else:
                known = (*formula.names, *scales, *others)
                raise ParameterError(
                    f"priors names {name!r}{did_you_mean(name, known)}; expected one of {listed(known)}."
                )
        laws = {name: HalfStudent(3.0, scale if name in priors else _WIDE) for name, scale in scales.items()}
        others |= {name: HalfStudent(3.0, _WIDE) for name in parameters if name.startswith(GAP)}
        return Components(
            ((mean, np.diag(wide**2)),) if self.width else (),
            tuple(group.sets for group in groups),
            tuple(laws[name] for name, _ in effects),
            tuple({**others, **laws}[name] for name in parameters),
        )

    @property
    def width(self) -> int:
        """The number of effects that all rows share."""
        return len(self.shared.spread)

    @property
    def turn(self) -> np.ndarray:
        """The matrix from shared effects in these units to those in the units of the data, without `base`."""
        return self.shared.turn * self.unit


def _without(margins: Mapping[int, list[int]], names: Sequence[str], priors: Collection[str]) -> dict[int, list[int]]:
    """Margins without the columns whose priors are the user's."""
    return {at: [each for each in below if names[each] not in priors] for at, below in margins.items()}


def _sds(group: Groups) -> list[str]:
    """The names of the standard deviations of effects of a grouping factor."""
    return [f"sd({label} | {group.name})" for label in group.labels]


def _of_groups(group: Groups, share: np.ndarray, priors: Collection[str]) -> Units:
    """Of each bracket by itself."""
    parts, start = [], 0
    for width, margins in zip(group.sets, group.margins, strict=True):
        own = slice(start, start := start + width)
        labels, below = group.labels[own], _without(margins, _sds(group)[own], priors)
        parts.append(Units.of(labels, group.design[:, own], share, below))
    units = Units.joined(parts)
    flat = units.flat(group.design)
    if flat is not None:
        _refuse_flat(group.labels[flat], group.design[:, flat], ", so it has no effects by group.")
    return units


def _refuse_flat(name: str, column: np.ndarray, why: str) -> NoReturn:
    """Refuse a column that does not vary, or by hardly more than the rounding of numbers of its size."""
    apart = float(np.ptp(column))
    if apart > 0:
        raise ColumnError(
            f"the column {name!r} varies by {apart:.1g} around {column.mean():g}, of which numbers of 64 bits keep few "
            "digits: subtract a constant from it before the fit."
        )
    raise ColumnError(f"the column {name!r} is {column[0]:g} in all rows{why}")


def _middle_and_sd(name: str, asked: object) -> tuple[float, float]:
    if not isinstance(asked, tuple | list) or len(asked) != 2 or not is_number(asked[0]):
        raise ParameterError(f"priors[{name!r}] is {asked!r}; expected a mean and a standard deviation: (0.0, 1.0).")
    return float(asked[0]), _above_0(name, asked[1])


def _shape_and_rate(name: str, asked: object) -> tuple[float, float]:
    if not isinstance(asked, tuple | list) or len(asked) != 2:
        raise ParameterError(f"priors[{name!r}] is {asked!r}; expected the shape and the rate of a Gamma: (2.0, 0.1).")
    return _above_0(name, asked[0]), _above_0(name, asked[1])


def _above_0(name: str, asked: object) -> float:
    if not is_number(asked) or not 0 < asked < np.inf:
        raise ParameterError(f"priors[{name!r}] holds {asked!r}; expected a scale above 0, such as 1.0.")
    return float(asked)


def _median(values: np.ndarray, share: np.ndarray) -> float:
    """The median of weighted values."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(share[order])
    low, high = (values[order][min(int(np.searchsorted(reached, p)), len(order) - 1)] for p in (0.5 - 1e-9, 0.5 + 1e-9))
    return float((low + high) / 2)


def _check_noise(response: np.ndarray, columns: np.ndarray, root: np.ndarray, doubts: list[str]) -> None:
    """Refuse a response that the columns explain exactly, since there is no noise to estimate. As many independent
    columns as rows explain any response: then the priors say what is noise.
    """
    if columns.shape[1] == 0:
        return
    coefficients, _, rank, _ = np.linalg.lstsq(columns * root[:, None], response * root)
    fitted, counted = columns @ coefficients, root > 0
    if rank == np.count_nonzero(counted) and not doubts:
        return
    apart, size = float(np.ptp(response[counted])), float(np.abs(response[counted]).max())
    if 0 < apart <= _ROUNDED * size:
        raise ParameterError(
            f"the response varies by {apart:.1g} around {response[counted].mean():g}, which is hardly more than "
            "rounding: subtract a constant from it before it is rounded."
        )
    if np.abs(response - fitted)[counted].max() <= max(1e-9 * apart, _ROUNDED * size):
        raise ParameterError(
            "the columns of the formula explain the response exactly, so there is no noise to estimate. "
            + ("; ".join(doubts) + "." if doubts else "Is the response one of them?")
        )
