"""Where a function has no value: NaN is impossible there and named, ∞ of a log density is refused, on every way."""

import math
import re

import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep

END = 1.2


def unknown(names, plate=None):
    return [ep.Variable(name, ep.Normal(0.0, 1.0), plate) for name in names]


def held(z):
    """A log density of one number, before it ends at 1.2."""
    return -((z - 1.0) ** 2) / 2 / 0.5**2


def python(log_density):
    """As numbers of Python, which JAX cannot trace."""
    return lambda *values: log_density(
        *(float(value) if np.ndim(value) == 0 else np.asarray(value) for value in values)
    )


def one(void, xp):
    def log_density(z):
        return xp.where(z < END, held(z), void)

    return log_density


def two(void, xp):
    def log_density(z, b):
        return xp.where(z < END, held(z) - b**2, void)

    return log_density


def row(void, xp):
    def log_density(z, x):
        return xp.where(z < END, held(z) + x - x, void)

    return log_density


def vector(void, xp):
    def log_density(w):
        return xp.where(w[0] < END, held(w[0]), void)

    return log_density


def three(void, xp):
    def log_density(z, b, c):
        return xp.where(z < END, held(z) - b**2 - c**2, void)

    return log_density


def on_the_host(make):
    return lambda void: python(make(void, np))


def compiled(make):
    return lambda void: make(void, jnp)


def pair():
    return ep.Variable("z", ep.MultivariateNormal.standard(2))


# By way: a model of a log density, the oracle, and how good means are.
WAYS = {
    "compiled, one number": (lambda f: ep.Density(f, *unknown("z"), name="f"), compiled(one), None, 1e-6),
    "compiled, two numbers": (lambda f: ep.Density(f, *unknown("zb"), name="f"), compiled(two), None, 2e-2),
    "a table of one number": (lambda f: ep.Density(f, *unknown("z"), name="f"), on_the_host(one), None, 1e-6),
    "a table of two": (lambda f: ep.Density(f, *unknown("zb"), name="f"), on_the_host(two), None, 2e-2),
    "many points at once": (
        lambda f: ep.Density(f, *unknown("z"), vectorised=True, name="f"),
        lambda void: one(void, np),
        None,
        1e-6,
    ),
    "rows with arguments of their own": (
        lambda f: ep.Density(f, *unknown("z", 2), [1.0, 2.0], name="f"),
        on_the_host(row),
        None,
        1e-6,
    ),
    "draws of a vector": (lambda f: ep.Density(f, pair(), name="f"), compiled(vector), None, 5e-2),
    "draws of a vector on the host": (
        lambda f: ep.Density(f, pair(), name="f"),
        on_the_host(vector),
        ep.ImportanceSampling(4000),
        5e-2,
    ),
    "strata of three numbers": (
        lambda f: ep.Density(f, *unknown("zbc"), name="f"),
        compiled(three),
        ep.Stratified(4000),
        5e-2,
    ),
    "an oracle of one's own": (
        lambda f: ep.Density(f, *unknown("z"), name="f"),
        compiled(one),
        lambda questions: questions.ask(ep.Quadrature()),
        1e-6,
    ),
    "chains": (lambda f: ep.Density(f, *unknown("zbc"), name="f"), compiled(three), ep.MCMC(2000, 200), 0.2),
}


def by_day(*quick):
    """All ways, of which the others are slow."""
    return [way if way in quick else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]


def inferred(way, void, **words):
    make, function, oracle, within = WAYS[way]
    return ep.infer(ep.FactorGraph(make(function(void))), oracle, rng=0, **words), within


def mean_of_z(post):
    return np.ravel(post["z"].mean())[0]


GRID = np.linspace(-9, END, 400_001)
WEIGHTS = np.exp(held(GRID) - GRID**2 / 2)
WEIGHTS[-1] /= 2  # the trapezium rule
MEAN = GRID @ WEIGHTS / WEIGHTS.sum()
SD = np.sqrt((GRID - MEAN) ** 2 @ WEIGHTS / WEIGHTS.sum())


@pytest.mark.parametrize("way", by_day("compiled, one number", "a table of one number", "draws of a vector"))
def test_nan_of_a_log_density_is_impossible_and_named(way):
    """A tenth of the prior lies there: the data were ignored, and nothing said that the function returned NaN."""
    post, within = inferred(way, math.nan)
    assert post.report.status == "converged, but a function returned no number in places"
    assert abs(mean_of_z(post) - MEAN) < within * SD
    if "beliefs: by" in post.report.choices:
        (note,) = [note for note in post.report.notes if "no number" in note]
        assert re.fullmatch(r"f: no number at [\d.]+% of draws near the posterior, where the density .* zero", note)
        return
    (note,) = [note for note in post.report.notes if "impossible" in note]
    assert note.startswith("the function of f")
    assert " is nan for " in note
    assert float(note.split("z = ")[1].strip("[").split()[0].rstrip(",]")) >= END
    assert note.endswith("that counts as impossible; return -inf where the factor is zero")
    # Φ(−1.2), by a rule of few nodes, or where a table was filled.
    assert float(note.split(", on ")[1].split()[0]) == pytest.approx(0.115, rel=0.3)


@pytest.mark.parametrize("way", by_day("draws of a vector"))
def test_minus_infinity_of_a_log_density_is_impossible_without_a_word(way):
    post, within = inferred(way, -math.inf)
    assert post.report.status.startswith("converged")
    assert "no number" not in post.report.status
    assert not any("impossible" in note for note in post.report.notes)
    assert abs(mean_of_z(post) - MEAN) < within * SD


@pytest.mark.parametrize("way", by_day("compiled, one number")[:-1])  # chains do not meet a point
def test_infinity_of_a_log_density_is_refused_and_named(way):
    post, _ = inferred(way, math.inf, sweeps=12)
    assert post.report.status == "stopped with messages left out"
    assert any(" is inf for " in note and "a density is finite" in note for note in post.report.notes)


# Of outputs: 1e6 is far from what was seen, and so are ∞ and no value.
def seen(function, names="ab", **words):
    out = ep.Variable("out", ep.Normal)
    box = ep.BlackBox(function, *unknown(names), out, name="f", **words)
    return ep.FactorGraph(box, ep.Gaussian(out, observed=2.5, precision=4.0))


def simulated(void, xp):
    def function(a, b):
        return xp.where(a < END, xp.exp(a) * (1 + xp.sin(b) ** 2), void)

    return function


AXIS = np.linspace(-8, 8, 1601)


def grid_of_outputs():
    a, b = np.meshgrid(AXIS, AXIS, indexing="ij")
    off = np.where(a < END, np.exp(a) * (1 + np.sin(b) ** 2), np.inf) - 2.5
    mass = np.exp(-2 * off**2 - a**2 / 2 - b**2 / 2)
    mass /= mass.sum()
    return (mass * a).sum()


@pytest.mark.slow
@pytest.mark.parametrize("void", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("host", [False, True])
def test_outputs_that_are_no_numbers_are_impossible_and_named(void, host):
    """Infinity was refused, and 1e6 understood."""
    function = python(simulated(void, np)) if host else simulated(void, jnp)
    post = ep.infer(seen(function))
    assert post.report.status == "converged, but a function returned no number in places"
    assert np.isfinite(post.log_evidence)
    assert post["a"].mean() == pytest.approx(grid_of_outputs(), abs=5e-3)
    (note,) = [note for note in post.report.notes if "impossible" in note]
    assert f" is {void:.3g} for a = 1." in note
    assert note.endswith("that counts as impossible; return a number where the inputs are possible")


def test_outputs_of_one_number_and_of_draws():
    """By a rule and by draws: the belief about a is cut off at 1.2, and far from 2.5."""
    for names, oracle in (("a", None), ("abc", ep.ImportanceSampling(4000))):
        one_more = lambda a, *rest: jnp.where(a < END, a, jnp.inf) + 0.1 * sum(rest)  # noqa: E731
        post = ep.infer(seen(one_more, names), oracle, rng=0)
        assert any("the function of f is inf for a = " in note for note in post.report.notes)
        assert 0.8 < post["a"].mean() < END


def test_what_is_no_number_far_out_is_named_and_leaves_the_status():
    """A function that returned NaN beyond 4 standard deviations was not named."""
    post = ep.infer(ep.FactorGraph(ep.Density(python(lambda z: np.where(z < 4, held(z), math.nan)), *unknown("z"))))
    assert post.report.status == "converged"
    assert any(" is nan for z = " in note for note in post.report.notes)


def test_a_function_without_any_value_leaves_the_prior_and_says_so():
    for function in (lambda z: jnp.nan * z, python(lambda z: math.nan)):
        post = ep.infer(ep.FactorGraph(ep.Density(function, *unknown("z"), name="f")))
        assert post.report.status == "stopped with messages left out"
        assert post["z"].var() == pytest.approx(1)
        assert any("has no value at any" in note for note in post.report.notes)
