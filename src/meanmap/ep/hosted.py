"""A user's function that is called on the host, as compiled programs know it: by itself, whatever it reads."""

from collections.abc import Callable
from types import MethodType
from typing import Any

__all__ = ["Hosted"]


class Hosted:
    """A function behind a name of this library: programs call it and hold nothing of what it reads.

    So a counter, a memo or other data make no program anew. Two are equal where their functions are one object, or the
    same method of one.
    """

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def _parts(self) -> tuple[int, ...]:
        one = self.function
        return (id(one.__self__), id(one.__func__)) if isinstance(one, MethodType) else (id(one),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hosted) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())
