"""Reading pairs of samples for operators, each on points or in features."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import check_paired, check_rows
from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import count
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Data, KernelLike
from meanmap.embeddings.bases import Basis, FeatureBasis, PointBasis
from meanmap.features.base import Features, transform_in_chunks
from meanmap.kernels.base import Kernel, as_kernel
from meanmap.kernels.reading import is_flat, read_points

__all__ = ["Side", "read_pairs", "refuse_tracers"]


@dataclass(frozen=True)
class Side:
    """One of two paired samples, read, with the basis that it spans."""

    basis: Basis
    points: Any
    kernel: Any

    @property
    def count(self) -> int:
        """n, the number of points."""
        return count(self.points)

    def check_like(self, other: "Side") -> None:
        """Refuse a kernel on one side and features on the other."""
        if self.basis.orthonormal != other.basis.orthonormal:
            raise KindError("kernel_x and kernel_y must both be kernels, or both features.")

    def in_coordinates(self, features: Features) -> "Side":
        """These points in the coordinates of some features."""
        return Side(FeatureBasis(features, schema=self.basis.schema), self.points, features)

    def under(self, kernel: Kernel) -> "Side":
        """These points, which span a basis, under another kernel."""
        basis: Any = self.basis
        return Side(replace(basis, kernel=kernel), self.points, kernel)

    def moments_with(self, other: "Side", door: Door) -> tuple[Any, Any, Any]:
        """Σ φ(xᵢ) ψ(yᵢ)ᵀ and both means, for features on both sides, streamed."""
        phi, psi = door.cast(self.kernel), door.cast(other.kernel)
        if door.follows:
            a, b = phi.transform(self.points), psi.transform(other.points)
            return jnp.matmul(a.T, b, precision="highest"), a.mean(axis=0), b.mean(axis=0)
        product: Any = 0.0
        sums: Any = [0.0, 0.0]
        pairs = zip(transform_in_chunks(phi, self.points), transform_in_chunks(psi, other.points), strict=True)
        for first, second in pairs:
            a, b = np.asarray(first), np.asarray(second)
            product = product + a.T @ b
            sums = [sums[0] + a.sum(axis=0), sums[1] + b.sum(axis=0)]
        return product, sums[0] / self.count, sums[1] / self.count


def read_side(data: Data, kernel: KernelLike, argument: str, door: Door, schema: Schema | None = None) -> Side:
    """One sample as points and basis, which reads later points by `schema`."""
    if isinstance(kernel, Features):
        points = kernel.read(data, argument, door)
        return Side(FeatureBasis(kernel, schema=schema), points, kernel)
    kernel = as_kernel(kernel, f"kernel_{argument}", ", or features")
    points = read_points(kernel, data, argument, door)
    return Side(PointBasis(kernel, points, is_flat(data, kernel), schema=schema), points, kernel)


def read_pairs(
    x: Data,
    y: Data,
    kernel_x: KernelLike,
    kernel_y: KernelLike,
    door: Door,
    schema_x: Schema | None = None,
    schema_y: Schema | None = None,
) -> tuple[Side, Side]:
    """Two samples of equal length, at least two pairs; later ones are read by the schemas."""
    check_order((x, y), ("x", "y"))
    first, second = read_side(x, kernel_x, "x", door, schema_x), read_side(y, kernel_y, "y", door, schema_y)
    check_paired(first.count, second.count)
    check_rows(first.count, "x", least=2)
    return first, second


def refuse_tracers(known: object, ridge: str) -> None:
    """Refuse traced values where something is to be chosen from them."""
    if not all_concrete(known):
        raise ParameterError(
            f"inside jit nothing can be chosen from the data: pass kernel_x, kernel_y and ridge, such as ridge={ridge}."
        )
