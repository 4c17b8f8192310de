"""For which factor an operator was trained: its function and all that this depends on, its families, its power."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

from meanmap.core.reads import Reads, digest_of, reads
from meanmap.ep.factor import FactorLike
from meanmap.ep.traced import Traced

__all__ = ["OwnState", "Signature"]


@dataclass(frozen=True)
class Signature:
    """What two factors must share for the messages of one to teach those of the other.

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


class OwnState:
    """What a function on the host changes by itself, as a counter or a memo: seen by looking before and after a call.

    It is no part of what the function is. What others change in between is.
    """

    def __init__(self, first: Reads):
        self.first, self.own = first.pieces, set[str]()

    def notice(self, before: Reads, after: Reads) -> None:
        """Nobody but the function came between these."""
        paths = before.pieces.keys() | after.pieces.keys()
        self.own |= {path for path in paths if before.pieces.get(path) != after.pieces.get(path)}

    def digest(self, found: Reads) -> str:
        """A text for the rest; entries that came to a dictionary or list which the function fills are its own too."""
        filled = tuple(path.removesuffix(" entries") + "[" for path in self.own if path.endswith(" entries"))
        kept = {
            path: piece
            for path, piece in found.pieces.items()
            if path not in self.own and (path in self.first or not filled or not path.startswith(filled))
        }
        return digest_of(kept)


def _label(function: Callable[..., Any]) -> str:
    """A name that is the same in every process; functions without a name of their own are known by their code."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return f"{module}.{name}"
    constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
    body = repr((code.co_code, constants, code.co_names, []))  # what it closes over is content; older files had it here
    return f"{module}.{name}#{zlib.crc32(body.encode()):08x}"
