"""Residuals of a variable given z: of its numbers, then of kernel features of these residuals."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from meanmap.core.door import Door
from meanmap.core.errors import InputError, KindError
from meanmap.core.points import count
from meanmap.core.types import Data, Points, Seed
from meanmap.features.base import transformed
from meanmap.features.lowrank import PivotedCholesky
from meanmap.kernels.base import Kernel
from meanmap.kernels.discrete import Delta
from meanmap.kernels.reading import read_points
from meanmap.kernels.stationary import RBF
from meanmap.learning.default import is_default
from meanmap.learning.learned import learned_multiple
from meanmap.stats.conditional.landmarks import Landmarks, median_distance, rbf_landmarks
from meanmap.stats.conditional.leftover import Agreement, Neighbours
from meanmap.stats.conditional.regression import (
    METRIC_LANDMARKS,
    Basis,
    Fit,
    Linear,
    along_metric,
    best_fit,
    candidates,
    learned_metric,
)
from meanmap.stats.conditional.rough import RoughFunctions, rough_bases
from meanmap.stats.conditional.statistics import Local, linear_share
from meanmap.stats.conditional.straight import CHARGE, Line
from meanmap.stats.conditional.together import Together, Waves, agreement
from meanmap.stats.conditional.variables import Variable, read_variable

__all__ = ["MOST_ROWS", "NOTHING_LEFT", "UNDERSMOOTH", "WIDE", "Given", "Residuals", "Unread", "read_side", "residuals"]

# Features of each side are added until this share of the trace is left, as in one dimension, or until there are this
# many.
TRACE_TOLERANCE, MOST_FEATURES = 1e-3, 60
# The penalty of the first regression is this share of the one with the lowest error, which balances squared bias and
# variance. Here only the product of both sides' biases does harm, so bias matters more than variance.
UNDERSMOOTH = 0.3
# The numbers of rows from which landmarks and metrics are chosen.
MOST_ROWS, MOST_ROWS_FOR_METRIC = 2000, 1000
# The number of principal features of the residuals to which trees are fitted.
ROUGH_FEATURES = 5
# The number of pairs of columns of z for which all smooth functions are tried.
PAIRS = 2
# Residual variance below this is rounding error: the variable is a function of z.
NOTHING_LEFT = 1e-10
# The kernel for residuals whose distribution is assumed not to change with z. If most residuals are close together and
# some far away, the errors of the regression are large compared with the former, and are functions of z on both sides.
# A kernel at the median distance detected these errors in 388 of 1000 data sets with sentinels; one as wide as for
# normal residuals does not.
WIDE, MEDIAN_OF_NORMAL = "wide", 0.954
# With more points the bias in regressions of plain features (those of unregressed numbers) matters. With nonlinear
# relations and two columns of z, true null hypotheses were rejected with rate .075 at 1000 and .11 at 3000 points, and
# .057 without plain features.
MOST_PLAIN = 500


@dataclass(frozen=True)
class Unread:
    """A variable that only its own kernel can read: labels, strings, rotations or mixed tables with a given kernel."""

    points: Any
    kernel: Kernel
    notes: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return count(self.points)


@dataclass(frozen=True)
class Given:
    """z as columns, with the functions of z that are used in all regressions.

    The first `single` columns are numbers and labels. The others are indicators of the values of repeated numbers.
    """

    columns: np.ndarray
    sample: np.ndarray
    linear: Linear
    bases: tuple[Basis, ...]
    single: int
    units: np.ndarray | None = None
    streamed: bool = False

    @classmethod
    def of(
        cls,
        conditions: Variable,
        generator: np.random.Generator,
        units: np.ndarray | None = None,
        *,
        streamed: bool = False,
    ) -> "Given":
        """The functions of z from its columns, which need at least four points for each linear function."""
        columns, single = conditions.columns, conditions.single
        n = len(columns)
        linear = Linear.of(columns)
        q = linear.vectors.shape[1]
        if n < 4 * q:
            raise InputError(
                f"{n} points are too few to condition on {q - 1} columns (each label but one counts as a column): "
                f"expected at least {4 * q}. Use more points, or condition on fewer columns."
            )
        # The sample is sorted, so that choices do not depend on the order of rows.
        sample = np.arange(n) if n <= MOST_ROWS else generator.choice(n, MOST_ROWS, replace=False)
        sample = sample[np.lexsort(columns[sample].T)]
        return cls(
            columns,
            sample,
            linear,
            tuple(candidates(columns, columns[sample], linear, single)),
            single,
            units,
            streamed,
        )

    def rough(self, side: "Variable | Unread", missed: "Residuals") -> list[Basis]:
        """Functions of z with steps and narrow bends, chosen for a side and its residuals so far."""
        features = missed.features
        turn = np.linalg.eigh(features.T @ features)[1][:, ::-1][:, :ROUGH_FEATURES]
        targets = [side.numbers] if isinstance(side, Variable) and side.numbers.shape[1] else []
        targets = [*targets, features @ turn]
        pairs = []
        if self.waves is not None:  # pairs that are most correlated with the residuals
            order = np.argsort(-missed.agreements["waves"].score, kind="stable")
            pairs = [self.waves.pairs[at] for at in order[:PAIRS]]
        return rough_bases(self.roughly, targets, pairs, not self.streamed)

    @cached_property
    def roughly(self) -> RoughFunctions:
        """Functions of z that are not smooth, each computed once for all variables."""
        return RoughFunctions(self.columns, self.sample, self.linear, self.single, self.together)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Neighbours in z, from different clusters if there are any."""
        return Neighbours.of(self.where, self.units)

    @cached_property
    def together(self) -> Together | None:
        """Products of the columns of z, if several are numbers."""
        return Together.of(self.where)

    @cached_property
    def waves(self) -> Waves | None:
        """Functions of pairs of columns of z that are not smooth."""
        return Waves.of(self.where)

    @cached_property
    def local(self) -> Local:
        """The kernel on z that is part of the statistic."""
        return Local(self.where)

    @property
    def where(self) -> np.ndarray:
        """The columns by which dependence may vary: numbers that are also labels count as numbers there."""
        return self.columns[:, : self.single]

    def in_metric_of(self, targets: np.ndarray) -> Basis:
        """Functions in the metric learned for these targets from a part of the sample."""
        rows, linear, start = self._before_metrics
        found = learned_metric(self.where[rows], targets[rows], linear, start)
        if self._all_before_metrics:
            return replace(found, features=found.features[np.argsort(rows)])
        return Basis.of(tuple(part.wider(self.columns.shape[1]) for part in found.landmarks), self.columns, self.linear)

    @property
    def _all_before_metrics(self) -> bool:
        """Whether metrics are learned from all rows and columns, so that functions and regressions are the same."""
        return len(self.columns) <= MOST_ROWS_FOR_METRIC and self.single == self.columns.shape[1]

    @cached_property
    def _before_metrics(self) -> tuple[np.ndarray, Linear, Basis]:
        """The rows from which metrics are learned, and the functions with which learning starts."""
        rows = self.sample[:: -(-len(self.sample) // MOST_ROWS_FOR_METRIC)]
        if self._all_before_metrics and len(self.bases[0].landmarks[0].points) <= METRIC_LANDMARKS:
            start = replace(self.bases[0], features=self.bases[0].features[rows])
            return rows, Linear(self.linear.vectors[rows]), start
        z = self.where[rows]
        linear = Linear.of(z)
        return rows, linear, along_metric(z, np.eye(z.shape[1]), linear)


@dataclass(frozen=True)
class Residuals:
    """The residuals of one side of the test, x or y, given z.

    Attributes
    ----------
    given : Given
        The functions of z in the regressions.
    columns : array (n, a + b)
        Standardised residuals of its numbers, divided by `scales`, and the indicators of its labels.
    scales : array (a,)
        The standard deviations of these residuals; infinite if only rounding error is left.
    features : array (n, r)
        Centred features of the columns.
    left : array (n, r)
        The residuals of the features regressed on z.
    plain : array (n, s) or None
        The residuals of features of the columns before the first regression, if these are used and there are numbers.
    first, second, third : Fit
        The regression of the numbers (None without any), that of the features, and that of the plain ones.
    share : float
        The share of the features' variance that is linear in the residuals of the numbers, on which both regressions
        act.
    rest : float
        The share of variance that z leaves unexplained, in the number of which it explains most; 1 without numbers.
    kernel : Kernel
        The kernel of the features.
    landmarks : Landmarks or None
        The landmarks of the features, for default kernels.
    line : Line or None
        The residuals for covariances: of the numbers, or of the features if there are only labels; None with a chosen
        kernel.
    """

    given: Given
    columns: np.ndarray
    scales: np.ndarray
    features: np.ndarray
    left: np.ndarray
    plain: np.ndarray | None
    first: Fit | None
    second: Fit
    third: Fit | None
    share: float
    rest: float
    kernel: Kernel
    landmarks: Landmarks | None
    line: Line | None

    @property
    def determined(self) -> bool:
        """Whether the variable is a function of z."""
        return bool(np.sum(self.left**2) <= NOTHING_LEFT * len(self.left))

    @property
    def plainly(self) -> tuple[np.ndarray, Fit]:
        """The residuals of the numbers and their regression; for labels and other kinds, those of the features."""
        if self.line is not None:
            return self.line.columns, self.line.fit
        if self.first is not None:
            return self.columns[:, : len(self.scales)], self.first
        return self.left, self.second

    @cached_property
    def agreements(self) -> dict[str, Agreement]:
        """The correlation between neighbours in z of each part of the residuals."""
        parts: dict[str, tuple[np.ndarray, Fit | None]] = {"features": (self.left, self.second)}
        if self.line is not None or self.first is not None:
            parts["numbers"] = self.plainly
        if self.plain is not None:
            parts["plain"] = self.plain, self.third
        near = self.given.neighbours
        found = {name: Agreement.of(each, fit, near) for name, (each, fit) in parts.items() if fit is not None}
        if self.given.together is not None:
            found["products"] = agreement(*self.plainly, self.given.together(self.given.where))
        if self.given.waves is not None:
            found["waves"] = self.given.waves.agreement(*self.plainly)
        return found

    @property
    def freedom(self) -> float:
        """The largest degrees of freedom of the regressions."""
        return max(fit.freedom for fit in (self.first, self.second, self.third) if fit is not None)


def read_side(data: Data, argument: str, kernel: Any, door: Door) -> Variable | Unread:
    """A variable as numeric columns, or with its kernel if only that can read it."""
    if is_default(kernel):
        return read_variable(data, argument)
    try:
        variable = read_variable(data, argument, whole=True)
    except KindError:
        return Unread(read_points(kernel, data, argument, door), kernel)
    if variable.indicators.shape[1]:
        return Unread(read_points(kernel, data, argument, door), kernel)
    return variable


def residuals(
    side: Variable | Unread,
    kernel: Kernel | str | None,
    given: Given,
    door: Door,
    rng: Seed = None,
    *,
    missed: "Residuals | None" = None,
) -> Residuals:
    """Regress the numbers on z, compute features of their residuals, and regress these features on z, too.

    For any f and g, x and y are independent given z if and only if x − f(z) and y − g(z) are. The first regression
    therefore does not change the hypothesis. Its residuals hardly depend on z, so the second regression has little to
    fit, and little bias. Bias of that regression on both sides is what makes conditional tests reject too often.

    Without a chosen kernel and with few points, plain features of the unregressed numbers are used as well. If y = f(x)
    + noise, the dependence of y on x itself is the same for all z, while its dependence on residuals of x changes with
    z.

    If earlier residuals `missed` functions of z, the regressions also include functions with steps and narrow bends.
    """
    bases, first, rest = given.bases, None, 1.0
    if missed is not None:
        bases = (*bases, *given.rough(side, missed))
    columns, scales = np.zeros((len(given.columns), 0)), np.zeros(0)
    if isinstance(side, Variable):
        columns = side.indicators
        if side.numbers.shape[1]:
            options = bases
            if given.single > 1:
                options = (*bases, given.in_metric_of(side.numbers))
            first = best_fit(given.linear, options, side.numbers, UNDERSMOOTH)
            rest = float(np.min(np.mean(first.in_sample(side.numbers) ** 2, axis=0)))
            numbers, scales = _in_units(first, side.numbers)
            columns = np.concatenate([numbers, side.indicators], axis=1)
            if not any(basis is first.basis for basis in bases):
                bases = (*bases, first.basis)
    if isinstance(side, Unread):
        features, used, landmarks = _kernel_features(side.kernel, side.points, door), side.kernel, None
    elif isinstance(kernel, Kernel) and len(scales):
        there = np.where(np.isfinite(scales), scales, 0)  # columns that are functions of z become zero
        points = read_points(kernel, columns * there * side.scales, "the residuals", door)
        features, used, landmarks = _kernel_features(kernel, points, door), kernel, None
    else:
        learned = kernel == "learned" and np.isfinite(scales).any()
        metric = _learned_metric(columns, len(scales), rng) if learned else _metric(columns, kernel == WIDE)
        landmarks = rbf_landmarks(columns, metric, TRACE_TOLERANCE, MOST_FEATURES)
        features, used = landmarks(columns), _as_kernel(landmarks, scales * side.scales)
    features = features - features.mean(axis=0)
    second = best_fit(given.linear, bases, features)
    plain = third = None
    if kernel is None and isinstance(side, Variable) and len(scales) and len(columns) <= MOST_PLAIN:
        every = side.columns
        found = rbf_landmarks(every, _metric(every), TRACE_TOLERANCE, MOST_FEATURES)(every)
        found = found - found.mean(axis=0)
        third = best_fit(given.linear, bases, found)
        plain = third.in_sample(found)
    share = linear_share(features, columns[:, : len(scales)])
    left = second.in_sample(features)
    line = None
    if kernel is None and isinstance(side, Variable):
        straight = second if first is None else best_fit(given.linear, bases, side.numbers, charge=CHARGE)
        line = Line.of(left if first is None else _in_units(straight, side.numbers)[0], straight, bases)
    return Residuals(
        given, columns, scales, features, left, plain, first, second, third, share, rest, used, landmarks, line
    )


def _in_units(fit: Fit, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised residuals divided by their standard deviations, and these standard deviations."""
    left = fit.standardised(numbers)
    scales = left.std(axis=0)
    scales = np.where(scales**2 > NOTHING_LEFT, scales, np.inf)
    return left / scales, scales


def _kernel_features(kernel: Kernel, points: Points, door: Door) -> np.ndarray:
    """Features of a chosen kernel, from the data."""
    most = min(MOST_FEATURES, max(1, count(points) // 2))
    low = PivotedCholesky.of_points(kernel, points, door, tolerance=TRACE_TOLERANCE, max_rank=most)
    return transformed(low, points)


def _metric(columns: np.ndarray, wide: bool = False) -> np.ndarray:
    """The metric of columns in units of their median distance, or if `wide` of at least that of normal columns."""
    least = MEDIAN_OF_NORMAL * np.sqrt(columns.shape[1]) if wide else 0.0
    return np.eye(columns.shape[1]) / (max(median_distance(columns), least) if columns.any() else 1.0)


def _learned_metric(columns: np.ndarray, numbers: int, rng: Seed) -> np.ndarray:
    """The metric of columns in units of the lengthscale that is learned from the residuals of the numbers."""
    return np.eye(columns.shape[1]) / learned_multiple(columns[:, :numbers], rng).kernel.lengthscale  # pyright: ignore[reportAttributeAccessIssue]


def _as_kernel(landmarks: Landmarks, units: np.ndarray) -> Kernel:
    """The kernel of the default features, in the units of the data."""
    # On indicators alone any radial kernel is a constant plus a multiple of Delta.
    return RBF(units / landmarks.metric[0, 0]) if len(units) and np.isfinite(units).all() else Delta()
