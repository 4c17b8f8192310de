"""Random Fourier features of shift-invariant kernels."""

from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.points import dense, one_row
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array, Data, Points, Seed
from meanmap.features.base import Concatenated, Features, made_from, sample_row
from meanmap.kernels.base import Kernel, Sum, as_kernel
from meanmap.kernels.spectral import coordinates, frequencies, is_radial

__all__ = ["Fourier"]


class Fourier(Features):
    """Random Fourier features: k(x, y) = E_ω cos ω·(x − y), the mean taken over draws from the spectral density.

    `kind="cos-sin"` gives √(2/D) (cos ω·x, sin ω·x) for D/2 frequencies, `kind="cos-phase"` gives
    √(2/D) cos(ω·x + b) for D frequencies and phases b uniform on [0, 2π). Both are unbiased for every pair of points
    with an error of order D^(−1/2); the first has the smaller variance for the RBF kernel and |φ(x)|² exactly k(x, x).

    Made by `Fourier.draw`. `frequencies` is (D or D/2, coordinates of the kernel).

    References
    ----------
    Rahimi & Recht (2007), Algorithm 1; Sutherland & Schneider (2015) for the comparison of the two kinds; Yu et al.
    (2016) for orthogonal frequencies.
    """

    kernel: Kernel
    frequencies: Any
    phases: Any
    scale: Any
    kind: Literal["cos-sin", "cos-phase"] = eqx.field(static=True)

    @classmethod
    @own_words
    def draw(
        cls,
        kernel: Kernel,
        like: Data,
        n_features: int = 500,
        kind: Literal["cos-sin", "cos-phase"] = "cos-sin",
        orthogonal: bool = False,
        rng: Seed = None,
    ) -> Features:
        """Draw features of `kernel`.

        Parameters
        ----------
        kernel : Kernel
            A shift-invariant kernel: RBF, Matérn, Laplace, rational quadratic, on angles or rotations, and scaled
            ones, products, powers and kernels on columns of these. Each member of a sum gets `n_features` of its own.
        like : data or int
            A sample to take the number of columns from, or that number.
        n_features : int
            D; even for `kind="cos-sin"`.
        kind : {"cos-sin", "cos-phase"}
            See the class.
        orthogonal : bool
            Make frequencies orthogonal in blocks, keeping the distribution of each: still unbiased, with an error that
            decreases with the number of columns (Yu et al. 2016). Needs a radial spectral density, which Laplace does
            not have.
        rng : None, int, numpy.random.Generator or JAX key
            Randomness; an integer repeats the draw.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap import kernels
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> phi = Fourier.draw(kernels.RBF(1.0), like=x, n_features=4000, rng=0)
        >>> bool(np.abs(phi(x) @ phi(x).T - kernels.RBF(1.0)(x)).max() < 0.1)
        True
        """
        as_kernel(kernel, "kernel")
        one_of(kind, "kind", ("cos-sin", "cos-phase"))
        whole_number(n_features, "n_features")
        if kind == "cos-sin" and n_features % 2:
            raise ParameterError(f"n_features is {n_features}; cosines and sines come in pairs: use an even number.")
        with Door(kernel, like) as door:
            row = dense(sample_row(kernel, like, door))
            drawn = _draw(door.cast(kernel), row, int(n_features), kind, orthogonal, Rng.of(rng).key)
            return door.leave(made_from(drawn, kernel, like, "like"))

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (n, D)."""
        at = coordinates(self.kernel, x)
        if isinstance(at, jax.Array | np.ndarray):
            angles = jnp.matmul(at, self.frequencies.T, precision="highest")
        else:  # sparse rows
            angles = jnp.asarray(at @ np.asarray(self.frequencies).T)
        if self.kind == "cos-phase":
            return self.scale * jnp.cos(angles + self.phases)
        return self.scale * jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points have as many coordinates as the frequencies."""
        width = coordinates(self.kernel, one_row(points)).shape[1]
        if width != self.frequencies.shape[1]:
            raise ShapeError(
                f"{argument} does not have the columns of the sample that the features were drawn for: "
                f"{width} coordinates where {self.frequencies.shape[1]} were expected."
            )

    @property
    def size(self) -> int:
        """D, the number of features."""
        return self.frequencies.shape[0] * (2 if self.kind == "cos-sin" else 1)


@compiled_anew
@partial(jax.jit, static_argnames=("n_features", "kind", "orthogonal"))
def _draw(kernel: Kernel, row: Array, n_features: int, kind: Any, orthogonal: bool, key: jax.Array) -> Features:
    if isinstance(kernel, Sum):
        keys = jax.random.split(key, len(kernel.members))
        parts = zip(kernel.members, kernel.parts(row), keys, strict=True)
        members = tuple(_draw(member, part, n_features, kind, orthogonal, k) for member, part, k in parts)
        return Concatenated(kernel, members)
    key_frequencies, key_directions, key_phases = jax.random.split(key, 3)
    number = n_features // 2 if kind == "cos-sin" else n_features
    drawn = frequencies(kernel, key_frequencies, number, row)
    if orthogonal:
        if not is_radial(kernel):
            raise KindError(
                f"{type(kernel).__name__} has no radial spectral density, so its frequencies cannot be orthogonal: "
                "pass orthogonal=False."
            )
        drawn = _orthogonal(drawn, key_directions)
    phases = jax.random.uniform(key_phases, (number,), drawn.dtype, 0, 2 * np.pi) if kind == "cos-phase" else None
    scale = jnp.sqrt(2 * kernel.diagonal(row)[0] / n_features)
    return Fourier(kernel, drawn, phases, scale, kind)


def _orthogonal(frequencies: jax.Array, key: jax.Array) -> jax.Array:
    """Keep the lengths of the frequencies; take their directions from random orthogonal matrices, d at a time.

    Each direction alone is uniform on the sphere, so each frequency keeps its distribution (Yu et al. 2016, section 3).
    """
    number, dim = frequencies.shape
    blocks = -(-number // dim)
    gaussians = jax.random.normal(key, (blocks, dim, dim), frequencies.dtype)
    q, r = jnp.linalg.qr(gaussians)
    # The signs of R's diagonal make Q uniform over the orthogonal group (Mezzadri 2007).
    q = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None, :]
    directions = jnp.swapaxes(q, 1, 2).reshape(blocks * dim, dim)[:number]
    return directions * jnp.linalg.norm(frequencies, axis=1, keepdims=True)
