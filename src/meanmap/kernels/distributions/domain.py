"""How distributions are read as points: families, bags of samples, and tuples of them along one leading axis."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import ColumnError, EmptyError, KindError, ParameterError, ShapeError
from meanmap.core.language import a_type
from meanmap.core.types import Data, Points
from meanmap.families.base import Distribution, proper_members
from meanmap.families.limits import Flat
from meanmap.families.reading import members, to_jax
from meanmap.kernels.distributions.bags import Bags, check_bags

__all__ = ["Messages", "Ready", "check_same_kind", "label", "per_variable", "settings", "variables"]


@dataclass(frozen=True)
class Messages:
    """N distributions, or N tuples of them: a batched family, a list of samples, or a tuple or mapping of these."""

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """The distributions after checks: batched along one axis, proper, equally many in each variable."""
        if isinstance(data, Mapping):
            names = sorted(data, key=str)
            points = {name: _read_law(data[name], label(argument, name), door) for name in names}
        elif isinstance(data, tuple):
            points = tuple(_read_law(law, label(argument, i), door) for i, law in enumerate(data))
        else:
            points = _read_law(data, argument, door)
        names, laws = variables(points)
        if not laws:
            raise EmptyError(f"{argument} holds no variables; expected at least one batch of distributions.")
        sizes = [law.shape[0] for law in laws]
        if len(set(sizes)) > 1:
            listed = ", ".join(f"{label(argument, name)} {size}" for name, size in zip(names, sizes, strict=True))
            raise ShapeError(
                f"the variables of {argument} differ in their number of distributions: {listed}; "
                "expected one of each for every point."
            )
        return points


@dataclass(frozen=True)
class Ready:
    """Points that are already read."""

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """The data, unchanged."""
        del argument, door
        return data


def variables(points: Points) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Names and distributions of the variables of points: keys in order, positions, or `None` for a single variable."""
    if isinstance(points, Mapping):
        names = tuple(sorted(points, key=str))
        return names, tuple(points[name] for name in names)
    if isinstance(points, tuple):
        return tuple(range(len(points))), points
    return (None,), (points,)


def label(argument: str, name: object) -> str:
    """The name of a variable in messages: x, x[0] or x['height']."""
    return argument if name is None else f"{argument}[{name!r}]"


def check_same_kind(x: Points, y: Points) -> None:
    """Refuse two sets of points whose variables differ in name, family or dimension."""
    (names, first), (others, second) = variables(x), variables(y)
    if names != others:
        raise KindError(f"x has {_listed(names)} and y has {_listed(others)}; expected the same variables.")
    for name, a, b in zip(names, first, second, strict=True):
        if _kind(a) != _kind(b):
            raise KindError(
                f"{label('x', name)} is {_kind(a)} and {label('y', name)} is {_kind(b)}; expected the same family."
            )
        if a.dimension != b.dimension:
            raise ShapeError(
                f"{label('x', name)} has {a.dimension} columns and {label('y', name)} has {b.dimension}; "
                "expected the same."
            )


def _kind(law: Any) -> str:
    inner = f" of {_kind(law.components)}" if hasattr(law, "components") else ""
    return type(law).__name__ + inner


def _listed(names: tuple[Any, ...]) -> str:
    if None in names:
        return "one distribution per point"
    return "the variables " + ", ".join(map(repr, names))


def _read_law(data: Data, argument: str, door: Door) -> Any:
    if isinstance(data, Distribution):
        _check_batch(data, argument)
        return _in_dtype(data, door)
    if not isinstance(data, Bags):
        if not isinstance(data, list | np.ndarray | jax.Array):
            raise KindError(
                f"{argument} is {a_type(data)}; expected a batch of distributions such as "
                "Normal([0.0, 1.0], 1.0), a list of samples, or a tuple of these."
            )
        data = Bags(data, argument)
    check_bags(data, argument)
    return _in_dtype(data, door)


def _check_batch(law: Distribution, argument: str) -> None:
    name = type(law).__name__
    if isinstance(law, Flat):
        raise KindError(f"{argument} is Flat, which is not a probability distribution: pass a wide proper one.")
    if not law.shape:
        raise ShapeError(f"{argument} is one {name}; expected a batch along one axis: pass {argument}.reshape(1).")
    if len(law.shape) > 1:
        raise ShapeError(
            f"{argument} has batch shape {law.shape}; expected one leading axis: pass {argument}.reshape(-1)."
        )
    if 0 in law.shape:
        raise EmptyError(f"{argument} holds no distributions; expected at least one.")
    if all_concrete(law):
        improper = ~proper_members(law)
        if improper.any():
            raise ParameterError(
                f"{argument} ({name}) is improper{members(improper)}: only probability distributions have embeddings. "
                f"Leave those messages out, as in {argument}[{argument}.is_proper()], or replace them."
            )


def _in_dtype(law: object, door: Door) -> Any:
    if door.follows:
        return to_jax(law, door.dtype)

    def convert(leaf):
        leaf = np.asarray(leaf)
        return leaf.astype(np.float64, copy=False) if np.issubdtype(leaf.dtype, np.floating) else leaf

    return jax.tree.map(convert, law)


def settings(value: object, argument: str) -> tuple[Any, tuple[Any, ...] | None]:
    """A setting as one value for every variable, or a tuple with their names (`None` for positions)."""
    if isinstance(value, Mapping):
        names = tuple(sorted(value, key=str))
        value = {**value}
        return _not_empty(tuple(value[name] for name in names), argument), names
    if isinstance(value, tuple | list):
        return _not_empty(tuple(value), argument), None
    return value, None


def _not_empty(values: tuple[Any, ...], argument: str) -> tuple[Any, ...]:
    if not values:
        raise EmptyError(f"{argument} is empty; expected one value, or one per variable.")
    return values


def named(values: tuple[Any, ...], names: tuple[Any, ...]) -> Any:
    """Values of a setting as users pass them: one for a single variable, by name, or in order."""
    if names == (None,):
        return values[0]
    return dict(zip(names, values, strict=True)) if isinstance(names[0], str) else values


def per_variable(
    value: object, keys: tuple[Any, ...] | None, names: tuple[Any, ...], setting: str, argument: str
) -> Any:
    """One value of a setting for each variable of some points."""
    if not isinstance(value, tuple):
        return (value,) * len(names)
    if keys is not None and keys != names:
        raise ColumnError(
            f"{setting} is given for {_listed(keys)} and {argument} has {_listed(names)}; expected the same variables."
        )
    if keys is None and any(isinstance(name, str) for name in names):
        raise ColumnError(
            f"{setting} is a tuple and {argument} has named variables, {_listed(names)}: pass {setting} by name too."
        )
    if len(value) != len(names):
        raise ShapeError(
            f"{setting} has {len(value)} entries and {argument} has {len(names)} "
            f"variable{'s' if len(names) > 1 else ''}; expected one each."
        )
    return value
