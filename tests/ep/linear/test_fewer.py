"""Few nodes in place of many leave predictions, effects of groups and leave-one-out as they are."""

from types import SimpleNamespace

import numpy as np
import pytest

import meanmap as mm
from meanmap.ep.linear import fewer, integrate
from meanmap.ep.linear.components import Components


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


def _foretold(seconds, *sets):
    components = Components((), sets, (), ())
    problem = SimpleNamespace(together=1, predictor=SimpleNamespace(rows=40, total=6), components=components)
    with pytest.warns(UserWarning, match="will take about") as said:
        integrate._foretell(problem, components.size, seconds / integrate._USUAL[components.size])
    return str(said[0].message)


@pytest.mark.parametrize(
    ("seconds", "said"), [(65, "1 minute:"), (100, "2 minutes:"), (700, "10 minutes:"), (7200, "100 minutes:")]
)
def test_minutes_are_written_without_an_exponent(seconds, said):
    assert f"will take about {said} 40 rows" in _foretold(seconds, (1,))


def test_advice_on_fewer_components_fits_the_formula():
    """(1 + x || g) was advised for (1 | g)."""
    assert _foretold(100, (1,)).rstrip(".").endswith("30 nodes of 1 component of variance")
    assert "(1 + x || g) has no correlations, (1 | g) no slopes" in _foretold(100, (2,))
    assert "Fewer components take less: (1 | g) has no slopes" in _foretold(100, (1, 1))
    assert "Fewer components take less: leave out a factor" in _foretold(100, (1,), (1,))
