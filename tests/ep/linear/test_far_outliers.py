"""Student responses with one cell very far out: sweeps do not converge where sigma and nu are small."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, ndtr

pytest.importorskip("formulae")

from meanmap.ep.linear import fit
from meanmap.ep.linear.coordinates import Coordinates
from meanmap.ep.linear.lattice import lattice
from meanmap.ep.linear.problem import Height, Problem

GROUPS = np.repeat(np.arange(12), 5)


def table(far, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    y = x + rng.normal(size=12)[GROUPS] + rng.normal(size=60)
    y[3] = far
    return {"y": y, "x": x, "g": GROUPS}


def by_importance(found, data, count):
    """Means and sds of the table by weighted draws of coefficients and logs; groups are integrated on a grid."""
    y, x = data["y"], data["x"]
    middle, unit = np.median(y), np.median(np.abs(y - np.median(y))) / 0.6745
    rng, drawn = np.random.default_rng(1), found.draws(4000, rng=0).to_numpy()
    own = np.column_stack([drawn[:, 0] + drawn[:, 1] * x.mean(), drawn[:, 1], np.log(drawn[:, 2:])])
    root = np.linalg.cholesky(1.5 * np.cov(own.T))
    z = rng.normal(size=(count, 5)) / np.sqrt(rng.chisquare(5, (count, 1)) / 5)
    at = own.mean(0) + z @ root.T
    logs = 5 * np.log1p((z**2).sum(1) / 5)
    logs -= ((at[:, 0] - middle) / (2.5 * unit)) ** 2 / 2 + (at[:, 1] * x.std() / (2.5 * unit)) ** 2 / 2
    logs += (at[:, 2:4] - 2 * np.log1p(np.exp(2 * at[:, 2:4]) / (2.5 * unit) ** 2 / 3)).sum(1)
    logs += 2 * at[:, 4] - 0.1 * np.exp(at[:, 4])
    u = np.linspace(-6, 6, 361)
    for k, (level, slope, log_sd, log_sigma, log_nu) in enumerate(at):
        nu, left = np.exp(log_nu), (y - level - slope * (x - x.mean()))[:, None] - np.exp(log_sd) * u
        each = gammaln((nu + 1) / 2) - gammaln(nu / 2) - np.log(nu * np.pi) / 2 - log_sigma
        each = each - (nu + 1) / 2 * np.log1p((left * np.exp(-log_sigma)) ** 2 / nu)
        logs[k] += logsumexp(np.add.reduceat(each, np.arange(0, 60, 5), axis=0) - u**2 / 2, axis=1).sum()
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    assert 1 / (weights @ weights) > 0.3 * count
    values = np.column_stack([at[:, 0] - at[:, 1] * x.mean(), at[:, 1], np.exp(at[:, 2:])])
    mean = weights @ values
    return mean, np.sqrt(weights @ (values - mean) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(("far", "seed"), [(1e3, 51), (1e6, 52), (1e6, 53)])
def test_one_cell_far_out_ends_with_the_right_table(far, seed):
    """The lattice followed evidences of runs that did not converge, without end."""
    data = table(far, seed)
    found = fit("y ~ x + (1 | g)", data, "t")
    mean, sd = by_importance(found, data, 1500)
    shown = found.to_frame()
    assert (np.abs(shown["estimate"] - mean) < 0.15 * sd).all()
    assert (np.abs(np.log(shown["sd"] / sd)) < 0.15).all()


def test_a_far_response_of_the_student_family_is_not_to_be_left_out():
    data = table(100.0, 54)
    (note,) = fit("y ~ x", data, "t").report.notes
    assert "'y' is 100 in row 3" in note
    assert "family t gives it little weight" in note
    assert "leave the row out" not in note
    assert "leave the row out" in fit("y ~ x", data).report.notes[0]
    data["x"][5] = 500.0
    of_x = next(each for each in fit("y ~ x", data, "t").report.notes if each.startswith("'x'"))
    assert "leave the row out" in of_x


@pytest.mark.parametrize("heavy", [True, False])
def test_a_run_with_outliers_that_does_not_converge_has_no_height(heavy, monkeypatch):
    components = SimpleNamespace(log_density=lambda phi: (-1.0, np.zeros(1)), likelihood=lambda phi: phi)
    family = SimpleNamespace(heavy=heavy)
    problem = Problem(None, components, family, None)
    monkeypatch.setattr("meanmap.ep.linear.problem.regrouped", lambda *_: None)
    runs = iter([(False, 50.0), (True, -3.0), (False, 60.0)])

    def run(phi, start=None):
        converged, evidence = next(runs)
        return SimpleNamespace(converged=converged, log_evidence=evidence)

    monkeypatch.setattr(problem, "run", run)
    heights = [problem.height(np.zeros(1), sloped=False).value for _ in range(3)]
    # Before any run converges there is nothing better.
    assert heights == ([49.0, -4.0, -np.inf] if heavy else [49.0, -4.0, 59.0])


def test_a_lattice_says_how_much_lies_where_runs_fail():
    def heights_at(chart, psis, starts):
        return [Height(-np.inf if z > 1 else -z * z / 2, np.array([-z]), None) for (z,) in psis]

    problem = SimpleNamespace(most_nodes=100, together=1, heights_at=heights_at, late=0.0, beyond=0.0)
    lattice(problem, Coordinates((), ()), np.zeros(1), np.eye(1), None)
    # Nodes are .75 apart: that at 1.5 fails, and none behind it is tried.
    assert np.isclose(problem.beyond, ndtr(-1.125) - ndtr(-1.875), rtol=0.3)
