"""The expected product kernel: inner products of mean embeddings."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from meanmap.core.door import Door, all_concrete
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.types import Array, KernelLike, Points
from meanmap.core.values import as_tuple
from meanmap.kernels.base import Kernel, Scaled
from meanmap.kernels.distributions.bags import Bags
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.domain import label, named, per_variable, settings, variables
from meanmap.kernels.distributions.expectations import SPECTRAL_REACH, TRACED_NODES
from meanmap.kernels.distributions.laws import (
    check_distribution,
    check_traced_frequency,
    resolve_coordinate,
)
from meanmap.kernels.distributions.parts import CHUNK, BagPart, GaussianPart, Joint, SpectralPart
from meanmap.kernels.distributions.scales import inner_kernels
from meanmap.kernels.distributions.spectral import bag_coordinates, law_coordinates, nodes_for
from meanmap.kernels.stationary import RBF

__all__ = ["ExpectedProduct"]

# A kernel value of two points (a distance and an exponential) costs about this many multiply-adds of a matrix product.
PAIR_COST = 20
# Spectral coordinates of bags may take up to this many numbers (1 GiB of doubles).
MOST_NUMBERS = 1 << 27


class ExpectedProduct(DistributionKernel):
    """κ(P, Q) = E E k(X, Y) = ⟨μ_P, μ_Q⟩ for independent X ~ P and Y ~ Q: the inner product of mean embeddings.

    On a tuple of distributions it is the product over the variables of E E k_l(X_l, Y_l): the inner product of the
    tensor products of the embeddings, and also of the joint embeddings, because the joint kernel is the product of the
    k_l (as is an RBF kernel with a lengthscale for every coordinate).

    Families are exact under `RBF`: in closed form for (mixtures of) normal distributions, points and labels, and to
    about 1e-14 for all others, whose characteristic functions are evaluated once for each distribution. Bags represent
    their empirical distribution, κ = Σ Σ k(xᵢ, yⱼ)/(n m), under any kernel on points. Under other shift-invariant
    kernels families have no exact Gram matrix here, only random features, `mm.features.TwoStage.draw`.

    Parameters
    ----------
    kernel : Kernel, or a tuple or mapping of them
        k: one for all variables, or one for each.
    coordinate : str, or a tuple or mapping of them
        The coordinate in which k acts: "x"; "log" for a Gamma or "logit" for a Beta, which make spreads over many
        decades comparable; or "auto" for those two where they exist and "x" otherwise.

    Notes
    -----
    Jitkrittum et al. (2015), section 3.1; its draft, sections 4.1-4.2 and appendix B.3. N by M families cost O((N + M)
    R + N M R) for R frequencies, a number that grows with the ratio of the distributions' spread to the lengthscale.
    Bags of n points under an RBF kernel in one or two dimensions cost the same, plus O(n) each; other bags cost O(N M
    n²) kernel values, in tiles. Inside `jit` rules have a fixed length, enough for distributions that spread over 700
    lengthscales.

    Examples
    --------
    >>> from meanmap.families import Beta, Normal
    >>> from meanmap.kernels import RBF
    >>> k = ExpectedProduct(RBF(1.0))
    >>> k(Normal([0.0, 1.0], 1.0)).round(4).tolist()
    [[0.5774, 0.4887], [0.4887, 0.5774]]
    >>> k = ExpectedProduct((RBF(1.0), RBF(0.5)), coordinate=("x", "logit"))
    >>> k((Normal([0.0, 1.0], 1.0), Beta([2.0, 1.0], [1.0, 2.0]))).shape
    (2, 2)
    >>> k = ExpectedProduct(RBF(1.0))
    >>> k([[0.0, 1.0], [2.0]]).round(4).tolist()
    [[0.8033, 0.3709], [0.3709, 1.0]]
    """

    kernel: Any
    coordinate: Any = eqx.field(static=True)
    names: tuple[Any, ...] | None = eqx.field(static=True)

    def __init__(self, kernel: KernelLike = None, coordinate: object = "x"):
        kernel, names = settings(RBF(1.0) if kernel is None else kernel, "kernel")
        for member in as_tuple(kernel):
            if not isinstance(member, Kernel) or isinstance(member, DistributionKernel):
                raise KindError(f"kernel is {member!r}; expected a kernel on points such as RBF(1.0), or one for each.")
        coordinate, places = settings(coordinate, "coordinate")
        for place in as_tuple(coordinate):
            if not isinstance(place, str):
                raise KindError(f"coordinate is {place!r}; expected 'x', 'log', 'logit' or 'auto'.")
        if names is not None and places is not None and names != places:
            raise ParameterError(f"kernel is given for {list(names)} and coordinate for {list(places)}.")
        self.kernel, self.coordinate, self.names = kernel, coordinate, names if places is None else places

    @classmethod
    def at_scale_of(cls, messages: object, coordinate: object = "auto", widths: str = "total") -> "ExpectedProduct":
        """RBF kernels at the scale of some distributions, with a lengthscale for every variable and coordinate.

        Parameters
        ----------
        messages : distributions
            As the kernel reads them.
        coordinate : str, or a tuple or mapping of them
            As for the kernel; "auto" is resolved into names.
        widths : {"total", "within"}
            ℓ² is the mean variance of the distributions plus the variance of their means (so, the variance of their
            equal mixture), or the mean variance alone (Jitkrittum et al. 2015), which resolves narrow distributions
            better but makes distant ones equally distant.

        Examples
        --------
        >>> from meanmap.families import Normal
        >>> ExpectedProduct.at_scale_of(Normal([-1.0, 1.0], 3.0)).kernel
        RBF(lengthscale=[2.0])
        """
        with Door(messages) as door:
            kernels, places, names = inner_kernels(messages, coordinate, widths, door)
            return cls(named(door.leave(kernels), names), named(places, names))

    def variables(self, points: Points, argument: str = "x") -> list[tuple[Any, Any, Kernel, str]]:
        """Name, distribution, kernel and coordinate of each variable."""
        names, laws = variables(points)
        kernels = per_variable(self.kernel, self.names, names, "kernel", argument)
        places = per_variable(self.coordinate, self.names, names, "coordinate", argument)
        places = [resolve_coordinate(place, law, name) for place, law, name in zip(places, laws, names, strict=True)]
        return list(zip(names, laws, kernels, places, strict=True))

    def check_variables(self, points: Points, argument: str) -> None:
        """Require a kernel that fits the dimension of each variable, in a coordinate that the variable has."""
        for name, law, kernel, _ in self.variables(points, argument):
            if isinstance(law, Bags):
                kernel.check(law.points[0], label(argument, name))
            elif law.dimension == 1 or np.ndim(getattr(_base(kernel), "lengthscale", 0.0)) == 1:
                kernel.check(np.zeros((1, law.dimension)), label(argument, name))

    def check_traced(self, points: Points, argument: str) -> None:
        """Refuse variables that spread over more lengthscales than the fixed rule resolves."""
        for name, law, kernel, place in self.variables(points, argument):
            lengthscale = getattr(_base(kernel), "lengthscale", None)
            if not isinstance(_base(kernel), RBF) or not all_concrete((law, lengthscale)):
                continue
            if law.event_shape or law.gaussian_parts(place) is not None:
                continue
            smallest = np.min(np.asarray(lengthscale))
            check_traced_frequency(law, place, SPECTRAL_REACH / smallest, name, argument)
            if nodes_for(law, law, lengthscale, place, name)[0] > TRACED_NODES:
                raise ParameterError(
                    f"the lengthscale of {label(argument, name)} is {smallest:.3g}, too small for distributions in a "
                    "sum or product of kernels: call the kernel on its own, use a longer one, or another coordinate."
                )

    def prepared(self, x: Points, y: Points = None) -> tuple[Kernel, Any, Any]:
        """Each variable in the form with the fastest Gram matrix: normal components, spectral coordinates, points."""
        first = self.variables(x)
        second = first if y is None else self.variables(y, "y")
        parts = [
            _prepare_variable(kernel, place, name, law, None if y is None else other)
            for (name, law, kernel, place), (_, other, _, _) in zip(first, second, strict=True)
        ]
        kernels, ours, theirs = zip(*parts, strict=True)
        return Joint(kernels, "product"), ours, theirs


def _split(kernel: Kernel) -> tuple[Any, Kernel]:
    """c and k of a kernel c k; None and the kernel itself if it is not a multiple."""
    if not isinstance(kernel, Scaled):
        return None, kernel
    scale, base = _split(kernel.kernel)
    return kernel.scale if scale is None else kernel.scale * scale, base


def _base(kernel: Kernel) -> Kernel:
    return _split(kernel)[1]


def _prepare_variable(kernel: Kernel, place: str, name: object, x: Points, y: Points) -> tuple[Kernel, Any, Any]:
    if isinstance(x, Bags):
        return _prepare_bags(kernel, x, y)
    scale, base = _split(kernel)
    if not isinstance(base, RBF):
        raise KindError(
            f"the expected product of {type(x).__name__} distributions is known exactly under RBF, not under "
            f"{kernel!r}: use RBF, random features (mm.features.TwoStage.draw), or bags of samples."
        )
    lengthscale = base.lengthscale
    part, px, py = _prepare_laws(lengthscale, place, name, x, y)
    return (part if scale is None else Scaled(part, scale)), px, py


def _prepare_laws(lengthscale: Array, place: str, name: object, x: Points, y: Points) -> tuple[Kernel, Any, Any]:
    gaussian = x.gaussian_parts(place)
    if gaussian is not None:
        return GaussianPart(lengthscale), gaussian, None if y is None else y.gaussian_parts(place)
    check_distribution(x, "expected product")
    if np.size(lengthscale) != 1:
        raise ShapeError(f"the lengthscale of {label('x', name)} has {np.size(lengthscale)} entries; expected one.")
    number = TRACED_NODES
    if all_concrete((x, y, lengthscale)):
        number = int(nodes_for(x, x if y is None else y, lengthscale, place, name)[0])
    px = law_coordinates(x, lengthscale, place, number)
    return SpectralPart(), px, None if y is None else law_coordinates(y, lengthscale, place, number)


def _prepare_bags(kernel: Kernel, x: Bags, y: Bags | None) -> tuple[Kernel, Any, Any]:
    other = x if y is None else y
    scale, base = _split(kernel)
    if isinstance(base, RBF) and x.dimension <= 2 and all_concrete((x, y, base)):
        numbers = nodes_for(x, other, base.lengthscale, "x")
        size = int(np.prod(2 * numbers - 1))
        (n, points), (m, others) = x.weights.shape, other.weights.shape
        sums = (n * points + m * others + n * m) * size
        if sums < PAIR_COST * n * points * m * others and (n + m) * size < MOST_NUMBERS:
            part = SpectralPart() if scale is None else Scaled(SpectralPart(), scale)
            px = _spectral(x, base.lengthscale, numbers)
            return part, px, None if y is None else _spectral(y, base.lengthscale, numbers)
    size = max(x.points.shape[1], other.points.shape[1])
    pieces = -(-size // CHUNK)
    size = pieces * -(-size // pieces)  # both are cut into the same number of equal pieces
    return BagPart(kernel), x.lengthened(size), None if y is None else y.lengthened(size)


def _spectral(bags: Bags, lengthscale: Array, numbers: np.ndarray) -> jax.Array:
    return bag_coordinates(bags, lengthscale, tuple(map(int, numbers)))
