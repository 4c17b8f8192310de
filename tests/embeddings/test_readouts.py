"""Read-outs of weighted points against NumPy, SciPy and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from scipy.spatial.transform import Rotation

import meanmap as mm
from meanmap.core import InputError, KindError, ParameterError, ShapeError
from meanmap.embeddings import PointEmbedding

K = mm.kernels.RBF(0.8)


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    return rng.normal(size=(50, 2)) * [1.0, 3.0] + [0.0, 5.0], rng.random(50)


def test_moments_are_those_of_the_weighted_sample(sample):
    x, w = sample
    f = mm.embed(x, K, weights=w)
    np.testing.assert_allclose(f.mean(), np.average(x, axis=0, weights=w), rtol=1e-13)
    np.testing.assert_allclose(f.cov(), np.cov(x.T, aweights=w, bias=True), rtol=1e-11)
    np.testing.assert_allclose(f.var(), np.diag(f.cov()), rtol=1e-11)
    np.testing.assert_allclose(f.sd(), np.sqrt(f.var()))
    np.testing.assert_allclose(f.expect(lambda x: x[:, 0] ** 3), np.average(x[:, 0] ** 3, weights=w), rtol=1e-12)
    assert f.expect(lambda x: np.c_[x, x]).shape == (4,)
    assert f.expect(np.arange(50)) == pytest.approx(np.average(np.arange(50), weights=w))
    far = mm.embed(x + 1e8, K, weights=w)
    np.testing.assert_allclose(far.cov(), f.cov(), rtol=1e-6)
    np.testing.assert_allclose(far.var(), f.var(), rtol=1e-6)


def test_plain_numbers_give_plain_numbers():
    f = mm.embed([0.0, 1.0, 5.0], K)
    for value in (f.mean(), f.var(), f.sd(), f.quantile(0.5)):
        assert np.shape(value) == ()
    assert f.mean() == pytest.approx(2, rel=1e-12)
    assert f.quantile([0.1, 0.5]).shape == (2,)
    assert f.sample(4, rng=0).shape == (4,)
    assert f.herd(4).shape == (4,)
    assert np.shape(f.mode()) == ()
    batch = mm.embed([0.0, 1.0, 5.0], K, weights=np.ones((2, 3, 3)))
    assert batch.mean().shape == (2, 3)
    assert batch.quantile([0.1, 0.5]).shape == (2, 3, 2)
    assert batch.density([0.0, 1.0]).shape == (2, 3, 2)
    assert batch.sample(7, rng=0).shape == (2, 3, 7)
    assert batch.herd(5).shape == (2, 3, 5)
    assert batch.mode().shape == (2, 3)
    column = mm.embed([[0.0], [1.0], [5.0]], K)
    assert column.mean().shape == (1,)


def test_quantiles_invert_the_distribution_function(sample):
    x, w = sample
    f = mm.embed(x[:, 0], K)
    levels = np.array([0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
    expected = np.quantile(x[:, 0], levels, method="inverted_cdf")
    np.testing.assert_array_equal(f.quantile(levels), expected)
    weighted = mm.embed(x[:, 0], K, weights=w)
    np.testing.assert_array_equal(
        weighted.quantile([0.2, 0.7]),
        np.quantile(x[:, 0], [0.2, 0.7], weights=w, method="inverted_cdf"),
    )
    assert mm.embed([0.0, 1.0, 2.0], K, weights=[0.0, 1.0, 0.0]).quantile([0.0, 1.0]).tolist() == [1.0, 1.0]
    signed = mm.embed([0.0, 1.0, 2.0, 3.0], K, weights=[0.5, -0.2, 0.3, 0.4])
    quantiles = signed.quantile(np.linspace(0, 1, 21))
    assert (np.diff(quantiles) >= 0).all()
    assert mm.embed(x, K).quantile([0.1, 0.9]).shape == (2, 2)


def along_the_line(points, weights):
    """Weights of a distribution function that lies between the running extremes of that of signed weights."""
    order = np.argsort(points)
    sums = np.cumsum((weights / weights.sum())[order])
    middle = [(max(sums[: i + 1]) + min(sums[i:])) / 2 for i in range(len(sums))]
    found = np.empty(len(points))
    found[order] = np.diff(np.clip(middle, 0, 1), prepend=0)
    return found / found.sum()


def test_density_integrates_to_one_and_is_the_parzen_sum(sample):
    x, w = sample
    f = mm.embed(x[:, 0], K, weights=w - 0.2)
    grid = np.linspace(-8, 8, 4001)
    assert scipy.integrate.trapezoid(f.density(grid), grid) == pytest.approx(1, abs=1e-9)
    expected = along_the_line(x[:, 0], w - 0.2) @ scipy.stats.norm.pdf(grid[:50], x[:, :1], 0.3)
    np.testing.assert_allclose(f.density(grid[:50], bandwidth=0.3), expected, rtol=1e-10)
    plane = mm.embed(x, K)
    a, b = np.linspace(-9, 9, 181), np.linspace(-15, 25, 201)
    values = plane.density(np.stack(np.meshgrid(a, b, indexing="ij"), -1).reshape(-1, 2)).reshape(181, 201)
    assert values.sum() * (a[1] - a[0]) * (b[1] - b[0]) == pytest.approx(1, abs=1e-6)
    scott = np.std(x, axis=0) * 50 ** (-1 / 6)
    judge = scipy.stats.multivariate_normal(x[0], np.diag(scott**2))
    lone = PointEmbedding(K, x[:1], np.ones(1))
    np.testing.assert_allclose(lone.density(x[:3], bandwidth=scott), judge.pdf(x[:3]), rtol=1e-10)
    wide = mm.embed(np.random.default_rng(0).normal(size=(20, 300)) * 1e-3, K)
    assert np.isfinite(np.log(wide.density(wide.points[:1], bandwidth=0.09)))


def test_mode_on_the_line_and_in_space():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-2, 0.5, 60), rng.normal(2, 0.5, 100)])
    f = mm.embed(x, K)
    grid = np.linspace(-4, 4, 800_001)
    assert f.mode() == pytest.approx(grid[np.argmax(f(grid))], abs=1e-5)
    centre = np.array([1.0, -2.0, 0.5])
    offsets = rng.normal(size=(30, 3)) * 0.7
    symmetric = mm.embed(np.concatenate([centre + offsets, centre - offsets]), mm.kernels.RBF(2.0))
    np.testing.assert_allclose(symmetric.mode(), centre, atol=1e-9)
    assert f.mode(candidates=[-2.0, 0.0, 2.0]) == 2


@pytest.mark.slow
def test_mode_on_rotations_finds_the_planted_one():
    """Pairs R exp(±w) of equal weight make R stationary, and spread below the kernel's width make it the mode."""
    rng = np.random.default_rng(0)
    k = mm.kernels.Rotation(1.0)
    for seed in range(3):
        planted = Rotation.random(random_state=seed)
        noise = rng.normal(size=(40, 3)) * 0.3
        points = np.concatenate(
            [(planted * Rotation.from_rotvec(noise)).as_matrix(), (planted * Rotation.from_rotvec(-noise)).as_matrix()]
        )
        weights = np.tile(rng.random(40), 2)
        mode = mm.embed(points, k, weights=weights).mode()
        angle = (Rotation.from_matrix(mode) * planted.inv()).magnitude()
        assert angle < 1e-6
        np.testing.assert_allclose(mode @ mode.T, np.eye(3), atol=1e-12)
    batch = mm.embed(points, k, weights=np.stack([weights, weights])).mode()
    assert batch.shape == (2, 3, 3)
    assert mm.embed(points, k).sample(3, rng=0).shape == (3, 3, 3)
    assert mm.embed(points, k).mean().shape == (3, 3)


def test_samples_follow_the_distribution_function():
    f = mm.embed([0.0, 1.0, 2.0], K, weights=[0.5, -0.1, 0.3])
    draws = f.sample(4000, rng=0)
    counts = [(draws == v).sum() for v in (0.0, 1.0, 2.0)]
    assert counts[1] == 0
    assert scipy.stats.binomtest(int(counts[0]), 4000, along_the_line(f.points[:, 0], f.weights)[0]).pvalue > 1e-3
    np.testing.assert_array_equal(draws, f.sample(4000, rng=0))
    blurred = f.sample(4000, rng=0, bandwidth=0.5)
    assert np.std(blurred - draws) == pytest.approx(0.5, rel=0.05)
    assert mm.embed(["aab", "abb"], mm.kernels.Spectrum(2)).sample(3, rng=0).shape[0] == 3


@pytest.mark.slow
def test_herding_falls_faster_than_independent_draws():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    f = mm.embed(x, mm.kernels.RBF(1.0))
    order = f.herd(256)
    sizes = np.array([16, 32, 64, 128, 256])

    def errors(draws):
        return [(mm.embed(draws[:n], f.kernel) - f).norm() for n in sizes]

    herded = np.polyfit(np.log(sizes), np.log(errors(order)), 1)[0]
    drawn = np.mean([np.polyfit(np.log(sizes), np.log(errors(f.sample(256, rng=s))), 1)[0] for s in range(8)])
    assert herded < -0.75 < drawn, (herded, drawn)
    # Greedy by hand.
    gram, chosen = K(x[:40]), []
    small = mm.embed(x[:40], K)
    for t in range(6):
        chosen.append(int(np.argmax(gram.mean(0) - gram[chosen].sum(0) / (t + 1))))
    np.testing.assert_array_equal(small.herd(6), x[chosen])


def test_negative_weights_are_reported():
    f = mm.embed([0.0, 1.0, 2.0], K, weights=[0.5, -0.25, 0.25])
    assert f.negative_share == pytest.approx(0.25)
    assert f.effective_size == pytest.approx(0.25 / 0.375)
    assert "negative share of weights: 0.25" in str(f.report)
    assert f.var() >= 0
    assert (np.linalg.eigvalsh(mm.embed(np.eye(3), K, weights=[1.0, -0.9, 0.2]).cov()) >= -1e-12).all()


def test_features_are_read_out_through_points():
    x = np.random.default_rng(0).normal(2.0, 1.0, size=2000)
    phi = mm.features.Fourier.draw(mm.kernels.RBF(1.0), like=1, n_features=200, rng=0)
    belief = mm.embed(x, phi).to_points(np.linspace(-3, 7, 80))
    assert belief.mean() == pytest.approx(x.mean(), abs=0.02)
    assert belief.sd() == pytest.approx(x.std(), abs=0.05)
    grid = np.linspace(0, 4, 20)
    np.testing.assert_allclose(belief(grid), mm.embed(x, phi)(grid), atol=1e-3)


def test_jax_follows():
    x, w = jnp.linspace(-1, 2, 20), jnp.ones(20) / 20
    f = mm.embed(x, K, weights=w)
    for value in (f.mean(), f.var(), f.cov(), f.quantile(0.5), f.density(x), f.mode(), f.sample(3, rng=0), f.herd(3)):
        assert isinstance(value, jax.Array)
    gradient = jax.grad(lambda w: mm.embed(x, K, weights=w).mean())(w)
    np.testing.assert_allclose(gradient, np.linspace(-1, 2, 20) - 0.5, atol=1e-5)
    assert jax.jit(lambda x: mm.embed(x, K).quantile(0.5))(x).shape == ()


def test_messages(sample):
    x, _ = sample
    f = mm.embed(x, K)
    difference = f - mm.embed(x + 1, K)
    reads = (
        lambda d: d.mean(), lambda d: d.var(), lambda d: d.cov(), lambda d: d.quantile(0.5), lambda d: d.density(x),
        lambda d: d.sample(3), lambda d: d.herd(3), lambda d: d.mode(), lambda d: d.expect(lambda x: x[:, 0]),
    )  # fmt: skip
    for read in reads:
        with pytest.raises(InputError, match=r"weights sum to nearly zero.*evaluate it as a function instead"):
            read(difference)
    with pytest.raises(ParameterError, match=r"q is \[0\.5, 1\.5\]; expected probabilities from 0 to 1"):
        f.quantile([0.5, 1.5])
    with pytest.raises(ShapeError, match="grid has 1 columns; the points have 2"):
        f.density([0.0])
    with pytest.raises(ShapeError, match="bandwidth has 3 entries; expected one number, or one for each of 2"):
        f.density(x, bandwidth=[1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"function gave shape \(2,\); expected \(50,\) or \(50, q\)"):
        f.expect(lambda x: x[0])
    for call in (f.sample, f.herd):
        with pytest.raises(ParameterError, match="n is 0; expected a whole number of at least 1"):
            call(0)
    with pytest.raises(ParameterError, match="n_starts is 0"):
        f.mode(n_starts=0)
    labels = mm.embed(["a", "b"], mm.kernels.Delta())
    with pytest.raises(KindError, match=r"needs numeric points; for others use mode"):
        labels.mean()
    with pytest.raises(KindError, match=r"no smooth space to search: pass mode\(candidates=...\)"):
        labels.mode()
    rotations = mm.embed(Rotation.random(4, random_state=0), mm.kernels.Rotation(1.0))
    with pytest.raises(KindError, match=r"needs points in R\^d"):
        rotations.quantile(0.5)
    with pytest.raises(InputError, match="no highest point"):
        mm.embed(x, mm.kernels.Linear()).mode()
