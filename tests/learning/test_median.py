"""The median heuristic, in all its conventions, and kernels set by it."""

import dask.array as da
import dask.dataframe as dd
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.spatial.distance import pdist
from scipy.spatial.transform import Rotation as ScipyRotation

import meanmap as mm
from meanmap.core import ColumnError, EmptyError, InputError, KindError, NonFiniteError, ParameterError
from meanmap.kernels import (
    RBF,
    Delta,
    Hamming,
    Laplace,
    Linear,
    Matern,
    OnColumns,
    Polynomial,
    RationalQuadratic,
    Rotation,
    Torus,
)
from meanmap.kernels.medians import median
from meanmap.learning import at_median, median_heuristic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) * np.array([1.0, 10.0, 0.1])


@pytest.mark.oldest
@pytest.mark.parametrize(
    "x", [X, X[:, 0], X.tolist(), pd.DataFrame(X), X[:2], RNG.normal(size=(41, 6))], ids=lambda x: type(x).__name__
)
def test_both_conventions(x):
    """k at the median distance is exp(−1/2) for one and exp(−1) for the other (Flaxman et al. 2016, section 2.4)."""
    median = np.median(pdist(np.asarray(x).reshape(len(x), -1)))
    assert median_heuristic(x) == pytest.approx(median)
    assert median_heuristic(x, convention=1) == pytest.approx(median / np.sqrt(2))
    assert RBF(median_heuristic(x))([0.0, median])[0, 1] == pytest.approx(np.exp(-1 / 2))
    assert RBF(median_heuristic(x, convention=1))([0.0, median])[0, 1] == pytest.approx(np.exp(-1))
    assert type(median_heuristic(x)) is float


def test_per_column():
    expected = [np.median(pdist(X[:, [d]])) for d in range(3)]
    np.testing.assert_allclose(median_heuristic(X, per_column=True), expected)
    np.testing.assert_allclose(median_heuristic(X, per_column=True, convention=1), np.array(expected) / np.sqrt(2))


def test_a_change_of_scale_is_followed():
    assert median_heuristic(7 * X + 3) == pytest.approx(7 * median_heuristic(X))
    stretched = X * np.array([2.0, 30.0, 0.5])
    np.testing.assert_allclose(
        median_heuristic(stretched, per_column=True), median_heuristic(X, per_column=True) * np.array([2.0, 30.0, 0.5])
    )


def repeated(columns):
    """Nine in ten points equal, the others at distances of one or more: the median distance is zero."""
    x = np.zeros((40, columns)) + 3
    x[:4] += np.arange(1, 5)[:, None]
    return x


@pytest.mark.oldest
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_ties_do_not_make_it_zero(columns):
    """The median of the distances above zero then, also where rounding leaves none at zero exactly."""
    x = repeated(columns)
    distances = pdist(x)
    expected = np.median(distances[distances > 0])
    assert np.median(distances) == 0
    assert median_heuristic(x) == pytest.approx(expected)
    assert median_heuristic(scipy.sparse.csr_array(x)) == pytest.approx(expected)
    assert float(median_heuristic(jnp.asarray(x))) == pytest.approx(expected, rel=1e-5)
    assert float(jax.jit(median_heuristic)(jnp.asarray(x))) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(median_heuristic(x, per_column=True), [expected / np.sqrt(columns)] * columns)


def test_a_subsample_is_within_a_few_per_cent_and_follows_the_seed():
    x = RNG.normal(size=(20_000, 4))
    whole = np.sqrt(2) * 1.8322  # 2 χ²₄ has its median at 2 · 3.3567
    values = [median_heuristic(x, rng=seed) for seed in (0, 0, 1, 2)]
    assert values[0] == values[1] != values[2]
    np.testing.assert_allclose(values, whole, rtol=0.02)
    np.testing.assert_allclose([median_heuristic(x, rng=seed, most_points=200) for seed in range(5)], whole, rtol=0.08)
    assert median_heuristic(x[:300], most_points=300, rng=0) == median_heuristic(x[:300])


class TestJax:
    @pytest.mark.oldest
    def test_jax_in_jax_out(self):
        for x in (X, RNG.normal(size=(30, 7))):
            ours = median_heuristic(jnp.asarray(x))
            assert isinstance(ours, jax.Array)
            assert ours.dtype == jnp.float32
            np.testing.assert_allclose(ours, median_heuristic(x), rtol=1e-5)
            per_column = jax.jit(lambda x: median_heuristic(x, per_column=True))(jnp.asarray(x))
            np.testing.assert_allclose(per_column, median_heuristic(x, per_column=True), rtol=1e-5)
        with jax.enable_x64(True):
            assert median_heuristic(jnp.asarray(X, jnp.float32)).dtype == jnp.float32

    def test_derivative_with_equal_points(self):
        """The median is one distance, whose derivative is a unit vector; equal points add no NaN."""
        x = jnp.array([[0.0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [5, 5, 5, 6]])
        slope = jax.grad(median_heuristic)(x)
        assert jnp.isfinite(slope).all()
        np.testing.assert_allclose(jnp.vdot(slope, x), median_heuristic(x), rtol=1e-5)  # homogeneous of degree one

    def test_a_subsample_under_jit_needs_a_seed(self):
        x = jnp.asarray(RNG.normal(size=(50, 2)))
        assert jnp.isfinite(jax.jit(lambda x: median_heuristic(x, most_points=20, rng=0))(x))
        with pytest.raises(KindError, match="pass an integer seed"):
            jax.jit(lambda x, key: median_heuristic(x, most_points=20, rng=key))(x, jax.random.key(0))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: median_heuristic(X, convention=3),
            ParameterError,
            r"convention is 3; expected 2, for exp\(-r²/2l²\), or 1",
        ),
        (
            lambda: median_heuristic(X, most_points=1),
            ParameterError,
            "most_points is 1; expected a whole number of at least 2",
        ),
        (lambda: median_heuristic(X, most_points=2.5), ParameterError, "most_points is 2.5"),
        (lambda: median_heuristic([1.0]), EmptyError, "x has 1 point; expected at least 2"),
        (lambda: median_heuristic([]), EmptyError, "x is empty"),
        (lambda: median_heuristic([1.0, np.nan]), NonFiniteError, "x holds 1 value"),
        (
            lambda: median_heuristic(np.ones((5, 6))),
            InputError,
            "all points of x are equal: there is no distance to take",
        ),
        (lambda: median_heuristic(jnp.ones((5, 6))), InputError, "all points of x are equal"),
        (
            lambda: median_heuristic(scipy.sparse.csr_array(np.full((5, 6), 0.1))),
            InputError,
            "all points of x are equal",
        ),
        (lambda: median_heuristic(X * [1, 0, 1], per_column=True), ColumnError, "column 1 of x is constant"),
        (
            lambda: median_heuristic(scipy.sparse.csr_array(X), per_column=True),
            KindError,
            r"x is sparse.*x.toarray\(\)",
        ),
        (lambda: median_heuristic(["a", "b"]), KindError, "x holds <U1 values"),
        (lambda: median_heuristic(RNG.normal(size=3000), rng=-1), ParameterError, "rng is -1"),
        (lambda: at_median("rbf", X), KindError, "kernel is 'rbf'; expected a kernel"),
        (lambda: at_median(RBF(), [[1.0]]), EmptyError, "x has 1 point; expected at least 2"),
        (lambda: at_median(Laplace(), np.ones((4, 2))), InputError, "all points of x are equal"),
    ],
)
def test_what_cannot_be_used_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


class TestAtMedian:
    @pytest.mark.oldest
    @pytest.mark.parametrize(
        "kernel", [RBF(), Matern(3.0), RationalQuadratic(0.1, 0.7), Laplace(), RBF([1.0, 2.0, 5.0])], ids=repr
    )
    def test_the_median_distance_is_one_lengthscale_in_the_kernels_own_geometry(self, kernel):
        fitted = at_median(kernel, X)
        metric = "cityblock" if isinstance(kernel, Laplace) else "euclidean"
        assert np.median(pdist(X / fitted.lengthscale, metric)) == pytest.approx(1)
        ratio = fitted.lengthscale / kernel.lengthscale
        np.testing.assert_allclose(ratio, np.full_like(ratio, ratio.flat[0]))  # relative lengthscales are kept
        assert type(fitted.lengthscale) is np.ndarray or np.isscalar(fitted.lengthscale)

    def test_same_result_from_any_starting_scale(self):
        assert at_median(RBF(9.0), X).lengthscale == pytest.approx(median_heuristic(X))

    def test_on_the_circle_and_among_rotations_by_the_chord(self):
        angles = RNG.uniform(-3, 3, size=(30, 1))
        chords = 2 * np.abs(np.sin(pdist(angles) / 2))
        assert at_median(Torus(), angles).lengthscale == pytest.approx(np.median(chords))
        rotations = ScipyRotation.random(20, random_state=0)
        chords = pdist(rotations.as_matrix().reshape(20, 9))
        assert at_median(Rotation(), rotations).lengthscale == pytest.approx(np.median(chords))

    def test_members_are_set_one_by_one(self):
        data = {"a": X[:, 0], "b": X[:, 1], "c": ["u", "v"] * 30}
        kernel = OnColumns(RBF(), "a") * OnColumns(Laplace(), "b") * OnColumns(Hamming(0.3), "c")
        first, second, third = at_median(kernel, data).members
        assert first.kernel.lengthscale == pytest.approx(median_heuristic(X[:, 0]))
        assert second.kernel.lengthscale == pytest.approx(median_heuristic(X[:, 1]))
        assert third.kernel.lengthscale == pytest.approx(0.3)
        nested = at_median((2.0 * RBF()) ** 3 + Linear(), X)
        assert nested.members[0].kernel.kernel.lengthscale == pytest.approx(median_heuristic(X))

    @pytest.mark.parametrize("kernel", [Linear(), Polynomial(2), Delta()], ids=repr)
    def test_kernels_without_a_lengthscale_stay_as_they_are(self, kernel):
        x = [1, 2, 3]
        np.testing.assert_array_equal(at_median(kernel, x)(x), kernel(x))

    def test_sparse_points(self):
        sparse = scipy.sparse.random(30, 40, density=0.2, random_state=0, format="csr")
        assert at_median(RBF(), sparse).lengthscale == pytest.approx(at_median(RBF(), sparse.toarray()).lengthscale)

    def test_jax(self):
        fitted = at_median(RBF(), jnp.asarray(X))
        assert isinstance(fitted.lengthscale, jax.Array)
        for kernel in (RBF([1.0, 2.0, 5.0]), Laplace(), Torus()):
            ours = jax.jit(lambda x, kernel=kernel: at_median(kernel, x).lengthscale)(jnp.asarray(X))
            np.testing.assert_allclose(ours, at_median(kernel, X).lengthscale, rtol=1e-4)


def test_public_names():
    assert mm.median_heuristic is median_heuristic


def test_rows_of_collections_and_files_are_those_of_the_array(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5000, 2)) * [1.0, 30.0]
    frame = pd.DataFrame(x, columns=["a", "b"])
    frame.to_parquet(tmp_path / "x.parquet")
    expected = median_heuristic(x, per_column=True, most_points=500, rng=3).tolist()
    for source in (da.from_array(x, (1100, 1)), dd.from_pandas(frame, npartitions=3), tmp_path / "x.parquet"):
        assert median_heuristic(source, per_column=True, most_points=500, rng=3).tolist() == expected


NUMBERS = {
    "normal": lambda rng: rng.normal(size=700),
    "far from zero": lambda rng: 1e9 + rng.normal(size=701),
    "two clusters": lambda rng: np.repeat([-1e6, 1e6], 350) + rng.normal(size=700),
    "heavy tails": lambda rng: rng.standard_cauchy(size=800) ** 3,
    "counts": lambda rng: rng.poisson(3.0, size=700).astype(float),
    "mostly zero": lambda rng: np.where(rng.random(700) < 0.1, rng.normal(size=700), 0.0),
    "few gaps that are wide": lambda rng: np.repeat(np.arange(7.0) ** 3, 100),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_the_median_gap_is_found_without_all_pairs_to_the_last_bit(name):
    x = NUMBERS[name](np.random.default_rng(0))
    gaps = pdist(x[:, None], "cityblock")
    expected = np.median(gaps) or np.median(gaps[gaps > 0])
    for order in (x, np.sort(x)[::-1]):
        assert median_heuristic(order) == expected


@pytest.mark.parametrize("n", [449, 450, 1000, 1001])
def test_the_median_of_many_distances_is_that_of_numpy(n):
    distances = pdist(np.random.default_rng(n).normal(size=(n, 2)))
    assert median(distances) == np.median(distances)
    assert median(np.sort(distances)) == np.median(distances)
    assert median(np.repeat([0.0, 1.0], len(distances))) == 0.5
