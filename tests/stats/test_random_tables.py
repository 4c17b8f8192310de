"""Random tables of mixed columns with gaps through every test: an answer or a refusal in words, levels that hold."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, KindError

DRAWS = {"missing": "drop", "n_permutations": 39, "rng": 0}


def numbers(rng, n):
    """A column of numbers of some law."""
    laws = (
        lambda: rng.normal(size=n) * 10.0 ** rng.integers(-3, 4),
        lambda: rng.standard_t(2, size=n),
        lambda: np.round(rng.normal(size=n), 1),
        lambda: rng.poisson(2.0, size=n).astype(float),
        lambda: np.exp(2 * rng.normal(size=n)),
        lambda: np.where(rng.random(n) < 0.5, 0.0, rng.exponential(size=n)),
    )
    return laws[rng.integers(len(laws))]()


def column(rng, n):
    """A column of a random kind, and what it has to be told to be."""
    words = rng.choice(["oak", "elm", "ash", "fir", "yew"], size=(n, 3))
    makers = (
        lambda: (numbers(rng, n), None),
        lambda: (numbers(rng, n), None),
        lambda: (rng.choice(list("abcde"), p=[0.4, 0.3, 0.2, 0.08, 0.02], size=n).astype(object), None),
        lambda: (rng.random(n) < 0.3, None),
        lambda: (pd.Categorical(rng.choice(["s", "m", "l"], size=n), ["s", "m", "l"], ordered=True), "rank"),
        lambda: (np.array([f"{' '.join(row)} {rng.integers(1000)}" for row in words], dtype=object), None),
        lambda: (pd.Series(list(rng.normal(size=(n, 3)))), None),
        lambda: (pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s"), None),
        lambda: (rng.uniform(0, 2 * np.pi, n), "angle"),
    )
    return makers[rng.integers(len(makers))]()


def table(seed):
    """Independent columns with gaps, two groups, a site, and what columns mean."""
    rng = np.random.default_rng([seed, 2026])
    n = int(rng.integers(30, 90))
    made = {f"c{j}": column(rng, n) for j in range(4)}
    frame = pd.DataFrame({name: values for name, (values, _) in made.items()})
    frame["group"], frame["site"] = rng.choice(["u", "v"], size=n), rng.choice(["p", "q"], size=n)
    for name in made:
        gone = rng.random(n) < rng.choice([0.0, 0.05, 0.1])
        frame[name] = frame[name].where(~gone, None) if gone.any() else frame[name]
    return frame, {name: kind for name, (_, kind) in made.items() if kind}


def of(kinds, *names):
    return {name: kind for name, kind in kinds.items() if name in names} or None


TESTS = {
    "two_sample_test": lambda f, k: mm.two_sample_test(f.drop(columns="site"), by="group", kinds=k, **DRAWS),
    "two_sample_test within": lambda f, k: mm.two_sample_test(f, by="group", within="site", kinds=k, **DRAWS),
    "k_sample_test": lambda f, k: mm.k_sample_test(
        [f.drop(columns=["group", "site"])[i::3] for i in range(3)], kinds=k, **DRAWS
    ),
    "independence_test": lambda f, k: mm.independence_test(
        "c0", ["c1", "c2"], data=f, kinds=of(k, "c0", "c1", "c2"), **DRAWS
    ),
    "independence_test within": lambda f, k: mm.independence_test(
        "c0", "c1", data=f, within="site", kinds=of(k, "c0", "c1"), **DRAWS
    ),
    "joint_independence_test": lambda f, k: mm.joint_independence_test(
        f[["c0", "c1", "c2"]], kinds=of(k, "c0", "c1", "c2"), **DRAWS
    ),
    "conditional_independence_test": lambda f, k: mm.conditional_independence_test(
        "c0", "c1", ["c2", "site"], data=f, kinds=of(k, "c0", "c1", "c2"), **DRAWS
    ),
    "conditional_independence_test features": lambda f, k: mm.conditional_independence_test(
        "c0", "c1", "c2", data=f, method="features", kinds=of(k, "c0", "c1", "c2"), **DRAWS
    ),
    "test groups": lambda f, k: mm.test("c0 + c1 ~ group", f, kinds=of(k, "c0", "c1"), **DRAWS),
    "test given": lambda f, k: mm.test("c0 ~ c1 | c2", f, kinds=of(k, "c0", "c1", "c2"), **DRAWS),
}
ANSWERS = {
    "closeness_test": lambda f, k: mm.closeness_test(
        f.c0[f.group == "u"].to_frame(), f.c0[f.group == "v"].to_frame(), 0.1, kinds=of(k, "c0"), missing="drop"
    ),
    "two_sample_effect": lambda f, k: mm.two_sample_effect(
        f.c0[f.group == "u"].to_frame(), f.c0[f.group == "v"].to_frame(), kinds=of(k, "c0"), missing="drop"
    ),
    "independence_effect": lambda f, k: mm.independence_effect(
        "c0", "c1", data=f, kinds=of(k, "c0", "c1"), missing="drop", rng=0
    ),
    "conditional_independence_effect": lambda f, k: mm.conditional_independence_effect(
        "c0", "c1", "c2", data=f, kinds=of(k, "c0", "c1", "c2"), missing="drop", rng=0
    ),
    "DriftMonitor": lambda f, k: mm.DriftMonitor.of(
        f.drop(columns=["group", "site"])[:-12], kinds=k or None, missing="drop", n_permutations=39, rng=0
    ).step(f.drop(columns=["group", "site"])[-12:]),
    "chow_liu": lambda f, k: mm.chow_liu(f, kinds=k or None, missing="drop", rng=0),
    "pc": lambda f, k: mm.pc(f, kinds=k or None, missing="drop", rng=0),
}


def without_advice(text):
    """What is said but for warnings and notes, which may tell the reader to write NaN."""
    return "\n".join(line for line in text.lower().splitlines() if not line.lstrip().startswith(("warning", "note")))


def answers(functions, seeds):
    """P-values by test, and refusals by what they say; every number that comes back is one."""
    pvalues, refused = {name: [] for name in functions}, Counter()
    for seed in seeds:
        frame, kinds = table(seed)
        before = frame.copy(deep=True)
        for name, function in functions.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                try:
                    found = function(frame, kinds)
                except (InputError, KindError) as refusal:
                    refused[f"{name}: {refusal}"[:110]] += 1
                    continue
            assert "nan" not in without_advice(str(found)), (seed, name, str(found))
            if hasattr(found, "pvalue"):
                assert np.isfinite(found.statistic), (seed, name)
                assert 0 < found.pvalue <= 1, (seed, name)
                pvalues[name].append(found.pvalue)
        pd.testing.assert_frame_equal(frame, before)
    return pvalues, refused


def test_a_few_random_tables():
    pvalues, refused = answers(TESTS, range(3))
    assert sum(map(len, pvalues.values())) > sum(refused.values()), refused


@pytest.mark.slow
def test_a_thousand_random_tables():
    pvalues, refused = answers(TESTS, range(1000))
    for name, found in pvalues.items():
        assert len(found) > 700, (name, refused)
        rejected = int(np.sum(np.asarray(found) <= 0.05))
        assert rejected <= scipy.stats.binom.ppf(0.995, len(found), 0.05), (name, rejected, len(found))


@pytest.mark.slow
def test_random_tables_through_effects_and_graphs():
    _, refused = answers(ANSWERS, range(200))
    assert sum(refused.values()) < 200, refused
