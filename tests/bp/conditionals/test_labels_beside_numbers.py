"""Labels given labels in tables with numbers: as good as counted shares where the numbers do not matter."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import meanmap as mm
from meanmap.bp.conditionals.label_regression import LabelRegression
from meanmap.bp.conditionals.softmax import log_shares, softmax_weights

SHARES = np.array([0.2, 0.5, 0.8])
LABELS = "uvw"


def table(n: int, seed: int, noise: int) -> dict:
    """P(b = yes) is .2, .5 or .8 where a is u, v or w; numbers beside them say nothing."""
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=n)
    b = np.where(rng.random(n) < SHARES[a], "yes", "no")
    return {"a": np.array(list(LABELS))[a], "b": b, **{f"z{k}": rng.normal(size=n) for k in range(noise)}}


def unfitted(name: str, noise: int):
    numbers = [f"z{k}" for k in range(noise)]
    return {
        "KernelGraph": mm.KernelGraph([("a", "b"), *((z, "b") for z in numbers)]),
        "BayesianNetwork": mm.bp.BayesianNetwork([("a", "b"), *((z, "b") for z in numbers)]),
        "DependencyNetwork": mm.bp.DependencyNetwork(),
    }[name]


SIZES = [
    (300, 0),
    (300, 1),
    (1000, 1),
    (1000, 3),
    pytest.param(3000, 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("n", "noise"), SIZES)
@pytest.mark.parametrize("name", ["KernelGraph", "BayesianNetwork", "DependencyNetwork"])
def test_shares_given_labels_are_those_that_were_counted(name, n, noise):
    """Means over the numbers within 1.5 standard errors of a share of counted ones; the log probability of a new row
    is lower than the truth's by 10 / n, where counted shares lose 3 / (2 n) on average and each number one half.
    """
    away, regret = [], []
    for seed in range(2):
        data = table(n, 300 + seed, noise)
        model, numbers = unfitted(name, noise).fit(data), np.random.default_rng(9).normal(size=(60, noise))
        asked = [{"a": [label] * 60, **{f"z{k}": z for k, z in enumerate(numbers.T)}} for label in LABELS]
        found = np.array([model.predict(each, ["b"])["b"].probabilities()["yes"] for each in asked])
        away.append(found.mean(axis=1) - [np.mean(data["b"][data["a"] == label] == "yes") for label in LABELS])
        truth = SHARES[:, None]
        lost = truth * np.log(truth / found) + (1 - truth) * np.log((1 - truth) / (1 - found))
        regret.append(lost.mean())
    np.testing.assert_array_less(np.abs(np.mean(away, axis=0)), 1.5 * np.sqrt(SHARES * (1 - SHARES) / (n / 3)))
    assert np.mean(regret) < 10 / n


def test_what_two_labels_say_only_together_is_learned_beside_a_number():
    rng = np.random.default_rng(0)
    a, b, c = rng.random((3, 1000)) < [[0.5], [0.5], [0.9]]
    data = {"a": a, "b": b, "c": (a ^ b) == c, "z": rng.normal(size=1000)}
    beliefs = (
        mm.bp.DependencyNetwork()
        .fit(data)
        .predict({"a": [True, True, False, False], "b": [True, False, True, False], "z": np.zeros(4)}, ["c"])
    )
    # A share of 250 rows has a standard error of .019.
    np.testing.assert_allclose(beliefs["c"].probabilities()[True], [0.1, 0.9, 0.9, 0.1], atol=3 * 0.019)


def test_a_regression_of_labels_is_multinomial_and_counts_rows_as_often_as_they_came():
    rng = np.random.default_rng(1)
    rows, gaps = rng.normal(size=(200, 2)), rng.random((200, 2)) < 0.3
    hits = np.eye(3)[(rng.random(200) + 0.3 * rows[:, 0]).clip(0, 0.99).__mul__(3).astype(int)]
    laws = LabelRegression.fit(rows, gaps, hits, np.arange(200), np.arange(2))
    design = np.column_stack([np.ones(200), rows, gaps])
    assert all(not len(law.pairs) for law in laws)
    weights = softmax_weights(design, hits, np.array([0.1, 1, 1, 1, 1]), laws[2].base)
    np.testing.assert_allclose(laws[2](rows, gaps), np.exp(log_shares(laws[2].base + design @ weights)), atol=1e-5)
    counts = rng.multinomial(200, np.full(200, 1 / 200))
    twice = softmax_weights(
        *(np.repeat(each, counts, axis=0) for each in (design, hits)), np.array([0.1, 1, 1, 1, 1]), laws[2].base
    )
    found = laws[2].resampled(counts)
    np.testing.assert_allclose(found(rows, gaps), np.exp(log_shares(found.base + design @ twice)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("of_b", [False, True])
def test_pooled_odds_of_labels_beside_a_number_are_right(of_b):
    """Of 60 tables with 300 rows, where a quarter of both labels is missing and a number is noise or depends on b."""
    found, held = [], []
    for seed in range(60):
        rng = np.random.default_rng(8_000_000 + seed)
        data = pd.DataFrame(table(300, 8_000_000 + seed, 0))
        data["z"] = rng.normal(size=300) + of_b * (data["b"] == "yes")
        gaps = data.assign(**{name: data[name].mask(rng.random(300) < 0.25) for name in "ab"})
        pooled = mm.bp.pooled(log_odds, mm.bp.DependencyNetwork().fit(gaps).impute(gaps, draws=10, rng=seed))
        low, high = pooled.interval(0.9)
        found.append(float(pooled.estimate))
        held.append(low <= np.log(16) <= high)
    assert np.mean(found) == pytest.approx(np.log(16), abs=3 * np.std(found) / np.sqrt(60) + 0.05)
    assert binom.ppf(0.005, 60, 0.9) <= np.sum(held)


def log_odds(whole):
    """The logarithm of the odds ratio of yes at w over u, and its variance; halves are added to counts."""
    counts = [((whole["a"] == a) & (whole["b"] == b)).sum() + 0.5 for a in "uw" for b in ("yes", "no")]
    return np.log(counts[2] * counts[1] / counts[3] / counts[0]), sum(1 / count for count in counts)
