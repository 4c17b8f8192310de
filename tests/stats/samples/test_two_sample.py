import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats
from scipy.spatial.transform import Rotation

import meanmap as mm
from meanmap.core.errors import EmptyError, InputError, KindError, ParameterError, ShapeError
from meanmap.stats.collections import fused
from meanmap.stats.permutations import CentredGram, Permuted, assignments, permuted_mmd
from meanmap.stats.samples.ways import choices

FAILURE_RATE = 1e-5
EVERY = ("permutation", "wild")
TWO = [mm.kernels.RBF(1.0), mm.kernels.RBF(2.0)]


def mmd_by_hand(gram, first, unbiased):
    """MMD² from its definition, by sums over pairs."""
    x, y = np.flatnonzero(first), np.flatnonzero(~first)
    n, m = len(x), len(y)

    def average(rows, columns, same):
        pairs = [(i, j) for i, j in itertools.product(rows, columns) if not (same and unbiased and i == j)]
        return np.mean([gram[i, j] for i, j in pairs])

    assert n + m == len(gram)
    return average(x, x, True) + average(y, y, True) - 2 * average(x, y, False)


@pytest.mark.parametrize("unbiased", [True, False])
def test_the_matrix_form_is_the_definition(unbiased):
    rng = np.random.default_rng(0)
    pooled = rng.normal(size=(17, 2))
    gram = mm.kernels.RBF(1.0)(pooled) * np.outer(*(rng.uniform(1, 2, 17),) * 2)  # an uneven diagonal too
    z = assignments(7, 10, 20, rng)
    values = permuted_mmd(CentredGram(gram), z, 7, unbiased).values
    expected = [mmd_by_hand(gram, row == 1, unbiased) for row in z]
    np.testing.assert_allclose(values, expected, atol=5e-6)


def test_assignments_are_permutations_after_the_data():
    z = assignments(3, 4, 50, np.random.default_rng(0))
    assert z[0].tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert (z.sum(axis=1) == 3).all()
    assert len({tuple(row) for row in z[1:]}) > 20


def test_the_statistic_is_the_squared_norm_of_the_witness():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 2)), rng.normal(0.5, 1.0, size=(20, 2))
    result = mm.two_sample_test(x, y, mm.kernels.RBF(1.0), statistic="biased", rng=0)
    assert result.statistic == pytest.approx(result.witness.squared_norm(), rel=1e-5)


def test_the_pvalue_counts_the_data_among_the_permutations():
    rng = np.random.default_rng(2)
    result = mm.two_sample_test(rng.normal(size=20), rng.normal(5, 1, size=20), n_permutations=99, rng=0)
    assert result.pvalue == pytest.approx(1 / 100)


def test_fusing_one_kernel_leaves_its_statistic():
    one = Permuted(np.random.default_rng(0).normal(size=100) * 1e-2, 0.0)
    assert fused([one], [0.3], 90)[0] is one


CELLS = [
    (statistic, null, kernel)
    for statistic, nulls in choices().items()
    if statistic != "auto"
    for null in nulls
    for kernel in ("default", "median", "given", "two")
    if kernel in ("median", "given") or (statistic in ("unbiased", "biased", "features") and null in EVERY)
]


def rejections(statistic, null, kernel, trials, draw, n, m, seed):
    """How often a true null hypothesis is rejected at 0.05; wild draws need pairs."""
    rng = np.random.default_rng(seed)
    chosen = {"default": None, "median": "median", "given": mm.kernels.Laplace(0.3), "two": TWO}[kernel]
    m = n if null == "wild" else m
    settings = {"statistic": statistic, "null": null, "n_permutations": 199}
    return sum(
        mm.two_sample_test(draw(rng, (n, 2)), draw(rng, (m, 2)), chosen, rng=trial, **settings).reject(0.05)
        for trial in range(trials)
    )


@pytest.mark.parametrize(
    ("statistic", "null", "kernel"),
    [
        ("unbiased", "permutation", "default"),
        ("biased", "wild", "two"),
        ("biased", "gamma", "median"),
        ("biased", "spectral", "median"),
        ("features", "permutation", "given"),
    ],
)
def test_level(statistic, null, kernel):
    trials = 150
    found = rejections(statistic, null, kernel, trials, lambda rng, size: rng.normal(size=size), 20, 30, seed=3)
    assert scipy.stats.binomtest(found, trials, 0.05).pvalue > FAILURE_RATE


@pytest.mark.slow
@pytest.mark.parametrize(("statistic", "null", "kernel"), CELLS, ids=map("-".join, CELLS))
def test_level_at_length(statistic, null, kernel):
    """A limit needs more points: 200 and 300 of them instead of 40 and 60."""
    trials = 1000
    n, m = (200, 300) if null in ("normal", "gamma", "spectral") else (40, 60)
    found = rejections(statistic, null, kernel, trials, lambda rng, size: rng.exponential(size=size), n, m, seed=4)
    low, high = scipy.stats.binom.interval(0.99, trials, 0.05)
    assert low <= found <= high, found


def test_the_default_sees_a_scale_that_the_median_misses():
    rng = np.random.default_rng(5)

    def grid(cov):
        centres = 10 * np.stack(np.meshgrid(range(3), range(3)), -1).reshape(-1, 2)
        return centres[rng.integers(9, size=450)] + rng.multivariate_normal([0, 0], cov, size=450)

    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    x, y = grid(np.eye(2)), grid(turn @ np.diag([1, 6]) @ turn.T)
    assert mm.two_sample_test(x, y, n_permutations=199, rng=0).reject(0.05)
    assert not mm.two_sample_test(x, y, "median", n_permutations=199, rng=0).reject(0.05)


def test_a_seed_repeats_everything():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(25, 2)), rng.normal(size=(25, 2))
    first = mm.two_sample_test(x, y, n_permutations=100)
    again = mm.two_sample_test(x, y, n_permutations=100, rng=first.seed)
    assert first.pvalue == again.pvalue
    assert (first.null.draws == again.null.draws).all()


def test_what_comes_in():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
    frames = [pandas.DataFrame(a, columns=["a", "b"]) for a in (x, y)]
    plain = mm.two_sample_test(x, y, rng=0).pvalue
    assert mm.two_sample_test(*frames, rng=0).pvalue == plain
    assert mm.two_sample_test(x.tolist(), y.tolist(), rng=0).pvalue == plain
    labels = mm.two_sample_test(["a"] * 20 + ["b"] * 5, ["b"] * 20 + ["a"] * 5, rng=0)
    assert labels.reject(0.05)
    mixed = [frame.assign(c=np.where(np.arange(20) % 2, "u", "v")) for frame in frames]
    assert 0 < mm.two_sample_test(*mixed, rng=0).pvalue <= 1


def test_kernels_are_chosen_by_the_pooled_sample():
    # One chosen by the first sample alone would know which sample that is, and permutations would not be exact.
    rng = np.random.default_rng(0)
    samples = [scipy.sparse.csr_array(rng.poisson(0.1 * i, (20 + i, 100))) for i in (1, 2)]
    chosen = [mm.two_sample_test(*pair, rng=0).kernel.lengthscale for pair in (samples, samples[::-1])]
    pooled = np.concatenate([sample.toarray() for sample in samples])
    np.testing.assert_allclose(chosen, mm.median_heuristic(pooled))
    turns = [Rotation.from_rotvec(rng.normal(size=(20, 3))) for _ in range(2)]
    result = mm.two_sample_test(*turns, rng=0)
    matrices = [turn.as_matrix() for turn in turns]
    assert result.pvalue == mm.two_sample_test(*matrices, result.kernel, rng=0).pvalue


def test_the_result_can_be_read(tmp_path):
    rng = np.random.default_rng(8)
    result = mm.two_sample_test(rng.normal(size=20), rng.normal(size=20), rng=3)
    assert "p-value" in str(result)
    assert "seed       3" in str(result)
    assert result.to_dict()["seed"] == 3
    axes = result.plot()
    axes.figure.savefig(tmp_path / "null.png")
    assert result.witness([0.0]).shape == (1,)


def test_identical_samples_are_never_rejected():
    x = np.random.default_rng(9).normal(size=(20, 2))
    assert mm.two_sample_test(x, x, rng=0).pvalue > 0.5


def test_tied_data_keep_their_ties():
    x = np.repeat([0.0, 1.0], 20)
    result = mm.two_sample_test(x, x[::-1], mm.kernels.RBF(1.0), rng=0)
    assert result.pvalue == 1.0


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "message"),
    [
        ((np.zeros((4, 2)), np.ones((9, 2))), {}, EmptyError, "x has 4 points; expected at least 5"),
        ((np.eye(6), np.ones((9, 2))), {}, ShapeError, "differ in their columns"),
        ((np.zeros(9), np.zeros(9)), {}, InputError, "equal"),
        ((np.arange(9), np.arange(9)), {"kernel": "mean"}, KindError, "expected a kernel"),
        ((np.arange(9), np.arange(9)), {"null": "bootstrap"}, ParameterError, "expected one of 'auto'"),
        ((np.arange(9), np.arange(8)), {"null": "wild"}, ShapeError, "exchanges pairs"),
        (
            (np.arange(9), np.arange(8)),
            {"null": "gamma", "statistic": "unbiased"},
            ParameterError,
            "has no null='gamma'",
        ),
        (
            (np.arange(9), np.arange(9)),
            {"null": "gamma", "kernel": [mm.kernels.RBF(1.0)] * 2},
            ParameterError,
            "one kernel",
        ),
        ((np.arange(9), np.arange(9)), {"n_permutations": 5}, ParameterError, "at least 19"),
        ((np.r_[np.nan, np.arange(9)], np.arange(9)), {}, InputError, "not finite"),
    ],
)
def test_bad_input(arguments, settings, error, message):
    with pytest.raises(error, match=message):
        mm.two_sample_test(*arguments, **settings)


@pytest.mark.parametrize("level", [0, 1, 1.5, "a", True])
def test_a_level_is_between_0_and_1(level):
    rng = np.random.default_rng(10)
    result = mm.two_sample_test(rng.normal(size=9), rng.normal(size=9), rng=0)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        result.reject(level)


def names(first, count):
    return [f"id {i}" for i in range(first, first + count)]


@pytest.mark.parametrize(
    ("statistic", "null"),
    [("auto", "auto"), ("biased", "auto"), ("unbiased", "wild"), ("features", "auto"), ("block", "wild")],
)
def test_points_that_are_all_different_say_nothing(statistic, null):
    """Under a kernel that is the identity every permutation has the same statistic, up to rounding."""
    m = 30 if null == "wild" else 40
    equal, settings = mm.kernels.Delta(), {"statistic": statistic, "null": null, "n_permutations": 99, "rng": 0}
    result = mm.two_sample_test(names(0, 30), names(100, m), equal, **settings)
    assert result.pvalue == 1.0
    assert any("the same under every permutation" in text for text in result.warnings)


def test_few_points_that_are_alike_are_seen_beside_many_that_are_not():
    """Repeated within samples only: the Gram matrix is the identity but for a few entries."""
    x = [*names(0, 150), *["a"] * 8]
    y = [*names(200, 150), *["b"] * 8]
    assert mm.two_sample_test(x, y, rng=0).pvalue < 0.01


def test_a_kernel_under_which_nothing_is_alike_does_not_hide_the_others():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=40), rng.normal(2.0, 1.0, size=40)
    assert mm.two_sample_test(x, y, [mm.kernels.RBF(1e-9), mm.kernels.RBF(1.0)], rng=0).pvalue < 0.01


@pytest.mark.parametrize("kernel", [mm.kernels.RBF(1e9), mm.kernels.Linear()], ids=["wide", "linear"])
def test_differences_below_rounding_tie(kernel):
    """Kernel values near one, or of 10¹⁸, whose differences have no digits left."""
    rng = np.random.default_rng(0)
    result = mm.two_sample_test(1e9 + rng.normal(size=40), 1e9 + rng.normal(size=40), kernel, rng=0)
    assert result.pvalue == 1.0
    assert result.warnings


EXTREME = {
    "linear": (1e19, mm.kernels.Linear(), {}),
    "polynomial": (1e40, mm.kernels.Polynomial(3), {}),
    "tiny": (1e-300, None, {}),
    "tiny, one kernel": (1e-300, "median", {"null": "spectral"}),
}


@pytest.mark.parametrize("case", EXTREME)
def test_units_do_not_matter_however_large_or_small(case):
    unit, kernel, settings = EXTREME[case]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40))
    result = mm.two_sample_test(unit * x, unit * y, kernel, n_permutations=99, rng=0, **settings)
    plain = mm.two_sample_test(x, y, kernel, n_permutations=99, rng=0, **settings)
    assert np.isfinite(result.statistic)
    if case != "polynomial":  # whose offset of 1 is a unit of its own
        assert result.pvalue == plain.pvalue


@pytest.mark.parametrize("kernel", [None, "median", mm.kernels.RBF(0.5)], ids=["default", "median", "given"])
@pytest.mark.parametrize("statistic", ["auto", "features"])
def test_numbers_too_large_are_refused_in_words(kernel, statistic):
    """Twice the same sample with a value that stands for a missing one: distances of inf − inf."""
    x = np.random.default_rng(0).normal(size=40)
    x[3] = np.finfo(float).max
    with pytest.raises(InputError, match="too large for distances"):
        mm.two_sample_test(x, x, kernel, statistic=statistic, rng=0)


@pytest.mark.parametrize("null", ["permutation", "wild", "gamma", "spectral"])
def test_equal_points_under_a_given_kernel(null):
    result = mm.two_sample_test(np.ones(20), np.ones(20), mm.kernels.RBF(1.0), null=null, rng=0)
    assert result.pvalue == 1.0
    assert any("the same under every permutation" in warning for warning in result.warnings)


def test_a_control_group_comes_first():
    """Of the arms C and control, differences were control minus C. An order of categories still comes before."""
    cost = np.random.default_rng(3).normal(size=40)
    table = pd.DataFrame({"arm": ["C"] * 20 + ["Control"] * 20, "cost": cost})
    result = mm.two_sample_test(table, by="arm", n_permutations=19, rng=0)
    assert "arm=C minus arm=Control" in str(result)
    table["arm"] = pd.Categorical(table["arm"], ["C", "Control"])
    assert "arm=Control minus arm=C" in str(mm.two_sample_test(table, by="arm", n_permutations=19, rng=0))
