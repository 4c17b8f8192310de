"""Whether the function of a black box gives values that its output cannot have, or none, or is a density of 0."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.language import with_article
from meanmap.ep.calling import call
from meanmap.ep.calls import Spent, in_words, user_errors
from meanmap.ep.lines import inside, to_nodes
from meanmap.ep.sweeps.plan import Plan, State
from meanmap.ep.sweeps.sweep import compiled_cavities
from meanmap.families import Family

__all__ = ["MEMBERS", "TOLD", "all_over", "left_range", "of_one_value", "undefined", "zero_everywhere", "zero_here"]

# Where functions are checked, in standard deviations of the incoming message. Quadrature rules go much further, and log
# densities are checked as far out as these: a single ∞ spoils a message.
LOOKED_AT, ALL_OVER = (-1.0, 0.0, 1.0), tuple(float(at) for at in sorted(range(-9, 10), key=abs))
# Points without a value are reported if they have more than this share of the cavity: rules leave out the rest.
TOLD = 1e-12
# Such a point is looked for on a grid over one or two numbers, in these steps, and among this many draws of the rest.
_STEPS, _DRAWS = {1: 0.125, 2: 0.5}, 1000
# A density counts as zero everywhere if it is zero at this many points to either side of the middle of one number, to
# nine standard deviations, and at these distances; calls on the host may be slow, and many were made by then.
_CLOSE, _CLOSE_ON_HOST, _FAR = 1000, 18, (1e2, 1e3, 1e4, 1e6)
MEMBERS = 20


def left_range(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> str:
    """A note if the function of a factor leaves the range of its output for one of these members, or has no value at
    any point that is looked at; else empty.

    The output of a log density is any number, or −∞. Functions that draw at random are not asked.
    """
    if not factor.asks_oracle or factor.random or not len(members):
        return ""
    density = getattr(factor, "powered", False)
    out = None if density else factor.arguments[-1].variable
    if not density and out is None:
        return ""
    incoming, _ = compiled_cavities(plan, state, at, power)
    member = int(members[0])
    with user_errors():
        return _of_member(factor, out, tuple(_one(value, member, factor.plate) for value in incoming), member)


def _one(value: object, member: int, plate: int | None) -> Any:
    """The incoming messages of one member."""
    return value if plate is None else jax.tree.map(lambda leaf: jnp.asarray(leaf)[member], value)


def _of_member(factor: Any, out: Any, incoming: tuple[Any, ...], member: int) -> str:
    over, arguments = factor.inputs(incoming), list(incoming if out is None else incoming[:-1])
    for position in over:
        arguments[position] = _points(arguments[position], ALL_OVER if out is None else LOOKED_AT)
    images = np.asarray(call(factor, arguments, over), float)
    if out is None:
        wrong, nothing = images == np.inf, np.isnan(images)
    else:
        nothing = ~np.isfinite(images)
        wrong = np.isnan(np.asarray(inside(type(incoming[-1]), jnp.asarray(images)).x)) & ~nothing
    if not (wrong.any() or nothing.all()):
        return ""
    point = int(wrong.argmax())
    where = f" at [{member}]" if factor.plate is not None else ""
    said = f"the function of {factor.name}{where} is {images[point]:.3g} for {_shown(factor, arguments, over, point)}"
    if not wrong.any():
        return f"{said}, and has no value at any of {len(images)} points: there is nothing to learn from it"
    if out is None:
        return f"{said}: a density is finite; return -inf where the factor is zero"
    family = with_article(out.family.__name__)
    return (
        f"{said}, and {out.name!r} is {family}, {_range_of(out.family)}: give a function that stays "
        "there, or another family"
    )


def of_one_value(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> str:
    """A note if a function that gives an output is the same at all points that are looked at; else empty."""
    if not factor.asks_oracle or getattr(factor, "random", False) or not getattr(factor, "outputs", 0):
        return ""
    every, _ = compiled_cavities(plan, state, at, power)
    for member in members[:MEMBERS]:
        incoming = [_one(value, int(member), factor.plate) for value in every]
        over, arguments = factor.inputs(incoming), incoming[:-1]
        for position in over:
            arguments[position] = _points(arguments[position], LOOKED_AT)
        with user_errors():
            images = np.asarray(call(factor, arguments, over), float)
        if np.ptp(images) == 0:
            where = f" at [{int(member)}]" if factor.plate is not None else ""
            names = ", ".join(repr(factor.arguments[position].name) for position in over)
            out = factor.arguments[-1].variable
            return (
                f"the function of {factor.name}{where} is {images[0]:.3g} for {names} at its mean and a standard "
                f"deviation to either side: no {out.family.__name__} has a single value. Type the number in place "
                f"of {out.name!r}, or one ep.Density(log_factor, ...) of the inputs in place of both factors"
            )
    return ""


def zero_everywhere(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> str:
    """In words, that a density is zero for one of these members wherever it is looked at; else empty."""
    for where, names, zero, _ in _zeros(plan, state, at, factor, members, power):
        if zero.all():
            values = "of its values" if len(zero) < _CLOSE_ON_HOST else f"of {len(zero):,} values tried, near and far"
            return f"{where} is 0 (the function returns -inf) for {names} at each {values}"
    return ""


def zero_here(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> str:
    """A note if a density is zero for one of these members where the rest of the model leaves its input; else empty."""
    for where, names, zero, near in _zeros(plan, state, at, factor, members, power):
        if zero[near].all():
            return (
                f"{where} is 0 (the function returns -inf) at all {near.sum():,} values of {names} tried where the "
                "rest of the model leaves it, and not further out: check the prior, and the sign and unit of the "
                "function"
            )
    return ""


def _zeros(plan: Plan, state: State, at: int, factor: Any, members: np.ndarray, power: float) -> Iterator[tuple]:
    """For each member of a density its name, those of its unknowns, where it is zero, and which points are near."""
    if not getattr(factor, "powered", False) or not factor.asks_oracle or not len(members):
        return
    every, _ = compiled_cavities(plan, state, at, power)
    for member in members[:MEMBERS]:
        incoming = [_one(value, int(member), factor.plate) for value in every]
        over, arguments = factor.inputs(incoming), list(incoming)
        names = ", ".join(repr(factor.arguments[position].name) for position in over)
        points, far = all_over([incoming[position] for position in over], factor.host)
        for position, each in zip(over, points, strict=True):
            arguments[position] = each
        with user_errors():
            heights = np.asarray(call(factor, arguments, over), float)
        if (heights == -np.inf).any():
            where = f"{factor.name} at [{int(member)}]" if factor.plate is not None else factor.name
            yield where, names, (heights == -np.inf) | np.isnan(heights), np.arange(len(heights)) >= far


def all_over(messages: list[Any], on_host: bool) -> tuple[list[jax.Array], int]:
    """Points at which these are looked at together, and how many of them, the first, are far out.

    All values of a label, a grid over one number, and otherwise draws.
    """
    (first, *more) = messages
    if not more and first.states is not None:
        return [jnp.asarray(first.states)], 0
    far = np.append(_FAR, np.negative(_FAR))
    if not (more or first.event_shape):
        count = _CLOSE_ON_HOST if on_host else _CLOSE
        return [_points(first, np.append(far, np.linspace(-9, 9, 2 * count + 1)))], len(far)
    found, draws = [], _CLOSE_ON_HOST if on_host else _CLOSE
    for at, message in enumerate(messages):
        near = jnp.asarray(message.sample(2 * draws, at))
        away = near[: len(far)]
        if message.coordinates == ("x",) and message.states is None:
            middle = jnp.asarray(message.mean())
            away = middle + far.reshape(-1, *(1,) * middle.ndim) * (away - middle)
        found.append(jnp.concatenate([away, near]))
    return found, len(far)


def undefined(
    plan: Plan, state: State, at: int, factor: Any, shares: np.ndarray, spent: Spent | None, power: float
) -> str:
    """A note on points for which the function of a factor returned no number, with one of them; empty without any.

    `shares` are those of the incoming distributions of its members, and `spent` is what a function on the host took.
    """
    density, member = getattr(factor, "powered", False), int(np.argmax(shares))
    share = float(np.max(shares))
    names = ("nan",) if density else ("nan", "inf", "-inf")
    met = {name: spent.not_finite[name] for name in names if spent is not None and name in spent.not_finite}
    if not met and not share > TOLD:
        return ""
    where = f" at [{member}]" if factor.plate is not None and not met else ""
    said, much = f"the function of {factor.name}{where}", f", on {share:.2g} of its input" if share > TOLD else ""
    advice = "return -inf where the factor is zero" if density else "return a number where the inputs are possible"
    if met:
        name, (_, there) = next(iter(met.items()))
        total = sum(each for each, _ in met.values())
        shown = ", ".join(f"{a.name} = {in_words((value,))}" for a, value in zip(factor.arguments, there, strict=False))
        said += f" is {name} for {shown}, the first of {total:,} such calls"
    else:
        said += f" is {_found(plan, state, at, factor, member, power)}"
    return f"{said}{much}: that counts as impossible; {advice}"


def _found(plan: Plan, state: State, at: int, factor: Any, member: int, power: float) -> str:
    """What a compiled function is where it has no value, near the middle of its input, in words."""
    incoming, _ = compiled_cavities(plan, state, at, power)
    incoming = tuple(_one(value, member, factor.plate) for value in incoming)
    over, arguments = factor.inputs(incoming), list(incoming[: len(incoming) - factor.outputs])
    line = len(over) in _STEPS and all(not incoming[k].event_shape and incoming[k].states is None for k in over)
    if line:
        steps = np.arange(0, 9.5, _STEPS[len(over)])
        axis = np.unique([-steps, steps])
        axes = np.meshgrid(*[axis] * len(over), indexing="ij")
        order = np.argsort(sum(each.ravel() ** 2 for each in axes), kind="stable")
        for position, each in zip(over, axes, strict=True):
            arguments[position] = _points(incoming[position], each.ravel()[order])
    else:
        for position in over:
            arguments[position] = jnp.asarray(incoming[position].sample(_DRAWS, position))
    key = jax.random.key(0) if factor.random else None
    images = np.asarray(call(factor, arguments, over, key), float)
    nothing = np.isnan(images) if getattr(factor, "powered", False) else ~np.isfinite(images)
    if not nothing.any():
        return "nan in places"
    point = int(nothing.argmax())
    return f"{images[point]:.3g} for {_shown(factor, arguments, over, point)}"


def _shown(factor: Any, arguments: list[Any], over: tuple[int, ...], point: int) -> str:
    """The unknowns at a point."""
    values = {factor.arguments[at].name: np.asarray(arguments[at][point]) for at in over}
    return ", ".join(f"{name} = {np.array2string(value, precision=3)}" for name, value in values.items())


def _points(message: Family, places: tuple[float, ...] | np.ndarray) -> jax.Array:
    """Points at these standard deviations from the middle of a proper distribution, along the first axis."""
    name = message.coordinates[-1]
    middle, reach = jnp.asarray(message.mean_in(name)), jnp.sqrt(jnp.asarray(message.variance_in(name)))
    points = middle + np.reshape(places, (-1, *(1,) * middle.ndim)) * reach
    return points if message.event_shape else to_nodes(type(message), points, jnp.zeros(())).x


def _range_of(family: type[Family]) -> str:
    if family.states is not None:
        return f"one of {', '.join(f'{state:g}' for state in family.states)}"
    return {"log": "above 0", "logit": "between 0 and 1"}.get(family.coordinates[-1], "a number")
