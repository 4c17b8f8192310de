"""A dozen functions with jumps, kinks and many peaks: beliefs, and doubts that are neither too small nor alarms."""

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.piecewise.noise import noise_of

# Each with an observation and the standard deviation of its noise.
FUNCTIONS = [
    (lambda z, xp: xp.where(z > 0.37, z + 1, z), 1.4, 0.2),
    (lambda z, xp: xp.where(z >= 0, 1.0, -1.0) * (1 + z**2 / 4), 1.1, 0.1),
    (lambda z, xp: xp.sign(z), 1.05, 0.1),
    (lambda z, xp: xp.floor(2 * z) / 2, 1.04, 0.05),
    (lambda z, xp: xp.floor(3 * z + 0.1) / 3, -0.4, 0.3),
    (lambda z, xp: xp.floor(10 * z) / 10, 0.33, 0.1),
    (lambda z, xp: xp.floor(25 * xp.sin(z)) / 25, 0.33, 0.1),
    (lambda z, xp: xp.round(xp.sin(z) + z, 1), -1.2, 0.1),
    (lambda z, xp: 3 * z - xp.floor(3 * z), 0.5, 0.1),
    (lambda z, xp: xp.abs(z - 0.3), 0.4, 0.1),
    (lambda z, xp: xp.minimum(xp.exp(z), 2.3), 2.2, 0.1),
    (lambda z, xp: xp.sin(8 * z) + z / 2, 0.5, 0.1),
    (
        lambda z, xp: xp.where(z > -0.6, xp.log(xp.maximum(z + 0.7, 0.1)) + xp.where(z > 0.5, 1.0, 0.0), xp.nan),
        1.0,
        0.3,
    ),
]


def chosen(xp):
    """One function, which is another for each row."""

    def function(z, which):
        found = 0.0
        for at, (each, _, _) in enumerate(FUNCTIONS):
            found = xp.where(which == at, each(z, xp), found)
        return found

    return function


@pytest.mark.slow
@pytest.mark.parametrize("form", [jnp, np], ids=["JAX", "Python"])
def test_rough_functions_have_beliefs_without_false_alarms(form):
    """Those with many jumps were in doubt by a standard deviation or more, and some were off by as much."""
    rows = len(FUNCTIONS)
    seen, noise = (np.array([each[k] for each in FUNCTIONS]) for k in (1, 2))
    z, x = ep.Variable("z", ep.Normal(0.1, 1.0), plate=rows), ep.Variable("x", ep.Normal, plate=rows)
    box = ep.BlackBox(chosen(form), z, np.arange(rows), x, vectorised=form is np, name="f")
    post = ep.infer(ep.FactorGraph(box, ep.Gaussian(x, precision=noise**-2, observed=seen)))
    line = np.linspace(-9.5, 9.5, 1_900_001) + 3e-7
    for row, (function, _, _) in enumerate(FUNCTIONS):
        with np.errstate(all="ignore"):
            height = -((line - 0.1) ** 2) / 2 - ((seen[row] - function(line, np)) / noise[row]) ** 2 / 2
        mass = np.where(np.isnan(height), 0.0, np.exp(height - np.nanmax(height)))
        mass /= mass.sum()
        mean = mass @ line
        sd = np.sqrt(mass @ (line - mean) ** 2)
        assert post["z"].mean()[row] == pytest.approx(mean, abs=1e-4 * sd)
        assert np.sqrt(post["z"].var()[row]) == pytest.approx(sd, rel=1e-4)
        assert post.doubt["f"][row] < 1e-3


def test_a_jump_is_no_noise():
    """Its differences of all orders agree, as those of noise do: steps were known no better than to eight steps."""
    rng = np.random.default_rng(5)
    points = np.arange(8) / 8
    jumps = np.array(
        [np.where(points > at, 1.0, 0.0) + slope * points for at in (0.2, 0.5, 0.8) for slope in (0, 0.02)]
    )
    np.testing.assert_array_equal(noise_of(jumps), 0.0)
    noise = noise_of(points + rng.normal(0, 1e-6, (400, 8)))
    assert np.median(noise) == pytest.approx(1e-6, rel=0.5)
    assert (noise > 0).mean() > 0.8
