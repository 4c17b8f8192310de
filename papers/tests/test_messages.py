"""Smoke runs of the experiments on learned messages, and what their parts are made of."""

import math

import numpy as np
import pytest
import scipy.special

from meanmap_papers.experiment import Setting, verdict
from meanmap_papers.messages import compound_gamma, doubt, doubt_in_time, features, methods, simulator, uci_times
from meanmap_papers.messages.jointly import Jointly


def test_the_simulator_follows_all_ways_an_infection_can_go():
    rate = 1.7
    small, large = simulator.chances(math.log(rate))
    assert small + large == pytest.approx(1)
    # The same by drawing: infections and recoveries one after the other.
    rng, outbreaks = np.random.default_rng(0), 0
    for _ in range(2000):
        ill, infected = 1, 1
        while ill:
            spreads = rate / simulator.WARD * (simulator.WARD - infected)
            caught = rng.uniform() < spreads / (spreads + 1)
            ill, infected = (ill + 1, infected + 1) if caught else (ill - 1, infected)
        outbreaks += infected >= simulator.MANY
    assert large == pytest.approx(outbreaks / 2000, abs=4 * math.sqrt(0.25 / 2000))  # 1 in 16,000 false alarms
    assert simulator.log_chance(-200.0, 1.0) == -math.inf


def test_joint_outputs_are_those_of_the_dense_formula():
    from meanmap import ep

    rng = np.random.default_rng(1)
    came, new = (ep.Normal(rng.normal(size=n), rng.uniform(0.5, 2, n)) for n in (30, 5))
    numbers = rng.normal(size=(30, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    fitted = Jointly().fit((came,), numbers)
    phi, at = fitted.separate.features((came,)), fitted.separate.features((new,))
    correlation = np.corrcoef(numbers.T)
    gram = np.kron(correlation, phi @ phi.T) + fitted.separate.noise * np.eye(60)
    dense = np.kron(correlation, at @ phi.T) @ np.linalg.solve(gram, numbers.T.ravel())
    np.testing.assert_allclose(fitted.predict((new,)).mean.T.ravel(), dense, atol=1e-6)


def test_quadrature_with_as_many_nodes_as_the_authors_take_agrees_with_the_oracle():
    from meanmap import ep
    from meanmap.ep.learned import log_compound_gamma

    came = ep.Gamma(*compound_gamma.problems(20, np.random.default_rng(3)))
    factor = ep.Density(log_compound_gamma, ep.Variable("tau", ep.Gamma))
    exact = came * ep.extending.ask(factor, came, oracle=ep.Quadrature(points=compound_gamma.NODES)).messages[0]
    found = [compound_gamma.moments(*each) for each in zip(came.shape_parameter, came.rate, strict=True)]
    mean, log_mean = np.transpose(found)
    np.testing.assert_allclose(mean, exact.mean(), rtol=1e-9)
    np.testing.assert_allclose(log_mean, scipy.special.digamma(exact.shape_parameter) - np.log(exact.rate), rtol=1e-9)


def test_exponential_growth_is_as_fast_in_both_halves_of_the_way_out():
    out = np.maximum(doubt.LINE - doubt.EDGE, 0)
    bounded = [np.minimum(each, 1e4) for each in (np.exp(2 * out), (1 + 3 * out) ** 4, np.exp(out**2))]
    exponential, power, square = (doubt.growth(each) for each in bounded)
    assert exponential == pytest.approx(1)
    assert power < 0.5
    assert square == pytest.approx(3)


@pytest.mark.slow
@pytest.mark.parametrize("module", [doubt_in_time, features, methods, simulator, uci_times])
def test_smoke_runs_show_what_they_can(module):
    outcome = module.EXPERIMENT.run(Setting("smoke"))
    found = verdict(module.EXPERIMENT.claims, outcome.numbers, "smoke")
    assert found in ("reproduced", "not settled", "not shown at this scale", "no claim of the paper")
