"""What an update leaves out: ties between variables, and a second look at earlier messages."""

from collections.abc import Collection, Sequence

from meanmap.core.language import in_few_words
from meanmap.ep.factor import Factor
from meanmap.ep.variables import Variable

__all__ = ["Joins", "approximate_in", "joins_of", "left_behind", "lost_ties", "not_revised"]

_ADVICE = (
    "give them one belief, such as ep.Variable(name, ep.MultivariateNormal(mean, covariance)), or all rows to one run "
    "of infer"
)

# The names of the variables of each factor that has several.
Joins = tuple[tuple[str, ...], ...]


def joins_of(factors: Sequence[Factor]) -> Joins:
    """The names that factors join."""
    named = (tuple(argument.name for argument in factor.arguments if not argument.known) for factor in factors)
    return tuple(names for names in named if len(names) > 1)


def lost_ties(variables: dict[str, Variable], joins: Joins, shared: Collection[str]) -> str:
    """A note that names shared variables which factors join, if there are several of them or several members."""
    twice = {name for names in joins for name in names if names.count(name) > 1}
    tied = []
    for part in _tied(joins):
        own = [name for name in shared if name in part]
        plates = {variables[name].plate for name in part}
        members = [name for name in own if variables[name].plate and (len(plates) > 1 or name in twice)]
        tied += own if len(own) > 1 else members
    if not tied:
        return ""
    return (
        f"{', '.join(map(repr, tied))}: earlier factors tie these numbers together, and an update takes beliefs about "
        f"them as independent, so that standard deviations may be too small: {_ADVICE}"
    )


def left_behind(variables: dict[str, Variable], joins: Joins, shared: Collection[str], new: Collection[str]) -> str:
    """A note that names variables without a plate which factors join with shared ones, and which the batch lacks."""
    behind = [
        name
        for part in _tied(joins)
        if part & set(shared)
        for name in variables
        if name in part and name not in (*shared, *new) and not variables[name].plate
    ]
    if not behind:
        return ""
    return (
        f"{', '.join(map(repr, behind))}: earlier factors tie these numbers to those of the batch, which lacks them, "
        f"and beliefs about them stay as they were: {_ADVICE}"
    )


def _tied(joins: Joins) -> list[set[str]]:
    """Sets of names that factors join, directly or by others."""
    parts: list[set[str]] = []
    for names in joins:
        met = [part for part in parts if part & set(names)]
        parts = [part for part in parts if part not in met] + [set(names).union(*met)]
    return parts


def approximate_in(factors: Sequence[Factor]) -> tuple[str, ...]:
    """The names of factors whose messages are approximate."""
    return tuple(factor.name for factor in factors if factor.approximate and not factor.constant)


def not_revised(named: Collection[str]) -> str:
    """A note if messages of some factors are approximate: in one run each is computed again, given all others."""
    if not named:
        return ""
    return (
        f"messages of {in_few_words([*named], 2)} are approximate, and an update does not revise those of earlier "
        "batches: means and standard deviations may be off; infer(a model of all factors) revises them"
    )
