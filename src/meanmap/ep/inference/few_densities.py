"""The log density of a few unknown numbers and the functions that join them, compiled, at draws of the numbers."""

from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.compiling import compiled_values
from meanmap.core.types import Array
from meanmap.ep.lines import Nodes, log_message, project
from meanmap.ep.oracles.oracle import spread
from meanmap.families import Bernoulli
from meanmap.families.line import COORDINATES

__all__ = ["Function", "inside_at", "logs_at", "moved", "nodes_at"]

# Steps of a move by Hamiltonian dynamics, and the share of moves that their length aims at.
_LEAPS, _TAKEN = 8, 0.8


class Function(eqx.Module):
    """A function of numbers: its incoming messages, which members are real, and where its numbers are.

    Attributes
    ----------
    output : str or None
        The name of what it gives.
    seen : dict
        By position of an argument that another function gives its name, or of a plate of numbers its place among all
        variables that are drawn, and for each row the member.
    columns : dict
        By position of an argument the number or vector that it is; members of a plate are among `seen`.
    labels : dict
        By position of a label, the log weights of its two values, and the number whose logit is added to the second.
    """

    factor: Any
    incoming: tuple[Any, ...]
    real: Any
    columns: dict[int, int]
    labels: dict[int, tuple[Any, int | None]]
    seen: dict[int, tuple[str | int, Any]]
    output: str | None


def nodes_at(priors: tuple[Any, ...], coordinates: Any) -> list[Nodes]:
    """Of each number, vector, or plate of numbers."""
    found, first = [], 0
    for prior in priors:
        size = prior.dimension * int(np.prod(prior.shape))
        own, line = coordinates[:, first : first + size], COORDINATES[prior.coordinates[-1]]
        first, weight = first + size, line.log_jacobian(own).sum(1)
        own = own if prior.event_shape or prior.shape else own[:, 0]
        found.append(Nodes(own, line.x(own), weight))
    return found


def _plates(priors: tuple[Any, ...], nodes: list[Nodes]) -> dict[Any, Any]:
    """By its place, the members of each plate at draws."""
    return {at: own.x.T for at, (prior, own) in enumerate(zip(priors, nodes, strict=True)) if prior.shape}


def _over_members(prior: Any, each: Array) -> Array:
    """Of draws (draws, members) of a plate, the sum over members; others as they are."""
    return each.sum(-1) if prior.shape else each


def _weighed(function: Function, nodes: list[Nodes], given: dict[Any, Any]) -> tuple[Any, Any, Any]:
    """For each choice of labels the log factor of members at draws; what outputs take, and what is undefined.

    `given` is by name what other functions give, and by place what plates are, of their members at draws.
    """
    size, parts, undefined, images = function.real.shape[0], {}, False, None
    numbers = {position: nodes[column].x for position, column in function.columns.items()}
    count = len(nodes[0].x)
    incoming = spread(function.incoming, size)
    seen = {position: given[name][index] for position, (name, index) in function.seen.items()}
    for chosen in product((0, 1), repeat=len(function.labels)):
        told = {at: jnp.full(count, float(value)) for at, value in zip(function.labels, chosen, strict=True)}

        def one(came: tuple[Any, ...], own: dict[int, Any], told: dict[int, Any] = told) -> Any:
            return function.factor.weigh(numbers | told | own, came, jnp.asarray(1.0), jax.random.key(0))

        found, outputs, bad = jax.vmap(one)(incoming, seen)
        for value, (weights, column) in zip(chosen, function.labels.values(), strict=True):
            found = found + weights[:, value, None]
            if column is not None:
                found = found - jax.nn.softplus(-nodes[column].coordinate if value else nodes[column].coordinate)
        parts[chosen], undefined = found, undefined | bad
        images = next(iter(outputs.values()), None)
        if images is not None:
            # A flat message says nothing about the largest numbers either.
            flat = jnp.stack([leaf == 0 for leaf in jax.tree.leaves(incoming[-1])]).all(0)[:, None]
            parts[chosen] = jnp.where(flat & jnp.isnan(found) & jnp.isfinite(images.x), 0.0, found)
    return parts, images, undefined


def _logs(priors: tuple[Any, ...], told: tuple[Any, ...], functions: tuple[Function, ...], coordinates: Array) -> Any:
    """At coordinates (draws, numbers)."""
    nodes = nodes_at(priors, coordinates)
    before, total = jnp.zeros(len(coordinates)), jnp.zeros(len(coordinates))
    undefined = jnp.zeros(len(coordinates), bool)
    for prior, message, own in zip(priors, told, nodes, strict=True):
        before += _over_members(prior, log_message(prior, own) - prior._log_normaliser()) + own.log_weight
        total += _over_members(prior, log_message(message, own))
    given = _plates(priors, nodes)
    for function in functions:
        parts, images, bad = _weighed(function, nodes, given)
        if images is not None:
            given[function.output] = images.x
        found = jax.nn.logsumexp(jnp.stack(list(parts.values())), 0) if len(parts) > 1 else parts[()]
        total += jnp.where(function.real[:, None], found, 0.0).sum(0)
        undefined |= (function.real[:, None] & bad).any(0)
    return before, total, undefined


@compiled_values
def logs_at(priors: tuple[Any, ...], told: tuple[Any, ...], functions: tuple[Function, ...], blocks: Array) -> Any:
    """Of blocks of coordinates, the log of the prior density and of all else, and where a function is undefined."""
    return jax.lax.map(lambda coordinates: _logs(priors, told, functions, coordinates), blocks)


@compiled_values
def moved(
    priors: tuple[Any, ...], told: tuple[Any, ...], functions: tuple[Function, ...], begun: Any, moves: Any
) -> tuple[Array, Array, Array]:
    """Chains (chains, numbers) after each of some moves by Hamiltonian dynamics, the shares of moves that were
    accepted, and the length of the steps in the end.

    `begun` are the places of the chains, the spread of each number, and the length of the steps in these; `moves` are
    by move the momenta, the logs of uniform numbers, and by how much the log length follows the share accepted.
    """
    places, spread, length = begun

    def height(units: Array) -> Array:
        before, total, _ = _logs(priors, told, functions, units * spread)
        return before + total

    slope = jax.grad(lambda units: height(units).sum())

    def move(now: Any, noise: Any) -> Any:
        units, log_length = now
        momenta, log_uniform, follow = noise
        step = jnp.exp(log_length)

        def leap(_: Any, state: Any) -> Any:
            x, p = state
            x = x + step * p
            return x, p + step * slope(x)

        half = momenta + step / 2 * slope(units)
        x, p = jax.lax.fori_loop(0, _LEAPS, leap, (units, half))
        p = p - step / 2 * slope(x)
        gained = height(x) - height(units) + ((momenta**2).sum(1) - (p**2).sum(1)) / 2
        taken = log_uniform < gained  # which NaN is not
        share = jnp.where(jnp.isnan(gained), 0.0, jnp.exp(jnp.minimum(gained, 0.0))).mean()
        units = jnp.where(taken[:, None], x, units)
        return (units, log_length + follow * (share - _TAKEN)), (units * spread, share)

    (_, log_length), (found, shares) = jax.lax.scan(move, (places / spread, jnp.log(length)), moves)
    return found, shares, jnp.exp(log_length)


@compiled_values
def inside_at(priors: tuple[Any, ...], functions: tuple[Function, ...], coordinates: Array) -> Any:
    """For each function the beliefs about its labels, by position, and about what it gives, by draws."""
    found, nodes = [], nodes_at(priors, coordinates)
    given = _plates(priors, nodes)
    for function in functions:
        parts, images, _ = _weighed(function, nodes, given)
        laws = {}
        share: Any = jax.nn.softmax(jnp.stack(list(parts.values())), 0) if function.labels else None
        for at, position in enumerate(function.labels):
            second = share[np.array([chosen[at] for chosen in parts], bool)].sum(0).mean(1)
            laws[position] = Bernoulli.from_natural(jnp.log(second) - jnp.log1p(-second))
        out = None
        if images is not None:
            given[function.output] = images.x
            kind = type(function.incoming[-1])
            turned = Nodes(images.coordinate.T, images.x.T, jnp.zeros(()))
            # Behind a barrier, as the compiler takes seconds to reduce so many zeros.
            out = project(kind, turned, jax.lax.optimization_barrier(jnp.zeros(turned.x.shape)))
        found.append((laws, out))
    return found
