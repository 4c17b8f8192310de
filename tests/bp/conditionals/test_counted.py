"""Labels given labels: against counts, leave-one-out probabilities by leaving out, and tables of one prior size."""

from itertools import product

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.conditionals.counted import EVEN, SIZES, CountedTables


def fitted(codes, labels, number: int = 2) -> CountedTables:
    codes = np.asarray(codes).reshape(len(labels), -1)
    return CountedTables.fit(codes, tuple((codes.max(axis=0) + 1).tolist()), np.asarray(labels), number)


def test_shares_are_means_over_priors_by_what_they_say_of_rows_left_out():
    """Each row left out in turn, no parent: the shares of the others under each prior, and what these say of it."""
    labels = np.array([0, 0, 0, 1, 0, 2, 0])
    logs = np.zeros((7, len(SIZES), len(EVEN)))
    for i, label in enumerate(labels):
        counts = np.bincount(np.delete(labels, i), minlength=3)
        logs[i] = np.log((counts[label] + SIZES / 3) / (6 + SIZES))[:, None]
    weights = np.exp(logs.sum(axis=0)) * (SIZES <= 1)[:, None]
    free = np.log(np.sum(weights * np.exp(logs), axis=(1, 2)) / weights.sum())
    gain = logs - free[:, None, None]
    larger = (SIZES > 1)[:, None] & (gain.mean(axis=0) > gain.std(axis=0) / np.sqrt(7))
    assert 0 < larger.sum() < (SIZES > 1).sum() * len(EVEN)
    weights = np.where(larger, np.exp(logs.sum(axis=0)), weights)
    weights /= weights.sum()
    counts = np.bincount(labels)
    expected = sum(w * (counts + s / 3) / (7 + s) for row, s in zip(weights, SIZES, strict=True) for w in row)
    found = fitted(np.zeros((7, 0), dtype=int), labels, 3)(np.zeros((1, 0), dtype=int))
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_every_cell_of_a_table_is_learned():
    """Exactly one of three: no sum of functions of the parents."""
    x = np.random.default_rng(0).integers(0, 2, (4000, 3))
    data = {f"x{i}": x[:, i].astype(str) for i in range(3)}
    model = mm.bp.BayesianNetwork([(name, "y") for name in data]).fit({**data, "y": (x.sum(axis=1) == 1).astype(str)})
    for cell in product((0, 1), repeat=3):
        asked = {f"x{i}": str(value) for i, value in enumerate(cell)}
        assert abs(model.query(asked, ["y"]).probabilities("y")["True"] - (sum(cell) == 1)) < 1e-3


def test_rare_labels_are_as_rare_as_all_rows_say():
    """60,000 rows, of which 4000 once spoke, and shares of .002 were the least."""
    rng = np.random.default_rng(3)
    drug = rng.integers(0, 2, 60_000)
    ill = rng.random(60_000) < np.where(drug, 0.003, 0.0003)
    model = mm.bp.BayesianNetwork([("drug", "ill")]).fit({"drug": drug.astype(str), "ill": ill})
    assert model.rows == {"drug": 60_000, "ill": 60_000}
    for value in (0, 1):
        found = model.do({"drug": str(value)}, ["ill"])
        # The prior counts for as many rows as cells that agree say: a tenth of a standard error of these shares.
        assert found.probabilities("ill")[True] == pytest.approx(ill[drug == value].mean(), rel=0.1)
        assert found.report.measures["rows"] == 60_000


def test_few_rows_that_agree_do_not_make_sure():
    """Of 15 rows all had one label: the other is as improbable as a share of a row, not a hundredth of one."""
    shares = fitted(np.repeat([0, 1], 15), np.repeat([0, 1], 15))(np.array([[0], [1]]))
    for p in (shares[0, 1], shares[1, 0]):
        assert 0.02 / 15 < p < 1 / 15


def test_states_that_never_came_are_as_each_parent_acts_elsewhere():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [2, 3], (300, 2))
    codes[codes[:, 0] == 1, 1] = np.minimum(codes[codes[:, 0] == 1, 1], 1)
    labels = np.where(rng.random(300) < 0.1, 1 - codes[:, 0], codes[:, 0])
    law = fitted(codes, labels)
    assert law.order[0] == 0  # it says more
    np.testing.assert_allclose(law(np.array([[1, -1]])), law.tables[1][[1]], rtol=1e-12)
    np.testing.assert_allclose(law(np.array([[-1, -1]])), law.tables[0], rtol=1e-12)
    expected = law.tables[1][1] * law.factors[1][3]
    np.testing.assert_allclose(law(np.array([[1, 2]])), [expected / expected.sum()], rtol=1e-12)


def standardised(shares, z):
    """The difference that t makes, averaged over strata z as often as they came."""
    return float(np.bincount(z) @ (shares[:, 1] - shares[:, 0]) / len(z))


def strata(rng, n: int, number: int):
    """A treatment and an outcome that depend on the stratum; the treatment adds .1 in each."""
    z = rng.integers(number, size=n)
    t = (rng.random(n) < 0.3 + 0.4 * z / number).astype(int)
    y = (rng.random(n) < 0.1 + 0.1 * t + 0.1 * (z >= number / 2)).astype(int)
    return z, t, y


@pytest.mark.parametrize(("n", "number"), [(500, 10), (1500, 30)])
def test_differences_that_strata_share_are_not_drawn_towards_none(n, number):
    """.04 and .02 for .1 when small strata were drawn towards tables without the treatment."""
    rng, found = np.random.default_rng(11), []
    for _ in range(12):
        z, t, y = strata(rng, n, number)
        asked = np.stack([each.ravel() for each in np.indices((number, 2))], axis=1)
        law = CountedTables.fit(np.column_stack([z, t]), (number, 2), y, 2)
        found.append(standardised(law(asked)[:, 1].reshape(number, 2), z))
    error = 0.8 / np.sqrt(n)  # of a difference of .1 and .2 with half of the rows each
    assert abs(np.mean(found) - 0.1) < error * (4 / np.sqrt(12))
    assert np.std(found) < 2 * error


def test_order_does_not_matter():
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(0, 3, (200, 3)), rng.integers(0, 4, 200)
    shuffled, asked = rng.permutation(200), rng.integers(0, 3, (20, 3))
    found = fitted(codes, labels, 4)(asked)
    np.testing.assert_allclose(fitted(codes[shuffled], labels[shuffled], 4)(asked), found, rtol=1e-12)
    np.testing.assert_allclose(fitted(codes[:, ::-1], labels, 4)(asked[:, ::-1]), found, rtol=1e-12)
    np.testing.assert_allclose(fitted(codes, 3 - labels, 4)(asked)[:, ::-1], found, rtol=1e-12)


def random_laws(rng, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of three parents with unequal shares, a label of theirs, and its law at all their states."""
    sizes = rng.integers(2, 5, 3)
    codes = np.stack([rng.choice(size, n, p=rng.dirichlet(np.full(size, 0.7))) for size in sizes], axis=1)
    law = rng.dirichlet(np.full(3, 0.3), tuple(sizes))
    if rng.random() < 0.5:  # one of the parents says nothing
        law[:] = law[:1]
    shares = law[tuple(codes.T)]
    return codes, (rng.random((n, 1)) > np.cumsum(shares, axis=1)[:, :2]).sum(axis=1), law


@pytest.mark.slow
def test_new_rows_are_as_probable_as_under_the_best_size():
    """On the mean over laws within .002 nats of a Dirichlet prior of equal shares whose size new rows have chosen."""
    rng, gaps = np.random.default_rng(5), []
    sizes = (0.1, 0.3, 1.0, 3.0, 10.0)
    for _ in range(60):
        codes, labels, law = random_laws(rng, 1000)
        asked = np.stack([each.ravel() for each in np.indices(law.shape[:3])], axis=1)
        truth = law.reshape(-1, 3)
        share = np.array([np.mean((codes == one).all(axis=1)) for one in asked])
        counts = np.zeros(law.shape)
        np.add.at(counts, (*codes.T, labels), 1)
        ours = np.log(CountedTables.fit(codes, law.shape[:3], labels, 3)(asked))
        theirs = [np.log((counts + s / 3) / (counts + s / 3).sum(axis=-1, keepdims=True)).reshape(-1, 3) for s in sizes]
        gaps.append([np.sum(share[:, None] * truth * (ours - one)) for one in theirs])
    assert np.mean(gaps, axis=0).min() > -0.002
