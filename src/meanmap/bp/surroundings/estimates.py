"""Initial estimates of an image without its noise: averages, shrunken cosines, averages of similar patches."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dct
from scipy.ndimage import convolve, gaussian_filter, median_filter

from meanmap.core.points import slices

__all__ = ["clipped", "filled", "least_varying_line", "like_patches", "noise_scale", "shrunken"]

# Where less than this share of a Gaussian window was observed, the next wider window is asked.
LEAST_SEEN = 0.02
# Cosines below this many standard deviations of the noise are noise (Guleryuz 2007 and others take 2.5 to 3).
THRESHOLD = 2.7
WINDOW = 8
# The noise assigned to an image without noise, whose square is still a normal number.
LEAST_NOISE = 1e-100
# About this many windows are transformed at once: they stay in a core's cache.
AT_ONCE = 1024
# Beyond this many robust standard deviations from the local median a pixel is pulled in.
MOST_DEVIATIONS = 2.5
# Patches are this many pixels wide, and those up to so far away are compared.
PATCH, REACH = 5, 8


def filled(image: np.ndarray, scales: tuple[int, ...]) -> tuple[np.ndarray, list[np.ndarray]]:
    """The image with missing pixels replaced by averages of the observed ones around them, and Gaussian averages of the
    observed pixels at each of the scales, the widest first.
    """
    there = ~np.isnan(image)
    values = np.where(there, image, 0.0)
    middle = values.sum() / max(there.sum(), 1)
    guess, averages = np.full(image.shape, middle), []
    for scale in scales:
        share = gaussian_filter(there.astype(float), scale, mode="reflect")
        average = gaussian_filter(values, scale, mode="reflect") / np.maximum(share, LEAST_SEEN)
        guess = np.where(share > LEAST_SEEN, average, guess)
        averages.append(guess)
    return np.where(there, image, guess), averages


def clipped(image: np.ndarray) -> np.ndarray:
    """Outlying pixels pulled in towards the median around them."""
    middle = median_filter(image, 5, mode="reflect")
    away = image - middle
    most = MOST_DEVIATIONS * 1.4826 * np.median(np.abs(away))
    return middle + np.clip(away, -most, most)


def noise_scale(image: np.ndarray, where: np.ndarray | None = None) -> float:
    """The standard deviation of white noise, from second differences across both axes (Immerkær 1996), of all pixels or
    of those where the mask (H, W) is true.
    """
    mask = np.array([[1.0, -2.0, 1.0], [-2.0, 4.0, -2.0], [1.0, -2.0, 1.0]]) / 6
    differences = np.abs(convolve(image, mask, mode="reflect"))
    return max(float(np.median(differences if where is None else differences[where])) / 0.6745, LEAST_NOISE)


def shrunken(image: np.ndarray, noise: float) -> np.ndarray:
    """The average over all windows of their cosines: first those above the noise, then by what these say is signal.

    The second pass multiplies each cosine by P² / (P² + σ²), P that of the first pass, as Wiener's filter does. Windows
    count as much as few of their cosines were kept.
    """

    def hard(cosines: np.ndarray) -> np.ndarray:
        return (np.abs(cosines) > THRESHOLD * noise).astype(float)

    def soft(first: np.ndarray) -> np.ndarray:
        return first**2 / (first**2 + noise**2)

    return _over_windows((image, _over_windows((image,), hard)), soft)


def _over_windows(images: tuple[np.ndarray, ...], share: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Windows of the first image's cosines, of which shares are kept by those of the last, put back and averaged."""
    margin = WINDOW - 1
    padded = [np.pad(each, margin, mode="symmetric") for each in images]
    height, width = (size - margin for size in padded[0].shape)
    one: Any = dct(np.eye(WINDOW), axis=0, norm="ortho")
    basis = np.kron(one, one)
    total, weight = np.zeros(padded[0].shape), np.zeros(padded[0].shape)
    for part in slices(height, max(AT_ONCE // width, 1)):
        rows = slice(part.start, part.stop + margin)
        shape = part.stop - part.start, width
        cosines = [
            basis @ np.lib.stride_tricks.sliding_window_view(each[rows], shape).reshape(len(basis), -1)
            for each in padded
        ]
        kept = share(cosines[-1])
        kept[0] = 1
        importance = 1 / np.einsum("cw,cw->w", kept, kept).reshape(shape)
        values = (basis.T @ (cosines[0] * kept)).reshape(WINDOW, WINDOW, *shape) * importance
        for i, j in np.ndindex(WINDOW, WINDOW):
            at = slice(part.start + i, part.stop + i), slice(j, j + width)
            total[at] += values[i, j]
            weight[at] += importance
    inside = slice(margin, -margin), slice(margin, -margin)
    return total[inside] / weight[inside]


def like_patches(image: np.ndarray, noise: float, width: float, guide: np.ndarray | None = None) -> np.ndarray:
    """The average of surrounding pixels with similar patches: non-local means (Buades, Coll & Morel 2005).

    Patches are compared in `guide`, an estimate, or in the image itself less what its noise makes them differ by.
    """
    judged, excess = (image, 2 * noise**2) if guide is None else (guide, 0.0)
    height, breadth = image.shape
    around = np.pad(image, REACH, mode="symmetric")
    beside = np.pad(judged, REACH + PATCH // 2, mode="symmetric")
    rows, columns = slice(REACH, REACH + height), slice(REACH, REACH + breadth)
    # A pixel is like itself; others come in pairs, on opposite sides of the pixel, and are as like as each other.
    total, weight = image.copy(), np.ones(image.shape)
    for down in range(REACH + 1):
        for right in range(-REACH if down else 1, REACH + 1):
            last = beside.shape[1] - REACH + max(-right, 0)
            at = slice(REACH - down, len(beside) - REACH), slice(REACH - max(right, 0), last)
            apart = _patches((beside[at] - beside[_moved(at[0], down), _moved(at[1], right)]) ** 2)
            alike = np.exp(-np.maximum(apart - excess, 0) / (width * noise) ** 2)
            after = alike[down:, max(right, 0) :][:, :breadth]
            before = alike[:height, max(-right, 0) :][:, :breadth]
            total += after * around[_moved(rows, down), _moved(columns, right)]
            total += before * around[_moved(rows, -down), _moved(columns, -right)]
            weight += after
            weight += before
    return total / weight


def _moved(at: slice, by: int) -> slice:
    return slice(at.start + by, at.stop + by)


def _patches(image: np.ndarray) -> np.ndarray:
    """The mean of each patch that is inside of the image."""
    height, breadth = (size - PATCH + 1 for size in image.shape)
    rows = image[:height].copy()
    for k in range(1, PATCH):
        rows += image[k : k + height]
    found = rows[:, :breadth].copy()
    for k in range(1, PATCH):
        found += rows[:, k : k + breadth]
    return found / PATCH**2


def least_varying_line(image: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Through each pixel, the mean and the spread along that one of eight lines along which the image varies least."""
    means, spreads = [], []
    for angle in np.arange(8) * np.pi / 8:
        line = _line(length, angle)
        mean = convolve(image, line, mode="reflect")
        means.append(mean)
        spreads.append(convolve((image - image.mean()) ** 2, line, mode="reflect") - (mean - image.mean()) ** 2)
    least = np.argmin(spreads, axis=0)[None]
    mean, spread = (np.take_along_axis(np.array(each), least, axis=0)[0] for each in (means, spreads))
    return mean, np.sqrt(np.maximum(spread, 0))


def _line(length: int, angle: float) -> np.ndarray:
    """A line one pixel wide as weights (length, length)."""
    reach = length // 2
    down, right = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    weights = np.maximum(1 - np.abs(down * np.cos(angle) - right * np.sin(angle)), 0)
    weights *= np.hypot(down, right) <= reach + 0.5
    return weights / weights.sum()
