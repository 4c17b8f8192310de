"""Numbers of parents beside indicators of values that many rows have, as zeros of a dose: effects may jump there."""

from dataclasses import dataclass

import numpy as np

from meanmap.bp.frequent import frequent

__all__ = ["FrequentValues"]


@dataclass(frozen=True, eq=False)
class FrequentValues:
    """Values with an indicator of their own, as if a label said which rows have them: whoever never takes a drug may
    differ from those who take little of it, and a smooth function of the dose would mix both.

    Attributes
    ----------
    columns, values : arrays (A,)
        The column of each, and its value.

    Examples
    --------
    >>> dose = np.append(np.zeros(40), np.arange(1.0, 41.0))[:, None]
    >>> FrequentValues.of(dose)(np.array([[0.0], [7.0]])).tolist()
    [[0.0, 1.0], [7.0, 0.0]]
    """

    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> "FrequentValues":
        """Those of the columns of rows (n, q) that have more than two values."""
        numbers = [j for j, column in enumerate(rows.T) if ((column != column.min()) & (column != column.max())).any()]
        found = [frequent(rows[:, j]) for j in numbers]
        columns = np.repeat(np.array(numbers, dtype=int), [len(each) for each in found])
        return cls(columns, np.concatenate([np.zeros(0), *found]))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows (m, q) with zeros and ones on their right, (m, q + A)."""
        return np.concatenate([rows, rows[:, self.columns] == self.values], axis=1)
