"""What one sweep leaves: the state after it, how far beliefs moved, and which messages are in doubt; and why it is the
last.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from meanmap.ep.oracles.host import Asked
from meanmap.ep.sweeps.plan import Plan, State
from meanmap.ep.sweeps.sweep import LOST, Happened

__all__ = ["Ending", "Verdict"]


class Ending(NamedTuple):
    """Why no sweep follows: beliefs have converged, the data are impossible, or answers were lost.

    Attributes
    ----------
    converged, at_once : bool
        Whether beliefs no longer move, and whether they would not in any sweep.
    impossible : str
        Why the data are impossible under the model.
    beyond : str
        Why answers are lost in every sweep, such as a function that leaves the range of its output.
    """

    converged: bool = False
    at_once: bool = False
    impossible: str = ""
    beyond: str = ""


class Verdict(NamedTuple):
    """A sweep takes the verdict of the one before and returns its own: nothing else is remembered between them.

    Attributes
    ----------
    state : State
        After the sweep.
    plans : tuple of Plan
        With ever quicker forms of the factors, and what was enough to know of functions on the host.
    level : int
        Which of the plans the sweep needed.
    number : int
        Of sweeps so far.
    moved : float
        How far beliefs moved, in standard deviations.
    noise : float
        How far they move in every sweep, because an oracle draws anew: the largest doubt of such oracles.
    evidence : float
        Its logarithm, from the answers during the sweep: correct at convergence; NaN where not known.
    happened, events : tuples
        For each factor, what happened to its messages; and the flags of its members alone, without padding.
    well : bool
        Whether functions on the host were known as well as they can be.
    beyond, impossible : str
        Why answers were lost, where a function leaves the range of its output, or is zero everywhere.
    answers : dict
        Those of oracles on the host at convergence.
    """

    state: State
    plans: tuple[Plan, ...]
    level: int = -1
    number: int = 0
    moved: float = np.inf
    noise: float = 0.0
    evidence: float = np.nan
    happened: tuple[Happened, ...] = ()
    events: tuple[np.ndarray, ...] = ()
    well: bool = True
    beyond: str = ""
    impossible: str = ""
    answers: Mapping[int, Asked] = {}

    @property
    def plan(self) -> Plan:
        """The plan of the sweep: the quickest that left no factor in doubt."""
        return self.plans[self.level]

    @property
    def lost(self) -> tuple[np.ndarray, ...]:
        """The members of each factor whose answers were no numbers."""
        return tuple(event[LOST] for event in self.events)

    @property
    def stuck(self) -> bool:
        """Whether messages were left out, so that beliefs that do not move prove nothing."""
        return any(event[1:].any() for event in self.events)

    @property
    def left_out(self) -> bytes:
        """Which messages were left out; empty where none was."""
        return b"".join(event[1:].tobytes() for event in self.events) if self.stuck else b""
