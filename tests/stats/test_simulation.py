import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.report import Report
from meanmap.stats.simulation import PowerCurve, RejectionRate, power_curve, rejection_rate


def of_pvalues(pvalues, level=0.05):
    return RejectionRate(np.asarray(pvalues, float), level, 0, Report("finished", True, len(pvalues)))


def normal(generator, n=20):
    return generator.normal(size=n), generator.normal(size=n)


def t_test(x, y):
    return scipy.stats.ttest_ind(x, y)


def test_an_exact_test_keeps_its_level_and_its_power_is_the_closed_form():
    level = rejection_rate(t_test, normal, repeats=500, rng=0)
    assert level.keeps_level(1e-4)
    shifted = rejection_rate(t_test, lambda g: (g.normal(size=20), 1 + g.normal(size=20)), repeats=500, rng=1)
    tail = scipy.stats.t.ppf(0.975, 38)
    power = scipy.stats.nct.sf(tail, 38, np.sqrt(10)) + scipy.stats.nct.cdf(-tail, 38, np.sqrt(10))
    low, high = shifted.interval(0.9999)
    assert low < power < high


@pytest.mark.parametrize("method", ["exact", "wilson"])
def test_intervals_cover_the_rate_as_often_as_they_say(method):
    """Enumerated over all outcomes: exact ones at least so often, Wilson's about."""
    repeats, rate = 50, 0.1
    counts = np.arange(repeats + 1)
    covered = []
    for k in counts:
        low, high = of_pvalues(np.repeat([0.0, 1.0], [k, repeats - k])).interval(0.95, method)
        covered.append(low <= rate <= high)
    coverage = scipy.stats.binom.pmf(counts, repeats, rate) @ np.array(covered)
    assert coverage >= (0.95 if method == "exact" else 0.93)


def test_the_band_is_simultaneous():
    rng = np.random.default_rng(0)
    half = of_pvalues(np.ones(30)).band(0.9)
    outside = [scipy.stats.kstest(rng.uniform(size=30), "uniform").statistic > half for _ in range(500)]
    assert scipy.stats.binomtest(sum(outside), 500, 0.1).pvalue > 1e-4


def test_keeping_the_level():
    assert of_pvalues(np.repeat([0.01, 0.5], [50, 950])).keeps_level()
    assert not of_pvalues(np.repeat([0.01, 0.5], [80, 920])).keeps_level()
    assert not of_pvalues(np.repeat([0.01, 0.5], [20, 980])).keeps_level()
    low, high = map(int, scipy.stats.binom.interval(0.99, 1000, 0.05))
    for rejections, kept in ((low - 1, False), (low, True), (high, True), (high + 1, False)):
        assert of_pvalues(np.repeat([0.01, 0.5], [rejections, 1000 - rejections])).keeps_level() == kept


def test_a_seed_repeats_everything_and_more_repeats_go_on_from_there():
    test = lambda x, y, rng: mm.independence_test(x, y, "median", n_permutations=39, rng=rng)  # noqa: E731
    first = rejection_rate(test, normal, repeats=5)
    again = rejection_rate(test, normal, repeats=8, rng=first.seed)
    np.testing.assert_array_equal(first.pvalues, again.pvalues[:5])
    assert len(set(again.pvalues)) > 3


def line(n, generator):
    return generator.normal(size=n), 0.5 + generator.normal(size=n)


def test_who_does_the_work_does_not_matter():
    alone = rejection_rate(t_test, normal, repeats=40, rng=3).pvalues
    with ThreadPoolExecutor(2) as threads:
        assert (rejection_rate(t_test, normal, repeats=40, executor=threads, rng=3).pvalues == alone).all()
        curve = power_curve(t_test, line, [5, 9], repeats=20, executor=threads, rng=3)
    assert curve == power_curve(t_test, line, [5, 9], repeats=20, rng=3)
    for wrong in (2, "threads"):
        with pytest.raises(KindError, match=r"expected a concurrent.futures.Executor, such as"):
            rejection_rate(t_test, normal, executor=wrong)


@pytest.mark.slow
def test_processes_and_workers_of_dask_do_the_work():
    alone = rejection_rate(scipy.stats.ttest_ind, normal, repeats=20, rng=3).pvalues
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        found = rejection_rate(scipy.stats.ttest_ind, normal, repeats=20, executor=processes, rng=3)
    assert (found.pvalues == alone).all()
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        found = rejection_rate(t_test, normal, repeats=20, executor=client.get_executor(), rng=3)
    assert (found.pvalues == rejection_rate(t_test, normal, repeats=20, rng=3).pvalues).all()


@pytest.mark.parametrize(
    "test", [mm.two_sample_test, mm.independence_test, lambda x, y, rng: mm.joint_independence_test([x, y], rng=rng)]
)
def test_it_works_with_the_tests_of_the_library(test):
    assert rejection_rate(test, normal, repeats=2, rng=0).repeats == 2


def test_an_interruption_loses_nothing():
    calls = []

    def interrupted(x, y):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return 0.5

    result = rejection_rate(interrupted, normal, repeats=10, rng=0)
    assert result.repeats == 3
    assert not result.report.converged
    assert "stopped by the user with 3 of 10" in str(result)
    calls.clear()
    curve = power_curve(interrupted, lambda n, g: normal(g, n), [5, 10, 20], repeats=3, rng=0)
    assert curve.sizes == (5,)
    calls[:] = [1, 1, 1]
    empty = rejection_rate(interrupted, normal, rng=0)
    assert (empty.repeats, empty.interval()) == (0, (0.0, 1.0))
    assert np.isnan(empty.rate)


def test_the_size_that_is_needed():
    report = Report("finished", True, 1000)
    counts = (100, 500, 450, 900)
    rates = tuple(RejectionRate(np.repeat([0.0, 1.0], [k, 1000 - k]), 0.05, 0, report) for k in counts)
    curve = PowerCurve((10, 20, 40, 80), rates)
    # Monotone: 0.1, 0.475, 0.475, 0.9.
    assert curve.needed(0.475) == 20
    assert curve.needed(0.9) == 80
    assert curve.needed(0.05) == 10
    assert curve.needed(0.95) is None
    assert curve.needed(0.6) == np.ceil(40 * 2 ** ((0.6 - 0.475) / (0.9 - 0.475)))
    low, high = curve.needed_interval(0.6)
    assert low < curve.needed(0.6) < high
    assert "power 0.8 at n = " in str(curve)


def test_a_power_curve_follows_the_closed_form():
    draw = lambda n, g: (g.normal(size=n), 1 + g.normal(size=n))  # noqa: E731
    curve = power_curve(t_test, draw, [40, 5, 10, 20], repeats=150, rng=0)
    assert curve.sizes == (5, 10, 20, 40)
    for n, rate in zip(curve.sizes, curve.rates, strict=True):
        low, high = rate.interval(0.9999)
        tail = scipy.stats.t.ppf(0.975, 2 * n - 2)
        assert low < scipy.stats.nct.sf(tail, 2 * n - 2, np.sqrt(n / 2)) < high
    assert 13 <= curve.needed(0.8) <= 22  # 17 by the closed form


def test_results_can_be_kept_and_drawn():
    curve = power_curve(t_test, lambda n, g: normal(g, n), [10, 20], repeats=20, rng=0)
    rate = curve.rates[0]
    assert json.loads(json.dumps(curve.to_dict()))["rates"][0]["repeats"] == 20
    assert json.loads(json.dumps(rate.to_dict()))["rate"] == rate.rate
    axes = rate.plot()
    assert axes.get_xlabel() == "u"
    steps = axes.lines[1].get_xydata()
    assert steps[-1][1] == 1
    assert np.isin(rate.pvalues, steps[:, 0]).all()
    axes = curve.plot()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [r.rate for r in curve.rates])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rejection_rate(lambda x, y: "yes", normal), KindError, "the test returned 'yes'"),
        (lambda: rejection_rate(lambda x, y: True, normal), KindError, "the test returned True"),
        (lambda: rejection_rate(lambda x, y: 1.5, normal), ParameterError, "the p-value 1.5"),
        (lambda: rejection_rate(t_test, normal, repeats=0), ParameterError, "repeats is 0"),
        (lambda: rejection_rate(t_test, normal, level=2), ParameterError, "between 0 and 1"),
        (lambda: power_curve(t_test, normal, []), ParameterError, "sizes is empty"),
        (lambda: power_curve(t_test, normal, [2.5]), ParameterError, "each of sizes is 2.5"),
        (lambda: of_pvalues([0.5]).interval(method="wald"), ParameterError, "'exact' or 'wilson'"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
