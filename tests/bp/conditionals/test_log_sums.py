"""Sums of kernels that are interpolated, against the sums."""

import numpy as np
import pytest
from scipy.special import logsumexp

from meanmap.bp.conditionals.log_sums import LogSums


@pytest.mark.parametrize("law", ["normal", "standard_cauchy"])
def test_interpolated_sums_are_those_of_all_residuals_also_far_out(law):
    """Residuals of heavy tails need too many places, and are added up."""
    values = np.sort(getattr(np.random.default_rng(0), law)(size=800))
    sums = LogSums(values, 0.2)
    assert (sums._between is None) == (law == "standard_cauchy")
    x = np.concatenate([np.linspace(-60, 60, 241), values[[0, -1]], values[0] - [1.5, 1.7]])
    exact = logsumexp(-(((x[:, None] - values) / 0.2) ** 2) / 2, axis=1, b=1 / len(values))
    np.testing.assert_allclose(sums(x), exact, atol=1e-4)
    np.testing.assert_allclose(sums(x)[exact > -20], exact[exact > -20], atol=1e-5)
