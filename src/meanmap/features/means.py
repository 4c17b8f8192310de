"""Means of random Fourier features under probability distributions, exactly, through characteristic functions."""

from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, is_concrete
from meanmap.core.errors import KindError
from meanmap.core.points import library_of
from meanmap.core.types import Array, Numbers
from meanmap.families.base import Distribution
from meanmap.features.base import Features
from meanmap.features.fourier import Fourier
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions.laws import characteristic
from meanmap.kernels.spectral import coordinates

__all__ = ["frequencies_in_x", "mean_features", "mean_waves"]


def mean_features(features: Features, family: Distribution, coordinate: str | None = None) -> Any:
    """E φ(X) for random Fourier features φ and any distribution with a characteristic function, (..., D), exactly.

    E cos(ω·X + b) = Re c(ω) exp(ib), with c the characteristic function (Jitkrittum et al. 2015, Algorithm 1, line 3).

    Parameters
    ----------
    features : Fourier
        Random Fourier features of a kernel on R^d.
    family : Distribution
        One distribution or a batch.
    coordinate : str, optional
        The coordinate in which the kernel acts, one of `family.coordinates`; by default the first of them.
    """
    if not isinstance(features, Fourier):
        raise KindError(
            f"{type(features).__name__} has no exact mean under a distribution: use mm.features.Fourier.draw(...)."
        )
    coordinate = family.coordinates[0] if coordinate is None else coordinate
    with Door(features, family) as door:
        cast: Fourier = door.cast(features)
        w = frequencies_in_x(cast.kernel, cast.frequencies, family.dimension)
        c = characteristic(family, w, coordinate)
        library = library_of(c)
        return door.leave(cast.scale * mean_waves(c, cast.phases, library))


def frequencies_in_x(kernel: Kernel, frequencies: Array, dimension: int) -> Any:
    """w with w·x = ω·c(x) for frequencies ω, (D, ·), over a kernel's coordinates c, which have to be linear in x."""
    dtype = frequencies.dtype
    linear = coordinates(kernel, np.eye(dimension, dtype=dtype))
    origin = coordinates(kernel, np.zeros((1, dimension), dtype))
    if is_concrete(origin) and not np.allclose(np.asarray(origin), 0):
        raise KindError("the kernel's coordinates are not linear in x: use features of a kernel on R^d, such as RBF.")
    if isinstance(frequencies, np.ndarray) and isinstance(linear, np.ndarray):
        return frequencies @ linear.T  # stays known inside an enclosing `jit`
    return jnp.matmul(jnp.asarray(frequencies), jnp.asarray(linear).T, precision="highest")


def mean_waves(c: Numbers, phases: Array | None, library: ModuleType) -> Any:
    """(Re c, Im c), or Re(c exp(ib)) where there are phases b: the mean of (cos, sin) or of cos(· + b)."""
    if phases is None:
        return library.concatenate([library.real(c), library.imag(c)], axis=-1)
    return library.real(c) * library.cos(phases) - library.imag(c) * library.sin(phases)
