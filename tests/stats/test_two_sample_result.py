import json

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError


@pytest.fixture(scope="module")
def shifted():
    """Three columns, of which the second differs; row 0 of x and row 1 of y lie far out on either side."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(100, 3)), rng.normal([0.0, 2.0, 0.0], 1.0, size=(120, 3))
    return mm.two_sample_test(x, y, rng=0)


def test_the_column_that_differs_is_found(shifted):
    lost = shifted.driving_columns(rng=0)
    assert list(lost) == ["column 0", "column 1", "column 2"]
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
    assert list(shares) == ["a", "town"]
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
    assert page.startswith("<table><caption>two-sample test")
    assert "p-value" in page
    assert json.loads(json.dumps(shifted.to_dict()))["pvalue"] == shifted.pvalue


def test_bad_input(shifted):
    with pytest.raises(ParameterError, match="number is 0"):
        shifted.driving_points(0)
    with pytest.raises(KindError, match="over 1 or 2 columns of numbers"):
        shifted.plot_witness()
    labels = mm.two_sample_test(["a"] * 20, ["b"] * 10 + ["a"] * 10, rng=0)
    with pytest.raises(KindError, match="no columns to shuffle"):
        labels.driving_columns()
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
