"""What surrounds each pixel of a noisy image, as numbers for trees."""

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

__all__ = ["surroundings"]

SCALES = (16, 8, 4, 2, 1)


def surroundings(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (H, W, a) that grow by c where the image grows by c, and others (H, W, b) that do not change.

    The first are the pixels around, averages of different widths and shapes, and guesses of the pixel without noise;
    the second slopes, spreads, and how far away the next observed pixel is. Missing pixels, NaN, are filled first.
    """
    there = ~np.isnan(image)
    whole, averages = filled(image, SCALES)
    calm = clipped(whole)
    noise = noise_scale(calm)
    levels = [*averages, *(median_filter(whole, size, mode="reflect") for size in (3, 5, 9))]
    levels += [gaussian_filter(calm, scale) for scale in (1, 2, 4)]
    smooth = shrunken(calm, 1.6 * noise)
    levels += [shrunken(calm, noise), smooth, shrunken(whole, noise_scale(whole))]
    levels += [like_patches(calm, noise, 0.6), like_patches(calm, noise, 0.4, guide=smooth)]
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
