"""Tables of numbers and labels: every column given whichever others are known."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meanmap.bp.conditionals.column_conditional import ColumnConditional
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.fitted_dependency import FittedDependencyNetwork
from meanmap.bp.conditionals.joint_normal import JointNormal, laws_of, parts_of, products_of
from meanmap.bp.conditionals.row_weights import Learner, grown, learned, nearest
from meanmap.bp.conditionals.seen_together import SeenTogether
from meanmap.bp.conditionals.standard import Standard
from meanmap.bp.conditionals.thresholds import Thresholds
from meanmap.bp.conditionals.two_part import TwoPart
from meanmap.bp.never_together import NeverTogether
from meanmap.bp.pooling import SHIFTS
from meanmap.core.errors import EmptyError, ShapeError
from meanmap.core.points import spread_rows
from meanmap.core.progress import track
from meanmap.core.synonyms import own_words
from meanmap.core.tables.marks import policy_and_marks
from meanmap.core.tables.missing import BY_PAIRS
from meanmap.core.tables.selection import UNLIKE
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data

__all__ = ["DependencyNetwork"]

# The most training rows; if there are fewer, each is used several times, with different cells hidden.
MOST_ROWS, ROWS_WITH_GAPS, MOST_TIMES = 4000, 1500, 4
LEAST_ROWS = 10
# Rows with the same hidden cells share computations of the joint normal distribution: there are this many patterns.
MOST_PATTERNS = 200
# A row is represented by at most this many numbers; if labels need more, fewer of them are separate.
MOST_WIDTH = 150
# If a table has missing cells of its own, this share of the training rows have gaps like those.
LIKE_ITS_OWN = 0.75
# What becomes of rows with gaps where "pairwise" leaves them to each column.
USED = "are used for each column that they have, whatever others are missing"
# The thresholds of a number, then these and the bin centres in standardised units.
Bins = tuple[Thresholds | None, np.ndarray, np.ndarray]


class DependencyNetwork:
    """Predict every column of a table from whichever others are known, fill in missing values and score rows.

    `model = mm.bp.DependencyNetwork().fit(table)` learns, `model.impute(frame)` fills in. Where `mm.KernelGraph` learns
    relations along the edges of a tree, each column here has a regression on all others at once. This predicts better
    where many columns matter; there is no graph to inspect, and answers about several columns need not agree exactly.

    Parameters
    ----------
    regressions : sequence of scikit-learn regressors, optional
        Any that average training rows: forests, trees, nearest neighbours. Their weights are conditional operators. By
        default extremely randomised trees and ten nearest neighbours. All are used; their weights are chosen for each
        column by the continuous ranked probability score of held-out rows.

    Notes
    -----
    Products and squares of columns that improve held-out predictions enter a joint normal distribution with the
    columns, missing where a factor is (Seaman, Bartlett & White 2012); a factor is drawn by Bayes' rule from the column
    that depends on its product, as in Bartlett et al. (2015). There are at most 20 of these, one per 25 rows.

    Numbers of one sign or between 0 and 1 stay so. They are transformed by the logarithm, root or log odds where this
    makes a joint linear model with normal noise of all columns more likely by two standard errors. Draws far beyond the
    observed values are still slightly too small: where half of a lognormal column was missing, most of it large, its
    pooled mean was .97 of that of all rows. Imputed counts are values that occur in the column.

    A value that at least 5% of the rows have, four times as many as any other, such as the zeros of costs, has a
    probability of its own: the column is a label, this value or another, and a number given that, as in the two-part
    model of Duan et al. (1983); no draws lie beyond such a value if it is the least or the largest of all. A column
    with separate peaks is treated likewise: which peak, and the number within.

    Heckerman et al. (2000) learn such a network for labels. Forests give conditional distributions as in Meinshausen
    (2006); beliefs are stacked as in Yao et al. (2018). Each training row is seen several times, with cells hidden, so
    that one regression serves all patterns of gaps. It shrinks means towards the overall mean where few columns are
    known, so each pattern of one to three known columns has a regression of its own, learned when an answer first needs
    it, in a tenth to half a second: filling in 15% gaps of 1000 rows needs 24 of them with 4 columns, 70 with 6, none
    with 10. Draws for multiple imputation use one regression per column throughout. In a column with more than 50
    labels the rarest are pooled into one, whose probability is divided in proportion to their frequencies; as
    predictors of other columns, labels that never occurred are treated in the same way. In tables with many such
    columns fewer labels have a separate probability: labels and numbers together take at most 150 numbers. Learned from
    up to 4000 rows, spread over the table; forests cannot be updated row by row, so new rows require a new fit, whose
    cost does not grow with the number of rows.

    Labels have a multinomial logistic regression on all others, including products of these that improve it; forests
    and neighbours are weighted in only where they clearly improve held-out predictions, since in tables with numeric
    columns they shrink relations among labels towards independence.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 300))
    >>> table = {"a": a, "b": b, "c": a * b + 0.1 * rng.normal(size=300)}
    >>> model = mm.bp.DependencyNetwork().fit(table)
    >>> low, high = model.predict({"a": [1.0, -1.0], "b": [1.0, 1.0]}, targets=["c"])["c"].mean()
    >>> bool(low > 0.5), bool(high < -0.5)
    (True, True)
    """

    def __init__(self, regressions: Sequence[Any] | None = None):
        self.regressions = regressions

    @one_blas_thread()
    @own_words
    def fit(
        self, data: Data, *, missing: str = "pairwise", kinds: Mapping[Any, Any] | None = None
    ) -> "FittedDependencyNetwork":
        """Learn from a table of numbers, labels, truth values and times; cells may be missing.

        Parameters
        ----------
        data : table
            A DataFrame, a mapping from names to columns, or an (n, d) array; Parquet files, a lazy frame or a
            Dask collection. If there are more than 100,000 rows, 100,000 are read, drawn by row number; regressions are
            learned from up to 4000 of these.
        missing : {"pairwise", "raise", "drop", "category"}, or list of codes
            What happens to missing values: each column is learned from the rows in which it is known, with whatever
            else these rows contain; an error; the row is dropped altogether; or missing labels form a label of their
            own. A list of codes, such as [-999], means "drop" for these; in rows that are filled in later they are
            missing, too.
        kinds : mapping of variable to kind, optional
            The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`.

        Returns
        -------
        FittedDependencyNetwork
            Always the same for the same table.

        Notes
        -----
        For d columns of n rows 3 d times the cost of each regression, and O(n d³).
        """
        table, each, notes = CodedTable.of(data, None, missing, kinds, MOST_WIDTH)
        if len(each) < 2:
            raise ShapeError(f"data has only one column, {next(iter(each))!r}; expected at least two.")
        whole = np.concatenate(list(each.values()), axis=1)
        numbers = whole[spread_rows(len(whole), MOST_ROWS)]
        if len(numbers) < LEAST_ROWS:
            raise EmptyError(f"data has {len(numbers)} rows; expected at least {LEAST_ROWS}.")
        scale = Standard.of(table, numbers)
        rows = scale(numbers)
        laws = laws_of(rows)
        products = products_of(rows, laws, scale.blocks)
        if len(products.pairs):
            laws = laws_of(rows, products=products)
        names = track(list(table.columns), "learning columns")
        conditionals = [_learned(scale, numbers, j, laws, self.regressions) for j, _ in enumerate(names)]
        few_apart, apart = self.regressions is None, NeverTogether.of(table.codes(each), table.labels)
        seen = SeenTogether.of(each)
        if len(numbers) < len(whole):
            read = f"learned from {len(whole)} of "
            notes = tuple(note.replace(read, f"learned from {len(numbers)} of ") for note in notes)
            if not any(note.startswith("learned from ") for note in notes):
                notes = (*notes, f"learned from {len(numbers)} of {len(whole)} rows, spread over the table.")
        of_gaps = f"beliefs and imputed values are valid if gaps depend only on other columns. {SHIFTS}"
        if any(UNLIKE in note for note in notes):
            notes = (*notes, of_gaps)
        if policy_and_marks(missing)[0] == "pairwise":  # rows with gaps count, too
            notes = tuple(note.replace(BY_PAIRS, USED).replace(UNLIKE, "").strip() for note in notes)
        return FittedDependencyNetwork(table, scale, laws, tuple(conditionals), rows, notes, few_apart, apart, seen)

    def __repr__(self) -> str:
        return f"DependencyNetwork({'' if self.regressions is None else list(self.regressions)})"


def _learned(
    scale: Standard, numbers: np.ndarray, j: int, laws: Sequence[JointNormal], regressions: Sequence[Any] | None
) -> ColumnConditional | TwoPart:
    """Learn one column given the others, from rows with randomly hidden cells."""
    random, part = np.random.default_rng(j), parts_of(len(numbers))
    table, rows = scale.table, scale(numbers)
    starts, wholes = [block.start for block in table.blocks], scale.wholes
    name, column = list(table.columns.items())[j]
    gaps = np.isnan(numbers[:, starts])
    have = np.flatnonzero(~gaps[:, j])
    if len(have) < LEAST_ROWS:
        raise EmptyError(f"data[{name!r}] has {len(have)} values; expected at least {LEAST_ROWS}.")
    times = int(np.clip(ROWS_WITH_GAPS // len(have), 1, MOST_TIMES))
    chosen, judged = np.repeat(have, times), np.ones(times * len(have), dtype=bool)
    patterns = random.random((MOST_PATTERNS, len(wholes))) < random.random((MOST_PATTERNS, 1)) ** 2
    hidden = patterns[random.integers(MOST_PATTERNS, size=len(chosen))]
    if gaps.any():
        like = random.random(len(chosen)) < LIKE_ITS_OWN
        hidden[like] = gaps[random.integers(0, len(rows), int(like.sum()))]
        # Beliefs are evaluated on rows with their own gaps only: with those of another row, there would be more than
        # any row has.
        judged = (np.arange(len(chosen)) % times == 0) & (like | (times > 1))
        hidden[judged] = False
    masked = np.where(np.repeat(hidden, [len(whole) for whole in wholes], axis=1), np.nan, rows[chosen])
    start, unit, whole, place = starts[j], 1 / column.scale, wholes[j], scale.places[j]

    def learned(blocks: tuple[range, ...], place: int, values: np.ndarray, bins: Bins) -> ColumnConditional:
        """The values of a block, from the rows in which they are known."""
        some = ~np.isnan(values[:, 0])
        those, learners = chosen[some], _learners(regressions, bins[0] is not None)
        settings = part[those], judged[some], laws, learners, len(np.unique(those)), those
        return ColumnConditional.fit(blocks, place, *bins, unit, masked[some], values[some], *settings)

    if column.labels is not None:
        return learned(scale.blocks, place, rows[chosen][:, whole], _of_labels(column.width))
    components, seen = scale.components.get(start), numbers[have, start]
    within = column.limits if components is None else components.limits(seen, column.limits)
    thresholds = Thresholds.of(seen, within, scale.transformed.get(start))
    bins = thresholds, scale.of_column(start, thresholds.at), scale.of_column(start, thresholds.centres)
    number = rows[chosen][:, whole[-1:]]
    if components is None:
        return learned(scale.blocks, place, number, bins)
    hits = rows[chosen][:, whole[:-1]]
    which = learned(wholes, j, hits, _of_labels(len(components)))
    masked[:, whole[:-1]] = hits
    other = learned(scale.blocks, place, number, bins)
    masked[:, whole] = np.nan
    parts = [np.flatnonzero(judged & (part[chosen] == p)) for p in range(len(laws))]
    left_out = [(masked[each], numbers[chosen[each], start]) for each in parts]
    return TwoPart.fit(components, which, other, unit, laws, left_out)


def _of_labels(number: int) -> Bins:
    return None, np.zeros(number), np.zeros(0)


def _learners(regressions: Sequence[Any] | None, number: bool) -> list[Learner]:
    """The given regressions; by default neighbours and forests: for numbers one of values and one of residuals."""
    if regressions is not None:
        return [partial(learned, each) for each in regressions]
    return [*([partial(grown, of=0), partial(grown, of=1)] if number else [grown]), nearest]
