import numpy as np
import pytest
from scipy.stats import chisquare

from meanmap.stats.independence import shifts
from meanmap.stats.independence.shifts import Shifts, correlations, feature_sums, lag_spectra, shift_sums


def symmetric(n, rng):
    matrix = rng.normal(size=(n, n))
    return matrix + matrix.T


def spectra(matrix):
    n = len(matrix)
    extended = np.full((n, n + n // 2), np.nan)
    extended[:, :n] = matrix
    return lag_spectra(extended)


@pytest.mark.parametrize("n", [5, 6, 64, 131])
def test_every_shift_is_the_sum_over_the_shifted_matrix(n):
    rng = np.random.default_rng(n)
    k, other = symmetric(n, rng), symmetric(n, rng)
    expected = [np.sum(k * np.roll(other, (-s, -s), (0, 1))) for s in range(n)]
    np.testing.assert_allclose(shift_sums(spectra(k), spectra(other), n), expected, atol=1e-9)


@pytest.mark.parametrize("n", [5, 6, 64, 131])
def test_features_give_the_sums_of_their_gram_matrices(n):
    rng = np.random.default_rng(n)
    phi, psi = rng.normal(size=(n, 3)), rng.normal(size=(n, 11))
    expected = shift_sums(spectra(phi @ phi.T), spectra(psi @ psi.T), n)
    np.testing.assert_allclose(feature_sums([phi], [psi], np.ones((1, 1), bool))[0, 0], expected, rtol=1e-4)


def stepped(n, step):
    """The permutations by hand: whole steps change places, the last points stay."""
    whole = n // step * step
    return [np.r_[np.roll(np.arange(whole), -s * step), np.arange(whole, n)] for s in range(n // step)]


@pytest.mark.parametrize(("n", "step"), [(20, 1), (20, 4), (131, 3), (100, 7)])
def test_steps_are_taken_whole_and_the_last_points_stay(n, step, monkeypatch):
    monkeypatch.setattr(shifts, "PAIRS", 20)  # features of the first side in several blocks
    rng = np.random.default_rng(n)
    phis, psis = [rng.normal(size=(n, r)) for r in (3, 5)], [rng.normal(size=(n, r)) for r in (1, 4, 7)]
    counted = np.array([[True, False, True], [False, False, False]])
    found, orders = feature_sums(phis, psis, counted, step), stepped(n, step)
    for j in (0, 2):
        expected = [np.sum((phis[0].T @ psis[j][order]) ** 2) for order in orders]
        np.testing.assert_allclose(found[0, j], expected, rtol=1e-4)
    assert not found[~counted].any()
    a, b = rng.normal(size=(2, n))
    np.testing.assert_allclose(correlations(a, b, step), [a @ b[order] for order in orders], atol=1e-12)


def test_few_shifts_are_by_whole_steps():
    drawn = Shifts.draw(50, 12, np.random.default_rng(0), few=True)
    assert (drawn.step, len(drawn.orders)) == (3, 1)
    assert drawn.values(lambda order: np.arange(16)).tolist() == [0, *sorted(set(drawn.chosen[0].tolist()) - {0})]
    assert len(drawn.chosen[0]) == 13
    assert max(drawn.chosen[0]) < 16


@pytest.mark.parametrize(("n", "count", "sizes"), [(50, 12, [13]), (9, 19, [6, 7, 7]), (10, 9, [10])])
def test_few_shifts_follow_each_other_and_the_data_are_first(n, count, sizes):
    for seed in range(20):
        drawn = Shifts.draw(n, count, np.random.default_rng(seed), few=True)
        size = n // drawn.step
        assert sorted(map(len, drawn.chosen)) == sizes
        assert drawn.chosen[0][0] == 0
        for taken in drawn.chosen:
            assert len(set(taken.tolist())) == len(taken)
            assert np.sum(np.diff(taken) % size != 1) <= 1  # all in a row, begun again at most once


def test_correlations():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    np.testing.assert_allclose(correlations(a, b), [a @ np.roll(b, -s) for s in range(9)], atol=1e-12)


@pytest.mark.parametrize(("n", "count"), [(5, 100), (30, 29), (30, 30), (200, 50), (30, 1000)])
def test_permutations_are_drawn_without_the_identity_and_without_repeats_in_a_coset(n, count):
    shifts = Shifts.draw(n, count, np.random.default_rng(1))
    drawn = shifts.values(lambda order: np.array([np.roll(order, -s) for s in range(n)]).T)
    assert drawn.shape == (n, count + 1)
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.tile(np.arange(n)[:, None], count + 1))
    np.testing.assert_array_equal(drawn[:, 0], np.arange(n))
    assert sorted(shifts.base) == list(range(n))
    for taken in shifts.chosen:
        assert len(set(taken.tolist())) == len(taken)
    assert 0 not in shifts.chosen[0][1:]


@pytest.mark.parametrize("few", [False, True])
def test_the_rank_of_the_data_is_uniform_among_its_permutations(few):
    """Exactness itself, with three cosets of nine shifts and a statistic without ties."""
    rng = np.random.default_rng(2)
    trials, count, ranks = 4000, 19, np.zeros(20)
    for _ in range(trials):
        x, y = rng.exponential(size=(2, 9))
        shifts = Shifts.draw(9, count, rng, few)
        x, y = x[shifts.base], y[shifts.base]
        values = shifts.values(lambda order, x=x, y=y: correlations(x, y[order] ** 3))
        ranks[np.sum(values[1:] > values[0])] += 1
    assert chisquare(ranks).pvalue > 1e-4, ranks
