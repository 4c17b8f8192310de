"""The script behind the table of conditional tests measures and writes what it says."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from benchmarks import battery, calibration, conditional, structures


@pytest.mark.parametrize("kind", ["linear", "nonlinear", "product"])
def test_data_are_independent_given_z_only_without_an_effect(kind):
    # The noise of x and of y enters linearly after z: what z does not explain is correlated by the effect alone.
    for effect, expected in (("none", 0.0), ("linear", 0.25 / np.sqrt(1 + 0.25**2))):
        x, y, z = conditional.problem(kind, 20_000, 1, 3, effect)
        inside = np.abs(z[:, 0]) < 2  # further out bins are too few, or too wide
        x, y, z = x[inside], y[inside], z[inside]
        bins = np.digitize(z[:, 0], np.linspace(-2, 2, 200))
        count = np.bincount(bins)
        u, v = (a - (np.bincount(bins, a) / np.maximum(count, 1))[bins] for a in (x, y))
        assert np.corrcoef(u, v)[0, 1] == pytest.approx(expected, abs=0.04)


def test_the_page_shows_rates_and_marks_those_out_of_bounds(monkeypatch):
    monkeypatch.setattr(conditional, "PROBLEMS", conditional.PROBLEMS[:1])
    measured = conditional.levels([("kci", "nonlinear", 50, 2)], repeats=2)
    measured[0] |= {"seconds": 0.02}
    high = {"method": "kci", "kind": "linear", "n": 50, "d": 1, "rejected": 2, "seconds": 0.02}
    power = conditional.powers(["kci"], repeats=2, n=50)
    found = {"level repeats": 2, "level": [*measured, high], "power repeats": 2, "power": power}
    text = conditional.page(found)
    assert "* - kci\n     - nonlinear\n     - 50\n     - 2\n" in text
    assert "     - **1.000**\n     - 20 ms\n" in text
    assert "2 data sets per row; bold outside" in text
    assert conditional.shown(80, 1000) == "**0.080**"
    assert conditional.shown(69, 1000) == "0.069"


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, pytest.param(ProcessPoolExecutor, marks=pytest.mark.slow)])
def test_who_does_the_repeats_does_not_matter(monkeypatch, kind):
    monkeypatch.setattr(conditional, "PROBLEMS", conditional.PROBLEMS[:1])
    apart = {} if kind is ThreadPoolExecutor else {"mp_context": get_context("spawn")}
    with kind(2, **apart) as executor:
        assert conditional.powers(["kci"], 2, 50, executor) == conditional.powers(["kci"], 2, 50)
        assert calibration.calibrate("poisson", 2, executor) == calibration.calibrate("poisson", 2)


def test_structures_say_how_many_data_sets_a_row_has(monkeypatch):
    monkeypatch.setattr(structures, "STRUCTURES", {"step": structures.STRUCTURES["step"]})
    found = structures.measure(2, ["kci"])
    rejected, silent, repeats = found["step"]["kci"]
    assert 0 <= silent <= rejected <= repeats == 2
    text = structures.page({"step": {"kci": [3, 0, 24], "other": [24, 24, 24]}})
    assert "     - 24\n     - 0.125\n     - 0.000\n     - 24\n     - **1.000**" in text


def test_the_battery_measures_and_writes_its_cells(tmp_path):
    x, y, z = battery.problem("not linear", "mixed", 3, 400, 0)
    assert [part.dtype.kind for part in (*x.values(), *y.values(), *z.values())] == ["f", "U", "U", "f", "U"]
    _, second, given = battery.numeric(x, y, z)
    assert given.shape == (400, 5)
    assert set(second) == {0.0, 1.0, 2.0}
    x, y, z = battery.problem("linear", "gaps", 1, 4000, 0)
    assert 0.08 < np.isnan(x["x"]).mean() < 0.12
    strong = battery.problem("linear", "numbers", 1, 400, 1, strength=1.0)
    assert battery.partial_correlation(*strong, 0)
    assert battery.covariance_measure(*strong, 0)
    path = tmp_path / "cells.jsonl"
    with ThreadPoolExecutor(2) as executor:
        battery.measure(path, {True: 2, False: 2}, "linear numbers 1 300 partial correlation", executor)
    before = path.read_text()
    battery.measure(path, {True: 2, False: 2}, "linear numbers 1 300 partial correlation")
    assert path.read_text() == before
    found = battery.gathered(path)
    key = "linear, numbers, 1, 300, partial correlation"
    assert found["power"][key][1] == 2
    found["level"][key] = [60, 300, 0.001]
    found["power"] |= {"linear, numbers, 1, 300, ours": [1, 2, 0.1], "linear, numbers, 3, 300, ours": [0, 2, 0.1]}
    text = battery.page(found)
    assert "(**" in text
    assert "Bold: the two best of each row" in text
