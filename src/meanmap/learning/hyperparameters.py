"""Kernels that can be learned as vectors of numbers: logarithms of lengthscales, weights of a sum, a width."""

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.types import Array, KernelLike
from meanmap.kernels.base import Kernel, Product, Scaled, Sum
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.stationary import RBF, Matern
from meanmap.kernels.terms import Term, check_terms, names_of, terms_of

__all__ = ["Hyperparameters", "Part"]


@dataclass(frozen=True)
class Part:
    """The form of one factor of a term.

    Attributes
    ----------
    smoothness : float or None
        ν of a Matérn kernel; of RBF there is none.
    scales : int
        The number of lengthscales: 0 for a single number, otherwise one per column.
    on : tuple of int
        Its columns, by number.
    names : tuple
        Their names in `OnColumns`; () without it.
    """

    smoothness: float | None
    scales: int
    on: tuple[int, ...]
    names: tuple[str | int, ...]

    @property
    def count(self) -> int:
        """The number of hyperparameters."""
        return max(self.scales, 1)

    def kernel(self, scales: Any) -> Kernel:
        """The kernel with these lengthscales."""
        scales = scales if self.scales else scales[0]
        kernel = RBF(scales) if self.smoothness is None else Matern(scales, self.smoothness)
        return OnColumns(kernel, self.names) if self.names else kernel


@dataclass(frozen=True)
class Hyperparameters:
    """What is learned about a kernel, as a vector: log ℓ of each factor of each term, log weight ratios, log η.

    Attributes
    ----------
    terms : tuple of tuples of Part
        The factors of each term.
    total : float
        The sum of the weights, k(x, x), which is kept.
    width : bool
        Whether η is learned too.
    """

    terms: tuple[tuple[Part, ...], ...]
    total: float
    width: bool

    @classmethod
    def of(cls, kernel: KernelLike, d: int, width: bool) -> "Hyperparameters":
        """Those of a kernel on d columns; lengthscales given as a vector are learned one per column."""
        check_terms(kernel)
        if _multiplies_sums(kernel):
            raise KindError(f"kernel is {kernel!r}, a product of sums: write it as a sum of products.")
        terms = terms_of(kernel)
        return cls(
            tuple(_parts(term, names_of(kernel), d) for term in terms), math.fsum(float(t.weight) for t in terms), width
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """All factors of all terms."""
        return tuple(part for term in self.terms for part in term)

    @property
    def count(self) -> int:
        """The number of hyperparameters."""
        return self.scales + len(self.terms) - 1 + self.width

    @property
    def scales(self) -> int:
        """The number of lengthscales, which come first."""
        return sum(part.count for part in self.parts)

    @property
    def exchangeable(self) -> bool:
        """Whether terms in another order are the same kernel."""
        return len(set(self.terms)) == 1 and len(self.terms[0]) == 1

    def kernel(self, vector: Array) -> Kernel:
        """The kernel of a vector, traceable."""
        library = library_of(vector)
        terms, start = [], 0
        for term in self.terms:
            factors = []
            for part in term:
                factors.append(part.kernel(library.exp(vector[start : start + part.count])))
                start += part.count
            terms.append(factors[0] if len(factors) == 1 else Product(tuple(factors)))
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
        return all(part.scales or (len(part.on) == 1 and part.names) for part in self.parts)

    def rescaled(self, vector: np.ndarray, units: np.ndarray) -> np.ndarray:
        """The vector of the same kernel on columns that are this many times larger; η stays in these units."""
        ones = np.ones((len(self.parts), len(units)))
        larger = self.vector(ones * units) - self.vector(ones)
        return vector + larger

    def vector(self, scales: Any, width: float = 1.0) -> np.ndarray:
        """The vector with these lengthscales, one row (d,) for each factor, and equal weights."""
        logs = [np.log(row)[list(part.on)] for part, row in zip(self.parts, scales, strict=True)]
        each = [own if part.scales else [np.mean(own)] for part, own in zip(self.parts, logs, strict=True)]
        return np.concatenate([*each, np.zeros(len(self.terms) - 1), [np.log(width)] if self.width else []])


def _parts(term: Term, names: tuple[str | int, ...], d: int) -> tuple[Part, ...]:
    parts = []
    for factor in term.factors:
        on, number = factor.on(d), int(np.size(factor.kernel.lengthscale)) if np.ndim(factor.kernel.lengthscale) else 0
        if number not in (0, len(on)):
            raise ShapeError(f"kernel has {number} lengthscales for {len(on)} columns; expected one, or {len(on)}.")
        parts.append(Part(factor.smoothness, number, on, tuple(names[j] for j in on) if names else ()))
    for one, two in combinations(parts, 2):
        if one.smoothness is two.smoothness is None and set(one.on) & set(two.on):
            raise KindError(
                "a product of RBF kernels is an RBF kernel, whose lengthscales are all that a sample can determine: "
                "pass one RBF kernel for them."
            )
    return tuple(parts)


def _multiplies_sums(kernel: KernelLike, inside: bool = False) -> bool:
    if isinstance(kernel, Scaled | OnColumns):
        return _multiplies_sums(kernel.kernel, inside)
    if isinstance(kernel, Sum | Product):
        inside = inside or isinstance(kernel, Product)
        return (isinstance(kernel, Sum) and inside) or any(_multiplies_sums(k, inside) for k in kernel.members)
    return False
