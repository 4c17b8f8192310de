"""Many tests at once: corrected by hand, by enumeration, and at rates that are reached but not exceeded."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import EmptyError, KindError, ParameterError

LEVEL, BATTERIES, M = 0.05, 1000, 20
HARMONIC = float(np.sum(1 / np.arange(1, M + 1)))
# Three standard errors of a share of .05 in 1000.
BOUND = 3 * np.sqrt(LEVEL * (1 - LEVEL) / BATTERIES)


def rejected_by_hand(values, method, level):
    """The definitions, one rank at a time, on e-values or p-values."""
    m, order = len(values), np.argsort(values)
    if method == "holm":
        number = 0
        while number < m and values[order[number]] <= level / (m - number):
            number += 1
        return {int(i) for i in order[:number]}
    if method == "e-bh":
        order = order[::-1]
        reached = [k for k in range(1, m + 1) if values[order[k - 1]] >= m / (k * level)]
    else:
        harmonic = sum(1 / k for k in range(1, m + 1))
        reached = [k for k in range(1, m + 1) if values[order[k - 1]] <= k * level / (m * harmonic)]
    return {int(i) for i in order[: max(reached, default=0)]}


def test_the_procedure_for_independent_tests_is_not_taken_for_e_values():
    with pytest.raises(ParameterError, match=r"expected .benjamini-yekutieli., which holds under any dependence"):
        mm.stats.adjusted([0.01, 0.02], "bh")


@pytest.mark.parametrize("method", ["holm", "benjamini-yekutieli", "e-bh"])
def test_what_is_rejected_is_what_the_definitions_say(method):
    rng = np.random.default_rng(0)
    for _ in range(200):
        m = int(rng.integers(1, 9))
        values = rng.random(m) ** 4
        values = 1 / values if method == "e-bh" else values
        found = mm.stats.adjusted(values, method=method)
        for level in (0.01, 0.05, 0.3):
            assert set(found.rejected(level)) == rejected_by_hand(values, method, level)


def test_holm_is_the_closure_of_bonferroni():
    """The corrected p-value is the largest of any Bonferroni test of hypotheses with this one among them."""
    pvalues = np.array([0.004, 0.03, 0.02, 0.6, 0.02])
    sets = [list(each) for size in range(1, 6) for each in combinations(range(5), size)]
    closed = [max(min(len(s) * pvalues[s].min(), 1.0) for s in sets if i in s) for i in range(5)]
    assert list(mm.stats.adjusted(pvalues).pvalues.values()) == pytest.approx(closed)


def test_a_level_is_reached_however_it_is_rounded():
    for m in range(1, 300):
        assert len(mm.stats.adjusted([LEVEL / m] * m).rejected(LEVEL)) == m
        assert len(mm.stats.adjusted([m / LEVEL] + [0.0] * (m - 1), method="e-bh").rejected(LEVEL)) == 1
        assert len(mm.stats.adjusted([1 / LEVEL] * m, method="e-bh").rejected(LEVEL)) == m


def test_order_and_names_and_containers_do_not_matter():
    values = {"a": 0.01, "b": 0.2, "c": 0.02}
    found = mm.stats.adjusted(values)
    assert mm.stats.adjusted(dict(reversed(values.items()))).pvalues == found.pvalues
    assert mm.stats.adjusted(pd.Series(values)).pvalues == found.pvalues
    for several in (list(values.values()), tuple(values.values()), np.array(list(values.values()))):
        assert list(mm.stats.adjusted(several).pvalues) == [0, 1, 2]
        assert list(mm.stats.adjusted(several).pvalues.values()) == list(found.pvalues.values())
    assert found.to_dict()["pvalues"] == found.pvalues


def test_results_bets_and_monitors_are_taken():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    test = mm.two_sample_test(x, x + 2, n_permutations=199, rng=0)
    bet = mm.stats.TwoSampleBet.of(x[:20], x[:20] + 3, rng=0).update(x[20:], x[20:] + 3)
    bet = bet.update(x[:20] + 3, x[20:40])  # some is lost again: its p-value is that of its best moment
    monitor = mm.stats.DriftMonitor.of(x, n_permutations=99, rng=0).step(x[:20] + 5)
    found = mm.stats.adjusted({"test": test, "bet": bet, "monitor": monitor})
    single = np.array([test.pvalue, bet.pvalue, min(1.0, 1 / monitor.evalue)])
    assert list(found.pvalues.values()) == list(mm.stats.adjusted(single).pvalues.values())
    money = mm.stats.adjusted([bet, monitor], method="e-bh")
    assert money.pvalues == mm.stats.adjusted([bet.evalue, monitor.evalue], method="e-bh").pvalues
    assert bet.pvalue < 1 / bet.evalue


def test_too_few_draws_for_so_many_tests_are_refused_in_words():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 1))
    test = mm.two_sample_test(x, x + 9, n_permutations=99, rng=0)
    assert mm.stats.adjusted([test] * 5).rejected(0.05) == [0, 1, 2, 3, 4]
    with pytest.raises(
        ParameterError, match=r"level is 0.05; .* these 12 tests cannot reject below level 0.12. .* 3 times"
    ):
        mm.stats.adjusted([test] * 12).rejected(0.05)
    assert mm.stats.adjusted([*[test] * 12, 1e-9]).rejected(0.05) == [12]


@pytest.mark.parametrize(
    ("results", "method", "error", "words"),
    [
        ([], "holm", EmptyError, "expected at least one test"),
        ([0.1], "holms", ParameterError, r"method is 'holms' \(did you mean 'holm'\?\)"),
        ([0.1, 20.0], "holm", ParameterError, r"results\[1\] is 20; expected a p-value, from 0 to 1"),
        ([float("nan")], "benjamini-yekutieli", ParameterError, "is nan; expected a p-value"),
        ([float("nan")], "e-bh", ParameterError, "is nan; expected an e-value, from 0 on"),
        ({"a": -1.0}, "e-bh", ParameterError, r"results\['a'\] is -1; expected an e-value"),
        (pd.DataFrame({"p": [0.1], "q": [0.2]}), "holm", KindError, r"results is a table; expected one column of it"),
        (0.1, "holm", KindError, "results is a float; expected a mapping from names"),
        ({"a": "b"}, "holm", KindError, r"results\['a'\] is a str; expected the result of a test, or its p-value"),
        (pd.Series([0.1, 0.2], index=["a", "a"]), "holm", ParameterError, "one name for several tests"),
    ],
)
def test_what_cannot_be_corrected_is_refused_in_words(results, method, error, words):
    with pytest.raises(error, match=words):
        mm.stats.adjusted(results, method=method)


def test_a_test_has_no_e_value():
    test = mm.two_sample_test(range(20), range(20), n_permutations=99, rng=0)
    with pytest.raises(KindError, match=r"is a TwoSampleResult; expected a bet, .* For its p-value use method='holm'"):
        mm.stats.adjusted({"test": test}, method="e-bh")


# Laws of p-values and e-values that depend on each other in the worst way: the bounds are reached.


def one_below(rng):
    """Uniform p-values of which one at most is below level / m."""
    pvalues = LEVEL / M + (1 - LEVEL / M) * rng.random(M)
    if rng.random() < LEVEL:
        pvalues[rng.integers(M)] = LEVEL / M * rng.random()
    return pvalues


def several_below(rng):
    """Uniform p-values of which k are just below k times the step, with chance level / (k Σ 1/j)."""
    step = LEVEL / (M * HARMONIC)
    pvalues = M * step + (1 - M * step) * rng.random(M)
    if rng.random() < LEVEL:
        k = 1 + rng.choice(M, p=1 / np.arange(1, M + 1) / HARMONIC)
        pvalues[rng.choice(M, k, replace=False)] = (k - rng.random(k)) * step
    return pvalues


def several_rich(rng):
    """E-values of mean one of which k are m / (k level), with chances that add up to the level."""
    evalues = np.zeros(M)
    if rng.random() < LEVEL:
        k = 1 + int(rng.integers(M))
        evalues[rng.choice(M, k, replace=False)] = M / (k * LEVEL)
    return evalues


@pytest.mark.parametrize(
    ("method", "law"), [("holm", one_below), ("benjamini-yekutieli", several_below), ("e-bh", several_rich)]
)
def test_in_the_worst_case_the_level_is_reached_and_not_exceeded(method, law):
    """All hypotheses hold: any rejection is false, and the false discovery rate is the chance of one."""
    rng = np.random.default_rng(1)
    found = np.mean([bool(mm.stats.adjusted(law(rng), method=method).rejected(LEVEL)) for _ in range(BATTERIES)])
    assert abs(found - LEVEL) <= BOUND


def battery(rng, correlation):
    """z-values of 15 hypotheses that hold and of 5 that do not, two-sided p-values and e-values of a shift of 3."""
    from scipy.stats import norm

    signs = rng.choice([-1.0, 1.0], M)
    z = signs * np.sqrt(correlation) * rng.normal() + np.sqrt(1 - correlation) * rng.normal(size=M)
    z[:5] += 3.5
    return 2 * norm.sf(np.abs(z)), np.exp(3.0 * z - 4.5)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("method", ["holm", "benjamini-yekutieli", "e-bh"])
def test_rates_among_true_and_false_hypotheses(method, correlation):
    """Family-wise for Holm, of false discoveries for the others, in 1000 batteries; Bonferroni finds less."""
    rng = np.random.default_rng(2)
    false, found, single = np.zeros(BATTERIES), 0, 0
    for i in range(BATTERIES):
        pvalues, evalues = battery(rng, correlation)
        taken = evalues if method == "e-bh" else pvalues
        names = mm.stats.adjusted(taken, method=method).rejected(LEVEL)
        wrong = sum(name >= 5 for name in names)
        false[i] = wrong > 0 if method == "holm" else wrong / max(len(names), 1)
        found += len(names)
        single += int(np.sum(taken >= M / LEVEL if method == "e-bh" else taken <= LEVEL / M))
    assert false.mean() <= LEVEL + 3 * false.std() / np.sqrt(BATTERIES)
    assert found >= single if method != "benjamini-yekutieli" else found > 0


@pytest.mark.slow
def test_rates_of_real_tests_and_bets():
    """200 batteries of six tests of two samples that share one of them, two of which differ; and the bets on them."""
    rng, times = np.random.default_rng(3), 200
    wrong, false, missed = 0, [], 0
    for i in range(times):
        x = rng.normal(size=(40, 1))
        samples = [rng.normal(1.5 * (j < 2), 1.0, size=(40, 1)) for j in range(6)]
        tests = [mm.two_sample_test(x, y, n_permutations=199, rng=i) for y in samples]
        names = mm.stats.adjusted(tests).rejected(LEVEL)
        wrong += any(name >= 2 for name in names)
        missed += 2 - sum(name < 2 for name in names)
        bets = [mm.stats.TwoSampleBet.of(x[:10], y[:10], rng=i).update(x[10:], y[10:]) for y in samples]
        names = mm.stats.adjusted(bets, method="e-bh").rejected(LEVEL)
        false.append(sum(name >= 2 for name in names) / max(len(names), 1))
    assert wrong / times <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / times)
    assert np.mean(false) <= LEVEL + 3 * max(np.std(false), 0.1) / np.sqrt(times)
    assert missed < times / 2
