"""Clusters that lie within strata and samples: others are refused, with what to type and what may have caused it."""

from collections.abc import Mapping, Sequence

import numpy as np

from meanmap.core.errors import InputError
from meanmap.core.held import holds_labels
from meanmap.core.language import counted
from meanmap.core.tables.labels_meant import written_in_two_ways
from meanmap.core.tables.picked import names_of
from meanmap.core.values import label_text

__all__ = ["check_apart", "check_nested"]

# This many clusters are named in a message.
NAMED = 3


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
    meanmap.core.errors.InputError: 1 of 2 clusters has rows in several strata of within=. Rows are exchanged within \
strata, but those of a cluster only together. This may be why: 'land' has the labels 'DE' and 'de', which \
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
        f"of within=. Rows are exchanged within strata, but those of a cluster only together. {leave} out "
        f"within= or clusters=; or, if clusters of different strata have the same names, {both}."
    )


def check_apart(groups: np.ndarray, units: np.ndarray, columns: Sequence[np.ndarray]) -> None:
    """Refuse clusters with rows of several samples, and name a few by their values in `columns`.

    Examples
    --------
    >>> user = np.arange(12) // 2
    >>> check_apart(np.array([0, 1, *[0] * 5, *[1] * 5]), user, [user])
    Traceback (most recent call last):
        ...
    meanmap.core.errors.InputError: 2 of 6 clusters have rows in more than one sample ('0', '3'), but each cluster \
must lie in one: leave out the rows of these clusters, or assign all rows of each to one sample.
    """
    samples_of = np.bincount(np.unique(np.stack([units, groups]), axis=1)[0])
    several = np.flatnonzero(samples_of > 1)
    if not len(several):
        return
    first = np.unique(units, return_index=True)[1][several[:NAMED]]
    shown = [repr(", ".join(label_text(column[row]) for column in columns)) for row in first]
    most = 2 * len(several) > len(samples_of)
    then = (
        "pass them as within= instead, to compare the samples within each cluster"
        if most
        else "leave out the rows of these clusters, or assign all rows of each to one sample"
    )
    raise InputError(
        f"{len(several)} of {counted(len(samples_of), 'cluster')} {'has' if len(several) == 1 else 'have'} rows in "
        f"more than one sample ({', '.join(shown)}{', …' if len(several) > NAMED else ''}), but each cluster "
        f"must lie in one: {then}."
    )


def _called(wanted: object) -> list[str]:
    """The names of the columns that were asked for, by name or as columns picked from a table."""
    return list(map(str, wanted)) if isinstance(wanted, Mapping) else names_of(wanted)
