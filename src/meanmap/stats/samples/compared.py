"""Tests of samples whose columns are also compared one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.schema import admitted
from meanmap.features.states.reading import Reading
from meanmap.stats.asked import Found, OfSamples
from meanmap.stats.samples.all_rows import AllRows
from meanmap.stats.samples.comparing import by_name, differences_of_all
from meanmap.stats.samples.differences import Differences
from meanmap.stats.samples.own_rows import OwnRows, own_rows
from meanmap.stats.shown import Shown

__all__ = ["OfComparedSamples"]


@dataclass
class OfComparedSamples(OfSamples):
    """A test of samples whose columns are also compared one by one, each on all rows in which it is observed.

    Attributes
    ----------
    came : list
        The samples, or the table of all groups, with their missing values.
    differences : Differences
        The differences of the columns.
    own : OwnRows
        The rows in which each column is observed.
    whole : AllRows or None
        All rows of each column, if some rows have missing values.
    reading : Reading or None
        How pieces of files are read.
    """

    came: list[Any] = field(default_factory=list)
    differences: Differences = field(default_factory=Differences)
    own: OwnRows = field(default_factory=OwnRows)
    whole: AllRows | None = None
    reading: Reading | None = None

    def answer(self) -> Any:
        """The result, by the steps that all tests share."""
        self.came = [] if self.by is None else self.parts[:1]
        return super().answer()

    def admit(self) -> None:
        """Handle missing values, kinds of columns, and which rows are exchangeable."""
        if self.by is None:
            self.came = self.parts
        super().admit()

    def compare(self) -> None:
        """Compare the columns."""
        names = list(map(str, self.names))
        self.own = own_rows(self.came, names, self.missing, self.kinds, self.by, self.said)
        samples = dict(zip(names, self.parts, strict=True))
        self.differences = differences_of_all(samples, design=self.exchange, own=self.own)
        if self.own.gaps:
            self.whole = AllRows.of(self.own, {name: by_name(sample, name) for name, sample in samples.items()})

    def draw(self, clean: Sequence[Any]) -> Shown | None:
        """The distribution of each column, in the rows in which it is compared."""
        first = [each.column for each in self.differences]
        return Shown.of(clean, self.names, self.paired, first, self.own.columns)

    def spread(self, came: Sequence[Any]) -> Shown | None:
        """As `draw`; files are read once more."""
        if not any(map(comes_in_pieces, came)):
            return self.draw(self.parts)
        some = super().spread(came)
        return some if some is None or self.reading is None else some.counted(came, self.reading)

    def compared(self, found: Found | None, reading: Reading | None) -> Found | None:
        """The outcome of a test in one pass, with the differences of columns if samples are in memory."""
        self.reading = reading
        if found is None or any(map(comes_in_pieces, self.parts)):
            return found
        if self.by is None:
            self.came = self.parts
            self.parts, _ = admitted(self.parts, self.names, self.missing, self.kinds, least=0)
        self.compare()
        more: dict[str, Any] = {"differences": self.differences}
        if self.whole is not None:
            more["alone"] = self.whole.pvalues(self.n_draws, self.random.generator)
        return replace(found, more={**found.more, **more})
