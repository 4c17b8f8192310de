"""A sweep through plates member by member, in one compiled loop: each sees what the ones before it have sent."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from meanmap.core.compiling import compiled_values
from meanmap.ep.factor import Factor, replaced
from meanmap.ep.sweeps.plan import Plan, Port, State, beliefs, scatter
from meanmap.ep.sweeps.sweep import Happened, Settings, Swept, keys_of, moved, send
from meanmap.ep.variables import Given

__all__ = ["compiled_sequential_sweep"]


def sequential_sweep(
    plan: Plan,
    state: State,
    key: jax.Array,
    settings: Settings,
    policy: str,
    orders: tuple[Any, ...],
    backwards: Any,
) -> Swept:
    """A sweep member by member: in step i, each factor sends the messages of member i of its order.

    A factor with an argument that all members share as one, a linear map, sends all its messages in every step; one
    without a plate sends in the first. Every other sweep goes backwards, so that information travels both ways along a
    chain.
    """
    before, keys = state.beliefs, keys_of(plan, key)
    # Records of all members from the first step, in the right shapes; every member overwrites its own.
    happened = tuple(
        jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(lambda s, at=at: send(plan, s, at, keys[at], settings, policy)[1], state),
        )
        for at in range(len(plan.factors))
    )
    members = [jax.random.split(own, *shape) if shape else own for own, shape in zip(keys, plan.shapes, strict=True)]

    longest = jnp.stack([jnp.asarray(size) for size in plan.sizes]).max()
    # Those that join nothing to anything come first: what they say is then carried along in the same step.
    turns = sorted(range(len(plan.factors)), key=lambda at: len(_ports(plan.factors[at])))

    def step(i, carried):
        state, happened = carried
        place = jnp.where(backwards, longest - 1 - i, i)
        for at in turns:
            factor = plan.factors[at]
            if factor.whole:
                state, one, _ = send(plan, state, at, keys[at], settings, policy)
            elif not plan.shapes[at]:
                state, one = jax.lax.cond(
                    i == 0,
                    lambda s, at=at: send(plan, s, at, keys[at], settings, policy)[:2],
                    lambda s, same=happened[at]: (s, same),
                    state,
                )
            else:
                # Shorter plates are done, or have not begun: their last member repeats itself.
                member = jnp.asarray(orders[at])[jnp.minimum(place, plan.sizes[at] - 1)]
                state, one = _one_member(plan, state, at, member, members[at], settings, policy, happened[at])
            happened = (*happened[:at], one, *happened[at + 1 :])
        return state, happened

    state, happened = jax.lax.fori_loop(0, longest, step, (_as_arrays(state), happened))
    # Beliefs were changed by differences: sum the messages afresh, so that roundings do not add up.
    state = State(state.messages, beliefs(plan, state.messages))
    return Swept(state, happened, moved(plan, before, state.beliefs), jnp.nan)


def _one_member(
    plan: Plan,
    state: State,
    at: int,
    i: Any,
    keys: jax.Array,
    settings: Settings,
    policy: str,
    happened: Happened,
) -> tuple[State, Happened]:
    """The state after member i of a factor has sent its messages: a model of this one member, all else its prior."""
    factor, sent = plan.factors[at], state.messages[at]
    own = tuple(jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, i, 1), message) for message in sent)
    member = _member(factor, plan.shapes[at], i)
    rest = list(state.beliefs)
    for port, message in zip(member.arguments, own, strict=True):
        if not port.known:
            rest[port.variable] = jax.tree.map(
                jnp.subtract, rest[port.variable], scatter(message, port, plan.flats[port.variable])
            )
    small = Plan(plan.flats, tuple(rest), (member,), ((1,),), plan.with_prior, (1,), plan.variable_sizes)
    key = jax.lax.dynamic_slice_in_dim(keys, i, 1)
    now, one, _ = send(small, State((own,), state.beliefs), 0, key, settings, policy)

    def put(axis: int) -> Any:
        return lambda all_, new: jax.lax.dynamic_update_slice_in_dim(all_, new.astype(all_.dtype), i, axis)

    kept = jax.tree.map(put(0), sent, now.messages[0])
    messages = (*state.messages[:at], kept, *state.messages[at + 1 :])
    events = put(1)(happened.events, one.events)
    stated = jax.tree.map(put(0), replace(happened, events=None), replace(one, events=None))
    return State(messages, now.beliefs), replace(stated, events=events)


def _member(factor: Factor, shape: tuple[int, ...], i: Any) -> Factor:
    """A factor as a plate of its member i alone."""
    arguments: list[Any] = []
    for port in factor.arguments:
        if port.known:
            per_member = port.values.ndim and port.values.shape[0] == shape[0]
            values = jax.lax.dynamic_slice_in_dim(port.values, i, 1) if per_member else port.values
            arguments.append(Given(values, port.name))
        elif port.way == "shared":
            arguments.append(port)
        else:
            index = jnp.asarray(i)[None] if port.way == "same" else jax.lax.dynamic_slice_in_dim(port.index, i, 1)
            arguments.append(Port(port.variable, "selected", index))
    return replaced(factor, arguments=tuple(arguments))


def _ports(factor: Factor) -> list[Port]:
    return [argument for argument in factor.arguments if not argument.known]


def _as_arrays(state: State) -> State:
    return jax.tree.map(jnp.asarray, state)


compiled_sequential_sweep = compiled_values(sequential_sweep)
