"""One line swaps the method: all fields take the same graphs, pairs and evidence, and answer with the same beliefs."""

import inspect

import numpy as np
import pytest

import meanmap as mm
from meanmap import bp
from meanmap.core.errors import InputError, KindError
from meanmap_papers import rivals

CHAIN = [(0, 1), (1, 2)]
RING = [(i, (i + 1) % 5) for i in range(5)]
SLOW = [
    pytest.param(kind, marks=pytest.mark.slow) for kind in (mm.KernelField, rivals.MixtureField, rivals.ParticleField)
]
FIELDS = [rivals.GaussianField, rivals.DiscretizedField, *SLOW]


def pairs(m=400, correlation=0.6, seed=0):
    x = np.random.default_rng(seed).normal(size=m)
    return x, correlation * x + np.sqrt(1 - correlation**2) * np.random.default_rng(seed + 1).normal(size=m)


def shared(function):
    """Its arguments by name, without those that belong to one method."""
    return set(inspect.signature(function).parameters)


def test_all_fitted_models_have_one_interface():
    kinds = {kind for kind in vars(bp.results).values() if inspect.isclass(kind) and kind.__name__.startswith("Fitted")}
    restoring_images = {bp.results.FittedKernelGrid, bp.results.FittedForestGrid}
    # These have a regression for each variable where the others have relations along edges.
    of_regressions = {bp.results.FittedBayesianNetwork, bp.results.FittedDependencyNetwork}
    others = {kind for kind in kinds if not issubclass(kind, bp.results.FittedModel)}
    assert others == restoring_images | of_regressions
    for kind in of_regressions:
        assert shared(kind.score) == shared(bp.results.FittedKernelGraph.score)
        assert shared(kind.sample) >= {"n", "rng"}
    assert issubclass(bp.results.FittedKernelField, bp.results.FittedField)


@pytest.mark.parametrize("kind", FIELDS)
def test_all_fields_take_the_same_and_answer_with_the_same(kind):
    assert shared(kind) >= {"graph", "relations", "variables", "schedule"}
    assert shared(kind.fit) == {"self", "pairs", "observed", "likelihood", "kinds"}
    hidden = pairs()[0]
    noise = 0.5 * np.random.default_rng(3).normal(size=400)
    field = kind(RING).fit(pairs(), observed=(hidden, hidden + noise), likelihood=bp.NoiseLikelihood)
    assert isinstance(field, bp.results.FittedField)
    assert shared(field.query) >= {"evidence", "targets", "observed", "damping"}
    assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(field.query).parameters.values())
    seen = np.full((2, 5), np.nan)
    seen[0, 2], seen[1, 2] = 1.5, -1.5
    beliefs = field.query({0: 1.0, 4: lambda x: np.exp(-((np.asarray(x) - 1) ** 2))}, [0, 1, 2], observed=seen)
    assert list(beliefs) == [0, 1, 2]
    assert isinstance(beliefs.report, mm.core.Report)
    belief = beliefs[2]
    assert belief.mean().shape == belief.var().shape == belief.sd().shape == belief.mode().shape == (2,)
    assert belief.mean()[0] > 0.5 > -0.5 > belief.mean()[1]
    assert belief.quantile([0.1, 0.5, 0.9]).shape == (2, 3)
    assert (np.diff(belief.quantile([0.1, 0.5, 0.9])) > 0).all()
    grid = np.linspace(-6, 6, 601)
    np.testing.assert_allclose(belief.density(grid).sum(axis=1) * 0.02, 1, atol=0.02)
    draws = belief.sample(2000, rng=0)
    assert draws.shape == (2, 2000)
    np.testing.assert_allclose(draws.mean(axis=1), belief.mean(), atol=5 * belief.sd().max() / np.sqrt(2000) + 0.02)
    assert float(beliefs[0].mean()) == pytest.approx(1.0)
    assert float(beliefs[0].var()) == pytest.approx(0.0, abs=1e-12)
    assert belief[0].mean() == pytest.approx(belief.mean()[0])
    assert len(beliefs.plot()) == 3
    with pytest.raises(InputError, match="there is no belief about 3"):
        beliefs[3]
    with pytest.raises(InputError, match="no node 'z'"):
        field.query({"z": 1.0})


def test_gaussian_fields_with_noisy_observations_are_the_closed_form():
    """A chain with correlation .6 in the sample, too, and noise of variance .25 at both ends."""
    x, y = pairs()
    x = (x - x.mean()) / x.std()
    left = y - y.mean() - x * (x * y).mean()
    exact_pairs = x, 0.6 * x + 0.8 * left / left.std()
    field = rivals.GaussianField(CHAIN).fit(exact_pairs, likelihood=lambda y, x: np.exp(-2 * (y[:, None] - x) ** 2))
    beliefs = field.query(observed=np.array([1.0, np.nan, -0.4]))
    covariance = 0.6 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    exact = np.linalg.inv(np.linalg.inv(covariance) + np.diag([4.0, 0, 4.0]))
    np.testing.assert_allclose([b.mean() for b in beliefs.values()], exact @ [4.0, 0, -1.6], atol=1e-9)
    np.testing.assert_allclose([b.var() for b in beliefs.values()], np.diag(exact), atol=1e-9)


def test_gaussian_fields_say_what_is_wrong():
    x = np.linspace(-1, 1, 50)
    with pytest.raises(InputError, match="on a straight line"):
        rivals.GaussianField([(0, 1)]).fit((x, x))
    with pytest.raises(KindError, match="not numbers"):
        rivals.GaussianField([(0, 1)]).fit((list("ababab"), list("aabbab")))
    # All correlated strongly with all others, as far as pairs can tell: no such Gaussian, and the report says so.
    everybody = [(i, j) for i in range(5) for j in range(i)]
    report = rivals.GaussianField(everybody).fit(pairs(correlation=0.9)).query({0: lambda x: np.exp(-x)}).report
    assert any("not positive definite" in note for note in report.notes)
    # Trees' precisions have a mean that is one.
    report = rivals.GaussianField(everybody, reweighted=True).fit(pairs(correlation=0.9)).query({0: np.exp}).report
    assert report.converged
    assert report.measures["spectral radius"] < 1
    # Two peaks far apart are wider than the prior: only the mean can be matched.
    report = rivals.GaussianField(CHAIN).fit(pairs()).query({0: lambda x: np.where(np.abs(x) > 1.5, 1.0, 1e-3)}).report
    assert any("only their means were used" in note for note in report.notes)
    assert report.converged


def test_a_mixture_of_normals_has_its_moments_quantiles_and_modes():
    mixture = bp.NormalMixture(np.array([0.3, 0.7]), np.array([-2.0, 1.0]), np.array([0.25, 0.5]))
    grid = np.linspace(-8, 8, 16001)
    density = mixture.density(grid)
    assert density.sum() * 1e-3 == pytest.approx(1)
    assert mixture.mean() == pytest.approx((density * grid).sum() * 1e-3)
    assert mixture.var() == pytest.approx((density * (grid - mixture.mean()) ** 2).sum() * 1e-3)
    assert mixture.mode() == pytest.approx(grid[density.argmax()], abs=1e-3)
    for q in (0.05, 0.3, 0.9):
        assert np.cumsum(density).searchsorted(1000 * q) / 1000 - 8 == pytest.approx(mixture.quantile(q), abs=2e-3)
    draws = mixture.sample(20_000, rng=1)
    assert abs(np.mean(draws < 0) - mixture.cdf([0.0])[0]) < 4 * np.sqrt(0.25 / 20_000)


def test_modes_of_many_wide_mixtures_are_those_of_a_fine_grid():
    """Of 1000 components each, more pairs than are looked at at once."""
    means = np.random.default_rng(0).normal(size=(12, 1000)) + np.arange(12)[:, None]
    mixture = bp.NormalMixture(np.full(means.shape, 1e-3), means, np.full(means.shape, 0.09))
    grid = np.linspace(-4, 16, 4001)
    density = mixture.density(grid)
    np.testing.assert_allclose(mixture.mode(), grid[density.argmax(axis=1)], atol=0.01)
