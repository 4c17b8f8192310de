"""How far a common bias of the predictions of a plate moves the beliefs to which its members contribute."""

from collections.abc import Callable
from typing import Any

import numpy as np

from meanmap.ep.doubt import Lean
from meanmap.ep.oracles.host import Asked
from meanmap.ep.sweeps.plan import Plan, State
from meanmap.ep.sweeps.sweep import Settings, compiled_absorb, compiled_moved

__all__ = ["lean"]

# The members are split into this many groups to estimate how much of the move is chance.
_GROUPS = 8
# So often news goes on from factor to factor: from a plate to what it is made of, and to what that depends on.
_ROUNDS = 2


def lean(
    plan: Plan, state: State, asked: dict[int, Asked], send: Callable[[State, int], State], power: float, policy: str
) -> Lean:
    """The move, to first order, from a converged state.

    Errors of single messages are as small as an oracle states. If they have the same sign, those of a hundred members
    add up in the belief about a variable that they share, whose standard deviation is ten times smaller than theirs.

    Parameters
    ----------
    plan, state
        The model and its messages.
    asked : dict
        For each factor with predictions its incoming messages, and an answer in which some of the messages are exact.
    send : callable
        The state after another factor has sent its messages.
    power, policy
        Those of the run.
    """
    own = {port.variable for at in asked for port in plan.factors[at].arguments if _member_by_member(plan, at, port)}
    shared = [at for at in range(len(state.beliefs)) if at not in own]
    settings = Settings(np.asarray(1.0), np.asarray(1.0), power)

    def moved(group: int | None) -> np.ndarray:
        after = state
        for at, one in asked.items():
            members = np.arange(plan.shapes[at][0]) if plan.shapes[at] else np.asarray(0)
            chosen = one.usable if group is None else one.usable & ((members + at) % _GROUPS == group)
            after, _ = compiled_absorb(plan, after, at, one.incoming, chosen, one.answer, settings, policy)
        for at in [at for at in range(len(plan.factors)) if at not in asked] * _ROUNDS:
            after = send(after, at)
        return np.asarray(compiled_moved(plan, state.beliefs, after.beliefs))[shared]

    whole, parts = moved(None), np.stack([moved(group) for group in range(_GROUPS)])
    with np.errstate(invalid="ignore"):
        variance = ((parts**2).sum(0) - whole**2 / _GROUPS) * _GROUPS / (_GROUPS - 1)
    return Lean(whole, np.sqrt(np.maximum(variance, 0)))


def _member_by_member(plan: Plan, at: int, port: Any) -> bool:
    return not port.known and port.way == "same" and bool(plan.shapes[at])
