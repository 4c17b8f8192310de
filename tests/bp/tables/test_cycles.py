"""Tables on graphs with cycles: what messages give is approximate, and the report says so."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, NonFiniteError
from meanmap.graphs import Factors

PAIR = np.exp(0.8 * np.array([[1.0, -1.0], [-1.0, 1.0]]))
FIELD = np.array([1.2, 1.0])
SAID = "the graph has cycles, around which evidence is counted repeatedly"


def models(edges, n):
    priors = np.ones((n, 2))
    priors[0] = FIELD
    factors = Factors([2] * n, (*edges, (0,)), (*[PAIR] * len(edges), FIELD))
    return mm.bp.DiscreteGraph(list(edges), PAIR, priors), mm.bp.FactorGraph(factors), mm.bp.CliqueTree(factors)


def test_a_cycle_is_noted_and_its_exact_answer_named():
    loopy, factors, exact = models([(0, 1), (1, 2), (2, 0)], 3)
    truth = exact.query()[1][0]
    for model in (loopy, factors):
        for beliefs in (model.query(), model.query({2: 1}), model.query({2: np.array([0.2, 0.7])})):
            assert any(SAID in note and "mm.bp.CliqueTree is exact" in note for note in beliefs.report.notes)
        assert model.query()[1][0] > truth + 0.02  # overconfident
    assert exact.query().report.notes == ()


def test_trees_have_no_such_note_and_are_exact():
    *models_of, exact = models([(0, 1), (1, 2)], 3)
    for model in models_of:
        found = model.query({2: 1})
        assert found.report.notes == ()
        np.testing.assert_allclose(found[0], exact.query({2: 1})[0], atol=1e-12)


def test_tables_that_are_not_finite_and_states_that_are_not_whole_are_refused():
    broken = PAIR.copy()
    broken[1, 1] = np.nan
    with pytest.raises(NonFiniteError, match=r"factor 0 holds 1 value that is not finite"):
        Factors([2, 2], ((0, 1),), (broken,))
    loopy, factors, exact = models([(0, 1), (1, 2)], 3)
    for value, said in ((1.0, "1.0, a float"), (True, "True, a bool")):
        for model in (loopy, factors, exact):
            with pytest.raises(KindError, match=rf"evidence\[0\] is {said}; expected a state from 0 to 1"):
                model.query({0: value})
