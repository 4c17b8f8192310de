"""Read-outs of conditional embeddings, whose weights may be negative, describe one distribution."""

import numpy as np
import pytest
import scipy.optimize

import meanmap as mm
from meanmap.core.errors import KindError
from meanmap.embeddings.signed_weights import law


def line(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, 2 * x + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize("n", [100, 300, 2000])
def test_sample_variance_and_quantiles_agree_and_are_near_the_truth(n):
    at = np.array([0.0, 1.0])
    for seed in range(4):
        belief = mm.condition(*line(n, seed))(at)
        drawn = np.asarray(belief.sample(20_000, rng=0))
        sd = np.sqrt(belief.var())
        np.testing.assert_allclose(drawn.std(axis=-1), sd, rtol=0.03)
        np.testing.assert_allclose(drawn.mean(axis=-1), belief.mean(), atol=0.25 if n < 1000 else 0.1)
        np.testing.assert_allclose(np.median(drawn, axis=-1), belief.quantile(0.5), atol=0.05)
        assert ((sd > 0.35) & (sd < 1.0 if n < 1000 else sd < 0.65)).all(), sd
        grid = np.linspace(-8, 8, 2001)
        density = np.asarray(belief.density(grid))
        mean = density @ grid * (grid[1] - grid[0])
        np.testing.assert_allclose(mean, belief.mean(), atol=0.25 if n < 1000 else 0.1)


def test_one_query_and_several_say_the_same():
    belief = mm.condition(*line(300, 0))(np.linspace(-1, 1, 5))
    for name in ("var", "cov"):
        np.testing.assert_allclose(getattr(belief[2], name)(), getattr(belief, name)()[2], rtol=1e-9)


def test_variances_of_many_queries_are_read_in_parts(monkeypatch):
    belief = mm.condition(*line(300, 0))(np.linspace(-1, 1, 50))
    whole = belief.var()
    monkeypatch.setattr("meanmap.embeddings.readouts.WEIGHTS_AT_ONCE", 2000)
    np.testing.assert_allclose(belief.var(), whole, rtol=1e-9)


def test_covariances_of_two_columns_are_positive_and_near_the_truth():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1500)
    noise = rng.normal(size=(1500, 2)) @ np.array([[0.5, 0.3], [0.0, 0.4]])
    belief = mm.condition(x, np.column_stack([2 * x, np.sin(x)]) + noise)([0.0, 0.5])
    cov = belief.cov()
    np.testing.assert_allclose(np.diagonal(cov, axis1=1, axis2=2), belief.var(), rtol=1e-9)
    assert (np.linalg.eigvalsh(cov) > 0).all()
    correlation = cov[:, 0, 1] / np.sqrt(cov[:, 0, 0] * cov[:, 1, 1])
    np.testing.assert_allclose(correlation, 0.6, atol=0.15)
    drawn = np.asarray(belief.sample(5000, rng=0))
    np.testing.assert_allclose(drawn.mean(axis=1), belief.mean(), atol=0.15)


def test_the_projection_is_the_nearest_point_of_the_simplex():
    weights = np.array([0.6, -0.2, 0.5, 0.15, -0.05])
    found = law(np.zeros((5, 2)), weights)
    best = scipy.optimize.minimize(
        lambda w: np.sum((w - weights) ** 2),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(found, best.x, atol=1e-6)
    known = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(law(np.zeros((4, 2)), known), known, atol=1e-15)
    np.testing.assert_allclose(law(np.array([[3.0], [1.0], [2.0], [0.0]]), known), known, atol=1e-15)


def test_labels_are_not_drawn_as_codes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = np.where(x + rng.normal(size=400) > 0, "yes", "no")
    belief = mm.condition(x, y)([-1.0, 1.0])
    for read in (lambda: belief.sample(5, rng=0), lambda: belief.herd(3), lambda: belief.mode()):
        with pytest.raises(KindError, match="expect\\(y == 'a'\\) is the probability of 'a'"):
            read()
    np.testing.assert_allclose(belief.expect(y == "yes"), [0.16, 0.84], atol=0.1)
