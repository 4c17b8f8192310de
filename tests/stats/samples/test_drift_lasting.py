"""A drift that lasts is reported until it ends, and does not become part of the pool."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app


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
    assert monitor.lasting.since == monitor.alarms[0] <= 5
    assert monitor.lasting.pvalue <= 0.05
    assert f"the drift since batch {monitor.alarms[0]} lasts" in str(monitor)
    assert monitor.to_dict()["lasting"]["since"] == monitor.alarms[0]
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
    assert monitor.lasting.since == monitor.alarms[0]
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
