"""What came into a factor and what it answered: all that an operator is learned from, and all that is kept of it."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.types import Index
from meanmap.ep.factor import Answer, FactorLike
from meanmap.families import Family

__all__ = ["Recorded", "families_into", "families_of", "laws_among", "usable"]


@dataclass(frozen=True)
class Recorded:
    """Incoming messages of n members of a factor, and the answers to them.

    Attributes
    ----------
    incoming : tuple
        For each argument a batch of a family, or an array of given numbers.
    messages : tuple
        For each argument the outgoing messages; None for given values.
    log_normaliser : array (n,)
        log ∫ f(x) Π exp(η·t(x)) dx; NaN where it is not known.
    """

    incoming: tuple[Any, ...]
    messages: tuple[Any, ...]
    log_normaliser: np.ndarray

    @classmethod
    def of(cls, incoming: tuple[Any, ...], answer: Answer) -> "Recorded":
        """Questions with their answers, as NumPy arrays of float64.

        What is given may be left out of `incoming`, if it is the same for all members.
        """
        sent = tuple(m for m in answer.messages if m is not None or len(incoming) == len(answer.messages))
        if len(sent) != len(incoming):
            raise ShapeError(f"{len(incoming)} messages came in and {len(sent)} went out; expected one for each.")
        total = answer.log_normaliser
        if total is None:
            total = np.full(len(jax.tree.leaves(sent)[0]), np.nan)
        return cls(*jax.tree.map(lambda leaf: np.array(leaf, np.float64), (incoming, sent, total)))

    @property
    def answer(self) -> Answer:
        """The answers alone."""
        return Answer(self.messages, self.log_normaliser)

    def __len__(self) -> int:
        return len(self.log_normaliser)

    def __getitem__(self, index: Index) -> "Recorded":
        return Recorded(*jax.tree.map(lambda leaf: leaf[index], (self.incoming, self.messages, self.log_normaliser)))

    def __add__(self, other: "Recorded") -> "Recorded":
        """Both, one after the other."""
        if families_of(self.incoming) != families_of(other.incoming):
            raise KindError(
                f"messages into a factor of {_listed(other.incoming)} do not continue those into one of "
                f"{_listed(self.incoming)}."
            )
        mine, theirs = ((one.incoming, one.messages, one.log_normaliser) for one in (self, other))
        return Recorded(*jax.tree.map(lambda a, b: np.concatenate([a, b]), mine, theirs))


def families_of(incoming: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of the families, with their dimensions; "given" for numbers."""
    return tuple(
        type(value).__name__ + (str(list(value.event_shape)) if value.event_shape else "")
        if isinstance(value, Family)
        else "given"
        for value in incoming
    )


def families_into(factor: FactorLike) -> tuple[str, ...]:
    """The names of the families of the messages into a factor, with their dimensions; "given" for numbers."""
    found = []
    for argument in factor.arguments:
        length = None if argument.known else argument.variable.dimension
        name = "given" if argument.known else argument.variable.family.__name__
        found.append(name if length is None else f"{name}[{length}]")
    return tuple(found)


def laws_among(incoming: tuple[Any, ...]) -> list[Family]:
    """The messages that are distributions, without the numbers that are given."""
    return [came for came in incoming if isinstance(came, Family)]


def usable(incoming: tuple[Any, ...]) -> np.ndarray:
    """For which members every message is a distribution, so that it has an embedding."""
    return np.logical_and.reduce([np.asarray(m.is_proper()) for m in laws_among(incoming)])


def _listed(incoming: tuple[Any, ...]) -> str:
    return ", ".join(families_of(incoming))
