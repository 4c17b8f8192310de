"""A function that leaves the range of its output is said to, at once, and where it only begins outside runs go on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from meanmap import ep


def model(function, family=ep.Beta):
    z, p = ep.Variable("z", ep.Normal(0.0, 1.0), plate=3), ep.Variable("p", family, plate=3)
    seen = ep.Bernoulli(p, observed=[0, 1, 1]) if family is ep.Beta else ep.Poisson(p, observed=[1, 4, 2])
    return ep.FactorGraph(ep.BlackBox(function, z, p, name="link"), seen)


@pytest.mark.parametrize(
    ("function", "family", "words"),
    [
        (lambda z: 3 * z, ep.Beta, "-3 for z = -1., and 'p' is a Beta, between 0 and 1"),
        (lambda z: float(z) - 2.0, ep.Gamma, "-3 for z = -1., and 'p' is a Gamma, above 0"),
    ],
)
def test_a_function_that_leaves_the_range_of_its_output_is_named_with_a_value(function, family, words):
    report = ep.infer(model(function, family)).report
    assert not report.converged
    assert (
        report.notes[0]
        == f"the function of link at [0] is {words}: give a function that stays there, or another family"
    )
    assert report.steps <= 4


@pytest.mark.parametrize(
    "messages", [ep.Learned(ep.Quadrature(), initial=20), lambda questions: questions.ask(ep.Quadrature())]
)
def test_oracles_on_the_host_say_it_too(messages):
    report = ep.infer(model(lambda z: 3 * z), messages, rng=0).report
    assert not report.converged
    assert report.notes[0].startswith("the function of link at [0] is -3 for z = -1., and 'p' is a Beta")
    assert report.steps <= 4


def test_chains_end_where_functions_leave_the_range():
    # Steps became shorter and trajectories longer without end, where no trajectory was accepted.
    chains = ep.MCMC(draws=800, warmup=60)
    report = ep.infer(model(lambda z: z - 50.0), chains, rng=0).report
    assert report.notes[0].startswith("the function of link at [0] is -51 for z = -1.")
    # A density that ends abruptly: z lies between 0 and 1/3.
    post = ep.infer(model(lambda z: 3 * z), chains, rng=0, sweeps=3)
    grid = np.linspace(0, 1 / 3, 3001)
    weights = np.exp(-(grid**2) / 2) * np.stack([1 - 3 * grid, 3 * grid, 3 * grid])
    off = np.abs(post["z"].mean() - weights @ grid / weights.sum(1)) / post["z"].sd()
    assert (off < 5 * post.doubt["link"]).all()
    assert (post.doubt["link"] < 0.5).all()


def test_functions_that_stay_inside_are_let_be():
    assert ep.infer(model(jax.nn.sigmoid)).report.notes == ()
    assert ep.infer(model(jnp.exp, ep.Gamma)).report.converged


def test_a_function_that_is_outside_only_before_others_have_spoken_converges():
    """z / 10 is negative for half of the prior of z, and far from zero once z was seen, which takes a sweep."""
    z, p, y = ep.Variable("z", ep.Normal(0.0, 900.0)), ep.Variable("p", ep.Gamma), ep.Variable("y", ep.Normal)
    seen = ep.Gaussian(z, y, precision=8.0), ep.Gaussian(y, observed=20.0, precision=8.0)
    post = ep.infer(ep.FactorGraph(ep.BlackBox(lambda z: z / 10, z, p), ep.Poisson(p, observed=2), *seen))
    assert post.report.converged
    assert not any("the function of" in note for note in post.report.notes)
    grid = np.linspace(15, 25, 20_001)
    weights = np.exp(-2 * (grid - 20) ** 2 - grid**2 / 1800 - grid / 10) * grid**2
    assert post["z"].mean() == pytest.approx(grid @ weights / weights.sum(), abs=1e-4)
