"""Permutations that are cyclic shifts of random orders: all n of one order by fast Fourier transforms.

A permutation test is exact for a random set M of permutations if M g⁻¹ has the same distribution as M for a member g
drawn from M (Ramdas, Barber, Candès & Tibshirani 2023). The n cyclic shifts C of the points in random order form a
group, and therefore satisfy this condition. If more than n permutations are requested, cosets C σ of independent random
orders σ are added. The union M = C ∪ C σ₁ ∪ C σ₂ ... satisfies the condition too: M g⁻¹ consists of C and of cosets of
orders σᵢ σⱼ⁻¹, again independent and uniform. A random subset of M that contains the identity is as valid as M.

Shifts are fast. For all s at once, Σ_ij K_ij L_(i+s)(j+s) is a sum over lags l of circular correlations of the
diagonals K_i(i+l) and L_i(i+l). These are n²/2 numbers, which are transformed once, so n permutations cost O(n² log n).
Other permutations would each gather n² entries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from meanmap.core.points import slices

__all__ = ["Shifts", "correlations", "feature_sums", "lag_spectra", "shift_sums"]

# The number of diagonals that are transformed together, so that a column of them stays in cache.
LAGS = 64
# The number of terms that are summed in single precision before they are added to a sum in double precision.
TERMS = 256
# The number of pairs of features whose products under all shifts are held together: 16 MB with a thousand shifts.
PAIRS = 4096


@dataclass(frozen=True)
class Shifts:
    """Random orders σ and the cyclic shifts taken of each: the identity, and n_permutations more.

    The points must first be put in the random order `base`: data often come sorted, and a short shift of a sorted
    sample changes little. Shifts by multiples of `step` form a group. They do not move the last points, fewer than a
    step.
    """

    base: np.ndarray
    orders: tuple[np.ndarray, ...]
    chosen: tuple[np.ndarray, ...]
    step: int = 1

    @classmethod
    def draw(cls, n: int, n_permutations: int, generator: np.random.Generator, few: bool = False) -> "Shifts":
        """Draw as many cosets of n shifts as are needed, and choose `n_permutations` of them at random.

        With `few`, steps are as large as possible while one order has enough shifts. Shifts are then consecutive, so no
        others need to be computed. The identity has a random place among them, so the set is as valid as a random
        choice.
        """
        base, total = generator.permutation(n), n_permutations + 1
        step = max(1, n // total) if few else 1
        size = n // step
        cosets = -(-total // size)
        if few:
            counts = np.full(cosets, total // cosets) + (np.arange(cosets) < total % cosets)
            ends, place = np.cumsum(counts), int(generator.integers(total))
            own = int(np.searchsorted(ends, place, side="right"))
            before = place - int(ends[own] - counts[own])
            first = np.r_[0 : counts[own] - before, size - before : size]
            chosen = (first, *(np.arange(count) for count in np.delete(counts, own).tolist()))
            return cls(base, (np.arange(n), *(generator.permutation(n) for _ in range(cosets - 1))), chosen, step)
        picked = 1 + generator.choice(cosets * size - 1, n_permutations, replace=False, shuffle=False)
        picked = np.concatenate([[0], np.sort(picked)])
        orders = (np.arange(n), *(generator.permutation(n) for _ in range(cosets - 1)))
        return cls(base, orders, tuple(picked[picked // size == k] % size for k in range(cosets)), step)

    def values(self, of_order: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Values for all permutations, (..., 1 + n_permutations), from those for one order, (..., n // step)."""
        return np.concatenate(
            [of_order(order)[..., shifts] for order, shifts in zip(self.orders, self.chosen, strict=True)], axis=-1
        )


def lag_spectra(extended: np.ndarray) -> np.ndarray:
    """Fourier transforms of the diagonals of a symmetric matrix, (n // 2 + 1 frequencies, n // 2 + 1 lags).

    The matrix fills the first n columns of `extended`, (n, n + n // 2); this function writes the other columns.
    Diagonal l is M_i(i+l), with indices modulo n. The diagonals of lags l and n − l are shifts of each other, so half
    of them are enough, with weight 2. Each factor of a product gets the square root of this weight.
    """
    n, half = len(extended), len(extended) // 2
    extended[:, n:] = extended[:, :half]
    step = extended.itemsize
    diagonals = as_strided(extended, (n, half + 1), (extended.strides[0] + step, step), writeable=False)
    twice = np.full(half + 1, np.sqrt(2), extended.dtype)
    twice[[0, half] if n % 2 == 0 else [0]] = 1
    out = np.empty((half + 1, half + 1), np.result_type(extended.dtype, np.complex64))
    for block in slices(half + 1, LAGS):
        np.multiply(_rfft(diagonals[:, block]), twice[block], out=out[:, block])
    return out


def shift_sums(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """Σ_ij K_ij L_(i+s)(j+s) for s = 0, ..., n − 1 from the spectra of K and L."""
    total = np.zeros(len(first), complex)
    for block in slices(len(first), TERMS):
        total += np.vecdot(first[:, block], second[:, block])
    return _irfft(total, n)


def correlations(first: np.ndarray, second: np.ndarray, step: int = 1) -> np.ndarray:
    """Σ_i a_i b_π(i) for the shifts π by 0, step, 2 step, ..., of two vectors."""
    whole = len(first) // step * step
    left, right = (_rfft(side[:whole].reshape(-1, step)) for side in (first, second))
    return _irfft(np.vecdot(left, right), whole // step) + first[whole:] @ second[whole:]


def feature_sums(
    first: Sequence[np.ndarray], second: Sequence[np.ndarray], counted: np.ndarray, step: int = 1
) -> np.ndarray:
    """Σ_ij K_ij L_π(i)π(j) for the shifts π by 0, step, 2 step, ..., (p, q, n // step).

    The sums are computed for each pair of K = Φ Φᵀ of `first` and L = Ψ Ψᵀ of `second` that is `counted`, and are zero
    for other pairs. At each frequency, sums of products of two features are a product of matrices. Each pair of
    features costs O(n + (n / step) log n).
    """
    whole = len(first[0]) // step * step
    found = np.zeros((*counted.shape, whole // step))
    held = [_of_steps(psi[:whole], step) for psi in second]
    for i, (phi, some) in enumerate(zip(first, counted, strict=True)):
        if not some.any():
            continue
        left, right = _of_steps(phi[:whole], step), np.concatenate([h for h, c in zip(held, some, strict=True) if c], 2)
        others = [psi for psi, c in zip(second, some, strict=True) if c]
        rest = phi[whole:].T @ np.concatenate([psi[whole:] for psi in others], axis=1)
        starts = np.cumsum([0, *(psi.shape[1] for psi in others[:-1])])
        for block in slices(phi.shape[1], max(1, PAIRS // right.shape[2])):
            crossed = _irfft(left[:, :, block].conj().swapaxes(1, 2) @ right, whole // step, 0)
            crossed += rest[block]
            squares = np.einsum("sab,sab->sb", crossed, crossed)
            found[i, some] += np.add.reduceat(squares, starts, axis=1).T
    return found


def _of_steps(features: np.ndarray, step: int) -> np.ndarray:
    """Fourier transforms over steps, in single precision, (frequencies, step, r)."""
    return _rfft(np.asarray(features, np.float32).reshape(-1, step, features.shape[1]))


def _rfft(values: np.ndarray) -> np.ndarray:
    """SciPy's Fourier transform along the first axis, which keeps single precision and is fast for any n."""
    from scipy.fft import rfft

    return np.asarray(rfft(values, axis=0))


def _irfft(values: np.ndarray, n: int, axis: int = -1) -> np.ndarray:
    from scipy.fft import irfft

    return np.asarray(irfft(values, n, axis))
