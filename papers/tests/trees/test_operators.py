"""The truth that operators of an edge are compared with."""

import numpy as np

from meanmap_papers.experiment import Setting
from meanmap_papers.trees import operators


def test_features_are_those_of_a_kernel_that_is_one_on_the_diagonal():
    x = np.linspace(-3, 3, 7)
    phi = operators.features(x)
    waves = np.cos((x[:, None] - x)[..., None] * np.arange(operators.WAVES + 1)) @ operators.spectrum()
    np.testing.assert_allclose(phi @ phi.T, waves, atol=1e-12)
    np.testing.assert_allclose(np.diag(waves), 1.0)


def test_the_truth_predicts_features_of_the_next_angle():
    """C_YX C_XX⁻¹ φ(x) = E φ(x + noise), and C_YY times the second operator is the first."""
    conditional, likelihood = operators.truth()
    noise = np.random.default_rng(0).normal(size=200_000) * operators.NOISE
    expected = operators.features(0.4 + noise).mean(axis=0)
    np.testing.assert_allclose(conditional * operators.features(np.array([0.4]))[0], expected, atol=5e-3)
    angles = np.arange(1000) * 2 * np.pi / 1000
    variance = np.mean(operators.features(angles) ** 2, axis=0)
    np.testing.assert_allclose(variance * likelihood, conditional, atol=1e-9)


def test_errors_fall_with_pairs():
    few, many = (operators.errors(np.random.default_rng(1), pairs) for pairs in (100, 30_000))
    assert all(late < early for early, late in zip(few, many, strict=True))
    assert operators.run(Setting("smoke")).figures
