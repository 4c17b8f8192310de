"""Mixture and particle fields against grids and closed forms, and what is refused."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.graphs import Residual, Schedule, Sequential, TwoPass
from meanmap_papers import rivals
from tests.bp import grids

GRID = np.linspace(-5, 5, 401)
CHAIN = [(i, i + 1) for i in range(5)]
RING = [*CHAIN, (5, 0)]
SEEN = np.array([0.8, np.nan, np.nan, -1.0, np.nan, 0.5])
METHODS = {
    "mixture": lambda graph, size, **more: rivals.MixtureField(graph, components=size, **more),
    "particle": lambda graph, size, **more: rivals.ParticleField(graph, particles=size, **more),
    "adaptive": lambda graph, size, **more: rivals.ParticleField(
        graph, particles=size, proposal=rivals.Adaptive(), **more
    ),
}


def autoregressive(n=1500, seed=0):
    """Neighbours of a stationary Gaussian chain with correlation .8."""
    x, noise = np.random.default_rng(seed).normal(size=(2, n))
    return x, 0.8 * x + 0.6 * noise


def own_factors(seen):
    return np.where(np.isnan(seen)[:, None], 1.0, grids.likelihood(np.nan_to_num(seen), GRID))


def exact(field, seen=SEEN):
    """Means and variances by a fine grid, with the densities that this kind of field uses."""
    matrices = grids.onwards if isinstance(field, rivals.FittedMixtureField) else grids.backwards
    return grids.moments(grids.beliefs(field, own_factors(seen), GRID, matrices(field, GRID)), GRID)


def errors(field, seeds, seen=SEEN, **settings):
    """How far means are from the grid's, (seeds, n)."""
    mean, _ = exact(field, seen)
    found = [field.query(observed=seen, rng=seed, **settings) for seed in seeds]
    return np.array([[beliefs[i].mean() for i in range(len(mean))] for beliefs in found]) - mean


@pytest.mark.parametrize("method", METHODS)
def test_beliefs_on_a_chain_are_those_of_a_fine_grid(method):
    field = METHODS[method](CHAIN, 64).fit(autoregressive(500), likelihood=grids.likelihood)
    mean, variance = exact(field)
    beliefs = field.query(observed=SEEN, rng=0)
    assert beliefs.report.converged
    assert beliefs.report.measures["effective particles, at least"] > 10
    # A mean of 64 particles is off by σ / 8, and so is each message that it rests on.
    assert (np.abs([beliefs[i].mean() for i in range(6)] - mean) < 5 * np.sqrt(variance / 64) + 0.02).all()
    assert 0.5 < np.mean([beliefs[i].var() for i in range(6)] / variance) < 1.5
    again, other = field.query(observed=SEEN, rng=0), field.query(observed=SEEN, rng=1)
    assert again[2].mean() == beliefs[2].mean() != other[2].mean()
    if method == "mixture":  # what embeddings answer is the same for all
        assert abs(beliefs[1].density(GRID).sum() * (GRID[1] - GRID[0]) - 1) < 0.02
        assert abs(beliefs[1].mode() - mean[1]) < 3 * np.sqrt(variance[1])
        assert beliefs[1].sample(5, rng=0).shape == (5,)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_the_error_falls_as_the_root_of_the_number(method):
    sizes, found = (25, 100, 400), []
    for size in sizes:
        field = METHODS[method](CHAIN, size).fit(autoregressive(), likelihood=grids.likelihood)
        found.append(np.sqrt(np.mean(errors(field, range(10)) ** 2)))
    slope = np.polyfit(np.log(sizes), np.log(found), 1)[0]
    assert -0.75 < slope < -0.35, found
    # The bias, that of all seeds together, falls too.
    assert np.abs(errors(field, range(10)).mean(axis=0)).mean() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_on_a_ring_of_two_modes_the_answer_is_that_of_the_grid(method):
    rng = np.random.default_rng(0)
    x = rng.choice([-1.5, 1.5], 2000) + 0.4 * rng.normal(size=2000)
    y = np.where(rng.random(2000) < 0.85, 1, -1) * x + 0.3 * rng.normal(size=2000)
    field = METHODS[method](RING, 400).fit((x, y), likelihood=grids.likelihood)
    off = errors(field, range(4), np.array([1.0, np.nan, np.nan, 0.2, np.nan, np.nan]))
    assert np.sqrt(np.mean(off**2)) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_beliefs_are_near_those_of_the_gaussian_in_closed_form(method):
    """The densities are learned from 4000 pairs: 0.05 is their error, about."""
    field = METHODS[method](CHAIN, 300).fit(autoregressive(4000), likelihood=grids.likelihood)
    covariance = 0.8 ** np.abs(np.subtract.outer(range(6), range(6)))
    there = ~np.isnan(SEEN)
    precision = np.linalg.inv(covariance) + 4 * np.diag(there)
    mean, variance = np.linalg.solve(precision, 4 * np.nan_to_num(SEEN)), np.diag(np.linalg.inv(precision))
    beliefs = field.query(observed=SEEN, rng=0)
    assert np.abs([beliefs[i].mean() for i in range(6)] - mean).max() < 0.15
    assert 0.8 < np.mean([beliefs[i].var() for i in range(6)] / variance) < 1.25


@pytest.mark.parametrize("method", ["mixture", pytest.param("particle", marks=pytest.mark.slow)])
def test_relations_with_directions_values_functions_queries_and_a_node_alone(method):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 5, 400)
    graph = mm.Graph.of([(i, i + 1) for i in range(3)], nodes=range(5))
    make = METHODS[method](graph, 64, relations=["up"] * 3)
    field = make.fit({"up": (x, x + 1 + 0.3 * rng.normal(size=400))}, observed=(x, x + 0.2 * rng.normal(size=400)))
    by_value = field.query({1: 2.5}, rng=0)
    by_function = field.query({1: lambda x: np.exp(-50 * (x - 2.5) ** 2)}, rng=0)
    for beliefs in (by_value, by_function):
        assert abs(beliefs[2].mean() - 3.5) < 0.3
        assert abs(beliefs[0].mean() - 1.5) < 0.3
        assert beliefs[4].sd() > 1
    assert by_value[1].mean() == 2.5
    both = np.full((2, 5), np.nan)
    both[0, 1], both[1, 2] = 2.5, 2.5
    together = field.query(observed=both, rng=0)
    assert together[1].mean().shape == (2,)
    np.testing.assert_allclose(together[1].mean(), [2.5, 1.5], atol=0.35)


@pytest.mark.parametrize("make", [rivals.MixtureField, pytest.param(rivals.ParticleField, marks=pytest.mark.slow)])
def test_vectors_and_variables_of_different_kinds(make):
    rng = np.random.default_rng(0)
    place = rng.normal(size=(400, 2))
    height = place @ [1.0, -1.0] + 0.2 * rng.normal(size=400)
    field = make([("p", "h")], relations=["hill"], variables={"p": "place", "h": "height"})
    fitted = field.fit({"hill": (place, height)})
    assert abs(fitted.query({"p": [0.5, -0.5]}, rng=0)["h"].mean() - 1) < 0.25
    there = fitted.query({"h": 2.0}, rng=0)["p"]
    assert there.mean().shape == (2,)
    np.testing.assert_allclose(there.mean(), [1, -1], atol=0.35)


def test_sequential_and_two_pass_agree_and_the_others_are_refused():
    data = autoregressive(400)
    passes = rivals.MixtureField(CHAIN, components=64, schedule=TwoPass()).fit(data, likelihood=grids.likelihood)
    turns = rivals.MixtureField(CHAIN, components=64, schedule=Sequential(4)).fit(data, likelihood=grids.likelihood)
    off = errors(passes, range(3)).mean(axis=0) - errors(turns, range(3), damping=0.0).mean(axis=0)
    assert np.abs(off).max() < 0.2
    with pytest.raises(KindError, match="mostly chance"):
        rivals.MixtureField(CHAIN, schedule=Residual())
    with pytest.raises(InputError, match="has a cycle"):
        rivals.MixtureField(RING, schedule=TwoPass())


class Outwards(Schedule):
    """From one end of a chain to the other and back."""

    def run(self, exchange):
        raise NotImplementedError

    def rounds(self, graph):
        forward = np.arange(len(graph.edges))
        for _ in range(3):
            yield [*np.split(forward, len(forward)), *np.split(forward[::-1] + len(forward), len(forward))]


def test_a_schedule_of_the_user_s_says_what_is_sent_at_once():
    data = autoregressive(300)
    own, passes = (
        rivals.MixtureField(CHAIN, components=64, schedule=schedule).fit(data, likelihood=grids.likelihood)
        for schedule in (Outwards(), TwoPass())
    )
    seen = [np.array([field.query(observed=SEEN, rng=seed)[1].mean() for seed in range(4)]) for field in (own, passes)]
    assert abs(seen[0].mean() - seen[1].mean()) < 4 * np.hypot(seen[0].std(), seen[1].std()) / 2 + 1e-9


@pytest.mark.slow
def test_low_weights_are_skipped_without_changing_the_answer():
    field = rivals.ParticleField(CHAIN, particles=64, rounds=1).fit(autoregressive(400), likelihood=grids.likelihood)
    sharp = {2: lambda x: np.exp(-400 * (x - 1.0) ** 2)}
    field.skip = 0.0
    whole = field.query(sharp, rng=0)
    field.skip = 1e-7
    fewer = field.query(sharp, rng=0)
    assert fewer.report.counts["skipped particles"] > 5
    for node in range(6):
        assert abs(whole[node].mean() - fewer[node].mean()) < 1e-4


def test_the_paper_s_mixtures_of_smoothed_draws():
    field = rivals.MixtureField(CHAIN, components=100, bandwidth="likelihood", sampler=rivals.Gibbs(5))
    fitted = field.fit(autoregressive(600), likelihood=grids.likelihood)
    assert np.abs(errors(fitted, range(2)).mean(axis=0)).max() < 0.4
    damped = rivals.MixtureField(RING, components=16, bandwidth="thumb").fit(
        autoregressive(300), likelihood=grids.likelihood
    )
    assert damped.query(observed=SEEN, rng=0).report.steps == 15


@pytest.mark.parametrize("method", ["mixture", "particle"])
def test_collapse_is_a_status(method):
    """Possible is one number alone, that no draw hits."""
    field = METHODS[method](CHAIN, 64).fit(autoregressive(300))
    only = field.densities.priors.means[0, 0, 0]
    report = field.query({2: lambda x: (x == only).astype(float)}, rng=0).report
    assert not report.converged
    assert "collapsed" in report.status
    assert "More particles may help" in str(report) or "more components may help" in str(report)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: rivals.ParticleField(CHAIN, particles=0), ParameterError, "particles"),
        (lambda: rivals.ParticleField(CHAIN, proposal="walk"), KindError, "proposal is 'walk'"),
        (lambda: rivals.ParticleField(CHAIN, rounds=0), ParameterError, "rounds"),
        (lambda: rivals.Metropolis(0), ParameterError, "steps is 0"),
        (lambda: rivals.MixtureField(CHAIN, components=0), ParameterError, "components"),
        (lambda: rivals.MixtureField(CHAIN, sampler="tree"), KindError, "sampler is 'tree'"),
        (lambda: rivals.MixtureField(CHAIN, bandwidth="wide"), ParameterError, "bandwidth is 'wide'"),
        (lambda: rivals.MixtureField(CHAIN).fit((list("abcabc"), list("abcabc"))), KindError, "are not numbers"),
        (lambda: rivals.MixtureField(CHAIN).fit(([1.0, 2.0], [1.0, 2.0])), EmptyError, "has 2 pairs"),
        (lambda: rivals.ParticleField(CHAIN).fit((np.ones(9), np.ones(8))), ShapeError, "9 and 8 points"),
    ],
)
def test_bad_input_is_refused_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("make", [rivals.MixtureField, rivals.ParticleField])
def test_bad_queries_are_refused_in_words(make):
    field = make(CHAIN, centres=20).fit(autoregressive(60))
    for call, kind, words in (
        (lambda: field.query({9: 1.0}), InputError, "no node 9"),
        (lambda: field.query({0: np.nan}), InputError, "evidence"),
        (lambda: field.query({0: lambda x: 0 * x}), InputError, "zero at every point"),
        (lambda: field.query(damping=1.0), ParameterError, "damping is 1.0"),
        (lambda: field.query(observed=np.zeros(6)), InputError, "have no likelihood"),
        (lambda: field.query({0: 0.0}, rng="seed"), KindError, "rng is a str"),
    ):
        with pytest.raises(kind, match=words):
            call()
