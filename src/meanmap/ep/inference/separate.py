"""What an update leaves out: ties between variables, and a second look at earlier messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meanmap.core.language import in_few_words
from meanmap.ep.factor import Factor
from meanmap.ep.variables import Variable

__all__ = ["LeftOut"]

_ADVICE = (
    "give them one belief, such as ep.Variable(name, ep.MultivariateNormal(mean, covariance)), or all rows to one run "
    "of infer"
)

# The names of the variables of each factor that has several.
Joins = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LeftOut:
    """What updates leave out of a posterior: it stays left out in later ones.

    Attributes
    ----------
    joins : tuple
        The names that factors of all batches join.
    apart : tuple of str
        Variables that an update took as independent although earlier factors tie them together.
    behind : tuple of str
        Variables without a plate that earlier factors tie to those of a batch that lacked them.
    approximate : tuple of str
        The names of factors whose messages are approximate.
    """

    joins: Joins = ()
    apart: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    approximate: tuple[str, ...] = ()

    @classmethod
    def of(cls, factors: Sequence[Factor]) -> "LeftOut":
        """Of one run: nothing yet."""
        named = (tuple(argument.name for argument in factor.arguments if not argument.known) for factor in factors)
        approximate = tuple(factor.name for factor in factors if factor.approximate and not factor.constant)
        return cls(tuple(names for names in named if len(names) > 1), approximate=approximate)

    def after(
        self,
        factors: Sequence[Factor],
        variables: Mapping[str, Variable],
        shared: Collection[str],
        new: Collection[str],
    ) -> "LeftOut":
        """After an update with these factors of `new` names, of which earlier `variables` have the `shared` ones."""
        batch = LeftOut.of(factors)
        return LeftOut(
            _once(self.joins, batch.joins),
            _once(self.apart, self._taken_apart(variables, shared)),
            _once(self.behind, self._not_in_batch(variables, shared, new)),
            _once(self.approximate, batch.approximate),
        )

    def doubts(self) -> dict[str, str]:
        """What a status says, with a note: the largest doubt first."""
        doubts = {}
        if self.approximate:
            doubts["means and standard deviations may be off"] = (
                f"messages of {in_few_words([*self.approximate], 2)} are approximate, and an update does not revise "
                "those of earlier batches: means and standard deviations may be off; infer(a model of all factors) "
                "revises them"
            )
        if self.behind:
            doubts["some beliefs were not updated"] = (
                f"{_named(self.behind)}: earlier factors tie these numbers to those of a batch that lacked them, and "
                f"it left beliefs about them as they were: {_ADVICE}"
            )
        if self.apart:
            doubts["standard deviations may be too small"] = (
                f"{_named(self.apart)}: earlier factors tie these numbers together, and an update takes beliefs about "
                f"them as independent, so that standard deviations may be too small: {_ADVICE}"
            )
        return doubts

    def _taken_apart(self, variables: Mapping[str, Variable], shared: Collection[str]) -> list[str]:
        """Shared variables that factors join, if there are several of them or several members."""
        twice = {name for names in self.joins for name in names if names.count(name) > 1}
        tied = []
        for part in _tied(self.joins):
            own = [name for name in shared if name in part]
            plates = {variables[name].plate for name in part}
            members = [name for name in own if variables[name].plate and (len(plates) > 1 or name in twice)]
            tied += own if len(own) > 1 else members
        return tied

    def _not_in_batch(
        self, variables: Mapping[str, Variable], shared: Collection[str], new: Collection[str]
    ) -> list[str]:
        """Variables without a plate which factors join with shared ones, and which the batch lacks."""
        lacked = {name for part in _tied(self.joins) if part & set(shared) for name in part} - {*shared, *new}
        return [name for name in variables if name in lacked and not variables[name].plate]


def _tied(joins: Joins) -> list[set[str]]:
    """Sets of names that factors join, directly or by others."""
    parts: list[set[str]] = []
    for names in joins:
        met = [part for part in parts if part & set(names)]
        parts = [part for part in parts if part not in met] + [set(names).union(*met)]
    return parts


def _once(earlier: Collection[Any], later: Collection[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*earlier, *later)))


def _named(names: Collection[str]) -> str:
    return in_few_words([repr(name) for name in names], 3)
