"""A table of beliefs about named numbers: mean, standard deviation, interval, z and the probability of the sign."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from meanmap.core.intervals import ends
from meanmap.core.notes import note_table
from meanmap.core.pictures import new_axes
from meanmap.core.settings import probability
from meanmap.core.types import Axes
from meanmap.core.values import Value, aligned, frame_of
from meanmap.ep.inference.posterior import Posterior
from meanmap.plots.facts import Page, Section
from meanmap.plots.intervals import away_from_zero, intervals_chart
from meanmap.plots.paged import Paged

__all__ = ["Inferred", "Summarised", "Summary"]


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Paged, Value):
    """Posterior summaries of several numbers.

    Attributes
    ----------
    names : tuple of str
    mean, sd : (k,) arrays
    low, high : (k,) arrays
        Ends of the credible interval, with equal tails.
    positive : (k,) array
        The probability that the number is above 0.
    confidence : float
        The probability of the interval.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    low: np.ndarray
    high: np.ndarray
    positive: np.ndarray
    confidence: float

    @classmethod
    def of(cls, names: Any, law: Any, confidence: float = 0.95) -> "Summary":
        """The table of a batch of distributions on the line, one for each name.

        Examples
        --------
        >>> from meanmap.families import Normal
        >>> print(Summary.of(["slope"], Normal([2.0], [1.0])))
                mean     sd     2.5%  97.5%      z  P(>0)
        slope      2      1  0.04004   3.96      2  0.977
        """
        low, high = (np.atleast_1d(law.quantile(np.full(law.shape, p))) for p in ends(confidence))
        positive = 1 - np.atleast_1d(law.cdf(np.zeros(law.shape)))
        mean, sd = np.atleast_1d(law.mean()), np.atleast_1d(law.sd())
        return cls(tuple(names), mean, sd, low, high, positive, float(confidence))

    @classmethod
    def of_normal(cls, names: Any, mean: np.ndarray, variance: np.ndarray, confidence: float = 0.95) -> "Summary":
        """The table of Normals with these means and variances."""
        sd, reach = np.sqrt(variance), ndtri((1 + probability(confidence)) / 2)
        return cls(tuple(names), mean, sd, mean - reach * sd, mean + reach * sd, ndtr(mean / sd), float(confidence))

    @property
    def z(self) -> np.ndarray:
        """Mean over standard deviation."""
        return self.mean / self.sd

    def to_dict(self) -> dict[str, Any]:
        """By name, as plain Python values, ready for JSON."""
        columns = self._columns
        return {name: {key: float(v[at]) for key, v in columns.items()} for at, name in enumerate(self.names)}

    def to_frame(self) -> Any:
        """A pandas frame by name: mean, sd, low, high, z and positive."""
        return frame_of(self._columns, self.names)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        columns = {"mean": self.mean, "sd": self.sd, "low": self.low, "high": self.high}
        return {**columns, "z": self.z, "positive": self.positive}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw every number with its interval; returns the matplotlib Axes."""
        ax = new_axes(6, 0.8 + 0.35 * len(self.names)) if ax is None else ax
        rows = np.arange(len(self.names))
        ax.axvline(0, color="0.6", lw=0.8)
        ax.hlines(rows, self.low, self.high, color="tab:blue")
        ax.plot(self.mean, rows, "o", color="tab:blue", ms=5)
        ax.set(yticks=rows, yticklabels=self.names, xlabel=f"mean and {self.confidence:.0%} interval")
        ax.set_ylim(len(rows) - 0.5, -0.5)
        return ax

    def cells(self) -> list[list[str]]:
        """The table as text, its header first."""
        tail = 100 * (1 - self.confidence) / 2
        head = ["", "mean", "sd", f"{tail:.3g}%", f"{100 - tail:.3g}%", "z", "P(>0)"]
        numbers = zip(self.mean, self.sd, self.low, self.high, self.z, strict=True)
        return [head] + [
            [name, *(_short(value) for value in row), f"{positive:.3f}"]
            for name, row, positive in zip(self.names, numbers, self.positive, strict=True)
        ]

    def __str__(self) -> str:
        return "\n".join(aligned(self.cells(), least=5))

    def section(self, title: str, said: str = "", notes: Any = ()) -> Section:
        """A part of a page: every number with its interval, and the table."""
        label = f"mean and {self.confidence:.0%} interval"
        chart = intervals_chart(title, self.names, self.mean, self.low, self.high, label)
        head, *rows = self.cells()
        tables = (("name", *head[1:]), *map(tuple, rows)), note_table(notes)
        answer = away_from_zero(self.names, self.low, self.high) if self.names else ""
        return Section(title, answer, said, charts=(chart,) if self.names else (), tables=tables)

    def _as_page(self, brief: bool = False) -> Page:
        return Page("Posterior summaries", "", (self.section("Means and intervals"),), self.to_dict())


def _short(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "-"


class Inferred(Value):
    """A fitted model; `posterior` is what inference returned."""

    posterior: Posterior

    @property
    def log_evidence(self) -> float:
        """The logarithm of the probability of what was observed, to compare models and kernels by."""
        return self.posterior.log_evidence

    @property
    def report(self) -> Any:
        """The report of the inference run."""
        return self.posterior.report


class Summarised(Paged, Inferred, ABC):
    """A model whose numbers are a table."""

    @abstractmethod
    def summary(self, confidence: float = 0.95) -> Summary:
        """The table, with intervals of this probability."""

    def to_frame(self, confidence: float = 0.95) -> Any:
        """The table of `summary` as a pandas frame by name: mean, sd, low, high, z and positive."""
        return self.summary(confidence).to_frame()

    def _as_page(self, brief: bool = False) -> Page:
        first, *rest = str(self).splitlines()
        said = [line.strip() for line in rest if line.startswith("  ") and ": " in line]
        notes = [line.removeprefix("note: ") for line in said if line.startswith("note: ")]
        facts = "".join(f"{line[:1].upper()}{line[1:]}. " for line in said if not line.startswith("note: ")).strip()
        title = f"{first[:1].upper()}{first[1:]}"
        return Page(title, "", (self.summary().section("Means and intervals", facts, notes),), self.to_dict())

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
