"""Random features of kernels on distributions: mean embeddings in random frequencies, then a Gaussian of those."""

from functools import singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.points import rows
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of, whole_number
from meanmap.core.types import Array, Data, KernelLike, Points, Seed
from meanmap.features.base import Concatenated, Features
from meanmap.features.fourier import Fourier
from meanmap.features.mean_fourier import FeaturesOfLaws, Kind, MeanFourier, compiled
from meanmap.kernels.base import Kernel, Sum
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.domain import named, variables
from meanmap.kernels.distributions.expected import ExpectedProduct
from meanmap.kernels.distributions.gaussian import EmbeddingGaussian
from meanmap.kernels.distributions.mean_variance import MeanVariance
from meanmap.kernels.distributions.tuples import TupleProduct, TupleSum
from meanmap.kernels.spectral import frequencies

__all__ = ["SideBySide", "TwoStage"]


class TwoStage(FeaturesOfLaws):
    """Random features ψ of a Gaussian kernel on mean embeddings: ⟨ψ(P), ψ(Q)⟩ ≈ exp(−‖μ_P − μ_Q‖²/2γ²).

    The first stage is the means φ(P) of `d_in` random Fourier features, exact through characteristic functions; the
    second is `d_out` random Fourier features of the Gaussian of width γ on R^d_in. For a product of such kernels over a
    tuple, the first stages are concatenated, each divided by its γ, and share joint outer frequencies.

    Made by `TwoStage.draw`.

    Attributes
    ----------
    kernel : EmbeddingGaussian or TupleProduct
        The kernel that is approximated.
    inner : tuple of Features or MeanVariance
        The first stage of each factor.
    frequencies : array (d_out or d_out/2, Σ d_in)
    seed : int
        `TwoStage.draw(kernel, like, ..., rng=features.seed)` draws the same features again, so that only the seed has
        to be stored (Dai et al. 2014).

    References
    ----------
    Jitkrittum et al. (2015), Algorithm 1.
    """

    kernel: Any
    inner: tuple[Any, ...]
    frequencies: Any
    phases: Any
    scale: Any
    kind: Kind = eqx.field(static=True)
    seed: int | None = eqx.field(static=True)

    @classmethod
    def draw(
        cls, kernel: Kernel, like: Data, d_in: int = 300, d_out: int = 500, kind: Kind = "cos-sin", rng: Seed = None
    ) -> Features:
        """Draw features of a kernel on distributions.

        Parameters
        ----------
        kernel : Kernel
            `EmbeddingGaussian`, or a `TupleProduct` of those: two stages. `ExpectedProduct`, or a `TupleProduct` of
            those: `d_in` mean features. `MeanVariance`: `d_out` Fourier features. A `TupleSum`, or a sum of such
            kernels: those of the members side by side.
        like : distributions
            Some of the points, which determine the variables and their dimensions.
        d_in, d_out : int
            Features of the first and second stage; even for `kind="cos-sin"`. Jitkrittum et al. (2015) use 300 and 500.
            The error of a Gram entry falls as d_in^(−1/2) and d_out^(−1/2).
        kind : {"cos-sin", "cos-phase"}
            As for `Fourier`; the paper uses "cos-phase", "cos-sin" has a smaller variance.
        rng : None, int, numpy.random.Generator or JAX key
            Randomness; an integer repeats the draw.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap.families import Beta, Normal
        >>> from meanmap.kernels import EmbeddingGaussian
        >>> rng = np.random.default_rng(0)
        >>> messages = Normal(rng.normal(size=40), rng.uniform(0.5, 2, 40)), Beta(rng.uniform(1, 9, 40), 3.0)
        >>> kernel = EmbeddingGaussian.at_scale_of(messages)
        >>> psi = TwoStage.draw(kernel, like=messages, d_in=1000, d_out=2000, rng=0)
        >>> bool(np.abs(psi(messages) @ psi(messages).T - kernel(messages)).mean() < 0.03)
        True
        """
        if not isinstance(kernel, DistributionKernel | Sum):
            raise KindError(
                f"kernel is {kernel!r}; expected a kernel on distributions such as EmbeddingGaussian.at_scale_of(x). "
                "For kernels on points use mm.features.Fourier.draw."
            )
        one_of(kind, "kind", ("cos-sin", "cos-phase"))
        for name, number in (("d_in", d_in), ("d_out", d_out)):
            whole_number(number, name)
            if kind == "cos-sin" and number % 2:
                raise ParameterError(f"{name} is {number}; cosines and sines come in pairs: use an even number.")
        source = Rng.of(rng)
        with Door(kernel, like) as door:
            points = kernel.domain.read(like, "like", door)
            checker = kernel.check_variables if isinstance(kernel, DistributionKernel) else kernel.check
            checker(points, "like")
            plan = _Plan(int(d_in), int(d_out), kind, source.seed, door)
            return door.leave(_draw(door.cast(kernel), points, plan, source.key))

    def gather(self, x: Points, tabulate: bool) -> Any:
        """The distributions gathered by each first stage."""
        parts = zip(self.inner, _parts(self.kernel, x), strict=True)
        return tuple(part if isinstance(s, MeanVariance) else s.gather(part, tabulate) for s, part in parts)

    def angles(self, gathered: Array) -> jax.Array:
        """ν·x for the points x in which the kernel is a Gaussian of unit width."""
        blocks = [
            stage.coordinates(part) if isinstance(stage, MeanVariance) else stage.finish(part) / member.width
            for member, stage, part in zip(_factors(self.kernel), self.inner, gathered, strict=True)
        ]
        coordinates = blocks[0] if len(blocks) == 1 else jnp.concatenate(blocks, axis=1)
        return jnp.matmul(coordinates, jnp.asarray(self.frequencies).T, precision="highest")

    def finish(self, gathered: Array) -> jax.Array:
        """Fourier features of those points."""
        angles = self.angles(gathered)
        if self.kind == "cos-phase":
            return self.scale * jnp.cos(angles + self.phases)
        return self.scale * jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)

    def write(self, gathered: Array, out: np.ndarray) -> None:
        """The features with NumPy, whose cosine in float64 is more than twice as fast as XLA's on a CPU."""
        angles = np.asarray(compiled(self, gathered, "angles"))[: len(out)]
        half = out.shape[1] // 2
        if self.kind == "cos-phase":
            np.cos(angles + self.phases, out=out)
        else:
            np.cos(angles, out=out[:, :half])
            np.sin(angles, out=out[:, half:])
        out *= self.scale

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points fit the first stages."""
        for stage, part in zip(self.inner, _parts(self.kernel, points), strict=True):
            if isinstance(stage, Features):
                stage.check(part, argument)

    @property
    def size(self) -> int:
        """d_out, the number of outer features."""
        return self.frequencies.shape[0] * (2 if self.kind == "cos-sin" else 1)


class SideBySide(FeaturesOfLaws):
    """Features of a `TupleSum`: those of each variable side by side. Made by `TwoStage.draw`."""

    kernel: Any
    members: tuple[Any, ...]
    seed: int | None = eqx.field(static=True)

    def gather(self, x: Points, tabulate: bool) -> Any:
        """The distributions gathered by each member."""
        parts = zip(self.members, self.kernel.parts(x), strict=True)
        return tuple(m.gather(part, tabulate) if isinstance(m, FeaturesOfLaws) else part for m, part in parts)

    def finish(self, gathered: Array) -> jax.Array:
        """One block of columns for each variable."""
        parts = zip(self.members, gathered, strict=True)
        return jnp.concatenate(
            [m.finish(p) if isinstance(m, FeaturesOfLaws) else m.transform(p) for m, p in parts], axis=1
        )

    def check(self, points: Points, argument: str) -> None:
        """Raise unless the points fit every member."""
        for member, part in zip(self.members, self.kernel.parts(points, argument), strict=True):
            member.check(part, argument)

    @property
    def size(self) -> int:
        """The sum of the members' numbers of features."""
        return sum(member.size for member in self.members)


class _Plan:
    """Settings shared by all draws of one call."""

    def __init__(self, d_in: int, d_out: int, kind: Kind, seed: int | None, door: Door):
        self.d_in, self.d_out, self.seed, self.dtype = d_in, d_out, seed, door.dtype
        self.kind: Kind = kind

    def number(self, features: int) -> int:
        """The number of frequencies for this many features."""
        return features // 2 if self.kind == "cos-sin" else features

    def phases(self, key: jax.Array, features: int) -> jax.Array | None:
        """Phases uniform on [0, 2π), if needed."""
        if self.kind == "cos-sin":
            return None
        return jax.random.uniform(key, (features,), self.dtype, 0, 2 * np.pi)


@singledispatch
def _draw(kernel: KernelLike, points: Points, plan: _Plan, key: jax.Array) -> Features:
    """Features of a kernel on distributions, by its kind."""
    del points, plan, key
    raise KindError(
        f"{kernel!r} has no random features: they exist for EmbeddingGaussian, ExpectedProduct, "
        "MeanVariance, products of the Gaussian ones, and sums. mm.features.Nystrom takes any kernel."
    )


@_draw.register(Sum | TupleSum)
def _draw_sum(kernel: Any, points: Points, plan: _Plan, key: jax.Array) -> Features:
    keys, parts = jax.random.split(key, len(kernel.members)), kernel.parts(points)
    drawn = tuple(_draw(m, part, plan, k) for m, part, k in zip(kernel.members, parts, keys, strict=True))
    if isinstance(kernel, Sum):
        return Concatenated(kernel, drawn)
    return SideBySide(kernel=kernel, members=drawn, seed=plan.seed)


@_draw.register
def _draw_product(kernel: TupleProduct, points: Points, plan: _Plan, key: jax.Array) -> Features:
    if all(isinstance(member, ExpectedProduct) for member in kernel.members):
        return _draw_means(_joined(kernel, points), points, plan, key)
    for member in kernel.members:
        if not isinstance(member, EmbeddingGaussian | MeanVariance):
            _draw.dispatch(object)(kernel, points, plan, key)
    return _draw_stages(kernel, points, plan, key)


@_draw.register(EmbeddingGaussian)
def _draw_stages(kernel: object, points: Points, plan: _Plan, key: jax.Array) -> Features:
    factors = _factors(kernel)
    key_inner, key_outer, key_phases = jax.random.split(key, 3)
    keys, parts = jax.random.split(key_inner, len(factors)), _parts(kernel, points)
    stages = [
        m if isinstance(m, MeanVariance) else _draw(m.inner, part, plan, k)
        for m, part, k in zip(factors, parts, keys, strict=True)
    ]
    sizes = [
        jax.eval_shape(stage.coordinates, part).shape[1] if isinstance(stage, MeanVariance) else stage.size
        for stage, part in zip(stages, parts, strict=True)
    ]
    frequencies = jax.random.normal(key_outer, (plan.number(plan.d_out), sum(sizes)), plan.dtype)
    scale = np.asarray(np.sqrt(2 / plan.d_out), plan.dtype)
    phases = plan.phases(key_phases, plan.d_out)
    return TwoStage(
        kernel=kernel,
        inner=tuple(stages),
        frequencies=frequencies,
        phases=phases,
        scale=scale,
        kind=plan.kind,
        seed=plan.seed,
    )


@_draw.register
def _draw_fourier(kernel: MeanVariance, points: Points, plan: _Plan, key: jax.Array) -> Features:
    return Fourier.draw(kernel, rows(points, slice(0, 1)), plan.d_out, plan.kind, rng=key)


@_draw.register
def _draw_means(kernel: ExpectedProduct, points: Points, plan: _Plan, key: jax.Array) -> MeanFourier:
    """One set of frequencies for the joint distribution, a block of columns for each variable."""
    key_frequencies, key_phases = jax.random.split(key)
    found = kernel.variables(points, "like")
    keys = jax.random.split(key_frequencies, len(found))
    blocks, square = [], 1.0
    for (_, law, member, _), k in zip(found, keys, strict=True):
        origin = np.zeros((1, law.dimension), plan.dtype)
        blocks.append(frequencies(member, k, plan.number(plan.d_in), origin))
        square = square * member.diagonal(origin)[0]
    scale = jnp.sqrt(2 / plan.d_in * jnp.asarray(square, plan.dtype))
    return MeanFourier(
        kernel=kernel,
        frequencies=tuple(blocks),
        phases=plan.phases(key_phases, plan.d_in),
        scale=scale,
        kind=plan.kind,
        seed=plan.seed,
    )


def _joined(kernel: TupleProduct, points: Points) -> ExpectedProduct:
    """The expected product on the tuple that equals a product of expected products."""
    names, laws = variables(points)
    members: Any = kernel.members
    found = [member.variables(law)[0] for member, law in zip(members, laws, strict=True)]
    kernels, places = tuple(entry[2] for entry in found), tuple(entry[3] for entry in found)
    return ExpectedProduct(named(kernels, names), named(places, names))


def _factors(kernel: KernelLike) -> tuple[Any, ...]:
    return kernel.members if isinstance(kernel, TupleProduct) else (kernel,)


def _parts(kernel: KernelLike, x: Points) -> tuple[Any, ...]:
    return kernel.parts(x) if isinstance(kernel, TupleProduct) else (x,)
