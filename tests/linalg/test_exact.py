"""Sums that do not depend on their order, and are those of the rows."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import InputError, NonFiniteError, ParameterError, ShapeError
from meanmap.linalg.exact import MOST, ExactSums, Grid, correlations

RNG = np.random.default_rng(0)
WILD = RNG.standard_cauchy(size=(3000, 4)) * [1.0, 1e-3, 10.0, 1.0] + [0.0, 5.0, -300.0, 1.0]
TAME = RNG.uniform(-1, 1, size=(3000, 4))


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("rows", [TAME, WILD, TAME * 2.0**100, TAME * 2.0**-400], ids=["tame", "wild", "huge", "tiny"])
def test_no_order_and_no_cut_changes_a_bit(rows, pairs):
    none = ExactSums.none(Grid.of(rows[:200]), pairs)
    whole = none.add(rows)
    for trial in range(5):
        rng = np.random.default_rng(trial)
        cuts = np.sort(rng.choice(len(rows), 7, replace=False))
        states = [none.add(part) for part in np.split(rows[rng.permutation(len(rows))], cuts)]
        while len(states) > 1:  # merged in a random tree
            first, second = (states.pop(int(rng.integers(len(states)))) for _ in range(2))
            states.append(first.merge(second))
        assert states[0] == whole
    assert whole.merge(none) == none.merge(whole) == whole


@pytest.mark.parametrize("rows", [TAME, WILD], ids=["tame", "wild"])
def test_they_are_the_sums_of_the_rounded_rows(rows):
    """The judge adds whole numbers of any length."""
    state = ExactSums.none(Grid.of(rows[:200])).add(rows)
    units = np.rint((rows - state.grid.origin) / state.grid.unit)
    exact = [[int(value) for value in row] for row in units]
    if len(state.levels) == 1:
        assert state.products[0].tolist() == [
            [sum(row[i] * row[j] for row in exact) for j in range(4)] for i in range(4)
        ]
    assert (rows is WILD) == (len(state.levels) > 1)
    assert state.n == len(rows)
    # Each row is rounded to a unit of at most 2⁻¹⁶ of its largest number.
    scale = np.abs(rows - state.grid.origin).max(axis=1)
    size = np.maximum(scale, MOST * state.grid.unit.max())
    np.testing.assert_allclose(state.moments().mean, rows.mean(axis=0), atol=2.0**-9 * size.mean())
    second = np.einsum("ni,nj->ij", rows, rows) / len(rows)
    np.testing.assert_allclose(state.moments().second, second, atol=2.0**-8 * np.mean(size**2))


@pytest.mark.parametrize("rows", [TAME, WILD], ids=["tame", "wild"])
def test_squares_and_correlations_make_covariances(rows):
    """With the correlations of all rows they are those of all products; without, variances still are."""
    rows = rows + rows[:, :1]  # correlated
    whole, squares = (ExactSums.none(Grid.of(rows[:200]), pairs).add(rows) for pairs in (True, False))
    assert squares.products.tolist() == whole.products.diagonal(axis1=1, axis2=2).tolist()
    expected = whole.moments()
    found = squares.moments(correlations(rows))
    np.testing.assert_allclose(found.mean, expected.mean)
    # Correlations are those of rows that were not rounded: by up to 2⁻¹⁶ of their largest number.
    size = np.sqrt(np.outer(*[expected.covariance().diagonal()] * 2))
    np.testing.assert_allclose(found.covariance() / size, expected.covariance() / size, atol=1e-3)
    other = squares.moments(correlations(rows[:50])).covariance()
    np.testing.assert_allclose(other.diagonal(), expected.covariance().diagonal())


def test_what_never_varied_in_a_sample_is_correlated_with_nothing():
    found = correlations(np.c_[TAME[:, :2], np.ones(len(TAME))])
    np.testing.assert_array_equal(found[2], [0.0, 0.0, 1.0])
    np.testing.assert_allclose(found[:2, :2], np.corrcoef(TAME[:, :2].T))


def test_covariances_do_not_cancel():
    rows = 1e6 + TAME
    found = ExactSums.none(Grid.of(rows[:100])).add(rows).moments().covariance()
    np.testing.assert_allclose(found, np.cov(TAME.T), atol=1e-5)


def test_constant_rows_have_a_grid_too():
    for value in (0.0, 3.5, -1e-200):
        rows = np.full((10, 2), value)
        moments = ExactSums.none(Grid.of(rows)).add(rows).moments()
        np.testing.assert_allclose(moments.mean, [value, value], rtol=1e-4)
        assert not moments.covariance().any()


def test_states_are_saved(tmp_path):
    state = ExactSums.none(Grid.of(WILD[:200])).add(WILD)
    assert mm.load(mm.save(state, tmp_path / "state.meanmap")) == state


def test_what_does_not_fit_is_refused():
    none = ExactSums.none(Grid.of(TAME))
    with pytest.raises(ShapeError, match=r"rows on different grids\): both must come from one plan"):
        none.merge(ExactSums.none(Grid.of(WILD)))
    with pytest.raises(ShapeError, match="rows of 4 numbers and of 3"):
        none.merge(ExactSums.none(Grid.of(TAME[:, :3])))
    for bad in (np.nan, np.inf):
        with pytest.raises(NonFiniteError, match="not finite"):
            none.add(np.full((2, 4), bad))
    with pytest.raises(ParameterError, match="holds no row"):
        none.moments()
    full = none.add(np.ones((2, 4)))
    while full.products.max() < 2**62:
        full = full.merge(full)
    assert full.n > 2**29
    with pytest.raises(InputError, match="does not fit into 63 bits"):
        full.merge(full)
