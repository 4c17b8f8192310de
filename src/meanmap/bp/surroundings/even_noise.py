"""Variance-stabilising scales of brightness, on which dark and light parts have about the same noise."""

from dataclasses import dataclass

import numpy as np

__all__ = ["EvenNoise"]

# Bins of brightness in which noise is measured, and points between which the scale is linear.
BINS, POINTS = 16, 1024
# The scale is changed where the noise of the lightest twentieth is this many times that of the darkest, or the reverse,
# and where its size goes with brightness by this many standard errors.
UNEVEN, SURE = 1.3, 4
# The variance is never taken to be less than this share of what it is on average.
LEAST_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class EvenNoise:
    """A scale of brightness: `values` (P,) become `stretched` (P,), with straight lines between and beyond.

    The mean of stretched noise is what a pixel darker by `shift` is stretched to: clean images are moved by it.
    """

    values: np.ndarray
    stretched: np.ndarray
    shift: float

    @classmethod
    def of(cls, clean: list[np.ndarray], noisy: list[np.ndarray]) -> "EvenNoise | None":
        """Learned from pairs of images; None if noise does not appear to depend on brightness.

        The variance is a line in brightness, a + b x, as that of photons with the noise of a sensor. The scale is the
        integral f of 1 / √(a + b (x + 3 b / 8)), Anscombe's (1948) for b = 1 and a = 0. The mean of f
        is about f(x - b / 4), from its second derivative.
        """
        truth, seen = (np.concatenate([image.ravel() for image in images]) for images in (clean, noisy))
        known = ~np.isnan(truth) & ~np.isnan(seen)
        truth, seen = truth[known], seen[known]
        size = np.abs(seen - truth)
        if not len(truth) or np.ptp(truth) == 0 or np.ptp(size) == 0:
            return None
        place = ((truth - truth.min()) / np.ptp(truth) * (BINS - 1e-6)).astype(int)
        count = np.bincount(place, minlength=BINS)
        middle, mean = (np.bincount(place, each, BINS) / np.maximum(count, 1) for each in (truth, size))
        slope, start = np.polyfit(middle, mean**2 * np.pi / 2, 1, w=np.sqrt(count))
        average = start + slope * truth.mean()
        least = LEAST_SHARE * max(average, 0.0)
        dark, light = np.maximum(start + slope * np.quantile(truth, [0.05, 0.95]), least)
        sure = abs(np.corrcoef(truth, size)[0, 1]) * np.sqrt(len(truth)) > SURE
        if not (sure and max(dark, light) > UNEVEN**2 * min(dark, light) > 0):
            return None
        values = np.linspace(seen.min(), seen.max(), POINTS)
        deviation = np.sqrt(np.maximum(start + slope * (values + 0.375 * slope), least))
        steps = 2 * np.diff(values) / (deviation[1:] + deviation[:-1])
        return cls(values, np.sqrt(average) * np.concatenate([[0], np.cumsum(steps)]), slope / 4)

    def stretch(self, noisy: np.ndarray) -> np.ndarray:
        """Noisy images on the scale of even noise."""
        return _between(noisy, self.values, self.stretched)

    def stretch_clean(self, clean: np.ndarray) -> np.ndarray:
        """The mean of noise on that scale."""
        return self.stretch(clean - self.shift)

    def back(self, clean: np.ndarray) -> np.ndarray:
        """The brightness of clean images again."""
        return _between(clean, self.stretched, self.values) + self.shift


def _between(x: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Linear between places, and beyond them as between the last two."""
    left = np.clip(np.searchsorted(places, x) - 1, 0, len(places) - 2)
    share = (x - places[left]) / (places[left + 1] - places[left])
    return values[left] + share * (values[left + 1] - values[left])
