"""The tests of this library inside pgmpy, causal-learn, dowhy and tigramite; or by the calls that these make."""

import sys
from types import ModuleType

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import InputError, MissingPackageError, NonFiniteError
from meanmap.structure import (
    ArrayTest,
    CallableTest,
    DSeparation,
    KernelTests,
    register_in_causal_learn,
    tigramite_test,
)

DAG = [("a", "c"), ("b", "c"), ("c", "d")]


def table(rows=200):
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, rows))
    c = np.tanh(a) + np.abs(b) + 0.2 * generator.normal(size=rows)
    return {"a": a, "b": b, "c": c, "d": c**2 + 0.4 * generator.normal(size=rows)}


def test_the_callable_answers_as_the_tests_do():
    tests, test = KernelTests(table(), rng=0), CallableTest(table(), rng=0)
    for pair, given in [(("a", "b"), []), (("a", "d"), ["c"]), (("b", "a"), ["c"])]:
        p = tests.pvalues([pair], tuple(given))[0]
        assert test(*pair, given, data="ignored", boolean=True, significance_level=0.01) is bool(p >= 0.01)
        assert test.p_value_ == p
    assert CallableTest(DSeparation(DAG))("a", "b") is True
    with pytest.raises(InputError, match="asks about 'x'; the test was given a, b, c, d"):
        test("a", "x", [])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "causallearn", None)
    monkeypatch.setitem(sys.modules, "tigramite", None)
    with pytest.raises(MissingPackageError, match=r"needs causal-learn.* pip install causal-learn"):
        register_in_causal_learn()
    with pytest.raises(MissingPackageError, match=r"needs tigramite.* pip install tigramite"):
        tigramite_test()


def test_what_causal_learn_calls(monkeypatch):
    """A stand-in with the three names of causal-learn that are used; the package itself below."""
    registered = {}

    class Base:
        def __init__(self, data, **_):
            self.pvalue_cache = {}

        def get_formatted_XYZ_and_cachekey(self, x, y, given):
            return [x], [y], sorted(given or []), f"{x};{y}|{sorted(given or [])}"

    cit = ModuleType("causallearn.utils.cit")
    cit.CIT_Base, cit.register_ci_test = Base, registered.__setitem__
    utils = ModuleType("causallearn.utils")
    utils.cit = cit
    for name, module in [("causallearn", ModuleType("causallearn")), ("causallearn.utils", utils)]:
        monkeypatch.setitem(sys.modules, name, module)
    data = np.column_stack(list(table().values()))
    assert register_in_causal_learn("ours", rng=0) == "ours"
    test = registered["ours"](data)
    assert test(0, 3, [2]) == KernelTests(data, rng=0).pvalues([("x0", "x3")], ("x2",))[0]
    assert test(0, 1) == KernelTests(data, rng=0).pvalues([("x0", "x1")], ())[0]


def test_what_dowhy_calls():
    """Arrays out of a frame: of objects where columns are of several kinds."""
    columns, settings = table(), {"n_permutations": 99, "rng": 0}
    x, y = columns["a"], columns["d"]
    label = np.where(columns["c"] > 1, "high", "low")
    test, given = ArrayTest(**settings), np.column_stack([columns["b"].astype(object), label])
    expected = mm.conditional_independence_test(x, y, {"x0": columns["b"], "x1": label}, **settings)
    assert test(x, y.astype(object), given) == expected.pvalue
    assert test(x, y) == mm.independence_test(x, y, **settings).pvalue
    given[3, 0], given[5, 1] = None, np.nan
    with pytest.raises(NonFiniteError, match="Drop those rows"):
        test(x, y, given)
    assert 0 < ArrayTest(missing="drop", **settings)(x, y, given) <= 1


def test_what_tigramite_calls(monkeypatch):
    """A stand-in with what is used of tigramite's base class; the package itself below."""
    base = ModuleType("tigramite.independence_tests.independence_tests_base")

    class CondIndTest:
        def __init__(self, significance):
            self.significance = significance

    base.CondIndTest = CondIndTest
    for name in ("tigramite", "tigramite.independence_tests"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, base.__name__, base)
    columns, settings = table(), {"n_permutations": 99, "rng": 0}
    test = tigramite_test(**settings)
    assert (test.significance, test.measure) == ("analytic", "meanmap")
    rows = np.stack([columns["a"], columns["d"], columns["c"], np.round(columns["b"])])
    kinds = np.zeros(rows.shape, int)
    kinds[3] = 1
    z = {"x2": columns["c"], "x3": np.round(columns["b"]).astype(str)}
    expected = mm.conditional_independence_test({"x0": rows[0]}, {"x1": rows[1]}, z, **settings)
    value = test.get_dependence_measure(rows, np.array([0, 1, 2, 2]), data_type=kinds)
    draws = expected.null.draws
    assert value == pytest.approx((expected.statistic - draws.mean()) / draws.std())
    assert test.get_analytic_significance(value, T=200, dim=4, xyz=None) == expected.pvalue
    assert test.get_dependence_measure(rows[:2], np.array([0, 1])) > 3
    assert test.get_analytic_significance(value, T=200, dim=2) == 0.01


def test_inside_dowhy():
    falsify = pytest.importorskip("dowhy.gcm.falsify", reason="dowhy is not installed here")
    pandas = pytest.importorskip("pandas")
    import networkx

    frame = pandas.DataFrame(table(300))
    frame["c"] = np.where(frame["c"] > 0.8, "high", "low")
    tests = {"independence_test": ArrayTest(rng=0), "conditional_independence_test": ArrayTest(rng=0)}
    found = falsify.validate_lmc(networkx.DiGraph([("a", "c"), ("b", "c"), ("b", "a")]), frame, n_jobs=1, **tests)
    assert found[falsify.FalsifyConst.N_VIOLATIONS] == 0
    wrong = falsify.validate_lmc(
        networkx.DiGraph([("a", "b")]), frame[["a", "b"]].assign(b=frame["a"]), n_jobs=1, **tests
    )
    assert wrong[falsify.FalsifyConst.N_TESTS] == 0  # a parent is no test


def test_inside_tigramite():
    pcmci = pytest.importorskip("tigramite.pcmci", reason="tigramite is not installed here")
    from tigramite.data_processing import DataFrame  # pyright: ignore[reportMissingImports]

    generator = np.random.default_rng(0)
    noise = generator.normal(size=(300, 3))
    series = np.zeros((300, 3))
    for t in range(1, 300):
        series[t, 0] = noise[t, 0]
        series[t, 1] = np.abs(series[t - 1, 0]) + 0.3 * noise[t, 1]
        series[t, 2] = 0.9 * series[t - 1, 1] + 0.3 * noise[t, 2]
    search = pcmci.PCMCI(DataFrame(series), cond_ind_test=tigramite_test(rng=0), verbosity=0)
    found = search.run_pcmci(tau_max=1, pc_alpha=0.05, alpha_level=0.005)["graph"]
    links = {(i, j) for i in range(3) for j in range(3) if found[i, j, 1] == "-->"}
    assert links == {(0, 1), (1, 2)}


def test_inside_pgmpy():
    search = pytest.importorskip("pgmpy.causal_discovery.PC", reason="pgmpy is not installed here")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table(300))
    for rule in (None, "pvalue"):
        settings = {} if rule is None else {"orient_rule": rule}
        found = search.PC(ci_test=CallableTest(frame, rng=0), return_type="pdag", show_progress=False, **settings)
        found.fit(frame)
        assert set(found.causal_graph_.directed_edges) == set(mm.pc(frame, rng=0).named("directed")) == set(DAG)


def test_inside_causal_learn():
    search = pytest.importorskip("causallearn.search.ConstraintBased.PC", reason="causal-learn is not installed here")
    data = np.column_stack(list(table(300).values()))
    name = register_in_causal_learn(rng=0)
    graph = search.pc(data, 0.05, name, show_progress=False).G.graph
    ours = mm.pc(data, rng=0)
    assert np.array_equal(graph == -1, ours.matrix)
    assert set(map(tuple, ours.directed.tolist())) == {(0, 2), (1, 2), (2, 3)}


def test_oracles_agree_with_causal_learn():
    """Fifty random graphs, the same answers, the same classes."""
    search = pytest.importorskip("causallearn.search.ConstraintBased.PC", reason="causal-learn is not installed here")
    import networkx

    from tests.graphs.enumeration import random_dag

    for seed in range(50):
        generator = np.random.default_rng(seed)
        dag = random_dag(int(generator.integers(3, 11)), generator.uniform(0.15, 0.6), generator)
        numbered = networkx.relabel_nodes(dag, {f"v{i}": i for i in range(len(dag))})
        data = generator.normal(size=(20, len(dag)))  # not looked at, but more rows than columns
        graph = search.pc(data, 0.05, "d_separation", show_progress=False, true_dag=numbered).G.graph
        # graph[j, i] = 1 and graph[i, j] = -1 for i → j, both -1 for i — j: i may point to j where graph[i, j] is -1.
        ours = mm.pc(DSeparation(dag))
        order = [ours.names.index(f"v{i}") for i in range(len(dag))]
        assert np.array_equal(graph == -1, ours.matrix[np.ix_(order, order)]), seed
