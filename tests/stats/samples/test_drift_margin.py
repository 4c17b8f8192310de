"""Drift monitors with a margin see one column that moves further, beside all columns together."""

import numpy as np
import scipy.stats

import meanmap as mm
from meanmap.stats.samples.moved import Centres


def heavy(rng, n, shift=0.0):
    """A temperature beside costs that are mostly zero, with a tail so heavy that standard deviations are uncertain."""
    cost = np.where(rng.random(n) < 0.7, 0.0, np.exp(rng.normal(5, 1.5, n)))
    return {"temperature": rng.normal(20 + 4 * shift, 4.0, n), "cost": cost, "sales": np.exp(rng.normal(3, 1.2, n))}


def test_one_column_that_moves_further_than_the_margin_raises_an_alarm():
    """Together all columns are closer than after a shift of all: one standard deviation of a tail is vast."""
    for seed in (0, 1):
        rng = np.random.default_rng([30, seed])
        reference = heavy(rng, 1000)
        monitor = mm.DriftMonitor.of(reference, margin=0.2, rng=0)
        moved = monitor.step(heavy(rng, 200, 1.0)).step(heavy(rng, 200, 1.0))
        assert moved.alarm
        assert monitor.margin.judged(monitor.margin.mean, 200, heavy(rng, 200, 1.0), ())[0] < 1e-6
        assert "means differ by more than 0.2 standard deviations: temperature by " in moved.notes[-1]
        within = monitor
        for _ in range(10):
            within = within.step(heavy(rng, 200, 0.1))
        assert within.alarms == ()


def test_heavy_tails_raise_no_false_alarms_of_single_columns():
    """Batches at the margin in one column; p-values are at most uniform, also far down, given each reference."""
    pvalues = []
    for seed in range(40):
        rng = np.random.default_rng([31, seed])
        centres = Centres.of(heavy(rng, 500), "reference")
        batches = [heavy(rng, 25, 0.2) for _ in range(100)]
        pvalues += [3 * min(each.pvalue for each in centres.moved(b, "batch", 0.2, 3.4)) for b in batches]
    for level in (0.1, 0.01, 0.001):
        hits = int(np.sum(np.array(pvalues) <= level))
        assert scipy.stats.binomtest(hits, len(pvalues), level, alternative="greater").pvalue > 1e-5


def test_a_state_says_that_single_columns_are_not_compared():
    rng = np.random.default_rng(32)
    monitor = mm.DriftMonitor.of(heavy(rng, 400), margin=0.2, rng=0)
    assert "one column may have moved by more than the margin" in monitor.step(monitor.state(heavy(rng, 50))).notes[-1]
