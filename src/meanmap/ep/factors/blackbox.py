"""Factors from a plain function: a forward function or sampler, or a log density."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from meanmap.core.errors import KindError, ShapeError
from meanmap.core.language import with_article
from meanmap.core.settings import truth
from meanmap.core.synonyms import own_words
from meanmap.core.types import Array
from meanmap.ep.calling import before_sigmoid, call, is_host_function
from meanmap.ep.factor import Answer, Factor, common_plate, replaced
from meanmap.ep.hosted import Hosted
from meanmap.ep.lines import inside, log_message
from meanmap.ep.oracles.host import HostOracle, refuse_no_oracle
from meanmap.ep.oracles.oracle import Oracle
from meanmap.ep.variables import Argument, Variable, read_argument
from meanmap.families import Categorical, Family

__all__ = ["BlackBox", "BlackBoxFactor", "Density", "Product"]


class BlackBoxFactor(Factor):
    """Base class of factors made from a function, whose messages an oracle computes."""

    arguments: tuple[Any, ...]
    name: str = eqx.field(static=True)
    own: Any = eqx.field(static=True)
    host: bool = eqx.field(static=True)
    random: bool = eqx.field(static=True)
    vectorised: bool = eqx.field(static=True)
    # Whether its logarithm is known to have neither kinks nor narrow peaks.
    smooth: bool = eqx.field(static=True)
    oracle: Any
    # During a run, the function as it was at the start, in place of `own`.
    traced: Any
    # What a run keeps of a function on the host.
    memory: Any

    approximate: ClassVar[bool] = True
    asks_oracle: ClassVar[bool] = True

    @property
    def has_density(self) -> bool:
        """Of a function that JAX traces, and that returns the same each time."""
        return not (self.host or self.random)

    @property
    def function(self) -> Callable[..., Any]:
        """The user's function; in a run that is compiled, with what it read around itself at the start."""
        own = self.own.function if isinstance(self.own, Hosted) else self.own
        return own if self.traced is None else self.traced

    def in_parts(self, number: int) -> Factor:
        """With an oracle that is asked about each part of the plate by itself."""
        return replaced(self, oracle=self.oracle.in_parts(number)) if isinstance(self.oracle, Oracle) else self

    def integrated(self) -> list[Variable]:
        """The variables over which an oracle integrates."""
        found = [a.variable for a in self.arguments]
        return [found[at] for at in self.inputs(found)]

    def inputs(self, incoming: Any) -> tuple[int, ...]:
        """The positions of the arguments that are integrated over."""
        return tuple(at for at, value in enumerate(incoming) if isinstance(value, Family | Variable))

    @abstractmethod
    def judge(self, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
        """What `weigh` gives, from what the function returned at the points."""

    def quick(self) -> "BlackBoxFactor":
        """With the quick form of its oracle."""
        families = tuple(variable.family for variable in self.integrated())
        oracle = self.oracle.quick(families) if isinstance(self.oracle, Oracle) else self.oracle
        return self if oracle is self.oracle else replaced(self, oracle=oracle)

    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """As the oracle requires."""
        return self.oracle.answer(self, incoming, power, key)


class Density(BlackBoxFactor):
    """A factor given by its logarithm: f(x₁, x₂, ...) = exp(log_factor(x₁, x₂, ...)), for each member of a plate.

    Parameters
    ----------
    log_factor : callable
        From one value of each argument to one number, the log of a non-negative function that needs no normaliser; −∞
        where the factor is zero. NaN counts as −∞, and a note says where it occurred; ∞ is refused. A JAX function is
        compiled; any other Python function is called for every point.
    *arguments : Variable or array_like
        Variables, or known numbers for each member.
    vectorised : bool
        Whether the function takes NumPy arrays, many points along their first axis, and returns one number for each; it
        is then called on the host, once for a whole batch.
    oracle : Oracle, optional
        How its messages are computed; by default as `messages=` of `infer` says.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3)
    >>> counts = ep.Density(lambda z, y: y * z - jnp.exp(z), z, [0, 1, 4])
    >>> ep.infer(ep.FactorGraph(counts))["z"].mean().round(3).tolist()
    [-0.678, -0.119, 0.98]
    """

    powered: ClassVar[bool] = True

    @own_words
    def __init__(
        self,
        log_factor: Any,
        *arguments: Argument,
        vectorised: bool = False,
        oracle: Any = None,
        name: str | None = None,
    ):
        read = _read_arguments(log_factor, arguments, name)
        self.name = name or _label(log_factor, read)
        common_plate(self.name, {f"argument {at}": a for at, a in enumerate(read)})
        self.random, self.vectorised = False, truth(vectorised, "vectorised")
        self.host = self.vectorised or is_host_function(log_factor, read, self.name)
        self.arguments, self.own, self.oracle, self.traced, self.memory = read, log_factor, oracle, None, None
        self.smooth = False
        refuse_no_oracle(oracle, "oracle")
        if isinstance(oracle, Oracle | HostOracle):
            oracle.check(self)

    def weigh(self, values: dict[int, jax.Array], incoming: tuple[Any, ...], power: Array, key: Array) -> tuple:
        """The log of the factor to its power; no outputs."""
        del key
        arguments = [values.get(at, incoming[at]) for at in range(len(incoming))]
        return self.judge(call(self, arguments, tuple(values)), incoming, power)

    def judge(self, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
        """The log of the factor to its power; no outputs."""
        del incoming
        undefined = jnp.isnan(found)
        return jnp.where(undefined, -jnp.inf, jnp.where(found == jnp.inf, jnp.nan, power * found)), {}, undefined


class BlackBox(BlackBoxFactor):
    """x_out = function(x_in, ...): a factor from a forward function, or from a sampler, for each member of a plate.

    `ep.BlackBox(jax.nn.sigmoid, z, p)` says p = sigmoid(z): the last variable is the output.

    Parameters
    ----------
    function : callable
        From one value of each input to one value of the output. Inputs for which it returns NaN or ±∞ count as
        impossible, and a note says where. A JAX function is compiled; any other Python function is called for every
        point.
    *arguments : Variable or array_like
        The inputs, variables or known numbers for each member, and last the output, a Variable.
    random : bool
        Whether the function is a sampler: its first argument is then a JAX key, or for a function that JAX cannot
        trace a `numpy.random.Generator`.
    vectorised : bool
        Whether the function takes NumPy arrays, many points along their first axis, and returns one number for each; it
        is then called on the host, once for a whole batch.
    oracle : Oracle, optional
        How its messages are computed; by default as `messages=` of `infer` says.

    Notes
    -----
    This is the setting of Jitkrittum et al. (2015), section 2: the density of the factor is never evaluated. Points are
    drawn (or placed) for the inputs, and weighted by the message from the output at their images. Probabilities that
    round to 0 or 1 are replaced by the next number inside. So a function cannot distinguish logits beyond 36, unless
    its last step is `jax.nn.sigmoid` or `jax.scipy.special.expit`: then the logit is known.

    Examples
    --------
    >>> import jax
    >>> from meanmap import ep
    >>> z = ep.Variable("z", ep.Normal(0.0, 1.0))
    >>> p = ep.Variable("p", ep.Beta)
    >>> model = ep.FactorGraph(ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=1))
    >>> post = ep.infer(model)
    >>> round(float(post["z"].mean()), 4), round(float(post["p"].mean()), 4)
    (0.4132, 0.5857)
    """

    @own_words
    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Argument,
        random: bool = False,
        vectorised: bool = False,
        oracle: Any = None,
        name: str | None = None,
    ):
        read = _read_arguments(function, arguments, name)
        self.name = name or _label(function, read)
        out = read[-1].variable
        if len(read) < 2 or out is None:
            raise KindError(
                f"the last argument of {self.name} is its output, and must be a Variable: observe it through another "
                "factor, such as Bernoulli or Gaussian."
            )
        if not out.family.is_scalar():
            raise KindError(
                f"the output {out.name!r} of {self.name} is {with_article(out.family.__name__)}; expected a number."
            )
        common_plate(self.name, {f"argument {at}": a for at, a in enumerate(read)})
        self.random, self.vectorised = truth(random, "random"), truth(vectorised, "vectorised")
        self.host = self.vectorised or is_host_function(function, read[:-1], self.name, random=self.random)
        self.arguments, self.own, self.oracle, self.traced, self.memory = read, function, oracle, None, None
        self.smooth = False
        refuse_no_oracle(oracle, "oracle")
        if isinstance(oracle, Oracle | HostOracle):
            oracle.check(self)

    outputs: ClassVar[int] = 1

    def needs_proper(self, position: int) -> bool:
        """The inputs; the message from the output may be flat."""
        return position < len(self.arguments) - 1

    def inputs(self, incoming: Any) -> tuple[int, ...]:
        """All but the output."""
        return super().inputs(incoming[:-1])

    def weigh(self, values: dict[int, jax.Array], incoming: tuple[Any, ...], power: Array, key: Array) -> tuple:
        """The log of the message from the output, at the images of the points."""
        last = len(incoming) - 1
        arguments = [values.get(at, incoming[at]) for at in range(last)]
        kind, mapped = type(incoming[last]), tuple(values)
        logits = before_sigmoid(self, arguments, mapped) if kind.coordinates[-1] == "logit" else None
        if logits is None:
            return self.judge(call(self, arguments, mapped, key if self.random else None), incoming, power)
        undefined = jnp.isnan(logits)
        logits = _defined(logits, undefined)
        nodes = inside(kind, jax.nn.sigmoid(logits))._replace(coordinate=logits)
        return jnp.where(undefined, -jnp.inf, log_message(incoming[last], nodes)), {last: nodes}, undefined

    def judge(self, found: jax.Array, incoming: tuple[Any, ...], power: Array) -> tuple:
        """The log of the message from the output, at the images of the points."""
        del power
        last, undefined = len(incoming) - 1, ~jnp.isfinite(found)
        nodes = inside(type(incoming[last]), _defined(found, undefined))
        return jnp.where(undefined, -jnp.inf, log_message(incoming[last], nodes)), {last: nodes}, undefined


def _defined(values: jax.Array, undefined: jax.Array) -> jax.Array:
    """Values with one of the others in place of those that are undefined, which have no weight."""
    return jnp.where(undefined, values[jnp.argmin(undefined)], values)


@own_words
def Product(a: Argument, b: Argument, out: Argument, *, name: str | None = None) -> BlackBox:
    """out = a b of two unknown numbers, by quadrature over both; for a known factor use `Sum` with a weight.

    Examples
    --------
    >>> from meanmap import ep
    >>> a, b = (ep.Variable(n, ep.Normal(2.0, 0.1)) for n in "ab")
    >>> c = ep.Variable("c", ep.Normal)
    >>> post = ep.infer(ep.FactorGraph(ep.Product(a, b, c)))
    >>> round(float(post["c"].mean()), 6), round(float(post["c"].var()), 6)
    (4.0, 0.81)
    """
    return BlackBox(jnp.multiply, a, b, out, name=name)


def _read_arguments(function: Callable[..., Any], arguments: tuple[Any, ...], name: str | None) -> tuple[Any, ...]:
    if not callable(function):
        raise KindError(f"the function of {name or 'the factor'} is {function!r}; expected something to call.")
    if not arguments:
        raise ShapeError(f"{name or 'the factor'} has no arguments; expected Variables after the function.")
    read = tuple(read_argument(value, f"argument {at}") for at, value in enumerate(arguments))
    if all(a.known for a in read):
        raise KindError(f"{name or 'the factor'} has no variable: everything in it is given.")
    for argument in read:
        if not argument.known and argument.variable.family is Categorical:
            raise KindError(
                f"{argument.name!r} of {name or 'the factor'} is a Categorical, and functions are integrated over "
                "numbers only: for relations of labels type ep.Table(probabilities, x, ...); sum over a label that "
                "only this function uses inside the function, with jax.nn.logsumexp."
            )
    return read


def _label(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    title = getattr(function, "__name__", type(function).__name__)
    names = [a.name for a in arguments if not a.known]
    return f"{title.strip('<>')}({', '.join(names)})"
