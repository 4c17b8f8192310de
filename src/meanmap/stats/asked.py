"""A question to a test and its answer, in twelve steps: the same for all tests."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from meanmap.core.door import Door
from meanmap.core.errors import ParameterError
from meanmap.core.points import on_host
from meanmap.core.rng import Rng
from meanmap.core.tables.apart import like_ids, without_ids
from meanmap.core.tables.assigned import Kept
from meanmap.core.tables.chunks import any_once, source_of
from meanmap.core.tables.doubts import for_clusters
from meanmap.core.tables.indices import check_order, check_order_beside
from meanmap.core.tables.missing import length, rows_called
from meanmap.core.tables.order import alike_in_order
from meanmap.core.tables.picked import kinds_of_picked, picked
from meanmap.core.tables.schema import admitted
from meanmap.core.tables.wild import wild_notes
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, KernelLike
from meanmap.learning.default import is_default
from meanmap.stats.designs.exchanges import Exchange
from meanmap.stats.designs.reading import check_exchange, design_of, from_strata, kept_columns, observed, without_design
from meanmap.stats.encoding import encoded, encoded_samples, learns
from meanmap.stats.permutations import Permuted
from meanmap.stats.result import Null, TestResult, flat
from meanmap.stats.settings import LEAST_POINTS, check_draws
from meanmap.stats.shown import Shown
from meanmap.stats.texts import read_texts, texts_of_variables

__all__ = ["Asked", "Found", "OfSamples", "alone"]


def alone(kernels: Sequence[Any]) -> Any:
    """The one kernel, or the tuple of several: what a result shows."""
    return kernels[0] if len(kernels) == 1 else tuple(kernels)


@dataclass(frozen=True)
class Found:
    """The outcome of a test, and the notes about it; `more` holds the fields of its own kind of result.

    `shown` are rows to draw.
    """

    statistic: float
    null: Null
    kernels: Any
    method: str
    sizes: tuple[int, ...]
    told: tuple[str, ...] = ()
    kind: type[TestResult] = TestResult
    more: Mapping[str, Any] = field(default_factory=dict)
    shown: Shown | None = None

    @classmethod
    def exact(
        cls, found: Permuted, kind: str, kernels: object, method: str, sizes: tuple[int, ...], told: Sequence[str]
    ) -> "Found":
        """From values: the first is the observed statistic, and the others are its exact null distribution."""
        value, null = float(found.values[0]), Null(kind, found.values[1:], exact=True, rounding=found.rounding)
        return cls(value, null, kernels, method, sizes, (*told, *flat(null, value)))

    def result(self, seed: int | None, told: Sequence[str] = ()) -> Any:
        """The result, with the earlier notes."""
        value, warnings = self.statistic, (*told, *self.told)
        p = self.null.pvalue(value)
        seen = value, p, self.null, self.kernels, self.method, self.sizes, seed, warnings
        return self.kind(*seen, shown=self.shown, **self.more)


@dataclass
class Asked(ABC):
    """The input of a test: variables of the same rows, the design of these rows, and the settings that all tests share.

    Attributes
    ----------
    parts : list
        Variables, or samples.
    wanted : sequence
        The kernel requested for each part.
    said : tuple
        The arguments within=, clusters= and perhaps weights=, and then the `exchange` that they define.
    n_draws, missing, kinds, random : int, str, mapping, Rng
        As all tests have them.
    names : sequence of str
        The names of the parts.
    told : tuple of str
        Notes so far.
    data : table, optional
        The table, if the parts and the design are given as names of its columns.
    features : sequence
        Functions of rows that replace the parts.
    across : bool
        Whether clusters, which are not exchanged then, may lie across strata.
    """

    parts: list[Any]
    wanted: Sequence[KernelLike]
    said: tuple[Data, ...]
    n_draws: int
    missing: str
    kinds: Mapping[str, Any] | None
    random: Rng
    names: Sequence[str] = ()
    exchange: Exchange | None = None
    told: tuple[str, ...] = ()
    data: Data = None
    features: Any = None
    across: ClassVar[bool] = False
    paired: ClassVar[bool] = True  # whether rows of the parts belong together

    @one_blas_thread()
    def answer(self) -> Any:
        """The twelve steps; permutations are many small products."""
        check_draws(self.n_draws)
        self.pick()
        self.check_order()
        self.leave_ids()
        self.parts = list(map(on_host, self.parts))
        came = self.parts
        if (found := self.in_one_pass()) is not None:
            return replace(found, shown=self.spread(came)).result(self.random.seed, self.told)
        self.parts = [source_of(part).whole(name) for part, name in zip(self.parts, self.names, strict=True)]
        self.admit()
        clean = list(self.parts)
        self.encode()
        self.read_texts()
        self.leave_strata()
        with Door() as door:
            found = self.compute(door)
        return replace(found, shown=self.draw(clean)).result(self.random.seed, self.told)

    def draw(self, clean: Sequence[Any]) -> Shown | None:
        """What the page of the result draws of parts without missing values."""
        return Shown.of(clean, self.names, self.paired)

    def spread(self, came: Sequence[Any]) -> Shown | None:
        """Some rows of parts that were read in one pass, read again to be drawn."""
        some = Shown.of(came, self.names, self.paired)
        if some is None or (self.missing == "raise" and not self.kinds):
            return some
        clean, _ = admitted(some.parts, self.names, self.missing, self.kinds, paired=self.paired, least=0)
        return replace(some, parts=tuple(clean)) if all(map(length, clean)) else None

    @property
    def designed(self) -> bool:
        """Whether a design of the rows was given."""
        return any(each is not None for each in self.said)

    def tell(self, found: Sequence[str]) -> None:
        """Add notes to those that the result will show."""
        self.told = (*self.told, *for_clusters(found, self.said[1] is not None))

    def pick(self) -> None:
        """Find the parts in the arguments."""
        if self.data is None:
            return
        came = dict(zip((*self.names, "within", "clusters"), (*self.parts, *self.said), strict=True))
        self.kinds = kinds_of_picked(self.kinds, self.data, *came.values())
        found = picked(self.data, **came)
        self.parts, self.said = found[: len(self.names)], tuple(found[len(self.names) :])

    def check_order(self) -> None:
        """Refuse variables whose row labels contradict the pairing of rows by position."""
        check_order(self.parts, self.names)

    def leave_ids(self) -> None:
        """Leave out columns that only identify the rows, unless they were named or their kernel is given."""
        within, clusters = self.said
        design = kept_columns(None, within, clusters, None)
        for k, (part, name, wanted) in enumerate(zip(self.parts, self.names, self.wanted, strict=True)):
            if self.data is None and not self.across and not any(self.features or ()) and design and is_default(wanted):
                (self.parts[k],), told = without_ids([part], [name], design.names, self.kinds)
                self.tell(told)

    @abstractmethod
    def in_one_pass(self) -> Found | None:
        """The outcome of a plan, where rows are only summed over; None if they have to be in memory."""

    def admit(self) -> None:
        """Handle missing values and kinds of columns, and read which rows are exchangeable."""
        came = self.parts
        self._admit()
        if not self.across:  # conditional tests have a rule and a note of their own
            numbers = rows_called(came, self.parts, self.names, self.missing)
            self.tell(wild_notes(self.parts, self.names, self.kinds or (), apart=True, rows=numbers))

    def _admit(self) -> None:
        within, clusters = self.said
        own = within if isinstance(within, Exchange) and not self.across else None
        if self.designed and own is None:
            found = observed(self.parts, self.names, within, clusters, self.missing, self.kinds, across=self.across)
            self.parts, self.exchange, told = found
            self.tell(told)
            return
        self.parts, told = admitted(self.parts, self.names, self.missing, self.kinds, paired=True, least=LEAST_POINTS)
        self.tell(told)
        if own is not None:
            check_exchange(own, "orders", length(self.parts[0]), (clusters,))
            self.exchange = own
        elif not self.across:
            self.tell(alike_in_order(self.parts, self.names, paired=True))

    def encode(self) -> None:
        """Replace rows by the user's own functions of them."""
        for k, function in enumerate(self.features or ()):
            if function is not None:
                self.parts[k] = encoded(self.parts[k], function, self.names[k], self.random.generator)

    def read_texts(self) -> None:
        """Replace texts by coordinates."""
        self.parts, told = texts_of_variables(self.parts, self.names, self.wanted, self.kinds)
        self.tell(told)

    def leave_strata(self) -> None:
        """Centre numbers within strata, unless their kernel is given."""
        for k, (part, name, wanted) in enumerate(zip(self.parts, self.names, self.wanted, strict=True)):
            if is_default(wanted) and self.exchange is not None:
                (self.parts[k],) = from_strata((part,), (name,), self.exchange)

    @abstractmethod
    def compute(self, door: Door) -> Found:
        """Choose kernels, and compute the statistic and its null."""


@dataclass
class OfSamples(Asked):
    """A question about samples, one after another, that share one kernel; `by` distinguishes those of one table."""

    paired: ClassVar[bool] = False
    by: str | None = None
    scale: bool = True

    def leave_ids(self) -> None:
        """Done where groups are picked, for all samples together."""

    def check_order(self) -> None:
        """Refuse values for each row whose labels contradict this; rows of different samples do not belong together."""
        if not self.designed:
            return
        within, clusters, weights = self.said
        check_order_beside(self.parts, self.names, within=within, clusters=clusters, weights=weights)

    @property
    def kernel(self) -> KernelLike:
        """The requested kernel."""
        return self.wanted[0]

    @property
    def keeps(self) -> Kept | None:
        """Columns that are kept even if they number the rows; None for all, if functions of the user read them."""
        return None if self.features is not None else kept_columns(self.kernel, *self.said)

    def admit(self) -> None:
        """Handle missing values, kinds of columns, and which rows are exchangeable."""
        if self.designed and any_once(self.parts):
            raise ParameterError("within=, clusters= and weights= are for samples in memory.")
        if self.by is None:  # groups of one table were admitted as that table
            self.parts, told = admitted(self.parts, self.names, self.missing, self.kinds, least=LEAST_POINTS)
            self.tell(told)
        within, clusters, weights = self.said
        if isinstance(within, Exchange):
            check_exchange(within, "labels", sum(map(length, self.parts)), (self.by, clusters, weights))
            self.exchange = within
        elif self.designed:
            self.exchange = design_of(self.parts, self.names, within, clusters, weights, self.missing, self.by)
            self.parts = without_design(self.parts, self.names, *self.said)
        if within is None and clusters is None:
            self.tell(alike_in_order(self.parts, self.names))
        self.tell(like_ids(self.parts, self.names, self.kinds, self.told))

    def encode(self) -> None:
        """Replace rows by vectors."""
        if self.features is None:
            return
        if self.exchange is not None and learns(self.features):
            raise ParameterError("features with fit= are for samples without within=, clusters= or weights=.")
        self.parts, told = encoded_samples(self.parts, self.features, self.names, self.random.generator)
        self.tell(told)

    def read_texts(self) -> None:
        """Replace texts by coordinates."""
        self.parts, told = read_texts(self.parts, self.names, self.kernel, self.kinds)
        self.tell(told)

    def leave_strata(self) -> None:
        """Centre numbers within strata."""
        if is_default(self.kernel) and self.exchange is not None:
            self.parts = from_strata(self.parts, self.names, self.exchange)
