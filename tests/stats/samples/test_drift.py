"""The monitor keeps its promise about false alarms, sees what changes, and goes on where it was stopped."""

import numpy as np
import pandas
import polars
import pytest
from scipy.special import ndtri
from scipy.stats import binom, binomtest, chi2, kstest

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError, KindError, ParameterError
from meanmap.stats import DriftMonitor
from meanmap.stats.permutations import CentredGram, permuted_mmd
from meanmap.stats.samples import drift_pool, drift_start
from meanmap.stats.samples.drift_strata import Strata
from meanmap.stats.samples.run_length import limit_for, mean_run_length
from meanmap.stats.samples.subsets import among_subsets

KERNEL = mm.kernels.RBF(1.5)


def watched(runs, batches, *, reference=200, size=20, **settings):
    """Monitors of data that do not drift, one for each run."""
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        monitor = DriftMonitor.of(rng.normal(size=(reference, 2)), KERNEL, rng=seed, **settings)
        for _ in range(batches):
            monitor = monitor.step(rng.normal(size=(size, 2)))
        yield monitor


def test_pvalues_are_uniform_and_independent():
    """Thresholds that sound data exceed once in a thousand: uniformity by Kolmogorov and Smirnov, and correlation."""
    p = np.array([monitor.pvalues for monitor in watched(4, 60, n_permutations=99, reference=60)])
    assert kstest(p.ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(p[:, 1:].ravel(), p[:, :-1].ravel())[0, 1]) < 3.3 / np.sqrt(p[:, 1:].size)


def drawn(kind, n, rng):
    """n points of a law that does not change: with ties, labels, both, or wild."""
    numbers = rng.integers(3, size=n).astype(float)
    labels = rng.choice(["a", "b", "c", "rare"], size=n, p=[0.6, 0.25, 0.1, 0.05])
    if kind == "mixed":
        return {"count": numbers, "label": labels, "size": rng.lognormal(sigma=2.0, size=n)}
    return {"ties": numbers, "labels": labels, "heavy tails": rng.standard_cauchy(size=(n, 2))}[kind]


KINDS, SIZES = ("ties", "labels", "mixed", "heavy tails"), (2, 7, 45, 3)


def levels(kind, trials, first=0):
    """How often each of four batches of unequal sizes is rejected at .05, at .2 and at .01, (3, 4)."""
    p = []
    for seed in range(first, first + trials):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        monitor = DriftMonitor.of(drawn(kind, 60, rng), n_permutations=99, rng=seed)
        for size in SIZES:
            monitor = monitor.step(drawn(kind, size, rng))
        p.append(monitor.pvalues)
    return np.sum(np.array(p) <= np.array([0.05, 0.2, 0.01])[:, None, None], axis=1)


def test_level_of_unequal_batches():
    """All 4 × 4 batches of one short run together: p-values of a run are independent. It fails once in 10⁵."""
    found = sum(levels(kind, 12)[1].sum() for kind in KINDS)
    assert binomtest(int(found), 12 * 16, 0.2).pvalue > 1e-5, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_level_of_unequal_batches_at_length(kind):
    """1000 data sets: each level of each batch inside the bounds that all twelve of a kind leave once in a hundred."""
    found = levels(kind, 1000, first=10_000)
    for rate, counts in zip((0.05, 0.2, 0.01), found, strict=True):
        low, high = binom.interval(1 - 0.01 / found.size, 1000, rate)
        assert ((low <= counts) & (counts <= high)).all(), found.tolist()
    print(kind, found.tolist())


@pytest.mark.slow
def test_false_alarms_over_a_thousand_batches():
    """50 runs of 1000 batches. The promise is at most 10 alarms in each on average, and what is so many expected is not
    far from it. That p-values of one run share a reference does not show: their means scatter as independent ones do.
    """
    runs = list(watched(50, 1000, run_length=100, n_permutations=199))
    counts = np.array([len(monitor.alarms) for monitor in runs])
    error = counts.std() / np.sqrt(len(counts))
    assert 9.5 - 3 * error < counts.mean() < 10 + 3 * error
    p = np.array([monitor.pvalues for monitor in runs])
    assert kstest(p.ravel(), "uniform").pvalue > 1e-3
    scatter = 12 * 1000 * np.sum((p.mean(1) - 0.5) ** 2)
    low, high = chi2.ppf([5e-4, 1 - 5e-4], len(p))
    assert low < scatter < high


def of_all_kinds(rng, n):
    """Rows of usual, skewed and rare numbers, labels and gaps."""
    load = rng.normal(size=n)
    table = {
        "load": load,
        "heat": 0.6 * load + 0.8 * rng.normal(size=n),
        "amount": np.exp(3 + 1.2 * rng.normal(size=n)),
    }
    table |= {"count": rng.poisson(3, n).astype(float), "ok": rng.random(n) < 0.1}
    table["spent"] = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(20.0, n))
    site = rng.choice(list("abcde"), n, p=[0.5, 0.25, 0.15, 0.08, 0.02])
    table["site"] = np.where(rng.random(n) < 0.02, None, site)
    table["heat"][rng.random(n) < 0.1] = np.nan
    return table


@pytest.mark.slow
def test_false_alarms_of_all_rules_together():
    """60 streams of 40 batches with columns of all kinds, and all rules for alarms: at most 2 alarms in each on
    average, at a run length of 20.
    """
    counts = []
    for seed in range(60):
        rng = np.random.default_rng([18_200_100, seed])
        monitor = DriftMonitor.of(of_all_kinds(rng, 600), run_length=20, missing="drop", rng=seed)
        for _ in range(40):
            monitor = monitor.step(of_all_kinds(rng, 60))
        counts.append(len(monitor.alarms))
    assert np.mean(counts) < 2 + 3 * np.std(counts) / np.sqrt(len(counts)), counts


@pytest.mark.slow
def test_against_a_reference_that_stays_the_promise_breaks():
    """Why the pool is renewed: with one reference behind all tests a run's mean p-value scatters three times too
    large, although each single p-value is uniform.
    """
    means = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        fresh = DriftMonitor.of(rng.normal(size=(200, 2)), KERNEL, n_permutations=99, rng=seed)
        p = []
        for _ in range(200):
            fresh = DriftMonitor(**{**vars(fresh.step(rng.normal(size=(20, 2)))), "pool": fresh.pool})
            p.append(fresh.pvalues[-1])
        means.append(np.mean(p))
    scatter = 12 * 200 * np.sum((np.array(means) - 0.5) ** 2)
    assert scatter > chi2.ppf(1 - 1e-6, 40)


@pytest.mark.parametrize("run_length", [20, 300])
def test_run_lengths_are_those_of_simulated_charts(run_length):
    """Of 2000 charts of standard normals, within four standard errors; and alarms in the first few batches, with every
    chart started again after each, are at most as many as promised.
    """
    limit = limit_for(run_length)
    assert mean_run_length(limit, 30) == pytest.approx(run_length, rel=1e-6)
    rng = np.random.default_rng(0)
    s, alarms, first = np.zeros(2000), np.zeros(2000), np.zeros(2000)
    for t in range(1, 12 * run_length):
        s = np.maximum(0, s + rng.normal(size=2000) - 0.5)
        first[(first == 0) & (s > limit)] = t
        alarms += s > limit
        s[s > limit] = 0
        if t in (run_length // 4, run_length, 4 * run_length):
            assert alarms.mean() < t / run_length + 4 * alarms.std() / np.sqrt(2000)
        if (first > 0).all() and t > 4 * run_length:
            break
    assert abs(first.mean() - run_length) < 4 * first.std() / np.sqrt(2000)


@pytest.mark.parametrize("run_length", [20, 300])
def test_single_batches_and_evidence_together_raise_as_few_alarms_as_promised(run_length):
    """Of 2000 charts of uniform p-values, within four standard errors, and more than half of what is allowed."""
    monitor = DriftMonitor.of(np.random.default_rng(0).normal(size=(60, 1)), KERNEL, run_length=run_length, rng=0)
    assert monitor.pvalue_limit == 1 / (2 * run_length)
    rng, batches = np.random.default_rng(3), 4 * run_length
    s, alarms = np.zeros(2000), np.zeros(2000)
    for _ in range(batches):
        p = rng.random(2000)
        s = np.maximum(0, s - ndtri(p) - 0.5)
        raised = (s > monitor.limit) | (p <= monitor.pvalue_limit)
        alarms += raised
        s[raised] = 0
    error = alarms.std() / np.sqrt(2000)
    assert batches / run_length / 2 < alarms.mean() < batches / run_length + 4 * error


def test_what_one_batch_shows_clearly_raises_an_alarm_at_once():
    """It took up to three batches: evidence alone needs a p-value of 2e-10 in one of them."""
    rng = np.random.default_rng(20)

    def draw(n, together=0.95, label=0.0, shift=0.0):
        noise = rng.normal(size=(n, 2))
        load = together * noise[:, 0] + np.sqrt(1 - together**2) * noise[:, 1]
        site = np.where(rng.random(n) < label, "new", np.where(rng.random(n) < 0.4, "a", "b"))
        return {"temp": noise[:, 0], "load": load, "site": site, "level": rng.normal(shift, 1, n)}

    monitor = DriftMonitor.of(draw(4000), rng=0)
    assert not monitor.step(draw(1000)).alarm
    for drifted in ({"together": 0.0}, {"label": 0.03}, {"shift": 0.3}):
        after = monitor.step(draw(1000, **drifted))
        assert after.alarms == (1,)


def test_a_batch_that_ranks_first_is_ranked_again_and_p_values_stay_valid():
    """With 19 subsets and a run length of 100, of batches that are exchangeable with the pool."""
    small, first = 0, 0
    rng = np.random.default_rng(21)
    monitor = DriftMonitor.of(rng.normal(size=(60, 1)), KERNEL, n_permutations=19, run_length=100, rng=0)
    for _ in range(4000):
        monitor = monitor.step(rng.normal(size=(5, 1)))
        small += monitor.pvalues[-1] <= 0.01
        first += monitor.pvalues[-1] < 0.05
    assert 0 < small <= binom.ppf(1 - 1e-5, 4000, 0.01)
    assert first <= binom.ppf(1 - 1e-5, 4000, 0.05)


def test_the_statistic_is_that_of_the_two_sample_test():
    """On the kernel ⟨φ(x), φ(y)⟩ of its features: MMD² without pairs of a point with itself."""
    rng = np.random.default_rng(0)
    monitor = DriftMonitor.of(rng.normal(size=(80, 2)), KERNEL, n_permutations=19, rng=0)
    batch = rng.normal(size=(12, 2))
    phi = np.concatenate([monitor.pool, monitor.features(batch)])
    asked = monitor.mean_squares, monitor.n_permutations, np.random.default_rng(1)
    found = among_subsets(monitor.features, phi, 12, *asked).values
    subset = np.random.default_rng(1).choice(len(phi), 12, replace=False, shuffle=False)
    assert len(found) == 20
    for statistic, members in ((found[0], np.arange(len(phi) - 12, len(phi))), (found[1], subset)):
        z = np.isin(np.arange(len(phi)), members).astype(np.float32)[None]
        order = np.argsort(-z[0], kind="stable")
        gram = CentredGram((phi @ phi.T)[np.ix_(order, order)])
        assert statistic == pytest.approx(
            permuted_mmd(gram, z[:, order], 12, unbiased=True).values[0], rel=1e-4, abs=1e-7
        )


def test_drift_is_seen_and_monitoring_goes_on(tmp_path):
    """In columns by name, whatever the frame; a monitor that was saved in between says the same."""
    rng = np.random.default_rng(0)

    def table(rows, shift, frame):
        columns = {"a": rng.normal(size=rows), "b": rng.normal(shift, 1.0, size=rows)}
        return frame(columns) if frame is not polars.DataFrame else frame(columns).select("b", "a")

    monitor = DriftMonitor.of(table(300, 0.0, pandas.DataFrame), n_permutations=199, run_length=200, rng=0)
    assert "after 0 batches; alarms at: none" in str(monitor)
    before = monitor
    batches = [table(25, 1.0 * (t >= 10), (dict, pandas.DataFrame, polars.DataFrame)[t % 3]) for t in range(16)]
    for t, batch in enumerate(batches):
        monitor = monitor.step(batch)
        if t == 7:
            mm.save(monitor, tmp_path / "monitor.meanmap")
    assert monitor.alarms
    assert 11 <= monitor.alarms[0] <= 14
    first = monitor.alarms[0] - 1
    assert monitor.exceeded(monitor.evidence[first], monitor.pvalues[first])
    assert not len(before.pvalues)
    resumed = mm.load(tmp_path / "monitor.meanmap")
    for batch in batches[8:]:
        resumed = resumed.step(batch)
    assert np.array_equal(resumed.pvalues, monitor.pvalues)
    assert resumed.alarms == monitor.alarms
    assert resumed.alarm == (resumed.alarms[-1] == 16)
    axes = monitor.plot()
    assert len(axes.lines) == 4  # evidence of all columns, of single ones, and limits


def test_a_long_reference_is_not_held_whole(monkeypatch):
    """Features of 100,000 rows took 2.3 GiB."""
    monkeypatch.setattr(drift_start, "MOST_KEPT", 50)
    monkeypatch.setattr(drift_pool, "GROWS_TO", 60)
    x = np.random.default_rng(0).normal(size=(300, 2))
    monitor = DriftMonitor.of(x, KERNEL, n_permutations=99, rng=0)
    assert len(monitor.pool) == 50
    monitor = monitor.step(x[:4])
    assert len(monitor.pool) == 54
    assert len(monitor.step(x[:20]).pool) == 60


def test_a_shift_of_one_column_of_four_is_found_at_once():
    # Found in the first batch in 2 of 10 runs, and in none of four batches in 2, when only kernels of all columns were
    # compared, and each batch replaced a quarter of the pool.
    found = []
    for seed in range(4):
        rng = np.random.default_rng([41, seed])

        def rows(n, shift, rng=rng):
            numbers = {name: rng.normal(mean, 1, n) for name, mean in zip("abc", (shift, 0, 0), strict=True)}
            return {**numbers, "site": rng.choice(["north", "south", "east"], n)}

        monitor = DriftMonitor.of(rows(400, 0.0), rng=seed)
        for shift in (0.0, 0.0, 0.0, 0.7):
            monitor = monitor.step(rows(100, shift))
        found.append(monitor.alarms == (4,))
    assert sum(found) >= 3


def test_bad_input():
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="run_length is 1; expected a number from 4"):
        DriftMonitor.of(rng.normal(size=50), run_length=1)
    with pytest.raises(ParameterError, match="at least 19"):
        DriftMonitor.of(rng.normal(size=50), n_permutations=3)
    with pytest.raises(ValueError, match="has 30 points"):
        DriftMonitor.of(rng.normal(size=30))
    monitor = DriftMonitor.of({"a": rng.normal(size=50)}, KERNEL, rng=0)
    with pytest.raises(ColumnError, match="batch has no column 'a'"):
        monitor.step({"b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="batch has 1 "):
        monitor.step({"a": [1.0]})
    with pytest.raises(ValueError, match="not finite"):
        monitor.step({"a": [1.0, np.nan]})


@pytest.mark.parametrize("frame", [dict, pandas.DataFrame])
def test_the_order_of_columns_does_not_matter(frame):
    """Columns that are not in alphabetical order were once sorted in the reference and not in batches."""
    rng = np.random.default_rng(3)

    def table(rows):
        return frame({"z": rng.normal(size=rows), "a": rng.normal(5, 3, size=rows)})

    monitor = DriftMonitor.of(table(200), n_permutations=99, rng=0)
    for t in range(12):
        batch = table(20)
        monitor = monitor.step(batch if t % 2 else frame({"a": batch["a"], "z": batch["z"]}))
    assert not monitor.alarms
    assert min(monitor.pvalues) > 1e-3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("labels", [False, True])
def test_a_rare_value_of_the_reference_is_no_hindrance(seed, labels):
    """The rows that choose the kernel may hold one value only."""
    rng = np.random.default_rng(seed)
    rare = (rng.random(200) < 0.005).astype(float)
    reference = {"a": np.where(rare > 0, "yes", "no")} if labels else rare
    monitor = DriftMonitor.of(reference, n_permutations=199, rng=seed)
    for _ in range(3):
        monitor = monitor.step({"a": ["yes", "no"] * 10} if labels else np.arange(20) % 2)
    assert monitor.alarms


def test_units_of_columns_do_not_matter():
    rng = np.random.default_rng(1)
    reference, batch = rng.normal(size=(100, 2)), rng.normal([1.0, 0.0], 1.0, size=(30, 2))
    plain, other = (
        DriftMonitor.of(reference * unit, n_permutations=99, rng=0).step(batch * unit) for unit in (1.0, [1, 2.0**20])
    )
    assert plain.pvalues[0] == other.pvalues[0] < 0.05
    raw = DriftMonitor.of(reference * [1, 2.0**20], n_permutations=99, rng=0, scale=False)
    assert raw.step(batch * [1, 2.0**20]).pvalues[0] > 0.05


def test_what_is_odd_about_a_batch_is_noted():
    rng = np.random.default_rng(2)
    reference = {"age": rng.normal(40, 5, 60), "town": rng.choice(["a", "b"], 60), "site": np.ones(60)}
    monitor = DriftMonitor.of(reference, n_permutations=19, rng=0)
    said = "column 'site' has the same value in all 15 rows that kernels are chosen from: distances"
    said += " from it are in the column's own unit."
    assert monitor.notes == (said,)
    assert not DriftMonitor.of(reference | {"site": ["bar"] * 60}, n_permutations=19, rng=0).notes
    later = monitor.step({"town": ["a", "q"], "site": [1, 1], "age": [40, 9e9], "new": [0, 0]})
    assert later.notes == (
        "batch['age'] has 1 value far outside 27.7927 to 51.8744, such as 9e+09.",
        "batch['town'] has 1 label not in the reference, such as 'q'.",
        "batch has the column 'new', which the reference lacks: it is not watched.",
    )
    assert "note: batch['age']" in str(later)
    assert not later.step({"town": ["a", "b"], "site": [1, 1], "age": [40, 41]}).notes


def test_a_reference_that_is_a_series_is_told_of():
    """Batches of neighbouring rows of a series differ by more than chance."""
    x = np.random.default_rng(8).normal(size=400)
    walk = np.convolve(np.random.default_rng(9).normal(size=420), np.ones(21), "valid")
    (note,) = DriftMonitor.of(walk, rng=0).notes
    assert note.startswith("consecutive rows of the reference are alike (they correlate by 0.9")
    assert "false alarms are too frequent. Monitor the residuals of structure.prewhiten" in note
    assert "clusters=" not in note
    assert not DriftMonitor.of(x, rng=0).notes


def test_columns_of_a_batch_are_read_with_the_missing_values_of_the_monitor():
    rng = np.random.default_rng(8)
    reference = pandas.DataFrame({"a": rng.normal(size=60), "b": rng.choice(list("xy"), 60)})
    batch = reference.iloc[:20].copy()
    batch.loc[3, "b"] = None
    kept, told = DriftMonitor.of(reference, missing="drop", rng=0).in_columns(batch)
    assert len(kept.columns["a"]) == 19
    assert "1 of 20 rows of batch was left out" in told[0]
    filled, _ = DriftMonitor.of(reference, missing="category", rng=0).in_columns(batch)
    assert len(filled.columns["b"]) == 20
    with pytest.raises(InputError, match="missing value"):
        DriftMonitor.of(reference, rng=0).in_columns(batch)


def test_points_that_are_all_different_leave_pvalues_uniform():
    """No two labels are alike, so that every subset has the same statistic: all ties, broken at random."""
    monitor = DriftMonitor.of([f"id {i}" for i in range(100)], n_permutations=99, rng=0)
    for t in range(30):
        monitor = monitor.step([f"new {t} {i}" for i in range(5)])
    assert kstest(monitor.pvalues, "uniform").pvalue > 1e-5


def test_a_margin_lets_harmless_change_pass():
    """A shift within the margin raises no alarm however many rows; one beyond it does at once; and it can be saved."""
    rng = np.random.default_rng(20)
    monitor = mm.DriftMonitor.of(rng.normal(size=(2000, 2)), margin=0.1, run_length=1000, rng=0)
    near = far = monitor
    for _ in range(12):
        near = near.step(rng.normal(0.02, 1.0, size=(1000, 2)))
    assert near.alarms == ()
    assert len(near.pool) == 0
    for _ in range(3):
        far = far.step(rng.normal(0.5, 1.0, size=(1000, 2)))
    assert far.alarms[0] == 1
    with pytest.raises(ParameterError, match="positive number of standard deviations"):
        mm.DriftMonitor.of(rng.normal(size=(100, 2)), margin=0)
    with pytest.raises(KindError, match="a numeric column that varies"):
        mm.DriftMonitor.of(["a", "b"] * 50, margin=0.1)


def test_batches_too_small_for_a_margin_are_told_of():
    rng = np.random.default_rng(0)
    monitor = mm.DriftMonitor.of(rng.normal(size=(300, 2)), margin=0.1, rng=0)
    told = (
        "batch has 19 rows: p-values with a margin assume approximately normal means, and need batches of 20 rows or "
        "more. Join some."
    )
    small, enough = rng.normal(size=(19, 2)), rng.normal(size=(20, 2))
    assert monitor.step(small).notes == monitor.step(monitor.state(small)).notes[:1] == (told,)
    assert monitor.step(enough).notes == ()
    assert [note.split(":")[0] for note in monitor.step(monitor.state(enough)).notes] == [
        "a state is compared in all columns together"
    ]
    assert mm.DriftMonitor.of(rng.normal(size=(300, 2)), rng=0).step(small).notes == ()


def test_a_monitor_with_a_margin_is_saved(tmp_path):
    rng = np.random.default_rng(21)
    monitor = mm.DriftMonitor.of(rng.normal(size=(300, 2)), margin=0.1, rng=0)
    mm.save(monitor, tmp_path / "monitor")
    batch = rng.normal(0.8, 1.0, size=(60, 2))
    assert mm.load(tmp_path / "monitor").step(batch).pvalues == monitor.step(batch).pvalues
    assert 0 < monitor.step(batch).pvalues[0] < 0.05


@pytest.mark.slow
def test_a_margin_keeps_its_run_length():
    """Batches at the margin itself, 100 monitors of 100 batches: no more alarms than without drift."""
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng([22, seed])
        monitor = mm.DriftMonitor.of(
            rng.normal(size=(1000, 1)), mm.kernels.RBF(1.0), margin=0.3, run_length=50, rng=seed
        )
        for _ in range(100):
            monitor = monitor.step(rng.normal(0.3, 1.0, size=(50, 1)))
        alarms += len(monitor.alarms)
    print(f"alarms at the margin: {alarms}, at most 200 expected")
    assert alarms <= 200 + 3 * np.sqrt(200)


def readings(n, rng, night=0.5, drift=0.0):
    """A machine reads higher at night; `night` is the share of the rows from then."""
    late = rng.random(n) < night
    return pandas.DataFrame(
        {
            "reading": 3.0 * late + rng.normal(size=n) + drift,
            "other": rng.normal(size=n),
            "shift": np.where(late, "night", "day"),
        }
    )


def test_within_strata_another_mix_is_no_drift():
    rng = np.random.default_rng(0)
    settings = {"run_length": 200, "n_permutations": 199, "rng": 0}
    reference = readings(600, rng)
    plain = mm.DriftMonitor.of(reference.drop(columns="shift"), **settings)
    within = mm.DriftMonitor.of(reference, within="shift", **settings)
    for _ in range(12):
        batch = readings(30, rng, night=0.9)
        plain, within = plain.step(batch.drop(columns="shift")), within.step(batch)
    assert plain.alarms
    assert not within.alarms
    for _ in range(12):
        within = within.step(readings(30, rng, night=0.9, drift=1.5))
    assert within.alarms
    batch = readings(30, rng)
    batch.loc[:4, "shift"] = "noon"
    assert "5 of 30 rows are in strata that the reference lacks: they are ignored." in within.step(batch).notes
    with pytest.raises(InputError, match="no row of the batch is in a stratum"):
        within.step(batch.assign(shift="noon"))
    with pytest.raises(ColumnError, match="within names 'hour'"):
        mm.DriftMonitor.of(reference, within="hour")
    with pytest.raises(ParameterError, match="pass only one of within= and margin="):
        mm.DriftMonitor.of(reference, within="shift", margin=0.1)


def test_strata_of_several_columns_are_told_apart_whatever_is_in_their_names():
    words = [("a, b", "c"), ("a", "b, c")] * 20
    left, right = map(list, zip(*words, strict=True))
    table = {"left": left, "right": right, "line": np.repeat([1, 2], 20), "value": np.arange(40.0)}
    strata = Strata.of(table, ["left", "right", "line"])[1]
    assert len(strata.known) == 4
    codes, told = strata.read({**table, "line": table["line"].astype(float)})
    assert codes.tolist() == strata.codes.tolist()
    assert told == ()


def test_pvalues_within_strata_are_uniform():
    """Ties too: of 400 p-values each tenth holds its share."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        monitor = mm.DriftMonitor.of(readings(80, rng).round(1), within="shift", n_permutations=19, rng=seed)
        for t in range(40):
            monitor = monitor.step(readings(int(rng.integers(3, 12)), rng, night=t / 40).round(1))
        found.extend(monitor.pvalues.tolist())
    assert kstest(found, "uniform").pvalue > 1e-4


def test_states_of_several_machines_are_one_batch(tmp_path):
    """Parts in any order, on Dask and in files: one p-value, that of the rows together but for rounding."""
    import dask.array as da
    import polars

    rng = np.random.default_rng(3)
    monitor = mm.DriftMonitor.of(rng.normal(size=(300, 2)), margin=0.1, rng=0)
    batch = rng.normal(0.1, 1.0, size=(900, 2))
    first, second, third = (monitor.state(part) for part in np.split(batch, [1, 500]))
    state = mm.load(mm.save(third, tmp_path / "state")).merge(first).merge(second)
    after = monitor.step(state)
    assert after.pvalues[0] == pytest.approx(monitor.step(batch).pvalues[0], rel=1e-3)
    assert monitor.step(da.from_array(batch, (250, 2))).pvalues[0] == after.pvalues[0]
    polars.DataFrame(batch, schema=["x0", "x1"]).write_parquet(tmp_path / "batch.parquet")
    assert monitor.step(tmp_path / "batch.parquet").pvalues[0] == after.pvalues[0]
    with pytest.raises(ParameterError, match="the state belongs to another monitor"):
        mm.DriftMonitor.of(rng.normal(size=(300, 2)), margin=0.1, rng=1).step(state)
    with pytest.raises(ParameterError, match="a monitor without margin= ranks the rows among those of its pool"):
        mm.DriftMonitor.of(rng.normal(size=(300, 2)), rng=1).state(batch)


def test_zones_of_batches_are_told_in_words():
    times = pandas.Series(pandas.date_range("2024-01-01", periods=60, freq="7h"))
    monitor = mm.DriftMonitor.of({"t": times}, n_permutations=19, rng=0)
    with pytest.raises(
        KindError, match=r"for example as the table before has after .dt.tz_localize\('Europe/Berlin'\)"
    ):
        monitor.step({"t": times.dt.tz_localize("UTC")})


def test_batches_that_raised_an_alarm_are_not_compared_with():
    """They entered the pool, so that clean batches after a fault raised alarms."""
    later = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        monitor = DriftMonitor.of(rng.normal(size=(2000, 2)), rng=seed)
        for t in range(12):
            broken = np.array([1.8, 1.0]) if t in (1, 2) else 1.0
            monitor = monitor.step(rng.normal(size=(200, 2)) * broken + 6.0 * (t in (1, 2)) * np.eye(2)[0])
        assert monitor.alarms == (2, 3)
        later.extend(monitor.pvalues[3:])
    assert kstest(later, "uniform").pvalue > 1e-3


def test_the_warning_of_serial_dependence_stays_with_the_monitor(tmp_path):
    rng = np.random.default_rng(18_200_011)
    series = np.cumsum(rng.normal(size=(620, 2)), axis=0)
    table = {"a": series[:, 0], "b": series[:, 1]}
    monitor = mm.DriftMonitor.of({name: part[:500] for name, part in table.items()}, n_permutations=99, rng=0)
    for end in (560, 620):
        monitor = monitor.step({name: part[end - 60 : end] for name, part in table.items()})
    mm.save(monitor, tmp_path / "kept.monitor")
    for each in (monitor, mm.load(tmp_path / "kept.monitor")):
        assert str(each).count("consecutive rows of the reference are alike") == 1
        assert sum("consecutive rows" in note for note in each.to_dict()["notes"]) == 1
        each.page(tmp_path / "page.html")
        assert "consecutive rows of the reference" in (tmp_path / "page.html").read_text()
    assert not any("consecutive rows of the reference" in note for note in monitor.notes)
