"""Inner products of embeddings on prepared points: the form of one variable's distributions from which a Gram matrix is
made.
"""

import math
from abc import abstractmethod
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.domains import Domain
from meanmap.core.types import Points
from meanmap.kernels.base import ByGram, Kernel, lift
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.domain import Ready
from meanmap.kernels.distributions.expectations import gaussian_overlap
from meanmap.kernels.geometry import inner_products, squared_norms

__all__ = ["BagPart", "GaussianPart", "Joint", "OuterGaussian", "Prepared", "SpectralPart"]

# Points of bags in one tile, so that a tile of doubles stays in a core's cache.
CHUNK = 256
TILE_POINTS = 2048


class Prepared(ByGram):
    """A kernel on prepared points, not on users' data."""

    @property
    def domain(self) -> Domain:
        """Prepared points, unchanged."""
        return Ready()

    @abstractmethod
    def diagonal(self, x: Points) -> jax.Array:
        """The diagonal of the Gram matrix."""


class SpectralPart(Prepared):
    """⟨x, y⟩ of spectral coordinates, (N, R)."""

    def gram(self, x: Points, y: Points) -> jax.Array:
        """One matrix product."""
        return inner_products(x, y)

    def diagonal(self, x: Points) -> jax.Array:
        """Squared norms |x|²."""
        return squared_norms(x)


class GaussianPart(Prepared):
    """E E k(X, Y) of mixtures of K normal distributions, points (weights (N, K), means (N, K, d), covariances (N, K, d,
    d)).
    """

    lengthscale: Any

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The closed form for all pairs of components, O(N M K² d³)."""
        (first, mean, covariance), (second, other, also) = (tuple(map(jnp.asarray, points)) for points in (x, y))
        n, k, d = mean.shape
        m, q, _ = other.shape
        overlap = gaussian_overlap(
            mean.reshape(n * k, 1, d) - other.reshape(1, m * q, d),
            covariance.reshape(n * k, 1, d, d) + also.reshape(1, m * q, d, d),
            jnp.asarray(self.lengthscale),
        )
        if k == q == 1:
            return overlap
        return jnp.einsum("nk,nkmq,mq->nm", first, overlap.reshape(n, k, m, q), second, precision="highest")

    def diagonal(self, x: Points) -> jax.Array:
        """The closed form of each with itself."""
        weights, mean, covariance = map(jnp.asarray, x)
        overlap = gaussian_overlap(
            mean[:, :, None] - mean[:, None],
            covariance[:, :, None] + covariance[:, None],
            jnp.asarray(self.lengthscale),
        )
        return jnp.einsum("nk,nkq,nq->n", weights, overlap, weights, precision="highest")


class BagPart(Prepared):
    """Σ Σ wᵢ vⱼ k(xᵢ, yⱼ) of bags of the same padded size, for any kernel k on points.

    Points are compared in tiles of 256 × 2048, so memory is O(N M + tile), never (N n)².
    """

    kernel: Kernel

    def gram(self, x: Points, y: Points) -> jax.Array:
        """O(N M n²) evaluations of k, in tiles."""
        (n, pieces), x_tiles = _pieces(x, CHUNK, CHUNK)
        (m, other), y_tiles = _pieces(y, CHUNK, TILE_POINTS)
        length = y.points.shape[1] // other

        def meet(x_tile, y_tile):
            values = self.kernel.gram(x_tile[0], y_tile[0]) * x_tile[1][:, None] * y_tile[1][None, :]
            half = values.reshape(-1, length, values.shape[1]).sum(axis=1)
            return half.reshape(half.shape[0], -1, length).sum(axis=2)

        tiles = jax.lax.map(lambda a: jax.lax.map(lambda b: meet(a, b), y_tiles), x_tiles)
        sums = tiles.swapaxes(1, 2).reshape(tiles.shape[0] * tiles.shape[2], -1)[: n * pieces, : m * other]
        return sums.reshape(n, pieces, m, other).sum(axis=(1, 3))

    def diagonal(self, x: Points) -> jax.Array:
        """O(N n²) evaluations, one bag after another."""
        return jax.lax.map(lambda bag: self.gram(lift(bag), lift(bag))[0, 0], x)


def _pieces(bags: Bags, chunk: int, tile: int) -> tuple[tuple[int, int], tuple[jax.Array, jax.Array]]:
    """Bags cut into pieces of at most `chunk` points, with as many whole pieces as fit in each tile."""
    n, size, d = bags.points.shape
    pieces = -(-size // chunk)
    if size % pieces:
        raise ValueError(f"bags of {size} points do not fit into {pieces} equal pieces")
    length = size // pieces
    together = max(1, min(tile // length, n * pieces))
    tiles = -(-n * pieces // together)
    points = jnp.asarray(bags.points).reshape(n * pieces, length, d)
    weights = jnp.asarray(bags.weights).reshape(n * pieces, length)
    missing = tiles * together - n * pieces
    points = jnp.concatenate([points, jnp.broadcast_to(points[:1], (missing, length, d))])
    weights = jnp.concatenate([weights, jnp.zeros((missing, length), weights.dtype)])
    return (n, pieces), (points.reshape(tiles, -1, d), weights.reshape(tiles, -1))


class Joint(Prepared):
    """The product or sum of prepared kernels, each on its own entry of a tuple of points."""

    members: tuple[Kernel, ...]
    by: Literal["product", "sum"] = eqx.field(static=True)

    def _all(self, values: list[jax.Array]) -> jax.Array:
        return math.prod(values) if self.by == "product" else sum(values)  # pyright: ignore[reportReturnType, reportArgumentType]

    def gram(self, x: Points, y: Points) -> jax.Array:
        """Entry by entry the product, or the sum, of the members' Gram matrices."""
        return self._all([member.gram(a, b) for member, a, b in zip(self.members, x, y, strict=True)])

    def diagonal(self, x: Points) -> jax.Array:
        """The product, or the sum, of the members' diagonals."""
        return self._all([member.diagonal(a) for member, a in zip(self.members, x, strict=True)])


class OuterGaussian(Prepared):
    """exp(−(k(x, x) + k(y, y) − 2 k(x, y))/2γ²), on pairs of a point x and k(x, x)."""

    kernel: Kernel
    width: Any

    def gram(self, x: Points, y: Points) -> jax.Array:
        """From the Gram matrix of the inner kernel."""
        squares = x[1][:, None] + y[1][None, :] - 2 * self.kernel.gram(x[0], y[0])
        return jnp.exp(-jnp.maximum(squares, 0) / (2 * jnp.asarray(self.width) ** 2))

    def diagonal(self, x: Points) -> jax.Array:
        """Ones, because each point is at distance zero from itself."""
        return jnp.ones_like(jnp.asarray(x[1]))
