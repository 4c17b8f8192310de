"""Few unknown numbers that meet in rows of functions: answered by draws, beside grids."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import meanmap as mm
from meanmap import ep
from tests.ep.inference.few import MODELS, on_a_grid, run

# Draws are as good as 14 000 independent ones: these are six standard errors or more.
MEAN, DEVIATION, EVIDENCE = 0.05, 0.03, 0.03


def check(post, names, means, sds, evidence):
    for name, mean, sd in zip(names, means, sds, strict=True):
        assert float(post[name].mean()) == pytest.approx(mean, abs=MEAN * sd)
        assert float(post[name].sd()) == pytest.approx(sd, rel=DEVIATION)
        assert float(post.standard_errors[name]) < 0.01 * sd
    assert post.log_evidence == pytest.approx(evidence, abs=EVIDENCE)
    assert post.report.status == "converged"


@pytest.mark.parametrize("name", MODELS)
def test_moments_and_evidence_are_those_of_a_grid(name):
    post, means, sds, evidence = run(name, np.random.default_rng(7), seed=11)
    check(post, post, means, sds, evidence)
    assert "draws from the joint posterior in place of messages" in post.report.choices["beliefs: by"]


def curve(black_box):
    """A curve of two numbers, observed with known noise: as a density, and as a function with an observed output."""
    x = np.linspace(0.05, 1, 12)
    y = 2 * x / (0.5 + x) + 0.1 * np.random.default_rng(0).normal(size=12)
    top, half = ep.Variable("top", ep.Normal(2.0, 1.0)), ep.Variable("half", ep.Gamma(4.0, 8.0))
    if black_box:
        out = ep.Variable("out", ep.Normal, plate=12)
        noise = ep.Gaussian(out, observed=y, precision=100.0)
        return ep.FactorGraph(ep.BlackBox(lambda t, h, x: t * x / (h + x), top, half, x, out), noise)

    def log_normal(t, h, x, y):
        return -50 * (y - t * x / (h + x)) ** 2 + 0.5 * np.log(100 / (2 * np.pi))

    return ep.FactorGraph(ep.Density(log_normal, top, half, x, y))


def test_an_observed_output_is_the_same_model_and_has_beliefs():
    one, other = (ep.infer(curve(black_box), rng=3) for black_box in (False, True))
    for name in ("top", "half"):
        assert float(other[name].mean()) == pytest.approx(float(one[name].mean()), rel=1e-6)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)
    draws = mm.io.posterior_draws(other, 8000, 0)["posterior"]
    images = draws["top"][0] * 0.05 / (draws["half"][0] + 0.05)
    assert float(other["out"].mean()[0]) == pytest.approx(images.mean(), abs=0.1 * images.std())
    assert float(other["out"].sd()[0]) == pytest.approx(images.std(), rel=0.05)


def test_draws_are_joint_and_repeat_with_the_seed():
    one, same = (ep.infer(curve(False), rng=5) for _ in range(2))
    assert one.log_evidence == same.log_evidence
    draws = mm.io.posterior_draws(one, 4000, 0)["posterior"]
    told = one.report.measures["correlation of 'top' and 'half'"]
    assert told > 0.5
    assert np.corrcoef(draws["top"][0], draws["half"][0])[0, 1] == pytest.approx(told, abs=0.03)


def test_observations_of_a_number_and_labels_of_rows_are_part_of_it():
    generator = np.random.default_rng(5)
    n = 25
    y = np.where(generator.random(n) < 0.3, -1.0, 1.5) + 0.8 * generator.normal(size=n)
    w = ep.Variable("w", ep.Beta(2.0, 2.0))
    low, gap = ep.Variable("low", ep.Normal(-1.0, 1.0)), ep.Variable("gap", ep.Gamma(4.0, 2.0))
    label = ep.Variable("label", ep.Bernoulli, plate=n)

    def log_row(label, low, gap, y):
        return -((y - low - label * gap) ** 2) / 1.28 - 0.5 * np.log(2 * np.pi * 0.64)

    factors = ep.Bernoulli(w, label), ep.Density(log_row, label, low, gap, y), ep.Bernoulli(w, observed=[1, 1, 0])
    post = ep.infer(ep.FactorGraph(*factors), rng=0)
    axes = [(np.arange(80) + 0.5) / 80, np.linspace(-4, 2, 120), np.geomspace(0.05, 8, 120)]

    def parts(w, low, gap, v):
        return np.log(w) + stats.norm.logpdf(v, low + gap, 0.8), np.log1p(-w) + stats.norm.logpdf(v, low, 0.8)

    def exact(w, low, gap):
        prior = stats.beta.logpdf(w, 2, 2) + stats.norm.logpdf(low, -1) + stats.gamma.logpdf(gap, 4, scale=0.5)
        return prior + 2 * np.log(w) + np.log1p(-w) + sum(np.logaddexp(*parts(w, low, gap, v)) for v in y)

    check(post, ["w", "low", "gap"], *on_a_grid(axes, exact))
    draws = mm.io.posterior_draws(post, 8000, 0)["posterior"]
    one, zero = parts(*(draws[name][0] for name in ("w", "low", "gap")), y[0])
    assert float(post["label"].mean()[0]) == pytest.approx(special.expit(one - zero).mean(), abs=0.02)


def test_components_with_one_prior_have_both_modes():
    y = np.concatenate([np.full(10, -2.0), np.full(10, 2.0)]) + np.linspace(-0.5, 0.5, 20)
    a, b = (ep.Variable(name, ep.Normal(0.0, 9.0)) for name in "ab")

    def either(a, b, y):
        return jnp.logaddexp(-((y - a) ** 2) / 2, -((y - b) ** 2) / 2) - np.log(2) - 0.5 * np.log(2 * np.pi)

    post = ep.infer(ep.FactorGraph(ep.Density(either, a, b, y)), rng=0)
    axis = np.linspace(-6, 6, 501)

    def exact(a, b):
        return stats.norm.logpdf(a, 0, 3) + stats.norm.logpdf(b, 0, 3) + sum(np.asarray(either(a, b, v)) for v in y)

    means, sds, evidence = on_a_grid([axis, axis], exact)
    check(post, "ab", means, sds, evidence)
    assert sum("is not close to a Normal" in note for note in post.report.notes) == 2
    draws = mm.io.posterior_draws(post, 4000, 0)["posterior"]
    assert (draws["a"][0] * draws["b"][0] < 0).mean() > 0.98


@pytest.mark.parametrize("seed", [0, 1])
def test_a_mode_of_a_hundredth_with_components_exchanged_is_not_missed(seed):
    """Standard deviations were .66 of the right ones or right, by the seed, with stated errors below .01."""
    generator = np.random.default_rng(5)
    y = np.where(generator.random(200) < 0.3, generator.normal(-1, 1, 200), generator.normal(1.2, 1, 200))

    def log_density(a, b, p, s, y):
        logs = jnp.log(p) - ((y - a) / s) ** 2 / 2, jnp.log1p(-p) - ((y - b) / s) ** 2 / 2
        return jnp.logaddexp(*logs) - jnp.log(s)

    priors = {"a": ep.Normal(-1.0, 1.0), "b": ep.Normal(1.0, 1.0), "p": ep.Beta(2.0, 2.0), "s": ep.Gamma(4.0, 4.0)}
    unknown = [ep.Variable(name, prior) for name, prior in priors.items()]
    post = ep.infer(ep.FactorGraph(ep.Density(log_density, *unknown, y)), rng=seed)
    # 100,000 weighted draws of a judge: .332.
    assert float(post["a"].sd()) == pytest.approx(0.332, rel=0.05)


def test_the_gradient_of_the_evidence_is_an_expectation():
    post = ep.infer(curve(False), rng=0)
    gradient = post.evidence_gradient(lambda rate: {"half": ep.Gamma(4.0, rate)}, 8.0)
    half = post["half"]
    assert float(gradient) == pytest.approx(4 / 8 - float(half.mean()), abs=0.05 * float(half.sd()))


def one_meeting():
    a, b = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    return ep.FactorGraph(ep.Density(lambda a, b: -((1 - a * b) ** 2), a, b))


def one_number():
    return ep.FactorGraph(
        ep.Density(lambda a, y: -((y - a**3) ** 2), ep.Variable("a", ep.Normal(0.0, 1.0)), np.ones(4))
    )


@pytest.mark.parametrize("model", [one_meeting, one_number])
def test_what_messages_have_right_is_left_to_them(model, monkeypatch):
    monkeypatch.setattr("meanmap.ep.inference.drawn.drawn", lambda *_: pytest.fail("draws were made"))
    assert "beliefs: by" not in ep.infer(model()).report.choices


@pytest.mark.parametrize(
    "settings", [{"messages": ep.Quadrature()}, {"power": 0.5}, {"damping": 0.1}, {"schedule": "parallel"}]
)
def test_settings_of_messages_ask_for_messages(settings, monkeypatch):
    monkeypatch.setattr("meanmap.ep.inference.drawn.drawn", lambda *_: pytest.fail("draws were made"))
    assert ep.infer(curve(False), **settings).messages


def test_a_density_that_is_no_number_in_places_is_zero_there_and_says_so():
    a, b = ep.Variable("a", ep.Normal(0.5, 1.0)), ep.Variable("b", ep.Normal(0.5, 1.0))
    y = np.ones(3)
    model = ep.FactorGraph(ep.Density(lambda a, b, y: jnp.log(a) - (y - a * b) ** 2, a, b, y))
    post = ep.infer(model, rng=0)
    axis = np.linspace(-5, 6, 1101) + 1e-3

    def exact(a, b):
        logs = 3 * np.log(np.maximum(a, 1e-300)) - 3 * (1 - a * b) ** 2
        return stats.norm.logpdf(a, 0.5) + stats.norm.logpdf(b, 0.5) + np.where(a > 0, logs, -np.inf)

    means, sds, evidence = on_a_grid([axis, axis], exact)
    assert [float(post[name].mean()) for name in "ab"] == pytest.approx(means, abs=MEAN * min(sds))
    assert [float(post[name].sd()) for name in "ab"] == pytest.approx(sds, rel=DEVIATION)
    assert post.log_evidence == pytest.approx(evidence, abs=EVIDENCE)
    assert any("no number at" in note for note in post.report.notes)


def test_a_density_of_infinity_is_left_to_messages():
    a, b = ep.Variable("a", ep.Normal(0.5, 1.0)), ep.Variable("b", ep.Normal(0.5, 1.0))
    model = ep.FactorGraph(ep.Density(lambda a, b, y: jnp.where(a > 2, jnp.inf, -a * b * y), a, b, np.ones(2)))
    assert "beliefs: by" not in ep.infer(model, rng=0, sweeps=3).report.choices


def test_saved_and_loaded(tmp_path):
    post = ep.infer(curve(False), rng=0)
    loaded = mm.load(mm.save(post, tmp_path / "post"))
    one, other = (mm.io.posterior_draws(each, 50, 0)["posterior"]["top"] for each in (post, loaded))
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_six_numbers_are_those_of_nuts():
    numpyro = pytest.importorskip("numpyro")
    from numpyro import distributions as laws

    generator = np.random.default_rng(3)
    x = np.linspace(-3, 3, 120)
    y = 1 + 3 / (1 + np.exp(-2 * (x - 0.5))) + 0.3 * x + 0.3 * generator.standard_t(4, 120)
    names = ["base", "height", "middle", "steep", "slope", "noise"]
    priors = [(0.0, 2.0), (2.0, 2.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (-1.0, 1.0)]

    def log_row(base, height, middle, steep, slope, noise, x, y):
        mean = base + height * jax.nn.sigmoid(jnp.exp(steep) * (x - middle)) + slope * x
        return -2.5 * jnp.log1p(((y - mean) / jnp.exp(noise)) ** 2 / 4) - noise

    unknown = [ep.Variable(name, ep.Normal(mean, sd**2)) for name, (mean, sd) in zip(names, priors, strict=True)]
    post = ep.infer(ep.FactorGraph(ep.Density(log_row, *unknown, x, y)), rng=0)

    def model():
        values = [numpyro.sample(name, laws.Normal(*prior)) for name, prior in zip(names, priors, strict=True)]
        numpyro.factor("rows", log_row(*values, x, y).sum())

    chains = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=1500, num_samples=30_000, progress_bar=False)
    chains.run(jax.random.key(0))
    for name, draws in chains.get_samples().items():
        assert float(post[name].mean()) == pytest.approx(float(draws.mean()), abs=MEAN * float(draws.std()))
        assert float(post[name].sd()) == pytest.approx(float(draws.std()), rel=DEVIATION + 0.01)


@pytest.mark.parametrize(
    "function",
    [lambda a, b, y: jnp.log(-1 - a**2) * b * y, lambda a, b, y: a * b * math.nan, lambda a, b, y: a / y * 0],
)
def test_a_function_without_a_number_anywhere_is_refused(function):
    """Of one row, too; messages took a minute to say so."""
    y = np.array([1.0, 0.0, 2.0])
    a, b = ep.Variable("a", ep.Normal(0.5, 1.0)), ep.Variable("b", ep.Normal(0.5, 1.0))
    model = ep.FactorGraph(ep.Density(function, a, b, y, name="f"))
    with pytest.raises(ValueError, match=r"the function of f returned no number for some row at each of 2,048 draws"):
        ep.infer(model, rng=0)
