"""The floor of messages: learned messages dip below zero where the truth is nearly zero."""

import numpy as np

from meanmap.core.errors import ParameterError

__all__ = ["FLOOR", "raised", "to_one", "typical"]

# Values are raised to this share of the largest value of a message, because its product with others could otherwise
# change the sign of all later messages; and to this share of the mean likelihood of an observed variable.
FLOOR = 1e-3


def raised(message: np.ndarray, floor: float | None) -> np.ndarray:
    """A message (..., N) at the points of its receiver, scaled to largest value 1 and floored; ones where nothing
    positive is left. The floor is a share of the mean, as if the observation were uninformative with that probability;
    a share of the largest value would dominate narrow messages.
    """
    top = message.max(axis=-1, keepdims=True)
    scaled = message / np.where(top > 0, top, 1)
    return np.where(top > 0, scaled if floor is None else np.maximum(scaled, floor * typical(scaled)), 1.0)


def typical(scaled: np.ndarray) -> np.ndarray:
    """The mean of a message's values, those below zero as zero, (..., 1)."""
    return np.maximum(scaled, 0.0).mean(axis=-1, keepdims=True)


def to_one(values: np.ndarray, floor: float | None) -> np.ndarray:
    """Products (..., G) of messages over their sums; refused where too little of one is above zero to be a belief."""
    total = values.sum(axis=-1, keepdims=True)
    if floor is None and not (3 * total > np.abs(values).sum(axis=-1, keepdims=True)).all():
        raise ParameterError(
            "with floor=None negative values of messages leave a belief at least half as much mass below zero as "
            f"above: pass a floor, {FLOOR} by default."
        )
    if not (total > 0).all():
        raise ParameterError(
            f"with floor={floor} messages contradict each other, and no point of a variable has any mass left: "
            "pass a floor above zero."
        )
    return values / total
