"""What an update leaves out: ties between variables, and a second look at earlier messages."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from meanmap.core.language import in_few_words
from meanmap.ep.factor import Factor
from meanmap.ep.variables import Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["LeftOut"]

_ONE_BELIEF = "give them one belief, such as ep.Variable(name, ep.MultivariateNormal(mean, covariance))"
_TO_ONE_RUN = "all rows to one run of infer"

_PLAIN, _OFF = "converged", "means and standard deviations may be off"
# The names of the variables of each factor that has several.
Joins = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LeftOut:
    """What updates leave out of a posterior: it stays left out in later ones.

    Attributes
    ----------
    joins : tuple
        The names that factors of all batches join.
    approximate : tuple of str
        The names of factors whose messages are approximate.
    status : str
        How the last run ended.
    statuses : tuple of str
        How runs before it ended, where that was not "converged".
    apart : tuple of str
        Variables that an update took as independent although earlier factors tie them together.
    behind : tuple of str
        Variables that earlier factors tie to those of a batch that lacked them.
    """

    joins: Joins
    approximate: tuple[str, ...]
    status: str
    statuses: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()

    @classmethod
    def of(cls, factors: Sequence[Factor], status: str) -> "LeftOut":
        """Of one run: nothing yet."""
        named = (tuple(argument.name for argument in factor.arguments if not argument.known) for factor in factors)
        approximate = tuple(factor.name for factor in factors if factor.approximate and not factor.constant)
        return cls(tuple(names for names in named if len(names) > 1), approximate, status)

    def after(
        self, variables: Mapping[str, Variable], batch: "LeftOut", shared: Collection[str], new: Collection[str]
    ) -> "LeftOut":
        """After an update by a batch about the `new` names, of which the `shared` ones are earlier `variables`."""
        behind = _once(self.behind, self._lacked(variables, shared, new))
        return LeftOut(
            _once(self.joins, batch.joins),
            _once(self.approximate, batch.approximate),
            batch.status,
            _once(self.statuses, () if self.status == _PLAIN else (self.status,)),
            _once(self.apart, self._taken_apart(variables, shared)),
            # A new variable takes the place of an earlier one of its name.
            tuple(name for name in behind if name in shared or name not in new),
        )

    def doubts(self, variables: Mapping[str, Variable]) -> list[tuple[str, str]]:
        """What a status says of these variables, and a note: the largest doubt first."""
        doubts = []
        for status in self.statuses:
            doubt = status.removeprefix(f"{_PLAIN}, but ")
            said = doubt if doubt != status else f"an earlier batch {status}"
            doubts.append((said, f"an earlier batch {status}: what it found is the prior of later ones"))
        if self.approximate:
            note = (
                f"messages of {in_few_words([*self.approximate], 2)} are approximate, and an update does not revise "
                f"those of earlier batches: {_OFF}; infer(a model of all factors) revises them"
            )
            doubts.append((_OFF, note))
        if self.apart:
            note = (
                f"{_named(self.apart)}: earlier factors tie these numbers together, and an update takes beliefs about "
                f"them as independent, so that {_OFF}: {_advice(self.apart, variables)}"
            )
            doubts.append((_OFF, note))
        if self.behind:
            note = (
                f"{_named(self.behind)}: earlier factors tie these numbers to those of a batch that lacked them, and "
                "it left beliefs about them as they were: they may be off by any amount, also after later batches "
                f"about them, and so may the log evidence: {_advice(self.behind, variables)}"
            )
            doubts.append(("some beliefs were not updated", note))
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

    def _lacked(self, variables: Mapping[str, Variable], shared: Collection[str], new: Collection[str]) -> list[str]:
        """Variables which factors join with shared ones, and which the batch lacks."""
        tied = {name for part in _tied(self.joins) if part & set(shared) for name in part}
        return [name for name in variables if name in tied and name not in shared and name not in new]


def _advice(names: Sequence[str], variables: Mapping[str, Variable]) -> str:
    """What to type; only numbers with normal beliefs can have one belief."""
    normal = all(variables[name].family in (Normal, MultivariateNormal) for name in names)
    return f"{_ONE_BELIEF}, or {_TO_ONE_RUN}" if normal else f"give {_TO_ONE_RUN}"


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
