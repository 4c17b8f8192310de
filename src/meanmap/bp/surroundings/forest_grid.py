"""Beliefs about pixels from what surrounds them, learned from clean and noisy images."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.conditionals.trees import Trees
from meanmap.bp.kernel.images import read_images
from meanmap.bp.kernel.restored import Restored
from meanmap.core.errors import EmptyError, ShapeError
from meanmap.core.points import slices
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.types import Data, Seed
from meanmap.kernels.base import Kernel
from meanmap.learning.default import kernel_for

__all__ = ["FittedForestGrid", "ForestGrid"]

# Trees of the forest, and of those that choose how coarse it is on images that they have not seen.
TREES, CHOOSING = 24, 8
# At least so many pixels in a leaf; the larger where the held-out error is within two per cent.
LEAVES = (30, 200)
INDIFFERENCE = 0.02
# Pixels that are learned from, and that are left out at a time.
MOST_ROWS, MOST_JUDGED = 60_000, 20_000
FOLDS = 4
# Copies of each image from which rectangles are cut.
CUTS = 4
# Residuals are counted between so many quantiles of them; beliefs are read at as many levels and atoms.
EDGES, LEVELS, ATOMS = 64, 64, 256
# What trees have never seen may happen: so much of each belief is that of all residuals.
ANYTHING = 0.02
# Between these shares of an image's guesses, and of errors, lies what beliefs have to reach.
OUTERMOST = (0.002, 0.998)
AT_ONCE = 8192


class ForestGrid:
    """Each pixel's belief given what surrounds it, learned by a forest from clean and noisy images.

    p(x_i | noisy image) is read off directly: trees on the pixels around, averages of them, shrunken cosines and
    averages over patches that look alike find training pixels in like surroundings, and the errors that a first guess
    made there are the belief about its error here (a quantile regression forest, Meinshausen 2006). No messages are
    sent: surroundings of neighbours overlap, and messages were measured to count the same pixels again and again.

    Which first guess, and how coarse the trees are, is decided by images that are left out (bands of the image where
    there is one only). How far beliefs reach is corrected by the same images (Kuleshov, Fenner & Ermon 2018), for
    observed and for missing pixels apart: from all training images rectangles are cut, too. Reports say how often
    intervals of 90 % held images that had no part in their correction. Corrections allow for images that differ: on
    strokes with three kinds of noise, three images to learn from, intervals held .87 to .93 of the observed and .90 to
    .94 of the missing pixels of four new images, .79 to .97 in single ones. With two small images they held .78.

    `KernelGrid` is for noise that is known, relations that are of interest themselves, and images without clean ones
    beside noisy ones.

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

    def fit(self, images: Any, observed: Data, *, rng: Seed = None) -> "FittedForestGrid":
        """Learn from images, and from what is observed of them.

        Parameters
        ----------
        images : array (H, W), (B, H, W), or list of images of any sizes
            What is to be restored; NaN for missing pixels.
        observed : the same
            Noisy images, one for each of `images`; NaN where nothing was observed.
        rng : None, int, numpy.random.Generator or JAX key
            Places the cuts of trees and of rectangles.

        Notes
        -----
        Three images of 96 × 96 pixels take about twenty seconds of one processor.
        """
        clean, noisy = read_images(images, "images"), read_images(observed, "observed")
        if [image.shape for image in clean] != [image.shape for image in noisy]:
            raise ShapeError(
                f"observed has images of shapes {[i.shape for i in noisy]} and images {[i.shape for i in clean]}; "
                "expected one of the same shape for each."
            )
        generator = Rng.of(rng).generator
        rows = _Rows.of(clean, noisy, generator)
        base = int(np.argmin(np.mean((rows.levels - rows.truth[:, None]) ** 2, axis=0)))
        left = rows.truth - rows.levels[:, base]
        edges = np.unique(np.quantile(left, np.linspace(0, 1, EDGES)))
        if len(edges) < 2:
            edges = left.mean() + np.array([-0.5, 0.5]) * max(float(np.ptp(rows.truth)), 1.0) * 1e-6
        inputs = _about(rows.levels, rows.others, base)

        def judge(leaf: int, trees: int) -> tuple[float, np.ndarray]:
            return _judge(inputs, left, rows, edges, leaf, trees, generator)

        errors = [judge(leaf, CHOOSING)[0] for leaf in track(LEAVES, "choosing trees")]
        leaf = max(
            leaf for leaf, error in zip(LEAVES, errors, strict=True) if error <= (1 + INDIFFERENCE) * min(errors)
        )
        # As many trees as beliefs are read off: those of fewer are wider.
        _, levels = judge(leaf, TREES)
        forest = _Forest.fit(inputs, left, edges, TREES, leaf, generator)
        low, high = rows.truth.min(), rows.truth.max()
        atoms = np.linspace(low, high if high > low else low + 1, ATOMS)
        seen, unseen = _corrections(levels, rows)
        return FittedForestGrid(forest, base, seen, unseen, atoms, kernel_for(rows.truth[:1000]), _held(levels, rows))

    def __repr__(self) -> str:
        return "ForestGrid()"


@dataclass(frozen=True, eq=False)
class FittedForestGrid:
    """A `ForestGrid` that has learned, for images of any size.

    Attributes
    ----------
    base : int
        Which of the first guesses is corrected.
    seen, unseen : array (K,)
        The levels of a belief at which quantiles (k + 1/2) / K are found: of observed and of missing pixels.
    atoms : array (G,)
        Values that beliefs are about, unless an image is darker or brighter than all that were learned from.
    kernel : Kernel
        Of pixel values, for beliefs as embeddings.
    held : tuple of str
        How often intervals of 90 % held pixels of images that were left out; a note of each report.
    """

    forest: "_Forest"
    base: int
    seen: np.ndarray
    unseen: np.ndarray
    atoms: np.ndarray
    kernel: Kernel
    held: tuple[str, ...] = ()

    def restore(self, observed: Data) -> Restored:
        """Beliefs about all pixels of an image (H, W), or of a batch (B, H, W); NaN where nothing was observed."""
        images = read_images(observed, "observed")
        if len({image.shape for image in images}) > 1:
            raise ShapeError("observed holds images of different sizes: restore those of one size together.")
        read = [self._read(image) for image in images]
        atoms = self._atoms(np.concatenate([guess for _, guess in read]))
        parts = zip(images, read, strict=True)
        weights = [self._weights(image, *each, atoms) for image, each in track(list(parts), "restoring images")]
        report = Report("read off surroundings: no messages", True, 0, notes=self.held)
        variable = _Values(atoms[:, None], self.kernel)
        return Restored(variable, np.stack(weights, axis=1), images[0].shape, np.ndim(observed) == 3, report)

    def _read(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What trees ask about each pixel, and first guesses."""
        if np.isnan(image).all():
            raise EmptyError("nothing of the image was observed: every pixel is NaN.")
        levels, others = (part.reshape(image.size, -1) for part in _surroundings(image))
        return _about(levels, others, self.base), levels[:, self.base]

    def _atoms(self, guess: np.ndarray) -> np.ndarray:
        """Those of the images that were learned from, and beyond them where guesses go there, by what they may err."""
        ends = np.quantile(guess, OUTERMOST)
        errors = self.forest.edges[np.searchsorted(self.forest.overall, OUTERMOST)]
        low, high = self.atoms[[0, -1]]
        low, high = low if ends[0] >= low else ends[0] + errors[0], high if ends[1] <= high else ends[1] + errors[1]
        return np.linspace(low, high, len(self.atoms))

    def _weights(self, image: np.ndarray, inputs: np.ndarray, guess: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """Of the atoms at each pixel, (H W, G)."""
        missing = np.isnan(image).ravel()
        weights = np.zeros((image.size, len(atoms)), np.float32)
        for part in slices(image.size, AT_ONCE):
            below = self.forest.below(inputs[part])
            wanted = np.where(missing[part, None], self.unseen, self.seen)
            values = guess[part, None] + _inverse(below, self.forest.edges, wanted)
            weights[part] = _on_atoms(values, atoms)
        return weights

    def __repr__(self) -> str:
        return f"FittedForestGrid({len(self.forest.trees.roots)} trees, {len(self.forest.edges) - 1} bins of errors)"


@dataclass(frozen=True, eq=False)
class _Values:
    """What `Restored` asks of a variable."""

    atoms: np.ndarray
    kernel: Kernel


@dataclass(frozen=True, eq=False)
class _Rows:
    """Pixels to learn from: levels (m, a), others (m, b), the truth (m,), which fold each belongs to, and whether it
    was missing.
    """

    levels: np.ndarray
    others: np.ndarray
    truth: np.ndarray
    fold: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(cls, clean: list[np.ndarray], noisy: list[np.ndarray], generator: np.random.Generator) -> "_Rows":
        """Of each image as it is and with rectangles cut out, and more missing pixels of further such cuts: rectangles
        hold a twentieth of an image, and errors in one are much alike.
        """
        parts: list[tuple[np.ndarray, ...]] = []
        for number, (truth, image) in enumerate(zip(clean, noisy, strict=True)):
            bands = (
                np.arange(len(image)) * FOLDS // len(image) if len(clean) == 1 else np.full(len(image), number % FOLDS)
            )
            fold = np.broadcast_to(bands[:, None], image.shape)
            for cut in range(1 + CUTS):
                seen = _cut(image, generator) if cut else image
                if np.isnan(seen).all():
                    continue
                levels, others = _surroundings(seen)
                there = ~np.isnan(truth) & (np.isnan(seen) | (cut < 2))
                parts.append((levels[there], others[there], truth[there], fold[there], np.isnan(seen)[there]))
        if not sum(len(part[2]) for part in parts):
            raise EmptyError("no pixel of images has a value where something was observed: nothing can be learned.")
        joined = [np.concatenate(side) for side in zip(*parts, strict=True)]
        chosen = generator.permutation(len(joined[2]))[:MOST_ROWS]
        return cls(*(each[chosen] for each in joined))


def _surroundings(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Trees and other fields need not wait for SciPy's filters.
    from meanmap.bp.surroundings.features import surroundings

    return surroundings(image)


def _cut(image: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """With three rectangles missing, of up to a quarter of each side."""
    cut = image.copy()
    for _ in range(3):
        sides = [int(generator.integers(1, max(size // 4, 1) + 1)) for size in image.shape]
        down, right = (int(generator.integers(size - side + 1)) for size, side in zip(image.shape, sides, strict=True))
        cut[down : down + sides[0], right : right + sides[1]] = np.nan
    return cut


def _about(levels: np.ndarray, others: np.ndarray, base: int) -> np.ndarray:
    """What trees ask: levels as they differ from the first guess, and that guess."""
    guess = levels[:, base]
    differences = levels - guess[:, None]
    differences[:, base] = guess
    return np.concatenate([differences, others], axis=1)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees with the share of errors below each edge in each leaf, (nodes, E), and among all."""

    trees: Trees
    edges: np.ndarray
    shares: np.ndarray
    overall: np.ndarray

    @classmethod
    def fit(
        cls, inputs: np.ndarray, left: np.ndarray, edges: np.ndarray, count: int, leaf: int, rng: np.random.Generator
    ) -> "_Forest":
        trees = Trees.fit(inputs, left, count, leaf, int(rng.integers(2**32)))
        place = np.clip(np.searchsorted(edges, left, side="right"), 1, len(edges) - 1)
        counts = np.zeros((trees.nodes, len(edges)))
        for nodes in trees.leaves(inputs).T:
            np.add.at(counts, (nodes, place), 1.0)
        shares = np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        overall = np.cumsum(np.bincount(place, minlength=len(edges))) / len(place)
        return cls(trees, edges, shares.astype(np.float32), overall)

    def below(self, inputs: np.ndarray) -> np.ndarray:
        """The probability that the error lies below each edge, (n, E)."""
        leaves = self.trees.leaves(inputs)
        share = sum(self.shares[nodes] for nodes in leaves.T) / leaves.shape[1]
        return (1 - ANYTHING) * share + ANYTHING * self.overall


def _judge(
    inputs: np.ndarray,
    left: np.ndarray,
    rows: _Rows,
    edges: np.ndarray,
    leaf: int,
    trees: int,
    generator: np.random.Generator,
) -> tuple[float, np.ndarray]:
    """The mean squared error of errors in images that were left out, and the probability below each true one, NaN where
    it was not judged.
    """
    levels, squares, count = np.full(len(left), np.nan), 0.0, 0
    for fold in np.unique(rows.fold):
        kept, out = np.flatnonzero(rows.fold != fold)[: MOST_ROWS // 2], np.flatnonzero(rows.fold == fold)[:MOST_JUDGED]
        if len(kept) == 0:  # a single row of pixels
            kept = out
        below = _Forest.fit(inputs[kept], left[kept], edges, trees, leaf, generator).below(inputs[out])
        middle = (edges[1:] + edges[:-1]) / 2
        squares += float(np.sum((np.diff(below, axis=1) @ middle - left[out]) ** 2))
        count += len(out)
        levels[out] = _at(below, edges, left[out])
    return squares / count, levels


def _corrections(levels: np.ndarray, rows: _Rows) -> tuple[np.ndarray, np.ndarray]:
    """At which levels of beliefs about observed and missing pixels the quantiles (k + 1/2) / K of the truth were."""
    wanted = (np.arange(LEVELS) + 0.5) / LEVELS
    known = ~np.isnan(levels)
    parts = [which if which.any() else known for which in (known & ~rows.missing, known & rows.missing)]
    seen, unseen = (_correction(levels[which], rows.fold[which], wanted) for which in parts)
    return seen, unseen


def _correction(levels: np.ndarray, fold: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The levels at which the truth's quantiles `wanted` are to be found in an image that has no part in this.

    Images differ more than pixels: what K of them say about their own pixels is too sure for another. By how much K − 1
    are too sure for the one that is left out is measured, and for K it is (K − 1) / K of that: it falls as 1 / K.
    """
    parts = np.unique(fold)
    if len(parts) > 1:
        others = [np.sort(levels[fold != part]) for part in parts]
        places = [np.searchsorted(o, levels[fold == part]) / len(o) for o, part in zip(others, parts, strict=True)]
        wanted = wanted + (1 - 1 / len(parts)) * (np.quantile(np.concatenate(places), wanted) - wanted)
    return np.quantile(levels, wanted)


def _held(levels: np.ndarray, rows: _Rows) -> tuple[str, ...]:
    """How often intervals of 90 % hold, corrected by the other images that were left out; in words."""
    told, ends = [], np.array([0.05, 0.95])
    for name, which in (("observed", ~rows.missing), ("missing", rows.missing)):
        shares = []
        for fold in np.unique(rows.fold):
            here, others = (which & ~np.isnan(levels) & each for each in (rows.fold == fold, rows.fold != fold))
            if here.any() and others.any():
                low, high = _correction(levels[others], rows.fold[others], ends)
                shares.append(np.mean((low <= levels[here]) & (levels[here] <= high)))
        if shares:
            told.append(
                f"intervals of 90 % held {np.mean(shares):.2f} of {name} pixels in what was left out, "
                f"{min(shares):.2f} to {max(shares):.2f} in each of {len(shares)} parts."
            )
    return tuple(told)


def _at(below: np.ndarray, edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The probability below a value of each row, linear between edges."""
    values = np.clip(values, edges[0], edges[-1])
    right = np.clip(np.searchsorted(edges, values, side="right"), 1, len(edges) - 1)
    rows = np.arange(len(values))
    share = (values - edges[right - 1]) / (edges[right] - edges[right - 1])
    return below[rows, right - 1] + share * (below[rows, right] - below[rows, right - 1])


def _inverse(below: np.ndarray, edges: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The values up to which the probabilities `levels` (n, K) lie, linear between edges."""
    right = np.stack([np.count_nonzero(below < level[:, None], axis=1) for level in levels.T], axis=1)
    right = np.clip(right, 1, len(edges) - 1)
    low, high = (np.take_along_axis(below, at, axis=1) for at in (right - 1, right))
    share = np.clip((levels - low) / np.maximum(high - low, 1e-12), 0, 1)
    return edges[right - 1] + share * (edges[right] - edges[right - 1])


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
