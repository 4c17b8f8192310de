"""Data far from all values of a function that were seen: doubted where a narrow region comes nearer, and only there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep
from meanmap.ep.quadrature.enclosed import enclosed


def strip(z, xp, low, high):
    return xp.where((z > low) & (z < high), 1.0, 0.0)


def softplus(z, xp):
    return jax.nn.softplus(z) if xp is jnp else xp.log1p(xp.exp(z))


# Each with an observation and its precision. No value comes near the data.
BOUNDED = {
    "exp": (lambda z, xp: xp.exp(z), -5.0, 400.0),
    "tanh": (lambda z, xp: xp.tanh(z), 10.0, 1.0),
    "square": (lambda z, xp: z**2, -3.0, 25.0),
    "logistic": (lambda z, xp: 1 / (1 + xp.exp(-z)), 2.0, 100.0),
    "softplus": (softplus, -1.0, 100.0),
    "sine on a line": (lambda z, xp: xp.sin(2 * z) + 0.3 * z, 12.0, 4.0),
    "ratio": (lambda z, xp: z / (1 + z**2), 3.0, 25.0),
}
# A narrow region comes near them, in this interval.
HIDDEN = {
    "strip": (lambda z, xp: 10 * strip(z, xp, 1.5, 1.5003), 10.0, 1.0, (1.4995, 1.5005)),
    "bell": (lambda z, xp: 10 * xp.exp(-(((z - 1.55) / 0.0005) ** 2)), 10.0, 1.0, (1.54, 1.56)),
    "strip on tanh": (lambda z, xp: xp.tanh(z) + 9 * strip(z, xp, 0.2137, 0.2139), 10.0, 1.0, (0.2136, 0.214)),
    "resonance": (lambda z, xp: xp.sin(z) + 8 / (1 + ((z - 0.7771) / 1e-5) ** 2), 9.0, 1.0, (0.77705, 0.77715)),
    "dip of exp": (lambda z, xp: xp.exp(z) - 9 * xp.exp(-(((z + 2.345) / 3e-4) ** 2)), -8.0, 4.0, (-2.348, -2.342)),
    "maximum": (lambda z, xp: xp.maximum(xp.cos(z), 8 - 1e5 * xp.abs(z - 1.2345)), 8.0, 4.0, (1.2344, 1.2346)),
}


def believed(function, seen, precision):
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    box = ep.BlackBox(function, z, x, name="f")
    return ep.infer(ep.FactorGraph(box, ep.Gaussian(x, observed=seen, precision=precision)))


def exactly(function, seen, precision, narrow=(0.0, 0.0)):
    line = np.sort(np.concatenate([np.linspace(-40, 40, 800_001), np.linspace(*narrow, 400_001)]))
    with np.errstate(over="ignore"):
        height = -(line**2) / 2 - precision * (seen - function(line, np)) ** 2 / 2
    mass = np.exp(height - height.max()) * np.gradient(line)
    mass /= mass.sum()
    mean = mass @ line
    return mean, np.sqrt(mass @ (line - mean) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDED)
def test_data_beyond_all_values_of_a_jax_function_are_no_reason_to_doubt(name):
    """Beliefs were right to eleven digits, and said to be off by a standard deviation or more."""
    function, seen, precision = BOUNDED[name]
    post = believed(lambda z: function(z, jnp), seen, precision)
    mean, sd = exactly(function, seen, precision)
    assert abs(float(post["z"].mean()) - mean) < 1e-5 * sd
    assert float(post["z"].sd()) == pytest.approx(sd, rel=1e-5)
    assert post.report.status == "converged"
    assert post.report.notes == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", HIDDEN)
def test_a_narrow_region_that_comes_near_the_data_is_doubted_or_seen(name):
    function, seen, precision, narrow = HIDDEN[name]
    post = believed(lambda z: function(z, jnp), seen, precision)
    mean, sd = exactly(function, seen, precision, narrow)
    if not abs(float(post["z"].mean()) - mean) < 0.01 * sd:
        assert post.report.status == "converged, but standard deviations may be wrong"


@pytest.mark.slow
def test_a_root_that_is_none_on_half_of_its_input_is_not_doubted():
    post = believed(lambda z: np.nan if z < 0 else np.sqrt(z), 1.0, 4.0)
    line = np.linspace(0, 9, 900_001)
    mass = np.exp(-(line**2) / 2 - 2 * (1 - np.sqrt(line)) ** 2)
    mean = mass @ line / mass.sum()
    assert float(post["z"].mean()) == pytest.approx(mean, abs=1e-6)
    assert all(doubt < 1e-6 for doubt in post.doubt.values())


@pytest.mark.parametrize("functions", [BOUNDED, HIDDEN], ids=["bounded", "hidden"])
def test_bounds_by_interval_arithmetic_hold_and_are_close(functions):
    edges = np.linspace(-12, 12, 20_001)
    line = np.sort(np.concatenate([edges, *(np.linspace(*each[3], 9) for each in functions.values() if len(each) > 3)]))
    place = np.clip(np.searchsorted(edges, line, side="right") - 1, 0, 19_999)
    with jax.enable_x64(True):
        low, high = jnp.append(-jnp.inf, edges), jnp.append(edges, jnp.inf)
        for function, *_ in functions.values():
            lowest, highest = enclosed(lambda z, function=function: function(z, jnp), low, high, 0, [])
            value = function(jnp.asarray(line), jnp)
            assert (value >= lowest[1:-1][place] - 1e-9).all()
            assert (value <= highest[1:-1][place] + 1e-9).all()
            assert (highest - lowest)[1:-1].min() < 1e-3
