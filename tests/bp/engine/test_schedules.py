"""A schedule from outside the package: what a run of messages gives it is enough, and models take it as their own."""

from dataclasses import dataclass

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.graphs import Flooding, Schedule
from meanmap_papers import rivals

RING = [(i, (i + 1) % 4) for i in range(4)]
TABLE = np.array([[2.0, 1.0], [0.5, 3.0]])


@dataclass(frozen=True)
class Hurried(Schedule):
    """All messages at once, never more than a few times."""

    times: int = 3
    unit = "hurried sweeps"

    def run(self, passing):
        messages, changes = passing.silence(), []
        for _ in range(self.times):
            messages, change = passing.sweep(messages)
            changes.append(change)
        return passing.sent(messages, self.times, changes)


def test_a_schedule_of_ones_own_is_run_by_every_model_of_the_engine():
    network = mm.bp.DiscreteGraph(RING, TABLE)
    ours, theirs = (network.query({0: 1}, schedule=s, damping=0.2) for s in (Hurried(4), Flooding(4)))
    for name in range(4):
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert "hurried sweeps" in ours.report.status
    assert not ours.report.converged
    assert network.query({0: 1}, schedule=Hurried(60)).report.converged
    x = np.random.default_rng(0).normal(size=(2, 60))
    field = rivals.DiscretizedField(RING, bins=4, schedule=Hurried(5)).fit((x[0], x[0] + 0.3 * x[1]))
    assert field.query({0: 0.5}).report.steps == 5


def test_what_is_no_schedule_is_refused():
    with pytest.raises(KindError, match=r"expected one of mm\.graphs\.TwoPass\(\)"):
        mm.bp.DiscreteGraph(RING, TABLE).query(schedule="flooding")
