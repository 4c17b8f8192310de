"""What an experiment is: a figure or table of a paper, its claim as numbers, and a function that measures them.

To add one, write a module in the folder of its paper (such as ``experiments/trees``) that defines
``EXPERIMENT``; it is then found by its id. Heavy imports belong inside its ``run``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from meanmap.experiments.parts import Parts

__all__ = ["SCALES", "Claim", "Experiment", "Number", "Outcome", "Setting", "Verdict", "how_many_hold", "verdict"]

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "quick", "paper")
Verdict = Literal["reproduced", "partly", "not reproduced", "not shown at this scale"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Number:
    """A measured number with its standard error, where it has one."""

    value: float
    error: float | None = None

    def __str__(self) -> str:
        return f"{self.value:.3g}" if self.error is None else f"{self.value:.3g} ± {self.error:.1g}"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, as a band in which a measured number should lie.

    Attributes
    ----------
    says : str
        The statement in words, with the place where it is made.
    number : str
        The name of the measured number (a key of `Outcome.numbers`).
    low, high : float
        The band, ends included. Two standard errors of the measurement are allowed at either end.
    scales : tuple of str
        The scales at which the measurement is able to show it.

    Examples
    --------
    >>> claim = Claim("the power is at least .8 (figure 3B)", "power", low=0.8)
    >>> claim.holds(Number(0.78, 0.02)), claim.holds(Number(0.7, 0.02))
    (True, False)
    """

    says: str
    number: str
    low: float = -math.inf
    high: float = math.inf
    scales: tuple[Scale, ...] = SCALES

    def __post_init__(self) -> None:
        if not self.low <= self.high or (self.low == -math.inf and self.high == math.inf):
            raise ValueError(f"The claim {self.says!r} needs a band with low <= high, got [{self.low}, {self.high}].")

    def holds(self, number: Number) -> bool:
        """Whether a measured number lies in the band, two standard errors allowed."""
        slack = 2.0 * (number.error or 0.0)
        return self.low - slack <= number.value <= self.high + slack


@dataclass(frozen=True)
class Setting:
    """How an experiment is run: its scale and its seed.

    With `parts` a long run that was stopped goes on where it was.

    Examples
    --------
    >>> setting = Setting("quick", seed=1)
    >>> setting.choose(smoke=10, quick=100, paper=1000)
    100
    """

    scale: Scale = "quick"
    seed: int = 0
    parts: Parts | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.scale not in SCALES:
            raise ValueError(f"The scale should be one of {', '.join(SCALES)}, got {self.scale!r}.")

    def choose(self, *, smoke: Value, quick: Value, paper: Value) -> Value:
        """The value that belongs to the scale."""
        return {"smoke": smoke, "quick": quick, "paper": paper}[self.scale]

    def rng(self, *stream: int) -> np.random.Generator:
        """A generator of random numbers; different `stream` numbers give independent ones."""
        return np.random.default_rng([self.seed, *stream])

    def part(self, name: str, measure: Callable[[], Value]) -> Value:
        """What `measure` gives, as JSON can hold it; what an earlier run measured under this name is not run again."""
        return measure() if self.parts is None else self.parts.measured(name, measure)


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    answer : str
        What came out, in a sentence.
    numbers : dict of str to Number
        The measured numbers, by the names that claims use.
    figures : tuple of (matplotlib Figure, str)
        Pictures, each with a caption that also serves those who cannot see it.
    table : tuple of tuples of str
        Rows of a table, the first being its header.
    notes : tuple of str
        What a reader must know: where the paper is silent or wrong, what differs here and why.
    """

    answer: str
    numbers: Mapping[str, Number]
    figures: tuple[tuple[Any, str], ...] = ()
    table: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper, ready to be run.

    Attributes
    ----------
    id : str
        What one types to run it: the folder of its paper and the figure, as in ``trees-figure-1``.
    title : str
        What it is about, in a few words.
    source : str
        The paper and the place in it.
    claims : tuple of Claim
        What the paper says of it, as numbers.
    minutes : dict
        Minutes on two cores, by scale.
    run : callable
        From a `Setting` to an `Outcome`.
    data : tuple of str
        The functions of `meanmap.datasets` that it needs; without their data it cannot run.
    """

    id: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    minutes: Mapping[Scale, float]
    run: Callable[[Setting], Outcome] = field(repr=False)
    data: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        missing = [scale for scale in SCALES if scale not in self.minutes]
        if missing:
            raise ValueError(f"The experiment {self.id!r} should say its minutes at the scale {missing[0]!r}.")


def verdict(claims: tuple[Claim, ...], numbers: Mapping[str, Number], scale: Scale) -> Verdict:
    """Whether all, some or none of the claims that a scale is able to show hold.

    Examples
    --------
    >>> claims = (Claim("more than 1", "a", low=1.0), Claim("less than 1", "b", high=1.0))
    >>> verdict(claims, {"a": Number(2.0), "b": Number(2.0)}, "smoke")
    'partly'
    """
    held, shown = how_many_hold(claims, numbers, scale)
    if not shown:
        return "not shown at this scale"
    if held == shown:
        return "reproduced"
    return "partly" if held else "not reproduced"


def how_many_hold(claims: tuple[Claim, ...], numbers: Mapping[str, Number], scale: Scale) -> tuple[int, int]:
    """How many claims hold, of how many that a scale is able to show."""
    shown = [claim for claim in claims if scale in claim.scales]
    unknown = [claim.number for claim in shown if claim.number not in numbers]
    if unknown:
        raise KeyError(f"The experiment did not measure {unknown[0]!r}, of which one of its claims speaks.")
    return sum(claim.holds(numbers[claim.number]) for claim in shown), len(shown)
