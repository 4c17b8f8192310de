"""Beliefs at many nodes at once, beside the same one by one."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import by_formula, fit, sampled
from meanmap.ep.linear.integrate import integrate
from meanmap.ep.linear.problem import Problem

RNG = np.random.default_rng(5)
G = RNG.integers(0, 9, 120)
TABLE = {
    "y": RNG.normal(size=9)[G] + RNG.normal(size=120),
    "x": RNG.normal(size=120),
    "g": G,
    "h": G // 3,
    "w": RNG.integers(0, 3, 120),
    "o": RNG.normal(size=120),
}
FORMULAS = [
    "y ~ x + (1 | g)",
    "y ~ x + (1 + x | g)",
    "y ~ offset(o) + x + (1 + x || g) + (1 | h)",
    "y ~ x + (1 + x | h/g)",
    "y ~ 0 + (1 | g)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_heights_gradients_and_beliefs(formula, monkeypatch):
    problems = []
    monkeypatch.setattr(by_formula, "integrate", lambda *given: (problems.append(given[0]), integrate(*given))[1])
    found = fit(formula, TABLE, weights="w", priors={"x": (0.3, 0.5)} if "x" in formula else None)
    (problem,) = problems
    phis = np.stack([node.phi for node in found.model.nodes[:7]])
    together = problem.heights(phis, [None] * len(phis))
    runs = problem.runs_at(phis, together)
    for phi, height, run in zip(phis, together, runs, strict=True):
        one = problem.height(phi)
        assert height.value == pytest.approx(one.value, abs=1e-10 * abs(one.value))
        np.testing.assert_allclose(height.gradient, one.gradient, atol=1e-9)
        for name in ("means", "weights", "shifts", "gains", "variances"):
            np.testing.assert_allclose(getattr(run, name), getattr(one.settled, name), atol=1e-10)
        assert run.log_evidence == pytest.approx(one.settled.log_evidence, abs=1e-9)
        for at in range(len(problem.predictor.blocks)):
            np.testing.assert_allclose(run.joint.within(at), one.settled.joint.within(at), atol=1e-10)


@pytest.mark.parametrize("formula", FORMULAS)
def test_the_answers_are_those_of_one_node_at_a_time(formula, monkeypatch):
    monkeypatch.setattr(sampled, "_kind", lambda problem: 1)
    monkeypatch.setattr("meanmap.ep.linear.integrate._CHEAP", 0)
    found = fit(formula, TABLE)
    monkeypatch.setattr(Problem, "stack", None)
    alone = fit(formula, TABLE)
    np.testing.assert_allclose(found.to_frame(), alone.to_frame(), rtol=1e-10, atol=1e-10)
    assert found.log_evidence == pytest.approx(alone.log_evidence, rel=1e-10)
    assert len(found.model.nodes) == len(alone.model.nodes)
