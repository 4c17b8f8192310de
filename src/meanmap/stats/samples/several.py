"""Samples in the forms that users pass: a list, a mapping of names, or one table with a column that defines them."""

from collections.abc import Iterable, Mapping
from typing import Any

from meanmap.core.errors import InputError, KindError
from meanmap.core.language import counted
from meanmap.core.points import on_host
from meanmap.core.tables.apart import without_ids
from meanmap.core.tables.assigned import Kept, without_units
from meanmap.core.types import Data
from meanmap.stats.designs.groups import grouped

__all__ = ["named", "several_samples"]


def several_samples(
    samples: Data, by: str | None, missing: str, kinds: Mapping[str, Any] | None, keeps: Kept | None = None
) -> tuple[list[str], list[Any], tuple[str, ...]]:
    """The names of the samples, the samples as passed or as the groups of one table, and notes.

    For groups, missing values have been handled and columns have the kinds given by `kinds`. Columns that only identify
    or date the rows are left out unless they are in `keeps`, or this is None.
    """
    if by is not None:
        groups, told = grouped(samples, by, missing, kinds, keeps)
        return list(groups), list(groups.values()), told
    names, listed = named(samples)
    if keeps is None:
        return names, listed, ()
    listed, told = without_ids(listed, names, keeps.names, kinds)
    listed, heard = without_units(listed, names, keeps, kinds)
    return names, listed, (*told, *heard)


def named(samples: Data) -> tuple[list[str], list[Any]]:
    """The names of the samples for errors, and the samples."""
    if isinstance(samples, Mapping):
        names, listed = [str(name) for name in samples], list(samples.values())
    elif isinstance(samples, Iterable) and not hasattr(samples, "shape"):
        listed = list(samples)
        names = [f"samples[{i}]" for i in range(len(listed))]
    else:
        raise KindError("samples is one array or table; expected a list of samples, such as [x, y, z].")
    listed = [on_host(data) for data in listed]
    if len(listed) < 2:
        raise InputError(f"samples has {counted(len(listed), 'sample')}; expected at least two to compare.")
    return names, listed
