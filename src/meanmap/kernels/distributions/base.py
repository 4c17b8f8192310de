"""The base of kernels on distributions: distributions are prepared once, then compared in pairs."""

from abc import abstractmethod
from typing import Any

import jax

from meanmap.core.domains import Domain
from meanmap.core.door import Door
from meanmap.core.types import Array, Data, Points
from meanmap.kernels.base import ByGram, Kernel
from meanmap.kernels.distributions.domain import Messages, check_same_kind

__all__ = ["DistributionKernel"]


class DistributionKernel(ByGram):
    """A kernel whose points are distributions: a batched family, bags of samples, or a tuple or mapping of these.

    To write one, define `prepared`, which turns distributions into plain arrays and a kernel on those, so that the
    expensive part of a distribution (its characteristic function) is computed once and not for every pair; and
    `check_variables`.
    """

    @property
    def domain(self) -> Domain:
        """Distributions along one leading axis."""
        return Messages()

    @abstractmethod
    def prepared(self, x: Points, y: Points = None) -> tuple[Kernel, Any, Any]:
        """A kernel of plain arrays, and those of x and of y (`None` for `y = x`). Pure and traceable.

        If all numbers are known, integration rules are as long as necessary for the distributions; if they are traced,
        the length is fixed and `check` decides whether it suffices.
        """

    @abstractmethod
    def check_variables(self, points: Points, argument: str) -> None:
        """Raise unless this kernel has settings for exactly the variables of the points."""

    def check_traced(self, points: Points, argument: str) -> None:
        """Raise if numbers are known to be beyond the range of the rules used inside `jit`."""

    def check(self, points: Points, argument: str) -> None:
        """Both checks, for sums, products and features of this kernel."""
        self.check_variables(points, argument)
        self.check_traced(points, argument)

    def gram(self, x: Points, y: Points) -> jax.Array:
        """The (N, M) Gram matrix of distributions already read: pure and traceable."""
        check_same_kind(x, y)
        kernel, x, y = self.prepared(x, y)
        return kernel.gram(x, y)

    def diagonal(self, x: Points) -> jax.Array:
        """κ(P, P) of each."""
        kernel, x, _ = self.prepared(x)
        return kernel.diagonal(x)

    def _ready(self, x: Points, y: Points, door: Door) -> tuple[Kernel, Any, Any]:
        first, second = self._read(x, "x", door), None if y is None else self._read(y, "y", door)
        if second is not None:
            check_same_kind(first, second)
        kernel, px, py = door.cast(self).prepared(first, second)
        return door.leave(kernel), door.leave(px), None if second is None else door.leave(py)

    def _read(self, data: Data, argument: str, door: Door) -> Any:
        points = self.domain.read(data, argument, door)
        self.check_variables(points, argument)
        return points

    def __call__(self, x: Data, y: Data = None) -> Array:
        """The Gram matrix: entry (i, j) is κ(Pᵢ, Qⱼ); `k(x)` is `k(x, x)`.

        Parameters
        ----------
        x, y : Distribution, list of arrays, or a tuple or mapping of these
            N and M distributions (a batch with one axis, or one sample each), or tuples of them (one batch per
            variable).

        Returns
        -------
        array of shape (N, M)
            NumPy float64, or a JAX array in the inputs' dtype if any of them holds one.
        """
        with Door(self, x, y) as door:
            kernel, x, y = self._ready(x, y, door)
            return kernel(x, y)

    def diag(self, x: Data) -> Any:
        """κ(Pᵢ, Pᵢ) for each point, without the Gram matrix."""
        with Door(self, x) as door:
            kernel, x, _ = self._ready(x, None, door)
            return kernel.diag(x)

    def matvec(self, x: Data, y: Data, v: Array) -> Any:
        """The product K(x, y) v, streamed by tiles; `y=None` means `y = x`."""
        with Door(self, x, y, v) as door:
            kernel, x, y = self._ready(x, y, door)
            return kernel.matvec(x, y, v)

    def mean(self, x: Data, y: Data = None) -> Array:
        """Row means of the Gram matrix, streamed."""
        with Door(self, x, y) as door:
            kernel, x, y = self._ready(x, y, door)
            return kernel.mean(x, y)
