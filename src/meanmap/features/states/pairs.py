"""Paired variables, each with its features, read in one pass over their rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.door import Door
from meanmap.core.errors import ShapeError
from meanmap.core.language import counted
from meanmap.core.tables.chunks import chunks_of, count_rows, paired_chunks
from meanmap.core.tables.missing import settle, settle_pieces
from meanmap.core.tables.schema import chosen_kinds
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data, Points
from meanmap.features.base import OfMembers
from meanmap.features.states.passes import SampleState, one_pass
from meanmap.features.states.reading import ROWS, Reading

__all__ = ["NAMES", "SideBySide", "beside_state", "readings_beside"]

NAMES = ("x", "y")


class SideBySide(OfMembers):
    """Features of several variables side by side; points are tuples with one entry per variable."""

    def parts(self, x: Points) -> tuple[Any, ...]:
        """The entry of each variable."""
        return tuple(x)

    def transform(self, x: Points) -> jax.Array:
        """φ(x), ψ(y) and so on, (n, r + s + ...)."""
        return jnp.concatenate(self.of_each(x), axis=1)


def readings_beside(
    sample: Sequence[Any], names: Sequence[str], missing: str, kinds: Mapping[str, Any] | None, least: int
) -> tuple[tuple[Reading, ...], list[Any]]:
    """How each of several variables is read, found from a sample of rows, and the sample as it is read."""
    parts, _ = settle(sample, names, missing, True, least)
    columns = [named_columns(part, name) if kinds else {} for part, name in zip(parts, names, strict=True)]
    chosen = (
        chosen_kinds(kinds, {k: c for each in columns for k, c in each.items()}, " and ".join(names)) if kinds else {}
    )
    found = []
    for part, name, own in zip(parts, names, columns, strict=True):
        ours = {column: kind for column, kind in chosen.items() if column in own} or None
        reading, (read,) = Reading.of([part], [name], "raise", ours, least)
        found.append((reading, read))
    return tuple(reading for reading, _ in found), [read for _, read in found]


def beside_state(plan: object, sources: Sequence[Data], names: Sequence[str] = NAMES) -> SampleState:
    """The state of some rows; a single source is an iterator of pieces, which are tuples with a member per variable.

    The plan has the variables' `readings`, the features of each as `members`, a map of all as `features`, and the
    treatment of `missing` values.
    """
    there = [source for source in sources if source is not None]
    step = partial(_state, sides=tuple(names))
    return one_pass(plan, step, [tuple(there) if len(there) > 1 else there[0]], [" and ".join(names)])[0]


def _state(plan: Any, source: object, name: str, sides: tuple[str, ...]) -> SampleState:
    """The state of the rows of one source, or of several side by side."""
    rows, gaps = 0, Counter()

    def points(door: Door) -> Iterator[Any]:
        nonlocal rows
        blocks = paired_chunks(source, ROWS, sides) if isinstance(source, tuple) else chunks_of(source, ROWS, sides[0])
        for block in blocks:
            if not isinstance(block, tuple) or len(block) != len(sides):
                members = len(block) if isinstance(block, tuple) else 1
                raise ShapeError(
                    f"a piece has {counted(members, 'member')}; expected one for each of {', '.join(sides)}."
                )
            where = [f"{side}[{rows}:]" if rows else side for side in sides]
            rows += count_rows(block[0]) or 0
            parts, lacking = settle_pieces(block, sides, plan.missing)
            gaps.update(lacking)
            if count_rows(parts[0]):
                each = zip(plan.readings, plan.members, parts, where, strict=True)
                yield tuple(member.read(reading.read(part, at), at, door) for reading, member, part, at in each)

    with Door() as door:
        sums = plan.features.sums(points(door))
    return SampleState(sums, rows, dict(sorted(gaps.items())))
