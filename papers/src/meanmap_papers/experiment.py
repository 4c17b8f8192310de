"""What an experiment is: a figure or table of a paper, its claim as numbers, and a function that measures them.

To add one, write a module in the folder of its paper (such as `trees`) that defines
`EXPERIMENT`; it is then found by its id. Heavy imports belong inside its `run`.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from meanmap_papers.number import Number
from meanmap_papers.parts import Parts

__all__ = [
    "SCALES",
    "Claim",
    "Experiment",
    "Number",
    "Outcome",
    "Reading",
    "Setting",
    "Verdict",
    "how_judged",
    "verdict",
]

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = ("smoke", "quick", "paper")
Verdict = Literal[
    "reproduced", "partly", "not reproduced", "not settled", "not shown at this scale", "no claim of the paper"
]
Held = Literal[
    "yes",
    "no",
    "not settled: no standard error",
    "not settled: not measured",
    "not settled: the interval crosses the band",
    "not settled: no reading confirms it",
    "not settled: it depends on the reading",
    "not settled: no reading refutes it",
    "not shown at this scale",
]
_FROM_BAD_TO_GOOD: tuple[Held, ...] = (
    "no",
    "not settled: no standard error",
    "not settled: not measured",
    "not settled: no reading confirms it",
    "not settled: the interval crosses the band",
    "not settled: it depends on the reading",
    "not settled: no reading refutes it",
    "yes",
)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Reading:
    """A reading of a statement with a band of its own: its number has another unit, or its words another strength.

    Attributes
    ----------
    name : str
        The name of the measured number.
    low, high : float
        The band, ends included.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf


Part = str | Reading | tuple[str | Reading, ...]


@dataclass(frozen=True)
class Claim:
    """One statement, as a band in which a measured number should lie, or each of several numbers.

    What decides is the interval of two standard errors about a number: "yes" if all of it lies in the band, "no" if
    none of it does, and "not settled" if it crosses an end of the band, so that a poor measurement shows nothing and
    refutes nothing. A band has one end ("better", "at most") or two ("does not grow"); a printed number is a band
    about it. Two standard errors are those of many repetitions; of few they are as many as Student's t needs to leave
    as little outside (`Number.reach`). A number without a standard error settles nothing, and the spread of different
    problems within one run is no standard error. A statement about several
    numbers is as good as the worst of them. Where words leave open which number is meant, all readings are measured:
    the statement is "yes" or "no" if it is so in all of them, and "not settled" otherwise: it depends on the reading if
    one confirms the statement and another refutes it.

    Attributes
    ----------
    says : str
        The statement in words, with the place where it is made.
    number : str or tuple
        The names of the measured numbers (keys of `Outcome.numbers`). A tuple within the tuple names the readings of
        one statement, each of which may have a band of its own (`Reading`).
    low, high : float
        The band, ends included, of all numbers but those that have one of their own.
    scales : tuple of str
        The scales at which the measurement is able to show it.
    ours : bool
        Whether the statement is ours and not the paper's; then it stands beside the verdict and does not enter it.
    over : str
        What the spreads of its numbers are over. Anything but "runs" is not a repetition and settles nothing.

    Examples
    --------
    >>> better = Claim("fewer errors than the rival (figure 3B)", "lead", low=0.0)
    >>> better.holds(Number(0.05, 0.02)), better.holds(Number(0.03, 0.02)), better.holds(Number(0.05))
    (True, False, False)
    >>> print(better.judged(Number(0.03, 0.02)), better.judged(Number(-0.05, 0.02)), sep="; ")
    not settled: the interval crosses the band; no
    >>> alike = Claim("no slower with more data", "slope", low=-0.1, high=0.1)
    >>> print(alike.judged(Number(0.02, 0.03)), alike.judged(Number(0.02, 0.1)), sep="; ")
    yes; not settled: the interval crosses the band
    >>> read = Claim("fewer are found", (("lost", "share lost"),), low=0.0)
    >>> print(read.judged(Number(0.2, 0.02), Number(-0.1, 0.02)))
    not settled: it depends on the reading
    >>> print(read.judged(Number(0.2, 0.02), Number(0.1, 0.2)))
    not settled: no reading refutes it
    >>> strong = Claim("errors are very high", ((Reading("error", low=0.5), Reading("error", low=0.85)),))
    >>> print(strong.judged(Number(0.7, 0.02), Number(0.7, 0.02)))
    not settled: it depends on the reading
    """

    says: str
    number: str | tuple[Part, ...]
    low: float = -math.inf
    high: float = math.inf
    scales: tuple[Scale, ...] = SCALES
    ours: bool = False
    over: str = "runs"

    def __post_init__(self) -> None:
        for each in (reading for part in self.parts for reading in part):
            if not each.low < each.high or (each.low == -math.inf and each.high == math.inf):
                raise ValueError(
                    f"The claim {self.says!r} needs a band with low < high, got [{each.low}, {each.high}]."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the numbers that it refers to."""
        return tuple(reading.name for part in self.parts for reading in part)

    @property
    def parts(self) -> tuple[tuple[Reading, ...], ...]:
        """The readings of each part of the statement, each with its band."""
        parts = (self.number,) if isinstance(self.number, str) else self.number
        return tuple(
            tuple(self._banded(each) for each in (part if isinstance(part, tuple) else (part,))) for part in parts
        )

    def _banded(self, reading: str | Reading) -> Reading:
        return Reading(reading, self.low, self.high) if isinstance(reading, str) else reading

    def holds(self, *numbers: Number) -> bool:
        """Whether measured numbers show the statement."""
        return self.judged(*numbers).startswith("yes")

    def judged(self, *numbers: Number) -> Held:
        """Whether measured numbers show the statement, in words: those of the worst of its parts."""
        each = iter(numbers)
        words = {self._read([self._judged(reading, next(each)) for reading in part]) for part in self.parts}
        return next(word for word in _FROM_BAD_TO_GOOD if word in words)

    @staticmethod
    def _read(words: Sequence[Held]) -> Held:
        """The judgement of one part of the statement, from those of its readings."""
        if "not settled: not measured" in words:
            return "not settled: not measured"
        if len(set(words)) == 1:
            return words[0]
        if "yes" in words and "no" in words:
            return "not settled: it depends on the reading"
        if "yes" in words:
            return "not settled: no reading refutes it"
        return "not settled: no reading confirms it"

    def of(self, numbers: Mapping[str, Number]) -> tuple[Number, ...]:
        """The measured numbers that it refers to, some of which a small scale may lack."""
        return tuple(numbers.get(name, Number(math.nan)) for name in self.names)

    def _judged(self, reading: Reading, number: Number) -> Held:
        if math.isnan(number.value):
            return "not settled: not measured"
        if number.error is None or self.over != "runs":
            return "not settled: no standard error"
        low, high = number.value - number.reach, number.value + number.reach
        if reading.low <= low and high <= reading.high:
            return "yes"
        if high < reading.low or reading.high < low:
            return "no"
        return "not settled: the interval crosses the band"


@dataclass(frozen=True)
class Setting:
    """How an experiment is run: its scale and its seed.

    With `parts` a long run that was stopped can be resumed.

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
            *others, last = SCALES
            raise ValueError(f"scale is {self.scale!r}; expected {', '.join(others)} or {last}.")

    def choose(self, *, smoke: Value, quick: Value, paper: Value) -> Value:
        """The value that belongs to the scale."""
        return {"smoke": smoke, "quick": quick, "paper": paper}[self.scale]

    def rng(self, *stream: int) -> np.random.Generator:
        """A generator of random numbers; different `stream` numbers give independent ones."""
        return np.random.default_rng([self.seed, *stream])

    def part(self, name: str, measure: Callable[[], Value]) -> Value:
        """The result of `measure` as plain JSON values, read from an earlier run if it has this name already."""
        return measure() if self.parts is None else self.parts.measured(name, measure)


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    answer : str
        The result, in a sentence.
    numbers : dict of str to Number
        The measured numbers, by the names that claims use.
    figures : tuple of (matplotlib Figure, str)
        Pictures, each with a caption that also serves those who cannot see it.
    table : tuple of tuples of str
        Rows of a table, the first being its header.
    notes : tuple of str
        Notes: where the paper is silent or wrong, what differs here and why.
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
        What one types to run it: the folder of its paper and the figure, as in `trees-figure-1`.
    title : str
        What it is about, in a few words.
    source : str
        The paper and the place in it.
    claims : tuple of Claim
        The paper's claims, as numbers.
    minutes : dict
        Minutes on two cores, by scale.
    run : callable
        From a `Setting` to an `Outcome`.
    data : tuple of str
        The functions of `meanmap.datasets` that it needs; without their data it cannot run.
    stand_in : str
        What stands in for data of the paper that are not available, or for settings that it does not state and that
        were chosen by its results; a verdict names it.
    """

    id: str
    title: str
    source: str
    claims: tuple[Claim, ...]
    minutes: Mapping[Scale, float]
    run: Callable[[Setting], Outcome] = field(repr=False)
    data: tuple[str, ...] = ()
    stand_in: str = ""

    @property
    def place(self) -> str:
        """The first place in the paper."""
        places = self.source.partition("), ")[2]
        return "ours" if self.source.startswith("Ours") else re.split("[:;]", places)[0]

    def __post_init__(self) -> None:
        missing = [scale for scale in SCALES if scale not in self.minutes]
        if missing:
            raise ValueError(f"The experiment {self.id!r} should say its minutes at the scale {missing[0]!r}.")

    def said(self, verdict: str) -> str:
        """A verdict with the data that it rests on where these are not the paper's: "partly, with simulated chains"."""
        judged = self.stand_in and not all(claim.ours for claim in self.claims)
        return f"{verdict}, with {self.stand_in}" if judged else verdict


def verdict(claims: tuple[Claim, ...], numbers: Mapping[str, Number], scale: Scale) -> Verdict:
    """Whether all, some or none of the paper's claims that a scale is able to show hold.

    Where none holds, one that is refuted is enough for "not reproduced"; where none is, nothing is settled.

    Examples
    --------
    >>> claims = (Claim("more than 1", "a", low=1.0), Claim("less than 1", "b", high=1.0))
    >>> verdict(claims, {"a": Number(2.0, 0.1), "b": Number(2.0, 0.1)}, "smoke")
    'partly'
    """
    if all(claim.ours for claim in claims):
        return "no claim of the paper"
    words = how_judged(claims, numbers, scale)
    if not words.total():
        return "not shown at this scale"
    if words["yes"]:
        return "reproduced" if words["yes"] == words.total() else "partly"
    return "not reproduced" if words["no"] else "not settled"


def how_judged(
    claims: tuple[Claim, ...], numbers: Mapping[str, Number], scale: Scale, *, ours: bool = False
) -> Counter[str]:
    """The numbers of claims of the paper, or of `ours`, judged "yes", "no" and "not settled" at a scale."""
    spoken = [name for claim in claims if scale in claim.scales for name in claim.names]
    unknown = [name for name in spoken if name not in numbers]
    if unknown:
        raise KeyError(f"The experiment did not measure {unknown[0]!r}, of which one of its claims speaks.")
    shown = [claim for claim in claims if scale in claim.scales and claim.ours == ours]
    return Counter(claim.judged(*claim.of(numbers)).split(":")[0] for claim in shown)
