"""Counts in a batch: valid without drift, and decisive at once where it is large."""

import numpy as np
import pytest
from scipy.stats import binom, poisson

import meanmap as mm
from meanmap.core.tables.schema import Schema
from meanmap.core.tables.table import Table
from meanmap.stats.samples.drift_counts import SHARE_OF_COUNTS, counts_pvalue
from meanmap.stats.samples.drift_far import SHARE_OF_FAR, FarCells
from meanmap.stats.samples.drift_lost import LostLabels

ROWS, BATCH = 400, 40


@pytest.mark.parametrize("kind", ["numbers", "ties", "rare", "labels"])
def test_a_pvalue_is_small_no_more_often_than_it_says(kind):
    rng = np.random.default_rng(3)
    draw = {
        "numbers": lambda n: rng.standard_t(2, size=(n, 3)),
        "ties": lambda n: rng.poisson(1.0, size=(n, 2)).astype(float),
        "rare": lambda n: (rng.random((n, 3)) < [0.01, 0.1, 0.97]).astype(float),
        "labels": lambda n: rng.integers(0, 4, (n, 1, 2)).astype(np.int32),
    }[kind]
    found = np.array([counts_pvalue(draw(ROWS), draw(BATCH)) for _ in range(1000)])
    for level in (0.2, 0.05, 0.01):
        assert np.count_nonzero(found <= level) <= binom.ppf(0.9999, len(found), level)


def test_it_equals_the_chance_by_hand():
    """Two rows of a batch of two are the largest of six: one split of fifteen, and three counts with half the level."""
    pool, batch = np.arange(4.0)[:, None], np.array([[8.0], [9.0]])
    assert counts_pvalue(pool, batch) == pytest.approx(2 * 3 / 15)


def test_a_few_readings_outside_the_range_of_many_rows_raise_an_alarm():
    """The 16 smallest of all rows lay in a batch of a fortieth of them: p was .02."""
    rng = np.random.default_rng(4)
    reference = {"flow": rng.normal(120.0, 10.0, 8000), "bar": rng.normal(5.0, 0.1, 8000)}
    batch = {"flow": rng.normal(120.0, 10.0, 400), "bar": rng.normal(5.0, 0.1, 400)}
    monitor = mm.DriftMonitor.of(reference, rng=0)
    assert not monitor.step(batch).alarm
    for low, share in ((55.0, 0.03), (55.0, 0.015), (-999.0, 0.015), (999.0, 0.015)):
        few = np.arange(400) < share * 400
        after = monitor.step(batch | {"flow": np.where(few, rng.normal(low, 3.0, 400), batch["flow"])})
        assert after.alarm
        assert after.pvalues[-1] < 5e-4
    pool, batch = rng.normal(size=(15_000, 5)), rng.normal(size=(500, 5))
    batch[:16, 2] -= 20
    assert counts_pvalue(pool, batch) < 1e-18


def test_one_batch_far_off_raises_an_alarm_whatever_the_unit():
    rng = np.random.default_rng(0)
    reference = {"degrees": rng.normal(20.0, 1.0, 600), "site": rng.choice(["a", "b"], 600)}
    batch = {"degrees": rng.normal(68.0, 1.8, 50), "site": rng.choice(["a", "b"], 50)}
    first = mm.DriftMonitor.of(reference, rng=0).step(batch)
    assert first.alarms == (1,)
    assert first.pvalues[0] < 1e-20
    new = {"degrees": rng.normal(20.0, 1.0, 100), "site": np.where(np.arange(100) < 30, "c", "a")}
    assert mm.DriftMonitor.of(reference, rng=0).step(new).alarms == (1,)


def test_other_pvalues_grow_by_a_fiftieth():
    rng = np.random.default_rng(1)
    reference, batch = rng.normal(size=(400, 2)), rng.normal(size=(30, 2))
    pvalue = mm.DriftMonitor.of(reference, rng=0, n_permutations=99).step(batch).pvalues[0]
    assert (1 - SHARE_OF_COUNTS) * pvalue < 1
    assert pvalue > 0.001


def test_a_sensor_that_is_stuck_raises_an_alarm():
    rng = np.random.default_rng(0)
    reference = {"amperes": rng.normal(14.0, 1.0, 900), "rate": rng.poisson(3.0, 900).astype(float)}
    stuck = {"amperes": np.full(100, 14.0), "rate": rng.poisson(3.0, 100).astype(float)}
    assert mm.DriftMonitor.of(reference, rng=0).step(stuck).alarms == (1,)
    constant = {"a": np.ones(100), "b": rng.normal(size=100)}
    assert mm.DriftMonitor.of(constant, rng=0).step({"a": np.ones(30), "b": rng.normal(size=30)}).alarms == ()


@pytest.mark.parametrize("written", [np.asarray, lambda rare: np.where(rare, "yes", "no"), lambda rare: 1.0 * ~rare])
def test_rare_events_that_become_frequent_raise_an_alarm_however_they_are_written(written):
    """As numbers among other columns they did not: all rows are among the largest values of such a column."""
    rng = np.random.default_rng(2)

    def rows(n, share):
        others = {f"x{j}": rng.normal(size=n) for j in range(3)}
        return {"alarm": written(rng.random(n) < share), **others}

    monitor = mm.DriftMonitor.of(rows(3000, 0.002), rng=0)
    assert monitor.step(rows(300, 0.002)).alarms == ()
    assert monitor.step(rows(300, 0.08)).alarms == (1,)


def test_a_label_that_no_longer_occurs_raises_an_alarm():
    # 2% of the rows; absent from 25 batches of 500, with a probability of 1e-110, it raised none.
    rng = np.random.default_rng(61)

    def rows(n, share):
        parts = [0.6, 0.4 - share, share]
        return {"x": rng.normal(size=n), "paid": rng.choice(["card", "cash", "voucher"], n, p=parts)}

    for seed in range(3):
        monitor = mm.DriftMonitor.of(rows(2000, 0.02), n_permutations=99, rng=seed)
        for _ in range(6):
            monitor = monitor.step(rows(400, 0.0))
        assert monitor.alarms
        assert monitor.alarms[0] <= 4
        assert "lasts: 'voucher' of column 'paid' has not come back" in str(monitor)
    monitor = mm.DriftMonitor.of(rows(2000, 0.02), n_permutations=99, rng=0)
    said = []
    for _ in range(4):
        monitor = monitor.step(rows(400, 0.0))
        said += monitor.notes
    assert any(note.startswith("'voucher' of column 'paid' is in none of the latest") for note in said)


def test_lost_labels_raise_few_false_alarms():
    # A fiftieth of one in 5 batches: of 4000 batches at most 16 on average, and at most 32 with probability 1 - 1e-4.
    rng = np.random.default_rng(62)
    table = lambda n: Table({"a": rng.choice(list("uvwxyz"), n, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02])})  # noqa: E731
    alarms = 0
    for _ in range(40):
        state = LostLabels.of(table(300), 5.0)
        for _ in range(100):
            state, notes = state.step(table(20))
            alarms += len(notes)
    assert alarms <= poisson.ppf(1 - 1e-4, 16)


def test_far_cells_of_cauchy_numbers_raise_as_few_alarms_as_promised():
    """Numbers of Cauchy's distribution, at a run length so short that alarms would be seen."""
    rng, alarms, batches, run_length = np.random.default_rng(19), 0, 0, 0.02
    for _ in range(60):
        reference = Table.of({"x": rng.standard_cauchy(40)})
        state = FarCells.of(reference, Schema.of({"x": np.asarray(reference.columns["x"])}), run_length)
        for _ in range(40):
            state, notes = state.step(Table.of({"x": rng.standard_cauchy(30)}))
            alarms += len(notes)
            batches += 1
    assert alarms <= binom.ppf(1 - 1e-4, batches, SHARE_OF_FAR / run_length)


def test_a_change_spread_over_many_labels_needs_long_batches_or_their_groups():
    codes = np.arange(10_000, 10_060).astype(str)
    found = {}
    for size, with_groups in ((300, False), (100, True)):
        rng = np.random.default_rng([9100, size])

        def rows(n, share=0.5, rng=rng, with_groups=with_groups):
            among = np.r_[np.full(30, share / 30), np.full(30, (1 - share) / 30)]
            table = {"zip": rng.choice(codes, n, p=among), "v": rng.normal(size=n)}
            return table | ({"region": np.where(table["zip"] < codes[30], "n", "s")} if with_groups else {})

        monitor = mm.DriftMonitor.of(rows(2000), rng=0)
        for _ in range(3):
            monitor = monitor.step(rows(size))
        assert monitor.alarms == ()
        for _ in range(12):
            monitor = monitor if monitor.alarms else monitor.step(rows(size, 0.8))
        found[size] = monitor.alarms[0] - 3
    assert found[300] <= 12
    assert found[100] <= 3
