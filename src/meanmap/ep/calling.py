"""Calling a user's function at many points: compiled if JAX can trace it, else on the host."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.types import Array
from meanmap.ep.factor import FactorLike, replaced
from meanmap.ep.hosted import Hosted
from meanmap.ep.piecewise.memory import memory_of
from meanmap.ep.piecewise.pieces import MARKS
from meanmap.ep.traced import traced
from meanmap.ep.variables import NOT_TRACEABLE
from meanmap.families.line import LARGEST_LOG

__all__ = [
    "LINES",
    "Spent",
    "accounting",
    "as_now",
    "before_sigmoid",
    "call",
    "evaluated",
    "is_host_function",
    "remembered",
    "user_errors",
]


def as_now(factor: FactorLike, memory: object = None) -> Any:
    """A factor for one run: what its function reads around itself is read at this moment, and compiled with it.

    A function on the host is called when its values are needed; what is known of it is kept in this memory of the
    run.
    """
    if factor.host:
        return replaced(factor, own=Hosted(factor.function), memory=memory)
    if factor.traced is not None:
        return factor
    variables = factor.arguments[: len(factor.arguments) - factor.outputs]
    with jax.enable_x64(True):
        try:
            found = traced(factor.own, _examples(variables, factor.random))
        except NOT_TRACEABLE:  # it takes another way than when the factor was made
            return replaced(factor, own=Hosted(factor.function), host=True, memory=memory)
    _check_number(found.shape, factor.name)
    return replaced(factor, own=None, traced=found)


def _examples(arguments: tuple[Any, ...], random: bool) -> list[Any]:
    """The shapes of the arguments of a function."""
    key = [jax.eval_shape(lambda: jax.random.key(0))] if random else []
    return [*key, *(jax.ShapeDtypeStruct(_event(argument), np.float64) for argument in arguments)]


def is_host_function(function: Callable[..., Any], arguments: tuple[Any, ...], name: str, random: bool = False) -> bool:
    """Whether a function has to be called on the host; raises if it does not map one value of each argument to one."""
    with jax.enable_x64(True):
        examples = _examples(arguments, random)
        try:
            # Wrapped, because JAX crashes on meeting a callable without weak references (a NumPy ufunc) a second time.
            out = jax.eval_shape(lambda *values: function(*values), *examples)
        except NOT_TRACEABLE:
            return True
        except Exception as error:
            if random:  # a sampler that expects NumPy's generator fails in its own way
                return True
            _call_with_numbers(function, examples, name, error)
            return True
    _check_number(getattr(out, "shape", type(out).__name__), name)
    return False


def _check_number(shape: tuple[int, ...] | str, name: str) -> None:
    if shape != ():
        raise ShapeError(
            f"the function of {name} returned {shape if isinstance(shape, str) else f'shape {shape}'} for one value of "
            "each argument; expected one number."
        )


def _call_with_numbers(function: Callable[..., Any], examples: list[Any], name: str, failure: Exception) -> None:
    """Raise if a function that cannot be traced does not take numbers either; its values are not checked here."""
    try:
        function(*(np.full(example.shape, 0.5) if example.shape else 0.5 for example in examples))
    except TypeError:
        raise KindError(
            f"the function of {name} failed for one value of each of its {len(examples)} arguments: {failure}. In "
            "ep.BlackBox(function, a, ..., out) it takes all variables but the last, in ep.Density all of them."
        ) from failure
    except Exception:
        return


def call(factor: FactorLike, arguments: list[Any], mapped: tuple[int, ...], key: Array | None = None) -> jax.Array:
    """A factor's function at every point: arguments at the positions `mapped` have a leading axis of points."""
    function, count = factor.function, arguments[mapped[0]].shape[0]
    keys = () if key is None else (jax.random.split(key, count),)
    if not factor.host:
        axes = [0 if at in mapped else None for at in range(len(arguments))]
        found = jax.vmap(function, in_axes=(*(0 for _ in keys), *axes))(*keys, *arguments)
        # Whole numbers and truth values become numbers as the arguments are.
        return found.astype(jnp.result_type(found.dtype, arguments[mapped[0]].dtype))
    spread = [
        value if at in mapped else jnp.broadcast_to(value, (count, *jnp.shape(value)))
        for at, value in enumerate(arguments)
    ]
    words = tuple(jax.random.key_data(k) for k in keys)
    # Doubles travel as pairs of words: the thread of a callback is outside the 64-bit scope, and would shorten them.
    pairs = [jax.lax.bitcast_convert_type(value.astype(jnp.float64), jnp.uint32) for value in spread]
    shape = jax.ShapeDtypeStruct((count, 2), jnp.uint32)
    host = _Host(function, factor.name, bool(keys), factor.vectorised, spread[0].ndim - 1)
    found = jax.pure_callback(host, shape, *words, *pairs, vmap_method="broadcast_all")
    return jax.lax.bitcast_convert_type(found, jnp.float64)


def evaluated(factor: FactorLike, values: list[np.ndarray]) -> np.ndarray:
    """A function on the host at a few points, outside of compiled programs; a sampler gets the same seeds each time."""
    count = len(values[0])
    seeds = [np.arange(2 * count, dtype=np.uint32).reshape(count, 2)] if factor.random else []
    return _Host(factor.function, factor.name, factor.random, factor.vectorised).counted([*seeds, *values])


def remembered(
    factor: FactorLike,
    lines: tuple[str, ...],
    coordinates: tuple[jax.Array, ...],
    arguments: list[Any],
    over: tuple[int, ...],
    wanted: jax.Array,
    laws: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is known about a factor's function of one or two numbers: values at points, and bounds on their errors.

    The third are points (MARKS, 2) with values where it is finer than these points can show; NaN where there are none.

    `lines` name the coordinates in which it is known, and `coordinates` are those of the arguments at the positions
    `over`; the other arguments are those of one member. Where more is `wanted` the function is called, and between
    nodes where `laws`, the logs of what comes in and of the tilted law, have their mass; NaN for none.
    """
    others = [value for position, value in enumerate(arguments) if position not in over]
    pairs = [
        jax.lax.bitcast_convert_type(jnp.asarray(value, jnp.float64), jnp.uint32)
        for value in (*coordinates, *laws, *others)
    ]
    count = wanted.shape[0]
    shape = jax.ShapeDtypeStruct((count + MARKS, 2, 2), jnp.uint32)
    host = _Remembered(_Host(factor.function, factor.name, False, factor.vectorised), lines, over)
    found = jax.pure_callback(host, shape, factor.memory.number, wanted, *pairs, vmap_method="broadcast_all")
    both = jax.lax.bitcast_convert_type(found, jnp.float64)
    return both[:count, 0], both[:count, 1], both[count:]


def before_sigmoid(factor: FactorLike, arguments: list[Any], mapped: tuple[int, ...]) -> jax.Array | None:
    """What a factor's function takes the sigmoid of in its last step, at every point; None where it does not end so.

    Images round to 1 above 36, and their logits do not.
    """
    if factor.host or factor.random:
        return None
    shapes = [jnp.shape(value)[at in mapped :] for at, value in enumerate(arguments)]
    examples = [jax.ShapeDtypeStruct(shape, arguments[mapped[0]].dtype) for shape in shapes]
    program = jax.make_jaxpr(factor.function)(*examples)
    if not _ends_in_sigmoid(program.jaxpr):
        return None
    axes = [0 if at in mapped else None for at in range(len(arguments))]
    return jax.vmap(lambda *values: _logit(program.jaxpr, program.consts, values), in_axes=axes)(*arguments)


def _ends_in_sigmoid(program: Any) -> bool:
    """Whether the last step makes the result, and is a sigmoid or a compiled function that ends in one."""
    if not program.eqns or program.eqns[-1].outvars != program.outvars:
        return False
    step, inner = program.eqns[-1], program.eqns[-1].params.get("jaxpr")
    return step.primitive.name == "logistic" or (isinstance(inner, ClosedJaxpr) and _ends_in_sigmoid(inner.jaxpr))


def _logit(program: Any, constants: Any, arguments: Any) -> Any:
    """Run a program up to its sigmoid."""
    *before, last = program.eqns
    inner = last.params.get("jaxpr")
    values = eval_jaxpr(program.replace(eqns=before, outvars=list(last.invars)), constants, *arguments)
    return values[0] if inner is None else _logit(inner.jaxpr, inner.consts, values)


@contextmanager
def user_errors() -> Iterator[None]:
    """Raise the error of a user's function, or an interruption, once the program that called it has ended."""
    raised: list[BaseException] = []
    _waiting.append(raised)
    try:
        yield
    except Exception:
        if not raised:
            raise
    finally:
        _waiting.pop()
    if raised:
        raise raised[0] from None


# The runtime prints an exception of a callback and turns it into text. So the exception waits here, in the list of each
# scope of `user_errors`, and what is computed from then on is not a number.
_waiting: list[list[BaseException]] = []


class Spent(NamedTuple):
    """What a function on the host took in a run."""

    evaluations: int
    seconds: float


_accounts: list[dict[str, Spent]] = []


@contextmanager
def accounting() -> Iterator[dict[str, Spent]]:
    """What functions on the host take meanwhile, by the name of their factor."""
    account: dict[str, Spent] = {}
    _accounts.append(account)
    try:
        yield account
    finally:
        _accounts[:] = [each for each in _accounts if each is not account]


class _Host:
    """A Python function of single points, or of many at once, as a function of arrays. Values of its first argument
    have this many `dimensions`.
    """

    def __init__(self, function: Callable[..., Any], name: str, random: bool, vectorised: bool, dimensions: int = 0):
        self.function, self.name, self.random, self.vectorised = function, name, random, vectorised
        self.dimensions = dimensions

    def __call__(self, *arrays: object) -> np.ndarray:
        values = [np.ascontiguousarray(array) for array in arrays]
        first = 1 if self.random else 0
        values[first:] = [value.view(np.float64)[..., 0] for value in values[first:]]
        batch = values[0].shape[:-1] if self.random else values[0].shape[: values[0].ndim - self.dimensions]
        wanted = _without_copies(values)
        flat = [value[:wanted].reshape(-1, *value.shape[len(batch) :]) for value in values]
        out = self.found(flat)
        filled = out.reshape(wanted, *batch[1:])[np.minimum(np.arange(batch[0]), wanted - 1)]
        return filled[..., None].view(np.uint32)

    def found(self, flat: list[np.ndarray]) -> np.ndarray:
        """Values for many points; none after an error, which waits to be raised."""
        if _waiting and _waiting[-1]:
            return np.full(len(flat[0]), np.nan)
        try:
            return self.counted(flat)
        except BaseException as error:
            error.add_note(f"in the function of {self.name}")
            if not _waiting:
                raise
            _waiting[-1].append(error)
            return np.full(len(flat[0]), np.nan)

    def counted(self, flat: list[np.ndarray]) -> np.ndarray:
        """Values for many points, counted and timed for the run."""
        start, count = time.perf_counter(), len(flat[0])
        try:
            return self._all(flat) if self.vectorised else self._each(flat)
        finally:
            for account in _accounts:
                known = account.get(self.name, Spent(0, 0.0))
                account[self.name] = Spent(known.evaluations + count, known.seconds + time.perf_counter() - start)

    def _each(self, flat: list[np.ndarray]) -> np.ndarray:
        out = np.empty(flat[0].shape[0])
        for at in range(len(out)):
            row = [_plain(value[at]) for value in flat]
            if self.random:
                row[0] = np.random.default_rng(row[0])
            out[at] = self._numbers(self.function(*row), (), "one value")
        return out

    def _all(self, flat: list[np.ndarray]) -> np.ndarray:
        count = flat[0].shape[0]
        if self.random:
            flat = [np.random.default_rng(flat[0].ravel()), *flat[1:]]  # pyright: ignore[reportAssignmentType]
        return np.array(self._numbers(self.function(*flat), (count,), f"{count} values"))

    def _numbers(self, value: object, shape: tuple[int, ...], asked: str) -> np.ndarray:
        wrong = f"the function of {self.name} returned {value!r} for {asked} of each argument; expected numbers."
        if isinstance(value, str | bytes) or getattr(value, "dtype", np.dtype(float)).kind in "USMm":
            raise KindError(wrong)  # NumPy would read some of these as numbers
        try:
            found = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise KindError(wrong) from error
        if found.shape != shape:
            raise ShapeError(
                f"the function of {self.name} returned shape {found.shape} for {asked} of each argument; "
                f"expected {'one number' if shape == () else f'shape {shape}'}."
            )
        return found


# Coordinates in which functions are remembered, and their points: callbacks compute with NumPy, as JAX may be waiting.
LINES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "x": lambda c: c,
    "log": lambda c: np.exp(np.clip(c, -LARGEST_LOG, LARGEST_LOG)),
    "logit": lambda c: 1 / (1 + np.exp(-np.clip(c, -LARGEST_LOG, LARGEST_LOG))),
}


class _Remembered:
    """What the memory of a run knows about a function, as a function of arrays."""

    def __init__(self, host: _Host, lines: tuple[str, ...], over: tuple[int, ...]):
        self.host, self.lines, self.over = host, lines, over

    def __call__(self, number: Any, wanted: object, *arrays: object) -> np.ndarray:
        words = [np.ascontiguousarray(array) for array in arrays]  # in which what is no number has its like
        values = [each.view(np.float64)[..., 0] for each in words]
        batch = values[0].shape[:-1]
        rows = _without_copies([np.asarray(wanted), *words]) if len(batch) == 1 else None
        kept = values if rows is None else [value[:rows] for value in values]
        flat = [value.reshape(-1, *value.shape[len(batch) :]) for value in kept]
        z, (incoming, tilted, *others) = np.stack(flat[: len(self.over)], -1), flat[len(self.over) :]
        z = z[..., 0] if len(self.over) == 1 else z
        memory = memory_of(int(np.ravel(number)[0]))
        if memory is None or (_waiting and _waiting[-1]):
            members = np.repeat(np.arange(len(z)), z.shape[1])
            places = z.reshape(-1, *z.shape[2:])
            value = self._values(places, [each[members] for each in others]).reshape(incoming.shape)
            error, marks = np.zeros(incoming.shape), np.full((len(z), MARKS, 2), np.nan)
        else:
            mask = np.asarray(wanted)[:rows].reshape(incoming.shape)
            known_as = Hosted(self.host.function), self.host.vectorised, self.lines, self.over
            value, error, marks = memory.ask(known_as, self._values, z, mask, others, incoming, tilted)
        both = np.concatenate([np.stack([value, error], -1), marks], 1)
        if rows is not None:
            both = both[np.minimum(np.arange(batch[0]), rows - 1)]
        both = both.reshape(*batch, -1, 2)
        return np.ascontiguousarray(both)[..., None].view(np.uint32)

    def _values(self, z: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
        arguments = list(others)
        for line, at, each in zip(self.lines, self.over, z.reshape(len(z), -1).T, strict=True):
            arguments.insert(at, LINES[line](each))
        return self.host.found(arguments)


def _without_copies(values: list[np.ndarray]) -> int:
    """How many come before the copies of the last one that fill a batch up: a simulator is not run for those."""
    like_last = [(value == value[-1]).reshape(len(value), -1).all(axis=1) for value in values]
    others = np.flatnonzero(~np.logical_and.reduce(like_last))
    return min(int(others[-1]) + 2, len(values[0])) if len(others) else 1


def _plain(value: np.ndarray) -> Any:
    return value.item() if value.ndim == 0 else value


def _event(argument: Any) -> tuple[int, ...]:
    if argument.known:
        return argument.values.shape[1:]
    return () if argument.variable.dimension is None else (argument.variable.dimension,)
