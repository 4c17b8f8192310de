"""Elements in the finite coordinates of features, f(x) = ⟨c, φ(x)⟩."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.points import of_batch
from meanmap.core.types import Array, Index, Numbers, Points
from meanmap.embeddings.element import Embedding
from meanmap.embeddings.points import PointEmbedding
from meanmap.features.base import FeatureKernel, Features, transform_in_chunks
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import is_flat

__all__ = ["FeatureEmbedding"]


class FeatureEmbedding(Embedding):
    """f(x) = ⟨c, φ(x)⟩ for features φ: the same algebra at a cost independent of the sample size.

    Attributes
    ----------
    features : Features
        φ; the space is that of the kernel ⟨φ(x), φ(y)⟩.
    coefficients : array (..., r)
        c; leading axes are a batch of functions.

    Examples
    --------
    >>> import meanmap as mm
    >>> phi = mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=400, rng=0)
    >>> f = mm.embed([0.0, 1.0], phi)
    >>> f.coefficients.shape
    (400,)
    """

    features: Features
    coefficients: Any

    @property
    def space(self) -> Kernel:
        """The kernel that the features define."""
        return FeatureKernel(self.features)

    def evaluate(self, x: Points, door: Door) -> Any:
        """Values at points, Φ(x) c."""
        if door.follows:
            return jnp.matmul(self.coefficients, self.features.transform(x).T, precision="highest")
        parts = [self.coefficients @ np.asarray(part).T for part in transform_in_chunks(self.features, x)]
        return np.concatenate(parts, axis=-1)

    def pair(self, other: Embedding, door: Door) -> Any:
        """Inner products with another element in these features, ⟨c, d⟩."""
        if not isinstance(other, FeatureEmbedding):
            return NotImplemented
        return (jnp if door.follows else np).sum(self.coefficients * other.coefficients, axis=-1)

    def times(self, factor: Numbers) -> "FeatureEmbedding":
        """The coefficients scaled."""
        factor = factor if isinstance(factor, float | int) or not factor.ndim else factor[..., None]
        return FeatureEmbedding(self.features, self.coefficients * factor, schema=self.schema)

    def plus(self, other: Embedding) -> Embedding:
        """Coefficients are added."""
        if not isinstance(other, FeatureEmbedding):
            return Embedding.plus(self, other)
        return FeatureEmbedding(
            self.features, self.coefficients + other.coefficients, schema=self.schema or other.schema
        )

    def to_points(self, candidates: Array, ridge: float = 1e-6) -> PointEmbedding:
        """The nearest Σⱼ wⱼ k(zⱼ, ·) on `candidates`, whose read-outs (mean, quantiles, ...) approximate this one's.

        Least squares in the RKHS: w = (Φ_Z Φ_Zᵀ + ε I)⁻¹ Φ_Z c with ε = `ridge` times the mean of |φ(z)|².

        Parameters
        ----------
        candidates : points
            m points that cover where the distribution may be: some of the data, or a grid.
        ridge : float
            A larger value gives smaller weights.

        Examples
        --------
        >>> import numpy as np, meanmap as mm
        >>> x = np.random.default_rng(0).normal(2.0, 1.0, size=1000)
        >>> phi = mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=200, rng=0)
        >>> bool(abs(mm.embed(x, phi).to_points(np.linspace(-3, 7, 60)).mean() - x.mean()) < 0.05)
        True
        """
        parameter(ridge, "ridge", axes=0)
        with Door(self, candidates) as door:
            library = jnp if door.follows else np
            points = self.read(candidates, "candidates", door)
            features = door.cast(self.features)
            phi = library.asarray(features.transform(points))
            gram = library.matmul(phi, phi.T)
            shift = ridge * library.trace(gram) / gram.shape[0]
            values = library.matmul(phi, library.asarray(self.coefficients).reshape(-1, phi.shape[1]).T)
            weights = library.linalg.solve(gram + shift * library.eye(gram.shape[0], dtype=gram.dtype), values).T
            shape = (*self.batch, phi.shape[0])
            flat = is_flat(candidates, self.features.kernel)
            return door.leave(PointEmbedding(self.space, points, weights.reshape(shape), flat, schema=self.schema))

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes of the coefficients."""
        return tuple(self.coefficients.shape[:-1])

    def __getitem__(self, index: Index) -> "FeatureEmbedding":
        """One function, or some, of a batch."""
        if not self.batch:
            raise IndexError("this embedding is a single function, not a batch.")
        return FeatureEmbedding(self.features, self.coefficients[of_batch(index)], schema=self.schema)

    def __repr__(self) -> str:
        batch = f", batch {self.batch}" if self.batch else ""
        return f"FeatureEmbedding({self.features.size} features{batch}, {self.features.kernel!r})"
