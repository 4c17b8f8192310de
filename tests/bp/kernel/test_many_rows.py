"""Tables with cells missing anywhere: each row is what a query with its cells says, and draws follow the beliefs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

import meanmap as mm
from meanmap.bp.beliefs.tails import with_tails
from meanmap.core.errors import InputError, KindError, ShapeError
from meanmap.embeddings.bandwidth import diffusion_widths

FEW_DATA = pytest.mark.filterwarnings("ignore:.*(relies on|further out than)")
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "k"), ("e", "f")]


def make_table(m: int = 80, seed: int = 0) -> dict:
    """Two trees: numbers, a vector and a label."""
    rng = np.random.default_rng(seed)
    b = rng.normal(size=m)
    noise = 0.3 * rng.normal(size=(4, m))
    d = -b + noise[2]
    return {
        "a": np.sin(b) + noise[0],
        "b": b,
        "c": np.stack([b**2, b], axis=1) + noise[1][:, None],
        "d": d,
        "k": np.where(d + noise[3] > 0, "up", "down"),
        "e": rng.normal(size=m),
        "f": rng.normal(size=m),
    }


def with_gaps(table: dict, rng: np.random.Generator, share: float) -> dict:
    """The same with cells missing at random."""
    found = {}
    for name, column in table.items():
        gone = rng.random(len(column)) < share
        column = column.astype(object if column.dtype.kind == "U" else float)
        column[gone] = None if column.dtype.kind == "O" else np.nan
        found[name] = column
    return found


@pytest.fixture(scope="module")
def model():
    return mm.KernelGraph(EDGES).fit(make_table())


@pytest.fixture(scope="module")
def gaps():
    return with_gaps(make_table(24, seed=1), np.random.default_rng(2), 0.4)


def there(value) -> bool:
    return value is not None and not np.any(np.isnan(value) if not isinstance(value, str) else False)


def row_of(frame: dict, i: int, without: str = "") -> dict:
    return {name: column[i] for name, column in frame.items() if there(column[i]) and name != without}


@FEW_DATA
def test_rows_are_imputed_as_queries_answer_them(model, gaps):
    whole = model.impute(gaps)
    for i in range(24):
        seen = row_of(gaps, i)
        beliefs = model.query(seen)
        for name in gaps:
            if name in seen:
                assert np.all(whole[name][i] == gaps[name][i])
            elif name == "k":
                assert whole[name][i] == beliefs[name].mode()
            else:
                np.testing.assert_allclose(whole[name][i], beliefs[name].mean(), rtol=1e-10, atol=1e-10)


def test_predictions_are_queries_without_the_targets(model, gaps):
    found = model.predict(gaps, targets=["b", "k"])
    grid = np.linspace(-2, 2, 7)
    density, share = found["b"].density(grid), found.probabilities("k")["up"]
    for i in range(24):
        beliefs = model.query({n: v for n, v in row_of(gaps, i, "k").items() if n != "b"}, targets=["b", "k"])
        np.testing.assert_allclose(found["b"].weights[i], beliefs["b"].weights, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(density[i], beliefs["b"].density(grid), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(share[i], beliefs.probabilities("k")["up"], rtol=1e-10)


def test_scores_are_the_chain_rule(model):
    """Along a walk from the root, each cell given those before it, by queries."""
    frame = with_gaps(make_table(6, seed=3), np.random.default_rng(4), 0.3)
    scores = model.score(frame)
    tree = model._rooted
    for i in range(6):
        seen, before, total = row_of(frame, i), {}, 0.0
        stack = tree.order[tree.depth[tree.order] == 0].tolist()[::-1]
        while stack:
            node = stack.pop()
            name = model.graph.names[node]
            stack += [n for n in tree.order.tolist() if tree.parent[n] == node][::-1]
            if name not in seen:
                continue
            belief = model.query(before, targets=[name])[name]
            point = seen[name]
            if name == "k":
                total += np.log(belief.probabilities()[point])
            else:
                known, points = model.samples.nodes[node].points, np.atleast_2d(point)
                width = diffusion_widths(known)
                ends = known.min(axis=0) - width, known.max(axis=0) + width
                total += with_tails(np.log(belief.density(points)), points, *ends)[0]
            before |= {name: point}
        assert scores[i] == pytest.approx(total, rel=1e-8, abs=1e-8)


def normal_table(m: int, seed: int) -> dict:
    a, b, c = np.cumsum(np.random.default_rng(seed).normal(size=(3, m)), axis=0)
    return {"a": a, "b": b, "c": c}


@pytest.fixture(scope="module")
def normal_chain():
    return mm.KernelGraph([("a", "b"), ("b", "c")], rank=60).fit(normal_table(1000, 0))


def test_scores_of_normal_rows_are_their_densities(normal_chain):
    held = normal_table(500, 1)
    truth = norm.logpdf(held["a"]) + norm.logpdf(held["b"], held["a"]) + norm.logpdf(held["c"], held["b"])
    assert abs(np.mean(normal_chain.score(held) - truth)) < 0.1


def test_scores_far_from_all_rows_are_low_and_finite(normal_chain):
    """Densities of kernels are zero there, and one such row made the mean over all of them −∞."""
    away = np.array([0.0, 30.0, 1e6, 1e30])
    scores = normal_chain.score({"a": away, "b": np.zeros(4), "c": np.zeros(4)})
    assert np.isfinite(scores).all()
    assert (np.diff(scores) < -5).all()
    assert scores[1] < np.log(1e-4)


def test_draws_given_evidence_keep_it(model):
    drawn = model.sample(50, {"a": 0.5, "k": "up"}, rng=0)
    assert set(drawn["a"]) == {0.5}
    assert set(drawn["k"]) == {"up"}
    assert drawn["c"].shape == (50, 2)


def test_draws_given_evidence_follow_the_normal_law(normal_chain):
    """b and c of a chain a → b → c given a = 1: means 1, variances 1 and 2, covariance 1."""
    drawn = normal_chain.sample(4000, {"a": 1.0}, rng=0)
    pair = np.stack([drawn["b"], drawn["c"]])
    np.testing.assert_allclose(pair.mean(axis=1), 1, atol=0.2)
    np.testing.assert_allclose(np.cov(pair), [[1, 1], [1, 2]], atol=0.35)
    back = normal_chain.sample(4000, {"c": 1.5}, rng=0)
    np.testing.assert_allclose([back["a"].mean(), back["b"].mean()], [0.5, 1.0], atol=0.2)


def test_draws_are_joint_and_repeatable(model):
    drawn = model.sample(3000, rng=1)
    again = model.sample(3000, rng=1)
    assert all((drawn[name] == again[name]).all() for name in drawn)
    data = make_table()
    for a, b in (("a", "b"), ("b", "d")):
        assert np.corrcoef(drawn[a], drawn[b])[0, 1] == pytest.approx(np.corrcoef(data[a], data[b])[0, 1], abs=0.15)
    assert abs(np.corrcoef(drawn["b"], drawn["e"])[0, 1]) < 5 / np.sqrt(3000)


@FEW_DATA
def test_draws_for_a_table_have_its_rows_first(model, gaps):
    drawn = model.sample(5, gaps, rng=0)
    assert drawn["b"].shape == (24, 5)
    assert drawn["c"].shape == (24, 5, 2)
    seen = np.array([there(v) for v in gaps["b"]])
    np.testing.assert_array_equal(drawn["b"][seen], np.repeat(gaps["b"][seen].astype(float)[:, None], 5, axis=1))


@FEW_DATA
def test_few_rows_at_a_time_say_the_same(model, gaps, monkeypatch):
    from meanmap.bp.kernel import asked_rows

    whole = model.impute(gaps)["b"], model.score(gaps)
    monkeypatch.setattr(asked_rows, "MOST_NUMBERS", 3 * 80 * 7)
    np.testing.assert_allclose(model.impute(gaps)["b"], whole[0], rtol=1e-12)
    np.testing.assert_allclose(model.score(gaps), whole[1], rtol=1e-10)
    assert model.predict(gaps, ["b"])["b"].weights.shape == (24, 80)


def test_frames_come_out_as_they_came(model):
    table = {"b": [0.1, None, -0.4], "k": ["up", None, None], "note": ["x", "y", "z"]}
    frames = pd.DataFrame(table, index=[5, 7, 9]), pl.DataFrame(table), table
    filled = [model.impute(frame) for frame in frames]
    assert [type(f) for f in filled] == [pd.DataFrame, pl.DataFrame, dict]
    assert filled[0].index.tolist() == [5, 7, 9]
    assert filled[0]["note"].tolist() == table["note"]
    for other in filled[1:]:
        np.testing.assert_array_equal(np.asarray(filled[0]["b"]), np.asarray(other["b"]))
        assert list(other["k"]) == filled[0]["k"].tolist()
    assert frames[0]["b"].isna().sum() == 1
    assert table["b"][1] is None


@FEW_DATA
def test_arrays_come_out_as_arrays():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) + 0.1 * rng.normal(size=(60, 3))
    model = mm.KernelGraph([(0, 1), (1, 2)]).fit(x)
    gone = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    whole = model.impute(gone)
    assert np.isfinite(whole).all()
    assert (whole[np.isfinite(gone)] == x[np.isfinite(gone)]).all()
    assert np.abs(whole - x).max() < 1


@FEW_DATA
def test_times_come_out_as_times():
    days = np.arange("2020-01-01", "2020-04-01", dtype="datetime64[D]")
    table = {"day": days, "x": np.arange(len(days)) / 10.0}
    model = mm.KernelGraph([("day", "x")]).fit(table)
    whole = model.impute({"day": np.array(["NaT", "2020-02-01"], dtype="datetime64[D]"), "x": [4.5, 3.1]})
    assert abs(whole["day"][0] - np.datetime64("2020-02-15")) < np.timedelta64(4, "D")


def test_what_cannot_be_asked_is_refused(model):
    with pytest.raises(InputError, match=r"frame has .*; expected some of the model's columns: 'a', 'b'"):
        model.impute({"z": [1.0]})
    with pytest.raises(ShapeError, match="differ in length"):
        model.impute({"a": [1.0], "b": [1.0, 2.0]})
    with pytest.raises(KindError, match="expected a table"):
        model.impute([1.0, 2.0])
    with pytest.raises(InputError, match="none of the 80 rows"):
        model.impute({"k": ["sideways", None]})


@FEW_DATA
def test_rows_on_graphs_with_cycles_are_queries():
    """In batches and singly, with any cells missing; scores and draws need a tree."""
    ring = mm.KernelGraph([("a", "b"), ("b", "d"), ("d", "a"), ("d", "k"), ("e", "f")]).fit(make_table())
    gaps = with_gaps(make_table(24, seed=1), np.random.default_rng(2), 0.4)
    found, whole = ring.predict(gaps, ["d", "k", "e"]), ring.impute(gaps)
    assert any("has cycles, around which evidence is counted repeatedly" in note for note in found.report.notes)
    assert found.report.converged
    assert "exact" not in found.report.status
    grid = np.linspace(-2, 2, 5)
    density, share = found["d"].density(grid), found.probabilities("k")["up"]
    for i in range(24):
        seen = {n: v for n, v in row_of(gaps, i).items() if n not in ("d", "k", "e", "c")}
        beliefs = ring.query(seen, ["d", "k", "e"])
        np.testing.assert_allclose(found["d"].weights[i], beliefs["d"].weights, atol=1e-5)
        np.testing.assert_allclose(density[i], beliefs["d"].density(grid), atol=1e-4)
        np.testing.assert_allclose(share[i], beliefs.probabilities("k")["up"], atol=1e-5)
        np.testing.assert_allclose(found["e"].mean()[i], beliefs["e"].mean(), atol=1e-5)
        if not there(gaps["d"][i]):
            known = {n: v for n, v in row_of(gaps, i).items() if n != "c"}
            assert whole["d"][i] == pytest.approx(ring.query(known, ["d"])["d"].mean(), abs=1e-4)
    for refused in (lambda: ring.score(gaps), lambda: ring.sample(2, gaps)):
        with pytest.raises(InputError, match=r"the graph has a cycle, .*: rows are scored and drawn on trees only"):
            refused()


def test_edges_are_worth_what_their_ends_say_about_each_other():
    """Of normal variables with correlation ρ that is −½ log(1 − ρ²) nats a row: ½ log 2 for b = a + noise."""
    a, noise, c = np.random.default_rng(5).normal(size=(3, 900))
    table = {"a": a, "b": a + noise, "c": c}
    fitted = mm.KernelGraph([("a", "b"), ("b", "c")]).fit({name: x[:500] for name, x in table.items()})
    new = {name: x[500:].copy() for name, x in table.items()}
    new["c"][:100] = np.nan  # rows of this edge alone
    gains = fitted.gains(new)
    assert gains["a", "b"].mean == pytest.approx(np.log(2) / 2, abs=4 * gains["a", "b"].error)
    assert abs(gains["b", "c"].mean) < 0.05
    written = {text.get_text() for text in fitted.plot(gains=gains).texts}
    assert {f"{gain.mean:.2g}" for gain in gains.values()} <= written
    with pytest.raises(InputError, match="no column 'c'; it has 'a', 'b'"):
        fitted.gains({"a": a, "b": a})


def test_texts_are_told_of_and_compared_by_their_words():
    """Words of warm and of cold weather with a number each: as labels they say nothing about others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    words = np.where(rng.random((120, 4)) < 1 / (1 + np.exp(-3 * x[:, None])), "sunny", "rainy")
    table = {"x": x, "note": np.array([" ".join(row) + f" {i}" for i, row in enumerate(words)])}
    (note,) = mm.KernelGraph([("x", "note")]).fit(table).query({"x": 0.0}).report.notes[:1]
    assert "kernels={'note': mm.kernels.Spectrum(3)}" in note
    told = mm.KernelGraph([("x", "note")]).fit(table, kinds={"note": "label"})
    assert not any("Spectrum" in note for note in told.query({"x": 0.0}).report.notes)
    model = mm.KernelGraph([("x", "note")], kernels={"note": mm.kernels.Spectrum(3)}).fit(table)
    warm, cold = (model.query({"note": f"{word} {word} {word} {word} 999"})["x"].mean() for word in ("sunny", "rainy"))
    assert warm > 0.5
    assert cold < -0.5
    with pytest.raises(KindError, match="'note' is represented by its substrings, and cannot be drawn"):
        model.sample(3, rng=0)
