"""Messages that fit any family: certainty, or no information."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Numbers
from meanmap.families.base import Distribution
from meanmap.families.family import Family, Limit
from meanmap.families.gaussian_parts import Parts, one_normal
from meanmap.families.reading import check_members, members, read_parameters

__all__ = ["Flat", "PointMass"]


class PointMass(Limit):
    """All mass at one point: the message of an observed variable, for neighbours of any family.

    Parameters
    ----------
    x : array_like, shape `shape + (d,) * event_axes`
        The point of each member.
    event_axes : {0, 1}
        0 for numbers (every axis of x is a plate), 1 for vectors along the last axis.

    Notes
    -----
    Multiplying it or dividing it by a message of any family leaves it unchanged. `log_density` is the log of the mass:
    0 at the point and −∞ elsewhere.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> Normal(0.0, 1.0) * PointMass(3.0)
    PointMass(x=3)
    """

    x: Any
    event_axes: int = eqx.field(static=True)
    coordinates: ClassVar[tuple[str, ...]] = ("x", "log", "logit")
    _shown: ClassVar[dict[str, str]] = {"x": "x"}

    @own_words
    def __init__(self, x: Data, event_axes: int = 0):
        if event_axes not in (0, 1):
            raise ParameterError(f"event_axes is {event_axes!r}; expected 0 for numbers or 1 for vectors.")
        with Door(x) as door:
            (self.x,) = read_parameters(door, (event_axes,), x=x)
        self.event_axes = event_axes

    @property
    def _own_axes(self) -> tuple[int, ...]:
        return (self.event_axes,)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """`()` or `(d,)`."""
        return tuple(self.x.shape[self.x.ndim - self.event_axes :])

    def gaussian_parts(self, coordinate: str) -> Parts:
        """A normal distribution with zero variance."""
        mean = jnp.reshape(jnp.asarray(self.mean_in(coordinate)), (self.shape[0], -1))
        return one_normal(mean, jnp.zeros((*mean.shape, mean.shape[1]), mean.dtype))

    def _mean(self) -> Array:
        return self.x

    def _variance(self) -> Array:
        return jnp.zeros_like(self.x)

    def _covariance(self) -> Array:
        return jnp.zeros((*self.x.shape, *self.event_shape), self.x.dtype)

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        return self._in(coordinate), jnp.zeros_like(self.x)

    def _in(self, coordinate: str) -> Array:
        if coordinate == "log":
            return jnp.log(self.x)
        return jnp.log(self.x) - jnp.log1p(-self.x) if coordinate == "logit" else self.x

    def _coordinate(self, name: str | None) -> str:
        name = super()._coordinate(name)
        if name == "log":
            check_members(self.x, self.x > 0, "x", "points above 0 for the coordinate 'log'")
        if name == "logit":
            check_members(self.x, (self.x > 0) & (self.x < 1), "x", "points between 0 and 1 for the coordinate 'logit'")
        return name

    def _log_density(self, x: Array) -> Array:
        equal = x == self.x
        return jnp.where(equal.all(-1) if self.event_axes else equal, 0.0, -jnp.inf)

    def _characteristic_function(self, w: Array, coordinate: str) -> Array:
        if self.event_axes:
            points = self._in(coordinate)[(..., *(None,) * (w.ndim - 1), slice(None))]
            phase = (points * w).sum(-1)
        else:
            phase = self._in(coordinate)[(..., *(None,) * w.ndim)] * w
        return jax.lax.complex(jnp.cos(phase), jnp.sin(phase))

    def _cdf(self, x: Array) -> Array:
        return jnp.where(x >= self.x, 1.0, 0.0)

    def _quantile(self, p: Array) -> Array:
        return jnp.broadcast_to(self.x, jnp.broadcast_shapes(self.x.shape, p.shape))

    def _sample(self, n: int, key: Array) -> Array:
        del key
        return jnp.broadcast_to(self.x, (n, *self.x.shape))

    def product(self, other: object) -> Any:
        """The point mass itself, at the joint batch shape; two different points contradict each other."""
        if isinstance(other, Flat):
            return self
        if isinstance(other, PointMass):
            _check_same_axes(self, other)
            differ = self._differs(other)
            if differ is not None and differ.any():
                raise ParameterError(f"the product of point masses at different points is zero{members(differ)}.")
        elif not isinstance(other, Family):
            raise KindError(
                f"cannot multiply PointMass and {type(other).__name__}: messages are families, PointMass or Flat."
            )
        return self.broadcast_to(_joint_shape(self, other))

    def ratio(self, other: object) -> Any:
        """The point mass divided by a family or Flat is itself; divided by the same point mass it is Flat."""
        if isinstance(other, PointMass):
            _check_same_axes(self, other)
            differ = self._differs(other)
            if differ is None or differ.any():
                where = "" if differ is None else members(differ)
                raise ParameterError(
                    f"a point mass divided by one at another point{where} is not a message; inside jit, where the "
                    "points are unknown, point masses cannot be divided by each other."
                )
            return Flat()
        return self.product(other)

    def divide(self, other: Family) -> Any:
        """A family divided by a point mass is not a message."""
        raise KindError(f"cannot divide {type(other).__name__} by PointMass: certainty cannot be removed.")

    def power(self, exponent: Numbers) -> Any:
        """The point mass itself, for any power above zero."""
        if is_concrete(exponent) and np.min(np.asarray(exponent)) <= 0:
            raise ParameterError(f"exponent is {exponent}; expected a power above 0 of a point mass.")
        return self

    def _differs(self, other: "PointMass") -> Any:
        if not all_concrete((self, other)):
            return None
        differ = np.asarray(self.x) != np.asarray(other.x)
        return differ.any(-1) if self.event_axes else differ

    def __mul__(self, other: object) -> Any:
        return self.product(other) if isinstance(other, Distribution) else NotImplemented

    def __truediv__(self, other: object) -> Any:
        return self.ratio(other) if isinstance(other, Distribution) else NotImplemented

    def __pow__(self, exponent: Array) -> Any:
        return self.power(exponent)


def _check_same_axes(first: PointMass, second: PointMass) -> None:
    if first.event_shape != second.event_shape:
        raise ShapeError(f"the two PointMass differ in dimension: {first.event_shape} and {second.event_shape}.")


def _joint_shape(first: Distribution, second: Distribution) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(first.shape, second.shape)
    except ValueError as error:
        raise ShapeError(f"batch shapes {first.shape} and {second.shape} do not broadcast.") from error


class Flat(Limit):
    """No information: the constant message, identity of the product, always improper. It has no parameters and fits any
    batch. `Normal.flat(shape)` and the like are its counterparts within a family.

    Examples
    --------
    >>> from meanmap.families import Gamma
    >>> Gamma(2.0, 1.0) * Flat()
    Gamma(shape=2, rate=1, mean=2, sd=1.414)
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch shape of a single distribution, `()`."""
        return ()

    def _proper(self) -> Any:
        return np.asarray(False)

    def product(self, other: object) -> Any:
        """The other message."""
        if not isinstance(other, Family | Limit):
            raise KindError(
                f"cannot multiply Flat and {type(other).__name__}: messages are families, PointMass or Flat."
            )
        return other

    def ratio(self, other: object) -> Any:
        """The other message to the power −1."""
        if isinstance(other, Flat):
            return self
        if isinstance(other, PointMass):
            raise KindError("cannot divide Flat by PointMass: certainty cannot be removed.")
        if not isinstance(other, Family):
            raise KindError(f"cannot divide Flat and {type(other).__name__}: messages are families, PointMass or Flat.")
        return other.power(-1.0)

    def divide(self, other: Family) -> Any:
        """The other message."""
        return other

    def power(self, exponent: Numbers) -> "Flat":
        """Flat itself, for any power."""
        del exponent
        return self

    __mul__ = product
    __truediv__ = ratio
    __pow__ = power

    def log_unnormalised(self, x: Data) -> Any:
        """The logarithm of a constant: zero everywhere."""
        return x * 0.0 if isinstance(x, jax.Array) else np.zeros_like(self._read_points(x))

    def _refused(self, *_: object, **__: object) -> Any:
        raise KindError("Flat is not a distribution: it has no moments, no density and no characteristic function.")

    _mean = _variance = _log_density = _characteristic_function = _sample = _refused

    def __repr__(self) -> str:
        return "Flat()"
