"""A kernel learned from a sample without labels: by the pseudolikelihood of its embedding, or by held-out points."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.door import Door
from meanmap.core.errors import InputError, ParameterError
from meanmap.core.pictures import new_axes
from meanmap.core.progress import waiting
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.tables.schema import Schema, opened
from meanmap.core.threads import one_blas_thread
from meanmap.core.types import Array, Axes, Data, Numbers, Seed
from meanmap.core.values import Value
from meanmap.kernels.base import Kernel
from meanmap.kernels.stationary import RBF, Matern
from meanmap.learning.doubts import check_columns, data_doubts, left_out, mode_doubts, unseen_columns
from meanmap.learning.hyperparameters import Hyperparameters
from meanmap.learning.landscape import landscape_of
from meanmap.learning.modes import Mode, Profile, find_modes
from meanmap.learning.pages import learned_page
from meanmap.learning.samples import draw_landmarks, places_of, read_sample, rows_used, units_of
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged

__all__ = ["LearnedKernel", "learn_kernel"]

SCORES = ("pseudolikelihood", "held-out")
# All large terms of the pseudolikelihood are means over points: 600 of 1740 gave the same lengthscale within 4%. The
# embedding of held-out points needs all pairs.
MOST_POINTS = {"pseudolikelihood": 2000, "held-out": 1500}
# With several hyperparameters, for which hundreds of gradients are needed.
MOST_POINTS_OF_MANY = 800


@dataclass(frozen=True, eq=False, repr=False)
class LearnedKernel(Paged, Value):
    """A kernel learned from a sample, with every mode that was found.

    Attributes
    ----------
    kernel : Kernel
        The kernel at the highest mode.
    modes : tuple of Mode
        All modes, the highest first: each with its kernel, objective, share of the draws of landmarks and spread.
    objective : float
        The objective at the highest mode.
    report : Report
        How the search ended, and in which ways the result is doubtful.
    profile : Profile
        The objective over multiples of one lengthscale.
    seed : int or None
        `rng=fit.seed` repeats the run.
    schema : Schema or None
        The kinds of the columns of the sample; None for samples that come in pieces.
    """

    kernel: Kernel
    modes: tuple[Mode, ...]
    objective: float
    report: Report
    profile: Profile = field(repr=False)
    units: np.ndarray = field(repr=False)
    seed: int | None = None
    schema: Schema | None = field(default=None, repr=False)

    def __str__(self) -> str:
        lines = [f"{self.kernel}, learned"]
        lines += [f"  mode at {mode.kernel}: {self._said(mode)}" for mode in self.modes]
        return "\n".join([*lines, *(f"  {line}" for line in str(self.report).splitlines())])

    def _said(self, mode: Mode) -> str:
        """The objective of a mode, and how far draws of landmarks agree about it, if there are several."""
        if len(self.profile.values) == 1:
            return f"objective {mode.objective:.1f}"
        known = np.isfinite(mode.spread).any()
        spread = f"lengthscale ±{100 * float(np.nanmax(mode.spread)):.0f}% between draws, " if known else ""
        return f"objective {mode.objective:.1f}, {spread}the highest mode in {mode.share:.0%} of draws"

    def _as_page(self, brief: bool = False) -> Page:
        return learned_page(self)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the objective over lengthscales, each draw of landmarks and their mean, with the modes."""
        ax = new_axes(5.5, 3.5) if ax is None else ax
        unit = float(np.exp(np.mean(np.log(self.units))))
        scales, mean = self.profile.multiples * unit, self.profile.mean
        ax.plot(scales, self.profile.values.T, color="lightgrey", lw=1)
        ax.plot(scales, mean, color="black", label="mean over landmarks")
        one = np.size(self.modes[0].vector) == 1
        for index, mode in enumerate(self.modes if one else ()):
            scale = float(np.exp(mode.vector[0]))
            ax.axvline(scale, color=f"C{index % 10}", label=f"mode at {scale:.3g}")
        finite = mean[np.isfinite(mean)]
        top = finite.max()
        ax.set_ylim(top - 1.2 * (top - np.median(finite)) - 1, top + 0.1 * (top - np.median(finite)) + 1)
        ax.set(xscale="log", xlabel="lengthscale", ylabel="objective")
        ax.legend(fontsize="small")
        return ax


@own_words
@one_blas_thread()
def learn_kernel(
    x: Data,
    kernel: Kernel | None = None,
    landmarks: Numbers = 0.05,
    noise: float = 1.0,
    rng: Seed = None,
    *,
    width: Array | None = None,
    draws: int = 5,
    score: str = "pseudolikelihood",
    missing: str = "raise",
    kinds: Mapping[str, Any] | None = None,
) -> LearnedKernel:
    """Learn the lengthscales of a kernel from a sample alone: no labels, no task.

    Parameters
    ----------
    x : points (n, d), or a source of them
        Dense rows of numbers, at least 10. Memory maps, Parquet files and iterators are subsampled (of an iterator, the
        first rows are used).
    kernel : RBF, Matern, a product of RBF and Matern, or a sum of multiples of these, optional
        The form of the kernel: `RBF()`, the default, has one lengthscale for all columns, `RBF([1.0, 1.0])` one for
        each, and so has `Matern()`, whose smoothness is kept; for a sum the weights are learned too, keeping k(x, x).
        Lengthscales and weights are those to begin with and do not matter, but k(x, x) does: compare forms with the
        same, such as `0.5 * RBF() + 0.5 * RBF()` with `RBF()`. Factors may be on columns of their own, such as
        `OnColumns(RBF(), "height") * OnColumns(Matern(), "age")`. A product of RBF kernels on the same columns is an
        RBF kernel, whose lengthscales are all that a sample can determine: it is refused. So are products of Matérn
        kernels on the same columns, and sums with a term that ignores a column which another has. Columns that no
        kernel is on are left out, with a note. Columns of an array are numbers, or "x0", "x1" and so on.
    landmarks : float, int or points (m, d)
        z: a share of the points (at least 20 landmarks and twice the columns, at most 200), a number, or the landmarks.
    noise : float
        τ². One reproduces the published results; see the notes.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks and subsamples; `fit.seed` repeats them.
    width : float or "learn", optional
        η of a Gaussian base measure about the mean of the data, in their units; "learn" searches between a
        tenth and a thousand times the unit of the sample (see the notes). None is the Lebesgue measure.
    draws : int
        The number of draws of landmarks over which the objective is averaged.
    score : {"pseudolikelihood", "held-out"}
        "pseudolikelihood" is eq. 15 of Flaxman et al. (2016), as corrected: see `log_pseudolikelihood`.
        "held-out" is not in the paper: the log density of each point under the embedding of the others. It needs no
        landmarks and no noise.
    missing : {"raise", "drop"}, or list of codes
        What happens to missing values: an error, or the rows are dropped, and the report counts them by column. A list
        of codes, such as ["?", -999], drops rows with these, too.
    kinds : mapping of column to kind, optional
        The kinds of columns whose data type does not show it, such as {"phase": "angle"}: see `Schema.of`.

    Returns
    -------
    LearnedKernel
        `fit.kernel`, `fit.modes`, `fit.objective`, `fit.report`.

    Notes
    -----
    The objective is evaluated at 36 lengthscales between a tenth of the shortest distances and ten diameters, and
    maximised from each of its peaks. Larger samples are reduced to 2000 random points (1500 for "held-out", 800 for
    several hyperparameters).

    If each column has a lengthscale of its own, each is first divided by its standard deviation, so that its unit does
    not matter. If one lengthscale is for all columns, all are divided by one number, the root mean square of their
    standard deviations: a column with a standard deviation far below the lengthscale then hardly counts. A note names
    it. The objective is that of the scaled sample.

    With fixed noise the pseudolikelihood is the mean log volume of the features minus half their variance over τ². In
    one and two dimensions the volume depends on how densely landmarks lie, so that **the lengthscale follows their
    number**: 5% of the sample resolves clusters of 5% of it. In five or more dimensions it depends on the
    dimension instead: on five clusters of normals along the first of 5, 10 and 20 columns it is .21, .39 and .54 of the
    median distance. With `noise` well below 1 longer lengthscales win, for any data: on the
    paper's grids of normals (ratio 2) the lengthscale is .86 with noise 1, .54 with .1, and 54 with .05.

    "held-out" scores are log densities, comparable across lengthscales, and do not depend on landmarks. On 900 + 900
    points of the paper's grids of normals (ratio 2, components at random) it chooses .57; the pseudolikelihood .85 with
    90 landmarks, 1.2 with 50 and 7.3 with 25. With lengthscale .55 and with .85 the two-sample test rejected for all of
    40 pairs of samples, with the median distance for 3. For features of functions of the data, not their distribution,
    neither score is a guide: see the experiment `kernel-learning-feature-width`.

    Landmarks and subsamples are random rows, whatever sample a row belongs to. The kernel of the pooled sample of a
    two-sample test therefore has the same distribution if labels are permuted, and permutation tests with it stay
    exact; with one seed another order of rows gives other landmarks.

    Cost O(n m d² + m³) for each of about 60 evaluations and each draw, in O(n m). A product of RBF and Matern on the
    same columns takes O(m²) more some hundred times, with smoothness 1/2 some thousand times: see `Smoothed`.

    Examples
    --------
    Two clusters far apart: the median distance is that between clusters, the learned lengthscale that within a cluster.

    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300) + 50 * rng.integers(2, size=300)
    >>> fit = mm.learn_kernel(x, rng=0)
    >>> bool(fit.kernel.lengthscale < 1 < mm.median_heuristic(x)), len(fit.modes) > 1
    (True, True)
    """
    one_of(score, "score", SCORES)
    parameter(noise, "noise", axes=0)
    whole_number(draws, "draws")
    learned_width = isinstance(width, str)
    if learned_width and width != "learn":
        raise ParameterError(f"width is {width!r}; expected a number, 'learn' or None.")
    if width is not None and not learned_width:
        parameter(width, "width", axes=0)
    if width is not None and score == "held-out":
        raise ParameterError("width is the base measure of a prior, and score='held-out' has none: leave it out.")
    kernel = RBF() if kernel is None else kernel
    random = Rng.of(rng)
    (x,), (schema,), told = opened((x,), ("x",), missing, kinds)
    with Door() as door:
        one = isinstance(kernel, RBF | Matern) and np.size(kernel.lengthscale) == 1 and not learned_width
        most = MOST_POINTS[score] if one else MOST_POINTS_OF_MANY
        points, n, names = read_sample(x, most, random.generator, door)
        on = places_of(kernel, names)
        what = Hyperparameters.of(kernel, len(on), learned_width)
        without = [name for j, name in enumerate(names) if j not in on]
        sample, points, names = points, points[:, on], tuple(names[j] for j in on)
        check_columns(points, names)
        doubts = [*told, *rows_used(x, len(points), n), *left_out(names, without), *data_doubts(points, names)]
        centre = points.mean(axis=0)
        z = points[None, :1]
        if score == "pseudolikelihood":
            z = draw_landmarks(landmarks, sample, n, draws, random.generator, door)[:, :, on]
        units = units_of(points, what.by_column)
        scaled, z = (points - centre) / units, (z - centre) / units
        known = None if width is None or learned_width else np.asarray(width) / (units if what.by_column else units[0])
        landscape = landscape_of(score, what, scaled, z, noise, known)
        with waiting("learning a kernel"):
            modes, profile = find_modes(landscape, what, units, random.generator)
        if not modes:
            raise InputError(
                "the objective is nowhere finite: rows of x repeat, or lie on few lines. In tests use kernel='median'."
            )
        doubts += mode_doubts(modes, points, score, random.generator)
        doubts += [] if what.by_column else unseen_columns(modes[0].kernel, points, names)
    report = Report(
        status="one mode found" if len(modes) == 1 else f"{len(modes)} modes found",
        converged=not modes[0].at_bound,
        steps=landscape.calls[0],
        counts={"points": len(points)}
        | ({"landmarks": z.shape[1], "draws of landmarks": len(z)} if score == "pseudolikelihood" else {}),
        notes=tuple(doubts),
    )
    return LearnedKernel(modes[0].kernel, tuple(modes), modes[0].objective, report, profile, units, random.seed, schema)
