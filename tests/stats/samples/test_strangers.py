"""Labels that a reference never had count as one label, which features tell from all others."""

import numpy as np
import pandas
import pytest

import meanmap as mm
from meanmap.core.door import Door
from meanmap.core.labels import Labels
from meanmap.stats.samples.strangers import UNKNOWN, KnownLabels


def table(rng, n, labels):
    return pandas.DataFrame({"x": rng.normal(size=n), "y": rng.standard_t(3, size=n), "l": rng.choice(labels, n)})


def test_labels_that_some_rows_never_had_become_one():
    def read(labels):
        with Door() as door:
            return np.asarray(Labels().read(np.array(labels), "x", door))

    codes = read([["a", "u"], ["b", "v"], ["a", "v"]])
    known = KnownLabels.of(codes)
    later = read([["a", "v"], ["c", "u"], ["d", "a"]])
    found = known(later)
    assert (found[0] == later[0]).all()
    assert (found[[1, 2], 0] == UNKNOWN).all()
    assert (found[1, 1] == later[1, 1]).all()
    assert (found[2, 1] == UNKNOWN).all()  # "a" is known in the other column only
    numbers = np.zeros((4, 2))
    assert KnownLabels.of(numbers)(numbers) is numbers


@pytest.mark.parametrize("margin", [None, 0.1, 0.3])
def test_a_label_never_seen_is_drift(margin):
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(table(rng, 400, list("abc")), margin=margin, n_permutations=199, rng=0)
    for _ in range(3):
        monitor = monitor.step(table(rng, 25, ["zz"]))
    assert monitor.alarms
    assert monitor.notes[0] == "batch['l'] has 1 label not in the reference, such as 'zz'."


def test_labels_alone_that_were_never_seen_are_drift_in_a_saved_monitor(tmp_path):
    rng = np.random.default_rng(0)
    reference = pandas.DataFrame({"m": rng.choice(list("pq"), 400), "l": rng.choice(list("abc"), 400)})
    mm.save(mm.DriftMonitor.of(reference, n_permutations=199, rng=0), tmp_path / "monitor.meanmap")
    monitor = mm.load(tmp_path / "monitor.meanmap")
    for _ in range(3):
        monitor = monitor.step(pandas.DataFrame({"m": rng.choice(list("pq"), 25), "l": ["zz"] * 25}))
    assert monitor.alarms


def test_a_column_that_never_varied_and_changes_is_noted():
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of({"x": rng.normal(size=300), "k": np.ones(300)}, n_permutations=199, rng=0)
    same = monitor.step({"x": rng.normal(size=25), "k": np.ones(25)})
    assert same.notes == ()
    assert not monitor.schema["k"].odd(np.array([1.0, np.nan]), "k")  # what is missing is no other value
    changed = monitor.step({"x": rng.normal(size=25), "k": np.full(25, 2.0)})
    assert changed.notes == (
        "batch['k'] was always 1 before, and differs in 25 rows now, such as 2.",
        "the value 2 of column 'k' is in 25 of the latest 25 rows, and in at most 0.3% of the 300 before.",
    )
    assert changed.alarm


@pytest.mark.slow
def test_rare_labels_that_come_as_they_came_are_no_drift():
    """Half of the batches have labels that the reference never had: at most 22 alarms in 600 batches, one in 50.

    At most 12 are expected; with probability .997 no more than 22 come if their number is that of a Poisson law.
    """
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng([3, seed])

        def draw(n, rng=rng):
            return pandas.DataFrame({"x": rng.normal(size=n), "l": rng.zipf(1.6, n).astype(str)})

        monitor = mm.DriftMonitor.of(draw(300), run_length=50, n_permutations=199, rng=seed)
        for _ in range(30):
            monitor = monitor.step(draw(20))
        alarms += len(monitor.alarms)
    assert alarms <= 22
