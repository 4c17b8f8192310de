"""Do batches still come from the distribution of the reference? A monitor with a bound on false alarms over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import count, on_host
from meanmap.core.synonyms import made_by, own_words
from meanmap.core.tables.apart import without
from meanmap.core.tables.missing import settle
from meanmap.core.tables.schema import Schema, admitted
from meanmap.core.types import Axes, Data, KernelLike, Seed
from meanmap.features.base import Concatenated, transformed
from meanmap.features.states.passes import SampleState, one_pass
from meanmap.features.states.reading import left_out_of
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.samples.drift_apart import Unused, with_gaps
from meanmap.stats.samples.drift_far import SHARE_OF_FAR, FarCells
from meanmap.stats.samples.drift_frequent import SHARE_OF_FREQUENT, FrequentLabels
from meanmap.stats.samples.drift_gaps import Gaps
from meanmap.stats.samples.drift_lasting import Ended, Lasting
from meanmap.stats.samples.drift_lost import SHARE_OF_LOST, LostLabels
from meanmap.stats.samples.drift_notes import notes_on, without_added
from meanmap.stats.samples.drift_observed import check_widths
from meanmap.stats.samples.drift_page import facts_of, in_words, monitor_page
from meanmap.stats.samples.drift_persistent import Persistent
from meanmap.stats.samples.drift_picture import draw
from meanmap.stats.samples.drift_pool import at_most, ranked
from meanmap.stats.samples.drift_record import Record
from meanmap.stats.samples.drift_saved import bare, with_features
from meanmap.stats.samples.drift_start import MOST_KEPT, first_state
from meanmap.stats.samples.drift_step import after_pvalue, judged_by_column, observed_in, with_batch
from meanmap.stats.samples.drift_strata import Strata
from meanmap.stats.samples.margin import Margin, batch_state, few_rows, not_by_column
from meanmap.stats.samples.run_length import wealth
from meanmap.stats.samples.strangers import KnownLabels

__all__ = ["DriftMonitor"]


@made_by("mm.DriftMonitor.of(reference, run_length=1000)")
@dataclass(frozen=True, eq=False)
class DriftMonitor(Paged):
    """Monitor batches for drift away from a reference sample, with a bound on false alarms over time.

    `monitor = mm.DriftMonitor.of(reference, run_length=1000)` starts a monitor, `monitor = monitor.step(batch)`
    processes each batch, and `monitor.alarms` lists the batches with an alarm. `print(monitor)` shows for each alarm
    which columns moved and by how much. Monitors are immutable: `step` returns the next one.

    Attributes
    ----------
    run_length : float
        Without drift, the expected number of alarms in any T batches is at most T / run_length.
    pvalues : array (T,)
        The p-value of every batch so far. Without drift they are independent, and each is at most u with probability at
        most u, so any sequential procedure for p-values is valid (see the notes on missing values).
    evidence : array (T,)
        The evidence of drift accumulated since the last alarm; an alarm is raised when it or `persistent.evidence`
        exceeds `limit`, or when the p-value of one batch is at most `pvalue_limit`.
    limit : float
        Chosen so that without drift the evidence raises half of the false alarms that `run_length` allows, or a quarter
        where single columns may raise another quarter.
    alarms : tuple of int
        The batches, counted from 1, at which there was an alarm.
    seed : int
        `rng=monitor.seed` repeats the run.
    schema : Schema or None
        The columns of the reference. Those of batches are matched by name; a missing column or another kind is an
        error.
    notes : tuple of str
        Notes on the latest batch, such as labels that the reference lacks, or copies; at first on the reference.
    standing : tuple of str
        Notes on the reference that concern every batch: consecutive rows are alike. `print(monitor)` always shows them.
    left_out : dict
        Columns that are not watched, because they only identify or date the rows, with their notes.
    missing : str
        What happens to missing values in batches.
    known : KnownLabels
        The labels that features distinguish; all others count as one.
    margin : Margin or None
        The tolerated distance of batches from the reference.
    gaps : Gaps or None
        Missing values, which are watched with `missing="drop"`: `gaps.pvalues` and `gaps.evidence` of all batches, and
        `gaps.shares` of the columns in the latest.
    points : points or None
        The points of the pool, from which features are computed again if a file has none.
    lasting : Lasting or None
        The drift that has not ended: `lasting.since`, the batch with which it probably began, and
        `lasting.pvalue`. Later alarms of the same changes repeat it: `repeats`.
    ended : Ended or None
        The latest drift that has ended: `ended.since`, and `ended.at`, the batch after which it had.
    labels : LostLabels or None
        The number of rows since each label of the reference was last seen; None with strata or a margin.
    frequent : FrequentLabels or None
        The rows of labels and repeated numbers, for those that become frequent; None with strata or a margin.
    far : FarCells or None
        The latest batches that hold cells far outside the range of the reference; None with strata or a margin.
    persistent : Persistent or None
        Small changes of single columns that last: `persistent.evidence` of all batches, with the same limit. None with
        a kernel of your own, strata or a margin.
    widths : dict
        The columns that are also compared one by one, with the number of coordinates of each.
    apart, unused : tuples
        Columns that the latest comparison left out for missing values, and the pools for other sets of such columns.
    record : Record or None
        The rows since drift began, and the rows of alarms that `print(monitor)` explains column by column; None with
        strata, and for points without columns.

    Notes
    -----
    Batch t is compared with a pool by the maximum mean discrepancy of features, fused over kernels and combined with
    ranks in each column and in pairs of columns as in `two_sample_test`, and ranked among random subsets of both
    together; ties are broken at random. Without an alarm the batch joins the pool. From 5000 points on, or from the
    size of the first pool if that is larger, a random part of both becomes the next pool, of the same size. A batch
    that ranks first is ranked once more, among 1 / `pvalue_limit` subsets. Given the set of points in pool and batch,
    the choice of those that form the batch is independent of all later computations. Hence p-values are independent and
    valid while all points are exchangeable, for any distribution and any size of the reference. (With a fixed pool one
    unlucky reference would affect all p-values.) A fiftieth of the false alarms is left to counts: the rows of a batch
    with the most frequent value, with each label, and among the k largest and smallest values of each column, for k =
    1, 2, 3, 4, 6, 8, ... and the size of the batch, are hypergeometric.

    A label that no row had for so long that this hardly happens by chance raises an alarm, too, and so does one with
    more rows of a batch than its rows of the reference explain, such as a new one: a fiftieth of the false alarms is
    left to each; and where labels are many, labels that no other row has do if they are more frequent than before (a
    hundredth). So do cells far outside the range of the reference in batch after batch (one single cell is noted): a
    five-hundredth is left to these, for tails no heavier than those of Cauchy's distribution.

    P-values of single batches may raise half of the false alarms, and evidence, which accumulates under lasting drift,
    a quarter (Lucas 1982; half where single columns are not watched). Evidence is the cumulative sum S_t = max(0,
    S_{t−1} + z_t − ½) of Page (1954), for z_t = Φ⁻¹(1 − p_t), and restarts from zero at an alarm. Without drift the z_t
    are independent and stochastically at most standard normal for any data, so the mean run length has a known bound.
    It is the solution of an integral equation (Brook & Evans 1972), found by Gauss–Legendre quadrature. S is a monotone
    Markov chain that starts from its smallest state. Hence the expected remainder of a run is never longer than a new
    run, and at most T / run_length runs are expected to end in T batches (Barlow & Proschan 1975). Restarts after other
    alarms do not add to them.

    The last quarter is left to single columns. The mean and the spread of normal scores, the share of each label and of
    missing values in each batch are compared with those of all rows before it, each column in all rows that have it.
    Given the counts of both together in cells of the column, these are exactly standard normal and independent. Their
    likelihood ratios for a change that began with any of the latest 100 batches, averaged over moments and summed over
    beginnings, exceed 5 · `run_length` at most once in so many batches (see `persistent`); labels and repeated numbers
    of the latest batches together have the rest (see `frequent`). All rows before are counted, not only the pool.

    After an alarm the latest three of the batches that follow are also compared together with the pool before it, in
    their values and in what is missing. While their p-value is at most .05 the drift lasts, which is reported; it has
    ended when that of three batches exceeds .2, and none of these raises an alarm or differs by itself. Until then no
    batch joins the pool. Alarms that follow a false one may then be more frequent than `run_length` says.

    All this needs independent rows. Neighbouring readings of a sensor are alike, and so are rows that share a day, a
    shift or a lot: then batches differ by more than chance, and false alarms are far more frequent than `run_length`
    says. A note says if consecutive rows of the reference are alike; no note warns of effects of days. Monitor rows
    that lie far enough apart, the residuals of `structure.prewhiten`, or one row of means for each day; or set `margin`
    above the distance of normal batches from the reference.

    The price is limited memory: a full pool turns over in about n / b batches (n points in the pool, b in a batch), so
    a much slower drift is absorbed without an alarm. Compare with the reference itself by `two_sample_test` now and
    then. Batches of 20 to 50 rows detect small drifts soonest: merge smaller ones.

    If a batch lacks nearly all values of a column, this column is set to one constant in batch and pool. Batches that
    lack the same columns form a stream with its own pool and evidence, so alarms of all streams together are as rare as
    promised. Counts in single columns and `persistent` use all rows that have the column. But pools share rows at
    first, so p-values of different streams, and an `evalue` of them, are not quite independent. Values that the
    reference lacks must be missing at random: the pool has only complete rows.

    With a margin the mean embedding of a batch is compared with that of the reference, which stays fixed, and the
    p-value is that of a distance at the margin (see `closeness_test`), widened by the sampling error of the
    reference and by the uncertainty about the distance of the margin, including tails that the rows of the reference
    have not reached. Given the reference, p-values are then independent and conservative as long as batches stay within
    the margin and their means are approximately normal.

    A step costs O(n_permutations · b · r) for r features, at most 1792 by default and four for each column, and O(n r)
    to copy the pool of n ≤ 20,000 points. From a longer batch b = 20,000 rows are drawn at random, also for the tables
    of alarms; counts of single columns, and means and shares over time, are of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor.of(rng.normal(size=(500, 2)), run_length=1000, rng=0)
    >>> for t in range(1, 41):
    ...     monitor = monitor.step(rng.normal(0.0 if t <= 30 else 0.7, 1.0, size=(25, 2)))     # after 30 a shift
    >>> monitor.alarms[0]
    32
    """

    features: Concatenated
    pool: np.ndarray
    mean_squares: tuple[float, ...]
    names: tuple[str, ...]
    run_length: float
    n_permutations: int
    seed: int
    limit: float
    pvalues: np.ndarray
    evidence: np.ndarray
    alarms: tuple[int, ...] = ()
    schema: Schema | None = None
    notes: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    missing: str = "raise"
    margin: Margin | None = None
    strata: Strata | None = None
    known: KnownLabels = field(default_factory=KnownLabels)
    gaps: Gaps | None = None
    points: Any = None
    record: Record | None = None
    apart: tuple[str, ...] = ()
    unused: tuple[Unused, ...] = ()
    standing: tuple[str, ...] = ()
    widths: dict[str, int] = field(default_factory=dict)
    lasting: Lasting | None = None
    ended: Ended | None = None
    labels: LostLabels | None = None
    frequent: FrequentLabels | None = None
    far: FarCells | None = None
    persistent: Persistent | None = None

    def to_save(self) -> "DriftMonitor":
        """The monitor without arrays that are recomputed from its points and landmarks."""
        return bare(self)

    @classmethod
    @own_words
    def of(
        cls,
        reference: Data,
        kernel: KernelLike = None,
        *,
        run_length: float = 1000,
        within: str | Sequence[str] | None = None,
        margin: float | None = None,
        n_permutations: int = 1000,
        scale: bool = True,
        missing: str = "raise",
        kinds: Mapping[str, Any] | None = None,
        rng: Seed = None,
    ) -> "DriftMonitor":
        """Start a monitor, which has no batch yet.

        Parameters
        ----------
        reference : points
            At least 40 points or rows of a table that represent the normal state. A quarter of them, 500 at most, serve
            only to choose kernels and landmarks; at most 20,000 of the others, drawn at random, are the first pool.
        kernel : Kernel, "median", "learned", a sequence of kernels, or None
            As for `two_sample_test`; with None each column and each pair of columns is compared, too.
        run_length : float
            The mean number of batches between false alarms.
        within : column name, or several, optional
            Strata (sites, machines, hours): batches are compared with the reference within each, so a different mix of
            strata is not drift. Rows of strata that the reference lacks are ignored, and a note counts them.
        margin : float, optional
            The tolerated distance from the reference, as a shift of every column in standard deviations: with .1,
            a harmless change raises no alarm even in a million rows, and one mean that moves further does. The
            reference then stays fixed. For batches of 20 rows or more.
        n_permutations : int
            The number of random subsets among which each batch is ranked.
        scale : bool
            As for `two_sample_test`: whether default kernels measure each column in its own unit.
        missing : {"raise", "drop", "category"}, or list of codes
            What happens to missing values in the reference and in batches, as for `two_sample_test`. With "drop", and
            without `within` or `margin`, their frequency in each column is watched as well. Values and missing values
            may each raise half of the false alarms, so the limit is that of twice the run length.
        kinds : mapping of column to kind, optional
            The kinds of columns whose data type does not show it, such as {"zip": "label"}: see `Schema.of`. Ids, row
            numbers, times and dates of tables are left out by default kernels, with a note, unless they are declared.
        rng : None, int, numpy.random.Generator or JAX key
            Chooses landmarks, subsets and pools.
        """
        given = {"run_length": run_length, "within": within, "margin": margin, "n_permutations": n_permutations}
        state = first_state(reference, kernel, scale=scale, missing=missing, kinds=kinds, rng=rng, **given)
        return cls(**state, pvalues=np.zeros(0), evidence=np.zeros(0))

    @own_words
    def state(self, batch: Data) -> SampleState:
        """The contribution of some rows of a batch, for monitors with a margin.

        Each machine computes the state of its part, `first.merge(second)` adds two, and `monitor.step(state)` takes the
        whole batch: the p-value is that of all rows, rounded to 2⁻¹⁶; a `step` with rows also compares each column.
        """
        if self.margin is None or self.margin.grid is None:
            raise ParameterError(
                "a monitor without margin= ranks the rows among those of its pool: pass the rows to monitor.step."
            )
        return one_pass(self, batch_state, [batch], ["batch"])[0]

    @own_words
    def step(self, batch: Data) -> "DriftMonitor":
        """The monitor after one more batch of at least 2 points; batches may differ in size.

        With a margin it may also be a `state`, Parquet files or a Dask collection. Where missing values are watched,
        columns that leave few rows complete are left out, and the others are compared without them, with a note.
        """
        if self.margin is not None and comes_in_pieces(batch):
            batch = self.state(batch)
        if isinstance(batch, SampleState):
            return self._after_state(batch)
        if self.points is not None and not len(self.pool):  # loaded from a file
            return with_features(self).step(batch)
        batch, added = without_added(without(batch, self.left_out, "batch"), self.names, self.strata)
        monitor, found, before, came = self, None, None, batch
        if self.gaps is not None:
            monitor, batch, found, before, added = with_gaps(self, self.gaps, batch, added)
            if batch is None:
                own = observed_in(self, came, None)
                monitor, pvalue = judged_by_column(monitor, 1.0, own, found)
                after = after_pvalue(monitor, pvalue, added, None, own, found)
                return with_batch(self, monitor, after, None, found, {})
        with Door() as door:
            data, codes, notes = self._read(batch)
            points = jax.tree.map(on_host, self.known(self.features.read(data, "batch", door)))
            check_rows(count(points), "batch", 2)
            if self.margin is None:
                points, codes = at_most(MOST_KEPT, points, codes, [self.seed, len(self.pvalues), 3])
            new = transformed(self.features, points)
        own = observed_in(monitor, came, data)
        if self.margin is None:
            generator = np.random.default_rng([self.seed, len(self.pvalues)])
            pvalue, pool = ranked(monitor, points, new, codes, generator)
            monitor, pvalue = judged_by_column(monitor, pvalue, own, found)
        else:
            pool = {"points": None}
            pvalue, notes = self.margin.judged(new.mean(axis=0), len(new), data, notes)
        after = after_pvalue(monitor, pvalue, (*notes, *added), data, own, found, before)
        if self.margin is None:
            return with_batch(self, monitor, after, points, found, pool)
        return after if after.alarm else replace(after, **pool)

    def _after_state(self, state: SampleState) -> "DriftMonitor":
        if self.margin is None or state.sums.grid != self.margin.grid:
            raise ParameterError("the state belongs to another monitor: create it by monitor.state(rows) of this one.")
        check_rows(state.n, "batch", 2)
        told = (*left_out_of("batch", state), *few_rows(state.n), *not_by_column(self.margin))
        return after_pvalue(self, self.margin.pvalue(state.sums.mean, state.n), told)

    def _read(self, batch: Data) -> tuple[Any, np.ndarray, tuple[str, ...]]:
        """A batch with the columns of the reference, its strata, and notes."""
        declared = () if self.schema is None else [name for name, _ in self.schema.kinds]
        (batch,), told = admitted((batch,), ("batch",), self.missing, least=2, told=declared)
        codes, heard = (np.zeros(0, int), ()) if self.strata is None else self.strata.read(batch)
        data, notes = self.complete(batch)
        return data, codes, (*told, *heard, *notes)

    @own_words
    def in_columns(self, batch: Data) -> tuple[Any, tuple[str, ...]]:
        """Rows as kernels read them, with missing values handled as the monitor's `missing=` says, and notes."""
        (batch,), told = settle((without(batch, self.left_out, "batch"),), ("batch",), self.missing)
        data, notes = self.complete(batch)
        return data, (*told, *notes)

    def complete(self, batch: Data) -> tuple[Any, tuple[str, ...]]:
        """Rows without missing values as kernels read them, and notes."""
        if self.schema is None:
            return batch, ()
        table = self.schema.read(batch, "batch")
        if self.record is not None:
            check_widths(table.columns, self.record.reference.columns)
        return (table if self.names else batch), notes_on(self.schema, table)

    @property
    def pvalue_limit(self) -> float:
        """A single p-value of at most this raises an alarm, also one of missing values if these are watched."""
        alone = self.frequent and self.frequent.counts
        others = SHARE_OF_LOST * bool(self.labels) + SHARE_OF_FREQUENT * bool(alone) + SHARE_OF_FAR * bool(self.far)
        return (1 / (4 if self.gaps else 2) - others) / self.run_length

    def exceeded(self, evidence: float, pvalue: float) -> bool:
        """Whether evidence, or the p-value of the latest batch, raises an alarm."""
        return bool(evidence > self.limit or pvalue <= self.pvalue_limit)

    @property
    def alarm(self) -> bool:
        """Whether the latest batch raised an alarm."""
        return bool(self.alarms) and self.alarms[-1] == len(self.pvalues)

    @property
    def repeats(self) -> tuple[int, ...]:
        """The alarms that repeat a known drift that goes on: its earlier alarms name all that changed, and how."""
        return () if self.record is None else self.record.repeats

    @property
    def evalue(self) -> float:
        """The wealth from one unit bet on drift that begins at the first batch or at a later one.

        P(evalue ever ≥ 1/α) ≤ α without drift, and e-values of monitors of independent streams can be multiplied.
        """
        return wealth(self.pvalues)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the evidence after each batch, with the alarms; returns the matplotlib Axes."""
        return draw(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """The monitor as plain Python values, ready for JSON, with how the columns of each alarm differ."""
        return facts_of(self)

    def _as_page(self, brief: bool = False) -> Page:
        return monitor_page(self, brief)

    def __str__(self) -> str:
        return in_words(self)

    __repr__ = __str__
