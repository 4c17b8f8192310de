"""The benchmark harness measures what it says, and its declarations hold together."""

import numpy as np
import pytest

from benchmarks import harness, peers, posteriors, rows, speed, table
from benchmarks.cases import all_cases
from benchmarks.harness import Case, Row, Side, growth, measure
from benchmarks.posterior_tables import Belief, Beside
from meanmap.core.errors import ParameterError


class Clock:
    """A clock that moves only when a call says that it took time."""

    def __init__(self):
        self.now = 0.0

    def process_time(self):
        return self.now

    def taking(self, seconds):
        def call(n):
            self.now += seconds * n
            return np.zeros(1)

        return call


def toy(clock):
    return Case(
        name="toy",
        title="Waiting.",
        sizes=(1, 2),
        setup=lambda n: n,
        ours=clock.taking(0.005),
        peers={"slow": clock.taking(0.015)},
    )


def test_sides_alternate(monkeypatch):
    calls, clock = [], Clock()
    monkeypatch.setattr(harness, "time", clock)

    def record(name):
        def call(n):
            calls.append(name)
            clock.now += harness.SHORTEST_SAMPLE
            return np.ones(1)

        return call

    case = Case("order", "", (1,), lambda n: n, record("ours"), {"a": record("a"), "b": record("b")})
    (row,) = measure(case, seconds=0.0)
    rounds = len(row.sides["ours"].samples)
    assert rounds == harness.FEWEST_ROUNDS
    assert calls == ["ours", "a", "b"] * (rounds + 2)
    assert row.differences == {"a": 0.0, "b": 0.0}


def test_a_ratio_is_peer_over_ours_within_rounds():
    row = Row(1, {"ours": Side(9, [1, 1, 2]), "a": Side(9, [3, 2, 2])}, {})
    assert row.ratio("a") == (1.5, 2.0, 2.5)


def test_measured_ratios_and_growth_of_known_ones(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(harness, "time", clock)
    rows = measure(toy(clock), seconds=0.1)
    assert [row.n for row in rows] == [1, 2]
    for row in rows:
        assert row.sides["ours"].median == pytest.approx(0.005 * row.n)
        assert row.sides["ours"].first == pytest.approx(0.005 * row.n)
        assert row.ratio("slow") == pytest.approx((3.0, 3.0, 3.0))
    assert growth(rows, "slow") == pytest.approx(1.0)


def test_growth_is_the_exponent_within_a_round():
    """The machine is ten times slower in the second round; that is no growth."""
    rows = [Row(n, {"ours": Side(1.0, [n**1.5, 10 * n**1.5, n**1.5])}, {}) for n in (10, 100, 1000)]
    assert growth(rows, "ours") == pytest.approx(1.5)
    assert growth(rows[:1], "ours") is None


def test_a_section_shows_times_and_ratios(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(harness, "time", clock)
    monkeypatch.setattr(speed, "all_cases", lambda: {"toy": toy(clock)})
    monkeypatch.setitem(speed.HEADINGS, "toy", "How long waiting takes")
    text = speed.page(speed.measure(["toy"]))
    assert "How long waiting takes\n~~~~" in text
    assert "Waiting. (``toy``)" in text
    assert "   * - 2\n     - 10 ms\n     - 10 ms\n     - 30 ms\n     - 3.00 (3.00 to 3.00)\n" in text
    assert "Time grows as: ours n^1.0, slow n^1.0." in text


def test_the_time_of_peers_in_other_processes_counts(monkeypatch):
    spent = iter([0.0, 2.0, 2.0, 2.0])
    monkeypatch.setattr(peers, "spent", lambda: next(spent))
    monkeypatch.setattr(harness, "time", Clock())
    assert [harness._timed(lambda data: np.ones(1), None)[0] for _ in range(2)] == [2.0, 0.0]


def test_durations_have_a_unit_that_fits():
    assert [table.duration(value) for value in (2.5, 0.0321, 4.2e-5, 0.9999)] == ["2.5 s", "32 ms", "42 µs", "1.0 s"]


def test_an_unknown_case_is_named(capsys):
    assert speed.main(["gramm"]) == 2
    assert "No benchmark is called gramm. There are:" in capsys.readouterr().err


# These compile more than a few seconds' worth, and their parts are tested where they live.
COSTLY = {
    "discrete-grid",
    "ep-logistic",
    "field-sweep",
    "learned-kernel",
    "learned-messages",
    "logistic-regression",
    "pseudolikelihood",
    "tree-fit",
    "tree-query",
    "tree-two-pass",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in COSTLY else []) for name in all_cases()]
)
def test_sides_of_a_case_compute_the_same(name):
    """At a tenth of the smallest size, so that this stays a test and not a benchmark."""
    case = all_cases()[name]
    data = case.setup(max(50, case.sizes[0] // 10))
    ours = case.ours(data)
    assert list(case.sizes) == sorted(case.sizes)
    close = 1e-6 if getattr(ours, "dtype", None) == np.float32 else 1e-8
    for peer in case.peers.values():
        assert case.difference(ours, peer(data)) < close


def test_the_table_of_rows():
    text = rows.page({"embed": [[1.0, 2], "refused: x has 3 points"]})
    assert "   * - ``embed``\n     - 1.0 s, 2 MiB\n     - refused: x has 3 points\n" in text
    assert {"two_sample_test", "pc", "KernelGraph.fit", "DriftMonitor.of"} <= set(rows.CALLS)
    assert np.abs(np.corrcoef(rows.data(500).T)[0, 1]) > 0.5


def test_a_way_without_an_answer_is_told_and_the_others_go_on(monkeypatch):
    def improper():
        raise ParameterError("this Normal is improper")

    one = np.ones(1)
    ways = {"ready": lambda: Belief(one, one, 0.25, True), "learned": improper}
    judge = {"mean": one, "sd": one, "evidence": 0.0, "skewness": one, "sampler's sd": one, "sd error": one}
    monkeypatch.setitem(posteriors.TABLES, "toy", lambda: Beside(5, 1, ways, None))
    monkeypatch.setattr(posteriors, "exact", lambda _: judge | {"evidence error": 0.1, "seconds": 1.0})
    found = posteriors.measured("toy")
    assert found["ways"]["ready"]["evidence"] == 0.25
    assert found["ways"]["learned"]["failed"] == "this Normal is improper"
    assert "     - learned (no answer)\n     - –\n" in posteriors.page({"toy": found})


@pytest.mark.slow
def test_calls_of_many_rows_are_measured_or_given_up():
    (seconds, mib), refused = rows.measured("embeddings.bayes_rule", 60, 8, (1_000, 6_001))
    assert seconds > 0
    assert mib >= 0
    assert refused.startswith("refused: x has 6001 points; the Bayes rule is made on")
    assert rows.measured("k_sample_test", 1, 8, (10_000, 10_000)) == ["more than 1 s"] * 2
