"""Functions of a few numbers: learned values against those that calls give."""

import numpy as np
import pytest

from meanmap.ep.piecewise.surface import Surface

SCALE, POINTS = 0.2, 20_000


def bend(a, b, c):
    return np.log(np.exp(0.5 * a) + np.exp(b - 0.3 * c)) + 0.1 * np.sin(c)


def kink(a, b, c):
    return np.maximum(a + 0.5 * b, 0.0) + 0.2 * c


def part(a, b, c):
    return np.where(a + b > 1.5, np.nan, a * b + c)


def step(a, b, c):
    return np.where(a + b > 0.3, 1.0, 0.0) + 0.2 * c


def wave(a, b, c):
    return np.sin(2 * a + b) * np.cos(c)


def asked(surface, function, x):
    """Values in a new run, and how many calls they took."""
    before, surface.error = surface.called, 0.0
    surface.begin()
    return surface.ask(lambda points: function(*points.T), x, lambda _: SCALE), surface.called - before


def missed(value, true):
    """Root mean square of errors, of which none counts more than the scale."""
    off = np.where(np.isnan(value) & np.isnan(true), 0.0, np.abs(value - true))
    return np.sqrt((np.where(off < SCALE, off, SCALE) ** 2).mean())


def drawn(seed, numbers=3):
    return np.random.default_rng(seed).normal(size=(POINTS, numbers))


@pytest.mark.parametrize(
    ("function", "first", "later"),
    [(bend, 0.1, 0.01), (kink, 0.9, 0.25), (step, 0.9, 0.25), (wave, 0.9, 0.1), (part, 0.9, 0.5)],
)
def test_calls_fall_and_the_stated_error_covers(function, first, later):
    surface, shares = Surface(), []
    for seed in range(6):
        x = drawn(seed)
        value, calls = asked(surface, function, x)
        shares.append(calls / POINTS)
        assert missed(value, function(*x.T)) < min(surface.error, 0.04 * SCALE)
        assert surface.error < 0.2 * SCALE
    assert shares[0] < first
    assert shares[-1] < later


def test_the_stated_error_covers_on_functions_drawn_at_random():
    rng, covered = np.random.default_rng(11), []
    for _ in range(20):
        weights, waves, phase = rng.normal(size=(3, 4)), rng.gamma(2.0, 0.7, 4), rng.uniform(0, 6, 4)

        def function(a, b, c, weights=weights, waves=waves, phase=phase):
            return np.tanh(np.sin(np.stack([a, b, c], 1) @ weights * waves + phase)).sum(1)

        surface = Surface()
        for _ in range(2):
            x = rng.normal(size=(5000, 3))
            value, _ = asked(surface, function, x)
        covered.append(missed(value, function(*x.T)) <= surface.error)
    assert np.mean(covered) >= 0.9


def test_a_function_that_gives_other_values_is_learned_anew():
    surface = Surface()
    for _ in range(2):
        asked(surface, bend, drawn(0))
    known, x = surface.evaluations, drawn(1)
    value, calls = asked(surface, lambda *z: bend(*z) + 0.01 * (z[0] > 1), x)
    assert surface.evaluations < known + calls
    assert np.abs(value - bend(*x.T))[x[:, 0] > 1.5].mean() > 0.005
    value, calls = asked(surface, bend, x)
    assert missed(value, bend(*x.T)) < surface.error
    _, calls = asked(surface, bend, drawn(2))
    assert calls < 0.02 * POINTS


def test_what_is_missed_at_given_points_is_found():
    surface, x = Surface(), drawn(0)
    asked(surface, bend, x)
    hidden = np.concatenate([x[:50], x[:50] + 40.0])  # the others are beyond, where the function is called
    off = surface.off(lambda points: bend(*points.T) + 1.0, hidden, SCALE)
    answered = off != 0
    assert answered[:50].sum() > 40
    assert not answered[50:].any()
    np.testing.assert_allclose(off[answered], -1.0, atol=0.05)


def test_errors_are_not_understated_where_the_scale_has_grown():
    surface = Surface()
    for seed in range(2):
        asked(surface, step, drawn(seed))
    x = drawn(5)
    for scale in (5.0, 0.05):
        surface.begin()
        surface.error = 0.0
        value = surface.ask(lambda points: step(*points.T), x, lambda _, scale=scale: scale)
        off = np.minimum(np.abs(value - step(*x.T)), scale)
        assert np.sqrt((off**2).mean()) < surface.error


def test_memory_is_bounded():
    surface = Surface()
    surface.answered = 10**12
    assert surface.most == 200_000
    surface.evaluations = surface.most - 10
    for _ in range(5):
        surface._keep(np.zeros((20, 3)), np.zeros(20))
    assert sum(len(y) for _, y in surface._kept) == 20


def test_what_is_no_number_is_called_for():
    surface = Surface()
    for seed in range(3):
        x = drawn(seed)
        value, _ = asked(surface, part, x)
        true = part(*x.T)
        wrong = np.isnan(value) != np.isnan(true)
        assert wrong.mean() < 1e-3
    assert np.isnan(true).mean() > 0.1


def test_noise_is_not_learned_as_a_function():
    rng, surface = np.random.default_rng(0), Surface()
    noise = {}

    def rough(*values):
        return np.array(
            [noise.setdefault(each, rng.normal()) for each in zip(*map(np.ndarray.tolist, values), strict=True)]
        )

    for seed in range(4):
        x = drawn(seed)
        value, _ = asked(surface, rough, x)
        np.testing.assert_array_equal(value, rough(*x.T))
    assert "evaluations are good enough at 0% of the points" in surface.refused


def test_nothing_is_extrapolated():
    surface = Surface()
    asked(surface, bend, drawn(0))
    far = drawn(1)[:100] + 30.0
    value, calls = asked(surface, bend, far)
    assert calls >= 100
    np.testing.assert_allclose(value, bend(*far.T), rtol=1e-12)


def test_a_number_that_never_varied_is_asked_about_when_it_does():
    surface, x = Surface(), drawn(0)
    x[:, 2] = 1.0
    asked(surface, bend, x)
    x[:, 2] = 2.0
    value, _ = asked(surface, bend, x)
    assert missed(value, bend(*x.T)) < 0.03 * SCALE


def test_points_that_are_no_finite_numbers_are_called():
    surface, x = Surface(), drawn(0)
    x[:5, 0] = np.inf
    value, _ = asked(surface, lambda a, b, c: np.minimum(a, 1.0) + b * c, x)
    np.testing.assert_allclose(value[:5], 1.0 + x[:5, 1] * x[:5, 2])
    assert surface.error < 0.2 * SCALE
