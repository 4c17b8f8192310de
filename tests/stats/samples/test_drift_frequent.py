"""Labels that become frequent: certain where the label is new and has many rows, silent in long tails."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import hypergeom, poisson

import meanmap as mm
from meanmap.core.tables.table import Table
from meanmap.stats.samples.drift_frequent import SHARE_OF_FREQUENT, SHARE_OF_UNSEEN, SHARE_TOGETHER, FrequentLabels

CITIES = np.array([f"city {k}" for k in range(200)])


def rows(rng, n, other="Ulm", number=0):
    city = rng.choice(CITIES, n)
    city[:number] = other
    return {"city": city, "x": rng.normal(size=n), "w": rng.normal(size=n)}


@pytest.mark.parametrize(("size", "number"), [(200, 10), (100, 6)])
def test_a_new_label_among_200_raises_an_alarm_that_names_it(size, number, tmp_path):
    """No alarm in 20 of 20 such batches: the 500 rows that chose the features lacked a twelfth of the labels."""
    rng = np.random.default_rng(size + number)
    before = mm.DriftMonitor.of(rows(rng, 5000), n_permutations=99, rng=0)
    monitor = before.step(rows(rng, size, number=number))
    assert monitor.alarms == (1,)
    assert f"'Ulm' of column 'city' is in {number} of {size} rows, and in none of the 5000 before." in monitor.notes
    first = monitor.to_dict()["compared"][0]["columns"][0]
    assert first["what"] == "city = Ulm"
    assert first["reference"] == 0
    assert first["batches"] == number / size
    chance = hypergeom.sf(number - 1, 5000 + size, number, size)
    assert first["pvalue"] == pytest.approx(201 * chance)
    monitor = monitor.step(rows(rng, size, number=number))
    assert monitor.alarms == (1,)  # the drift goes on, and is not reported again
    assert "lasts: 'Ulm' of column 'city' is more frequent than in the reference" in str(monitor)
    mm.save(monitor, tmp_path / "monitor")
    assert str(mm.load(tmp_path / "monitor")) == str(monitor)
    for _ in range(5):
        monitor = monitor.step(rows(rng, size))
    assert monitor.lasting is None
    assert monitor.step(rows(rng, size, number=number)).alarms == (1, 8)


def test_a_rare_label_that_becomes_frequent_raises_an_alarm():
    rng = np.random.default_rng(3)
    monitor = mm.DriftMonitor.of(rows(rng, 10_000, number=5), n_permutations=99, rng=0)
    monitor = monitor.step(rows(rng, 200, number=10))
    assert monitor.alarms == (1,)
    assert any(
        "'Ulm' of column 'city' is in 10 of 200 rows, and in 0.1% of the reference." in note for note in monitor.notes
    )


def words(exponent: float) -> Callable[..., np.ndarray]:
    return lambda rng, n: rng.zipf(exponent, n).astype(str)


@pytest.mark.parametrize(
    "draw",
    [words(1.3), words(2.5), lambda rng, n: rng.integers(0, 200, n).astype(str)],
    ids=["long tail", "short tail", "200 labels"],
)
def test_frequent_labels_raise_few_false_alarms(draw):
    """Words of Zipf's distributions, some new in each batch, at a run length so short that alarms would be seen."""
    rng, alarms, batches, run_length = np.random.default_rng(64), 0, 0, 0.1
    for _ in range(30):
        for n, m in ((300, 20), (300, 300)):
            state = FrequentLabels.of(Table({"word": draw(rng, n)}), run_length)
            for _ in range(20):
                state, notes = state.step(Table({"word": draw(rng, m)}))
                alarms += len(notes)
                batches += 1
    assert alarms <= poisson.ppf(
        1 - 1e-4, batches * (SHARE_OF_FREQUENT + SHARE_TOGETHER + SHARE_OF_UNSEEN) / run_length
    )


def test_labels_of_single_rows_raise_no_alarm():
    ids = np.arange(10_000).astype(str)
    state = FrequentLabels.of(Table({"id": ids[:300]}), 20.0)
    for k in range(300, 9900, 300):
        state, notes = state.step(Table({"id": ids[k : k + 300]}))
        assert not notes
