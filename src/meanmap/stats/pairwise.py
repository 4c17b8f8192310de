"""Independence tests of many pairs of variables, each Gram matrix read once."""

from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.core.points import rows
from meanmap.kernels.gram import gram_matrix
from meanmap.kernels.reading import read_points
from meanmap.stats.hsic import centre, fused_hsic
from meanmap.stats.result import Null
from meanmap.stats.shifts import Shifts, lag_spectra, shift_sums
from meanmap.stats.variables import constant, kernels_of

__all__ = ["PairwiseHSIC"]


class PairwiseHSIC:
    """The default independence test for any pair among d variables, with all permutations that one order gives.

    The permutations of a pair are the cyclic shifts of the same random order for every variable: then the Fourier
    transforms of a Gram matrix's diagonals serve all pairs it is in, and a pair costs products of transforms only. Each
    test on its own is as exact as with permutations of its own.

    Parameters
    ----------
    columns : mapping from names to data
        Each with n values.
    n_permutations : int
        At most n − 1 are taken, the shifts of one order.
    generator : numpy.random.Generator
        Draws order and shifts.

    Notes
    -----
    O(p n² log n) for each variable with p kernels, kept in 2 p n² bytes, and O(p² n²) for each pair.
    """

    def __init__(self, columns: dict[str, Any], n_permutations: int, generator: np.random.Generator):
        self.columns = columns
        self.n = len(next(iter(columns.values())))
        self.shifts = Shifts.draw(self.n, min(n_permutations, self.n - 1), generator)
        self._seed = int(generator.integers(2**53))
        self._spectra: dict[str, list[np.ndarray]] = {}

    def pvalue(self, x: str, y: str) -> float:
        """That two variables are independent."""
        values = fused_hsic(self.sums(x, y))
        return Null("permutation", values[1:], exact=True).pvalue(float(values[0]))

    def sums(self, x: str, y: str) -> np.ndarray:
        """n² HSIC for each kernel of x, each of y, the data and each permutation, (p, q, 1 + B)."""
        chosen = self.shifts.chosen[0]
        return np.array(
            [[shift_sums(a, b, self.n)[chosen] for b in self._transformed(y)] for a in self._transformed(x)]
        )

    def _transformed(self, name: str) -> list[np.ndarray]:
        if name not in self._spectra:
            data, found, varies = self.columns[name], [], False
            space = np.empty((self.n, self.n + self.n // 2), np.float32)
            with Door() as door:
                for kernel in kernels_of(None, data, name, True, self._seed):
                    points = rows(read_points(kernel, data, name, door), self.shifts.base)
                    varies |= not centre(gram_matrix(door.cast(kernel), points, out=space[:, : self.n])).is_zero
                    found.append(lag_spectra(space))
            if not varies:
                raise constant(name)
            self._spectra[name] = found
        return self._spectra[name]
