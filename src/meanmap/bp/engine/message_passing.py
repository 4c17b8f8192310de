"""The interface between a run and its schedule: everything fixed while messages are sent, and the ways to send them.

The method `run` of a schedule (`graphs.Schedule`) takes a `MessagePassing` and returns what was `Sent`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.blocks import sequential, splashes
from meanmap.bp.engine.flooding import flood, flood_differentiably
from meanmap.bp.engine.messages import residual
from meanmap.bp.engine.residual import by_residual
from meanmap.bp.engine.settled import pass_and_read
from meanmap.bp.engine.spread import spread_flood
from meanmap.bp.engine.terms import Terms
from meanmap.bp.engine.two_pass import Passes
from meanmap.core.anew import compiled_anew
from meanmap.core.errors import KindError
from meanmap.core.points import on_device
from meanmap.graphs import Graph

__all__ = ["MessagePassing", "Sent"]


@dataclass(frozen=True, eq=False)
class Sent:
    """The end of a run: messages (2 |E|, B, L), steps, the change in each step, and whether messages converged.

    `read` holds the beliefs if the same program computed them.
    """

    messages: Any
    steps: Any
    trace: Any
    settled: Any
    read: Any = None


@dataclass(frozen=True, eq=False)
class MessagePassing:
    """The state of a run and the operations available to schedules.

    Attributes
    ----------
    graph : Graph
    terms : Terms
        Layout, operators, own factors, given messages and settings, fixed for this run.
    passes : Passes or None
        The rooted forest, for schedules that need it.
    traced : bool
        Whether this run is compiled into a larger program.
    potentials : bool
        Whether operators are potentials of a probability distribution.
    """

    graph: Graph
    terms: Terms
    passes: Passes | None
    traced: bool
    potentials: bool

    def silence(self) -> jax.Array:
        """Uninformative messages (rows + 1, B, L), except for those that are given."""
        return self._placed.silence()

    def sweep(self, messages: jax.Array) -> tuple[jax.Array, float]:
        """Update all messages in parallel; also returns the largest change."""
        new = _swept(self._placed, messages)
        return new, float(residual(new, messages))

    def sent(self, messages: jax.Array, steps: int, trace: Sequence[float]) -> Sent:
        """The end of a run, which converged if the last change is within the tolerance."""
        changes = np.asarray(trace, dtype=float)
        settled = bool(changes.size == 0 or changes[-1] <= float(self.terms.settings.tolerance))
        return Sent(_arrived(messages, self.terms), steps, changes, settled)

    def two_passes(self) -> Sent:
        """Inwards and outwards on a forest."""
        assert self.passes is not None
        messages, read = pass_and_read(self.passes, self.terms, self.potentials)
        return Sent(messages, 2, np.empty(0), True, read)

    def flood(self, max_sweeps: int, mesh: jax.sharding.Mesh | None = None) -> Sent:
        """Update all messages in parallel, sweep after sweep; on graphs with cycles only this is differentiable.

        With a mesh, nodes are divided among its devices.
        """
        if mesh is not None:
            if self.traced:
                raise KindError("a run on several devices cannot be part of a larger program: leave mesh= out there.")
            messages, steps, trace, read = spread_flood(self.graph, self.terms, mesh, max_sweeps, self.potentials)
            settled = bool(trace.size == 0 or trace[-1] <= float(self.terms.settings.tolerance))
            return Sent(on_device(messages), steps, trace, settled, on_device(read))
        if self.traced:
            messages, count, trace = flood_differentiably(self._placed, max_sweeps)
            left = trace[jnp.maximum(count - 1, 0)]
            return Sent(_arrived(messages, self.terms), count, np.empty(0), left <= self.terms.settings.tolerance)
        messages, count, trace = flood(self._placed, max_sweeps)
        return self.sent(messages, int(count), np.asarray(trace)[: int(count)].tolist())

    def node_by_node(self, max_sweeps: int) -> Sent:
        """Forwards and backwards through the nodes."""
        return self.sent(*sequential(self.graph, self._placed, max_sweeps))

    def most_changed_first(self, max_sweeps: int, at_once: int) -> Sent:
        """Always the messages that would change most."""
        most = max_sweeps * max(len(self.terms.layout.row), 1)
        messages, count, left = by_residual(self._placed, at_once, most)
        return self.sent(messages, int(count), [float(left)])

    def splashes(self, max_sweeps: int, size: int) -> Sent:
        """Repeat two passes around the node whose messages changed most."""
        return self.sent(*splashes(self.graph, self._placed, max_sweeps, size))

    @property
    def _placed(self) -> Terms:
        """The terms with given messages at the rows where they are received."""
        return self.terms.by_row()


@compiled_anew
@eqx.filter_jit
def _swept(terms: Terms, messages: jax.Array) -> jax.Array:
    return terms.settings.damped(terms.send_all(messages), messages)


def _arrived(messages: jax.Array, terms: Terms) -> jax.Array:
    """Messages by edge from those by row, as one small program."""
    return jnp.take(messages, terms.layout.row, axis=0, mode="clip")
