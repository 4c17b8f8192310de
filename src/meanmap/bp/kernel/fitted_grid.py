"""A learned field of pixels restores images of any size."""

from functools import cached_property
from typing import Any

import numpy as np

from meanmap.bp.edges.floors import FLOOR
from meanmap.bp.edges.observations import Likelihood, read_likelihood
from meanmap.bp.evidence.field_evidence import Evidence, Observed
from meanmap.bp.field import DAMPING, SWEEPS
from meanmap.bp.kernel.fitted_field import FittedKernelField
from meanmap.bp.kernel.images import band_of
from meanmap.bp.kernel.restored import Restored
from meanmap.core.arrays import as_array
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, InputError, ShapeError
from meanmap.core.types import Data, DType
from meanmap.graphs import Flooding, grid

__all__ = ["FittedKernelGrid"]


class FittedKernelGrid:
    """A `KernelGrid` that has learned, for images of any size.

    Attributes
    ----------
    field : FittedKernelField
        The learned relations, on a small grid.
    likelihood : Likelihood or None
    """

    def __init__(self, model: Any, field: FittedKernelField, likelihood: Likelihood | None):
        self.model, self.field, self.likelihood = model, field, likelihood

    def on(self, height: int, width: int, mesh: Any = None) -> FittedKernelField:
        """The field of images of one size on the devices of a mesh, kept for the next."""
        if (height, width, mesh) not in self._fields:
            graph, direction = grid(height, width, self.model.neighbours)
            template = np.zeros(2 * len(graph.edges), dtype=np.int64)
            if self.model.directions:
                relation = direction * self.model.bands
                relation += band_of(height, self.model.bands)[graph.edges[:, 0] // width]
                template = np.concatenate([2 * relation, 2 * relation + 1])
            kind = np.zeros(graph.size, dtype=np.int64)
            schedule = None if mesh is None else Flooding(SWEEPS, mesh)
            field = FittedKernelField(graph, self.field.learned, template, kind, schedule=schedule)
            self._fields[height, width, mesh] = field
        return self._fields[height, width, mesh]

    def restore(
        self,
        observed: Data,
        *,
        likelihood: Any = None,
        floor: float | None = FLOOR,
        damping: float = DAMPING,
        dtype: DType = np.float64,
        counting: float | None = None,
        tolerance: float | None = None,
        mesh: Any = None,
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
            `.mean()`, `.std()`, `.quantile(q)` as images, `[i, j]` the belief about a pixel.
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
        return Restored(field.learned.variables[kind], np.asarray(weights), (height, width), batched, report)

    @cached_property
    def _fields(self) -> dict[tuple[int, int, Any], FittedKernelField]:
        return {}

    def __repr__(self) -> str:
        return f"FittedKernelGrid({self.field.learned.length} values a message)"
