"""Forests of cliques: every scope has a home, what a variable's cliques share hangs together, sizes add up."""

import numpy as np
import pytest

from meanmap.graphs.elimination import CliqueForest, _Fill, _Weight


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


def test_prices_follow_what_is_joined_and_removed():
    """They are kept up to date by differences; from scratch they are sums over neighbours and over pairs of them."""
    rng = np.random.default_rng(0)
    n = 12
    states = rng.integers(2, 5, n).tolist()
    near = [set() for _ in range(n)]
    for a, b in rng.integers(n, size=(20, 2)).tolist():
        if a != b:
            near[a].add(b)
            near[b].add(a)
    rules = _Weight(states, near), _Fill(states, near)
    for node in rng.permutation(n).tolist():
        others = near[node]
        for a in others:
            for b in others:
                if a < b and b not in near[a]:
                    for rule in rules:
                        rule.joined(a, b, near[a] & near[b])
                    near[a].add(b)
                    near[b].add(a)
        for rule in rules:
            rule.removed(node, others)
        for other in others:
            near[other].remove(node)
        for i in others:
            pairs = [(a, b) for a in near[i] for b in near[i] if a < b and b not in near[a]]
            assert rules[1].price[i] == sum(states[a] * states[b] for a, b in pairs)
            logs = np.log2(states[i]) + sum(np.log2(states[a]) for a in near[i])
            assert rules[0].price[i] / 2**40 == pytest.approx(logs)


def test_hubs_and_chains_take_time_in_proportion():
    """Two thousand neighbours of one variable, alone and in pairs; with pairs counted anew it took minutes."""
    n = 2000
    for scopes, variables in (
        ([(0, i) for i in range(1, n)], n),
        ([(i, i + 1) for i in range(n - 1)], n),
        ([(0, i, i + 1) for i in range(1, n, 2)], n + 1),
    ):
        assert max(map(len, CliqueForest.of([2] * variables, scopes).cliques)) == len(scopes[0])
