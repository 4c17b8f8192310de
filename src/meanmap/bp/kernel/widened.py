"""The widths of beliefs about pixels, recalibrated on held-out images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from meanmap.core.points import slices, spread_rows
from meanmap.kernels.base import Kernel

__all__ = ["FOLDS", "LEAST_PIXELS", "Array", "Judged", "Widening", "left_out_parts"]

# Images are left out in this many folds; of a single one, strips of columns.
FOLDS = 4
# With fewer held-out pixels a correction is unreliable.
LEAST_PIXELS = 1000
# Of each image up to this many pixels are restored, whole columns side by side, and up to this many of each kind
# judged.
MOST_RESTORED, MOST_JUDGED = 10_000, 2000
# Beliefs that are about as sure are corrected together: at least this many judged pixels, at most this many groups.
LEAST_ALIKE, MOST_GROUPS = 500, 8
# By how much beliefs are widened: not at all, or by normal distributions between these shares of the range of values.
WIDTHS = np.concatenate([[0.0], np.geomspace(1 / 512, 1 / 2, 20)])
# Rounds in which shares of widths are found (expectation maximisation), which start alike; it climbs slowly at the end.
ROUNDS = 100
# Values that a belief may take: where pixels have fewer, an even grid beside them; and this many beyond each end.
FEW_VALUES, EVEN, BEYOND = 128, 256, 16
# Pixels whose beliefs are widened at once: they stay in a core's cache.
AT_ONCE = 512
INTERVAL = (0.05, 0.95)


@dataclass(frozen=True, eq=False)
class Array:
    """The interface of variables that `Restored` needs."""

    atoms: np.ndarray
    kernel: Kernel


@dataclass(frozen=True, eq=False)
class Judged:
    """Pixels of an image that was left out: weights (n, G) of `atoms` (G,), the truth (n,), and which were missing."""

    atoms: np.ndarray
    weights: np.ndarray
    truth: np.ndarray
    missing: np.ndarray


@dataclass(frozen=True, eq=False)
class _Groups:
    """Shares (groups, widths) of widths in beliefs whose deviations lie between `bounds`, and what intervals held."""

    bounds: np.ndarray
    shares: np.ndarray
    held: np.ndarray


@dataclass(frozen=True, eq=False)
class Widening:
    """A belief becomes a mixture of itself and of itself widened by normal distributions, of several widths.

    The shares of widths are those of greatest likelihood for pixels of images that were left out, apart for pixels that
    were observed and for missing ones, and for beliefs that are about as sure of themselves. `span` is the range of
    values that was learned from.
    """

    span: tuple[float, float]
    seen: _Groups
    unseen: _Groups | None

    @classmethod
    def fit(cls, parts: Sequence[Judged], span: tuple[float, float]) -> "Widening":
        """Fit to held-out parts."""
        kinds = []
        for missing in (False, True):
            chosen = [_some(part, part.missing == missing) for part in parts]
            kinds.append(_grouped([part for part in chosen if len(part.truth)], span))
        return cls(span, kinds[0], kinds[1])

    def points(self, atoms: np.ndarray) -> np.ndarray:
        """The values (G',) of widened beliefs, sorted."""
        return _points(atoms, self.span)

    def __call__(self, weights: np.ndarray, atoms: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Weights (n, B, G') of `points`, from weights (n, B, G) of atoms; `missing` (n, B) was not observed."""
        points = self.points(atoms)
        spread = _spread(atoms, points, self.span)
        found = np.empty((*weights.shape[:2], len(points)), weights.dtype)
        for kind, groups in ((False, self.seen), (True, self.unseen or self.seen)):
            tables = np.tensordot(groups.shares, spread, axes=1).astype(weights.dtype)
            for part in slices(len(weights), AT_ONCE):
                here = np.nonzero(missing[part] == kind)
                some = weights[part][here]
                which = np.searchsorted(groups.bounds, _deviations(some, atoms))
                for group in np.unique(which):
                    rows = which == group
                    found[part][here[0][rows], here[1][rows]] = some[rows] @ tables[group]
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the coverage of 90% intervals in held-out images."""
        return tuple(
            f"90% intervals covered {groups.held.mean():.2f} of {name} pixels in held-out images, "
            f"{groups.held.min():.2f} to {groups.held.max():.2f} in each of {len(groups.held)} parts."
            for name, groups in (("observed", self.seen), ("missing", self.unseen))
            if groups is not None and len(groups.held)
        )


def left_out_parts(
    images: list[np.ndarray],
    features: list[np.ndarray],
    restore: Callable[[list[Any], list[Any], np.ndarray], tuple[np.ndarray, np.ndarray]],
    generator: np.random.Generator,
) -> list[Judged]:
    """Restore each held-out part by a model learned from the others, `restore(images, features, another)`.

    It returns atoms (G,) and weights (n, G). Three rectangles are cut out of each image, so that there are also missing
    pixels.
    """
    if len(images) == 1:
        cuts = np.linspace(0, images[0].shape[1], FOLDS + 1).astype(int)
        images, features = (
            [np.ascontiguousarray(side[0][:, a:b]) for a, b in pairwise(cuts)] for side in (images, features)
        )
    fold, parts = np.arange(len(images)) % FOLDS, []
    for number in np.unique(fold):
        kept = np.flatnonzero(fold != number)
        for out in np.flatnonzero(fold == number)[:2]:
            columns = max(MOST_RESTORED // len(images[out]), 1)
            start = int(generator.integers(max(images[out].shape[1] - columns, 0) + 1))
            truth, another = (side[out][:, start : start + columns] for side in (images, features))
            another = with_holes(another, generator)
            atoms, weights = restore([images[i] for i in kept], [features[i] for i in kept], another)
            missing = np.asarray(np.isnan(another.reshape(truth.size, -1)).any(axis=1))
            known = np.flatnonzero(~np.isnan(truth.ravel()))
            parts.append(Judged(atoms, weights[known], truth.ravel()[known], missing[known]))
    return parts


def with_holes(image: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The image with three missing rectangles of up to a quarter of each side."""
    cut = image.copy()
    for _ in range(3):
        sides = [int(generator.integers(1, max(size // 4, 1) + 1)) for size in image.shape[:2]]
        down, right = (int(generator.integers(n - side + 1)) for n, side in zip(image.shape, sides, strict=False))
        cut[down : down + sides[0], right : right + sides[1]] = np.nan
    return cut


def _some(part: Judged, which: np.ndarray) -> Judged:
    chosen = np.flatnonzero(which)
    chosen = chosen[spread_rows(len(chosen), MOST_JUDGED)] if len(chosen) else chosen
    return Judged(part.atoms, part.weights[chosen], part.truth[chosen], part.missing[chosen])


def _grouped(parts: list[Judged], span: tuple[float, float]) -> Any:
    """Shares by all parts, and what intervals by all other parts hold of each."""
    if not parts:
        return None
    deviations = [_deviations(part.weights, part.atoms) for part in parts]
    chances = [_chances(part, span) for part in parts]
    every = np.concatenate(deviations)
    groups = int(np.clip(len(every) // LEAST_ALIKE, 1, MOST_GROUPS))
    bounds = np.unique(np.quantile(every, np.arange(1, groups) / groups))

    def shares(chosen: list[int]) -> np.ndarray:
        which = np.searchsorted(bounds, np.concatenate([deviations[i] for i in chosen]))
        likely = np.concatenate([chances[i] for i in chosen])
        return np.stack([_shares(likely[which == group]) for group in range(len(bounds) + 1)])

    held = []
    for i, part in enumerate(parts if len(parts) > 1 else []):
        found = _Groups(bounds, shares([j for j in range(len(parts)) if j != i]), np.zeros(0))
        widened = Widening(span, found, None)
        points = widened.points(part.atoms)
        rising = np.cumsum(
            widened(part.weights[:, None], part.atoms, np.zeros((len(part.truth), 1), bool))[:, 0], axis=1
        )
        low, high = (points[np.argmax(rising >= q * rising[:, -1:], axis=1)] for q in INTERVAL)
        held.append(np.mean((low <= part.truth) & (part.truth <= high)))
    return _Groups(bounds, shares(list(range(len(parts)))), np.array(held))


def _shares(chances: np.ndarray) -> np.ndarray:
    """Shares of widths of greatest likelihood, from how probable each makes the truth, (n, widths)."""
    shares = np.full(len(WIDTHS), 1 / len(WIDTHS))
    chances = chances + 1e-12 * chances.max(initial=1e-300)
    for _ in range(ROUNDS if len(chances) else 0):
        mine = chances * shares
        shares = np.mean(mine / mine.sum(axis=1, keepdims=True), axis=0)
    return shares


def _chances(part: Judged, span: tuple[float, float]) -> np.ndarray:
    """The mass of each widened belief within half a step of an even grid around the truth, (n, widths)."""
    from scipy.special import ndtr

    half = (span[1] - span[0]) / EVEN / 2
    away = part.truth[:, None] - part.atoms
    found = np.empty((len(away), len(WIDTHS)))
    for k, width in enumerate(WIDTHS * (span[1] - span[0])):
        near = np.abs(away) <= half if width == 0 else ndtr((away + half) / width) - ndtr((away - half) / width)
        found[:, k] = np.sum(part.weights * near, axis=1)
    return found


def _points(atoms: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Atoms, an even grid where they are few, and values beyond both ends."""
    low, high = span
    inside = np.linspace(low, high, EVEN) if len(np.unique(atoms)) < FEW_VALUES else np.zeros(0)
    beyond = (high - low) / 4 * np.arange(1, BEYOND + 1) / BEYOND
    return np.unique(np.concatenate([atoms, inside, low - beyond, high + beyond]))


def _spread(atoms: np.ndarray, points: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """The widened distribution of each atom for each width, (widths, G, G')."""
    from scipy.special import ndtr

    ends = (points[1:] + points[:-1]) / 2
    tables = np.zeros((len(WIDTHS), len(atoms), len(points)))
    tables[0, np.arange(len(atoms)), np.searchsorted(points, atoms)] = 1.0
    for table, width in zip(tables[1:], WIDTHS[1:] * (span[1] - span[0]), strict=True):
        below = ndtr((ends - atoms[:, None]) / width)
        table[:] = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return tables


def _deviations(weights: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Standard deviations of beliefs (n, G)."""
    mean = weights @ atoms
    return np.sqrt(np.maximum(weights @ atoms**2 - mean**2, 0.0))
