"""The one engine: graph, operators and evidence in; messages, beliefs and a report out."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.algebra import PRODUCT, Algebra, Counted
from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.message_passing import MessagePassing, Sent
from meanmap.bp.engine.messages import Given, Settings
from meanmap.bp.engine.operators import EdgeOperators
from meanmap.bp.engine.settled import beliefs_of, read_settled
from meanmap.bp.engine.terms import Terms
from meanmap.bp.engine.two_pass import Passes
from meanmap.core.arrays import parameter
from meanmap.core.door import all_concrete, is_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.language import in_digits
from meanmap.core.points import on_device
from meanmap.core.report import Report
from meanmap.core.types import Array, GraphLike, Numbers
from meanmap.core.values import Value
from meanmap.graphs import Flooding, Graph, Rooted, Schedule, TwoPass
from meanmap.graphs.rooted import check_forest
from meanmap.graphs.schedules import as_schedule

__all__ = ["ROUND_CYCLES", "TRY_MORE", "Engine", "Propagation", "floor_note", "how_it_ended", "not_exact"]

TRY_MORE = "more damping, another schedule or more sweeps may help."
ROUND_CYCLES = "the graph has cycles, around which evidence is counted repeatedly: beliefs are approximate"


@dataclass(frozen=True, eq=False, repr=False)
class Propagation(Value):
    """The result of belief propagation.

    Attributes
    ----------
    messages : array (2 |E|, B, L)
        One for each directed edge, its largest value 1.
    beliefs : array (n, B, L), or None if they were not read
        Own factor and incoming messages together; products have the largest absolute value 1.
    log_partition : array (B,) or None
        log Σ_x Π ψ, if the operators are potentials: exact on trees, the Bethe approximation with cycles.
    low_share : number
        The share of message values that were raised to the floor, or were negative without one: 0 for potentials.
    negative_share : number
        The share of negative message values. Both are None if they were not read.
    report : Report
        How the run ended.
    layout : Layout
        The storage of messages, and the algebra that combined them.
    """

    messages: Any
    beliefs: Any
    log_partition: Any
    low_share: Any
    negative_share: Any
    report: Report
    layout: Layout


@dataclass(frozen=True, eq=False, init=False)
class Engine:
    """A graph prepared for belief propagation by a schedule; operators and evidence are arguments of a run.

    An engine is immutable, so threads may share it.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        n nodes.
    template : array (2 |E|,)
        The operator of each directed edge, by number.
    schedule : Schedule, optional
        By default two passes on a forest, flooding otherwise.
    algebra : Product, Sum or Reweighted, optional
        The operations that combine messages: values are multiplied, natural parameters are added.
    """

    graph: Graph
    schedule: Schedule
    layout: Layout
    passes: Passes | None

    def __init__(
        self, graph: GraphLike, template: np.ndarray, schedule: Schedule | None = None, algebra: Algebra = PRODUCT
    ):
        graph = Graph.of(graph)
        schedule = (TwoPass() if graph.is_forest else Flooding()) if schedule is None else as_schedule(schedule)
        if schedule.forests_only:
            check_forest(graph)
        layout = Layout.of(graph, template, int(np.max(template, initial=0)) + 1, schedule.single_nodes, algebra)
        passes = Passes.of(Rooted.at(graph), template) if schedule.forests_only else None
        # Computed once, not for every query, and as constants even if the first query is inside `jit`.
        with jax.ensure_compile_time_eval():
            layout, passes = on_device((layout, passes))
        for name, part in {"graph": graph, "schedule": schedule, "layout": layout, "passes": passes}.items():
            object.__setattr__(self, name, part)

    def with_sweeps(self, schedule: Flooding) -> "Engine":
        """An engine with another maximum number of flooding sweeps, which shares the layout of this one."""
        other = object.__new__(Engine)
        for name, part in {**vars(self), "schedule": schedule}.items():
            object.__setattr__(other, name, part)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """State for pickles as NumPy arrays, because JAX arrays are restored in single precision."""
        return {name: jax.tree.map(_off_device, part) for name, part in vars(self).items()}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        with jax.enable_x64(True):
            for name, part in parts.items():
                object.__setattr__(self, name, jax.tree.map(_on_device, part))

    def run(
        self,
        operators: EdgeOperators,
        own: jax.Array,
        given: Given | None = None,
        *,
        damping: Numbers = 0.0,
        floor: Numbers | None = None,
        tolerance: Numbers | None = None,
        potentials: bool = False,
        counting: object = None,
        read: bool = True,
    ) -> Propagation:
        """Propagate from the nodes' own factors (n, B, L): priors and evidence.

        Parameters
        ----------
        operators : EdgeOperators
            The operators of the edges.
        own : array (n, B, L)
            Non-negative; B queries at once.
        given : Given, optional
            Given messages, one row for each directed edge.
        damping : float in [0, 1)
            The share of the old message that is kept; ignored by two passes.
        floor : float in [0, 1), optional
            Values of a message below this share of its largest are raised to it.
        tolerance : float, optional
            Stop when no message changes by more; by default 1e-6, 1e-4 in single precision.
        potentials : bool
            Whether operators are potentials of a probability, so that there is a partition function.
        counting : float in (0, 1], optional
            The power of messages on graphs with cycles, see `Counted`; messages must have a floor above zero.
            Potentials are passed to the power 1/μ, and learned operators unchanged.
        read : bool
            Whether to compute beliefs and shares of values, if that needs a separate program.
        """
        settings, layout = Settings.of(damping, floor, tolerance, own.dtype), self.layout
        traced = not all_concrete((own, operators, given))
        if counting is not None and not self.schedule.forests_only:
            layout = replace(layout, algebra=_counted(counting, settings))
        most = int(self.graph.degrees.max(initial=0)) + 1
        if floor is not None:
            layout = replace(layout, algebra=layout.algebra.floored(most, float(floor), own.dtype))
        elif potentials and not traced and not self.schedule.forests_only:
            ends = _ends(np.asarray(own))
            layout = replace(layout, algebra=layout.algebra.floored(most, operators.least_share(), own.dtype, ends))
        if given is not None and is_concrete(given.known) and np.asarray(given.known).all():
            nothing = None, jnp.zeros(()), jnp.zeros(())  # no results were requested
            sent = Sent(given.values, 0, np.empty(0), True, (beliefs_of(self.layout, own, given.values), *nothing))
        elif traced and not self.schedule.compiled:
            raise KindError(
                f"{self.schedule!r} chooses the next messages at run time, and cannot be compiled into a larger "
                "program or differentiated: use mm.graphs.Flooding() there, and mm.graphs.TwoPass() on a forest."
            )
        else:
            terms = Terms(layout, operators, own, given, settings)
            sent = self.schedule.run(MessagePassing(self.graph, terms, self.passes, traced, potentials))
            if sent.read is None:
                sent = replace(sent, read=read_settled(terms, sent.messages, potentials) if read else (None,) * 4)
        beliefs, log_partition, low, negative = sent.read
        if not traced and low is not None:
            low, negative = float(low), float(negative)
        report = self._report(sent, low, floor)
        return Propagation(sent.messages, beliefs, log_partition, low, negative, report, layout)

    def _report(self, sent: Sent, share: Any, floor: Numbers | None) -> Report:
        notes = [floor_note(share, floor)] if share is not None and is_concrete(share) and share > 0 else []
        if self.schedule.forests_only:
            status = "messages are exact (the graph has no cycles)"
            return Report(status, sent.settled, sent.steps, sent.trace, notes=tuple(notes))
        return how_it_ended(self.schedule.unit, sent.steps, sent.trace, sent.settled, notes)


@dataclass(frozen=True)
class _OffDevice:
    """A JAX array inside a pickle."""

    values: np.ndarray


def _off_device(leaf: object) -> Any:
    return _OffDevice(np.asarray(leaf)) if isinstance(leaf, jax.Array) else leaf


def _on_device(leaf: object) -> Any:
    return on_device(leaf.values) if isinstance(leaf, _OffDevice) else leaf


def how_it_ended(unit: str, count: Any, trace: Array, converged: Any, notes: list[str]) -> Report:
    """The report of an iterative schedule."""
    if not is_concrete(converged):
        status = f"{unit} inside a larger program: `converged` and `steps` are known when it runs"
        return Report(status, converged, count)
    if converged:
        return Report(f"messages settled ({unit})", converged, count, trace, notes=tuple(notes))
    status = f"stopped at the maximum number of {unit}; messages were still changing"
    return Report(status, converged, count, trace, notes=(TRY_MORE, *notes))


def not_exact(report: Report) -> Report:
    """The report of a query of tables on a graph with cycles."""
    told = f"{ROUND_CYCLES}, often overconfident. mm.bp.CliqueTree is exact, at a cost that grows with its cliques."
    return replace(report, notes=(*report.notes, told))


def floor_note(share: float, floor: Numbers | None) -> str:
    """A note on the share of message values that the floor changed."""
    where = "negative values in messages" if floor is None else f"values of messages raised to the floor of {floor:g}"
    return f"{where}: {in_digits(100 * share)}%."


def _ends(own: np.ndarray) -> tuple[float, float]:
    """The smallest positive value, and the largest value."""
    return float(np.min(own, where=own > 0, initial=np.inf)), float(np.max(own, initial=0.0))


def _counted(counting: object, settings: Settings) -> Counted:
    counting = float(parameter(counting, "counting", axes=0))
    if counting > 1:
        raise ParameterError(f"counting is {counting}; expected a share of each message, at most 1.")
    if settings.floor is None or settings.floor == 0:
        raise ParameterError(f"with counting={counting:g} messages are divided: they need a floor above zero.")
    return Counted(np.asarray(counting, settings.damping.dtype))
