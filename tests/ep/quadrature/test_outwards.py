"""Functions of two numbers on the host: called from the middle outwards, and where they are rough, or no numbers."""

import math

import numpy as np
import pytest

from meanmap import ep


def growth(a, b, noise=0.0):
    """The log likelihood of five sizes of a culture, as numbers of Python: JAX cannot trace it."""
    off = 0.0
    for t, y in ((1.0, 1.2), (2.0, 2.6), (4.0, 7.9), (6.0, 11.0), (9.0, 12.1)):
        size = math.exp(b) / (1 + (math.exp(b) / 0.5 - 1) * math.exp(-math.exp(a) * t))
        size *= 1 + noise * math.sin(1e7 * (t * a + 3.3 * b))
        off += ((math.log(y) - math.log(size)) / 0.15) ** 2
    return -off / 2


def inferred(density, means=(0.0, 0.0)):
    """The posterior of two standard Normals under a density on the host, and the points for which it was called."""
    calls = []

    def counted(a, b):
        calls.append((float(a), float(b)))  # which JAX cannot trace
        return density(a, b)

    a, b = ep.Variable("a", ep.Normal(means[0], 1.0)), ep.Variable("b", ep.Normal(means[1], 1.0))
    post = ep.infer(ep.FactorGraph(ep.Density(counted, a, b, name="f")))
    return post, np.array(calls[1:])  # the first is only to see whether it takes numbers


def assert_beliefs(post, log_density, ends, means=(0.0, 0.0), within=1e-5):
    """Means and standard deviations are those of a dense grid."""
    axes = [np.linspace(*each, 1201) for each in ends]
    a, b = np.meshgrid(*axes, indexing="ij")
    height = log_density(a, b) - (a - means[0]) ** 2 / 2 - (b - means[1]) ** 2 / 2
    mass = np.exp(height - height.max()) / np.exp(height - height.max()).sum()
    for name, x in zip("ab", (a, b), strict=True):
        mean = (mass * x).sum()
        sd = np.sqrt((mass * (x - mean) ** 2).sum())
        assert post[name].mean() == pytest.approx(mean, abs=within * sd)
        assert post[name].sd() == pytest.approx(sd, rel=within)


@pytest.mark.parametrize(("noise", "most"), [(0.0, 3500), pytest.param(1e-8, 6500, marks=pytest.mark.slow)])
def test_a_solver_is_called_from_the_middle_outwards_and_ends_at_its_own_noise(noise, most):
    """It was called at -9.5 standard deviations first, where a solver may take minutes."""
    post, calls = inferred(lambda a, b: growth(a, b, noise), (0.0, 2.0))
    assert np.abs(calls - [0.0, 2.0]).max() < 3.2
    assert len(calls) < most
    assert (post.doubt["f"] > 1e-6) == (noise > 0)
    assert_beliefs(post, np.vectorize(growth), ((-0.8, 0.5), (1.8, 3.2)), (0.0, 2.0), max(float(post.doubt["f"]), 1e-6))


@pytest.mark.parametrize("far", [4.0, pytest.param(-14.0, marks=pytest.mark.slow)])
def test_a_likelihood_far_from_the_middle_is_followed(far):
    """What comes in has next to no mass there: the grid has to go on outwards."""
    post, calls = inferred(lambda a, b: -(((a - far) / 0.2) ** 2) / 2 - ((b - a / 2) / 0.3) ** 2 / 2)
    precision = np.array([[1 + 1 / 0.04 + 0.25 / 0.09, -0.5 / 0.09], [-0.5 / 0.09, 1 + 1 / 0.09]])
    covariance = np.linalg.inv(precision)
    mean = covariance @ [far / 0.04, 0.0]
    for at, name in enumerate("ab"):
        sd = np.sqrt(covariance[at, at])
        assert post[name].mean() == pytest.approx(mean[at], abs=1e-6 * sd)
        assert post[name].sd() == pytest.approx(sd, rel=1e-6)
    assert np.abs(calls[:20]).max() < 2.2
    assert len(calls) < 600


@pytest.mark.slow
def test_a_function_that_says_little_is_followed_to_where_the_prior_ends():
    post, _ = inferred(lambda a, b: -math.log(math.cosh(a - b / 3)))
    assert_beliefs(post, lambda a, b: -np.log(np.cosh(a - b / 3)), ((-9, 9), (-9, 9)), within=1e-6)


@pytest.mark.slow
def test_a_second_peak_far_from_the_first_is_looked_for():
    """Where what comes in has mass, and the first grid does not reach."""

    def peaks(a, b):
        return np.logaddexp(-((a + 1) ** 2 + b**2) / 2 / 0.1**2, 3 - ((a - 2.3) ** 2 + (b - 2.5) ** 2) / 2 / 0.15**2)

    post, _ = inferred(lambda a, b: float(peaks(a, b)))
    assert_beliefs(post, peaks, ((-2, 4), (-1.5, 4)), within=1e-5)


@pytest.mark.parametrize("void", [math.nan, pytest.param(-math.inf, marks=pytest.mark.slow)])
def test_what_is_no_number_far_out_leaves_the_mass_elsewhere(void):
    def density(a, b):
        if math.hypot(a - 0.5, b - 0.5) > 1.2:
            return void
        return -((a - b - 0.2) ** 2 + (a + b - 1) ** 2) / 2 / 0.1**2

    post, calls = inferred(density)
    named = ", but a function returned no number in places" if math.isnan(void) else ""
    assert post.report.status == "converged" + named
    precision = np.array([[201.0, 0.0], [0.0, 201.0]])
    mean = np.linalg.solve(precision, 100 * np.array([1.2, 0.8]))
    assert post["a"].mean() == pytest.approx(mean[0], abs=1e-6)
    assert post["b"].mean() == pytest.approx(mean[1], abs=1e-6)
    assert post["a"].sd() == pytest.approx(201**-0.5, rel=1e-6)
    assert len(calls) < 3000


@pytest.mark.slow
def test_what_is_no_number_beside_the_mass_is_impossible():
    """It was refused, and the data were ignored."""

    def density(a, b):
        return np.where(a > 0.3, -np.inf, -((a - 0.2) ** 2 + b**2) / 2 / 0.1**2)

    post, _ = inferred(lambda a, b: math.nan if a > 0.3 else float(density(a, b)))
    assert post.report.status == "converged, but a function returned no number in places"
    assert_beliefs(post, density, ((-0.6, 0.6), (-0.7, 0.7)), within=0.02)


def test_errors_far_out_do_not_end_a_run_that_has_no_need_to_go_there():
    def density(a, b):
        if math.hypot(a, b) > 6:
            raise RuntimeError("the solver failed")
        return -((a - b - 1) ** 2 + (a + b) ** 2) / 2 / 0.1**2

    post, _ = inferred(density)
    assert post["a"].mean() == pytest.approx(0.5 * 200 / 201, rel=1e-6)


@pytest.mark.slow
def test_a_solver_whose_steps_depend_on_its_arguments_ends():
    """Its values jump by about its tolerance, along more lines than can be followed."""
    integrate = pytest.importorskip("scipy.integrate")
    times, sizes = np.array([1.0, 2.0, 4.0, 6.0, 9.0]), np.array([1.2, 2.6, 7.9, 11.0, 12.1])

    def solved(a, b):
        found = integrate.solve_ivp(
            lambda t, y: math.exp(a) * y * (1 - y / math.exp(b)), (0, 10), [0.5], t_eval=times, rtol=1e-8
        )
        return -float(np.sum(((np.log(sizes) - np.log(found.y[0])) / 0.15) ** 2)) / 2

    post, calls = inferred(solved, (0.0, 2.0))
    assert len(calls) < 10_000
    assert post.doubt["f"] < 1e-3
    # Dense output between its steps is off by 1e-6 or so.
    assert_beliefs(post, np.vectorize(growth), ((-0.8, 0.5), (1.8, 3.2)), (0.0, 2.0), 1e-3)
