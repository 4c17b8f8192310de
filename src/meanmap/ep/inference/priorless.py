"""Beliefs that are no distributions, or only by rounding, and what to type then."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meanmap.core.errors import InputError
from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.factors.precision import GaussianPrecision
from meanmap.ep.sweeps.plan import fetched
from meanmap.ep.variables import Variable
from meanmap.families import Family, Gamma, MultivariateNormal, Normal
from meanmap.families.multivariate_normal import unitless

__all__ = ["nearly_singular", "refuse_without_prior", "taken_as_flat", "without_prior"]

# By family, a prior to type; {} is the length of a vector.
_PRIORS = {
    "Normal": "ep.Normal(0.0, 1.0)",
    "MultivariateNormal": "ep.MultivariateNormal.standard({})",
    "Gamma": "ep.Gamma(1.0, 1.0)",
    "Beta": "ep.Beta(1.0, 1.0)",
    "Dirichlet": "ep.Dirichlet([1.0] * {})",
    # In `ep` these are the names of factors.
    "Bernoulli": "mm.families.Bernoulli(0.5)",
    "Categorical": "mm.families.Categorical([1 / {0}] * {0})",
}


# Beside what the other coordinates of a vector leave open, squared, the rounding of a number is a ten-thousandth.
_OPEN = 1e-12


def without_prior(factors: Sequence[Factor], found: Mapping[str, Family]) -> str:
    """A note that names variables without a prior whose beliefs are improper, and a prior to type; else empty.

    A variable that is computed from others, as by `Dot`, needs none.
    """
    unknown = [argument for factor in factors for argument in factor.arguments if not argument.known]
    variables: dict[str, Variable] = {argument.variable.name: argument.variable for argument in unknown}
    computed = {name for factor in factors for name in _computed(factor)}
    lacking = [
        name
        for name, variable in variables.items()
        if variable.prior is None and name in found and not fetched(found[name].is_proper()).all()
    ]
    named = [name for name in lacking if name not in computed]
    if not named:
        return ""
    them, have = ("them", "have") if len(named) > 1 else ("it", "has")
    return (
        f"{', '.join(map(repr, named))} {have} no prior, and the belief about {them} is improper, "
        f"so there is no log evidence: {_with_prior(variables[named[0]], them)}"
    )


def refuse_without_prior(factors: Sequence[Factor]) -> None:
    """Raise for variables without a prior that functions take and nothing else is about: no message would be sent."""
    variables, other = {}, set()
    for factor in factors:
        for position, argument in enumerate(factor.arguments):
            if not argument.known:
                variables[argument.name] = argument.variable
                if not isinstance(factor, BlackBoxFactor) or not factor.needs_proper(position):
                    other.add(argument.name)
    named = [name for name, variable in variables.items() if variable.prior is None and name not in other]
    if named:
        them, have, are = ("them", "have", "they are") if len(named) > 1 else ("it", "has", "it is")
        raise InputError(
            f"{', '.join(map(repr, named))} {have} no prior, and {are} in functions only, which need one: "
            f"{_with_prior(variables[named[0]], them)}."
        )


def _with_prior(variable: Variable, them: str) -> str:
    """What to type to give a variable a prior."""
    length = "" if variable.dimension is None else variable.dimension
    prior = _PRIORS.get(variable.family.__name__, f"mm.families.{variable.family.__name__}(...)").format(length)
    plate = "" if variable.plate is None else f", plate={variable.plate}"
    return f"give {them} a prior, such as ep.Variable({variable.name!r}, {prior}{plate})"


def taken_as_flat(factors: Sequence[Factor]) -> str:
    """A note that names numbers and vectors that have no prior and that only rows of data are about; else empty.

    Nothing is said of what a factor gives, nor of inputs of a density or of a sum with a prior, which may be theirs.
    """
    variables: dict[str, Variable] = {}
    open_members: dict[str, np.ndarray] = {}
    for factor in factors:
        for argument in factor.arguments:
            if not argument.known and argument.variable.family in (Normal, MultivariateNormal, Gamma):
                variables[argument.name] = argument.variable
                members = open_members.setdefault(argument.name, np.ones(argument.variable.plate or 1, bool))
                if argument is _given(factor) or _may_be_a_prior(factor):
                    members[argument.index] = False
    named = [name for name, v in variables.items() if v.prior is None and open_members[name].any()]
    if not named:
        return ""
    have, them, their = ("has", "it", "its unit") if len(named) == 1 else ("have", "them", "their units")
    return (
        f"{', '.join(map(repr, named))} {have} no prior: the log evidence is that of a density of 1 for all values of "
        f"{them}. It depends on {their}, and compares only models that also have {them}"
    )


def _given(factor: Any) -> Any:
    """What a factor gives by its other arguments: a result, with or without noise."""
    if isinstance(factor, Sum):
        return factor.arguments[0]
    if isinstance(factor, GaussianPrecision):
        return factor.arguments[1]
    return factor.arguments[-1] if isinstance(factor, Dot) or getattr(factor, "outputs", 0) else None


def _may_be_a_prior(factor: Any) -> bool:
    """Whether a factor may be a prior of its inputs: a density, or a sum whose result has a prior."""
    result = _given(factor)
    if result is None:
        return isinstance(factor, BlackBoxFactor)
    return not result.known and result.variable.prior is not None


def nearly_singular(factors: Sequence[Factor], found: Mapping[str, Family]) -> str:
    """A note that names vectors with a prior whose precision is singular but for rounding; else empty."""
    unknown = [argument.variable for factor in factors for argument in factor.arguments if not argument.known]
    named = dict.fromkeys(v.name for v in unknown if v.prior is not None and _is_singular(found.get(v.name)))
    if not named:
        return ""
    return (
        f"{', '.join(map(repr, named))}: rounding affects standard deviations and the log evidence, as a precision "
        "matrix is nearly singular: with a very wide prior some columns of X are determined by others, or the prior "
        "itself is nearly singular. Leave these columns out, centre and scale columns, or give a narrower prior"
    )


def _is_singular(belief: Family | None) -> bool:
    """Whether coordinates of a vector are known given the others, but for rounding, whatever their units."""
    if not isinstance(belief, MultivariateNormal):
        return False
    precision = np.asarray(fetched(belief.precision), float)
    if not np.isfinite(precision).all():
        return True
    try:
        root = np.linalg.cholesky(unitless(precision, np))
    except np.linalg.LinAlgError:
        return True
    return bool((np.diagonal(root, axis1=-2, axis2=-1) ** 2).min() < _OPEN)


def _computed(factor: Any) -> list[str]:
    """The names of variables that a factor computes from its other arguments."""
    if isinstance(factor, Dot) or getattr(factor, "outputs", 0):
        computed = factor.arguments[-1]
    elif isinstance(factor, Sum):
        computed = factor.arguments[0]
    else:
        return []
    return [] if computed.known else [computed.variable.name]
