"""Monitors as stored in files: without arrays that are recomputed from their points and landmarks."""

from dataclasses import replace
from typing import Any

import numpy as np

from meanmap.core.door import Door
from meanmap.features.base import transformed
from meanmap.features.lowrank import Nystrom

__all__ = ["bare", "with_features"]


def bare(monitor: Any) -> Any:
    """A monitor without the features of its pool, and without the factors of landmarks, which are as large as their
    Gram matrices. With a margin there is no pool, and factors are kept.
    """
    features = monitor.features
    if monitor.points is not None:
        members = [_without_factor(each) if isinstance(each, Nystrom) else each for each in features.members]
        features = replace(features, members=tuple(members))
    return replace(monitor, pool=monitor.pool[:0], features=features)


def with_features(monitor: Any) -> Any:
    """A monitor from a file with all of its features, computed again in the same way."""
    with Door() as door:
        members = [
            Nystrom.at(door.cast(each.kernel), each.landmarks, door, np.float64) if isinstance(each, Nystrom) else each
            for each in monitor.features.members
        ]
        features = replace(monitor.features, members=tuple(members))
        return replace(monitor, features=features, pool=transformed(features, monitor.points))


def _without_factor(features: Nystrom) -> Nystrom:
    return replace(features, whitening=np.asarray(features.whitening)[:, :0])
