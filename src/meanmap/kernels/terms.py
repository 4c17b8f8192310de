"""Sums of products of RBF and Matérn kernels, term by term: as mixtures of Gaussians, and with their slopes."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.types import KernelLike, Points
from meanmap.kernels.base import Kernel, Power, Product, Scaled, Sum
from meanmap.kernels.columns import OnColumns
from meanmap.kernels.geometry import safe_sqrt, squared_distances
from meanmap.kernels.scales import of_one
from meanmap.kernels.stationary import RBF, Laplace, Matern

__all__ = ["Factor", "Term", "blocks", "check_terms", "has_terms", "matrix_of", "names_of", "terms_of"]

Names = tuple[str | int, ...]


@dataclass(frozen=True)
class Factor:
    """One kernel, RBF or Matérn, on some columns by number, or on all (None)."""

    kernel: RBF | Matern
    columns: tuple[int, ...] | None

    @property
    def smoothness(self) -> float | None:
        """ν of a Matérn kernel, None for RBF."""
        return self.kernel.smoothness if isinstance(self.kernel, Matern) else None

    def on(self, columns: int) -> tuple[int, ...]:
        """Its columns, of this many."""
        return tuple(range(columns)) if self.columns is None else self.columns

    def inverses(self, columns: int) -> jax.Array:
        """1/ℓ of each column, (d,), zero on those that are of no account."""
        on = np.array(self.on(columns))
        own = jnp.broadcast_to(1 / jnp.asarray(self.kernel.lengthscale), on.shape)
        return own if self.columns is None else jnp.zeros(columns, own.dtype).at[on].set(own)

    def log_profile(self, squares: jax.Array) -> jax.Array:
        """log k at squared distances in lengthscales: a number also where k is zero to rounding."""
        if self.smoothness is None:
            return -squares / 2
        t = safe_sqrt(2 * self.smoothness * squares)
        return {0.5: -t, 1.5: jnp.log1p(t) - t, 2.5: jnp.log1p(t + t * t / 3) - t}[self.smoothness]

    def log_slope(self, squares: jax.Array) -> jax.Array:
        """log s of ∇ log k = s (z − x)/ℓ²: s = 1 for RBF, and −2ν (log k)'(t)/t at t = √(2ν) ρ for Matérn kernels."""
        if self.smoothness is None:
            return jnp.zeros_like(squares)
        # Where a point is a landmark the slope is left out, and any number does.
        t = jnp.sqrt(2 * self.smoothness * jnp.where(squares > 0, squares, 1))
        return {
            0.5: -jnp.log(t),
            1.5: math.log(3) - jnp.log1p(t),
            2.5: math.log(5 / 3) + jnp.log1p(t) - jnp.log1p(t + t * t / 3),
        }[self.smoothness]


@dataclass(frozen=True)
class Term:
    """w Π k_f: a product of kernels with a weight."""

    weight: Any
    factors: tuple[Factor, ...]

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix."""
        return self.weight * jnp.exp(self.log_gram(x, y))

    def log_gram(self, x: Points, y: Points) -> jax.Array:
        """Logarithms of the Gram matrix without the weight."""
        logs: Any = 0.0
        for factor in self.factors:
            on = list(factor.on(x.shape[1]))
            logs = logs + factor.log_profile(squared_distances(*(factor.kernel.coordinates(p[:, on]) for p in (x, y))))
        return logs

    def log_mass(self, columns: int) -> jax.Array:
        """log ∫ Π k_f(u) du."""
        total: Any = columns / 2 * math.log(2 * math.pi)
        for block in blocks(self, self, columns):
            volumes = jnp.sum(jnp.log(self.scales(block, columns)), axis=1)
            total = total + jax.scipy.special.logsumexp(
                volumes, b=jnp.asarray(self.shares(block, columns), volumes.dtype)
            )
        return total

    def materns(self, block: tuple[int, ...], columns: int) -> list[Factor]:
        """The Matérn factors on a block of columns."""
        return [f for f in self.factors if f.smoothness is not None and set(f.on(columns)) & set(block)]

    def shares(self, block: tuple[int, ...], columns: int) -> np.ndarray:
        """Weights (N,) of the Gaussians that add up to Π k_f on a block: one, or those of a Matérn factor."""
        return self._nodes(block, columns)[1]

    def scales(self, block: tuple[int, ...], columns: int) -> jax.Array:
        """Lengthscales of these Gaussians on the columns of the block, (N, b): inverse squares add up."""
        precisions: Any = 0.0
        for factor in self.factors:
            own = factor.inverses(columns)[np.array(block)] ** 2
            nodes = np.ones(1) if factor.smoothness is None else self._nodes(block, columns)[0]
            precisions = precisions + own / jnp.asarray(nodes, own.dtype)[:, None]
        return precisions**-0.5

    def _nodes(self, block: tuple[int, ...], columns: int) -> tuple[np.ndarray, np.ndarray]:
        found = self.materns(block, columns)
        return of_one(found[0].smoothness or 0, len(block)) if found else (np.ones(1), np.ones(1))


def blocks(first: Term, second: Term, columns: int) -> list[tuple[int, ...]]:
    """Columns by which the r of two terms is a product: those that no Matérn kernel of both joins."""
    found: list[set[int]] = []
    free = set(range(columns))
    for factor in (*first.factors, *second.factors):
        if factor.smoothness is not None:
            own = set(factor.on(columns))
            free -= own
            joined = [block for block in found if block & own]
            found = [block for block in found if not block & own] + [own.union(*joined)]
    return [tuple(sorted(block)) for block in (*found, free) if block]


def names_of(kernel: KernelLike) -> Names:
    """The columns that `OnColumns` names in a kernel, in the order in which they first appear; () without it."""
    if isinstance(kernel, OnColumns):
        return kernel.names
    return tuple(dict.fromkeys(name for inner in _inside(kernel) for name in names_of(inner)))


def _inside(kernel: KernelLike) -> tuple[Kernel, ...]:
    """The kernels of which a kernel is made: a sum, a product, a multiple, or one on some columns; () for others."""
    if isinstance(kernel, Sum | Product):
        return kernel.members
    return (kernel.kernel,) if isinstance(kernel, Scaled | OnColumns) else ()


def matrix_of(kernel: Kernel, x: Points) -> Any:
    """Points as the kernel reads them as one matrix (n, d), whose columns are those of `names_of`."""
    names = names_of(kernel)
    if not names:
        return x
    found: dict[str | int, Any] = {}

    def visit(kernel: Kernel, x: Points) -> None:
        if isinstance(kernel, OnColumns):
            found.update({name: x[:, j] for j, name in enumerate(kernel.names)})
        elif isinstance(kernel, Sum | Product):
            for member, part in kernel.beside(x):
                visit(member, part)
        elif isinstance(kernel, Scaled):
            visit(kernel.kernel, x)

    visit(kernel, x)
    return jnp.stack([found[name] for name in names], axis=1)


def check_terms(kernel: KernelLike) -> None:
    """Refuse a kernel without terms, or whose r is not known or not finite."""
    if why := _trouble(kernel):
        other = _other(kernel)
        what = f"is a {type(kernel).__name__}" if other is None else f"is {kernel!r}"
        if other is not None and other is not kernel:
            what = f"has a part {other!r}"
        raise KindError(f"kernel {what}; expected {why}{_instead(other)}")


def has_terms(kernel: KernelLike) -> TypeGuard[Kernel]:
    """Whether r of a kernel is known: see `check_terms`."""
    return not _trouble(kernel)


def terms_of(kernel: KernelLike) -> list[Term]:
    """The terms of k = Σ_t w_t Π_f k_tf in the order in which they are written; products of sums are multiplied out."""
    return _expanded(kernel, names_of(kernel), None) or []


def _trouble(kernel: KernelLike) -> str:
    names = names_of(kernel)
    terms = _expanded(kernel, names, None)
    if terms is None:
        return (
            "RBF, Matern, products of RBF with one Matern, or a sum of these, on all columns or by OnColumns; others "
            "are not implemented."
        )
    columns = len(names) or 1
    for term in terms:
        if names and any(factor.columns is None for factor in term.factors):
            return "OnColumns for each kernel, or for none: otherwise it is not known which columns they share."
        if {column for factor in term.factors for column in factor.on(columns)} != set(range(columns)):
            return "terms that fall off along every column: the integral of the square of others is infinite."
    for first, second in product(terms, terms):
        for block in blocks(first, second, columns):
            if max(len(term.materns(block, columns)) for term in (first, second)) > 1:
                return (
                    "at most one Matern factor on the same columns: with two, r is an integral over up to four scales, "
                    "and two scales already need up to thousands of nodes."
                )
    return ""


def _other(kernel: KernelLike) -> KernelLike | None:
    """The first part of a kernel that is neither RBF nor Matern."""
    if isinstance(kernel, RBF | Matern):
        return None
    inside = _inside(kernel)
    return next((each for each in map(_other, inside) if each is not None), None) if inside else kernel


def _instead(kernel: KernelLike | None) -> str:
    """The sentence that names the same kernel as RBF or Matern; empty where there is none."""
    if isinstance(kernel, Laplace):
        scale = f"{float(kernel.lengthscale):.6g}" if np.size(kernel.lengthscale) == 1 else "ℓ"
        return f" In one column it is Matern({scale}, smoothness=0.5)."
    if isinstance(kernel, Power) and isinstance(kernel.kernel, RBF):
        return f" It is RBF with its lengthscales divided by √{kernel.power}."
    return ""


def _expanded(kernel: KernelLike, names: Names, on: Names | None) -> list[Term] | None:
    if isinstance(kernel, RBF | Matern):
        return [Term(1.0, (Factor(kernel, None if on is None else tuple(map(names.index, on))),))]
    if isinstance(kernel, OnColumns):
        return _expanded(kernel.kernel, names, kernel.names) if on is None else None
    inside = [_expanded(inner, names, on) for inner in _inside(kernel)]
    if not inside or None in inside:
        return None
    if isinstance(kernel, Sum):
        return [term for terms in inside for term in terms or ()]
    weight = kernel.scale if isinstance(kernel, Scaled) else 1.0
    return [
        Term(
            math.prod((term.weight for term in chosen), start=weight),
            tuple(factor for term in chosen for factor in term.factors),
        )
        for chosen in product(*(terms or () for terms in inside))
    ]
