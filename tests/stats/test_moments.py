"""Independence in one pass: what is streamed is what would be computed at once, however the data come."""

import numpy as np
import polars
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.door import Door
from meanmap.stats.independence.moments import JointMoments, features_of

N = 10_000


def data(n=N, dependence=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, np.c_[rng.normal(size=n) + dependence * x[:, 0] ** 2, rng.exponential(size=n)]


def test_moments_are_covariances_of_features():
    x, y = data(500)
    with Door() as door:
        fitted = tuple(features_of(mm.kernels.RBF(1.0), part, "x", np.random.default_rng(0), door) for part in (x, y))
        blocks = [(x[:10], y[:10]), (x[10:], y[10:])]
        moments = JointMoments.of(blocks, fitted, ("x", "y"), door)
        phi, psi = (f(part) for f, part in zip(fitted, (x, y), strict=True))
    joint = np.cov(np.c_[phi, psi].T, bias=True)
    np.testing.assert_allclose(moments.joint, joint, atol=1e-12)
    h = np.eye(500) - 1 / 500
    expected = np.trace(phi @ phi.T @ h @ psi @ psi.T @ h) / 500**2
    assert moments.hsic == pytest.approx(expected, rel=1e-9)
    for spectrum, part in zip(moments.spectra(), (phi, psi), strict=True):
        gram = h @ part @ part.T @ h / 500
        np.testing.assert_allclose(np.sort(spectrum), np.linalg.eigvalsh(gram)[-len(spectrum) :], atol=1e-10)


def pieces(x, y, size):
    return ((x[i : i + size], y[i : i + size]) for i in range(0, len(x), size))


@pytest.mark.slow
def test_the_cut_of_an_iterator_does_not_matter():
    x, y = data()
    results = [mm.independence_test(pieces(x, y, size), rng=1) for size in (77, 4096, N)]
    separate = mm.independence_test((x[i : i + 900] for i in range(0, N, 900)), y, rng=1)
    assert len({(r.pvalue, r.statistic) for r in [*results, separate]}) == 1
    assert results[0].sizes == (N,)


def test_arrays_memory_maps_and_files_agree(tmp_path):
    x, y = data()
    np.save(tmp_path / "x.npy", x)
    frame = polars.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": y[:, 0], "d": y[:, 1]})
    frame.write_parquet(tmp_path / "data.parquet", row_group_size=999)
    lazy = polars.scan_parquet(tmp_path / "data.parquet")
    frame.select("c", "d").write_parquet(tmp_path / "y.parquet")
    ways = [
        (x, y),
        (np.load(tmp_path / "x.npy", mmap_mode="r"), tmp_path / "y.parquet"),
        (frame.select("a", "b"), y),
        (lazy.select("a", "b"), lazy.select("c", "d")),
    ]
    results = [mm.independence_test(*way, null="spectral", rng=1) for way in ways]
    assert len({(r.pvalue, r.statistic) for r in results}) == 1
    small = [part[:300] for part in (x, y)], [lazy.select("a", "b").head(300), lazy.select("c", "d").head(300)]
    exact = [mm.independence_test(*way, rng=1) for way in small]
    assert exact[0].pvalue == exact[1].pvalue
    assert exact[1].null.exact


def test_large_samples_take_the_limit_and_small_dependence_is_found():
    x, y = data(20_001, dependence=0.05)
    result = mm.independence_test(x, y, rng=0)
    assert result.null.kind == "weighted chi-squares"
    assert result.pvalue < 0.01
    labels = np.where(x[:, 0] > 0, "up", "down")
    assert mm.independence_test(labels, x[:, 1], rng=0).pvalue > 0.001
    assert mm.independence_test(labels, x[:, 0], rng=0).pvalue < 0.01


@pytest.mark.parametrize("n", [100, 800])
def test_the_limit_agrees_with_permutations(n):
    """Over data sets, p-values of the limit follow those of 1000 permutations."""
    rng = np.random.default_rng(2)
    differences = []
    for trial in range(20):
        x, y = rng.normal(size=(2, n))
        limit, exact = (
            mm.independence_test(x, y, "median", null=null, rng=trial).pvalue for null in ("spectral", "permutation")
        )
        differences.append(limit - exact)
    # Each p-value comes from 1000 draws: a standard error of at most 0.016, and of 0.023 for their difference.
    assert np.abs(differences).max() < (0.1 if n == 800 else 0.15)
    assert abs(np.mean(differences)) < (0.02 if n == 800 else 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 10])
def test_level_of_streams_at_length(d):
    """The default is summed over lengthscales, and in ten dimensions cut to 128 features."""
    rng = np.random.default_rng(3)
    found = 0
    for trial in range(1000):
        x, y = rng.normal(size=(800, d)), rng.exponential(size=(800, d))
        found += mm.independence_test(pieces(x, y, 300), n_permutations=199, rng=trial).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= found <= high, found
