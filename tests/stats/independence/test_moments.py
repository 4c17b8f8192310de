"""Independence in one pass: what is streamed is what would be computed at once, however the data come."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas
import polars
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.door import Door
from meanmap.core.errors import KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.features.states.feature_map import FeatureMap
from meanmap.features.states.pairs import SideBySide
from meanmap.stats.independence.moments import JointMoments, features_of

# Dask calls pandas in a way that its newest versions advise against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")
N = 10_000


def data(n=N, dependence=0.0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, np.c_[rng.normal(size=n) + dependence * x[:, 0] ** 2, rng.exponential(size=n)]


def test_moments_are_covariances_of_features():
    x, y = data(500)
    with Door() as door:
        fitted = tuple(features_of(mm.kernels.RBF(1.0), part, "x", np.random.default_rng(0), door) for part in (x, y))
        mapped = FeatureMap.of(SideBySide(fitted[0].kernel, fitted), (x, y), np.float64, [f.size for f in fitted])
        parts = [(x[:10], y[:10]), (x[10:], y[10:])]
        moments = JointMoments(mapped.sums(parts).moments(), fitted[0].size)
        rounded = mapped.grid.origin + mapped.grid.unit * mapped.grid.units(np.c_[fitted[0](x), fitted[1](y)])
        phi, psi = np.split(rounded, [fitted[0].size], axis=1)
        np.testing.assert_allclose(phi, fitted[0](x), atol=2.0**-16)
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


def test_the_pvalue_is_the_same_wherever_the_rows_lie(tmp_path):
    """In any order, in any partitions, by any engine."""
    x, y = data(21_000, dependence=0.02)
    frame = pandas.DataFrame(np.c_[x, y], columns=list("abcd"))
    (tmp_path / "parts").mkdir()
    for i, index in enumerate(np.array_split(np.arange(len(x)), 11)):
        polars.from_pandas(frame.iloc[index]).write_parquet(tmp_path / "parts" / f"{i:02}.parquet")
    np.save(tmp_path / "both.npy", np.c_[x, y])
    mapped = np.load(tmp_path / "both.npy", mmap_mode="r")
    lazy = polars.scan_parquet(tmp_path / "parts" / "*.parquet")
    array, table = da.from_array(np.c_[x, y], chunks=(5000, 4)), dd.read_parquet(tmp_path / "parts")
    kernels = {"kernel": mm.kernels.RBF([1.0, 2.0]), "rng": 0}
    ways = [
        (x, y),
        (mapped[:, :2], mapped[:, 2:]),
        (array[:, :2], array[:, 2:]),
        (table[["a", "b"]], table[["c", "d"]]),
        (lazy.select("a", "b"), frame[["c", "d"]]),
    ]
    found = {
        (r.pvalue, r.statistic, r.sizes)
        for r in (mm.independence_test(*way, n_permutations=99, **kernels) for way in ways)
    }
    mm.save(mm.stats.plan("independence", *ways[2], **kernels), tmp_path / "p")
    plan = mm.load(tmp_path / "p")
    states = [
        plan.state(x[part], y[part]) for part in (slice(20_999, None), slice(7, 20_999), slice(0, 0), slice(0, 7))
    ]
    last = plan.result(states[0].merge(states[3]).merge(states[2]).merge(states[1]), 99)
    assert found == {(last.pvalue, last.statistic, last.sizes)}


def test_collections_that_do_not_lie_side_by_side():
    x, y = (da.from_array(part, chunks=(6000, 2)) for part in data(21_000))
    with pytest.raises(KindError, match="some of x and y are Dask collections and others are in memory"):
        mm.independence_test(x, data(21_000)[1])
    with pytest.raises(ShapeError, match="x has 21000 points and y has 20999; expected pairs"):
        mm.independence_test(x, y[1:])
    expected = mm.independence_test(x, y, "median", rng=0)
    for chunks in ((7000, 2), ((5000, 7000, 6000, 3000), 2)):
        found = mm.independence_test(x, y.rechunk(chunks), "median", rng=0)
        assert (found.pvalue, found.statistic) == (expected.pvalue, expected.statistic)
    with pytest.raises(ParameterError, match="take null='spectral' or 'gamma'"):
        mm.independence_test(x, y, null="permutation")


def test_missing_values_of_collections():
    """Rows with a gap in either variable are left out, wherever they lie."""
    x, y = data(21_000)
    frame = pandas.DataFrame(np.c_[x, y], columns=list("abcd"))
    frame.loc[::1000, "a"] = np.nan
    frame.loc[5::2000, "d"] = np.nan
    table = dd.from_pandas(frame, npartitions=4)
    found = [
        mm.independence_test(each[["a", "b"]], each[["c", "d"]], missing="drop", n_permutations=99, rng=0)
        for each in (frame, table)
    ]
    assert (found[0].pvalue, found[0].statistic) == (found[1].pvalue, found[1].statistic)
    assert found[1].sizes == (21_000 - 21 - 11,)
    told = "32 of 21000 rows of x and y were left out: a value is missing in 'a' of x (21), 'd' of y (11)."
    assert told in found[1].warnings
    with pytest.raises(NonFiniteError):
        mm.independence_test(table[["a"]], table[["c"]], rng=0)


def test_a_plan_refuses_a_null_that_it_does_not_have():
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    plan = mm.stats.plan("independence", x, y, rng=0)
    with pytest.raises(ParameterError, match=r"null is 'gama' \(did you mean 'gamma'"):
        plan.result(plan.state(x, y), null="gama")
