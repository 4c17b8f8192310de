"""Products and sums over the variables of a tuple of distributions."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError
from meanmap.core.types import Array, Points
from meanmap.core.values import as_tuple
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.domain import per_variable, settings, variables
from meanmap.kernels.distributions.parts import Joint
from meanmap.kernels.spectral import Spectral, coordinates, frequencies

__all__ = ["TupleKernel", "TupleProduct", "TupleSum"]


class TupleKernel(DistributionKernel):
    """One kernel for each variable of a tuple of distributions."""

    members: eqx.AbstractVar[tuple[DistributionKernel, ...]]
    names: eqx.AbstractVar[tuple[Any, ...] | None]
    by: eqx.AbstractClassVar[Literal["product", "sum"]]

    def parts(self, points: Points, argument: str = "x") -> tuple[Any, ...]:
        """The distributions that each member reads."""
        names, laws = variables(points)
        per_variable(self.members, self.names, names, "members", argument)
        return laws

    def check_variables(self, points: Points, argument: str) -> None:
        """As each member checks its variable."""
        for member, part in zip(self.members, self.parts(points, argument), strict=True):
            member.check_variables(part, argument)

    def check_traced(self, points: Points, argument: str) -> None:
        """As each member checks its variable."""
        for member, part in zip(self.members, self.parts(points, argument), strict=True):
            member.check_traced(part, argument)

    def prepared(self, x: Points, y: Points = None) -> tuple[Kernel, Any, Any]:
        """The prepared variable of each member."""
        ours = self.parts(x)
        theirs = (None,) * len(ours) if y is None else self.parts(y, "y")
        made = [member.prepared(a, b) for member, a, b in zip(self.members, ours, theirs, strict=True)]
        kernels, px, py = zip(*made, strict=True)
        return Joint(kernels, self.by), px, py


def _members(members: object) -> tuple[Any, Any]:
    members, names = settings(members, "members")
    members = as_tuple(members)
    for member in members:
        if not isinstance(member, DistributionKernel):
            raise KindError(f"members holds {member!r}; expected kernels on distributions such as ExpectedProduct().")
    return members, names


class TupleProduct(TupleKernel, Spectral):
    """κ(P, Q) = Π_l κ_l(P_l, Q_l) over the variables of a tuple of distributions.

    Parameters
    ----------
    members : tuple or mapping of DistributionKernel
        One for each variable.

    Notes
    -----
    A product of expected products is the `ExpectedProduct` of the tuple. A product of Gaussians sums the squared
    distances of separate embeddings, whereas `EmbeddingGaussian` of the tuple uses the distance of joint embeddings.

    Examples
    --------
    >>> from meanmap.families import Beta, Normal
    >>> from meanmap.kernels import EmbeddingGaussian, ExpectedProduct, RBF
    >>> k = TupleProduct((EmbeddingGaussian(ExpectedProduct(RBF(1.0))), EmbeddingGaussian(ExpectedProduct(RBF(0.2)))))
    >>> k((Normal([0.0, 1.0], 1.0), Beta([2.0, 1.0], [1.0, 2.0]))).shape
    (2, 2)
    """

    members: tuple[DistributionKernel, ...]
    names: tuple[Any, ...] | None = eqx.field(static=True)
    by = "product"

    def __init__(self, members: object):
        self.members, self.names = _members(members)

    def coordinates(self, x: Points) -> Any:
        """Coordinates of the members side by side: a product of shift-invariant kernels is one on the joint space."""
        parts = zip(self.members, self.parts(x), strict=True)
        return jnp.concatenate([coordinates(member, part) for member, part in parts], axis=1)

    def frequencies(self, key: Array, n: int, like: Points) -> Any:
        """Independent draws for each member, side by side."""
        keys = jax.random.split(key, len(self.members))
        parts = zip(self.members, keys, self.parts(like), strict=True)
        return jnp.concatenate([frequencies(member, k, n, part) for member, k, part in parts], axis=1)


class TupleSum(TupleKernel):
    """κ(P, Q) = Σ_l κ_l(P_l, Q_l) over the variables of a tuple of distributions.

    Parameters
    ----------
    members : tuple or mapping of DistributionKernel
        One for each variable.

    Examples
    --------
    >>> from meanmap.families import Beta, Normal
    >>> from meanmap.kernels import ExpectedProduct, MeanVariance, RBF
    >>> k = TupleSum({"x": ExpectedProduct(RBF(1.0)), "p": MeanVariance(0.2, 0.1)})
    >>> k({"x": Normal([0.0, 1.0], 1.0), "p": Beta([2.0, 1.0], [1.0, 2.0])}).shape
    (2, 2)
    """

    members: tuple[DistributionKernel, ...]
    names: tuple[Any, ...] | None = eqx.field(static=True)
    by = "sum"

    def __init__(self, members: object):
        self.members, self.names = _members(members)
