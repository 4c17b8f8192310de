"""Bets: what they are worth under the hypothesis at any time, and how soon they are won."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, ShapeError
from meanmap.stats import IndependenceBet, TwoSampleBet
from meanmap.stats.anytime.wager import GROUP, MAPS, SHARES, TILTS, Wager

FAILURE_RATE = 1e-5


def test_wealth_by_hand():
    """Each bet placed with what was known before it."""
    rng = np.random.default_rng(0)
    first, later = rng.normal(size=(6, 3)), rng.normal(size=(2, 4, 3))
    wager = Wager.begin(first)
    total, values = first.sum(axis=0), list(first @ first.sum(axis=0) / np.linalg.norm(first.sum(axis=0)))
    money = np.ones(len(SHARES))
    for batch in later:
        scale = np.sqrt(np.mean(np.square(values)))
        along = [batch[i] @ total / np.linalg.norm(total) for i in range(4)]
        for value in along:
            money *= 1 + SHARES * np.clip(value / (2 * scale), -1, 1)
        values += along
        total = total + batch.sum(axis=0)
        wager = wager.after(batch)
    assert float(wager.log_evalue) == pytest.approx(np.log(money.mean()))


def test_the_mean_wealth_over_all_signs_is_one():
    """Enumerated: under the hypothesis every vector has either sign."""
    vectors = np.random.default_rng(1).normal(size=(8, 1, 2))
    signs = 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1) - 1
    wager = Wager.begin(np.broadcast_to([[[1.0, 0.5]]], (256, 1, 2)))
    for t in range(8):
        wager = wager.after(signs[:, t, None, None] * vectors[t])
    assert np.mean(np.exp(wager.log_evalue)) == pytest.approx(1.0)


def test_wealth_of_pairs_by_hand():
    """Two batches of one and two groups, every exchange one by one."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    later = [(rng.normal(size=(g, GROUP, 2)), rng.normal(size=(g, GROUP, 3))) for g in (1, 2)]
    wager = Wager.begin_with_pairs(x, y)
    u, v = x - x.mean(axis=0), y - y.mean(axis=0)
    total = sum(np.outer(a, b) for a, b in zip(u, v, strict=True))
    scores = [a @ total @ b / np.linalg.norm(total) for a in u for b in v]
    variances, money = [(GROUP - 1) * np.mean(np.square(scores))], np.ones(len(TILTS))
    for xs, ys in later:
        direction, scale = total / np.linalg.norm(total), np.sqrt(np.mean(variances))
        for a, b in zip(xs, ys, strict=True):
            sums = np.array([sum(a[i] @ direction @ b[order[i]] for i in range(GROUP)) for order in MAPS])
            variances.append(sums.var())
            money *= np.exp(TILTS * sums[0] / scale) / np.exp(TILTS[:, None] * sums / scale).mean(axis=1)
            total = total + (a - a.mean(axis=0)).T @ (b - b.mean(axis=0))
        wager = wager.after_pairs(xs, ys)
    assert float(wager.log_evalue) == pytest.approx(np.log(money.mean()))


def test_the_mean_wealth_over_all_exchanges_is_one():
    """Enumerated over 42 x 42 exchanges in two groups, one after the other."""
    rng = np.random.default_rng(3)
    wager = Wager.begin_with_pairs(*rng.normal(size=(2, 9, 2)))
    x, y = rng.normal(size=(2, 2, GROUP, 2))
    found = []
    for first in MAPS:
        after = wager.after_pairs(x[:1], y[:1, first])
        found += [float(after.after_pairs(x[1:], y[1:, second]).log_evalue) for second in MAPS]
    assert np.mean(np.exp(found)) == pytest.approx(1.0)
    assert len({tuple(order) for order in MAPS}) == 42
    assert MAPS[0].tolist() == list(range(GROUP))


def test_false_alarms_of_independence_over_all_looks():
    """200 streams of pairs with heavy tails, looked at after every two groups."""
    alarms = 0
    for seed in range(200):
        x, y = np.random.default_rng([6, seed]).standard_cauchy((2, 260))
        features = [np.stack([np.sin(z), np.arctan(z)], axis=-1) for z in (x, y)]
        wager, top = Wager.begin_with_pairs(*(f[:8] for f in features)), 0.0
        for start in range(8, 260, 14):
            wager = wager.after_pairs(*(f[start : start + 14].reshape(2, GROUP, 2) for f in features))
            top = max(top, float(wager.log_evalue))
        alarms += top >= np.log(20)
    assert alarms <= scipy.stats.binom.ppf(1 - FAILURE_RATE, 200, 0.05)


def test_independence_stops_soon():
    """At most one and a half times as many pairs as the batch test needs for a power of .9, on average."""
    rows, stops = 62, []  # the batch test rejects 87 of 100 at 50 pairs, 89 at 60, 100 at 80
    for seed in range(15):
        rng = np.random.default_rng([8, seed])
        x = rng.normal(size=400)
        y = np.abs(x) + 0.7 * rng.normal(size=400)
        bet, used = IndependenceBet.of(x[:20], y[:20], rng=0), 20
        while not bet.reject() and used < 400:
            bet, used = bet.update(x[used : used + 5], y[used : used + 5]), used + 5
        stops.append(used)
    assert np.mean(stops) < 1.5 * rows


def streams(number, looks, seed, draw):
    """How many streams of pairs ever reach 20, looked at after every pair."""
    rng = np.random.default_rng(seed)
    frequencies = np.array([0.3, 0.7, 1.5])

    def vectors(size):
        x, y = draw(rng, (number, size))
        a, b = (
            np.concatenate([np.cos(z[..., None] * frequencies), np.sin(z[..., None] * frequencies)], -1) for z in (x, y)
        )
        return a - b

    wager, top = Wager.begin(vectors(5)), np.zeros(number)
    for _ in range(looks):
        wager = wager.after(vectors(1))
        top = np.maximum(top, wager.log_evalue)
    return int(np.sum(top >= np.log(20)))


def alike(rng, shape):
    return rng.standard_cauchy(shape), rng.standard_cauchy(shape)


def test_false_alarms_over_all_looks():
    assert streams(300, 300, 2, alike) <= scipy.stats.binom.ppf(1 - FAILURE_RATE, 300, 0.05)


@pytest.mark.slow
def test_false_alarms_over_ten_thousand_looks():
    found = streams(2000, 10_000, 3, alike)
    print(f"null streams that ever reject: {found} of 2000")
    assert found <= scipy.stats.binom.ppf(0.99, 2000, 0.05)


def test_it_stops_soon():
    """At most one and a half times as many rows as the batch test needs for a power of .9, on average."""
    shift, rows = 0.6, 120  # per sample: the batch test rejects 53 of 60 at 110 rows, 54 at 130
    seen = sum(
        mm.two_sample_test(*(rng.normal(m, 1.0, size=rows) for m in (0.0, shift)), n_permutations=99, rng=0).reject()
        for rng in map(np.random.default_rng, range(30))
    )
    stops = []
    for seed in range(20):
        rng = np.random.default_rng([4, seed])
        bet = TwoSampleBet.of(rng.normal(size=20), rng.normal(shift, 1.0, size=20), rng=0)
        used = 20
        while not bet.reject() and used < 400:
            bet, used = bet.update(rng.normal(size=5), rng.normal(shift, 1.0, size=5)), used + 5
        stops.append(used)
    print(f"power of the batch test {seen}/30 at {rows}; mean stop {np.mean(stops):.0f}")
    assert seen >= 20
    assert np.mean(stops) < 1.5 * rows


def test_independence():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 25))
    bets = {"independent": rng.normal(size=(40, 25)), "dependent": np.abs(x) + 0.3 * rng.normal(size=(40, 25))}
    found = {}
    for name, y in bets.items():
        bet = IndependenceBet.of(x[0], y[0], rng=0)
        for a, b in zip(x[1:], y[1:], strict=True):
            bet = bet.update(a, b)
        found[name] = bet
    assert found["dependent"].reject(0.001)
    assert not found["independent"].reject()
    assert found["dependent"].pvalue == pytest.approx(np.exp(-found["dependent"].log_evalues.max()))
    with pytest.raises(ShapeError, match="one y for each x"):
        bet.update(range(4), range(6))


def test_batches_of_tables_of_any_size(tmp_path):
    """Rows that have no partner yet wait for the next batch; the bet can be saved."""
    rng = np.random.default_rng(6)
    x = pd.DataFrame({"a": rng.normal(size=30), "b": rng.choice(["u", "v"], 30)})
    y = x.assign(a=x.a + 1.0)
    whole = TwoSampleBet.of(x[:10], y[:10], rng=0)
    parts = whole.update(x[10:17], y[10:12]).update(x[17:20], y[12:20])
    assert len(parts.left[0]) == len(parts.left[1]) == 0
    assert parts.wager.seen == whole.update(x[10:20], y[10:20]).wager.seen == 20
    mm.save(parts, tmp_path / "bet")
    assert mm.load(tmp_path / "bet").update(x[20:], y[20:]).evalue == parts.update(x[20:], y[20:]).evalue
    with pytest.raises(ColumnError, match="no column 'a'"):
        parts.update(x[["b"]], y)
    assert "e-value" in str(parts)


@pytest.mark.parametrize("bet", [TwoSampleBet, IndependenceBet])
def test_rows_with_missing_values_are_left_out_of_every_batch(bet):
    """Of pairs both rows, or the others would belong to wrong ones."""
    rng = np.random.default_rng(8)
    x, y = (pd.DataFrame({"a": rng.normal(size=40)}) for _ in "xy")
    holes = x.copy()
    holes.loc[[3, 30], "a"], whole = np.nan, np.setdiff1d(np.arange(40), [3, 30])
    first, later = whole[whole < 20], whole[whole >= 20]
    with pytest.warns(UserWarning, match=r"1 of 20 rows .* left out: a value is missing in"):
        found = bet.of(holes[:20], y[:20], missing="drop", rng=0).update(holes[20:], y[20:])
    rows = whole if bet is IndependenceBet else np.arange(40)
    others = rows[rows < 20], rows[rows >= 20]
    expected = bet.of(x.loc[first], y.loc[others[0]], rng=0).update(x.loc[later], y.loc[others[1]])
    np.testing.assert_allclose(found.log_evalues, expected.log_evalues, rtol=1e-9)


def test_evalues_of_the_drift_monitor():
    """A martingale of its p-values: small without drift, and large soon after one."""
    rng = np.random.default_rng(7)
    monitor = mm.DriftMonitor.of(rng.normal(size=400), rng=0)
    for _ in range(10):
        monitor = monitor.step(rng.normal(size=20))
    assert monitor.evalue < 20
    for _ in range(8):
        monitor = monitor.step(rng.normal(2.0, 1.0, size=20))
    assert monitor.evalue > 1000


@pytest.mark.filterwarnings("default")
def test_neighbouring_rows_that_are_alike_are_noted():
    """Rows of users in a row won 23 of 40 bets on nothing, without a word."""
    rng = np.random.default_rng(4)
    users = [np.repeat(rng.normal(size=12), 10) + 0.3 * rng.normal(size=120) for _ in range(2)]
    for bet in (TwoSampleBet, IndependenceBet):
        with pytest.warns(UserWarning, match="consecutive rows of x and y are alike .* Bet on one row of each user"):
            bet.of(*users, rng=0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bet.of(*rng.normal(size=(2, 120)), rng=0)


def test_a_two_sample_bet_that_rejects_names_the_function_that_compares_columns(tmp_path):
    rng = np.random.default_rng(18_200_008)
    apart = mm.stats.TwoSampleBet.of(rng.normal(size=40), rng.normal(9.0, 1.0, size=40), rng=0)
    assert "two_sample_effect" not in str(apart)  # the first batch is only learned from
    apart = apart.update(rng.normal(size=60), rng.normal(9.0, 1.0, size=60))
    assert str(apart).endswith("pass all rows to two_sample_effect.")
    apart.page(tmp_path / "bet.html")
    assert "two_sample_effect" in (tmp_path / "bet.html").read_text()
    x = rng.normal(size=300)
    alike = mm.stats.IndependenceBet.of(x[:100], x[:100], rng=0).update(x[100:], x[100:])
    assert alike.reject()
    assert "two_sample_effect" not in str(alike)
