"""Results of tests of samples and their answers in words: which columns differ, and by how much in their units."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from meanmap.core.errors import KindError
from meanmap.core.language import with_and
from meanmap.core.types import Points, Seed
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.result import TestResult
from meanmap.stats.samples.all_rows import AllRows
from meanmap.stats.samples.attribution import Attributed, attributed
from meanmap.stats.samples.differences import Differences
from meanmap.stats.shown import MOST_CALLED, Shown

__all__ = ["ColumnsResult", "KSampleResult"]

# With more columns, p-values of columns are not printed.
MOST_PRINTED = 30
ROWS_AS_THEY_ARE = (
    "The picture shows all rows as they are, and the table compares them within strata or by their weights."
)
# The advice beside the p-value of a difference of means.
TWO_QUESTIONS = "these are two questions: choose one before looking at the data, or double the smaller p-value"
# The note if an interval excludes zero although the test does not reject.
WEAK = (
    "the test of all columns together does not reject, but an interval excludes zero: each of the two errs in at most "
    "5% of tables without any difference, both together in at most 10%; test that difference alone on new data"
)

# The note if shares of missing values are shown to differ.
GAPS = "the samples differ in how many values are missing; the test uses complete rows only and does not compare this"


@dataclass(frozen=True, eq=False, repr=False)
class ColumnsResult(TestResult):
    """The common part of results of tests of two and of more samples."""

    columns: tuple[str, ...] = field(default=(), repr=False)
    differences: Differences = field(default_factory=Differences, repr=False)
    widths: dict[str, int] = field(default_factory=dict, repr=False)
    design: Exchange | None = field(default=None, repr=False)
    alone: Mapping[str, float] = field(default_factory=dict, repr=False)
    whole: AllRows | None = field(default=None, repr=False)

    def to_save(self) -> "ColumnsResult":
        """The result without a design whose class is not one of this library, since no file can hold it."""
        own = self.design is not None and type(self.design) is not Exchange
        return replace(self, design=None) if own else self

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python values, ready for JSON."""
        return {"answer": self._answer(), **super().to_dict(), **self.differences.to_dict()}

    def lines(self) -> list[tuple[str, str]]:
        """The result in words."""
        said = [("column", text) for text in self.differences.printed()]
        said += [("intervals", self.differences.intervals)] if said else []
        said += [("means", self._of_means)] if self._of_means else []
        several = len({(each.column, each.names) for each in self.differences}) > 1
        beyond = self.beyond_test()
        said += [("intervals", WEAK)] if several and self.pvalue > 0.05 and self.shows_some and not beyond else []
        said += [("missing", GAPS)] if self.missing_differ and not beyond else []
        pvalues = ", ".join(f"{name} {pvalue:.3g}" for name, pvalue in self._printed_pvalues.items())
        every = ", all samples together" if len(self.sizes) > 2 else ""
        both = self.design is None and self._keeps_points
        whole = ", by all rows that have it," * (self.whole is not None)
        what = f"of each column{whole} and its dependence on others" if both else "of each column by itself"
        adjusted = f"({what}{every}; adjusted for {len(self.columns)} columns)"
        said += [("p-values", f"{pvalues} {adjusted}")] if pvalues else []
        return [*([("answer", beyond)] if beyond else []), *super().lines(), *said]

    def _question(self, shown: Shown) -> str | None:
        number = len(shown.names)
        what = with_and(shown.names) if number <= MOST_CALLED else f"the {number} samples"
        return f"Do {what} come from the same distribution?"

    @property
    def _verdict(self) -> tuple[str, str]:
        return f"a difference{self.among}", "the hypothesis of equal distributions"

    def _beside_picture(self) -> str:
        if not self.differences:
            return ""
        unlike = [ROWS_AS_THEY_ARE] if self.differences.unlike else []
        return " ".join([*unlike, f"Intervals: {self.differences.intervals}."])

    def _answer(self) -> str:
        clear = self.differences.sentences()
        means = f"{self._of_means[:1].upper()}{self._of_means[1:]}." if self._of_means else ""
        if beyond := self.beyond_test():
            return " ".join(filter(None, (beyond, means, *clear)))
        said = super()._answer()
        if self.pvalue > 0.05 and self.shows_some:
            found, null = self._verdict
            said = f"Weak evidence of {found}: {null} is not rejected at level 0.05 (p = {self.pvalue:.3g}), but"
            said += " an interval excludes zero."
        return " ".join(filter(None, (said, self.of_missing, means, *clear)))

    def beyond_test(self, level: float = 0.05) -> str:
        """Sentences on the columns that are shown to differ in all rows that have them, although the test of complete
        rows does not reject; empty if there are none.
        """
        columns = "" if self.pvalue <= level else self.differences.in_all_rows()
        if not columns:
            return ""
        which, number = f"{sum(self.sizes)} complete rows", self.differences.all_rows
        which += f" of {number}" if number > sum(self.sizes) else ""
        return f"{columns}. The test itself is of the {which}: not rejected at level {level:g}, p = {self.pvalue:.3g}."

    @property
    def shows_some(self) -> bool:
        """Whether the intervals show a difference of values: of means, shares, standard deviations or rank
        correlations.
        """
        return any(each.shown and not each.of_gaps for each in self.differences) or bool(self.differences.relations)

    @property
    def missing_differ(self) -> bool:
        """Whether the intervals show a difference of shares of missing values."""
        return any(each.clear and each.of_gaps for each in self.differences)

    @property
    def of_missing(self) -> str:
        """A sentence if shares of missing values are shown to differ."""
        return f"{GAPS[:1].upper()}{GAPS[1:]}." if self.missing_differ else ""

    @property
    def among(self) -> str:
        """The rows that the answer is about, as words, if shares of missing values differ."""
        return " in complete rows" if self.missing_differ else ""

    @property
    def _of_means(self) -> str:
        """The p-value of the difference of means beside that of any difference, for one column of numbers."""
        pvalue = next((each.pvalue for each in self.differences if each.pvalue is not None), None)
        if pvalue is None:
            return ""
        number = self.differences.comparisons
        alone = f" for this comparison alone, while intervals are simultaneous for {number}" * (number > 1)
        means = f"difference of means: p = {pvalue:.3g}{alone}"
        return f"{means}; any difference: p = {self.pvalue:.3g}; {TWO_QUESTIONS}"

    def _drawn_first(self) -> tuple[str, ...]:
        return tuple(each.column for each in self.differences)

    @cached_property
    def _printed_pvalues(self) -> Mapping[str, float]:
        """The p-values of columns, if the test rejects, or if they are of all rows, in which columns differ."""
        several = 1 < len(self.columns) <= MOST_PRINTED and (self.null.kind != "exchanges" or self.design is not None)
        wanted = self.pvalue <= 0.05 or (self.design is None and self.beyond_test())
        if not (self._keeps_points or self.alone) or not wanted or not several:
            return {}
        return self.column_pvalues(self.seed)

    def _tables(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        found = self._printed_pvalues
        pvalues = (("column", "p-value, corrected for all columns"), *((name, f"{p:.3g}") for name, p in found.items()))
        return (*self.differences.tables(), *([pvalues] if found else []))

    def column_pvalues(self, rng: Seed = None, *, n_permutations: int = 999) -> dict[str, float]:
        """A p-value for each column, corrected for the number of columns, the smallest first.

        It tests whether the column's marginal distribution differs (by scores of its ranks, or of its 16 most frequent
        labels; with more labels also by the exact p-value of the rows with each), or its dependence on one other column
        (by products of scores, of at most 1000 points). The family-wise error rate is at most the level:
        exactly for marginal distributions, for any differences in other columns, and asymptotically for products.
        Differences that only appear in three or more columns together are not attributed to any column.

        If rows with missing values were dropped, the marginal distribution of a column of numbers or labels is tested
        in all rows that have it: exactly if its missing values are as frequent in all samples, and otherwise
        asymptotically. With within=, clusters= or weights= only marginal distributions are tested, in complete rows,
        with the same permutations as in the test. With more than 20,000 rows, in memory or not, these p-values of
        marginal distributions are computed with the test, from its own sums if no values are missing: `rng` and
        `n_permutations` have no effect.

        Parameters
        ----------
        rng : None, int, numpy.random.Generator or JAX key
            Draws permutations and points.
        n_permutations : int
            The number of permutations of the samples. The cost is O(B N) for each column and each pair of columns.
        """
        return self.attributed(rng, n_permutations).merged()

    def attributed(self, rng: Seed, n_permutations: int = 999) -> Attributed:
        """P-values of columns: of their own distributions, and of their dependence on others."""
        if self.alone and not self._keeps_points:
            return Attributed({name: self.alone.get(name, 1.0) for name in self.columns}, {})
        domain, points = self._pooled()
        if not self.columns:
            raise KindError("these points are neither rows of numbers nor of a table: there are no columns to test.")
        if self.null.kind == "exchanges" and self.design is None:
            raise KindError("this result was saved without its within=, clusters= or weights=: run the test again.")
        known = self.columns, self.widths, self.sizes
        return attributed(domain, points, *known, rng, n_permutations, self.design, self.whole)

    @property
    def _keeps_points(self) -> bool:
        """Whether the result keeps the points of all samples."""
        raise NotImplementedError

    def _pooled(self) -> tuple[object, Points]:
        """The domain, and the points of all samples, one after another."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, repr=False)
class KSampleResult(ColumnsResult):
    """The outcome of a test of several samples.

    `mm.k_sample_test` returns it: `result.pvalue`, `result.column_pvalues()`, `print(result.differences)`.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns, if points are rows of numbers or of a table.
    differences : sequence of ColumnDifference
        For at most 20 samples: means, shares of labels, and standard deviations that differ, in each pair of samples,
        within the same strata or clusters, the clearest difference first; it is printed as a table and has
        `to_frame()`.
    widths : dict
        The number of coordinates of columns that have several, such as texts.
    points : points or None
        The points of all samples; None if there are more than 20,000 rows in all.
    alone : dict
        Then a p-value for each column by itself, corrected for the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> table = {"arm": np.repeat(["a", "b", "c"], 50), "age": rng.normal(40, 9, 150), "cost": rng.normal(70, 9, 150)}
    >>> table["cost"][100:] += 12
    >>> r = mm.k_sample_test(table, by="arm", rng=0)
    >>> [column for column, pvalue in r.column_pvalues(rng=0).items() if pvalue <= 0.05]
    ['cost']
    >>> [(each.column, *each.names) for each in r.differences if each.clear]
    [('cost', 'arm=a', 'arm=c'), ('cost', 'arm=b', 'arm=c')]
    """

    points: Any = field(default=None, repr=False)

    @property
    def _keeps_points(self) -> bool:
        return self.points is not None

    def _pooled(self) -> tuple[object, Points]:
        if self.points is None:
            raise KindError("these samples were too large to be kept: test a few thousand rows of each to see columns.")
        kernel = self.kernel[0] if isinstance(self.kernel, tuple) else self.kernel
        return kernel.domain, self.points
