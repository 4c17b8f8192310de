"""Times with a zone and times without one, which cannot be ordered."""

from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from meanmap.core.containers import is_sparse
from meanmap.core.errors import KindError
from meanmap.core.language import in_python
from meanmap.core.moments import Zoned, is_zoned
from meanmap.core.pieces.sources import comes_in_pieces
from meanmap.core.tables.table import named_columns
from meanmap.core.types import Data

__all__ = ["check_zones", "one_zone"]


def check_zones(samples: Sequence[Data], names: Sequence[str], times: Container[str] = ()) -> None:
    """Refuse samples in which a column has times with a zone in one place and without in another. NumPy's times have
    none. Columns of text named in `times` are to be read as times.
    """
    found: dict[Any, dict[bool, str]] = {}
    for sample, name in zip(samples, names, strict=True):
        for key, column in _columns(sample, name):
            where = name if key is None else f"{name}[{key!r}]"
            bare = isinstance(column, np.ndarray) and column.dtype.kind == "M" and not isinstance(column, Zoned)
            zoned = False if bare else is_zoned(column, where, read_as_times=str(key) in times)
            if zoned is not None:
                found.setdefault(key, {}).setdefault(zoned, where)
    for where in found.values():
        if len(where) > 1:
            raise one_zone(where[True], where[False])


def _columns(sample: Data, name: str) -> Sequence[tuple[Any, Any]]:
    if comes_in_pieces(sample) or is_sparse(sample):
        return ()
    if named := named_columns(sample, name):
        return list(named.items())
    return [(None, sample)] if isinstance(sample, list | tuple) or hasattr(sample, "dtype") else ()


def one_zone(zoned: str, naive: str) -> KindError:
    """The error for two columns of times of which only one has a zone."""
    localized = f"with {naive}.dt.tz_localize" if " " not in naive else f"as {naive} has after .dt.tz_localize"
    remedy = in_python(
        f", for example {localized}('Europe/Berlin'), or remove the zone of {zoned} with .dt.tz_localize(None)",
        f" there, as in 2026-01-31T12:30Z, or remove the zone from {zoned}",
    )
    return KindError(
        f"{zoned} holds times with a zone, and {naive} holds times without one: they cannot be compared. Specify the "
        f"zone{remedy}."
    )
