"""Labels of columns with many values that are replaced: each is rare, but nearly every row has a new one."""

import numpy as np
import pytest
from scipy.stats import hypergeom, poisson

import meanmap as mm
from meanmap.core.tables.table import Table
from meanmap.stats.samples.drift_frequent import SHARE_OF_UNSEEN, FrequentLabels
from meanmap.stats.samples.drift_tally import after_part, in_batch, in_reference
from meanmap.stats.samples.drift_unseen import newer


def text(found):
    return np.asarray(found).astype(str)


def skus(rng, n, number, share=0.0):
    """One of so many labels, replaced by new ones in a share of the rows."""
    replaced = rng.random(n) < share
    return np.array([f"{'v' if new else 'u'}{k}" for k, new in zip(rng.integers(0, number, n), replaced, strict=True)])


@pytest.mark.parametrize(
    ("number", "n", "m", "share", "late"),
    [(1000, 600, 60, 1.0, 0), (400, 500, 100, 0.5, 0), (500, 1000, 60, 0.5, 0), (1000, 600, 60, 0.5, 4)],
)
def test_replaced_labels_are_found_and_dated(number, n, m, share, late):
    """Of 1000 labels among 600 rows all were replaced without an alarm in 11 batches."""
    for seed in range(4):
        rng = np.random.default_rng([seed, 71])
        state, quiet = FrequentLabels.of(Table({"sku": skus(rng, n, number)}), 1000.0), True
        for t in range(1, 16):
            state, notes = state.step(Table({"sku": skus(rng, m, number, share * (t > 3))}))
            if notes and quiet:
                quiet = False
                assert 4 <= t <= 4 + late
                assert t - state.since + 1 >= 4
                assert notes[0].startswith("a label of column 'sku' that no other row has is in ")
        assert not quiet


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: text(rng.integers(0, 1000, n)),
        lambda rng, n: text(rng.integers(0, 100, n)),
        lambda rng, n: text(rng.zipf(1.3, n)),
        lambda rng, n: text(rng.zipf(2.0, n)),
        lambda rng, n: text(rng.geometric(0.02, n)),
        lambda rng, n: text(rng.integers(0, 10**12, n)),
        lambda rng, n: np.where(rng.random(n) < 0.9, text(rng.integers(0, 5, n)), text(rng.integers(0, 10**9, n))),
    ],
    ids=["1000 labels", "100 labels", "long tail", "short tail", "geometric", "ids", "some ids"],
)
def test_new_labels_raise_few_false_alarms(draw):
    rng, alarms, batches, run_length = np.random.default_rng(72), 0, 0, 0.1
    for _ in range(4):
        for n, m in ((300, 20), (600, 200), (500, 1200)):
            state = FrequentLabels.of(Table({"it": draw(rng, n)}), run_length)
            for _ in range(20):
                state, notes = state.step(Table({"it": draw(rng, m)}))
                alarms += sum("no other row" in note for note in notes)
                batches += 1
    assert alarms <= poisson.ppf(1 - 1e-4, batches * SHARE_OF_UNSEEN / run_length)


def test_the_probability_is_that_of_counted_rows():
    rng = np.random.default_rng(73)
    drawn = [skus(rng, n, 300) for n in (200, 40, 40, 40)]
    parts = (in_reference(Table({"it": drawn[0]})),)
    for each in drawn[1:]:
        parts = after_part(parts, in_batch(Table({"it": each}), parts[0], ()))
    found = newer(parts, {"it": parts[0].counts["it"]}, {"it": parts[-1].counts["it"]})["it"]
    every = np.concatenate(drawn)
    alone = np.array([np.count_nonzero(every == label) == 1 for label in every])
    chances = [hypergeom.sf(alone[-40 * j :].sum() - 1, 320, alone.sum(), 40 * j) * j * (j + 1) for j in (1, 2, 3)]
    assert found.pvalue == pytest.approx(min(1.0, *chances))
    assert found.batches == 1 + int(np.argmin(chances))
    assert found.here == (alone[-40 * found.batches :].sum(), 40 * found.batches)
    assert found.before == (alone.sum() - found.here[0], 320 - found.here[1])


def test_a_monitor_names_the_column_until_known_labels_come_back(tmp_path):
    rng = np.random.default_rng(74)

    def rows(n, share=0.0):
        return {"sku": skus(rng, n, 500, share), "x": rng.normal(size=n)}

    monitor = mm.DriftMonitor.of(rows(1000), n_permutations=99, rng=0)
    for t in range(1, 6):
        monitor = monitor.step(rows(60, 0.5 * (t > 3)))
    assert monitor.alarms[0] == 4
    assert monitor.lasting.since == 4
    first = monitor.to_dict()["compared"][0]["columns"][0]
    assert first["what"] == "labels of sku in no other row"
    assert first["reference"] < 0.3 < 0.5 < first["batches"]
    assert first["pvalue"] <= 1e-5
    assert "lasts: a label of column 'sku' that no other row has is more frequent than in the reference" in str(monitor)
    mm.save(monitor, tmp_path / "monitor")
    batch = rows(60, 0.5)
    assert str(mm.load(tmp_path / "monitor").step(batch)) == str(monitor.step(batch))
    for _ in range(6):
        monitor = monitor.step(rows(60))
    assert monitor.lasting is None
