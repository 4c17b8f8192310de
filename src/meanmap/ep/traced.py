"""A user's function as JAX traces it at the start of a run: a program, and the outside numbers that it reads."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from meanmap.core.anew import apart_from, as_read, remember
from meanmap.core.reads import digest_of

__all__ = ["Traced", "shape_of", "traced"]


class Traced(eqx.Module):
    """A function of single values that reads nothing else: the numbers read when it was traced are part of it.

    Compiled programs know such functions by their steps, and get the arrays as arguments. So a function that is made
    anew in every call finds its program, and one that reads other numbers than before is never answered with old ones.
    """

    constants: tuple[Any, ...]
    program: "Program" = eqx.field(static=True)

    def __call__(self, *values: Any) -> Any:
        """Run the program; for many values at once, as oracles of users may ask, the function itself."""
        wanted = [variable.aval for variable in self.program.jaxpr.invars]
        if [jnp.shape(value) for value in values] != [each.shape for each in wanted]:
            return self.function(*values)
        with jax.enable_x64(True):
            read = (v if _is_key(v) else jnp.asarray(v, a.dtype) for v, a in zip(values, wanted, strict=True))
            (found,) = eval_jaxpr(self.program.jaxpr, self.program.filled(self.constants), *read)
        return found

    @property
    def function(self) -> Callable[..., Any]:
        """What was traced."""
        return self.program.function

    @property
    def shape(self) -> Any:
        """Shape of the output; the name of its type if it is not an array."""
        return self.program.shape

    def digest(self) -> str:
        """One short text for the steps and the numbers."""
        return digest_of(
            {"steps": repr(self.program.steps), **{str(k): _bytes(c) for k, c in enumerate(self.constants)}}
        )


class Program:
    """The steps of a function. Two are equal where these are, whichever functions they come from."""

    def __init__(self, function: Callable[..., Any], jaxpr: Any, constants: Any, shape: Any):
        self.function, self.jaxpr, self.shape = function, jaxpr, shape
        # Random keys are no numbers: they belong to the program.
        self.keys = {at: value for at, value in enumerate(constants) if _is_key(value)}
        keys = {at: _bytes(jax.random.key_data(value)) for at, value in self.keys.items()}
        self.steps = _steps(jaxpr, {}), tuple(keys.items())

    def filled(self, constants: tuple[Any, ...]) -> list[Any]:
        """The constants with keys in their places."""
        rest = iter(constants)
        return [self.keys[at] if at in self.keys else next(rest) for at in range(len(self.keys) + len(constants))]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.steps == other.steps

    def __hash__(self) -> int:
        return hash(self.steps)


def traced(function: Callable[..., Any], examples: list[Any]) -> Traced:
    """The function as it is now, for values like the examples; raises what tracing it raises."""
    # JAX remembers what it traced of functions inside: those that are compiled, and bodies of loops.
    now, key = as_read(function), getattr(function, "__code__", None) or type(function)
    with apart_from(key, now):
        inside = _unwrapped(function)
        # Wrapped, because JAX crashes on meeting a callable without weak references (a NumPy ufunc) a second time.
        whole, out = jax.make_jaxpr(lambda *values: inside(*values), return_shape=True)(*examples)
        if _keeps_functions(whole.jaxpr):
            remember(key, now)
    # Numbers that an enclosing program traces stay what they are: the run refuses them in words.
    numbers = tuple(
        value if isinstance(value, Tracer) else np.asarray(value) for value in whole.consts if not _is_key(value)
    )
    return Traced(numbers, Program(function, whole.jaxpr, whole.consts, shape_of(out)))


def shape_of(out: object) -> tuple[int, ...] | str:
    """Of what a traced function returns; the name of its type where that is no array, as for a distribution."""
    return out.shape if isinstance(out, jax.ShapeDtypeStruct) else type(out).__name__


def _unwrapped(function: object) -> Any:
    """A function that was compiled by its user, without what JAX remembers of it."""
    inner = getattr(function, "__wrapped__", None)
    ours = type(function).__module__.split(".")[0] in ("jax", "jaxlib")
    return inner if ours and inner is not None else function


def _keeps_functions(jaxpr: Jaxpr) -> bool:
    """Whether some step is a function of the user's, of which JAX may remember an earlier trace."""
    return any(not _is_library(inner) or _keeps_functions(inner) for step in jaxpr.eqns for inner in _inner(step))


def _inner(step: Any) -> Iterator[Any]:
    for value in step.params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            each = getattr(each, "jaxpr", each)
            if isinstance(each, Jaxpr):
                yield each


def _is_library(jaxpr: Jaxpr) -> bool:
    file = getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or ""
    return f"{_folder()}" in file


@cache
def _folder() -> str:
    return str(jax.__file__).rpartition("__init__")[0]


def _steps(jaxpr: Jaxpr, names: dict[Any, int]) -> tuple[Any, ...]:
    """What a program does, without the names of its variables: equal for programs that do the same."""

    def of(atom: object) -> Any:
        if isinstance(atom, Literal):
            return "value", str(atom.aval), _bytes(atom.val)
        return names.setdefault(atom, len(names))

    first = tuple((of(atom), str(atom.aval)) for atom in (*jaxpr.constvars, *jaxpr.invars))
    steps = tuple(
        (
            step.primitive.name,
            tuple(of(atom) for atom in step.invars),
            tuple((of(atom), str(atom.aval)) for atom in step.outvars),
            tuple((name, _content(value)) for name, value in sorted(step.params.items()) if name != "out_trees"),
        )
        for step in jaxpr.eqns
    )
    return first, steps, tuple(of(atom) for atom in jaxpr.outvars)


def _content(value: object) -> Any:
    """A setting of a step, by content where it has one."""
    match value:
        case ClosedJaxpr():
            return _steps(value.jaxpr, {}), tuple(_bytes(each) for each in value.consts)
        case Jaxpr():
            return _steps(value, {})
        case tuple() | list():
            return tuple(map(_content, value))
        case dict():
            return tuple((key, _content(each)) for key, each in sorted(value.items()))
        case np.ndarray() | np.generic() | jax.Array():
            return _bytes(value)
    # How a function is differentiated is made anew in every trace: it is known by where it is written.
    written = getattr(getattr(value, "debug_info", None), "func_src_info", None)
    if written is not None:
        return "written", written
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return value


class _Itself:
    """A value that is like no other."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _is_key(value: object) -> bool:
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.extended)


def _bytes(value: Any) -> str:
    if _is_key(value):
        value = jax.random.key_data(value)
    array = np.asarray(value)
    return f"{array.dtype} {array.shape} {array.tobytes().hex()}"
