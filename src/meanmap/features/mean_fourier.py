"""Features of distributions: exact means of random Fourier features, computed once for each distinct distribution."""

from abc import abstractmethod
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.anew import compiled_anew
from meanmap.core.door import Door, all_concrete, is_concrete
from meanmap.core.errors import ShapeError
from meanmap.core.points import bucket, count, pad, rows
from meanmap.core.types import Array, Data, Points
from meanmap.families import Beta, Mixture, MultivariateNormal, Normal, PointMass
from meanmap.features.base import CHUNK, Features
from meanmap.features.means import frequencies_in_x, mean_waves
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.laws import characteristic, check_traced_frequency

__all__ = ["FeaturesOfLaws", "Kind", "MeanFourier", "compiled"]

Kind = Literal["cos-sin", "cos-phase"]
# Distributions that are cheaper to map than to look up, and bags, which are rarely equal.
CHEAP = (Normal, MultivariateNormal, PointMass, Bags)


class _Table(eqx.Module):
    """Characteristic functions of the distinct distributions of a batch, and which of them each member is."""

    values: Any
    index: Any


class _Law(eqx.Module):
    """A batch and a coordinate in which its characteristic function is still to be computed."""

    law: Any
    place: str = eqx.field(static=True)


class FeaturesOfLaws(Features):
    """Features of distributions: known parts are tabulated on the host, the rest is one compiled call."""

    seed: eqx.AbstractVar[int | None]

    @abstractmethod
    def gather(self, x: Points, tabulate: bool) -> Any:
        """The distributions of each variable, in tables if that is requested and saves time."""

    @abstractmethod
    def finish(self, gathered: Array) -> jax.Array:
        """φ, (N, r), of the gathered distributions: pure and traceable."""

    def transform(self, x: Points) -> jax.Array:
        """φ(x), (N, r), of distributions already read: pure and traceable."""
        return self.finish(self.gather(x, tabulate=False))

    def read(self, data: Data, argument: str, door: Door) -> Any:
        """Distributions as the kernel reads them, checked to fit it and these features."""
        points = self.kernel.domain.read(data, argument, door)
        kernel: Any = self.kernel
        kernel.check_variables(points, argument)
        self.check(points, argument)
        return points

    def __call__(self, x: Data) -> Any:
        """φ(P) for each distribution, or tuple of them, (N, r).

        NumPy inputs give NumPy float64, JAX inputs give JAX arrays. Cost O(N d_in d_out) and, for distributions that
        are not normal, one characteristic function per distinct distribution.
        """
        with Door(self, x) as door:
            points = self.read(x, "x", door)
            if door.follows:
                return door.cast(self).transform(points)
            n = count(points)
            out, size = np.empty((n, self.size)), min(CHUNK, bucket(n))
            for start in range(0, n, size):
                part = rows(points, slice(start, min(start + size, n)))
                self.write(self.gather(pad(part, size), tabulate=True), out[start : start + size])
            return out

    def write(self, gathered: Array, out: np.ndarray) -> None:
        """φ of what was gathered, padded, into the rows of a NumPy array."""
        out[:] = compiled(self, gathered, "finish")[: len(out)]


@compiled_anew
@partial(jax.jit, static_argnames="stage")
def compiled(features: object, gathered: Array, stage: str) -> jax.Array:
    """One of the pure methods of features on gathered distributions, compiled once for each shape."""
    return getattr(features, stage)(gathered)


class MeanFourier(FeaturesOfLaws):
    """φ(P) = E φ(X) for random Fourier features φ: ⟨φ(P), φ(Q)⟩ ≈ E E k(X, Y), the expected product kernel.

    Exact means, through the characteristic function c_l of each variable: √(2/D) (Re, Im) Π_l c_l(ω_l), with one set of
    frequencies ω = (ω_1, ω_2, ...) for the joint distribution of the tuple. The Kronecker product of the features of q
    variables (appendix B.3 of the draft) would need D^q features.

    Made by `TwoStage.draw` from an `ExpectedProduct`, under any shift-invariant kernel on points.

    Attributes
    ----------
    frequencies : tuple of array (D or D/2, d_l)
        One block of columns for each variable, in the coordinates of its kernel.
    seed : int
        `TwoStage.draw(kernel, like, ..., rng=features.seed)` draws the same features again.

    References
    ----------
    Jitkrittum et al. (2015), Algorithm 1, lines 1-3, and appendix B.3 of its draft.
    """

    kernel: Any
    frequencies: tuple[Any, ...]
    phases: Any
    scale: Any
    kind: Kind = eqx.field(static=True)
    seed: int | None = eqx.field(static=True)

    def gather(self, x: Points, tabulate: bool) -> Any:
        """One entry for each variable."""
        found = zip(self.kernel.variables(x), self.frequencies, strict=True)
        return tuple(
            _table(law, frequencies_in_x(kernel, block, law.dimension), place)
            if tabulate and not isinstance(law, CHEAP)
            else _Law(law, place)
            for (_, law, kernel, place), block in found
        )

    def finish(self, gathered: Array) -> jax.Array:
        """The product of the characteristic functions at the frequencies."""
        total = 1.0
        kernels = self.kernel.kernel if isinstance(self.kernel.kernel, tuple) else (self.kernel.kernel,) * len(gathered)
        for entry, kernel, block in zip(gathered, kernels, self.frequencies, strict=True):
            if isinstance(entry, _Table):
                total = total * entry.values[entry.index]
            else:
                w = frequencies_in_x(kernel, block, entry.law.dimension)
                total = total * jnp.asarray(characteristic(entry.law, w, entry.place))
        return self.scale * mean_waves(total, self.phases, jnp)

    def check(self, points: Points, argument: str) -> None:
        """Raise unless variables and columns are those of the draw, and the frequencies can be computed."""
        found = self.kernel.variables(points, argument)
        widths = [law.dimension for _, law, _, _ in found]
        expected = [block.shape[1] for block in self.frequencies]
        if widths != expected:
            raise ShapeError(
                f"{argument} has variables of {widths} columns; these features were drawn for {expected}: draw others."
            )
        for (name, law, kernel, place), block in zip(found, self.frequencies, strict=True):
            if place == "x" and isinstance(law, Beta | Mixture) and is_concrete(block) and all_concrete(kernel):
                largest = abs(frequencies_in_x(kernel, np.asarray(block), law.dimension)).max()
                check_traced_frequency(law, place, largest, name, argument)

    @property
    def size(self) -> int:
        """D, the number of features."""
        return self.frequencies[0].shape[0] * (2 if self.kind == "cos-sin" else 1)


def _table(law: object, w: Array, place: str) -> _Table:
    """The characteristic function of each distinct distribution: a batch of messages from two labels has only two.

    Their number is rounded up to one of a few sizes, so that a new number seldom needs compiling.
    """
    n = count(law)
    leaves = [np.asarray(leaf).reshape(n, -1) for leaf in jax.tree.leaves(law)]
    _, first, index = np.unique(np.concatenate(leaves, axis=1), axis=0, return_index=True, return_inverse=True)
    found = len(first)
    distinct = pad(rows(law, first), min(bucket(found), 1 << (found - 1).bit_length()))
    return _Table(np.asarray(characteristic(distinct, np.asarray(w), place)), index.reshape(-1))
