"""What the tutorials say of their numbers is what the numbers say."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meanmap as mm

TUTORIALS = Path(__file__).parents[2] / "docs" / "examples" / "tutorials"


def cells(name: str, *titles: str) -> dict[str, Any]:
    """What the named cells of a tutorial leave behind, or all of them. The start always runs."""
    import matplotlib

    matplotlib.use("Agg")
    text = (TUTORIALS / f"{name}.py").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    title = None
    for cell in text.split("# %%\n"):
        heading = re.match(r"(?:#.*\n)*?# (.+)\n# -{4,}\n", cell)
        title = heading[1] if heading else title
        if not titles or title is None or title in titles:
            exec(compile(cell, name, "exec"), found)
    return found


def test_the_monitor_of_the_first_tutorial_alarms_after_the_change_only():
    """The reference was two herds, the yield of one beside the fat of the other, and alarmed before any change."""
    found = cells("plot_1_tester", "The question", "From now on")
    before, after = found["before"], found["after"]
    milk = [before["milk"], after["milk"]]
    error = np.sqrt(sum(column.var() / len(column) for column in milk))
    assert abs(milk[0].mean() - milk[1].mean()) < 2 * error  # "the average yield is the same"
    monitor = found["monitor"]
    assert monitor.alarms
    assert min(monitor.alarms) > 40
    reference = found["reference"]
    assert np.corrcoef(reference["milk"], reference["fat"])[0, 1] < -0.4  # before, fat falls with milk


@pytest.mark.slow
def test_for_testers():
    found = cells("plot_1_tester")
    result = found["result"]
    assert result.reject(0.05)
    shares = result.driving_columns(rng=0)
    assert max(shares, key=lambda name: shares[name]) == "milk"  # "milk carries most"
    assert min(shares, key=lambda name: shares[name]) == "weight"  # "weight plays no part"
    null = mm.stats.rejection_rate(found["quick"], found["nothing_changed"], repeats=100, rng=1)
    assert null.keeps_level()
    assert found["curve"].rates[-1].rate >= 0.9  # "to see it nine times in ten"
    p = {
        name: mm.two_sample_test(found["x"], found["y"], kernel, rng=0).pvalue
        for name, kernel in found["kernels"].items()
    }
    assert p["median"] > 0.05 > max(p["default"], p["learned"], p["two"])  # the median distance is blind to it


@pytest.mark.slow
def test_for_causal_analysts():
    found = cells("plot_2_causal_analyst")
    lake, graph = found["lake"], found["found"]
    assert abs(np.corrcoef(lake["fertiliser"], lake["algae"])[0, 1]) < 0.1
    assert mm.independence_test(lake["fertiliser"], lake["algae"], rng=0).reject(0.05)
    assert mm.independence_test(lake["warmth"], lake["algae"], rng=0).reject(0.05)
    assert not mm.conditional_independence_test(lake["warmth"], lake["algae"], lake["sun"], rng=0).reject(0.05)
    assert not mm.independence_test(lake["sun"], lake["fertiliser"], rng=0).reject(0.05)
    assert mm.conditional_independence_test(lake["sun"], lake["fertiliser"], lake["algae"], rng=0).reject(0.05)
    truth = {("sun", "warmth"), ("sun", "algae"), ("fertiliser", "algae"), ("algae", "oxygen"), ("oxygen", "fish")}
    drawn = {frozenset(edge) for edge in graph.to_networkx().edges}
    assert drawn == {frozenset(edge) for edge in truth}
    assert {("sun", "algae"), ("fertiliser", "algae")} <= set(found["known"].to_networkx().edges)
    white = found["white"]
    assert mm.independence_test(found["slow"], found["other"], rng=0).reject(0.05)
    assert not mm.independence_test(white["slow"], white["other"], rng=0).reject(0.05)


@pytest.mark.slow
def test_for_modellers():
    found = cells("plot_3_modeller")
    street, model, better = found["street"], found["model"], found["better"]
    assert abs(np.isnan(street["soot"]).mean() - 0.25) < 0.05  # "a quarter of the soot readings are missing"
    blind = [model.query({"soot": 8.0, "weather": w}, targets=["traffic"])["traffic"].mean() for w in ("rain", "calm")]
    assert blind[0] == pytest.approx(blind[1])  # "both curves of the first picture are one"
    seen = [
        better.query({"air": np.array([np.log(8.0), *sky])}, targets=["traffic"])["traffic"].mean()
        for sky in ([0, 0, 1], [1, 0, 0])
    ]
    assert seen[0] > 2 * seen[1]
    held = np.mean((found["low"] <= found["truth"]) & (found["truth"] <= found["high"]))
    assert 0.7 < held < 0.9
    again = found["again"].query({"soot": 25.0}, targets=["traffic"])["traffic"].mean()
    assert again == found["beliefs"]["traffic"].mean()


@pytest.mark.slow
def test_for_users_of_probabilistic_programs():
    found = cells("plot_4_ep_user")
    belief, leaks = found["belief"], found["true_leaks"]
    assert (abs(np.asarray(belief.mean()) - leaks) < 3 * np.asarray(belief.sd())).all()
    sds = np.asarray(belief.sd())[np.argsort(leaks)]
    assert sds[-3:].mean() > sds[:3].mean()  # "the machines with large leaks" are less certain
    assert float(np.max(found["difference"])) < 1e-3
    asked = found["diary"].asked + found["diary"].audited
    assert asked < 4 * 200
