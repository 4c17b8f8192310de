"""A model as the compiled sweep sees it: plates lengthened to sizes of a short list, arguments as numbered ports."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.points import bucket, pad
from meanmap.core.types import Array
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.variables import Given, Selection, Variable
from meanmap.families import Family

__all__ = [
    "Plan",
    "Port",
    "State",
    "beliefs",
    "fetched",
    "gather",
    "prepare",
    "real",
    "resumed",
    "scatter",
    "select",
    "start",
    "unpadded",
]


class Port(eqx.Module):
    """Where an argument of a factor is joined: to which variable, and how its members are met."""

    variable: int = eqx.field(static=True)
    # "same" member by member, "shared" by all members of the factor, "selected" by index, "whole" as one.
    way: str = eqx.field(static=True)
    index: Any

    known: ClassVar[bool] = False


class Plan(eqx.Module):
    """Variables and factors with padded plates, and how many members of each are real."""

    flats: tuple[Family, ...]
    priors: tuple[Family, ...]
    factors: tuple[Factor, ...]
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    with_prior: tuple[bool, ...] = eqx.field(static=True)
    sizes: tuple[Any, ...]
    variable_sizes: tuple[Any, ...]


class State(eqx.Module):
    """Messages of each factor to each argument, and the beliefs that follow from them."""

    messages: tuple[tuple[Any, ...], ...]
    beliefs: tuple[Family, ...]


def prepare(variables: dict[str, Variable], factors: tuple[Factor, ...], length: Callable[[int], int] = bucket) -> Plan:
    """The plan of a model. One compilation serves all sizes of a plate of one `length`."""
    order = {name: at for at, name in enumerate(variables)}
    flats = tuple(v.flat(tuple(map(length, v.shape))) for v in variables.values())
    # Members beyond the plate have the first one's prior, so that they are distributions; nothing is sent to them.
    priors = tuple(
        flat if v.prior is None else pad(v.prior, length(*v.shape)) if v.shape else v.prior
        for v, flat in zip(variables.values(), flats, strict=True)
    )
    return Plan(
        flats=flats,
        priors=priors,
        factors=tuple(_with_ports(factor, order, length) for factor in factors),
        shapes=tuple(() if factor.plate is None else (length(factor.plate),) for factor in factors),
        with_prior=tuple(v.prior is not None for v in variables.values()),
        sizes=tuple(np.asarray(factor.plate or 1) for factor in factors),
        variable_sizes=tuple(np.asarray(v.plate or 1) for v in variables.values()),
    )


def _with_ports(factor: Factor, order: dict[str, int], length: Callable[[int], int]) -> Factor:
    plate = factor.plate
    size = 0 if plate is None else length(plate)
    ports = []
    for position, argument in enumerate(factor.arguments):
        if argument.known:
            values = argument.values
            per_member = plate is not None and values.ndim and values.shape[0] == plate and argument.plate == plate
            ports.append(Given(pad(values, size) if per_member else values, argument.name))
        elif isinstance(argument, Selection):
            index = np.concatenate([argument.index, np.zeros(size - len(argument.index), np.int64)])
            ports.append(Port(order[argument.name], "selected", index))
        else:
            shared = argument.plate is None and plate is not None
            way = "whole" if position in factor.whole else "shared" if shared else "same"
            ports.append(Port(order[argument.name], way, None))
    return replaced(factor, arguments=tuple(ports))


def real(shape: tuple[int, ...], size: Any) -> Any:
    """Which members of a padded batch are real."""
    return jnp.arange(shape[0]) < size if shape else jnp.ones((), bool)


def gather(belief: Any, port: Port, shape: tuple[int, ...]) -> Family:
    """A belief as the members of a factor see it."""
    if port.way == "selected":
        return jax.tree.map(lambda leaf: leaf[port.index], belief)
    if port.way == "shared":
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape + leaf.shape), belief)
    return belief


def scatter(message: Any, port: Port, flat: object) -> Family:
    """The product of the messages of all members of a factor to each member of a variable."""
    if port.way == "selected":
        return jax.tree.map(lambda leaf, zero: jnp.zeros_like(zero).at[port.index].add(leaf), message, flat)
    if port.way == "shared":
        return jax.tree.map(lambda leaf: leaf.sum(0), message)
    return message


def select(condition: Array, chosen: Family, other: Family) -> Family:
    """The members of one batch where the condition holds, and of another elsewhere."""
    leaves = []
    for a, b, own in zip(chosen.natural, other.natural, chosen._own_axes, strict=True):
        leaves.append(jnp.where(condition.reshape(condition.shape + (1,) * own), a, b))
    return jax.tree.unflatten(jax.tree.structure(chosen), leaves)


def start(plan: Plan) -> State:
    """No messages yet."""
    messages = []
    for factor, shape in zip(plan.factors, plan.shapes, strict=True):
        sent = []
        for port in factor.arguments:
            if port.known:
                sent.append(None)
                continue
            zero = jax.tree.map(np.zeros_like, plan.flats[port.variable])
            if port.way in ("shared", "selected"):
                batch = len(zero.shape)
                zero = jax.tree.map(lambda leaf: np.zeros(shape + leaf.shape[batch:]), zero)  # noqa: B023
            sent.append(zero)
        messages.append(tuple(sent))
    return State(tuple(messages), plan.priors)


def resumed(plan: Plan, factors: tuple[Factor, ...], earlier: Mapping[str, tuple[Any, ...]]) -> State:
    """A start from the messages of an earlier run: factors are found by name; members beyond its plates are flat."""
    empty, messages = start(plan), []
    for factor, sent, size in zip(factors, empty.messages, plan.sizes, strict=True):
        old = earlier.get(factor.name)
        if old is None:
            messages.append(sent)
            continue
        if len(old) != len(sent):
            raise InputError(f"{factor.name} has {len(sent)} arguments, and had {len(old)} in start_from.")
        messages.append(
            tuple(_filled(zero, message, factor.name, int(size)) for zero, message in zip(sent, old, strict=True))
        )
    names = [factor.name for factor in factors]
    if earlier and not set(earlier) & set(names):
        raise InputError(f"start_from shares no factor with the model: {', '.join(earlier)}; {', '.join(names)}.")
    return State(tuple(messages), tuple(map(_as_numpy, beliefs(plan, tuple(messages)))))


def _as_numpy(family: Family) -> Family:
    return jax.tree.map(np.asarray, family)


def _filled(zero: Any, message: Any, name: str, size: int) -> Any:
    if zero is None or message is None:
        return zero
    if type(zero) is not type(message):
        raise InputError(f"{name} sends {type(zero).__name__}, and sent {type(message).__name__} in start_from.")

    def fill(empty: Any, leaf: Any, own: int) -> np.ndarray:
        batch = empty.ndim - own
        if leaf.ndim != empty.ndim or leaf.shape[batch:] != empty.shape[batch:]:
            raise InputError(f"the messages of {name} have another shape in start_from: {leaf.shape}.")
        filled = np.array(empty)
        leaf = fetched(leaf)
        if not batch:
            return np.array(leaf)
        count = min(leaf.shape[0], size)
        filled[:count] = leaf[:count]
        return filled

    natural = [fill(a, b, own) for a, b, own in zip(zero.natural, message.natural, zero._own_axes, strict=True)]
    return type(zero).from_natural(*natural)


def beliefs(plan: Plan, messages: tuple[tuple[Any, ...], ...]) -> tuple[Family, ...]:
    """Priors times all messages."""
    total = list(plan.priors)
    for factor, sent in zip(plan.factors, messages, strict=True):
        for port, message in zip(factor.arguments, sent, strict=True):
            if message is not None:
                at = port.variable
                total[at] = jax.tree.map(jnp.add, total[at], scatter(message, port, plan.flats[at]))
    return tuple(total)


def unpadded(tree: object, plate: int | None) -> Any:
    """The real members as NumPy arrays; where there are no others, what is divided among devices stays there."""

    def cut(leaf: Any) -> Any:
        if plate is None:
            return np.array(leaf)
        divided = isinstance(leaf, jax.Array) and not leaf.is_fully_replicated and len(leaf) == plate
        return leaf if divided else np.array(fetched(leaf)[:plate])

    return jax.tree.map(cut, tree)


def fetched(array: Array) -> np.ndarray:
    """An array on the host, whole, wherever its parts lie."""
    if isinstance(array, jax.Array) and not (array.is_fully_addressable or array.is_fully_replicated):
        from jax.experimental.multihost_utils import process_allgather

        return np.asarray(process_allgather(array, tiled=True))
    return np.asarray(array)
