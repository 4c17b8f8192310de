"""Labels and repeated numbers that become a little more frequent and stay so add up over batches."""

import numpy as np
import pytest
from scipy.stats import hypergeom, poisson

import meanmap as mm
from meanmap.core.tables.table import Table
from meanmap.stats.samples.drift_frequent import SHARE_OF_FREQUENT, SHARE_OF_UNSEEN, SHARE_TOGETHER, FrequentLabels
from meanmap.stats.samples.drift_tally import BATCHES, after_part, in_batch, in_reference, risen


def labels(rng, n, number, share=0.0, new="NEW"):
    weights = 1 / np.sqrt(np.arange(1, number + 1))
    found = rng.choice([f"c{k}" for k in range(number)], n, p=weights / weights.sum())
    return np.where(rng.random(n) < share, new, found)


def payments(rng, n, zeros=0.5):
    return np.where(rng.random(n) < zeros, 0.0, np.round(np.exp(rng.normal(3, 1, n)), 2))


def readings(rng, n, share=0.0):
    return np.where(rng.random(n) < share, 54.321, rng.normal(50, 10, n))


def first_alarm(draw, before, after, seed):
    """The batch of the first alarm of a table of four columns, if the fourth batch is the first that differs, with the
    state; 0 without an alarm in 15 batches.
    """
    rng = np.random.default_rng([seed, 41])

    def rows(n, drifts):
        others = {f"x{k}": rng.normal(size=n) for k in range(3)}
        return Table({**others, "it": draw(rng, n, after if drifts else before)})

    state = FrequentLabels.of(rows(1000, False), 1000.0)
    for t in range(1, 16):
        state, notes = state.step(rows(200, t > 3))
        if notes:
            return t, state, notes
    return 0, state, ()


@pytest.mark.parametrize("number", [3, 20, 50, 200])
def test_a_new_label_in_two_percent_of_the_rows_adds_up(number):
    """Among 20 to 200 labels it was found in 6 of 12 streams, and never else in 15 batches."""
    for seed in range(4):
        t, state, (note,) = first_alarm(lambda rng, n, share: labels(rng, n, number, share), 0.0, 0.02, seed)
        assert 4 <= t <= 12
        assert t - state.since + 1 >= 4  # no batch without it
        assert note.startswith("'NEW' of column 'it' is in ")
        assert note.endswith((" before.",))


@pytest.mark.parametrize(
    ("draw", "before", "after", "value"), [(payments, 0.5, 0.65, "0"), (readings, 0.0, 0.04, "54.321")]
)
def test_a_repeated_number_adds_up(draw, before, after, value):
    for seed in range(4):
        t, state, (note,) = first_alarm(draw, before, after, seed)
        assert 4 <= t <= 12
        assert t - state.since + 1 >= 3
        assert note.startswith(f"the value {value} of column 'it' is in ")
        assert state.gone_on == [f"the value {value} of column 'it' is more frequent than in the reference"]


def test_counts_of_windows_are_those_of_all_rows():
    """Against counts of the rows themselves; of numbers that the reference does not list they are bounds."""
    rng = np.random.default_rng(5)
    drawn = [{"label": labels(rng, n, 30, 0.05), "number": readings(rng, n, 0.05)} for n in (400, *[100] * 12)]
    parts = (in_reference(Table(drawn[0])),)
    for each in drawn[1:]:
        parts = after_part(parts, in_batch(Table(each), parts[0], ()))
    for (name, value), found in risen(parts).items():
        window, before = drawn[-found.batches :], drawn[: -found.batches]
        counts = [sum(np.count_nonzero(each[name].astype(str) == value) for each in some) for some in (window, before)]
        assert found.here[1] == 100 * found.batches
        assert found.before[1] == 400 + 100 * (12 - found.batches)
        (least, _), (most, _) = found.here, found.before
        assert (counts == [least, most]) if name == "label" else (counts[0] >= least and counts[1] <= most)
        exact = hypergeom.sf(counts[0] - 1, 1600, sum(counts), found.here[1])
        assert found.pvalue >= exact


def test_the_state_stays_small_and_forgets():
    rng = np.random.default_rng(6)
    parts = (in_reference(Table({"id": rng.integers(0, 10**9, 300).astype(str)})),)
    for _ in range(150):
        parts = after_part(parts, in_batch(Table({"id": rng.integers(0, 10**9, 20).astype(str)}), parts[0], ()))
        assert len(parts) <= 32
        assert sum(part.batches for part in parts) <= BATCHES
    assert sum(len(part.counts["id"]) for part in parts[1:]) <= 20 * BATCHES


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.zipf(1.5, n).astype(str),
        lambda rng, n: labels(rng, n, 4),
        lambda rng, n: rng.integers(0, 10**9, n).astype(str),
        lambda rng, n: np.ones(n),
        lambda rng, n: rng.poisson(2.0, n).astype(float),
        lambda rng, n: np.round(rng.normal(50, 10, n), 1),
        payments,
    ],
    ids=["long tail", "few labels", "ids", "constant", "counts", "rounded", "payments"],
)
def test_values_add_up_to_few_false_alarms(draw):
    rng, alarms, batches, run_length = np.random.default_rng(65), 0, 0, 0.5
    for _ in range(8):
        for n, m in ((300, 20), (600, 200)):
            state = FrequentLabels.of(Table({"it": draw(rng, n)}), run_length)
            for _ in range(25):
                state, notes = state.step(Table({"it": draw(rng, m)}))
                alarms += len(notes)
                batches += 1
    assert alarms <= poisson.ppf(
        1 - 1e-4, batches * (SHARE_OF_FREQUENT + SHARE_TOGETHER + SHARE_OF_UNSEEN) / run_length
    )


def test_a_monitor_says_which_label_has_risen_and_since_when(tmp_path):
    rng = np.random.default_rng(50)

    def rows(n, share=0.0):
        return {"x": rng.normal(size=n), "lab": labels(rng, n, 50, share)}

    monitor, held = mm.DriftMonitor.of(rows(1000), n_permutations=99, rng=0), []
    for t in range(1, 13):
        batch = rows(200, 0.025 * (t > 3))
        held.append(bool((batch["lab"] == "NEW").any()))
        monitor = monitor.step(batch)
        if monitor.alarm:
            break
    assert monitor.alarms
    assert monitor.lasting.since > 3
    assert held[monitor.lasting.since - 1]
    assert monitor.to_dict()["compared"][0]["columns"][0]["what"] == "lab = NEW"
    assert "'NEW' of column 'lab' is more frequent than in the reference" in str(monitor)
    mm.save(monitor, tmp_path / "monitor")
    batch = rows(200, 0.025)
    assert str(mm.load(tmp_path / "monitor").step(batch)) == str(monitor.step(batch))
    for _ in range(6):
        monitor = monitor.step(rows(200))
    assert monitor.lasting is None
    assert len(monitor.alarms) == 1
