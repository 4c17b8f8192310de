"""A kernel learned from a sample without labels: by the pseudolikelihood of its embedding, or by held-out points."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.spatial.distance import pdist

from meanmap.core.arrays import check_rows, parameter
from meanmap.core.chunks import chunks_of, count_rows, is_stream, take_rows
from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError, ParameterError, ShapeError
from meanmap.core.points import bucket, is_sparse, pad
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.table import Table
from meanmap.kernels.base import Kernel
from meanmap.kernels.reading import read_points
from meanmap.kernels.stationary import RBF
from meanmap.learning.doubts import check_columns, data_doubts, mode_doubts
from meanmap.learning.held_out import held_out
from meanmap.learning.hyperparameters import Hyperparameters
from meanmap.learning.modes import Landscape, Mode, Profile, find_modes
from meanmap.learning.pseudolikelihood import objective

__all__ = ["LearnedKernel", "learn_kernel"]

SCORES = ("pseudolikelihood", "held-out")
# All large terms of the pseudolikelihood are means over points: 600 of 1740 gave the same lengthscale within 4 %. The
# embedding of held-out points needs all pairs.
MOST_POINTS = {"pseudolikelihood": 2000, "held-out": 1500}
# With several hyperparameters, for which hundreds of gradients are needed.
MOST_POINTS_OF_MANY = 800
# In one and two dimensions the lengthscale follows the spacing of landmarks: few give a coarse scale, many a fine one.
LEAST_LANDMARKS = 20
MOST_LANDMARKS = 200
# The range of lengthscales: from where every point sees one landmark to where all features are linear.
SHORTEST = 0.1  # of the 2 % quantile of distances
LONGEST = 10.0  # times the diameter
NEAREST = 0.02


@dataclass(frozen=True)
class LearnedKernel:
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
    """

    kernel: Kernel
    modes: tuple[Mode, ...]
    objective: float
    report: Report
    profile: Profile = field(repr=False)
    units: np.ndarray = field(repr=False)
    seed: int | None = None

    def __str__(self) -> str:
        lines = [f"{self.kernel}, learned"]
        for mode in self.modes:
            doubt = f"±{100 * float(np.nanmax(mode.spread)):.0f} %" if np.isfinite(mode.spread).any() else "±?"
            lines.append(f"  mode at {mode.kernel}: {mode.objective:.1f}, {doubt}, in {mode.share:.0%} of draws")
        return "\n".join([*lines, *(f"  {line}" for line in str(self.report).splitlines())])

    def plot(self, axes: Any = None) -> Any:
        """Draw the objective over lengthscales, each draw of landmarks and their mean, with the modes."""
        if axes is None:
            from matplotlib.figure import Figure

            axes = Figure(figsize=(5.5, 3.5), layout="constrained").subplots()
        unit = float(np.exp(np.mean(np.log(self.units))))
        scales, mean = self.profile.multiples * unit, self.profile.mean
        axes.plot(scales, self.profile.values.T, color="lightgrey", lw=1)
        axes.plot(scales, mean, color="black", label="mean over landmarks")
        one = np.size(self.modes[0].vector) == 1
        for index, mode in enumerate(self.modes if one else ()):
            scale = float(np.exp(mode.vector[0]))
            axes.axvline(scale, color=f"C{index % 10}", label=f"mode at {scale:.3g}")
        finite = mean[np.isfinite(mean)]
        top = finite.max()
        axes.set_ylim(top - 1.2 * (top - np.median(finite)) - 1, top + 0.1 * (top - np.median(finite)) + 1)
        axes.set(xscale="log", xlabel="lengthscale", ylabel="objective")
        axes.legend(fontsize="small")
        return axes


def learn_kernel(
    x: Any,
    kernel: Kernel | None = None,
    landmarks: Any = 0.05,
    noise: float = 1.0,
    rng: Any = None,
    *,
    width: Any = None,
    draws: int = 5,
    score: str = "pseudolikelihood",
) -> LearnedKernel:
    """Learn the lengthscales of a kernel from a sample alone: no labels, no task.

    Parameters
    ----------
    x : points (n, d), or a source of them
        Dense rows of numbers, at least 10. Memory maps, Parquet files and iterators are subsampled (of an iterator, the
        first rows).
    kernel : RBF, or a sum of multiples of RBF, optional
        What is learned: `RBF()`, the default, has one lengthscale for all columns, `RBF([1.0, 1.0])` one for each; of a
        sum the weights are learned too, keeping k(x, x). The numbers themselves do not matter.
    landmarks : float, int or points (m, d)
        z: a share of the points (at least 20 landmarks and twice the columns, at most 200), a number, or the landmarks.
    noise : float
        τ². One is the setting under which the published results come out; see the notes.
    rng : None, int, numpy.random.Generator or JAX key
        Draws landmarks and subsamples; `fit.seed` repeats them.
    width : float or "learn", optional
        η of a Gaussian base measure about the mean of the data; None is the Lebesgue measure.
    draws : int
        Draws of landmarks, over which the objective is averaged.
    score : {"pseudolikelihood", "held-out"}
        "pseudolikelihood" is eq. 15 of Flaxman et al. (2016), as corrected: see [`log_pseudolikelihood`][].
        "held-out" is not in the paper: the log density of each point under the embedding of the others. It has no
        landmarks and no noise.

    Returns
    -------
    LearnedKernel
        `fit.kernel`, `fit.modes`, `fit.objective`, `fit.report`.

    Notes
    -----
    The objective is evaluated at 36 lengthscales between a tenth of the shortest distances and ten diameters, and
    climbed from each of its peaks. Of more than 2000 points (1500 for "held-out", 800 for
    several hyperparameters) as many are drawn.

    With fixed noise the pseudolikelihood is the mean log volume of the features less half their variance over τ². In
    one and two dimensions the volume depends on how densely landmarks lie, so that **the lengthscale follows their
    number**: 5 % of the sample resolves clusters of 5 % of it. In five or more dimensions it is a constant fraction of
    the median distance. With `noise` well below 1 longer lengthscales win, whatever the data.

    "held-out" scores are log densities, comparable under any lengthscale, and do not hang on landmarks. On 900 + 900
    points of the paper's grids of normals (ratio 2) it chooses .57; the pseudolikelihood .85 with 90 landmarks, 1.2
    with 50 and 7.3 with 20. At .55 and at .85 the two-sample test told all of 40 pairs of samples apart, at the median
    distance 3. For functions of the data, instead of their law, neither is a guide: see the experiment
    ``kernel-learning-feature-width``.

    Landmarks and subsamples are drawn without regard to order, so that on the pooled sample of a two-sample test the
    kernel does not depend on who belongs to which sample, and permutation tests with it stay exact.

    Cost O(n m d² + m³) for each of about 60 evaluations and each draw, in O(n m).

    Examples
    --------
    Two clusters far apart: the median distance is that between them, the learned lengthscale is that within.

    >>> import numpy as np
    >>> import meanmap as mm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=300) + 50 * rng.integers(2, size=300)
    >>> fit = mm.learn_kernel(x, rng=0)
    >>> bool(fit.kernel.lengthscale < 1 < mm.median_heuristic(x)), len(fit.modes) > 1
    (True, True)
    """
    if score not in SCORES:
        raise ParameterError(f"score is {score!r}; expected one of {', '.join(map(repr, SCORES))}.")
    parameter(noise, "noise", axes=0)
    _check_count(draws, "draws", 1)
    learned_width = isinstance(width, str)
    if learned_width and width != "learn":
        raise ParameterError(f"width is {width!r}; expected a number, 'learn' or None.")
    if width is not None and not learned_width:
        parameter(width, "width", axes=0)
    if width is not None and score == "held-out":
        raise ParameterError("width is the base measure of a prior, which score='held-out' has not: leave it out.")
    kernel = RBF() if kernel is None else kernel
    random = Rng.of(rng)
    with Door() as door:
        one = isinstance(kernel, RBF) and np.size(kernel.lengthscale) == 1 and not learned_width
        most = MOST_POINTS[score] if one else MOST_POINTS_OF_MANY
        points, n, names = _sample(x, most, random.generator, door)
        d = points.shape[1]
        what = Hyperparameters.of(kernel, d, learned_width)
        check_columns(points, names)
        doubts = data_doubts(points, names)
        centre = points.mean(axis=0)
        z = points[None, :1]
        if score == "pseudolikelihood":
            z = _landmarks(landmarks, points, n, draws, random.generator, door)
        points, z = points - centre, z - centre
        units = points.std(axis=0) if max(what.columns) else np.ones(d)
        landscape = _landscape(score, what, points, z, noise, None if learned_width else width, units)
        modes, profile = find_modes(landscape, what, random.generator)
        if not modes:
            raise InputError(
                "the objective is nowhere finite: rows of x repeat, or lie on few lines. Use kernel='median' instead."
            )
        doubts += mode_doubts(modes, points, score, random.generator)
    report = Report(
        status="one mode found" if len(modes) == 1 else f"{len(modes)} modes found",
        converged=not modes[0].at_bound,
        steps=landscape.calls[0],
        counts={"points": len(points)}
        | ({"landmarks": z.shape[1], "draws of landmarks": len(z)} if score == "pseudolikelihood" else {}),
        notes=tuple(doubts),
    )
    return LearnedKernel(modes[0].kernel, tuple(modes), modes[0].objective, report, profile, units, random.seed)


def landmark_count(landmarks: float, n: int, d: int) -> int:
    """How many landmarks a share of n points in d columns is."""
    return min(n, max(LEAST_LANDMARKS, 2 * d, min(MOST_LANDMARKS, round(landmarks * n / 10) * 10)))


def _sample(x: Any, most: int, generator: np.random.Generator, door: Door) -> tuple[np.ndarray, int, tuple[str, ...]]:
    """Rows of numbers, at most so many, how many there were, and the names of the columns."""
    if is_sparse(x):
        raise KindError("x is sparse, and a learned kernel needs a density: pass x.toarray(), or kernel='median'.")
    if isinstance(x, jax.Array):
        x = np.asarray(x)
    if is_stream(x):
        x = next(chunks_of(x, most, "x"), np.empty((0, 1)))
        n = len(x)
    else:
        n = count_rows(x) or 0
        if n > most:
            x = take_rows(x, np.sort(generator.choice(n, most, replace=False)))
    points = np.asarray(read_points(RBF(), x, "x", door))
    check_rows(len(points), "x", least=10)
    names = Table.names_in(x) if Table.looks_like_one(x) else [f"column {j}" for j in range(points.shape[1])]
    return points, n, tuple(names if len(names) == points.shape[1] else map(str, range(points.shape[1])))


def _landmarks(
    wanted: Any, points: np.ndarray, n: int, draws: int, generator: np.random.Generator, door: Door
) -> np.ndarray:
    """Landmarks of each draw, (draws, m, d)."""
    d = points.shape[1]
    if isinstance(wanted, int | float | np.number) and not isinstance(wanted, bool):
        if isinstance(wanted, float | np.floating) and not 0 < wanted < 1:
            raise ParameterError(f"landmarks is {wanted!r}; expected a share between 0 and 1, a number, or points.")
        share = isinstance(wanted, float | np.floating)
        m = landmark_count(float(wanted), n, d) if share else int(wanted)
        if m > len(points):
            raise ParameterError(f"landmarks is {m}, and x has {len(points)} points to draw them from.")
        chosen = [generator.choice(len(points), m, replace=False) for _ in range(draws)]
        z = np.stack([points[index] for index in chosen])
    else:
        z = np.asarray(read_points(RBF(), wanted, "landmarks", door))[None]
    if z.shape[2] != d:
        raise ShapeError(f"landmarks have {z.shape[2]} columns and x has {d}; expected as many.")
    if z.shape[1] < d:
        raise ShapeError(f"there are {z.shape[1]} landmarks for {d} columns; expected at least as many, better twice.")
    return z


def _landscape(
    score: str, what: Hyperparameters, points: np.ndarray, z: np.ndarray, noise: float, width: Any, units: np.ndarray
) -> Landscape:
    """The objective of vectors, compiled once for a size of the sample."""
    distances = pdist(points[:: -(-len(points) // 500)] / units)
    distances = distances[distances > 0]
    shortest = SHORTEST * float(np.quantile(distances, NEAREST))
    size = bucket(len(points))
    data = pad(points, size), np.arange(size) < len(points), z, np.float64(noise), width
    calls = [0]

    def values(vector: np.ndarray) -> np.ndarray:
        calls[0] += 1
        found = np.asarray(_values(score, what, vector, *data))
        return np.where(np.isnan(found), -np.inf, found)

    def slopes(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls[0] += 1
        found, slope = _slopes(score, what, vector, *data)
        return np.asarray(found), np.asarray(slope)

    return Landscape(values, slopes, units, shortest, LONGEST * float(distances.max()), calls)


def _value(
    score: str, what: Hyperparameters, vector: Any, x: Any, used: Any, z: Any, noise: Any, width: Any
) -> jax.Array:
    kernel = what.kernel(vector)
    if score == "held-out":
        return held_out(kernel, x, used)
    return objective(kernel, x, z, noise, what.base_width(vector) if what.width else width, used)


@partial(jax.jit, static_argnums=(0, 1))
def _values(score: str, what: Hyperparameters, vector: Any, x: Any, used: Any, z: Any, noise: Any, width: Any) -> Any:
    """The objective for each draw of landmarks, (draws,)."""
    return jax.lax.map(lambda draw: _value(score, what, vector, x, used, draw, noise, width), z)


@partial(jax.jit, static_argnums=(0, 1))
def _slopes(score: str, what: Hyperparameters, vector: Any, x: Any, used: Any, z: Any, noise: Any, width: Any) -> Any:
    """The same with gradients, (draws,) and (draws, p)."""
    value = jax.value_and_grad(lambda v, draw: _value(score, what, v, x, used, draw, noise, width))
    return jax.lax.map(lambda draw: value(vector, draw), z)


def _check_count(value: Any, name: str, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{name} is {value!r}; expected a whole number of at least {least}.")
