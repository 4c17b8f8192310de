"""Effect sizes: distances with intervals, in interpretable units."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.notes import in_few, note_table
from meanmap.core.values import Value, frame_of
from meanmap.plots.facts import Chart, Page, Section
from meanmap.plots.intervals import intervals_chart
from meanmap.plots.paged import Paged
from meanmap.stats.result import Interval
from meanmap.stats.samples.differences import Differences
from meanmap.stats.shown import Shown

__all__ = ["Effect", "doubt_about_mean"]

# The note on an interval of the distance that begins at 0.
FROM_ZERO = (
    "this distance alone leaves open whether there is any difference; a test, which also compares single columns and "
    "pairs of them, may still show one"
)
# With fewer rows in a sample its mean may not be approximately normal; coverage is tested from this number on.
FEW = 50


def doubt_about_mean(*sizes: int) -> tuple[str, ...]:
    """The note on intervals and tests that rely on the normal approximation of a mean of few rows."""
    return (f"the normal approximation of means is doubtful for {min(sizes)} rows.",) if min(sizes) < FEW else ()


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Paged, Value):
    """An effect size, with confidence intervals that may include zero.

    Made by `two_sample_effect`, `k_sample_effect`, `independence_effect` and
    `conditional_independence_effect`.

    Attributes
    ----------
    distance : Interval
        The distance between mean embeddings under `kernel`: MMD, the square root of HSIC, or the spread of the groups.
        It has no unit.
    share : Interval
        At least this share of the rows would have to change for the effect to vanish: the distance over the largest
        distance between any two rows, a lower bound of the total variation distance.
    shift : Interval or None
        For two samples: the shift of all numeric columns of the first sample, in standard deviations, that has the same
        distance as the two samples. It measures any difference (of means, spreads, shapes, relations) and has no sign:
        for means see `differences`. It is infinite if no shift has this distance.
    correlation : Interval or None
        For two variables: the square root of HSIC over the norms of both covariances, from 0 to 1.
    kernel : Kernel
        The mean of the default kernels, or the given one.
    confidence : float
        The confidence level: intervals have at least this coverage.
    method : str
        The quantity measured, in words.
    sizes : tuple of int
        Sample sizes.
    warnings : tuple of str
        Caveats.
    differences : sequence of ColumnDifference
        For two samples: means, shares and standard deviations of the columns, as `two_sample_test` gives them.
    shown : Shown or None
        What the page draws: the distribution of all rows of each sample, or at most 2000 rows of variables.
    """

    distance: Interval
    share: Interval
    shift: Interval | None
    correlation: Interval | None
    kernel: Any
    confidence: float
    method: str
    sizes: tuple[int, ...]
    warnings: tuple[str, ...] = ()
    differences: Differences = field(default_factory=Differences)
    shown: Shown | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The effect as plain Python values, ready for JSON."""
        intervals = {name: [each.estimate, each.low, each.high] for name, each in self._intervals.items()}
        rest: dict[str, Any] = {"confidence": self.confidence, "method": self.method, "kernel": repr(self.kernel)}
        rest |= self.differences.to_dict()
        return {**intervals, **rest, "sizes": list(self.sizes), "warnings": list(self.warnings)}

    def to_frame(self) -> Any:
        """A pandas frame with estimate, low and high of the distance, the share, and the shift or correlation."""
        sides = ("estimate", "low", "high")
        found = self._intervals
        return frame_of({side: [getattr(each, side) for each in found.values()] for side in sides}, list(found))

    @property
    def _intervals(self) -> dict[str, Interval]:
        named = {"distance": self.distance, "share": self.share, "shift": self.shift, "correlation": self.correlation}
        return {name: each for name, each in named.items() if each is not None}

    def _as_page(self, brief: bool = False) -> Page:
        units = {
            "distance": "distance of embeddings", "share": "share of rows that would have to change",
            "shift": "standard deviations", "correlation": "correlation of features",
        }  # fmt: skip
        first = [each.column for each in self.differences]
        data = () if self.shown is None else self.shown.charts(first)
        charts = tuple(self._chart(name, e, units[name]) for name, e in self._intervals.items())
        tables = (("what", "value"), *self.together()), *self.differences.tables(), note_table(self.warnings)
        level = f"{100 * self.confidence:g}% intervals."
        text = " ".join(filter(None, (f"In parentheses: {level}", "" if self.shown is None else self.shown.note)))
        answer = Section("The answer", self._answer(), text, charts=data, tables=tables)
        more = () if brief and data else (Section("Sizes in other units", "", level, charts=charts),)
        return Page(f"How large is the {self.method}?", "", (answer, *more), self.to_dict())

    def _answer(self) -> str:
        """A sentence on the clearest difference of a column, or on the size of all differences together."""
        if self.differences:
            shown = sorted(self.differences, key=lambda each: (not each.clear, not each.shown))[0]
            return f"{'' if shown.shown else 'No column is shown to differ. '}{shown.sentence()}"
        if self.correlation is not None:
            return f"The correlation of features is {self.correlation}, where 0 means independence."
        if self.shift is not None:
            return f"The samples differ as much as after a shift of every column by {self.shift} standard deviations."
        return f"The share of rows that would have to change for the samples to be alike is at least {self.share}."

    @staticmethod
    def _chart(name: str, found: Interval, unit: str) -> Chart:
        low, middle, high = (np.array([end]) for end in (found.low, found.estimate, found.high))
        return intervals_chart(unit.capitalize(), [name], middle, low, high, unit)

    def lines(self) -> list[tuple[str, str]]:
        """The result in words."""
        columns = [("column", text) for text in self.differences.printed()]
        columns += [("intervals of columns", self.differences.intervals)] if columns else []
        return [*columns, *self.together()]

    def together(self) -> list[tuple[str, str]]:
        """The lines on all differences together, without those of single columns."""
        moved = (
            f"as far apart as after a shift of every column by {self.shift} standard deviations; not a difference of "
            "means: spread, shape and relations count, too"
        )
        # Standard deviations say little about columns in which most rows have one number.
        in_deviations = self.shift is not None and all(each.without is None for each in self.differences)
        shift = [("all differences together", moved)] if in_deviations else []
        correlation = [] if self.correlation is None else [("correlation of features", str(self.correlation))]
        share = f"at least {self.share}, for the difference to vanish"
        always = [("share of rows that would have to change", share), ("distance of embeddings", str(self.distance))]
        from_zero = self.correlation is None and self.distance.low <= 0
        return [*shift, *correlation, *always, *([("intervals from 0", FROM_ZERO)] if from_zero else [])]

    def __str__(self) -> str:
        return self.written(self.lines())

    def written(self, lines: Sequence[tuple[str, str]]) -> str:
        """Some lines of the result under its title, with the caveats."""
        title = f"{self.method}, with {100 * self.confidence:g}% intervals"
        said = [f"  {what:25}  {value}" for what, value in lines]
        return "\n".join([title, *said, *(f"  warning  {text}" for text in in_few(self.warnings))])

    @staticmethod
    def scaled(interval: Interval, factor: float, most: float = np.inf) -> Interval:
        """The interval in another unit, clipped to the possible range."""
        return Interval(*(min(most, factor * value) for value in (interval.estimate, interval.low, interval.high)))
