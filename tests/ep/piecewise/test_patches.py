"""Polynomials on rectangles against the functions they stand for, and what these were asked."""

import numpy as np
import pytest

from meanmap.ep.piecewise.patches import Patches
from meanmap.ep.piecewise.probes import cells_of_two

FUNCTIONS = {
    "constant": (lambda a, b: 0 * a + 3, 40),
    "sum": (lambda a, b: a + np.sin(b), 200),
    "product": (lambda a, b: a * b, 100),
    "wave": (lambda a, b: np.sin(a + b / 2), 800),
    "exponential": (lambda a, b: np.exp(a / 3) * np.cos(b), 800),
    "jump": (lambda a, b: np.where(b > 0.3, a + 1, a), 5000),
    "infinite on a part": (lambda a, b: np.where(a + b > -1, a, -np.inf), 20_000),
    "single precision": (lambda a, b: np.sin(a.astype(np.float32) + b.astype(np.float32)).astype(float), 2000),
    "a pole": (lambda a, b: 1 / (a - 0.31 + b / 7), 20_000),
}
EDGE = 4.0


def patches_of(function):
    """Patches of one function, and all points for which it was called."""
    called = []

    def evaluate(line, z):
        del line
        called.extend(map(tuple, z.tolist()))
        return function(*z.T)

    return Patches(evaluate), called


def until(patches, z, enough):
    """Ask again where errors are too large."""
    line = np.zeros(len(z), int)
    value, error = patches.ask(line, z, np.zeros(len(z), bool))
    for _ in range(200):
        if not (wanted := error > enough).any():
            break
        value, error = patches.ask(line, z, wanted)
    return value, error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_within_what_is_stated_and_no_point_is_called_for_twice(name):
    function, most = FUNCTIONS[name]
    patches, called = patches_of(function)
    z = np.random.default_rng(0).uniform(-EDGE, EDGE, (3000, 2))
    until(patches, z, 1e-6)
    # The polynomials at other points; those near jumps have errors without end.
    z = np.random.default_rng(1).uniform(-EDGE, EDGE, (3000, 2)).clip(z.min(0), z.max(0))
    value, error = patches.ask(np.zeros(len(z), int), z, np.zeros(len(z), bool))
    exact = function(*z.T)
    same = (value == exact) | (np.isnan(value) & np.isnan(exact))
    # Next to infinite values the range of finite ones is stated.
    same |= np.isinf(exact) & (error >= 1)
    with np.errstate(invalid="ignore"):
        assert (same | (np.abs(value - exact) <= error) | (error == np.inf)).mean() > 0.999
    assert len(called) == len(set(called)) == patches.evaluations[0]
    assert len(called) < most


def test_numbers_are_known_beside_a_part_without_numbers():
    """A patch with one value that was no number had none at all."""
    patches, called = patches_of(lambda a, b: np.where(a + b > -1, np.sin(a), np.nan))
    z = np.random.default_rng(0).uniform(-EDGE, EDGE, (300, 2))
    value, _ = until(patches, z, 1e-6)
    np.testing.assert_allclose(value, np.where(z.sum(1) > -1, np.sin(z[:, 0]), np.nan), atol=1e-6)
    assert len(called) < 10_000


def test_smooth_functions_are_known_as_well_as_asked():
    patches, _ = patches_of(lambda a, b: np.exp(a / 3) * np.cos(b))
    z = np.random.default_rng(0).uniform(-EDGE, EDGE, (3000, 2))
    value, error = until(patches, z, 1e-9)
    assert (error <= 1e-9).all()
    np.testing.assert_allclose(value, np.exp(z[:, 0] / 3) * np.cos(z[:, 1]), atol=1e-9)


def test_points_that_come_to_lie_close_together_get_a_patch_of_their_own():
    """Halves of halves took many times as much; the values of the wide range remain."""
    patches, called = patches_of(lambda a, b: np.exp(a) * np.cos(b))
    rng = np.random.default_rng(0)
    until(patches, rng.uniform(-8, 8, (3000, 2)), 1.0)
    before = len(called)
    z = rng.uniform(0.3, 0.8, (3000, 2))
    value, error = until(patches, z, 1e-9)
    exact = np.exp(z[:, 0]) * np.cos(z[:, 1])
    assert (np.abs(value - exact) <= error).all()
    assert (error <= 1e-9).all()
    assert len(called) - before < 350
    wide = rng.uniform(-8, 8, (3000, 2)).clip(-7.9, 7.9)
    value, error = patches.ask(np.zeros(3000, int), wide, np.zeros(3000, bool))
    assert (np.abs(value - np.exp(wide[:, 0]) * np.cos(wide[:, 1])) <= error).all()


def test_points_beyond_all_that_is_known_get_patches_of_their_own():
    patches, called = patches_of(lambda a, b: np.sin(a) * b)
    for shift in (0.0, 7.0, -30.0):
        z = shift + np.random.default_rng(0).uniform(-1, 1, (500, 2))
        value, _ = until(patches, z, 1e-8)
        np.testing.assert_allclose(value, np.sin(z[:, 0]) * z[:, 1], atol=1e-8)
    assert len(called) == len(set(called))


def test_a_peak_at_a_point_that_was_looked_at_is_found():
    def function(a, b):
        return a + np.exp(-((a - 1.02) ** 2 + (b - 0.53) ** 2) / 0.02)

    patches, _ = patches_of(function)
    z = np.random.default_rng(0).uniform(-EDGE, EDGE, (3000, 2))
    patches.ask(np.zeros(3000, int), z, np.zeros(3000, bool))
    patches.probe(0, np.array([[0.9, 0.4]]), np.array([[1.1, 0.6]]), np.array([[1.0, 0.5]]))
    value, _ = until(patches, z, 1e-6)
    np.testing.assert_allclose(value, function(*z.T), atol=1e-6)


def test_cells_hold_equal_mass():
    axis = np.linspace(-6, 6, 97)
    z = np.stack([each.ravel() for each in np.meshgrid(axis, axis, indexing="ij")], 1)
    low, high, middle = cells_of_two(z, -(z**2).sum(1) / 2)
    assert len(low) == 64
    # Neighbours meet: wherever there is mass, there is a cell.
    held = ((z[:, None] + 0.06 >= low) & (z[:, None] + 0.06 <= high)).all(2).any(1)
    assert held[(np.abs(z) < 3).all(1)].all()
    assert ((low <= middle) & (middle <= high)).all()
    root = np.exp(-(z**2).sum(1) / 4)
    mass = [root[((z >= one) & (z <= other)).all(1)].sum() for one, other in zip(low, high, strict=True)]
    np.testing.assert_allclose(np.array(mass) / root.sum(), 1 / 64, rtol=0.6)
    assert not len(cells_of_two(z, np.full(len(z), np.nan))[0])
