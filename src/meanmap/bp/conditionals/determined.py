"""Numbers that follow from their parents without noise, such as totals, and evidence that contradicts them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from meanmap.bp.conditionals.at_points import AtPoints
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import LEAST_NOISE, GivenParents, joined
from meanmap.bp.conditionals.in_range import InRange
from meanmap.bp.conditionals.laws import Law
from meanmap.core.meant import listed

__all__ = ["contradicted", "determined"]

# Evidence this many times as far from what its parents determine as the smallest width of a density contradicts them.
APART = 10


def determined(name: Hashable, parents: Sequence[Hashable], law: Law) -> tuple[str, ...]:
    """A note of the fit on a number that follows from its parents."""
    if not _follows(law):
        return ()
    note = (
        f"{name!r} follows from {listed(parents)} without noise: given these it has no spread, and as evidence it "
        f"counts to within {LEAST_NOISE:g} standard deviations. Evidence about all of them may contradict itself: "
        "leave one out."
    )
    return (note,)


def contradicted(
    columns: Mapping[Hashable, CodedColumn],
    laws: Mapping[Hashable, Law],
    parents: Mapping[Hashable, Sequence[Hashable]],
    known: Mapping[Hashable, np.ndarray],
    names: Iterable[Hashable],
) -> tuple[str, ...]:
    """Notes on those of these variables whose known values, (1, 1), are not what known parents determine."""
    notes = []
    for name in names:
        if name not in known or not known.keys() >= set(parents[name]) or not _follows(laws[name]):
            continue
        found = laws[name].draw(joined([known[parent] for parent in parents[name]], 1), np.random.default_rng(0))
        if abs(float(found[0, 0] - known[name][0, 0])) > APART * LEAST_NOISE:
            given, follows = (f"{columns[name].in_unit(each)[0, 0]:.5g}" for each in (known[name], found))
            notes.append(
                f"{name!r} is {given}, but by all other rows {follows} follows from {listed(parents[name])}: one of "
                "these is wrong, and answers differ by which is believed."
            )
    return tuple(notes)


def _follows(law: Law) -> bool:
    of_number = law.number if isinstance(law, AtPoints) else law
    of_number = of_number.law if isinstance(of_number, InRange) else of_number
    return isinstance(of_number, GivenParents) and of_number.follows
