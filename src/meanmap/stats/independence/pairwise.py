"""Independence tests of many pairs of variables, for which each Gram matrix is computed once."""

from copy import copy
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import rows
from meanmap.kernels.reading import read_points
from meanmap.stats.independence.hsic import Margins, centre, fused_hsic, single_gram, sums_of, turned_spectra
from meanmap.stats.independence.shifts import Shifts
from meanmap.stats.independence.variables import constant, handicaps, kernels_of
from meanmap.stats.result import Null

__all__ = ["PairwiseHSIC"]


class PairwiseHSIC:
    """The default independence test for any pair among d variables, with the same permutations for all pairs.

    All pairs share the cyclic shifts of the same random orders. The Fourier transforms of a Gram matrix's diagonals
    then serve every pair of its variable, and each pair costs only products of transforms. Each single test is as exact
    as with permutations drawn for it alone.

    Parameters
    ----------
    columns : mapping from names to data
        Each with n values.
    n_permutations : int
        The number of permutations, which are shifts of as many random orders as are needed.
    generator : numpy.random.Generator
        Draws orders and shifts.

    Notes
    -----
    A variable with p kernels costs O(p n (n + B) log n) time for B permutations, and 2 p n (n + B) bytes to keep. Each
    pair costs O(p² n (n + B)).
    """

    def __init__(self, columns: dict[str, Any], n_permutations: int, generator: np.random.Generator):
        self.columns = columns
        self.n = len(next(iter(columns.values())))
        self.shifts = Shifts.draw(self.n, n_permutations, generator)
        self._seed = int(generator.integers(2**53))
        self._read: dict[str, tuple[list[Margins], list[list[np.ndarray]]]] = {}

    def unread(self) -> "PairwiseHSIC":
        """A copy without the transforms of any variable, small enough to send to other processes."""
        other = copy(self)
        other._read = {}
        return other

    def pvalue(self, x: str, y: str) -> float:
        """The p-value of the test that two variables are independent."""
        sums, behind = self.sums(x, y)
        (first, _), (second, _) = self._transformed(x), self._transformed(y)
        values, rounding = fused_hsic(sums, first, second, self.shifts, behind)
        return Null("permutation", values[1:], exact=True, rounding=rounding).pvalue(float(values[0]))

    def sums(self, x: str, y: str) -> tuple[np.ndarray, np.ndarray]:
        """The sums of `permuted_hsic` for two variables, (p, q, 1 + B), and the handicaps of their pairs of kernels."""
        (_, first), (_, second) = self._transformed(x), self._transformed(y)
        behind = handicaps((None, None), (first[0], second[0]))
        pieces = [
            [
                sums_of(first[0], b, counted, self.n)[:, chosen]
                for b, counted in zip(turned, np.isfinite(behind).T, strict=True)
            ]
            for turned, chosen in zip(second, self.shifts.chosen, strict=True)
        ]
        return np.concatenate(pieces, axis=-1).swapaxes(0, 1), behind

    def _transformed(self, name: str) -> tuple[list[Margins], list[list[np.ndarray]]]:
        """The margins of each kernel of a variable, and its spectra in each order."""
        if name not in self._read:
            data, margins = self.columns[name], []
            spectra: list[list[np.ndarray]] = [[] for _ in self.shifts.orders]
            space = np.empty((self.n, self.n + self.n // 2), np.float32)
            with Door() as door:
                for kernel in kernels_of(None, data, name, "fused", self._seed):
                    points = rows(read_points(kernel, data, name, door), self.shifts.base)
                    unit = single_gram(door.cast(kernel), points, door, space[:, : self.n])
                    margins.append(centre(space[:, : self.n], unit))
                    for order, found in zip(self.shifts.orders, spectra, strict=True):
                        found.append(turned_spectra(space, order))
            if all(margin.is_zero for margin in margins):
                raise constant(name)
            self._read[name] = margins, spectra
        return self._read[name]
