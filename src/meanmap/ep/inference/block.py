"""Gaussian unknowns as one long vector, and the factors between them as one sparse precision matrix."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from meanmap.ep.factor import Factor
from meanmap.ep.factors.blackbox import BlackBoxFactor
from meanmap.ep.factors.gaussian import Dot, Sum
from meanmap.ep.factors.precision import GaussianPrecision
from meanmap.ep.inference.curved import curvatures, has_slopes, slopes
from meanmap.ep.inference.definitions import Equations, NotMeasured, definitions
from meanmap.ep.variables import Variable
from meanmap.families import MultivariateNormal, Normal

__all__ = ["Beliefs", "Block", "NotMeasured", "Sent", "System", "computed_by", "diagonal", "is_cyclic"]

# Up to this many unknowns the joint covariance is a dense matrix; beyond, only some of its entries are computed.
_DENSE, _MOST, _ENTRIES, _SOLVED = 1500, 30_000, 3_000_000, 64
# Rows of the dense inverse that are multiplied at once.
_ROWS = 4096

Beliefs = dict[str, Any]
Sent = dict[str, tuple[Any, ...]]


class System(NamedTuple):
    """All places are spread × (what nothing defines) + offset; rows × places + known is noise.

    Attributes
    ----------
    spread : sparse (total, free)
    offset : (total,) array
    rows : sparse (noisy, total)
    known, weights : (noisy,) arrays
        What is known of the sums, and the precisions of their noise.
    free : array
        The places that nothing defines.
    log_volume : float
    repeated : tuple of str
        As in `Definitions`.
    """

    spread: Any
    offset: np.ndarray
    rows: Any
    known: np.ndarray
    weights: np.ndarray
    free: np.ndarray
    log_volume: float
    repeated: tuple[str, ...]


@dataclass
class Block:
    """Places of all Gaussian unknowns in one long vector, and the linear factors between them."""

    variables: dict[str, Variable]
    first: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    linear: list[Factor] = field(default_factory=list)
    # Others that join several of the unknowns.
    curved: list[Any] = field(default_factory=list)
    others: list[Factor] = field(default_factory=list)
    approximate: bool = False

    @classmethod
    def of(cls, variables: dict[str, Variable], factors: tuple[Factor, ...]) -> "Block":
        """The unknowns and the factors of a model."""
        block, total = cls(variables), 0
        for name, variable in variables.items():
            if variable.family in (Normal, MultivariateNormal):
                block.first[name], block.sizes[name] = total, (variable.plate or 1) * (variable.dimension or 1)
                total += block.sizes[name]
        for factor in factors:
            unknown = [a for a in factor.arguments if not a.known and a.name in block.first]
            between = isinstance(factor, GaussianPrecision) and len(unknown) == 2
            if isinstance(factor, Dot | Sum) or between:
                block.linear.append(factor)
            else:
                (block.curved if len(unknown) > 1 else block.others).append(factor)
            block.approximate |= between
        return block

    @property
    def total(self) -> int:
        """The number of unknown numbers."""
        return sum(self.sizes.values())

    @property
    def is_exact(self) -> bool:
        """Whether there is nothing but linear factors of known noise."""
        return not (self.others or self.curved or self.approximate)

    @property
    def joined(self) -> list[str]:
        """Those that factors join, in the order of the model."""
        met = {a.name for factor in (*self.linear, *self.curved) for a in factor.arguments if not a.known}
        return [name for name in self.first if name in met]

    @property
    def named(self) -> list[str]:
        """Those of them that are not computed from others."""
        computed = {
            computed_by(factor).name for factor in (*self.linear, *self.curved) if computed_by(factor) is not None
        }
        return [name for name in self.joined if self.variables[name].prior is not None or name not in computed]

    def places(self, argument: Any, plate: int | None) -> np.ndarray:
        """Where the members of an argument are, one for each member of a factor; of vectors, their first numbers."""
        found = self.first[argument.name] + argument.index * (argument.variable.dimension or 1)
        return np.broadcast_to(found, (plate or 1,)) if len(found) == 1 else found

    def range_of(self, name: str) -> np.ndarray:
        """Where all numbers of an unknown are."""
        return self.first[name] + np.arange(self.sizes[name])

    def has_loops(self) -> bool:
        """Whether some unknowns are joined in two ways: more edges than a forest has."""
        joining = [*self.linear, *self.curved]
        if not joining or (len(joining) == 1 and isinstance(joining[0], Dot)):
            return False
        starts, ends, node = [], [], self.total
        for factor in joining:
            unknown = [a for a in factor.arguments if not a.known and a.name in self.first]
            count = 1 if isinstance(factor, Dot) else factor.plate or 1
            for argument in unknown:
                whole = isinstance(factor, Dot) and argument.variable.family is MultivariateNormal
                places = np.array([self.first[argument.name]]) if whole else self.places(argument, factor.plate)
                starts.append(node + (np.arange(count) if len(places) == count else np.zeros(len(places), int)))
                ends.append(places)
            node += count
        if not starts:
            return False
        return is_cyclic(np.concatenate(starts), np.concatenate(ends), node)

    def joint(self, messages: dict[str, tuple[Any, ...]], beliefs: Beliefs) -> tuple[Any, Any, np.ndarray]:
        """All places by those that nothing defines, the precision of these, and which they are."""
        system = self.system(beliefs)
        spread, rows = system.spread, system.rows
        own = sparse.diags(self._on_places(messages)) + self._on_vectors(messages)
        for factor in self.curved:
            if not self._defines(factor):
                own = own + self._curvature(factor, messages, beliefs)
        web = own + rows.T @ sparse.diags(system.weights) @ rows
        return spread, sparse.csc_matrix(spread.T @ web @ spread), system.free

    def variances(self, messages: dict[str, tuple[Any, ...]], beliefs: Beliefs) -> dict[str, tuple[np.ndarray, Any]]:
        """By name, which entries were solved for, and their variances; of a vector its covariance."""
        spread, precision, _ = self.joint(messages, beliefs)
        size = len(precision.indptr) - 1
        if size > _MOST or precision.nnz > _ENTRIES:
            raise NotMeasured
        if size <= _DENSE:
            dense = precision.toarray()
            try:
                np.linalg.cholesky(dense)
            except np.linalg.LinAlgError:
                raise NotMeasured from None
            inverse = np.linalg.inv(dense)

            def between(chosen: np.ndarray) -> np.ndarray:
                return spread[chosen] @ (spread[chosen] @ inverse).T

            def alone(chosen: np.ndarray) -> np.ndarray:
                parts = (spread[part] for part in np.array_split(chosen, 1 + len(chosen) // _ROWS))
                return np.concatenate([np.asarray(part.multiply(part @ inverse).sum(1)).ravel() for part in parts])
        else:
            from scipy.sparse.linalg import splu

            solved = splu(precision, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

            def between(chosen: np.ndarray) -> np.ndarray:
                return spread[chosen] @ solved.solve(spread[chosen].T.toarray())

            def alone(chosen: np.ndarray) -> np.ndarray:
                return np.diag(between(chosen))

        found: dict[str, tuple[np.ndarray, Any]] = {}
        for name in self.named:
            chosen = np.arange(self.sizes[name])
            if self.variables[name].family is MultivariateNormal:
                if self.variables[name].plate is None:
                    found[name] = chosen, between(self.first[name] + chosen)
            else:
                if size > _DENSE and len(chosen) > _SOLVED:
                    chosen = np.unique(np.linspace(0, len(chosen) - 1, _SOLVED).astype(int))
                found[name] = chosen, alone(self.first[name] + chosen)
        if not all(np.isfinite(values).all() and (diagonal(values) > 0).all() for _, values in found.values()):
            raise NotMeasured
        return found

    def system(self, beliefs: Beliefs) -> System:
        """What linear factors say; of functions of several unknowns their slopes at the beliefs."""
        said, rows, known, weights = [], [], [], []
        for factor in self.linear:
            if isinstance(factor, Dot):
                matrix, w, z = factor.arguments
                targets = self.places(z, factor.plate)
                columns = self.first[w.name] + np.arange(matrix.values.shape[1])
                onto = _placed(columns, np.ones(len(columns)), len(columns), self.total)
                of = _placed(targets, np.ones(len(targets)), len(targets), self.total)
                product = sparse.csr_matrix(matrix.values) @ onto
                said.append(Equations(factor.name, of - product, np.zeros(len(targets)), targets))
                continue
            parts, constant, weight = self._sum(factor, beliefs)
            count = factor.plate or 1
            terms = sum(_placed(at, np.full(count, a), count, self.total) for at, a in parts)
            if weight is None:
                computed = None if factor.arguments[0].known else parts[0][0]
                said.append(Equations(factor.name, terms, constant, computed))
            else:
                known.append(constant)
                rows.append(terms)
                weights.append(np.broadcast_to(weight, (count,)))
        for factor in self.curved:
            if self._defines(factor):
                targets, count = self.places(factor.arguments[-1], factor.plate), factor.plate or 1
                inputs = [a for a in factor.arguments[:-1] if not a.known and a.name in self.first]
                terms = sum(
                    _placed(self.places(argument, factor.plate) + at, slope[:, at], count, self.total)
                    for argument, slope in zip(inputs, slopes(factor, beliefs), strict=True)
                    for at in range(slope.shape[1])
                )
                of = _placed(targets, np.ones(count), count, self.total)
                said.append(Equations(factor.name, of - terms, np.zeros(count), targets))
        found = definitions(said, self.total, self._deviations)
        stacked = sparse.vstack(rows).tocsr() if rows else sparse.csr_matrix((0, self.total))
        constants, precisions = (np.concatenate(each) if each else np.zeros(0) for each in (known, weights))
        return System(
            found.spread, found.offset, stacked, constants, precisions, found.free, found.log_volume, found.repeated
        )

    def _deviations(self) -> np.ndarray:
        """Of all places by their priors; 0 where there is none."""
        found = np.zeros(self.total)
        for name, start in self.first.items():
            prior: Any = self.variables[name].prior
            if prior is not None:
                own = np.asarray(prior.var())
                found[start : start + self.sizes[name]] = np.sqrt(np.resize(np.ravel(own), self.sizes[name]))
        return found

    def _defines(self, factor: Factor) -> bool:
        """Whether a function says what one of the unknowns is."""
        if not has_slopes(factor):
            raise NotMeasured
        return bool(factor.outputs) and factor.arguments[-1].name in self.first

    def _curvature(self, factor: BlackBoxFactor, messages: dict[str, tuple[Any, ...]], beliefs: Beliefs) -> Any:
        """What a function adds to the joint precision."""
        found = curvatures(factor, beliefs, messages[factor.name])
        unknown = [a for a in factor.arguments if not a.known and a.name in self.first]
        places = np.stack(
            [self.places(a, factor.plate) + at for a in unknown for at in range(a.variable.dimension or 1)], axis=1
        )
        if not np.isfinite(found).all():
            raise NotMeasured
        rows, columns = np.broadcast_arrays(places[:, :, None], places[:, None, :])
        return sparse.csr_matrix((found.ravel(), (rows.ravel(), columns.ravel())), shape=(self.total, self.total))

    def _sum(self, factor: Any, beliefs: Beliefs) -> tuple[list[tuple[np.ndarray, float]], np.ndarray, Any]:
        """Places and weights of the unknowns that add up with known numbers to noise, or to zero; the sum of the known
        ones, and the precision of the noise.
        """
        if isinstance(factor, GaussianPrecision):
            mean, x, precision = factor.arguments
            weight = np.asarray(beliefs[precision.name].mean())
            weight = weight if weight.ndim == 0 else weight[precision.index]
            parts = [(self.places(x, factor.plate), 1.0), (self.places(mean, factor.plate), -1.0)]
            return parts, np.zeros(factor.plate or 1), weight
        out, *terms = factor.arguments
        noise = terms.pop() if factor.has_noise else None
        signed = [(out, 1.0), *((term, -float(a)) for term, a in zip(terms, factor.weights, strict=True))]
        unknown = [(self.places(each, factor.plate), a) for each, a in signed if not each.known]
        known = sum((a * each.values for each, a in signed if each.known), start=np.zeros(factor.plate or 1))
        return unknown, np.broadcast_to(np.ravel(known), (factor.plate or 1,)), None if noise is None else noise.values

    def _on_places(self, messages: dict[str, tuple[Any, ...]]) -> np.ndarray:
        """Precisions of Normals by themselves: priors, and what other factors sent last."""
        alone = np.zeros(self.total)
        for name, start in self.first.items():
            variable = self.variables[name]
            if variable.family is Normal and variable.prior is not None:
                alone[start : start + self.sizes[name]] += np.ravel(variable.prior.precision)
        for factor in self.others:
            for argument, message in zip(factor.arguments, messages[factor.name], strict=True):
                if isinstance(message, Normal):
                    np.add.at(alone, self.places(argument, factor.plate), np.ravel(np.asarray(message.precision)))
        return alone

    def _on_vectors(self, messages: dict[str, tuple[Any, ...]]) -> Any:
        """The precision of each vector by its prior and by factors that are not linear, as blocks of one matrix."""
        blocks = sparse.csr_matrix((self.total, self.total))
        for name, start in self.first.items():
            variable = self.variables[name]
            if variable.family is MultivariateNormal:
                own = [] if variable.prior is None else [np.asarray(variable.prior.precision)]
                own += [
                    np.asarray(message.precision)
                    for factor in self.others
                    for argument, message in zip(factor.arguments, messages[factor.name], strict=True)
                    if isinstance(message, MultivariateNormal) and argument.name == name
                ]
                size, length = variable.plate or 1, int(variable.dimension or 1)
                if any(each.ndim > 2 and len(each) != size for each in own):
                    raise NotMeasured
                total = np.zeros((size, length, length))
                for each in own:
                    total = total + each
                at = (start + np.arange(size * length)).reshape(size, length)
                rows, columns = np.broadcast_arrays(at[:, :, None], at[:, None, :])
                blocks = blocks + sparse.csr_matrix(
                    (total.ravel(), (rows.ravel(), columns.ravel())), shape=blocks.shape
                )
        return blocks


def is_cyclic(factors: np.ndarray, unknowns: np.ndarray, nodes: int) -> bool:
    """Whether edges between factors and unknowns, both numbered among all nodes, are more than a forest has."""
    from scipy.sparse.csgraph import connected_components  # takes a tenth of a second, which trees need not wait for

    web = sparse.coo_matrix((np.ones(len(factors)), (factors, unknowns)), shape=(nodes, nodes))
    parts, _ = connected_components(web, directed=False)
    return len(factors) > nodes - int(parts)


def computed_by(factor: Factor) -> Any:
    """The unknown that a factor without noise computes from others; None if there is none."""
    if isinstance(factor, Dot):
        return factor.arguments[2]
    if isinstance(factor, Sum):
        out = factor.arguments[0]
        return None if factor.has_noise or out.known else out
    return factor.arguments[-1] if getattr(factor, "outputs", 0) else None


def _placed(columns: np.ndarray, values: np.ndarray, count: int, total: int) -> Any:
    """One entry a row."""
    return sparse.csr_matrix((values, (np.arange(count), columns)), shape=(count, total))


def diagonal(found: np.ndarray) -> np.ndarray:
    """The variances, of a covariance or as they are."""
    return np.diagonal(found) if found.ndim == 2 else found
