import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from benchmarks.relations import RELATIONS
from meanmap.core.errors import ColumnError, EmptyError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.stats.independence import independence
from meanmap.stats.independence.hsic import (
    Margins,
    centre,
    diagonal_sums,
    fused_hsic,
    one_hsic,
    permuted_features,
    permuted_hsic,
)
from meanmap.stats.independence.shifts import Shifts

FAILURE_RATE = 1e-5


def hsic_by_hand(k, other, unbiased):
    """Gretton et al. (2005), and Song et al. (2012) eq. 5, from the Gram matrices."""
    n = len(k)
    if not unbiased:
        h = np.eye(n) - 1 / n
        return np.trace(k @ h @ other @ h) / n**2
    k, other = k - np.diag(np.diag(k)), other - np.diag(np.diag(other))
    one = np.ones(n)
    inner = np.trace(k @ other) + k.sum() * other.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * one @ k @ other @ one
    return inner / (n * (n - 3))


def sides(phi, n):
    gram = np.empty((n, n + n // 2))
    gram[:, :n] = phi @ phi.T
    return gram, centre(gram[:, :n])


@pytest.mark.parametrize("count", [10, 60])
@pytest.mark.parametrize("unbiased", [False, True])
def test_every_permutation_has_the_statistic_of_the_definition(unbiased, count):
    """With 60 permutations of 20 points there are four cosets."""
    rng = np.random.default_rng(0)
    n = 20
    phi, psi = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    shifts = Shifts.draw(n, count, rng)
    (gram_x, x), (gram_y, y) = sides(phi, n), sides(psi, n)
    sums = permuted_hsic([gram_x], [gram_y], shifts, np.zeros((1, 1)))[0, 0]
    values = one_hsic(sums, x, y, "unbiased" if unbiased else "biased", shifts).values
    orders = shifts.values(lambda order: np.array([np.roll(order, -s) for s in range(n)]).T).T
    expected = [hsic_by_hand(phi @ phi.T, psi[o] @ psi[o].T, unbiased) for o in orders]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    centred = phi - phi.mean(axis=0), psi - psi.mean(axis=0)
    whole = sums + diagonal_sums(x, y, shifts)
    by_features = permuted_features(centred[:1], centred[1:], shifts, np.zeros((1, 1)))[0, 0]
    np.testing.assert_allclose(by_features, whole, rtol=1e-4)
    by_features = [Margins.of_features(side) for side in centred]
    np.testing.assert_allclose(diagonal_sums(*by_features, shifts), diagonal_sums(x, y, shifts), rtol=1e-9)
    for one, other, gram in zip(by_features, (x, y), (phi @ phi.T, psi @ psi.T), strict=True):
        centred_gram = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
        assert one.norm == pytest.approx(np.linalg.norm(centred_gram))
        assert other.norm == pytest.approx(np.linalg.norm(centred_gram))
        assert one.off == pytest.approx(other.off)


@pytest.mark.parametrize("statistic", ["biased", "unbiased", "normalised"])
@pytest.mark.parametrize("most_for_gram", [1000, 10])
def test_the_statistic_is_that_of_the_whole_gram_matrices(statistic, most_for_gram, monkeypatch):
    monkeypatch.setattr(independence, "MOST_FOR_GRAM", most_for_gram)
    rng = np.random.default_rng(1)
    x = rng.normal(size=100)
    y = np.sin(2 * x) + 0.3 * rng.normal(size=100)
    kernels = mm.kernels.RBF(0.7), mm.kernels.RBF(0.5)
    result = mm.independence_test(x, y, kernel_x=kernels[0], kernel_y=kernels[1], statistic=statistic, rng=0)
    k, other = kernels[0](x), kernels[1](y)
    expected = hsic_by_hand(k, other, statistic == "unbiased")
    if statistic == "normalised":
        expected /= np.sqrt(hsic_by_hand(k, k, False) * hsic_by_hand(other, other, False))
    assert result.statistic == pytest.approx(expected, rel=1e-5 if most_for_gram == 1000 else 1e-2)


def test_several_kernels_are_standardised_and_the_largest_counts():
    rng = np.random.default_rng(2)
    shifts = Shifts.draw(20, 49, rng)
    phis = [rng.normal(size=(20, 2)) * scale for scale in (1.0, 1e3, 1e-3, 1.0, 1e-2)]
    grams, margins = zip(*(sides(phi, 20) for phi in phis), strict=True)
    centred = [phi - phi.mean(axis=0) for phi in phis]
    pairs = permuted_features(centred[:2], centred[2:], shifts, np.zeros((2, 3))).reshape(6, 50)
    scores = scipy.stats.zscore(pairs, axis=1).reshape(2, 3, 50)
    behind = np.array([[0.0, 0.7, np.inf], [0.0, 0.0, 0.2]])
    for handicaps in (np.zeros((2, 3)), behind):
        sums = permuted_hsic(grams[:2], grams[2:], shifts, handicaps)
        found = fused_hsic(sums, list(margins[:2]), list(margins[2:]), shifts, handicaps)
        expected = np.max((scores - handicaps[:, :, None]).reshape(6, 50), axis=0)
        np.testing.assert_allclose(found.values, expected, atol=1e-4)


def test_features_of_several_kernels_say_what_whole_gram_matrices_say(monkeypatch):
    """Under the same permutations, of which there are more than rows."""
    rng = np.random.default_rng(3)
    x, group = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    draw = Shifts.draw  # features take others, in larger steps
    monkeypatch.setattr(Shifts, "draw", lambda n, count, generator, few=False: draw(n, count, generator))
    for first, second in ((x[:, 0], x[:, 1] + 0.2 * np.sin(3 * x[:, 0])), (x, group.astype(str))):
        monkeypatch.setattr(independence, "MOST_FOR_GRAMS", 1500)
        whole = mm.independence_test(first, second, n_permutations=199, rng=0)
        monkeypatch.setattr(independence, "MOST_FOR_GRAMS", 10)
        found = mm.independence_test(first, second, n_permutations=199, rng=0)
        assert "of features fused over 5 ×" in found.method
        assert found.statistic == pytest.approx(whole.statistic, rel=2e-3)
        assert np.corrcoef(found.null.draws, whole.null.draws)[0, 1] > 0.99  # the finest has more features than 64


def test_level_of_features_of_several_kernels(monkeypatch):
    """With steps of three rows, and one row that stays."""
    monkeypatch.setattr(independence, "MOST_FOR_GRAMS", 10)
    rng = np.random.default_rng(12)
    tests = (mm.independence_test(*rng.normal(size=(2, 61)), n_permutations=19, rng=trial) for trial in range(150))
    found = sum(test.reject(0.05) for test in tests)
    assert scipy.stats.binomtest(found, 150, 0.05).pvalue > FAILURE_RATE


def test_kernels_that_say_nothing_are_left_out():
    shifts = Shifts.draw(20, 49, np.random.default_rng(0))
    different = centre(np.eye(20)), centre(np.eye(20))
    nothing = fused_hsic(np.zeros((1, 1, 50)), [different[0]], [different[1]], shifts, np.zeros((1, 1)))
    assert (nothing.values == 0).all()


def test_the_normalised_statistic_of_a_variable_with_itself_is_one():
    x = np.random.default_rng(2).normal(size=50)
    assert mm.independence_test(x, x, statistic="normalised", rng=0).statistic == pytest.approx(1.0, abs=1e-3)


KERNELS = {
    "default": None,
    "median": "median",
    "given": mm.kernels.RBF(1.0),
    "lists": ([mm.kernels.RBF(0.3), mm.kernels.Laplace(1.0)], "median"),
}


def rejections(trials, seed, n=40, **settings):
    rng = np.random.default_rng(seed)
    return sum(
        mm.independence_test(
            rng.normal(size=(n, 2)), rng.exponential(size=n), n_permutations=99, rng=trial, **settings
        ).reject(0.05)
        for trial in range(trials)
    )


@pytest.mark.parametrize("null", ["permutation", "gamma", "spectral"])
def test_level(null):
    found = rejections(200, 3, null=null)
    assert scipy.stats.binomtest(found, 200, 0.05).pvalue > FAILURE_RATE


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("null", ["permutation", "gamma", "spectral"])
def test_level_at_length(kernel, null):
    found = rejections(1000, 4, n=100, kernel=KERNELS[kernel], null=null)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= found <= high, found


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["biased", "unbiased", "normalised"])
def test_level_of_statistics_at_length(statistic):
    """With labels against numbers, and permutations of features."""
    rng = np.random.default_rng(5)
    found = 0
    for trial in range(1000):
        x, y = rng.normal(size=(60, 3)), rng.integers(0, 3, size=60).astype(str)
        found += mm.independence_test(x, y, "median", statistic=statistic, n_permutations=199, rng=trial).reject(0.05)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert low <= found <= high, found


def test_order_of_the_rows_does_not_matter():
    """Short shifts of a sorted sample are hardly permutations."""
    x = np.sort(np.random.default_rng(8).uniform(size=200))
    assert mm.independence_test(x, x**2, "median", rng=0).pvalue == pytest.approx(1 / 1001)


@pytest.mark.parametrize("kernel", [None, "median"])
@pytest.mark.parametrize("null", ["permutation", "spectral"])
def test_rescaling_a_column_changes_nothing(kernel, null):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(150, 3))
    y = {"a": np.sin(2 * x[:, 0]) + rng.normal(size=150), "b": rng.choice(["u", "v"], 150), "c": rng.normal(size=150)}
    rescaled = {**y, "a": 1024 * y["a"], "c": y["c"] / 4096}
    plain = mm.independence_test(x, y, kernel, null=null, rng=0)
    other = mm.independence_test(x * [1.0, 2.0**20, 2.0**-30], rescaled, kernel, null=null, rng=0)
    assert plain.pvalue == other.pvalue
    assert plain.statistic == pytest.approx(other.statistic, rel=1e-5)


def test_labels_and_tables():
    rng = np.random.default_rng(6)
    group = rng.integers(0, 2, size=80)
    height = rng.normal(2 * group, 1.0)
    assert mm.independence_test(np.where(group, "a", "b"), height, rng=0).reject(0.05)
    table = {"height": height, "age": rng.normal(size=80), "colour": rng.choice(["r", "g"], size=80)}
    assert mm.independence_test(np.where(group, "a", "b"), table, rng=0).reject(0.05)


def test_a_seed_repeats_everything():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=30), rng.normal(size=30)
    first = mm.independence_test(x, y)
    assert mm.independence_test(x, y, rng=first.seed).pvalue == first.pvalue


CHILD = """
import numpy as np, meanmap as mm
rng = np.random.default_rng(0)
x, y = rng.normal(size=(2, 900, 4))
print([mm.independence_test(x, y, rng=1, null=null).pvalue for null in ("permutation", "spectral")])
"""


@pytest.mark.slow
def test_threads_do_not_matter():
    seen = set()
    for threads in ("1", "2"):
        settings = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        settings["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'false' if threads == '1' else 'true'}"
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, env=settings, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1, seen


LINE = np.arange(9.0)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((np.arange(4.0), np.arange(4.0)), {}, EmptyError, "x has 4 points; expected at least 5"),
        ((LINE, LINE[:8]), {}, ShapeError, "x has 9 points and y has 8; expected pairs"),
        ((LINE, np.ones(9)), {}, ColumnError, "y is constant"),
        ((LINE, np.ones(9)), {"kernel": mm.kernels.RBF(1.0)}, ColumnError, "y is constant"),
        ((np.ones((9, 2)), np.ones(9)), {}, ColumnError, "x is constant"),
        ((LINE, ["a"] * 9), {}, ColumnError, "y is constant"),
        (({"a": ["u"] * 9, "b": [1.0] * 9}, LINE), {}, ColumnError, "x is constant"),
        ((LINE, np.ones(9)), {"null": "spectral", "kernel": mm.kernels.RBF(1.0)}, ColumnError, "y is constant"),
        ((LINE, np.where(LINE > 7, np.nan, LINE)), {}, NonFiniteError, r"y holds 1 value that is not finite"),
        ((["a", None, *"bcdefgh"], LINE), {}, NonFiniteError, r"x has 1 missing value"),
        (
            ({"a": LINE}, LINE),
            {"kernel_x": mm.kernels.OnColumns(mm.kernels.RBF(), ["b"])},
            ColumnError,
            "x has no column 'b'",
        ),
        ((LINE, LINE), {"kernel": "mean"}, KindError, "the kernel of x is 'mean'"),
        ((LINE, LINE), {"kernel": (None, None)}, KindError, "expected a kernel, .* or kernel_x= and kernel_y="),
        ((LINE, LINE), {"kernel_y": []}, KindError, r"the kernel of y is \[\]"),
        ((LINE, LINE), {"null": "wild"}, ParameterError, "expected one of"),
        ((LINE, LINE), {"null": "gamma", "statistic": "unbiased"}, ParameterError, "biased"),
        (
            (LINE, LINE),
            {"kernel_x": [mm.kernels.RBF(1.0)] * 2, "statistic": "unbiased"},
            ParameterError,
            "is for one kernel",
        ),
        ((LINE,), {}, KindError, "y is None"),
        ((iter([LINE]), iter([LINE])), {"null": "permutation"}, ParameterError, "an iterator can be read only once"),
        ((iter([LINE]),), {}, KindError, "the iterator x gives no pairs"),
        ((iter([]),), {}, KindError, "the iterator x gives no pairs"),
        ((iter([LINE[:4]]), iter([LINE[:4]])), {}, EmptyError, "x has 4 points"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.independence_test(*arguments, **settings)


def test_levels_outside_their_range():
    result = mm.independence_test(LINE, LINE, rng=0)
    for level in (0, 1, 5):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            result.reject(level)


def test_ties_leave_a_lengthscale():
    """More than half of all distances are zero."""
    x = np.r_[np.zeros(40), 1.0, 2.0, 3.0]
    result = mm.independence_test(x, x, rng=0)
    assert result.pvalue < 0.05
    assert all(kernel.lengthscale > 0 for kernel in result.kernel[0])


@pytest.mark.parametrize("settings", [{}, {"statistic": "unbiased"}, {"kernel_y": mm.kernels.RBF(1e-6)}])
def test_labels_that_are_all_different_say_nothing(settings):
    labels = [f"row {i}" for i in range(30)]
    result = mm.independence_test(labels, np.arange(30.0), kernel_x=mm.kernels.Delta(), rng=0, **settings)
    assert result.pvalue == 1.0
    assert any("the same under every permutation" in text for text in result.warnings)


def many_labels(rng, n=300, values=200):
    """More labels than features."""
    return rng.integers(0, values, n).astype(str), rng.integers(0, values, n).astype(str)


def rejected_labels(trials, null, monkeypatch):
    monkeypatch.setattr(independence, "MOST_FOR_GRAM", 10)
    rng = np.random.default_rng(0)
    tests = (mm.independence_test(*many_labels(rng), null=null, n_permutations=99, rng=t) for t in range(trials))
    return sum(test.reject(0.05) for test in tests)


def test_labels_with_more_values_than_features_do_not_look_dependent(monkeypatch):
    """The labels that features are of must not be those of the same rows for both variables."""
    found = rejected_labels(20, "permutation", monkeypatch)
    assert found <= scipy.stats.binom.ppf(1 - FAILURE_RATE, 20, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("null", ["permutation", "spectral"])
def test_level_of_labels_with_more_values_than_features(null, monkeypatch):
    found = rejected_labels(1000, null, monkeypatch)
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    assert found <= high
    assert null == "spectral" or found >= low  # a limit of features that say little is careful


def test_limits_of_few_points_warn():
    x, y = np.random.default_rng(0).normal(size=(2, 8))
    result = mm.independence_test(x, y, null="spectral", rng=0)
    assert "the limiting distribution needs large samples, and there are 8 points" in result.warnings[0]


def test_the_limit_has_the_mean_of_the_permutations():
    """Not only for many points: n HSIC is on average n / (n − 1) times what the eigenvalues alone say."""
    x, y = np.random.default_rng(1).normal(size=(2, 8))
    limit = mm.independence_test(x, y, null="spectral", n_permutations=20_000, rng=0)
    permuted = mm.independence_test(x, y, "median", n_permutations=5000, rng=0)
    assert limit.statistic == pytest.approx(8 * permuted.statistic, rel=1e-3)
    assert limit.null.draws.mean() == pytest.approx(8 * permuted.null.draws.mean(), rel=0.03)


def test_kernel_values_beyond_single_precision():
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    for unit in (1e25, 1e-30):
        large = mm.independence_test(unit * x, unit * y, mm.kernels.Linear(), n_permutations=99, rng=0)
        plain = mm.independence_test(x, y, mm.kernels.Linear(), n_permutations=99, rng=0)
        assert large.pvalue == plain.pvalue
        assert large.statistic == pytest.approx(unit**4 * plain.statistic, rel=1e-3)


def test_numbers_too_large_are_refused_in_words():
    x = np.random.default_rng(0).normal(size=40)
    x[3] = np.finfo(float).max
    for null in ("permutation", "spectral"):
        with pytest.raises(NonFiniteError, match="too large for distances"):
            mm.independence_test(x, x, null=null, rng=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "power"), [("diamond", 0.75), ("square", 0.42), ("two parabolas", 0.42), ("sine 16π", 0.8)]
)
def test_local_and_fine_structure_is_seen(relation, power):
    found = 0
    for trial in range(200):
        x, y = RELATIONS[relation](np.random.default_rng([11, trial]), 100, 1)
        found += mm.independence_test(x, y, n_permutations=199, rng=trial).reject(0.05)
    assert found >= scipy.stats.binom.ppf(FAILURE_RATE, 200, power)


def test_a_kernel_for_each_variable_stands_under_its_name():
    rng = np.random.default_rng(11)
    x, y, z = rng.normal(size=(3, 40))
    first, second = mm.kernels.RBF(0.5), mm.kernels.Laplace(1.0)
    for test in (mm.independence_test, lambda x, y, **more: mm.conditional_independence_test(x, y, z, **more)):
        with pytest.raises(ParameterError, match="pass either kernel, or kernel_x and kernel_y"):
            test(x, y, kernel=first, kernel_x=second)
        with pytest.raises(KindError, match="kernel_x= and kernel_y=, one for each"):
            test(x, y, kernel=(first, second))
        same, each = test(x, y, kernel=first, rng=0), test(x, y, kernel_x=first, kernel_y=first, rng=0)
        assert (each.statistic, each.pvalue) == (same.statistic, same.pvalue)
