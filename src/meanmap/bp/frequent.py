"""Values of a column that many rows have, such as the zeros of costs or a top code."""

import numpy as np

__all__ = ["LEAST_OTHERS", "MOST", "OFTEN", "few_values", "frequent"]

# A value is frequent if at least a share OFTEN of the rows has it, LEAST_OFTEN rows at least, and it is STANDS_OUT
# times as frequent as other values. There are at most MOST such values, and at least LEAST_OTHERS other rows.
OFTEN, LEAST_OFTEN, STANDS_OUT, MOST, LEAST_OTHERS = 0.05, 10, 4, 3, 30
# A column has few values if there are at most this many, and on average this many rows for each.
FEW_VALUES, ROWS_EACH = 20, 5


def frequent(values: np.ndarray) -> np.ndarray:
    """Values of many rows (A,), rising; none if there are few others."""
    found, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    often, counts = found[order], np.append(counts[order], 0)
    least, number = max(OFTEN * len(values), LEAST_OFTEN), 0
    for k in range(1, min(MOST, len(often)) + 1):
        apart = counts[k - 1] >= max(least, STANDS_OUT * counts[k])
        number = k if apart and len(values) - counts[:k].sum() >= LEAST_OTHERS else number
    return np.sort(often[:number])


def few_values(values: np.ndarray) -> bool:
    """Whether a column has so few values that each has a bin to itself."""
    number = len(np.unique(values))
    return number <= FEW_VALUES and len(values) >= ROWS_EACH * number
