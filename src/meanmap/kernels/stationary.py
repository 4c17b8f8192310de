"""Kernels of the distance between points: RBF, Matérn, rational quadratic; and Laplace, of the sum of distances."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.domains import Domain, Real
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.core.points import library_of
from meanmap.core.types import Array, Numbers, Points
from meanmap.kernels.geometry import FEW_COLUMNS, safe_sqrt, scale_columns, squared_distances
from meanmap.kernels.spectral import Spectral, normal_frequencies

__all__ = ["RBF", "Laplace", "Matern", "RationalQuadratic", "Stationary"]


class Stationary(Spectral):
    """k(x, y) = f(|c(x) − c(y)|²) for coordinates c: a shift-invariant, radial kernel."""

    @abstractmethod
    def profile(self, squared_distance: jax.Array) -> jax.Array:
        """f, with f(0) = 1."""

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        difference = self.coordinates(x[None]) - self.coordinates(y[None])
        return self.profile(jnp.sum(difference * difference))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix through one matrix product."""
        at = self.coordinates
        return self.profile(squared_distances(at(x), at(y)))

    def columns(self, x: Points) -> Callable[[int], Any]:
        """Columns of the Gram matrix, with coordinates computed once."""
        profile, at = self.profile, self.coordinates(x)
        if isinstance(at, np.ndarray) and at.shape[1] <= FEW_COLUMNS:
            each, of = [np.ascontiguousarray(column) for column in at.T], type(self).profile

            def values(i: int) -> Any:
                squares: Any = sum((column[i] - column) ** 2 for column in each)
                return of(self, squares)

            return values
        return lambda i: profile(squared_distances(at[i : i + 1], at))[0]

    def diagonal(self, x: Points) -> jax.Array:
        """Ones: a point is at distance zero from itself."""
        return library_of(x).ones(x.shape[0], x.dtype)

    @property
    def is_radial(self) -> bool:
        """True: the spectral density depends on the length of the frequency only."""
        return True


class _WithLengthscale(Spectral):
    """Coordinates x / ℓ, with one lengthscale or one per column."""

    lengthscale: eqx.AbstractVar[Any]

    @property
    def in_numpy(self) -> bool:
        """True: the formulas of this file are written for NumPy and JAX alike."""
        return True

    @property
    def domain(self) -> Domain:
        """Real points, dense or sparse."""
        return Real(sparse=True)

    def check(self, points: Points, argument: str) -> None:
        """Require a single lengthscale, or one per column."""
        check_lengthscale(self.lengthscale, points, argument)

    def coordinates(self, x: Points) -> Any:
        """x / ℓ."""
        return scale_columns(x, self.lengthscale)


def check_lengthscale(lengthscale: Array, points: Points, argument: str) -> None:
    """Refuse a vector of lengthscales that does not match the columns."""
    if lengthscale.ndim == 1 and lengthscale.shape[0] not in (1, points.shape[1]):
        raise ShapeError(
            f"lengthscale has {lengthscale.shape[0]} entries but {argument} has {points.shape[1]} columns; "
            "expected one number, or one per column."
        )


class RBF(_WithLengthscale, Stationary):
    """The Gaussian or squared-exponential kernel, k(x, y) = exp(−½ Σ_d (x_d − y_d)² / ℓ_d²).

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One lengthscale ℓ, or one per column (ARD).

    Notes
    -----
    Characteristic: its mean embedding determines the distribution (Sriperumbudur et al. 2010). A Gram matrix costs
    O(n m d). In the other common convention exp(−|x − y|²/σ²), σ = √2 ℓ.

    Examples
    --------
    >>> RBF(lengthscale=2.0)([[0.0], [2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    lengthscale: Array

    def __init__(self, lengthscale: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale")

    def profile(self, squared_distance: jax.Array) -> jax.Array:
        """k as a function of the scaled distance, exp(−r²/2)."""
        return library_of(squared_distance).exp(-squared_distance / 2)

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Draws of a standard normal distribution, the Fourier transform of the profile."""
        return normal_frequencies(key, n, self.coordinates(like))


class Matern(_WithLengthscale, Stationary):
    """The Matérn kernel of smoothness ν = 1/2, 3/2 or 5/2 in r = |(x − y)/ℓ|.

    ν = 1/2: exp(−r); ν = 3/2: (1 + √3 r) exp(−√3 r); ν = 5/2: (1 + √5 r + 5 r²/3) exp(−√5 r).

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One lengthscale ℓ, or one per column.
    smoothness : {0.5, 1.5, 2.5}
        ν; functions of the RKHS are about ν + d/2 times differentiable.

    Notes
    -----
    Rasmussen & Williams (2006), eq. 4.14-4.17. Its spectral density is a multivariate t with 2ν degrees of freedom.

    Examples
    --------
    >>> Matern(1.0, smoothness=0.5)([0.0, 1.0]).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """

    lengthscale: Array
    smoothness: float = eqx.field(static=True)

    def __init__(self, lengthscale: Numbers = 1.0, smoothness: float = 2.5):
        if smoothness not in (0.5, 1.5, 2.5):
            raise ParameterError(f"smoothness is {smoothness!r}; expected 0.5, 1.5 or 2.5.")
        self.lengthscale = parameter(lengthscale, "lengthscale")
        self.smoothness = float(smoothness)

    def profile(self, squared_distance: jax.Array) -> jax.Array:
        """A polynomial times an exponential of the distance."""
        r = safe_sqrt(2 * self.smoothness * squared_distance)
        polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[self.smoothness]
        return polynomial * library_of(r).exp(-r)

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Multivariate t with 2ν degrees of freedom: normal over the root of an independent chi-square / (2ν)."""
        like = self.coordinates(like)
        key_normal, key_chi = jax.random.split(key)
        normal = jax.random.normal(key_normal, (n, like.shape[1]), like.dtype)
        # The chi-square is a sum of 2ν = 1, 3 or 5 squared normals.
        squares = jax.random.normal(key_chi, (n, round(2 * self.smoothness)), like.dtype) ** 2
        return normal / jnp.sqrt(jnp.mean(squares, axis=1, keepdims=True))


class RationalQuadratic(_WithLengthscale, Stationary):
    """k(x, y) = (1 + r²/(2α))^(−α), r = |(x − y)/ℓ|: a Gamma mixture of RBF kernels over their scales.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One lengthscale ℓ, or one per column.
    alpha : float
        Spread of the mixture over scales; as α grows the kernel tends to the RBF kernel.

    Notes
    -----
    Rasmussen & Williams (2006), eq. 4.19-4.20.

    Examples
    --------
    >>> RationalQuadratic(1.0, alpha=0.5)([0.0, 1.0]).round(4).tolist()
    [[1.0, 0.7071], [0.7071, 1.0]]
    """

    lengthscale: Array
    alpha: Array

    def __init__(self, lengthscale: Numbers = 1.0, alpha: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale")
        self.alpha = parameter(alpha, "alpha", axes=0)

    def profile(self, squared_distance: jax.Array) -> jax.Array:
        """(1 + r²/2α)^−α."""
        library = library_of(squared_distance, self.alpha)
        return library.exp(-self.alpha * library.log1p(squared_distance / (2 * self.alpha)))

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Normal with a variance that is Gamma(α, α) distributed."""
        like = self.coordinates(like)
        key_normal, key_scale = jax.random.split(key)
        normal = jax.random.normal(key_normal, (n, like.shape[1]), like.dtype)
        alpha = jnp.asarray(self.alpha, like.dtype)
        return normal * jnp.sqrt(jax.random.gamma(key_scale, alpha, (n, 1), like.dtype) / alpha)


class Laplace(_WithLengthscale):
    """k(x, y) = exp(−Σ_d |x_d − y_d| / ℓ_d): the product over columns of one-dimensional exponential kernels.

    Parameters
    ----------
    lengthscale : float or array of shape (d,)
        One lengthscale ℓ, or one per column.

    Notes
    -----
    This is the kernel of the ℓ₁ distance, whose spectral density is a product of Cauchy densities (Rahimi & Recht
    2007). The kernel of the Euclidean distance, exp(−r), is `Matern(smoothness=0.5)`. Dense points only.

    Examples
    --------
    >>> Laplace(1.0)([[0.0, 0.0], [1.0, 1.0]]).round(4).tolist()
    [[1.0, 0.1353], [0.1353, 1.0]]
    """

    lengthscale: Array

    def __init__(self, lengthscale: Numbers = 1.0):
        self.lengthscale = parameter(lengthscale, "lengthscale")

    @property
    def domain(self) -> Domain:
        """Real points, dense."""
        return Real()

    def evaluate(self, x: Array, y: Array) -> jax.Array:
        """k(x, y) for two points."""
        return jnp.exp(-jnp.sum(jnp.abs((x - y) / self.lengthscale)))

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The Gram matrix, summing over columns one at a time: no (n, m, d) array."""
        x, y = self.coordinates(x), self.coordinates(y)
        library = library_of(x, y)

        def add(d, total):
            return total + library.abs(library.take(x, d, axis=1)[:, None] - library.take(y, d, axis=1)[None, :])

        total = library.zeros((x.shape[0], y.shape[0]), x.dtype)
        if x.shape[1] <= 32 or library is np:  # unrolled, the compiler fuses the whole sum with the exponential
            for d in range(x.shape[1]):
                total = add(d, total)
            return library.exp(-total)
        return jnp.exp(-jax.lax.fori_loop(0, x.shape[1], add, total))

    def diagonal(self, x: Points) -> jax.Array:
        """Ones: k(x, x) = 1 at every point."""
        return library_of(x).ones(x.shape[0], x.dtype)

    def frequencies(self, key: jax.Array, n: int, like: Points) -> jax.Array:
        """Independent standard Cauchy draws."""
        like = self.coordinates(like)
        return jax.random.cauchy(key, (n, like.shape[1]), like.dtype)
