"""One vector in place of separate unknowns with normal priors that linear factors join round loops."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap.ep.factor import Factor, with_variables
from meanmap.ep.factors.gaussian import SURE, Dot, Sum
from meanmap.ep.graph import FactorGraph
from meanmap.ep.inference.block import Block, NotMeasured, System
from meanmap.ep.inference.solved import beliefs_of, covariances_of, log_integral, mode_of, rows_of
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
        Of the vector, whose prior is what priors and linear factors say about it, of the sums that other factors take,
        and of all else as it was.
    given : FactorGraph
        As it was written.
    name : str
        Of the vector.
    block : Block
        The unknowns in linear factors, and these.
    system : System
        All of them by the numbers of the vector, which are those that nothing defines.
    log_constant : float
        The log evidence of linear factors by themselves, which the model with the vector leaves out.
    """

    model: FactorGraph
    given: FactorGraph
    name: str
    block: Block
    system: System
    log_constant: float

    @classmethod
    def of(cls, given: FactorGraph) -> "Joined | None":
        """The model with one vector; None where its beliefs are joint as they are, or cannot be made so."""
        whole = Block.of(given.variables, given.factors)
        if whole.is_exact or whole.curved or whole.approximate or not whole.has_loops():
            return None
        block = Block.of({name: given.variables[name] for name in whole.joined}, tuple(whole.linear))
        met = {a.name: a.variable for factor in whole.others for a in factor.arguments if not a.known}
        taken = [met[name] for name in block.first if name in met]
        if any(variable.family is not Normal for variable in taken):
            return None
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                system = block.system({})
                rows = sum(block.sizes[variable.name] for variable in taken)
                if len(system.free) > _LENGTH or len(system.free) * rows > _ENTRIES:
                    return None
                prior, log_constant = _prior(block, system)
            except (NotMeasured, np.linalg.LinAlgError):
                return None
        name = ", ".join(name for name in block.first if np.isin(block.range_of(name), system.free).any())
        vector = Variable(f"vector of {name}" if name in met else name or "nothing", prior)
        factors, taken_anew = [], {}
        for variable in taken:
            places = block.range_of(variable.name)
            new = Variable(variable.name, Normal, variable.plate)
            factors += _sums(system.spread[places].toarray(), system.offset[places], vector, new)
            taken_anew[variable.name] = new
        factors += [with_variables(factor, taken_anew) for factor in whole.others]
        return cls(FactorGraph(*factors), given, vector.name, block, system, log_constant)

    def apart(self, found: dict[str, Family]) -> dict[str, Family]:
        """Beliefs about all unknowns as they were named, by those of the vector."""
        joint: Any = found[self.name]
        covariance = np.linalg.inv(np.asarray(joint.precision))
        mean = covariance @ np.asarray(joint.precision_mean)
        length = len(self.system.free)
        middle = self.system.spread @ mean[:length] + self.system.offset
        own = beliefs_of(
            self.block,
            self.system,
            middle,
            lambda spread, size: covariances_of(spread, covariance[:length, :length], size),
        )
        return {name: own[name] if name in own else found[name] for name in self.given.variables}


def _prior(block: Block, system: System) -> tuple[MultivariateNormal, float]:
    """What priors and linear factors say about the numbers that nothing defines, and how probable their data are.

    Where everything is defined there is one number of which nothing depends.
    """
    mean, _, log_determinant = mode_of(block, system)
    middle = system.spread @ mean + system.offset
    log_constant = log_integral(block, system, middle, log_determinant)
    if not (np.isfinite(middle).all() and np.isfinite(log_constant)):
        raise NotMeasured
    if not len(mean):
        return MultivariateNormal.standard(1), log_constant
    rows, _ = rows_of(block, system)
    precision = (rows.T @ rows).toarray()
    return MultivariateNormal.from_natural(precision @ mean, (precision + precision.T) / 2), log_constant


def _sums(matrix: np.ndarray, known: np.ndarray, vector: Variable, out: Variable) -> list[Factor]:
    """out = matrix × vector + known; what does not depend on the vector is known but for a millionth.

    The factor has the length of the vector in its name, so that no run continues from messages of a shorter one.
    """
    length = int(vector.dimension or 1)
    if matrix.shape[1] < length:
        matrix = np.zeros((len(matrix), length))
    sure = ~matrix.any(axis=1)
    matrix[sure, 0] = 0 if not sure.all() else SURE * np.abs(known) / np.sqrt(np.asarray(vector.prior.var())[0])
    name = f"Dot({vector.name} of {length}, {out.name})"
    if out.plate is not None and not known.any():
        return [Dot(matrix, vector, out, name=name)]
    between = Variable(f"{out.name} without what is known", Normal, len(matrix))
    return [Dot(matrix, vector, between, name=name), Sum(between, known, out=out)]
