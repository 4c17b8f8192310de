"""The tilted distribution, factor times incoming messages, as one density on ℝᵈ: each input in the coordinate of its
family.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError
from meanmap.core.language import with_article
from meanmap.core.types import Array
from meanmap.ep.factor import FactorLike
from meanmap.ep.lines import Nodes, log_message, to_nodes

__all__ = ["Tilted", "check_smooth"]


def check_smooth(oracle: str, factor: FactorLike) -> None:
    """Raise unless the tilted distribution has derivatives."""
    instead = "type messages=ep.Stratified() or ep.ImportanceSampling()."
    if factor.random:
        raise KindError(f"{factor.name} is a random sampler, and {oracle} needs a density: {instead}")
    if factor.host:
        raise KindError(f"{factor.name} is not a JAX function, and {oracle} needs its derivatives: {instead}")
    for variable in factor.integrated():
        if not variable.family.smooth:
            kind = with_article(variable.family.__name__)
            raise KindError(f"{variable.name!r} of {factor.name} is {kind}, which has no derivatives: {instead}")


class Tilted(NamedTuple):
    """The tilted distribution of one member of a factor; u is the vector of the coordinates of all inputs."""

    factor: Any
    incoming: tuple[Any, ...]
    over: tuple[int, ...]
    power: Any

    @classmethod
    def of(cls, factor: FactorLike, incoming: tuple[Any, ...], power: Array) -> "Tilted":
        """The tilted distribution for these incoming messages."""
        return cls(factor, incoming, factor.inputs(incoming), power)

    def centre(self) -> jax.Array:
        """The mean of the cavity."""
        return jnp.concatenate([jnp.atleast_1d(m.mean_in(m.coordinates[-1])) for m in self._messages()])

    def scale(self) -> jax.Array:
        """The standard deviations of the cavity."""
        return jnp.concatenate([jnp.atleast_1d(jnp.sqrt(m.variance_in(m.coordinates[-1]))) for m in self._messages()])

    def nodes(self, u: jax.Array) -> list[Nodes]:
        """The points of each input where u, shape (points, d), is; their weights are the Jacobians."""
        found, at = [], 0
        for message in self._messages():
            if message.event_shape:
                x = u[:, at : at + message.event_shape[0]]
                found.append(Nodes(x, x, jnp.zeros(())))
                at += message.event_shape[0]
            else:
                found.append(to_nodes(type(message), u[:, at], jnp.zeros(())))
                at += 1
        return found

    def log_cavity(self, nodes: list[Nodes]) -> jax.Array:
        """The log of the incoming messages in the coordinates, as a function with their natural parameters."""
        pairs = zip(self._messages(), nodes, strict=True)
        return jnp.stack([log_message(message, grid) + grid.log_weight for message, grid in pairs]).sum(0)

    def weigh(self, u: jax.Array) -> tuple[jax.Array, dict[int, Nodes]]:
        """The log of the tilted distribution at points, and the nodes of outputs."""
        nodes = self.nodes(u)
        values = {at: grid.x for at, grid in zip(self.over, nodes, strict=True)}
        log_factor, outputs, _ = self.factor.weigh(values, self.incoming, self.power, None)
        return self.log_cavity(nodes) + log_factor, outputs

    def log_density(self, u: jax.Array) -> jax.Array:
        """The log of the tilted distribution at one u."""
        return self.weigh(u[None])[0][0]

    def outputs(self, u: jax.Array) -> dict[int, jax.Array]:
        """The coordinates of outputs at one u."""
        return {at: grid.coordinate[0] for at, grid in self.weigh(u[None])[1].items()}

    def _messages(self) -> list[Any]:
        return [self.incoming[at] for at in self.over]
