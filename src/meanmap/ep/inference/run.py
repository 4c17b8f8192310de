"""The loop of sweeps, and when it ends: compiled as a whole, member by member, or by factor with the host."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from meanmap.core.progress import track
from meanmap.ep.calls import user_errors
from meanmap.ep.doubt import ENOUGH
from meanmap.ep.factor import replaced
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.inference.exclusive import exclusive
from meanmap.ep.inference.lean import lean
from meanmap.ep.inference.pace import Pace
from meanmap.ep.inference.ranges import left_range, zero_everywhere, zero_here
from meanmap.ep.inference.record import Record
from meanmap.ep.inference.verdict import Ending, Verdict
from meanmap.ep.oracles.host import Asked, HostOracle, ask_host
from meanmap.ep.piecewise.memory import FINE
from meanmap.ep.sweeps.plan import Plan, State, fetched
from meanmap.ep.sweeps.sequential import compiled_sequential_sweep
from meanmap.ep.sweeps.sweep import (
    LOST,
    UNUSABLE,
    Happened,
    Settings,
    Swept,
    compiled_absorb,
    compiled_moved,
    compiled_send,
    compiled_sweep,
    keys_of,
)

__all__ = ["Run", "knowing"]

# Messages may be in doubt by this share of the step of a sweep, and at most by this many standard deviations.
_OF_STEP, _AT_MOST = 1e-3, 0.1
# While beliefs move further than this, functions of two numbers that are kept, of unknowns that members share, need
# only be known so well: where they have to be known better, later sweeps tell.
_NEAR, _ROUGH = 0.1, 1e-3
# Among this many members some are likely to be in doubt by the quickest rule.
_MANY = 4096
# After this many sweeps with a message in doubt, densities are tested for excluding one another: with a common end
# beliefs would keep becoming narrower for hundreds of sweeps.
_EARLY = (10, 20, 40, 80)
# Where sweeps with predictions have not converged after this many, oracles compute all messages.
_LONG = 200


class _Sent(NamedTuple):
    """The messages of a sweep, the plan that it needed, and why answers were lost (as in a verdict)."""

    swept: Swept
    level: int
    beyond: str
    impossible: str = ""


class _Place(NamedTuple):
    """Where a run is between two sweeps.

    Attributes
    ----------
    verdict : Verdict
        Of the last sweep.
    pace : Pace
        The share of the next step.
    start, two_ago, before : State
        Before the first sweep, before the last two, and before the last one.
    ending : Ending, optional
        Why no sweep follows.
    """

    verdict: Verdict
    pace: Pace
    start: State
    two_ago: State
    before: State
    ending: Ending | None = None

    @classmethod
    def first(cls, verdict: Verdict, pace: Pace) -> "_Place":
        """Where sweeps start, or start anew."""
        return cls(verdict, pace, verdict.state, verdict.state, verdict.state)

    def after(self, verdict: Verdict) -> "_Place":
        """After another sweep, of this verdict."""
        return self._replace(verdict=verdict, two_ago=self.before, before=self.verdict.state)

    def ends(self, ending: Ending) -> "_Place":
        """No sweep follows."""
        return self._replace(ending=ending)


@dataclass(frozen=True)
class Run:
    """A run of expectation propagation: `go` sweeps until the beliefs converge.

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
        What happened so far, for the report; only this changes during a run.
    near : bool
        Whether messages start at the mode of all unknowns, from where no first step is too long.
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

    def go(self, start: State, step: float, enough: float, limit: int) -> Verdict:
        """The verdict of the last sweep; why it is the last is in the record.

        Sweeps end when beliefs have converged, no progress is possible, the data turn out to be impossible, the limit
        is reached, or the user interrupts them.

        Parameters
        ----------
        start : State
            Messages and beliefs from which the first sweep starts.
        step : float
            The share of each change of a message that is made, 1 without damping.
        enough : float
            Beliefs that move less than this many standard deviations in a full step have converged.
        limit : int
            The most sweeps.
        """
        here = _Place.first(Verdict(start, self.plans), self._new_pace())
        try:
            for _ in track(range(limit), "expectation propagation"):
                here = here.after(self.sweep(here.verdict, step, here.pace.share))
                self.record.add(here.verdict)
                here = self._judged(here, step, enough, limit)
                if here.ending is not None:
                    self.record.end(here.ending)
                    break
        except KeyboardInterrupt:
            self.record.interrupted = True
        return here.verdict

    def _judged(self, here: _Place, step: float, enough: float, limit: int) -> _Place:
        """What a sweep leaves to the next one, or why it was the last."""
        verdict, pace = here.verdict, here.pace
        if impossible := verdict.impossible or self._contradiction(verdict):
            return here.ends(Ending(impossible=impossible))
        once = self.at_once and step == 1  # another sweep would change nothing
        # The tolerance is relative to the step: beliefs that move less because steps are small go on.
        settled = verdict.well and (once or verdict.moved <= max(enough, verdict.noise) * pace.share)
        if settled and not verdict.stuck:
            confirmed = self._confirmed(verdict)
            if confirmed is None:
                return here._replace(pace=self._new_pace())
            return here._replace(verdict=confirmed).ends(Ending(converged=True, at_once=once))
        if verdict.number == _LONG and self._stop_predicting():
            return here._replace(pace=self._new_pace())
        gains = pace.after(verdict.moved, partial(self._apart, here.two_ago, verdict.state), verdict.left_out)
        return here if gains and not settled else self._another_start(here, limit)

    def _contradiction(self, verdict: Verdict) -> str:
        """Which densities exclude one another, looked for where messages have been in doubt for long; else empty."""
        return exclusive(self.record.factors) if verdict.number in _EARLY and self.record.doubted else ""

    def _new_pace(self) -> Pace:
        return Pace(careful=self.schedule == "parallel" and not self.at_once, near=self.near)

    @cached_property
    def at_once(self) -> bool:
        """Whether incoming messages are the same in every sweep, for example if each unknown is in one factor only."""
        met = [port for factor in self.plan.factors for port in factor.arguments if not port.known]
        alone = len({port.variable for port in met}) == len(met) and all(port.way in ("same", "whole") for port in met)
        return alone and not self.hosts and self.power == 1 and self.policy == "allow"

    def _another_start(self, here: _Place, limit: int) -> _Place:
        """A restart where sweeps make no progress; the end if it would not help."""
        verdict, pace, lost = here.verdict, here.pace, dict(enumerate(here.verdict.lost))
        beyond = verdict.beyond or self.first_reason(left_range, verdict.state, lost)
        impossible = self.first_reason(zero_everywhere, verdict.state, lost)
        if beyond or impossible:
            return here.ends(Ending(beyond=beyond, impossible=impossible))
        if self._stop_predicting():
            pace = self._new_pace()
        elif pace.may_start_anew(limit - verdict.number):
            pace.start_anew()
        else:
            return here.ends(Ending(beyond=self.first_reason(zero_here, verdict.state, lost)))
        self.record.started_anew(pace.share)
        return _Place.first(verdict._replace(state=here.start), pace)

    def sweep(self, before: Verdict, step: float, caution: float) -> Verdict:
        """Each factor sends its messages once: those of the quickest form of it that leaves none in doubt."""
        # As arrays: what is a Python number becomes part of the program, and another one compiles another program.
        settings = Settings(np.asarray(step), np.asarray(caution), self.power)
        well = not self._narrows or self.at_once or before.moved < _NEAR
        plans = tuple(knowing(plan, FINE if well else _ROUGH) for plan in before.plans)
        with user_errors():
            send_all = self._sweep_by_factor if self.hosts else self._sweep_at_once
            found, level, beyond, impossible = send_all(before, plans, settings)
            jax.block_until_ready(found.moved)
        events = tuple(
            fetched(one.events)[:, : int(size)] if shape else np.asarray(one.events)
            for one, shape, size in zip(found.happened, self.plan.shapes, self.plan.sizes, strict=True)
        )
        return Verdict(
            found.state,
            plans,
            level,
            number=before.number + 1,
            moved=float(np.asarray(found.moved).max()),
            noise=self._noise_of_draws(found.happened),
            evidence=float(found.evidence),
            happened=found.happened,
            events=events,
            well=well,
            beyond=beyond,
            impossible=impossible,
        )

    def _noise_of_draws(self, happened: tuple[Happened, ...]) -> float:
        """The largest doubt of oracles that draw anew in every sweep."""
        each = zip(self.record.factors, happened, strict=True)
        anew = [(f, one.doubt) for f, one in each if getattr(getattr(f, "oracle", None), "wanders", False)]
        doubts = [fetched(doubt)[: f.plate] if f.plate else doubt for f, doubt in anew if doubt is not None]
        return max((float(np.max(doubt)) for doubt in doubts), default=0.0)

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

    def _sweep_at_once(self, before: Verdict, plans: tuple[Plan, ...], settings: Settings) -> _Sent:
        """One compiled sweep, by the quickest plan that leaves no factor in doubt."""
        rest = (before.state, self.key, settings, self.policy)
        backwards, beyond = np.asarray(before.number % 2 == 1), before.beyond
        levels = len(plans)
        if self.near and before.level >= 0:
            levels = before.level + 1  # a quicker form left doubt in the last sweep
        if levels > 1 and self.at_once and max(math.prod(shape) for shape in self.plan.shapes) >= _MANY:
            levels -= 1  # some are likely to be in doubt by the quickest plan, and all would be answered again
        for level in reversed(range(levels)):
            if self.schedule == "parallel":
                found = compiled_sweep(plans[level], *rest)
            else:
                found = compiled_sequential_sweep(plans[level], *rest, self.orders, backwards)
            # While beliefs still move far, messages need not be better than they will be in the next sweep.
            limit = ENOUGH if self.at_once else np.clip(_OF_STEP * np.asarray(found.moved).max(), ENOUGH, _AT_MOST)
            doubtful = [at for at, one in enumerate(found.happened) if _doubtful(plans, level, at, one, limit)]
            if not doubtful:
                return _Sent(found, level, beyond)
            # No rule integrates a function that leaves the range of its output.
            lost = {at: fetched(found.happened[at].events)[LOST].ravel()[: int(plans[0].sizes[at])] for at in doubtful}
            beyond = self.first_reason(left_range, before.state, lost)
            impossible = self.first_reason(zero_everywhere, before.state, lost)
            if beyond or impossible:
                return _Sent(found, level, beyond, impossible)
        raise AssertionError("the whole plan leaves no doubt")  # pragma: no cover

    def first_reason(self, look: Callable[..., str], state: State, lost: dict[int, np.ndarray]) -> str:
        """What `look` first says of functions whose answers were lost, such as that they leave a range; else empty."""
        each = ((at, self.record.factors[at], np.flatnonzero(members)) for at, members in lost.items())
        found = (look(self.plan, state, at, factor, members, self.power) for at, factor, members in each)
        return next(filter(None, found), "")

    def _sweep_by_factor(self, before: Verdict, plans: tuple[Plan, ...], settings: Settings) -> _Sent:
        """As `_sweep_at_once`, factor by factor, as some of their oracles are on the host."""
        state, all_happened, least = before.state, [], len(plans) - 1
        for at, key in enumerate(self.keys):
            if at in self.hosts:
                asked = ask_host(plans[0], state, at, self.hosts[at], key, before.number, self.power)
                self.record.asked[at] += asked.number
                state, happened = compiled_absorb(
                    plans[0], state, at, asked.incoming, asked.usable, asked.answer, settings, self.policy
                )
            else:
                state, happened, level = self._send(plans, state, at, settings)
                least = min(least, level)
            all_happened.append(happened)
        moved = compiled_moved(plans[0], before.state.beliefs, state.beliefs)
        return _Sent(Swept(state, tuple(all_happened), moved, np.nan), least, before.beyond)

    def _send(self, plans: tuple[Plan, ...], state: State, at: int, settings: Settings) -> tuple[State, Happened, int]:
        """The state after one factor has sent, by the quickest form that leaves no doubt; and which one that is."""
        for level in reversed(range(len(plans))):
            sent, happened, _ = compiled_send(plans[level], state, at, self.keys[at], settings, self.policy)
            if not _doubtful(plans, level, at, happened, ENOUGH):
                return sent, happened, level
        raise AssertionError("the whole plan leaves no doubt")  # pragma: no cover

    def _confirmed(self, verdict: Verdict) -> Verdict | None:
        """With the answers of oracles that confirm their predictions at convergence; None if one learns instead."""
        plans, state = verdict.plans, verdict.state
        asked = {at: self.ask_last(plans[0], state, at) for at, oracle in self.hosts.items() if oracle.predicts}
        if not asked:
            return verdict
        settings = Settings(np.asarray(1.0), np.asarray(1.0), self.power)

        def send(before: State, at: int) -> State:
            return before if at in self.hosts else self._send(plans, before, at, settings)[0]

        with user_errors():
            found = lean(plans[0], state, asked, send, self.power, self.policy)
        # Each of them is informed, whatever the others answer.
        factors: Any = plans[0].factors
        accepted = {at: self.hosts[at].accepts(factors[at], found) for at in asked}
        return verdict._replace(answers=asked) if all(accepted.values()) else None

    def _stop_predicting(self) -> bool:
        """Ask the oracles to stop predicting because sweeps do not converge, and whether one does; each notes it."""
        factors: Any = self.plan.factors
        stopped = [oracle.stop_predicting(factors[at]) for at, oracle in self.hosts.items()]
        return any(stopped)

    def ask_last(self, plan: Plan, state: State, at: int) -> Asked:
        """The answer of an oracle on the host at convergence, for the evidence."""
        asked = ask_host(plan, state, at, self.hosts[at], self.keys[at], None, self.power)
        self.record.asked[at] += asked.number
        return asked


def _doubtful(plans: tuple[Plan, ...], level: int, at: int, happened: Happened, limit: float) -> bool:
    """Whether this form of a factor leaves a member in more doubt than this, and there is a better one."""
    if plans[level].factors[at] is plans[0].factors[at]:
        return False
    doubt = fetched(happened.doubt).ravel()
    usable = ~fetched(happened.events)[UNUSABLE].reshape(doubt.shape)
    return bool((~(doubt <= limit) & usable)[: int(plans[0].sizes[at])].any())


def knowing(plan: Plan, enough: float) -> Plan:
    """The plan with what is enough to know of functions on the host in this sweep."""

    def with_memory(factor: Any) -> Any:
        memory = getattr(factor, "memory", None)
        return factor if memory is None else replaced(factor, memory=memory._replace(enough=np.float64(enough)))

    return replaced(plan, factors=tuple(map(with_memory, plan.factors)))
