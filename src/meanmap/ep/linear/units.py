"""Units of columns: centred, without the columns that they are made of, and divided by their standard deviation."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

__all__ = ["Units", "constants_of"]

# A column of which the columns that it is made of leave no larger share of its standard deviation is kept whole.
_DETERMINED = 1e-6
# Rows that are processed at a time.
_PIECE = 8192


@dataclass(frozen=True)
class Units:
    """Units of the columns of effects that all rows share, or of those in brackets.

    Otherwise priors would depend on where a number is 0: year * treated has hardly any spread besides that of treated,
    and an intercept by group has nearly the opposite of the slope of a year.

    Attributes
    ----------
    middle, spread : (p,) arrays
        Centre and scale of each column. Centres are 0 without an intercept.
    margins : (p, p) array
        What is subtracted from the centred column of a product or power: coefficients of the columns that it is made
        of.
    centring : (p, p) array
        The centres, in the rows of intercepts.
    """

    middle: np.ndarray
    spread: np.ndarray
    margins: np.ndarray
    centring: np.ndarray

    @classmethod
    def of(
        cls, names: Sequence[str], matrix: np.ndarray, share: np.ndarray, margins: Mapping[int, Sequence[int]]
    ) -> "Units":
        """Compute them from columns (n, p), the share of each row, and the columns that some are made of."""
        constants = list(constants_of(names, matrix))
        middle = share @ matrix if constants else np.zeros(len(names))
        middle[constants] = 0.0
        found, squares = np.zeros((len(names), len(names))), np.zeros(len(names))
        for at, below in margins.items() if constants else ():
            own = [*below, at]
            found[below, at] = _coefficients(matrix[:, own] - middle[own], np.sqrt(share))
        centring = np.zeros_like(found)
        centring[constants] = middle
        for start in range(0, len(matrix), _PIECE):
            rows = slice(start, start + _PIECE)
            squares += share[rows] @ _apart(matrix[rows] - middle, found) ** 2
        return cls(middle, np.sqrt(squares), found, centring)

    @classmethod
    def joined(cls, parts: Iterable["Units"]) -> "Units":
        """The units of all brackets of a grouping factor."""
        middles, spreads, *squares = zip(*((u.middle, u.spread, u.margins, u.centring) for u in parts), strict=True)
        margins, centring = (np.asarray(block_diag(*each)) for each in squares)
        return cls(np.concatenate(middles), np.concatenate(spreads), margins, centring)

    def flat(self, matrix: np.ndarray) -> int | None:
        """The first column that does not vary."""
        largest = np.maximum(matrix.max(0, initial=0), -matrix.min(0, initial=0))
        found = np.flatnonzero(self.spread <= 1e-12 * largest)
        return int(found[0]) if len(found) else None

    def scaled(self, matrix: np.ndarray) -> np.ndarray:
        """Columns in these units."""
        found = _apart(matrix - self.middle, self.margins)
        found /= self.spread
        return found

    @property
    def turn(self) -> np.ndarray:
        """The matrix from effects in these units to those of the columns as they are."""
        one = np.eye(len(self.spread))
        return (one - self.centring) @ (one - self.margins) / self.spread


def constants_of(names: Sequence[str], matrix: np.ndarray) -> tuple[int, ...]:
    """Columns of which one is 1 in each row: the intercept, or those of the labels of a term, such as c in `0 + c`."""
    if "Intercept" in names:
        return (names.index("Intercept"),)
    terms = [re.sub(r"\[[^]]*\]", "[]", name) for name in names]
    for term in dict.fromkeys(terms):
        own = [at for at, other in enumerate(terms) if other == term]
        columns = matrix[:, own]
        if "[]" in term and ((columns == 0) | (columns == 1)).all() and (columns.sum(1) == 1).all():
            return tuple(own)
    return ()


def _apart(centred: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """Columns without their margins."""
    return centred - centred @ margins if margins.any() else centred


def _coefficients(columns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Of the last column on the others by least squares; zeros if these determine it."""
    sds = np.sqrt(root**2 @ columns**2)
    scaled = columns * root[:, None] / np.where(sds > 0, sds, 1.0)
    found = np.linalg.lstsq(scaled[:, :-1], scaled[:, -1])[0]
    left = np.linalg.norm(scaled[:, -1] - scaled[:, :-1] @ found)
    return found * sds[-1] / np.where(sds[:-1] > 0, sds[:-1], 1.0) if left > _DETERMINED else np.zeros(len(found))
