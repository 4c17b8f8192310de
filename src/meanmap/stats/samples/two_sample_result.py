"""Results of two-sample tests: the p-value, where the samples differ, and in which columns."""

from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from scipy.special import stdtrit

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.pictures import new_axes
from meanmap.core.points import in_columns, rows
from meanmap.core.progress import track
from meanmap.core.rng import Rng
from meanmap.core.settings import probability, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.types import Axes, Points, Seed
from meanmap.embeddings.points import PointEmbedding
from meanmap.kernels.gram import gram_matrix
from meanmap.stats.permutations import root_mean_square
from meanmap.stats.result import Interval
from meanmap.stats.samples.attribution import gram_alone, some_rows
from meanmap.stats.samples.k_sample_result import ColumnsResult
from meanmap.stats.samples.shuffling import places_of_columns, with_shuffled

__all__ = ["TwoSampleResult"]

SHUFFLES = 5
# The number of groups of points, each left out in turn.
GROUPS = 20


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(ColumnsResult):
    """The outcome of a two-sample test.

    `mm.two_sample_test` returns it: `result.pvalue`, `result.driving_columns()`, `result.plot_witness()`.

    Attributes
    ----------
    witness : Embedding
        μ_P − μ_Q: where it is positive x is denser, where it is negative y is. With several kernels it is under the one
        with the strongest evidence; for samples too large for a Gram matrix, in the features of all kernels.
    columns : tuple of str
        Names of the columns, if points are rows of numbers or of a table.
    differences : sequence of ColumnDifference
        Differences in the columns of tables, and of arrays of at most 100 columns: means, shares of labels, and
        standard deviations that differ, the clearest first. The sequence is printed as a table and has `to_frame()`.
        Printing the result shows those that are clear (at most 20) and, if they are few, the clearest of five columns.
        Samples may differ in other ways, too. With `within`, `clusters` or `weights` they are differences within strata
        and pairs, with intervals that allow for dependence within clusters. There are none if a sample has fewer than
        five independent rows, clusters or pairs.
    widths : dict
        The number of coordinates of columns that have several, such as texts.
    shared : Kernel or None
        With default kernels, which include kernels of single columns: the kernel of all columns with the strongest
        evidence.
    alone : dict
        With more than 20,000 rows: a p-value for each column by itself, corrected for the number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(100, 3)), rng.normal([0.0, 2.0, 0.0], 1.0, size=(100, 3))
    >>> r = mm.two_sample_test(x, y, rng=0)
    >>> next(iter(r.driving_columns(rng=0)))
    'column 1'
    >>> [column for column, pvalue in r.column_pvalues(rng=0).items() if pvalue <= 0.05]
    ['column 1']
    """

    witness: Any = field(default=None, repr=False)
    shared: Any = field(default=None, repr=False)

    def driving_points(self, number: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of x where x is denser than y, and of y where y is denser than x, the strongest first."""
        witness = self._on_points()
        whole_number(number, "number")
        values, n = _values(witness, witness.points), self.sizes[0]
        return np.argsort(-values[:n], kind="stable")[:number], np.argsort(values[n:], kind="stable")[:number]

    @overload
    def driving_columns(self, rng: Seed = None, *, confidence: None = None) -> dict[str, float]: ...
    @overload
    def driving_columns(self, rng: Seed = None, *, confidence: float) -> dict[str, Interval]: ...
    @own_words
    def driving_columns(self, rng: Seed = None, *, confidence: float | None = None) -> Any:
        """The share of MMD² that is lost when one column is shuffled over both samples, the largest first.

        A column contributes by itself (its values differ) or through dependence on others (a correlation differs):
        shuffling it removes both. Shares lie between 0 (no contribution) and 1, and need not sum to one.
        `column_pvalues` tests which of them are significant. MMD² is that of the kernel of the witness; by default it
        is that of the kernel of all columns with the strongest evidence and of one kernel for each column, each in
        units of its root mean square, whichever has the strongest evidence. At most 1000 points are used, if possible
        all of a small sample, each as independent and of equal weight, whatever the design of the test: all shares are
        0 if these points show no difference, as where only many more rows do. O(N² d) for each column, hence O(N² d²)
        for all: hours for thousands of columns, with a progress bar.

        Parameters
        ----------
        rng : None, int, numpy.random.Generator or JAX key
            Draws the points and shuffles them.
        confidence : float, optional
            With 0.95, each share comes with its 95% confidence interval, by a jackknife over 20 groups of points,
            within which columns are shuffled. The interval is all of 0 to 1 if the samples may not differ at all. Needs
            at least 100 points of each.
        """
        generator = Rng.of(rng).generator
        chosen, sizes = self._some(generator)
        witness = self._on_points()
        kernel = witness.kernel if self.shared is None else self.shared
        points = rows(witness.points, chosen)
        places = places_of_columns(kernel.domain, points, self.columns, self.widths)
        number, groups = 1, np.zeros(len(chosen), int)
        if confidence is not None:
            probability(confidence)
            check_rows(min(sizes), "the smaller sample", 5 * GROUPS)
            number = GROUPS
            groups = np.concatenate([generator.permutation(np.arange(size) % GROUPS) for size in sizes])
        second = np.arange(len(chosen)) >= sizes[0]
        found = {}
        with Door():
            gram = gram_matrix(kernel, points)
            unit = root_mean_square(gram)
            of_all = _without_each_group(gram, second, groups, number) / unit
            # For the kernel of a single column, shuffling this column leaves no difference on average.
            alone = dict.fromkeys(places, np.zeros_like(of_all))
            for name, where in places.items() if self.shared is not None and len(places) > 1 else ():
                own = gram_alone(points, where)
                if own is not None and (size := root_mean_square(own)) > 0:
                    alone[name] = _without_each_group(own, second, groups, number) / size
            whole = of_all + np.sum(list(alone.values()), axis=0)
            for name, where in track(places.items(), "columns"):
                orders = (shuffled_within(groups, generator) for _ in range(SHUFFLES))
                grams = (gram_matrix(kernel, with_shuffled(points, where, order)) for order in orders)
                left = np.mean([_without_each_group(each, second, groups, number) for each in grams], axis=0) / unit
                found[name] = _share(of_all - left + alone[name], whole, confidence)
        return dict(sorted(found.items(), key=lambda item: -float(getattr(item[1], "estimate", item[1]))))

    def _some(self, generator: np.random.Generator) -> tuple[np.ndarray, tuple[int, ...]]:
        """The rows that are used: half of them from each sample, or more from one sample if the other is small."""
        self._on_points()
        if not self.columns:
            raise KindError("these points are neither rows of numbers nor of a table: there are no columns to shuffle.")
        return some_rows(self.sizes, generator)

    @property
    def _keeps_points(self) -> bool:
        return isinstance(self.witness, PointEmbedding)

    def _pooled(self) -> tuple[object, Points]:
        witness = self._on_points()
        return witness.kernel.domain, witness.points

    def plot_witness(self, ax: Axes | None = None, *, names: tuple[str, str] = ("x", "y")) -> Any:
        """Draw the witness over both samples, in one or two columns; returns the matplotlib Axes.

        `names` are the names of the samples in the plot.
        """
        witness = self._on_points()
        if len(self.columns) not in (1, 2) or self.widths or not in_columns(witness.points):
            raise KindError(
                "a witness is drawn over 1 or 2 numeric columns, and these points have other ones "
                f"({', '.join(self.columns) or 'none'}): see driving_columns() and driving_points()."
            )
        ax = new_axes(5, 3.5) if ax is None else ax
        points, n = np.asarray(witness.points), self.sizes[0]
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.1 * np.where(high > low, high - low, 1.0)
        grids = [
            np.linspace(a, b, 300 if len(low) == 1 else 80) for a, b in zip(low - margin, high + margin, strict=True)
        ]
        if len(grids) == 1:
            ax.axhline(0, color="lightgrey", lw=1)
            ax.plot(grids[0], _values(witness, grids[0][:, None]), color="black", label="witness")
            bottom, top = ax.get_ylim()
            for sample, side, color, name in zip(
                (points[:n], points[n:]), (top, bottom), ("C0", "C1"), names, strict=True
            ):
                ax.plot(sample[:, 0], np.full(len(sample), side), "|", color=color, ms=8, alpha=0.5, label=name)
            ax.set(xlabel=self.columns[0], ylabel="μ_P − μ_Q")
        else:
            mesh = np.stack(np.meshgrid(*grids), axis=-1)
            values = _values(witness, mesh.reshape(-1, 2)).reshape(mesh.shape[:2])
            top = np.abs(values).max() or 1.0
            drawn = ax.contourf(*grids, values, levels=21, cmap="RdBu", vmin=-top, vmax=top)
            ax.figure.colorbar(drawn, ax=ax, label="μ_P − μ_Q")
            ax.plot(*points[:n].T, ".", ms=2, color="navy", label=names[0])
            ax.plot(*points[n:].T, ".", ms=2, color="darkred", label=names[1])
            ax.set(xlabel=self.columns[0], ylabel=self.columns[1])
        ax.set_title(f"where {names[0]} (positive) and {names[1]} (negative) are denser", fontsize="medium", wrap=True)
        ax.legend(fontsize="small")
        return ax

    def _on_points(self) -> PointEmbedding:
        if not isinstance(self.witness, PointEmbedding):
            raise KindError(
                "these samples were too large to be kept: test a few thousand rows of each to see points and columns, "
                "or call result.witness at your own points."
            )
        return self.witness


def _values(witness: PointEmbedding, points: Points) -> np.ndarray:
    """The witness at points that have been read already."""
    with Door() as door:
        return np.asarray(witness.evaluate(points, door))


def shuffled_within(groups: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A permutation of the points that leaves each in its group."""
    order = np.arange(len(groups))
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        order[members] = generator.permutation(members)
    return order


def _without_each_group(gram: np.ndarray, second: np.ndarray, groups: np.ndarray, number: int) -> np.ndarray:
    """The unbiased MMD² of all points and, if there are several groups, without each group."""
    member = np.zeros((len(gram), 2 * number))
    member[np.arange(len(gram)), groups + number * second] = 1
    sums, own, counts = member.T @ gram @ member, member.T @ gram.diagonal(), member.sum(axis=0)
    every = np.ones(number, bool)
    kept = [every, *(every & (np.arange(number) != group) for group in range(number))] if number > 1 else [every]

    def square(keep: np.ndarray) -> float:
        x, y = (np.flatnonzero(np.concatenate(sides)) for sides in ((keep, 0 * keep), (0 * keep, keep)))
        n, m = counts[x].sum(), counts[y].sum()
        within = [
            (sums[np.ix_(each, each)].sum() - own[each].sum()) / (size * (size - 1)) for each, size in ((x, n), (y, m))
        ]
        return float(sum(within) - 2 * sums[np.ix_(x, y)].sum() / (n * m))

    return np.array([square(keep) for keep in kept])


def _share(lost: np.ndarray, whole: np.ndarray, confidence: float | None) -> Any:
    """The share lost / whole, between 0 and 1, with its interval from the values of both without each of several
    groups.

    Fieller's interval (1954): all shares s for which lost − s · whole = 0 is not rejected, with a jackknife variance.
    It contains all shares if the whole may itself be zero.
    """
    estimate = float(np.clip(lost[0] / whole[0], 0, 1)) if whole[0] > 0 else 0.0
    if confidence is None:
        return estimate
    number = len(whole) - 1
    (v, c), (_, w) = (number - 1) ** 2 / number * np.cov(np.stack([whole[1:], lost[1:]]))
    square = stdtrit(number - 1, (1 + confidence) / 2) ** 2
    a, b, c = whole[0] ** 2 - square * v, whole[0] * lost[0] - square * c, lost[0] ** 2 - square * w
    if whole[0] <= 0 or a <= 0:
        return Interval(estimate, 0.0, 1.0)
    reach = np.sqrt(max(b * b - a * c, 0.0))
    low, high = np.clip([(b - reach) / a, (b + reach) / a], 0, 1)
    return Interval(estimate, float(low), float(high))
