"""Samples that miss where a law has its mass are not called an answer."""

import numpy as np

from meanmap import ep


def test_one_point_with_all_the_weight_is_no_convergence():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, 4))
    seen = rows @ [0.5, -0.5, 0.0, 1.0] + rng.normal(0.0, 0.5, 80)

    def log_density(weights):
        return float(-0.5 * np.sum(((seen - rows @ np.asarray(weights)) / 0.5) ** 2))

    weights = ep.Variable("weights", ep.MultivariateNormal.standard(4))
    report = ep.infer(ep.FactorGraph(ep.Density(log_density, weights, name="fit")), rng=0).report
    assert report.status == "converged, but samples missed where the mass is"
    assert any("fit: the points miss where its mass is" in note for note in report.notes)


def test_enough_points_leave_the_status_alone():
    theta = ep.Variable("theta", ep.MultivariateNormal.standard(2))
    log_density = lambda t: -0.5 * float(np.sum((np.asarray(t) - 1.0) ** 2))  # noqa: E731
    assert ep.infer(ep.FactorGraph(ep.Density(log_density, theta)), rng=0).report.status == "converged"
