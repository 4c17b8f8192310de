"""Clusters that lie within strata: others are refused, with what to type and what may have caused it."""

from collections.abc import Mapping, Sequence

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.held import holds_labels
from meanmap.core.tables.column import counted
from meanmap.core.tables.labels_meant import written_in_two_ways
from meanmap.core.tables.picked import names_of

__all__ = ["check_nested"]


def check_nested(
    strata: np.ndarray, units: np.ndarray, within: object, clusters: object, columns: Sequence[np.ndarray]
) -> None:
    """Refuse clusters with rows in several strata: there the parts of one cluster would be exchanged separately. The
    message has the names of columns from `within` and `clusters`, and says where labels in the `columns` of the strata
    differ only in capitals or spaces.

    Examples
    --------
    >>> land = np.array(["de", "DE", "at", "at"])
    >>> check_nested(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1]), "land", "user", [land])
    Traceback (most recent call last):
        ...
    meanmap.core.errors.InputError: 1 of 2 clusters has rows in several strata of within=, whose rows are exchanged \
separately, and the rows of a cluster only together. This may be why: 'land' has the labels 'DE' and 'de', which \
differ only in capitals and count as two: write them alike, as .str.lower() does, if they are one. Otherwise leave out \
within= or clusters=; or, if clusters of different strata have the same names, pass clusters=['user', 'land'].
    """
    strata_of = np.bincount(np.unique(np.stack([units, strata]), axis=1)[0])
    several = int((strata_of > 1).sum())
    if not several:
        return
    of_strata, of_clusters = _called(within), _called(clusters)
    whole = bool(of_strata and of_clusters)
    named = of_strata if len(of_strata) == len(columns) else [""] * len(columns)
    spelled = [
        note
        for name, column in zip(named, columns, strict=True)
        if holds_labels(column)
        for note in written_in_two_ways(set(map(str, column.tolist())), repr(name) if name else "within=", least=1)
    ]
    leave = f"This may be why: {' '.join(spelled)} Otherwise leave" if spelled else "Leave"
    both = f"pass clusters={list(dict.fromkeys([*of_clusters, *of_strata]))}" if whole else "combine both in clusters="
    raise InputError(
        f"{several} of {counted(len(strata_of), 'cluster')} {'has' if several == 1 else 'have'} rows in several strata "
        f"of within=, whose rows are exchanged separately, and the rows of a cluster only together. {leave} out "
        f"within= or clusters=; or, if clusters of different strata have the same names, {both}."
    )


def _called(wanted: object) -> list[str]:
    """The names of the columns that were asked for, by name or as columns picked from a table."""
    return list(map(str, wanted)) if isinstance(wanted, Mapping) else names_of(wanted)
