"""Messages by quadrature, over one or two numbers: the trapezium rule where the tilted law has its mass."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.arrays import parameter
from meanmap.core.errors import KindError, ParameterError
from meanmap.ep import doubt
from meanmap.ep.factor import Answer
from meanmap.ep.lines import LINES, Nodes, halved, log_message, nodes_of_cavity, refined, tilted_natural
from meanmap.ep.oracle import Oracle

__all__ = ["Quadrature"]

# Nodes of the first, wide grid along each of two dimensions; one dimension can afford more.
_FIRST = {1: 97, 2: 49}
_DEFAULT = {1: 129, 2: 65}


class Quadrature(Oracle):
    """Messages of a black-box factor by the trapezium rule, in two rounds.

    The first grid spans the cavity, in the coordinate of its family (x, log x, logit x); the second spans where the
    integrand of the first is above e⁻³⁷ of its peak. For smooth factors the error is near rounding; the difference to
    the rule with every other node is reported as the error.

    Parameters
    ----------
    points : int, optional
        Nodes of the second grid along each dimension: 129 for one, 65 for two.

    Notes
    -----
    Only for factors that integrate over at most two numbers, and no sampler with randomness of its own. A factor with
    jumps is integrated with an error of one step. Cost: points + 97 calls of the factor a message, (points² + 2401) in
    two dimensions; all in one compiled program.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 4.0))
    >>> heavy = ep.Density(lambda z: -2 * jnp.log1p((z - 1) ** 2), z)
    >>> post = ep.infer(ep.FactorGraph(heavy), messages=ep.Quadrature(points=257))
    >>> round(float(post["z"].mean), 4)
    0.8697
    """

    points: int | None = eqx.field(static=True)

    def __init__(self, points: int | None = None):
        if points is not None:
            points = int(parameter(points, "points", axes=0, integer=True, at_least=9))
            points += 1 - points % 2  # odd, so that every other node is a rule too
        self.points = points

    def check(self, factor: Any) -> None:
        """At most two numbers, and no randomness."""
        if getattr(factor, "random", False):
            raise KindError(
                f"{factor.name} is a random sampler, which has no density to integrate: "
                "type messages=ep.Stratified() or ep.ImportanceSampling()."
            )
        for argument in factor.integrated():
            if argument.family not in LINES:
                raise KindError(
                    f"{argument.name!r} of {factor.name} is a {argument.family.__name__}; quadrature is over numbers. "
                    "Type messages=ep.ImportanceSampling() or ep.Laplace()."
                )
        if len(factor.integrated()) > 2:
            raise ParameterError(
                f"{factor.name} integrates over {len(factor.integrated())} variables; quadrature takes at most 2. "
                "Type messages=ep.ImportanceSampling() or ep.Laplace()."
            )

    def more(self, times: int) -> "Quadrature":
        """More nodes along each dimension."""
        return Quadrature((self.points or max(_DEFAULT.values())) * times)

    def member(self, factor: Any, incoming: tuple[Any, ...], power: Any, key: jax.Array) -> Answer:
        """Two rounds of the trapezium rule."""
        del key
        over = factor.inputs(incoming)
        kinds = [type(incoming[at]) for at in over]
        dimensions = len(over)
        first = [nodes_of_cavity(incoming[at], _FIRST[dimensions]) for at in over]
        log_tilted, _ = _tilted(factor, incoming, over, first, power)
        ranges = [_marginal(log_tilted, axis) for axis in range(dimensions)]
        count = self.points or _DEFAULT[dimensions]
        nodes = [
            refined(kind, grid, marginal, count) for kind, grid, marginal in zip(kinds, first, ranges, strict=True)
        ]
        log_tilted, outputs = _tilted(factor, incoming, over, nodes, power)
        coarse = log_tilted
        for axis, kind in enumerate(kinds):
            coarse = jnp.moveaxis(halved(kind, jnp.moveaxis(coarse, axis, 0)), 0, axis)
        both = jnp.stack([log_tilted, coarse])
        messages, errors = [None] * len(incoming), [None] * len(incoming)
        places = [
            (at, grid, jax.vmap(lambda w, axis=axis: _marginal(w, axis))(both))
            for axis, (at, grid) in enumerate(zip(over, nodes, strict=True))
        ]
        places += [(at, Nodes(*map(jnp.ravel, out)), both.reshape(2, -1)) for at, out in outputs.items()]
        doubts = []
        for at, grid, weights in places:
            fine, rough = _two_rules(incoming[at], grid, weights)
            messages[at], errors[at] = fine, jax.tree.map(lambda a, b: jnp.abs(a - b), fine, rough)
            belief, other = (jax.tree.map(jnp.add, message, incoming[at]) for message in (fine, rough))
            doubts.append(doubt.between(belief, other))
        return Answer(tuple(messages), jax.nn.logsumexp(log_tilted), tuple(errors), doubt=jnp.stack(doubts).max())


def _tilted(factor: Any, incoming: tuple[Any, ...], over: tuple[int, ...], nodes: list[Nodes], power: Any) -> tuple:
    """The log integrand, rule's weights included, on the product grid, and the values of outputs there."""
    sizes = tuple(grid.x.shape[0] for grid in nodes)
    values, log_weight = {}, jnp.zeros(sizes)
    for axis, (at, grid) in enumerate(zip(over, nodes, strict=True)):
        shape = tuple(size if k == axis else 1 for k, size in enumerate(sizes))
        values[at] = jnp.broadcast_to(grid.x.reshape(shape), sizes).reshape(-1)
        log_weight = log_weight + (grid.log_weight + log_message(incoming[at], grid)).reshape(shape)
    log_factor, outputs = factor.weigh(values, incoming, power, None)
    return log_factor.reshape(sizes) + log_weight, outputs


def _two_rules(incoming: Any, nodes: Nodes, log_weights: jax.Array) -> tuple[Any, Any]:
    """The message by all nodes, and by every other one."""
    found = jax.vmap(lambda w: tilted_natural(type(incoming), nodes, w, incoming))(log_weights)
    return jax.tree.map(lambda leaf: leaf[0], found), jax.tree.map(lambda leaf: leaf[1], found)


def _marginal(log_weights: jax.Array, axis: int) -> jax.Array:
    others = tuple(k for k in range(log_weights.ndim) if k != axis)
    return jax.nn.logsumexp(log_weights, others) if others else log_weights
