"""Beliefs about pixels from their surroundings, learned from clean and noisy images."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from meanmap.bp.kernel.images import read_images
from meanmap.bp.kernel.restored import Restored
from meanmap.bp.kernel.widened import with_holes
from meanmap.bp.surroundings.even_noise import EvenNoise
from meanmap.bp.surroundings.reader import Reader, Rows
from meanmap.core.errors import EmptyError, ShapeError
from meanmap.core.language import in_digits
from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.types import Data, Seed
from meanmap.kernels.base import Kernel
from meanmap.learning.default import kernel_for

__all__ = ["FittedForestGrid", "ForestGrid"]

# Pixels of each kind that are learned from, observed and missing.
MOST_ROWS = 60_000
# At least this many of each kind in a leaf. Errors in one hole are much alike.
LEAVES = (15, 50)
FOLDS = 4
# The number of times that rectangles are cut from a copy of each image.
CUTS = 4
# A note mentions noise that seems to be less or more than this many times that of the images learned from: texture
# makes noise seem larger, and plain shadows smaller (.46 to 1.3 in photographs).
SAME_NOISE = (1 / 3, 2.0)
# Less than this share of the range of pixels is rounding: wild pixels between smooth ones seem to be no noise.
NO_NOISE = 1e-6
# The number of times that the holes of an image are moved to observed pixels.
MOVES = 4
ATOMS = 256
AT_ONCE = 8192


class ForestGrid:
    """Each pixel's belief given its surroundings, learned by a forest from clean and noisy images.

    p(x_i | noisy image) is estimated directly. A pixel's surroundings are averages around it, shrunken cosines, and
    averages over similar patches; the first guess is the weighted sum of these that fits best. Trees find training
    pixels with similar surroundings, and the errors of the guess at these are the belief about its error here (a
    quantile regression forest, Meinshausen 2006). No messages are sent: surroundings of neighbours overlap, and in
    measurements messages counted the same pixels repeatedly.

    Observed and missing pixels have separate forests: for the latter, rectangles are cut from all training images. The
    width of beliefs is calibrated on held-out images, bands of the image if there is only one (Kuleshov, Fenner & Ermon
    2018), and more so where they differ. Reports say how often 90% intervals covered images that were not used for
    calibration. Trees ignore the brightness of a pixel: from three images they would learn that of plain parts and be
    overconfident about a fourth. Beliefs about missing pixels are corrected for each image: its holes are moved to
    where it was observed, and the pixels there are compared with beliefs that do not use them. The coverage on new
    images is on the page of benchmarks.

    Noise that grows with brightness, such as that of photons, is stabilised first: all of this is on a scale learned
    from the pairs. The noise level is also learned from them, not estimated from new images, where texture is easily
    mistaken for noise. Images with a different noise level from the training images need a separate model; reports name
    images whose noise seems to differ.

    Use `KernelGrid` if the noise is known, if relations are of interest in themselves, or if there are noisy images
    only.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> down, right = np.mgrid[:40, :40]
    >>> clean = 200.0 * ((down // 8 + right // 8) % 2)
    >>> noisy = clean + 30 * rng.standard_t(3, size=clean.shape)
    >>> model = ForestGrid().fit(clean, noisy, rng=0)
    >>> restored = model.restore(clean + 30 * rng.standard_t(3, size=clean.shape))
    >>> bool(np.sqrt(np.mean((restored.mean() - clean) ** 2)) < 20)
    True
    """

    def fit(self, images: object, observed: Data, *, rng: Seed = None) -> "FittedForestGrid":
        """Learn from images, and from what is observed of them.

        Parameters
        ----------
        images : array (H, W), (B, H, W), or list of images of any sizes
            The images to be restored; NaN for missing pixels.
        observed : the same
            Noisy images, one for each of `images`; NaN where nothing was observed.
        rng : None, int, numpy.random.Generator or JAX key
            Draws the splits of trees and the rectangles.

        Notes
        -----
        Three images of 96 × 96 pixels take about two seconds of one processor.
        """
        clean, noisy = read_images(images, "images"), read_images(observed, "observed")
        if [image.shape for image in clean] != [image.shape for image in noisy]:
            raise ShapeError(
                f"observed has images of shapes {[i.shape for i in noisy]} and images {[i.shape for i in clean]}; "
                "expected one of the same shape for each."
            )
        generator = Rng.of(rng).generator
        scale = EvenNoise.of(clean, noisy)
        if scale is not None:
            clean = [scale.stretch_clean(image) for image in clean]
            noisy = [scale.stretch(image) for image in noisy]
        noise = _features().noise_alone(clean, noisy)
        seems = [_features().noise_of(image) for image in noisy]
        seems = None if noise is None else (min(noise[0], *seems), max(noise[0], *seems))
        kinds = _rows(clean, noisy, noise, generator)
        readers = [Reader.fit(rows, generator) for rows in kinds]
        truth = np.concatenate([rows.truth for rows in kinds])
        low, high = truth.min(), truth.max()
        atoms = np.linspace(low, high if high > low else low + 1, ATOMS)
        # Where there are pixels of one kind only, they say what there is to say about the other.
        some = kinds[0].truth[:1000]
        kernel = kernel_for(some if scale is None else scale.back(some))
        return FittedForestGrid(readers[0], readers[-1], atoms, kernel, scale, noise, seems)

    def __repr__(self) -> str:
        return "ForestGrid()"


@dataclass(frozen=True, eq=False)
class FittedForestGrid:
    """A fitted `ForestGrid`, for images of any size.

    Attributes
    ----------
    seen, unseen : Reader
        Of observed and of missing pixels.
    atoms : array (G,)
        Values that beliefs are about, unless an image is darker or brighter than all that were learned from.
    kernel : Kernel
        Of pixel values, for beliefs as embeddings.
    scale : EvenNoise or None
        Readers and atoms are on this scale, in which noise is even; None if it is so already.
    noise : pair of numbers, or None
        The deviation of noise on that scale, with wild pixels pulled in and with all; None to estimate it anew from
        each image, where no pixel that was learned from was both seen and known.
    seems : pair of numbers, or None
        The least and the most noise that the training images had, or seemed to have.
    """

    seen: Reader
    unseen: Reader
    atoms: np.ndarray
    kernel: Kernel
    scale: EvenNoise | None
    noise: tuple[float, float] | None
    seems: tuple[float, float] | None = None

    def restore(self, observed: Any) -> Restored:
        """Beliefs about all pixels of an image (H, W), or of a batch (B, H, W); NaN where nothing was observed.

        An image of 96 × 96 pixels takes about a fifth of a second of one processor, and up to a second with missing
        pixels.
        """
        images = read_images(observed, "observed")
        if len({image.shape for image in images}) > 1:
            raise ShapeError("observed holds images of different sizes: restore those of one size together.")
        images = images if self.scale is None else [self.scale.stretch(image) for image in images]
        read = [self._read(image) for image in images]
        atoms = self._atoms([part for parts in read for part in parts])
        weights = [_weights(parts, images[0].size, atoms) for parts in track(read, "restoring images")]
        report = Report(
            "predicted from surroundings: no messages", True, 0, notes=self._held() + self._other_noise(images)
        )
        atoms = atoms if self.scale is None else self.scale.back(atoms)
        variable = _Values(atoms[:, None], self.kernel)
        return Restored(variable, np.stack(weights, axis=1), images[0].shape, np.ndim(observed) == 3, report)

    def _read(self, image: np.ndarray) -> list["_Part"]:
        """The surroundings of the observed and the missing pixels."""
        missing = np.isnan(image).ravel()
        if missing.all():
            raise EmptyError("nothing of the image was observed: every pixel is NaN.")
        levels, others = (part.reshape(image.size, -1) for part in _features().surroundings(image, self.noise))
        pixels = np.flatnonzero(~missing)
        seen = _Part(self.seen, pixels, levels[pixels], others[pixels], self.seen.corrected)
        if not missing.any():
            return [seen]
        pixels = np.flatnonzero(missing)
        return [seen, _Part(self.unseen, pixels, levels[pixels], others[pixels], self._corrected(image, seen))]

    def _corrected(self, image: np.ndarray, seen: "_Part") -> np.ndarray:
        """The levels of beliefs about missing pixels of this image, by what lies where its holes are moved to.

        There, draws from beliefs about what was observed stand for the truth. Where moved holes would leave less than
        half of what was observed, what was learned has to do.
        """
        hole, generator, found = np.isnan(image), np.random.default_rng(0), []
        for _ in range(MOVES):
            moved = np.roll(hole, generator.integers(image.shape), (0, 1)) & ~hole
            if not 0 < 2 * np.count_nonzero(moved) < np.count_nonzero(~hole):
                continue
            levels, others = (
                part[moved] for part in _features().surroundings(np.where(moved, np.nan, image), self.noise)
            )
            rows = np.searchsorted(seen.pixels, np.flatnonzero(moved))
            values = seen.reader.values(seen.levels[rows], seen.others[rows])
            drawn = values[np.arange(len(rows)), generator.integers(values.shape[1], size=len(rows))]
            found.append(self.unseen.levels_of(drawn, levels, others))
        return self.unseen.corrected_by(np.concatenate(found)) if found else self.unseen.corrected

    def _atoms(self, parts: list["_Part"]) -> np.ndarray:
        """The atoms of the training images, extended if guesses lie outside, by the range of their errors."""
        low, high = self.atoms[[0, -1]]
        for part in parts:
            guesses, errors = part.reader.ends(part.levels)
            low = min(low, guesses[0] + errors[0]) if guesses[0] < self.atoms[0] else low
            high = max(high, guesses[1] + errors[1]) if guesses[1] > self.atoms[-1] else high
        return np.linspace(low, high, len(self.atoms))

    def _held(self) -> tuple[str, ...]:
        """Notes on the coverage of 90% intervals in held-out images."""
        return tuple(
            f"90% intervals covered {reader.held.mean():.2f} of {name} pixels in held-out images, "
            f"{reader.held.min():.2f} to {reader.held.max():.2f} in each of {len(reader.held)} parts."
            for name, reader in (("observed", self.seen), ("missing", self.unseen))
            if len(reader.held)
        )

    def _other_noise(self, images: list[np.ndarray]) -> tuple[str, ...]:
        """Notes on images that seem to have much more or less noise than the training images."""
        if self.seems is None or self.seems[1] < NO_NOISE * np.ptp(self.atoms):
            return ()
        found = np.array([_features().noise_of(image) for image in images])
        ratios = found / np.clip(found, *self.seems)
        return tuple(
            f"image {number} seems to have {in_digits(ratio)} times the noise of the training images: its restoration "
            f"may be wrong. Train on pairs with similar noise."
            for number, ratio in enumerate(ratios)
            if not SAME_NOISE[0] < ratio < SAME_NOISE[1]
        )

    def __repr__(self) -> str:
        count, bins = len(self.seen.forest.trees.roots), len(self.seen.forest.edges) - 1
        return f"FittedForestGrid({count} trees, {bins} bins of errors)"


@dataclass(frozen=True, eq=False)
class _Part:
    """Pixels of one kind, with their surroundings, levels, and reader."""

    reader: Reader
    pixels: np.ndarray
    levels: np.ndarray
    others: np.ndarray
    corrected: np.ndarray


def _weights(parts: list[_Part], size: int, atoms: np.ndarray) -> np.ndarray:
    """Weights of the atoms at each pixel, (H W, G)."""
    weights = np.zeros((size, len(atoms)), np.float32)
    for part in parts:
        for few in slices(len(part.pixels), AT_ONCE):
            values = part.reader.values(part.levels[few], part.others[few], part.corrected)
            weights[part.pixels[few]] = _on_atoms(values, atoms)
    return weights


@dataclass(frozen=True, eq=False)
class _Values:
    """The interface of a variable that `Restored` needs."""

    atoms: np.ndarray
    kernel: Kernel


def _rows(
    clean: list[np.ndarray],
    noisy: list[np.ndarray],
    noise: tuple[float, float] | None,
    generator: np.random.Generator,
) -> list[Rows]:
    """Observed and missing pixels of each image, and missing ones of a copy with twelve rectangles cut out. A kind
    without any pixel is left out.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    for number, (truth, image) in enumerate(zip(clean, noisy, strict=True)):
        bands = np.arange(len(image)) * FOLDS // len(image) if len(clean) == 1 else np.full(len(image), number % FOLDS)
        fold = np.broadcast_to(bands[:, None], image.shape)
        holed = image
        for _ in range(CUTS):
            holed = with_holes(holed, generator)
        for cut, seen in enumerate((image, holed)):
            if np.isnan(seen).all():
                continue
            levels, others = _features().surroundings(seen, noise)
            there = ~np.isnan(truth) & (np.isnan(seen) & ~np.isnan(image) if cut else True)
            parts.append((levels[there], others[there], truth[there], fold[there], np.isnan(seen)[there]))
    if not sum(len(part[2]) for part in parts):
        raise EmptyError("no pixel of images has a value where something was observed: nothing can be learned.")
    *columns, missing = (np.concatenate(side) for side in zip(*parts, strict=True))
    kinds = (generator.permutation(np.flatnonzero(which))[:MOST_ROWS] for which in (~missing, missing))
    return [
        Rows(*(column[chosen] for column in columns), leaf=leaf)
        for chosen, leaf in zip(kinds, LEAVES, strict=True)
        if len(chosen)
    ]


def _features() -> ModuleType:
    # Trees and other fields need not wait for SciPy's filters.
    from meanmap.bp.surroundings import features

    return features


def _on_atoms(values: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Equally likely values (n, K) as weights of atoms (n, G) with the same mean, within the ends."""
    place = np.clip((values - atoms[0]) / (atoms[1] - atoms[0]), 0, len(atoms) - 1)
    left = np.minimum(place.astype(np.int64), len(atoms) - 2)
    share = place - left
    rows = np.arange(len(values))[:, None] * len(atoms)
    size = len(values) * len(atoms)
    found = np.bincount((rows + left).ravel(), (1 - share).ravel(), size)
    found += np.bincount((rows + left + 1).ravel(), share.ravel(), size)
    return found.reshape(len(values), -1) / values.shape[1]
