"""Whatever is fitted to a table keeps its schema, saves it, and reads by it what comes later, in the same words."""

import warnings

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core import ColumnError, InputError, KindError, NonFiniteError, ParameterError

RNG = np.random.default_rng(5)
N = 60
HEIGHT = RNG.normal(170.0, 10.0, N)
PEOPLE = pd.DataFrame(
    {
        "height": HEIGHT,
        "weight": 0.5 * HEIGHT + RNG.normal(0, 3, N),
        "born": pd.Timestamp("2000-01-01") + pd.to_timedelta(HEIGHT, unit="D"),
        "phase": (HEIGHT / 5) % (2 * np.pi),
        "size": pd.Categorical(np.where(HEIGHT > 175, "big", "small"), ["small", "middle", "big"], ordered=True),
        "town": np.where(RNG.random(N) > 0.5, "Ulm", "Bonn"),
    }
)
KINDS = {"phase": "angle"}
NUMBERS = PEOPLE[["height", "weight"]]
STAR = [("height", name) for name in PEOPLE if name != "height"]
GRAPH = mm.KernelGraph(STAR).fit(PEOPLE, kinds=KINDS)
MEANS = mm.condition(PEOPLE, PEOPLE["height"], kinds=KINDS, ridge=0.01)


def holes(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with values missing in the first seven rows of one column."""
    return frame.assign(weight=frame["weight"].where(np.arange(len(frame)) > 6))


FITTED = {
    "KernelGraph": lambda: GRAPH,
    "condition": lambda: MEANS,
    "DriftMonitor": lambda: mm.stats.DriftMonitor.of(PEOPLE, kinds=KINDS, n_permutations=99, rng=0),
    "chow_liu": lambda: mm.chow_liu(PEOPLE, kinds=KINDS),
    "pc": lambda: mm.pc(PEOPLE, kinds=KINDS, most_given=0, rng=0),
    "learn_kernel": lambda: mm.learn_kernel(PEOPLE[["phase", "weight", "height"]], draws=1, kinds=KINDS, rng=0),
}


@pytest.mark.parametrize("name", FITTED)
def test_what_is_fitted_says_what_it_read_and_saves_it(name, tmp_path):
    fitted = FITTED[name]()
    kinds = {column.name: column.kind for column in fitted.schema.columns}
    assert kinds["phase"] == "angle"
    if "size" in kinds:
        times = {} if name == "DriftMonitor" else {"born": "time"}  # monitors leave them out
        assert kinds == {
            "height": "number", "weight": "number", **times, "phase": "angle", "size": "ordered label", "town": "label",
        }  # fmt: skip
    loaded = mm.load(mm.save(fitted, tmp_path / "fitted.meanmap"))
    assert loaded.schema == fitted.schema
    assert hash(loaded.schema) == hash(fitted.schema)


def query(column: str, value) -> tuple[str, ...]:
    return GRAPH.query({column: value}).report.notes


def means(column: str, value) -> tuple[str, ...]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        MEANS(PEOPLE[:1].assign(**{column: [value]})).mean()
    return tuple(str(each.message) for each in caught)


def batch(column: str, value) -> tuple[str, ...]:
    monitor = FITTED["DriftMonitor"]()
    return monitor.step(pd.concat([PEOPLE[:5], PEOPLE[:1].assign(**{column: [value]})])).notes


@pytest.mark.parametrize("ask", [query, means])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "height",
            "tall",
            r"\['height'\] holds labels, such as 'tall'; expected a number column, as in the earlier table",
        ),
        (
            "born",
            3.0,
            r"\['born'\] holds numbers, such as 3; expected times, as the data have, such as np\.datetime64\('20",
        ),
        (
            "born",
            "2001-01-01",
            r"expected times, as the data have, such as np\.datetime64\('2001-01-01'\); pandas\.to_datetime",
        ),
        ("phase", "north", r"\['phase'\] holds 'north', which cannot be read as an angle"),
    ],
)
def test_another_kind_is_refused_in_the_same_words(ask, column, value, message):
    with pytest.raises(KindError, match=message):
        ask(column, value)


@pytest.mark.parametrize("ask", [query, means, batch])
def test_numbers_far_outside_are_told_in_the_same_words(ask):
    notes = ask("weight", 1e6)
    low, high = PEOPLE["weight"].min(), PEOPLE["weight"].max()
    assert any(f"['weight'] has 1 value far outside {low:g} to {high:g}, such as 1e+06." in note for note in notes)
    assert not any("far outside" in note for note in ask("weight", 85.0))


def test_labels_never_seen_are_told():
    assert means("town", "Rome") == ("x['town'] has 1 label never seen before, such as 'Rome'.",)
    assert "batch['town'] has 1 label not in the reference, such as 'Rome'." in batch("town", "Rome")
    with pytest.raises(InputError, match=r"evidence\['town'\] has a label that none of the 60 rows"):
        query("town", "Rome")


def test_later_columns_are_found_by_name():
    expected = MEANS(PEOPLE[:3]).mean()
    np.testing.assert_array_equal(MEANS(PEOPLE[PEOPLE.columns[::-1]][:3].assign(more=1)).mean(), expected)
    with pytest.raises(ColumnError, match="x has no column 'weight'"):
        MEANS(PEOPLE[:3].drop(columns="weight"))
    numbers = mm.condition(NUMBERS, HEIGHT, ridge=0.01)
    np.testing.assert_array_equal(numbers(NUMBERS[["weight", "height"]][:3]).mean(), numbers(NUMBERS[:3]).mean())
    with pytest.raises(ColumnError, match="x is an array, whose columns have no names; expected a table with"):
        numbers(NUMBERS.to_numpy()[:3])
    unnamed = mm.condition(NUMBERS.to_numpy(), HEIGHT, ridge=0.01)
    with pytest.raises(ColumnError, match=r"x has columns with names .*expected 2 columns without"):
        unnamed(NUMBERS[:3])


def test_evidence_comes_as_the_data_came():
    """An angle as an angle, a time as a time; one value, or one for each query."""
    row = PEOPLE.iloc[7]
    for name in ("phase", "born"):
        belief = GRAPH.query({name: row[name]}, targets=["height"])["height"]
        both = GRAPH.query({name: [row[name], row[name]]}, targets=["height"])["height"]
        assert abs(belief.mean() - row["height"]) < 15
        np.testing.assert_allclose(both.mean(), belief.mean())


def test_ordered_labels_are_labels_and_their_ranks_numbers():
    assert mm.Schema.of(PEOPLE)["size"].labels == ("small", "middle", "big")
    assert "ordered label  2 values: small < middle < big" in str(mm.Schema.of(PEOPLE[["size", "height"]]))
    text = PEOPLE.assign(size=PEOPLE["size"].astype(str))
    plain = mm.two_sample_test(text[:30], text[30:], n_permutations=99, rng=0)
    assert mm.two_sample_test(PEOPLE[:30], PEOPLE[30:], n_permutations=99, rng=0).pvalue == plain.pvalue
    levels = {"size": ("small", "middle", "big")}
    ranks = mm.Schema.of(PEOPLE, kinds={"size": "rank"})
    assert ranks["size"].kind == "rank"
    assert ranks == mm.Schema.of(PEOPLE, kinds=levels)
    assert set(ranks.read(PEOPLE)["size"].tolist()) == {0.0, 2.0}
    numbers = PEOPLE.assign(size=2.0 * (PEOPLE["size"] == "big"))
    found = mm.two_sample_test(text[:30], text[30:], kinds=levels, n_permutations=99, rng=0)
    assert found.statistic == mm.two_sample_test(numbers[:30], numbers[30:], n_permutations=99, rng=0).statistic
    with pytest.raises(KindError, match=r"table\['size'\] holds 'big', which is not a level of small < middle"):
        mm.Schema.of(PEOPLE, kinds={"size": ("small", "middle")})
    with pytest.raises(ParameterError, match="'rank', but the column is not ordered"):
        mm.Schema.of(text, kinds={"size": "rank"})
    with pytest.raises(ParameterError, match="are not an order"):
        mm.Schema.of(text, kinds={"size": ("small", "small")})


def test_objects_that_only_a_kernel_reads_are_said_to_be_whole():
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_rotvec(np.outer(HEIGHT - 170, [0.01, 0, 0]))
    data = {
        "height": HEIGHT,
        "pose": turns,
        "picture": np.zeros((N, 2, 2)),
        "bag": [[1.0] * (1 + i % 3) for i in range(N)],
    }
    kinds = [column.kind for column in mm.Schema.of(data).columns]
    assert kinds == ["number", "whole object", "whole object", "whole object"]
    model = mm.KernelGraph([("height", "pose")]).fit(data)
    assert model.schema["pose"].kind == "whole object"
    assert abs(model.query({"pose": turns[3]})["height"].mean() - HEIGHT[3]) < 10


MISSING = {
    "pc": lambda frame, how: mm.pc(frame, missing=how, most_given=0, rng=0).report.notes,
    "chow_liu": lambda frame, how: mm.chow_liu(frame, missing=how).notes,
    "KernelGraph": lambda frame, how: mm.KernelGraph([("height", "weight")]).fit(frame, missing=how).samples.notes,
    "learn_kernel": lambda frame, how: mm.learn_kernel(frame, draws=1, missing=how, rng=0).report.notes,
    "condition": lambda frame, how: mm.condition(frame, HEIGHT, ridge=0.01, missing=how).notes,
    "two_sample_test": lambda frame, how: mm.two_sample_test(frame, NUMBERS, n_permutations=99, missing=how).warnings,
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_values_are_seen_to_in_the_same_words(name):
    dropped = " ".join(MISSING[name](holes(NUMBERS), "drop"))
    assert "7 of 60 rows of" in dropped
    assert "were left out: a value is missing in 'weight' (7)" in dropped
    with pytest.raises(NonFiniteError, match=r"missing|not finite"):
        MISSING[name](holes(NUMBERS), "raise")
    with pytest.raises(ParameterError, match="missing is 'ignore'; expected one of"):
        MISSING[name](holes(NUMBERS), "ignore")


def test_each_pair_leaves_out_its_own_rows():
    told = ("rows of {} are left out where a value of the pair is missing: 'weight' (7).",)
    assert mm.chow_liu(holes(NUMBERS)).notes == (told[0].format("table"),)
    model = mm.KernelGraph([("height", "weight")]).fit(holes(NUMBERS))
    assert model.samples.notes == (told[0].format("data"),)
    assert len(model.samples.pairs[0]) == N - 7
    label = mm.KernelGraph([("height", "town")]).fit(
        PEOPLE.assign(town=PEOPLE["town"].where(HEIGHT > 165)), missing="category"
    )
    assert "(missing)" in label.schema["town"].labels


def test_models_saved_before_there_were_schemas_answer():
    nodes = [vars(node) for node in GRAPH.samples.nodes]
    old = mm.KernelGraph([("height", "weight")]).fit(NUMBERS)
    assert all("schema" in node for node in nodes)
    for node in old.samples.nodes:
        object.__setattr__(node, "schema", None)
    assert old.schema is None
    assert abs(old.query({"height": 170.0})["weight"].mean() - 85) < 5


def test_bags_of_any_size_are_left_to_their_kernel():
    bags = [RNG.normal(size=(3 + i % 4, 1)) for i in range(20)]
    means = [bag.mean() for bag in bags]
    kernel = mm.kernels.EmbeddingGaussian()
    rows = [bag[:, 0].tolist() for bag in bags]
    found = [mm.condition(x, means, kernel_x=kernel, ridge=0.01)(x[:2]).mean() for x in (bags, rows)]
    np.testing.assert_allclose(found[0], found[1])
    assert mm.condition(bags, means, kernel_x=kernel, ridge=0.01).schema is None


def test_fields_are_told_what_values_mean():
    """Numbers as labels, in one kind of variable or in each."""
    zips, heights = np.where(HEIGHT > 170, 80331, 10115), HEIGHT
    field = mm.KernelField([(0, 1)], relations=["r"], variables=["zip", "height"])
    fitted = field.fit({"r": (zips, heights)}, kinds={"zip": "label"})
    assert fitted.samples["zip"].schema["zip"].kind == "label"
    text = field.fit({"r": (zips.astype(str), heights)})
    assert fitted.query({0: 80331})[1].mean() == pytest.approx(text.query({0: "80331"})[1].mean())
    turns = mm.KernelField([(0, 1)]).fit((PEOPLE["phase"], PEOPLE["phase"]), kinds="angle")
    assert turns.samples["x"].schema["x"].kind == "angle"
    with pytest.raises(
        InputError, match=r"kinds is \{'street': 'label'\}; expected the meaning of the values of each kind"
    ):
        field.fit({"r": (zips, heights)}, kinds={"street": "label"})


def test_a_table_inside_of_a_column_is_refused():
    for fit in (
        lambda: mm.KernelGraph([("s", "t")]).fit({("s", "t"): (NUMBERS, HEIGHT)}),
        lambda: mm.KernelField([(0, 1)]).fit((NUMBERS, NUMBERS)),
    ):
        with pytest.raises(KindError, match=r"is a table; expected one column, or an array \(n, d\) for a vector"):
            fit()


def test_regressions_are_told_what_columns_mean():
    """Levels in order as numbers, at the fit and later."""
    rooms = {"size": np.where(HEIGHT > 175, "big", np.where(HEIGHT > 168, "middle", "small")), "height": HEIGHT}
    numbers = {"size": np.where(HEIGHT > 175, 2.0, np.where(HEIGHT > 168, 1.0, 0.0)), "height": HEIGHT}
    y = PEOPLE["town"] == "Ulm"
    told = mm.ep.models.logistic_regression(rooms, y, kinds={"size": ("small", "middle", "big")})
    plain = mm.ep.models.logistic_regression(numbers, y)
    assert told.design.schema["size"].kind == "rank"
    first = [{name: column[:3] for name, column in table.items()} for table in (rooms, numbers)]
    np.testing.assert_allclose(told.predict_proba(first[0]), plain.predict_proba(first[1]))
