"""Labels given numbers: against probabilities that are known, inside of the data and beyond."""

import numpy as np
import pytest
from scipy.special import expit

import meanmap as mm
from meanmap.bp.conditionals.label_curve import LabelCurve
from meanmap.bp.conditionals.labels_given_parents import LabelsGivenParents
from meanmap.bp.conditionals.softmax import log_shares, softmax_weights


def law_given(parents, hits: np.ndarray) -> LabelsGivenParents:
    rows = np.concatenate(parents, axis=1)
    return LabelsGivenParents.fit(rows, tuple(each.shape[1] for each in parents), hits)


def steep(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, rng.random(n) < expit(4 * x)


@pytest.fixture(scope="module")
def model():
    x, y = steep(1000, 17)
    return mm.bp.BayesianNetwork([("x", "y")]).fit({"x": x, "y": np.where(y, "1", "0")})


def test_weights_are_where_the_gradient_is_zero():
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(80), rng.normal(size=(80, 2))])
    hits, offset = np.eye(3)[rng.integers(0, 3, 80)], rng.normal(size=(80, 3))
    ridges = np.array([0.1, 2.0, 0.3])
    weights = softmax_weights(design, hits, ridges, offset)
    shares = np.exp(log_shares(offset + design @ weights))
    np.testing.assert_allclose(design.T @ (hits - shares), ridges[:, None] * weights, atol=1e-5)


def test_probabilities_are_those_of_the_law(model):
    """Within four standard errors of a logit, which are .17 at zero and .4 at one."""
    for x in (-1.0, -0.5, 0.0, 0.5, 1.0):
        p = model.query({"x": x}, ["y"]).probabilities("y")["1"]
        assert abs(np.log(p / (1 - p)) - 4 * x) < 4 * np.hypot(0.17, 0.35 * x)


def test_beyond_the_data_probabilities_flatten_and_a_note_says_so(model):
    """At −3.5, where the truth is 8e-7; the data end at −2.72, where it is 2e-5."""
    found = model.query({"x": -3.5}, ["y"])
    assert found.probabilities("y")["1"] < 1e-3
    (note,) = found.report.notes
    assert note.startswith("the value of 'x' is outside the range from which 'y' was learned (-2.724 to 3.455)")
    assert not model.query({"x": -2.7}, ["y"]).report.notes
    far = model.query({"x": -60.0}, ["y"])
    share = np.mean(steep(1000, 17)[1])
    assert far.probabilities("y")["1"] == pytest.approx(share, abs=0.01)
    assert len(far.report.notes) == 2
    logits = [np.log(model.query({"x": x}, ["y"]).probabilities("y")["1"]) for x in (-2.8, -4.0, -6.0, -9.0)]
    assert (np.diff(logits) > 0).all()


def test_labels_that_numbers_separate_are_not_certain():
    x = np.linspace(-1, 1, 40)
    shares = law_given([x[:, None]], np.eye(2)[(x > 0).astype(int)]).shares(np.array([[-1.0], [1.0]]))
    assert 1e-6 < shares[0, 1] < 0.05
    assert shares[1, 0] == pytest.approx(shares[0, 1], rel=0.2)


def curved(x: np.ndarray) -> np.ndarray:
    return expit(2 - 2 * x[:, 0] ** 2)


def crossed(x: np.ndarray) -> np.ndarray:
    return expit(np.where(x[:, 1] > 0.5, 2.0, -2.0) * x[:, 0])


def multiplied(x: np.ndarray) -> np.ndarray:
    return expit(2 * x[:, 0] * x[:, 3])


@pytest.mark.parametrize("truth", [curved, crossed, multiplied])
def test_what_no_line_is_is_learned(truth):
    rng = np.random.default_rng(2)
    x, label, z = rng.normal(size=2000), rng.integers(0, 2, 2000), rng.normal(size=2000)
    parents = [x[:, None], np.eye(2)[label], z[:, None]] if truth is multiplied else [x[:, None], np.eye(2)[label]]
    rows = np.concatenate(parents, axis=1)
    rows[:, 1:3] = np.eye(2)[label][:, ::-1]
    p = truth(rows)
    hits = np.eye(2)[(rng.random(2000) < p).astype(int)]
    law = law_given(np.split(rows, np.cumsum([each.shape[1] for each in parents])[:-1], axis=1), hits)
    new = np.abs(rows[:, 0]) < 1.5
    assert np.sqrt(np.mean((law.shares(rows)[new, 1] - p[new]) ** 2)) < 0.06  # of a straight line .25 and more


def test_lines_are_of_all_rows_and_nothing_is_raised():
    """An event of one row in a thousand, twenty times as frequent with x large."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=50_000)
    p = expit(-8 + 1.5 * x)
    hits = np.eye(2)[(rng.random(50_000) < p).astype(int)]
    law, used = LabelCurve.fit(x[:, None], (1,), hits)
    assert used == 50_000
    found = law(np.array([[-1.0], [0.0], [2.0]]))[:, 1]
    np.testing.assert_allclose(found / expit(-8 + 1.5 * np.array([-1.0, 0, 2])), 1, atol=0.5)


def test_units_and_order_of_labels_do_not_matter():
    x, y = steep(300, 1)
    hits = np.eye(3)[np.where(np.arange(300) % 7 == 0, 2, y)]
    asked = np.array([[-1.0], [0.3], [9.0]])
    found = law_given([x[:, None]], hits).shares(asked)
    other = law_given([5 - 1000 * x[:, None]], hits[:, ::-1]).shares(5 - 1000 * asked)
    np.testing.assert_allclose(other[:, ::-1], found, atol=1e-5)


@pytest.mark.slow
def test_probabilities_are_as_frequent_as_they_say():
    """In each fifth of what is predicted, over 40 data sets of 300 rows, within four standard errors."""
    said, came = [], []
    for seed in range(40):
        x, y = steep(300, seed)
        new, truth = steep(2000, 1000 + seed)
        said.append(law_given([x[:, None]], np.eye(2)[y.astype(int)]).shares(new[:, None])[:, 1])
        came.append(truth)
    said, came = np.array(said), np.array(came)
    fifth = np.minimum((said * 5).astype(int), 4)
    for k in range(5):
        gaps = [np.mean((s - c)[f == k]) for s, c, f in zip(said, came, fifth, strict=True) if (f == k).any()]
        assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(len(gaps))


def test_rare_differences_are_those_of_a_logistic_regression():
    """Five and fifteen cases of 250: a ridge of the best mean gave .8 of the difference that rows have."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, t = rng.normal(size=500), rng.integers(0, 2, 500)
        y = (rng.random(500) < 1 / (1 + np.exp(4 - 1.15 * t - 0.5 * x))).astype(int)
        law = law_given([x[:, None], np.eye(2)[t]], np.eye(2)[y])
        risks = [law.shares(np.column_stack([x, np.eye(2)[np.full(500, a)]]))[:, 1].mean() for a in (0, 1)]
        found.append([risks[1] - risks[0], y[t == 1].mean() - y[t == 0].mean()])
    ours, counted = np.mean(found, axis=0)
    assert counted > 0.02
    assert 0.93 < ours / counted < 1.07
