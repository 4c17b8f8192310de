"""Kernels with a spectral density: coordinates in which they are shift-invariant, and frequencies drawn from it."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError
from meanmap.core.points import abreast
from meanmap.core.types import Points
from meanmap.kernels.base import Kernel, Power, Product, Wrapper

__all__ = ["Spectral", "coordinates", "frequencies", "is_radial", "normal_frequencies"]


class Spectral(Kernel):
    """A kernel that is shift-invariant in some coordinates: the Fourier transform of a density (Bochner's theorem).

    A class that defines both methods has random Fourier features, and so do its multiples, products and powers.
    """

    @abstractmethod
    def coordinates(self, x: Points) -> Any:
        """Points as (n, D) Euclidean coordinates in which the kernel is shift-invariant."""

    @abstractmethod
    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """n draws, (n, D), from the normalised spectral density over `coordinates(like)`."""

    @property
    def is_radial(self) -> bool:
        """Whether the spectral density depends on the length of the frequency only."""
        return False


def normal_frequencies(key: jax.Array, n: int, at: Any) -> jax.Array:
    """Draws of a standard normal distribution over these coordinates, the Fourier transform of exp(−r²/2)."""
    return jax.random.normal(key, (n, at.shape[1]), at.dtype)


def coordinates(kernel: Kernel, x: Points) -> Any:
    """The coordinates of a kernel; for a product, those of its members side by side."""
    if isinstance(kernel, Product):
        return abreast([coordinates(member, part) for member, part in kernel.beside(x)])
    if isinstance(kernel, Wrapper):
        return coordinates(kernel.kernel, x)
    return _spectral(kernel).coordinates(x)


def frequencies(kernel: Kernel, key: jax.Array, n: int, like: Points) -> jax.Array:
    """Draws from the spectral density of a kernel; for a product, independent draws for its members side by side.

    The density of a power is a convolution, so sums of independent frequencies are draws from it.
    """
    if isinstance(kernel, Product):
        keys = jax.random.split(key, len(kernel.members))
        each = zip(keys, kernel.beside(like), strict=True)
        return jnp.concatenate([frequencies(member, k, n, part) for k, (member, part) in each], axis=-1)
    if isinstance(kernel, Power):
        draws: Any = sum(frequencies(kernel.kernel, k, n, like) for k in jax.random.split(key, kernel.power))
        return draws
    if isinstance(kernel, Wrapper):
        return frequencies(kernel.kernel, key, n, like)
    return _spectral(kernel).frequencies(key, n, like)


def is_radial(kernel: Kernel) -> bool:
    """Whether the spectral density of a kernel depends on the length of the frequency only."""
    if isinstance(kernel, Wrapper):
        return is_radial(kernel.kernel)
    return isinstance(kernel, Spectral) and kernel.is_radial


def _spectral(kernel: Kernel) -> Spectral:
    if isinstance(kernel, Spectral):
        return kernel
    raise KindError(
        f"{type(kernel).__name__} has no spectral density, so it has no random Fourier features: use "
        "mm.features.TwoStage for distributions, and otherwise mm.features.Nystrom or mm.features.PivotedCholesky, "
        "which take any kernel."
    )
