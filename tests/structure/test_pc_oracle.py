"""The PC algorithm with the answers of a known graph, against the enumeration of its equivalence class."""

import networkx
import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, InputError, KindError, ParameterError
from meanmap.graphs import PDAG, equivalence_class, structural_hamming_distance
from meanmap.structure import DSeparation
from tests.graphs.enumeration import arrows_and_lines, members, random_dag, union


@pytest.mark.parametrize("seed", range(15))
def test_the_class_of_the_graph_is_found(seed):
    generator = np.random.default_rng(seed)
    dag = random_dag(int(generator.integers(2, 7)), generator.uniform(0.2, 0.7), generator)
    found = mm.pc(DSeparation(dag))
    assert arrows_and_lines(found) == union(members(dag))
    assert found.report.notes == ()
    assert all(p == 0 for p in found.pvalues.values())
    for (a, b), given in found.separators.items():
        assert networkx.is_d_separator(dag, {a}, {b}, set(given))


@pytest.mark.parametrize("seed", range(12))
def test_with_knowledge_it_is_the_class_of_those_that_agree(seed):
    generator = np.random.default_rng(100 + seed)
    dag = random_dag(6, 0.5, generator)
    order = list(networkx.topological_sort(dag))
    required = [edge for edge in dag.edges if generator.random() < 0.15]
    forbidden = [edge[::-1] for edge in dag.edges if generator.random() < 0.15]
    cut = int(generator.integers(1, 6))
    tiers = [order[:cut], order[cut:-1]]  # the last one is free
    found = mm.pc(DSeparation(dag), required=required, forbidden=forbidden, tiers=tiers)
    early, late = set(tiers[0]), set(tiers[1])

    def agrees(graph):
        return (
            all(graph.has_edge(*edge) for edge in required)
            and not any(graph.has_edge(*edge) for edge in forbidden)
            and not any(a in late and b in early for a, b in graph.edges)
        )

    assert arrows_and_lines(found) == union(members(dag, agrees))
    assert found.report.notes == ()


def test_large_graphs_agree_with_their_class():
    generator = np.random.default_rng(5)
    for _ in range(5):
        dag = random_dag(15, 0.2, generator)
        assert structural_hamming_distance(mm.pc(DSeparation(dag)), equivalence_class(dag)) == 0


def test_forbidden_both_ways_is_not_asked():
    dag = [("a", "b"), ("b", "c")]
    found = mm.pc(DSeparation(dag), forbidden=[("a", "b"), ("b", "a")])
    assert found.mark("a", "b") is None
    assert ("a", "b") not in found.separators
    # A required arrow is not tested, whatever the answers are.
    found = mm.pc(DSeparation(dag), required=[("a", "c")])
    assert found.mark("a", "c") == "→"
    assert ("a", "c") not in found.pvalues


class Contradictory:
    """Answers that no graph gives."""

    most_given = 4

    def __init__(self, independent, names="abcd"):
        self.names = tuple(names)
        self.independent = {(frozenset(pair), frozenset(given)) for pair, given in independent}

    def pvalues(self, pairs, given):
        return np.array([float((frozenset(pair), frozenset(given)) in self.independent) for pair in pairs])


def test_colliders_that_contradict_each_other_are_left_open_and_told():
    # The path a — b — c — d, with a and c apart given nothing (a → b ← c), b and d too (b → c ← d).
    answers = [("ac", ""), ("bd", ""), ("ad", "")]
    found = mm.pc(Contradictory(answers))
    assert (found.mark("a", "b"), found.mark("b", "c"), found.mark("c", "d")) == ("—", "—", "—")
    notes = [note for note in found.report.notes if "contradicts another collider" in note]
    assert [
        note.partition(" contradicts another collider or prior knowledge: it was not used")[0] for note in notes
    ] == [
        "a → b ← c",
        "b → c ← d",
    ]
    assert "note: a → b ← c contradicts" in str(found)


class Narrow(Contradictory):
    """One p-value for each pair that is independent."""

    def __init__(self, values, names="abcde"):
        super().__init__([(pair, "") for pair in values], names)
        self.values = {frozenset(pair): p for pair, p in values.items()}

    def pvalues(self, pairs, given):
        return np.array([0.0 if given else self.values.get(frozenset(pair), 0.0) for pair in pairs])


def test_edges_that_were_removed_narrowly_are_noted():
    """The few with the smallest p-values, up to twice the level, with what was given, in the order that may be."""
    found = mm.pc(Narrow({"ab": 0.06, "ac": 0.11, "de": 0.051}), tiers=[["e"], list("abcd")])
    narrow = [note for note in found.report.notes if "removed narrowly" in note]
    where = "without conditioning on anything, and the level is 0.05. If you know that"
    assert narrow == [
        f"e — d was removed narrowly: p = 0.051 {where} 'e' causes 'd', required=[('e', 'd')] adds the edge.",
        f"a — b was removed narrowly: p = 0.06 {where} 'a' causes 'b', required=[('a', 'b')] adds the edge.",
    ]
    assert f"note: {narrow[0]}" in str(found)
    assert "e — d was removed narrowly" in found._repr_html_()
    assert f"pc noted that {narrow[1]}" in found.no_path("a", "b")
    assert not any("narrowly" in note for note in found.no_path("a", "c"))
    many = mm.pc(Narrow({pair: 0.06 + i / 1000 for i, pair in enumerate(("ab", "ac", "ad", "bc", "bd"))}))
    assert sum("removed narrowly" in note for note in many.report.notes) == 3
    assert "2 more edges were removed with p at most 0.1." in many.report.notes


def test_a_collider_against_knowledge_is_told():
    found = mm.pc(DSeparation([("a", "b"), ("c", "b")]), required=[("b", "a")])
    assert (found.mark("b", "a"), found.mark("c", "b")) == ("→", "—")
    (note,) = found.report.notes
    assert note.startswith(
        "a → b ← c contradicts another collider or prior knowledge: it was not used to orient edges."
    )


def test_a_pair_whose_dependence_nearly_cancels_is_named_with_what_to_type():
    """A treatment is given to those who would do worse: it and the outcome seem independent without the cause of both.
    Only an arrow from the treatment to this earlier cause was named, which made no sense.
    """
    answers = [(("t", "y"), "")]
    tiers = [["z"], ["t"], ["y"]]
    found = mm.pc(Contradictory(answers, "zty"), tiers=tiers)
    assert found.mark("t", "y") is None
    (note,) = (note for note in found.report.notes if "contradicts" in note)
    assert note.startswith("t → z ← y contradicts")
    assert (
        "t and y were found independent without conditioning on anything (p = 1) and dependent given z (p = 0). "
        in note
    )
    assert "nearly cancel, and their edge is missing: required=[('t', 'y')] adds it." in note
    wide = mm.pc(
        Contradictory([*answers, (("x", "y"), "z"), (("x", "t"), "z")], "yztx"), tiers=[["x", "z"], ["t"], ["y"]]
    )
    (note,) = (note for note in wide.report.notes if note.startswith("y → z ← t contradicts"))
    assert "were found independent without conditioning on anything (p = 1) and dependent given z" in note
    assert "required=[('t', 'y')] adds it." in note
    again = mm.pc(Contradictory(answers, "zty"), tiers=tiers, required=[("t", "y")])
    assert again.mark("t", "y") == "→"
    assert not again.report.notes


def test_a_common_cause_that_is_missing_from_the_table_is_named():
    """i → x ← u → y ← j without u: both colliders hold, and no graph of the four columns does."""
    truth = DSeparation([("i", "x"), ("u", "x"), ("u", "y"), ("j", "y")])
    truth.names = ("i", "x", "y", "j")
    found = mm.pc(truth)
    assert found.mark("x", "y") == "—"
    first, second = (note for note in found.report.notes if "contradicts" in note)
    assert "a common cause of x and y is missing from the table: then the edge x — y stands for it" in first
    assert "a common cause of y and x is missing from the table" in second
    rows = np.random.default_rng(0).normal(size=(100, 4))
    with pytest.raises(InputError, match="A common cause of both may be missing from the table"):
        mm.BayesianNetwork(found).fit(dict(zip(truth.names, rows.T, strict=True))).do({"x": 1.0}, ["y"])


def test_colliders_that_close_a_cycle_direct_nothing():
    """x → a ← c, y → b ← a and z → c ← b do not share an edge the other way, but a → b → c → a is a cycle."""
    colliders = [("xc", ""), ("ya", ""), ("zb", "")]
    others = [("xb", "a"), ("yc", "b"), ("za", "c"), ("xy", ""), ("yz", ""), ("xz", "")]
    found = mm.pc(Contradictory([*colliders, *others], "abcxyz"))
    assert not len(found.directed)
    assert sum("contradicts another collider" in note for note in found.report.notes) == 3


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_tested_given_only_what_may_cause_one_of_them(seed):
    """Parents separate any two that are not adjacent: nothing of a later tier, and no known effect, is needed."""
    rng = np.random.default_rng(seed)
    names, tier = "abcdefg", dict(zip("abcdefg", (0, 0, 1, 1, 2, 2, 3), strict=True))
    dag = [(a, b) for a in names for b in names if a < b and rng.random() < 0.4]
    asked = []

    class Watched(DSeparation):
        def pvalues(self, pairs, given):
            asked.extend((*pair, tuple(given)) for pair in pairs)
            return super().pvalues(pairs, given)

    tiers = [[name for name in names if tier[name] == k and any(name in edge for edge in dag)] for k in range(4)]
    found = mm.pc(Watched(dag), tiers=tiers)
    assert max(tier[c] - max(tier[a], tier[b]) for a, b, given in asked for c in given) <= 0
    joined = {
        frozenset((a, b)) for a in names for b in names if {a, b} <= set(found.names) and a < b and found.mark(a, b)
    }
    assert joined == {frozenset(edge) for edge in dag}
    assert all(found.mark(a, b) == "→" for a, b in dag if tier[a] < tier[b])


def test_many_notes_of_one_kind_are_one():
    """Ends of a star are independent of each other given nothing, although it is known to cause all of them."""
    leaves = "abcde"
    found = mm.pc(DSeparation([(leaf, "x") for leaf in leaves]), required=[("x", leaf) for leaf in leaves])
    (note,) = (note for note in found.report.notes if "contradicts" in note)
    assert note.startswith("a → x ← b contradicts")
    assert note.endswith("The same holds for 9 other triples or edges.")


def test_separators_that_disagree_are_told():
    # a and d apart given nothing and given b, with b between them: neither collider nor not.
    answers = [("ad", ""), ("ad", "b"), ("ac", ""), ("cd", ""), ("bc", "")]
    found = mm.pc(Contradictory(answers))
    assert (found.mark("a", "b"), found.mark("b", "d")) == ("—", "—")
    assert any("do not say whether b is an effect of both" in note for note in found.report.notes)


@pytest.mark.parametrize(
    "tiers",
    [[["b"], ["a", "c", "d"]], [["a", "c", "d"], ["b"]], [["a"], ["b"], ["d", "c"]]],
    ids=["first", "last", "between"],
)
def test_what_tiers_say_is_not_left_to_the_tests(tiers):
    """Whether b is an effect of both a and d is known from the tiers."""
    answers = [("ad", ""), ("ad", "b"), ("ac", ""), ("cd", ""), ("bc", "")]
    found = mm.pc(Contradictory(answers), tiers=tiers)
    assert not any("do not say whether b" in note for note in found.report.notes)
    assert not any("contradicts" in note for note in found.report.notes)
    assert any("do not say whether b" in note for note in mm.pc(Contradictory(answers)).report.notes)


def test_a_pair_that_is_known_to_be_apart_is_not_said_to_be_removed_narrowly():
    values = {"ab": 0.06, "ac": 0.11, "de": 0.051}
    found = mm.pc(Narrow(values), forbidden=[("d", "e"), ("e", "d")])
    narrow = [note for note in found.report.notes if "removed narrowly" in note]
    assert [note.partition(" was removed")[0] for note in narrow] == ["a — b"]


def test_most_given_stops_the_search():
    dag = [("a", "b"), ("b", "c")]
    assert mm.pc(DSeparation(dag), most_given=0).mark("a", "c") == "—"
    assert mm.pc(DSeparation(dag), most_given=1).mark("a", "c") is None


def test_too_few_rows_are_told():
    answers = Contradictory([])
    answers.most_given = 1
    found = mm.pc(answers)
    assert len(found.undirected) == 6
    (said,) = found.report.notes
    assert said.startswith(
        "the rows are too few to condition on more than 1 variables: there may be too many edges, and dir"
    )


def test_bad_knowledge():
    truth = DSeparation([("a", "b"), ("b", "c")])
    for knowledge, error, message in [
        ({"required": [("a", "x")]}, ColumnError, "required names 'x'; the columns of the table are 'a', 'b', 'c'"),
        ({"forbidden": [("x", "a")]}, ColumnError, "forbidden names 'x'"),
        ({"tiers": [["a"], ["x"]]}, ColumnError, "tiers names 'x'"),
        ({"tiers": [["a"], ["b", "a"]]}, InputError, "'a' in two tiers"),
        ({"tiers": ["abc"]}, KindError, "a tier of tiers is 'abc'; expected a list"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, InputError, "'a' → 'b' is required, and forbidden"),
        ({"required": [("b", "a")], "tiers": [["a"], ["b"]]}, InputError, "'b' → 'a' is required, and forbidden"),
        ({"required": [("a", "b"), ("b", "a")]}, InputError, "required has both 'a' → 'b' and 'b' → 'a'"),
        ({"required": [("a", "b"), ("b", "c"), ("c", "a")]}, InputError, "required has a cycle: 'a' → 'b' → 'c' → 'a'"),
        ({"required": [("a", "a")]}, InputError, "from 'a' to itself"),
        ({"required": ["ab"]}, KindError, "expected pairs"),
        ({"required": "ab"}, KindError, "required is 'ab'; expected a list"),
    ]:
        with pytest.raises(error, match=message):
            mm.pc(truth, **knowledge)


def test_bad_settings():
    truth = DSeparation([("a", "b")])
    with pytest.raises(ParameterError, match="level is 5"):
        mm.pc(truth, 5)
    with pytest.raises(ParameterError, match="most_given is -1"):
        mm.pc(truth, most_given=-1)
    with pytest.raises(ParameterError, match=r"half_samples is 2\.5"):
        mm.pc(truth, half_samples=2.5)
    with pytest.raises(KindError, match="DSeparation has no method rows"):
        mm.pc(truth, half_samples=3)
    with pytest.raises(InputError, match="has a cycle"):
        DSeparation([("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(InputError, match="undirected edges"):
        DSeparation(PDAG.of([], [("a", "b")]))


def test_answers_that_are_no_pvalues_are_refused():
    """NaN is not above any level, and would leave every edge."""
    tests = DSeparation([("a", "b")])
    tests.pvalues = lambda pairs, given: np.full(len(pairs), np.nan)
    with pytest.raises(InputError, match="the test of 'a' and 'b' returned nan"):
        mm.pc(tests)


def test_pvalues_of_edges_are_corrected_for_all_pairs_that_were_tested():
    """Of six pairs three are joined; one of these is not beyond chance where six are asked."""
    alone = {("a", "b"): 0.002, ("a", "c"): 0.02, ("b", "c"): 0.4, ("a", "d"): 0.011, ("b", "d"): 0.3, ("c", "d"): 0.7}

    tests = DSeparation(networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")]))
    tests.pvalues = lambda pairs, given: [alone[pair] / (2 if given else 1) for pair in pairs]
    found = mm.pc(tests)
    assert found.pvalues[("b", "a")] == 0.002
    corrected = {tuple(sorted(pair)): p for pair, p in found.adjusted.items()}
    assert corrected == pytest.approx({("a", "b"): 0.012, ("a", "d"): 0.055, ("a", "c"): 0.08})
    assert set(found.adjusted) == set(found.pvalues)
    assert found.report.measures == {"edges at this level after Holm's correction": 1.0}
    known = mm.pc(tests, required=[("a", "c")], forbidden=[("b", "d"), ("d", "b")])
    assert known.adjusted[("a", "d")] == pytest.approx(0.033)
