"""What was made from a table finds the columns of later tables by name, and refuses what has other ones."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core import ColumnError, KindError, NonFiniteError, ShapeError
from meanmap.features import Fourier, Nystrom, PivotedCholesky

RNG = np.random.default_rng(3)
PEOPLE = pd.DataFrame({"height": RNG.normal(170, 10, 30), "weight": RNG.normal(75, 8, 30)})
TURNED = PEOPLE[["weight", "height"]]
# Each column has a lengthscale of its own, so that another order of columns is another function.
KERNEL = mm.kernels.RBF([5.0, 20.0])
ANGLES = PEOPLE["height"].to_numpy() / 30
POINTS = PEOPLE[:4].to_numpy()

ELEMENTS = {
    "embed": lambda x: mm.embed(x, KERNEL),
    "embed, shrunk": lambda x: mm.embed(x, KERNEL, "shrinkage", ridge=0.1),
    "embed in features": lambda x: mm.embed(x, Fourier.draw(KERNEL, 2, 40, rng=0)),
    "a difference": lambda x: mm.embed(x[:15], KERNEL) - mm.embed(x[15:], KERNEL),
    "a combination": lambda x: mm.embed(x, KERNEL) - mm.embed(mm.families.MultivariateNormal.standard(2), KERNEL),
    "a multiple": lambda x: 2 * mm.embed(x, KERNEL),
    "the witness of a test": lambda x: mm.two_sample_test(x[:15], x[15:], KERNEL, n_permutations=19, rng=0).witness,
    "the mean of a posterior": lambda x: mm.embeddings.posterior_embedding(x, KERNEL).mean,
    "the doubt of a posterior": lambda x: mm.embeddings.posterior_embedding(x, KERNEL).sd,
    "the covariance of a posterior": lambda x: mm.embeddings.posterior_embedding(x, KERNEL).cov,
    "a witness with its doubt": lambda x: mm.embeddings.posterior_witness(x[:15], x[15:], KERNEL).mean,
    "a belief": lambda x: mm.condition(ANGLES, x, kernel_y=KERNEL, ridge=0.1)([5.0]),
    "a belief in features": lambda x: mm.condition(
        ANGLES, x, kernel_x=Fourier.draw(mm.kernels.RBF(1.0), 1, 20, rng=0), kernel_y=Fourier.draw(KERNEL, 2, 20, rng=0)
    )([5.0]),
    "the density of a belief": lambda x: mm.condition(ANGLES, x, kernel_y=KERNEL, ridge=0.1)([5.0]).density,
    "a likelihood": lambda x: mm.embeddings.likelihood(ANGLES, x, kernel_y=KERNEL, ridge=0.1)([5.0]),
    "a likelihood operator": lambda x: lambda new: mm.embeddings.likelihood(x, ANGLES, ridge=0.1)(new)([5.0]),
    "a covariance operator": lambda x: (
        lambda new: mm.embeddings.cross_covariance(ANGLES, x, mm.kernels.RBF(1.0), KERNEL)(new)([5.0])
    ),
    "the sum rule": lambda x: mm.embeddings.sum_rule(
        mm.condition(ANGLES, x, kernel_x=mm.kernels.RBF(1.0), kernel_y=KERNEL, ridge=0.1),
        mm.embed(ANGLES, mm.kernels.RBF(1.0)),
    ),
    "Fourier features": lambda x: Fourier.draw(KERNEL, x, 20, rng=0),
    "features of a sum": lambda x: Fourier.draw(KERNEL + mm.kernels.RBF(9.0), x, 20, rng=0),
    "low-rank features": lambda x: PivotedCholesky.fit(KERNEL, x, 0.1),
    "Nystrom features": lambda x: Nystrom.fit(KERNEL, x, 8, rng=0),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_columns_are_found_by_name(name):
    function = ELEMENTS[name](PEOPLE)
    expected = ELEMENTS[name](PEOPLE.to_numpy())(POINTS)
    np.testing.assert_allclose(function(PEOPLE[:4]), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(function(TURNED[:4].assign(shoes=41)), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ColumnError, match="has no column 'weight'"):
        function(PEOPLE[["height"]][:4])
    if "density" in name:  # its arrays have the columns in the order of those that read-outs give
        np.testing.assert_allclose(function(POINTS), expected)
    else:
        with pytest.raises(ColumnError, match=r"is an array, whose columns have no names|has no column 'height'"):
            function(POINTS)


OF_ARRAYS = [name for name in ELEMENTS if "eatures" not in name]
# Made from one column of labels, truth values or times.
SINGLE = {
    "labels": (np.array(["u", "v", "w"] * 5), np.array([1.0])),
    "truth values": (np.arange(15) % 2 > 0, np.array([0.5])),
    "times": (np.datetime64("2026-01-01") + np.arange(15), np.array([1.0])),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_what_was_made_from_an_array_refuses_other_columns(name):
    function = ELEMENTS[name](PEOPLE.to_numpy())
    with pytest.raises(ColumnError, match=r"has columns with names \('height', 'weight'\); expected 2 columns without"):
        function(PEOPLE[:4])
    with pytest.raises(ShapeError, match="column"):
        function(POINTS[:, :1])
    if "density" not in name:
        for other in (POINTS > 100, POINTS.astype("M8[s]")):
            with pytest.raises(KindError, match=r"holds (truth values|times|labels), such as .*; expected .*number"):
                function(other)


@pytest.mark.parametrize("held", SINGLE)
def test_what_was_made_from_an_array_of_labels_refuses_numbers(held, tmp_path):
    points, other = SINGLE[held]
    element = mm.embed(points)
    assert str(element.schema) == f"15 rows, 1 column of {held}"
    for made in (element, mm.load(mm.save(element, tmp_path / "made.meanmap"))):
        np.testing.assert_allclose(made(points[:2]), element(points[:2]))
        with pytest.raises(KindError, match=f"x holds numbers, such as .*; expected {held}, as before"):
            made(other)


def test_saved_elements_still_find_them(tmp_path):
    for made in (
        mm.embed(PEOPLE, KERNEL),
        PivotedCholesky.fit(KERNEL, PEOPLE, 0.1),
        mm.embeddings.posterior_embedding(PEOPLE, KERNEL),
    ):
        ask = made.mean if isinstance(made, mm.embeddings.PosteriorEmbedding) else made
        loaded = mm.load(mm.save(made, tmp_path / "made.meanmap"))
        again = loaded.mean if isinstance(loaded, mm.embeddings.PosteriorEmbedding) else loaded
        np.testing.assert_array_equal(again(TURNED[:4]), ask(PEOPLE[:4]))


def test_elements_of_other_columns_are_not_compared():
    """Under one kernel with one lengthscale nothing else would tell them apart."""
    kernel = mm.kernels.RBF(10.0)
    first, second = mm.embed(PEOPLE, kernel), mm.embed(TURNED, kernel)
    both = r"the {} needs .* one has the columns 'height', 'weight' and the other 'weight', 'height'"
    with pytest.raises(ColumnError, match=both.format("inner product")):
        first.inner(second)
    with pytest.raises(ColumnError, match=both.format("difference")):
        first - second
    operator = mm.condition(PEOPLE, ANGLES, kernel_x=kernel, ridge=0.1)
    with pytest.raises(ColumnError, match="applying an operator"):
        operator.apply(second)
    assert first.inner(mm.embed(PEOPLE[::-1], kernel)) == pytest.approx(first.squared_norm())


def test_features_read_a_table_in_their_own_order():
    phi = PivotedCholesky.fit(KERNEL, PEOPLE, 0.1)
    np.testing.assert_allclose(mm.embed(TURNED, phi)(TURNED[:4]), mm.embed(PEOPLE, phi)(PEOPLE[:4]))
    with pytest.raises(ColumnError, match="x has no column 'height'"):
        mm.embed(POINTS, phi)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: Fourier.draw(KERNEL, x, 20, rng=0),
        lambda x: PivotedCholesky.fit(KERNEL, x, 0.1),
        lambda x: Nystrom.fit(KERNEL, x, 10, rng=0),
    ],
)
def test_features_of_an_array_refuse_columns_with_names(make):
    phi = make(PEOPLE.to_numpy())
    assert phi(POINTS).shape[0] == len(POINTS)
    with pytest.raises(
        ColumnError, match=r"x has columns with names \('weight', 'height'\); expected 2 columns without"
    ):
        phi(TURNED)


def test_a_posterior_is_observed_at_named_columns():
    posterior = mm.embeddings.posterior_embedding(PEOPLE, KERNEL, landmarks=TURNED[:9])
    np.testing.assert_allclose(posterior.landmarks, PEOPLE[:9].to_numpy())


@pytest.mark.parametrize("make", [mm.embed, mm.embeddings.posterior_embedding])
def test_kinds_and_missing_values_are_seen_to(make):
    homes = PEOPLE.assign(zip=np.repeat([10115, 80331, 10999], 10))
    prior = (
        {}
        if make is mm.embed
        else {"prior": mm.default_kernel(mm.Schema.of(homes, kinds={"zip": "label"}).read(homes))}
    )
    kernel = mm.default_kernel(mm.Schema.of(homes, kinds={"zip": "label"}).read(homes))
    element = make(homes, kernel, kinds={"zip": "label"}, **prior)
    ask = element if make is mm.embed else element.mean
    assert element.schema["zip"].kind == "label"
    text = homes.assign(zip=homes["zip"].astype(str))
    np.testing.assert_allclose(ask(homes[:3]), ask(text[:3]))
    holes = PEOPLE.assign(weight=PEOPLE["weight"].where(np.arange(30) > 4))
    with pytest.raises(NonFiniteError):
        make(holes, KERNEL)
    with pytest.warns(UserWarning, match=r"5 of 30 rows of x were left out: a value is missing in 'weight' \(5\)"):
        whole = make(holes, KERNEL, missing="drop")
    ask, other = (each if make is mm.embed else each.mean for each in (whole, make(PEOPLE[5:], KERNEL)))
    np.testing.assert_allclose(ask(PEOPLE[:3]), other(PEOPLE[:3]))


def test_weights_belong_to_the_rows_that_came():
    holes = PEOPLE.assign(weight=PEOPLE["weight"].where(np.arange(30) > 4))
    with pytest.raises(ShapeError, match="weights has shape"), pytest.warns(UserWarning, match="left out"):
        mm.embed(holes, KERNEL, weights=np.ones(30), missing="drop")


def test_a_later_table_of_another_kind_is_refused():
    with pytest.raises(KindError, match=r"x\['weight'\] holds labels, such as 'heavy'; expected a number column"):
        mm.embed(PEOPLE, KERNEL)(PEOPLE[:2].assign(weight=["heavy", "light"]))
