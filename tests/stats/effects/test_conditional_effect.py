"""Effects given a third variable: against closed forms of normal noise, and how often their intervals cover."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, ShapeError
from meanmap.stats.effects.conditional import TURNING

FAILURE_RATE = 1e-5
LEVEL = 0.9
NAMES = ("distance", "correlation")


def hsic(x, y, r):
    """HSIC under RBF(1) of normals with standard deviations x and y and correlation r."""

    def mean(square):
        return 1 / np.sqrt(np.linalg.det(np.eye(len(square)) + np.array(square)))

    joint = mean([[2 * x * x, 2 * r * x * y], [2 * r * x * y, 2 * y * y]])
    crossed = mean([[2 * x * x, r * x * y], [r * x * y, 2 * y * y]])
    return joint + mean([[2 * x * x]]) * mean([[2 * y * y]]) - 2 * crossed


def truth(effect, strength):
    """Distance and correlation of the noise of `drawn`, under the kernels that an effect took."""
    x, y = (1 / float(np.ravel(kernel.lengthscale)[0]) for kernel in effect.kernel)
    y *= np.sqrt(1 + strength**2)
    found = max(0.0, hsic(x, y, strength / np.sqrt(1 + strength**2)))
    return np.sqrt(found), np.sqrt(found / np.sqrt(hsic(x, x, 1) * hsic(y, y, 1)))


def drawn(rng, n, strength, linear):
    z, e, f = rng.normal(size=(3, n))
    if linear:
        return z + e, strength * e + f - z, z
    return np.sin(2 * z) + e, z**2 + strength * e + f, z


def covered(repeats, n, strength, linear, seed):
    rng, hits = np.random.default_rng([seed, n, linear]), np.zeros(2, int)
    for _ in range(repeats):
        effect = mm.conditional_independence_effect(*drawn(rng, n, strength, linear), confidence=LEVEL, rng=0)
        for i, (name, value) in enumerate(zip(NAMES, truth(effect, strength), strict=True)):
            interval = getattr(effect, name)
            hits[i] += interval.low <= value + 1e-9 and value <= interval.high + 1e-9
    return hits


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_intervals_cover(strength):
    hits = covered(30, 60, strength, linear=False, seed=7)
    assert hits.min() >= scipy.stats.binom.ppf(FAILURE_RATE, 30, LEVEL), hits


@pytest.mark.slow
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("n", "repeats"), [(50, 500), (200, 500), (1000, 100)])
def test_intervals_cover_at_length(n, repeats, strength, linear):
    hits = covered(repeats, n, strength, linear, seed=8)
    print(f"coverage given z, n = {n}, strength {strength}, linear {linear}: {hits} of {repeats}")
    assert hits.min() >= scipy.stats.binom.ppf(0.005, repeats, LEVEL), hits


def test_units_and_names_do_not_matter():
    x, y, z = drawn(np.random.default_rng(0), 80, 0.5, False)
    one = mm.conditional_independence_effect(x, y, z, rng=0)
    frames = [pd.DataFrame({name: column * 1e4 + 7}) for name, column in zip("abc", (x, y, z), strict=True)]
    other = mm.conditional_independence_effect(*frames, rng=0)
    assert other.correlation.estimate == pytest.approx(one.correlation.estimate, rel=1e-6)
    assert other.distance.high == pytest.approx(one.distance.high, rel=1e-6)
    assert one.method == "dependence of x and y given z"


def test_dependence_that_turns_with_z_is_told():
    rng = np.random.default_rng(1)
    z, x = rng.normal(size=400), rng.random(400) < 0.5
    turning = mm.conditional_independence_effect(x, x ^ (z > 0) ^ (rng.random(400) < 0.1), z, rng=0)
    steady = mm.conditional_independence_effect(x, x ^ (rng.random(400) < 0.1), z, rng=0)
    assert turning.correlation.low == 0.0
    assert TURNING in turning.warnings
    assert steady.correlation.low > 0.5
    assert TURNING not in steady.warnings


def test_what_has_no_size_is_refused():
    z = np.random.default_rng(2).normal(size=60)
    with pytest.raises(InputError, match="y is a function of z: given z no variation is left"):
        mm.conditional_independence_effect(np.random.default_rng(3).normal(size=60), 2 * z, z)
    with pytest.raises(ShapeError, match="y has 59 points and z has 60"):
        mm.conditional_independence_effect(z, z[1:], z)


def test_many_rows_are_drawn_from_and_told():
    rng = np.random.default_rng(4)
    z, e, f = rng.normal(size=(3, 3000))
    effect = mm.conditional_independence_effect(pd.Series(e > 0), f, z, rng=0)
    assert effect.sizes == (1200,)
    assert any("1200 of 3000 triples" in text for text in effect.warnings)
    assert effect.correlation.low == 0.0
