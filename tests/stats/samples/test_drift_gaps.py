"""Monitors watch missing values: columns that lose cells raise alarms, and false alarms stay as rare as promised."""

from math import comb

import jax.numpy as jnp
import numpy as np
import pandas
import polars
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError
from meanmap.stats.samples.drift_gaps import Gaps
from meanmap.stats.samples.run_length import limit_for

SETTINGS = {"missing": "drop", "n_permutations": 99, "rng": 0}


def rows(rng, n, lost=0.02):
    frame = pandas.DataFrame({"weight": rng.normal(size=n), "site": rng.choice(["north", "south"], n)})
    return frame.assign(weight=frame["weight"].where(rng.random(n) >= lost))


def test_pvalues_are_hypergeometric():
    """By counting: 3 values of 24 are missing, 2 of them in a batch of 4; and 1 of another column, not in the batch."""
    pool, batch = np.zeros((20, 3), bool), np.zeros((4, 3), bool)
    pool[0, 0] = batch[:2, 0] = pool[7, 1] = True
    gaps = Gaps(("a", "b", "c"), pool)
    found = gaps.step(dict(zip("abc", batch.T, strict=True)), False, np.random.default_rng(0))
    upper = sum(comb(3, k) * comb(21, 4 - k) for k in (2, 3)) / comb(24, 4)
    assert found.columns == {"a": pytest.approx(2 * upper), "b": 1.0}  # two columns
    assert found.pvalues.tolist() == [found.columns["a"]]
    assert found.shares == {"a": (1 / 20, 1 / 2), "b": (1 / 20, 0.0)}
    assert found.pool.shape == (20, 3)


def test_without_drift_alarms_are_as_rare_as_promised():
    """200 streams of 60 batches, with gaps in two of three columns that go together: p-values at most as often small as
    uniform ones, and at most as many alarms, within four standard errors, as the limit stands for.
    """
    run_length, limit, alarms, small = 20, limit_for(20), [], 0
    for seed in range(200):
        rng = np.random.default_rng(seed)

        def draw(n, rng=rng):
            first = rng.random(n) < 0.1
            return np.stack([first, first & (rng.random(n) < 0.5), np.zeros(n, bool)], axis=1)

        gaps, count = Gaps(("a", "b", "c"), draw(100)), 0
        for _ in range(60):
            restarted = bool(len(gaps.evidence)) and gaps.evidence[-1] > limit
            gaps = gaps.step(dict(zip("abc", draw(25).T, strict=True)), restarted, rng)
            count += gaps.evidence[-1] > limit
        alarms.append(count)
        small += np.count_nonzero(gaps.pvalues <= 0.1)
    assert small <= binom.ppf(1 - 1e-5, 200 * 60, 0.1)
    assert np.mean(alarms) <= 60 / run_length + 4 * np.std(alarms) / np.sqrt(200)
    assert small > 0


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame, lambda frame: frame.to_dict("list")])
def test_a_column_that_loses_half_of_its_cells_raises_an_alarm(frame):
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(frame(rows(rng, 300)), **SETTINGS)
    for _ in range(4):
        monitor = monitor.step(frame(rows(rng, 50)))
    assert monitor.alarms == ()
    monitor = monitor.step(frame(rows(rng, 50, lost=0.5)))
    assert monitor.alarm
    assert monitor.gaps.evidence[-1] > monitor.limit > monitor.evidence[-1]
    assert any("the alarm is about missing values: 'weight' is missing in" in note for note in monitor.notes)
    before, here = monitor.gaps.shares["'weight'"]
    assert before < 0.1 < 0.3 < here


def test_a_batch_full_of_gaps_does_not_join_the_pool():
    """A later batch without gaps had fewer than the pool, which a note told."""
    rng = np.random.default_rng(18_200_012)
    monitor = mm.DriftMonitor.of(rows(rng, 600, lost=0), **SETTINGS).step(rows(rng, 300, lost=0.9))
    assert monitor.alarm
    assert any("% of the rows, 0% in the reference" in note for note in monitor.notes)
    monitor = monitor.step(rows(rng, 300, lost=0))
    assert monitor.gaps.shares == {}
    assert not any("fewer values are missing" in note for note in monitor.notes)


def test_columns_that_are_gone_raise_an_alarm_although_no_row_is_left():
    rng = np.random.default_rng(1)
    lost = rows(rng, 40, lost=1).assign(site=None)
    monitor = mm.DriftMonitor.of(rows(rng, 200, lost=0), **SETTINGS).step(lost)
    assert monitor.alarms == (1,)
    assert monitor.pvalues.tolist() == [1.0]
    assert "0 rows of batch have no missing value: only missing values are compared." in monitor.notes
    assert monitor.step(lost).alarms == (1,)
    array = rng.normal(size=(100, 2))
    lost = np.where(np.arange(40)[:, None] % 2 == [0, 2], np.nan, rng.normal(size=(40, 2)))
    assert (
        mm.DriftMonitor.of(array, **SETTINGS)
        .step(lost)
        .notes[-1]
        .startswith("the alarm is about missing values: column 0 is missing in 50% of the rows, 0% in the reference")
    )


def test_marks_count_as_missing_and_tables_without_gaps_bring_no_evidence():
    rng = np.random.default_rng(2)
    settings = SETTINGS | {"missing": ["?"]}
    monitor = mm.DriftMonitor.of(rows(rng, 200, lost=0), **settings)
    assert monitor.limit == limit_for(8000)
    assert monitor.step(rows(rng, 40, lost=0).assign(site="?")).alarm
    quiet = monitor.step(rows(rng, 40, lost=0))
    assert quiet.gaps.pvalues.tolist() == [1.0]
    assert quiet.gaps.evidence.tolist() == [0.0]
    raising = mm.DriftMonitor.of(rows(rng, 200, lost=0), n_permutations=99, rng=0)
    assert (raising.gaps, raising.limit) == (None, limit_for(4000))


def test_monitors_within_strata_or_with_a_margin_do_not_watch_them():
    rng = np.random.default_rng(3)
    reference = rows(rng, 200)
    assert mm.DriftMonitor.of(reference, within="site", **SETTINGS).gaps is None
    assert mm.DriftMonitor.of(reference[["weight"]], margin=0.2, **SETTINGS).gaps is None


def test_a_batch_without_a_column_is_refused_by_name():
    rng = np.random.default_rng(4)
    monitor = mm.DriftMonitor.of(rows(rng, 100), **SETTINGS)
    with pytest.raises(ColumnError, match="weight"):
        monitor.step(rows(rng, 40)[["site"]])


def test_a_saved_monitor_holds_points_and_not_their_features(tmp_path):
    rng = np.random.default_rng(5)
    monitor = mm.DriftMonitor.of(rows(rng, 3000), **SETTINGS).step(rows(rng, 50))
    path = mm.save(monitor, tmp_path / "monitor")
    resumed = mm.load(path)
    for lost in (0.02, 0.5):
        batch = rows(rng, 50, lost)
        monitor, resumed = monitor.step(batch), resumed.step(batch)
        np.testing.assert_array_equal(resumed.pvalues, monitor.pvalues)
        np.testing.assert_array_equal(resumed.gaps.evidence, monitor.gaps.evidence)
    np.testing.assert_allclose(resumed.pool, monitor.pool, atol=1e-12)
    assert resumed.alarms == monitor.alarms == (3,)
    numbers = mm.DriftMonitor.of(rng.normal(size=(3000, 3)), rng=0)
    assert mm.save(numbers, tmp_path / "numbers").stat().st_size < 3 * numbers.points.nbytes


@pytest.mark.parametrize("form", [jnp.asarray, lambda x: {"a": jnp.asarray(x[:, 0]), "b": jnp.asarray(x[:, 1])}])
def test_arrays_of_jax_go_on_after_a_batch(form, tmp_path):
    rng = np.random.default_rng(6)
    settings = {"n_permutations": 99, "rng": 0}
    monitor = mm.DriftMonitor.of(form(rng.normal(size=(80, 2))), **settings)
    batches = [form(rng.normal(size=(20, 2))) for _ in range(2)]
    first = monitor.step(batches[0])
    resumed = mm.load(mm.save(first, tmp_path / "monitor"))
    assert resumed.step(batches[1]).pvalues == pytest.approx(first.step(batches[1]).pvalues)


def test_fewer_missing_values_are_no_alarm():
    rng = np.random.default_rng(0)
    reference = {"a": rng.normal(size=2000), "b": np.where(rng.random(2000) < 0.1, np.nan, rng.normal(size=2000))}
    monitor = mm.DriftMonitor.of(reference, missing="drop", rng=0)
    for _ in range(5):
        monitor = monitor.step({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    assert monitor.alarms == ()
    assert (monitor.gaps.pvalues == 1).all()


def test_the_page_draws_the_evidence_of_missing_values_and_alarms_where_they_are():
    """They were drawn at evidence zero, far below the limit."""
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(rows(rng, 300), **SETTINGS)
    for lost in (0.02, 0.02, 0.5):
        monitor = monitor.step(rows(rng, 50, lost=lost))
    first, *_, second = monitor._as_page().sections
    marks = {mark.series: mark for mark in first.charts[0].panels[0].marks}
    np.testing.assert_allclose(marks["evidence of missing values"].places["y"], monitor.gaps.evidence)
    assert marks["alarms"].places["y"] == pytest.approx([monitor.gaps.evidence[-1]])
    assert monitor.gaps.evidence[-1] > monitor.limit
    assert second.tables[0][0] == ("batch", "p-value", "evidence", "missing values", "alarm")
    assert second.tables[0][3][3:] == (f"{monitor.gaps.evidence[-1]:.3g}", "alarm")
    quiet = mm.DriftMonitor.of(rows(rng, 300, lost=0), **SETTINGS).step(rows(rng, 50, lost=0))
    assert len(quiet._as_page().sections[0].charts[0].panels[0].marks) == 2


def test_a_reference_with_few_complete_rows_names_the_columns_that_lack_values():
    """It said "reference has 15 points; expected at least 40", with 1000 rows, and no column."""
    rng = np.random.default_rng(0)
    frame = rows(rng, 1000).assign(rare=np.where(rng.random(1000) < 0.985, np.nan, 1.0))
    said = r"\d+ of 1000 rows of the reference have no missing value; expected at least 40\. Values are missing in "
    with pytest.raises(EmptyError, match=said + r"'rare' \(9\d\.?\d*%\), 'weight' \(\d\.?\d*%\): leave columns out"):
        mm.DriftMonitor.of(frame, **SETTINGS)
    monitor = mm.DriftMonitor.of(frame.drop(columns="rare"), **SETTINGS)
    assert len(monitor.step(rows(rng, 100)).pvalues) == 1
