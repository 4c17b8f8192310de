"""Messages by sampling a function whose values are learned: it has fewer inputs than a message has numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from meanmap.core.language import in_digits
from meanmap.ep.calling import evaluated
from meanmap.ep.factor import Answer, FactorLike
from meanmap.ep.learned.diary import Diary
from meanmap.ep.learned.recorded import usable
from meanmap.ep.learned.signature import near
from meanmap.ep.oracles.questions import Questions
from meanmap.ep.oracles.sampling import Sampler
from meanmap.ep.piecewise.memory import Memory
from meanmap.ep.piecewise.surface import MOST_NUMBERS, Surface
from meanmap.families import Family, Normal

__all__ = ["QUICK", "answer_by_values", "are_learned"]

# A function that takes fewer seconds for a value is not learned unasked: polynomials take a few millionths.
QUICK = 1e-5

# At the end values are compared with the function at so many points of the belief of each row.
_LOOKS = 4


def are_learned(factor: FactorLike, incoming: tuple[Any, ...], oracle: object) -> bool:
    """Whether a sampler asks for values of a function of few numbers, on the host, whose output is a normal number."""
    if not (isinstance(oracle, Sampler) and factor.host and factor.outputs and not factor.random):
        return False
    if getattr(oracle, "proposal", None) is not None:  # errors where it draws say nothing of where beliefs are
        return False
    return isinstance(incoming[-1], Normal) and sum(int(np.prod(each)) for each in _shapes(incoming)) <= MOST_NUMBERS


def _shapes(incoming: tuple[Any, ...]) -> tuple[tuple[int, ...], ...]:
    """Of the arguments of the function."""
    return tuple(each.event_shape if isinstance(each, Family) else np.shape(each)[1:] for each in incoming[:-1])


def answer_by_values(
    questions: Questions,
    oracle: Sampler,
    ask: Callable[[Questions], Answer],
    memory: Memory,
    diary: Diary,
    quickest: float = 0.0,
) -> Answer | None:
    """The oracle's answer from values that are learned if possible; None if it is known that they cannot be.

    What errors of values may do is added to the doubt. A function that takes fewer seconds than `quickest` for a value
    is not learned.
    """
    surface = memory.surfaces.setdefault((_shapes(questions.incoming), questions.factor.vectorised), Surface())
    if surface.refused:
        diary.of_values = f"its values were not learned: {surface.refused}"
        return None
    if questions.sweep == 0:
        surface.begin()
    precision, before = np.maximum(questions.incoming[-1].precision, 0.0), surface.called
    narrowest, surface.error = float(precision.max()), 0.0

    def scale(spread: float) -> float:
        return (narrowest + (spread or 1.0) ** -2.0) ** -0.5

    memory.learned = surface, scale
    # One call of the function for each part, one after another: the same answers in every run.
    most = 1 << (oracle.block.bit_length() - 1)
    parts = np.array_split(np.arange(len(questions)), -(-len(questions) // most))
    try:
        with diary.clock("asking"):
            found = [ask(questions[part]) for part in parts]
    finally:
        memory.learned = None
    roots = np.sqrt(precision + (surface.spread or 1.0) ** -2.0)
    answer = jax.tree.map(lambda *each: np.concatenate(each), *found)
    new = surface.called - before
    each = memory.seconds / max(surface.called, 1)
    if each < quickest and not surface.refused:
        surface.refused = f"calling it took only {in_digits(1e6 * each)} µs"
    diary.of_values = _in_words(surface, float(np.linalg.norm(roots)))
    diary.evidence_error = 0.0
    asked = len(questions) if new > len(questions) else 0
    diary.add(asked, len(questions) - asked, 0, np.nan)
    doubt = np.zeros(len(questions)) if answer.doubt is None else answer.doubt
    error = np.full(len(questions), surface.error)
    if questions.sweep is None and not surface.refused:
        error = np.maximum(error, _off_in_beliefs(questions, answer, surface, scale(surface.spread)))
    return replace(answer, doubt=np.hypot(doubt, error * roots))


def _off_in_beliefs(questions: Questions, answer: Answer, surface: Surface, scale: float) -> np.ndarray:
    """Root mean square, in each row, of what learned values miss at a few points of its own belief."""
    factor, incoming = questions.factor, questions.incoming
    over = factor.inputs(incoming)
    beliefs = {at: jax.tree.map(np.add, incoming[at], answer.messages[at]) for at in over}
    lawful, found = usable(tuple(beliefs.values())), np.zeros(len(questions))
    rows = np.repeat(np.flatnonzero(lawful), _LOOKS)
    if not len(rows):
        return found
    rng = np.random.default_rng(len(questions))
    points = [
        near(beliefs[at], rows, rng.standard_normal(len(rows))) if at in beliefs else np.asarray(each, float)[rows]
        for at, each in enumerate(incoming[:-1])
    ]
    ends, shapes = (
        np.cumsum([int(np.prod(each.shape[1:])) for each in points])[:-1],
        [each.shape[1:] for each in points],
    )

    def evaluate(x: np.ndarray) -> np.ndarray:
        parts = np.split(x, ends, axis=1)
        return evaluated(factor, [part.reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)])

    missed = surface.off(evaluate, np.concatenate([each.reshape(len(rows), -1) for each in points], 1), scale)
    found[lawful] = np.sqrt((missed.reshape(-1, _LOOKS) ** 2).mean(1))
    return found


def _in_words(surface: Surface, precision: float) -> str:
    """What was learned; all rows together know a mean that they share at most to this precision (root)."""
    if surface.refused:
        return f"its values were not learned: {surface.refused}"
    if not surface.answered:
        return ""
    return (
        f"values at {surface.answered:,} points are learned ones, from {surface.evaluations:,} evaluations. As "
        f"{surface.checked:,} points show they are off by {surface.error:.2g} (root mean square), which is part of the "
        f"doubt; what they share moves a mean that all rows share by up to {surface.bias * precision:.2g} standard "
        "deviations"
    )
