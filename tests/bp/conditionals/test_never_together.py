"""Evidence of labels that no row has together: the note names them, and what chance explains is not noted."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm

N = 300
ARROWS = [("t", "a"), ("t", "b"), ("t", "c")]


@pytest.fixture(scope="module")
def table():
    """a and b follow from t, and contradict each other in no row; c is independent, with a rare label."""
    random = np.random.default_rng(0)
    t = random.random(N) < 0.5
    c = np.where(np.arange(N) < 3, "rare", random.choice(["c0", "c1"], N))
    return pd.DataFrame(
        {"t": np.where(t, "yes", "no"), "a": np.where(t, "a1", "a0"), "b": np.where(t, "b1", "b0"), "c": c}
    )


@pytest.mark.parametrize(
    "unfitted",
    [mm.bp.BayesianNetwork(ARROWS), mm.bp.DependencyNetwork(), mm.KernelGraph(ARROWS)],
)
def test_labels_that_no_row_has_together_are_named(unfitted, table):
    """Each label alone decides, and they contradict each other."""
    model = unfitted.fit(table)
    said = "none of 300 rows has 'a' = 'a0' together with 'b' = 'b1': what follows from both rests on assumptions"
    found = model.query({"a": "a0", "b": "b1"}, ["t"], rng=0)
    assert any(note.startswith(said) for note in found.report.notes)
    asked = {"a": ["a0", "a0", None], "b": ["b0", "b1", "b1"]}
    (note,) = (note for note in model.predict(asked, ["t"], rng=0).report.notes if "together" in note)
    assert note.startswith(f"in 1 of 3 rows: {said}")
    for seen in ({"a": "a0", "b": "b0"}, {"a": "a0"}, {"a": "a0", "c": "rare"}, {"b": "b1", "c": "rare"}):
        assert not any("none of 300" in note for note in model.query(seen, ["t"], rng=0).report.notes)
    if isinstance(unfitted, mm.bp.BayesianNetwork):
        assert found.probabilities("t")["yes"] == pytest.approx(0.5, abs=0.05)


def test_log_probabilities_of_labels_are_those_of_counts_with_a_prior_of_at_most_a_row():
    """Between counts, and counts with a row more, in each state of the parent."""
    random = np.random.default_rng(1)
    a = random.choice(["u", "v", "w"], 3000)
    y = np.where(random.random(3000) < np.where(a == "u", 0.9, 0.25), "yes", "no")
    y[a == "w"] = "no"
    model = mm.bp.BayesianNetwork([("a", "y")]).fit({"a": a, "y": y})
    total = 0.0
    for state in ("u", "v", "w"):
        chances = np.exp(model.score({"a": [state] * 2, "y": ["yes", "no"]}))
        total += chances.sum()
        for chance, label in zip(chances / chances.sum(), ("yes", "no"), strict=True):
            count, among = np.sum((a == state) & (y == label)), np.sum(a == state)
            assert count / (among + 1) <= chance <= (count + 1) / (among + 1)
            assert chance > 0
    assert total == pytest.approx((1 - 1 / 3001) ** 2, rel=1e-9)  # new labels of both columns have the rest
