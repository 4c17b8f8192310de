"""What is said of later alarms: alike only if the same quantity moved in the same direction by about as much."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.stats.samples.drift_words import alike_once, changed_since


def rows(rng, n):
    a = rng.normal(20, 4, n)
    return pd.DataFrame({"a": a, "site": rng.choice(["N", "S", "O"], n, p=[0.5, 0.3, 0.2]), "c": rng.normal(size=n)})


def after(change, batches, seed, size=60):
    rng = np.random.default_rng([seed, 81])
    monitor = mm.DriftMonitor.of(rows(rng, 500), n_permutations=199, missing="drop", rng=seed)
    for t in range(1, batches + 1):
        monitor = monitor.step(change(rows(rng, size), t, rng))
    return monitor


def shifted(first, second):
    """Batches 3 and on with one shift, batches 6 and on with another."""
    return lambda table, t, rng: table.assign(a=table["a"] + (0 if t < 3 else first if t < 6 else second))


def stuck(table, t, rng):
    return shifted(5, 5)(table, t, rng) if t < 6 else table.assign(a=25.0)


def wider(table, t, rng):
    return shifted(5, 5)(table, t, rng) if t < 6 else table.assign(a=20 + 2.5 * (table["a"] - 20))


def lacking(table, t, rng):
    moved = shifted(5, 5)(table, t, rng)
    return moved if t < 6 else moved.assign(a=moved["a"].where(rng.random(len(moved)) < 0.3))


@pytest.mark.parametrize("change", [shifted(5, -5), shifted(2.5, 25), stuck, wider, lacking])
@pytest.mark.parametrize("seed", [0, 1])
def test_another_change_of_the_same_column_is_another_drift(change, seed):
    """All were said to look much the same as the first, or to be a known drift."""
    monitor = after(change, 7, seed)
    first = next(t for t in monitor.alarms if t >= 6)
    assert first not in monitor.repeats
    spans = [span for span, *_ in alike_once(_compared(monitor))]
    assert any(int(span.split()[-1]) >= 6 for span in spans)


def test_what_lasts_is_dated_to_its_own_beginning():
    monitor = after(shifted(5, -5), 8, 2)
    assert changed_since(monitor, 3).startswith("since batch 6 mean a")


def test_the_same_change_is_the_known_drift():
    for seed in range(2):
        monitor = after(shifted(5, 5), 9, seed)
        assert monitor.alarms[0] == 3
        assert set(monitor.alarms[1:]) == set(monitor.repeats)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_label_that_no_row_has_is_no_change(seed):
    """A label of one batch was named at the next alarms of another drift: 0% and 0%, with p = 6e-35."""

    def change(table, t, rng):
        table = shifted(6, 6)(table, t, rng)
        return table.assign(site=np.where(np.arange(len(table)) < 30, "W", table["site"])) if t == 6 else table

    monitor = after(change, 9, seed)
    assert any("site = W" in each["changed"] for each in monitor.to_dict()["each alarm"])
    for each in monitor.to_dict()["compared"]:
        for row in each["columns"]:
            if row["pvalue"] is not None and row["pvalue"] <= 0.005 and row["reference"] is not None:
                assert row["reference"] != row["batches"], row


def _compared(monitor):
    return [(drift.span(), found) for drift, found in monitor.record.compared() if found]
