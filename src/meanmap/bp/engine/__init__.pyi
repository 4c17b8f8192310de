from .message_passing import MessagePassing, Sent
from .messages import Given
from .operators import EdgeMatrices, EdgeOperators, Factored
from .propagate import Engine, Propagation

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
