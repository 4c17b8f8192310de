"""Whether the dots in the numbers of a column may separate thousands: 1.032 beside 999."""

import re
from collections.abc import Collection, Sequence

from meanmap.io.cells import ABSENT, MISSING

__all__ = ["Dots"]

# Whole numbers with dots between thousands, and whole numbers too small for one.
DOTTED, SHORT = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+", re.ASCII), re.compile(r"[-+]?\d{1,3}", re.ASCII)


class Dots:
    """What the cells of a column show.

    Attributes
    ----------
    dotted : str or None
        A number with one dot, before three digits, if there is one.
    short : str or None
        A whole number below 1000.
    possible : bool
        Whether all numbers are of these two kinds: decimal points seldom stand before three digits in each.
    """

    def __init__(self, marks: Collection[str]):
        self.marks = marks
        self.dotted: str | None = None
        self.short: str | None = None
        self.possible = True

    def look(self, cells: Sequence[str]) -> None:
        """Take in some cells."""
        for cell in cells if self.possible else ():
            word = cell.strip()
            if DOTTED.fullmatch(word):
                self.dotted = self.dotted or (word if word.count(".") == 1 else None)
            elif SHORT.fullmatch(word):
                self.short = self.short or word
            elif word.lower() not in MISSING and word != ABSENT and word not in self.marks:
                self.possible = False
                return
