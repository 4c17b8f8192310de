import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import EmptyError, InputError, KindError, ShapeError
from meanmap.stats.permutations import CentredGram, permuted_mmd
from meanmap.stats.samples import k_sample, samples_plan
from meanmap.stats.samples.k_sample import between_groups

FAILURE_RATE = 1e-5
KERNEL = mm.kernels.RBF(1.0)


def three(rng, shift=0.0):
    return [rng.normal(size=(20, 2)), rng.normal(size=(30, 2)), rng.normal(shift, 1.0, size=(25, 2))]


def test_the_statistic_is_the_spread_of_the_embeddings():
    """Against ‖μ_g − μ̄‖² by the algebra of embeddings, less the mean over all permutations of one Gram matrix."""
    samples = three(np.random.default_rng(0), shift=0.5)
    sizes, pooled = tuple(map(len, samples)), np.concatenate(samples)
    centre = mm.embed(pooled, KERNEL)
    spread = sum(len(sample) * (mm.embed(sample, KERNEL) - centre).squared_norm() for sample in samples)
    labels = np.repeat([0, 1, 2], sizes)[None].astype(np.int32)
    rng = np.random.default_rng(1)
    many = rng.permuted(np.repeat(labels, 4000, axis=0), axis=1)
    gram = CentredGram(KERNEL(pooled))
    found = between_groups(gram, labels, sizes).values[0]
    trace = np.trace(KERNEL(pooled)) - KERNEL(pooled).mean() * len(pooled)  # of the centred Gram matrix
    assert found == pytest.approx(spread - 2 * trace / (len(pooled) - 1), abs=1e-4)
    draws = between_groups(gram, many, sizes).values
    assert abs(draws.mean()) < 5 * draws.std() / np.sqrt(len(draws))


def test_two_samples_are_ordered_as_by_their_discrepancy():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 40, 2))
    gram = CentredGram(KERNEL(np.concatenate([x, y])))
    labels = rng.permuted(np.repeat(np.repeat([0, 1], 40)[None].astype(np.int32), 50, axis=0), axis=1)
    spread = between_groups(gram, labels, (40, 40)).values + gram.level
    discrepancy = permuted_mmd(gram, (labels == 0).astype(np.float32), 40, unbiased=False)
    np.testing.assert_allclose(spread, 20 * discrepancy.values, atol=1e-5)


@pytest.mark.parametrize("kernel", [None, "median"])
def test_level_and_power(kernel):
    rng = np.random.default_rng(3)
    trials, rejected, seen = 150, 0, 0
    for trial in range(trials):
        rejected += mm.k_sample_test(three(rng), kernel, n_permutations=199, rng=trial).reject(0.05)
        seen += mm.k_sample_test(three(rng, 1.5), kernel, n_permutations=199, rng=trial).reject(0.05)
    assert scipy.stats.binomtest(rejected, trials, 0.05).pvalue > FAILURE_RATE
    assert seen > 0.95 * trials


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [None, "median", mm.kernels.Laplace(0.3)], ids=["default", "median", "given"])
def test_level_at_length(kernel):
    rng, trials = np.random.default_rng(5), 1000
    rejected = 0
    for trial in range(trials):
        samples = [rng.exponential(size=(n, 2)) for n in (20, 30, 25)]
        rejected += mm.k_sample_test(samples, kernel, n_permutations=199, rng=trial).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, trials, 0.05)
    assert low <= rejected <= high, rejected


def test_a_mapping_and_a_seed():
    samples = three(np.random.default_rng(4))
    listed = mm.k_sample_test(samples, n_permutations=99)
    named = mm.k_sample_test(dict(zip("abc", samples, strict=True)), n_permutations=99, rng=listed.seed)
    assert named.pvalue == listed.pvalue
    assert listed.sizes == (20, 30, 25)
    assert "3-sample test" in str(listed)


@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([np.zeros(9)], InputError, "at least two"),
        (np.zeros((9, 2)), KindError, "one array or table"),
        ([np.arange(9), np.arange(4), np.arange(9)], EmptyError, r"samples\[1\] has 4 points"),
        ({"a": np.arange(9), "b": np.zeros((9, 2))}, ShapeError, "a and b differ in their columns"),
        ([np.zeros(9), np.zeros(9)], InputError, "equal"),
    ],
)
def test_bad_input(samples, error, message):
    with pytest.raises(error, match=message):
        mm.k_sample_test(samples)


def test_points_that_are_all_different_say_nothing():
    rng = np.random.default_rng(0)
    samples = [100 * rng.normal(size=n) for n in (20, 31, 25)]
    result = mm.k_sample_test(samples, mm.kernels.RBF(1e-6), rng=0)
    assert result.pvalue == 1.0
    assert "the same under every permutation" in result.warnings[0]


def test_columns_of_all_sizes_are_no_overflow():
    """One column is 1e-161 in two samples and whole in the third, one of whose others is 1e150."""
    rng = np.random.default_rng(0)
    small = [np.stack([rng.normal(size=12) * 1e-161, rng.normal(size=12)], axis=1) for _ in range(2)]
    large = np.stack([np.arange(12) % 3, rng.normal(size=12) * 1e150], axis=1)
    result = mm.k_sample_test([*small, large], n_permutations=99, rng=0)
    assert np.isfinite(result.statistic)
    assert result.pvalue <= 0.05


def test_features_of_all_points_are_the_whole_matrices(monkeypatch):
    """Landmarks at all points leave nothing out: the same statistic, and the same permutations."""
    samples = three(np.random.default_rng(6), 0.6)
    whole = mm.k_sample_test(samples, n_permutations=199, rng=0)
    monkeypatch.setattr(k_sample, "WHOLE", 10)
    features = mm.k_sample_test(samples, n_permutations=199, rng=0)
    assert features.null.exact
    assert features.statistic == pytest.approx(whole.statistic, rel=1e-3)
    assert features.pvalue == pytest.approx(whole.pvalue, abs=0.02)


def test_the_limit_is_near_the_permutations(monkeypatch):
    """p-values of 20 data sets go together as far as 199 draws and 64 landmarks let them, and a shift is seen."""
    rng, whole, limit = np.random.default_rng(7), [], []
    for trial in range(20):
        samples = [rng.exponential(size=(n, 1)) for n in (100, 120, 110)]
        whole.append(mm.k_sample_test(samples, n_permutations=199, rng=trial).pvalue)
        with monkeypatch.context() as patch:
            patch.setattr(samples_plan, "PERMUTED", 10)
            limit.append(mm.k_sample_test(samples, n_permutations=199, rng=trial).pvalue)
            if not trial:
                shifted = mm.k_sample_test([samples[0] + 0.5, *samples[1:]], rng=0)
    assert not shifted.null.exact
    assert shifted.reject(0.01)
    assert shifted.warnings == ()
    assert np.corrcoef(whole, limit)[0, 1] > 0.85
    assert abs(np.mean(whole) - np.mean(limit)) < 0.04


def test_a_small_sample_beside_many_points_is_told(monkeypatch):
    monkeypatch.setattr(samples_plan, "PERMUTED", 10)
    result = mm.k_sample_test(three(np.random.default_rng(8)), n_permutations=99, rng=0)
    assert result.warnings[0].startswith(
        "samples[0] has 20 points, but the p-value comes from a limit for large samples"
    )


@pytest.mark.slow
@pytest.mark.parametrize("threshold", ["WHOLE", "PERMUTED"])
def test_level_of_many_points_at_length(monkeypatch, threshold):
    """Of features permuted, and of the limit, over 1000 data sets of unequal sizes."""
    monkeypatch.setattr(k_sample if threshold == "WHOLE" else samples_plan, threshold, 10)
    rng, rejected = np.random.default_rng(9), 0
    for trial in range(1000):
        samples = [rng.exponential(size=(n, 2)) for n in (100, 200, 130)]
        rejected += mm.k_sample_test(samples, n_permutations=199, rng=trial).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= rejected <= high, rejected
    print(threshold, rejected)
