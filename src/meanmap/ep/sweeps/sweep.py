"""One sweep of expectation propagation: every factor in turn, all members of its plate at once."""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.compiling import BARE, compiled_values
from meanmap.core.types import Array
from meanmap.ep.doubt import between
from meanmap.ep.factor import Answer, Factor, finite
from meanmap.ep.sweeps.improper import settle
from meanmap.ep.sweeps.plan import Plan, Port, State, beliefs, gather, real, select
from meanmap.families import Family, Normal

__all__ = [
    "EVENTS",
    "LOST",
    "UNUSABLE",
    "Happened",
    "Settings",
    "Swept",
    "compiled_absorb",
    "compiled_answer",
    "compiled_cavities",
    "compiled_evidence",
    "compiled_moved",
    "compiled_send",
    "compiled_sweep",
    "keys_of",
    "moved",
    "residual",
    "send",
]

# Precision of a distribution that stands in where there is none.
_NARROW = 1e4

# Of this many rows, runs with a program without optimisation take a third of the time, mostly compiling (256: as long).
_FEW = 32

# What can happen to the messages of one member of a factor; each has its column in the counts of a sweep.
EVENTS = ("improper messages", "improper cavities", "answers without numbers", "improper beliefs")
UNUSABLE, LOST = 1, 2  # the rows of flags for cavities and for answers


class Settings(NamedTuple):
    """How far to go: projections move by `step * caution` of their way, exact messages by `step`."""

    step: Any
    caution: Any
    power: Any


class Swept(NamedTuple):
    """The result of one sweep.

    Attributes
    ----------
    state : State
    happened : tuple of Happened
        For each factor.
    moved : array
        How far the beliefs about each variable moved.
    evidence : number
        Its logarithm, from the answers during the sweep: correct at convergence; NaN if not known.
    """

    state: State
    happened: tuple[Any, ...]
    moved: Any
    evidence: Any


class Happened(eqx.Module):
    """What happened to the messages of a factor: flags (4, members) for `EVENTS`, and the errors its oracle states."""

    events: Any
    effective: Any
    doubt: Any
    mean_errors: Any
    undefined: Any


def sweep(plan: Plan, state: State, key: jax.Array, settings: Settings, policy: str) -> Swept:
    """Each factor sends its messages once."""
    keys = keys_of(plan, key)
    before, happened = state.beliefs, []
    parts = _of_beliefs(plan, before)
    for at in range(len(plan.factors)):
        state, one, part = send(plan, state, at, keys[at], settings, policy)
        happened.append(one)
        parts += part
    return Swept(state, tuple(happened), moved(plan, before, state.beliefs), _summed(parts))


def keys_of(plan: Plan, key: jax.Array) -> jax.Array:
    """Randomness for each factor; inside of a program, where it is left out unless a factor draws."""
    return jax.random.split(key, len(plan.factors))


def _of_members(plan: Plan, at: int, key: jax.Array) -> jax.Array:
    """The randomness of a factor; where its function is on the host, that of each member.

    What fills a plate up has that of the last member, so that it is a copy for which the function is not called.
    """
    factor: Any = plan.factors[at]
    if not (factor.asks_oracle and factor.host and plan.shapes[at]):
        return key
    (size,) = plan.shapes[at]
    return jax.random.split(key, size)[jnp.minimum(jnp.arange(size), jnp.asarray(plan.sizes[at]) - 1)]


def send(plan: Plan, state: State, at: int, key: jax.Array, settings: Settings, policy: str) -> tuple:
    """The state after one factor has sent its messages, what happened to them, and its parts of the log evidence."""
    incoming, usable = cavities(plan, state, at, settings.power)
    answer = plan.factors[at].answer(incoming, _power(plan, at, settings.power), _of_members(plan, at, key))
    # What is behind a barrier is computed once and compiled apart: without it, compiling took up to 150 seconds.
    answer = jax.lax.optimization_barrier(replace(answer, errors=None))  # of which nothing here makes use
    part = _of_factor(plan, state, at, settings.power, answer.log_normaliser)
    return *jax.lax.optimization_barrier(absorb(plan, state, at, incoming, usable, answer, settings, policy)), part


def moved(plan: Plan, before: tuple[Family, ...], after: tuple[Family, ...]) -> jax.Array:
    """How far the beliefs about each variable moved, in standard deviations."""
    pairs = zip(after, before, plan.variable_sizes, strict=True)
    return jnp.stack([residual(new, old, real(new.shape, size)) for new, old, size in pairs])


def _power(plan: Plan, at: int, power: Array) -> Any:
    return power if plan.factors[at].powered else 1.0


def cavities(plan: Plan, state: State, at: int, power: Array) -> tuple[tuple[Any, ...], jax.Array]:
    """The incoming messages of a factor, belief / message^α, and for which members the factor can use them.

    Where it cannot, a standard distribution stands in, so that nothing that is computed for nothing becomes NaN.
    """
    factor, shape, alpha = plan.factors[at], plan.shapes[at], _power(plan, at, power)
    usable = real(shape, plan.sizes[at])
    incoming: list[Any] = []
    for position, (port, message) in enumerate(zip(factor.arguments, state.messages[at], strict=True)):
        if port.known:
            incoming.append(port.values)
            continue
        belief = gather(state.beliefs[port.variable], port, shape)
        cavity = jax.tree.map(lambda b, m: b - alpha * m, belief, message)
        if factor.needs_proper(position):
            proper = cavity.is_proper()
            usable = usable & proper
            cavity = select(proper, cavity, _standard(cavity))
        incoming.append(cavity)
    return tuple(incoming), usable


def absorb(
    plan: Plan,
    state: State,
    at: int,
    incoming: tuple[Any, ...],
    usable: jax.Array,
    answer: Answer,
    settings: Settings,
    policy: str,
) -> tuple[State, Happened]:
    """The state with a factor's answer in place of its old messages, as far as damping and the policy let it."""
    factor, shape, old = plan.factors[at], plan.shapes[at], state.messages[at]
    active, alpha = real(shape, plan.sizes[at]), _power(plan, at, settings.power)
    step = settings.step * (settings.caution if factor.approximate else 1.0)
    numbers, improper = active, jnp.zeros(shape, bool)
    sent: list[Any] = []
    for port, cavity, message, before in zip(factor.arguments, incoming, answer.messages, old, strict=True):
        if message is None:
            sent.append(None)
            continue
        # A direction without numbers keeps its old message, and keeps no other direction from being told.
        fine = finite(message)
        fine = fine if _member_by_member(port) else jnp.broadcast_to(fine.all(), shape)
        numbers, good = numbers & fine, usable & fine
        message = jax.tree.map(lambda leaf, b: jnp.broadcast_to(leaf / alpha, b.shape), message, before)
        if factor.approximate:
            message, bad = settle(policy, cavity, before, message)
            improper = improper | (bad & good)
        moved = jax.tree.map(lambda b, m: b + step * (m - b), before, message)
        sent.append(select(good if _member_by_member(port) else fine.all(), moved, before))
    new, reverted = _keep_beliefs_proper(plan, state, at, tuple(sent))
    events = jnp.stack([improper, active & ~usable, active & usable & ~numbers, reverted & active])
    return new, Happened(events, answer.effective, answer.doubt, answer.mean_errors, answer.undefined)


def _keep_beliefs_proper(plan: Plan, state: State, at: int, sent: tuple[Any, ...]) -> tuple[State, jax.Array]:
    """Take the new messages, except where a proper belief would become improper."""
    factor, shape = plan.factors[at], plan.shapes[at]
    reverted = jnp.zeros(shape, bool)
    trial = _replaced(plan, state, at, sent)
    if not factor.approximate:
        return trial, reverted
    for port in factor.arguments:
        if not port.known:
            lost = state.beliefs[port.variable].is_proper() & ~trial.beliefs[port.variable].is_proper()
            if port.way == "selected":
                lost = lost[port.index]
            reverted = reverted | lost  # one that is shared reverts all members
    kept = tuple(
        None if new is None else select(jnp.broadcast_to(reverted, shape), old, new)
        for new, old in zip(sent, state.messages[at], strict=True)
    )
    return _replaced(plan, state, at, kept), reverted


def _replaced(plan: Plan, state: State, at: int, sent: tuple[Any, ...]) -> State:
    messages = (*state.messages[:at], sent, *state.messages[at + 1 :])
    touched = {port.variable for port in plan.factors[at].arguments if not port.known}
    fresh = beliefs(plan, messages)
    return State(messages, tuple(fresh[i] if i in touched else old for i, old in enumerate(state.beliefs)))


def residual(new: Family, old: Family, active: jax.Array) -> jax.Array:
    """How far a variable's beliefs moved at most, in standard deviations; ∞ if improper."""
    proper = new.is_proper() & old.is_proper()
    # Where one of them is improper the distance is not used.
    return jnp.where(active, jnp.where(proper, between(new, old), jnp.inf), 0.0).max()


def evidence(plan: Plan, state: State, key: jax.Array, power: Array, known_answers: dict[int, Any]) -> jax.Array:
    """The logarithm of the evidence, log Z = Σ_f [L_f − Σ_v A(η_v)]/α + Σ_v [A(η_v) − A(prior)].

    L_f = log ∫ f^α Π exp(η_cavity·t), also of improper messages; only beliefs have to be proper (Minka 2005).
    `known_answers` are the L_f of factors whose oracles are on the host.
    """
    keys, parts = keys_of(plan, key), _of_beliefs(plan, state.beliefs)
    for at, factor in enumerate(plan.factors):
        answer = known_answers.get(at)
        if answer is None:
            incoming, _ = cavities(plan, state, at, power)
            given = _of_members(plan, at, keys[at])
            answer = factor.answer(incoming, _power(plan, at, power), given).log_normaliser
        parts += _of_factor(plan, state, at, power, answer)
    return _summed(parts)


def _summed(parts: list[Any]) -> jax.Array:
    """The sum of all entries of arrays; those of one shape are added first, because each sum is a program by itself."""
    by_shape: dict[tuple[int, ...], Any] = {}
    for part in parts:
        by_shape[part.shape] = by_shape[part.shape] + part if part.shape in by_shape else part
    return sum((part.sum() if shape else part for shape, part in by_shape.items()), start=jnp.zeros(()))


def _of_beliefs(plan: Plan, beliefs: tuple[Family, ...]) -> list[Any]:
    """The terms of Σ_v [A(η_v) − A(prior)], zero for members that are not real."""
    parts = []
    for belief, prior, given, size in zip(beliefs, plan.priors, plan.with_prior, plan.variable_sizes, strict=True):
        part = belief.log_normaliser - (prior.log_normaliser if given else 0.0)
        parts.append(jnp.where(real(belief.shape, size), part, 0.0))
    return parts


def _of_factor(plan: Plan, state: State, at: int, power: Array, answer: Any) -> list[Any]:
    """The terms of [L_f − Σ_v A(η_v)]/α of a factor whose log normalisers are the answer.

    During a sweep η_v is the incoming message of the factor times its previous message. At convergence the sum of these
    parts does not change with any message to first order: that of the last sweep is the evidence.
    """
    factor, shape = plan.factors[at], plan.shapes[at]
    # Of the members together, and of each.
    once, each = (answer, jnp.zeros(shape)) if factor.whole else (jnp.zeros(()), jnp.broadcast_to(answer, shape))
    for port in factor.arguments:
        if not port.known:
            known = gather(state.beliefs[port.variable], port, shape).log_normaliser
            once, each = (once, each - known) if _member_by_member(port) else (once - known, each)
    alpha = _power(plan, at, power)
    return [once / alpha, jnp.where(real(shape, plan.sizes[at]), each, 0.0) / alpha]


def _member_by_member(port: Port) -> bool:
    return port.way != "whole"


def _standard(family: Any) -> Any:
    """A distribution of the same family and batch, to compute with where the real one cannot be."""
    kind, shape = type(family), family.shape
    if any(family._own_axes):
        return kind.standard(family.natural[0].shape[-1], shape)
    if kind is Normal:  # narrow, so that the fewest nodes do
        return Normal.from_natural(jnp.zeros(shape), jnp.full(shape, _NARROW))
    return kind.standard(shape)


compiled_absorb = compiled_values(absorb)
compiled_cavities = compiled_values(cavities)
compiled_moved = compiled_values(moved)
compiled_send = compiled_values(send)
compiled_evidence = compiled_values(evidence)
_sweep, _bare_sweep = compiled_values(sweep), compiled_values(sweep, BARE)


def compiled_sweep(plan: Plan, *rest: object) -> Swept:
    """One sweep; for a few rows of a function on the host, whose program no other run can use, compiled at once."""
    on_host = any(getattr(factor, "memory", None) is not None for factor in plan.factors)
    few = max((math.prod(shape) for shape in plan.shapes), default=1) <= _FEW
    return (_bare_sweep if on_host and few else _sweep)(plan, *rest)


@compiled_values
def compiled_answer(factor: Factor, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
    """What a factor answers to these messages."""
    return factor.answer(incoming, power, key)
