"""Few nodes in place of many leave predictions, effects of groups and leave-one-out as they are."""

from types import SimpleNamespace

import numpy as np
import pytest

import meanmap as mm
from meanmap.ep.linear import fewer, integrate


def _table(rng, n, groups, slope, family):
    g, x = rng.integers(0, groups, n), rng.normal(size=n)
    eta = 0.3 + 0.5 * x + rng.normal(size=groups)[g] + slope * rng.normal(size=groups)[g] * x
    y = eta + rng.normal(size=n) if family == "gaussian" else rng.poisson(np.exp(eta))
    return {"y": y, "x": x, "g": g}


@pytest.mark.parametrize(
    ("slope", "family", "seed"), [(0.5, "gaussian", 911), (0.0, "gaussian", 912), (0.4, "poisson", 913)]
)
def test_the_answers_of_few_nodes_are_those_of_all(monkeypatch, slope, family, seed):
    """Where a slope may be 0, the effects of groups are mixtures of very narrow and wide ones."""
    table = _table(np.random.default_rng(seed), 400, 40, slope, family)
    monkeypatch.setattr(fewer, "_MET", np.inf)
    whole = mm.fit("y ~ x + (1 + x | g)", table, family=family)
    monkeypatch.setattr(fewer, "_MET", 0)
    few = mm.fit("y ~ x + (1 + x | g)", table, family=family)
    assert len(few.model.nodes) <= len(whole.model.nodes) / 1.5
    assert few.report.measures["nodes"] == len(whole.model.nodes)
    new = {"x": np.array([0.0, 1.0, -1.5]), "g": np.array([-1, -2, 3])}
    frames = [lambda f: f.to_frame(), lambda f: f.predict(), lambda f: f.predict(new), lambda f: f.group_effects()]
    for frame in frames:
        one, other = frame(whole), frame(few)
        for end in ("estimate", "low", "high"):
            assert (np.abs(one[end] - other[end]) < 0.01 * one["sd"]).all()
        np.testing.assert_allclose(one["sd"], other["sd"], rtol=0.005 if family == "gaussian" else 0.03)
    assert abs(float((whole.leave_one_out() - few.leave_one_out()).sum())) < 0.1


def test_a_long_fit_is_foretold(monkeypatch):
    monkeypatch.setattr(integrate, "_LONG", 0.0)
    with pytest.warns(UserWarning, match=r"will take about .* minutes: 40 rows"):
        mm.fit("y ~ x + (1 | g)", _table(np.random.default_rng(7), 40, 4, 0.0, "poisson"), family="poisson")


@pytest.mark.parametrize(("seconds", "said"), [(100, "2"), (700, "10"), (7200, "100")])
def test_minutes_are_written_without_an_exponent(seconds, said):
    problem = SimpleNamespace(together=1, predictor=SimpleNamespace(rows=40, total=6))
    with pytest.warns(UserWarning, match=f"will take about {said} minutes: 40 rows"):
        integrate._foretell(problem, 1, seconds / integrate._USUAL[1])
