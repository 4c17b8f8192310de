"""The joint Gaussian of effects, against dense algebra."""

import numpy as np
import pytest

from meanmap.core.errors import ParameterError
from meanmap.ep.linear import crossed, nested
from meanmap.ep.linear.block import Block
from meanmap.ep.linear.crossed import Crossed
from meanmap.ep.linear.elimination import joint_of
from meanmap.ep.linear.predictor import Predictor, Prior


def spread(rng, width):
    root = rng.normal(size=(width, width + 2))
    return root @ root.T / width + 0.1 * np.eye(width)


def model(which, rows=60):
    """Blocks of each shape that the factorisation treats by itself."""
    rng = np.random.default_rng(5)
    shapes = {
        "fixed": [(1, 4)],
        "groups": [(7, 1)],
        "intercepts": [(1, 3), (9, 1)],
        "slopes": [(1, 2), (8, 3)],
        "crossed": [(1, 2), (5, 2), (12, 1)],
        "three": [(6, 1), (1, 3), (11, 2), (4, 2)],
        "sparse": [(1, 2), (50, 1), (60, 1)],
        "sparse slopes": [(1, 2), (50, 1), (40, 2)],
        "nested": [(1, 3), (4, 1), (25, 1), (9, 1)],
        "nested slopes": [(9, 2), (1, 2), (4, 3), (30, 1), (1, 1)],
        "nested alone": [(12, 1), (4, 2)],
    }[which]
    blocks, means, covariances, inner = [], [], [], rng.integers(0, 30, rows)
    for size, width in shapes:
        index = rng.integers(0, size, rows)
        if which.startswith("nested"):
            index = inner
            for modulus in (30, 25, 12, 9, 4, 1):
                index = index % modulus if modulus >= size else index
        blocks.append(Block(index, rng.normal(size=(rows, width)), size))
        means.append(rng.normal(size=width))
        covariances.append(spread(rng, width))
    return rng, Predictor(tuple(blocks)), Prior(tuple(means), tuple(covariances))


def dense(predictor, prior, weights, shifts):
    """The same Gaussian as one dense matrix."""
    A = np.zeros((predictor.rows, predictor.total))
    Q, m, start = np.zeros((predictor.total, predictor.total)), np.zeros(predictor.total), 0
    for block, mean, covariance in zip(predictor.blocks, prior.means, prior.covariances, strict=True):
        for i in range(predictor.rows):
            at = start + block.index[i] * block.width
            A[i, at : at + block.width] = block.design[i]
        for group in range(block.size):
            at = slice(start + group * block.width, start + (group + 1) * block.width)
            Q[at, at], m[at] = np.linalg.inv(covariance), mean
        start += block.total
    P = Q + A.T @ np.diag(weights) @ A
    h = Q @ m + A.T @ shifts
    return A, P, h, Q, m


CROSSED = ["crossed", "three", "sparse", "sparse slopes"]
CASES = ["fixed", "groups", "intercepts", "slopes", "crossed", "three", "sparse", "sparse slopes"]
NESTED = ["nested", "nested slopes", "nested alone"]


@pytest.mark.parametrize("which", CASES + NESTED)
def test_mean_variances_and_normaliser_are_those_of_dense_algebra(which):
    rng, predictor, prior = model(which)
    weights, shifts = rng.gamma(1.0, size=predictor.rows), rng.normal(size=predictor.rows)
    assert (predictor.meetings is not None) == which.startswith("sparse")
    assert (predictor.nesting is not None) == (which not in ["fixed", *CROSSED])
    found = joint_of(predictor, prior, weights, shifts)
    A, P, h, Q, m = dense(predictor, prior, weights, shifts)
    covariance = np.linalg.inv(P)
    np.testing.assert_allclose(found.mean, covariance @ h, atol=1e-8)
    np.testing.assert_allclose(found.variances(), np.einsum("ni,ij,nj->n", A, covariance, A), atol=1e-8)
    normaliser = (h @ covariance @ h - np.linalg.slogdet(P)[1]) / 2
    np.testing.assert_allclose(found.log_normaliser, normaliser, atol=1e-8)
    sizes = tuple(block.size for block in predictor.blocks)
    np.testing.assert_allclose(prior.log_normaliser(sizes), (m @ Q @ m - np.linalg.slogdet(Q)[1]) / 2, atol=1e-8)
    np.testing.assert_allclose(predictor.at(found.mean), A @ found.mean, atol=1e-8)
    for at, (block, effects) in enumerate(zip(predictor.blocks, predictor.split(found.mean), strict=True)):
        start = sum(b.total for b in predictor.blocks[:at])
        second = covariance + np.outer(found.mean, found.mean)
        each = [slice(start + g * block.width, start + (g + 1) * block.width) for g in range(block.size)]
        np.testing.assert_allclose(found.second_moment(at), sum(second[s, s] for s in each), atol=1e-8)
        np.testing.assert_allclose(found.within(at), [covariance[s, s] for s in each], atol=1e-8)
        assert effects.shape == (block.size, block.width)
    combinations = rng.normal(size=(5, predictor.total))
    np.testing.assert_allclose(found.solve(combinations), combinations @ covariance, atol=1e-8)
    if not isinstance(found, Crossed):
        return
    starts = np.cumsum([0, *(block.total for block in predictor.blocks)])
    for (one, other), block in found.covariances.items():
        part = covariance[starts[one] : starts[one + 1], starts[other] : starts[other + 1]]
        if one == other == found.order[0]:
            size, width = block.shape[:2]
            np.testing.assert_allclose(
                block, [part[g * width : (g + 1) * width, g * width : (g + 1) * width] for g in range(size)], atol=1e-8
            )
        else:
            np.testing.assert_allclose(block.reshape(part.shape), part, atol=1e-8)


@pytest.mark.parametrize("which", ["slopes", "three", "sparse slopes", *NESTED])
def test_other_rows_of_the_same_effects(which, monkeypatch):
    """In pieces, too."""
    rng, predictor, prior = model(which)
    weights = rng.gamma(1.0, size=predictor.rows)
    found = joint_of(predictor, prior, weights, weights)
    monkeypatch.setattr(crossed, "_PIECE", 7)
    monkeypatch.setattr(nested, "_PIECE", 200)
    blocks = tuple(Block(rng.integers(0, b.size, 20), rng.normal(size=(20, b.width)), b.size) for b in predictor.blocks)
    for block in blocks:  # of groups that are new
        block.design[rng.random(20) < 0.4] = 0
    asked = Predictor(blocks)
    A = dense(asked, prior, np.ones(20), np.ones(20))[0]
    covariance = np.linalg.inv(dense(predictor, prior, weights, weights)[1])
    np.testing.assert_allclose(found.variances(asked), np.einsum("ni,ij,nj->n", A, covariance, A), atol=1e-8)


@pytest.mark.parametrize("which", ["fixed", "crossed", "sparse", *NESTED])
def test_draws_have_the_moments(which):
    rng, predictor, prior = model(which)
    weights = rng.gamma(1.0, size=predictor.rows)
    found = joint_of(predictor, prior, weights, weights)
    draws = found.draws(20_000, rng)
    covariance = np.linalg.inv(dense(predictor, prior, weights, weights)[1])
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - found.mean).T)
    # Six standard errors of a mean and of a covariance.
    assert np.abs(white.mean(1)).max() < 6 / np.sqrt(20_000)
    assert np.abs(white @ white.T / 20_000 - np.eye(len(white))).max() < 6 * np.sqrt(2 / 20_000)


@pytest.mark.parametrize("which", ["crossed", "nested"])
def test_draws_of_the_first_block_are_given_those_of_the_others(which):
    """Means are those of the joint law: of all effects at once the conditional mean of one block."""
    rng, predictor, prior = model(which)
    weights = rng.gamma(1.0, size=predictor.rows)
    found = joint_of(predictor, prior, weights, weights)
    P = dense(predictor, prior, weights, weights)[1]
    rest = rng.normal(size=(found.rest, 3))
    starts = np.cumsum([0, *(block.total for block in predictor.blocks)])
    places = [np.arange(starts[at], starts[at + 1]) for at in found.order]
    first, others = places[0], np.concatenate(places[1:])
    exact = -np.linalg.solve(P[np.ix_(first, first)], P[np.ix_(first, others)] @ rest)
    np.testing.assert_allclose(found.first_given(rest), exact, atol=1e-8)
    noise = rng.normal(size=exact.shape)
    root = np.linalg.cholesky(P[np.ix_(first, first)])
    np.testing.assert_allclose(found.first_given(rest, noise), exact + np.linalg.solve(root.T, noise), atol=1e-8)


def test_factors_that_cross_in_one_row_are_not_nested():
    index = np.repeat(np.arange(6), 2)
    inner, outer = Block(index, np.ones((12, 1)), 6), Block(index // 3, np.ones((12, 1)), 2)
    assert Predictor((outer, inner)).nesting is not None
    outer.index[3] = 1
    assert Predictor((outer, inner)).nesting is None


@pytest.mark.parametrize("which", ["crossed", "nested"])
def test_sites_that_are_too_negative_have_no_joint(which):
    _, predictor, prior = model(which)
    with pytest.raises(np.linalg.LinAlgError):
        joint_of(predictor, prior, np.full(predictor.rows, -100.0), np.zeros(predictor.rows))


def test_two_factors_that_are_too_large_for_dense_matrices_are_refused(monkeypatch):
    _, predictor, prior = model("crossed")
    monkeypatch.setattr(crossed, "_MOST", 100)
    with pytest.raises(ParameterError, match="the largest factor has 12 effects and the others have 12"):
        joint_of(predictor, prior, np.ones(predictor.rows), np.ones(predictor.rows))
