"""Directed graphs: beliefs and effects against laws that are known, and what is not known refused."""

import re

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import meanmap as mm
from meanmap.bp.conditionals.columns import CodedColumn
from meanmap.bp.conditionals.given_parents import GivenParents
from meanmap.bp.conditionals.in_range import InRange
from meanmap.bp.conditionals.transformations import Transformation
from meanmap.core.errors import EmptyError, InputError, KindError
from meanmap.graphs import PDAG

ARROWS = [("z", "x"), ("z", "y"), ("x", "y")]


def linear(m: int, seed: int) -> dict:
    """A common cause: seeing x = 1 says 2 about y, setting it 1."""
    z, e, f = np.random.default_rng(seed).normal(size=(3, m))
    x = z + e
    return {"x": x, "y": x + 2 * z + f, "z": z}


def bent(m: int, seed: int) -> dict:
    """E[y | do(x)] = sin 2x + 1."""
    z, e, f = np.random.default_rng(seed).normal(size=(3, m))
    x = 0.7 * z + 0.7 * e
    return {"x": x, "y": np.sin(2 * x) + z**2 + 0.5 * f, "z": z}


@pytest.fixture(scope="module")
def model():
    return mm.bp.BayesianNetwork(ARROWS).fit(linear(1000, 0))


def test_seeing_is_not_doing(model):
    seen = model.query({"x": 1.0}, ["y", "z"], rng=0)
    np.testing.assert_allclose([seen["y"].mean(), seen["z"].mean()], [2, 0.5], atol=0.3)  # four standard errors
    np.testing.assert_allclose([seen["y"].var(), seen["z"].var()], [3, 0.5], atol=0.5)
    done = model.do({"x": 1.0}, ["y", "z"], rng=0)
    np.testing.assert_allclose([done["y"].mean(), done["z"].mean()], [1, 0], atol=0.2)
    np.testing.assert_allclose([done["y"].var(), done["z"].var()], [5, 1], atol=0.6)


def test_causes_compete_for_an_effect():
    """Arrows that meet: b explains c away, and a is then believed to be small."""
    a, b, noise = np.random.default_rng(1).normal(size=(3, 1000))
    fitted = mm.bp.BayesianNetwork([("a", "c"), ("b", "c")]).fit({"a": a, "b": b, "c": a + b + 0.5 * noise})
    alone = fitted.query({"c": 2.0}, ["a"], rng=0)["a"]
    explained = fitted.query({"c": 2.0, "b": 2.0}, ["a"], rng=0)["a"]
    np.testing.assert_allclose([alone.mean(), explained.mean()], [2 / 2.25, 0.0], atol=0.2)
    np.testing.assert_allclose(alone.var(), 1 - 1 / 2.25, atol=0.2)
    assert fitted.query({"b": 2.0}, ["a"], rng=0)["a"].mean() == pytest.approx(0, abs=0.15)


def test_draws_of_costs_are_no_less_than_nothing():
    """Lognormal costs of two groups: means within four standard errors of those of the rows, which are exact."""
    group, noise = np.random.default_rng(2).integers(2, size=1500), np.random.default_rng(3).normal(size=1500)
    cost = np.exp(1.0 * group + (0.5 + 0.5 * group) * noise)
    later = cost * np.exp(0.5 * np.random.default_rng(4).normal(size=1500))
    table = {"group": np.array(["a", "b"])[group], "cost": cost, "later": later}
    fitted = mm.bp.BayesianNetwork([("group", "cost"), ("cost", "later")]).fit(table)
    drawn = fitted.sample(4000, rng=0)
    assert np.isfinite(np.log(drawn["cost"])).all()
    assert np.isfinite(np.log(drawn["later"])).all()
    for k, label in enumerate("ab"):
        belief, seen = fitted.do({"group": label}, ["cost"], rng=0)["cost"], cost[group == k]
        assert belief.points.min() > 0
        assert abs(belief.mean() - seen.mean()) < 4 * seen.std() * np.sqrt(1 / len(seen) + 1 / 4000)
    completed = fitted.impute({"group": ["a", "b"], "cost": [np.nan, np.nan], "later": [1.0, 1.0]})
    assert np.min(completed["cost"]) > 0
    row = {"group": "a", "cost": 0.1, "later": 0.1}
    assert fitted.counterfactual(row, {"cost": 0.01}, ["later"])["later"] > 0


def test_draws_stay_in_the_limits_of_the_column():
    """Whatever scale it is regressed on: shares near 0, their opposite, and small numbers of one sign."""
    x, noise = np.random.default_rng(5).normal(size=(2, 400))
    share = 1 / (1 + np.exp(-2 * x - noise - 2))
    for values, (low, high) in [(share, (0, 1)), (-np.abs(x + noise), (-np.inf, 0)), (np.round(share), (0, 1))]:
        fitted = mm.bp.BayesianNetwork([("x", "y")]).fit({"x": x, "y": values})
        drawn = fitted.do({"x": -2.0}, ["y"], rng=0)["y"].points
        assert low <= drawn.min()
        assert drawn.max() <= high
        open_ends = [end for end in (low, high) if end not in values]
        assert not np.isin(drawn, open_ends).any()


def test_draws_from_far_below_a_limit_that_no_row_reaches_are_the_least_number_of_all_rows():
    """A line that ends just above 0, asked where it would be far below."""
    x = np.linspace(0, 1, 400)
    y = 1.01 - x + 0.001 * np.random.default_rng(6).normal(size=400)
    column = CodedColumn.of("y", y)
    plain = Transformation("plain", 0.0, -np.inf, np.inf, column.centre, column.scale)
    law = InRange.fit(x[:, None], y[:, None], plain, column)
    drawn = law.draw(np.full((50, 1), 3.0), np.random.default_rng(0))
    np.testing.assert_allclose(law.centre + law.scale * drawn, y.min())
    first = float((y[0] - law.centre) / law.scale)
    assert law.moved(x[:1, None], first, np.array([[3.0]])) == pytest.approx(drawn[0, 0])


@pytest.mark.slow
@pytest.mark.parametrize(("law", "truth"), [(linear, lambda x: x), (bent, lambda x: np.sin(2 * x) + 1)])
def test_effects_are_the_true_ones(law, truth):
    """The mean over ten data sets is within four of its standard errors, at four places each."""
    found = []
    for seed in range(10):
        fitted = mm.bp.BayesianNetwork(ARROWS).fit(law(1000, 100 + seed))
        found.append([fitted.do({"x": x}, ["y"], rng=seed)["y"].mean() - truth(x) for x in (-0.7, 0.0, 0.7, 1.0)])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(np.mean(found, axis=0)) < 4 * error).all()


def test_what_parents_add_up_to_is_known_where_they_were_never_seen_together():
    """Parents that go along, asked where they do not: a sum of functions of each is learned as such, a product not."""
    for seed in range(3):
        z, e, noise = np.random.default_rng(seed).normal(size=(3, 300))
        rows = np.stack([z, 0.9 * z + 0.4 * e], axis=1)
        apart, together = np.array([[2.0, -0.5], [-2.0, 0.5], [1.8, 0.0]]), np.array([[1.0, 0.9], [-1.0, -0.9]])
        added = GivenParents.fit(rows, (np.sin(2 * rows[:, 1]) + z**2 + 0.3 * noise)[:, None])
        np.testing.assert_allclose(added.means(apart), np.sin(2 * apart[:, 1]) + apart[:, 0] ** 2, atol=0.6)
        multiplied = GivenParents.fit(rows, (np.prod(rows, axis=1) + 0.3 * noise)[:, None])
        np.testing.assert_allclose(multiplied.means(together), [0.9, 0.9], atol=0.25)


def test_labels_are_causes_and_effects():
    rng = np.random.default_rng(0)
    age = rng.normal(size=1500)
    drug = np.where(rng.random(1500) < 1 / (1 + np.exp(-2 * age)), "yes", "no")
    well = rng.random(1500) < 1 / (
        1 + np.exp(2 * age - (drug == "yes").astype(float))
    )  # the drug helps, the old take it
    frame = pd.DataFrame({"age": age, "drug": drug, "well": well})
    fitted = mm.bp.BayesianNetwork([("age", "drug"), ("age", "well"), ("drug", "well")]).fit(frame)
    seen = [fitted.query({"drug": d}, ["well"], rng=0).probabilities("well")[True] for d in ("yes", "no")]
    done = [fitted.do({"drug": d}, ["well"], rng=0).probabilities("well")[True] for d in ("yes", "no")]
    truth = [np.mean(1 / (1 + np.exp(-c + 2 * rng.normal(size=100_000)))) for c in (1, 0)]
    assert seen[0] < seen[1]
    np.testing.assert_allclose(done, truth, atol=0.08)


def treated(m: int, seed: int) -> dict:
    """E[y | do(t)] is larger by a half with b: a number is the common cause of a label and a number."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=m)
    t = np.where(rng.random(m) < 1 / (1 + np.exp(-z)), "b", "a")
    return {"z": z, "t": t, "y": 0.5 * (t == "b") + z + rng.normal(size=m)}


def test_a_label_does_what_it_does():
    """Within four standard errors, that of a regression and that of 4000 draws."""
    error = np.hypot(2.1 / np.sqrt(1000), np.sqrt(2 * 2 / 4000))
    for seed in (2, 3):
        fitted = mm.bp.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")]).fit(treated(1000, seed))
        one, other = (fitted.do({"t": t}, ["y"], rng=seed)["y"].mean() for t in "ab")
        assert abs(other - one - 0.5) < 4 * error


def test_scores_are_log_densities(model):
    held = linear(400, 5)
    truth = norm.logpdf(held["z"]) + norm.logpdf(held["x"], held["z"])
    truth += norm.logpdf(held["y"], held["x"] + 2 * held["z"])
    assert abs(np.mean(model.score(held) - truth)) < 0.15


def test_rows_with_gaps_have_the_density_of_what_is_there(model):
    """An effect that is missing does not matter; a cause is integrated out."""
    held = linear(15, 5)
    laws = {"y": norm.logpdf(held["z"]) + norm.logpdf(held["x"], held["z"])}
    laws["z"] = norm.logpdf(held["x"], scale=2**0.5) + norm.logpdf(held["y"], 2 * held["x"], 3**0.5)
    laws["x"] = norm.logpdf(held["z"]) + norm.logpdf(held["y"], 3 * held["z"], 2**0.5)
    for hidden, truth in laws.items():
        found = model.score(held | {hidden: np.full(15, np.nan)})
        assert abs(np.mean(found - truth)) < 0.3
        assert np.corrcoef(found, truth)[0, 1] > 0.9
    assert model.score({name: [np.nan] for name in "xyz"}).tolist() == [0.0]
    # Rows are scored on their own, and those without gaps as before.
    mixed = {name: np.r_[column[:3], np.nan] for name, column in held.items()}
    np.testing.assert_allclose(model.score(mixed)[:3], model.score({n: c[:3] for n, c in held.items()}))


def test_draws_have_the_covariance_of_the_data(model):
    drawn, data = model.sample(3000, rng=0), linear(1000, 0)
    np.testing.assert_allclose(np.cov(list(drawn.values())), np.cov([data[n] for n in drawn]), atol=0.8)
    assert (model.sample(10, rng=0)["x"] == model.sample(10, rng=0)["x"]).all()
    assert set(model.sample(10, values={"x": 2.0}, rng=0)["x"]) == {2.0}


def test_a_saved_network_says_the_same(model, tmp_path):
    labels = {"a": np.tile([0.0, 1.0, 2.0, 5.0], 10), "b": np.tile(["u", "v", "v", "w"], 10)}
    for fitted, held in ((model, linear(9, 6)), (mm.bp.BayesianNetwork([("a", "b")]).fit(labels), labels)):
        loaded = mm.load(mm.save(fitted, tmp_path / "network.meanmap"))
        np.testing.assert_array_equal(loaded.score(held), fitted.score(held))
        assert str(loaded) == str(fitted)
    one, other = (
        each.do({"x": 1.0}, ["y"], rng=0)["y"].mean() for each in (mm.load(mm.save(model, tmp_path / "x")), model)
    )
    assert one == other


def test_draws_given_evidence_have_its_law(model):
    drawn = model.sample(2000, {"x": 1.0}, rng=0)
    assert set(drawn["x"]) == {1.0}
    np.testing.assert_allclose([drawn["y"].mean(), drawn["z"].mean()], [2, 0.5], atol=0.3)
    np.testing.assert_allclose([drawn["y"].var(), drawn["z"].var()], [3, 0.5], atol=0.5)


def test_effects_that_hang_on_an_open_edge_are_refused():
    data = linear(200, 0)
    whole = mm.bp.BayesianNetwork(PDAG.of([], [("x", "y"), ("x", "z"), ("z", "y")])).fit(data)
    with pytest.raises(InputError, match=r"depends on the direction of the edge 'x' — 'y'.*both are possible"):
        whole.do({"x": 1.0}, ["y"])
    assert abs(whole.query({"x": 1.0}, ["y"], rng=0)["y"].mean() - 2) < 0.5  # seeing does not ask for directions
    # z — x → y ← w: what x does to y is known, what it does to z is not.
    data |= {"w": np.random.default_rng(3).normal(size=200)}
    part = mm.bp.BayesianNetwork(PDAG.of([("x", "y"), ("w", "y")], [("z", "x")])).fit(data)
    assert np.isfinite(part.do({"x": 1.0}, ["y"], rng=0)["y"].mean())
    with pytest.raises(InputError, match="'x' on 'z'"):
        part.do({"x": 1.0}, ["z"])


def test_graphs_of_the_library_and_of_networkx_are_taken():
    data = linear(200, 0)
    for graph in (networkx.DiGraph(ARROWS), mm.chow_liu(data), PDAG.of(ARROWS)):
        fitted = mm.bp.BayesianNetwork(graph).fit(data)
        assert len(fitted.directed.undirected) == 0


def test_evidence_that_hardly_happens_is_told(model):
    far = model.query({"x": 300.0}, ["z"], rng=0).report
    assert any("far outside" in note for note in far.notes)
    report = model.query({"x": 6.0, "y": -16.0}, ["z"], rng=0).report
    assert any("improbable" in note for note in report.notes)
    assert not report.converged


def test_arrows_are_judged_by_rows_that_are_left_out(tmp_path):
    """y = x + 2 z + noise: knowing both is worth ½ log 11 nats, without x ½ log(11/2), without z ½ log(11/3)."""
    data = linear(900, 8) | {"w": np.random.default_rng(9).normal(size=900)}
    found = mm.bp.BayesianNetwork([("z", "x"), ("z", "y"), ("x", "y"), ("w", "y")]).judge(data, 3)
    gains = {arrow: gain.mean for arrow, gain in found.arrows.items()}
    np.testing.assert_allclose([found.nodes["y"].mean, found.lines["y"].mean], np.log(11) / 2, atol=0.12)
    np.testing.assert_allclose([gains["x", "y"], gains["z", "y"]], [np.log(2) / 2, np.log(3) / 2], atol=0.1)
    assert abs(gains["w", "y"]) < 0.02
    assert found.to_networkx().edges["z", "y"]["gain"] == gains["z", "y"]
    assert "z → y: +" in str(found)
    labels = {text.get_text() for text in found.plot().texts}
    assert {f"{gain:.2g}" for gain in gains.values()} <= labels
    with pytest.raises(ValueError, match="folds is 1"):
        mm.bp.BayesianNetwork([("z", "x")]).judge(data, 1)


def test_what_cannot_be_asked_is_refused(model):
    with pytest.raises(InputError, match=r"the cycle a → b → c"):
        mm.bp.BayesianNetwork([("a", "b"), ("b", "c"), ("c", "a")])
    with pytest.raises(InputError, match="no column 'z'"):
        mm.bp.BayesianNetwork(ARROWS).fit({"x": [1.0], "y": [1.0]})
    with pytest.raises(EmptyError, match="together in 5 rows"):
        mm.bp.BayesianNetwork(ARROWS).fit(linear(5, 0))
    with pytest.raises(InputError, match="no node 'w'"):
        model.query({"w": 1.0})
    with pytest.raises(KindError, match="expected a single one"):
        model.do({"x": [1.0, 2.0]})
    with pytest.raises(InputError, match=r"'x'\] is missing \(nan\); leave out"):
        model.query({"x": np.nan})
    towns = mm.bp.BayesianNetwork([("town", "v")]).fit({"town": ["Ulm", "Bonn"] * 20, "v": np.arange(40.0) % 7})
    with pytest.raises(InputError, match="none of the 40 rows of the data has; expected one of 'Bonn', 'Ulm'"):
        towns.do({"town": "bonn"})
    with pytest.raises(InputError, match="both set and observed"):
        model.do({"x": 1.0}, evidence={"x": 2.0})
    with pytest.raises(InputError, match="a target and also given"):
        model.query({"x": 1.0}, ["x"])


def test_columns_called_by_numbers_are_found_by_number_and_by_text():
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    frame = pd.DataFrame({0: a, 1: 2 * a + rng.normal(size=300), 2: rng.normal(size=300)})
    found = mm.pc(frame, forbidden=[(1, 0)], rng=0)  # pyright: ignore[reportArgumentType]
    model = mm.bp.BayesianNetwork([("0", "1")]).fit(frame)
    numbered = mm.bp.BayesianNetwork([(0, 1)]).fit(frame)
    assert mm.bp.BayesianNetwork(found).fit(frame).do({0: 1.0}, [1], rng=0)[1].mean() == pytest.approx(2.0, abs=0.4)
    for one, other in ((0, 1), ("0", "1")):
        for each in (model, numbered):
            beliefs = each.do({one: 1.0}, [other], rng=0)
            assert beliefs[1].mean() == beliefs["1"].mean() == pytest.approx(2.0, abs=0.4)
            row = {one: 0.0, other: 0.5}
            assert each.counterfactual(row, {one: 1.0}).popitem()[1] == pytest.approx(2.5, abs=0.5)
            assert (each.sample(5, values={one: 1.0}, rng=0)[each.graph.names[0]] == 1.0).all()
        chain = mm.KernelGraph([("0", "1"), ("1", "2")] if one == 0 else [(0, 1), (1, 2)]).fit(frame)
        assert chain.query({one: 1.0}, [other])[other].mean() == pytest.approx(2.0, abs=0.5)
        assert mm.bp.DependencyNetwork([]).fit(frame).query({one: 1.0}, [other])[other].mean() == pytest.approx(
            2, abs=0.5
        )
    with pytest.raises(InputError, match="the graph has no node 3; it has '0', '1'"):
        model.do({3: 1.0})


def test_values_far_beyond_the_data_are_told_of_whatever_is_asked():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    model = mm.bp.BayesianNetwork([("a", "b")]).fit({"a": a, "b": a + rng.normal(size=200)})
    far = "values['a'] has 1 value far outside"
    assert model.do({"a": 1e6}, ["b"], rng=0).report.notes[0].startswith(far)
    # Half the range beyond the data is far: regressions go on there on their own.
    beyond = a.max() + 0.5 * np.ptp(a)
    assert model.do({"a": beyond + 0.1}, ["b"], rng=0).report.notes[0].startswith(far)
    (near,) = model.do({"a": beyond - 0.1}, ["b"], rng=0).report.notes
    assert "is outside the range from which 'b' was learned" in near
    assert not model.do({"a": a.max() - 0.1}, ["b"], rng=0).report.notes
    with pytest.warns(UserWarning, match=re.escape(far)):
        model.counterfactual({"a": 0.0, "b": 0.0}, {"a": 1e6})
    with pytest.warns(UserWarning, match=re.escape(far)):
        model.sample(3, values={"a": 1e6}, rng=0)


def test_rows_are_filled_in_and_predicted_whatever_is_missing(model):
    """Against the normal law that made the data; each row is answered as if it were alone."""
    cause = np.array([[1.0, 0, 0], [1, 1, 0], [3, 1, 1]])  # z, x, y from the three sources
    covariance = dict(zip("zxy", cause @ cause.T, strict=True))
    rows = pd.DataFrame({"z": [np.nan, 0.5, np.nan], "y": [np.nan, np.nan, 2.0], "x": [1.0, 1.0, 0.5]})
    beliefs = model.predict(rows, ["z"], rng=0)
    place = {name: i for i, name in enumerate("zxy")}
    for i, seen in enumerate((["x"], ["x"], ["x", "y"])):
        at = [place[name] for name in seen]
        known = np.array([covariance[name][at] for name in seen])
        gain = np.linalg.solve(known, covariance["z"][at])
        mean, var = gain @ rows.loc[i, seen], covariance["z"][0] - gain @ covariance["z"][at]
        assert beliefs["z"].mean()[i] == pytest.approx(mean, abs=0.25)
        assert beliefs["z"].sd()[i] == pytest.approx(np.sqrt(var), abs=0.15)
        np.testing.assert_allclose(
            beliefs["z"].quantile([0.25, 0.75])[i], norm.ppf([0.25, 0.75], mean, np.sqrt(var)), atol=0.3
        )
    filled = model.impute(rows, rng=0)
    assert filled["x"].tolist() == [1.0, 1.0, 0.5]
    assert filled.loc[1, "z"] == 0.5
    assert filled.loc[2, "z"] == pytest.approx(beliefs["z"].mean()[2], abs=1e-9)
    assert filled.loc[1, "y"] == pytest.approx(1 + 2 * 0.5, abs=0.3)
    pd.testing.assert_frame_equal(model.impute(rows[::-1][["x", "y", "z"]], rng=0)[filled.columns], filled[::-1])


def test_labels_of_rows_are_filled_in_and_new_ones_say_nothing():
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    data = pd.DataFrame({"a": a, "sign": np.where(a > 0, "up", "down"), "when": pd.to_datetime("2024-01-01")})
    data["when"] += pd.to_timedelta(np.round(a * 3600), unit="s")
    model = mm.bp.BayesianNetwork([("a", "sign"), ("a", "when")]).fit(data)
    rows = pd.DataFrame({"a": [1.0, np.nan, np.nan], "sign": [None, "down", "sideways"], "other": [1, 2, 3]})
    with pytest.warns(UserWarning, match=r"frame\['sign'\] has 1 label never seen before, such as 'sideways'"):
        filled = model.impute(rows, rng=0)
    assert filled["sign"].tolist() == ["up", "down", "sideways"]
    assert filled["other"].tolist() == [1, 2, 3]
    np.testing.assert_allclose(filled["a"], [1.0, -0.8, a.mean()], atol=0.25)
    beliefs = model.predict(rows, ["a", "when"], rng=0)
    assert any("sideways" in note for note in beliefs.report.notes)
    assert beliefs["a"].mode().shape == (3,)
    hours = pd.DataFrame({"a": [1.0, 0.5], "when": [pd.NaT, data["when"][0]]})
    assert abs((model.impute(hours, rng=0)["when"][0] - pd.Timestamp("2024-01-01")).total_seconds() - 3600) < 900
    with pytest.raises(InputError, match=r"frame has .*; expected some of the model's columns: 'a'"):
        model.impute(pd.DataFrame({"b": [1.0]}))


@pytest.mark.parametrize(
    "unfitted", [mm.bp.BayesianNetwork([("a", "sign")]), mm.bp.DependencyNetwork(), mm.KernelGraph([("a", "sign")])]
)
def test_a_table_without_rows_has_answers_for_none(unfitted):
    a = np.random.default_rng(0).normal(size=100)
    rows = pd.DataFrame({"a": a, "sign": np.where(a > 0, "up", "down")})
    model = unfitted.fit(rows)
    beliefs = model.predict(rows[:0], ["a", "sign"])
    assert beliefs["a"].mean().shape == (0,)
    assert beliefs.probabilities("sign")["up"].shape == (0,)
    assert model.impute(rows[:0]).shape == (0, 2)
    assert model.score(rows[:0]).shape == (0,)


@pytest.mark.parametrize("m", [30, 60])
def test_small_tables_have_lines_where_kernels_could_go_through_all_rows(m):
    """Kernels with as many features as rows left nothing to the line, and seemed to predict without an error."""
    apart = []
    for seed in (4, 100, 101, 102):
        data = linear(m, seed)
        model = mm.bp.BayesianNetwork(ARROWS).fit(data)
        found = [model.do({"x": x}, ["y"], rng=0)["y"].mean() for x in (-1.0, 1.0)]
        design = np.stack([np.ones(m), data["x"], data["z"]], axis=1)
        apart.append(found[1] - found[0] - 2 * np.linalg.lstsq(design, data["y"])[0][1])
    assert np.abs(apart).max() < 0.5


def test_answers_beyond_the_rows_and_labels_that_are_not_told_apart_are_noted(model):
    beyond = model.do({"x": 9.0}, ["y"], rng=0).report.notes
    assert any("the value of 'x' is outside the range from which 'y' was learned" in note for note in beyond)
    assert not any("beyond" in note for note in model.do({"x": 1.0}, ["y"], rng=0).report.notes)
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 60, 600)
    data = {"shop": np.array([f"s{i}" for i in range(60)])[shop], "y": shop + rng.normal(size=600)}
    notes = mm.bp.BayesianNetwork([("shop", "y")]).fit(data).query({}, ["y"], rng=0).report.notes
    assert any("the 10 rarest of the 60 labels of 'shop' count as one" in note for note in notes)


def test_residuals_of_one_shape_have_the_density_of_all_rows():
    """Leaves of a forest have few rows: by them new rows of a straight line lost .010 nats each, by all .005."""
    gains = []
    for seed in range(3):
        x, noise = np.random.default_rng([seed, 7]).normal(size=(2, 3000))
        law = GivenParents.fit(x[:1500, None], (x + noise)[:1500, None])
        assert law.forest is None
        gains.append(law.log_chance(x[1500:, None], (x + noise)[1500:, None]) - norm.logpdf(noise[1500:]))
        assert law.moved(np.zeros((1, 1)), 0.7, np.ones((1, 1))) == pytest.approx(1.7, abs=0.1)
    assert np.mean(gains) > -0.007


def test_residuals_whose_shape_changes_are_those_of_rows_with_similar_parents():
    """Two lines apart on one side, one on the other."""
    x, noise = np.random.default_rng(8).normal(size=(2, 1500))
    apart = np.where(x > 0, np.sign(noise) * 2 + 0.3 * noise, 2 * noise)
    law = GivenParents.fit(x[:, None], apart[:, None])
    assert law.forest is not None
    drawn = law.draw(np.full((1000, 1), 1.0), np.random.default_rng(0))[:, 0]
    assert np.mean(np.abs(drawn) < 1) < 0.1


def test_draws_of_whole_numbers_are_whole():
    """Of ratings from 1 to 5, "at least 5" was never drawn, and counts of 0 half as often as they are."""
    rng = np.random.default_rng(20)
    x = rng.normal(size=800)
    rating = np.digitize(x + rng.logistic(size=800), [-2, -0.7, 0.7, 2]) + 1
    model = mm.bp.BayesianNetwork([("x", "rating")]).fit({"x": x, "rating": rating})
    top = np.mean(rng.normal(size=100_000) + rng.logistic(size=100_000) > 2)
    drawn = model.sample(2000, rng=0)["rating"]
    assert drawn.dtype == rating.dtype
    assert abs(np.mean(drawn >= 5) - top) < 0.04
    belief = model.do({"x": 0.0}, ["rating"], rng=0)["rating"]
    assert np.array_equal(belief.points, np.round(belief.points))
    assert abs(belief.mean() - 3) < 0.2
    assert model.counterfactual({"x": 0.0, "rating": 3}, {"x": 2.0}) == {"rating": 4}


def test_few_draws_that_agree_with_the_evidence_are_followed_by_more():
    """Evidence within the data left 1.08 of 4000 draws, an interval of .77 for 2.69, and one row a thousand times."""
    rng = np.random.default_rng(97)
    noise = rng.normal(size=(4, 2000))
    a, b, c = np.cumsum(noise[:3], axis=0)
    arrows = [("a", "b"), ("b", "c"), ("c", "e")]
    model = mm.BayesianNetwork(arrows).fit({"a": a, "b": b, "c": c, "e": c + 0.1 * noise[3]})
    found = model.query({"e": 5.0}, ["a"], rng=0)
    low, high = found["a"].interval(0.9)
    assert abs(found["a"].mean() - 5 / 3.01) < 0.5
    assert 1.5 < high - low < 4
    with pytest.warns(UserWarning, match="of 64000 draws agree with the evidence"):
        drawn = model.sample(1000, {"e": 6.5}, rng=0)
    assert len(np.unique(drawn["a"])) > 1


def test_a_counterfactual_of_nothing_changed_returns_the_row():
    """It was refused where a label is an effect: the value that it has would have changed its probabilities."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=300)
    table = {"x": x, "y": x + rng.normal(size=300), "g": np.where(x + rng.normal(size=300) > 0, "u", "v")}
    model = mm.BayesianNetwork([("x", "y"), ("x", "g")]).fit(table)
    row = {name: values[0] for name, values in table.items()}
    assert model.counterfactual(row, {"x": row["x"]}) == {"y": row["y"], "g": row["g"]}
    with pytest.raises(InputError, match="would change its probabilities"):
        model.counterfactual(row, {"x": row["x"] + 1})


def test_predictions_of_a_cause_are_as_wide_as_evidence_leaves_it():
    """Against the normal law that made the data: one of two peaks or one, queried, predicted alone and in a table."""
    random = np.random.default_rng(3)
    a = random.normal(size=1500)
    data = {"a": a, "b": a + 0.2 * random.normal(size=1500), "c": a**2 + 0.3 * random.normal(size=1500)}
    model = mm.bp.BayesianNetwork([("a", "b"), ("a", "c")]).fit(data)
    seen = [{"b": 1.0, "c": np.nan}, {"b": np.nan, "c": 1.0}, {"b": -0.5, "c": 0.3}]
    table = pd.DataFrame(seen)
    beliefs = model.predict(table, ["a"], rng=0)
    levels, grid = [0.05, 0.25, 0.75, 0.95], np.linspace(-4, 4, 8001)
    for i, row in enumerate(seen):
        law = norm.pdf(grid)
        law *= 1 if np.isnan(row["b"]) else norm.pdf(row["b"], grid, 0.2)
        law *= 1 if np.isnan(row["c"]) else norm.pdf(row["c"], grid**2, 0.3)
        law /= law.sum()
        spread = np.sqrt(law @ grid**2 - (law @ grid) ** 2)
        queried = model.query({name: each for name, each in row.items() if each == each}, ["a"], rng=0)
        alone = model.predict(table.iloc[[i]], ["a"], rng=0)["a"]
        np.testing.assert_allclose(alone.quantile(levels)[0], beliefs["a"].quantile(levels)[i], atol=1e-12)
        error = spread / np.sqrt(beliefs.report.measures["draws that count, fewest in a row"])
        assert beliefs["a"].mean()[i] == pytest.approx(queried["a"].mean(), abs=3 * error)
        assert beliefs["a"].sd()[i] == pytest.approx(spread, rel=0.12)
        np.testing.assert_allclose(beliefs["a"].quantile(levels)[i], queried["a"].quantile(levels), atol=4 * error)
        # The density of two peaks is that of both, not of one smoothed over them.
        density = beliefs["a"][i].density(grid)
        assert np.sum(np.abs(density / density.sum() - law)) < 0.4
