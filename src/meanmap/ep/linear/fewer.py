"""Few nodes in place of many: some of them, with shares that leave distributions of effects and rows as they are."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from meanmap.ep.linear.block import Block
from meanmap.ep.linear.components import Components
from meanmap.ep.linear.joint import Joint
from meanmap.ep.linear.mixtures import Normals
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.problem import Problem

__all__ = ["fewer"]

# Predictors over all nodes above which fewer nodes are sought: 2 million take about a second of `predict`.
_MET = 2_000_000
# How many rows are examined, every other one to check the choice by the others.
_ROWS = 120
# Where distribution functions are compared, and how far interval ends may move, in standard deviations.
_LEVELS, _APART = (0.005, 0.025, 0.05, 0.2, 0.5, 0.8, 0.95, 0.975, 0.995), 0.01
# Which singular values are matched, relative to the largest one.
_SMALLEST = (1e-2, 1e-3, 1e-4, 1e-5)


def fewer(
    problem: Problem, phis: np.ndarray, shares: np.ndarray, joints: Callable[[], Iterator[Joint]]
) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes stay, the first always, and their shares.

    Means, variances and distribution functions of effects and rows are sums over nodes, linear in the shares. Shares
    that are not negative and match the leading singular vectors of these sums need no more nodes than there are vectors
    (Tchakaloff). Interval ends of other rows must then be the same.
    """
    every = np.arange(len(shares))
    if problem.predictor.rows * len(shares) < _MET:
        return every, shares
    law = _examined(problem.predictor, problem.components, phis, shares, joints())
    ends = np.stack([law.quantiles(p) for p in _LEVELS], axis=1)
    middle, sd = law.moments
    own = np.arange(len(sd)) % 2 == 0
    functions = [((law.means - middle[:, None]) / sd[:, None])[own], ((law.sds / sd[:, None]) ** 2)[own]]
    functions += [law.below((end[:, None] - law.means) / law.sds)[own] for end in ends.T]
    away = phis - shares @ phis
    away = away / np.sqrt(shares @ away**2)
    squares = (away[:, :, None] * away[:, None]).reshape(len(phis), -1)
    functions += [functions[0] ** 2, away.T, squares.T]
    if problem.family.link == "log":
        # Second moments of responses.
        logs = 2 * (law.means + law.sds**2)[own]
        functions.append(np.exp(logs - logs.max(1, keepdims=True)))
    matrix = np.concatenate(functions)
    matrix -= (matrix @ shares)[:, None]
    _, sizes, vectors = np.linalg.svd(matrix * np.sqrt(shares), full_matrices=False)
    for smallest in _SMALLEST:
        kept, masses = _matched(vectors[sizes > smallest * sizes[0]] / np.sqrt(shares), shares)
        if 3 * len(kept) > 2 * len(shares):
            break
        few = Normals(law.means[:, kept], law.sds[:, kept], masses)
        moved = np.stack([few.quantiles(p) for p in _LEVELS], axis=1) - ends
        if (np.abs(moved) < _APART * sd[:, None]).all():
            return kept, masses
    return every, shares


def _matched(functions: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, among them the first, and shares with the same means of these functions and a sum of 1."""
    from scipy.optimize import nnls

    functions = np.concatenate([functions, np.full((1, len(shares)), len(functions))])
    masses = np.append(shares[0], nnls(functions[:, 1:], functions[:, 1:] @ shares[1:])[0])
    kept = np.flatnonzero(masses)
    return kept, masses[kept] / masses.sum()


def _examined(
    predictor: Predictor, components: Components, phis: np.ndarray, shares: np.ndarray, joints: Iterator[Joint]
) -> Normals:
    """Of some rows: in their own groups, in new ones; effects that all rows share, and effects of their groups."""
    rows, first = np.unique(np.linspace(0, predictor.rows - 1, _ROWS).astype(int)), len(components.fixed)
    blocks = [Block(block.index[rows], block.design[rows], block.size) for block in predictor.blocks]
    new = [block if at < first else _instead(block, 0 * block.design) for at, block in enumerate(blocks)]
    parts = [blocks, new]
    for at, block in enumerate(blocks):
        for column in np.eye(block.width):
            single = [_instead(each, 0 * each.design) for each in blocks]
            single[at] = _instead(block, np.tile(column, (len(rows), 1)))
            parts.append(single)
    asked = Predictor(tuple(_joined(each) for each in zip(*parts, strict=True)))
    added, laws = np.zeros((len(phis), asked.rows)), components.covariances(phis)
    for block, law in zip(blocks[first:], laws, strict=True):
        added[:, len(rows) : 2 * len(rows)] += np.einsum("na,kab,nb->kn", block.design, law, block.design)
    found = [(asked.at(joint.mean), joint.variances(asked)) for joint in joints]
    means, variances = (np.stack(each) for each in zip(*found, strict=True))
    return Normals(means.T, np.sqrt(np.maximum(variances + added, np.finfo(float).tiny)).T, shares)


def _instead(block: Block, design: np.ndarray) -> Block:
    return Block(block.index, design, block.size)


def _joined(blocks: Sequence[Block]) -> Block:
    """Rows one after the other, of the same effects."""
    index, design = (np.concatenate(each) for each in zip(*((b.index, b.design) for b in blocks), strict=True))
    return Block(index, design, blocks[0].size)
