"""Scalar families on the whole line: the coordinate in which quadrature and stratified sampling are done.

A Normal is integrated over x, a Gamma over log x and a Beta over logit x: there a density has exponential tails and no
edge, so that the trapezium rule converges faster than any power of its step.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.families import Bernoulli, Beta, Family, Gamma, Normal

__all__ = ["LINES", "REACH", "Nodes", "halved", "nodes_of_cavity", "project", "refined", "tilted_natural", "to_nodes"]

# How many standard deviations the first grid reaches to either side. The tails of log x for a Gamma and of logit x for
# a Beta decay like exp(−a |c|), which is beyond 1e-16 of the peak at 37/a, and the standard deviation is 1/a or more.
REACH = 12.0
_FIRST = 97

# The second grid spans where the integrand is within this factor e⁻³⁷ < 1e-16 of its peak.
_DEPTH = 37.0

LINES = (Normal, Gamma, Beta, Bernoulli)


class Nodes(NamedTuple):
    """Points c of the coordinate, along a new first axis, x(c), and the log of the rule's weights."""

    coordinate: jax.Array
    x: jax.Array
    log_weight: jax.Array


def to_nodes(kind: type, coordinate: jax.Array, log_step: jax.Array) -> Nodes:
    """Nodes at these points of the coordinate, with a step of this size: the Jacobian goes into the weight."""
    if issubclass(kind, Gamma):
        coordinate = jnp.clip(coordinate, -690.0, 690.0)  # exp stays a number
        return Nodes(coordinate, jnp.exp(coordinate), log_step + coordinate)
    if issubclass(kind, Beta):
        jacobian = -jax.nn.softplus(coordinate) - jax.nn.softplus(-coordinate)
        return Nodes(coordinate, jax.nn.sigmoid(coordinate), log_step + jacobian)
    return Nodes(coordinate, coordinate, log_step + jnp.zeros_like(coordinate))


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


def nodes_of_cavity(cavity: Family, count: int = _FIRST) -> Nodes:
    """A grid over the whole of a proper law: [−12, 12] standard deviations about the mean of the coordinate."""
    if isinstance(cavity, Bernoulli):
        states = jnp.array([0.0, 1.0]).reshape(2, *(1,) * len(cavity.shape))
        return to_nodes(Bernoulli, jnp.broadcast_to(states, (2, *cavity.shape)), jnp.zeros(()))
    name = cavity.coordinates[-1]
    mean, sd = cavity.mean_in(name), jnp.sqrt(cavity.variance_in(name))
    unit = jnp.linspace(-REACH, REACH, count).reshape(count, *(1,) * mean.ndim)
    return to_nodes(type(cavity), mean + sd * unit, jnp.log(sd * (unit[1] - unit[0])))


def refined(kind: type, first: Nodes, log_tilted: jax.Array, count: int) -> Nodes:
    """A second grid where the integrand on the first one (weights included) is not negligible."""
    if issubclass(kind, Bernoulli):
        return first
    inside = log_tilted > log_tilted.max(0) - _DEPTH
    c = first.coordinate
    step = c[1] - c[0]
    low = jnp.where(inside, c, jnp.inf).min(0) - step
    high = jnp.where(inside, c, -jnp.inf).max(0) + step
    unit = jnp.linspace(0.0, 1.0, count).reshape(count, *(1,) * low.ndim)
    return to_nodes(kind, low + (high - low) * unit, jnp.log((high - low) / (count - 1)))


def halved(kind: type, log_weights: jax.Array) -> jax.Array:
    """The same rule with every other node left out; the states of a Bernoulli cannot be."""
    if issubclass(kind, Bernoulli):
        return log_weights
    index = jnp.arange(log_weights.shape[0]).reshape(-1, *(1,) * (log_weights.ndim - 1))
    return jnp.where(index % 2 == 0, log_weights + jnp.log(2.0), -jnp.inf)


def project(kind: type, nodes: Nodes, log_weights: jax.Array) -> Any:
    """The member of a family that matches the expected statistics under these weights."""
    if issubclass(kind, Beta):
        weights = jax.nn.softmax(log_weights, 0)
        c = nodes.coordinate
        return kind.from_moments((-weights * jax.nn.softplus(-c)).sum(0), (-weights * jax.nn.softplus(c)).sum(0))
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
