"""One vector in place of separate unknowns with normal priors that linear factors join round loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from meanmap.ep.factor import Factor, with_variables
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block, NotMeasured, System
from meanmap.ep.inference.solved import belief_of, covariances_of
from meanmap.ep.variables import Variable
from meanmap.families import Family, MultivariateNormal, Normal

__all__ = ["Joined"]

# Vectors up to this length, and matrices of their sums up to this many numbers: beyond, beliefs stay separate.
_LENGTH, _ENTRIES = 1500, 20_000_000


@dataclass(frozen=True)
class Joined:
    """A model in which all unknowns of its linear predictors are one vector, w, and each sum of them is one row of X w.

    Attributes
    ----------
    model : FactorGraph
        Of the vector, of the sums that other factors take, and of all else as it was.
    given : FactorGraph
        As it was written.
    name : str
        Of the vector.
    block : Block
    system : System
        All sums by the numbers of the vector.
    """

    model: FactorGraph
    given: FactorGraph
    name: str
    block: Block
    system: System

    @classmethod
    def of(cls, given: FactorGraph) -> "Joined | None":
        """The model with one vector; None where its beliefs are joint as they are, or cannot be made so."""
        block = Block.of(given.variables, given.factors)
        length = sum(block.sizes[name] for name in block.named)
        if block.is_exact or block.curved or block.approximate or length > _LENGTH or not block.has_loops():
            return None
        try:
            system = block.system({})
        except NotMeasured:
            return None
        free = [name for name in block.joined if np.isin(block.range_of(name), system.free).all()]
        computed = [name for name in block.joined if name not in free]
        met = {a.name: a.variable for factor in block.others for a in factor.arguments if not a.known}
        taken = [met[name] for name in block.joined if name in met]
        exact = [f for f in block.linear if isinstance(f, Sum) and f.arguments[0].known and not f.has_noise]
        if (
            exact
            or any(np.isin(block.range_of(name), system.free).any() for name in computed)
            or any(given.variables[name].prior is None for name in free)
            or any(given.variables[name].prior is not None for name in computed)
            or any(variable.family is not Normal or variable.plate is None for variable in taken)
        ):
            return None
        columns = np.concatenate([block.range_of(name) for name in free])
        chosen = np.searchsorted(system.free, columns)
        rows = len(system.known) + sum(block.sizes[variable.name] for variable in taken)
        if len(columns) * rows > _ENTRIES:
            return None
        name = ", ".join(free)
        prior = _prior([given.variables[each] for each in free])
        vector, factors = Variable(name, prior), []
        taken_anew = {}
        for variable in taken:
            places = block.range_of(variable.name)
            matrix, known = system.spread[places][:, chosen].toarray(), system.offset[places]
            new = Variable(variable.name, Normal, len(places))
            factors += _sums(matrix, known, vector, new)
            taken_anew[variable.name] = new
        if len(system.known):
            matrix = (system.rows @ system.spread[:, chosen]).toarray()
            known = system.known + system.rows @ system.offset
            noisy = Variable(f"sums of {name}", Normal, len(known))
            factors += [_rows(matrix, vector, noisy), Sum(noisy, out=-known, precision=system.weights)]
        factors += [with_variables(factor, taken_anew) for factor in block.others]
        system = system._replace(spread=system.spread[:, chosen])
        return cls(FactorGraph(*factors), given, name, block, system)

    def apart(self, found: dict[str, Family]) -> dict[str, Family]:
        """Beliefs about all unknowns as they were named, by those of the vector."""
        joint: Any = found[self.name]
        precision = np.asarray(joint.precision)
        covariance = np.linalg.inv(precision)
        mean = covariance @ np.asarray(joint.precision_mean)
        beliefs = {}
        for name, variable in self.given.variables.items():
            if name not in self.block.joined:
                beliefs[name] = found[name]
                continue
            places = self.block.range_of(name)
            spread = self.system.spread[places]
            middle = spread @ mean + self.system.offset[places]
            beliefs[name] = belief_of(variable, middle, covariances_of(spread, covariance, variable.dimension or 1))
        return beliefs


def _rows(matrix: np.ndarray, vector: Variable, out: Variable) -> Dot:
    """out = matrix × vector; a run does not continue from messages of a shorter vector, which have another name."""
    return Dot(matrix, vector, out, name=f"Dot({vector.name} of {vector.dimension}, {out.name})")


def _sums(matrix: np.ndarray, known: np.ndarray, vector: Variable, out: Variable) -> list[Factor]:
    """out = matrix × vector + known."""
    if not known.any():
        return [_rows(matrix, vector, out)]
    between = Variable(f"{out.name} without what is known", Normal, out.plate)
    return [_rows(matrix, vector, between), Sum(between, known, out=out)]


def _prior(variables: list[Variable]) -> MultivariateNormal:
    """Of independent unknowns, side by side."""
    means, blocks = [], []
    for variable in variables:
        prior = variable.prior
        means.append(np.ravel(np.asarray(prior.mean())))
        if isinstance(prior, MultivariateNormal):
            covariance: Any = prior.cov()
            blocks += [covariance] if covariance.ndim == 2 else list(covariance)
        else:
            blocks.append(np.diag(np.ravel(np.asarray(prior.var()))))
    covariances: Any = linalg.block_diag(*blocks)
    return MultivariateNormal(np.concatenate(means), covariances)
