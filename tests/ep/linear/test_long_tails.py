"""Components whose posterior has no mean to speak of."""

import re

import numpy as np
from scipy.special import gammaln

import meanmap as mm


def test_the_shape_of_counts_that_may_be_poisson_has_its_median_in_a_note():
    """The likelihood is constant for large alpha, and so a half Cauchy prior leaves no mean: 250 (1800) was printed."""
    y = np.random.default_rng(3).poisson(3.0, 150).astype(float)
    found = mm.fit("y ~ 1", {"y": y}, family="negativebinomial")
    (said,) = re.findall(r"note: the distribution of alpha has so long a tail .*: the median is ([\d.]+)", str(found))
    # The posterior of log alpha by a grid, with the prior of the intercept flat beside its likelihood.
    logs, etas = np.linspace(0.0, 16.0, 500), np.linspace(0.6, 1.5, 181)[:, None]
    alpha = np.exp(logs)
    counts, times = np.unique(y, return_counts=True)
    total = np.zeros((181, 500))
    for count, each in zip(counts, times, strict=True):
        one = gammaln(count + alpha) - gammaln(alpha) - (alpha + count) * np.log1p(np.exp(etas - logs))
        total += each * (one + count * (etas - logs))
    density = np.exp(total - total.max()).sum(0) * alpha / (1 + (alpha / 10) ** 2)
    below = np.cumsum(density) / density.sum()
    assert abs(np.log(float(said)) - np.interp(0.5, below, logs)) < 0.1


def test_components_with_a_mean_have_no_such_note():
    rng = np.random.default_rng(4)
    y = rng.negative_binomial(3, 3 / (3 + 4.0), 200).astype(float)
    assert "so long a tail" not in str(mm.fit("y ~ 1", {"y": y}, family="negativebinomial"))
    groups = np.repeat(np.arange(6), 20)
    few = {"y": rng.normal(size=120) + rng.normal(size=6)[groups], "g": groups.astype(str)}
    assert "so long a tail" not in str(mm.fit("y ~ 1 + (1 | g)", few))
