"""The surroundings of each pixel of a noisy image, as numbers for trees."""

from typing import Any

import numpy as np
from scipy.ndimage import distance_transform_edt, gaussian_filter, median_filter

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
# At most this share of the pixels is darker than pepper or lighter than salt.
ENDS = 0.01


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

    The first are the pixel, averages of different widths and shapes, guesses of the pixel without noise, and what is
    left of the image without black and white pixels; the second spreads, and how far away the next observed pixel is.
    Missing pixels, NaN, are filled first. The noise, with wild pixels pulled in and with all, is estimated where it is
    not given.
    """
    there = ~np.isnan(image)
    whole, averages = filled(image, SCALES)
    calm = clipped(whole)
    calm_noise, whole_noise = noise or (noise_scale(calm), noise_scale(whole))
    inner, _ = filled(_within(image), SCALES)
    smooth = shrunken(calm, 1.6 * calm_noise)
    along, spread = least_varying_line(whole, 7)
    levels = [whole, inner, *averages, *(gaussian_filter(calm, scale) for scale in (1, 2, 4))]
    levels += [median_filter(whole, 3, mode="reflect"), median_filter(whole, 5, mode="reflect")]
    levels += [median_filter(inner, 3, mode="reflect"), smooth, shrunken(whole, whole_noise), along]
    levels += [like_patches(calm, calm_noise, 0.6), like_patches(calm, calm_noise, 0.4, guide=smooth)]
    variance = gaussian_filter(calm**2, 2) - gaussian_filter(calm, 2) ** 2
    away: Any = distance_transform_edt(~there) if there.any() else np.full(image.shape, np.inf)
    return np.stack(levels, axis=-1), np.stack([spread, np.sqrt(np.maximum(variance, 0)), away], axis=-1)


def _within(image: np.ndarray) -> np.ndarray:
    """The image with its darkest and lightest pixels missing, which salt and pepper may have put there.

    A few pixels may be darker or lighter than pepper and salt, which are the value of many.
    """
    seen = image[~np.isnan(image)]
    near = np.quantile(seen, (ENDS, 1 - ENDS), method="nearest")
    ends = [seen.min(), seen.max(), *(value for value in near if np.mean(seen == value) > ENDS)]
    inner = np.where(np.isin(image, ends), np.nan, image)
    return image if np.isnan(inner).all() else inner
