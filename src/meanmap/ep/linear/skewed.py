"""Intervals of many linear combinations of effects, whose distributions may be skewed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from meanmap.core.intervals import ends as both
from meanmap.ep.linear.effect_draws import ROUGH as _ROUGH
from meanmap.ep.linear.effect_draws import rough
from meanmap.ep.linear.integrate import Integrated
from meanmap.ep.linear.mixtures import Normals, Shaped
from meanmap.ep.linear.shapes import marginals, skewness

__all__ = ["Skewed"]

# Sizes of the matrix of combinations, and of their covariances with rows, up to which all skewnesses are computed.
_DENSE, _HELD = 4_000_000, 20_000_000
# Combinations times rows up to which distributions have shapes of their own, and the skewness above which they do.
_SHAPED, _BENT = 40_000, 0.1
# Combinations whose draws are in memory at once.
_DRAWN = 500
# Distributions with less than three times this skewness are Normal.
_FLAT = 1e-6


@dataclass(frozen=True)
class Skewed:
    """Linear combinations of effects, with equal ones examined once, and their skewness.

    Attributes
    ----------
    model : Integrated
        The fitted model.
    matrix : sparse (n, total) array
        All combinations.
    law : Normals
        Distributions without skewness.
    new : (n, nodes) array
        Variances of terms independent of θ at each node.
    kept, place : arrays
        The combinations examined, and for every combination the position of its equal; `place` is None if only a sample
        was examined.
    combinations, added : (kept, total) and (kept, nodes) arrays
        Coefficients in the order of θ, and variances of terms independent of θ at each node.
    skewness : (kept,) array
        Skewness given the first node.
    """

    model: Integrated
    matrix: Any
    law: Normals
    new: np.ndarray
    kept: np.ndarray
    place: np.ndarray | None
    combinations: np.ndarray
    added: np.ndarray
    skewness: np.ndarray

    @classmethod
    def of(cls, model: Integrated, matrix: Any, law: Normals, added: np.ndarray) -> "Skewed":
        """Examine the rows of a sparse matrix; if there are too many, evenly spaced ones."""
        count, total = matrix.shape
        if model.family.exact or not count:
            none = np.zeros((1, total))
            return cls(model, matrix, law, added, np.arange(1), np.zeros(count, int), none, added[:1], np.zeros(1))
        kept = np.arange(0, count, 1 + count * total // _DENSE)
        dense = matrix[kept].toarray()
        _, first, inverse = np.unique(
            np.column_stack([dense, added[kept]]), axis=0, return_index=True, return_inverse=True
        )
        place = inverse.ravel() if len(kept) == count else None
        step = 1 + len(first) * len(model.observed.response) // _HELD
        first, place = first[::step], place if step == 1 else None
        kept, dense = kept[first], dense[first]
        share = 1 - added[kept, 0] / law.sds[kept, 0] ** 2
        skew = skewness(model, dense) * np.maximum(share, 0) ** 1.5
        return cls(model, matrix, law, added, kept, place, dense, added[kept], skew)

    @cached_property
    def of_all(self) -> np.ndarray:
        """The skewness of every combination; 0 if only a sample was examined."""
        return np.zeros(len(self.law.means)) if self.place is None else self.skewness[self.place]

    @cached_property
    def _own(self) -> tuple[Shaped | None, np.ndarray]:
        """Distributions of the most skewed combinations, and for every combination which of these it has, or −1."""
        size, none = np.abs(self.skewness), np.full(len(self.law.means), -1)
        if self.place is None:
            return None, none
        chosen = self._order[: self._room][size[self._order[: self._room]] > _BENT]
        if not len(chosen):
            return None, none
        at = np.full(len(size), -1)
        at[chosen] = np.arange(len(chosen))
        return marginals(self.model, self.combinations[chosen]).widened(self.added[chosen]), at[self.place]

    @cached_property
    def _rough(self) -> np.ndarray:
        """Which combinations are skewed by much by the effects that all rows share."""
        if self.model.effect_draws is None and not self.model.lacks_draws:
            return np.zeros(len(self.law.means), bool)
        return rough(self.model, self.matrix, self.law.sds[:, 0] ** 2)

    @cached_property
    def by_draws(self) -> np.ndarray:
        """The combinations whose distributions are those of draws: skewed ones, or all if draws are of all rows."""
        effects = self.model.effect_draws
        if effects is None or not effects.of_all:
            return np.flatnonzero(self._rough & (effects is not None))
        return np.arange(len(self.law.means))

    @cached_property
    def wanting(self) -> np.ndarray:
        """Whether combinations are so skewed that their distributions need draws, and there are none."""
        return self._rough & (self.model.effect_draws is None)

    def drawn(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some of the combinations at a time that have draws, with equally weighted ones (some, draws)."""
        effects = self.model.effect_draws
        if effects is not None:
            for at in range(0, len(self.by_draws), _DRAWN):
                some = self.by_draws[at : at + _DRAWN]
                yield some, effects.predictors(self.matrix[some], self.new[some])

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(-np.abs(self.skewness), kind="stable")

    @property
    def _room(self) -> int:
        """For how many combinations distributions are computed."""
        return 0 if self.place is None else max(1, _SHAPED // len(self.model.observed.response))

    def values(self, z: np.ndarray, rows: slice | np.ndarray, node: int) -> np.ndarray:
        """Values (rows, z) of combinations at a node, for standard Normal z."""
        skew = self.of_all[rows, None]
        found = self.law.means[rows, node, None] + self.law.sds[rows, node, None] * _lognormal(z, skew)
        law, own = self._own
        if law is not None:
            there = own[rows]
            found[there >= 0] = law.values(z, node)[there[there >= 0]]
        return found

    def interval(self, level: float) -> tuple[np.ndarray, list[str]]:
        """Ends (n, 2), and a note if some assume normality where it does not hold.

        They are those of draws, where there are any. Else the most skewed combinations get distributions of their own,
        and the ends of others are shifted by (z² − 1) / 6 times the skewness (Cornish & Fisher 1938).
        """
        ends, notes = self.of_laws(level)
        for some, values in self.drawn():
            ends[some] = np.quantile(values, both(level), axis=1).T
        return ends, notes

    def of_laws(self, level: float) -> tuple[np.ndarray, list[str]]:
        """Ends, and notes on them, by marginal distributions: right for combinations that have no draws."""
        if len(self.by_draws) == len(self.law.means):
            return np.empty((len(self.law.means), 2)), []
        z, skew = float(ndtri((1 + level) / 2)), np.clip(self.of_all, -1, 1)
        moved = (z**2 - 1) / 6 * skew * self.law.moments[1]
        ends = np.stack(self.law.interval(level), axis=1) + moved[:, None]
        law, own = self._own
        if law is not None:
            ends[own >= 0] = np.stack(law.interval(level), axis=1)[own[own >= 0]]
        left = self._order[self._room :]
        left = np.abs(self.skewness)[left[~np.isin(self.kept[left], self.by_draws)]]
        if not (left > _ROUGH).any():
            return ends, []
        note = (
            f"{(left > _ROUGH).sum()} of the {len(self.skewness)} distributions examined are skewed (up to "
            f"{left[0]:.2g}), too many to compute one by one: their intervals assume normality; ask for fewer rows at "
            "a time"
        )
        return ends, [note]


def _lognormal(z: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """Standardised values of shifted lognormal distributions, which have this skewness to first order, in the order of
    z.
    """
    shape = np.clip(skewness, -1, 1) / 3
    width = np.where(np.abs(shape) < _FLAT, _FLAT, shape)
    bent = (np.expm1(width * z - width**2 / 2)) / np.sqrt(np.expm1(width**2)) * np.sign(width)
    return np.where(np.abs(shape) < _FLAT, z, bent)
