"""The common part of plans of tests on samples of any size, made from some of the rows, and of the states of parts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self, TypeVar

import numpy as np

from meanmap.core.arrays import check_rows
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.rng import Rng
from meanmap.core.synonyms import own_words
from meanmap.core.tables.apart import like_ids
from meanmap.core.tables.chunks import any_once, chunks_of, count_rows, sampled, source_of
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.table import values_of
from meanmap.core.types import Data, KernelLike
from meanmap.core.values import Value
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.passes import SAMPLE, SampleState, known_seed, one_pass
from meanmap.features.states.reading import Reading, left_out_of
from meanmap.linalg.moments import Moments
from meanmap.stats.asked import OfSamples
from meanmap.stats.samples.feature_statistics import feature_map
from meanmap.stats.samples.rank_features import without_columns
from meanmap.stats.samples.samples import columns_of, read_samples
from meanmap.stats.settings import LEAST_POINTS, PERMUTED
from meanmap.stats.texts import refuse_numbers

__all__ = ["SamplesPlan", "in_one_pass", "is_long"]

# A plan is made from `SAMPLE` rows of each of two samples; with more samples from fewer rows each, at least this many.
LEAST = 256


Made = TypeVar("Made", bound="SamplesPlan")


@dataclass(frozen=True, eq=False, repr=False)
class SamplesPlan(Value):
    """The choices of a test before it reads all rows: columns, kernels and features.

    Attributes
    ----------
    reading : Reading
        The columns, and the treatment of missing values.
    kernels : tuple of Kernel
    features : FeatureMap
        Nyström features of all kernels, the grid to which they are rounded so that sums are exact, and their
        correlations in the sample from which the plan was made.
    columns : tuple of str
    seed : int
    names : tuple of str
        Names of the samples.
    notes : tuple of str
        Notes on the sample.
    """

    reading: Reading
    kernels: tuple[Any, ...]
    features: FeatureMap
    columns: tuple[str, ...]
    seed: int
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def made(
        cls,
        sources: Sequence[Any],
        names: Sequence[str],
        kernel: KernelLike,
        scale: bool,
        missing: str,
        kinds: Mapping[str, Any] | None,
        random: Rng,
        correlated: bool = True,
    ) -> Self:
        """The plan from some rows of each source, with correlations of features if these were drawn from all rows."""
        seed, most = known_seed(random), max(2 * SAMPLE // len(sources), LEAST)
        sample = [sampled([each], random.generator, [name], most)[0] for each, name in zip(sources, names, strict=True)]
        refuse_numbers(sample, names, kinds, kernel)
        reading, sample = Reading.of(sample, names, missing, kinds, LEAST_POINTS)
        with Door() as door:
            samples = read_samples(sample, names, kernel, random.generator, door, scale, fusing=True)
            features = feature_map(samples, random.generator, door, correlated, columns=True)
        notes = *reading.notes, *samples.doubts
        return cls(reading, samples.kernels, features, columns_of(samples), seed, tuple(names), notes)

    @own_words
    def state(self, rows: Data, name: str = "rows") -> SampleState:
        """The contribution of some rows of a sample to the test.

        Parameters
        ----------
        rows : points, files or iterator of pieces
            Rows with the columns of the samples, possibly none.
        name : str
            The name of the rows in errors.
        """
        return one_pass(self, _added, [rows], [name])[0]

    def _moments(self, states: Sequence[SampleState]) -> list[Moments]:
        """The means and covariances of the features in each sample."""
        for state, name in zip(states, self.names, strict=True):
            check_rows(state.n, name, LEAST_POINTS)
        return [self.features.moments(state.sums) for state in states]

    def _told(self, states: Sequence[SampleState]) -> tuple[str, ...]:
        """Notes on missing values, and on the sample from which the plan was made."""
        told = map(left_out_of, self.names, states)
        return (*(note for notes in told for note in notes), *self.notes)

    @property
    def _draws(self) -> np.random.Generator:
        """The generator of draws from the limiting distribution, the same for every result."""
        return np.random.default_rng([self.seed, 1])

    def fused(self, columns: bool = False) -> str:
        """The number of kernels over which a statistic is fused, in words, and the number of columns, if any."""
        _, ranks = without_columns(self.features.features)
        kernels = f" fused over {len(self.kernels)} kernels" if len(self.kernels) > 1 else ""
        return (
            kernels
            if ranks is None
            else f"{kernels}, combined with tests of ranks in each of {len(self.columns)} columns"
        )


def _added(plan: SamplesPlan, rows: Data, name: str) -> SampleState:
    """The contribution of rows, which this method reads."""
    came, gaps = 0, Counter()

    def points(door: Door) -> Iterator[Any]:
        nonlocal came
        for piece, number, missing in plan.reading.pieces(rows, name):
            where = f"{name}[{came}:]" if came else name
            came += number
            gaps.update(missing)
            if piece is not None:
                yield plan.features.features.read(piece, where, door)

    with Door() as door:
        sums = plan.features.sums(points(door))
    return SampleState(sums, came, dict(sorted(gaps.items())))


def in_one_pass(asked: OfSamples, plan: type[Made]) -> tuple[Made, list[SampleState]] | None:
    """A plan for samples of many rows, and the states of all of them; None if they turn out to be few."""
    missing, kinds = (asked.missing, asked.kinds) if asked.by is None else ("raise", None)
    drawn = not any_once(asked.parts)
    asked.parts, whole = _begun(asked.parts, asked.names, missing, kinds)
    if whole is None:
        return None
    made = plan.made(asked.parts, asked.names, asked.kernel, asked.scale, missing, kinds, asked.random, drawn)
    asked.tell(alike_in_order(asked.parts, asked.names))
    asked.tell(like_ids(asked.parts, asked.names, kinds, asked.told))
    return made, one_pass(made, _added, whole, asked.names)


def is_long(sources: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether all samples together have, or may have, enough rows to be compared in one pass."""
    if any_once(sources):
        return True
    return all(map(_has_rows, sources, names)) and sum(count_rows(source) or 0 for source in sources) > PERMUTED


def _begun(
    sources: Sequence[Any], names: Sequence[str], missing: str, kinds: Mapping[str, Any] | None
) -> tuple[list[Any], list[Any] | None]:
    """Rows for making a plan, and the whole samples, with iterators started; None if there are no other rows."""
    if not any_once(sources):
        return list(sources), list(sources)
    admitted(sources, names, missing, kinds)  # refuses options that need rows in memory
    streams = [chunks_of(source, SAMPLE, name) for source, name in zip(sources, names, strict=True)]
    first = [next(stream, None) for stream in streams]
    for block, name in zip(first, names, strict=True):
        if block is None:
            raise EmptyError(f"{name} gave no rows; expected pieces of a sample.")
    second = [next(stream, None) for stream in streams]
    if all(block is None for block in second):
        return first, None
    parts = zip(first, second, streams, strict=True)
    return first, [chain([one], [] if two is None else [two], stream) for one, two, stream in parts]


def _has_rows(data: Data, name: str) -> bool:
    """Whether a sample can be cut into parts; data that only a kernel can read cannot."""
    return comes_in_pieces(data) or source_of(data).named or values_of(data, name) is not None
