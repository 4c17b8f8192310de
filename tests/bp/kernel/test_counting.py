"""How much messages count is chosen by labels that nothing was known of when they were foretold."""

import numpy as np

import meanmap as mm
from meanmap.bp.evidence.field_evidence import Evidence, Observed
from meanmap.bp.kernel.counting import SHARES, chosen_counting


def everything(n):
    """Values, functions and observations at all of n nodes, two queries."""
    there = np.ones((2, n), dtype=bool)
    observed = {"x": Observed(None, np.zeros((2, n)), there)}
    return Evidence(dict.fromkeys(range(n), 0), dict.fromkeys(range(n)), observed, there[0], 2, True)


def test_the_share_is_that_of_the_least_loss_on_labels_that_are_left_out_with_all_else():
    n, seen, asked = 120, everything(120), []
    # As often right, but too sure of it where messages count whole: of three labels two are foretold.
    surest = {1: 0.99, 0.7: 0.7, 0.5: 0.6}

    def probabilities(evidence, nodes, share):
        hidden = np.isin(np.arange(n), nodes)
        assert len(nodes) == n // 5
        assert set(evidence.values) == set(evidence.functions) == set(np.flatnonzero(~hidden))
        np.testing.assert_array_equal(evidence.observed["x"].there, np.tile(~hidden, (2, 1)))
        np.testing.assert_array_equal(evidence.informed, ~hidden)
        asked.append((tuple(nodes), share))
        return np.tile(np.where(nodes % 3 == 0, 1 - surest[share], surest[share]), (2, 1))

    assert chosen_counting(np.arange(n), seen, probabilities) == 0.7
    assert len(set(asked)) == 2 * len(SHARES)
    one, other = {nodes for nodes, _ in asked}
    assert not set(one) & set(other)
    surest.update({1: 0.67, 0.7: 0.99, 0.5: 0.98})
    assert chosen_counting(np.arange(n), seen, probabilities) == 1


def test_with_few_labels_messages_count_whole_and_nothing_is_asked():
    assert chosen_counting(np.arange(99), everything(120), lambda *_: 1 / 0) == 1


def test_a_query_takes_the_share_that_labels_ask_for_and_says_so():
    rng, side = np.random.default_rng(0), 12
    graph, _ = mm.graphs.grid(side, side)
    # Relations as strong as these, learned from pairs that are no neighbours of a grid, are too sure round its cycles.
    left = rng.choice(["a", "b"], 400)
    pairs = left, np.where(rng.random(400) < 0.95, left, np.where(left == "a", "b", "a"))
    truth = rng.choice(["a", "b"], side**2)  # and here neighbours have nothing to do with each other
    field = mm.KernelField(graph).fit(pairs)
    seen = {int(i): str(truth[i]) for i in rng.permutation(side**2)[:110]}
    hidden = [i for i in range(side**2) if i not in seen]
    found = field.query(seen, targets=hidden)
    assert "counting=0.5, floor=0.03: so are labels best foretold that were left out." in found.report.notes
    same = field.query(seen, targets=hidden, counting=0.5, floor=0.03)
    assert not any("counting" in note for note in same.report.notes)
    for node in hidden:
        assert found.probabilities(node) == same.probabilities(node)
    few = dict(list(seen.items())[:90])
    assert not any("counting" in note for note in field.query(few, targets=hidden).report.notes)
