"""Forests of cliques: every scope has a home, what a variable's cliques share hangs together, sizes add up."""

import numpy as np
import pytest

from meanmap.graphs.elimination import CliqueForest


@pytest.mark.parametrize("seed", range(20))
def test_cliques_hold_all_scopes_and_variables_hang_together(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    cardinalities = rng.integers(2, 5, n)
    scopes = [
        tuple(rng.permutation(n)[: rng.integers(1, min(n, 4) + 1)].tolist()) for _ in range(int(rng.integers(20)))
    ]
    forest = CliqueForest.of(cardinalities, scopes)
    cliques = [set(clique) for clique in forest.cliques]
    assert all(any(set(scope) <= clique for clique in cliques) for scope in scopes)
    assert set.union(*cliques) == set(range(n))
    assert not any(a < b for a in cliques for b in cliques)
    assert forest.size == pytest.approx(sum(np.prod(cardinalities[list(clique)]) for clique in forest.cliques))
    for c, up in enumerate(forest.parent):
        assert up == -1 or up > c
    for i in range(n):  # one clique on top: from all others of this variable the way to it leads through them
        tops = [c for c, up in enumerate(forest.parent) if i in cliques[c] and (up < 0 or i not in cliques[up])]
        assert len(tops) == 1


def test_a_grid_takes_hardly_more_variables_than_it_is_wide():
    side = 8
    edges = [(i, i + 1) for i in range(side**2) if (i + 1) % side] + [(i, i + side) for i in range(side**2 - side)]
    forest = CliqueForest.of([2] * side**2, edges)
    assert max(map(len, forest.cliques)) <= side + 3
