"""Learned edges against the dense formulas, and what is chosen."""

import numpy as np
import pytest

import meanmap as mm
from meanmap import kernels
from meanmap.bp.edges.coordinates import CoordinatesByScale
from meanmap.bp.edges.learning import learn_likelihood, learn_message
from meanmap.bp.edges.samples import read_samples
from meanmap.core.door import Door
from meanmap.embeddings import likelihood
from meanmap.graphs import Graph
from meanmap.learning import density_ratio


@pytest.fixture(autouse=True)
def _double():
    with Door():
        yield


def books(x, y, given=True):
    chosen = {"s": kernels.RBF(0.8), "t": kernels.RBF(1.2)} if given else {}
    with Door() as door:
        samples = read_samples(Graph.of([("s", "t")]), {"s": x, "t": y}, chosen, door)
    return CoordinatesByScale(samples.nodes[0]), CoordinatesByScale(samples.nodes[1]), samples.pairs[0]


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    s = rng.normal(size=80)
    return s, np.sin(2 * s) + 0.3 * rng.normal(size=80)


def test_a_message_is_a_ridge_regression_of_the_product_on_the_receiver(pair):
    s, t = pair
    first, second, rows = books(s, t)
    edge = learn_message(second, first, rows[:, ::-1], ridge=0.01)
    product = np.exp(-((t - 0.5) ** 2))
    gram = kernels.RBF(0.8)(s)
    expected = gram @ np.linalg.solve(gram + 80 * 0.01 * np.eye(80), product)
    np.testing.assert_allclose(product @ edge.into @ edge.out, expected, rtol=1e-5)


def test_far_messages_are_regressed_again_with_the_chosen_ridge_and_not_with_a_given_one(pair):
    s, t = pair
    first, second, rows = books(s, t)
    near, far = (learn_message(second, first, rows[:, ::-1], None, far) for far in (False, True))
    product = np.exp(-((t - 0.5) ** 2))
    phi = near.receiver.values
    smooth = phi @ np.linalg.solve(phi.T @ phi + 80 * near.ridge * np.eye(phi.shape[1]), phi.T)
    found, left = 0.0, product
    for _ in range(3):
        found, left = found + smooth @ left, left - smooth @ left
    np.testing.assert_allclose(product @ far.into @ far.out, found, rtol=1e-5)
    given = [learn_message(second, first, rows[:, ::-1], 0.01, far) for far in (False, True)]
    np.testing.assert_array_equal(given[0].into, given[1].into)


def test_an_observation_sends_the_likelihood_operators_function(pair):
    s, t = pair
    first, second, rows = books(s, t)
    edge = learn_likelihood(second, first, rows[:, ::-1], ridge=0.01)
    seen = np.array([[0.3], [-0.8]])
    operator = likelihood(t, s, kernel_x=kernels.RBF(1.2), kernel_y=kernels.RBF(0.8), ridge=0.01)
    np.testing.assert_allclose(edge.observed.at(seen) @ edge.matrix, operator(seen[:, 0])(s), rtol=1e-4, atol=1e-5)


def test_the_order_of_the_two_inverses_is_that_of_the_errata(pair):
    s, t = pair
    first, second, rows = books(s, t)
    edge = learn_likelihood(second, first, rows[:, ::-1], ridge=0.01)
    k_s, k_t, shift = kernels.RBF(0.8)(s), kernels.RBF(1.2)(t), 80 * 0.01 * np.eye(80)
    at = kernels.RBF(1.2)(t, [0.3])[:, 0]
    right = 80 * k_s @ np.linalg.solve(k_s + shift, np.linalg.solve(k_t + shift, at))
    other = 80 * k_s @ np.linalg.solve(k_t + shift, np.linalg.solve(k_s + shift, at))
    got = (edge.observed.at(np.array([[0.3]])) @ edge.matrix)[0]
    np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    assert np.abs(got - other).max() > 0.1


def test_narrow_relations_choose_narrower_kernels_than_wide_ones():
    rng = np.random.default_rng(1)
    s = rng.uniform(-3, 3, 200)
    narrow = books(s, np.sin(6 * s) + 0.05 * rng.normal(size=200), given=False)
    wide = books(s, s + 0.5 * rng.normal(size=200), given=False)
    chosen = [learn_message(b[1], b[0], b[2][:, ::-1], None) for b in (narrow, wide)]
    assert chosen[0].receiver.multiple < chosen[1].receiver.multiple
    assert chosen[0].ridge > 0


def test_distances_found_once_give_the_kernel_at_every_lengthscale(pair):
    book, _, _ = books(np.stack(pair, axis=1), pair[1], given=False)
    for multiple in (0.1, 1.0, 2.0):
        found = book.at(multiple)
        gram = kernels.RBF(book.sample.kernel.lengthscale * multiple)(book.sample.points)
        np.testing.assert_allclose(found.values @ found.values.T, gram, atol=1e-6)
        np.testing.assert_allclose(found.at(book.sample.points), found.values, atol=1e-6)


def test_nodes_are_decomposed_once_for_all_edges_and_both_directions(monkeypatch):
    """Round the middle of a star each fold of each lengthscale once, not once for each leaf."""
    rng, leaves, counts = np.random.default_rng(3), 4, []
    middle = rng.normal(size=30)
    table = {"h": middle} | {f"x{i}": middle + rng.normal(size=30) for i in range(leaves)}
    decompose = density_ratio.LeftOut._decomposed

    def counted(self, some):
        counts.extend(range(self.folds)[some])
        return decompose(self, some)

    monkeypatch.setattr(density_ratio.LeftOut, "_decomposed", counted)
    mm.KernelGraph([("h", name) for name in table if name != "h"]).fit(table)
    assert (leaves + 1) * 5 * 10 <= len(counts) <= (leaves + 1) * 9 * 10  # of five lengthscales, and narrower ones


def test_rows_that_are_missing_at_one_end_are_left_out_of_what_is_kept():
    rng = np.random.default_rng(4)
    s = rng.normal(size=30)
    t = s + rng.normal(size=30)
    some = np.where(np.arange(30) < 25, t, np.nan)
    found = mm.KernelGraph([("s", "t"), ("s", "u")]).fit({"s": s, "t": t, "u": some})
    alone = mm.KernelGraph([("s", "u")]).fit({"s": s, "u": some})
    for edge, same in zip(found.likelihoods[1::2], alone.likelihoods, strict=True):
        np.testing.assert_allclose(edge.inner, same.inner)
