"""Choosing for an edge: losses against refitting, the rule among equals, and leaving it where data say so."""

import numpy as np
import pytest

from meanmap.bp.edges.learning import MESSAGES, left_out_errors
from meanmap.learning import density_ratio
from meanmap.learning.density_ratio import LEAST, LeftOut, held_out_surprises
from meanmap.learning.fit import Choice


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 4))
    return phi, phi[:, :3] + 0.5 * rng.normal(size=(40, 3))


def test_left_out_errors_are_those_of_refitting(features):
    phi, targets = features
    ridges = np.array([1e-3, 0.1])
    found = left_out_errors(phi, targets, ridges)
    for i, ridge in enumerate(ridges):
        for row in range(40):
            kept = np.arange(40) != row
            # The ridge of the sum, so that leaving out a row does not change it.
            gram = phi[kept].T @ phi[kept] + 40 * ridge * np.eye(4)
            predicted = phi[row] @ np.linalg.solve(gram, phi[kept].T @ targets[kept])
            np.testing.assert_allclose(found[i, row], np.sum((targets[row] - predicted) ** 2), rtol=1e-8)


def test_held_out_surprises_are_those_of_the_operator(features):
    phi, psi = features
    phi, psi = np.exp(phi / 3), np.exp(psi / 3)
    found = held_out_surprises(LeftOut(phi), LeftOut(psi), np.array([0.01]), np.array([0.02]))[0]
    folds = np.arange(40) % 10
    for row in (0, 17, 39):
        kept = folds != folds[row]
        c_x, c_y = (f[kept].T @ f[kept] / kept.sum() for f in (phi, psi))
        weights = phi[row] @ np.linalg.inv(c_x + 0.01 * np.eye(4)) @ (phi[kept].T @ psi[kept] / kept.sum())
        weights = weights @ np.linalg.inv(c_y + 0.02 * np.eye(3))
        there = weights @ psi[kept].T
        here = max(weights @ psi[row] / there.max(), LEAST)
        np.testing.assert_allclose(found[row], np.log(np.maximum(there / there.max(), LEAST).mean() / here), rtol=1e-8)


def test_folds_are_judged_at_once_and_one_by_one_alike(monkeypatch):
    """Also where folds are of unequal sizes, and where not all places are looked at."""
    rng = np.random.default_rng(3)
    phi = np.exp(rng.normal(size=(43, 5)) / 3)
    psi = phi[:, :4] + 0.3 * rng.random((43, 4))
    ridges = np.array([1e-3, 0.1])
    for places in (500, 20):
        monkeypatch.setattr(density_ratio, "CHOICE_PLACES", places)
        together = held_out_surprises(LeftOut(phi), LeftOut(psi), ridges, 2 * ridges)
        with monkeypatch.context() as few:
            few.setattr(density_ratio, "AT_ONCE", 1)
            few.setattr(density_ratio, "FEW_NUMBERS", 1)
            alone = held_out_surprises(LeftOut(phi), LeftOut(psi), ridges, 2 * ridges)
        np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_among_equals_the_start_is_chosen_and_better_ones_move_it():
    choice = Choice((0.5, 1.0, 2.0), np.array([0.1, 1.0, 10.0]), (1.0, 0.1)).on(100, None)
    np.testing.assert_allclose(choice.ridges, [0.001, 0.01, 0.1])
    rng = np.random.default_rng(1)
    noise = rng.normal(size=100)
    losses = {m: noise + 0.1 * rng.normal(size=(3, 100)) for m in choice.lengthscales}
    assert choice.best(losses) == (1.0, 1)
    losses[2.0][2] = noise - 1.0
    assert choice.best(losses) == (2.0, 2)


def test_without_a_start_the_least_error_is_chosen():
    errors = {1.0: [3.0, 2.0], 2.0: [2.5, 1.0], 4.0: [1.0, 4.0]}
    choice = Choice(tuple(errors), np.array([0.1, 1.0]))
    assert choice.fit(lambda m: errors[m], np.array) == (2.0, 1, [2.5, 1.0])
    assert choice.kept(False).fit(lambda m: errors[m], np.array) == (1.0, 1, [3.0, 2.0])


def test_what_is_given_is_kept():
    choice = MESSAGES.kept(False).on(100, 0.3)
    assert (choice.lengthscales, choice.ridges.tolist()) == ((1.0,), [0.3])

    def refuse(features):
        raise AssertionError("there is nothing to choose")

    assert choice.fit(lambda m: 10 * m, refuse) == (1.0, 0, 10.0)


@pytest.mark.parametrize(("best", "tried"), [(1.0, [0.5, 1.0, 2.0]), (0.3, [0.5, 1.0, 2.0, 0.25, 0.125])])
def test_narrower_lengthscales_are_tried_while_the_narrowest_is_chosen(best, tried):
    asked = []

    def losses(multiple):
        asked.append(multiple)
        return (np.full(10, abs(np.log(multiple / best))) + np.arange(10) / 1e6)[None]

    choice = Choice((0.5, 1.0, 2.0), np.array([0.1]), (1.0, 0.1), narrower=True).on(100, None)
    assert choice.fit(lambda m: m, losses)[0] == min(tried, key=lambda m: abs(np.log(m / best)))
    assert asked == tried
