"""Do batches still come from the law of the reference? A monitor whose false alarms are bounded over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy.special import ndtri

from meanmap.core.arrays import check_rows, plain
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.pictures import new_axes
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.points import count, is_sparse, rows
from meanmap.core.rng import Rng
from meanmap.core.settings import is_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.missing import settle
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.schema import Schema, admitted
from meanmap.core.tables.table import Table, named_columns, values_of
from meanmap.core.types import Axes, Data, KernelLike, Seed
from meanmap.features.base import Concatenated, transformed
from meanmap.features.states.passes import SampleState, one_pass
from meanmap.features.states.reading import left_out_of
from meanmap.stats.collections import fused
from meanmap.stats.permutations import CentredFeatures, Permuted
from meanmap.stats.result import larger_and_tied
from meanmap.stats.samples.drift_strata import Strata, within_strata
from meanmap.stats.samples.feature_statistics import landmark_features
from meanmap.stats.samples.margin import Margin, batch_state, few_rows
from meanmap.stats.samples.run_length import ALLOWANCE, limit_for
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.strangers import KnownLabels
from meanmap.stats.samples.subsets import TIE, blocks_of, subset_sums
from meanmap.stats.settings import check_draws

__all__ = ["DriftMonitor"]

# This part of the reference chooses kernels and landmarks, and is compared with nothing: what is compared must not have
# chosen them, or new points would differ from old ones without any drift.
SHARE, LEAST, MOST = 0.25, 10, 500
# And this many others at most are kept to compare with: their features are held, ten kilobytes a point.
MOST_KEPT = 20_000
# Landmarks of one kernel, and of each of several: 64 of each saw less of a drift in correlation, for half the time.
LANDMARKS = 512, 256
# Of smaller p-values the quantile would be infinite.
LEAST_PVALUE = 1e-300
# What becomes of batches whose rows follow each other as a series does, and what to do.
HARM = (
    "batches of neighbours differ by more than chance and alarms come too often. Watch what structure.prewhiten "
    "leaves, or rows that lie far enough apart"
)


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """Watches batches for drift away from a reference sample, with a bound on false alarms at all times.

    `monitor = mm.DriftMonitor.of(reference, run_length=1000)` begins; `monitor = monitor.step(batch)` goes on
    with each batch, and `monitor.alarms` are the batches with an alarm.

    Monitors do not change: `step` returns the next one. Made by [`DriftMonitor.of`][].

    Attributes
    ----------
    run_length : float
        While nothing drifts, the expected number of alarms in any T batches is at most T / run_length.
    pvalues : array (T,)
        Of every batch so far. While nothing drifts they are independent and uniform on (0, 1), so that any procedure
        for p-values that come one after another is right for them too.
    evidence : array (T,)
        What has been gathered against "no drift" since the last alarm; above `limit` there is the next.
    limit : float
        So chosen that without drift the mean number of batches to an alarm is `run_length`.
    alarms : tuple of int
        The batches, counted from 1, at which there was an alarm.
    seed : int
        `rng=monitor.seed` repeats the run.
    schema : Schema or None
        The columns of the reference. Columns of batches are found by name; another kind, or a column that is not there,
        is an error.
    notes : tuple of str
        What is odd about the latest batch: labels the reference never had, numbers far outside of it; before the first
        batch, about the reference.
    missing : str
        What happens to missing values in batches.
    known : KnownLabels
        The labels that features tell apart; all others count as one.
    margin : Margin or None
        How far batches may be from the reference.

    Notes
    -----
    Batch t is compared with a pool by the maximum mean discrepancy of features, fused over kernels as in
    [`two_sample_test`][], and ranked among random subsets of both together; ties are broken at random. Then a random
    part of both becomes the next pool, of the size of the first. Given which points a pool and a batch have together,
    which of them were the batch is independent of all that is computed later; hence the p-values are independent and
    exactly uniform while all points are exchangeable, whatever their law and the size of the reference. (Against a pool
    that stays the same they are not: one unlucky reference would be behind all of them.)

    Evidence is the cumulative sum S_t = max(0, S_{t−1} + z_t − ½) of Page (1954), for z_t = Φ⁻¹(1 − p_t), and starts
    again from zero at an alarm. Without drift the z_t are independent and standard normal, whatever the data, so that
    the mean run length is known: it solves an integral equation (Brook & Evans 1972), here by Gauss–Legendre
    quadrature. S is a monotone Markov chain that starts from its least state, hence what remains of a run is never
    longer on average than a new one, and of such runs at most T / run_length are expected to end in T batches (Barlow &
    Proschan 1975).

    The price of the promise is memory: the pool turns over in about n / b batches (n points in it, b in a batch), so
    that a drift that takes much longer than that is followed rather than told. Compare with the reference itself by
    [`two_sample_test`][] now and then. Batches of 20 to 50 rows tell small drifts soonest: join smaller ones.

    With a margin the mean embedding of a batch is compared with that of the reference, which is kept for good, and the
    p-value is that of a distance at the margin (see [`closeness_test`][]), widened by how far the reference may be from
    its law, and by how sure it is what the margin amounts to, as far as rows of the reference have reached its tails.
    Given the reference, p-values are then independent and at most uniform as long as batches stay within the
    margin, as far as their means are normal.

    A step costs O(n_permutations · b · r) for r features (at most 1280 by default) and O(n r) to copy the pool of
    n ≤ 20,000 points, however many batches came before and however long the reference is.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor.of(rng.normal(size=(500, 2)), run_length=1000, rng=0)
    >>> for t in range(1, 41):
    ...     monitor = monitor.step(rng.normal(0.0 if t <= 30 else 0.7, 1.0, size=(25, 2)))     # after 30 a shift
    >>> monitor.alarms[0]
    33
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
    missing: str = "raise"
    margin: Margin | None = None
    strata: Strata | None = None
    known: KnownLabels = field(default_factory=KnownLabels)

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
        """A monitor before its first batch.

        Parameters
        ----------
        reference : points
            n points or rows of a table that show what is normal, at least 40. A quarter of them, 500 at most, only
            choose kernels and landmarks; of the others at most 20,000, drawn at random, are the first pool.
        kernel : Kernel, "median", "learned", a sequence of kernels, or None
            As for [`two_sample_test`][], but None are the five of all columns and nothing else: what differs in one
            column of many is seen late.
        run_length : float
            Batches from one false alarm to the next, on average.
        within : column name, or several, optional
            Strata (sites, machines, hours): batches are compared with the reference inside of each, so that another mix
            of them is no drift. Rows of strata that the reference lacks say nothing, and a note counts them.
        margin : float, optional
            How far batches may be from the reference without being told, as if every column had moved by so many of its
            standard deviations: .1, say, and a million rows of harmless change raise no alarm. The reference then stays
            what it is. For batches of 20 rows or more.
        n_permutations : int
            Random subsets that each batch is ranked among.
        scale : bool
            As for [`two_sample_test`][]: whether default kernels measure each column in its own unit.
        missing : {"raise", "drop", "category"}
            What happens to missing values in the reference and in batches, as for [`two_sample_test`][].
        kinds : mapping of column to kind, optional
            What columns mean where their data type does not say, such as {"zip": "label"}: see [`Schema.of`][].
        rng : None, int, numpy.random.Generator or JAX key
            Chooses landmarks, subsets and pools.
        """
        check_draws(n_permutations)
        if not is_number(run_length) or not 4 <= run_length <= 1e6:
            raise ParameterError(f"run_length is {run_length!r}; expected a number from 4 to 1e6, such as 1000.")
        random = Rng.of(rng)
        if random.seed is None:
            raise ParameterError("a monitor needs a seed that is known: make it outside jit.")
        (reference,), told = admitted((reference,), ("reference",), missing)
        told += alike_in_order((reference,), ("the reference",), HARM)
        strata = None
        if within is not None:
            if margin is not None:
                raise ParameterError("a margin is of all rows together: leave out within=, or margin=.")
            reference, strata = Strata.of(reference, within)
        data, schema = _read_reference(reference, kinds)
        n = count(data)
        check_rows(n, "reference", 4 * LEAST)
        order = random.generator.permutation(n)
        size = int(np.clip(SHARE * n, LEAST, MOST))
        with Door() as door:
            first = rows(data, np.sort(order[:size]))
            chosen = read_samples((first,), ("reference",), kernel, random.generator, door, scale, must_vary=False)
            number = LANDMARKS[len(chosen.kernels) > 1]
            known = KnownLabels.of(chosen.pooled)
            landmarks, number = known.landmarks(chosen.pooled, number, random.generator)
            features = landmark_features(chosen.kernels, landmarks, number, random.generator, door, np.float64)
            own = blocks_of(features, transformed(features, chosen.pooled))
            places = np.sort(order[size : size + MOST_KEPT])
            kept = known(features.read(rows(data, places), "reference", door))
            pool = transformed(features, kept)
            allowed, heavy = (None, ()) if margin is None else Margin.of(margin, features, kept, pool, chosen)
            pool = pool if allowed is None else pool[:0]
        squares = tuple(CentredFeatures(block).norm ** 2 for block in own)
        none = np.zeros(0)
        columns = schema.names if schema and isinstance(data, Table) else ()
        return cls(
            features, pool, squares, columns, float(run_length), int(n_permutations), random.seed,
            limit_for(float(run_length)), none, none, schema=schema, notes=(*told, *chosen.doubts, *heavy),
            missing=missing, margin=allowed, strata=strata and strata.rows(places), known=known,
        )  # fmt: skip

    def state(self, batch: Data) -> SampleState:
        """What some rows of a batch add, for monitors with a margin.

        Each machine takes its own part, `first.merge(second)` adds two up, and `monitor.step(state)` is the step for
        all of them: the p-value is that of all rows together, but for rounding them to 2⁻¹⁶.
        """
        if self.margin is None or self.margin.grid is None:
            raise ParameterError(
                "this monitor has no margin= and ranks rows among those of its pool: pass the rows to monitor.step."
            )
        return one_pass(self, batch_state, [batch], ["batch"])[0]

    def step(self, batch: Data) -> "DriftMonitor":
        """The monitor after one more batch of at least 2 points; batches may differ in size.

        With a margin also the `state` of a batch, Parquet files or a collection of Dask.
        """
        if self.margin is not None and comes_in_pieces(batch):
            batch = self.state(batch)
        if isinstance(batch, SampleState):
            return self._after_state(batch)
        with Door() as door:
            data, codes, notes = self._read(batch)
            points = self.known(self.features.read(data, "batch", door))
            check_rows(count(points), "batch", 2)
            new = transformed(self.features, points)
        generator = np.random.default_rng([self.seed, len(self.pvalues)])
        strata = self.strata
        if self.margin is None:
            both = np.concatenate([self.pool, new])
            if strata is None:
                values, rounding = self._statistics(both, len(new), generator)
                left = None
            else:
                subsets, codes, left = strata.exchanged(codes, self.n_permutations, generator)
                values, rounding = within_strata(self.features, both, subsets, codes)
                strata = replace(strata, codes=codes[left])
            near = max(rounding, TIE * float(np.abs(values).max()))
            larger, tied = larger_and_tied(float(values[0]), values[1:], near)
            pvalue = (larger + (1.0 - generator.random()) * (1 + tied)) / len(values)
            pool = both[generator.choice(len(both), len(self.pool), replace=False) if left is None else left]
        else:
            pvalue, pool = self.margin.pvalue(new.mean(axis=0), len(new)), self.pool
            notes += few_rows(len(new))
        return replace(self, pool=pool, strata=strata)._after(pvalue, notes)

    def _after_state(self, state: SampleState) -> "DriftMonitor":
        if self.margin is None or state.sums.grid != self.margin.grid:
            raise ParameterError("the state is that of another monitor: make it by monitor.state(rows) of this one.")
        check_rows(state.n, "batch", 2)
        told = (*left_out_of("batch", state), *few_rows(state.n))
        return self._after(self.margin.pvalue(state.sums.mean, state.n), told)

    def _after(self, pvalue: float, notes: tuple[str, ...]) -> "DriftMonitor":
        """One more p-value."""
        pvalue = max(pvalue, LEAST_PVALUE)
        before = 0.0 if self.alarm or not len(self.evidence) else self.evidence[-1]
        evidence = max(0.0, before - ndtri(pvalue) - ALLOWANCE)
        alarm = evidence > self.limit
        return replace(
            self,
            pvalues=np.append(self.pvalues, pvalue),
            evidence=np.append(self.evidence, evidence),
            alarms=(*self.alarms, len(self.pvalues) + 1) if alarm else self.alarms,
            notes=notes,
        )

    def _read(self, batch: Data) -> tuple[Any, np.ndarray, tuple[str, ...]]:
        """A batch with the columns of the reference, its strata, and what is odd about it."""
        (batch,), told = admitted((batch,), ("batch",), self.missing, least=2)
        codes = np.zeros(0, int)
        if self.strata is not None:
            codes, heard = self.strata.read(batch)
            told += heard
        data, notes = self.complete(batch)
        return data, codes, (*told, *notes)

    def in_columns(self, batch: Data) -> tuple[Any, tuple[str, ...]]:
        """Rows as kernels read them, missing values as `missing=` of the monitor says, and what is odd about them."""
        (batch,), told = settle((batch,), ("batch",), self.missing)
        data, notes = self.complete(batch)
        return data, (*told, *notes)

    def complete(self, batch: Data) -> tuple[Any, tuple[str, ...]]:
        """Rows without missing values as kernels read them, and what is odd about them."""
        if self.schema is None:
            return batch, ()
        table = self.schema.read(batch, "batch")
        return (table if self.names else batch), self.schema.notes(table, "batch")

    @property
    def alarm(self) -> bool:
        """Whether the latest batch gave an alarm."""
        return bool(self.alarms) and self.alarms[-1] == len(self.pvalues)

    @property
    def evalue(self) -> float:
        """What one unit of money has become that is bet on drift, from the first batch on or from a later one.

        P-values become payoffs (1 − p + p log p) / (p log² p), whose mean is 1 without drift (Vovk & Wang 2021), and a
        share 1/(t (t + 1)) of the money begins with batch t. So P(evalue ever ≥ 1/α) ≤ α while nothing drifts, and
        e-values of monitors of independent streams are multiplied.
        """
        money = 0.0
        for t, p in enumerate(np.clip(self.pvalues, 1e-300, 1.0).tolist(), start=1):
            log = np.log(p)
            payoff = 0.5 if p > 1 - 1e-6 else (1 - p + p * log) / (p * log**2)
            money = min((money + 1 / (t * (t + 1))) * payoff, 1e300)
        return float(money + 1 / (len(self.pvalues) + 1))

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the evidence after each batch, with the alarms; returns the matplotlib Axes."""
        ax = new_axes(6, 2.8) if ax is None else ax
        batches = np.arange(1, len(self.evidence) + 1)
        ax.plot(batches, self.evidence, color="C0", label="evidence since the last alarm")
        ax.axhline(self.limit, color="grey", ls="--", lw=1, label=f"one false alarm in {self.run_length:g} batches")
        at = np.array(self.alarms, int)
        if len(at):
            ax.plot(at, self.evidence[at - 1], "o", color="C3", label="alarms")
        ax.set(xlabel="batch", ylabel="evidence of drift")
        ax.legend(fontsize="small", loc="upper left")
        return ax

    def __str__(self) -> str:
        more = f" and {len(self.alarms) - 5} more" if len(self.alarms) > 5 else ""
        told = (", ".join(map(str, self.alarms[:5])) or "none") + more
        latest = f", the latest p-value {self.pvalues[-1]:.3g}" if len(self.pvalues) else ""
        count = len(self.pvalues)
        said = f"DriftMonitor after {count} batch{'es' * (count != 1)}{latest}; alarms at: {told}"
        return "\n".join([said, *(f"  note: {note}" for note in self.notes)])

    __repr__ = __str__

    def _statistics(self, both: np.ndarray, size: int, generator: np.random.Generator) -> Permuted:
        """The fused unbiased MMD² of the last `size` points against the others, and of random subsets of that size."""
        total, rest = len(both), len(both) - size
        drawn = (generator.choice(total, size, replace=False, shuffle=False) for _ in range(self.n_permutations))
        centred = both - both.mean(axis=0)  # the sums of the other points are then minus those of the subset
        found = []
        blocks = blocks_of(self.features, centred)
        norms = [np.einsum("ij,ij->i", block, block) for block in blocks]
        subsets = chain([np.arange(rest, total)], drawn)
        added = subset_sums(subsets, 1 + self.n_permutations, size, [*blocks, *norms])
        for own, sums, inside in zip(norms, added[: len(blocks)], added[len(blocks) :], strict=True):
            q = np.einsum("ij,ij->i", sums, sums)
            outside = own.sum() - inside
            values = (q - inside) / (size * (size - 1)) + (q - outside) / (rest * (rest - 1)) + 2 * q / (size * rest)
            found.append(Permuted(values, TIE * float(own.mean()) / size))
        sizes = [square**0.5 for square in self.mean_squares]
        return fused(found, sizes, float(np.sqrt(size * (size - 1.0))))[0]


def _read_reference(reference: Data, kinds: Mapping[str, Any] | None) -> tuple[Any, Schema | None]:
    """The reference as a table with its schema, or as it came where it has no columns."""
    if kinds or named_columns(reference, "reference"):
        schema = Schema.of(reference, kinds=kinds, names=("reference",))
        return schema.read(reference, "reference"), schema
    values = values_of(reference, "reference")
    if values is None:
        return (reference if is_sparse(reference) else np.atleast_1d(plain(reference, "reference"))), None
    return values, Schema.of(values, names=("reference",))
