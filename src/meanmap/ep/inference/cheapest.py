"""Which way to messages costs least for a function on the host: a table of values, sampling, or learning."""

import time
from typing import Any

import numpy as np

from meanmap.core.language import in_digits
from meanmap.ep.asking.chosen_oracle import default
from meanmap.ep.calling import evaluated
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.oracles.host import HostOracle
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.oracles.sampling import ImportanceSampling
from meanmap.ep.piecewise.memory import memory_of
from meanmap.ep.piecewise.patches import ALL
from meanmap.ep.quadrature.enough import is_remembered
from meanmap.families import Bernoulli, Beta, Gamma, Normal

__all__ = ["cheapest", "rough", "seconds_each"]

# The expected number of sweeps of a run.
_SWEEPS = 10
# What learning takes in a first run: messages that are asked before predictions are trusted and where beliefs stand
# still, seconds for choosing settings, and seconds for each message that is predicted.
_ASKED, _SETTINGS, _PREDICTED = 450, 5.0, 1e-3
# Functions quicker than this are never learned: drawing and weighing points takes as long as calling them. From the
# second on they always are, as what is learned in one run serves the next.
_QUICK, _LONG = 1e-5, 0.1
# A function of arrays is timed at this many points at once, as long as more points cost less each.
_AT_ONCE = (1, 16, 256)
# A smooth function of two numbers takes 250 to 3500 evaluations, the most over vague priors; what takes more than this
# is worth a note.
_ROUGH = 4000
# Repetitions for a function of single points, the first of which may load or compile something; and for one of arrays
# where a call takes less than this many seconds, or longer than as many single points do: other programs interrupt it.
_CALLS, _SHORT = 3, 0.01


def cheapest(factor: BlackBoxFactor) -> tuple[Oracle | HostOracle, str]:
    """The oracle for a function on the host that has none, and why it is the cheapest, in words.

    Over one or two numbers a table of the function's values takes the fewest evaluations. Elsewhere the seconds of an
    evaluation decide between sampling every message and learning from a few hundred.
    """
    oracle = default(factor)
    if not isinstance(oracle, ImportanceSampling):
        kept = is_remembered(factor, [variable.family for variable in factor.integrated()])
        return oracle, "a table of its values" if kept else "quadrature"
    if not all(a.known or a.variable.family in (Normal, Beta, Gamma, Bernoulli) for a in factor.arguments):
        return oracle, "sampling, as messages of vectors are learned only where ep.Learned() is given"
    seconds = seconds_each(factor)
    messages = _SWEEPS * (factor.plate or 1)
    sampled = messages * oracle.points * seconds
    learned = min(messages, _ASKED) * oracle.points * seconds + _SETTINGS + _PREDICTED * messages
    told = f"{in_digits(seconds)} s per evaluation, {oracle.points:,} for each message asked"
    if seconds >= _LONG or (seconds >= _QUICK and learned < sampled):
        from meanmap.ep.learned import Learned

        return Learned(), f"learning, {told}"
    return oracle, f"sampling, {told}"


def seconds_each(factor: BlackBoxFactor) -> float:
    """How long one evaluation takes, by a few calls near the means of priors; 0 where the function raises an error."""
    values = [_place(argument) for argument in factor.arguments[: len(factor.arguments) - factor.outputs]]
    best = np.inf
    for count in _AT_ONCE if factor.vectorised else (1,) * _CALLS:
        taken = np.inf
        for _ in range(_CALLS if factor.vectorised else 1):
            start = time.perf_counter()
            try:
                evaluated(factor, [np.repeat(value[None], count, axis=0) for value in values])
            except Exception:  # a run that comes there raises it
                return 0.0
            taken = min(taken, time.perf_counter() - start)
            if _SHORT < taken <= 2 * count * best:
                break
        each, before = taken / count, best
        best = min(best, each)
        if each > before / 2:
            break
    return best


def rough(factors: tuple[Factor, ...], number: int) -> tuple[str, ...]:
    """A note for each function of two numbers whose table took many evaluations, with what to do."""
    memory, notes = memory_of(number), []
    for factor in factors:
        if memory is None or not isinstance(factor, BlackBoxFactor) or not factor.host:
            continue
        most = int(memory.of_two(factor.own).max(initial=0))
        if most > _ROUGH:
            one, two = (variable.name for variable in factor.integrated())
            no_more = ", and it was not called again" if most >= ALL else ""
            notes.append(
                f"{factor.name}: the table of its values took {most:,} evaluations{no_more}. Most smooth functions of "
                "two numbers take 250 to 3500; more are taken by those that jump, have kinks or vary fast along a "
                "direction between the axes, and by beliefs that move far. "
                f"If only a sum of {one!r} and {two!r} matters, type s = ep.Variable('s', ep.Normal, plate=...) "
                f"with ep.Sum({one}, {two}, out=s, weights=...), and give it a function of s alone"
            )
    return tuple(notes)


def _place(argument: Any) -> np.ndarray:
    """A value of an argument: of the first row, or near the mean of its prior."""
    if argument.known:
        return np.asarray(argument.values, float)[0] if np.ndim(argument.values) else np.asarray(argument.values, float)
    prior, family = argument.variable.prior, argument.variable.family
    if prior is not None and np.all(prior.is_proper()):
        mean = np.asarray(prior.mean(), float).reshape(-1, *prior.event_shape)[0]
        return mean if family.states is None else np.round(mean)
    middle = {"x": 0.0, "log": 1.0, "logit": 0.5}[family.coordinates[-1]] if family.states is None else 0.0
    return np.full(() if family.is_scalar() else argument.variable.dimension, middle)
