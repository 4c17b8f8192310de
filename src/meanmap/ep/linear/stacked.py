"""Joint Gaussian beliefs at many nodes at once, where the likelihood is normal and factors are nested."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanmap.ep.linear.components import Components
from meanmap.ep.linear.family import Family, Observed
from meanmap.ep.linear.joint import inverse_root
from meanmap.ep.linear.nested import Nested
from meanmap.ep.linear.nesting import Nesting
from meanmap.ep.linear.predictor import Predictor, Prior
from meanmap.ep.linear.sites import Settled

__all__ = ["Stack", "Stacked"]


@dataclass(frozen=True, eq=False)
class Stack:
    """What beliefs at all nodes have in common: sums of rows over groups, with noise of standard deviation 1.

    The site of a row is its likelihood, and a node multiplies all sites by the precision of its noise.
    """

    predictor: Predictor
    nesting: Nesting
    components: Components
    family: Family
    observed: Observed

    @cached_property
    def sites(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and shifts at a standard deviation of 1."""
        return self.family.first_sites(self.observed, np.zeros(len(self.family.parameters)))

    @cached_property
    def sums(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Aᵀ W A and, as last columns, Aᵀ shifts: of each factor with what contains it, and of shared effects."""
        nesting, (weights, shifts) = self.nesting, self.sites
        own = np.column_stack([nesting.design * weights[:, None], shifts])
        gathered, parts, here = nesting.gathering @ own, [], 0
        for at, start in zip(nesting.factors, nesting.starts, strict=False):
            size, width = nesting.blocks[at].size, nesting.blocks[at].width
            parts.append(gathered[here : (here := here + size * width), start:].reshape(size, width, -1))
        first = nesting.starts[-1]
        return parts, nesting.design[:, first:].T @ own[:, first:]

    @cached_property
    def size(self) -> int:
        """Numbers that are computed for the evidence at each node, however many rows there are."""
        parts, corner = self.sums
        return max(corner.size, *(part.size * part.shape[1] for part in parts))

    @property
    def room(self) -> int:
        """Numbers that are stored for each node, with the gradient."""
        return max(self.predictor.rows, self.size)

    def at(self, phis: np.ndarray) -> "Stacked":
        """The beliefs at nodes (nodes, d)."""
        return Stacked.of(self, phis)


@dataclass(frozen=True, eq=False)
class Stacked:
    """The beliefs of `Nested` at several nodes; arrays have an axis of nodes before all others.

    Attributes
    ----------
    phis : (nodes, d) array
    covariances, precisions : tuples of (nodes, width, width) arrays
        Of the prior, block by block.
    inverses, halves, root : as in `Nested`
    means : (nodes, total) array
    log_normalisers : (nodes,) array
    """

    stack: Stack
    phis: np.ndarray
    covariances: tuple[np.ndarray, ...]
    precisions: tuple[np.ndarray, ...]
    inverses: list[np.ndarray]
    halves: list[np.ndarray]
    root: np.ndarray
    means: np.ndarray
    log_normalisers: np.ndarray

    @classmethod
    def of(cls, stack: Stack, phis: np.ndarray) -> "Stacked":
        """Raises `numpy.linalg.LinAlgError` if a precision is not positive definite."""
        nesting, (gathered, shared) = stack.nesting, stack.sums
        blocks, starts, count = nesting.blocks, nesting.starts, len(phis)
        fixed = stack.components.fixed
        means = [*(mean for mean, _ in fixed), *(np.zeros(sum(sets)) for sets in stack.components.sets)]
        covariances = (
            *(np.broadcast_to(law, (count, *law.shape)) for _, law in fixed),
            *stack.components.covariances(phis),
        )
        precisions = tuple(map(np.linalg.inv, covariances))
        scale = np.exp(-2 * stack.components.likelihood(phis)[:, 0])
        corner, here = scale[:, None, None] * shared, 0
        for at in nesting.shared:
            own = slice(here, here := here + blocks[at].width)
            corner[:, own, own] += precisions[at]
            corner[:, own, -1] += precisions[at] @ means[at]
        parts = [scale[:, None, None, None] * part for part in gathered]
        for at, part in zip(nesting.factors, parts, strict=True):
            width = blocks[at].width
            part[..., :width] += precisions[at][:, None]
            part[..., -1] += (precisions[at] @ means[at])[:, None]
        inverses, halves, owns, log_normaliser = [], [], [], np.zeros(count)
        for k, part in enumerate(parts):
            size, width = part.shape[1:3]
            after = starts[k + 1]
            inverse = inverse_root(part[..., :width].reshape(-1, width, width)).reshape(count, size, width, width)
            half = inverse @ part[..., width:]
            for j in range(k + 1, len(parts)):
                outer = half[..., starts[j] - after : starts[j + 1] - after]
                left = np.swapaxes(outer, -1, -2) @ half[..., starts[j] - after :]
                summed = nesting.lying[k, j] @ np.moveaxis(left, 1, 0).reshape(size, -1)
                parts[j] -= np.moveaxis(summed.reshape(-1, count, *parts[j].shape[2:]), 1, 0)
            flat = half[..., starts[-1] - after :].reshape(count, size * width, -1)
            corner -= np.swapaxes(flat[..., :-1], 1, 2) @ flat
            log_normaliser += np.log(np.einsum("ngaa->nga", inverse)).sum((1, 2)) + (half[..., -1] ** 2).sum((1, 2)) / 2
            inverses.append(inverse)
            halves.append(half[..., :-1])
            owns.append(half[..., -1:])
        root = np.linalg.cholesky(corner[..., :-1])
        rest = np.linalg.solve(root, corner[..., -1:])
        log_normaliser += (rest**2).sum((1, 2)) / 2 - np.log(np.einsum("naa->na", root)).sum(1)
        effects = [*owns, np.linalg.solve(np.swapaxes(root, 1, 2), rest)]
        for k in range(len(halves) - 1, -1, -1):
            half, after, own = halves[k], starts[k + 1], owns[k]
            for j in range(k + 1, len(halves)):
                part = half[..., starts[j] - after : starts[j + 1] - after]
                own = own - part @ effects[j][:, nesting.parents[k, j]]
            own = own - half[..., starts[-1] - after :] @ effects[-1][:, None]
            effects[k] = np.swapaxes(inverses[k], -1, -2) @ own
        found = dict(zip(nesting.factors, effects, strict=False))
        here = 0
        for at in nesting.shared:
            found[at] = effects[-1][:, here : (here := here + blocks[at].width)]
        mean = np.concatenate([found[at].reshape(count, -1) for at in range(len(blocks))], axis=1)
        return cls(stack, phis, covariances, precisions, inverses, halves, root, mean, log_normaliser)

    @cached_property
    def predictors(self) -> np.ndarray:
        """Means of the predictors, (nodes, rows)."""
        total, start = np.zeros((len(self.phis), self.stack.predictor.rows)), 0
        for block in self.stack.predictor.blocks:
            effects = self.means[:, start : (start := start + block.total)].reshape(-1, block.size, block.width)
            if block.size == 1:
                total += effects[:, 0] @ block.design.T
            else:
                for column, own in zip(block.design.T, np.moveaxis(effects, 2, 0), strict=True):
                    total += column * own[:, block.index]
        return total

    @cached_property
    def log_evidences(self) -> np.ndarray:
        """Of each node."""
        stack, logs = self.stack, self.stack.components.likelihood(self.phis)[:, 0]
        weights, shifts = stack.sites
        square = float(((stack.observed.response - stack.observed.offset) * shifts).sum())
        gains = -np.exp(-2 * logs) * square / 2 - weights.sum() * (logs + np.log(2 * np.pi) / 2)
        found, fixed = self.log_normalisers + gains, stack.components.fixed
        for at, precision in enumerate(self.precisions):
            size = stack.predictor.blocks[at].size
            found = found + size * np.linalg.slogdet(precision)[1] / 2
            if at < len(fixed):
                found = found - size * np.einsum("a,nab,b->n", fixed[at][0], precision, fixed[at][0]) / 2
        return found

    def gradients(self) -> np.ndarray:
        """Of the log evidences, (nodes, d); see `Problem.gradient`."""
        stack, blocks, by = self.stack, self.stack.predictor.blocks, []
        totals, start = self._total_covariances(), sum(block.total for block in blocks[: len(stack.components.fixed)])
        for at in range(len(stack.components.fixed), len(blocks)):
            block, precision = blocks[at], self.precisions[at]
            effects = self.means[:, start : (start := start + block.total)].reshape(-1, block.size, block.width)
            second = np.swapaxes(effects, 1, 2) @ effects + totals[at]
            by.append(precision @ (second - block.size * self.covariances[at]) @ precision / 2)
        gradients = stack.components.chain(self.phis, by)
        logs, (weights, _) = stack.components.likelihood(self.phis), stack.sites
        left = stack.observed.response - stack.observed.offset - self.predictors
        slopes = np.exp(-2 * logs[:, 0]) * (left**2 @ weights) - weights.sum()
        traces = sum(np.einsum("nab,nba->n", q, totals[at]) for at, q in enumerate(self.precisions))
        gradients[:, -1] = slopes + stack.predictor.total - traces
        return gradients

    def _total_covariances(self) -> dict[int, np.ndarray]:
        """Covariances of the effects of each block, summed over its groups, (nodes, width, width)."""
        nesting, count = self.stack.nesting, len(self.phis)
        inverse, found, here = np.linalg.inv(self.root), {}, 0
        for at in nesting.shared:
            own = inverse[:, :, here : (here := here + nesting.blocks[at].width)]
            found[at] = np.swapaxes(own, 1, 2) @ own
        for k, at in enumerate(nesting.factors):
            size, width = nesting.blocks[at].size, nesting.blocks[at].width
            way = [np.arange(size), *(nesting.parents[k, j] for j in range(k + 1, len(nesting.factors)))]
            left = np.zeros((count, size, nesting.design.shape[1] - nesting.starts[k], width))
            left[:, :, :width] = np.eye(width)
            total = np.zeros((count, width, width))
            for groups, root, half in zip(way, self.inverses[k:], self.halves[k:], strict=True):
                own = root[:, groups] @ left[:, :, : root.shape[2]]
                left = left[:, :, root.shape[2] :] - np.swapaxes(half[:, groups], -1, -2) @ own
                total += np.einsum("ngab,ngac->nbc", own, own)
            own = inverse[:, None] @ left
            found[at] = total + np.einsum("ngab,ngac->nbc", own, own)
        return found

    def settled(self, node: int) -> Settled:
        """The belief at one node."""
        stack, phi = self.stack, self.phis[node]
        fixed, parameters = stack.components.fixed, stack.components.likelihood(phi)
        means = (*(mean for mean, _ in fixed), *(np.zeros(sum(sets)) for sets in stack.components.sets))
        prior = Prior(means, tuple(covariance[node] for covariance in self.covariances))
        # Copies: a view would keep those of all nodes.
        inverses, halves = ([each[node].copy() for each in parts] for parts in (self.inverses, self.halves))
        log_normaliser, order = float(self.log_normalisers[node]), stack.nesting.order
        told = stack.predictor, prior, order, inverses[0], self.means[node].copy(), log_normaliser
        joint = Nested(*told, stack.nesting, inverses, halves, self.root[node].copy())
        scale = np.exp(-2 * parameters[0])
        weights, shifts = (scale * each for each in stack.sites)
        gains = stack.family.weighted(stack.observed, np.zeros(len(weights)), parameters)
        evidence = float(self.log_evidences[node])
        return Settled(stack.predictor.at(joint.mean), weights, shifts, joint, evidence, gains, 1, 0.0, True)
