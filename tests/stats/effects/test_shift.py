"""What a shift in standard deviations amounts to: a closed form, every size, and how often intervals cover."""

import numpy as np
import pytest
import scipy

import meanmap as mm
from meanmap.core.door import Door
from meanmap.core.errors import InputError
from meanmap.features.lowrank import Nystrom
from meanmap.stats.samples.shifted import Shifts, between_features, between_grams
from meanmap.stats.samples.spread import Spread
from meanmap.stats.samples.tails import inflated_spread
from tests.stats.effects.shifted_laws import LAWS, bounds, counted

KERNEL = mm.kernels.RBF(1.0)


def distance_of_shift(shift, d=1):
    """Between N(0, I) and itself moved in every column, under RBF(1), in closed form."""
    return np.sqrt(2 * 3 ** (-d / 2) * -np.expm1(-d * shift**2 / 6))


def shifts_of(x, kernel=KERNEL, mass=None, units=None):
    n = len(x)
    mass = np.full(n, 1 / n) if mass is None else mass / mass.sum()
    units = np.arange(n) if units is None else units
    between = between_grams(kernel, x, np.asarray(kernel(x)))
    return Shifts(x, Spread.of(x), between, mass, units, np.random.default_rng(0))


@pytest.mark.parametrize("n", [100, 400, 2000])
def test_one_margin_is_one_bound(n):
    """A margin of .05 was .052, .040 and .016 with 200, 500 and 4000 rows."""
    found = [mm.closeness_test(*np.random.default_rng(s).normal(size=(2, n, 1)), 0.05, KERNEL, rng=s) for s in range(3)]
    assert np.mean([each.bound for each in found]) == pytest.approx(distance_of_shift(0.05), rel=0.15)


def test_default_kernels_have_one_bound_at_every_size():
    bounds = [
        np.mean([mm.closeness_test(*np.random.default_rng(s).normal(size=(2, n, 1)), 0.05, rng=s).bound for s in some])
        for n, some in ((150, range(4)), (500, range(1)), (2000, range(1)))
    ]
    assert max(bounds) < 1.25 * min(bounds), bounds


def test_the_estimate_is_unbiased_and_its_error_is_what_it_says():
    rng, shift = np.random.default_rng(1), 0.6
    found = [shifts_of(rng.normal(size=(60, 1))).at(shift) for _ in range(80)]
    distances = np.array([each.distance for each in found])
    assert distances.mean() == pytest.approx(distance_of_shift(shift), abs=4 * distances.std() / np.sqrt(80))
    said = np.sqrt(np.mean([each.variance for each in found]))
    assert 0.75 * said < distances.std() < 1.25 * said


def test_the_mean_over_pairs_of_different_units():
    """Written out: weighted rows, of which some belong together and are no pair."""
    rng = np.random.default_rng(2)
    x, mass, units = rng.normal(size=(12, 2)), rng.random(12), np.arange(12) // 3
    shifts, total, weight = shifts_of(x, mass=mass, units=units), 0.0, 0.0
    moved = x + 0.7 * np.std(x, axis=0, ddof=1)
    plain, both, across = (np.asarray(KERNEL(a, b)) for a, b in ((x, x), (moved, moved), (x, moved)))
    for i in range(12):
        for j in range(12):
            if units[i] != units[j]:
                total += mass[i] * mass[j] * (plain[i, j] + both[i, j] - 2 * across[i, j])
                weight += mass[i] * mass[j]
    assert shifts.at(0.7).distance == pytest.approx(np.sqrt(total / weight))
    with Door() as door:
        phi = Nystrom.at(KERNEL, np.concatenate([x, moved]), door, np.float64)  # exact on these
    features = Shifts(x, shifts.spread, between_features(phi, phi(x)), shifts.mass, units, shifts.generator)
    again, first = features._squared(np.arange(12), 0.7, None), shifts._squared(np.arange(12), 0.7, None)
    assert again[0] == pytest.approx(first[0], rel=1e-4)
    assert again[1] == pytest.approx(first[1], rel=1e-3, abs=1e-6)


def test_standard_deviations_of_weighted_rows():
    rng = np.random.default_rng(3)
    x, twice = rng.normal(size=(50, 2)), np.r_[np.ones(40), np.full(10, 2.0)]
    assert Spread.of(x).deviations == pytest.approx(x.std(axis=0, ddof=1))
    repeated = np.concatenate([x, x[40:]])
    assert Spread.of(x, twice).deviations == pytest.approx(repeated.std(axis=0), rel=0.02)
    assert Spread.of(x).influence(x).mean(axis=0) == pytest.approx(0, abs=0.02)


def test_tails_that_few_rows_have_reached():
    """Normal tails add nothing to what the standard error says; heavy ones much, and ends of scales nothing."""
    rng = np.random.default_rng(4)
    normal = [inflated_spread(rng.normal(size=200)) for _ in range(20)]
    assert max(normal) < 0.2
    assert all(np.isinf(inflated_spread(rng.standard_cauchy(500))) for _ in range(5))
    assert inflated_spread((rng.random(500) < 0.02).astype(float)) == 0.0
    assert inflated_spread(np.full(100, 3.0)) == 0.0


def test_heavy_tails_are_told_of():
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.normal(size=400), rng.standard_cauchy(400)])
    effect = mm.two_sample_effect(x, rng.normal(size=(400, 2)) + 1.0, KERNEL, rng=0)
    assert effect.shift.low == 0.0
    told = "column 1: tails may be so heavy that 400 rows do not determine the standard deviation"
    assert any(told in warning for warning in effect.warnings)
    assert any(told in warning for warning in mm.closeness_test(x, x, 0.2, KERNEL, rng=0).warnings)


def test_tails_that_rows_have_not_reached_are_told_of():
    """The shift was .60 to .93 for .5: 100 rows of a t law of 2.2 degrees of freedom seldom hold the far ones."""
    draw, deviation = LAWS["t2.2"]
    above = told = 0
    for seed in range(12):
        rng = np.random.default_rng([11, seed])
        effect = mm.two_sample_effect(draw(rng, (100, 1)), draw(rng, (100, 1)) + 0.5 * deviation, KERNEL, rng=0)
        above += effect.shift.low > 0.5
        told += any("tails may be so heavy" in warning for warning in effect.warnings)
    assert above <= 2
    assert told >= 9


def test_tails_that_only_the_second_sample_shows_are_told_of():
    rng = np.random.default_rng(0)
    x, usual, far = (rng.normal(size=n) for n in (60, 142, 8))
    said = "y has heavy tails that the rows of x do not show"
    assert any(said in warning for warning in mm.two_sample_effect(x, np.r_[usual, 10 * far], rng=0).warnings)
    assert not any(said in warning for warning in mm.two_sample_effect(x, usual, rng=0).warnings)


@pytest.mark.slow
def test_intervals_under_heavy_tails_hold_or_a_warning_says_why_not():
    """Of 1000 samples of 500 rows 9% missed, without a word where only the second had such rows."""
    draw, deviation = LAWS["t2.2"]
    silent, repeats = 0, 100
    for seed in range(repeats):
        rng = np.random.default_rng([15, seed])
        effect = mm.two_sample_effect(draw(rng, (500, 1)), draw(rng, (500, 1)) + 0.2 * deviation, rng=0)
        told = any("heavy" in warning for warning in effect.warnings)
        silent += not (effect.shift.low <= 0.2 <= effect.shift.high or told)
    assert silent <= scipy.stats.binom.isf(1e-4, repeats, 0.05)


def test_skewed_laws_without_heavy_tails_are_not_called_heavy():
    rng = np.random.default_rng(6)
    found = [inflated_spread(draw(size=500)) for draw in (rng.exponential, rng.normal, rng.random) for _ in range(10)]
    assert np.isinf(found).sum() <= 3


def test_monitors_with_a_margin_tell_of_heavy_tails():
    rng = np.random.default_rng(7)
    heavy = mm.DriftMonitor.of({"a": rng.normal(size=400), "b": rng.standard_cauchy(400)}, margin=0.3, rng=0)
    assert any(note.startswith("column 'b': tails may be so heavy that 300 rows") for note in heavy.notes)
    assert not mm.DriftMonitor.of(rng.normal(size=(400, 1)), margin=0.3, rng=0).notes


def test_too_few_rows_for_a_margin():
    """Where pairs of different rows say nothing of a shift there is no margin to take."""
    x = np.array([[0.0], [3.0], [6.0], [9.0], [12.0]])
    with pytest.raises(InputError, match=r"too few rows to estimate the distance of a shift by 0\.1"):
        mm.closeness_test(x, x, 0.1, mm.kernels.RBF(0.5), rng=0)


def test_a_cell_by_day():
    cell = counted("normal", 1, 60, 0.5, 10, seed=9)
    assert cell.close <= 4
    assert cell.far <= 4
    assert cell.covered >= 6


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.1, 0.5])
@pytest.mark.parametrize("n", [100, 500, 2000])
@pytest.mark.parametrize("d", [1, 10])
@pytest.mark.parametrize("law", LAWS)
def test_level_and_coverage_at_the_boundary(law, d, n, shift):
    trials = 1000
    cell, (most, least) = counted(law, d, n, shift, trials), bounds(trials)
    print(f"{law}, d = {d}, n = {n}, shift {shift}: {cell} of {trials}")
    assert cell.close <= most
    assert cell.far <= most
    assert cell.covered >= least
