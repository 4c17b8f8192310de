"""Effects that depend on edges about which tests of `pc` contradict each other are refused."""

import networkx
import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError

TIERS = [["z"], ["t"], ["y"]]


class Answers:
    """A source of answers: pairs that are independent, with what they are independent given."""

    most_given = 4

    def __init__(self, names, *independent):
        self.names = tuple(names)
        self.independent = {(frozenset(pair), frozenset(given)) for pair, given in independent}

    def pvalues(self, pairs, given):
        return np.array([float((frozenset(pair), frozenset(given)) in self.independent) for pair in pairs])


def normal(names, n=300, seed=0):
    return dict(zip(names, np.random.default_rng(seed).normal(size=(len(names), n)), strict=True))


def effect(graph, of, on):
    table = normal(graph.names)
    return mm.bp.BayesianNetwork(graph).effect(table, on, of=of, from_=0.0, to=1.0, rng=0)


def test_an_effect_that_nearly_cancels_another_is_no_0(tmp_path):
    """Whoever would do worse is treated: treatment and outcome seem independent, their edge is missing, and the effect
    was "exactly 0".
    """
    rng = np.random.default_rng(1)
    z = rng.normal(size=800)
    t = z + rng.normal(size=800)
    y = 900 * (2 * z - t) + 300 * rng.normal(size=800)
    table = {"z": z, "t": t, "y": y}
    graph = mm.pc(table, tiers=TIERS, rng=0)
    assert graph.mark("t", "y") is None
    assert graph.doubted == (("t", "y"),)
    network = mm.bp.BayesianNetwork(graph)
    said = (
        r"of 't' on 'y' depends on whether an edge joins 't' and 'y': .*required=\[\('t', 'y'\)\]\) if it does, forbid"
    )
    ask = {"of": "t", "from_": 0.0, "to": 1.0, "rng": 0}
    mm.graphs.write_graphml(graph, tmp_path / "g.graphml")
    read = mm.bp.BayesianNetwork(networkx.read_graphml(tmp_path / "g.graphml"))
    for each in (network, read, mm.bp.BayesianNetwork(graph.to_networkx())):
        with pytest.raises(InputError, match=said):
            each.effect(table, "y", **ask)
    fitted = network.fit(table)
    mm.save(fitted, tmp_path / "network.meanmap")
    for each in (fitted, mm.load(tmp_path / "network.meanmap")):
        with pytest.raises(InputError, match=said):
            each.do({"t": 1.0}, ["y"])
    with pytest.raises(InputError, match=said):
        fitted.counterfactual({"z": 0.0, "t": 0.0, "y": 0.0}, {"t": 1.0}, ["y"])
    with pytest.raises(InputError, match="of 'z' on 'y' depends on whether an edge joins 't' and 'y'"):
        fitted.do({"z": 1.0}, ["y"])
    assert abs(fitted.do({"z": 1.0}, ["t"], rng=0)["t"].mean() - 1) < 0.3
    required = mm.pc(table, tiers=TIERS, required=[("t", "y")], rng=0)
    low, high = mm.bp.BayesianNetwork(required).effect(table, "y", **ask).interval()
    assert low < -900 < high
    apart = mm.pc(table, tiers=TIERS, forbidden=[("t", "y"), ("y", "t")], rng=0)
    assert not apart.doubted
    assert not mm.bp.BayesianNetwork(apart).effect(table, "y", **ask).path


def test_an_edge_at_which_colliders_disagree_is_not_oriented_for_an_effect():
    """The path a — b — c — d with colliders at b and at c."""
    graph = mm.pc(Answers("abcd", ("ac", ""), ("bd", ""), ("ad", "")))
    for of, on in ("bc", "ab"):
        with pytest.raises(
            InputError, match=f"of '{of}' on '{on}' depends on the direction of the edge '{of}' — '{on}', "
        ):
            effect(graph, of, on)
    with pytest.raises(InputError, match=r"for b → c, required=\[\('c', 'b'\)\] for c → b, or your own graph"):
        effect(graph, "b", "c")
    own = mm.graphs.PDAG.of([("b", "c"), ("a", "b"), ("c", "d")])
    assert effect(own, "b", "c").path


def test_an_arrow_against_a_collider_that_contradicts_others_is_doubted():
    """Of b → a ← d and a → b ← c, which disagree, neither is drawn; a → b follows from e → a, and the effect of b on a
    was "exactly 0".
    """
    pairs = [(pair, "") for pair in ("ac", "bd", "ce", "cd", "de")]
    graph = mm.pc(Answers("abcde", *pairs, ("be", "a")))
    assert graph.mark("a", "b") == "→"
    with pytest.raises(InputError, match="of 'b' on 'a' depends on the direction of the edge 'b' — 'a'"):
        effect(graph, "b", "a")


def test_an_undecided_middle_leaves_effects_through_it_open():
    """u → a ← v and a — b — c, where tests do not say whether b is an effect of both: a → b follows, b → c does not."""
    pairs = [("uv", ""), ("ub", "a"), ("vb", "a"), ("uc", "a"), ("vc", "a"), ("uc", ""), ("vc", "")]
    graph = mm.pc(Answers("uvabc", *pairs, ("ac", "b"), ("ac", "")))
    assert (graph.mark("a", "b"), graph.mark("b", "c")) == ("→", "—")
    with pytest.raises(InputError, match="of 'a' on 'c' depends on the direction of the edge 'b' — 'c'"):
        effect(graph, "a", "c")
    assert effect(graph, "u", "a").path


def test_doubts_elsewhere_do_not_matter():
    """What is upstream of a cause, or beside it, changes no effect."""
    graph = mm.structure.DiscoveredGraph(
        ("w", "z", "t", "y"),
        np.array([[0, 2], [1, 2], [2, 3]]),
        np.zeros((0, 2), int),
        doubted=(("w", "z"), ("z", "w")),
    )
    assert effect(graph, "t", "y").adjusted == ()
    assert not effect(graph, "t", "z").path


def selected(rng, n=1500):
    """Rows that were selected by an effect of both the cause and the outcome."""
    t = rng.normal(size=n)
    y = 0.5 * t + rng.normal(size=n)
    kept = t + y + 0.5 * rng.normal(size=n) > 1
    return pd.DataFrame({"t": t, "y": y, "s": 1})[kept]


@pytest.mark.parametrize("kind", ["number", "text", "category"])
def test_rows_that_were_selected_by_an_effect_do_not_determine_it(kind):
    table = selected(np.random.default_rng(0))
    table["s"] = {"number": table.s, "text": "in", "category": pd.Categorical(["in"] * len(table))}[kind]
    network = mm.BayesianNetwork([("t", "y"), ("t", "s"), ("y", "s")])
    with pytest.raises(
        InputError, match=r"data\['s'\] has the same value in all rows, which 't' affects: if they were"
    ):
        network.effect(table, "y", of="t", from_=0.0, to=1.0, rng=0)
    with pytest.raises(InputError, match=r"and its causes are 't' and 'y': if they were selected by it"):
        network.fit(table)


def test_rows_selected_by_a_cause_do():
    """A trial among women: the effect is that on women."""
    rng = np.random.default_rng(1)
    t = rng.normal(size=400)
    table = pd.DataFrame({"sex": "f", "t": t, "y": 0.5 * t + rng.normal(size=400)})
    network = mm.BayesianNetwork([("sex", "t"), ("sex", "y"), ("t", "y")])
    with pytest.raises(InputError, match="carries no information: leave it out of the graph"):
        network.effect(table, "y", of="t", from_=0.0, to=1.0, rng=0)
    found = mm.BayesianNetwork([("t", "y")]).effect(table, "y", of="t", from_=0.0, to=1.0, rng=0)
    assert found.interval()[0] < 0.5 < found.interval()[1]


def test_values_of_a_number_need_as_many_rows_as_labels():
    rng = np.random.default_rng(2)
    z = rng.normal(size=600)
    t = np.zeros(600, int)
    t[np.argsort(z + 0.8 * rng.normal(size=600))[-8:]] = 1
    table = {"z": z, "t": t, "y": z + rng.normal(size=600)}
    network = mm.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")])
    with pytest.raises(InputError, match="'t' is near 1 in 8 rows; expected at least 20"):
        network.effect(table, "y", of="t", from_=0, to=1, rng=0)
    dose = np.exp(0.8 * rng.normal(size=600))
    dose[:6] = 0.0
    never = network.effect(table | {"t": dose}, "y", of="t", from_=0.0, to=2.0, rng=0)
    assert any("'t' is 0.0 in 6 rows: so few do not show whether 'y' jumps there" in note for note in never.notes)
    plain = network.effect(table | {"t": dose[6:].tolist() + [1.0] * 6}, "y", of="t", from_=0.5, to=2.0, rng=0)
    assert not any("jumps there" in note for note in plain.notes)


def test_values_may_be_close_to_each_other():
    """Few rows are between 0 and .1, but many are near."""
    rng = np.random.default_rng(3)
    t = rng.normal(size=100)
    network = mm.BayesianNetwork([("t", "y")])
    table = {"t": t, "y": 0.5 * t + 0.1 * rng.normal(size=100)}
    found = network.effect(table, "y", of="t", from_=0.0, to=0.1, rng=0)
    assert found.interval()[0] < 0.05 < found.interval()[1]


def test_values_that_nearly_agree_are_refused():
    """At a distance of .01 only .63 (se .08) of 90% intervals held on 16 tables of a sine."""
    rng = np.random.default_rng(4)
    t = rng.normal(size=400)
    table = {"t": t, "y": np.sin(t) + 0.5 * rng.normal(size=400)}
    with pytest.raises(InputError, match=r"rows, which say little about so small a step\. Choose values farther apart"):
        mm.BayesianNetwork([("t", "y")]).effect(table, "y", of="t", from_=0.0, to=0.001, rng=0)


def in_clusters():
    """A treatment by cluster, and a confounder with gaps."""
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(60), 5)
    t, z = (rng.random(60) < 0.5)[cluster].astype(int), rng.normal(size=300)
    y = t + rng.normal(size=60)[cluster] + z + rng.normal(size=300)
    return pd.DataFrame({"cluster": cluster, "t": t, "y": y, "z": np.where(rng.random(300) < 0.1, np.nan, z)})


def test_clusters_by_name_and_as_an_array_are_the_same():
    """Beside columns with gaps, too."""
    table, network = in_clusters(), mm.BayesianNetwork([("t", "y"), ("z", "y"), ("z", "t")])
    by_name, by_array = (
        network.effect(table, "y", of="t", from_=0, to=1, clusters=clusters, rng=0)
        for clusters in ("cluster", table.cluster.to_numpy())
    )
    assert by_name.interval() == by_array.interval()
    with pytest.raises(ColumnError, match=r"clusters names 'clutser'"):
        network.effect(table, "y", of="t", from_=0, to=1, clusters="clutser", rng=0)


def test_clusters_whose_rows_are_in_another_order_are_refused():
    table, network = in_clusters(), mm.BayesianNetwork([("t", "y")])
    with pytest.raises(ColumnError, match=r"labels of those of data .* in another order"):
        network.effect(table, "y", of="t", from_=0, to=1, clusters=table.cluster[::-1], rng=0)


def test_small_steps_along_a_curve_have_a_note():
    """Along a line they have none, nor have wide ones."""
    rng = np.random.default_rng(6)
    t = rng.normal(size=500)
    network, noise = mm.BayesianNetwork([("t", "y")]), 0.5 * rng.normal(size=500)

    def notes(y, to):
        found = network.effect({"t": t, "y": y + noise}, "y", of="t", from_=0.0, to=to, rng=0)
        return [note for note in found.notes if "small steps" in note]

    (note,) = notes(np.tanh(1.5 * t), 0.5)
    assert (
        "interquartile ranges apart: intervals of such small steps may be too narrow where the curve bends or is "
        "steepest" in note
    )
    assert not notes(np.tanh(1.5 * t), 1.5)
    assert not notes(0.5 * t, 0.5)


def test_names_may_be_pairs_as_in_tables_with_two_rows_of_names():
    """Effects ended in "the truth value of an array is ambiguous"."""
    plain = normal("zty", n=300)
    plain["y"] = plain["t"] + plain["z"] + plain["y"]
    pairs = {name: ("table", name) for name in plain}
    graph = [("z", "t"), ("z", "y"), ("t", "y")]
    table = pd.DataFrame({pairs[name]: column for name, column in plain.items()})
    found = mm.bp.BayesianNetwork([(pairs[a], pairs[b]) for a, b in graph]).effect(
        table, pairs["y"], of=pairs["t"], from_=0.0, to=1.0, rng=0
    )
    same = mm.bp.BayesianNetwork(graph).effect(plain, "y", of="t", from_=0.0, to=1.0, rng=0)
    assert float(found.difference()) == pytest.approx(float(same.difference()))
    assert found.adjusted == (("table", "z"),)
