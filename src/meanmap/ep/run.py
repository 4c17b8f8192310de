"""How one sweep is run: compiled as a whole, member by member, or factor by factor where oracles are on the host."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.ep.calling import user_errors
from meanmap.ep.factor import Factor
from meanmap.ep.host import HostOracle, ask_host
from meanmap.ep.plan import Plan, State
from meanmap.ep.record import Record
from meanmap.ep.sequential import compiled_sequential_sweep
from meanmap.ep.sweep import (
    Settings,
    compiled_absorb,
    compiled_evidence,
    compiled_moved,
    compiled_send,
    compiled_sweep,
)

__all__ = ["SCHEDULES", "Run", "check_schedule"]

SCHEDULES = ("parallel", "sequential")


def check_schedule(schedule: Any, hosts: dict[int, HostOracle], factors: tuple[Factor, ...]) -> None:
    """Raise if a schedule is unknown, or asks an oracle on the host one question at a time."""
    if schedule not in SCHEDULES:
        raise ParameterError(f"schedule is {schedule!r}; expected one of {', '.join(map(repr, SCHEDULES))}.")
    if schedule == "sequential" and hosts:
        named = ", ".join(factors[at].name for at in hosts)
        raise KindError(
            f"{named} has an oracle on the host, which is asked for whole plates: type schedule='parallel', or give "
            "an oracle such as ep.Quadrature()."
        )


@dataclass
class Run:
    """Everything about a run but its state."""

    plan: Plan
    keys: jax.Array
    power: float
    policy: str
    schedule: str
    hosts: dict[int, HostOracle]
    record: Record

    def sweep(self, state: State, damping: float, caution: float) -> State:
        """The state after each factor has sent its messages once; the record is told."""
        # As arrays: what is a Python number becomes part of the program, and another one compiles another program.
        settings = Settings(np.asarray(damping), np.asarray(caution), self.power)
        with user_errors():
            if self.hosts:
                new, happened, moved = self._by_factor(state, settings)
            else:
                compiled = compiled_sweep if self.schedule == "parallel" else compiled_sequential_sweep
                new, happened, moved = compiled(self.plan, state, self.keys, settings, self.policy)
            jax.block_until_ready(moved)
        self.record.add(self.plan, happened, moved)
        return new

    def _by_factor(self, state: State, settings: Settings) -> tuple:
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
                state, happened = compiled_send(self.plan, state, at, key, settings, self.policy)
            all_happened.append(happened)
        return state, tuple(all_happened), compiled_moved(self.plan, before, state.beliefs)

    def evidence(self, state: State) -> float:
        """The logarithm of the evidence; NaN after an interruption, where functions on the host would be called."""
        on_host = self.hosts or any(getattr(factor, "host", False) for factor in self.plan.factors)
        if self.record.interrupted and on_host:
            return np.nan
        known = {}
        for at, oracle in self.hosts.items():
            asked = ask_host(self.plan, state, at, oracle, self.keys[at], None, self.power)
            self.record.asked[at] += asked.number
            known[at] = asked.answer.log_normaliser
        with user_errors():
            return float(compiled_evidence(self.plan, state, self.keys, self.power, known))
