"""The witness function μ_P − μ_Q of two samples, its uncertainty, and the regions where intervals exclude zero."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.bisection import bisect
from meanmap.core.door import Door
from meanmap.core.errors import KindError
from meanmap.core.intervals import ends
from meanmap.core.pictures import new_axes
from meanmap.core.rng import Rng
from meanmap.core.settings import whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import Schema
from meanmap.core.types import Array, Axes, Data, KernelLike, Numbers, Seed
from meanmap.embeddings.posterior import GaussianElement, PosteriorDifference, posterior_embedding
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_alike
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import asks_to_learn
from meanmap.learning.draws import KernelDraws
from meanmap.learning.learned import learned_for

__all__ = ["Region", "Witness", "posterior_witness"]

# The number of draws of the kernel that are used; 32 suffice to estimate the spread between lengthscales.
TERMS = 32
# Bisections for the ends of an interval: to 1e-9 of the initial width.
HALVINGS = 40


@dataclass(frozen=True)
class Region:
    """A range of points where the intervals of the witness lie above zero (sign 1), or below (sign −1)."""

    low: float
    high: float
    sign: int


@dataclass(frozen=True, eq=False, repr=False)
class Witness(GaussianElement):
    """μ_P − μ_Q of two samples, a mixture of Gaussian processes over draws of the kernel.

    Attributes
    ----------
    parts : tuple of PosteriorDifference
        One for each draw of the kernel.
    x, y : array (n, d), (m, d)
        The samples.
    """

    parts: tuple[PosteriorDifference, ...]
    x: np.ndarray
    y: np.ndarray

    def mean(self, points: Data) -> np.ndarray:
        """The mean over draws, (m,)."""
        return np.mean([part.mean(points) for part in self.parts], axis=0)

    def cov(self, points: Data) -> np.ndarray:
        """The mean covariance plus the covariance of the means."""
        means = np.stack([part.mean(points) for part in self.parts])
        centred = means - means.mean(axis=0)
        return np.mean([part.cov(points) for part in self.parts], axis=0) + centred.T @ centred / len(means)

    def sd(self, points: Data) -> np.ndarray:
        """Standard deviations at m points, (m,), without computing covariances between points."""
        means, stds = self._moments(points)
        return np.sqrt(np.mean(stds**2, axis=0) + np.var(means, axis=0))

    def interval(self, points: Data, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles of the mixture at each point, by bisection of its distribution function."""
        from scipy.special import ndtr

        shares = ends(confidence)
        if len(self.parts) == 1:
            return self.parts[0].interval(points, confidence)
        means, stds = self._moments(points)
        stds = np.maximum(stds, np.finfo(float).tiny)
        found = []
        start = np.min(means - 40 * stds, axis=0), np.max(means + 40 * stds, axis=0)
        for share in shares:
            low, high = bisect(lambda x, p=share: np.mean(ndtr((x - means) / stds), axis=0) < p, *start, HALVINGS)
            found.append((low + high) / 2)
        return found[0], found[1]

    def sample(self, points: Data, n: int = 1, rng: Seed = None) -> np.ndarray:
        """Joint draws (n, m): of a kernel, then of the function."""
        whole_number(n, "n")
        generator = Rng.of(rng).generator
        counts = generator.multinomial(n, np.full(len(self.parts), 1 / len(self.parts)))
        drawn = [part.sample(points, int(k), generator) for part, k in zip(self.parts, counts, strict=True) if k]
        return generator.permutation(np.concatenate(drawn))

    def excludes_zero(self, points: Data, confidence: float = 0.95) -> np.ndarray:
        """Whether the interval with this confidence excludes zero at each of m points."""
        low, high = self.interval(points, confidence)
        return (low > 0) | (high < 0)

    def regions(self, confidence: float = 0.95, grid: Array | None = None) -> tuple[Region, ...]:
        """The ranges of a single column where zero is excluded, on a grid: by default 400 points over the data."""
        grid = self._grid(400) if grid is None else np.sort(np.asarray(grid, float).ravel())
        if self.x.shape[1] != 1:
            raise KindError(f"regions are ranges of 1 column, and these points have {self.x.shape[1]}: see plot().")
        low, high = self.interval(self._named(grid), confidence)
        signs = np.where(low > 0, 1, np.where(high < 0, -1, 0))
        starts = np.flatnonzero(np.r_[True, np.diff(signs) != 0])
        ends = np.r_[starts[1:], len(signs)] - 1
        pairs = zip(starts, ends, strict=True)
        return tuple(Region(float(grid[a]), float(grid[b]), int(signs[a])) for a, b in pairs if signs[a])

    def plot(self, confidence: float = 0.95, ax: Axes | None = None) -> Any:
        """Draw the witness with its intervals in one column, or the sign where zero is excluded in two."""
        d = self.x.shape[1]
        if d > 2:
            raise KindError(f"a witness can be drawn over 1 or 2 columns, and these points have {d}.")
        ax = new_axes(6, 3.5) if ax is None else ax
        if d == 1:
            grid = self._grid(400)
            low, high = self.interval(self._named(grid), confidence)
            ax.axhline(0, color="lightgrey", lw=1)
            ax.fill_between(grid, low, high, color="C0", alpha=0.25, lw=0, label=f"{confidence:.0%} intervals")
            ax.plot(grid, self.mean(self._named(grid)), color="C0", label="posterior mean")
            bottom, top = ax.get_ylim()
            for region in self.regions(confidence):
                side = top if region.sign > 0 else bottom
                ax.plot([region.low, region.high], [side, side], color="C3", lw=4, solid_capstyle="butt")
            ax.plot([], [], color="C3", lw=4, label="zero excluded")
            ax.set(xlabel="x", ylabel="μ_P − μ_Q")
        else:
            side = [np.linspace(a, b, 60) for a, b in zip(*self._range(), strict=True)]
            mesh = np.stack(np.meshgrid(*side), axis=-1)
            points = self._named(mesh.reshape(-1, 2))
            mean = self.mean(points).reshape(mesh.shape[:2])
            surely = self.excludes_zero(points, confidence).reshape(mesh.shape[:2])
            top = np.abs(mean).max() or 1.0
            drawn = ax.contourf(*side, mean, levels=21, cmap="RdBu", vmin=-top, vmax=top)
            ax.figure.colorbar(drawn, ax=ax, label="μ_P − μ_Q")
            ax.contour(*side, surely.astype(float), levels=[0.5], colors="black", linewidths=1)
            ax.plot([], [], color="black", lw=1, label=f"zero excluded at {confidence:.0%}")
        ax.legend(fontsize="small")
        return ax

    def _moments(self, points: Data) -> tuple[np.ndarray, np.ndarray]:
        return np.stack([part.mean(points) for part in self.parts]), np.stack([part.sd(points) for part in self.parts])

    def _named(self, grid: np.ndarray) -> Any:
        """Points of a grid in the form of the samples: with the names of their columns, if they have any."""
        return (
            grid
            if self.schema is None or not self.schema.named
            else dict(zip(self.schema.names, np.atleast_2d(grid.T), strict=True))
        )

    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        both = np.concatenate([self.x, self.y])
        return np.quantile(both, 0.005, axis=0), np.quantile(both, 0.995, axis=0)

    def _grid(self, number: int) -> np.ndarray:
        low, high = self._range()
        return np.linspace(float(low[0]), float(high[0]), number)


@own_words
def posterior_witness(
    x: Data, y: Data, kernel: KernelLike = "learned", *, noise: Numbers | str = "empirical", rng: Seed = None
) -> Witness:
    """The posterior of the witness function μ_P − μ_Q: where x is credibly denser than y, and where y than x.

    Parameters
    ----------
    x, y : points (n, d), (m, d)
        The samples.
    kernel : Kernel, KernelDraws or "learned"
        "learned" takes the kernel of `learn_kernel` on the pooled sample. With the draws of `sample_kernel` on
        the pooled sample the lengthscale is integrated out: 32 draws are used, the same for both samples.
    noise : "empirical" or float
        As in `posterior_embedding`.
    rng : None, int, numpy.random.Generator or JAX key
        Draws the landmarks of "learned".

    Notes
    -----
    Flaxman et al. (2016), section 5 and figure 3. Intervals are pointwise: over a range of points some of them exclude
    zero by chance. A band that excludes zero somewhere is not a test; see `two_sample_test`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> w = posterior_witness(rng.normal(size=200), rng.normal(2.0, 1.0, size=200), RBF(1.0))
    >>> [(region.sign, round(region.low), round(region.high)) for region in w.regions(0.99)]
    [(1, -2, 1), (-1, 1, 3)]
    """
    schemas = [Schema.of_points(data, name, brief=True) for data, name in ((x, "x"), (y, "y"))]
    if schemas[0] is not None and schemas[0].named and schemas[1] is not None and schemas[1].named:
        y, schemas = schemas[0].read(y, "y"), schemas[:1] * 2  # columns in the order of x
    with Door() as door:
        first, second = (np.asarray(points) for points in read_alike(RBF(), [x, y], ["x", "y"], door))
    if asks_to_learn(kernel):
        kernel, _ = learned_for(np.concatenate([first, second]), rng)
    if not isinstance(kernel, Kernel):
        raise KindError(f"kernel is {kernel!r}; expected a kernel, draws of one, or 'learned'.")
    kernels = kernel.each(TERMS) if isinstance(kernel, KernelDraws) else [kernel]
    parts = tuple(
        PosteriorDifference(
            *(
                replace(posterior_embedding(points, one, noise=noise), schema=schema)
                for points, schema in zip((first, second), schemas, strict=True)
            )
        )
        for one in kernels
    )
    return Witness(parts, first, second, schema=schemas[0])
