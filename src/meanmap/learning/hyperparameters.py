"""Kernels that can be learned as vectors of numbers: logarithms of lengthscales, weights of a sum, a width."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.types import Array, KernelLike
from meanmap.kernels.base import Kernel, Scaled, Sum
from meanmap.kernels.stationary import RBF, Matern
from meanmap.kernels.terms import has_closed_form, rbf_members

__all__ = ["Hyperparameters"]


@dataclass(frozen=True)
class Hyperparameters:
    """What is learned about a kernel, as a vector: log ℓ of each term, log weight ratios, log η.

    Attributes
    ----------
    columns : tuple of int
        For each term how many lengthscales it has: 0 for one number, d for one per column.
    total : float
        The sum of the weights, k(x, x), which is kept.
    width : bool
        Whether η is learned too.
    smoothness : float, optional
        ν of a Matérn kernel; of RBF there is none.
    """

    columns: tuple[int, ...]
    total: float
    width: bool
    smoothness: float | None = None

    @classmethod
    def of(cls, kernel: KernelLike, d: int, width: bool) -> "Hyperparameters":
        """Those of a kernel on d columns; lengthscales given as a vector are learned one per column."""
        if not has_closed_form(kernel):
            raise KindError(
                f"kernel is {kernel!r}; expected what is learned: mm.kernels.RBF(), one lengthscale for all columns, "
                "mm.kernels.RBF([1.0, 1.0]), one for each, a sum of these, or mm.kernels.Matern()."
            )
        members = rbf_members(kernel)
        columns = tuple(int(np.size(one.lengthscale)) if np.ndim(one.lengthscale) else 0 for _, one in members)
        for number in columns:
            if number not in (0, d):
                raise ShapeError(f"kernel has {number} lengthscales for {d} columns; expected one, or {d}.")
        smoothness = kernel.smoothness if isinstance(kernel, Matern) else None
        return cls(columns, float(sum(float(weight) for weight, _ in members)), width, smoothness)

    @property
    def count(self) -> int:
        """How many numbers."""
        return sum(max(number, 1) for number in self.columns) + len(self.columns) - 1 + self.width

    @property
    def scales(self) -> int:
        """How many of them, the first, are lengthscales."""
        return sum(max(number, 1) for number in self.columns)

    def kernel(self, vector: Array) -> Kernel:
        """The kernel of a vector, traceable."""
        library = library_of(vector)
        terms, start = [], 0
        for number in self.columns:
            stop = start + max(number, 1)
            scales = library.exp(vector[start:stop]) if number else library.exp(vector[start])
            terms.append(RBF(scales) if self.smoothness is None else Matern(scales, self.smoothness))
            start = stop
        if len(terms) == 1:
            return terms[0] if self.total == 1 else Scaled(terms[0], self.total)
        ratios = library.concatenate([library.zeros(1), vector[start : start + len(terms) - 1]])
        weights = library.exp(ratios - ratios.max())
        weights = self.total * weights / weights.sum()
        return Sum(tuple(Scaled(term, weight) for term, weight in zip(terms, weights, strict=True)))

    def base_width(self, vector: Array) -> Any:
        """η of a vector, where it is learned."""
        return library_of(vector).exp(vector[-1]) if self.width else None

    @property
    def by_column(self) -> bool:
        """Whether each column has a lengthscale of its own, in every term."""
        return all(self.columns)

    def rescaled(self, vector: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The vector of the same kernel on columns that are this many times larger; η stays in these units."""
        ones = np.ones((len(self.columns), len(units)))
        larger = self.vector(ones * units) - self.vector(ones)
        return vector + larger

    def vector(self, scales: Any, width: float = 1.0) -> np.ndarray:
        """The vector with these lengthscales, one row (d,) for each term, and equal weights."""
        parts = [
            np.log(row) if number else [np.mean(np.log(row))] for number, row in zip(self.columns, scales, strict=True)
        ]
        return np.concatenate([*parts, np.zeros(len(self.columns) - 1), [np.log(width)] if self.width else []])
