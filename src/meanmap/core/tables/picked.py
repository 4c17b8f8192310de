"""Variables as names of columns of one table."""

from collections.abc import Mapping
from typing import Any

from meanmap.core.errors import KindError
from meanmap.core.meant import names_none, respelled
from meanmap.core.settings import by_name, is_whole
from meanmap.core.tables.chunks import source_of
from meanmap.core.tables.kinds import wanted_kind
from meanmap.core.tables.table import raw_columns
from meanmap.core.types import Data
from meanmap.core.values import as_tuple

__all__ = ["check_no_names", "kinds_of_picked", "names_of", "picked", "set_apart"]


def names_of(wanted: object) -> list[str]:
    """The names of columns, from one name or a list; none for anything else."""
    listed = list(as_tuple(wanted))
    return listed if all(isinstance(name, str) for name in listed) else []


def picked(data: Data, **wanted: object) -> list[Any]:
    """The columns of `data` that each argument names, before conversion; None stays None. Columns may be called 0, 1
    and so on. An integer as `clusters` is a block length, and stays one. For files and Dask frames the results are
    files and frames.

    Examples
    --------
    >>> picked({"sun": [1, 2], "rain": [3, 4], "field": ["a", "b"]}, x="sun", z=["rain", "field"], within=None)
    [{'sun': [1, 2]}, {'rain': [3, 4], 'field': ['a', 'b']}, None]
    """
    source, found = source_of(data), []
    columns = source.names
    for argument, names in wanted.items():
        if names is None or (is_whole(names) and argument == "clusters"):
            found.append(names)
            continue
        listed = names_of([str(name) if is_whole(name) else name for name in as_tuple(names)])
        if not listed:
            raise KindError(
                f"{argument} is {names!r}; with data= expected the name of a column of it, or a list of names."
            )
        listed = [respelled(name, columns) for name in listed]
        lacking = [name for name in listed if name not in columns]
        if lacking:
            raise names_none(argument, lacking[0], "data", columns)
        found.append(source.chosen(listed))
    return found


def kinds_of_picked(kinds: Mapping[str, Any] | None, data: Data, *wanted: object) -> dict[str, Any]:
    """`kinds` without other columns of `data`, which it may also declare.

    Examples
    --------
    >>> kinds_of_picked({"rain": "label", "field": "label"}, {"sun": [1], "rain": [3], "field": ["a"]}, "sun", ["rain"])
    {'rain': 'label'}
    """
    told = by_name(kinds, "kinds", '{"zip": "label"}')
    if not told:
        return told
    used = {str(name) for each in wanted for name in as_tuple(each)}
    others = [name for name in source_of(data).names if name not in used]
    for name in (name for name in others if name in told):
        wanted_kind(told.pop(name))
    return told


def check_no_names(**variables: object) -> None:
    """Refuse the name of a column without a table."""
    for argument, part in variables.items():
        if isinstance(part, str):
            raise KindError(f"{argument} is {part!r}: the name of a column needs the table, as data=.")


def set_apart(data: Data, **wanted: object) -> list[Any]:
    """The table without the columns that arguments name, then these columns for each; other arguments unchanged.

    Examples
    --------
    >>> set_apart({"sun": [1, 2], "rain": [3, 4], "field": ["a", "b"]}, within="field", clusters=2)
    [{'sun': [1, 2], 'rain': [3, 4]}, {'field': ['a', 'b']}, 2]
    """
    columns = raw_columns(data, "the table")
    found, gone = [], set()
    for argument, names in wanted.items():
        listed = [respelled(name, columns) for name in names_of(names)]
        if listed and all(name in columns for name in listed):
            found.append({name: columns[name] for name in listed})
            gone |= set(listed)
        elif isinstance(names, str):
            raise names_none(argument, names, "the table", columns)
        else:
            found.append(names)
    return [{name: column for name, column in columns.items() if name not in gone} if gone else data, *found]
