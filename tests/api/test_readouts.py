"""Beliefs of graphical models, conditional laws and posteriors are read in the same words."""

import numpy as np
import pytest
import scipy.stats

import meanmap as mm

DRAWS = np.random.default_rng(0).normal(1.0, 2.0, 4000)
GRID = np.linspace(-12, 14, 261)
HEIGHTS = scipy.stats.norm.pdf(GRID[:-1] + 0.05, 1.0, 2.0)
LAWS = {
    "a posterior": mm.families.Normal(1.0, 4.0),
    "an embedding": mm.embed(DRAWS),
    "a histogram": mm.bp.Histogram.of(GRID, HEIGHTS / HEIGHTS.sum(), np.zeros(260, bool)),
    "a mixture": mm.bp.NormalMixture(np.array([1.0]), np.array([1.0]), np.array([4.0])),
}


@pytest.mark.parametrize("name", LAWS)
def test_every_law_is_read_in_the_same_words(name):
    law = LAWS[name]
    found = [law.mean(), law.sd(), law.var(), law.quantile(0.5), *law.interval(0.9)]
    expected = [1.0, 2.0, 4.0, 1.0, *scipy.stats.norm.interval(0.9, 1.0, 2.0)]
    np.testing.assert_allclose(np.ravel(found), expected, atol=0.25)
    assert np.shape(law.sample(5, rng=0))[-1 if name != "a posterior" else 0] == 5


@pytest.mark.parametrize("name", LAWS)
def test_an_interval_holds_its_share(name):
    low, high = LAWS[name].interval(0.8)
    assert np.mean((low < DRAWS) & (high > DRAWS)) == pytest.approx(0.8, abs=0.05)
    with pytest.raises(mm.core.errors.ParameterError, match="confidence is 80; expected a number between 0 and 1"):
        LAWS[name].interval(80)
