"""Which rows are exchangeable under the null hypothesis: permutations of labels, orders or signs, and weights."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from meanmap.core.errors import InputError
from meanmap.core.points import slices

__all__ = ["Exchange"]

# With fewer distinct exchanges than this no p-value is below 0.05.
FEW = 20
# More units than this are permuted in groups, about this many in all, and at least this many of each sample in a
# stratum: permutations of this many have the null distribution of single units up to noise.
MOST_UNITS, ENOUGH, LEAST = 10_000, 5000, 250
# The number of rows whose values are computed at once, before they are summed over units.
ROWS = 4096


@dataclass(frozen=True)
class Exchange:
    """Rows are exchanged within strata only, the rows of a unit together; each row counts by its weight.

    A subclass with other `labels` or `orders` defines another design, which tests accept as `within=`.

    The permutations of units within strata form a group. If it leaves the distribution of the data unchanged under the
    null hypothesis, the p-value of any statistic ranked among random members of the group is exact (Hemerik & Goeman
    2018, theorem 2; Phipson & Smyth 2010 for the one that is added). Pairs are strata of two rows; blocks of time are
    units of consecutive rows.

    Attributes
    ----------
    strata, units : int array (N,)
        Stratum and unit of each row, counted from 0; all rows of a unit are in one stratum.
    weights : array (N,)
        The weight of each row. Weights stay with their rows.
    """

    strata: np.ndarray
    units: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, n: int) -> "Exchange":
        """The design of n rows that are all exchangeable."""
        return cls(np.zeros(n, int), np.arange(n), np.ones(n))

    def among(self, rows: np.ndarray) -> "Exchange":
        """The design of a subset of the rows."""
        strata, units = (np.unique(each[rows], return_inverse=True)[1] for each in (self.strata, self.units))
        return Exchange(strata, units, self.weights[rows])

    def told(self, statistic: str) -> str:
        """The name of the statistic, with the design in words."""
        said = [statistic]
        said += ["within strata"] * bool(self.strata.any())
        said += [f"of {len(self.first_rows)} clusters"] * (len(self.first_rows) < len(self.units))
        said += ["of weighted rows"] * bool(np.ptp(self.weights) > 0)
        return " ".join(said)

    @cached_property
    def is_free(self) -> bool:
        """Whether all rows are exchangeable and of equal weight."""
        return self.is_alike and len(self.first_rows) == len(self.units)

    @cached_property
    def is_alike(self) -> bool:
        """Whether all rows are in one stratum and of equal weight."""
        return np.ptp(self.weights) == 0 and not self.strata.any()

    @cached_property
    def first_rows(self) -> np.ndarray:
        """The first row of each unit."""
        return np.unique(self.units, return_index=True)[1]

    @cached_property
    def strata_of_units(self) -> np.ndarray:
        """The stratum of each unit."""
        return self.strata[self.first_rows]

    @cached_property
    def masses(self) -> np.ndarray:
        """The weight of each unit."""
        return np.bincount(self.units, self.weights)

    def of_units(self, groups: np.ndarray) -> np.ndarray:
        """The group of each unit; refused where one has rows of two groups."""
        labels = groups[self.first_rows]
        if (labels[self.units] != groups).any():
            raise InputError(
                "a unit of the Exchange has rows of two samples: give the rows of each unit to one of them."
            )
        return labels.astype(np.min_scalar_type(int(labels.max())))  # permutations repeat them a thousand times

    def bundled(self, groups: np.ndarray, generator: np.random.Generator) -> "Exchange":
        """The design in which very many units are exchanged in random bundles; the same design if they are few.

        A bundle has units of one sample and stratum. All bundles of a stratum have the same number of units, so they
        are exchangeable as units are (the few units that are left over form a stratum of their own), and permutations
        stay exact. Designs of a user's own class stay as they are.
        """
        labels = self.of_units(groups)
        if len(labels) <= MOST_UNITS or type(self) is not Exchange:
            return self
        cells = np.unique(np.stack([self.strata_of_units, labels]), axis=1, return_inverse=True)
        of_unit, counts = cells[1].ravel(), np.bincount(cells[1].ravel())
        least = np.full(int(self.strata_of_units.max()) + 1, len(labels) // ENOUGH)
        np.minimum.at(least, cells[0][0], counts // LEAST)
        size = np.maximum(least, 1)[cells[0][0]]
        order = np.lexsort((generator.random(len(labels)), of_unit))
        rank = np.empty(len(labels), int)
        rank[order] = np.arange(len(labels)) - (np.cumsum(counts) - counts)[of_unit[order]]
        full = rank < (counts // size * size)[of_unit]
        place = np.where(full, rank // size[of_unit], rank)
        bundles = np.unique(np.stack([of_unit, full, place]), axis=1, return_inverse=True)[1].ravel()
        strata = np.unique(2 * self.strata_of_units + ~full, return_inverse=True)[1]
        return Exchange(strata[self.units], bundles[self.units], self.weights)

    def refuse_more(self, most: int) -> None:
        """Refuse more rows than a test permutes."""
        if len(self.units) > most:
            raise InputError(
                f"there are {len(self.units)} rows, and with within= or clusters= this test takes at most {most}: pass "
                "a random sample of rows, or of whole clusters."
            )

    def centred(self, values: np.ndarray) -> np.ndarray:
        """Rows of `values` minus the weighted mean of their stratum."""
        total = np.maximum(np.bincount(self.strata, self.weights), np.finfo(float).tiny)
        return values - (self._sums(self.strata, values) / total[:, None])[self.strata]

    def collapsed(self, values: np.ndarray) -> np.ndarray:
        """The weighted sum over each unit, of rows minus the mean of their stratum."""
        return self._around_strata(self._sums(self.units, values))

    def collapsed_in_parts(self, values: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """`collapsed` for `values` of some rows at a time: no memory beyond that of units."""
        order, found = np.argsort(self.units, kind="stable"), np.zeros((0, 0))
        for part in slices(len(order), ROWS):
            here = values(order[part])
            if not part.start:
                found = np.zeros((len(self.first_rows), here.shape[1]))
            at = self.units[order[part]]
            sums = csr_array((self.weights[order[part]], (at - at[0], np.arange(len(at)))))
            found[at[0] : at[-1] + 1] += sums @ here
        return self._around_strata(found)

    def _around_strata(self, sums: np.ndarray) -> np.ndarray:
        """Weighted sums of units, minus their weight times the mean of their stratum."""
        at = self.strata_of_units, np.arange(len(sums))
        shape = int(self.strata.max()) + 1, len(sums)
        masses = csr_array((self.masses, at), shape=shape).sum(axis=1)
        means = (csr_array((np.ones(len(sums)), at), shape=shape) @ sums) / np.maximum(masses, np.finfo(float).tiny)[
            :, None
        ]
        return sums - self.masses[:, None] * means[self.strata_of_units]

    def _sums(self, places: np.ndarray, values: np.ndarray) -> np.ndarray:
        at = places, np.arange(len(places))
        return np.asarray(csr_array((self.weights, at), shape=(int(places.max()) + 1, len(places))) @ values)

    def labels(self, labels: np.ndarray, n_draws: int, generator: np.random.Generator) -> np.ndarray:
        """Labels of units exchanged at random within strata, (1 + B, units); the first row is the data."""
        found = np.tile(labels, (n_draws + 1, 1))
        if self.is_free:
            found[1:] = generator.permuted(found[1:], axis=1)
            return found
        by_stratum = np.argsort(self.strata_of_units, kind="stable")
        for draw in found[1:]:
            order = np.lexsort((generator.random(len(labels)), self.strata_of_units))
            draw[by_stratum] = labels[order]
        return found

    def orders(self, n_draws: int, generator: np.random.Generator, constant: bool = False) -> np.ndarray:
        """The row from which each row takes its value, (1 + B, N); the first draw is the data.

        Units exchange values row by row, so only units of equal size are exchanged; where values are `constant` within
        units, sizes do not matter.
        """
        sizes = np.bincount(self.units)
        shape = np.zeros_like(sizes) if constant else sizes
        classes = np.unique(np.stack([self.strata_of_units, shape]), axis=1, return_inverse=True)[1].ravel()
        rows_of = np.split(np.argsort(self.units, kind="stable"), np.cumsum(sizes)[:-1])
        found = np.tile(np.arange(len(self.units), dtype=np.int32), (n_draws + 1, 1))
        for members in (np.flatnonzero(classes == c) for c in range(int(classes.max()) + 1)):
            if len(members) < 2:
                continue
            taken = np.argsort(generator.random((n_draws, len(members))), axis=1)
            if constant:
                for unit, sources in zip(members, members[taken.T], strict=True):
                    found[1:, rows_of[unit]] = self.first_rows[sources][:, None]
            else:
                rows = np.stack([rows_of[unit] for unit in members]).astype(found.dtype)
                found[1:, rows.ravel()] = rows[taken].reshape(n_draws, -1)
        return found

    def signs(self, n_draws: int, generator: np.random.Generator, drawn: Any = np.int64) -> np.ndarray:
        """Random signs of rows, the same for a whole unit, (1 + B, N); the first row, the data, has ones.

        They are `drawn` as integers: small ones take fewer random bits.
        """
        found = np.ones((n_draws + 1, len(self.units)), np.float32)
        found[1:] -= 2 * generator.integers(0, 2, (n_draws, len(self.first_rows)), drawn)[:, self.units]
        return found

    def doubts_of_labels(self, labels: np.ndarray) -> tuple[str, ...]:
        """Notes on exchanges of units with these labels; refused if nothing can be exchanged."""
        counts = np.zeros((int(self.strata_of_units.max()) + 1, int(labels.max()) + 1))
        np.add.at(counts, (self.strata_of_units, labels), 1)
        ways = float(np.sum(gammaln(counts.sum(axis=1) + 1)) - np.sum(gammaln(counts + 1)))
        silent = np.sum(counts > 0, axis=1) < 2
        told = _few(ways, "no stratum has rows, or whole clusters, of two groups")
        if silent.any():
            rows = int(np.isin(self.strata, np.flatnonzero(silent)).sum())
            told += (f"{rows} of {len(self.units)} rows are in strata with only one group and contribute nothing.",)
        return told

    def doubts_of_orders(self, constant: bool) -> tuple[str, ...]:
        """Notes on exchanges of values; refused if nothing can be exchanged."""
        sizes = np.zeros(int(self.units.max()) + 1, int) if constant else np.bincount(self.units)
        counts = np.unique(np.stack([self.strata_of_units, sizes]), axis=1, return_counts=True)[1]
        return _few(float(np.sum(gammaln(counts + 1.0))), "no stratum has two rows, or two clusters of one size")


def _few(log_ways: float, why: str) -> tuple[str, ...]:
    ways = round(float(np.exp(min(log_ways, 30.0))))
    if ways < 2:
        raise InputError(f"{why}: nothing can be exchanged. Pass coarser within=, or finer clusters=.")
    return (f"there are only {ways} distinct exchanges: no p-value can be below {1 / ways:.2g}.",) if ways < FEW else ()
