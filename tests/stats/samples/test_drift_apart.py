"""Monitors compare the other columns where a batch has hardly a value in one, and say so."""

import numpy as np
import pandas
import polars
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.stats.samples.drift_apart import MOST_POOLS, set_apart

SETTINGS = {"missing": "drop", "n_permutations": 99, "rng": 0}


def parts(rng, n, unit=1.0):
    return pandas.DataFrame(
        {
            "length": unit * rng.normal(2, 0.1, n),
            "humidity": rng.normal(50, 5, n),
            "site": rng.choice(["north", "south"], n),
            "grade": rng.integers(1, 4, n),
            "passed": rng.random(n) < 0.8,
        }
    )


def without(frame, column, value=None):
    return frame.assign(**{column: np.full(len(frame), value)})


@pytest.mark.parametrize("column", ["humidity", "site", "grade", "passed"])
@pytest.mark.parametrize("form", [pandas.DataFrame, lambda frame: frame.to_dict("list")])
def test_a_column_without_values_hides_no_drift_of_another(form, column):
    """Its rows were all incomplete, so nothing was compared, at every batch."""
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(form(parts(rng, 400)), kinds={"grade": "label"}, **SETTINGS)
    for _ in range(3):
        monitor = monitor.step(form(without(parts(rng, 60), column)))
    assert monitor.alarms == (1,)
    assert (monitor.pvalues > 1e-4).all()
    monitor = monitor.step(form(without(parts(rng, 60, unit=1000.0), column)))
    assert monitor.alarms == (1, 4)
    assert monitor.pvalues[-1] < 1e-12
    assert f"so many values are missing in '{column}' (100%) that rows are compared without this column." in (
        monitor.notes
    )
    assert "mean length" in str(monitor)
    compared = monitor.to_dict()["compared"][-1]["columns"]
    assert {row["what"] for row in compared if row["column"] == column} == {f"missing {column}"}


def test_marks_arrays_and_frames_of_polars():
    rng = np.random.default_rng(1)
    marked = mm.DriftMonitor.of(parts(rng, 200), **SETTINGS | {"missing": ["?"]})
    marked = marked.step(without(parts(rng, 40, unit=1000.0), "site", "?"))
    assert marked.pvalues[-1] < 1e-12
    array = mm.DriftMonitor.of(rng.normal(size=(200, 3)), **SETTINGS)
    array = array.step(rng.normal(size=(40, 3)) + np.array([np.nan, 0.0, 5.0]))
    assert array.apart == ("column 0",)
    assert array.pvalues[-1] < 1e-12
    frame = mm.DriftMonitor.of(polars.DataFrame(parts(rng, 200).to_dict("list")), **SETTINGS)
    lost = polars.DataFrame(parts(rng, 40, unit=1000.0).to_dict("list")).with_columns(humidity=polars.lit(None))
    assert frame.step(lost).pvalues[-1] < 1e-12


def test_an_outage_raises_one_alarm_and_another_after_the_column_was_back():
    rng = np.random.default_rng(2)
    monitor = mm.DriftMonitor.of(parts(rng, 400), **SETTINGS)
    for lost in (False, True, True, True, False, False, True, True):
        frame = parts(rng, 60)
        monitor = monitor.step(without(frame, "humidity") if lost else frame)
    assert monitor.alarms == (2, 7)
    two = without(without(parts(rng, 60, unit=1000.0), "humidity"), "site")
    monitor = monitor.step(two)
    assert monitor.apart == ("humidity", "site")
    assert monitor.pvalues[-1] < 1e-12
    assert "'site' is missing" in monitor.notes[-1]
    assert "'humidity' is missing" not in monitor.notes[-1]


@pytest.mark.parametrize("often", ["at random", "for a while"])
def test_without_drift_pvalues_are_uniform_and_alarms_as_rare_as_promised(often):
    """60 streams of 40 batches, half of which lack a column on average: p-values of either kind of batch are as often
    small as uniform ones, and alarms of values as rare as the limit stands for, within four standard errors.
    """
    alarms, pvalues = [], ([], [])
    for seed in range(60):
        rng = np.random.default_rng([seed, len(often)])

        def draw(n, lost, rng=rng):
            a = rng.normal(size=n)
            b = a + rng.normal(size=n)
            return {"a": a, "b": np.full(n, np.nan) if lost else b, "c": rng.choice(["x", "y", "z"], n)}

        settings = SETTINGS | {"n_permutations": 39, "run_length": 10, "rng": seed}
        monitor = mm.DriftMonitor.of(draw(60, False), **settings)
        lost = rng.random(40) < 0.5 if often == "at random" else np.arange(40) // 10 % 2 == 1
        for each in lost:
            monitor = monitor.step(draw(15, bool(each)))
            pvalues[int(each)].append(monitor.pvalues[-1])
        judged = zip(monitor.evidence, monitor.pvalues, strict=True)
        alarms.append(sum(monitor.exceeded(*each) for each in judged))
    for found in pvalues:
        for level in (0.05, 0.5):
            law = binom(len(found), level)
            assert law.ppf(1e-5) <= np.count_nonzero(np.array(found) <= level) <= law.ppf(1 - 1e-5)
    assert np.mean(alarms) <= 40 / 20 + 4 * np.std(alarms) / np.sqrt(60)
    assert np.mean(alarms) > 0


def test_gaps_as_frequent_as_in_the_reference_set_nothing_apart():
    usual = {"a": np.zeros(100, bool), "b": np.arange(100) < 80}
    assert set_apart({"a": np.arange(20) < 1, "b": np.arange(20) < 17}, usual) == ()
    assert set_apart({"a": np.ones(20, bool), "b": np.arange(20) < 16}, usual) == ("a",)
    assert set_apart({"a": np.ones(20, bool), "b": np.ones(20, bool)}, usual) == ("a",)  # one column stays
    assert set_apart({"a": np.arange(20) < 9, "b": np.arange(20) < 9}, dict.fromkeys("ab", np.zeros(9, bool))) == ()


def test_saved_monitors_go_on_alike_and_few_pools_are_kept(tmp_path):
    rng = np.random.default_rng(3)
    monitor = mm.DriftMonitor.of(parts(rng, 200), **SETTINGS)
    monitor = monitor.step(without(parts(rng, 40), "humidity"))
    resumed = mm.load(mm.save(monitor, tmp_path / "monitor"))
    for column in ("humidity", "site", None):
        frame = parts(rng, 40)
        batch = frame if column is None else without(frame, column)
        monitor, resumed = monitor.step(batch), resumed.step(batch)
        np.testing.assert_array_equal(resumed.pvalues, monitor.pvalues)
        np.testing.assert_array_equal(resumed.evidence, monitor.evidence)
    wide = mm.DriftMonitor.of(rng.normal(size=(80, MOST_POOLS + 4)), **SETTINGS | {"n_permutations": 19})
    for column in range(MOST_POOLS + 3):
        batch = rng.normal(size=(20, MOST_POOLS + 4))
        batch[:, column] = np.nan
        wide = wide.step(batch)
    assert len(wide.unused) == MOST_POOLS + 1
    assert wide.unused[0].apart == ()
    assert wide.step(rng.normal(size=(20, MOST_POOLS + 4))).apart == ()


def test_p_values_without_a_column_do_not_depend_on_an_offset():
    """The pool for batches that lack a column was computed in single precision."""
    found = []
    for start in (0.0, 1.7e9):
        rng = np.random.default_rng(3)

        def rows(n, lost=False, rng=rng, start=start):
            fee = np.full(n, np.nan) if lost else rng.normal(5, 2, n)
            return {"temp": rng.normal(20, 3, n), "serial": start + rng.poisson(20, n), "fee": fee}

        monitor = mm.DriftMonitor.of(rows(400), missing="drop", rng=1)
        for batch in range(6):
            monitor = monitor.step(rows(60, lost=batch in (2, 3, 4)))
        found.append(np.asarray(monitor.pvalues))
    np.testing.assert_allclose(*found, rtol=1e-6)
