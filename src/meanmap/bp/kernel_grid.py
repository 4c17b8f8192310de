"""Images as random fields: learn from clean and noisy ones, restore others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.bp.field_evidence import Evidence, Observed
from meanmap.bp.images import band_of, neighbour_pairs, read_images
from meanmap.bp.kernel_field import DAMPING, FLOOR, FittedKernelField, KernelField
from meanmap.bp.observations import CentredLikelihood, Likelihood, NoiseLikelihood, read_likelihood
from meanmap.bp.updates import Update
from meanmap.core.arrays import as_array, parameter
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, ParameterError, ShapeError
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.embeddings.points import PointEmbedding
from meanmap.graphs import DIRECTIONS, grid
from meanmap.kernels.base import Kernel

__all__ = ["FittedKernelGrid", "KernelGrid", "Restored"]

# Pairs beyond so many for each relation change nothing that can be seen; fitting stays within seconds.
MOST_PAIRS = 100_000


class KernelGrid:
    """A random field on pixels, whose relations are learned from images.

    Parameters
    ----------
    neighbours : 4 or 8
        Above, below and at both sides, or along the diagonals, too: these close many short cycles, and what goes round
        them is counted again, so that images were restored less well than with 4.
    directions : bool
        Whether pixels are related differently along each direction, and each way; otherwise all neighbours are alike.
    bands : int
        Horizontal bands of the image with relations of their own: its height for one for each row.
    kernel : Kernel, optional
        Of pixel values; by default RBF with a cross-validated lengthscale.
    ridge, update
        As of `KernelField`.

    Examples
    --------
    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> down, right = np.mgrid[:30, :30]
    >>> clean = 5.0 * (down + right)
    >>> noisy = clean + 30 * rng.normal(size=clean.shape)
    >>> model = mm.KernelGrid().fit(clean, noisy)
    >>> restored = model.restore(clean + 30 * rng.normal(size=clean.shape)).mean()
    >>> bool(np.sqrt(np.mean((restored - clean) ** 2)) < 10)
    True
    """

    def __init__(
        self,
        *,
        neighbours: int = 4,
        directions: bool = False,
        bands: int = 1,
        kernel: Kernel | None = None,
        ridge: float | None = None,
        update: Update | None = None,
    ):
        if neighbours not in (4, 8):
            raise ParameterError(f"neighbours is {neighbours!r}; expected 4 or 8.")
        self.neighbours = neighbours
        self.bands = int(parameter(bands, "bands", axes=0, integer=True))
        self.directions = bool(directions) or self.bands > 1
        self.kernel, self.ridge, self.update = kernel, ridge, update

    def fit(
        self,
        images: Any,
        observed: Any = None,
        *,
        likelihood: Any = None,
        pairs: int | None = MOST_PAIRS,
        rng: Any = None,
    ) -> "FittedKernelGrid":
        """Learn from images, and from what is observed of them.

        Parameters
        ----------
        images : array (H, W), (B, H, W), or list of images of any sizes
            What is to be restored; NaN for missing pixels.
        observed : the same with pixels, or features (H, W, d), optional
            Noisy images or `mm.bp.patches` of them, one for each of `images`.
        likelihood : class, Likelihood or function, optional
            By default `NoiseLikelihood` for noisy pixels and `CentredLikelihood` for features.
        pairs : int or None
            The most pairs of neighbours, and of pixels with their observations, drawn at random.
        rng : None, int, numpy.random.Generator or JAX key
            Draws the pairs.
        """
        read = read_images(images, "images")
        if pairs is not None:
            pairs = int(parameter(pairs, "pairs", axes=0, integer=True))
        generator = Rng.of(rng).generator
        labelled: Any = neighbour_pairs(read, self.neighbours, None, generator, self.bands)
        if not self.directions:
            both = [np.concatenate(side) for side in zip(*labelled.values(), strict=True)]
            chosen = generator.permutation(len(both[0]))[:pairs]
            labelled = both[0][chosen], both[1][chosen]
        else:
            for label, ends in labelled.items():
                chosen = generator.permutation(len(ends[0]))[:pairs]
                labelled[label] = ends[0][chosen], ends[1][chosen]
        field = self._on(max(8, self.bands), 8)
        with Door():
            fitted = field.fit(labelled)
            learned = _likelihood(read, observed, likelihood, pairs, generator)
        return FittedKernelGrid(self, fitted, learned)

    def _on(self, height: int, width: int) -> KernelField:
        """The field of an image."""
        graph, direction = grid(height, width, self.neighbours)
        relations = None
        if self.directions:
            names = list(DIRECTIONS)
            band = band_of(height, self.bands)[graph.edges[:, 0] // width]
            relations = [(names[d], int(b)) for d, b in zip(direction, band, strict=True)]
        return KernelField(graph, relations=relations, kernels=self.kernel, ridge=self.ridge, update=self.update)


def _likelihood(
    images: list[np.ndarray], observed: Any, likelihood: Any, pairs: int | None, generator: Any
) -> Likelihood | None:
    """The likelihood of a pixel, learned from some of them."""
    if observed is None and likelihood is None:
        return None
    if observed is None:
        given = read_likelihood(likelihood)
        if not isinstance(given, Likelihood):
            raise EmptyError(f"{given.__name__} is learned from observations: pass observed= to fit.")
        return given
    features = _read_features(observed, images)
    default = NoiseLikelihood if features[0].ndim == 2 else CentredLikelihood
    chosen = read_likelihood(default if likelihood is None else likelihood)
    if isinstance(chosen, Likelihood):
        return chosen
    hidden = np.concatenate([image.ravel() for image in images])
    seen = np.concatenate([f.reshape(i.size, *f.shape[2:]) for f, i in zip(features, images, strict=True)])
    there = np.flatnonzero(~np.isnan(hidden) & ~np.isnan(seen.reshape(len(seen), -1)).any(axis=1))
    there = generator.permutation(there)[:pairs]
    return chosen.fit(hidden[there], seen[there])


def _read_features(observed: Any, images: list[np.ndarray]) -> list[np.ndarray]:
    """Observations of each image: (H, W) or (H, W, d)."""
    many = isinstance(observed, list | tuple) or (np.ndim(observed) > 2 and len(observed) == len(images) > 1)
    parts = [as_array(part, "observed").astype(float) for part in (observed if many else [observed])]
    if len(parts) == 1 and parts[0].ndim > 2 and parts[0].shape[:3] == (1, *images[0].shape):
        parts = [parts[0][0]]
    if len(parts) != len(images):
        raise ShapeError(f"observed has {len(parts)} images, and images {len(images)}; expected one for each.")
    for i, (part, image) in enumerate(zip(parts, images, strict=True)):
        if part.shape[:2] != image.shape or part.ndim > 3:
            raise ShapeError(f"observed[{i}] has shape {part.shape}; expected {image.shape} or {(*image.shape, 'd')}.")
        if np.isinf(part).any():
            raise InputError(f"observed[{i}] holds infinity; expected numbers, and NaN where nothing was observed.")
    return parts


class FittedKernelGrid:
    """A `KernelGrid` that has learned, for images of any size.

    Attributes
    ----------
    field : FittedKernelField
        The learned relations, on a small grid.
    likelihood : Likelihood or None
    """

    def __init__(self, model: KernelGrid, field: FittedKernelField, likelihood: Likelihood | None):
        self.model, self.field, self.likelihood = model, field, likelihood
        self._fields: dict[tuple[int, int], FittedKernelField] = {}

    def on(self, height: int, width: int) -> FittedKernelField:
        """The field of images of one size, kept for the next."""
        if (height, width) not in self._fields:
            graph, direction = grid(height, width, self.model.neighbours)
            template = np.zeros(2 * len(graph.edges), dtype=np.int64)
            if self.model.directions:
                relation = direction * self.model.bands
                relation += band_of(height, self.model.bands)[graph.edges[:, 0] // width]
                template = np.concatenate([2 * relation, 2 * relation + 1])
            kind = np.zeros(graph.size, dtype=np.int64)
            self._fields[height, width] = FittedKernelField(graph, self.field.learned, template, kind)
        return self._fields[height, width]

    def restore(
        self,
        observed: Any,
        *,
        likelihood: Any = None,
        floor: float | None = FLOOR,
        damping: float = DAMPING,
        dtype: Any = np.float64,
    ) -> "Restored":
        """Beliefs about all pixels.

        Parameters
        ----------
        observed : array (H, W), (B, H, W), (H, W, d) or (B, H, W, d)
            As the observations of `fit`, of any size; NaN where nothing was observed. A batch is restored at once.
        likelihood : Likelihood or function, optional
            Instead of the learned one.
        floor, damping, dtype
            As of `FittedKernelField.query`.

        Returns
        -------
        Restored
            `.mean()`, `.std()`, `.quantile(q)` as images, `[i, j]` the belief about a pixel.
        """
        chosen = self.likelihood if likelihood is None else read_likelihood(likelihood)
        if not isinstance(chosen, Likelihood):
            raise EmptyError("nothing is known about observations: pass observed= or likelihood= to fit.")
        array = as_array(observed, "observed").astype(float)
        axes = 3 if isinstance(chosen, CentredLikelihood) and chosen.regression.width > 1 else 2
        if array.ndim not in (axes, axes + 1) or min(array.shape) < 1:
            shape = "(H, W, d) or (B, H, W, d)" if axes == 3 else "(H, W) or (B, H, W)"
            raise ShapeError(f"observed has shape {array.shape}; expected {shape}.")
        if np.isinf(array).any():
            raise InputError("observed holds infinity; expected numbers, and NaN where nothing was observed.")
        batched = array.ndim == axes + 1
        images = array if batched else array[None]
        height, width = images.shape[1:3]
        field = self.on(height, width)
        values = images.reshape(len(images), height * width, *images.shape[3:])
        there = np.asarray(~np.isnan(values).reshape(*values.shape[:2], -1).any(axis=-1))
        (kind,) = field.learned.variables
        seen = Evidence(
            {}, {}, {kind: Observed(chosen, values, there)}, np.asarray(there.any(axis=0)), len(images), True
        )
        with Door():
            weights, report = field.propagate(seen, np.arange(height * width), floor, damping, np.dtype(dtype))
        return Restored(field.learned.variables[kind], np.stack(weights), (height, width), batched, report)

    def __repr__(self) -> str:
        return f"FittedKernelGrid({self.field.learned.length} values a message)"


@dataclass(frozen=True, eq=False)
class Restored:
    """Beliefs about the pixels of one image, or of a batch of them.

    Attributes
    ----------
    weights : array (H W, B, G)
        Of the G atoms at each pixel.
    report : Report
    """

    variable: Any
    weights: np.ndarray
    size: tuple[int, int]
    batched: bool
    report: Report

    @property
    def atoms(self) -> np.ndarray:
        """Values (G,)."""
        return self.variable.atoms[:, 0]

    def mean(self) -> np.ndarray:
        """The posterior mean of each pixel, (H, W) or (B, H, W)."""
        return self._image(self.weights @ self.atoms.astype(self.weights.dtype))

    def std(self) -> np.ndarray:
        """The posterior standard deviation."""
        atoms = self.atoms.astype(self.weights.dtype)
        mean = self.weights @ atoms
        return self._image(np.sqrt(np.maximum(self.weights @ atoms**2 - mean**2, 0)))

    def quantile(self, q: float) -> np.ndarray:
        """The smallest atom up to which a share q of the belief lies."""
        parameter(q, "q", axes=0, positive=False, at_least=0.0)
        if q > 1:
            raise ParameterError(f"q is {q}; expected a share between 0 and 1.")
        order = np.argsort(self.atoms)
        below = np.cumsum(self.weights[..., order], axis=-1)
        place = np.argmax(below >= q * below[..., -1:], axis=-1)
        return self._image(self.atoms[order][place])

    def mode(self) -> np.ndarray:
        """The atom with the largest weight: the most probable value where values are few, as colours are."""
        return self._image(self.atoms[self.weights.argmax(axis=-1)])

    def __getitem__(self, place: tuple[int, ...]) -> PointEmbedding:
        """The belief about pixel (i, j) as an embedding; (b, i, j) in a batch."""
        batch, i, j = place if self.batched else (0, *place)  # type: ignore[misc]
        weights = self.weights[i * self.size[1] + j, batch]
        return PointEmbedding(self.variable.kernel, self.variable.atoms, weights.astype(np.float64), True)

    def _image(self, values: np.ndarray) -> np.ndarray:
        images = values.T.reshape(-1, *self.size)
        return images if self.batched else images[0]

    def __iter__(self) -> Iterator:
        raise TypeError("a Restored is not a sequence; index it by pixel, restored[i, j].")

    def __repr__(self) -> str:
        return f"Restored({self.weights.shape[1]} of {self.size[0]} x {self.size[1]} pixels; {self.report.status})"
