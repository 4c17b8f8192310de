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


def test_the_page_shows_rates_and_marks_those_out_of_bounds(tmp_path, monkeypatch):
    monkeypatch.setattr(conditional, "PAGE", tmp_path / "page.rst")
    monkeypatch.setattr(conditional, "PROBLEMS", conditional.PROBLEMS[:1])
    arguments = ["--repeats", "2", "--power-repeats", "2", "--sizes", "50", "--widths", "1", "2", "--methods", "kci"]
    assert conditional.main(arguments) == 0
    text = conditional.PAGE.read_text(encoding="utf-8")
    assert "* - kci\n     - nonlinear\n     - 50\n" in text
    assert "2 data sets a cell" in text
    cells = {
        ("kci", "linear", 50, 1): (80, 1000),
        ("kci", "linear", 50, 2): (69, 1000),
        ("kci", "linear", 50, 4): (5, 300),
    }
    marked = conditional.page(cells, {}, 200)
    assert "- **0.080**\n     - 0.069\n     -\n     - **0.017** (300)\n     -\n" in marked
