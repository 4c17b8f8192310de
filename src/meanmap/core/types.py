"""Names of types that many signatures share.

Arrays are NumPy's or JAX's. What users pass, and the points of a kernel, come in too many kinds for a strict type:
their names say what is meant, the readers in `core` and `kernels` check it, and loading a file refuses fields that hold
nothing of the kind.
"""

from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import jax
import numpy as np
from jax.typing import DTypeLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:  # matplotlib is imported only where something is drawn
    Axes = object

__all__ = ["Array", "Axes", "DType", "Data", "GraphLike", "Index", "KernelLike", "Numbers", "Points", "Seed"]

# What users pass, before it is read: numbers, labels, lists, tables, files, pieces of any of these. Only the readers #
# in `core` look into it, as `Any`.
Data: TypeAlias = object
# Points as a kernel has read them: an (n, d) array, a sparse matrix, or a pytree whose leaves share their first axis.
Points: TypeAlias = Annotated[Any, "points"]
# NumPy or JAX arrays, perhaps traced: NumPy results for NumPy inputs, JAX for JAX. A scalar has no axes.
Array: TypeAlias = np.ndarray | jax.Array
# A number, or an array of them.
Numbers: TypeAlias = float | Array
# A Kernel, Features, the name of a rule, several of these, or None for the default; resolved before use.
KernelLike: TypeAlias = object
# A Graph, a NetworkX graph or a list of edges, before `Graph.of` reads it.
GraphLike: TypeAlias = object
# Any index of an array: numbers, slices, masks.
Index: TypeAlias = int | np.integer | slice | EllipsisType | np.ndarray | jax.Array | list[int] | tuple[Any, ...] | None
# A dtype, or the name of one.
DType: TypeAlias = DTypeLike
# Randomness as passed in: fresh, repeatable by a seed, or continued. JAX keys are JAX arrays.
Seed: TypeAlias = int | np.integer | np.random.Generator | jax.Array | None
