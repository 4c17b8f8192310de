"""Kernels on curved spaces: angles (the torus) and rotations."""

from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.domains import Domain, Rotations
from meanmap.core.types import Array, Numbers, Points
from meanmap.kernels.spectral import normal_frequencies
from meanmap.kernels.stationary import Stationary, check_lengthscale

__all__ = ["Rotation", "Torus"]


class _OfChord(Stationary):
    """exp(−½ |c(x) − c(y)|²) for an embedding c of the space into Euclidean coordinates."""

    def profile(self, squared_distance: jax.Array) -> jax.Array:
        """k as a function of the scaled distance, exp(−r²/2)."""
        return jnp.exp(-squared_distance / 2)

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Draws of a standard normal distribution, the Fourier transform of the profile."""
        return normal_frequencies(key, n, self.coordinates(like))


class Torus(_OfChord):
    """A kernel on angles in radians, k(x, y) = exp(−Σ_d (1 − cos(x_d − y_d)) / ℓ_d²).

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        ℓ in radians: for close angles the kernel is the RBF kernel of that lengthscale.

    Notes
    -----
    The RBF kernel of the chord: 1 − cos δ = ½ (2 sin(δ/2))². Up to scale it is a von Mises density in each angle, so
    messages and beliefs on torsion angles are smooth across ±π.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(Torus(0.5)([-3.1], [3.1])[0, 0], np.exp(-(1 - np.cos(6.2)) / 0.25)))
    True
    """

    lengthscale: Array

    def __init__(self, lengthscale: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale")

    def check(self, points: Points, argument: str) -> None:
        """Require a single lengthscale, or one per angle."""
        check_lengthscale(self.lengthscale, points, argument)

    def coordinates(self, x: Points) -> Any:
        """Each angle as a point of a circle of radius 1/ℓ."""
        return jnp.concatenate([jnp.cos(x) / self.lengthscale, jnp.sin(x) / self.lengthscale], axis=-1)


class Rotation(_OfChord):
    """A kernel on rotation matrices, k(R, R′) = exp(−‖R − R′‖² / 2ℓ²) with the Frobenius norm.

    Parameters
    ----------
    lengthscale : float
        ℓ; ‖R − R′‖² = 4 (1 − cos θ) for the angle θ between the two, so ℓ = 1 resolves about 40 degrees.

    Notes
    -----
    Song, Gretton & Guestrin (2010), section 6 (camera rotations). Points are (n, 3, 3) arrays, or a
    `scipy.spatial.transform.Rotation`.

    Examples
    --------
    >>> from scipy.spatial.transform import Rotation as R
    >>> Rotation(1.0)(R.from_rotvec([[0, 0, 0], [0, 0, 90], [0, 0, 180]], degrees=True)).round(4).tolist()
    [[1.0, 0.1353, 0.0183], [0.1353, 1.0, 0.1353], [0.0183, 0.1353, 1.0]]
    """

    lengthscale: Array

    def __init__(self, lengthscale: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale", axes=0)

    @property
    def domain(self) -> Domain:
        """Rotations, as matrices."""
        return Rotations()

    def coordinates(self, x: Points) -> Any:
        """The nine entries over ℓ."""
        return x.reshape(x.shape[0], 9) / self.lengthscale
