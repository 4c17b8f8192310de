"""An update from outside the package: what it learns for a direction is all that a field needs."""

from dataclasses import dataclass

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp
from meanmap.bp.edges.updates import Variable
from meanmap.core.errors import KindError
from meanmap.features import PivotedCholesky

RING = [(i, (i + 1) % 5) for i in range(5)]


@dataclass(frozen=True)
class Averages(bp.Update):
    """A message is the mean of p over the pairs whose receiver lies near: kernel smoothing, not a regression."""

    width: float = 0.3

    def variable(self, sample, kernel, name):
        return Variable.everywhere(sample, kernel, PivotedCholesky.fit(kernel, sample.points))

    def learn(self, sender, receiver, pairs, ridge, keeps):
        into = np.zeros((sender.size, 1 + len(pairs)))
        np.add.at(into, (pairs[:, 0], 1 + np.arange(len(pairs))), 1.0)
        return into, np.zeros(len(pairs))

    def functions(self, receiver, points, pairs):
        away = receiver.sample.points[pairs[:, 1]] - points.T
        near = np.exp(-(away**2) / (2 * self.width**2))
        return near / near.sum(axis=0)


def test_an_update_of_ones_own_serves_a_field():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    pairs = x, 0.9 * x + 0.3 * rng.normal(size=60)
    ours, theirs = (
        mm.KernelField(RING, update=update).fit(pairs).query({0: 1.2}, [1])[1] for update in (Averages(), bp.Full())
    )
    assert abs(ours.mean() - theirs.mean()) < 0.5
    assert ours.mean() > 0.3


def test_what_is_no_update_is_refused():
    with pytest.raises(KindError, match=r"expected mm\.bp\.Full\(\)"):
        mm.KernelField(RING, update="full")
