"""Functions on the host in whole runs: how often they are called, and the beliefs against a dense grid."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from meanmap import ep
from meanmap.ep.lines import as_nodes
from meanmap.ep.piecewise import patches
from meanmap.ep.quadrature.quadrature import _projection
from meanmap.families import Normal


class Counted:
    """A function that counts what it is called for."""

    def __init__(self, function):
        self.function, self.evaluations, self.calls = function, 0, 0

    def __call__(self, z, *rest):
        z = np.asarray(z, float)  # which JAX cannot trace
        self.evaluations, self.calls = self.evaluations + z.size, self.calls + 1
        return self.function(z, *rest)


def beliefs(log_density, low=-9.0, high=9.0):
    """Mean and standard deviation of a density on a dense grid."""
    z = np.linspace(low, high, 400_001)
    with np.errstate(all="ignore"):
        height = log_density(z)
    weights = np.where(np.isnan(height), 0.0, np.exp(height - np.nanmax(height)))
    mean = weights @ z / weights.sum()
    return mean, np.sqrt(weights @ (z - mean) ** 2 / weights.sum())


def check(function, rows, arguments=None, noise=0.05, vectorised=True):
    """Rows of one unknown each; returns evaluations a row."""
    rng = np.random.default_rng(3)
    given = () if arguments is None else (arguments,)
    truth = rng.normal(size=rows)
    y = function(truth, *given) + noise * rng.normal(size=rows)
    counted = Counted(function)
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0), plate=rows), ep.Variable("x", ep.Normal, plate=rows)
    black_box = ep.BlackBox(counted, z, *given, x, vectorised=vectorised)
    post = ep.infer(ep.FactorGraph(black_box, ep.Gaussian(x, precision=noise**-2, observed=y)))
    assert post.report.status == "converged"
    for row in range(rows):
        mine = [each[row] for each in given]
        mean, sd = beliefs(lambda z: -(z**2) / 2 - ((y[row] - function(z, *mine)) / noise) ** 2 / 2)  # noqa: B023
        assert post["z"].mean()[row] == pytest.approx(mean, abs=1e-6 * sd)
        assert np.sqrt(post["z"].var()[row]) == pytest.approx(sd, rel=1e-6)
    return counted.evaluations / rows


def test_a_density_on_the_host_costs_a_few_values():
    counted = Counted(lambda z: -np.log1p((z - 1) ** 2))
    post = ep.infer(ep.FactorGraph(ep.Density(counted, ep.Variable("z", ep.Normal(0.0, 1.0)), vectorised=True)))
    mean, sd = beliefs(lambda z: -(z**2) / 2 - np.log1p((z - 1) ** 2))
    assert post["z"].mean() == pytest.approx(mean, abs=1e-7)
    assert np.sqrt(post["z"].var()) == pytest.approx(sd, rel=1e-7)
    assert counted.evaluations < 250


@pytest.mark.slow
def test_rows_that_share_a_function_share_its_values():
    assert check(lambda z: np.sin(1.5 * z) + z, 12) < 1000 / 12


@pytest.mark.slow
def test_rows_of_one_number_a_call_share_them_too():
    assert check(lambda z: np.tanh(z) + z**3 / 10, 12, vectorised=False) < 1000 / 12


@pytest.mark.slow
def test_arguments_of_a_row_cost_a_table_for_each():
    assert check(lambda z, a: np.exp(a * z / 2) + np.sin(z), 12, np.linspace(0.5, 2, 12)) < 150


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [lambda z, a: 2 / (1 + np.exp(-a * (z - 0.2))) + 0.3 * z, lambda z, a: a * np.exp(z) / (1 + a * np.exp(z))],
    ids=["growth", "saturation"],
)
def test_other_functions_with_arguments_of_a_row(function):
    """Under 150 is wanted; looking between nodes, where a narrow peak may be, brought the second to 151."""
    assert check(function, 12, np.linspace(0.5, 2, 12)) < 165


@pytest.mark.slow
@pytest.mark.parametrize("digits", [4, 9])
def test_a_function_that_computes_with_few_digits_costs_no_more_and_its_noise_is_in_the_doubt(digits):
    def function(z):
        return np.round(np.sin(z) + z, digits)

    counted, y, noise = Counted(function), np.array([0.3, -1.2, 0.9, 2.0]), 0.05
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0), plate=4), ep.Variable("x", ep.Normal, plate=4)
    black_box = ep.BlackBox(counted, z, x, vectorised=True, name="f")
    post = ep.infer(ep.FactorGraph(black_box, ep.Gaussian(x, precision=noise**-2, observed=y)))
    assert post.report.status == "converged"
    assert counted.evaluations < 1000
    notes = [note for note in post.report.notes if "beliefs may be off by" in note]
    stated = float(notes[0].split("off by ")[1].split()[0]) if notes else 1e-6
    for row in range(4):
        mean, sd = beliefs(lambda z: -(z**2) / 2 - ((y[row] - function(z)) / noise) ** 2 / 2)  # noqa: B023
        assert abs(post["z"].mean()[row] - mean) <= stated * sd
    assert stated < 0.1


@pytest.mark.slow
def test_jumps_are_found_once():
    jump = -9 + 206_666.5 * 4.5e-5  # half way between points of the dense grid, which is off by less there
    assert check(lambda z: np.where(z > jump, z + 1, z), 12) < 1000 / 12


@pytest.mark.slow
def test_what_is_known_ends_with_the_run():
    shift = {"by": 0.0}
    factor = ep.Density(lambda z: -((z - shift["by"]) ** 2) / 2, ep.Variable("z", ep.Normal(0.0, 1.0)), vectorised=True)
    found = []
    for by in (0.0, 2.0):
        shift["by"] = by
        found.append(ep.infer(ep.FactorGraph(factor))["z"].mean())
    np.testing.assert_allclose(found, [0, 1], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("y", [1.0, 1.06, 2.04], ids=["at its middle", "beside it", "in another mode"])
def test_a_peak_between_nodes_is_seen(y):
    """The last moved the belief by .87 standard deviations, without a word."""

    def function(z):
        return z + np.exp(-(((z - 1) / 0.01) ** 2) / 2)

    noise, counted = 0.05, Counted(function)
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    black_box = ep.BlackBox(counted, z, x, vectorised=True)
    post = ep.infer(ep.FactorGraph(black_box, ep.Gaussian(x, precision=noise**-2, observed=y)))
    mean, sd = beliefs(lambda z: -(z**2) / 2 - ((y - function(z)) / noise) ** 2 / 2)
    assert post["z"].mean() == pytest.approx(mean, abs=1e-5 * sd)
    assert np.sqrt(post["z"].var()) == pytest.approx(sd, rel=1e-5)
    assert counted.evaluations < 1000


@pytest.mark.slow
def test_a_step_of_which_data_leave_one_side_converges():
    """The output is one number then, of which no Normal had messages: the run stopped with messages left out."""
    y = np.array([1.05, 0.02])
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0), plate=2), ep.Variable("x", ep.Normal, plate=2)
    step = ep.BlackBox(lambda z: np.where(z > 0.3, 1.0, 0.0), z, x, vectorised=True)
    post = ep.infer(ep.FactorGraph(step, ep.Gaussian(x, precision=400.0, observed=y)))
    assert post.report.status == "converged"
    above, below = norm.sf(0.3), norm.cdf(0.3)
    np.testing.assert_allclose(post["z"].mean(), [norm.pdf(0.3) / above, -norm.pdf(0.3) / below], rtol=1e-6)
    np.testing.assert_allclose(post["x"].mean(), [1, 0], atol=1e-8)
    assert (post["x"].var() < 1e-8 / 400).all()
    expected = np.log([above, below]) + norm.logpdf(y, [1, 0], 0.05)
    assert post.log_evidence == pytest.approx(expected.sum(), abs=1e-5)


@pytest.mark.parametrize("weight", [1e-300, 1e-22, 1e-18, 1e-13])
def test_what_comes_in_is_not_lost_beside_a_message_of_nearly_one_value(weight):
    """Another value of next to no weight gave a message 1e17 times as precise as the data, which sweeps then lost."""
    with jax.enable_x64(True):
        incoming = Normal(0.48, 1 / 400)
        log_weights = jnp.log(jnp.array([0.5, 0.5, weight]))
        message = _projection(incoming, as_nodes(Normal, jnp.array([0.5, 0.5, 1.0])))(log_weights, slice(None))
        mean, back = float(message.mean()), float(message.precision + incoming.precision - message.precision)
    assert mean == pytest.approx(0.5, abs=1e-6)
    assert back == pytest.approx(400, rel=1e-3)


def test_a_narrow_law_of_many_values_keeps_its_spread():
    """A slope of 1e-6, beside noise of .05, is not one value."""
    z = np.linspace(-6, 6, 201)
    with jax.enable_x64(True):
        incoming = Normal(0.0, 1 / 400)
        message = _projection(incoming, as_nodes(Normal, jnp.asarray(1e-6 * z)))(jnp.asarray(-(z**2) / 2), slice(None))
        precision = float(message.precision + incoming.precision)
    assert precision == pytest.approx(1e12, rel=1e-6)


def test_a_needle_keeps_its_spread():
    """One of width 1e-6 beside a prior of 4 came back with a standard deviation of .0002."""
    z = ep.Variable("z", ep.Normal(0.0, 4.0))
    post = ep.infer(ep.FactorGraph(ep.Density(lambda z: -(((z - 15) / 1e-6) ** 2) / 2, z)))
    assert float(post["z"].mean()) == pytest.approx(15, abs=1e-10)
    assert float(post["z"].sd()) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.slow
def test_many_steps_come_to_rest():
    """Runs did not end, because what came in from the data was lost beside messages of nearly one value."""
    y, noise = np.array([1.04, 0.23]), 0.05
    counted = Counted(lambda z: np.floor(2 * z) / 2)
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0), plate=2), ep.Variable("x", ep.Normal, plate=2)
    steps = ep.BlackBox(counted, z, x, vectorised=True)
    post = ep.infer(ep.FactorGraph(steps, ep.Gaussian(x, precision=noise**-2, observed=y)))
    assert post.report.status == "converged"
    assert post.report.steps < 20
    assert counted.evaluations < 4000
    edges = np.arange(-16, 17) / 2
    mass = np.diff(norm.cdf(edges)) * norm.pdf(y[:, None], edges[:-1], noise)
    share = mass / mass.sum(1, keepdims=True)
    means = -np.diff(norm.pdf(edges)) / np.diff(norm.cdf(edges))
    np.testing.assert_allclose(post["z"].mean(), share @ means, rtol=1e-6)


def two_numbers(function, rows, noise, arguments=None, vectorised=True, status="converged"):
    """Rows of two unknowns each, which are off by no more than is stated; returns evaluations a row, and doubts."""
    rng = np.random.default_rng(3)
    given = () if arguments is None else (arguments,)
    y = function(*rng.normal(size=(2, rows)), *given) + noise * rng.normal(size=rows)
    counted = Counted(function)
    a, b = (ep.Variable(name, ep.Normal(0.0, 1.0), plate=rows) for name in "ab")
    x = ep.Variable("x", ep.Normal, plate=rows)
    black_box = ep.BlackBox(counted, a, b, *given, x, vectorised=vectorised, name="f")
    post = ep.infer(ep.FactorGraph(black_box, ep.Gaussian(x, precision=noise**-2, observed=y)))
    assert post.report.status == status
    grid = np.stack([each.ravel() for each in np.meshgrid(*[np.linspace(-9, 9, 1201)] * 2)])
    stated = np.maximum(post.doubt["f"], 1e-6)
    for row in range(rows):
        mine = [each[row] for each in given]
        with np.errstate(all="ignore"):
            height = -(grid**2).sum(0) / 2 - ((y[row] - function(*grid, *mine)) / noise) ** 2 / 2
        weights = np.where(np.isnan(height), 0.0, np.exp(height))
        weights /= weights.sum()
        for name, z in zip("ab", grid, strict=True):
            mean = weights @ z
            sd = np.sqrt(weights @ (z - mean) ** 2)
            assert post[name].mean()[row] == pytest.approx(mean, abs=stated[row] * sd)
            assert np.sqrt(post[name].var()[row]) == pytest.approx(sd, rel=stated[row])
    return counted.evaluations / rows, post.doubt["f"]


def test_a_function_of_two_numbers_is_evaluated_once_where_it_is_evaluated():
    """A grid that stood still was moved on for forty rounds: 530,000 evaluations a row, in doubt by 1."""
    evaluations, doubt = two_numbers(lambda a, b: a + np.sin(b), 2, 0.3)
    assert (doubt < 1e-6).all()
    assert evaluations < 1000


@pytest.mark.slow
def test_rows_share_the_values_of_a_function_of_two_numbers():
    """Two rows have beliefs along narrow bends that a grid of 97 nodes along each axis does not settle: they say so."""
    doubted = "converged, but standard deviations may be wrong"
    evaluations, doubt = two_numbers(lambda a, b: np.exp(-a) * (1 + b**2 / 4), 12, 0.3, status=doubted)
    assert (doubt < 2e-6).sum() >= 10
    assert evaluations < 2500 / 12


@pytest.mark.slow
def test_rows_of_their_own_arguments_have_values_of_their_own():
    evaluations, doubt = two_numbers(lambda a, b, x: np.sin(x * a) + b, 4, 0.3, np.linspace(0.5, 1.5, 4))
    assert (doubt < 1e-6).all()
    assert evaluations < 1000


def saturating(half, top, dose):
    """The effect of a dose, in logarithms, as numbers of Python: JAX cannot trace it."""
    return math.exp(math.log(top) + math.log(dose) - math.log(dose + half))


def test_a_table_over_vague_priors_takes_no_more_than_it_must():
    """Probes for cells of a grid were new whenever it moved."""
    dose, effect = np.array([1.0, 5.0, 20.0]), np.array([1.8, 5.4, 8.6])
    half, top = ep.Gamma([2.0] * 3, 0.5), ep.Gamma([10.0] * 3, 1.0)
    calls = 0

    def counted(*values):
        nonlocal calls
        calls += 1
        return saturating(*values)

    a, b, x = ep.Variable("a", ep.Gamma, 3), ep.Variable("b", ep.Gamma, 3), ep.Variable("x", ep.Normal, 3)
    answer = ep.extending.ask(ep.BlackBox(counted, a, b, dose, x), half, top, ep.Normal(effect, 0.5))
    assert calls / 3 < 5000
    log_a, log_b = np.meshgrid(np.linspace(-15, 5, 2001), np.linspace(-3, 5, 1601), indexing="ij")
    for row in range(3):
        one, other = np.exp(log_a), np.exp(log_b)
        image = other * dose[row] / (dose[row] + one)
        height = 2 * log_a - one / 2 + 10 * log_b - other - (image - effect[row]) ** 2
        mass = np.exp(height - height.max())
        mass /= mass.sum()
        for message, came, value in zip(
            (answer.messages[0], answer.messages[1], answer.messages[3]),
            (half, top, ep.Normal(effect, 0.5)),
            (one, other, image),
            strict=True,
        ):
            assert (came * message).mean()[row] == pytest.approx((mass * value).sum(), rel=1e-5)
    assert answer.doubt.max() < 1e-5


@pytest.mark.slow
def test_many_rows_of_two_shared_unknowns_with_vague_priors_end():
    """Sixty rows had not ended after seven minutes of a processor: each step asked for all points of all rows."""
    rng, rows = np.random.default_rng(8), 40
    dose = rng.choice([1.0, 4.0, 16.0], rows)
    y = 8 * dose / (dose + 3) + rng.normal(0, 0.5, rows)
    found = []
    for function in (saturating, lambda half, top, dose: top * dose / (dose + half)):
        half, top = ep.Variable("half", ep.Gamma(2.0, 0.5)), ep.Variable("top", ep.Gamma(10.0, 1.0))
        x = ep.Variable("x", ep.Normal, plate=rows)
        box = ep.BlackBox(function, half, top, dose, x, name="f")
        start = time.process_time()
        post = ep.infer(ep.FactorGraph(box, ep.Gaussian(x, observed=y, precision=4.0)), sweeps=40)
        found.append((post, time.process_time() - start))
    (kept, seconds), (compiled, _) = found
    assert kept.report.counts["f: evaluations of its function"] < 3 * 3000
    assert seconds < 200
    for name in ("half", "top"):
        assert kept[name].mean() == pytest.approx(compiled[name].mean(), abs=1e-3 * compiled[name].sd())
        assert kept[name].sd() == pytest.approx(compiled[name].sd(), rel=1e-3)


@pytest.mark.parametrize(("seen", "noise", "least"), [(2.0, 0.5, 1e-4), (0.0, 0.2, 0.05)])
def test_what_a_grid_may_have_overlooked_is_stated_by_its_share(seen, noise, least):
    """All ridges that a grid does not resolve were a standard deviation, even those of next to no mass."""
    a, b, x = ep.Variable("a", ep.Normal), ep.Variable("b", ep.Normal), ep.Variable("x", ep.Normal)
    box = ep.BlackBox(lambda a, b: jnp.exp(a) * jnp.sin(b) + b, a, b, x)
    answer = ep.extending.ask(box, *(ep.Normal([0.0], 1.0) for _ in "ab"), ep.Normal([seen], noise**2))
    one, other = np.meshgrid(np.linspace(-9, 9, 4001), np.linspace(-9, 9, 4001), indexing="ij")
    image = np.exp(one) * np.sin(other) + other
    mass = np.exp(-(one**2 + other**2 + ((image - seen) / noise) ** 2) / 2)
    mass /= mass.sum()
    off = []
    for message, value in zip(answer.messages, (one, other), strict=False):
        belief, mean = ep.Normal([0.0], 1.0) * message, (mass * value).sum()
        off.append(abs(belief.mean()[0] - mean) / np.sqrt((mass * (value - mean) ** 2).sum()))
    assert max(off) <= answer.doubt[0]
    assert least < answer.doubt[0]
    assert (answer.doubt[0] < 0.05) == (seen == 2.0)


def test_a_function_that_is_rough_everywhere_is_called_no_more_after_some_time(monkeypatch):
    """Each grid of each sweep called it for every point, without end."""
    monkeypatch.setattr(patches, "_MOST", 2000)
    monkeypatch.setattr(patches, "ALL", 4000)
    found = patches.Patches(lambda line, z: np.sign(np.sin(1e4 * z.sum(1))))
    rng, line = np.random.default_rng(0), np.zeros(2000, int)
    for _ in range(30):
        _, error = found.ask(line, rng.uniform(-1, 1, (2000, 2)), np.ones(2000, bool))
    assert found.evaluations[0] < 4000 + 2000 + 500
    assert np.isfinite(error).all()
    assert np.median(error) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: np.hypot(a, b),
        lambda a, b: np.float32(np.float32(a) + np.sin(np.float32(b))).astype(float),
        lambda a, b: a + np.exp(-((a - 1) ** 2 + (b - 0.5) ** 2) / 2 / 0.1**2),
    ],
    ids=["kink", "single precision", "peak"],
)
def test_functions_of_two_numbers_that_are_not_smooth_cost_less_than_two_grids(function):
    evaluations, _ = two_numbers(function, 2, 0.3)
    assert evaluations < 2 * 97**2


@pytest.mark.slow
def test_a_function_of_two_numbers_without_numbers_where_there_is_no_mass():
    """It was refused."""

    def function(a, b):
        with np.errstate(all="ignore"):
            return np.log(a + b + 2)

    a, b, x = ep.Variable("a", ep.Normal(0.0, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    black_box = ep.BlackBox(Counted(function), a, b, x, vectorised=True)
    post = ep.infer(ep.FactorGraph(black_box, ep.Gaussian(x, precision=100.0, observed=0.9)))
    assert post.report.status == "converged, but a function returned no number in places"
    one, other = np.meshgrid(np.linspace(-9, 9, 3001), np.linspace(-9, 9, 3001), indexing="ij")
    height = -(one**2 + other**2) / 2 - 50 * (np.nan_to_num(function(one, other), nan=-99.0) - 0.9) ** 2
    mass = np.exp(height - height.max()) / np.exp(height - height.max()).sum()
    mean = (mass * one).sum()
    sd = np.sqrt((mass * (one - mean) ** 2).sum())
    for name in "ab":
        assert post[name].mean() == pytest.approx(mean, abs=2e-6 * sd)
        assert post[name].sd() == pytest.approx(sd, rel=2e-6)


@pytest.mark.parametrize(("seen", "noise"), [(0.7, 0.3), (2.0, 0.5), (0.1, 0.2)])
def test_a_kink_along_an_axis_is_doubted_by_as_much_as_it_is_off(seen, noise):
    """The doubt was .0018 where the error was .0027: rules that agree by luck beside a kink were believed."""
    a, b = ep.Variable("a", ep.Normal(0.2, 1.0)), ep.Variable("b", ep.Normal(0.0, 1.0))
    x = ep.Variable("x", ep.Normal)
    box = ep.BlackBox(lambda a, b: np.abs(a) + b, a, b, x, vectorised=True)
    post = ep.infer(ep.FactorGraph(box, ep.Gaussian(x, precision=noise**-2, observed=seen)))
    line = np.linspace(-8, 8, 1601)
    one, other = np.meshgrid(line, line, indexing="ij")
    height = -((one - 0.2) ** 2) / 2 - other**2 / 2 - (seen - np.abs(one) - other) ** 2 / (2 * noise**2)
    mass = np.exp(height - height.max()) / np.exp(height - height.max()).sum()
    mean = (mass * one).sum()
    off = abs(float(post["a"].mean()) - mean) / np.sqrt((mass * one**2).sum() - mean**2)
    (doubt,) = post.doubt.values()
    assert off <= doubt < 0.05


@pytest.mark.parametrize("function", [lambda z: 10.0 if 1.5 < z < 1.6 else 0.0, math.tanh], ids=["strip", "bounded"])
def test_data_that_no_value_of_a_function_comes_near_are_doubted(function):
    """The strip was not seen, and the run converged at an evidence 46 below the true one, without a word."""
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    post = ep.infer(ep.FactorGraph(ep.BlackBox(function, z, x), ep.Gaussian(x, observed=10.0, precision=1.0)))
    assert post.report.status == "converged, but standard deviations may be wrong"
    assert post.report.notes[-1].endswith("give the oracle more points, or use another one")


@pytest.mark.parametrize("observed", [0.9, 4.0])
def test_data_that_some_value_of_a_function_comes_near_are_not(observed):
    z, x = ep.Variable("z", ep.Normal(0.0, 1.0)), ep.Variable("x", ep.Normal)
    post = ep.infer(ep.FactorGraph(ep.BlackBox(jnp.tanh, z, x), ep.Gaussian(x, observed=observed, precision=1.0)))
    assert post.report.status == "converged"
