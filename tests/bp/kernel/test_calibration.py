"""How sure beliefs about labels are is corrected by labels that nothing was known of when they were foretold."""

import numpy as np
import pytest
from scipy.optimize import minimize

import meanmap as mm
from meanmap.bp.evidence.field_evidence import Evidence, Observed
from meanmap.bp.kernel.calibration import FOLDS, Calibration, LabelAtoms, calibrated


def everything(n):
    """Values, functions and observations at all of n nodes, two queries."""
    there = np.ones((2, n), dtype=bool)
    observed = {"x": Observed(None, np.zeros((2, n)), there)}
    return Evidence(dict.fromkeys(range(n), 0), dict.fromkeys(range(n)), observed, there[0], 2, True)


def drawn(n, power, share, rng):
    """Stated probabilities of three labels that are too sure: the truth is drawn after their correction."""
    stated = rng.dirichlet(np.full(3, 0.3), n)
    chance = Calibration(power, share)(stated)
    return stated, (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1)


def test_the_correction_is_that_of_least_log_loss_and_keeps_the_order_of_labels():
    stated, truth = drawn(4000, 0.4, 0.1, np.random.default_rng(0))
    found = Calibration.least(stated, truth)
    assert found.power == pytest.approx(0.4, rel=0.25)
    assert found.share == pytest.approx(0.1, abs=0.05)
    np.testing.assert_array_equal(np.argsort(found(stated), axis=1), np.argsort(stated, axis=1))

    def loss(of):
        return -np.log(
            Calibration(np.exp(of[0]), 1 / (1 + np.exp(-of[1])))(stated)[np.arange(len(truth)), truth]
        ).mean()

    best = minimize(loss, [0.0, -2.0], method="Nelder-Mead").fun
    at = -np.log(found(stated)[np.arange(len(truth)), truth]).mean()
    assert best <= at + 1e-9 < best + 2e-3
    np.testing.assert_allclose(Calibration()(stated), stated)


def test_labels_are_left_out_with_all_that_is_known_of_their_nodes_once_each():
    n, seen, asked = 120, everything(120), []
    stated, truth = drawn(n, 0.5, 0.0, np.random.default_rng(1))

    def answers(evidence, nodes):
        hidden = np.isin(np.arange(n), nodes)
        assert len(nodes) == n // FOLDS
        assert set(evidence.values) == set(evidence.functions) == set(np.flatnonzero(~hidden))
        np.testing.assert_array_equal(evidence.observed["x"].there, np.tile(~hidden, (2, 1)))
        np.testing.assert_array_equal(evidence.informed, ~hidden)
        asked.extend(nodes)
        return np.tile(stated[nodes], (2, 1, 1))

    assert calibrated(np.arange(n), truth, seen, answers) == Calibration.least(stated, truth)
    assert sorted(asked) == list(range(n))
    assert calibrated(np.arange(99), truth[:99], seen, lambda *_: 1 / 0) is None


def test_atoms_of_one_label_share_what_the_label_gets():
    atoms = LabelAtoms.of(np.array([[[5, 1]], [[7, 1]], [[5, 1]], [[9, 2]]]))
    weights = np.array([[0.3, 0.6, 0.1, 0.0]])
    np.testing.assert_allclose(atoms.probabilities(weights), [[0.4, 0.6, 0.0]])
    np.testing.assert_allclose(atoms.weights(np.array([[0.2, 0.5, 0.3]]), weights), [[0.15, 0.5, 0.05, 0.3]])
    # Messages are beliefs without what the node knows by itself, 1, 1/2 and 0 for the three labels.
    own, half = np.array([[1.0, 0.5, 1.0, 0.0]]), Calibration(1.0, 0.5)
    given = np.array([[0.4, 0.3, 0.3, 0.0]])
    heard = half(np.array([[0.7, 0.6, 0.0]]) / 1.3) * [1.0, 0.5, 0.0]
    expected = heard / heard.sum()
    np.testing.assert_allclose(
        atoms.corrected(given, own, half), [[*(expected[0, :2] * [4 / 7, 1]), expected[0, 0] * 3 / 7, 0]]
    )
    assert atoms.number(np.array([[[7, 1]]])) == 1
    assert atoms.number(np.array([[[7, 2]]])) == -1


def right_in_nine_of_ten(observed, labels):
    """How probable 0 or 1 is where the label is a or b."""
    return np.where((observed[:, None] == 0) == (np.asarray(labels)[None] == "a"), 0.9, 0.1)


def test_a_query_corrects_beliefs_that_are_too_sure_and_says_so():
    rng, side = np.random.default_rng(0), 12
    graph, _ = mm.graphs.grid(side, side)
    # Relations as strong as these, learned from pairs that are no neighbours of a grid, are too sure round its cycles.
    left = rng.choice(["a", "b"], 400)
    pairs = left, np.where(rng.random(400) < 0.95, left, np.where(left == "a", "b", "a"))
    truth = rng.choice(["a", "b"], side**2)  # and here neighbours have nothing to do with each other
    field = mm.KernelField(graph).fit(pairs, likelihood=right_in_nine_of_ten)
    seen = {int(i): str(truth[i]) for i in rng.permutation(side**2)[:110]}
    hidden = [i for i in range(side**2) if i not in seen]
    found, plain = field.query(seen, targets=hidden), field.query(seen, targets=hidden, counting=1.0)
    assert any("these predict held-out labels best" in note for note in found.report.notes)
    assert not any("left out" in note for note in plain.report.notes)
    for node in hidden:
        corrected, before = found.probabilities(node), plain.probabilities(node)
        assert sum(corrected.values()) == pytest.approx(1)
        assert found[node].mode() == plain[node].mode()
        assert max(corrected.values()) <= max(before.values())
    # Neighbours say nothing here: a coin's log loss is .69.
    assert np.mean([-np.log(found.probabilities(node)[str(truth[node])]) for node in hidden]) < 0.75
    # What was observed of a node itself counts in full: it has no part in labels that are left out.
    other = {"a": "b", "b": "a"}
    observed = np.array([[label if rng.random() < 0.9 else other[label]] for label in truth])[:, 0]
    found = field.query(seen, targets=hidden, observed=np.where(observed == "a", 0.0, 1.0))
    right = np.array([found.probabilities(node)[str(observed[node])] for node in hidden])
    np.testing.assert_allclose(right, 0.9, atol=0.1)
    few = dict(list(seen.items())[:90])
    assert not any("left out" in note for note in field.query(few, targets=hidden).report.notes)
