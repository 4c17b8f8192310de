"""The arguments of factors: random variables, some members of one, or known numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax
import numpy as np

from meanmap import families
from meanmap.core.arrays import as_array, check_finite
from meanmap.core.errors import KindError, ParameterError, ShapeError
from meanmap.core.held import holds_whole
from meanmap.core.language import in_short
from meanmap.core.settings import is_whole
from meanmap.core.synonyms import own_words
from meanmap.core.types import Index
from meanmap.core.values import as_tuple
from meanmap.families import Family

__all__ = [
    "NOT_TRACEABLE",
    "Argument",
    "Given",
    "Selection",
    "Variable",
    "concrete",
    "read_argument",
    "read_given",
    "refuse_dates",
]

# What a factor is joined to: a Variable, some members of one, or numbers that are known.
Argument: TypeAlias = Any

NOT_TRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)


@contextmanager
def concrete(what: str) -> Iterator[None]:
    """Refuse in words numbers that JAX is tracing."""
    try:
        yield
    except NOT_TRACEABLE as error:
        raise KindError(
            f"{what} met numbers that jax.jit, vmap or grad is tracing; models of expectation propagation are built "
            "and run outside of these, and compile their own sweeps. For many data sets give one model a plate; for a "
            "derivative of log_evidence with respect to priors call post.evidence_gradient."
        ) from error


class Variable(eqx.Module):
    """An unknown, or a plate of n unknowns, whose belief is kept within one family.

    `ep.Variable("w", ep.Normal(0.0, 1.0))` has a prior; `ep.Variable("z", ep.Normal, plate=100)` is a
    hundred numbers without one.

    Parameters
    ----------
    name : str
        Its name in the result and in every message.
    family : Family or a class of families
        A distribution is the prior; a class means no prior, as for what a factor gives. A number that no factor gives
        then has a density of 1 for all values, and needs a factor that is a distribution of it by itself.
    plate : int, optional
        The number of members; by default one.
    dimension : int, optional
        The length of a vector (MultivariateNormal, Dirichlet, Categorical), if there is no prior to say it.

    Examples
    --------
    >>> from meanmap import ep
    >>> ep.Variable("w", ep.MultivariateNormal.standard(3))
    Variable('w', MultivariateNormal(mean=[0, 0, 0], sd=[1, 1, 1]))
    >>> skill = ep.Variable("skill", ep.Normal(25.0, 70.0), plate=4)
    >>> skill
    Variable('skill', Normal(mean=25, sd=8.367), plate=4)
    >>> skill[[0, 2]]
    skill[2 members]
    """

    name: str = eqx.field(static=True)
    family: type[Family] = eqx.field(static=True)
    plate: int | None = eqx.field(static=True)
    dimension: int | None = eqx.field(static=True)
    prior: Any

    known: ClassVar[bool] = False

    @own_words
    def __init__(self, name: str, family: object, plate: int | None = None, dimension: int | None = None):
        if not isinstance(name, str) or not name:
            raise KindError(f"name is {name!r}; expected text, such as ep.Variable('w', ep.Normal).")
        self.name = name
        # A factor may have the name of a family, as Bernoulli does.
        kind = getattr(family, "family", family) if isinstance(family, type) else type(family)
        if not (isinstance(kind, type) and issubclass(kind, Family)):
            kinds = [each for name in families.__all__ if isinstance(each := getattr(families, name), type)]
            known = ", ".join(each.__name__ for each in kinds if issubclass(each, Family) and each is not Family)
            raise KindError(
                f"the family of variable {name!r} is {in_short(family)}; expected one of {known}, or a member."
            )
        self.family = kind
        prior = family if isinstance(family, Family) else None
        with concrete(f"variable {name!r}"):
            prior = jax.tree.map(np.asarray, prior)
        self.plate = _read_plate(name, plate, prior)
        self.dimension = _read_dimension(name, kind, dimension, prior)
        if prior is not None:
            _check_prior(name, prior)
            prior = prior.broadcast_to(() if self.plate is None else (self.plate,))
            prior = jax.tree.map(lambda leaf: np.array(leaf, np.float64), prior)
        self.prior = prior

    @property
    def shape(self) -> tuple[int, ...]:
        """`()`, or `(n,)` for a plate."""
        return () if self.plate is None else (self.plate,)

    @property
    def variable(self) -> "Variable":
        """Itself, as a selection names the variable that it is taken from."""
        return self

    @property
    def index(self) -> np.ndarray:
        """All members, as a selection says which ones it has."""
        return np.arange(self.plate or 1)

    def flat(self, shape: tuple[int, ...]) -> Any:
        """No information about the members of a batch of this shape: natural parameters zero."""
        own = self.family._fields_axes.values()
        sizes = [(*shape, *(self.dimension or 0,) * axes) for axes in own]
        return self.family.from_natural(*(np.zeros(size) for size in sizes))

    def __getitem__(self, index: Index) -> "Selection":
        """The members at `index`, with repetitions, or of a slice: how a factor's plate is joined to another one."""
        return Selection(self, index)

    def __iter__(self):
        raise TypeError(f"variable {self.name!r} cannot be iterated: name members as {self.name}[[0, 1, 2]].")

    def __repr__(self) -> str:
        plate = [f"plate={self.plate}"] if self.plate is not None else []
        return f"Variable({', '.join([repr(self.name), self.described(), *plate])})"

    def described(self) -> str:
        """The prior, where all members have the same; otherwise the family."""
        members = [] if self.plate is None else [np.asarray(leaf) for leaf in jax.tree.leaves(self.prior)]
        if self.prior is not None and all((leaf == leaf[0]).all() for leaf in members):
            return repr(self.prior if self.plate is None else self.prior[0])
        length = f" of length {self.dimension}" if self.dimension else ""
        return f"{self.family.__name__}{length}{', with a prior' if self.prior is not None else ''}"


class Selection(eqx.Module):
    """Members of a variable's plate, one for each member of a factor's plate; made by `variable[index]`."""

    variable: Variable
    index: Any

    known: ClassVar[bool] = False

    def __init__(self, variable: Variable, index: Index):
        if variable.plate is None:
            raise ShapeError(f"variable {variable.name!r} is single, not a plate: it has no members to select.")
        if isinstance(index, slice):
            index = np.arange(variable.plate)[index]
        if any(isinstance(each, str) for each in np.ravel(np.asarray(index))[:1]):
            raise KindError(
                f"the index of {variable.name!r} holds labels; expected whole numbers from 0: to number labels type "
                "np.unique(labels, return_inverse=True)[1]."
            )
        members = as_array(index, f"the index of {variable.name!r}")
        if not holds_whole(members) or members.ndim != 1:
            raise KindError(
                f"the index of {variable.name!r} has dtype {members.dtype} and shape {members.shape}; "
                "expected whole numbers along one axis, one for each member of the factor."
            )
        outside = (members < 0) | (members >= variable.plate)
        if outside.any():
            raise ParameterError(
                f"the index of {variable.name!r} holds {members[outside][0]} at {np.argmax(outside)}; "
                f"expected 0 to {variable.plate - 1}."
            )
        self.variable, self.index = variable, members.astype(np.int64)

    @property
    def name(self) -> str:
        """The name of the variable."""
        return self.variable.name

    @property
    def plate(self) -> int:
        """The number of selected members."""
        return len(self.index)

    def __repr__(self) -> str:
        return f"{self.name}[{self.plate} members]"


class Given(eqx.Module):
    """Numbers that are known: an observation, or a setting, for each member or for all."""

    values: Any
    name: str = eqx.field(static=True)

    known: ClassVar[bool] = True
    variable: ClassVar[None] = None

    @property
    def plate(self) -> int | None:
        """The length; None for a single number, which every member of a factor uses."""
        return self.values.shape[0] if self.values.ndim else None

    def __repr__(self) -> str:
        return f"{self.name}{list(self.values.shape) if self.values.ndim else f'={self.values:g}'}"


def read_argument(value: object, name: str) -> Any:
    """A variable, some of its members, or numbers."""
    if isinstance(value, Variable | Selection | Given):
        return value
    if isinstance(value, type) or callable(value):
        raise KindError(f"{name} is {value!r}; expected a Variable or numbers.")
    return read_given(value, name)


def read_given(value: object, name: str, axes: int = 1) -> Given:
    """Known numbers, finite, with at most `axes` axes."""
    for each in as_tuple(value):
        if isinstance(each, Variable | Selection):
            summed = each.variable.family is families.Categorical
            how = "a function that sums over its labels" if summed else "the variable among its arguments"
            raise KindError(
                f"{name} is the variable {each.name!r}; expected known numbers here. Where it is unknown, type "
                f"ep.Density(log_factor, ...) with {how}."
            )
    with concrete(name):
        labels = _labels(value)
    if labels is not None:
        first = str(labels[0])
        if _are_numbers(labels):
            raise KindError(
                f"{name} holds texts that look like numbers, such as {first!r}; type np.asarray({name}, float)."
            )
        raise KindError(
            f"{name} holds labels, such as {first!r}; expected numbers: of two labels type "
            f"(np.asarray({name}) == {first!r}).astype(int)."
        )
    refuse_dates(value, name)
    with concrete(name):
        values = np.asarray(as_array(value, name))
    if values.ndim == 2 and axes == 1:
        raise ShapeError(f"{name} has shape {values.shape}; expected one number a row: pass its columns one by one.")
    if values.ndim > axes:
        raise ShapeError(f"{name} has shape {values.shape}; expected at most {axes} axes, the plate first.")
    if values.ndim and values.shape[0] == 0:
        raise ShapeError(f"{name} is empty; expected one number for each member of the plate.")
    check_finite(values, name)
    return Given(np.array(values, np.float64), name)


def refuse_dates(value: object, name: str) -> None:
    """Refuse dates and times: as numbers they would be seconds since 1970, for which no prior makes sense."""
    first = next(iter(value), None) if isinstance(value, list | tuple) else value
    kind = getattr(getattr(first, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        what, read = ("dates", "(dates - dates.min())") if kind == "M" else ("durations", "durations")
        raise KindError(
            f"{name} holds {what}; expected numbers. Say in which unit, and for dates since when: "
            f"{read} / numpy.timedelta64(1, 'D') are days."
        )


def _labels(value: object) -> np.ndarray | None:
    """The entries of what holds text; None if the first is none."""
    try:
        listed = hasattr(value, "dtype") or isinstance(value, list | tuple)
        entries = np.asarray(value).ravel() if listed else np.empty(0)
    except ValueError:  # a ragged list, which is refused where it is read
        return None
    return entries if entries.size and isinstance(entries[0], str) else None


def _are_numbers(entries: np.ndarray) -> bool:
    """Whether all texts can be read as numbers."""
    try:
        entries.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def _read_plate(name: str, plate: Any, prior: Any) -> int | None:
    if plate is not None and not (is_whole(plate) and plate >= 1):
        more = " A plate has one axis: count all members, and select them by x[index]." if np.ndim(plate) else ""
        raise ParameterError(f"plate of variable {name!r} is {plate!r}; expected a whole number, 1 or more.{more}")
    if prior is None or prior.shape == ():
        return None if plate is None else int(plate)
    if len(prior.shape) > 1:
        raise ShapeError(f"the prior of variable {name!r} has batch shape {prior.shape}; expected one axis, its plate.")
    if plate is not None and plate != prior.shape[0]:
        raise ShapeError(f"variable {name!r} has plate={plate}, but its prior has {prior.shape[0]} members.")
    return prior.shape[0]


def _read_dimension(name: str, kind: type[Family], dimension: int | None, prior: Any) -> int | None:
    if kind.is_scalar():
        if dimension is not None:
            raise ParameterError(f"variable {name!r} is a number ({kind.__name__}); leave out dimension={dimension!r}.")
        return None
    if prior is not None:
        own = prior.natural[0].shape[-1]
        if dimension is not None and dimension != own:
            raise ShapeError(f"variable {name!r} has dimension={dimension}, but its prior has length {own}.")
        return int(own)
    if dimension is None or not is_whole(dimension) or dimension < 1:
        raise ParameterError(
            f"variable {name!r} is a {kind.__name__} without a prior, and dimension is {dimension!r}: "
            f"type for example ep.Variable({name!r}, ep.{kind.__name__}, dimension=3)."
        )
    return int(dimension)


def _check_prior(name: str, prior: Family) -> None:
    improper = ~np.asarray(prior.is_proper())
    if improper.any():
        raise ParameterError(
            f"the prior of variable {name!r} is improper; expected a probability distribution. "
            "For no prior pass the class, such as ep.Variable('z', ep.Normal)."
        )
