"""For which factor an operator was trained: its function, its families, its power."""

import zlib
from dataclasses import dataclass
from typing import Any

__all__ = ["Signature"]


@dataclass(frozen=True)
class Signature:
    """What two factors must share for the messages of one to teach those of the other."""

    factor: str
    power: float = 1.0

    @classmethod
    def of(cls, factor: Any, power: float = 1.0) -> "Signature":
        """The kind of a factor, and the function it is made of."""
        return cls(f"{type(factor).__name__} {_label(factor.function)}", float(power))


def _label(function: Any) -> str:
    """A name that is the same in every process; functions without a name of their own are told apart by their code."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return f"{module}.{name}"
    closed = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    body = repr((code.co_code, [c for c in code.co_consts if not hasattr(c, "co_code")], code.co_names, closed))
    return f"{module}.{name}#{zlib.crc32(body.encode()):08x}"
