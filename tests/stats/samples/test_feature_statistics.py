import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.door import Door
from meanmap.core.errors import EmptyError, ParameterError, ShapeError
from meanmap.features import Fourier
from meanmap.features.states.feature_map import BLOCK, FeatureMap, working_precision
from meanmap.features.states.passes import SAMPLE
from meanmap.linalg.moments import Moments
from meanmap.stats.samples import feature_statistics, gram_statistics, two_sample
from meanmap.stats.samples.feature_statistics import gaussian_limit
from meanmap.stats.samples.gram_statistics import gram_test
from meanmap.stats.samples.samples import read_samples
from meanmap.stats.samples.units import Units

FAILURE_RATE = 1e-5
KERNEL = mm.kernels.RBF(1.0)


def two(n=60, m=50, shift=0.3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(shift, 1.0, size=(m, d))


@pytest.mark.parametrize("kernel", [KERNEL, None, [KERNEL, mm.kernels.Laplace(2.0)]], ids=["one", "default", "two"])
def test_landmarks_everywhere_are_the_whole_gram_matrix(kernel):
    """With every point a landmark Nyström features hold the Gram matrix exactly; of one column, which has no kernel
    beside those of all.
    """
    x, y = two(d=1)
    whole = mm.two_sample_test(x, y, kernel, statistic="unbiased", rng=0)
    features = mm.two_sample_test(x, y, kernel, statistic="features", rng=0)
    assert features.statistic == pytest.approx(whole.statistic, abs=1e-5)
    assert features.null.exact


def test_labels_and_mixed_tables_have_features_too():
    rng = np.random.default_rng(1)
    table = {"a": rng.normal(size=40), "b": np.where(rng.uniform(size=40) < 0.5, "u", "v")}
    other = {"a": rng.normal(size=40), "b": np.where(rng.uniform(size=40) < 0.5, "u", "w")}
    for null in ("permutation", "spectral"):
        result = mm.two_sample_test(table, other, statistic="features", null=null, rng=0)
        assert result.reject(0.05)


def test_the_limit_is_that_of_the_permutations():
    x, y = two(n=800, m=1200, shift=0.0)
    draws = [
        mm.two_sample_test(x, y, KERNEL, statistic="features", null=null, n_permutations=2000, rng=0).null.draws
        for null in ("permutation", "spectral")
    ]
    assert scipy.stats.ks_2samp(*draws).pvalue > FAILURE_RATE
    np.testing.assert_allclose(*(np.quantile(d, 0.95) for d in draws), rtol=0.15)


def test_means_and_covariances_are_those_of_the_features():
    x = np.random.default_rng(2).normal(size=(3 * BLOCK // 2, 2))
    phi = Fourier.draw(KERNEL, like=2, n_features=6, rng=0)
    with Door():
        double, single = (FeatureMap.of(phi, x, dtype).sums([x]).moments() for dtype in (np.float64, np.float32))
    # Rounding to whole units moves a mean by less than one of them.
    unit = 2.0**-16
    np.testing.assert_allclose(double.mean, phi(x).mean(axis=0), atol=unit)
    np.testing.assert_allclose(double.covariance(), np.cov(phi(x).T), atol=unit)
    np.testing.assert_allclose(single.covariance(), double.covariance(), atol=1e-5)


def test_columns_far_from_zero_are_kept_in_double_precision():
    x = np.random.default_rng(3).normal(size=(100, 2))
    assert working_precision(x) is np.float32
    assert working_precision(x + np.array([0, 1e6])) is np.float64


@pytest.mark.slow
def test_level_and_power_of_the_limit():
    trials, rejected, seen = 100, 0, 0
    for trial in range(trials):
        x, y = two(200, 300, shift=0.0, seed=trial)
        settings = {"statistic": "features", "null": "spectral", "n_permutations": 199, "rng": trial}
        rejected += mm.two_sample_test(x, y, **settings).reject(0.05)
        seen += mm.two_sample_test(x, y + 0.5, **settings).reject(0.05) if trial < 20 else 0
    assert scipy.stats.binomtest(rejected, trials, 0.05).pvalue > FAILURE_RATE
    assert seen == 20


def test_large_samples_are_compared_by_features():
    x, y = two(two_sample.WHOLE, 100)
    assert "features" in mm.two_sample_test(x, y, rng=0).method
    many = mm.two_sample_test(*two(two_sample.PERMUTED, 2000), rng=0)
    assert many.null.kind == "weighted chi-squares"
    assert many.witness(np.zeros((1, 2))) > 0  # the first sample is denser at the origin


def test_features_can_be_given():
    x, y = two()
    phi = Fourier.draw(KERNEL, like=2, n_features=200, rng=0)
    result = mm.two_sample_test(x, y, phi, rng=0)
    difference = phi(x).mean(axis=0) - phi(y).mean(axis=0)
    traces = np.trace(np.cov(phi(x).T)) / len(x) + np.trace(np.cov(phi(y).T)) / len(y)
    assert result.statistic == pytest.approx(difference @ difference - traces, abs=1e-6)


def pieces(x, *cuts):
    return iter(np.split(x, cuts))


def test_the_pvalue_does_not_depend_on_the_pieces(tmp_path):
    x, y = two(2 * SAMPLE + 100, SAMPLE + 5, shift=0.02)
    np.save(tmp_path / "x.npy", x)
    first = mm.two_sample_test(pieces(x, 7, 9000), pieces(y, 5000), rng=0)
    again = mm.two_sample_test(pieces(x, 100, 101, 12_000), y, rng=0)
    mapped = mm.two_sample_test(np.load(tmp_path / "x.npy", mmap_mode="r"), pieces(y, 1), rng=0)
    assert first.sizes == again.sizes == mapped.sizes == (len(x), len(y))
    assert first.statistic == again.statistic == mapped.statistic
    assert first.pvalue == again.pvalue == mapped.pvalue


def test_a_parquet_file_is_read(tmp_path):
    polars = pytest.importorskip("polars")
    x, y = two(500, 300)
    for name, data in (("x", x), ("y", y)):
        polars.DataFrame({"a": data[:, 0], "b": data[:, 1]}).write_parquet(tmp_path / f"{name}.parquet")
    from_files = mm.two_sample_test(tmp_path / "x.parquet", str(tmp_path / "y.parquet"), rng=0)
    assert from_files.pvalue == mm.two_sample_test(x, y, rng=0).pvalue


def test_few_rows_in_pieces_are_compared_like_arrays():
    x, y = two()
    assert mm.two_sample_test(pieces(x, 10), pieces(y), rng=0).pvalue == mm.two_sample_test(x, y, rng=0).pvalue


def test_a_small_sample_with_a_limit_is_told():
    x, y = two(50, SAMPLE + 1)
    result = mm.two_sample_test(pieces(x), pieces(y), rng=0)
    assert any("the smaller one has 50 points" in text for text in result.warnings)


def test_pieces_that_do_not_fit():
    x, y = two(SAMPLE + 1, SAMPLE + 1)
    with pytest.raises(ParameterError, match="come in pieces"):
        mm.two_sample_test(pieces(x), y, statistic="unbiased")
    with pytest.raises(EmptyError, match="x gave no rows"):
        mm.two_sample_test(iter([]), y)
    with pytest.raises(ShapeError, match="differ in their columns"):
        mm.two_sample_test(pieces(x), iter([np.zeros((9, 3))]))
    with pytest.raises(ShapeError, match=r"y\[8192:\] has 3 columns; expected 2, as before"):
        mm.two_sample_test(x, iter([y[:SAMPLE], np.zeros((9, 3))]))


def test_few_features_stand_for_a_gram_matrix_only_when_they_hold_it():
    x, y = two(1600, 1500, shift=0.1)
    settings = {"unbiased": True, "kind": "permutation", "n_draws": 50}
    for kernel in (mm.kernels.RBF(3.0), mm.kernels.Laplace(0.1)):
        with Door() as door:
            samples = read_samples((x, y), "xy", kernel, None, door)
            ((low, _),) = gram_statistics.centred_grams((kernel,), Units.of_rows(samples.sizes), samples.pooled, door)
            assert type(low).__name__ == ("CentredFeatures" if kernel == mm.kernels.RBF(3.0) else "CentredGram")
            found = gram_test(samples, **settings, generator=np.random.default_rng(0), door=door)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(gram_statistics, "LOW_RANK_FROM", 10**6)
                whole = gram_test(samples, **settings, generator=np.random.default_rng(0), door=door)
        assert found.statistic == pytest.approx(whole.statistic, abs=4e-6)
        np.testing.assert_allclose(found.null.draws, whole.null.draws, atol=4e-6)


def test_threads_do_not_change_the_pvalue():
    code = """
import json, numpy as np, meanmap as mm
rng = np.random.default_rng(0)
x, y = rng.normal(size=(700, 3)), rng.normal(0.05, 1.0, size=(800, 3))
big = [rng.normal(size=(15_000, 3)) for _ in range(2)]
results = [mm.two_sample_test(x, y, rng=0), mm.two_sample_test(x, y, "median", rng=0), mm.two_sample_test(*big, rng=0)]
print(json.dumps([r.pvalue for r in results]))
"""
    found = []
    for threads in ("1", "2"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


def test_landmarks_do_not_depend_on_the_labels(monkeypatch):
    """Exchanging the samples exchanges nothing else: the same landmarks, the same statistic."""
    x, y = two(40, 40)
    monkeypatch.setattr(feature_statistics, "LANDMARKS", 20)
    pooled = np.concatenate([x, y])
    swapped = mm.two_sample_test(pooled[:40], pooled[40:], KERNEL, statistic="features", rng=0)
    chosen = np.sort(np.random.default_rng(0).choice(80, 20, replace=False))
    by_hand = mm.features.Nystrom.fit(KERNEL, pooled[chosen], 20)(pooled)
    difference = by_hand[:40].mean(axis=0) - by_hand[40:].mean(axis=0)
    traces = sum(np.trace(np.cov(part.T)) / 40 for part in (by_hand[:40], by_hand[40:]))
    assert swapped.statistic == pytest.approx(difference @ difference - traces, abs=1e-6)


def test_the_limit_statistic_is_its_formula():
    rng = np.random.default_rng(7)
    x, y, sizes = rng.normal(size=(30, 5)), rng.normal(0.3, 2.0, size=(50, 5)), [2, 3]
    features = SimpleNamespace(members=[SimpleNamespace(size=size) for size in sizes])
    found = gaussian_limit(Moments.of(x), Moments.of(y), features, 400, np.random.default_rng(0))
    value, null = found.statistic, found.null
    difference = x.mean(axis=0) - y.mean(axis=0)
    covariance, second = np.cov(x.T) / 30 + np.cov(y.T) / 50, (x.T @ x + y.T @ y) / 80
    rate, terms = np.sqrt(30 * 29), []
    for part in (slice(0, 2), slice(2, 5)):
        unbiased = difference[part] @ difference[part] - np.trace(covariance[part, part])
        terms.append(rate * unbiased / np.sqrt(np.sum(second[part, part] ** 2)))
    assert value == pytest.approx(np.log(np.mean(np.exp(terms))) / rate, rel=1e-10)
    assert null.draws.shape == (400,)
    assert value > np.quantile(null.draws, 0.5)


def test_the_witness_of_the_limit_is_the_difference_of_means():
    x, y = two(n=40, m=50)
    result = mm.two_sample_test(x, y, KERNEL, statistic="features", null="spectral", rng=0)
    at = np.random.default_rng(8).normal(size=(6, 2))
    np.testing.assert_allclose(result.witness(at), KERNEL(at, x).mean(axis=1) - KERNEL(at, y).mean(axis=1), atol=1e-4)


@pytest.mark.slow
def test_rare_values_that_a_small_sample_may_not_have():
    """300 rows beside 21,000, three of a thousand of them ones in both: at most 9 of 60 rejections at 0.05.

    By each sample's own covariance 19 were rejected. With probability .999 no more than 9 are.
    """
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng([300, seed])
        x, y = (1.0 * (rng.random((n, 1)) < 0.003) for n in (300, 21_000))
        rejected += mm.two_sample_test(x, y, n_permutations=199, rng=seed).pvalue <= 0.05
    assert rejected <= 9
