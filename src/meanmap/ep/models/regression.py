"""What all regressions share: a belief about named coefficients, and a linear predictor at new rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meanmap.core.arrays import parameter
from meanmap.core.bisection import bisect
from meanmap.core.errors import ShapeError
from meanmap.core.notes import in_few
from meanmap.core.types import Axes, Data, Numbers
from meanmap.ep.factor import Factor
from meanmap.ep.factors.gaussian import Dot
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.infer import infer
from meanmap.ep.inference.modes import Slopes, at_mode
from meanmap.ep.inference.posterior import Posterior
from meanmap.ep.models.design import Design
from meanmap.ep.models.summary import Summarised, Summary
from meanmap.ep.variables import Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["Regression", "average", "fit_linear", "moments", "prior_of", "quantiles"]


@dataclass(frozen=True, eq=False, repr=False)
class Regression(Summarised):
    """A fitted regression.

    Attributes
    ----------
    title : str
        What was fitted, in words.
    design : Design
        The columns.
    mean : (d,) array
    covariance : (d, d) array
        Of the belief about all coefficients together, in the units of the data, in the order of `names`.
    posterior : Posterior
        What inference returned: messages, report, evidence.
    rows : int
        The number of them.
    notes : tuple of str
        Caveats.
    """

    title: str
    design: Design
    mean: np.ndarray
    covariance: np.ndarray
    posterior: Posterior
    rows: int
    notes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coefficients."""
        return self.design.labels

    @property
    def coefficients(self) -> MultivariateNormal:
        """The belief about all coefficients together."""
        return MultivariateNormal(self.mean, (self.covariance + self.covariance.T) / 2)

    def summary(self, confidence: float = 0.95) -> Summary:
        """The table of coefficients, with intervals of this probability."""
        return Summary.of_normal(self.names, self.mean, np.diag(self.covariance), confidence)

    def linear_predictor(self, X: Data) -> Normal:
        """The belief about xᵀw at each row of X; for ordered labels about (x − x̄)ᵀw."""
        return Normal(*self._predictor(X))

    def _predictor(self, X: Data) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of xᵀw."""
        rows = self.design.matrix(X)
        return rows @ self.mean, np.maximum(((rows @ self.covariance) * rows).sum(1), np.finfo(float).tiny)

    def plot(self, ax: Axes | None = None) -> Any:
        """Draw the effect of a standard deviation of each column, with intervals; returns the matplotlib Axes.

        The intercept is left out, and columns that were not standardised are drawn as they are.
        """
        first = int(self.design.intercept)
        scale = self.design.scale
        table = Summary.of_normal(
            self.design.names, self.mean[first:] * scale, np.diag(self.covariance)[first:] * scale**2
        )
        ax = table.plot(ax)
        if (scale != 1).any():
            ax.set_xlabel("effect of one standard deviation, mean and 95% interval")
        return ax

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON."""
        return {
            "model": self.title,
            "rows": self.rows,
            "coefficients": self.summary().to_dict(),
            "covariance": self.covariance.tolist(),
            "log_evidence": self.log_evidence,
            "converged": bool(self.report.converged),
            "notes": [*self.notes, *self.report.notes],
        }

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("rows", str(self.rows)), ("log evidence", f"{self.log_evidence:.6g}")]
        facts += [("inference", f"{self.report.status} after {self.report.steps} sweeps")]
        return facts + [("note", note) for note in in_few((*self.notes, *self.report.notes))]

    def __str__(self) -> str:
        facts = [f"  {name}: {text}" for name, text in self._facts()]
        return "\n".join([self.title, *facts, str(self.summary())])


def prior_of(design: Design, prior_sd: Numbers, intercept_sd: object) -> MultivariateNormal:
    """Independent Normals of mean 0 for the (standardised) coefficients."""
    d = len(design.names)
    sds = np.asarray(parameter(prior_sd, "prior_sd"))
    if sds.shape not in ((), (d,)):
        raise ShapeError(f"prior_sd has shape {sds.shape}; expected one number, or one for each of {d} columns.")
    sds = np.broadcast_to(sds, d)
    if design.intercept:
        sds = np.concatenate([[float(parameter(intercept_sd, "intercept_sd", axes=0))], sds])
    return MultivariateNormal(np.zeros(len(sds)), np.diag(sds**2))


def fit_linear(
    matrix: np.ndarray,
    prior: MultivariateNormal,
    outcome: Callable[[Variable], Factor],
    slopes: Callable[[np.ndarray], Slopes] | None = None,
    begin: np.ndarray | None = None,
    names: tuple[str, ...] = (),
    **settings: Any,
) -> Posterior:
    """The model of every regression here: z = X w, and outcomes that depend on z; notes have the `names` of the w.

    Where the `slopes` of the likelihood are given, messages start at the mode found from `begin`. Those of labels and
    counts start there anyway.
    """
    w = Variable("w", prior)
    z = Variable("z", Normal, plate=len(matrix))
    model = FactorGraph(Dot(matrix, w, z), outcome(z))
    if slopes is not None and settings.get("start_from") is None:
        settings["start_from"] = at_mode(model, slopes, begin)
    post = infer(model, **settings)
    notes = post.report.notes
    for at, name in enumerate(names):
        notes = tuple(note.replace(f"'w' at [{at}]", repr(name)) for note in notes)
    post.report = replace(post.report, notes=notes)
    return post


# Of the trapezium rule for averages over a Normal, in standard deviations. For the sigmoid its error is below 1e-9 up
# to a standard deviation of 10.
_REACH, _NODES = 8.0, 161


def moments(belief: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a belief, by NumPy: nothing is compiled for its size."""
    covariance = np.linalg.inv(belief.precision)
    return covariance @ belief.precision_mean, (covariance + covariance.T) / 2


def average(mean: np.ndarray, variance: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """E f(z) for z ~ N(mean, variance), n of them; f from (n, nodes) to (n, nodes)."""
    t = np.linspace(-_REACH, _REACH, _NODES)
    weights = np.exp(-t * t / 2)
    return function(mean[:, None] + np.sqrt(variance)[:, None] * t) @ (weights / weights.sum())


def quantiles(cdf: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray, p: float) -> np.ndarray:
    """Where increasing functions reach p, by halving [low, high] until rounding."""
    low, high = bisect(lambda x: cdf(x) < p, low, high, 60)
    return (low + high) / 2
