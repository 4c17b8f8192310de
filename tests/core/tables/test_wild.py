"""Wild cells: which are, which are not, where they stand among gaps, and how they are named."""

import numpy as np
import pytest

from meanmap.core.tables.wild import MOST, WildCells, without_wild_cells

ROWS = 500


def column(seed=0):
    return np.random.default_rng(seed).normal(size=ROWS)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_wild_cells_are_found_in_any_unit_and_the_farthest_comes_first(unit):
    x = 3 + column()
    x[[7, 40]] = 50, -2000
    found = WildCells.of(unit * x)
    assert found.rows.tolist() == [40, 7]
    np.testing.assert_allclose(found.times, np.abs([-2003, 47]), rtol=0.1)
    assert WildCells.of(unit * np.clip(x, -12, 12)) is None


def test_what_is_no_slip_is_not_wild():
    """As many as make a group, a scale of few values, few rows, a skewed column."""
    x = column()
    x[: MOST + 1] = 1e4
    assert WildCells.of(x) is None
    assert WildCells.of(np.r_[np.tile([0.0, 1.0, 2.0], 50), 1e4]) is None
    assert WildCells.of(np.r_[column()[:15], 1e4]) is None
    assert WildCells.of(np.exp(column())) is None


def test_rows_are_those_of_the_column_as_it_came():
    x = [None, *column().tolist()]
    x[5] = 1e6
    wild, note = without_wild_cells(x, "data['x']")
    assert np.flatnonzero(wild).tolist() == [5]
    assert note.startswith("data['x'] holds 1e+06 in row 5 (counted from 0), 1e+06 standard deviations from all others")
    assert note.endswith("If such values are right, learn from its logarithm or its rank.")
    assert "To keep it, pass kinds={'x': 'number'}." in without_wild_cells(x, "data['x']", "x")[1]
    days = np.datetime64("2024-01-01") + np.arange(40)
    days[3] = np.datetime64("9999-12-31")
    wild, note = without_wild_cells(days, "data['day']")
    assert np.flatnonzero(wild).tolist() == [3]
    assert "9999-12-31" in note
    assert "mean" not in note
    assert "To keep it, pass kinds={'day': 'time'}" in without_wild_cells(days, "data['day']", "day")[1]
    for other in (list("ab") * 30, np.tile([True, False], 30), np.zeros((60, 2))):
        assert not without_wild_cells(other, "x")[0].any()
