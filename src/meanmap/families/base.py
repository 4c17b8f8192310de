"""The base class of distributions: an immutable batch of distributions, indexed by plate."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.intervals import Intervals
from meanmap.core.points import library_of
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.types import Array, Data, Index, Numbers, Seed
from meanmap.families.gaussian_parts import Parts
from meanmap.families.pages import law_page
from meanmap.families.reading import as_fields, members, read_numbers, run, to_jax
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["Distribution", "build", "require_proper"]

# What to type in place of methods that other libraries have.
_MEANT = {
    **dict.fromkeys(("std", "stddev"), "sd()"),
    "variance": "var()",
    "covariance": "cov()",
    "median": "quantile(0.5)",
    "ppf": "quantile(q)",
    **dict.fromkeys(("pdf", "logpdf", "log_prob", "density"), "log_density(x)"),
    **dict.fromkeys(("rvs", "samples", "draws"), "sample(1000, rng=0)"),
}


class Distribution(Paged, Intervals, eqx.Module):
    """A batch of probability distributions with one array leaf per parameter; leading axes of the leaves are plates.

    Read its members with `mean()`, `sd()`, `var()`, `quantile(q)`, `interval(confidence)`, `log_density`,
    `characteristic_function`, `sample`.

    A new distribution has its parameters as fields, read and checked by its constructor, and gives pure formulas on JAX
    arrays: `_mean`, `_variance`, `_log_density`, `_characteristic_function` and `_sample`; where they are cheap,
    `_cdf`, `_quantile` and `_entropy`; and `_proper` if some parameters do not define a distribution. The public
    methods handle shapes, errors, precision and compilation. `Laplace` is a short example.
    """

    coordinates: ClassVar[tuple[str, ...]] = ("x",)
    _shown: ClassVar[dict[str, str]] = {"mean": "mean", "sd": "sd"}

    @property
    def _own_axes(self) -> tuple[int, ...]:
        """The number of trailing axes of each leaf that belong to one member: 0 if it is a number."""
        return (0,) * len(jax.tree.leaves(self))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch axes; `()` for one distribution."""
        first, own = jax.tree.leaves(self)[0], self._own_axes[0]
        return tuple(first.shape[: first.ndim - own])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The axes of one draw; `()` for a number."""
        return ()

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of one draw, 1 for a number; a label counts as a unit vector."""
        return self.event_shape[0] if self.event_shape else 1

    def gaussian_parts(self, coordinate: str) -> Parts | None:
        """The N distributions as mixtures of normal distributions and points in a coordinate, or None if not such."""
        del coordinate
        return None

    def _proper(self) -> Any:
        return np.ones(self.shape, bool)

    def is_proper(self) -> Any:
        """For each member, whether it is a probability distribution (messages may fail to be)."""
        return self._proper()

    # Moments

    def mean(self) -> Array:
        """E[x], shape `shape + event_shape`."""
        require_proper(self, "mean")
        return run(type(self)._mean, self)

    def var(self) -> Array:
        """Var[x] entry by entry, shape `shape + event_shape`."""
        require_proper(self, "variance")
        return run(type(self)._variance, self)

    def sd(self) -> Array:
        """Standard deviation, entry by entry."""
        require_proper(self, "standard deviation")
        return run(_root_variance, self)

    def cov(self) -> Array:
        """The covariance matrix of the entries of x, shape `shape + 2 * event_shape`; the variance if x is a number."""
        require_proper(self, "covariance")
        return run(type(self)._covariance, self)

    @abstractmethod
    def _mean(self) -> Array: ...

    @abstractmethod
    def _variance(self) -> Array: ...

    def _covariance(self) -> Array:
        return self._variance()

    def mean_in(self, coordinate: str | None = None) -> Array:
        """The mean in one of `coordinates`, such as E[log x] of a Gamma."""
        require_proper(self, "mean")
        return run(type(self)._moments_in, self, coordinate=self._coordinate(coordinate))[0]

    def variance_in(self, coordinate: str | None = None) -> Array:
        """The variance in one of `coordinates`, such as Var[logit x] of a Beta."""
        require_proper(self, "variance")
        return run(type(self)._moments_in, self, coordinate=self._coordinate(coordinate))[1]

    def _moments_in(self, coordinate: str) -> tuple[Array, Array]:
        del coordinate
        return self._mean(), self._variance()

    # Functions of a point or a frequency

    def log_density(self, x: Data) -> Array:
        """log p(x), normalised; −∞ outside the support.

        Parameters
        ----------
        x : array_like
            Points that broadcast against `shape + event_shape`: one per member, or add an axis for a grid.
        """
        require_proper(self, "density")
        return run(type(self)._log_density, self, self._read_points(x))

    @abstractmethod
    def _log_density(self, x: Array) -> Array: ...

    def characteristic_function(self, w: Array, coordinate: str | None = None) -> Any:
        """E[exp(i w·c(x))] for every member and every frequency, c the coordinate: the mean embedding in Fourier form.

        Parameters
        ----------
        w : array_like, shape `frequencies` or, for vectors, `frequencies + (d,)`
            Frequencies.
        coordinate : str, optional
            One of `coordinates`; the first of them by default.

        Returns
        -------
        complex array of shape `shape + frequencies`
        """
        require_proper(self, "characteristic function")
        coordinate = self._coordinate(coordinate)
        with Door(self, w) as door:
            w = read_numbers(w, "w", door)
        vector = self._frequency_axes(w)
        settings = self._frequency_settings(w, coordinate)
        return run(type(self)._characteristic_function, self, vector, coordinate=coordinate, **settings)

    @abstractmethod
    def _characteristic_function(self, w: Array, coordinate: str) -> Array: ...

    def _frequency_axes(self, w: Array) -> Any:
        event = self.event_shape
        if event and (w.ndim == 0 or w.shape[-1] != event[-1]):
            raise ShapeError(f"w has shape {w.shape}; expected (..., {event[-1]}): one frequency per entry of x.")
        return w

    def _frequency_settings(self, w: Array, coordinate: str) -> dict[str, Any]:
        """Static settings of the characteristic function that depend on the size of concrete frequencies."""
        del w, coordinate
        return {}

    def cdf(self, x: Data) -> Array:
        """P(X ≤ x), if it is cheap to compute."""
        require_proper(self, "distribution function")
        return run(type(self)._cdf, self, self._read_points(x))

    def _cdf(self, x: Array) -> Array:
        raise KindError(f"{type(self).__name__} has no distribution function here; draw with .sample(n, rng) instead.")

    def quantile(self, q: Numbers | Sequence[float]) -> Array:
        """The q-quantile, if it is cheap to compute."""
        require_proper(self, "quantiles")
        with Door(self, q) as door:
            q = read_numbers(q, "q", door)
        if is_concrete(q) and not ((np.asarray(q) >= 0) & (np.asarray(q) <= 1)).all():
            raise ParameterError("q holds values outside [0, 1]; expected probabilities.")
        return self._quantile_of(q)

    def _quantile_of(self, p: Array) -> Any:
        return run(type(self)._quantile, self, p)

    def _quantile(self, p: Array) -> Array:
        raise KindError(f"{type(self).__name__} has no quantiles here; draw with .sample(n, rng) instead.")

    def _as_page(self, brief: bool = False) -> Page:
        return law_page(self, type(self)._quantile is not Distribution._quantile)

    def sample(self, n: int, rng: Seed = None) -> Array:
        """n independent draws of every member, shape `(n,) + shape + event_shape`.

        Parameters
        ----------
        n : int
            The number of draws.
        rng : None, int, numpy Generator or JAX key
            Randomness; an integer repeats the draws.
        """
        require_proper(self, "samples")
        whole_number(n, "n", 0)
        key = Rng.of(rng).key
        with Door(self, () if is_concrete(key) else key) as door:
            draws = _draw(to_jax(self, door.dtype), key, int(n))
            return door.leave(draws)

    @abstractmethod
    def _sample(self, n: int, key: Array) -> Array: ...

    def entropy(self) -> Array:
        """−E[log p(x)] in nats, if it has a closed form."""
        require_proper(self, "entropy")
        return run(type(self)._entropy, self)

    def _entropy(self) -> Array:
        raise KindError(f"{type(self).__name__} has no closed-form entropy.")

    # Batches

    def __getitem__(self, index: Index) -> Any:
        """The members at `index`, which indexes batch axes only."""
        index = index if isinstance(index, tuple) else (index,)
        used = sum(map(_axes_used, index))
        if used > len(self.shape):
            raise IndexError(f"{type(self).__name__} has batch shape {self.shape}; the index uses {used} axes.")
        if len(index) == 1 and isinstance(index[0], int | np.integer):
            size = self.shape[0]
            if not -size <= index[0] < size:
                raise IndexError(f"index {index[0]} is out of range for a batch of {size}.")
        has_ellipsis = any(i is Ellipsis for i in index)
        return self._map_batch(lambda leaf, own: leaf[index + (slice(None),) * own if has_ellipsis else index])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"this {type(self).__name__} is a single distribution, not a batch: it has no length.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def broadcast_to(self, shape: int | tuple[int, ...]) -> Any:
        """The distributions, broadcast to a larger batch shape."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        try:
            np.broadcast_to(np.empty(self.shape), shape)
        except ValueError as error:
            raise ShapeError(f"batch shape {self.shape} cannot be broadcast to {shape}.") from error
        return self._map_batch(
            lambda leaf, own: library_of(leaf).broadcast_to(leaf, shape + leaf.shape[leaf.ndim - own :])
        )

    def reshape(self, *shape: int) -> Any:
        """The distributions in another batch shape with the same number of members."""
        return self._map_batch(lambda leaf, own: leaf.reshape(*shape, *leaf.shape[leaf.ndim - own :]))

    def _map_batch(self, function: Callable[[Any, int], Any]) -> Any:
        leaves, structure = jax.tree.flatten(self)
        changed = [function(leaf, own) for leaf, own in zip(leaves, self._own_axes, strict=True)]
        return jax.tree.unflatten(structure, as_fields(*changed))

    # Reading

    def _coordinate(self, name: str | None) -> str:
        if name is None:
            return self.coordinates[0]
        if name not in self.coordinates:
            known = ", ".join(map(repr, self.coordinates))
            raise ParameterError(f"coordinate is {name!r}; {type(self).__name__} has {known}.")
        return name

    def _read_points(self, x: Data) -> Array:
        with Door(self, x) as door:
            x = read_numbers(x, "x", door)
        event = self.event_shape
        if event and x.shape[-len(event) :] != event:
            raise ShapeError(f"x has shape {x.shape}; expected (..., {', '.join(map(str, event))}).")
        batch = x.shape[: x.ndim - len(event)]
        try:
            np.broadcast_shapes(batch, self.shape)
        except ValueError as error:
            raise ShapeError(
                f"x has shape {x.shape} and the batch {self.shape}; expected shapes that broadcast. "
                "For a grid of points at every member, give x one more leading axis: x[:, None]."
            ) from error
        return x

    def __repr__(self) -> str:
        name, leaves = type(self).__name__, jax.tree.leaves(self)
        if not leaves or not all(isinstance(leaf, np.ndarray | np.generic | jax.Array) for leaf in leaves):
            return f"{name}(...)"
        if not all_concrete(leaves):
            return f"{name}(shape={self.shape}, traced)"
        improper = ~proper_members(self)
        if self.shape:
            return f"{name}(shape={self.shape}" + (f", improper{members(improper)})" if improper.any() else ")")
        if improper.any():
            return f"{name}(improper, natural={', '.join(_short(leaf) for leaf in leaves)})"
        host = jax.tree.map(np.asarray, self)
        return f"{name}({', '.join(f'{label}={_short(_read(host, at))}' for label, at in self._shown.items())})"

    if not TYPE_CHECKING:  # so that type checkers refuse other names

        def __getattr__(self, name: str) -> Any:
            instead = f"; type .{_MEANT[name]}" if name in _MEANT else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{instead}")


def build(kind: type, **leaves: object) -> Any:
    """An instance with these stored fields, bypassing the constructor, as when a pytree is rebuilt."""
    made = object.__new__(kind)
    for name, value in leaves.items():
        value = value if isinstance(value, jax.Array | Distribution | int) else np.asarray(value)
        object.__setattr__(made, name, value)
    return made


def require_proper(distribution: Distribution, action: str) -> None:
    """Raise, naming the batch indices, if a member with known parameters is not a probability distribution."""
    if not all_concrete(distribution):
        return
    proper = proper_members(distribution)
    if not proper.all():
        raise ParameterError(
            f"this {type(distribution).__name__} is improper{members(~proper)}, so it has no {action}: "
            "its natural parameters do not define a probability density. See .natural and .is_proper()."
        )


def proper_members(distribution: Distribution) -> np.ndarray:
    """`is_proper` of a distribution with known parameters, computed by NumPy because JAX would trace it inside jit."""
    host = jax.tree.map(np.asarray, distribution)
    return np.asarray(type(host)._proper(host))  # through the class: equinox wraps methods of instances, which is slow


def _root_variance(distribution: Distribution) -> Array:
    return jnp.sqrt(distribution._variance())


@compiled_anew
@eqx.filter_jit
def _draw(distribution: Distribution, key: Array, n: int) -> Array:
    return distribution._sample(n, key)


def _axes_used(index: Index) -> int:
    """The number of axes that one entry of an index consumes; for a mask, its own number of axes."""
    if index is None or index is Ellipsis:
        return 0
    return getattr(index, "ndim", 1) if getattr(index, "dtype", None) == np.dtype(bool) else 1


def _read(law: object, name: str) -> Any:
    value = getattr(law, name)
    return value() if callable(value) else value


def _short(value: object) -> str:
    value = np.asarray(value, dtype=float)
    if value.size > 6:
        return f"array of shape {value.shape}"
    return np.array2string(value, formatter={"float_kind": lambda number: f"{number:.4g}"}, separator=", ")
