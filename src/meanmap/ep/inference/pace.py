"""How much of each projected step is taken: found during the run, because it differs from model to model."""

from collections.abc import Callable

import numpy as np

__all__ = ["Pace"]

# The share of the first step, and the largest share while steps are longer than a standard deviation. With half of the
# first step a logistic regression on a table in its original units diverged and did not recover.
_FIRST, _FAR = 1 / 16, 0.5
# A step this much longer than the previous one was too long; after any other step the share grows.
_LONGER, _GROWTH, _LEAST = 1.2, 1.3, 1 / 128
# A new start is more careful by this factor, and there are this many.
_MORE_CAREFUL, _STARTS = 0.25, 2
# Sweeps go in circles when over this many the shortest step has shrunk by less than this ...
_LOOK, _PROGRESS = 6, 0.8
# ... and two steps together lead less far than one and a half.
_TURNING = 1.5
# A run makes no progress when the same messages were left out in this many sweeps.
_PATIENCE = 8


class Pace:
    """The share of the next step, from how far each sweep moved.

    Far from the fixed point, a whole plate that moves in one step overshoots: beliefs become concentrated in the wrong
    place, where a logistic factor is nearly flat and cannot correct them. Near it, a plate may oscillate endlessly: if
    steps do not become shorter and undo each other, half of each step is taken from then on.
    """

    def __init__(self, careful: bool, near: bool = False) -> None:
        self.first, self.far = (1.0 if near else _FIRST, _FAR) if careful else (1.0, 1.0)
        self.starts = 0
        self.start_anew()

    def start_anew(self) -> None:
        """Begin again without messages, with shorter steps than before."""
        self.first *= _MORE_CAREFUL if self.starts else 1.0
        self.starts += 1
        self.share, self.most = self.first, 1.0
        self.steps: list[float] = []
        self.left_out: list[bytes] = []

    def may_start_anew(self, sweeps: int) -> bool:
        """Whether a more careful start is left to try, and sweeps to try it."""
        return self.starts < _STARTS and sweeps > _PATIENCE

    def after(self, moved: float, over_two: Callable[[], float], left_out: bytes) -> bool:
        """Record a sweep; False if further sweeps would make no progress.

        Parameters
        ----------
        moved : number
            How far beliefs moved in this sweep.
        over_two : callable
            How far in this and the one before together; it is asked for only where it matters.
        left_out : bytes
            Which messages were left out; empty where none was.
        """
        self.steps.append(moved)
        self.left_out.append(left_out)
        recent = self.left_out[-_PATIENCE:]
        lost = bool(left_out) and len(recent) == _PATIENCE and len(set(recent)) == 1
        if self._in_circles(over_two):
            lost = lost or self.most <= _LEAST
            self.most, self.steps = max(self.most / 2, _LEAST), []
        if moved <= 1:
            self.share = self.most
        else:
            longer = len(self.steps) > 1 and np.isfinite(self.steps[-2]) and moved > _LONGER * self.steps[-2]
            self.share = max(self.share / 2, _LEAST) if longer else min(_GROWTH * self.share, self.far, self.most)
        return not lost

    def _in_circles(self, over_two: Callable[[], float]) -> bool:
        """Whether steps have stopped getting shorter, and turn back."""
        earlier, recent = self.steps[:-_LOOK], self.steps[-_LOOK:]
        if not earlier or not np.isfinite(recent).all():
            return False
        return min(recent) > _PROGRESS * min(earlier) and over_two() < _TURNING * recent[-1]
