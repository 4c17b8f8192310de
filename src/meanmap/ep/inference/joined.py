"""One vector in place of separate unknowns with normal priors that linear factors join in loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from meanmap.ep.factor import Factor, with_variables
from meanmap.ep.factors.effects import Effects
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block, NotMeasured, System
from meanmap.ep.inference.eliminated import Eliminated
from meanmap.ep.inference.solved import Columns, beliefs_of, covariances_of, log_integral, mode_of, rows_of
from meanmap.ep.variables import Selection, Variable
from meanmap.families import Family, MultivariateNormal, Normal

__all__ = ["Joined"]

# One unknown has up to this length, and matrices of its sums up to this many numbers: beyond, some are integrated out.
_LENGTH, _ENTRIES = 1500, 20_000_000
# Of what is known, its standard deviation: a smaller one would cost the log evidence digits.
_SURE = 1e-5


@dataclass(frozen=True)
class Joined:
    """A model in which all unknowns of its linear predictors are one vector, w, and each sum of them is one row of X w.

    Attributes
    ----------
    model : FactorGraph
        Of the vector, whose prior is what priors and linear factors say about it, of the sums that other factors take,
        and of all else as it was.
    given : FactorGraph
        As it was written.
    block : Block
        The unknowns in linear factors, and these.
    system : System
        All of them by the numbers of the vector, which are those that nothing defines.
    law : _Vector or _Effects
        Of the vector. Its `log_constant` is the log evidence of linear factors by themselves, which the model with the
        vector leaves out.
    """

    model: FactorGraph
    given: FactorGraph
    block: Block
    system: System
    law: "_Vector | _Effects"

    @classmethod
    def of(cls, given: FactorGraph) -> "Joined | None":
        """The model with one vector; None if its beliefs are joint as they are, or cannot be made so."""
        whole = Block.of(given.variables, given.factors)
        if whole.is_exact or whole.curved or whole.approximate or not whole.has_loops():
            return None
        block = Block.of({name: given.variables[name] for name in whole.joined}, tuple(whole.linear))
        met = {a.name: a.variable for factor in whole.others for a in factor.arguments if not a.known}
        taken = [met[name] for name in block.first if name in met]
        if any(variable.family is not Normal for variable in taken):
            return None
        anew = [Variable(variable.name, Normal, variable.plate) for variable in taken]
        places = np.concatenate([block.range_of(variable.name) for variable in anew]) if anew else np.zeros(0, int)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                system = block.system({})
                name = ", ".join(name for name in block.first if np.isin(block.range_of(name), system.free).any())
                name = f"vector of {name}" if name in met else name or "nothing"
                length = len(system.free)
                short = length <= _LENGTH and length * len(places) <= _ENTRIES
                law = (_Vector if short else _Effects).of(name, block, system, places)
                factors = law.factors(anew, block, system)
            except (NotMeasured, np.linalg.LinAlgError):
                return None
        by_name = {variable.name: variable for variable in anew}
        factors += [with_variables(factor, by_name) for factor in whole.others]
        return cls(FactorGraph(*factors), given, block, system, law)

    def apart(self, found: dict[str, Family], messages: dict[str, tuple[Any, ...]]) -> dict[str, Family]:
        """Beliefs about all unknowns as they were named, by those of a run and its messages."""
        mean, covariances = self.law.after(self.model, found, messages)
        own = beliefs_of(self.block, self.system, self.system.spread @ mean + self.system.offset, covariances)
        return {name: own[name] if name in own else found[name] for name in self.given.variables}


@dataclass(frozen=True)
class _Vector:
    """One unknown with a joint prior, in place of all numbers that nothing defines."""

    vector: Variable
    length: int
    log_constant: float

    @classmethod
    def of(cls, name: str, block: Block, system: System, places: np.ndarray) -> "_Vector":
        """With what priors and linear factors say; one number on which nothing depends, where everything is defined."""
        del places
        mean, log_constant = _mean(block, system)
        if not len(mean):
            return cls(Variable(name, MultivariateNormal.standard(1)), 0, log_constant)
        rows, _ = rows_of(block, system)
        precision = (rows.T @ rows).toarray()
        prior = MultivariateNormal.from_natural(precision @ mean, (precision + precision.T) / 2)
        return cls(Variable(name, prior), len(mean), log_constant)

    def factors(self, taken: list[Variable], block: Block, system: System) -> list[Factor]:
        """They say what is taken by others."""
        found = []
        for out in taken:
            places = block.range_of(out.name)
            found += _sums(system.spread[places].toarray(), system.offset[places], self.vector, out)
        return found

    def after(self, model: FactorGraph, found: dict[str, Family], messages: Any) -> tuple[np.ndarray, Columns]:
        """Mean, and covariances of sums, after a run."""
        del messages
        joint: Any = found[self.vector.name] if self.vector.name in model.variables else self.vector.prior
        covariance = np.linalg.inv(np.asarray(joint.precision))
        mean = covariance @ np.asarray(joint.precision_mean)
        some = slice(self.length)
        return mean[some], lambda spread, size: covariances_of(spread, covariance[some, some], size)


@dataclass(frozen=True)
class _Effects:
    """Too many numbers for one unknown: those that can be are integrated out, by the factor that says what is taken."""

    name: str
    numbers: Eliminated
    mean: np.ndarray
    rows: Any
    log_constant: float

    @classmethod
    def of(cls, name: str, block: Block, system: System, places: np.ndarray) -> "_Effects":
        """With what priors and linear factors say."""
        rows, _ = rows_of(block, system)
        taken = sparse.csr_matrix(system.spread[places])
        numbers = Eliminated.of(sparse.csr_matrix(rows.T @ rows), taken)
        mean, log_constant = _mean(block, system)
        return cls(f"sums of {name}", numbers, mean, taken, log_constant)

    def factors(self, taken: list[Variable], block: Block, system: System) -> list[Factor]:
        """They say what is taken by others."""
        if not taken:
            return []
        known = [
            system.offset[places] + system.spread[places] @ self.mean for places in map(block.range_of, block.first)
        ]
        known = dict(zip(block.first, known, strict=True))
        name = f"Effects({self.name} of {len(self.mean)})"
        if len(taken) == 1 and taken[0].plate is not None and not known[taken[0].name].any():
            return [self.numbers.factor(self.rows, taken[0], name)]
        every = Variable(self.name, Normal, self.rows.shape[0])
        factors, start = [self.numbers.factor(self.rows, every, name)], 0
        for out in taken:
            own = known[out.name]
            factors.append(Sum(every[np.arange(start, start + len(own))], own, out=out))
            start += len(own)
        return factors

    def after(self, model: FactorGraph, found: Any, messages: dict[str, tuple[Any, ...]]) -> tuple[np.ndarray, Columns]:
        """Mean, and covariances of sums, after a run."""
        del found
        toward, precision = np.zeros((2, self.rows.shape[0]))
        if model.factors and isinstance(model.factors[0], Effects):
            effects: Any = model.factors[0]
            out = effects.arguments[-1].name
            for factor in model.factors[1:]:
                for argument, message in zip(factor.arguments, messages[factor.name], strict=True):
                    if not argument.known and argument.name == out:
                        members = argument.index if isinstance(argument, Selection) else np.arange(len(toward))
                        np.add.at(toward, members, np.asarray(message.precision_mean))
                        np.add.at(precision, members, np.asarray(message.precision))
        given = self.numbers.given(self.rows, toward, precision)
        return self.mean + given.mean, given.covariances


def _mean(block: Block, system: System) -> tuple[np.ndarray, float]:
    """Of the numbers that nothing defines, by priors and linear factors, and how probable their data are."""
    mean, _, log_determinant = mode_of(block, system)
    middle = system.spread @ mean + system.offset
    log_constant = log_integral(block, system, middle, log_determinant)
    if not (np.isfinite(middle).all() and np.isfinite(log_constant)):
        raise NotMeasured
    return mean, log_constant


def _sums(matrix: np.ndarray, known: np.ndarray, vector: Variable, out: Variable) -> list[Factor]:
    """out = matrix × vector + known; what does not depend on the vector is known but for a small share.

    The factor has the length of the vector in its name, so that no run continues from messages of a shorter one.
    """
    length = int(vector.dimension or 1)
    if matrix.shape[1] < length:
        matrix = np.zeros((len(matrix), length))
    sure = ~matrix.any(axis=1)
    matrix[sure, 0] = 0 if not sure.all() else _SURE * np.abs(known) / np.sqrt(np.asarray(vector.prior.var())[0])
    name = f"Dot({vector.name} of {length}, {out.name})"
    if out.plate is not None and not known.any():
        return [Dot(matrix, vector, out, name=name)]
    between = Variable(f"{out.name} without what is known", Normal, len(matrix))
    return [Dot(matrix, vector, between, name=name), Sum(between, known, out=out)]
