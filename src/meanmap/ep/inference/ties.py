"""Whether separate beliefs about unknowns that are correlated given the data are too narrow or too wide."""

from typing import Any

import jax
import numpy as np

from meanmap.ep.inference.run import Run
from meanmap.ep.sweeps.plan import Plan, Port, State, fetched
from meanmap.ep.sweeps.sweep import compiled_answer, compiled_cavities
from meanmap.families import Beta, Family, Gamma, Normal

__all__ = ["TOO_WIDE", "advice"]

# Beliefs narrower than this, over what all ties together leave, are worth a note; among at most this many unknowns.
_NARROW, _MOST = 0.8, 500
# Beliefs that are this many times as wide as the joint one are worth a note, too: a coefficient of a chain of unknowns.
_WIDE = 1.1
# How far incoming messages are moved to find what moves with them, in standard deviations.
_STEP = 1e-3

NUMBERS = (Normal, Gamma, Beta)
# How notes of beliefs that are too wide can be known.
TOO_WIDE = "comes out too large"


def advice(run: Run, state: State, names: tuple[str, ...]) -> tuple[str, ...]:
    """A note about the unknowns whose separate beliefs are furthest too narrow or too wide; none if there are none.

    Every factor between unknowns with priors says how they vary together: the mean of one moves with what comes in
    from another by their covariance. Together these give the precision matrix that one joint belief would have, whose
    inverse is compared with the separate variances. On trees of Gaussians these agree.
    """
    plan: Plan = run.last
    first, total = {}, 0
    for at, belief in enumerate(state.beliefs):
        if plan.with_prior[at] and isinstance(belief, NUMBERS):
            first[at] = total
            total += int(plan.variable_sizes[at])
    tied = {
        at: places
        for at, factor in enumerate(plan.factors)
        if at not in run.hosts
        and not factor.whole
        and not getattr(factor, "host", False)
        and len(places := [k for k, port in enumerate(factor.arguments) if port.variable in first]) > 1
    }
    if not tied or total > _MOST or not all(fetched(state.beliefs[at].is_proper()).all() for at in first):
        return ()
    spread = np.concatenate([_spread(state.beliefs[at])[: int(plan.variable_sizes[at])] for at in first])
    precision = np.diag(1 / spread)
    for at, places in tied.items():
        covariance = _covariance(run, state, at, places)
        size = len(covariance)
        rows = np.stack([_members(plan.factors[at].arguments[k], first, size) for k in places], axis=1)
        if not np.isfinite(covariance).all() or (np.linalg.eigvalsh(covariance) <= 0).any():
            return ()
        # The messages of a factor to one unknown given the others, in place of those to one alone, and the
        # correlations.
        ties = np.linalg.inv(covariance)
        each = np.arange(len(places))
        ties[:, each, each] -= 1 / covariance[:, each, each]
        np.add.at(precision, (rows[:, :, None], rows[:, None, :]), ties)
    if np.linalg.eigvalsh(precision)[0] <= 0:
        return ()
    joint = np.linalg.inv(precision)
    ratio = np.sqrt(spread / np.diag(joint))
    wide = bool(ratio.min() >= _NARROW and ratio.max() > _WIDE)
    worst = int(np.argmax(ratio) if wide else np.argmin(ratio))
    correlation = joint[worst] / np.sqrt(joint[worst, worst] * np.diag(joint))
    correlation[worst] = 0
    other = int(np.argmax(np.abs(correlation)))
    if not (wide or ratio[worst] < _NARROW) or correlation[other] == 0:
        return ()
    if wide:
        name = _label(plan, names, first, worst)
        note = f"{name} and what it is tied to have separate beliefs: the standard deviation of {name} {TOO_WIDE}"
        return (f"{note}, about {ratio[worst]:.3g} times what it should be",)
    one, two = (_label(plan, names, first, node) for node in sorted((worst, other)))
    note = (
        f"{one} and {two} have separate beliefs, and the data tie them together (correlation "
        f"{correlation[other]:.2f}): standard deviations come out too small, about {ratio[worst]:.2g} of what they "
        "should be. Give them one belief: ep.Variable(name, ep.MultivariateNormal(mean, covariance)), as the one "
        "argument of a function, or as w in ep.Dot(X, w, z) for sums and differences."
    )
    return (note,)


def _place(law: Family) -> np.ndarray:
    return fetched(law.mean_in(law.coordinates[-1]))


def _spread(law: Family) -> np.ndarray:
    return np.atleast_1d(fetched(law.variance_in(law.coordinates[-1])))


def _covariance(run: Run, state: State, at: int, places: list[int]) -> np.ndarray:
    """Of each member's tilted law, between the arguments at some places."""
    factor, size, key = run.last.factors[at], int(run.last.sizes[at]), run.keys[at]
    alpha = run.power if factor.powered else 1.0
    incoming = list(compiled_cavities(run.last, state, at, run.power)[0])

    def means(came: list[Any]) -> np.ndarray:
        sent = compiled_answer(factor, tuple(came), alpha, key).messages
        beliefs = (jax.tree.map(lambda a, b: a + b, came[k], sent[k]) for k in places)
        return np.stack([np.atleast_1d(_place(belief))[:size] for belief in beliefs], axis=1)

    before, columns = means(incoming), []
    for k in places:
        step = _STEP / np.sqrt(fetched(incoming[k].variance_in(incoming[k].coordinates[-1])))
        moved = [*incoming[:k], incoming[k]._turned(step), *incoming[k + 1 :]]
        columns.append((means(moved) - before) / np.atleast_1d(step)[:size, None])
    covariance = np.stack(columns, axis=2)
    return (covariance + covariance.transpose(0, 2, 1)) / 2


def _members(port: Port, first: dict[int, int], size: int) -> np.ndarray:
    index = {"selected": port.index, "same": np.arange(size)}.get(port.way)
    return first[port.variable] + (np.zeros(size, int) if index is None else fetched(index)[:size])


def _label(plan: Plan, names: tuple[str, ...], first: dict[int, int], node: int) -> str:
    at = max((at for at in first if first[at] <= node), key=lambda at: first[at])
    return repr(names[at]) if plan.flats[at].shape == () else f"{names[at]!r} at [{node - first[at]}]"
