"""A sweep through plates member by member, in one compiled loop: each sees what the ones before it have sent."""

from dataclasses import replace
from functools import partial
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
    without a plate sends before the first. Every other sweep goes backwards, so that information travels both ways
    along a chain. A step reads and writes its own members alone, so that a sweep is linear in their number.
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

    first = [at for at in turns if not plan.shapes[at] and not plan.factors[at].whole]
    for at in first:
        state, one, _ = send(plan, state, at, keys[at], settings, policy)
        happened = (*happened[:at], one, *happened[at + 1 :])
    turns = [at for at in turns if at not in first]

    def step(i, carried):
        state, happened = carried
        place = jnp.where(backwards, longest - 1 - i, i)
        for at in turns:
            if plan.factors[at].whole:
                state, one, _ = send(plan, state, at, keys[at], settings, policy)
            else:
                now = place < plan.sizes[at]  # else a shorter plate is done, or has not begun
                member = jnp.asarray(orders[at])[jnp.minimum(place, plan.sizes[at] - 1)]
                turn = partial(_one_member, plan, at, now, member, members[at], settings, policy)
                # A loop of one turn, or none, is compiled apart: else the other factors' reads would be merged with
                # what is written here, and all members copied in every step.
                state, one = jax.lax.fori_loop(
                    0, now.astype(int), lambda _, c, turn=turn: turn(*c), (state, happened[at])
                )
            happened = (*happened[:at], one, *happened[at + 1 :])
        return state, happened

    state, happened = jax.lax.fori_loop(0, longest, step, (_as_arrays(state), happened))
    # Beliefs were changed by differences: sum the messages afresh, so that roundings do not add up.
    state = State(state.messages, beliefs(plan, state.messages))
    return Swept(state, happened, moved(plan, before, state.beliefs), jnp.nan)


def _one_member(
    plan: Plan,
    at: int,
    now: Any,
    i: Any,
    keys: jax.Array,
    settings: Settings,
    policy: str,
    state: State,
    happened: Happened,
) -> tuple[State, Happened]:
    """The state after member i of a factor has sent its messages, if it is to do so now."""
    factor, sent = plan.factors[at], state.messages[at]
    member, places = _member(factor, plan.shapes[at], i)
    met = [port.variable for port in _ports(factor)]
    here = tuple(_at(place, state.beliefs[variable]) for variable, place in zip(met, places, strict=True))
    before = _at(i, sent), here, _happened(_at, i, happened)
    key = jax.lax.dynamic_slice_in_dim(keys, i, 1)
    # A branch is compiled apart, too: what is read would otherwise be read after writing, from copies of all members.
    after = jax.lax.cond(
        now,
        lambda own, here, _: _alone(member, own, here, key, settings, policy),
        lambda *same: same,
        *before,
    )

    beliefs = list(state.beliefs)
    for variable, place, new in zip(met, places, after[1], strict=True):
        beliefs[variable] = _put(place, beliefs[variable], new)
    messages = (*state.messages[:at], _put(i, sent, after[0]), *state.messages[at + 1 :])
    return State(messages, tuple(beliefs)), _happened(_put, i, happened, after[2])


def _alone(
    member: Factor,
    own: Any,
    here: tuple[Any, ...],
    key: jax.Array,
    settings: Settings,
    policy: str,
) -> tuple[Any, Any, Happened]:
    """New messages, beliefs and records of a model of one member of a factor, where all else is its prior."""
    known = zip(member.arguments, own, strict=True)
    sent = [(port, message) for port, message in known if not port.known]
    rest = tuple(
        jax.tree.map(jnp.subtract, belief, scatter(message, port, belief))
        for belief, (port, message) in zip(here, sent, strict=True)
    )
    small = Plan(rest, rest, (member,), ((1,),), (True,) * len(here), (1,), (1,) * len(here))
    state, happened, _ = send(small, State((own,), here), 0, key, settings, policy)
    return state.messages[0], state.beliefs, happened


def _happened(do: Any, i: Any, *records: Happened) -> Happened:
    """Do something with member i of records: their flags have it on the second axis."""
    flags = do(i, *(record.events for record in records), axis=1)
    return replace(do(i, *(replace(record, events=None) for record in records)), events=flags)


def _at(i: Any, tree: Any, axis: int = 0) -> Any:
    """Member i of arrays as a plate of one; all of them if there is no i."""
    return tree if i is None else jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, i, 1, axis), tree)


def _put(i: Any, tree: Any, one: Any, axis: int = 0) -> Any:
    """The arrays with another member i; the other one if there is no i."""
    if i is None:
        return one
    return jax.tree.map(
        lambda all_, new: jax.lax.dynamic_update_slice_in_dim(all_, new.astype(all_.dtype), i, axis), tree, one
    )


def _member(factor: Factor, shape: tuple[int, ...], i: Any) -> tuple[Factor, list[Any]]:
    """A factor as a plate of its member i alone, with a variable of its own for each unknown argument: no member of a
    model has an unknown twice.

    And which members of the model's variables these are, None for one that all members share.
    """
    arguments: list[Any] = []
    places: list[Any] = []
    for port in factor.arguments:
        if port.known:
            per_member = port.values.ndim and port.values.shape[0] == shape[0]
            arguments.append(Given(_at(i, port.values) if per_member else port.values, port.name))
            continue
        arguments.append(Port(len(places), "shared" if port.way == "shared" else "same", None))
        own = i if port.index is None else jnp.asarray(port.index)[i]
        places.append(None if port.way == "shared" else own)
    return replaced(factor, arguments=tuple(arguments)), places


def _ports(factor: Factor) -> list[Port]:
    return [argument for argument in factor.arguments if not argument.known]


def _as_arrays(state: State) -> State:
    return jax.tree.map(jnp.asarray, state)


compiled_sequential_sweep = compiled_values(sequential_sweep)
