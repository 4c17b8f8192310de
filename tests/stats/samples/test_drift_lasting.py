"""A drift that lasts is reported until it ends, and does not become part of the pool."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.stats.samples.drift_words import lasts_in


def rows(rng, n, correlation):
    first, second = rng.normal(size=(2, n))
    return {"load": first, "speed": correlation * first + np.sqrt(1 - correlation**2) * second}


def test_a_drift_that_lasts_is_not_forgotten_and_ends():
    # The dependence was lost in every batch from the third on; alarms stopped when the pool held such batches.
    rng = np.random.default_rng(51)
    monitor = mm.DriftMonitor.of(rows(rng, 600, 0.8), n_permutations=199, rng=0)
    for _ in range(2):
        monitor = monitor.step(rows(rng, 100, 0.8))
    assert monitor.lasting is None
    for _ in range(8):
        monitor = monitor.step(rows(rng, 100, 0.0))
    assert monitor.lasting.since == monitor.record.drifts[0].first <= monitor.alarms[0] <= 5
    assert monitor.lasting.pvalue <= 0.05
    assert f"the drift since batch {monitor.lasting.since} lasts" in str(monitor)
    assert monitor.to_dict()["lasting"]["since"] == monitor.lasting.since
    pool = len(monitor.pool)
    assert len(monitor.step(rows(rng, 100, 0.0)).pool) == pool
    for _ in range(8):
        monitor = monitor.step(rows(rng, 100, 0.8))
    assert monitor.lasting is None
    assert len(monitor.pool) > pool
    assert "lasts" not in str(monitor)


def test_after_one_bad_batch_nothing_lasts_for_long():
    # By chance a clean batch differs at .05 in one of twenty runs, and three together at .2 in one of five.
    rng = np.random.default_rng(52)
    monitor = mm.DriftMonitor.of(rows(rng, 400, 0.5), n_permutations=199, rng=0)
    seen, ended = 0, 0
    for _ in range(20):
        after = monitor.step({name: column + 5 for name, column in rows(rng, 60, 0.5).items()})
        assert after.alarms == (1,)
        assert after.lasting.since == 1
        after = after.step(rows(rng, 60, 0.5))
        seen += "lasts" in str(after).splitlines()[0]
        for _ in range(2):
            after = after.step(rows(rng, 60, 0.5))
        ended += after.lasting is None
    assert seen <= 5
    assert ended >= 11


def test_a_small_drift_lasts_though_single_batches_are_usual():
    # A mean that moved by .4 sd in one of four columns: single batches of 200 may look usual, three together do not.
    rng = np.random.default_rng(54)
    draw = lambda n, shift: {name: rng.normal(shift * (name == "a"), 1, n) for name in "abcd"}  # noqa: E731
    monitor = mm.DriftMonitor.of(draw(1000, 0.0), n_permutations=199, rng=0)
    for _ in range(10):
        monitor = monitor.step(draw(200, 0.4))
    assert monitor.alarms[0] <= 6
    assert monitor.lasting.since == monitor.record.drifts[0].first
    assert monitor.lasting.pvalue <= 0.05


def test_the_command_says_so_until_it_ends(tmp_path):
    rng = np.random.default_rng(53)
    pd.DataFrame(rows(rng, 600, 0.8)).to_csv(tmp_path / "reference.csv", index=False)
    state = ["--seed", "0", "--state", str(tmp_path / "state.meanmap")]
    found = []
    for day, correlation in enumerate([0.8, 0.0, 0.0, 0.0, 0.0, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8]):
        batch = tmp_path / f"day{day}.csv"
        pd.DataFrame(rows(rng, 150, correlation)).to_csv(batch, index=False)
        asked = ["drift", str(tmp_path / "reference.csv"), str(batch), *state]
        found.append(CliRunner().invoke(app, asked))
    codes = [each.exit_code for each in found]
    assert codes[0] == 0
    assert codes[1:5] == [1, 1, 1, 1]
    assert codes[-1] == 0
    assert "lasts" in found[4].output or "alarm" in found[4].output


def with_gaps(rng, n, lost=0.02):
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return table.assign(a=table["a"].where(rng.random(n) >= lost), site=rng.choice(["n", "s", "e"], n))


def test_missing_values_that_go_on_are_reported_until_they_end():
    # Alarms came at two to four of the batches, and then nothing was said.
    for seed in (61, 62):
        rng = np.random.default_rng(seed)
        monitor = mm.DriftMonitor.of(with_gaps(rng, 1000), missing="drop", n_permutations=199, rng=0)
        for _ in range(12):
            monitor = monitor.step(with_gaps(rng, 100, 0.15))
            if len(monitor.alarms) and not monitor.alarm:
                assert monitor.lasting.pvalue <= 0.05
        assert monitor.lasting.since == monitor.record.drifts[0].first <= monitor.alarms[0] <= 5
        assert "'a' is missing in 1" in monitor.lasting.sentence()
        assert "% of the latest 300 rows, " in monitor.lasting.sentence()
        clean = 0
        while monitor.lasting is not None and clean < 20:  # one trio in five differs by chance at .2
            monitor, clean = monitor.step(with_gaps(rng, 100)), clean + 1
        assert clean < 20


def test_a_column_that_stays_empty_is_reported_in_every_batch():
    rng = np.random.default_rng(63)
    for other in (0.0, 1.0):  # other columns are still compared, or no row is complete
        monitor = mm.DriftMonitor.of(with_gaps(rng, 400), missing="drop", n_permutations=199, rng=0)
        for _ in range(10):
            rows = with_gaps(rng, 60, 1.0).assign(b=lambda rows, other=other: rows["b"] if other == 0.0 else np.nan)
            monitor = monitor.step(rows.assign(c=np.nan, site=None) if other else rows)
            assert monitor.lasting is not None
            assert monitor.lasting.pvalue <= 0.05
        clean = 0
        while monitor.lasting is not None and clean < 20:
            monitor, clean = monitor.step(with_gaps(rng, 60)), clean + 1
        assert clean < 20


def test_new_labels_in_few_rows_last():
    rng = np.random.default_rng(64)
    monitor = mm.DriftMonitor.of(with_gaps(rng, 1000), missing="drop", n_permutations=199, rng=0)
    seen = 0
    for _ in range(12):
        rows = with_gaps(rng, 100)
        monitor = monitor.step(rows.assign(site=np.where(rng.random(100) < 0.05, "west", rows["site"])))
        seen += bool(monitor.alarm or (monitor.lasting is not None and monitor.lasting.is_seen))
    assert seen >= 12 - monitor.alarms[0] + 1
    assert monitor.lasting.since == monitor.record.drifts[0].first


def test_cells_far_outside_in_batch_after_batch_raise_an_alarm_that_lasts():
    # A single such cell is noted; in each of 12 batches they were noted, too, with exit code 0.
    rng = np.random.default_rng(65)
    monitor = mm.DriftMonitor.of(with_gaps(rng, 1000), missing="drop", n_permutations=199, rng=0)
    monitor = monitor.step(with_gaps(rng, 100).assign(b=lambda rows: rows["b"].mask(rows.index == 7, 9e9)))
    assert monitor.alarms == ()
    monitor = monitor.step(with_gaps(rng, 100))
    for _ in range(9):
        rows = with_gaps(rng, 100)
        rows.loc[int(rng.integers(100)), "b"] = 9e9
        monitor = monitor.step(rows)
    assert monitor.alarms[0] == 5  # the third in a row
    assert "batch after batch holds values of 'b' far outside" in monitor.lasting.sentence()
    assert monitor.record.drifts[0].columns[0]["column"] == "b"
    clean = 0
    while monitor.lasting is not None and clean < 20:
        monitor, clean = monitor.step(with_gaps(rng, 100)), clean + 1
    assert 3 <= clean < 20


def test_a_label_that_is_lost_heads_the_table():
    rng = np.random.default_rng(66)
    draw = lambda n, p: {"x": rng.normal(size=n), "site": rng.choice(list("nsew"), n, p=p)}  # noqa: E731
    monitor = mm.DriftMonitor.of(draw(1000, [0.5, 0.3, 0.15, 0.05]), n_permutations=199, rng=0)
    while not len(monitor.alarms):
        monitor = monitor.step(draw(100, [0.5, 0.35, 0.15, 0.0]))
    (_, rows), *_ = monitor.record.compared()
    assert (rows[0]["what"], rows[0]["batches"]) == ("site = w", 0.0)
    assert rows[0]["pvalue"] < 1e-4
    assert "site = w" in monitor.record.drifts[0].changed


def test_alarms_in_the_same_columns_repeat_a_known_drift(tmp_path):
    """One step gave nine alarms, all alike."""
    rng = np.random.default_rng(55)

    def batch(n=100, load=0.0, heat=0.0):
        return {"load": rng.normal(load, 1, n), "heat": rng.normal(heat, 1, n), "wear": rng.normal(size=n)}

    monitor = mm.DriftMonitor.of(batch(1000), n_permutations=199, rng=0)
    for shift in ({}, {"load": 1.5}, {"load": 1.5}, {"load": 1.5, "heat": 1.5}, {"load": 1.5, "heat": 1.5}):
        monitor = monitor.step(batch(**shift))
    assert monitor.alarms == (2, 3, 4, 5)
    assert monitor.repeats == (3, 5)  # heat was new in the fourth batch
    assert "alarms at: 2, 4, and 2 more of a known drift, the last at 5; the drift since batch 2 lasts" in str(monitor)
    assert monitor.to_dict()["repeats"] == [3, 5]
    assert monitor.to_dict()["answer"].startswith("Alarm at batch 2, 4, and 2 more of a known drift, the last at 5, ")
    monitor.page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count(">alarm, known drift<") == 2
    assert "alarms that repeat a known drift" in page
    mm.save(monitor, tmp_path / "monitor")
    assert mm.load(tmp_path / "monitor").repeats == (3, 5)
    for _ in range(6):
        monitor = monitor.step(batch())
    assert monitor.lasting is None
    assert monitor.step(batch(load=2.0)).repeats == (3, 5)  # after its end it is new


def test_the_command_has_the_dictionary_of_the_monitor(tmp_path):
    rng = np.random.default_rng(56)
    paths = [tmp_path / f"{name}.csv" for name in ("reference", "b1", "b2", "b3")]
    for path, n, shift in zip(paths, (600, 100, 100, 100), (0, 0, 2, 2), strict=True):
        pd.DataFrame({"load": rng.normal(shift, 1, n), "wear": rng.normal(size=n)}).to_csv(path, index=False)
    arguments = ["drift", *map(str, paths), "--seed", "0"]
    found = CliRunner().invoke(app, [*arguments, "--json"])
    assert found.exit_code == 1
    said = json.loads(found.stdout)
    reference, *batches = (pd.read_csv(path) for path in paths)
    monitor = mm.DriftMonitor.of(reference, missing="drop", rng=0)
    for batch in batches:
        monitor = monitor.step(batch)
    facts = monitor.to_dict()
    assert set(facts) <= set(said)
    assert {key: said[key] for key in ("pvalues", "evidence", "limit")} == {
        key: facts[key] for key in ("pvalues", "evidence", "limit")
    }
    assert (said["alarms"], said["repeats"]) == (["b2.csv", "b3.csv"], ["b3.csv"])
    assert said["lasting"] == {**facts["lasting"], "since": "b2.csv"}
    assert said["lasting"]["seen"]
    told = CliRunner().invoke(app, arguments).stdout
    assert told.splitlines()[0] == f"{said['question']} {said['answer']}"
    assert "No: alarm at b2.csv, and 1 more of a known drift, at b3.csv. The drift since b2.csv" in told
    assert told.count("alarm, known drift") == 1
    page = tmp_path / "page.html"
    CliRunner().invoke(app, [*arguments, "--report", str(page)])
    assert '"ticks":[[1.0,"b1"],[2.0,"b2"],[3.0,"b3"]]' in page.read_text()  # "b01.…" was cut at 420 pixels


def test_a_sentence_has_one_number_for_one_share():
    """A headline said 16% and 18.2% of the same column."""
    from meanmap.stats.samples.drift_lasting import Lasting

    lasting = Lasting(11, missing="age is missing in 16% of the latest 600 rows, 7.7% in the reference")
    assert lasting.sentence("b11.csv", "missing age 7.7% → 18.2%") == (
        "The drift since b11.csv lasts: missing age 7.7% → 18.2%."
    )
    assert lasting.sentence("b11.csv").startswith("The drift since b11.csv lasts: age is missing in 16% of the latest")


def after_each_batch(seed, count):
    """Monitors of two columns, of which a is shifted in batch 3 alone, and b in batch 5 alone."""
    rng = np.random.default_rng(seed)
    monitor = mm.DriftMonitor.of({"a": rng.normal(size=800), "b": rng.normal(size=800)}, rng=0)
    for number in range(1, count + 1):
        shifts = {"a": 2.0 * (number == 3), "b": 3.0 * (number == 5)}
        monitor = monitor.step({name: rng.normal(size=80) + shift for name, shift in shifts.items()})
        yield number, monitor


def test_a_later_alarm_is_told_apart_and_quiet_batches_are_not_said_to_last():
    for number, monitor in after_each_batch(82, 7):
        if number in (6, 7) and monitor.lasting and monitor.pvalues[-1] > 0.2:
            assert " lasts" not in str(monitor).splitlines()[0]
    assert list(monitor.alarms) == [3, 5]


def test_the_sentence_names_a_later_alarm_by_itself():
    *_, (_, monitor) = after_each_batch(83, 6)
    assert lasts_in(monitor).startswith("There were alarms from batch 3 on, the latest at batch 5: mean b")


@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_a_drift_ends_whatever_the_offset_of_a_column(start):
    """The latest batches were compared in single precision: beside a column of numbers from 1.7e9 on no drift ended."""
    rng = np.random.default_rng(61)

    def rows(n, shift=0.0):
        other = {"fee": rng.normal(5, 2, n), "serial": start + rng.poisson(20, n)}
        return {"temp": rng.normal(20 + shift, 3, n), **other}

    monitor = mm.DriftMonitor.of(rows(600), rng=61)
    for batch in range(1, 11):
        monitor = monitor.step(rows(60, 2.5 if 3 <= batch <= 5 else 0.0))
    assert monitor.alarms[0] == 3
    assert monitor.lasting is None


def _overlapping(rng, n, batch=0):
    """One column differs in batches 3 to 6, another one in batches 5 to 8."""
    first, second = 0.7 * (3 <= batch <= 6), 0.7 * (5 <= batch <= 8)
    columns = {"a": 10 + first + rng.normal(size=n), "b": 5 + second + rng.normal(size=n)}
    return {**columns, "c": rng.gamma(2, 1, n), "d": rng.choice(list("xyz"), n), "e": rng.normal(size=n)}


@pytest.mark.parametrize("seed", [36100, 36101])
def test_the_end_names_each_column_with_its_own_beginning(seed):
    """It said "The drift since batch 3 (mean b ...) has ended: batches 8 to 10", and batch 8 had raised an alarm."""
    rng = np.random.default_rng(seed)
    monitor = mm.DriftMonitor.of(_overlapping(rng, 1000), rng=seed)
    for batch in range(1, 15):
        monitor = monitor.step(_overlapping(rng, 100, batch))
        answer = monitor.to_dict()["answer"]
        if "has ended" in answer:
            break
    said = (
        r"The drift since batch 3 \(mean a \S+ → 10\S+; since batch 5 mean b \S+ → 5\S+\) has ended: batches (\d+) to"
    )
    found = re.search(said, answer)
    assert found, answer
    assert int(found[1]) > monitor.alarms[-1] >= 7
    assert 3 * min(monitor.pvalues[-3:]) > 0.05
