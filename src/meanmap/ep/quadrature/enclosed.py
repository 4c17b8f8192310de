"""Between which numbers the values of a JAX function are on whole intervals, by interval arithmetic (Moore 1966).

Nodes cannot exclude that a narrow region between them has other values; the program of the function can. The bounds are
true, and wide where a number is used more than once; of what is not known here they are infinite.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal

__all__ = ["enclosed"]


class _Between(NamedTuple):
    """All numbers from `low` to `high`; of one number both are the same array."""

    low: Any
    high: Any


# Steps that keep the order of all that goes in, such as sums and the larger of two, and those that reverse it.
_RISING = (
    *("add", "add_any", "max", "min", "clamp", "concatenate", "reduce_sum", "reduce_max", "reduce_min", "cumsum"),
    *("exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "sqrt", "cbrt", "atan", "sinh", "asinh", "erf"),
    *("floor", "ceil", "round", "sign", "and", "or", "reduce_and", "reduce_or", "convert_element_type"),
    *("copy", "stop_gradient", "reshape", "broadcast_in_dim", "squeeze", "transpose", "slice"),
)
_FALLING = "neg", "not", "erfc", "acos"
# Where a rising function begins.
_BEGINS = {"log": 0.0, "sqrt": 0.0, "log1p": -1.0}


def enclosed(function: Callable[..., Any], low: jax.Array, high: jax.Array, at: int, others: list[Any]) -> _Between:
    """The lowest and the highest value of a function where its argument at this position is from `low` to `high`."""
    arguments = [*others[:at], jnp.zeros((), low.dtype), *others[at:]]
    program = jax.make_jaxpr(function)(*arguments)

    def on_one(low: jax.Array, high: jax.Array) -> _Between:
        given = [_point(jnp.asarray(value)) for value in arguments]
        given[at] = _Between(low, high)
        return _run(program, given)[0]

    return jax.vmap(on_one)(low, high)


def _point(value: jax.Array) -> _Between:
    return _Between(value, value)


def _run(program: ClosedJaxpr, given: list[_Between]) -> list[_Between]:
    known: dict[Any, _Between] = dict(zip(program.jaxpr.constvars, map(_point, program.consts), strict=True))
    known |= zip(program.jaxpr.invars, given, strict=True)

    def read(name: Any) -> _Between:
        return _point(jnp.asarray(name.val)) if isinstance(name, Literal) else known[name]

    for step in program.jaxpr.eqns:
        known |= zip(step.outvars, _step(step, [read(name) for name in step.invars]), strict=True)
    return [read(name) for name in program.jaxpr.outvars]


def _step(step: JaxprEqn, given: list[_Between]) -> list[_Between]:
    def run(*values: Any) -> Any:
        return step.primitive.bind(*values, **step.params)

    name = step.primitive.name
    inner = step.params.get("jaxpr", step.params.get("call_jaxpr"))
    if isinstance(inner, ClosedJaxpr) and len(inner.jaxpr.invars) == len(given):
        return _run(inner, given)
    if all(each.low is each.high for each in given):
        found = run(*(each.low for each in given))
        return [_point(each) for each in (found if step.primitive.multiple_results else [found])]
    outcomes: list[Any] = [each.aval for each in step.outvars]
    shape, dtype = outcomes[0].shape, outcomes[0].dtype
    truth = dtype == np.bool_
    if len(outcomes) > 1 or not (truth or jnp.issubdtype(dtype, jnp.floating)):
        return [_anything(each.shape) for each in outcomes]
    if name in _RISING:
        begin = _BEGINS.get(name)
        low, high = ([v if begin is None else jnp.maximum(v, begin) for v in side] for side in zip(*given, strict=True))
        found = _Between(run(*low), run(*high))
    elif name in _FALLING:
        found = _Between(run(given[0].high), run(given[0].low))
    elif name in _RULES:
        found = _RULES[name](step, *given)
    else:
        return [_Between(jnp.full(shape, False), jnp.full(shape, True)) if truth else _anything(shape)]
    if truth:
        return [found]
    unknown = jnp.isnan(found.low) | jnp.isnan(found.high)
    return [_Between(jnp.where(unknown, -jnp.inf, found.low), jnp.where(unknown, jnp.inf, found.high))]


def _anything(shape: tuple[int, ...]) -> _Between:
    return _Between(jnp.full(shape, -jnp.inf), jnp.full(shape, jnp.inf))


def _subtract(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    return _Between(a.low - b.high, a.high - b.low)


def _multiply(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    products = jnp.stack([x * y for x in a for y in b])
    products = jnp.where(jnp.isnan(products), 0.0, products)  # 0 times an end that is not reached
    return _Between(products.min(0), products.max(0))


def _reciprocal(a: _Between) -> _Between:
    """With an end at 0 it has none on that side, and with 0 inside on neither."""
    inside = (a.low < 0) & (a.high > 0)
    low = jnp.where(inside | (a.high == 0), -jnp.inf, 1 / jnp.where(a.high == 0, 1.0, a.high))
    high = jnp.where(inside | (a.low == 0), jnp.inf, 1 / jnp.where(a.low == 0, 1.0, a.low))
    return _Between(low, high)


def _divide(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    return _multiply(None, a, _reciprocal(b))


def _absolute(_: JaxprEqn | None, a: _Between) -> _Between:
    inside = (a.low <= 0) & (a.high >= 0)
    ends = jnp.abs(a.low), jnp.abs(a.high)
    return _Between(jnp.where(inside, 0.0, jnp.minimum(*ends)), jnp.maximum(*ends))


def _power(step: JaxprEqn, a: _Between) -> _Between:
    exponent = step.params.get("y", 2)
    base = a if exponent % 2 else _absolute(None, a)
    found = _Between(base.low ** abs(exponent), base.high ** abs(exponent))
    return found if exponent >= 0 else _reciprocal(found)


def _real_power(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    ends = jnp.stack([jnp.maximum(x, 0.0) ** y for x in a for y in b])
    bad = (a.low < 0) | jnp.isnan(ends).any(0)
    return _Between(jnp.where(bad, -jnp.inf, ends.min(0)), jnp.where(bad, jnp.inf, ends.max(0)))


def _wave(phase: float) -> Callable[..., _Between]:
    def rule(_: JaxprEqn | None, a: _Between) -> _Between:
        ends = jnp.sin(a.low + phase), jnp.sin(a.high + phase)

        def passes(place: float) -> jax.Array:
            first, last = (jnp.floor((end + phase - place) / (2 * np.pi)) for end in a)
            return (last > first) | ~jnp.isfinite(last - first)

        low = jnp.where(passes(-np.pi / 2), -1.0, jnp.minimum(*ends))
        return _Between(low, jnp.where(passes(np.pi / 2), 1.0, jnp.maximum(*ends)))

    return rule


def _less(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    return _Between(a.high < b.low, a.low < b.high)


def _at_most(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    return _Between(a.high <= b.low, a.low <= b.high)


def _same(_: JaxprEqn | None, a: _Between, b: _Between) -> _Between:
    """A number is the same as itself: what is no number is impossible anyway."""
    possible = (a.low <= b.high) & (b.low <= a.high)
    return _Between(possible if a is b else jnp.zeros_like(possible), possible)


def _other(step: JaxprEqn, a: _Between, b: _Between) -> _Between:
    same = _same(step, a, b)
    return _Between(~same.high, ~same.low)


def _select(_: JaxprEqn | None, which: _Between, *cases: _Between) -> _Between:
    """One of two by a truth value, or, where this is not known, both."""
    first, second = cases
    low = jnp.where(which.low, second.low, jnp.where(which.high, jnp.minimum(first.low, second.low), first.low))
    high = jnp.where(which.low, second.high, jnp.where(which.high, jnp.maximum(first.high, second.high), first.high))
    return _Between(low, high)


_RULES: dict[str, Callable[..., _Between]] = {
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "abs": _absolute,
    "integer_pow": _power,
    "square": _power,
    "pow": _real_power,
    "sin": _wave(0.0),
    "cos": _wave(np.pi / 2),
    "lt": _less,
    "gt": lambda step, a, b: _less(step, b, a),
    "le": _at_most,
    "ge": lambda step, a, b: _at_most(step, b, a),
    "eq": _same,
    "ne": _other,
    "select_n": _select,
}
