"""The Gaussian kernel on mean embeddings."""

from typing import Any

from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.points import library_of
from meanmap.core.types import Numbers, Points
from meanmap.kernels.base import Kernel
from meanmap.kernels.distributions.base import DistributionKernel
from meanmap.kernels.distributions.domain import Messages
from meanmap.kernels.distributions.expected import ExpectedProduct
from meanmap.kernels.distributions.parts import OuterGaussian
from meanmap.kernels.distributions.scales import MOST_MESSAGES, median_of_pairs, spread_out

__all__ = ["EmbeddingGaussian"]


class EmbeddingGaussian(DistributionKernel):
    """κ(P, Q) = exp(−‖μ_P − μ_Q‖²/2γ²), a Gaussian of the distance between (joint) mean embeddings, their MMD.

    Unlike the expected product, which is linear in P, it is universal on distributions: it can learn any continuous
    function of them. On a tuple of messages μ is the embedding of their joint distribution.

    Parameters
    ----------
    inner : DistributionKernel
        The inner product of embeddings, such as `ExpectedProduct(RBF(1.0))`.
    width : float
        γ, in units of the RKHS norm: embeddings under an RBF kernel are at most √2 apart.

    Notes
    -----
    Christmann & Steinwart (2010), eq. 9; Jitkrittum et al. (2015), eq. 2. Its random features are
    `mm.features.TwoStage.draw(kernel, like=messages)`. A Gram matrix costs as much as that of `inner`.

    Examples
    --------
    >>> from meanmap.families import Normal
    >>> from meanmap.kernels import RBF
    >>> k = EmbeddingGaussian(ExpectedProduct(RBF(1.0)), width=0.5)
    >>> k(Normal([0.0, 1.0, 9.0], 1.0)).round(4).tolist()
    [[1.0, 0.7015, 0.0993], [0.7015, 1.0, 0.0993], [0.0993, 0.0993, 1.0]]
    """

    inner: DistributionKernel
    width: Any

    def __init__(self, inner: object = None, width: Numbers = 1.0):
        inner = ExpectedProduct() if inner is None else inner
        if not isinstance(inner, DistributionKernel):
            raise KindError(
                f"inner is {inner!r}; expected a kernel on distributions such as ExpectedProduct(RBF(1.0))."
            )
        self.inner = inner
        self.width = parameter(width, "width", axes=0)

    @classmethod
    def at_scale_of(
        cls, messages: object, coordinate: object = "auto", widths: str = "total", most: int = MOST_MESSAGES
    ) -> "EmbeddingGaussian":
        """The kernel at the scale of some distributions: inner lengthscales from their spread, γ from their distances.

        Parameters
        ----------
        messages : distributions
            As the kernel reads them.
        coordinate, widths
            As for `ExpectedProduct.at_scale_of`; `widths="within"` is the choice of Jitkrittum et al. (2015).
        most : int
            γ² is half the median squared distance between embeddings of at most this many messages, evenly spaced.

        Examples
        --------
        >>> import numpy as np
        >>> from meanmap.families import Normal
        >>> messages = Normal(np.linspace(-2, 2, 50), np.linspace(0.1, 3, 50))
        >>> k = EmbeddingGaussian.at_scale_of(messages)
        >>> bool(abs(np.median(k(messages)[np.triu_indices(50, 1)]) - np.exp(-1.0)) < 1e-4)
        True
        """
        return cls.around(ExpectedProduct.at_scale_of(messages, coordinate, widths), messages, most)

    @classmethod
    def around(cls, inner: DistributionKernel, messages: object, most: int = MOST_MESSAGES) -> "EmbeddingGaussian":
        """The kernel of a given inner product, with γ² half the median squared distance between some distributions."""
        with Door(inner, messages) as door:
            return cls(inner, embedding_width(inner, messages, most, door))

    def check_variables(self, points: Points, argument: str) -> None:
        """As the inner kernel."""
        self.inner.check_variables(points, argument)

    def check_traced(self, points: Points, argument: str) -> None:
        """As the inner kernel."""
        self.inner.check_traced(points, argument)

    def prepared(self, x: Points, y: Points = None) -> tuple[Kernel, Any, Any]:
        """The inner kernel's arrays, with the squared norms of the embeddings."""
        kernel, px, py = self.inner.prepared(x, y)
        theirs = None if y is None else (py, kernel.diagonal(py))
        return OuterGaussian(kernel, self.width), (px, kernel.diagonal(px)), theirs


def embedding_width(inner: DistributionKernel, messages: object, most: int, door: Door) -> Any:
    """γ with γ² half the median squared distance of embeddings."""
    points = spread_out(Messages().read(messages, "messages", door), most)
    gram = inner(points)
    library = library_of(gram)
    norms = library.diagonal(gram)
    squares = library.maximum(norms[:, None] + norms[None, :] - 2 * gram, 0)
    return library.sqrt(median_of_pairs(squares, "a width") / 2)
