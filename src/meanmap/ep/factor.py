"""A factor: a function of variables over a plate, which maps incoming messages to outgoing ones."""

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from functools import reduce
from operator import and_
from typing import Any, ClassVar, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.language import with_article
from meanmap.core.types import Array
from meanmap.ep.variables import Given, Selection, Variable
from meanmap.families import Family

__all__ = [
    "Answer",
    "Factor",
    "FactorLike",
    "check_family",
    "check_observed",
    "common_plate",
    "finite",
    "replaced",
    "with_variables",
]


class FactorLike(Protocol):
    """A factor as oracles see it: its arguments, and the values of its function at points that the oracle chooses."""

    asks_oracle: ClassVar[bool]
    # This many of the last arguments come out of the function.
    outputs: ClassVar[int]
    # Whether it can answer for a power of itself, as a density can.
    powered: ClassVar[bool]

    @property
    def name(self) -> str:
        """The name of the factor."""
        ...

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Variables, selections of them and given values, in the order of the function."""
        ...

    @property
    def plate(self) -> int | None:
        """The number of members; None for one factor without a plate."""
        ...

    @property
    def function(self) -> Callable[..., Any]:
        """The function, with the outside values that it read at the start of the run."""
        ...

    @property
    def own(self) -> Any:
        """The function as the user gave it."""
        ...

    @property
    def traced(self) -> Any:
        """The function as it was at the start of a run; None outside of one."""
        ...

    @property
    def memory(self) -> Any:
        """The memory in which a run keeps values of a function on the host."""
        ...

    @property
    def oracle(self) -> Any:
        """The oracle that computes its messages; None for the one that `messages=` names."""
        ...

    @property
    def host(self) -> bool:
        """Whether the function is called on the host, for every point."""
        ...

    @property
    def random(self) -> bool:
        """Whether the function is a sampler."""
        ...

    @property
    def vectorised(self) -> bool:
        """Whether the function takes many points at once."""
        ...

    @property
    def smooth(self) -> bool:
        """Whether its logarithm is known to have neither kinks nor narrow peaks."""
        ...

    def integrated(self) -> list[Any]:
        """The variables over which an oracle integrates."""
        ...

    def inputs(self, incoming: Any) -> tuple[int, ...]:
        """The positions of the arguments that are integrated over."""
        ...

    def weigh(self, values: dict[int, jax.Array], incoming: tuple[Any, ...], power: Any, key: Any) -> tuple:
        """The log factor at points, for one member, what outputs take as nodes, and where it is undefined."""
        ...

    def judge(self, found: jax.Array, incoming: tuple[Any, ...], power: Any) -> tuple:
        """What `weigh` gives, from what the function returned at the points."""
        ...


class Answer(eqx.Module):
    """The answer of a factor, or of an oracle for it, to its incoming messages.

    Attributes
    ----------
    messages : tuple
        For each argument the ratio of the projected tilted distribution and the incoming message, a family that may be
        improper; None for given values.
    log_normaliser : array
        log ∫ f(x)^α Π exp(η·t(x)) dx with the incoming natural parameters η, for each member.
    errors : tuple or None
        Standard errors of the natural parameters of `messages`, in the same form; None if they are exact.
    effective : array or None
        Effective sample size of each member; None without sampling.
    doubt : array or None
        The estimated error of each member's beliefs, in standard deviations: the root of the expected 2 KL between the
        belief that follows and the one an exact message would give, the largest over arguments. None if exact.
    mean_errors : tuple or None
        Standard errors of the means of the beliefs that follow, by argument, as the draws show them; None without
        sampling.
    undefined : array or None
        The share of the incoming distribution on which the function returned no number, for each member; None if it
        has no function.
    """

    messages: tuple[Any, ...]
    log_normaliser: Any
    errors: tuple[Any, ...] | None = None
    effective: Any = None
    doubt: Any = None
    mean_errors: tuple[Any, ...] | None = None
    undefined: Any = None

    def __getitem__(self, members: object) -> "Answer":
        """The answers to some members of a plate."""
        return jax.tree.map(lambda leaf: leaf[members], self)

    def put(self, members: object, other: "Answer") -> "Answer":
        """The answer with some members replaced by those of another one; fields that either lacks are None."""

        def fill(mine, theirs):
            if mine is None or theirs is None:
                return None
            return jax.tree.map(lambda a, b: _placed(a, members, b), mine, theirs)

        def fill_each(mine, theirs):
            return None if mine is None or theirs is None else tuple(map(fill, mine, theirs))

        single = ("log_normaliser", "effective", "doubt", "undefined")
        total, effective, doubt, undefined = (fill(getattr(self, n), getattr(other, n)) for n in single)
        messages = tuple(map(fill, self.messages, other.messages))
        errors, mean_errors = (fill_each(getattr(self, n), getattr(other, n)) for n in ("errors", "mean_errors"))
        return Answer(messages, total, errors, effective, doubt, mean_errors, undefined)


class Factor(eqx.Module):
    """A factor of the model for each member of its plate: arguments, and the messages to them.

    To write one, store `arguments` and `name`, and give `answer`: a pure function on JAX arrays, all members at once.

    Class attributes say how the engine treats it: `whole` which arguments are shared by the plate as one (the weights
    of a linear map), `approximate` that its messages are projections, so that the policies for improper messages apply,
    `powered` that it can answer for a power of itself, `asks_oracle` that its messages are an oracle's.
    """

    arguments: eqx.AbstractVar[tuple[Any, ...]]
    name: eqx.AbstractVar[str]

    approximate: ClassVar[bool] = False
    powered: ClassVar[bool] = False
    asks_oracle: ClassVar[bool] = False
    # This many of the last arguments are outputs.
    outputs: ClassVar[int] = 0
    whole: ClassVar[tuple[int, ...]] = ()

    @property
    def plate(self) -> int | None:
        """The number of members; None for one factor without a plate."""
        sizes = [a.plate for at, a in enumerate(self.arguments) if at not in self.whole]
        return next((size for size in sizes if size is not None), None)

    @property
    def constant(self) -> bool:
        """Whether its messages depend on no incoming one, so that they are sent first."""
        return False

    @property
    def silent(self) -> np.ndarray:
        """Which members say nothing, whatever comes in."""
        return np.zeros(self.plate or 1, bool)

    @abstractmethod
    def answer(self, incoming: tuple[Any, ...], power: Array, key: jax.Array) -> Answer:
        """Outgoing messages.

        Parameters
        ----------
        incoming : tuple
            For each argument the product of all other messages (a batch of one family), or the given numbers.
        power : number
            α of power expectation propagation; exact factors need not look at it.
        key : JAX key
            Randomness, the same in every sweep.
        """

    @property
    def has_density(self) -> bool:
        """Whether `weigh` evaluates it at numbers."""
        return False

    def weigh(self, values: dict[int, jax.Array], incoming: tuple[Any, ...], power: Array, key: Array) -> tuple:
        """The log factor at points, for one member: values along the first axis for each unknown, by position.

        Returns
        -------
        log_factor : array (points,)
        outputs : dict
            For each position that is an output, the points it takes as nodes.
        undefined : array (points,) of bool
            Where a function of the user returned no number: the factor is zero there. Of a log density this is NaN, of
            an output ±∞ too. A log density of ∞, and an output outside of its range, are NaN in `log_factor`: no
            answer.
        """
        del key
        found = power * self.log_density(*(values.get(at, given) for at, given in enumerate(incoming)))
        return jnp.where(jnp.isnan(found), -jnp.inf, found), {}, jnp.zeros(found.shape, bool)

    def log_density(self, *numbers: Any) -> jax.Array:
        """The log factor at numbers, one for each argument, where it has a density."""
        raise NotImplementedError

    def in_parts(self, number: int) -> "Factor":
        """A factor that answers for this many equal parts of its plate by themselves, each on a device of its own."""
        del number
        return self

    def quick(self) -> "Factor":
        """A cheaper form of the factor that reports its own doubt; the factor itself if there is none."""
        return self

    def needs_proper(self, position: int) -> bool:
        """Whether the message that comes in at this argument must be a probability distribution."""
        del position
        return self.approximate

    def __repr__(self) -> str:
        return self.name


def _placed(values: Array, members: Any, others: Any) -> np.ndarray:
    values = np.array(values)
    values[members] = others
    return values


def replaced(factor: object, **fields: object) -> Any:
    """A copy of a factor with other fields, past its constructor."""
    changed = copy(factor)
    for name, value in fields.items():
        object.__setattr__(changed, name, value)
    return changed


def with_variables(factor: Factor, variables: dict[str, Variable]) -> Factor:
    """A factor of these variables, by name."""

    def other(argument: Any) -> Any:
        if argument.known or argument.variable.name not in variables:
            return argument
        new = variables[argument.variable.name]
        return new if isinstance(argument, Variable) else Selection(new, argument.index)

    return replaced(factor, arguments=tuple(map(other, factor.arguments)))


def common_plate(name: str, arguments: dict[str, Any]) -> int | None:
    """The plate that the arguments share; each is one or has that many members."""
    sizes = {role: argument.plate for role, argument in arguments.items()}
    found = {size for size in sizes.values() if size is not None}
    if len(found) > 1:
        listed = ", ".join(
            f"{role} {_label(arguments[role])} has {size}" for role, size in sizes.items() if size is not None
        )
        raise ShapeError(f"the plates of {name} do not fit together: {listed}; expected the same number of members.")
    return next(iter(found), None)


def check_observed(name: str, given: Given, valid: np.ndarray, expected: str) -> None:
    """Refuse outcomes that are impossible under a factor."""
    if not valid.all():
        first, value = np.argwhere(~valid)[0].tolist(), np.asarray(given.values)[~valid].flat[0]
        where = f" at {first}" if first else ""
        raise ParameterError(f"observed of {name} holds {value:g}{where}; expected {expected}.")


def check_family(name: str, role: str, argument: Any, *allowed: type, given: bool = False) -> None:
    """Refuse an argument of another family than a factor can send to."""
    if argument.known:
        if not given:
            raise KindError(f"{role} of {name} is given as numbers; expected a Variable.")
        return
    family = argument.variable.family
    if family not in allowed:
        kinds = " or ".join(kind.__name__ for kind in allowed)
        raise KindError(
            f"{role} of {name} is the {family.__name__} {_label(argument)}; expected {with_article(kinds)} variable."
        )


def _label(argument: Any) -> str:
    return repr(argument.name)


def finite(family: Family) -> Any:
    """For each member, whether all natural parameters are numbers."""
    flags = [
        jnp.isfinite(leaf).all(tuple(range(-own, 0)))
        for leaf, own in zip(family.natural, family._own_axes, strict=True)
    ]
    return reduce(and_, flags)
