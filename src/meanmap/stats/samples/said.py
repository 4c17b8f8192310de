"""The differences of columns that are printed."""

from meanmap.core.language import in_python
from meanmap.stats.samples.by_column import Differences

__all__ = ["said_of"]

# At most this many clear differences are printed; if fewer are clear, differences of at least this many columns.
MOST_SAID, LEAST_SAID = 20, 5


def said_of(found: Differences) -> list[str]:
    """A line for each clear difference; if these are few, also for the clearest one of other columns, without shares of
    missing values. If most rows of a column have one number, all three of its differences are shown.
    """
    related = []
    for each in found.relations[:LEAST_SAID]:
        what, first, second, by = each.cells()
        related.append(f"{what}: {first} in {found[0].names[0]}, {second} in {found[0].names[1]}, a difference of {by}")
    said = [each for each in found if each.shown][:MOST_SAID]
    whole = {each.column for each in found if each.without is not None}
    for each in (each for each in found if not each.of_gaps):
        here = {other.column for other in said if not other.of_gaps}
        new = each.column not in here or (each.column in whole and each not in said)
        if len(related) + len(said) < LEAST_SAID and new:
            said.append(each)
    more = len(found) - len(said)
    where = in_python("in result.differences", "on the page of --report")
    return [*related, *map(str, said), *([f"and {more} more {where}"] if more > 0 else [])]
