"""Pairs of rows that lie side by side, with features of each: what a pass over them adds up."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.door import Door
from meanmap.core.points import count
from meanmap.core.tables.chunks import chunks_of, paired_chunks
from meanmap.core.types import Data, Points
from meanmap.features.base import Features
from meanmap.features.states.passes import SampleState, one_pass
from meanmap.features.states.reading import ROWS
from meanmap.kernels.base import Kernel

__all__ = ["NAMES", "SideBySide", "pairs_state"]

NAMES = ("x", "y")


class SideBySide(Features):
    """Features of two variables, each of its own: points are pairs of points."""

    kernel: Kernel
    members: tuple[Features, ...]

    def transform(self, x: Points) -> jax.Array:
        """φ(x) and ψ(y), (n, r + s)."""
        return jnp.concatenate([member.transform(part) for member, part in zip(self.members, x, strict=True)], axis=1)

    def check(self, points: Points, argument: str) -> None:
        """As the features of each variable check."""
        for member, part in zip(self.members, points, strict=True):
            member.check(part, argument)

    @property
    def size(self) -> int:
        """r + s."""
        return sum(member.size for member in self.members)


def pairs_state(plan: Any, x: Data, y: Data = None) -> SampleState:
    """What some pairs add; x alone is an iterator of pieces (x, y).

    The plan has two `readings`, the features of each as `members`, and a map of both as `features`.
    """
    return one_pass(plan, _state, [x if y is None else (x, y)], ["x and y"])[0]


def _state(plan: Any, source: Any, name: str) -> SampleState:
    """What the rows of one source, or of two side by side, add."""
    rows = 0

    def points(door: Door) -> Iterator[Any]:
        nonlocal rows
        pairs = paired_chunks(source, ROWS, NAMES) if isinstance(source, tuple) else chunks_of(source, ROWS, "x")
        for block in pairs:
            read = []
            for reading, member, part, side in zip(plan.readings, plan.members, block, NAMES, strict=True):
                where = f"{side}[{rows}:]" if rows else side
                read.append(member.read(reading.read(part, where), where, door))
            rows += count(read[0])
            yield tuple(read)

    with Door() as door:
        sums = plan.features.sums(points(door))
    return SampleState(sums, rows, {})
