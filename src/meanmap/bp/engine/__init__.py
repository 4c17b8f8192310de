"""The engine: from a graph, operators and own factors to messages, beliefs and a report. It does not see data."""

from meanmap.bp.engine.message_passing import MessagePassing, Sent
from meanmap.bp.engine.messages import Given
from meanmap.bp.engine.operators import EdgeMatrices, EdgeOperators, Factored
from meanmap.bp.engine.propagate import Engine, Propagation

__all__ = [
    "EdgeMatrices",
    "EdgeOperators",
    "Engine",
    "Factored",
    "Given",
    "MessagePassing",
    "Propagation",
    "Sent",
]
