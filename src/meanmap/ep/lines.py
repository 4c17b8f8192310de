"""Grids over families of numbers, in the coordinate of each: x, log x or logit x."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.families import Family
from meanmap.families.line import COORDINATES

__all__ = [
    "REACH",
    "Nodes",
    "as_nodes",
    "inside",
    "log_message",
    "nodes_of_cavity",
    "project",
    "tilted_natural",
    "to_nodes",
    "values",
    "window",
]

# The half-width of a grid over a cavity, in standard deviations.
REACH = 12.0

# All but 1e-16 of a Normal, and of its second moment, is within this many standard deviations; an exponential tail of
# rate a goes on for this many times 1/a.
_REACH_NORMAL = 9.5
_REACH_EXPONENTIAL = 45.0


class Nodes(NamedTuple):
    """Points c of the coordinate, along a new first axis, x(c), and the log of the rule's weights."""

    coordinate: jax.Array
    x: jax.Array
    log_weight: jax.Array

    def some(self, chosen: slice) -> "Nodes":
        """Some of the points."""
        return Nodes(*(leaf[chosen] if jnp.ndim(leaf) else leaf for leaf in self))


def to_nodes(kind: type[Family], coordinate: jax.Array, log_step: jax.Array) -> Nodes:
    """Nodes at these points of the coordinate, with a step of this size: the Jacobian goes into the weight."""
    line = COORDINATES[kind.coordinates[-1]]
    return Nodes(coordinate, line.x(coordinate), log_step + line.log_jacobian(coordinate))


def values(kind: type[Family], nodes: Nodes) -> list[jax.Array]:
    """What has to have moments for a projection: the coordinate, and x itself where its mean is a statistic."""
    return [nodes.coordinate, nodes.x] if kind._mean_is_statistic else [nodes.coordinate]


def as_nodes(kind: type[Any], x: jax.Array) -> Nodes:
    """Given points of a family, or of numbers of any kind, with no rule's weights."""
    line = COORDINATES[getattr(kind, "coordinates", ("x",))[-1]]
    return Nodes(line.of(x), x, jnp.zeros(()))


def inside(kind: type[Family], images: jax.Array) -> Nodes:
    """Images as points of the support; those that round to its edge are moved inside by one rounding."""
    if kind.states is not None:
        known = jnp.stack([images == state for state in kind.states]).any(0)
        return as_nodes(kind, jnp.where(known, images, jnp.nan))
    return as_nodes(kind, COORDINATES[kind.coordinates[-1]].inside(images))


def log_message(message: Family, nodes: Nodes) -> Array:
    """η·t(x) at the nodes, without rounding of 1 − x."""
    return message._log_message(nodes.coordinate, nodes.x)


def window(cavity: Family) -> tuple[jax.Array, jax.Array]:
    """Where all but 1e-16 of a proper distribution is, in its coordinate."""
    name = cavity.coordinates[-1]
    mean, reach = jnp.asarray(cavity.mean_in(name)), _REACH_NORMAL * jnp.sqrt(cavity.variance_in(name))
    below, above = (
        reach if rate is None else jnp.maximum(reach, _REACH_EXPONENTIAL / rate) for rate in cavity._tails()
    )
    return mean - below, mean + above


def nodes_of_cavity(cavity: Family, count: int) -> Nodes:
    """A grid over all of a proper distribution: [−12, 12] standard deviations about the mean of the coordinate."""
    name = cavity.coordinates[-1]
    mean, sd = jnp.asarray(cavity.mean_in(name)), jnp.sqrt(cavity.variance_in(name))
    unit = jnp.linspace(-REACH, REACH, count).reshape(count, *(1,) * mean.ndim)
    return to_nodes(type(cavity), mean + sd * unit, jnp.log(sd * (unit[1] - unit[0])))


def project(kind: type[Family], nodes: Nodes, log_weights: jax.Array) -> Any:
    """The member of a family that matches the expected statistics under these weights."""
    return kind._project_points(nodes.coordinate, nodes.x, log_weights)


def tilted_natural(kind: type[Family], nodes: Nodes, log_weights: jax.Array, incoming: Family) -> Any:
    """The message: the projection divided by the incoming message."""
    tilted = project(kind, nodes, jnp.broadcast_to(log_weights, nodes.x.shape))
    return jax.tree.map(lambda a, b: a - b, tilted, incoming)
