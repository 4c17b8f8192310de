"""Level and power of a test by simulation: how often does it reject, and how many points does it need?"""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from meanmap.core.errors import KindError, ParameterError
from meanmap.core.executors import check_executor, worked
from meanmap.core.pictures import new_axes
from meanmap.core.progress import track
from meanmap.core.report import Report
from meanmap.core.rng import Rng
from meanmap.core.settings import one_of, probability, whole_number
from meanmap.core.synonyms import own_words
from meanmap.core.types import Axes, Seed
from meanmap.core.values import Value, frame_of, plain
from meanmap.plots.facts import Page
from meanmap.plots.paged import Paged
from meanmap.stats.pages import power_page, rejection_page

__all__ = ["PowerCurve", "RejectionRate", "power_curve", "rejection_rate"]


@dataclass(frozen=True, eq=False, repr=False)
class RejectionRate(Paged, Value):
    """The rejection rate of a test, over simulated data sets.

    Attributes
    ----------
    pvalues : array (repeats,)
        One p-value per data set, in the order drawn.
    level : float
        The level at which `rejections` and `rate` count.
    seed : int or None
        `rng=seed` repeats the simulation.
    report : Report
        Whether it ran to completion.

    Examples
    --------
    >>> result = RejectionRate(np.array([0.01, 0.2, 0.7, 0.04]), 0.05, 0, Report("finished", True, 4))
    >>> print(result)
    rejected 2 of 4 data sets at level 0.05: rate 0.5, 95% interval 0.0676 to 0.932
      finished after 4 steps
    """

    pvalues: np.ndarray
    level: float
    seed: int | None
    report: Report

    @property
    def repeats(self) -> int:
        """The number of data sets."""
        return len(self.pvalues)

    @property
    def rejections(self) -> int:
        """The number of rejections."""
        return int(np.sum(self.pvalues <= self.level))

    @property
    def rate(self) -> float:
        """The share of rejections: the power, or under the null hypothesis the actual level."""
        return self.rejections / self.repeats if self.repeats else float("nan")

    def interval(self, confidence: float = 0.95, method: str = "exact") -> tuple[float, float]:
        """A confidence interval of the rate: "exact" (Clopper & Pearson 1934) or "wilson" (Wilson 1927), the shorter.

        Examples
        --------
        >>> result = RejectionRate(np.repeat([0.01, 0.5], [8, 2]), 0.05, 0, Report("finished", True, 10))
        >>> [round(bound, 3) for bound in result.interval(0.95, "wilson")]
        [0.49, 0.943]
        """
        from scipy.stats import binomtest

        one_of(method, "method", ("exact", "wilson"))
        if not self.repeats:
            return 0.0, 1.0
        found = binomtest(self.rejections, self.repeats).proportion_ci(probability(confidence, "confidence"), method)
        return float(found.low), float(found.high)

    def keeps_level(self, failure_rate: float = 0.01) -> bool:
        """Whether this number of rejections is compatible with a test of exactly this level (two-sided binomial test).

        A test that keeps its level fails this check with at most this probability.
        """
        from scipy.stats import binom

        low, high = binom.interval(1 - probability(failure_rate, "failure_rate", 0.01), self.repeats, self.level)
        return bool(low <= self.rejections <= high)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python values, ready for JSON."""
        rest = plain(self, "rejections", "repeats", "level", "pvalues", "seed", "report")
        return {"rate": self.rate, "interval": list(self.interval()), **rest}

    def plot(self, ax: Axes | None = None, confidence: float = 0.95) -> Any:
        """Plot the calibration: the share of p-values below u against u, with a band for a calibrated test.

        The band is simultaneous: the whole curve of a test with uniform p-values stays inside with this probability
        (Kolmogorov's distribution for this number of data sets). Returns the matplotlib Axes.
        """
        ax = new_axes(4, 4) if ax is None else ax
        half = self.band(confidence)
        u = np.linspace(0, 1, 201)
        label = f"{100 * confidence:g}% of calibrated tests"
        ax.fill_between(u, np.maximum(u - half, 0), np.minimum(u + half, 1), color="0.9", label=label)
        ax.plot([0, 1], [0, 1], color="0.5", lw=0.8)
        share = np.arange(self.repeats + 1) / max(self.repeats, 1)
        ax.step(np.r_[0, np.sort(self.pvalues)], share, where="post", label=f"{self.repeats} p-values")
        ax.axvline(self.level, color="C3", lw=0.8, ls=":")
        ax.set(xlabel="u", ylabel="share of p-values ≤ u", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.legend(loc="lower right", fontsize="small")
        return ax

    def band(self, confidence: float = 0.95) -> float:
        """Half the width of the simultaneous band of `plot`."""
        from scipy.stats import kstwo

        return float(kstwo.ppf(probability(confidence, "confidence"), self.repeats)) if self.repeats else 1.0

    def _as_page(self, brief: bool = False) -> Page:
        return rejection_page(self)

    def __str__(self) -> str:
        low, high = self.interval()
        first = f"rejected {self.rejections} of {self.repeats} data sets at level {self.level:g}"
        report = str(self.report).replace("\n", "\n  ")
        return f"{first}: rate {self.rate:.3g}, 95% interval {low:.3g} to {high:.3g}\n  {report}"


@dataclass(frozen=True, eq=False, repr=False)
class PowerCurve(Paged, Value):
    """Rejection rates against the sample size.

    Attributes
    ----------
    sizes : tuple of int
        Sample sizes, increasing.
    rates : tuple of RejectionRate
        One for each.

    Examples
    --------
    >>> report = Report("finished", True, 100)
    >>> rates = [RejectionRate(np.repeat([0.01, 0.5], [k, 100 - k]), 0.05, 0, report) for k in (20, 60, 100)]
    >>> curve = PowerCurve((50, 100, 200), tuple(rates))
    >>> curve.needed(0.8)
    142
    """

    sizes: tuple[int, ...]
    rates: tuple[RejectionRate, ...]

    def needed(self, power: float = 0.8) -> int | None:
        """The number of points that reaches this power, interpolated in log n; None if no size does.

        The first size is returned if it already does.
        """
        return self._crossing(np.array([rate.rate for rate in self.rates]), probability(power, "power"))

    def needed_interval(self, power: float = 0.8, confidence: float = 0.95) -> tuple[int | None, int | None]:
        """A cautious range for the needed size, read from the upper and the lower ends of each size's interval."""
        bounds = np.array([rate.interval(confidence) for rate in self.rates])
        return self._crossing(bounds[:, 1], probability(power, "power")), self._crossing(bounds[:, 0], power)

    def _crossing(self, rates: np.ndarray, power: float) -> int | None:
        from scipy.optimize import isotonic_regression

        if not len(rates):
            return None
        monotone = isotonic_regression(rates).x
        reached = np.flatnonzero(monotone >= power)
        if not len(reached):
            return None
        k = int(reached[0])
        if k == 0:
            return self.sizes[0]
        low, high = np.log(self.sizes[k - 1 : k + 1])
        share = (power - monotone[k - 1]) / (monotone[k] - monotone[k - 1])
        return int(np.ceil(np.exp(low + share * (high - low)) - 1e-9))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain Python values, ready for JSON."""
        return plain(self, "sizes", "rates")

    def to_frame(self, confidence: float = 0.95) -> Any:
        """A pandas frame by sample size: the rate, the ends of its interval (low, high), and the number of repeats."""
        low, high = np.array([rate.interval(confidence) for rate in self.rates]).reshape(-1, 2).T
        rates, repeats = [rate.rate for rate in self.rates], [rate.repeats for rate in self.rates]
        return frame_of({"rate": rates, "low": low, "high": high, "repeats": repeats}, self.sizes)

    def plot(self, ax: Axes | None = None, power: float | None = 0.8, confidence: float = 0.95) -> Any:
        """Plot rates with their intervals, and the size that reaches `power`; returns the matplotlib Axes."""
        ax = new_axes(5, 3) if ax is None else ax
        rates = np.array([rate.rate for rate in self.rates])
        bounds = np.array([rate.interval(confidence) for rate in self.rates]).reshape(-1, 2)
        errors = np.abs(bounds - rates[:, None]).T
        ax.errorbar(self.sizes, rates, errors, fmt="o-", capsize=3, label="rejection rate")
        size = self.needed(power) if power is not None else None
        if size is not None:
            ax.axvline(size, color="C3", ls=":", label=f"power {power:g} at n = {size}")
        if self.rates:
            ax.axhline(self.rates[0].level, color="0.6", lw=0.8, label="level")
        ax.set(xscale="log", xlabel="n", ylabel="rejection rate", ylim=(-0.02, 1.02))
        ax.set_xticks(self.sizes, [str(size) for size in self.sizes])
        ax.minorticks_off()
        ax.legend(fontsize="small")
        return ax

    def _as_page(self, brief: bool = False) -> Page:
        return power_page(self)

    def __str__(self) -> str:
        lines = ["       n    rate   95% interval"]
        for size, rate in zip(self.sizes, self.rates, strict=True):
            low, high = rate.interval()
            lines.append(f"{size:8d}   {rate.rate:.3f}   {low:.3f} to {high:.3f}")
        size = self.needed()
        return "\n".join([*lines, f"power 0.8 at n = {size}" if size else "power 0.8 is not reached"])


@own_words
def rejection_rate(
    test: Callable[..., Any],
    draw: Callable[[np.random.Generator], Any],
    *,
    repeats: int = 1000,
    level: float = 0.05,
    executor: Executor | None = None,
    rng: Seed = None,
) -> RejectionRate:
    """The rejection rate of a test on simulated data: its level under the null hypothesis, its power otherwise.

    Parameters
    ----------
    test : callable
        Takes the data and returns a result with a `pvalue`, or the p-value itself. If it has an argument `rng`, as
        every test of this library has, it gets a separate seed for each data set. Pass settings through a lambda or
        `functools.partial`.
    draw : callable, generator -> data
        Draws a data set; a tuple is passed on as several arguments.
    repeats : int
        The number of data sets.
    level : float
        p-values of at most this are rejected.
    executor : concurrent.futures.Executor, optional
        Runs the work: processes, threads, Dask's workers (`client.get_executor()`). The result is the same. Functions
        sent to processes must be importable there: not lambdas.
    rng : None, int, numpy.random.Generator or JAX key
        Source of the data sets and the tests' seeds: one stream for each data set, so that the first hundred are the
        same for any `repeats`.

    Returns
    -------
    RejectionRate
        If interrupted (Ctrl-C), it covers the data sets so far, as noted in `report`.

    Examples
    --------
    >>> import meanmap as mm
    >>> result = rejection_rate(
    ...     lambda x, y, rng: mm.independence_test(x, y, "median", n_permutations=99, rng=rng),
    ...     lambda generator: (generator.normal(size=20), generator.normal(size=20)),
    ...     repeats=20,
    ...     rng=0,
    ... )
    >>> result.repeats, result.keeps_level()
    (20, True)
    """
    probability(level, "level", 0.05)
    whole_number(repeats, "repeats")
    check_executor(executor)
    random = Rng.of(rng)
    root = np.random.SeedSequence(random.generator.integers(2**63))
    return _simulate(test, draw, int(repeats), level, random, root, executor)


@own_words
def power_curve(
    test: Callable[..., Any],
    draw: Callable[[int, np.random.Generator], Any],
    sizes: Sequence[int],
    *,
    repeats: int = 200,
    level: float = 0.05,
    executor: Executor | None = None,
    rng: Seed = None,
) -> PowerCurve:
    """Rejection rates at several sample sizes: how many points does the test need?

    Parameters
    ----------
    test : callable
        As in `rejection_rate`.
    draw : callable, (n, generator) -> data
        Draws a data set of size n.
    sizes : sequence of int
        Sample sizes, in any order.
    repeats, level, executor, rng
        As in `rejection_rate`, for each size.

    Returns
    -------
    PowerCurve
        If interrupted, it covers the sizes begun so far.

    Examples
    --------
    >>> import meanmap as mm
    >>> def line(n, generator):
    ...     x = generator.normal(size=n)
    ...     return x, x + generator.normal(size=n)
    >>> test = lambda x, y, rng: mm.independence_test(x, y, "median", n_permutations=99, rng=rng)
    >>> power_curve(test, line, [10, 40], repeats=20, rng=0).needed(0.8) <= 40
    True
    """
    probability(level, "level", 0.05)
    whole_number(repeats, "repeats")
    check_executor(executor)
    if not len(sizes):
        raise ParameterError("sizes is empty; expected sample sizes such as [50, 100, 200].")
    ordered = sorted({whole_number(size, "each of sizes") for size in sizes})
    random = Rng.of(rng)
    roots = np.random.SeedSequence(random.generator.integers(2**63)).spawn(len(ordered))
    rates: list[RejectionRate] = []
    for size, root in zip(ordered, roots, strict=True):
        rate = _simulate(test, partial(draw, size), int(repeats), level, random, root, executor)
        if rate.repeats:
            rates.append(rate)
        if not rate.report.converged:
            break
    return PowerCurve(tuple(ordered[: len(rates)]), tuple(rates))


def _simulate(
    test: Callable[..., Any],
    draw: Callable[..., Any],
    repeats: int,
    level: float,
    random: Rng,
    root: Any,
    executor: Executor | None,
) -> RejectionRate:
    words = [int(word) for word in root.generate_state(4)]
    one = partial(_one, test, draw, _takes_rng(test), words)
    pvalues: list[float] = []
    report = Report("finished", True, repeats)
    found = worked(one, range(repeats), executor)
    try:
        for pvalue in track(found, "data sets", repeats):
            pvalues.append(pvalue)
    except KeyboardInterrupt:
        note = f"stopped by the user with {len(pvalues)} of {repeats} data sets done."
        report = Report("interrupted", False, len(pvalues), notes=(note,))
    return RejectionRate(np.array(pvalues), level, random.seed, report)


def _one(test: Callable[..., Any], draw: Callable[..., Any], seeded: bool, words: list[int], number: int) -> float:
    """The p-value of one data set, which has a stream of its own."""
    generator = np.random.default_rng([*words, number])
    data = draw(generator)
    arguments = data if isinstance(data, tuple) else (data,)
    settings = {"rng": int(generator.integers(2**53))} if seeded else {}
    return _pvalue(test(*arguments, **settings))


def _takes_rng(test: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(test).parameters
    except (TypeError, ValueError):  # some callables of C have no signature
        return False


def _pvalue(result: object) -> float:
    value = getattr(result, "pvalue", result)
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number | np.ndarray):
        raise KindError(f"the test returned {result!r}; expected a result with a pvalue, or the p-value itself.")
    value = float(value)
    if not 0 <= value <= 1:
        raise ParameterError(f"the test returned the p-value {value}; expected a number between 0 and 1.")
    return value
