"""Products and squares on which columns depend: which are found, and what is drawn where a cell of one is missing."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import meanmap as mm
from meanmap.bp.conditionals.inverse import given_response
from meanmap.bp.conditionals.joint_normal import laws_of, products_of
from meanmap.bp.conditionals.products import Products

ALONE = [range(j, j + 1) for j in range(3)]


def interacting(n, seed, gaps=0.0):
    """y = 1 + a/2 + b/2 + ab/2 + noise, with a share of the cells missing."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n))
    rows = np.stack([a, b, 1 + 0.5 * a + 0.5 * b + 0.5 * a * b + noise], axis=1)
    return np.where(rng.random(rows.shape) < gaps, np.nan, rows)


def test_scores_of_products_are_those_of_regressions_without_the_response():
    """What is left of a column times what is left of a product, with variances that allow noise of any size."""
    rows = interacting(60, 0)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    left = np.random.default_rng(1).normal(size=rows.shape)
    left[:, 2] += rows[:, 0] * rows[:, 1]
    left[:, 0] += 0.3 * rows[:, 2] ** 2
    found = Products.chosen(rows, rows, left, ALONE)
    scores = {}
    for response in range(3):
        others = [j for j in range(3) if j != response]
        plain = np.column_stack([np.ones(60), rows[:, others]])
        for k, other in [(others[0], others[0]), (others[0], others[1]), (others[1], others[1])]:
            product = rows[:, k] * rows[:, other]
            product = product - plain @ np.linalg.lstsq(plain, product)[0]
            each = left[:, response] * product
            scores[k, other, response] = abs(each.sum()) / np.sqrt(np.sum(each**2))
    best = {}
    for (k, other, _), score in scores.items():
        best[k, other] = max(best.get((k, other), 0), score)
    wanted = [pair for pair, score in sorted(best.items(), key=lambda each: -each[1]) if score > 2]
    assert [tuple(pair) for pair in found.pairs.tolist()] == wanted[:2]  # of 60 rows two at most
    strongest = max(scores, key=lambda key: scores[key])
    assert strongest == (0, 1, 2)
    assert found.responses[0] == found.responses[1] == 2


def chosen(rows):
    return products_of(rows, laws_of(rows), ALONE)


def test_one_product_is_chosen_by_chance_on_average():
    """Of 18 scores one is beyond its bound; the number has variance one at most, were they independent."""
    rng = np.random.default_rng(0)
    numbers = [len(chosen(rng.normal(size=(200, 3)) @ np.triu(np.ones((3, 3)))).pairs) for _ in range(60)]
    assert np.mean(numbers) < 1 + 3 * np.sqrt(2 / 60)


def test_a_square_of_two_values_and_products_of_one_label_are_none():
    rows = np.random.default_rng(0).integers(0, 2, size=(300, 3)).astype(float)
    found = products_of(rows, laws_of(rows), [range(1), range(1, 3)])
    assert all(k == 0 and other > 0 for k, other in found.pairs)
    assert not found.responses


def test_products_are_of_what_is_there_and_do_not_grow_beyond_what_was_learned():
    products = Products(np.array([[0, 1], [1, 1]]), np.array([-1.0, -2.0]), np.array([1.0, 2.0]), {})
    wide = products.beside(np.array([[0.5, 3.0], [np.nan, 1.0]]))
    np.testing.assert_array_equal(wide, [[0.5, 3.0, 1.0, 4.0], [np.nan, 1.0, np.nan, 1.0]])


def test_a_factor_given_its_response_is_as_by_bayes_rule():
    """a given b and y where y = 1 + a/2 + b/2 + ab/2 + noise, from 20,000 rows."""
    rows = interacting(20_000, 0)
    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    rows = (rows - centre) / scale
    laws = laws_of(rows, products=chosen(rows))
    at = np.linspace(-5, 5, 201)
    asked = np.array([[0.0, 2.0, 4.0], [0.0, -2.0, 0.0], [0.0, 0.0, np.nan]])
    found = given_response(laws[0], (asked - centre) / scale, 0, (at - centre[0]) / scale[0])
    a = (at[1:] + at[:-1]) / 2
    for belief, (_, b, y) in zip(found, asked, strict=True):
        law = norm.pdf(a) * (1 if np.isnan(y) else norm.pdf(y, 1 + 0.5 * a + 0.5 * b + 0.5 * a * b, 1))
        np.testing.assert_allclose(belief[1:], np.cumsum(law / law.sum()), atol=0.03)
    assert given_response(laws_of(rows)[0], rows[:5], 0, at) is None


def test_a_network_knows_an_effect_that_depends_on_another_column():
    """The difference of differences of y over a and b at ±1, which is 2."""
    model = mm.bp.DependencyNetwork().fit(interacting(500, 0))
    corners = {"0": [1.0, 1.0, -1.0, -1.0], "1": [1.0, -1.0, 1.0, -1.0]}
    means = model.predict(corners, ["2"])["2"].mean()
    # Least squares with the product has 4 times a standard error of 1 / sqrt(500).
    assert means @ [1, -1, -1, 1] == pytest.approx(2, abs=2 * 4 / np.sqrt(500))


@pytest.mark.slow
@pytest.mark.parametrize("missing", [["y"], ["a"], ["a", "b", "y"]])
@pytest.mark.parametrize("square", [False, True])
def test_pooled_coefficients_of_products_are_right_on_average(missing, square):
    """Thirty data sets with 300 rows and 20% gaps: within three standard errors of their mean, and a twentieth."""
    found = []
    for seed in range(30):
        rng = np.random.default_rng(9_000_000 + seed)
        a, b, noise = rng.normal(size=(3, 300))
        other = a if square else b
        table = pd.DataFrame({"a": a, "b": b, "y": 1 + a + 0.5 * other * a + noise})
        table = table.assign(**{name: table[name].mask(rng.random(300) < 0.2) for name in missing})

        def coefficient(whole, name="a" if square else "b"):
            design = np.column_stack([np.ones(300), whole["a"], whole["b"], whole["a"] * whole[name]])
            return np.linalg.lstsq(design, whole["y"])[0][-1], 0.0

        tables = mm.bp.DependencyNetwork().fit(table).impute(table, draws=5, rng=seed)
        found.append(float(mm.bp.pooled(coefficient, tables).estimate))
    assert np.mean(found) == pytest.approx(0.5, abs=3 * np.std(found) / np.sqrt(30) + 0.025)
