"""Exponential families: distributions whose natural parameters add under products, so that messages are vectors."""

from abc import abstractmethod
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.types import Array, Data, Numbers
from meanmap.families.base import Distribution, build, require_proper
from meanmap.families.reading import read_numbers, read_parameters, run
from meanmap.families.weights import check_weighted, normalised_weights

__all__ = ["Family", "Limit"]


class Family(Distribution):
    """p(x) = exp(η·t(x) − A(η)) with the natural parameters η as its only leaves, in the order of `natural`.

    A product of densities adds η and a ratio subtracts it, so messages may leave the set where A is finite. Such
    improper messages, for which `is_proper()` is False, raise an error only where a probability distribution is needed.

    To define a family, store the fields, name them in `_fields_axes` with the number of their own trailing axes, and
    give `_statistics`, `_log_normaliser`, `_expected_statistics`, `_natural_from_moments` besides the formulas of
    `Distribution`.
    """

    _fields_axes: ClassVar[dict[str, int]]
    _statistic_names: ClassVar[tuple[str, ...]]
    # The values of x if there are finitely many; None for all other families.
    states: ClassVar[tuple[float, ...] | None] = None
    # Whether the density of the coordinate has derivatives and `_at_mode` is given.
    smooth: ClassVar[bool] = False
    # Whether x is a statistic in addition to the coordinate.
    _mean_is_statistic: ClassVar[bool] = False

    @property
    def _own_axes(self) -> tuple[int, ...]:
        return tuple(self._fields_axes.values())

    @property
    def natural(self) -> tuple[Any, ...]:
        """The natural parameters η, one array each."""
        return tuple(getattr(self, name) for name in self._fields_axes)

    # Other ways in

    @classmethod
    def from_natural(cls, *natural: Array) -> Self:
        """The member with these natural parameters, proper or not, in the order of `natural`."""
        names = tuple(cls._fields_axes)
        if len(natural) != len(names):
            raise ShapeError(
                f"{cls.__name__} has {len(names)} natural parameters ({', '.join(names)}); got {len(natural)}."
            )
        with Door(natural) as door:
            values = dict(zip(names, natural, strict=True))
            arrays = read_parameters(door, tuple(cls._fields_axes.values()), **values)
        cls._check_own_axes(arrays)
        return build(cls, **dict(zip(names, arrays, strict=True)))

    @classmethod
    def _check_own_axes(cls, natural: list[Any]) -> None:
        """Raise if the trailing axes of natural parameters do not fit together."""

    @classmethod
    def from_moments(cls, *moments: Array) -> Self:
        """The member whose `expected_statistics` are these: maximum likelihood, or the KL projection."""
        if len(moments) != len(cls._statistic_names):
            listed = ", ".join(cls._statistic_names)
            raise ShapeError(
                f"{cls.__name__} has {len(cls._statistic_names)} statistics, {listed}; got {len(moments)}."
            )
        with Door(moments) as door:
            values = dict(zip(cls._statistic_names, moments, strict=True))
            arrays = read_parameters(door, tuple(cls._fields_axes.values()), **values)
        cls._check_own_axes(arrays)
        cls._check_moments(*arrays)
        return cls._of(run(cls._natural_from_moments, *arrays))

    @classmethod
    def _check_moments(cls, *moments: Array) -> None:
        """Raise if no proper member has these expected statistics."""

    @classmethod
    @abstractmethod
    def _natural_from_moments(cls, *moments: Array) -> tuple[Array, ...]: ...

    @classmethod
    def _of(cls, natural: tuple[Any, ...]) -> Self:
        return build(cls, **dict(zip(cls._fields_axes, natural, strict=True)))

    @classmethod
    def from_weighted_samples(cls, x: Array, log_weights: Array) -> Self:
        """The member whose expected statistics are the weighted means over a sample: its KL projection.

        Parameters
        ----------
        x : array_like, shape `(n,) + shape + event_shape`
            n draws for each member.
        log_weights : array_like, shape `(n,)` or `(n,) + shape`
            Logarithms of unnormalised weights; −∞ is weight zero.
        """
        return cls._project(cls._natural_from_sample, x, log_weights)

    @classmethod
    def _project(cls, formula: Any, x: Data, log_weights: Array, **settings: object) -> Self:
        with Door(x, log_weights) as door:
            x = read_numbers(x, "x", door)
            log_weights = read_numbers(log_weights, "log_weights", door)
        axes = cls._event_axes()
        cls._check_sample(x)
        log_weights = check_weighted(x, log_weights, axes)
        family = cls._of(run(formula, x, log_weights, **settings))
        require_proper(family, "projection (the weighted sample has no spread: nearly all weight is on one draw)")
        return family

    @classmethod
    def _event_axes(cls) -> int:
        return 0

    @classmethod
    def _check_sample(cls, x: Array) -> None:
        """Raise if draws lie outside the support."""

    @classmethod
    def _natural_from_sample(cls, x: Array, log_weights: Array) -> tuple[Array, ...]:
        weights = normalised_weights(log_weights)
        averages = []
        for statistic, own in zip(cls._statistics(x), cls._fields_axes.values(), strict=True):
            averages.append((weights.reshape(weights.shape + (1,) * own) * statistic).sum(0))
        return cls._natural_from_moments(*averages)

    # The exponential form

    @classmethod
    def statistics(cls, x: Data) -> tuple[Any, ...]:
        """The sufficient statistics t(x), one array for each natural parameter."""
        with Door(x) as door:
            x = read_numbers(x, "x", door)
        return run(cls._statistics, x)

    @classmethod
    @abstractmethod
    def _statistics(cls, x: Array) -> tuple[Array, ...]: ...

    @property
    def expected_statistics(self) -> tuple[Any, ...]:
        """E[t(x)] = ∇A(η): the mean parameters, one array for each natural parameter."""
        require_proper(self, "expected statistics")
        return run(type(self)._expected_statistics, self)

    @abstractmethod
    def _expected_statistics(self) -> tuple[Array, ...]: ...

    @property
    def log_normaliser(self) -> Any:
        """A(η) = log ∫ exp(η·t(x)) dx."""
        require_proper(self, "normaliser")
        return run(type(self)._log_normaliser, self)

    @abstractmethod
    def _log_normaliser(self) -> Array: ...

    def log_unnormalised(self, x: Data) -> Any:
        """η·t(x), the log density up to its constant: defined for improper messages too."""
        return run(type(self)._log_unnormalised, self, self._read_points(x))

    def _log_unnormalised(self, x: Array) -> Array:
        total = jnp.zeros((), x.dtype)
        for parameter, statistic, own in zip(
            self.natural, self._statistics(x), self._fields_axes.values(), strict=True
        ):
            total = total + (parameter * statistic).sum(tuple(range(-own, 0)))
        return total

    def _log_density(self, x: Array) -> Array:
        return self._log_unnormalised(x) - self._log_normaliser()

    # Messages of expectation propagation, in the last of `coordinates`, c. These defaults suit most families.

    @classmethod
    def is_scalar(cls) -> bool:
        """Whether x is one number."""
        return not any(cls._fields_axes.values())

    def _log_message(self, c: Array, x: Array) -> Array:
        """η·t(x), computed from the coordinate where that is more accurate."""
        del c
        return self.log_unnormalised(x)

    def _tails(self) -> tuple[Any, Any]:
        """Rates of the lower and upper exponential tails of the density of c; None if it decays like a Normal's."""
        return None, None

    @classmethod
    def _project_points(cls, c: Array, x: Array, log_weights: Array) -> Self:
        """The member that matches the expected statistics of weighted points."""
        del c
        return cls.from_weighted_samples(x, log_weights)

    @classmethod
    def _at_mode(cls, c: Array, curvature: Array) -> Self:
        """The member whose density of c has this mode, and this curvature of its negative logarithm there."""
        raise KindError(f"{cls.__name__} has no Laplace approximation.")

    def _improper(self) -> Any:
        """For each member, whether it is not even a limit of distributions; the flat message is the limit of ever wider
        ones.
        """
        return jnp.zeros(self.shape, bool)

    def _nearest_proper(self, incoming: Any) -> Self:
        """The replacement of an improper message: a limit of distributions that preserves the tilted mean."""
        del incoming
        return jax.tree.map(jnp.zeros_like, self)

    def _exponents(self) -> tuple[Any, ...] | None:
        """Parameters that are positive if proper, in the order and with the signs of the natural ones, or None."""
        return None

    def _turned(self, step: Array) -> Self:
        """The distribution times exp(step c)."""
        first, *rest = self.natural
        return self._of((first + step, *rest))

    def kl(self, other: object) -> Array:
        """KL(self ‖ other) = E_self[log self − log other], for each member; at least 0."""
        if type(other) is not type(self):
            raise KindError(
                f"kl compares two distributions of one family; got {type(self).__name__} and {type(other).__name__}."
            )
        _check_fits(self, other)
        require_proper(self, "divergence")
        require_proper(other, "divergence")
        return run(type(self)._kl, self, other)

    @abstractmethod
    def _kl(self, other: Any) -> Array: ...

    # Algebra of messages

    def product(self, other: object) -> Any:
        """The density proportional to the product of both: natural parameters add. Also written `*`."""
        if isinstance(other, Limit):
            return other.product(self)
        return self._combine(other, lambda a, b: a + b, "multiply")

    def ratio(self, other: object) -> Any:
        """The function proportional to self / other: natural parameters subtract; often improper. Also written `/`."""
        if isinstance(other, Limit):
            return other.divide(self)
        return self._combine(other, lambda a, b: a - b, "divide")

    def power(self, exponent: Numbers) -> Self:
        """The function proportional to a power of self, one exponent for all or one per member. Also written `**`."""
        with Door(self, exponent) as door:
            exponent = read_numbers(exponent, "exponent", door)
            family = door.cast(self)
            natural = [
                eta * exponent.reshape(exponent.shape + (1,) * own)
                for eta, own in zip(family.natural, self._own_axes, strict=True)
            ]
        return self._of(tuple(natural))

    def _combine(self, other: object, operation: Any, verb: str) -> Self:
        if type(other) is not type(self):
            raise KindError(
                f"cannot {verb} {type(self).__name__} and {type(other).__name__}: messages about one variable "
                "must be of the same family, or PointMass or Flat."
            )
        _check_fits(self, other)
        with Door(self, other) as door:
            a, b = door.cast(self), door.cast(other)
            return self._of(tuple(operation(x, y) for x, y in zip(a.natural, b.natural, strict=True)))

    def __mul__(self, other: object) -> Any:
        return self.product(other) if isinstance(other, Distribution) else NotImplemented

    def __truediv__(self, other: object) -> Any:
        return self.ratio(other) if isinstance(other, Distribution) else NotImplemented

    def __pow__(self, exponent: Array) -> Self:
        return self.power(exponent)

    def where(self, condition: Array, other: Self) -> Self:
        """The members of self where `condition` holds, and those of `other` elsewhere."""
        if type(other) is not type(self):
            raise KindError(f"where chooses within one family; got {type(self).__name__} and {type(other).__name__}.")
        _check_fits(self, other)
        with Door(self, other, condition) as door:
            library = jnp if door.follows else np
            condition = library.asarray(condition, dtype=bool)
            a, b = door.cast(self), door.cast(other)
            chosen = [
                library.where(condition.reshape(condition.shape + (1,) * own), x, y)
                for x, y, own in zip(a.natural, b.natural, self._own_axes, strict=True)
            ]
        return self._of(tuple(chosen))


class Limit(Distribution):
    """Messages that fit any family: no information, or certainty."""

    @abstractmethod
    def product(self, other: object) -> Any:
        """The product with a message of any family."""

    @abstractmethod
    def divide(self, other: Family) -> Any:
        """A message of some family divided by this one."""


def _check_fits(first: Family, second: Family) -> None:
    for x, y, own in zip(first.natural, second.natural, first._own_axes, strict=True):
        if x.shape[x.ndim - own :] != y.shape[y.ndim - own :]:
            raise ShapeError(
                f"the two {type(first).__name__} differ in dimension: "
                f"{x.shape[x.ndim - own :]} and {y.shape[y.ndim - own :]}."
            )
    try:
        np.broadcast_shapes(first.shape, second.shape)
    except ValueError as error:
        raise ShapeError(f"batch shapes {first.shape} and {second.shape} do not broadcast.") from error
