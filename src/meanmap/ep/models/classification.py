"""Gaussian-process classification: the process as a linear map of kernel features, with Normal weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.containers import handed_over
from meanmap.core.errors import KindError, ShapeError
from meanmap.core.notes import in_few
from meanmap.core.pictures import new_axes
from meanmap.core.points import bucket
from meanmap.core.progress import track
from meanmap.core.settings import one_of
from meanmap.core.tables.indices import check_order
from meanmap.core.tables.table import Table
from meanmap.core.types import Axes, Data
from meanmap.core.values import plain
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.models.binary import LINKS, TwoLabels
from meanmap.ep.models.design import label_text, read_labels, warn_of_doubts
from meanmap.ep.models.regression import fit_linear, moments
from meanmap.ep.models.summary import Inferred
from meanmap.families import MultivariateNormal, Normal
from meanmap.features import PivotedCholesky
from meanmap.kernels import RBF, Kernel
from meanmap.learning.default import column_lengthscales
from meanmap.plots.facts import Axis, Chart, Mark, Page, Panel, Section
from meanmap.plots.paged import Paged

__all__ = ["GPClassification", "gp_classification"]

# Multiples of the default lengthscale, and variances of the process, among which the evidence chooses.
_LENGTHSCALES = (0.25, 0.5, 1.0, 2.0)
_VARIANCES = (1.0, 8.0, 64.0)

# Of the trace of the Gram matrix, left to independent noise at new points.
_TOLERANCE = 1e-6
_MOST_FEATURES = 512


@dataclass(frozen=True, eq=False, repr=False)
class GPClassification(TwoLabels, Paged, Inferred):
    """A fitted Gaussian-process classifier.

    Attributes
    ----------
    classes : (2,) array
        The labels; where the process is high the second is probable.
    link : {"logistic", "probit"}
    features : PivotedCholesky
        Of the kernel, on the points of the fit.
    variance : float
        By which the kernel is multiplied.
    intercept_sd : float
        Prior standard deviation of the constant added to the process.
    mean, covariance : arrays
        Of the belief about the constant, in its standard deviations, and the weights of the features.
    posterior : Posterior
        What inference returned.
    tried : tuple of (kernel, variance, log evidence)
        All kernels and variances that were compared.
    names : tuple of str or None
        The columns of the default kernel, which are found by name; None if the kernel reads points in its own way.
    notes : tuple of str
        Caveats.
    """

    classes: np.ndarray
    link: str
    features: PivotedCholesky
    variance: float
    intercept_sd: float
    mean: np.ndarray
    covariance: np.ndarray
    posterior: Posterior
    tried: tuple[tuple[Kernel, float, float], ...]
    names: tuple[str, ...] | None
    notes: tuple[str, ...] = ()

    def latent(self, X: Data) -> Normal:
        """The belief about the process at new points."""
        return Normal(*self._predictor(X))

    def _predictor(self, X: Data) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the process."""
        points = handed_over(X) if self.names is None else _numbers(X, self.names)
        phi = np.asarray(self.features(points))
        rows = _columns(phi, self.variance, self.intercept_sd, len(self.mean))
        left = self.variance * np.maximum(self.features.kernel.diag(points) - (phi**2).sum(1), 0)
        return rows @ self.mean, ((rows @ self.covariance) * rows).sum(1) + left

    def plot(self, X: Data, y: Data = None, ax: Axes | None = None) -> Any:
        """Draw the probability of the second label over the range of X, of one or two columns; returns the Axes."""
        points = _numbers(X, self.names)
        if points.shape[1] > 2:
            raise ShapeError(f"X has {points.shape[1]} columns; expected one or two to draw.")
        ax = new_axes(5.5, 4) if ax is None else ax
        low, high = points.min(0), points.max(0)
        ticks = [np.linspace(a - 0.1 * (b - a), b + 0.1 * (b - a), 80) for a, b in zip(low, high, strict=True)]
        mesh = np.stack(np.meshgrid(*ticks), -1)
        grid = mesh.reshape(-1, points.shape[1])
        one = self.predict_proba(grid)[:, 1]
        upper = None if y is None else np.asarray(y) == self.classes[1]
        label = f"P({label_text(self.classes[1])})"
        if points.shape[1] == 2:
            drawn = ax.contourf(*ticks, one.reshape(80, 80), levels=np.linspace(0, 1, 11), cmap="RdBu", alpha=0.8)
            ax.contour(*ticks, one.reshape(80, 80), levels=[0.5], colors="k", linewidths=1)
            ax.figure.colorbar(drawn, ax=ax, label=label)
            if upper is not None:
                for mine, mark in ((upper, "^"), (~upper, "o")):
                    ax.plot(*points[mine].T, mark, ms=4, mfc="white", mec="k", ls="")
            return ax
        mean, variance = self._predictor(grid)
        ends = (LINKS[self.link][1](mean + sign * 1.96 * np.sqrt(variance)) for sign in (-1, 1))
        ax.fill_between(ticks[0], *ends, alpha=0.3, label="95% interval")
        ax.plot(ticks[0], one)
        ax.set(ylabel=label, ylim=(-0.05, 1.05))
        if upper is not None:
            ax.plot(points[:, 0], upper, "k|")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            "model": "Gaussian-process classification",
            "kernel": repr(self.features.kernel),
            "features": int(self.features.rank),
            **plain(self, "classes", "link", "variance", "log_evidence"),
            "converged": bool(self.report.converged),
            "tried": [[repr(kernel), variance, evidence] for kernel, variance, evidence in self.tried],
            "notes": [*self.notes, *self.report.notes],
        }

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("kernel", f"{self.variance:g} × {self.features.kernel}"),
            ("features", f"{int(self.features.rank)}, relative error {float(self.features.relative_error):.1g}"),
            ("log evidence", f"{self.log_evidence:.6g}, the best of {len(self.tried)}"),
            ("inference", f"{self.report.status} after {self.report.steps} sweeps"),
            *(("note", note) for note in in_few((*self.notes, *self.report.notes))),
        ]

    def __str__(self) -> str:
        title = f"Gaussian-process classification ({self.link}), P({label_text(self.classes[1])})"
        return "\n".join([title, *(f"  {name}: {text}" for name, text in self._facts())])

    def _as_page(self, brief: bool = False) -> Page:
        names = [f"{variance:g} × {kernel}" for kernel, variance, _ in self.tried]
        evidence = np.array([each for _, _, each in self.tried])
        places = -np.arange(len(names), dtype=float)
        dots = Mark("dots", {"x": evidence, "y": places}, "", names)
        ticks = tuple(zip(places.tolist(), names, strict=True))
        chart = Chart("What was tried", (Panel(Axis("log evidence"), Axis(ticks=ticks), (dots,)),))
        said = f"P({label_text(self.classes[1])}), with the {self.link} link."
        section = Section("The model", said, charts=(chart,), tables=((("what", "which"), *self._facts()),))
        return Page("Gaussian-process classification", "", (section,), self.to_dict())


def gp_classification(
    X: Data,
    y: Data,
    *,
    kernel: Kernel | None = None,
    variance: float | None = None,
    intercept_sd: float = 2.5,
    link: str = "logistic",
    **settings: Any,
) -> GPClassification:
    """Classify two labels, with a boundary of any shape: P(y = 1) = σ(b + g(x)), b a constant, g a Gaussian process.

    Parameters
    ----------
    X : DataFrame, (n, d) array, or whatever `kernel` reads
        n points.
    y : array_like (n,)
        Two labels of any kind; the one that sorts last is the 1.
    kernel : Kernel, optional
        The covariance of g. By default RBF with a lengthscale for each column, the medians times what the evidence
        chooses.
    variance : number, optional
        By which the kernel is multiplied; by default what the evidence chooses among 1, 8 and 64.
    intercept_sd : number
        Standard deviation of the prior of b.
    link : {"logistic", "probit"}
        From the process to the probability.
    **settings
        Passed on to `meanmap.ep.infer`.

    Notes
    -----
    g = φ(x)ᵀw for the features of a pivoted Cholesky factorisation that leaves a millionth of the trace, and w has a
    standard Normal prior: Rasmussen & Williams (2006), sections 3.6 and 8.1. The variance that the features do not
    explain is added at new points. At most 512 features. Cost O(n r²) per sweep for r features, and one run for each of
    the twelve pairs of a lengthscale and a variance: some tens of seconds for 2000 points. For a single run, choose
    both on a subset of the rows and pass `kernel` and `variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from meanmap import ep, kernels
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> fit = ep.models.gp_classification(X, np.linalg.norm(X, axis=1) > 1, kernel=kernels.RBF(1.0), link="probit")
    >>> fit.predict([[0.0, 0.0], [1.5, -1.5]]).tolist()
    [False, True]
    """
    one_of(link, "link", LINKS)
    if kernel is not None and not isinstance(kernel, Kernel):
        raise KindError(f"kernel is {kernel!r}; expected a kernel, such as mm.kernels.RBF(1.0).")
    check_order((X, y), ("X", "y"))
    warn_of_doubts(X)
    names, points = None, X
    if kernel is None:
        names, points = Table.of(X, "X").names, _numbers(X)
        scales = column_lengthscales(points)
        kernels: list[Kernel] = [RBF(multiple * scales) for multiple in _LENGTHSCALES]
    else:
        kernels = [kernel]
    wide = float(parameter(intercept_sd, "intercept_sd", axes=0))
    variances = _VARIANCES if variance is None else (float(parameter(variance, "variance", axes=0)),)
    maps = [PivotedCholesky.fit(each, points, _TOLERANCE, max_rank=_MOST_FEATURES) for each in kernels]
    phis = [np.asarray(features(points)) for features in maps]
    classes, codes = read_labels(y, len(phis[0]))
    # One width for all kernels, so that the sweep is compiled once: further weights keep their prior.
    width = bucket(1 + max(phi.shape[1] for phi in phis))
    factor = LINKS[link][0]
    tried, runs = [], []
    for features, phi in track(zip(maps, phis, strict=True), "kernels", total=len(maps)):
        for scale in variances:
            rows = _columns(phi, scale, wide, width)
            prior = MultivariateNormal.standard(width)
            post = fit_linear(rows, prior, lambda z: factor(z, observed=codes), **settings)
            tried.append((features.kernel, scale, post.log_evidence))
            runs.append((features, scale, post))
    # The evidence of a run that did not converge is unreliable: it counts only where there is no other.
    features, scale, post = max(
        runs, key=lambda run: (run[2].report.converged, -np.inf if np.isnan(e := run[2].log_evidence) else e)
    )
    bad = sum(not run[2].report.converged for run in runs)
    notes = (f"{bad} of {len(runs)} runs, one for each kernel and variance, did not converge.",) if bad else ()
    return GPClassification(classes, link, features, scale, wide, *moments(post["w"]), post, tuple(tried), names, notes)


def _columns(phi: np.ndarray, variance: float, intercept_sd: float, width: int) -> np.ndarray:
    rows = np.zeros((len(phi), width))
    rows[:, 0], rows[:, 1 : 1 + phi.shape[1]] = intercept_sd, np.sqrt(variance) * phi
    return rows


def _numbers(X: Data, names: tuple[str, ...] | None = None) -> np.ndarray:
    table = Table.of(X, "X") if names is None else Table.with_names(X, names, "X")
    points = np.asarray(table.matrix(argument="X"), np.float64)
    if names is not None and len(table.names) != len(names):
        raise ShapeError(f"X has {len(table.names)} columns; expected {len(names)}, as in the fit: {', '.join(names)}.")
    return points
