"""Calling a user's function at many points: compiled if JAX can trace it, else on the host."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.types import Array
from meanmap.ep.calls import Host, has_failed, without_copies
from meanmap.ep.factor import FactorLike, replaced
from meanmap.ep.hosted import Hosted
from meanmap.ep.piecewise.memory import SHOWN, memory_of
from meanmap.ep.traced import Traced, shape_of, traced
from meanmap.ep.variables import NOT_TRACEABLE
from meanmap.families import Beta, Normal
from meanmap.families.line import LARGEST_LOG

__all__ = ["LINES", "as_now", "before_sigmoid", "call", "evaluated", "is_host_function", "remembered"]


def as_now(factor: FactorLike, memory: object = None) -> Any:
    """A factor for one run: what its function reads around itself is read at this moment, and compiled with it.

    A function on the host is called when its values are needed; results so far are kept in this memory of the run.
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
    return replaced(factor, own=None, traced=found, smooth=factor.smooth or _is_logistic(variables, factor, found))


def _is_logistic(variables: tuple[Any, ...], factor: FactorLike, function: Traced) -> bool:
    """Whether a Beta is the sigmoid of a Normal, with nothing before it."""
    if len(variables) != 1 or not factor.outputs:
        return False
    families = [argument.variable.family for argument in factor.arguments]
    program = function.program.jaxpr
    alone = len(program.eqns) == 1 and _ends_in_sigmoid(program) and program.eqns[0].invars == program.invars
    return families == [Normal, Beta] and alone


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
    _check_number(shape_of(out), name)
    if jnp.issubdtype(out.dtype, jnp.complexfloating):
        raise KindError(f"the function of {name} returned complex numbers; expected real ones, such as jnp.real(...).")
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
    host = _host(factor, bool(keys), spread[0].ndim - 1, mapped)
    if factor.memory is not None and not keys:
        host, words = _Sampled(host), (jnp.asarray(factor.memory.number, jnp.uint32), *words)
    found = jax.pure_callback(host, shape, *words, *pairs, vmap_method="broadcast_all")
    return jax.lax.bitcast_convert_type(found, jnp.float64)


def evaluated(factor: FactorLike, values: list[np.ndarray]) -> np.ndarray:
    """A function on the host at a few points, outside of compiled programs; a sampler gets the same seeds each time."""
    count = len(values[0])
    seeds = [np.arange(2 * count, dtype=np.uint32).reshape(count, 2)] if factor.random else []
    return _host(factor, factor.random).counted([*seeds, *values])


def _host(factor: FactorLike, random: bool, dimensions: int = 0, over: tuple[int, ...] = ()) -> Host:
    output = bool(factor.outputs)
    return Host(factor.function, factor.name, random, factor.vectorised, dimensions, over, output)


def remembered(
    factor: FactorLike,
    lines: tuple[str, ...],
    coordinates: tuple[jax.Array, ...],
    arguments: list[Any],
    over: tuple[int, ...],
    wanted: jax.Array,
    laws: tuple[jax.Array, jax.Array],
    look: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """A factor's function of one or two numbers, as far as it is known: values at points, and error estimates.

    Also returned are points (SHOWN, 2) with values where the function has finer structure than these points can show,
    and then both sides of its jumps; NaN if there are fewer. For two numbers they are rows of x, y and the value,
    flattened, one for each cell between the levels to `look` at.

    `lines` name the coordinates in which it is known, and `coordinates` are those of the arguments at the positions
    `over`; the other arguments are those of one member. The function is called where more accuracy is `wanted`, and
    between nodes where `laws`, the log densities of the incoming message and of the tilted distribution, have their
    mass; NaN for none.
    """
    others = [value for position, value in enumerate(arguments) if position not in over]
    pairs = [
        jax.lax.bitcast_convert_type(jnp.asarray(value, jnp.float64), jnp.uint32)
        for value in (*coordinates, *laws, look, *others)
    ]
    count = wanted.shape[0]
    shape = jax.ShapeDtypeStruct((count + SHOWN, 2, 2), jnp.uint32)
    host = _Remembered(_host(factor, False), lines, over)
    found = jax.pure_callback(host, shape, factor.memory.number, wanted, *pairs, vmap_method="broadcast_all")
    both = jax.lax.bitcast_convert_type(found, jnp.float64)
    return both[:count, 0], both[:count, 1], both[count:]


def before_sigmoid(factor: FactorLike, arguments: list[Any], mapped: tuple[int, ...]) -> jax.Array | None:
    """What a factor's function takes the sigmoid of in its last step, at every point; None if it does not end so.

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


# Coordinates in which functions are remembered, and their points: callbacks compute with NumPy, as JAX may be waiting.
LINES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "x": lambda c: c,
    "log": lambda c: np.exp(np.clip(c, -LARGEST_LOG, LARGEST_LOG)),
    "logit": lambda c: 1 / (1 + np.exp(-np.clip(c, -LARGEST_LOG, LARGEST_LOG))),
}


class _Sampled:
    """A function at points that were drawn, as the memory of a run knows it."""

    def __init__(self, host: Host):
        self.host = host

    def __call__(self, number: Any, *arrays: object) -> np.ndarray:
        memory = memory_of(int(np.ravel(number)[0]))
        return self.host(*arrays, through=None if memory is None else memory.sampled)


class _Remembered:
    """What the memory of a run knows about a function, as a function of arrays."""

    def __init__(self, host: Host, lines: tuple[str, ...], over: tuple[int, ...]):
        self.host, self.lines, self.over = host, lines, over

    def __call__(self, number: Any, wanted: object, *arrays: object) -> np.ndarray:
        words = [np.ascontiguousarray(array) for array in arrays]  # in which what is no number has its like
        values = [each.view(np.float64)[..., 0] for each in words]
        batch = values[0].shape[:-1]
        rows = without_copies([np.asarray(wanted), *words]) if len(batch) == 1 else None
        kept = values if rows is None else [value[:rows] for value in values]
        flat = [value.reshape(-1, *value.shape[len(batch) :]) for value in kept]
        z, (incoming, tilted, look, *others) = np.stack(flat[: len(self.over)], -1), flat[len(self.over) :]
        z = z[..., 0] if len(self.over) == 1 else z
        memory = memory_of(int(np.ravel(number)[0]))
        if memory is None or has_failed():
            members = np.repeat(np.arange(len(z)), z.shape[1])
            places = z.reshape(-1, *z.shape[2:])
            value = self._values(places, [each[members] for each in others]).reshape(incoming.shape)
            error, marks = np.zeros(incoming.shape), np.full((len(z), SHOWN, 2), np.nan)
        else:
            mask = np.asarray(wanted)[:rows].reshape(incoming.shape)
            known_as = Hosted(self.host.function), self.host.vectorised, self.lines, self.over
            value, error, marks = memory.ask(known_as, self._values, z, mask, others, incoming, tilted, look)
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


def _event(argument: Any) -> tuple[int, ...]:
    if argument.known:
        return argument.values.shape[1:]
    return () if argument.variable.dimension is None else (argument.variable.dimension,)
