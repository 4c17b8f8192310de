"""The loop: sweeps until the beliefs converge, compiled as a whole, member by member, or by factor with the host."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import numpy as np

from meanmap.core.errors import KindError
from meanmap.core.progress import track
from meanmap.core.settings import one_of
from meanmap.ep.calls import user_errors
from meanmap.ep.doubt import ENOUGH
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.lean import lean
from meanmap.ep.inference.order import FAR
from meanmap.ep.inference.pace import Pace
from meanmap.ep.inference.ranges import left_range
from meanmap.ep.inference.record import Record
from meanmap.ep.oracles.host import Asked, HostOracle, ask_host
from meanmap.ep.piecewise.memory import FINE
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.sweeps.sequential import compiled_sequential_sweep
from meanmap.ep.sweeps.sweep import (
    Happened,
    Settings,
    Swept,
    compiled_absorb,
    compiled_evidence,
    compiled_moved,
    compiled_send,
    compiled_sweep,
    keys_of,
)

__all__ = ["SCHEDULES", "Run", "chosen_schedule"]

SCHEDULES = ("auto", "parallel", "sequential")


def chosen_schedule(schedule: Any, hosts: dict[int, HostOracle], factors: tuple[Factor, ...], far: int) -> str:
    """Either "parallel" or "sequential"; an error if that would ask an oracle on the host one question at a time.

    By default it is sequential along plates whose members are `far` from each other: sent all at once, information
    would travel by one member per sweep.
    """
    one_of(schedule, "schedule", SCHEDULES)
    if schedule == "auto":
        return "sequential" if far > FAR and not hosts and not any(factor.whole for factor in factors) else "parallel"
    if schedule == "sequential" and hosts:
        named = ", ".join(factors[at].name for at in hosts)
        raise KindError(
            f"{named} has an oracle on the host, which is asked for whole plates: type schedule='parallel', or give "
            "an oracle such as ep.Quadrature()."
        )
    return schedule


# Messages may be in doubt by this share of the step of a sweep, and at most by this many standard deviations.
_OF_STEP, _AT_MOST = 1e-3, 0.1
# While beliefs move further than this, functions of two numbers that are kept, of unknowns that members share, need
# only be known so well: where they have to be known better, later sweeps tell.
_NEAR, _ROUGH = 0.1, 1e-3
# Where sweeps with predictions have not converged after this many, oracles compute all messages.
_LONG = 200


@dataclass
class Run:
    """Everything about a run but its state: `go` sweeps until the beliefs converge, then `evidence` is available.

    Attributes
    ----------
    plans : tuple of Plan
        With ever quicker forms of the factors; the first is the whole one.
    key : JAX key
        Randomness of oracles, the same in every sweep.
    power, policy, schedule
        α of all factors, what becomes of improper messages, and "parallel" or "sequential".
    orders : tuple of arrays
        In which the members of each plate send where they send one after another.
    hosts : dict
        The oracles that are asked on the host, by the number of their factor.
    record : Record
        What the run says about itself.
    near : bool
        Whether messages start at the mode of all unknowns, from where no first step is too long.
    level : int
        Which of the plans the last sweep needed.
    knows_well : bool
        Whether functions on the host had to be known as well as they can be in the last sweep.
    known_evidence : float
        Of the last sweep, if it found one; else NaN.
    last_asked : dict
        The answers of oracles on the host at convergence.
    """

    plans: tuple[Plan, ...]
    key: jax.Array
    power: float
    policy: str
    schedule: str
    orders: tuple[np.ndarray, ...]
    hosts: dict[int, HostOracle]
    record: Record
    near: bool = False
    level: int = -1
    knows_well: bool = True
    known_evidence: float = np.nan
    last_asked: dict[int, Asked] = field(default_factory=dict)

    def go(self, start: State, step: float, enough: float) -> State:
        """The state at which the beliefs have converged, or no progress is possible; the record notes it."""
        record, pace = self.record, self._first_pace()
        state = earlier = start
        try:
            for _ in track(range(record.limit), "expectation propagation"):
                before, state = state, self.sweep(state, step, pace.share)
                over_two, earlier = partial(self._apart, earlier, state), before
                # Beliefs that do not move by half a step have converged: the tolerance is relative to the step, not to
                # its share.
                last = self.at_once and step == 1  # the next sweep would change nothing
                still = last or record.moved <= max(enough, record.noise) * pace.share
                still = still and self.knows_well
                if still and not record.stuck:
                    if self._accepted(state):
                        record.converged = True
                        if last:
                            record.residuals[-1] = 0.0
                        break
                    pace = self._first_pace()
                elif len(record.residuals) == _LONG and self._asks_everything():
                    pace = self._first_pace()
                elif not pace.after(record.moved, over_two, record.left_out) or still:
                    again = self._another_start(pace, state)
                    if again is None:
                        break
                    pace, state, earlier = again, start, start
        except KeyboardInterrupt:
            record.interrupted = True
        return state

    def _first_pace(self) -> Pace:
        return Pace(careful=self.schedule == "parallel" and not self.at_once, near=self.near)

    @cached_property
    def at_once(self) -> bool:
        """Whether incoming messages are the same in every sweep, for example if each unknown is in one factor only."""
        met = [port for factor in self.plan.factors for port in factor.arguments if not port.known]
        alone = len({port.variable for port in met}) == len(met) and all(port.way in ("same", "whole") for port in met)
        return alone and not self.hosts and self.power == 1 and self.policy == "allow"

    def _another_start(self, pace: Pace, state: State) -> Pace | None:
        """The pace of a restart where sweeps make no progress, noted in the record; None where it would not help."""
        record = self.record
        if record.beyond or self._beyond(state, {at: each[2] for at, each in enumerate(record.last)}):
            return None
        if self._asks_everything():
            pace = self._first_pace()
        elif pace.may_start_anew(record.limit - len(record.residuals)):
            pace.start_anew()
        else:
            return None
        record.started_anew(pace.share)
        return pace

    def sweep(self, state: State, step: float, caution: float) -> State:
        """The state after each factor has sent its messages once; the record notes it."""
        # As arrays: what is a Python number becomes part of the program, and another one compiles another program.
        settings = Settings(np.asarray(step), np.asarray(caution), self.power)
        self.level = len(self.plans) - 1
        self.knows_well = not self._narrows or self.at_once or self.record.moved < _NEAR
        self.plans = tuple(_knowing(plan, FINE if self.knows_well else _ROUGH) for plan in self.plans)
        with user_errors():
            found = (self._by_factor if self.hosts else self._whole)(state, settings)
            jax.block_until_ready(found.moved)
        self.record.add(self.plan, found.happened, found.moved)
        self.known_evidence = float(found.evidence)
        return found.state

    def _apart(self, one: State, other: State) -> float:
        """How far two states are from each other, in standard deviations."""
        return float(np.asarray(compiled_moved(self.plan, one.beliefs, other.beliefs)).max())

    @cached_property
    def _narrows(self) -> bool:
        """Whether a function of two numbers is kept whose members share an unknown, so that all of them narrow it."""
        kept = (f for f in self.record.factors if isinstance(f, BlackBoxFactor) and f.host and f.memory is not None)
        two = ((factor, factor.integrated()) for factor in kept if factor.plate)
        return any(len(over) == 2 and any(one.plate != factor.plate for one in over) for factor, over in two)

    @cached_property
    def keys(self) -> jax.Array:
        """Randomness for each factor, the same in every sweep."""
        return keys_of(self.plan, self.key)

    @property
    def plan(self) -> Plan:
        """The plan with nothing left out."""
        return self.plans[0]

    @property
    def last(self) -> Plan:
        """The plan of the last sweep: the quickest that left no factor in doubt."""
        return self.plans[self.level]

    def _whole(self, state: State, settings: Settings) -> Swept:
        """One compiled sweep, by the quickest plan that leaves no factor in doubt."""
        rest = (state, self.key, settings, self.policy)
        backwards = np.asarray(len(self.record.residuals) % 2 == 1)
        while True:
            if self.schedule == "parallel":
                found = compiled_sweep(self.last, *rest)
            else:
                found = compiled_sequential_sweep(self.last, *rest, self.orders, backwards)
            # While beliefs still move far, messages need not be better than they will be in the next sweep.
            limit = ENOUGH if self.at_once else np.clip(_OF_STEP * np.asarray(found.moved).max(), ENOUGH, _AT_MOST)
            doubtful = [at for at, one in enumerate(found.happened) if self._doubtful(self.level, at, one, limit)]
            # No rule integrates a function that leaves the range of its output.
            sizes = self.plan.sizes
            lost = {at: fetched(found.happened[at].events)[2].ravel()[: int(sizes[at])] for at in doubtful}
            if not doubtful or self._beyond(state, lost):
                return found
            self.level -= 1

    def _beyond(self, state: State, lost: dict[int, np.ndarray]) -> bool:
        """Whether answers were lost because functions leave the range of their output; the record notes it."""
        for at, members in lost.items():
            factor = self.record.factors[at]
            why = left_range(self.plan, state, at, factor, np.flatnonzero(members), self.power)
            if why:
                self.record.beyond = why
                return True
        self.record.beyond = ""
        return False

    def _doubtful(self, level: int, at: int, happened: Happened, limit: float) -> bool:
        """Whether this form of a factor leaves a member in more doubt than this, and there is a better one."""
        if self.plans[level].factors[at] is self.plan.factors[at]:
            return False
        doubt = fetched(happened.doubt).ravel()
        usable = ~fetched(happened.events)[1].reshape(doubt.shape)
        return bool((~(doubt <= limit) & usable)[: int(self.plan.sizes[at])].any())

    def _by_factor(self, state: State, settings: Settings) -> Swept:
        """A sweep factor by factor, as some of their oracles are on the host."""
        before, all_happened = state.beliefs, []
        number = len(self.record.residuals)
        for at, key in enumerate(self.keys):
            if at in self.hosts:
                asked = ask_host(self.plan, state, at, self.hosts[at], key, number, self.power)
                self.record.asked[at] += asked.number
                state, happened = compiled_absorb(
                    self.plan, state, at, asked.incoming, asked.usable, asked.answer, settings, self.policy
                )
            else:
                state, happened = self._sent(state, at, key, settings)
            all_happened.append(happened)
        return Swept(state, tuple(all_happened), compiled_moved(self.plan, before, state.beliefs), np.nan)

    def _sent(self, state: State, at: int, key: jax.Array, settings: Settings) -> tuple[State, Happened]:
        """The state after one factor has sent, by the quickest form that leaves no doubt."""
        for level in reversed(range(len(self.plans))):
            sent, happened, _ = compiled_send(self.plans[level], state, at, key, settings, self.policy)
            if not self._doubtful(level, at, happened, ENOUGH):
                self.level = min(self.level, level)
                return sent, happened
        raise AssertionError("the whole plan leaves no doubt")  # pragma: no cover

    def _accepted(self, state: State) -> bool:
        """Whether oracles confirm their predictions at convergence; if not, they learn and sweeps go on."""
        asked = {at: self._ask_last(state, at) for at, oracle in self.hosts.items() if oracle.predicts}
        if not asked:
            return True
        settings = Settings(np.asarray(1.0), np.asarray(1.0), self.power)

        def send(before: State, at: int) -> State:
            if at in self.hosts:
                return before
            return self._sent(before, at, self.keys[at], settings)[0]

        with user_errors():
            found = lean(self.plan, state, asked, send, self.power, self.policy)
        # Each of them is informed, whatever the others answer.
        factors: Any = self.plan.factors
        accepted = {at: self.hosts[at].accepts(factors[at], found) for at in asked}
        self.last_asked = asked if all(accepted.values()) else {}
        return bool(self.last_asked)

    def _asks_everything(self) -> bool:
        """Whether an oracle stops predicting because sweeps do not converge; each notes it."""
        factors: Any = self.plan.factors
        told = {at: oracle.stop_predicting(factors[at]) for at, oracle in self.hosts.items()}
        return any(told.values())

    def _ask_last(self, state: State, at: int) -> Asked:
        """The answer of an oracle on the host at convergence, for the evidence."""
        asked = ask_host(self.plan, state, at, self.hosts[at], self.keys[at], None, self.power)
        self.record.asked[at] += asked.number
        return asked

    def evidence(self, state: State) -> float:
        """The logarithm of the evidence.

        NaN where messages were left out, and after an interruption where functions on the host would be called.
        """
        if self.record.stuck:
            return np.nan
        if self.record.converged and np.isfinite(self.known_evidence):
            return self.known_evidence
        on_host = self.hosts or any(getattr(factor, "host", False) for factor in self.plan.factors)
        if self.record.interrupted and on_host:
            return np.nan
        known = {}
        for at in self.hosts:
            asked = self.last_asked.get(at) or self._ask_last(state, at)
            known[at] = asked.answer.log_normaliser
        with user_errors():
            return float(compiled_evidence(self.last, state, self.key, self.power, known))


def _knowing(plan: Plan, enough: float) -> Plan:
    """The plan with what is enough to know of functions on the host in this sweep."""

    def with_memory(factor: Any) -> Any:
        memory = getattr(factor, "memory", None)
        return factor if memory is None else replaced(factor, memory=memory._replace(enough=np.float64(enough)))

    return replaced(plan, factors=tuple(map(with_memory, plan.factors)))
