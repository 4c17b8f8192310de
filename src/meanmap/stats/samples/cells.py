"""Means of samples with strata, clusters or weights: which means are compared, and with which sampling error."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from meanmap.core.errors import InputError
from meanmap.core.points import slices
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.limits import DistanceLaw

__all__ = ["ROWS", "Cells", "contrasts_of", "row_weights"]

# The number of rows whose features are computed at once.
ROWS = 16_384


@dataclass(frozen=True)
class Cells:
    """The rows of each sample in each stratum form a cell; comparisons are of weighted sums of cell means.

    With N_gs the mass of sample g in stratum s, and N_s that of the stratum, two samples are compared by Σ_s a_s (μ_1s
    − μ_2s), a_s ∝ N_1s N_2s / N_s, and several by the parts √π_g Σ_s N_gs/N_g (μ_gs − μ_s), as in the tests. The units
    (rows or clusters) of a cell are independent. If strata have one unit of each sample, as pairs do, the strata are
    independent.

    Attributes
    ----------
    cell : int array (N,)
        The cell of each row.
    mass : array (N,)
        The share of each row in the mass of its cell, which sums to one in each cell.
    contrasts : array (cells, parts)
        The weight of the mean of each cell.
    design : Exchange
        Unit, stratum and weight of each row.
    left_out : int or None
        The stratum in which a sample has one unit, if it is the only such stratum: its variance cannot be estimated.
    """

    cell: np.ndarray
    mass: np.ndarray
    contrasts: np.ndarray
    design: Exchange
    left_out: int | None = None

    @property
    def units(self) -> np.ndarray:
        """The unit of each row."""
        return self.design.units

    @property
    def strata(self) -> np.ndarray:
        """The stratum of each row."""
        return self.design.strata

    @classmethod
    def of(cls, sizes: Sequence[int], design: Exchange | None) -> "Cells":
        """The cells of samples one after another."""
        found = cls.where_known(sizes, design)
        if found is None:
            raise InputError(
                "a sample has one row, or one cluster, in a stratum: its variance cannot be estimated. Pass finer "
                "clusters=, or coarser within=."
            )
        return found

    @classmethod
    def where_known(cls, sizes: Sequence[int], design: Exchange | None) -> "Cells | None":
        """The cells of samples one after another; None if the variance of a mean cannot be estimated."""
        groups, total = np.repeat(np.arange(len(sizes)), sizes), sum(sizes)
        design = design or Exchange.of(total)
        design.of_units(groups)
        pairs, cell = np.unique(np.stack([design.strata, groups]), axis=1, return_inverse=True)
        held = np.bincount(cell.ravel(), design.weights)
        masses = csr_array((held, (pairs[1], pairs[0]))).toarray()
        mass = design.weights / np.maximum(held, np.finfo(float).tiny)[cell.ravel()]
        found = cls(cell.ravel(), mass, _contrasts(masses)[pairs[1], pairs[0]], design)
        lonely = np.unique(design.strata[found._paired])
        if len(lonely) != 1:
            return found
        masses[:, lonely] = 0.0
        if np.sum(masses > 0, axis=0).max() < 2:
            return None
        return cls(cell.ravel(), mass, _contrasts(masses)[pairs[1], pairs[0]], design, int(lonely[0]))

    @property
    def weights(self) -> np.ndarray:
        """The weight of each row in each part, (N, parts)."""
        return self.contrasts[self.cell] * self.mass[:, None]

    @cached_property
    def _counts(self) -> np.ndarray:
        """The number of units of each cell with positive weight."""
        seen = np.unique(np.stack([self.cell, self.units])[:, self.mass > 0], axis=1)[0]
        return np.bincount(seen, minlength=len(self.contrasts))

    @cached_property
    def _paired(self) -> np.ndarray:
        """Whether a sample has a single unit of positive weight in the stratum of each row."""
        lonely = np.logical_and(self._counts == 1, self.contrasts.any(axis=1))
        return np.isin(self.strata, self.strata[lonely[self.cell]])

    @cached_property
    def independent(self) -> np.ndarray:
        """The independent unit of each row, counted from 0: its unit, or for pairs its stratum."""
        apart = np.where(self._paired, self.strata, -1), np.where(self._paired, -1, self.units)
        return np.unique(np.stack(apart), axis=1, return_inverse=True)[1].ravel()

    def effective(self, sizes: Sequence[int]) -> list[float]:
        """The effective sample size of each sample: (Σ w)² / Σ w²."""
        ends, weighing = np.cumsum([0, *sizes]), np.linalg.norm(self.weights, axis=1)
        each = [np.bincount(self.independent[slice(*part)], weighing[slice(*part)]) for part in pairwise(ends)]
        return [round(float(held.sum() ** 2 / np.sum(held**2)), 6) for held in each]

    def toward(self, values: np.ndarray) -> np.ndarray:
        """Each row's contribution to the error of the first part, along the element with inner products `values`."""
        own, weights = self._less_means(values[:, None])[:, 0], self.weights[:, 0]
        middle = np.average(own, weights=np.abs(weights))
        return weights * (own - np.where(self._paired, middle, 0.0))

    def law_of_gram(self, gram: np.ndarray) -> DistanceLaw:
        """The distribution of T = Σ ‖parts‖², from inner products of all rows."""
        weights = self.weights
        squared = float(np.einsum("ic,ij,jc->", weights, gram, weights, optimize=True))
        centred = self._less_means(self._less_means(gram).T)
        parts = [self._spread(self._spread(centred, c).T, c) for c in range(weights.shape[1])]
        return DistanceLaw(squared, np.maximum(np.linalg.eigvalsh(np.sum(parts, axis=0)), 0.0))

    def law_of_features(self, values: Callable[[np.ndarray], np.ndarray]) -> tuple[DistanceLaw, np.ndarray]:
        """The distribution of T = Σ ‖parts‖², and the parts, (parts, r), from features of some rows at a time."""
        weights, errors = self.weights, [self._error_weights(c) for c in range(self.contrasts.shape[1])]
        sums = means = spread = np.zeros((0, 0))
        for part in slices(len(weights), ROWS):
            phi = values(np.arange(len(weights))[part])
            if not part.start:
                sums, means = np.zeros((weights.shape[1], phi.shape[1])), np.zeros((len(self.contrasts), phi.shape[1]))
                spread = np.zeros((len(errors), int(self.independent.max()) + 1, phi.shape[1]))
            sums += weights[part].T @ phi
            _add_rows(means, self.cell[part], (self.mass * ~self._paired)[part], phi)
            for found, each in zip(spread, errors, strict=True):
                _add_rows(found, self.independent[part], each[part], phi)
        for found, each in zip(spread, errors, strict=True):
            shape = found.shape[0], len(means)
            found -= csr_array((each * ~self._paired, (self.independent, self.cell)), shape=shape) @ means
            self._between_pairs(found)
        parts = spread[0] if len(spread) == 1 else np.hstack(list(spread))
        wide = parts.shape[0] < parts.shape[1]
        spectrum = np.maximum(np.linalg.eigvalsh(parts @ parts.T if wide else parts.T @ parts), 0.0)
        return DistanceLaw(float(np.sum(sums**2)), spectrum), sums

    def compared(self, values: np.ndarray) -> tuple[float, float, float, float]:
        """The means of two samples, the standard error of their difference, and the degrees of freedom of this error.

        The degrees of freedom are Satterthwaite's (1946). Each cell, and all pairs together, estimate one part of the
        variance, from as many units as their effective size.
        """
        weights, errors = self.weights[:, 0], self._spread(self._less_means(values[:, None]), 0)[:, 0]
        first, second = (float(np.maximum(sign * weights, 0.0) @ values) for sign in (1, -1))
        part = np.where(self._paired, -1, self.cell)[np.unique(self.independent, return_index=True)[1]]
        part = np.unique(part, return_inverse=True)[1]
        size = np.bincount(self.independent, np.abs(weights))
        effective = np.bincount(part, size) ** 2 / np.maximum(np.bincount(part, size**2), np.finfo(float).tiny)
        variances = np.bincount(part, errors**2)
        total = variances.sum()
        if not total > 0:
            return first, second, 0.0, float(np.maximum(effective - 1, 1.0).sum())
        freedom = total**2 / np.sum(variances**2 / np.maximum(effective - 1, 1.0))
        return first, second, float(np.sqrt(total)), float(freedom)

    def _less_means(self, values: np.ndarray) -> np.ndarray:
        """Rows minus the mean of their cell; rows of pairs are unchanged."""
        at = csr_array((self.mass * ~self._paired, (self.cell, np.arange(len(self.cell)))))
        return values - (at @ values)[self.cell] * ~self._paired[:, None]

    def _spread(self, values: np.ndarray, part: int) -> np.ndarray:
        """The contribution of each independent unit to the error of a part."""
        weights = self._error_weights(part)
        found = np.asarray(csr_array((weights, (self.independent, np.arange(len(weights))))) @ values)
        self._between_pairs(found)
        return found

    def _error_weights(self, part: int) -> np.ndarray:
        """The weight of each row in the error of a part, corrected for means that are estimated."""
        held = np.bincount(self.units, self.mass)
        cells = self.cell[np.unique(self.units, return_index=True)[1]]
        unbiased = _unbiased(held, cells)[self.units]
        return self.weights[:, part] * np.where(self._paired, 1.0, unbiased)

    def _between_pairs(self, found: np.ndarray) -> None:
        """Replace the contributions of pairs by their differences from the mean pair."""
        if not self._paired.any():
            return
        chosen = np.unique(self.independent[self._paired])
        size = np.bincount(self.independent, np.abs(self.weights).sum(axis=1))[chosen]
        size = size / size.sum()
        found[chosen] -= size[:, None] * found[chosen].sum(axis=0)
        found[chosen] *= _unbiased(size, np.zeros(len(size), int))[:, None]


def _add_rows(found: np.ndarray, places: np.ndarray, weights: np.ndarray, values: np.ndarray) -> None:
    """Add weighted rows of `values` to the rows of `found` at their places."""
    there, at = np.unique(places, return_inverse=True)
    found[there] += csr_array((weights, (at.ravel(), np.arange(len(at.ravel()))))) @ values


def _unbiased(shares: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The factor that corrects residuals from the weighted mean of a group for being part of that mean.

    For equal variances σ² and shares m, residuals have variance (1 − 2 m + Σ m²) σ², which is (n − 1)/n of σ² for equal
    shares.
    """
    left = 1 - 2 * shares + np.bincount(groups, shares**2)[groups]
    # A unit that is the only one of its group has no residual.
    return np.where(shares < 1, 1 / np.sqrt(np.maximum(left, np.finfo(float).tiny)), 1.0)


def contrasts_of(sizes: Sequence[float]) -> np.ndarray:
    """The weight of the mean of each sample in each part, (samples, parts), without strata."""
    return _contrasts(np.asarray(sizes, float)[:, None])[:, 0]


def row_weights(groups: np.ndarray, samples: int, design: Exchange) -> np.ndarray:
    """The weight of each row in each part, (N, parts), if `groups` are the samples of the rows."""
    strata = int(design.strata.max()) + 1
    places = groups * strata + design.strata
    masses = np.bincount(places, design.weights, minlength=samples * strata)
    weights = design.weights / np.maximum(masses, np.finfo(float).tiny)[places]
    return _contrasts(masses.reshape(samples, strata))[groups, design.strata] * weights[:, None]


def _contrasts(masses: np.ndarray) -> np.ndarray:
    """The weight of the mean of each cell in each part, (samples, strata, parts), from masses (samples, strata)."""
    total = masses.sum(axis=0)
    share = masses / np.maximum(total, np.finfo(float).tiny)
    if len(masses) == 2:
        common = masses[0] * share[1]
        return (np.array([[1.0], [-1.0]]) * common / max(common.sum(), np.finfo(float).tiny))[:, :, None]
    whole = masses.sum(axis=1)
    within = masses / whole[:, None] * np.sqrt(whole / whole.sum())[:, None]  # √π_h N_hs / N_h
    own = np.eye(len(masses))[:, None, :] - share[:, :, None]  # 1[g = h] − N_gs / N_s
    return own * within.T[None]
