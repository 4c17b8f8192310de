"""The season of times, which smooth functions of time do not follow over several years."""

import numpy as np

from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.core.tables.kinds import DAY

__all__ = ["seasons"]

# Seconds.
YEAR = 365.2425 * DAY


def seasons(column: CodedColumn, values: np.ndarray) -> list[np.ndarray]:
    """Of standardised times (n, 1) that span more than a year, the cosine and the sine of the time of the year, each
    (n, 1); none for other columns.
    """
    if column.column.kind != "time":
        return []
    times = column.in_unit(values[:, 0])
    if np.ptp(times) <= YEAR:
        return []
    turn = 2 * np.pi * times / YEAR
    return [np.cos(turn)[:, None], np.sin(turn)[:, None]]
