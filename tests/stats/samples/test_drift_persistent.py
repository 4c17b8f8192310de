"""Small changes of one column that last are found soon, and false alarms stay as rare as promised."""

import numpy as np
import pytest
from scipy.stats import kstest

import meanmap as mm
from meanmap.stats.samples.drift_cells import ColumnCells, score_of_count
from meanmap.stats.samples.drift_persistent import SHARE_OF_PERSISTENT, Persistent

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_cauchy(n),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.03, rng.lognormal(size=n), 0.0),
    "count": lambda rng, n: rng.poisson(0.5, n).astype(float),
    "label": lambda rng, n: rng.choice(list("abcd"), n, p=[0.6, 0.3, 0.08, 0.02]),
}


def rows(rng, n, shift=0.0, share=0.1):
    columns = {name: rng.normal(size=n) for name in ("a", "b", "c")}
    label = np.where(rng.random(n) < share, "z", rng.choice(["x", "y"], n))
    return {**columns, "a": columns["a"] + shift, "heavy": rng.lognormal(sigma=1.5, size=n), "label": label}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_standard_normal_and_independent(kind):
    """For every column, also with ties, and with a small reference. It fails once in thousands of times."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 3])
        cells = ColumnCells.of(KINDS[kind](rng, 80), rng)
        for _ in range(4):
            counts = cells.count(KINDS[kind](rng, 25))
            judged = cells.judged(counts, rng)
            found.append(np.where(judged.varies, judged.scores, rng.normal(size=len(judged.scores)))[:2])
            cells = cells.joined(counts)
    for scores in np.array([each for each in found if len(each) == 2]).T:
        assert kstest(scores, "norm").pvalue > 1e-4
        assert abs(np.corrcoef(scores[1:], scores[:-1])[0, 1]) < 4 / np.sqrt(len(scores))


def test_the_score_of_a_count_keeps_its_digits_in_both_tails():
    rng = np.random.default_rng(0)
    high, low = (score_of_count(np.array([k]), np.array([60]), 60, 2000, rng)[0] for k in (60, 0))
    assert high > 20
    assert -3 < low < 0


def false_alarms(streams, reference, first=0):
    """The number of alarms of streams of 40 batches without drift, with gaps in one column."""
    run_length, alarms = 20, []
    for seed in range(first, first + streams):
        rng = np.random.default_rng([seed, reference])

        def draw(n, rng=rng):
            columns = {name: kind(rng, n) for name, kind in KINDS.items()}
            lost = rng.random(n) < 0.1
            return {**columns, "normal": columns["normal"][~lost]}, {"normal": lost}

        state, count = Persistent.of(*draw(reference), run_length, 5.0, seed), 0
        for _ in range(40):
            state = state.step(*draw(50), state.alarm, seed)
            count += state.alarm
        alarms.append(count)
    return np.array(alarms), 40 * SHARE_OF_PERSISTENT / run_length


def test_false_alarms_are_as_rare_as_promised():
    alarms, promised = false_alarms(12, 200)
    assert alarms.mean() <= promised + 4 * np.sqrt(promised / len(alarms))


@pytest.mark.slow
@pytest.mark.parametrize("reference", [500, 2000, 20_000])
def test_false_alarms_are_as_rare_as_promised_for_every_size_of_the_reference(reference):
    """400 streams: the sampling error of a small reference would raise alarms by itself."""
    alarms, promised = false_alarms(400, reference, first=1000)
    error = alarms.std() / np.sqrt(len(alarms))
    assert 0 < alarms.mean() < promised + 3 * error
    print(reference, alarms.mean(), error, promised)


def test_a_small_lasting_step_of_one_column_is_found_soon_and_named():
    # After 21 batches on average (of 12 runs of 40, 5 without an alarm) it was found, and a share of .16 in none.
    for change, name, said in (
        ({"shift": 0.3}, "mean a", "'a' is higher"),
        ({"share": 0.2}, "label = z", "the share of 'z' in 'label' is higher"),
    ):
        rng = np.random.default_rng(7)
        monitor = mm.DriftMonitor.of(rows(rng, 1000), n_permutations=199, rng=0)
        for _ in range(3):
            monitor = monitor.step(rows(rng, 100))
        for _ in range(12):
            monitor = monitor.step(rows(rng, 100, **change))
            if monitor.persistent.alarm:
                break
        else:
            raise AssertionError(change)
        assert said in monitor.notes[-1]
        assert "since batch" in monitor.notes[-1]
        first = monitor.record.drifts[-1].columns[0]
        assert first["what"] == name
        after = monitor.step(rows(rng, 100, **change))
        assert after.lasting.is_seen


def test_a_stored_state_goes_on_and_the_order_and_units_of_columns_do_not_matter(tmp_path):
    rng = np.random.default_rng(3)
    reference, batches = rows(rng, 300), [rows(rng, 40, 0.2) for _ in range(4)]

    def watch(changed, stored=False):
        monitor = Persistent.of(changed(reference), {}, 100, 5.0, 1)
        for batch in batches:
            if stored:
                mm.save(monitor, tmp_path / "state")
                monitor = mm.load(tmp_path / "state")
            monitor = monitor.step(changed(batch), {}, monitor.alarm, 1)
        return monitor.evidence, float(np.logaddexp.reduce(monitor._log_wealth(), axis=None))

    evidence, wealth = watch(dict)
    for found in (
        watch(dict, stored=True),
        watch(lambda table: dict(reversed(table.items()))),
        watch(lambda table: {**table, "a": table["a"] * 8 - 16}),
    ):
        assert np.allclose(found[0], evidence)
        assert found[1] == pytest.approx(wealth)


def test_a_gap_in_one_column_does_not_hide_the_others():
    # A new label with large amounts in rows whose age is missing had a p-value of .5: these rows were left out.
    rng = np.random.default_rng(5)

    def draw(n, new):
        age, amount = rng.normal(50, 10, n), rng.lognormal(3, 1, n)
        site, lost = rng.choice(["a", "b", "c"], n), rng.random(n) < 0.15
        odd = lost & (rng.random(n) < new)
        return {
            "age": np.where(lost, np.nan, age),
            "amount": np.where(odd, 20 * amount, amount),
            "site": np.where(odd, "new", site),
        }

    monitor = mm.DriftMonitor.of(draw(1500, 0.0), missing="drop", n_permutations=199, rng=0)
    monitor = monitor.step(draw(100, 0.0)).step(draw(100, 0.9))
    assert monitor.pvalues[0] > 0.001
    assert monitor.alarms == (2,)
    first, *_ = monitor.record.drifts[-1].columns
    assert first["what"] == "site = new"
    assert first["batches"] > 0.05
    assert first["pvalue"] < 0.001


def test_the_p_value_of_far_cells_stands_beside_the_mean_not_beside_missing_values():
    # The row of missing values has the same column, and was given the p-value of 1e-20.
    rng = np.random.default_rng(6)

    def draw(n, far):
        values = rng.normal(size=n)
        values[:far] = 1e6
        values[-2:] = np.nan
        return {"x": values, "y": rng.normal(size=n)}

    monitor = mm.DriftMonitor.of(draw(200, 0), missing="drop", n_permutations=99, rng=0)
    for _ in range(3):
        monitor = monitor.step(draw(40, 1))
    assert monitor.alarm
    lost = [each for each in monitor.record.drifts[-1].columns if each["what"] == "missing x"]
    assert all(each["pvalue"] is None or each["pvalue"] > 1e-3 for each in lost)
    assert monitor.record.drifts[-1].columns[0]["what"] == "mean x"


def test_a_small_shift_in_a_long_batch_is_found_and_its_column_named():
    """20,000 rows of a batch are drawn, and a shift of .02 standard deviations in 200,000 rows went unseen."""
    rng = np.random.default_rng(6)

    def rows(shift):
        return {"x": rng.normal(size=200_000), "y": rng.normal(size=200_000) + shift}

    monitor = mm.DriftMonitor.of(rows(0.0), rng=0).step(rows(0.0))
    assert not monitor.alarm
    monitor = monitor.step(rows(0.02))
    assert monitor.alarm
    assert any("counts of all values of 'y'" in note for note in monitor.notes)
    assert max(len(drift.rows) for drift in monitor.record.drifts) <= 20_000


@pytest.mark.parametrize("seed", range(3))
def test_a_new_label_is_dated_to_a_batch_that_has_it(seed):
    """The note said "since batch 3", and the first line "since batch 5"; batches 1 to 4 had no row of it."""
    rng = np.random.default_rng([seed, 17])

    def draw(n, share=0.0):
        label = rng.choice(["A", "B", "C"], n, p=[0.7, 0.2, 0.1])
        return {"a": rng.normal(size=n), "l": np.where(rng.random(n) < share, "NEW", label)}

    monitor = mm.DriftMonitor.of(draw(2500), n_permutations=99, rng=seed)
    for t in range(1, 6):
        monitor = monitor.step(draw(1500, 0.012 if t == 5 else 0.0))
    assert monitor.alarms == (5,)
    assert "the share of rare labels in 'l' is higher, since batch 5." in " ".join(monitor.notes)
    assert monitor.lasting.since == 5


@pytest.mark.parametrize("seed", range(3))
def test_missing_values_are_dated_to_a_batch_that_lacks_some(seed):
    rng = np.random.default_rng([seed, 18])
    monitor, lost = mm.DriftMonitor.of(rows(rng, 1000), missing="drop", n_permutations=99, rng=seed), []
    for t in range(1, 12):
        batch = rows(rng, 200)
        batch["b"] = np.where(rng.random(200) < 0.02 * (t > 3), np.nan, batch["b"])
        lost.append(bool(np.isnan(batch["b"]).any()))
        monitor = monitor.step(batch)
        if monitor.alarm:
            break
    assert monitor.alarms
    assert monitor.lasting.since == lost.index(True) + 1
    dated = [note for note in monitor.notes if ", since batch" in note]
    assert all(f", since batch {monitor.lasting.since}." in note for note in dated)
