"""Images as random fields: learn from clean and noisy ones, restore images of any size."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.edges.observations import CentredLikelihood, Likelihood, NoiseLikelihood, read_likelihood
from meanmap.bp.edges.updates import Update
from meanmap.bp.engine.propagate import TRY_MORE
from meanmap.bp.evidence.field_evidence import Evidence, Observed
from meanmap.bp.field import DAMPING, SWEEPS
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.bp.kernel.images import band_of, neighbour_pairs, read_images
from meanmap.bp.kernel.kernel_field import KernelField
from meanmap.bp.kernel.restored import Restored
from meanmap.bp.kernel.widened import LEAST_PIXELS, Array, Widening, left_out_parts
from meanmap.core.arrays import as_array, parameter
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, ParameterError, ShapeError
from meanmap.core.rng import Rng
from meanmap.core.settings import truth
from meanmap.core.synonyms import own_words
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Data, DType, Seed
from meanmap.graphs import DIRECTIONS, Flooding, grid
from meanmap.kernels.base import Kernel

__all__ = ["FittedKernelGrid", "KernelGrid"]

# More pairs than this for each relation make no visible difference; fitting stays within seconds.
MOST_PAIRS = 100_000
# The note on beliefs without held-out images.
UNCORRECTED = (
    "intervals are not calibrated: in measurements 90% intervals covered .2 to .9 of the pixels. They are calibrated "
    "on held-out images if fit had observed= with 1000 pixels or more, and restore has no likelihood=, floor=, "
    "damping= or counting=."
)


class KernelGrid:
    """A random field on pixels, whose relations are learned from images.

    `grid = mm.KernelGrid().fit(clean, noisy)` learns from images, and `grid.restore(another)` gives beliefs
    about the pixels of one.

    Parameters
    ----------
    neighbours : 4 or 8
        Above, below and at both sides, or along the diagonals, too: diagonals close many short cycles, so messages
        should be damped by `counting`, see below.
    directions : bool
        Whether each direction has a relation of its own, and each orientation; otherwise all neighbours share one.
    bands : int
        The number of horizontal bands of the image with separate relations; the image height gives each row its own.
    kernel : Kernel, optional
        Of pixel values; by default RBF with a cross-validated lengthscale.
    ridge, update
        As of `KernelField`.

    Notes
    -----
    Evidence travels around cycles and is counted repeatedly, and messages carry the brightness of the training images:
    uncorrected beliefs are overconfident. With noise of 12% of the range and three images of 64 × 64 pixels to learn
    from, 90% intervals covered .22 of the pixels of three others on flat strokes, .61 on blobs and .62 on textured
    strokes. If noisy images are given, intervals are calibrated on held-out images: they then covered .82, .91 and .91,
    and in holes .84, .95 and .98; and .40 of a flat image that was brighter than the three. Reports give the coverage
    in each held-out part. On rings of 50 grey levels with noise of 30, 8 neighbours and `restore(..., counting=0.5,
    floor=0.03)` had errors of 4.7 and 5.6 grey levels, the latter in a hole without observations, and 4 neighbours 4.8
    and 6.5. Counting divides by messages: the higher floor keeps this stable. Messages are sent 15 times and are then
    still changing: operators are slightly wrong, each further sweep counts the same pixels again, and errors grow. If
    there are clean images as well as noisy ones, `ForestGrid` restores better. The gain from smoothing depends on the
    likelihood of observations. If several values explain an observation, as when two pictures of a plain wall are
    matched, pass a function as `likelihood` that has all of these peaks: a single guess with a spread around it leaves
    almost nothing for relations to add. In this way relations reduced the error of log-depth in new stereo scenes from
    .41 to .31, with `bands` for each row. Depth from two pictures has no function of its own: the reproduction of the
    paper builds it from this one. Choose neighbours, patches and counting by errors on held-out images. An automatic
    search would fit and restore once for each of them and still not suffice: patches of 5 × 5 took the error on strokes
    with heavy-tailed noise from 18.1 to 13.4 and on blobs with Poisson noise from 2.36 to 1.81, where boosted trees on
    patches had 12.1 and BM3D 1.52. `ForestGrid` makes its own choices. 1000 × 1000 pixels at rank 30 in single
    precision need 3.6 GiB, with the beliefs about all of them.

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

    @own_words
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
        self.directions = truth(directions, "directions") or self.bands > 1
        self.kernel, self.ridge, self.update = kernel, ridge, update

    def __repr__(self) -> str:
        return f"KernelGrid(neighbours={self.neighbours}, directions={self.directions}, bands={self.bands})"

    @one_blas_thread()
    @own_words
    def fit(
        self,
        images: object,
        observed: Data = None,
        *,
        likelihood: object = None,
        pairs: int | None = MOST_PAIRS,
        rng: Seed = None,
        correct: bool = True,
    ) -> "FittedKernelGrid":
        """Learn from images, and from what is observed of them.

        Parameters
        ----------
        images : array (H, W), (B, H, W), or list of images of any sizes
            The images to be restored; NaN for missing pixels.
        observed : the same with pixels, or features (H, W, d), optional
            Noisy images or `mm.bp.patches` of them, one for each of `images`.
        likelihood : class, Likelihood or function, optional
            By default `NoiseLikelihood` for noisy pixels and `CentredLikelihood` for features, whose guesses are judged
            on images that were left out, where there are several.
        pairs : int or None
            The most pairs of neighbours, and of pixels with their observations, drawn at random.
        rng : None, int, numpy.random.Generator or JAX key
            Draws the pairs.
        correct : bool
            Whether to calibrate the width of beliefs by leaving out images of 1000 pixels or more, with what was
            observed of them, in four folds (strips of a single one). This takes about five times as long.
        """
        truth(correct, "correct")
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
        if not correct or observed is None or sum(image.size for image in read) < LEAST_PIXELS:
            return FittedKernelGrid(self, fitted, learned)

        def restored(images: list[Any], features: list[Any], another: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            model = self.fit(images, features, likelihood=likelihood, pairs=pairs, rng=generator, correct=False)
            found = model.restore(another)
            return found.atoms, found.weights[:, 0].astype(np.float64)

        parts = left_out_parts(read, _read_features(observed, read), restored, generator)
        every = np.concatenate([image.ravel() for image in read])
        widening = Widening.fit(parts, (float(np.nanmin(every)), float(np.nanmax(every))))
        return FittedKernelGrid(self, fitted, learned, widening)

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
    images: list[np.ndarray], observed: Data, likelihood: object, pairs: int | None, generator: np.random.Generator
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
    image = np.repeat(np.arange(len(images)), [image.size for image in images])[there]
    if issubclass(chosen, CentredLikelihood) and len(np.unique(image)) > 1:
        return chosen.fit(hidden[there], seen[there], groups=image)
    return chosen.fit(hidden[there], seen[there])


def _read_features(observed: Any, images: list[np.ndarray]) -> list[np.ndarray]:
    """Observations of each image: (H, W) or (H, W, d)."""
    listed = isinstance(observed, list | tuple) and len(observed) > 0 and np.ndim(observed[0]) > 1
    many = listed or (np.ndim(observed) > 2 and len(observed) == len(images) > 1)
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
    """A fitted `KernelGrid`, for images of any size.

    Attributes
    ----------
    field : FittedKernelField
        The learned relations, on a small grid.
    likelihood : Likelihood or None
    widening : Widening or None
        The correction of beliefs, valid with the settings of messages with which it was learned.
    """

    def __init__(
        self, model: Any, field: FittedKernelField, likelihood: Likelihood | None, widening: Widening | None = None
    ):
        self.model, self.field, self.likelihood, self.widening = model, field, likelihood, widening

    def on(self, height: int, width: int, mesh: jax.sharding.Mesh | None = None) -> FittedKernelField:
        """The field of images of one size on the devices of a mesh, kept for the next."""
        if (height, width, mesh) not in self._fields:
            graph, direction = grid(height, width, self.model.neighbours)
            template = np.zeros(2 * len(graph.edges), dtype=np.int64)
            if self.model.directions:
                relation = direction * self.model.bands
                relation += band_of(height, self.model.bands)[graph.edges[:, 0] // width]
                template = np.concatenate([2 * relation, 2 * relation + 1])
            kind = np.zeros(graph.size, dtype=np.int64)
            schedule = None if graph.is_forest and mesh is None else Flooding(SWEEPS, mesh)
            field = FittedKernelField(graph, self.field.learned, template, kind, schedule=schedule)
            self._fields[height, width, mesh] = field
        return self._fields[height, width, mesh]

    def restore(
        self,
        observed: Data,
        *,
        likelihood: object = None,
        floor: float | None = FLOOR,
        damping: float = DAMPING,
        dtype: DType = np.float64,
        counting: float | None = None,
        tolerance: float | None = None,
        mesh: jax.sharding.Mesh | None = None,
    ) -> "Restored":
        """Beliefs about all pixels.

        Parameters
        ----------
        observed : array (H, W), (B, H, W), (H, W, d) or (B, H, W, d)
            As the observations of `fit`, of any size; NaN where nothing was observed. A batch is restored at once.
        likelihood : Likelihood or function, optional
            Instead of the learned one.
        floor, damping, dtype, counting, tolerance
            As of `FittedKernelField.query`.
        mesh : jax.sharding.Mesh, optional
            Devices among which the rows of the image are divided.

        Returns
        -------
        Restored
            `.mean()`, `.sd()`, `.quantile(q)` as images, `[i, j]` the belief about a pixel.
        """
        chosen = self.likelihood if likelihood is None else read_likelihood(likelihood)
        if not isinstance(chosen, Likelihood):
            raise EmptyError("nothing is known about observations: pass observed= or likelihood= to fit.")
        if isinstance(observed, list | tuple) and len({np.shape(image) for image in observed}) > 1:
            raise ShapeError("observed holds images of different sizes: restore those of one size together.")
        array = as_array(observed, "observed").astype(float)
        axes = 3 if chosen.width > 1 else 2
        if array.ndim not in (axes, axes + 1) or min(array.shape) < 1:
            shape = "(H, W, d) or (B, H, W, d)" if axes == 3 else "(H, W) or (B, H, W)"
            raise ShapeError(f"observed has shape {array.shape}; expected {shape}.")
        if np.isinf(array).any():
            raise InputError("observed holds infinity; expected numbers, and NaN where nothing was observed.")
        batched = array.ndim == axes + 1
        images = array if batched else array[None]
        height, width = images.shape[1:3]
        field = self.on(height, width, mesh)
        values = images.reshape(len(images), height * width, *images.shape[3:])
        there = np.asarray(~np.isnan(values).reshape(*values.shape[:2], -1).any(axis=-1))
        (kind,) = field.learned.variables
        seen = Evidence(
            {}, {}, {kind: Observed(chosen, values, there)}, np.asarray(there.any(axis=0)), len(images), True
        )
        with Door():
            weights, report = field.propagate(
                seen, np.arange(height * width), floor, damping, np.dtype(dtype), counting, tolerance
            )
        if not report.converged:
            why = f"stopped after {SWEEPS} sweeps, because more made restorations worse; messages were still changing"
            report = replace(report, status=why, notes=tuple(note for note in report.notes if note != TRY_MORE))
        variable, weights = field.learned.variables[kind], np.asarray(weights)
        asked = (likelihood, floor, damping, counting)
        if self.widening is None or asked != (None, FLOOR, DAMPING, None):
            report = replace(report, notes=(*report.notes, UNCORRECTED))
            return Restored(variable, weights, (height, width), batched, report)
        atoms = variable.atoms[:, 0]
        weights = self.widening(weights, atoms, ~there.T)
        variable = Array(self.widening.points(atoms)[:, None], variable.kernel)
        report = replace(report, notes=(*report.notes, *self.widening.notes))
        return Restored(variable, weights, (height, width), batched, report)

    @cached_property
    def _fields(self) -> dict[tuple[int, int, Any], FittedKernelField]:
        return {}

    def __repr__(self) -> str:
        return f"FittedKernelGrid({self.field.learned.length} values per message)"
