import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import EmptyError, KindError, ParameterError, ShapeError
from meanmap.kernels import RBF, Laplace
from meanmap.learning import KernelDraws
from meanmap.learning.pseudolikelihood import log_normal, log_volumes
from meanmap.learning.sampling import log_posterior
from meanmap_papers.kernel_learning.printed import sample_printed

X = np.random.default_rng(0).normal(size=60)


def figure_3(n, seed=1):
    """Normal and Laplace samples with equal means and variances, pooled."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.laplace(0.0, np.sqrt(0.5), size=n)


def by_quadrature(model, x, z, noise=1.0):
    """Posterior means of log θ and log τ² on a grid."""
    centre = np.log(np.atleast_1d(mm.median_heuristic(x)))
    potential = log_posterior(x[:, None], z[:, None], centre, noise if model == "fixed" else None)
    thetas = np.linspace(-4, 2, 121)
    if model == "fixed":
        logs = -np.array(jax.lax.map(lambda t: potential(t[None]), jnp.asarray(thetas)))
        weights = np.exp(logs - logs.max())
        return np.array([np.sum(weights * thetas) / weights.sum()])
    taus = np.linspace(-8, 3, 111)
    grid = np.stack(np.meshgrid(thetas, taus, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = -np.array(jax.lax.map(potential, jnp.asarray(grid)))
    weights = np.exp(logs - logs.max())
    return weights @ grid / weights.sum()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["tempered", "fixed"])
def test_draws_have_the_moments_of_quadrature(model):
    z = X[:8]
    draws = mm.learning.sample_kernel(X, landmarks=z, model=model, rng=0)
    with jax.enable_x64(True):  # in the unit of the sample, as the base measure is
        expected = (
            by_quadrature(model, X / X.std(), z / X.std()) + [np.log(X.std()), 0.0][: 2 if model == "tempered" else 1]
        )
    summary = draws.summary()
    logs = [np.log(draws.lengthscale)] + ([np.log(draws.noise)] if model == "tempered" else [])
    for values, truth, row in zip(logs, expected, summary.values(), strict=True):
        error = values.std() / np.sqrt(row["ess"])
        assert abs(values.mean() - truth) < 4.5 * error + 1e-3
    assert draws.report.converged, draws.report


KINDS = pytest.mark.parametrize(
    ("model", "kernel"), [("tempered", RBF()), ("fixed", RBF(np.ones(2)))], ids=["one lengthscale", "two"]
)


def units(x, kernel, model):
    """Of a few draws of the sample in three units: lengthscales in these units, and noise."""
    settings = {"landmarks": 5, "model": model, "chains": 1, "warmup": 10, "draws": 4, "rng": 0}
    found = [mm.learning.sample_kernel(unit * x, kernel, **settings) for unit in (1.0, 1e-6, 1e6)]
    return [(draws.lengthscale / unit, draws.noise) for draws, unit in zip(found, (1.0, 1e-6, 1e6), strict=True)]


@KINDS
def test_units_do_not_matter(model, kernel, monkeypatch):
    """Neither to where chains start nor to the density there, which is all that the sampler is told."""
    asked = []

    def nuts(potential, starts, chains, warmup, draws, key):
        asked.append(np.array([potential(jnp.asarray(q)) for q in starts]))
        nothing = np.zeros((chains, draws))
        return {"q": np.repeat(starts[:, None], draws, axis=1), "diverging": nothing, "steps": nothing}

    monkeypatch.setattr("meanmap.learning.sampling._nuts", nuts)
    first, *others = units(X.reshape(30, 2)[:, : np.ndim(kernel.lengthscale) + 1], kernel, model)
    for scales, noise in others:
        np.testing.assert_allclose(scales, first[0], rtol=1e-9)
        np.testing.assert_allclose(noise, first[1], rtol=1e-9)
    np.testing.assert_allclose(asked, [asked[0]] * 3, rtol=1e-9)


@pytest.mark.slow
@KINDS
def test_draws_in_any_unit_are_the_same(model, kernel):
    first, *others = units(X.reshape(30, 2)[:, : np.ndim(kernel.lengthscale) + 1], kernel, model)
    for scales, noise in others:
        np.testing.assert_allclose(scales, first[0], rtol=1e-5)
        np.testing.assert_allclose(noise, first[1], rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 400])
@pytest.mark.parametrize("sampler", [mm.learning.sample_kernel, sample_printed])
def test_chains_agree_on_the_data_of_figure_3(n, sampler):
    draws = sampler(np.concatenate(figure_3(n)), landmarks=10, rng=0)
    print(sampler.__name__, n, draws.report, draws.summary())
    assert max(row["r_hat"] for row in draws.summary().values()) < 1.01
    assert draws.report.counts["divergences"] == 0


def test_the_untempered_posterior_runs_away_and_the_tempered_one_does_not():
    """The noise follows θ⁻⁴ on the way to infinity, where the untempered density keeps growing."""
    x = np.concatenate(figure_3(50))[:, None]
    z, tempered = x[::10], {}

    @jax.jit
    def parts_at(theta, noise, x, z):
        return log_normal(RBF(theta), x, z, noise), jnp.sum(log_volumes(RBF(theta), x, z))

    with jax.enable_x64(True):
        x, z = jnp.asarray(x), jnp.asarray(z)
        for theta in (0.3, 30.0, 300.0):
            values = np.exp(-0.5 * (np.asarray(x) - np.asarray(z).T) ** 2 / theta**2)
            noise = np.var(values, axis=0).mean()
            parts = parts_at(theta, noise, x, z)
            tempered[theta] = float(parts[0] + parts[1]), float(parts[0] / len(z) + parts[1])
    assert tempered[300.0][0] - tempered[30.0][0] > 1000
    assert tempered[0.3][1] > tempered[30.0][1] + 50
    assert abs(tempered[300.0][1] - tempered[30.0][1]) < 50


@pytest.fixture(scope="module")
def draws():
    """Draws that no sampler made."""
    logs = np.random.default_rng(8).normal(size=(2, 2, 40)) * [[[0.3]], [[0.1]]]
    scales, noise = np.exp(logs)
    return KernelDraws(scales, noise, np.zeros((2, 40), bool), np.full((2, 40), 3), 0)


def test_draws_are_a_kernel(draws):
    terms = draws.each(64)
    assert len(terms) == 64
    expected = np.mean([kernel(X[:5], X[5:9]) for kernel in terms], axis=0)
    np.testing.assert_allclose(draws(X[:5], X[5:9]), expected, rtol=1e-10)
    assert draws.kernel.lengthscale.shape == (80,)
    assert mm.two_sample_test(X, X + 2, draws, rng=0, n_permutations=99).reject()
    assert mm.independence_test(X, X**2, draws, rng=0, n_permutations=99).reject()
    assert mm.embed(X, draws)([0.0])[0] > 0


def test_the_report_and_the_groups(draws):
    report = draws.report
    assert report.counts["draws"] == 80
    assert report.counts["effective draws"] > 0
    assert report.steps == 240
    apart = KernelDraws(draws.lengthscale * [[1.0], [9.0]], draws.noise, draws.diverging, draws.steps, 0)
    assert not apart.report.converged
    assert any("R-hat" in note for note in apart.report.notes)
    lost = KernelDraws(draws.lengthscale, draws.noise, ~draws.diverging, draws.steps, 0)
    assert any("divergent" in note for note in lost.report.notes)
    groups = draws.groups()
    assert groups["posterior"]["lengthscale"].shape == (2, 40)
    assert groups["sample_stats"]["diverging"].dtype == bool
    assert set(draws.summary()) == {"lengthscale", "noise"}


def test_draws_go_into_arviz(draws):
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed here")
    groups = draws.groups()
    data = arviz.from_dict(groups) if arviz.__version__ >= "1" else arviz.from_dict(**groups)
    assert data.posterior["lengthscale"].dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(data.posterior["noise"], draws.noise)
    np.testing.assert_array_equal(data.sample_stats["diverging"], draws.diverging)
    # Ranks, which the logarithms in our summary do not change much.
    table, ours = arviz.summary(data), draws.summary()
    for name in ("lengthscale", "noise"):
        assert abs(float(table["r_hat"][name]) - ours[name]["r_hat"]) < 0.02
        assert float(table["ess_bulk"][name]) == pytest.approx(ours[name]["ess"], rel=0.5)


def test_the_witness_integrates_the_lengthscale_out(draws):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=100), rng.normal(2.0, 1.0, size=100)
    at = np.array([-1.0, 0.5, 3.0])
    witness = mm.embeddings.posterior_witness(x, y, draws)
    singles = [mm.embeddings.posterior_witness(x, y, kernel) for kernel in draws.each(32)]
    means, variances = (np.array([getattr(s, part)(at) for s in singles]) for part in ("mean", "sd"))
    np.testing.assert_allclose(witness.mean(at), means.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(witness.sd(at) ** 2, (variances**2).mean(axis=0) + means.var(axis=0), rtol=1e-6)
    np.testing.assert_allclose(np.diag(witness.cov(at)), witness.sd(at) ** 2, rtol=1e-6)
    sample = witness.sample(at, 6000, rng=0)
    for level in (0.5, 0.9):
        low, high = witness.interval(at, level)
        inside = np.mean((sample > low) & (sample < high), axis=0)
        assert (np.abs(inside - level) < 4.5 * np.sqrt(level * (1 - level) / 6000)).all()


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((X, Laplace(1.0)), {}, KindError, "expected RBF"),
        ((X, RBF([1.0, 1.0])), {}, ShapeError, "2 lengthscales for 1 columns"),
        ((X,), {"model": "nuts"}, ParameterError, "'tempered'"),
        ((X,), {"noise": 1.0}, ParameterError, "model='fixed'"),
        ((X,), {"model": "fixed", "noise": -1.0}, ParameterError, "above 0"),
        ((X,), {"chains": 0}, ParameterError, "at least 1"),
        ((X,), {"draws": 2}, ParameterError, "at least 4"),
        ((X[:4],), {}, EmptyError, "at least 10"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.learning.sample_kernel(*arguments, **settings)
