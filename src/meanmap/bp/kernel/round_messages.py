"""Messages of many rows of a table on a graph with cycles, sent by its schedule until they settle."""

from typing import Any

import numpy as np

from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.engine.messages import Given
from meanmap.bp.kernel.belief_weights import Arriving
from meanmap.core.points import bucket, on_device

__all__ = ["QUERIES_AT_ONCE", "RoundMessages"]

# Queries are answered this many at a time: enough for large matrix products, and one program serves any number.
QUERIES_AT_ONCE = 128


class RoundMessages:
    """As `RowMessages`, for graphs with cycles: what a query with the cells of each row gives.

    Parameters
    ----------
    model : FittedKernelGraph
        Its edges, and the engine that sends messages along them.
    there : array (n, B) of bool
        Which cells were seen.
    features : dict of arrays
        φ_t(x̄) of each directed edge that leaves a node that was seen anywhere, (B or 1, r).
    """

    def __init__(self, model: Any, there: np.ndarray, features: dict[int, np.ndarray]):
        self.model, self.there, self.features = model, there, features
        number, most = there.shape[1], model._inside.shape[1]
        size = bucket(number)
        known = np.zeros((len(model.messages), size), dtype=bool)
        known[:, number:] = True  # what fills up to `size` sends nothing
        values = np.ones((*known.shape, most))
        for e, phi in features.items():
            tells = there[model.graph.sources[e]]
            message = model.likelihoods[e].message(np.broadcast_to(phi, (number, phi.shape[1]))[tells])
            known[e, :number] = tells
            values[e, np.flatnonzero(tells), : message.shape[1]] = message
        own, given = np.repeat(model._inside[:, None], size, axis=1), Given(*on_device((known, values)))
        found = model._engine.run(on_device(model._operators), on_device(own), given, floor=FLOOR)
        self.report = found.report
        self._messages = np.asarray(found.messages)[:, :number]
        self._beliefs = np.asarray(found.beliefs)[:, :number]

    def outwards(self) -> None:
        """Nothing is left to be sent."""

    def weights(self, node: int) -> np.ndarray:
        """The belief (B, N) about a node from all that it hears, in rows where it was not seen; sums are one."""
        found = self._beliefs[node, :, : self.model.samples.nodes[node].count]
        return found / found.sum(axis=-1, keepdims=True)

    def heard(self, node: int) -> np.ndarray:
        """The number of messages to a node that say anything, (B,)."""
        graph = self.model.graph
        reached = self.there[graph.components == graph.components[node]].any(axis=0)
        return len(self.incoming(node)) * reached.astype(int)

    def incoming(self, node: int) -> list[int]:
        """The edges that lead to a node."""
        order, start = self.model.graph.outgoing
        return self.model.graph.against[order[start[node] : start[node + 1]]].tolist()

    def arriving(self, e: int) -> Arriving:
        """A message as functions: what is given and what is worked out, with coefficients of zero in other rows."""
        model = self.model
        t, back = int(model.graph.sources[e]), int(model.graph.against[e])
        likelihood, message, tells = model.likelihoods[e], model.messages[e], self.there[t][:, None]
        product = np.ones((len(tells), model.samples.nodes[t].count))
        for other in self.incoming(t):
            if other != back:
                product *= self._messages[other, :, : product.shape[1]]
        told = self.features[e] @ likelihood.inner if e in self.features else np.zeros((1, likelihood.inner.shape[1]))
        return [
            (likelihood.receiver, np.where(tells, told, 0.0), True),
            (message.receiver, np.where(tells, 0.0, product @ message.into), False),
        ]
