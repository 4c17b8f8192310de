"""Quadrature against a rule that knows where the mass is: narrow, far, kinked and two-peaked factors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from meanmap import ep
from meanmap.ep.quadrature import integrals
from tests.ep.quadrature.reference_quadrature import CELLS

WIDTHS = [1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0, 10.0, 1e3]
OFFSETS = [0.0, 0.37, -3.0, 8.0, 30.0, 100.0]

# log f(x) for an observation y with noise of width s, in JAX and NumPy alike.
LIKELIHOODS = {
    "normal": lambda np_, x, y, s: -(((x - y) / s) ** 2) / 2,
    "two peaks": lambda np_, x, y, s: -(((x**2 - y**2) / s) ** 2) / 2,
    "student": lambda np_, x, y, s: -2.5 * np_.log1p(((x - y) / s) ** 2 / 4),
    "cauchy": lambda np_, x, y, s: -np_.log1p(((x - y) / s) ** 2),
    "laplace": lambda np_, x, y, s: -np_.abs(x - y) / s,
    "logistic": lambda np_, x, y, s: -np_.logaddexp(0.0, -(x - y) / s),
    "count": lambda np_, x, y, s: (1 + y**2) * (x / s) - np_.exp(np_.minimum(x / s, 600.0)),
    "quartic": lambda np_, x, y, s: -(((x - y) / s) ** 4),
    "two normals": lambda np_, x, y, s: np_.logaddexp(-(((x - y) / s) ** 2) / 2, -(((x + y) / s) ** 2) / 2 - 1),
    "step": lambda np_, x, y, s: np_.where(np_.abs(x - y) < s, 0.0, -np_.inf),
}


def known(name, y, s):
    """Mean, standard deviation and log mass of N(0, 1) times a factor, on panels that shrink towards all its places.

    Gauss and Legendre on panels that double in width away from where the factor has its peaks, kinks and ends, from the
    prior's, and from the highest point found so far.
    """

    def log_density(x):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return LIKELIHOODS[name](np, x, y, s) - x**2 / 2 - np.log(2 * np.pi) / 2

    places = [0.0, y, -y, y - s, y + s, s * np.log(1 + y**2), -s, s]
    away = 2.0 ** np.arange(-45, 12)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    for _ in range(25):
        edges = np.unique(np.concatenate([[p, *(p + away), *(p - away)] for p in places]))
        half, middle = np.diff(edges)[:, None] / 2, (edges[1:] + edges[:-1])[:, None] / 2
        x = middle + half * nodes
        height = log_density(x)
        places = [*places[:8], *places[-12:], x.flat[height.argmax()], -x.flat[height.argmax()]]
    top = height.max()
    mass = half * weights * np.exp(height - top)
    total = mass.sum()
    mean = (mass * x).sum() / total
    return mean, np.sqrt((mass * (x - mean) ** 2).sum() / total), top + np.log(total)


def battery(name, widths, offsets):
    """The answers of a plate of factors of one kind, and what is known about them."""
    y, s = (each.ravel() for each in np.meshgrid(offsets, widths))
    z = ep.Variable("z", ep.Normal(np.zeros(len(y)), 1.0))
    factor = ep.Density(lambda x, y, s: LIKELIHOODS[name](jnp, x, y, s), z, y, s)
    answer = ep.extending.ask(factor, z.prior)
    belief = z.prior * answer.messages[0]
    refused = ~belief.is_proper()
    belief = z.prior.where(refused, belief)
    truth = np.array([known(name, *each) for each in zip(y, s, strict=True)]).T
    found = np.stack([belief.mean(), belief.sd(), answer.log_normaliser - z.prior.log_normaliser])
    scale = np.stack([truth[1], truth[1], np.maximum(1, np.abs(truth[2]))])
    return np.where(refused, np.inf, np.abs(found - truth) / scale), np.where(refused, np.nan, answer.doubt)


def check(name, widths=WIDTHS, offsets=OFFSETS):
    off, doubt = battery(name, widths, offsets)
    right = (off < 1e-6).all(0)
    # What is not right is in doubt by as much (which is said), or is refused.
    covered = ~np.isfinite(doubt) | (off.max(0) < 3 * doubt)
    assert (right | covered).all(), np.column_stack([off.T, doubt])[~(right | covered)]
    return right


def test_the_reference_knows_normals():
    for y, s in [(0.37, 1e-6), (30.0, 0.5), (100.0, 1e-2), (8.0, 1e3)]:
        mean, sd, log_mass = known("normal", y, s)
        variance = 1 / (1 + s**-2)
        assert mean == pytest.approx(variance * y / s**2, abs=1e-9 * sd)
        assert sd == pytest.approx(np.sqrt(variance), rel=1e-9)
        exact = scipy.stats.norm(0, np.hypot(1, s)).logpdf(y) + np.log(s * np.sqrt(2 * np.pi))
        assert log_mass == pytest.approx(exact, rel=1e-10)


def test_the_reference_is_that_of_another_program_at_thirty_digits():
    for name, y, s, *exact in CELLS:
        mean, sd, log_mass = known(name, y, s)
        np.testing.assert_allclose(
            [mean, sd, log_mass], exact, rtol=1e-10, atol=1e-10 * sd, err_msg=f"{name}, {y}, {s}"
        )


@pytest.mark.parametrize("name", ["two peaks", "cauchy"])
def test_narrow_and_far_factors_are_found(name):
    # At 8 the prior hides the spike of a Cauchy between nodes.
    assert check(name, [1e-6, 1e-3, 1.0], [0.0, 0.37, 8.0]).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_ten_likelihoods_at_all_widths_and_offsets(name):
    right = check(name)
    # A step that no node meets cannot be found: that is refused.
    assert right.mean() > (0.5 if name == "step" else 0.95)


def test_a_factor_far_outside_of_a_gamma():
    rate = ep.Variable("rate", ep.Gamma(10.0, 10.0))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda r: -1000 * r, rate)))
    assert post["rate"].mean() == pytest.approx(10 / 1010, rel=1e-9)
    assert post["rate"].shape_parameter == pytest.approx(10, rel=1e-8)
    assert post.log_evidence == pytest.approx(10 * np.log(10 / 1010), rel=1e-12)
    assert not post.report.notes


@pytest.mark.slow
def test_the_normaliser_of_a_narrow_and_far_factor():
    # N(0, 1) times an observation of 15 with standard deviation .1: once 12.25 ± .0036, and -458 for -112.
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda z: -50 * (z - 15) ** 2 - jnp.log(0.1 * jnp.sqrt(2 * jnp.pi)), z)))
    assert post["z"].mean() == pytest.approx(15 / 1.01, rel=1e-10)
    assert post["z"].var() == pytest.approx(0.01 / 1.01, rel=1e-8)
    assert post.log_evidence == pytest.approx(scipy.stats.norm(0, np.sqrt(1.01)).logpdf(15), rel=1e-10)


def test_rules_are_compiled_only_where_those_before_are_in_doubt(monkeypatch):
    asked = []

    def told(rule):
        return lambda *args: asked.append(rule.__name__) or rule(*args)

    monkeypatch.setattr(integrals, "RULES", tuple(map(told, integrals.RULES)))
    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    # Student noise of a thousandth of the prior has a narrow core and heavy tails, and no kink.
    post = ep.infer(ep.FactorGraph(ep.Student(z, observed=0.5, scale=1e-3)))
    assert post["z"].mean() == pytest.approx(0.5, abs=1e-5)
    assert set(asked) == {"on_grid"}
    assert not post.report.notes
    kink = ep.infer(ep.FactorGraph(ep.Density(lambda z: -jnp.abs(z - 0.3) / 0.01, z)))
    mean, sd, _ = known("laplace", 0.3, 0.01)
    assert kink["z"].mean() == pytest.approx(mean, abs=1e-6 * sd)
    assert set(asked) == {"on_grid", "on_panels"}
    assert not kink.report.notes


def test_a_smooth_factor_needs_few_nodes(monkeypatch):
    monkeypatch.setattr(integrals, "RULES", (integrals.RULES[0], None, None))
    post = ep.infer(ep.FactorGraph(ep.Logistic(ep.Variable("z", ep.Normal(0.3, 2.0)), observed=1)))
    x = 0.3 + np.sqrt(2) * np.linspace(-12, 12, 20_001)
    weights = np.exp(-((x - 0.3) ** 2) / 4) * scipy.special.expit(x)
    mean = (weights * x).sum() / weights.sum()
    assert post["z"].mean() == pytest.approx(mean, abs=1e-12)
    assert post["z"].var() == pytest.approx((weights * (x - mean) ** 2).sum() / weights.sum(), rel=1e-12)
    assert post.doubt["Logistic(z)"] < 1e-6
    assert not post.report.notes


def test_a_peak_that_no_grid_finds_is_doubted_in_the_notes():
    comb = ep.Variable("z", ep.Normal(0.0, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda z: 40 * jnp.sin(1000 * z), comb, name="comb")))
    assert post.doubt["comb"] > 1e-6
    assert any(note.startswith("comb: beliefs may be off by") for note in post.report.notes)


@pytest.mark.slow
def test_two_tied_numbers_are_followed():
    t = np.linspace(0, 3, 20)
    y = 0.3 + 0.5 * t
    fit = ep.models.simulator(
        lambda a, b, t: a + b * t, {"a": ep.Normal(), "b": ep.Normal()}, t, observed=y, noise_sd=0.001
    )
    design = np.column_stack([np.ones(20), t])
    covariance = np.linalg.inv(np.eye(2) + design.T @ design / 1e-6)
    np.testing.assert_allclose([fit["a"].mean(), fit["b"].mean()], covariance @ design.T @ y / 1e-6, atol=1e-9)
    np.testing.assert_allclose([fit["a"].var(), fit["b"].var()], np.diag(covariance), rtol=1e-7)
    assert not fit.report.notes


@pytest.mark.slow
@pytest.mark.parametrize("x", [1e-3, 1e-6])
def test_the_compound_gamma_of_a_tiny_number(x):
    found = ep.models.compound_gamma([x])["precision"]
    u = np.linspace(-60, 60, 200_001)  # over the rate the prior of τ is 1/(1 + τ)²
    log_weights = 1.5 * u - x**2 / 2 * np.exp(u) - 2 * np.logaddexp(0, u)
    weights = scipy.special.softmax(log_weights)
    assert found.mean() == pytest.approx(weights @ np.exp(u), abs=1e-6 * found.sd())  # 3.8 means where x is a millionth
    assert found.mean_in("log") == pytest.approx(weights @ u, abs=1e-6)


@pytest.mark.slow
def test_python_functions_are_asked_for_the_same_points():
    called = []

    def narrow(z):
        called.append(z)
        return -(((z - 3) / 1e-3) ** 2) / 2 if isinstance(z, float) else float(z)

    z = ep.Variable("z", ep.Normal(0.0, 1.0))
    belief = ep.infer(ep.FactorGraph(ep.Density(narrow, z)))["z"]
    assert belief.mean() == pytest.approx(3 / (1 + 1e-6), rel=1e-9)
    assert len(called) < 60_000
    assert jax.config.jax_enable_x64 is False


@pytest.mark.parametrize(("mean", "share"), [(0.5, 0.31), (3.0, 0.00135)])
def test_a_log_density_without_numbers_on_a_part_is_zero_there_and_named(mean, share):
    z = ep.Variable("z", ep.Normal(mean, 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(jnp.log, z, name="log")))
    assert post.report.status == "converged, but a function returned no number in places"
    (note,) = [note for note in post.report.notes if note.startswith("the function of log is nan for z = -0.125, on ")]
    assert note.endswith(" of its input: that counts as impossible; return -inf where the factor is zero")
    assert float(note.split(", on ")[1].split()[0]) == pytest.approx(share, rel=0.3)  # by a rule of few nodes
    zero = ep.Density(lambda z: jnp.where(z > 0, jnp.log(jnp.where(z > 0, z, 1.0)), -jnp.inf), z)
    other = ep.infer(ep.FactorGraph(zero))
    assert other.report.status == "converged"
    assert post["z"].mean() == pytest.approx(other["z"].mean(), rel=1e-12)
