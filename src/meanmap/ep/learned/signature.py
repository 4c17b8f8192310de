"""The factor for which an operator was trained: its function with all this depends on, its families, its power."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from meanmap.core.reads import Reads, digest_of, reads
from meanmap.ep.calling import LINES, as_now, evaluated
from meanmap.ep.factor import FactorLike
from meanmap.ep.learned.recorded import usable
from meanmap.ep.traced import Traced
from meanmap.families import Family

__all__ = ["Functions", "Signature", "near"]

# A function is evaluated this many standard deviations from the means of incoming messages, each in one row.
_AWAY = (0.3, -0.7, 1.1, -1.4)


@dataclass(frozen=True)
class Signature:
    """What two factors must share so that an operator for one serves the other.

    Attributes
    ----------
    factor : str
        The kind of factor and the name of its function, for people.
    power : float
        α of power expectation propagation.
    content : str
        A digest of what the function does: its code, default arguments, what it closes over, the globals that it names;
        in a run that is compiled, of the steps and numbers that it came to.
    """

    factor: str
    power: float = 1.0
    content: str = ""

    @classmethod
    def of(cls, factor: FactorLike, power: float = 1.0, content: str | None = None) -> "Signature":
        """The kind of a factor, and the function it is made of."""
        function = factor.function
        name = f"{type(factor).__name__} {_label(getattr(function, 'function', function))}"
        if content is None:
            content = function.digest() if isinstance(function, Traced) else reads(function).digest()
        return cls(name, float(power), content)


class Functions:
    """Whether a function is still the same, with the same data: checked once per run, in one place.

    A compiled function is identified by its steps and numbers. One on the host is identified by what it reads, except
    its own counters and caches, and by its values at a few points, which files, settings of other packages and
    everything else that its code does not show would change.
    """

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, ...], _OnHost] = {}

    def signature(
        self, factor: FactorLike, power: float, incoming: tuple[Any, ...] | None = None, *, looked: bool = False
    ) -> Signature:
        """What a factor's function is now; the first messages that come in say where it is looked at from then on.

        Where it was `looked` at in this run, it is not called again.
        """
        factor = as_now(factor)
        if not factor.host:
            return Signature.of(factor, power)
        found = reads(factor.function)
        known = self._known(factor, found)
        if incoming is not None:
            known.choose(factor, incoming, found)
        if not looked:
            known.look(factor)
        return Signature.of(factor, power, known.content(found))

    def around(self, factor: FactorLike, ask: Callable[[], Any]) -> Any:
        """Ask a factor's function something; what changes meanwhile is its own."""
        if not factor.host:
            return ask()
        before = reads(factor.function)
        answer = ask()
        self._known(factor, before).notice(before, reads(factor.function))
        return answer

    def _known(self, factor: FactorLike, found: Reads) -> "_OnHost":
        code = (piece for path, piece in sorted(found.pieces.items()) if path.endswith(" code"))
        return self._hosts.setdefault((factor.name, *code), _OnHost(found))


class _OnHost:
    """A function on the host: what it changes itself, such as a counter or a cache, and where it is evaluated.

    What it changes is found by comparing before and after a call, and does not identify it. What others change does.
    """

    def __init__(self, first: Reads):
        self.first, self.own = first.pieces, set[str]()
        self.points: list[np.ndarray] | None = None
        self.values = ""

    def choose(self, factor: FactorLike, incoming: tuple[Any, ...], found: Reads) -> None:
        """Points where the function is evaluated in every run; none for a random function."""
        if self.points is not None:
            return
        points = _points(incoming[: len(incoming) - factor.outputs])
        if points is not None:
            same = _values(factor, points) == _values(factor, points)
            self.points = points if same else []
            self.notice(found, reads(factor.function))

    def notice(self, before: Reads, after: Reads) -> None:
        """Nobody but the function came between these."""
        paths = before.pieces.keys() | after.pieces.keys()
        self.own |= {path for path in paths if before.pieces.get(path) != after.pieces.get(path)}

    def look(self, factor: FactorLike) -> None:
        """What it says now at its points."""
        self.values = _values(factor, self.points) if self.points else ""

    def content(self, found: Reads) -> str:
        """A text for the rest and the values; entries that came to a list or dictionary which it fills are its own."""
        filled = tuple(path.removesuffix(" entries") + "[" for path in self.own if path.endswith(" entries"))
        kept = {
            path: piece
            for path, piece in found.pieces.items()
            if path not in self.own and (path in self.first or not filled or not path.startswith(filled))
        }
        return digest_of(kept | {"values": self.values})


def _points(incoming: tuple[Any, ...]) -> list[np.ndarray] | None:
    """One point in each of a few rows, near the incoming messages; None if these are not proper."""
    rows = np.flatnonzero(usable(incoming))
    if not len(rows):
        return None
    rows = rows[np.linspace(0, len(rows) - 1, len(_AWAY)).astype(int)]
    return [
        near(each, rows, np.array(_AWAY)) if isinstance(each, Family) else np.asarray(each, float)[rows]
        for each in incoming
    ]


def near(message: Any, rows: np.ndarray, away: np.ndarray) -> np.ndarray:
    """Points of these rows, this many standard deviations from the means, in a coordinate where any number is one."""
    kind, mean = type(message), np.asarray(message.mean())[rows]
    if kind.states is not None:
        return np.array(kind.states)[(away > 0).astype(int)]
    sd, line = np.sqrt(np.asarray(message.var())[rows]), kind.coordinates[-1]
    away = away.reshape(-1, *(1,) * (mean.ndim - 1))
    if line == "log" and message.event_shape:
        shares = mean * np.exp(away * sd / mean)
        return shares / shares.sum(-1, keepdims=True)
    if line == "log":
        return LINES[line](np.log(mean) + away * sd / mean)
    if line == "logit":
        return LINES[line](np.log(mean / (1 - mean)) + away * sd / (mean * (1 - mean)))
    return mean + away * sd


def _values(factor: FactorLike, points: list[np.ndarray]) -> str:
    try:
        return evaluated(factor, points).tobytes().hex()
    except Exception as error:  # whatever the function raises: a run that comes there says so
        return type(error).__name__


def _label(function: Callable[..., Any]) -> str:
    """A name that is the same in every process; functions without a name of their own are known by their code."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return f"{module}.{name}"
    constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
    body = repr((code.co_code, constants, code.co_names))  # what it closes over is content
    return f"{module}.{name}#{zlib.crc32(body.encode()):08x}"
