"""The scale of even noise: from dark to light, there and back, and what it is good for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from meanmap.bp import ForestGrid
from meanmap.bp.surroundings.estimates import noise_scale
from meanmap.bp.surroundings.even_noise import EvenNoise
from meanmap.bp.surroundings.features import noise_alone, surroundings

DOWN, RIGHT = np.mgrid[:40, :40]
CLEAN = 20 + 200.0 * ((DOWN // 8 + RIGHT // 8) % 2) + RIGHT
PHOTONS = 0.1


def photons(seed, clean=CLEAN):
    return np.random.default_rng(seed).poisson(clean * PHOTONS) / PHOTONS


def test_noise_of_photons_is_as_large_in_the_dark_as_in_the_light():
    """Its deviation grows threefold before, and by no more than 15% after; 100,000 draws: .5% by chance."""
    steps = np.repeat(np.linspace(25.0, 255.0, 8), 12_500)[None]
    scale = EvenNoise.of([steps, CLEAN], [photons(0, steps), photons(1)])
    noise = photons(2, steps)
    plain = noise.reshape(8, -1).std(axis=1)
    even = scale.stretch(noise).reshape(8, -1).std(axis=1)
    assert plain[-1] > 3 * plain[0]
    assert even.max() < 1.15 * even.min()
    # Units of brightness are kept: noise is as large on the whole.
    assert even.mean() == pytest.approx(plain.mean(), rel=0.15)


def test_noise_that_is_less_where_it_is_light_is_made_even_too():
    rng = np.random.default_rng(3)
    deviation = np.sqrt(900 - 3 * CLEAN)
    noisy = CLEAN + deviation * rng.normal(size=CLEAN.shape)
    scale = EvenNoise.of([CLEAN], [noisy])
    away = scale.stretch(noisy) - scale.stretch(CLEAN)
    assert away[CLEAN > 150].std() == pytest.approx(away[CLEAN < 150].std(), rel=0.15)


def test_what_is_stretched_goes_back_to_where_it_was():
    """Also beyond all that was seen, and missing pixels stay missing."""
    scale = EvenNoise.of([CLEAN], [photons(4)])
    x = np.append(np.linspace(-100, 900, 31), np.nan)
    there = scale.stretch_clean(x)
    assert (np.diff(there[:-1]) > 0).all()
    assert np.isnan(there[-1])
    assert_allclose(scale.back(there), x, rtol=1e-9, atol=1e-9)


def test_clean_images_are_where_the_mean_of_stretched_noise_is():
    """Draws of 4 to 25 photons. Unmoved, the mean is .03 to .13 of a deviation away; a standard error is .006."""
    clean = np.repeat(np.linspace(40.0, 255.0, 4), 25_000)[None]
    noisy = photons(10, clean)
    scale = EvenNoise.of([clean], [noisy])
    mean = scale.stretch(noisy).reshape(4, -1).mean(axis=1)
    deviation = scale.stretch(noisy).reshape(4, -1).std(axis=1)
    assert_allclose(mean, scale.stretch_clean(clean[0, ::25_000]), atol=0.03 * deviation.mean())
    assert (scale.stretch(clean[0, ::25_000]) - mean > 0.02 * deviation).all()


def test_a_scale_is_the_integral_of_one_over_the_deviation():
    """Of Poisson noise, 2 √(x + 3/8) up to a constant and a factor (Anscombe 1948)."""
    clean = np.repeat(np.linspace(2.0, 60.0, 16), 20_000)[None]
    scale = EvenNoise.of([clean], [np.random.default_rng(5).poisson(clean).astype(float)])
    x = np.linspace(2, 60, 20)
    slope, start = np.polyfit(np.sqrt(x + 3 / 8), scale.stretch(x), 1)
    assert_allclose(scale.stretch(x), start + slope * np.sqrt(x + 3 / 8), atol=0.02 * np.ptp(scale.stretch(x)))


@pytest.mark.parametrize("side", [10, 40])
def test_noise_that_does_not_depend_on_brightness_is_left_as_it_is(side):
    """In 60 images of either noise: four standard errors are passed by one in 16,000 where noise is normal."""
    clean = CLEAN[:side, :side]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        for noise in (rng.normal(size=clean.shape), rng.standard_t(3, size=clean.shape)):
            assert EvenNoise.of([clean], [clean + 30 * noise]) is None
    assert EvenNoise.of([clean], [clean]) is None
    assert EvenNoise.of([clean], [clean + 1]) is None
    assert EvenNoise.of([0 * clean], [photons(6, clean)]) is None
    assert EvenNoise.of([clean * np.nan], [clean]) is None


def test_how_much_noise_there_is_is_not_read_off_texture():
    """Stripes one pixel wide, some of them missing. Of heavy tails, wild pixels that are pulled in count less."""
    rng = np.random.default_rng(7)
    clean = 60.0 * ((DOWN + RIGHT) % 2)
    noisy = clean + 10 * rng.normal(size=clean.shape)
    noisy[:5] = np.nan
    clean[:, 30:] = np.nan
    calm, whole = noise_alone([clean], [noisy])
    assert noise_scale(np.nan_to_num(noisy)) > 30
    assert whole == pytest.approx(10, rel=0.1)
    assert calm == pytest.approx(10, rel=0.1)
    heavy = 10 * rng.standard_t(2, size=(100, 100))
    assert noise_alone([0 * heavy], [heavy])[0] < noise_alone([0 * heavy], [heavy])[1]
    assert noise_alone([clean * np.nan], [noisy]) is None


def best_guess(scale):
    """The least error of the first guesses of two images, in brightness."""
    clean, noisy = [CLEAN, CLEAN.T], [photons(0), photons(1, CLEAN.T)]
    there, seen = clean, noisy
    if scale:
        there, seen = [scale.stretch_clean(image) for image in clean], [scale.stretch(image) for image in noisy]
    noise = noise_alone(there, seen)
    found = np.stack([surroundings(image, noise)[0] for image in seen])
    found = scale.back(found) if scale else found
    return np.sqrt(np.mean((found - np.stack(clean)[..., None]) ** 2, axis=(0, 1, 2)).min())


def test_images_of_photons_are_guessed_better_on_the_scale_of_even_noise():
    """On five other draws the errors were .81 to .89 of those without it."""
    assert best_guess(EvenNoise.of([CLEAN], [photons(3)])) < 0.95 * best_guess(None)


def test_beliefs_are_about_brightness_again():
    """Learned on the scale, and read off it: unbiased, with less than a third of the noise, and intervals that hold."""
    model = ForestGrid().fit([CLEAN, CLEAN.T], [photons(0), photons(1, CLEAN.T)], rng=0)
    assert model.scale is not None
    shown = CLEAN[::-1]
    noisy = photons(2, shown)
    restored = model.restore(noisy)
    away = restored.mean() - shown
    assert np.sqrt(np.mean(away**2)) < 0.3 * np.std(noisy - shown)
    assert abs(away.mean()) < 2
    inside = (restored.quantile(0.05) <= shown) & (shown <= restored.quantile(0.95))
    assert 0.75 < inside.mean() < 0.99
