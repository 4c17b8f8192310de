"""How columns moved, in a table of words."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["in_lines", "rule_of", "table_of"]

# This many batches are drawn beside a column, and cells have at most this many characters.
MOST_DRAWN, MOST_CHARACTERS = 40, 48
BARS = "▁▂▃▄▅▆▇█"


def rule_of(monitor: Any) -> str:
    """When an alarm is raised, and how often without drift."""
    return (
        f"an alarm is raised if the evidence exceeds {monitor.limit:.2f} or the p-value of a batch is at most "
        f"{monitor.pvalue_limit:.2g}: without drift, one in {monitor.run_length:g} batches"
    )


def table_of(found: Sequence[Mapping[str, Any]], reference: str, span: str) -> list[list[str]]:
    """A row for each column after a header, with what the reference and the batches are called."""
    pvalues = ("" if each["pvalue"] is None else f"{each['pvalue']:.3g}" for each in found)
    return [
        ["what", "column's p-value", reference, span, "difference (simultaneous 95 %)", "over all batches"],
        *(
            [each["what"], pvalue, *each["cells"], drawn(each["over time"])]
            for each, pvalue in zip(found, pvalues, strict=True)
        ),
    ]


def drawn(values: Sequence[float]) -> str:
    """Values as bars from the lowest to the highest.

    Examples
    --------
    >>> drawn([0.0, 1.0, 2.0, 7.0])
    '▁▂▃█'
    """
    numbers = np.array(values[-MOST_DRAWN:])
    if not len(numbers):
        return ""
    low, high = numbers.min(), numbers.max()
    places = (numbers - low) / (high - low if high > low else 1.0) * (len(BARS) - 1)
    return "".join(BARS[round(float(place))] for place in places)


def in_lines(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells as aligned lines.

    Examples
    --------
    >>> print(in_lines([["what", "p-value"], ["mean weight", "0.01"]]))
      what         p-value
      mean weight  0.01
    """
    rows = [[_short(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _short(cell: str) -> str:
    """A cell shortened to one line."""
    line = " ".join(cell.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…"
