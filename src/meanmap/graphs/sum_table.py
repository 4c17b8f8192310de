"""Tables that depend only on the sum of their variables' states: parity checks, counts, exactly one of many."""

from dataclasses import dataclass

import numpy as np

from meanmap.core.arrays import as_array, check_finite
from meanmap.core.errors import InputError, ShapeError
from meanmap.core.types import Array, DType

__all__ = ["SumTable"]


@dataclass(frozen=True, eq=False, init=False)
class SumTable:
    """ψ(x) = values[Σ_i x_i], or values[Σ_i x_i mod M]: a table on any number of variables that is never stored in
    full. It can be used wherever a table of `Factors` is expected; `numpy.asarray` expands it.

    Parameters
    ----------
    values : array (M,)
        At least 0. One for each sum, from 0 to Σ_i (k_i − 1); with `cyclic` one for each remainder.
    shape : tuple of int
        k_i, the number of states of each variable.
    cyclic : bool
        Whether sums are counted modulo M.

    Examples
    --------
    An even number of three bits, and exactly one of three:

    >>> parity = SumTable([1, 0], (2, 2, 2), cyclic=True)
    >>> np.asarray(parity)[1, 1].tolist()
    [1.0, 0.0]
    >>> SumTable([0, 1, 0, 0], (2, 2, 2)).shape
    (2, 2, 2)
    """

    values: np.ndarray
    shape: tuple[int, ...]
    cyclic: bool

    def __init__(self, values: Array, shape: tuple[int, ...], *, cyclic: bool = False):
        found = as_array(values, "values").astype(float)
        check_finite(found, "values")
        sizes = tuple(int(k) for k in shape)
        if found.ndim != 1 or not len(found):
            raise ShapeError(f"values has shape {found.shape}; expected (M,), one value for each sum.")
        if (found < 0).any() or not (found > 0).any():
            raise InputError("values are negative somewhere or zero everywhere; expected weights of at least 0.")
        if not sizes or min(sizes) < 1:
            raise ShapeError(f"shape is {shape!r}; expected the number of states of each variable.")
        sums = sum(sizes) - len(sizes) + 1
        if not cyclic and len(found) != sums:
            raise ShapeError(
                f"values has {len(found)} entries; expected {sums}, one for each sum from 0 to {sums - 1}."
            )
        for name, value in (("values", found), ("shape", sizes), ("cyclic", bool(cyclic))):
            object.__setattr__(self, name, value)

    @property
    def ndim(self) -> int:
        """The number of variables."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries of the full table."""
        return int(np.prod([float(k) for k in self.shape]))

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> np.ndarray:
        del copy  # the expanded table is always a new array
        sums = np.zeros((), dtype=np.int64)
        for k in self.shape:
            sums = sums[..., None] + np.arange(k)
        return self.values[sums % len(self.values)].astype(dtype or float)
