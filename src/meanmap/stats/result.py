"""Results of tests: statistic, null distribution, p-value, and the settings that repeat the test."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.arrays import out_of_range
from meanmap.core.language import with_and
from meanmap.core.notes import in_few
from meanmap.core.pictures import new_axes
from meanmap.core.settings import probability
from meanmap.core.synonyms import own_words
from meanmap.core.types import Axes
from meanmap.core.values import Value, frame_of, plain
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.plots.paged import Paged
from meanmap.stats.settings import check_draws
from meanmap.stats.shown import MOST_CALLED, Shown

__all__ = ["Interval", "Null", "TestResult", "flat", "larger_and_tied"]

# Sums in single precision count as equal if they differ by less than this share of the largest.
SINGLE = 1e-6
NOT_DRAWN = "The data are not drawn: only columns of arrays, data frames and files are."


@dataclass(frozen=True, eq=False, repr=False)
class Interval(Value):
    """An estimate with its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:z.3g} ({self.low:z.3g} to {self.high:z.3g})"


@dataclass(frozen=True, eq=False, repr=False)
class Null(Value):
    """The null distribution of the statistic.

    Attributes
    ----------
    kind : str
        The method by which it was obtained.
    draws : array (B,)
        Values of the statistic under the null: permuted ones, or draws from its limit.
    exact : bool
        Whether the level is exact at every sample size (permutations) or in the limit only.
    rounding : float
        A bound on the rounding error of a draw, which exceeds working precision where a draw is a small difference of
        large sums.
    """

    kind: str
    draws: np.ndarray
    exact: bool
    rounding: float = 0.0

    def pvalue(self, statistic: float) -> float:
        """(1 + #{draws ≥ statistic}) / (1 + B), never zero; a draw that ties to within rounding counts."""
        larger, tied = self.ranks(statistic)
        return (1 + larger + tied) / (1 + len(self.draws))

    def ranks(self, statistic: float) -> tuple[int, int]:
        """The numbers of draws that are larger, and that tie."""
        digits = SINGLE * float(np.max(np.abs(self.draws), initial=abs(statistic)))
        return larger_and_tied(statistic, self.draws, max(self.rounding, digits))


def larger_and_tied(statistic: float, draws: np.ndarray, rounding: float) -> tuple[int, int]:
    """The numbers of draws larger than the statistic, and tied with it up to rounding.

    Every p-value of the library is computed from these two numbers. Values that are not finite are refused: they have
    no rank, and since comparisons with NaN are false, a NaN statistic would count as larger than all draws.
    """
    values = np.append(statistic, draws)
    if not np.isfinite(values).all():
        raise out_of_range(f"the statistic or one of its draws is {values[~np.isfinite(values)][0]}")
    beyond = values[1:] - values[0]
    return int(np.sum(beyond > rounding)), int(np.sum(np.abs(beyond) <= rounding))


def flat(null: Null, statistic: float) -> tuple[str, ...]:
    """The note of a result whose statistic ties with every draw."""
    if null.ranks(statistic)[1] < len(null.draws):
        return ()
    return ("the statistic is the same under every permutation or draw: these kernels detect nothing in the data.",)


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(Paged, Value):
    """The outcome of a hypothesis test.

    Tests return it: `result.pvalue`, `result.reject(0.05)`, `print(result)`, `result.plot()`,
    `result.page("result.html")`.

    Attributes
    ----------
    statistic, pvalue : float
        The test statistic, and the probability of a value at least as large under the null hypothesis.
    null : Null
        Its null distribution.
    kernel : Kernel or tuple of Kernel
        The kernel of the statistic.
    method : str
        The name of the test.
    sizes : tuple of int
        Sample sizes.
    seed : int or None
        `rng=result.seed` repeats the run.
    warnings : tuple of str
        Caveats.
    why : tuple of str
        For `mm.test`: which test was chosen, why, and what it assumes.
    shown : Shown or None
        What its page draws: the distribution of all rows of each sample, or at most 2000 rows of variables.

    Examples
    --------
    >>> import meanmap as mm
    >>> print(mm.two_sample_test(range(20), range(10, 30), mm.kernels.RBF(5.0), rng=0))
    two-sample test, unbiased MMD²
      p-value    0.000999   (rejected at level 0.05)
      statistic  0.327688
      null       permutation, 1000 draws
      samples    20, 20
      seed       0
    """

    __test__ = False  # not a class of tests, whatever its name looks like to pytest

    statistic: float
    pvalue: float
    null: Null
    kernel: Any
    method: str
    sizes: tuple[int, ...]
    seed: int | None
    warnings: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    shown: Shown | None = field(default=None, repr=False)

    @own_words
    def reject(self, level: float = 0.05) -> bool:
        """Whether the null hypothesis is rejected at this level, which takes at least 1 / level − 1 draws."""
        check_draws(len(self.null.draws), probability(level, "level", 0.05))
        return self.pvalue <= level

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python values, ready for JSON."""
        null = {"null": self.null.kind, "null_draws": self.null.draws.tolist(), "exact": self.null.exact}
        said = plain(self, *(("why",) if self.why else ()), "statistic", "pvalue", "method")
        return {**said, **null, "kernel": repr(self.kernel), **plain(self, "sizes", "seed", "warnings")}

    def to_frame(self) -> Any:
        """A pandas frame of one row, named by the method, so that several tests can be put below one another."""
        return frame_of(
            {"statistic": [self.statistic], "pvalue": [self.pvalue], "rows": [sum(self.sizes)]}, [self.method]
        )

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the null distribution with the statistic; returns the matplotlib Axes."""
        ax = new_axes(5, 3) if ax is None else ax
        ax.hist(self.null.draws, bins=40, color="lightgrey", label=f"null: {self.null.kind}")
        ax.axvline(self.statistic, color="C3", label=f"statistic, p = {self.pvalue:.3g}")
        ax.set(xlabel="statistic", ylabel="draws")
        ax.locator_params(axis="x", nbins=5)
        ax.set_title(self.method, fontsize="medium", wrap=True)
        ax.legend()
        return ax

    def lines(self) -> list[tuple[str, str]]:
        """The lines of the printed result: names and texts."""
        verdict = "rejected" if self.pvalue <= 0.05 else "not rejected"
        return [
            ("p-value", f"{self.pvalue:.4g}   ({verdict} at level 0.05)"),
            ("statistic", f"{self.statistic:.6g}"),
            ("null", f"{self.null.kind}, {len(self.null.draws)} draws"),
            ("samples", ", ".join(map(str, self.sizes))),
            ("seed", str(self.seed)),
            *(("warning", text) for text in in_few(self.warnings)),
            *(("why", text) for text in self.why),
        ]

    def __str__(self) -> str:
        return "\n".join([self.method, *(f"  {name:<9}  {text}" for name, text in self.lines())])

    def _as_page(self, brief: bool = False) -> Page:
        """The data first, then the answer in numbers, and last the null distribution."""
        data = () if self.shown is None else self.shown.charts(self._drawn_first())
        text = NOT_DRAWN if self.shown is None else " ".join(filter(None, (self.shown.note, self._beside_picture())))
        tables = (("what", "value"), *TestResult.lines(self)), *self._tables()
        sections = [Section("The answer", self._answer(), text, charts=data[: 1 if brief else None], tables=tables)]
        if not brief:
            about = "Values of the statistic under the null hypothesis, and the one that was observed."
            sections.append(Section("The null distribution", "", about, charts=(self._null_chart(),)))
        method = f"{self.method[:1].upper()}{self.method[1:]}"
        asked = None if self.shown is None else self._question(self.shown)
        title, lead = (method, "") if asked is None else (asked, f"{method}.")
        return Page(title, lead, tuple(sections), self.to_dict())

    def _question(self, shown: Shown) -> str | None:
        """The question, as a sentence with the names of the data."""
        names = [shown.called(k) for k in range(len(shown.names))]
        if not self.method.startswith("joint "):
            x, y, *given = names
            verb = "Are" if " and " in x else "Is"
            return f"{verb} {x} independent of {y}{f' given {with_and(given)}' if given else ''}?"
        called = with_and(names) if len(names) <= MOST_CALLED else f"the {len(names)} variables"
        return f"Are {called} jointly independent?"

    def _answer(self) -> str:
        """The answer in a sentence."""
        found, null = self._verdict
        if self.pvalue <= 0.05:
            return f"Evidence of {found}: {null} is rejected at level 0.05 (p = {self.pvalue:.3g})."
        return f"No evidence of {found}: {null} is not rejected at level 0.05 (p = {self.pvalue:.3g})."

    @property
    def _verdict(self) -> tuple[str, str]:
        """The claim for which a small p-value is evidence, and the null hypothesis."""
        return "dependence", "independence"

    def _beside_picture(self) -> str:
        """A note on information missing from the picture of the data."""
        return ""

    def _drawn_first(self) -> tuple[str, ...]:
        """Columns with which the picture of the data begins."""
        return ()

    def _tables(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """More tables of a page."""
        return ()

    def _null_chart(self) -> Chart:
        counts, edges = np.histogram(self.null.draws, 30)
        bars = Mark("bars", {"x1": edges[:-1], "x2": edges[1:], "y": counts}, f"null: {self.null.kind}", colour=6)
        line = Mark("rules", {"x": [self.statistic]}, "observed statistic", colour=1)
        return Chart("The null distribution", (Panel(Axis("statistic"), Axis("draws"), (bars, line)),))
