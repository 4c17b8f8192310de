"""Exact embeddings of distributions: closed forms for normal ones, characteristic functions for all others."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.types import KernelLike, Numbers, Points
from meanmap.embeddings.coordinates import FeatureEmbedding
from meanmap.embeddings.element import Embedding
from meanmap.families.base import Distribution
from meanmap.features.base import Features
from meanmap.features.means import mean_features
from meanmap.kernels.base import Kernel, Scaled
from meanmap.kernels.distributions.expectations import expected_kernel, expected_pair
from meanmap.kernels.stationary import RBF

__all__ = ["FamilyEmbedding", "mean_features"]


class FamilyEmbedding(Embedding):
    """μ_P = E k(X, ·) of a distribution P, exactly, under an RBF kernel.

    Normal distributions have closed forms, ⟨μ_P, μ_Q⟩ = (2π)^(d/2) |Σ|^(1/2) N(m_P; m_Q, V_P + V_Q + Σ) with Σ = diag
    ℓ² (Jitkrittum et al. 2015, draft, appendix B.3). All other distributions use their characteristic function c: E
    k(X, x) = E_ω Re c(ω/ℓ) exp(−iωx/ℓ) with ω standard normal, by the trapezium rule, whose error is below 1e-13 for
    these analytic integrands.

    Attributes
    ----------
    kernel : Kernel
        RBF, possibly scaled.
    family : Distribution
        P, possibly a batch.
    coordinate : str
        The coordinate in which the kernel acts: "x", or "log" (Gamma) and "logit" (Beta), which make spreads over many
        decades comparable.

    Examples
    --------
    >>> import meanmap as mm
    >>> mu = mm.embed(mm.families.Normal.standard(), mm.kernels.RBF(1.0))
    >>> bool(abs(mu([0.0])[0] - 0.5**0.5) < 1e-15)
    True
    """

    kernel: Kernel
    family: Distribution
    coordinate: str = eqx.field(static=True, default="x")

    @property
    def space(self) -> Kernel:
        """The kernel of the embedding."""
        return self.kernel

    @classmethod
    def of(cls, family: Distribution, kernel: Kernel | Features, coordinate: str | None = None) -> Embedding:
        """The embedding of `family` under a kernel or under random Fourier features."""
        coordinate = family.coordinates[0] if coordinate is None else coordinate
        if coordinate not in family.coordinates:
            known = ", ".join(family.coordinates)
            raise ParameterError(f"coordinate is {coordinate!r}; {type(family).__name__} has {known}.")
        if isinstance(kernel, Features):
            return FeatureEmbedding(kernel, mean_features(kernel, family, coordinate))
        _rbf(kernel)
        _check_width(family, kernel)
        return cls(kernel, family, coordinate)

    def evaluate(self, x: Points, door: Door) -> Any:
        """E k(X, x) at m points, (..., m)."""
        d = _dimension(self.family)
        if x.shape[1] != d:
            raise ShapeError(f"the points have {x.shape[1]} columns; {type(self.family).__name__} has {d}.")
        scale, lengthscale = _rbf(self.kernel)
        values = expected_kernel(self.family, jnp.asarray(x), jnp.asarray(lengthscale), self.coordinate)
        return _out(scale * values, door)

    def pair(self, other: Embedding, door: Door) -> Any:
        """E E k(X, Y) for X ~ P and Y ~ Q independent."""
        if not isinstance(other, FamilyEmbedding):
            return NotImplemented
        if self.coordinate != other.coordinate and {"log", "logit"} & {self.coordinate, other.coordinate}:
            raise KindError(f"one embedding is in coordinate {self.coordinate!r}, the other in {other.coordinate!r}.")
        scale, lengthscale = _rbf(self.kernel)
        return _out(scale * expected_pair(self.family, other.family, jnp.asarray(lengthscale), self.coordinate), door)

    def times(self, factor: Numbers) -> Embedding:
        """A scaled element: no longer the embedding of a distribution, but still exact."""
        return _ScaledFamily(self, factor)

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch of the family."""
        return self.family.shape

    def __repr__(self) -> str:
        return f"FamilyEmbedding({self.family!r}, {self.kernel!r})"


class _ScaledFamily(Embedding):
    """A number times the embedding of a distribution: c μ_P."""

    element: FamilyEmbedding
    factor: Any

    @property
    def space(self) -> Kernel:
        return self.element.space

    def evaluate(self, x: Points, door: Door) -> Any:
        factor = self.factor[..., None] if np.ndim(self.factor) else self.factor
        return factor * self.element.evaluate(x, door)

    def pair(self, other: Embedding, door: Door) -> Any:
        if isinstance(other, _ScaledFamily):
            return self.factor * other.factor * self.element.pair(other.element, door)
        value = self.element.pair(other, door)
        return value if value is NotImplemented else self.factor * value

    def times(self, factor: Numbers) -> Embedding:
        return _ScaledFamily(self.element, self.factor * factor)

    @property
    def batch(self) -> tuple[int, ...]:
        return np.broadcast_shapes(self.element.batch, np.shape(self.factor))


def _rbf(kernel: KernelLike) -> tuple[Any, Any]:
    """Scale and lengthscale of an RBF kernel; other kernels have no exact embeddings here."""
    if isinstance(kernel, Scaled):
        scale, lengthscale = _rbf(kernel.kernel)
        return kernel.scale * scale, lengthscale
    if not isinstance(kernel, RBF):
        raise KindError(
            f"distributions have exact embeddings for the RBF kernel, not for {kernel!r}; for other shift-invariant "
            "kernels embed in random features: mm.features.Fourier.draw(kernel, like=1)."
        )
    return 1.0, kernel.lengthscale


def _dimension(family: Distribution) -> int:
    return family.event_shape[0] if family.event_shape else 1


def _check_width(family: Distribution, kernel: KernelLike) -> None:
    _, lengthscale = _rbf(kernel)
    d = _dimension(family)
    if np.ndim(lengthscale) == 1 and np.shape(lengthscale)[0] not in (1, d):
        raise ShapeError(
            f"lengthscale has {np.shape(lengthscale)[0]} entries; {type(family).__name__} has dimension {d}."
        )


def _out(value: object, door: Door) -> Any:
    return value if door.follows else np.asarray(value)
