"""The surroundings of each pixel of a noisy image, as numbers for trees."""

from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter, gaussian_filter1d, median_filter

from meanmap.bp.kernel.images import patches
from meanmap.bp.surroundings.estimates import (
    clipped,
    filled,
    least_varying_line,
    like_patches,
    noise_scale,
    shrunken,
)

__all__ = ["noise_alone", "noise_of", "surroundings"]

SCALES = (16, 8, 4, 2, 1)


def noise_alone(clean: list[np.ndarray], noisy: list[np.ndarray]) -> tuple[float, float] | None:
    """The deviation of noise with wild pixels pulled in, and with all, a mean over images; None if none is known.

    It is estimated as from an image, but from the noise alone: in an image, texture makes it too large and shadows make
    it too small. Pixels whose noise is not known are given that of others.
    """
    found = []
    for truth, image in zip(clean, noisy, strict=True):
        noise = image - truth
        there = ~np.isnan(noise)
        if there.any():
            noise[~there] = np.resize(noise[there], np.count_nonzero(~there))
            found.append((noise_scale(clipped(noise)), noise_scale(noise)))
    if not found:
        return None
    calm, whole = np.mean(found, axis=0)
    return float(calm), float(whole)


def noise_of(image: np.ndarray) -> float:
    """The deviation of noise in an image, wild pixels pulled in, as it seems from its observed pixels."""
    return noise_scale(clipped(filled(image, SCALES)[0]), ~np.isnan(image))


def surroundings(image: np.ndarray, noise: tuple[float, float] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (H, W, a) that grow by c where the image grows by c, and others (H, W, b) that do not change.

    The first are the pixels around, averages of different widths and shapes, guesses of the pixel without noise, and
    what is left of the image without black and white pixels; the second slopes, spreads, and how far away the next
    observed pixel is. Missing pixels, NaN, are filled first. The noise, with wild pixels pulled in and with all, is
    estimated where it is not given.
    """
    there = ~np.isnan(image)
    whole, averages = filled(image, SCALES)
    calm = clipped(whole)
    calm_noise, whole_noise = noise or (noise_scale(calm), noise_scale(whole))
    levels = [*averages, *(median_filter(whole, size, mode="reflect") for size in (3, 5, 9))]
    inner, _ = filled(_within(image), SCALES)
    levels += [inner, median_filter(inner, 3, mode="reflect")]
    levels += [gaussian_filter(calm, scale) for scale in (1, 2, 4)]
    smooth = shrunken(calm, 1.6 * calm_noise)
    levels += [shrunken(calm, calm_noise), smooth, shrunken(whole, whole_noise)]
    levels += [like_patches(calm, calm_noise, 0.6), like_patches(calm, calm_noise, 0.4, guide=smooth)]
    away = calm - calm.mean()
    others: list[Any] = [
        gaussian_filter1d(gaussian_filter1d(away, scale, axis=0, order=down), scale, axis=1, order=right)
        for scale in (1.5, 3)
        for down, right in ((0, 1), (1, 0), (0, 2), (2, 0))
    ]
    others.append(np.sqrt(np.maximum(gaussian_filter(calm**2, 2) - gaussian_filter(calm, 2) ** 2, 0)))
    others.append(distance_transform_edt(~there) if there.any() else np.full(image.shape, np.inf))
    for length in (7, 13):
        mean, spread = least_varying_line(whole, length)
        levels.append(mean)
        others.append(spread)
    return np.concatenate([patches(whole, 5), np.stack(levels, axis=-1)], axis=-1), np.stack(others, axis=-1)


def _within(image: np.ndarray) -> np.ndarray:
    """The image with its darkest and lightest pixels missing, which salt and pepper may have put there."""
    there = ~np.isnan(image)
    inner = np.where((image > image[there].min()) & (image < image[there].max()), image, np.nan)
    return image if np.isnan(inner).all() else inner
