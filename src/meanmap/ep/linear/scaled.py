"""Units: columns are divided by their standard deviation, a normal response by its own, and priors follow."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

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

__all__ = ["Scaled"]

# Prior standard deviation of a coefficient, in standard deviations of the response per standard deviation of the
# column; of the intercept, in those of the response.
_WIDE = 2.5
# A column of which the columns that it is made of leave no larger share of its standard deviation is kept whole.
_DETERMINED = 1e-6


@dataclass(frozen=True)
class Scaled:
    """The centres and scales of the columns and the response.

    Attributes
    ----------
    middle, spread : (p,) arrays
        Centre and scale of the columns of shared effects; 0 and 1 for the intercept.
    margins : (p, p) array
        What is subtracted from the centred column of a product or power: coefficients of the columns that it is made
        of. Else priors would depend on where a number is 0: year * treated has hardly any spread besides that of
        treated.
    group_middles, group_spreads : tuples of arrays
        Centres and scales of the columns of each grouping factor. Beside an intercept by group columns are centred, so
        that it is that of a row with their means; its correlation with a slope is near 1 where x is a year, say.
    group_turns : tuple of arrays
        From effects of a group in these units to those of the columns as they are, over `unit`.
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

    middle: np.ndarray
    spread: np.ndarray
    margins: np.ndarray
    group_middles: tuple[np.ndarray, ...]
    group_spreads: tuple[np.ndarray, ...]
    group_turns: tuple[np.ndarray, ...]
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
        matrix, share = rows.shared, weights / weights.sum()
        constants = _constants(names, matrix) if at is None else (at,)
        middle = share @ matrix if constants else np.zeros(matrix.shape[1])
        spread = np.sqrt(share @ (matrix - middle) ** 2)
        middle[list(constants)], spread[list(constants)] = 0.0, 1.0
        # The effect of a combination of labels that no row has keeps its prior.
        spread[[names.index(name) for name in formula.empty]] = 1.0
        flat = spread <= 1e-12 * np.abs(matrix).max(0, initial=0)
        if flat.any():
            name, value = names[int(np.argmax(flat))], matrix[0, np.argmax(flat)]
            raise ColumnError(f"the column {name!r} is {value:g} in all rows: the intercept includes it. Remove it.")
        margins = np.zeros((len(names), len(names)))
        if constants:
            own = {names.index(name) for name in priors if name in names}
            for at, below in formula.margins.items():
                left = [each for each in below if each not in own]
                margins[left, at] = _coefficients((matrix - middle)[:, [*left, at]], np.sqrt(share))
            apart = (matrix - middle) @ (np.eye(len(names)) - margins)
            spread = np.where(margins.any(0), np.sqrt(share @ apart**2), spread)
        groups = [_of_groups(group, share) for group in rows.groups]
        base, unit, centre = 0.0, 1.0, 0.0
        if family.link == "identity":
            left = response - rows.offset
            _check_noise(left, (rows.shared - middle) / spread, np.sqrt(share), list(read_as_text(formula).values()))
            base = float(share @ left) if constants else 0.0
            unit = float(np.sqrt(share @ (left - base) ** 2)) or 1.0
            if family.heavy:
                middling = _median(left, share)
                distance = _median(np.abs(left - middling), share) / 0.6745
                base, unit = (middling if constants else 0.0), distance or unit
        elif family.link == "log":
            # If all counts are 0, half an event in all rows.
            mean = share @ response + 1e-3 if share @ response > 0 else 0.5 / weights.sum()
            centre = float(np.log(mean / (share @ np.exp(rows.offset))))
        middles, spreads, turns = zip(*groups, strict=True) if groups else ((), (), ())
        return cls(middle, spread, margins, middles, spreads, turns, base, unit, centre, at, constants)

    def predictor(self, rows: Rows) -> Predictor:
        """The linear predictor of rows in these units; new groups contribute 0."""
        centred = rows.shared - self.middle
        blocks = [Block.fixed((centred - centred @ self.margins) / self.spread)] if len(self.spread) else []
        for group, scaled in zip(rows.groups, self.group_designs(rows), strict=True):
            known = group.index >= 0
            design = np.where(known[:, None], scaled, 0.0)
            blocks.append(Block(np.where(known, group.index, 0), design, len(group.levels)))
        return Predictor(tuple(blocks))

    def group_designs(self, rows: Rows) -> list[np.ndarray]:
        """The columns of each grouping factor in these units; 0 if effects of groups do not count."""
        if not rows.grouped:
            return [np.zeros(group.design.shape) for group in rows.groups]
        units = zip(rows.groups, self.group_middles, self.group_spreads, strict=True)
        return [(group.design - middle) / spread for group, middle, spread in units]

    def components(self, formula: Formula, parameters: tuple[str, ...], priors: Mapping[str, Any]) -> Components:
        """The priors: the defaults of `fit`, or those given in the units of the data."""
        count = len(self.spread)
        mean, wide = np.zeros(count), np.full(count, _WIDE)
        mean[list(self.constants)] = self.centre
        groups = formula.rows.groups
        effects = [(f"sd({label} | {group.name})", width) for group, widths in zip(
            groups, self.group_spreads, strict=True
        ) for label, width in zip(group.labels, widths, strict=True)]  # fmt: skip
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
                mean[at], wide[at] = np.array([middle, sd]) * self.spread[at] / self.unit
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
            ((mean, np.diag(wide**2)),) if count else (),
            tuple(group.sets for group in groups),
            tuple(laws[name] for name, _ in effects),
            tuple({**others, **laws}[name] for name in parameters),
        )

    @property
    def turn(self) -> np.ndarray:
        """The matrix from shared effects in these units to those in the units of the data, without `base`."""
        turn = (np.eye(len(self.spread)) - self.margins) * self.unit / self.spread
        turn[list(self.constants)] -= self.middle @ turn
        return turn


def _coefficients(columns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Of the last column on the others by least squares; zeros if these determine it."""
    sds = np.sqrt(root**2 @ columns**2)
    scaled = columns * root[:, None] / np.where(sds > 0, sds, 1.0)
    found = np.linalg.lstsq(scaled[:, :-1], scaled[:, -1])[0]
    left = np.linalg.norm(scaled[:, -1] - scaled[:, :-1] @ found)
    return found * sds[-1] / np.where(sds[:-1] > 0, sds[:-1], 1.0) if left > _DETERMINED else np.zeros(len(found))


def _constants(names: tuple[str, ...], matrix: np.ndarray) -> tuple[int, ...]:
    """Columns of the labels of one term, such as c in `0 + c`, if each row has one of them."""
    terms = [re.sub(r"\[[^]]*\]", "[]", name) for name in names]
    for term in dict.fromkeys(terms):
        own = [at for at, other in enumerate(terms) if other == term]
        columns = matrix[:, own]
        if "[]" in term and ((columns == 0) | (columns == 1)).all() and (columns.sum(1) == 1).all():
            return tuple(own)
    return ()


def _of_groups(group: Groups, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres, scales, and how effects are turned, of the columns of a grouping factor."""
    middle, turn, start = np.zeros(len(group.labels)), np.eye(len(group.labels)), 0
    for width in group.sets:
        own = np.arange(start, start := start + width)
        ones = own[(group.design[:, own] == 1).all(0)]
        if len(ones):
            others = np.setdiff1d(own, ones[:1])
            middle[others] = share @ group.design[:, others]
            turn[ones[0], others] = -middle[others]
    spread = np.sqrt(share @ (group.design - middle) ** 2)
    flat = spread <= 1e-12 * np.abs(group.design).max(0)
    if flat.any():
        at = int(np.argmax(flat))
        raise ColumnError(
            f"{group.labels[at]!r} is {group.design[0, at]:g} in all rows, so it has no effects by group."
        )
    return middle, spread, turn / spread


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
    if np.abs(response - fitted)[counted].max() <= 1e-9 * np.abs(response[counted]).max():
        raise ParameterError(
            "the columns of the formula explain the response exactly, so there is no noise to estimate. "
            + ("; ".join(doubts) + "." if doubts else "Is the response one of them?")
        )
