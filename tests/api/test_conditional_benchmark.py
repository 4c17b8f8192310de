"""The script behind the table of conditional tests measures and writes what it says."""

import numpy as np
import pytest

from benchmarks import conditional


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
    assert "2 data sets a row; bold outside" in text
    assert conditional.shown(80, 1000) == "**0.080**"
    assert conditional.shown(69, 1000) == "0.069"
