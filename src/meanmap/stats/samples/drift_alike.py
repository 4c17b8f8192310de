"""Whether a column changed as at an earlier alarm: the same quantity, in the same direction, by about as much."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Change", "changes_in", "is_known"]

# Changes by at most so many times as much are alike.
TIMES = 2.0


class Change(NamedTuple):
    """What changed, such as a mean or a share, its difference from the reference and the ends of its interval, if any.

    Examples
    --------
    >>> Change("mean a", 5.0, 4.0, 6.0).is_like(Change("mean a", 4.0, 3.0, 5.0))
    True
    >>> Change("mean a", 5.0, 4.0, 6.0).is_like(Change("mean a", -5.0, -6.0, -4.0))
    False
    >>> Change("mean a", 2.0, 1.0, 3.0).is_like(Change("mean a", 20.0, 19.0, 21.0))
    False
    """

    what: str
    size: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Change":
        """The change that the row of a table shows."""
        ends = row["difference"] or {}
        size, low, high = (_number(ends.get(end)) for end in ("estimate", "low", "high"))
        before, now = _number(row["reference"]), _number(row["batches"])
        if size is None and before is not None and now is not None:  # such as standard deviations, without an interval
            size = now - before
        return cls(row["what"], size, low, high)

    def is_like(self, other: "Change") -> bool:
        """Whether both have one direction, and intervals that meet or sizes that are similar."""
        if self.what != other.what:
            return False
        if self.size is None or other.size is None:
            return self.size is other.size
        if self.size * other.size <= 0:
            return False
        if self._meets(other):
            return True
        sizes = abs(self.size), abs(other.size)
        return max(sizes) <= TIMES * min(sizes)

    def _meets(self, other: "Change") -> bool:
        """Whether the intervals of both have a point in common."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return False
        return max(self.low, other.low) <= min(self.high, other.high)


def _number(value: object) -> float | None:
    """The value if it is a number: times are given as text."""
    return float(value) if isinstance(value, int | float) else None


def changes_in(rows: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The changes that these rows show."""
    return tuple(map(Change.of, rows))


def is_known(changes: Sequence[Change], earlier: Sequence[Change]) -> bool:
    """Whether each of the changes is like an earlier one."""
    return all(any(each.is_like(other) for other in earlier) for each in changes)
