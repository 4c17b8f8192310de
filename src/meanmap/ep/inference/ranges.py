"""Whether the function of a black box gives values that its output, or a log density, cannot have."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.ep.calling import call
from meanmap.ep.calls import user_errors
from meanmap.ep.lines import inside, to_nodes
from meanmap.ep.sweeps.plan import Plan, State
from meanmap.ep.sweeps.sweep import compiled_cavities
from meanmap.families import Family

__all__ = ["left_range"]

# Where functions are checked, in standard deviations of the incoming message. Quadrature rules go much further, and log
# densities are checked as far out as these: a single NaN spoils a message.
LOOKED_AT, ALL_OVER = (-1.0, 0.0, 1.0), tuple(float(at) for at in sorted(range(-9, 10), key=abs))


def left_range(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> str:
    """A note if the function of a factor leaves the range of its output for one of these members; else empty.

    The output of a log density is any number, or −∞. Functions that draw at random are not asked.
    """
    if not factor.asks_oracle or factor.random or not len(members):
        return ""
    density = getattr(factor, "powered", False)
    out = None if density else factor.arguments[-1].variable
    if not density and out is None:
        return ""
    incoming, _ = compiled_cavities(plan, state, at, power)
    member = int(members[0])
    with user_errors():
        return _of_member(factor, out, tuple(_one(value, member, factor.plate) for value in incoming), member)


def _one(value: object, member: int, plate: int | None) -> Any:
    """The incoming messages of one member."""
    return value if plate is None else jax.tree.map(lambda leaf: jnp.asarray(leaf)[member], value)


def _of_member(factor: Any, out: Any, incoming: tuple[Any, ...], member: int) -> str:
    over, arguments = factor.inputs(incoming), list(incoming if out is None else incoming[:-1])
    for position in over:
        arguments[position] = _points(arguments[position], ALL_OVER if out is None else LOOKED_AT)
    images = np.asarray(call(factor, arguments, over), float)
    if out is None:
        outside = np.flatnonzero(np.isnan(images))
    else:
        outside = np.flatnonzero(np.isnan(np.asarray(inside(type(incoming[-1]), jnp.asarray(images)).x)))
    if not len(outside):
        return ""
    point = int(outside[0])
    shown = [
        f"{factor.arguments[at].name} = {np.array2string(np.asarray(arguments[at][point]), precision=3)}" for at in over
    ]
    where = f" at [{member}]" if factor.plate is not None else ""
    said = f"the function of {factor.name}{where} is {images[point]:.3g} for {', '.join(shown)}"
    if out is None:
        return f"{said}: return -inf where the factor is zero"
    return (
        f"{said}, and {out.name!r} is a {out.family.__name__}, {_range_of(out.family)}: give a function that stays "
        "there, or another family"
    )


def _points(message: Family, places: tuple[float, ...]) -> jax.Array:
    """Points at these standard deviations from the middle of a proper distribution, along the first axis."""
    name = message.coordinates[-1]
    middle, reach = jnp.asarray(message.mean_in(name)), jnp.sqrt(jnp.asarray(message.variance_in(name)))
    points = jnp.stack([middle + each * reach for each in places])
    return points if message.event_shape else to_nodes(type(message), points, jnp.zeros(())).x


def _range_of(family: type[Family]) -> str:
    if family.states is not None:
        return f"one of {', '.join(f'{state:g}' for state in family.states)}"
    return {"log": "above 0", "logit": "between 0 and 1"}.get(family.coordinates[-1], "a number")
