"""Shared tests against the single ones; functions as tests; searches on data."""

from concurrent.futures import ThreadPoolExecutor

import networkx
import numpy as np
import pytest
from scipy.stats import pearsonr

import meanmap as mm
from meanmap.core.errors import EmptyError, InputError, KindError, NonFiniteError, ParameterError
from meanmap.graphs import PDAG, equivalence_class, structural_hamming_distance, write_graphml
from meanmap.kernels import RBF
from meanmap.structure import CallableTest, FunctionTests, KernelTests, kernel_tests
from meanmap.structure.kernel_tests import NEAR

DAG = [("sun", "growth"), ("water", "growth"), ("growth", "harvest"), ("harvest", "price")]


def garden(rows, seed=0):
    generator = np.random.default_rng(seed)
    sun, water = generator.normal(size=(2, rows))
    growth = np.tanh(sun) + np.abs(water) + 0.2 * generator.normal(size=rows)
    harvest = growth**2 + 0.5 * generator.normal(size=rows)
    price = np.where(harvest + 0.5 * generator.normal(size=rows) > 1.5, "low", "high")
    return {"sun": sun, "water": water, "growth": growth, "harvest": harvest, "price": price}


def test_answers_are_those_of_the_single_test():
    table = garden(150)
    tests = KernelTests(table, rng=5)
    for x, y, given in [("sun", "harvest", ("growth",)), ("sun", "price", ("growth", "water"))]:
        z = {name: table[name] for name in sorted(given)}
        p = tests.pvalues([(x, y), (y, x)], given)
        assert p[0] == p[1]
        single = {
            null: mm.conditional_independence_test(table[x], table[y], z, null=null, rng=0).pvalue
            for null in ("gamma", "bootstrap")
        }
        # The same statistic and law, other draws: 1000 of them.
        near = 0.05 / NEAR < single["gamma"] < 0.05 * NEAR
        expected = single["bootstrap" if near else "gamma"]
        assert p[0] == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / 1000) + 2e-3)
    unconditional = tests.pvalues([("sun", "water"), ("sun", "growth"), ("price", "harvest")], ())
    assert unconditional[0] > 0.01
    assert (unconditional[1:] <= 1 / 150 + 1e-12).all()


def test_answers_do_not_hang_on_the_order_of_questions():
    table = garden(100)
    first, second = KernelTests(table, rng=1), KernelTests(table, rng=1)
    questions = [([("sun", "water")], ("growth",)), ([("sun", "harvest")], ()), ([("sun", "harvest")], ("growth",))]
    one = [float(first.pvalues(*question)[0]) for question in questions]
    two = [float(second.pvalues(*question)[0]) for question in questions[::-1]]
    assert one == two[::-1]


@pytest.mark.parametrize("method", ["residuals", "features"])
def test_other_methods(method):
    table = {name: column for name, column in garden(200).items() if name != "price"}
    tests = KernelTests(table, method=method, rng=0)
    assert tests.pvalues([("sun", "harvest")], ("growth",))[0] > 0.01
    assert tests.pvalues([("sun", "water")], ("growth",))[0] < 0.01


def test_the_quick_law_decides_as_the_bootstrap_does():
    """Where the gamma law is further than NEAR from the level the bootstrap is on the same side of it."""
    reversed_, far = 0, 0
    for seed in range(4):
        tests = KernelTests(garden(120, seed), rng=seed)
        bootstrap = KernelTests(garden(120, seed), rng=seed)
        bootstrap._level = 1e-9  # never near: it is asked below
        for given in ("growth", "harvest", "sun"):
            pairs = [(a, b) for a in tests.names for b in tests.names if a < b and given not in (a, b)]
            quick = bootstrap.pvalues(pairs, (given,))
            for p, (a, b) in zip(quick, pairs, strict=True):
                if not 0.05 / NEAR < p < 0.05 * NEAR:
                    far += 1
                    z = {given: garden(120, seed)[given]}
                    data = garden(120, seed)
                    sure = mm.conditional_independence_test(data[a], data[b], z, rng=0, n_permutations=400).pvalue
                    reversed_ += (p <= 0.05) != (sure <= 0.05)
    assert far > 30
    assert reversed_ == 0


def test_a_search_on_data():
    table = garden(400)
    found = mm.pc(table, rng=0)
    assert structural_hamming_distance(found, equivalence_class(DAG)) == 0
    assert found.names == tuple(table)
    assert mm.pc(table, rng=found.seed).pvalues == found.pvalues
    assert set(found.pvalues) == {pair for edge in DAG for pair in (edge, edge[::-1])}
    assert "growth" in found.separators["sun", "harvest"]
    assert found.report.counts["tests given 0"] == 10
    assert found.report.steps == sum(found.report.counts.values())
    assert not found.support


def test_what_depends_on_two_together_has_no_edge_as_the_help_says():
    coins = np.random.default_rng(0).integers(2, size=(2, 200))
    table = {
        name: np.array(["n", "y"])[values] for name, values in zip("abc", (*coins, coins[0] ^ coins[1]), strict=True)
    }
    found = mm.pc(table, rng=0)
    assert found.size == 3
    assert not list(found.named("directed"))
    assert not list(found.named("undirected"))
    assert mm.joint_independence_test(table, rng=0).pvalue < 0.01


def test_support_of_half_samples(tmp_path):
    table = {name: column for name, column in garden(240).items() if name in ("sun", "water", "growth")}
    found = mm.pc(table, half_samples=4, rng=0)
    assert found.support["sun", "growth"] == found.support["growth", "sun"] >= 0.75
    assert found.arrows.get(("growth", "sun"), 0) <= 0.25
    assert "100%" in str(found) or "75%" in str(found)
    assert any("%" in text.get_text() for text in found.plot().texts)
    write_graphml(found, tmp_path / "g.graphml")
    again = PDAG.of(networkx.read_graphml(tmp_path / "g.graphml"))
    assert structural_hamming_distance(found, again) == 0


def test_halves_keep_the_level_that_repeated_rows_lose():
    """Why support is not that of the bootstrap: repeated rows of independent columns look dependent."""
    lost = kept = 0
    for seed in range(12):
        generator = np.random.default_rng(seed)
        x, y = generator.normal(size=(2, 100))
        drawn, half = generator.integers(0, 100, 100), generator.permutation(100)[:50]
        lost += mm.independence_test(x[drawn], y[drawn], n_permutations=99, rng=seed).reject(0.05)
        kept += mm.independence_test(x[half], y[half], n_permutations=99, rng=seed).reject(0.05)
    assert lost >= 6
    assert kept <= 4  # P(more than 4 of 12 | .05) = 2e-4


def test_functions_as_tests():
    table = {name: column for name, column in garden(300).items() if name != "price"}
    calls = []

    def correlation(x, y, z):
        calls.append(z)
        if z is not None:
            functions = np.column_stack(
                [np.ones(len(x)), *(f(v) for v in z.values() for f in (np.abs, np.tanh, np.square))]
            )
            x, y = (v - functions @ np.linalg.lstsq(functions, v, rcond=None)[0] for v in (x, y))
        return pearsonr(np.abs(x) if z is None else x, y).pvalue

    found = mm.pc(table, test=correlation, half_samples=2)
    assert calls[0] is None
    assert set(calls[-1]) < set(table)
    assert 0 < max(found.support.values()) <= 1
    assert mm.pc(table, test=lambda x, y, z: 0.0).skeleton.degrees.tolist() == [3, 3, 3, 3]
    assert mm.pc(table, test=lambda x, y, z: mm.independence_test(x, y, n_permutations=19)).size == 4
    with pytest.raises(InputError, match=r"returned 2\.0; expected a p-value"):
        mm.pc(table, test=lambda x, y, z: 2.0)
    with pytest.raises(InputError, match="returned None"):
        FunctionTests(table, lambda x, y, z: None).pvalues([("sun", "water")], ())


class Counted(FunctionTests):
    """How dependent columns look linearly, with a count of what was asked."""

    def __init__(self, table):
        super().__init__(table, partial_correlation)
        self.asked = []

    def pvalues(self, pairs, given):
        self.asked += [(pair, given) for pair in pairs]
        return super().pvalues(pairs, given)


def partial_correlation(x, y, z):
    if z is not None:
        z = np.column_stack([np.ones(len(x)), *z.values()])
        x, y = (v - z @ np.linalg.lstsq(z, v, rcond=None)[0] for v in (x, y))
    return pearsonr(x, y).pvalue


@pytest.mark.parametrize("workers", [1, 4])
def test_who_does_the_tests_does_not_matter(workers):
    """Whole answers: p-values, sets that separate, and notes, in the order of a search alone."""
    generator = np.random.default_rng(7)
    causes = generator.normal(size=(200, 3))
    table = np.concatenate([causes, causes @ generator.normal(size=(3, 5)) + generator.normal(size=(200, 5))], axis=1)
    alone, sent = Counted(table), Counted(table)
    with ThreadPoolExecutor(workers) as threads:
        expected, found = mm.pc(alone, 0.2, rng=0), mm.pc(sent, 0.2, executor=threads, rng=0)
        assert str(found) == str(expected)
        assert (found.pvalues, found.separators) == (expected.pvalues, expected.separators)
        assert found.report.counts == expected.report.counts
        assert set(alone.asked) <= set(sent.asked)
        assert len(sent.asked) < 2 * len(alone.asked)
        a = generator.normal(size=60)
        steps = {"a": a, "b": np.abs(a), "c": np.abs(a) ** 1.5, "d": 2 * a, "e": generator.normal(size=60)}
        expected, found = mm.pc(steps, rng=0), mm.pc(steps, executor=threads, rng=0)
        assert (found.pvalues, found.separators) == (expected.pvalues, expected.separators)
        assert found.report.notes == expected.report.notes
        assert any("are functions of each other" in note for note in found.report.notes)


def test_functions_of_what_is_given_are_told():
    generator = np.random.default_rng(0)
    a = generator.normal(size=150)
    found = mm.pc({"a": a, "b": 2 * a, "c": np.tanh(a) + 0.3 * generator.normal(size=150)}, rng=0)
    assert any("a and b are functions of each other" in note for note in found.report.notes)


@pytest.mark.parametrize("method", ["kci", "features"])
def test_what_regressions_may_miss_is_told(method):
    """Two steps of one cause, which no regression finds to rounding: their edge may be nothing but what it missed."""
    generator = np.random.default_rng(1)
    a = generator.normal(size=200)
    table = {"a": a, "b": np.abs(a), "c": np.abs(a) ** 1.5}
    tests = KernelTests(table, method=method, rng=0)
    tests.pvalues([("b", "c")], ("a",))
    note = tests.notes()[-1]
    assert note.startswith("nearly all of b and of c is explained by a: what regressions miss")
    noisy = KernelTests(table | {"c": table["c"] + generator.normal(size=200)}, method=method, rng=0)
    noisy.pvalues([("b", "c")], ("a",))
    assert [note[:18] for note in noisy.notes()] == ["b is a function of"]
    both = mm.pc(table, test=method, rng=0)
    assert any("what regressions miss" in text for text in both.report.notes)


def test_the_column_that_leaves_no_room_for_others_is_named():
    """It was said only that rows are too few to condition on more than 0 variables."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=120)
    table = {"a": a, "b": a + rng.normal(size=120), "c": a + rng.normal(size=120)}
    day = rng.permutation(np.array([f"day {k}" for k in range(60)] * 2))
    notes = [note for note in mm.pc(table | {"day": day}, rng=0).report.notes if "too few to condition" in note]
    assert [note.partition(" The reason is ")[2] for note in notes] == [
        "'day', which alone takes 60 coefficients of a regression: leave it out of the table."
    ]
    assert not any("too few" in note for note in mm.pc(table, rng=0).report.notes)


def test_a_code_for_missing_values_is_named_once():
    """It came with two pieces of advice: to declare it, and to write NaN."""
    rng = np.random.default_rng(4)
    a = rng.normal(100, 10, size=200).round()
    a[7] = 9999
    notes = mm.pc({"a": a, "b": rng.normal(size=200)}, rng=0).report.notes
    assert len([note for note in notes if "9999" in note]) == 1


def test_a_wild_value_is_told_and_decides_nothing():
    generator = np.random.default_rng(2)
    a, b, c = generator.normal(size=(3, 200))
    b, c = b + a, c + a
    clean = mm.pc({"a": a, "b": b, "c": c}, rng=0)
    for column in (a, b, c):
        column[3] = 999999
    found = mm.pc({"a": a, "b": b, "c": c}, rng=0)
    assert found.named("undirected") == clean.named("undirected")
    assert sum("999999 in 1 of 200 rows" in text for text in found.report.notes) == 3


def test_few_rows_condition_on_little():
    tests = KernelTests(np.random.default_rng(0).normal(size=(12, 5)), rng=0)
    assert tests.most_given == 2
    tests.pvalues([("x0", "x1")], ("x2", "x3"))
    with pytest.raises(InputError, match="12 points are too few to condition on 3 columns"):
        tests.pvalues([("x0", "x1")], ("x2", "x3", "x4"))


def test_bad_tables():
    good = garden(30)
    with pytest.raises(NonFiniteError, match="not finite"):
        mm.pc(good | {"sun": np.r_[np.nan, good["sun"][1:]]})
    with pytest.raises(EmptyError, match="table has 3 rows"):
        mm.pc(np.eye(3))
    with pytest.raises(ParameterError, match="method is 'fisher'"):
        mm.pc(good, test="fisher")
    with pytest.raises(ParameterError, match=r"n_permutations is 2"):
        KernelTests(good, n_permutations=2)


@pytest.mark.parametrize(("rows", "alpha"), [(80, 0.01), (19, 0.05), (120, 0.0005)])
def test_an_edge_is_found_however_few_the_rows(rows, alpha):
    """Permutations are as many as the level needs, not as many as there are rows."""
    a = np.random.default_rng(0).normal(size=rows)
    b = a + 0.1 * np.random.default_rng(1).normal(size=rows)
    found = mm.pc({"a": a, "b": b}, alpha, half_samples=3 if rows == 80 else 0, rng=0)
    assert len(found.undirected) == 1
    if rows == 80:
        assert found.support["a", "b"] == 1.0
    tests = CallableTest({"a": a, "b": b}, level=alpha, rng=0)
    assert tests("a", "b", [], significance_level=alpha) is False


def test_fewer_permutations_than_the_level_needs_are_refused():
    with pytest.raises(ParameterError, match=r"n_permutations is 99; .* at least 999, which level 0.001 needs"):
        KernelTests(garden(40), level=0.001, n_permutations=99)
    with pytest.raises(ParameterError, match=r"n_permutations is 1000; .* at least 9999, which level 0.0001 needs"):
        CallableTest(garden(40), rng=0)("sun", "water", [], significance_level=1e-4)


@pytest.mark.parametrize("method", ["kci", "residuals"])
@pytest.mark.parametrize(("kernel", "seen"), [(RBF(0.7), True), ("learned", True), (RBF(10.0), False)])
def test_a_search_uses_the_kernel_that_is_asked_for(method, kernel, seen):
    """Growth hangs on |water|, which a kernel that is nearly linear does not see."""
    tests = KernelTests(garden(200), method=method, kernel=kernel, n_permutations=400, rng=0)
    found = tests.pvalues([("water", "growth")], ())[0], tests.pvalues([("water", "growth")], ("sun",))[0]
    assert all(p < 0.02 for p in found) if seen else all(p > 0.05 for p in found)


def test_kernels_that_cannot_be_used_are_refused():
    with pytest.raises(ParameterError, match="method='features' chooses its own kernels"):
        mm.pc(garden(40), test="features", kernel="learned")
    with pytest.raises(KindError, match="kernel is 'best'; expected a kernel, 'median', 'learned' or None"):
        mm.pc(garden(40), kernel="best")
    with pytest.raises(ParameterError, match="kernel= is for the tests of this library"):
        mm.pc(garden(40), test=lambda x, y, z: 0.5, kernel="learned")


def test_what_regressions_missed_is_found_once_for_all_partners(monkeypatch):
    """Of three variables with one step function of z each is regressed again once; p-values are those of each alone."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-3, 3, 300)
    table = {"z": z} | {name: np.sign(np.sin(4 * z)) + 0.5 * rng.normal(size=300) for name in "abc"}
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    alone = [KernelTests(table, rng=0).pvalues([pair], ("z",))[0] for pair in pairs]
    again, residuals = [], kernel_tests.residuals

    def counted(*asked, missed=None):
        again.append(missed is not None)
        return residuals(*asked, missed=missed)

    monkeypatch.setattr(kernel_tests, "residuals", counted)
    assert KernelTests(table, rng=0).pvalues(pairs, ("z",)).tolist() == alone
    assert again.count(True) == 3


def test_dependence_beyond_all_that_may_be_missed_is_not_regressed_again(monkeypatch):
    """Beside the same steps: a and b share much more, and c and a only the steps, which are found again."""
    rng = np.random.default_rng(0)
    z, shared = rng.uniform(-3, 3, 600), rng.normal(size=600)
    steps = {name: np.sign(np.sin(4 * z)) + 0.7 * rng.normal(size=600) for name in "abc"}
    table = {"z": z, "a": steps["a"] + shared, "b": steps["b"] + shared, "c": steps["c"], "d": steps["a"]}
    again, residuals = [], kernel_tests.residuals

    def counted(*asked, missed=None):
        again.append(missed is not None)
        return residuals(*asked, missed=missed)

    monkeypatch.setattr(kernel_tests, "residuals", counted)
    tests = KernelTests(table, rng=0)
    assert tests.pvalues([("a", "b")], ("z",))[0] <= 0.05 / NEAR
    assert not any(again)
    assert tests.pvalues([("c", "d")], ("z",))[0] > 0.05
    assert again.count(True) == 2


def test_edges_after_correction_are_counted_or_the_permutations_that_this_needs():
    """Of eleven columns, 55 times the smallest p-value of 1000 permutations is above .05."""
    causes, noise = np.random.default_rng(0).normal(size=(2, 6, 60))
    both = np.concatenate([causes, causes + 0.2 * noise])[:11]
    table = {f"v{j}": column for j, column in enumerate(both)}
    found = mm.pc(table, most_given=0, rng=0)
    assert found.report.measures["edges at this level after Holm's correction"] >= 5
    coarse = mm.pc(KernelTests(table, n_permutations=1000, rng=0), most_given=0)
    assert not coarse.report.measures
    said = "the smallest p-value of 1000 permutations is 0.001, and times 55 pairs it is 0.055, above the level 0.05"
    assert said in coarse.report.notes[-1]
    assert "mm.pc(mm.structure.KernelTests(table, n_permutations=1100)) draws enough" in str(coarse)
    enough = mm.pc(KernelTests(table, n_permutations=1100, rng=0), most_given=0)
    assert enough.report.measures["edges at this level after Holm's correction"] >= 5
