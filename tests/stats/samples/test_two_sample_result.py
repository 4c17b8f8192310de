import dataclasses
import json

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, KindError, ParameterError
from meanmap.kernels import RBF, OnColumns, Spectrum


@pytest.fixture(scope="module")
def shifted():
    """Three columns, of which the second differs; row 0 of x and row 1 of y lie far out on either side."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 3)), rng.normal([0.0, 2.0, 0.0], 1.0, size=(120, 3))
    return mm.two_sample_test(x, y, rng=0)


def test_the_column_that_differs_is_found(shifted):
    lost = shifted.driving_columns(rng=0)
    assert set(lost) == {"column 0", "column 1", "column 2"}
    assert next(iter(lost)) == "column 1"
    assert lost["column 1"] > 0.5
    assert abs(lost["column 0"]) < 0.3
    assert abs(lost["column 2"]) < 0.3
    assert shifted.driving_columns(rng=0) == lost


def test_a_correlation_involves_both_of_its_columns():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 300, 3))
    y[:, 2] = 0.8 * y[:, 0] + 0.6 * y[:, 2]
    lost = mm.two_sample_test(
        {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}, {"a": y[:, 0], "b": y[:, 1], "c": y[:, 2]}, rng=0
    )
    shares = lost.driving_columns(rng=0)
    assert min(shares["a"], shares["c"]) > 0.5
    assert shares["b"] < 0.4


def test_columns_of_a_mixed_table_are_shuffled_wherever_a_kernel_reads_them():
    rng = np.random.default_rng(6)
    x, y = (
        {"a": rng.normal(size=150), "town": rng.choice(["Ulm", "Bonn"], 150, p=p)} for p in ((0.5, 0.5), (0.9, 0.1))
    )
    result = mm.two_sample_test(x, y, rng=0)
    shares = result.driving_columns(rng=0)
    assert list(shares) == ["town", "a"]
    assert shares["town"] > 0.8
    assert abs(shares["a"]) < 0.3
    with pytest.raises(KindError, match="these points have other ones"):
        result.plot_witness()
    twice = mm.kernels.OnColumns(mm.kernels.Hamming(1.0), "town") * mm.kernels.OnColumns(mm.kernels.Delta(), ["town"])
    assert mm.two_sample_test(x, y, twice, rng=0).driving_columns(rng=0)["town"] == pytest.approx(1.0, abs=0.1)


def test_shares_are_those_of_their_definition():
    """One column alone: shuffling it makes both samples one, and everything is lost."""
    rng = np.random.default_rng(2)
    result = mm.two_sample_test(rng.normal(size=400), rng.normal(1.0, 1.0, size=400), rng=0)
    assert result.driving_columns(rng=0)["column 0"] == pytest.approx(1.0, abs=0.1)


def test_driving_points_lie_where_the_witness_is_extreme(shifted):
    first, second = shifted.driving_points(5)
    values = shifted.witness(shifted.witness.points)
    assert values[:100][first].min() >= np.sort(values[:100])[-5]
    assert values[100:][second].max() <= np.sort(values[100:])[4]
    assert (np.diff(values[:100][first]) <= 0).all()


def test_pictures_of_the_witness(tmp_path):
    rng = np.random.default_rng(3)
    for columns in (1, 2):
        x, y = rng.normal(size=(60, columns)), rng.normal(1.0, 1.0, size=(50, columns))
        axes = mm.two_sample_test(x, y, "median", rng=0).plot_witness()
        axes.figure.savefig(tmp_path / f"{columns}.png")
        assert "denser" in axes.get_title()


def test_the_witness_is_that_of_the_strongest_kernel():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=60), rng.normal(2.0, 1.0, size=60)
    kernels = [mm.kernels.RBF(1e-3), mm.kernels.RBF(1.0)]
    assert mm.two_sample_test(x, y, kernels, rng=0).witness.kernel.lengthscale == 1.0


def test_what_notebooks_and_files_see(shifted):
    page = shifted._repr_html_()
    assert "<b>Do x and y come from the same distribution?</b> Two-sample test" in page
    assert "p-value" in page
    assert json.loads(json.dumps(shifted.to_dict()))["pvalue"] == shifted.pvalue


def test_bad_input(shifted):
    with pytest.raises(ParameterError, match="number is 0"):
        shifted.driving_points(0)
    with pytest.raises(KindError, match="over 1 or 2 numeric columns"):
        shifted.plot_witness()
    labels = mm.two_sample_test(["a"] * 20, ["b"] * 10 + ["a"] * 10, rng=0)
    with pytest.raises(KindError, match="no columns to shuffle"):
        labels.driving_columns()
    town = mm.two_sample_test({"town": ["a"] * 20}, {"town": ["a", "b"] * 10}, n_permutations=19, rng=0)
    assert town.driving_columns(rng=0)["town"] == pytest.approx(1.0, abs=0.5)
    with pytest.raises(KindError, match="over 1 or 2 numeric columns"):
        town.plot_witness()
    rng = np.random.default_rng(5)
    large = mm.two_sample_test(rng.normal(size=11_000), rng.normal(size=11_000), rng=0)
    with pytest.raises(KindError, match="too large to be kept"):
        large.driving_points()


def test_driving_points_of_mixed_tables():
    rng = np.random.default_rng(3)
    ages, towns = rng.normal(size=60), np.repeat(["Ulm", "Bonn", "Kiel"], 20)
    before = {"age": ages, "town": towns}
    after = {"age": np.where(np.arange(60) < 6, 9.0, ages[::-1]), "town": towns}
    result = mm.two_sample_test(before, after, n_permutations=99, rng=0)
    _, strange = result.driving_points(6)
    assert set(strange) == set(range(6))


def test_a_small_sample_beside_a_large_one_keeps_its_points():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 2)), rng.normal(size=(2900, 2))
    x[:, 1] += 8
    shares = mm.two_sample_test(x, y, n_permutations=19, rng=0).driving_columns(rng=0)
    assert shares["column 1"] > 0.5 > shares["column 0"]


def shares_of_shifts(first, second):
    """Of MMD² under RBF(1) between N(0, I) and N((first, second), I): what shuffling each column loses."""

    def near(shift):
        return np.exp(-(shift**2) / 6) / np.sqrt(3)

    same, whole = near(0.0), 2 * (near(0.0) ** 2 - near(first) * near(second))
    mixed = [(same + near(shift)) / 2 for shift in (first, second)]
    return 1 - 2 * mixed[0] * (same - near(second)) / whole, 1 - 2 * mixed[1] * (same - near(first)) / whole


def share_intervals_that_cover(repeats, n, shifts, confidence, seed):
    hits, truth = np.zeros(2, int), shares_of_shifts(*shifts)
    for k in range(repeats):
        rng = np.random.default_rng([seed, k])
        x, y = rng.normal(size=(n, 2)), rng.normal(shifts, 1.0, size=(n, 2))
        result = mm.two_sample_test(x, y, mm.kernels.RBF(1.0), n_permutations=19, rng=0)
        found = result.driving_columns(rng=1, confidence=confidence)
        hits += [found[f"column {j}"].low <= value <= found[f"column {j}"].high for j, value in enumerate(truth)]
    return hits


def test_intervals_of_shares_cover():
    hits = share_intervals_that_cover(20, 120, (1.0, 0.7), 0.9, seed=31)
    assert hits.min() >= scipy.stats.binom.ppf(1e-5, 20, 0.9), hits


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 500])
@pytest.mark.parametrize("shifts", [(1.0, 0.7), (1.0, 0.0), (0.5, 0.3)])
def test_intervals_of_shares_cover_at_length(n, shifts):
    hits = share_intervals_that_cover(200, n, shifts, 0.9, seed=32)
    print(f"coverage of shares, n = {n}, shifts {shifts}: {hits} of 200")
    assert hits.min() >= scipy.stats.binom.ppf(0.005, 200, 0.9), hits


def test_shares_of_nothing_may_be_any():
    x = np.random.default_rng(6).normal(size=(2, 120, 2))
    found = mm.two_sample_test(*x, n_permutations=19, rng=0).driving_columns(rng=0, confidence=0.9)
    assert all(each.low == 0 and each.high == 1 for each in found.values())


def test_intervals_of_shares_need_rows():
    x = np.random.default_rng(0).normal(size=(60, 2))
    result = mm.two_sample_test(x, x + 1.0, n_permutations=19, rng=0)
    with pytest.raises(InputError, match="the smaller sample has 60"):
        result.driving_columns(confidence=0.95)
    with pytest.raises(ParameterError, match=r"confidence is 1\.5; expected a number between 0 and 1"):
        result.driving_columns(confidence=1.5)


def test_a_share_without_its_groups_is_that_of_the_points_that_stay():
    from meanmap.stats.samples.two_sample_result import _without_each_group

    rng = np.random.default_rng(1)
    points, second = rng.normal(size=(40, 2)), np.arange(40) >= 22
    groups = rng.integers(0, 4, size=40)
    gram = mm.kernels.RBF(1.0)(points)
    found = _without_each_group(gram, second, groups, 4)

    def square(kept):
        k = gram - np.diag(gram.diagonal())
        x, y = np.flatnonzero(kept & ~second), np.flatnonzero(kept & second)
        within = sum(k[np.ix_(each, each)].sum() / (len(each) * (len(each) - 1)) for each in (x, y))
        return within - 2 * gram[np.ix_(x, y)].mean()

    expected = [square(np.ones(40, bool)), *(square(groups != group) for group in range(4))]
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("beside", ["numbers", "labels"])
@pytest.mark.parametrize("moved", ["review", "stars"])
def test_columns_of_several_coordinates_are_among_those_that_drive(beside, moved):
    """A column of texts becomes ten numbers: those beside it are still found, and it has a share itself."""
    rng = np.random.default_rng(6)
    words = np.array(["good", "bad", "warm", "cold", "wet", "dry", "light", "dark", "early", "late"])

    def sample(shift):
        first = words[rng.integers(0, 5 if shift and moved == "review" else 10, (60, 4))]
        last = [" ".join(row) + f" {i}" for i, row in enumerate(first)]
        table = {"review": last, "stars": rng.normal(3.0 if shift and moved == "stars" else 0.0, 1.0, 60)}
        return table if beside == "numbers" else table | {"town": rng.choice(["Ulm", "Bonn"], 60).tolist()}

    result = mm.two_sample_test(sample(False), sample(True), n_permutations=19, rng=0)
    shares = result.driving_columns(rng=0)
    assert set(shares) == {"review", "stars", "town"} - ({"town"} if beside == "numbers" else set())
    assert max(shares, key=shares.get) == moved
    with pytest.raises(KindError, match="over 1 or 2 numeric columns"):
        result.plot_witness()


def test_columns_that_only_their_kernel_reads_are_among_those_that_drive():
    rng = np.random.default_rng(7)
    x = {"word": ["abc", "abd"] * 20, "age": rng.normal(size=40)}
    y = {"word": ["xyz", "abd"] * 20, "age": rng.normal(size=40)}
    kernel = OnColumns(Spectrum(2), "word") * OnColumns(RBF(2.0), "age")
    shares = mm.two_sample_test(x, y, kernel, n_permutations=19, rng=0).driving_columns(rng=0)
    assert shares["word"] > 0.8 > shares["age"]


def test_each_column_has_a_share_whatever_kernel_saw_most():
    """A column 1.8 times as wide (Levene's p = 4e-13) beside one that is wider still."""
    x, y = np.random.default_rng(0).normal(size=(2, 150, 20))
    y[:, 3] *= 2.5
    y[:, 1] *= 1.8
    result = mm.two_sample_test(x, y, n_permutations=99, rng=0)
    shares = result.driving_columns(rng=0, confidence=0.95)
    assert list(shares)[:2] == ["column 3", "column 1"]
    assert shares["column 1"].low > 0.1
    pvalues = result.column_pvalues(rng=0)
    assert {name for name, pvalue in pvalues.items() if pvalue <= 0.05} == {"column 3", "column 1"}
    assert list(pvalues.values()) == sorted(pvalues.values())
    assert result.column_pvalues(rng=0) == pvalues


def test_shares_of_copied_rows_stay_shares():
    """They were 1.64 and -.55: pairs of copies are alike until one column is shuffled."""
    x, y = (np.repeat(sample, 4, axis=0) for sample in np.random.default_rng(1).normal(size=(2, 30, 3)))
    for kernel in (None, RBF(1.0)):
        result = mm.two_sample_test(x, y, kernel, n_permutations=19, rng=0)
        for share in result.driving_columns(rng=0).values():
            assert 0 <= share <= 1
        for share in result.driving_columns(rng=0, confidence=0.95).values():
            assert 0 <= share.low <= share.estimate <= share.high <= 1


def test_columns_whose_correlation_differs_are_found():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 200, 5))
    y[:, 2] = 0.8 * y[:, 0] + 0.6 * y[:, 2]
    pvalues = mm.two_sample_test(x, y, n_permutations=19, rng=0).column_pvalues(rng=0)
    assert {name for name, pvalue in pvalues.items() if pvalue <= 0.05} == {"column 0", "column 2"}


def test_columns_of_labels_and_single_columns_are_tested():
    rng = np.random.default_rng(6)
    x, y = (
        {"a": rng.normal(size=150), "town": rng.choice(["Ulm", "Bonn"], 150, p=p), "one": np.ones(150)}
        for p in ((0.5, 0.5), (0.8, 0.2))
    )
    pvalues = mm.two_sample_test(x, y, n_permutations=19, rng=0).column_pvalues(rng=0)
    assert next(iter(pvalues)) == "town"
    assert pvalues["town"] <= 0.01 < 0.05 < pvalues["a"]
    assert pvalues["one"] == 1.0
    single = mm.two_sample_test(x["a"], y["a"] + 1, n_permutations=19, rng=0)
    assert single.column_pvalues(rng=0)["column 0"] == pytest.approx(0.001)


@pytest.mark.parametrize("design", ["clusters", "within", "weights"])
def test_columns_are_tested_by_the_exchanges_of_the_design(design):
    """Pooled, a column that only the strata or clusters move would be blamed."""
    rng = np.random.default_rng(3)
    of = np.repeat(np.arange(60), 4)
    arm = np.where(of % 2, "a", "b")
    if design == "within":
        of = of % 2
        arm = np.where(rng.random(240) < np.where(of, 0.3, 0.7), "a", "b")
    moved, differs = rng.normal(3.0 * of if design == "within" else of // 8, 0.1), rng.normal(arm == "a")
    table = {"arm": arm, "of": of, "moved": moved, "differs": differs, "noise": rng.normal(size=240)}
    if design == "weights":
        table |= {"of": rng.uniform(0.5, 1.5, 240), "moved": rng.normal(size=240)}
    given = {design: "of"}
    result = mm.two_sample_test(table, by="arm", n_permutations=99, rng=0, **given)
    pvalues = result.column_pvalues(rng=0, n_permutations=199)
    assert [name for name, p in pvalues.items() if p <= 0.05] == ["differs"]
    assert "of each column by itself; adjusted for" in str(result)
    several = mm.k_sample_test(table, by="arm", n_permutations=99, rng=0, **given)
    assert several.column_pvalues(rng=0, n_permutations=199)["differs"] == pvalues["differs"]


def test_the_p_value_of_a_column_of_pairs_is_that_of_all_exchanges():
    """Eight pairs have 256 exchanges, of which two are as extreme as all differences of one sign."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=8)
    values = np.r_[x, x + rng.uniform(0.3, 0.4, 8)]
    result = mm.two_sample_test(
        values[:8, None], values[8:, None], within=np.tile(np.arange(8), 2), n_permutations=99, rng=0
    )
    pvalue = result.column_pvalues(rng=0, n_permutations=3999)["column 0"]
    assert abs(pvalue - 2 / 256) < 5 * np.sqrt(2 / 256 / 4000)


def test_a_result_saved_with_its_design_tests_columns(tmp_path):
    x = np.random.default_rng(0).normal(size=(2, 40, 2))
    result = mm.two_sample_test(*x, within=np.tile(np.arange(2), 40), n_permutations=19, rng=0)
    mm.save(result, tmp_path / "result")
    again = mm.load(tmp_path / "result")
    assert again.column_pvalues(rng=1) == result.column_pvalues(rng=1)
    with pytest.raises(KindError, match="saved without its within="):
        dataclasses.replace(result, design=None).column_pvalues()


def test_products_are_compared_in_units_of_their_standard_error():
    from meanmap.stats.samples.attribution import _of_products

    rng = np.random.default_rng(2)
    main, z = rng.normal(size=(50, 3)), np.zeros((1, 50))
    main -= main.mean(axis=0)
    z[0, :20] = 1
    found = _of_products(main, np.arange(3), z, 3)[0]
    welch = {}
    for i, j in ((0, 1), (0, 2), (1, 2)):
        samples = main[:20, [i, j]], main[20:, [i, j]]
        covariances = [np.cov(each.T, ddof=0)[0, 1] for each in samples]
        errors = [np.var(each.prod(axis=1), ddof=1) / len(each) for each in samples]
        welch[i, j] = (covariances[0] - covariances[1]) ** 2 / sum(errors)
    expected = [max(value for pair, value in welch.items() if column in pair) for column in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def false_findings(repeats, draw, seed, equal):
    """Data sets in which a column that is equal in both samples is called different."""
    found = 0
    for k in range(repeats):
        x, y = draw(np.random.default_rng([seed, k]))
        result = mm.two_sample_test(x, y, RBF(1.0), n_permutations=19, rng=0)
        pvalues = result.column_pvalues(rng=k, n_permutations=199)
        found += any(pvalues[f"column {j}"] <= 0.05 for j in equal)
    return found


def nothing_differs(rng):
    return rng.normal(size=(40, 8)), rng.normal(size=(50, 8))


def one_differs(rng):
    """Much wider and shifted in one sample, beside correlated columns that are the same in both."""
    x, y = rng.normal(size=(60, 6)), rng.normal(size=(60, 6))
    x[:, 2] += x[:, 1]
    y[:, 2] += y[:, 1]
    y[:, 0] = 3 * y[:, 0] + 1
    return x, y


def test_few_columns_are_called_different_by_chance():
    assert false_findings(40, nothing_differs, 41, range(8)) <= scipy.stats.binom.ppf(1 - 1e-4, 40, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "equal"), [(nothing_differs, range(8)), (one_differs, range(1, 6))])
def test_the_chance_of_any_false_column_is_the_level(draw, equal):
    found = false_findings(1000, draw, 42, equal)
    print(f"false columns, {draw.__name__}: {found} of 1000")
    assert found <= scipy.stats.binom.ppf(0.995, 1000, 0.05), found


@pytest.mark.parametrize("convert", [lambda frame: frame, polars.from_pandas])
def test_results_from_frames_are_saved_with_what_they_draw(convert, tmp_path):
    """Rows that the page draws were kept as columns of pandas, which no file holds."""
    rng = np.random.default_rng(0)
    frames = [
        pd.DataFrame(
            {
                "size": rng.normal(shift, 1, 40),
                "site": pd.Categorical(rng.choice(["north", "south"], 40)),
                "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 99, 40), "h"),
                "count": pd.array(rng.integers(0, 9, 40), dtype="Int64"),
                "paid": rng.random(40) < 0.5,
            }
        )
        for shift in (0, 1)
    ]
    result = mm.two_sample_test(*map(convert, frames), n_permutations=99, rng=0)
    again = mm.load(mm.save(result, tmp_path / "result.mm"))
    for k in (0, 1):
        shown, loaded = result.shown.columns(k), again.shown.columns(k)
        assert list(shown) == list(loaded) == list(frames[0])
        for name, column in shown.items():
            np.testing.assert_array_equal(column, loaded[name])
    result.page(tmp_path / "first.html")
    again.page(tmp_path / "second.html")
    assert (tmp_path / "first.html").read_text() == (tmp_path / "second.html").read_text()


def test_an_interval_that_excludes_zero_beside_a_test_that_does_not_reject_is_said_first():
    """It was: "No evidence of a difference", above the interval."""
    rng = np.random.default_rng(6)
    x, y = ({f"c{j}": rng.normal(size=200) for j in range(8)} for _ in range(2))
    y["c3"] += 0.45
    result = mm.two_sample_test(x, y, mm.kernels.RBF(0.2), n_permutations=99, rng=0)
    assert result.pvalue > 0.05
    assert result.differences[0].clear
    answer = result._as_page().sections[0].answer
    assert answer.startswith("Weak evidence of a difference: the hypothesis of equal distributions is not rejected")
    assert "but an interval excludes zero. The mean of c3 is" in answer
    assert "test that difference alone on new data" in str(result)
    equal = mm.two_sample_test(x, {**y, "c3": rng.permutation(x["c3"])}, n_permutations=99, rng=0)
    assert equal._as_page().sections[0].answer.startswith("No evidence of a difference")
