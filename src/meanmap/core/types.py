"""Names for what is loosely typed.

JAX computes with NumPy's arrays, its own and traced ones alike, and users' data come in many kinds: a strict type
would refuse what works. These names say what is meant; the readers in `core` and `kernels` check it, and loading a file
refuses fields that hold nothing of the kind: to type checkers an annotated `Any` is `Any`.
"""

from typing import Annotated, Any, TypeAlias

import jax
import numpy as np

__all__ = ["Array", "Axes", "DType", "Data", "GraphLike", "Index", "KernelLike", "Points", "Seed", "Values"]

# What users pass, before it is read: numbers, labels, lists, tables, files, pieces of any of these. Nobody looks
# into it but the readers in `core`, which take it as `Any`.
Data: TypeAlias = object
# Points as a kernel has read them: an (n, d) array, a sparse matrix, or a pytree whose leaves share their first axis.
Points: TypeAlias = Annotated[Any, "points"]
# A number or an array of them: of NumPy or JAX, perhaps traced.
Array: TypeAlias = Annotated[Any, "array"]
# What comes out: NumPy for NumPy, JAX for JAX. A single number is one without axes.
Values: TypeAlias = np.ndarray | jax.Array
# A Kernel, Features, the name of a rule, several of these, or None for the default.
KernelLike: TypeAlias = Any
# A Graph, a NetworkX graph or a list of edges.
GraphLike: TypeAlias = Any
# Whatever indexes an array: numbers, slices, masks.
Index: TypeAlias = Any
# A dtype, or what names one.
DType: TypeAlias = Any
# The axes of a matplotlib figure, which is imported only where something is drawn.
Axes: TypeAlias = Any
# Randomness as it comes in: fresh, repeatable by a number, or continued. JAX keys are JAX arrays.
Seed: TypeAlias = int | np.integer | np.random.Generator | jax.Array | None
