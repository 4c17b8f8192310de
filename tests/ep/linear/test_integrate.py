"""Components of variance: priors, gradients and integrals, against differences, dense algebra and fine grids."""

import numpy as np
import pytest

from meanmap.ep.linear.block import Block
from meanmap.ep.linear.components import Components, GammaLog, HalfStudent, covariance
from meanmap.ep.linear.family import Observed
from meanmap.ep.linear.integrate import integrate
from meanmap.ep.linear.lattice import lattice
from meanmap.ep.linear.likelihoods import FAMILIES
from meanmap.ep.linear.predictor import Predictor
from meanmap.ep.linear.problem import Height, Problem

HALF = HalfStudent(3.0, 2.5)
PARAMETERS = {
    "gaussian": [0.3],
    "t": [0.3, 1.2],
    "negativebinomial": [0.4],
    "gamma": [0.7],
    "cumulative": [0.2, -0.4],
}


def slopes_model(name, link, rows=80, groups=8, tolerance=1e-9):
    """Correlated intercepts and slopes beside a crossed factor."""
    rng = np.random.default_rng(2)
    family, parameters = FAMILIES[name, link], np.array(PARAMETERS.get(name, []))
    design, index = np.stack([np.ones(rows), rng.normal(size=rows)], axis=1), rng.integers(0, groups, rows)
    other = rng.integers(0, 5, rows)
    predictor = Predictor((Block.fixed(design), Block(index, design, groups), Block(other, np.ones((rows, 1)), 5)))
    effects = rng.normal(size=(groups, 2)) @ np.array([[0.8, 0.4], [0.0, 0.5]])
    eta = design @ [0.3, 0.5] + (effects[index] * design).sum(1) + rng.normal(size=5)[other]
    empty = Observed.of(np.zeros(rows), 4.0 if name == "binomial" else 1.0)
    observed = Observed.of(family.draw(empty, eta, parameters, rng), empty.trials)
    laws = tuple(GammaLog(2.0, 0.1) if name == "t" and at == 1 else HALF for at in range(len(parameters)))
    components = Components(((np.zeros(2), 4 * np.eye(2)),), ((2,), (1,)), (HALF,) * 3, laws)
    return Problem(predictor, components, family, observed, tolerance), np.array([-0.2, -0.5, 0.3, -0.4, *parameters])


@pytest.mark.parametrize(("name", "link"), list(FAMILIES))
def test_gradient_of_the_evidence(name, link, monkeypatch):
    monkeypatch.setattr("meanmap.ep.linear.grouped._LACKS", np.inf)
    problem, phi = slopes_model(name, link)
    settled = problem.run(phi)
    assert settled is not None
    gradient, evidence = problem.gradient(phi, settled), {}
    for at in range(len(phi)):
        for step in (-2, -1, 1, 2):
            moved = phi + 0.01 * step * np.eye(len(phi))[at]
            evidence[step] = problem.height(moved, settled).value - problem.components.log_density(moved)[0]
        difference = (8 * (evidence[1] - evidence[-1]) - (evidence[2] - evidence[-2])) / 0.12
        np.testing.assert_allclose(gradient[at], difference, atol=1e-5)


def test_density_of_components_and_its_gradient():
    components = Components(
        (), ((3,), (1, 2)), tuple(HalfStudent(3.0, s) for s in (1, 2, 3, 4, 5, 6)), (GammaLog(2, 0.1),)
    )
    rng = np.random.default_rng(0)
    phi = rng.normal(size=components.size)
    assert components.size == 6 + 1 + 3 + 1
    gradient = components.log_density(phi)[1]
    for at in range(len(phi)):
        step = 1e-5 * np.eye(len(phi))[at]
        difference = components.log_density(phi + step)[0] - components.log_density(phi - step)[0]
        np.testing.assert_allclose(gradient[at], difference / 2e-5, atol=1e-8)
    one, two = components.covariances(phi)
    assert one.shape == (3, 3)
    np.testing.assert_array_equal(two[0, 1:], 0)
    np.testing.assert_allclose(np.sqrt(np.diag(one)), np.exp(phi[:3]))


def test_priors_are_laws_and_correlations_uniform():
    line = np.linspace(-30, 12, 40_001)
    for law in (HalfStudent(3.0, 2.0), HalfStudent(1.0, 1.0), GammaLog(2.0, 0.1)):
        total = np.sum([np.exp(law.log_density(x)) for x in line[::10]]) * (line[10] - line[0])
        # A half-Cauchy keeps 4e-6 beyond exp(12).
        np.testing.assert_allclose(total, 1, atol=1e-5)
    # A uniform law over correlation matrices of three: the density by z is that of ρ times dρ/dz, in volume π²/2.
    components = Components((), ((3,),), (HALF,) * 3, ())
    for z in np.random.default_rng(0).normal(size=(5, 3)):
        phi = np.concatenate([np.zeros(3), z])
        found = components.log_density(phi)[0] - 3 * HALF.log_density(0.0)
        step, here = 1e-5, np.zeros((3, 3))
        for at in range(3):
            up, down = (covariance(np.zeros(3), z + side * step * np.eye(3)[at]) for side in (1, -1))
            here[:, at] = ((up - down) / (2 * step))[np.tril_indices(3, -1)]
        np.testing.assert_allclose(np.exp(found), abs(np.linalg.det(here)) / (np.pi**2 / 2), rtol=1e-5)


def one_way(rng, groups=6, each=4):
    index = np.repeat(np.arange(groups), each)
    y = 1 + 0.7 * rng.normal(size=groups)[index] + rng.normal(size=groups * each)
    return index, y


def test_two_components_are_integrated_as_on_a_fine_grid():
    """A balanced one-way layout of normal responses, whose marginal likelihood is one dense Normal."""
    index, y = one_way(np.random.default_rng(1))
    rows = len(y)
    predictor = Predictor((Block.fixed(np.ones((rows, 1))), Block(index, np.ones((rows, 1)), 6)))
    components = Components(((np.zeros(1), 100 * np.eye(1)),), ((1,),), (HALF,), (HALF,))
    problem = Problem(predictor, components, FAMILIES["gaussian", "identity"], Observed.of(y))
    model, log_evidence, _ = integrate(problem, np.zeros(2))
    nodes = model.nodes
    same = index[:, None] == index
    logs = np.linspace(-7, 3, 161)
    errors = np.linspace(-1.5, 1.5, 61)
    heights, means, spreads = (np.empty((161, 61)) for _ in range(3))
    for i, a in enumerate(logs):
        for j, b in enumerate(errors):
            V = 100 + np.exp(2 * a) * same + np.exp(2 * b) * np.eye(rows)
            root = np.linalg.cholesky(V)
            white = np.linalg.solve(root, np.stack([y, np.full(rows, 100.0)], axis=1))
            heights[i, j] = (
                -(white[:, 0] @ white[:, 0]) / 2 - np.log(np.diag(root)).sum() - rows / 2 * np.log(2 * np.pi)
            )
            heights[i, j] += HALF.log_density(a) + HALF.log_density(b)
            means[i, j], spreads[i, j] = white[:, 1] @ white[:, 0], 100 - white[:, 1] @ white[:, 1]
    p = np.exp(heights - heights.max())
    exact = np.log(p.sum() * (logs[1] - logs[0]) * (errors[1] - errors[0])) + heights.max()
    p /= p.sum()
    np.testing.assert_allclose(log_evidence, exact, atol=0.02)
    sd = np.sqrt((p * (spreads + means**2)).sum() - (p * means).sum() ** 2)
    mean = sum(node.probability * node.settled.joint.mean[0] for node in nodes)
    squares = [node.settled.joint.mean[0] ** 2 + node.settled.joint.within(0)[0, 0, 0] for node in nodes]
    second = sum(node.probability * square for node, square in zip(nodes, squares, strict=True))
    np.testing.assert_allclose(mean, (p * means).sum(), atol=0.01 * sd)
    np.testing.assert_allclose(np.sqrt(second - mean**2), sd, rtol=0.01)
    for at, axis in ((0, logs[:, None]), (1, errors[None])):
        exact_mean = (p * np.exp(axis)).sum()
        exact_sd = np.sqrt((p * (np.exp(axis) - exact_mean) ** 2).sum())
        found = sum(node.probability * np.exp(node.phi[at]) for node in nodes)
        np.testing.assert_allclose(found, exact_mean, atol=0.05 * exact_sd)


def test_no_components_are_one_node():
    rng = np.random.default_rng(0)
    predictor = Predictor((Block.fixed(rng.normal(size=(30, 2))),))
    components = Components(((np.zeros(2), np.eye(2)),), (), (), ())
    problem = Problem(predictor, components, FAMILIES["poisson", "log"], Observed.of(rng.poisson(1.0, 30)))
    model, log_evidence, _ = integrate(problem, np.zeros(0))
    (node,) = model.nodes
    assert log_evidence == node.settled.log_evidence
    assert model.surface is None


class _Normal:
    """A problem whose posterior is a standard Normal."""

    most_nodes, together = 2000, 8

    def heights_at(self, chart, psis, starts):
        return [Height(-float(psi @ psi) / 2, -psi, None) for psi in psis]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_nodes_have_the_variances_of_a_normal(size):
    """Those of four dimensions were .06 too small: 90% intervals of the noise beside random slopes held 86%."""
    places = lattice(_Normal(), None, np.zeros(size), np.eye(size), None).values()
    points = np.stack([psi for psi, _, _ in places])
    masses = np.exp([height.value + log_weight for _, log_weight, height in places])
    assert masses.sum() / (2 * np.pi) ** (size / 2) == pytest.approx(1, abs=0.01)
    covariance = points.T @ (masses[:, None] * points) / masses.sum()
    np.testing.assert_allclose(covariance, np.eye(size), atol=0.02)
