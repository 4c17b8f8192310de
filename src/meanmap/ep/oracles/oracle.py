"""Computes the messages of a black-box factor: one member at a time, mapped over the plate in blocks."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.types import Array
from meanmap.ep.factor import Answer, FactorLike, replaced
from meanmap.families import Family

__all__ = ["Oracle", "in_parts", "spread"]


# Members at a time where a plate is cut: a plate of 10⁵ took a fifth less time than in blocks of 2048.
_IN_CACHE = 256


class Oracle(eqx.Module):
    """Computes a factor's outgoing messages from its incoming ones.

    To write one, give `member`: the answer for one member of the plate, as a pure function on JAX arrays. The plate is
    mapped over it in blocks, so that memory does not grow with the plate.
    """

    # Whether a small change of the incoming messages changes answers by about their stated doubt, so that beliefs keep
    # moving.
    wanders: ClassVar[bool] = False
    on_host: ClassVar[bool] = False
    # Equal parts of the plate, each on a device of its own.
    parts: int = eqx.field(static=True, repr=False, default=1, kw_only=True)

    @property
    def block(self) -> int:
        """The number of members in memory at once: with some hundred points each, a few megabytes per array."""
        return 2048

    @abstractmethod
    def member(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """The answer for one member: families of batch shape `()`, numbers without a plate axis."""

    def check(self, factor: FactorLike) -> None:
        """Raise if this oracle cannot answer for a factor."""

    def in_parts(self, number: int) -> "Oracle":
        """An oracle that answers for this many equal parts of a plate separately."""
        return replaced(self, parts=number)

    def more(self, times: int) -> "Oracle":
        """An oracle that does about this many times the work for a message; itself, if it cannot do more."""
        del times
        return self

    def quick(self, families: tuple[Any, ...]) -> "Oracle":
        """An oracle without the extra work for doubtful members; itself, if there is no such work.

        `families` are those of the variables that it integrates over.
        """
        del families
        return self

    def answer(self, factor: FactorLike, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """The answers of all members of a plate; `key` is one key, or one for each member."""
        shapes = [message.shape for message in incoming if isinstance(message, Family)]
        if not shapes[0]:
            return self.member(factor, incoming, power, key)
        size = shapes[0][0]
        keys = key if key.ndim else jax.random.split(key, size)
        questions = spread(incoming, size)

        def one(arguments):
            return self.member(factor, arguments[0], power, arguments[1])

        if size <= self.block:
            return jax.vmap(one)((questions, keys))

        def in_turn(members, at_once):
            return jax.lax.map(one, members, batch_size=at_once)

        return in_parts(in_turn, self.parts, (questions, keys), min(self.block, _IN_CACHE))


def in_parts(function: Callable[[Any, int], Any], parts: int, members: object, at_once: int) -> Any:
    """The values of a function of all members, called for this many equal parts separately, one on each device.

    Loops that take some members at a time would otherwise bring all of them to every device. It says how many each
    may take at a time, so that all devices together hold what one would.
    """
    if parts == 1:
        return function(members, at_once)
    divided = jax.tree.map(lambda leaf: leaf.reshape(parts, -1, *leaf.shape[1:]), members)
    found = jax.vmap(lambda part: function(part, -(-at_once // parts)))(divided)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found)


def spread(incoming: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """The incoming messages, with those that are given once for all members repeated."""
    return tuple(
        given if isinstance(given, Family) else jnp.broadcast_to(given, (size, *jnp.shape(given)[1:]))
        for given in incoming
    )
