"""The one engine: graph, operators and evidence in; messages, beliefs and a report out."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.bp.engine.algebra import PRODUCT, Algebra, Counted
from meanmap.bp.engine.blocks import sequential, splashes
from meanmap.bp.engine.flooding import flood, flood_differentiably
from meanmap.bp.engine.layout import Layout
from meanmap.bp.engine.messages import Given, Settings
from meanmap.bp.engine.operators import EdgeOperators
from meanmap.bp.engine.residual import by_residual
from meanmap.bp.engine.settled import beliefs_of, pass_and_read, read_settled
from meanmap.bp.engine.two_pass import Passes
from meanmap.core.arrays import parameter
from meanmap.core.door import is_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.report import Report
from meanmap.core.values import Value
from meanmap.graphs import Flooding, Graph, Residual, Rooted, Sequential, Splash, TwoPass
from meanmap.graphs.rooted import check_forest

__all__ = ["Engine", "Propagation", "how_it_ended", "low_note"]

SCHEDULES = (TwoPass, Flooding, Sequential, Residual, Splash)


@dataclass(frozen=True, eq=False, repr=False)
class Propagation(Value):
    """What came out of belief propagation.

    Attributes
    ----------
    messages : array (2 |E|, B, L)
        One for each directed edge, its largest value 1.
    beliefs : array (n, B, L)
        Own factor and incoming messages together; products have the largest absolute value 1.
    log_partition : array (B,) or None
        log Σ_x Π ψ: exact on trees, Bethe's approximation with cycles. Where the operators are potentials.
    low_share : number
        The share of message values that were raised to the floor, or came out below zero without one: 0 for potentials.
    negative_share : number
        The share that came out below zero.
    report : Report
        How it ended.
    layout : Layout
        Where messages lie, and how they were counted.
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
    """A graph prepared for belief propagation with given operators; evidence may change from call to call.

    An engine never changes, so that threads may share it: evidence and other operators are arguments of a run.

    Parameters
    ----------
    graph : Graph, NetworkX graph or list of edges
        n nodes.
    operators : EdgeOperators
        T operators.
    template : array (2 |E|,)
        The operator of each directed edge.
    schedule : TwoPass, Flooding, Sequential, Residual or Splash, optional
        By default two passes on a forest, flooding otherwise.
    algebra : Product, Sum or Reweighted, optional
        How messages come together: values are multiplied, natural parameters are added.
    """

    graph: Graph
    operators: EdgeOperators
    schedule: Any
    layout: Layout
    passes: Passes | None

    def __init__(
        self,
        graph: Any,
        operators: EdgeOperators,
        template: np.ndarray,
        schedule: Any = None,
        algebra: Algebra = PRODUCT,
    ):
        graph = Graph.of(graph)
        if schedule is None:
            schedule = TwoPass() if graph.is_forest else Flooding()
        if not isinstance(schedule, SCHEDULES):
            names = ", ".join(f"mm.graphs.{kind.__name__}()" for kind in SCHEDULES)
            raise KindError(f"schedule is {schedule!r}; expected one of {names}.")
        if isinstance(schedule, TwoPass):
            check_forest(graph)
        single = isinstance(schedule, Sequential | Residual | Splash)
        layout = Layout.of(graph, template, operators.number, single, algebra)
        passes = Passes.of(Rooted.at(graph), template) if isinstance(schedule, TwoPass) else None
        # Once, not with every query; and as constants where a `jit` surrounds the first of them.
        with jax.ensure_compile_time_eval():
            layout, passes = jax.tree.map(jnp.asarray, (layout, passes))
        parts = {"graph": graph, "operators": operators, "schedule": schedule, "layout": layout, "passes": passes}
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def __getstate__(self) -> dict[str, Any]:
        """For pickles, out of which JAX's own arrays come in single precision."""
        return {name: jax.tree.map(_off_device, part) for name, part in vars(self).items()}

    def __setstate__(self, parts: dict[str, Any]) -> None:
        with jax.enable_x64(True):
            for name, part in parts.items():
                object.__setattr__(self, name, jax.tree.map(_on_device, part))

    def run(
        self,
        own: jax.Array,
        given: Given | None = None,
        *,
        operators: EdgeOperators | None = None,
        damping: Any = 0.0,
        floor: Any = None,
        tolerance: Any = None,
        potentials: bool = False,
        counting: Any = None,
    ) -> Propagation:
        """Propagate from the nodes' own factors (n, B, L): priors and evidence.

        Parameters
        ----------
        own : array (n, B, L)
            Non-negative; B queries at once.
        given : Given, optional
            Messages known beforehand, one row for each directed edge.
        operators : EdgeOperators, optional
            Other operators, as many, for this run alone.
        damping : float in [0, 1)
            The share of the old message that is kept; without meaning on two passes.
        floor : float in [0, 1), optional
            Values of a message below this share of its largest are raised to it.
        tolerance : float, optional
            Stop when no message changes by more; by default 1e-6, 1e-4 in single precision.
        potentials : bool
            Whether operators are potentials of a probability, so that there is a partition function.
        counting : float in (0, 1], optional
            How much of a message counts where there are cycles, see `Counted`; messages must have a floor above zero.
            Potentials are those to the power 1/μ, and learned operators as they are.
        """
        settings = Settings.of(damping, floor, tolerance, own.dtype)
        layout = self.layout
        operators = self.operators if operators is None else operators
        traced = not all(map(is_concrete, jax.tree.leaves((own, operators, given))))
        if given is not None and is_concrete(given.known) and np.asarray(given.known).all():
            beliefs = beliefs_of(layout, own, given.values)  # nobody has anything to work out
            report = self._report(0, np.empty(0), True, 0.0, floor)
            return Propagation(given.values, beliefs, None, 0.0, 0.0, report, layout)
        if counting is not None and self.passes is None:
            layout = replace(layout, algebra=_counted(counting, settings))
        if floor is not None:
            most = int(self.graph.degrees.max(initial=0)) + 1
            layout = replace(layout, algebra=layout.algebra.floored(most, float(floor), own.dtype))
        if self.passes is not None:
            count, trace, converged = 2, np.empty(0), True
            messages, read = pass_and_read(self.passes, layout, operators, own, given, settings, potentials)
        else:
            messages, count, trace, converged = self._until_settled(layout, operators, own, given, settings, traced)
            read = read_settled(layout, operators, own, given, settings, messages, potentials)
        beliefs, log_partition, low, negative = read
        if not traced:
            low, negative = float(low), float(negative)
        report = self._report(count, trace, converged, low, floor)
        return Propagation(messages, beliefs, log_partition, low, negative, report, layout)

    def _until_settled(
        self,
        layout: Layout,
        operators: EdgeOperators,
        own: jax.Array,
        given: Given | None,
        settings: Settings,
        traced: bool,
    ) -> Any:
        schedule: Any = self.schedule
        rows = _by_row(layout, given)
        begin = layout, operators, own, rows, settings
        if traced:
            if not isinstance(schedule, Flooding):
                raise KindError(
                    f"{schedule!r} decides from sweep to sweep what comes next, and cannot be compiled into a larger "
                    "program or differentiated: use mm.graphs.Flooding() there, and mm.graphs.TwoPass() on a forest."
                )
            messages, count, trace = flood_differentiably(*begin, schedule.max_sweeps)
            left = trace[jnp.maximum(count - 1, 0)]
            return messages[layout.row], count, np.empty(0), left <= settings.tolerance
        if isinstance(schedule, Flooding):
            messages, count, trace = flood(*begin, schedule.max_sweeps)
            count = int(count)
            trace = np.asarray(trace)[:count]
        elif isinstance(schedule, Residual):
            most = schedule.max_sweeps * max(len(layout.row), 1)
            messages, count, left = by_residual(*begin, schedule.at_once, most)
            count, trace = int(count), np.array([float(left)])
        elif isinstance(schedule, Sequential):
            messages, count, trace = sequential(self.graph, *begin, schedule)
        else:
            messages, count, trace = splashes(self.graph, *begin, schedule)
        trace = np.asarray(trace, dtype=float)
        settled = bool(trace.size == 0 or trace[-1] <= float(settings.tolerance))
        return messages[layout.row], count, trace, settled

    def _report(self, count: Any, trace: Any, converged: Any, share: Any, floor: Any) -> Report:
        names = {TwoPass: "passes", Residual: "messages", Splash: "splashes"}
        notes = [low_note(share, floor)] if is_concrete(share) and share > 0 else []
        if isinstance(self.schedule, TwoPass):
            return Report("exact on this forest: two passes", converged, count, trace, notes=tuple(notes))
        return how_it_ended(names.get(type(self.schedule), "sweeps"), count, trace, converged, notes)


@dataclass(frozen=True)
class _OffDevice:
    """A JAX array on its way through a pickle."""

    values: np.ndarray


def _off_device(leaf: Any) -> Any:
    return _OffDevice(np.asarray(leaf)) if isinstance(leaf, jax.Array) else leaf


def _on_device(leaf: Any) -> Any:
    return jnp.asarray(leaf.values) if isinstance(leaf, _OffDevice) else leaf


def how_it_ended(unit: str, count: Any, trace: Any, converged: Any, notes: list[str]) -> Report:
    """The report of messages that were sent again and again."""
    if not is_concrete(converged):
        status = f"{unit} inside a larger program: `converged` and `steps` are known when it runs"
        return Report(status, converged, count)
    if converged:
        return Report(f"messages settled ({unit})", converged, count, trace, notes=tuple(notes))
    more = "more damping, another schedule or more sweeps may help."
    status = f"stopped at the most {unit} allowed; messages still changed"
    return Report(status, converged, count, trace, notes=(more, *notes))


def low_note(share: float, floor: Any) -> str:
    """How much of the messages a floor changed, in words."""
    where = "negative values in messages" if floor is None else f"values of messages raised to the floor of {floor:g}"
    return f"{where}: {100 * share:.2g} %."


def _counted(counting: Any, settings: Settings) -> Counted:
    counting = float(parameter(counting, "counting", axes=0))
    if counting > 1:
        raise ParameterError(f"counting is {counting}; expected a share of each message, at most 1.")
    if settings.floor is None or settings.floor == 0:
        raise ParameterError(f"with counting={counting:g} messages are divided: they need a floor above zero.")
    return Counted(np.asarray(counting, settings.damping.dtype))


def _by_row(layout: Layout, given: Given | None) -> Given | None:
    """Given messages of directed edges, at the rows where they are received."""
    if given is None:
        return None
    rows = len(layout.reverse)
    known = jnp.zeros((rows, *given.known.shape[1:]), bool).at[layout.row].set(given.known)
    values = jnp.ones((rows, *given.values.shape[1:]), given.values.dtype).at[layout.row].set(given.values)
    return Given(known, values)
