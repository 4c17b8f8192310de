"""Scalar families on the whole line: the coordinate in which quadrature and stratified sampling are done.

A Normal is integrated over x, a Gamma over log x and a Beta over logit x: there a density has exponential tails and no
edge, so that the trapezium rule converges faster than any power of its step.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.families import Bernoulli, Beta, Family, Gamma, Normal
from meanmap.families.inversion import shape_from_log_gap

__all__ = [
    "LINES",
    "REACH",
    "Nodes",
    "as_nodes",
    "log_message",
    "nodes_of_cavity",
    "project",
    "tilted_natural",
    "to_nodes",
    "values",
    "window",
]

# How many standard deviations a grid over a cavity reaches to either side.
REACH = 12.0

# All but 1e-16 of a Normal, and of its second moment, is within so many standard deviations. The log of a Gamma falls
# like a c towards −∞ and more than that of a Normal towards ∞; the logit of a Beta like a c and b c to either side.
_REACH_NORMAL = 9.5
_REACH_EXPONENTIAL = 45.0

# Up to here exp(c) and exp(−c) are numbers. The coordinate may go on beyond; a function of x is asked at this end.
_LARGEST_LOG = 690.0

LINES = (Normal, Gamma, Beta, Bernoulli)


class Nodes(NamedTuple):
    """Points c of the coordinate, along a new first axis, x(c), and the log of the rule's weights."""

    coordinate: jax.Array
    x: jax.Array
    log_weight: jax.Array


def to_nodes(kind: type, coordinate: jax.Array, log_step: jax.Array) -> Nodes:
    """Nodes at these points of the coordinate, with a step of this size: the Jacobian goes into the weight."""
    if issubclass(kind, Gamma):
        x = jnp.exp(jnp.clip(coordinate, -_LARGEST_LOG, _LARGEST_LOG))
        return Nodes(coordinate, x, log_step + coordinate)
    if issubclass(kind, Beta):
        jacobian = -jax.nn.softplus(coordinate) - jax.nn.softplus(-coordinate)
        x = jax.nn.sigmoid(jnp.clip(coordinate, -_LARGEST_LOG, _LARGEST_LOG))
        return Nodes(coordinate, x, log_step + jacobian)
    return Nodes(coordinate, coordinate, log_step + jnp.zeros_like(coordinate))


def values(kind: type, nodes: Nodes) -> list[jax.Array]:
    """What has to have moments for a projection: the coordinate, and x itself where its mean is a statistic."""
    return [nodes.coordinate, nodes.x] if issubclass(kind, Gamma) else [nodes.coordinate]


def as_nodes(kind: type, x: jax.Array) -> Nodes:
    """Given points of a family, with no rule's weights."""
    name = getattr(kind, "coordinates", ("x",))[-1]
    if name == "log":
        return Nodes(jnp.log(x), x, jnp.zeros(()))
    return Nodes(jnp.log(x) - jnp.log1p(-x) if name == "logit" else x, x, jnp.zeros(()))


def log_message(message: Family, nodes: Nodes) -> jax.Array:
    """η·t(x) at the nodes, without rounding of 1 − x."""
    if isinstance(message, Gamma):
        return message.coefficient_log_x * nodes.coordinate + message.coefficient_x * nodes.x
    if isinstance(message, Beta):
        c = nodes.coordinate
        return -message.coefficient_log_x * jax.nn.softplus(-c) - message.coefficient_log_complement * jax.nn.softplus(
            c
        )
    if isinstance(message, Normal):
        return (message.precision_mean - message.precision * nodes.x / 2) * nodes.x
    return message.log_unnormalised(nodes.x)


def window(cavity: Family) -> tuple[jax.Array, jax.Array]:
    """Where all but 1e-16 of a proper law is, in its coordinate."""
    name = cavity.coordinates[-1]
    mean, reach = cavity.mean_in(name), _REACH_NORMAL * jnp.sqrt(cavity.variance_in(name))
    below = above = reach
    if isinstance(cavity, Gamma):
        below = jnp.maximum(reach, _REACH_EXPONENTIAL / cavity.shape_parameter)
    if isinstance(cavity, Beta):
        below = jnp.maximum(reach, _REACH_EXPONENTIAL / cavity.a)
        above = jnp.maximum(reach, _REACH_EXPONENTIAL / cavity.b)
    return mean - below, mean + above


def nodes_of_cavity(cavity: Family, count: int) -> Nodes:
    """A grid over the whole of a proper law: [−12, 12] standard deviations about the mean of the coordinate."""
    name = cavity.coordinates[-1]
    mean, sd = cavity.mean_in(name), jnp.sqrt(cavity.variance_in(name))
    unit = jnp.linspace(-REACH, REACH, count).reshape(count, *(1,) * mean.ndim)
    return to_nodes(type(cavity), mean + sd * unit, jnp.log(sd * (unit[1] - unit[0])))


def project(kind: type, nodes: Nodes, log_weights: jax.Array) -> Any:
    """The member of a family that matches the expected statistics under these weights."""
    if issubclass(kind, Beta):
        weights = jax.nn.softmax(log_weights, 0)
        c = nodes.coordinate
        return kind.from_moments((-weights * jax.nn.softplus(-c)).sum(0), (-weights * jax.nn.softplus(c)).sum(0))
    if issubclass(kind, Gamma):
        # log E[x] − E[log x] as a mean of r − 1 − log r with r = x/E[x], from log x itself: x may be below all numbers.
        weights = jax.nn.softmax(log_weights, 0)
        mean = (weights * nodes.x).sum(0)
        away = jnp.minimum(nodes.coordinate - jnp.log(mean), _LARGEST_LOG)
        gap = (weights * (jnp.expm1(away) - away)).sum(0)
        shape = shape_from_log_gap(jnp.where(gap > 8 * jnp.finfo(gap.dtype).eps, gap, jnp.nan))
        return kind.from_natural(shape - 1, -shape / mean)
    projected = kind.from_weighted_samples(nodes.x, log_weights)
    if issubclass(kind, Normal):
        # Equal points differ by rounding alone: no Normal has that spread, and no numbers say so (as for a Gamma).
        rounding = 8 * jnp.finfo(nodes.x.dtype).eps * jnp.abs(nodes.x).max(0)
        spread = projected.precision * rounding**2 < 1
        return jax.tree.map(lambda leaf: jnp.where(spread, leaf, jnp.nan), projected)
    return projected


def tilted_natural(kind: type, nodes: Nodes, log_weights: jax.Array, incoming: Family) -> Any:
    """The message: the projection over what came in."""
    tilted = project(kind, nodes, jnp.broadcast_to(log_weights, nodes.x.shape))
    return jax.tree.map(lambda a, b: a - b, tilted, incoming)
