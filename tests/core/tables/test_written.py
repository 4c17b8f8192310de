"""Numbers and dates that are kept as text are told of at every door, and text like any other is not."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import meanmap as mm
from meanmap import bp, ep
from meanmap.core.tables.doubts import doubts
from meanmap.core.tables.written import Written, words_of

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(1000, 300, 60).round(1)
DAYS = pd.date_range("2026-01-01", periods=60, freq="9D")

FORMS = {
    "times of day": [(f"{x}:30" for x in range(24)), (f"{x % 12 + 1}:{x:02} pm" for x in range(24))],
    "numbers": [map(str, NUMBERS), (f"{x:.2e}" for x in NUMBERS), (f" {x}" for x in NUMBERS)],
    "numbers with a comma": [(str(x).replace(".", ",") for x in NUMBERS), (f"{x:,}" for x in NUMBERS)],
    "numbers with a sign such as $ or %": [
        (f"${x:,}" for x in NUMBERS),
        (f"{x / 1e4:.1%}" for x in NUMBERS),
        (f"{x} €" for x in NUMBERS),
        (f"-£{x}" for x in NUMBERS),
    ],
    "numbers with printed minus signs, parentheses or spaces": [
        (str(x - 1000).replace("-", "\u2212") for x in NUMBERS),
        (f"({x})" for x in NUMBERS),
        (f"{x * 100:,.0f}".replace(",", " ") for x in NUMBERS),
        (f"{x * 100:,.0f}".replace(",", "\u202f") for x in NUMBERS),
    ],
    "dates": [DAYS.strftime("%Y-%m-%d"), DAYS.strftime("%Y-%m-%dT%H:%M"), DAYS.strftime("%d.%m.%Y")],
    "dates with the day or the month first": [
        DAYS.strftime("%d.%m.%y"),
        DAYS.strftime("%m/%d/%Y"),
        DAYS.strftime("%d-%m-%y"),
    ],
    "dates with a month in letters or with slashes": [
        DAYS.strftime("%Y/%m/%d"),
        DAYS.strftime("%d %b %Y"),
        DAYS.strftime("%d-%b-%Y %H:%M"),
        DAYS.strftime("%B %d, %Y"),
    ],
}
OTHERS = [
    (f"{x:05}" for x in RNG.integers(0, 99999, 400)),
    (f"0{x}" for x in range(1000, 1060)),
    (f"A{x}" for x in range(60)),
    (f"10.0.{x}.1" for x in range(60)),
    (f"1.{x}.0" for x in range(60)),
    (f"{x}-{x + 4}" for x in range(0, 90, 5)),
    (f"{x}:30" for x in range(24, 48)),
    (f"room {x}" for x in range(60)),
    (f"may {x}" for x in range(60)),
    (f"2026/{x}" for x in range(60)),
    [*map(str, range(20)), *"abcdefghij"],
    ["nan", "inf", "-inf"],
]


@pytest.mark.parametrize("what", FORMS)
def test_each_form_is_known(what):
    for words in map(set, FORMS[what]):
        found = Written.of(words)
        assert found is not None
        assert (found.what, found.others, found.many) == (what, (), True), words
        odd = Written.of({*words, "?", "unknown"})
        assert odd is not None
        assert (odd.what, odd.others) == (what, ("?", "unknown"))
        assert str(odd) == f"{what} (but for '?', 'unknown')"


def test_other_text_is_no_form():
    for words in map(set, OTHERS):
        assert Written.of(words) is None, words


def test_few_values_are_names_of_groups():
    for words in (["1", "2", "3"], list(map(str, range(10)))):
        found = Written.of(words)
        assert found is not None
        assert not found.many
        assert doubts([{"w": words * 20}], ["x"]) == ()


CONTAINERS = {
    "pandas": lambda words: pd.DataFrame({"w": words}),
    "objects": lambda words: pd.DataFrame({"w": pd.Series(words, dtype=object)}),
    "arrow": lambda words: pd.DataFrame({"w": pd.Series(words, dtype="string[pyarrow]")}),
    "polars": lambda words: pl.DataFrame({"w": words}),
    "dict": lambda words: {"w": words},
    "array": lambda words: {"w": np.array([word or "" for word in words])},
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_and_orders_of_rows_do_not_matter(container):
    words = ["?", *map(str, NUMBERS)]
    made = CONTAINERS[container]
    said = "column 'w' of x is text that looks like numbers (but for '?'), such as '1001.0', and counts as labels"
    first, *more = doubts([made(words)], ["x"])
    assert first.startswith(said.replace("1001.0", min(map(str, NUMBERS))))
    assert not more
    assert doubts([made(words[::-1])], ["x"]) == (first,)


def test_missing_values_and_numbers_among_text():
    """As a sheet has it: numbers, and text where one could not be had."""
    mixed = pd.DataFrame({"w": pd.Series([*NUMBERS, None, np.nan, "n. a."], dtype=object)})
    (note,) = doubts([mixed], ["x"])
    assert "looks like numbers (but for 'n. a.')" in note
    assert words_of([NUMBERS]) is None
    assert words_of([pd.Series([[1], [2]])]) is None
    assert words_of([pd.Series([pd.Timestamp("2026-01-01"), "x"], dtype=object)]) is None


def test_categories_and_what_is_told_to_be_labels_are_labels():
    words = list(map(str, NUMBERS))
    for frame in (
        pd.DataFrame({"w": pd.Categorical(words)}),
        pl.DataFrame({"w": pl.Series(words, dtype=pl.Categorical)}),
        pl.DataFrame({"w": pl.Series(words, dtype=pl.Enum(sorted(set(words))))}),
    ):
        assert doubts([frame], ["x"]) == ()
        assert "looks like" not in str(mm.Schema.of(frame))
    frame = pd.DataFrame({"w": words})
    assert doubts([frame], ["x"], ["w"]) == ()
    assert "looks like numbers" in str(mm.Schema.of(frame))
    assert "looks like" not in str(mm.Schema.of(frame, kinds={"w": "label"}))
    told = mm.two_sample_test(frame, frame[::-1], kinds={"w": "label"}, n_permutations=19, rng=0)
    assert not any("looks like" in note for note in told.warnings)


def frame(seed, decimals=1):
    """One odd cell has made text of a column of numbers."""
    random = np.random.default_rng(seed)
    w = random.normal(size=60).round(decimals)
    return pd.DataFrame({"w": ["?", *map(str, w[1:])], "u": w + random.normal(size=60), "v": random.normal(size=60)})


X, Y = frame(0), frame(1)
FEW = {"n_permutations": 19, "rng": 0}
# Nearly every row of one column is another text, which kernels would compare letter by letter.
FINE, OTHER, THIRD = (frame(seed, decimals=4) for seed in (0, 1, 2))
REFUSED = {
    "two samples": lambda **told: mm.two_sample_test(FINE, OTHER, **FEW, **told),
    "several": lambda **told: mm.k_sample_test([FINE, OTHER, THIRD], **FEW, **told),
    "independence": lambda **told: mm.independence_test(FINE[["w"]], FINE[["u"]], **FEW, **told),
    "joint": lambda **told: mm.joint_independence_test(FINE, **FEW, **told),
    "conditional": lambda **told: mm.conditional_independence_test(
        FINE[["w"]], FINE[["u"]], FINE[["v"]], rng=0, **told
    ),
    "question": lambda **told: mm.test("u ~ w", FINE, rng=0, **told),
    "closeness": lambda **told: mm.stats.closeness_test(FINE, OTHER, margin=0.5, rng=0, **told),
    "effect": lambda **told: mm.stats.two_sample_effect(FINE, OTHER, rng=0, **told),
    "plan": lambda **told: mm.stats.plan("two samples", FINE, OTHER, rng=0, **told),
    "plan of independence": lambda **told: mm.stats.plan("independence", FINE[["w"]], FINE[["u"]], rng=0, **told),
    "monitor": lambda **told: mm.DriftMonitor.of(FINE, rng=0, **told),
    "bet": lambda **told: mm.stats.TwoSampleBet.of(FINE, OTHER, rng=0, **told),
    "bet on dependence": lambda **told: mm.stats.IndependenceBet.of(FINE[["w"]], FINE[["u"]], rng=0, **told),
    "tree": lambda **told: mm.chow_liu(FINE, **told),
    "graph": lambda **told: mm.pc(FINE, rng=0),
}


@pytest.mark.parametrize("door", REFUSED)
def test_tests_refuse_numbers_and_dates_that_would_be_compared_as_texts(door):
    with pytest.raises(mm.errors.KindError, match=r"looks like numbers \(but for '\?'\), such as .*: convert it, for"):
        REFUSED[door]()
    if door != "graph":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "nearly every row")  # bets
            assert REFUSED[door](kinds={"w": "label"}) is not None


def test_with_a_kernel_of_the_user_they_stay():
    x, y, kernel = list(map(str, NUMBERS)), list(map(str, NUMBERS[::-1] + 1)), mm.kernels.Spectrum(3)
    for made in (
        lambda: mm.DriftMonitor.of(x, kernel, rng=0),
        lambda: mm.stats.plan("two samples", x, y, kernel=kernel, rng=0),
        lambda: mm.stats.plan("independence", x, y, kernel=kernel, rng=0),
    ):
        assert made() is not None


def test_a_declared_column_that_is_called_as_an_argument_leaves_texts_texts():
    words = [f"{letter} weather, then {letter * 3}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    table = pd.DataFrame({"x": list(map(str, NUMBERS[:26])), "review": words})
    told = mm.independence_test(table, NUMBERS[:26], kinds={"x": "label"}, **FEW).warnings
    assert any(note.startswith("column 'review' of x holds texts") for note in told)


def test_dates_are_refused_too():
    days = pd.DataFrame({"day": DAYS.strftime("%d %b %Y"), "u": NUMBERS})
    with pytest.raises(mm.errors.KindError, match=r"dates with a month in letters .*with pandas.to_datetime"):
        mm.independence_test(days[["day"]], days[["u"]], **FEW)


# Where rows share the texts they are labels, and a note says so.
OFTEN = pd.DataFrame({"w": ["?", *map(str, range(19))] * 3, "u": X["u"], "v": X["v"]})
RESULTS = {
    "two samples": lambda: mm.two_sample_test(OFTEN, OFTEN[::-1], **FEW),
    "independence": lambda: mm.independence_test(OFTEN[["w"]], OFTEN[["u"]], **FEW),
    "conditional": lambda: mm.conditional_independence_test(OFTEN["w"], OFTEN["u"], OFTEN["v"], rng=0),
    "question": lambda: mm.test("u ~ w", OFTEN, rng=0),
    "plan": lambda: mm.stats.plan("two samples", OFTEN, OFTEN[::-1], rng=0),
    "report of a query": lambda: mm.KernelGraph([("w", "u")]).fit(X).query({"u": 0.0}).report,
    "report of a query, from pairs": lambda: (
        mm.KernelGraph([("w", "u")]).fit({("w", "u"): (X["w"], X["u"])}).query({"u": 0.0}).report
    ),
    "tree": lambda: mm.chow_liu(OFTEN),
    "network": lambda: bp.BayesianNetwork([("w", "u"), ("u", "v")]).fit(X),
    "monitor": lambda: mm.DriftMonitor.of(OFTEN, rng=0),
}


@pytest.mark.parametrize("door", RESULTS)
def test_results_tell_of_it(door):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = RESULTS[door]()
    notes = getattr(found, "warnings", ()) or getattr(found, "notes", ())
    assert any("looks like numbers (but for '?')" in note for note in notes), notes


WARNED = {
    "bets": lambda: mm.stats.TwoSampleBet.of(OFTEN, OFTEN[::-1], rng=0),
    "embedding": lambda: mm.embed(X),
    "field": lambda: mm.KernelField([(0, 1)]).fit((X["w"], X["w"])),
    "observations": lambda: mm.KernelField([(0, 1)]).fit(
        (X["u"], X["v"]), observed=(X["u"], X["w"]), likelihood=bp.LearnedLikelihood
    ),
}


@pytest.mark.parametrize("door", WARNED)
def test_models_and_monitors_warn_of_it(door):
    with pytest.warns(UserWarning, match=r"looks like numbers \(but for '\?'\)"):
        WARNED[door]()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: ep.models.logistic_regression(X[["w", "v"]], X["u"] > 0),
        lambda: mm.estimators.KernelGraphImputer().fit(X),
        lambda: mm.estimators.ConditionalMeanRegressor().fit(X[["w"]], X["u"]),
        lambda: mm.learn_kernel(X),
    ],
)
def test_where_numbers_are_needed_the_error_says_so(refused):
    with pytest.raises(
        mm.core.ColumnError, match=r"\['w'\] looks like numbers \(but for '\?'\): convert it, .*to_numeric"
    ):
        refused()


def test_observations_that_may_be_missing_are_told_of():
    """-999 in what is learned from: pairs of a field, observations of it, and pairs of a graph."""
    v = X["v"].where(X.index > 8, -999.0)
    with pytest.warns(UserWarning, match=r"pairs holds -999 in 18 of 120 rows"):
        mm.KernelField([(0, 1)]).fit((v, v))
    with pytest.warns(UserWarning, match=r"observed\[1\] holds -999 in 9 of 60 rows"):
        mm.KernelField([(0, 1)]).fit((X["u"], X["u"]), observed=(X["u"], v))
    report = mm.KernelGraph([("u", "v")]).fit({("u", "v"): (X["u"], v)}).query({"u": 0.0}).report
    assert any("data['v'] holds -999" in note for note in report.notes)


def test_columns_that_are_not_alike_are_left_to_those_who_compare_them():
    samples = [{"w": np.arange(30.0)}, {"w": np.datetime64("2026-01-01") + np.arange(30)}, {"w": ["a"] * 30}]
    assert doubts(samples, ["x", "y", "z"]) == ()


def test_many_columns_that_are_written_alike_have_one_sentence():
    """As when the first line of a file was taken for data."""
    table = {f"c{j}": [f"name {j}", *map(str, NUMBERS + j)] for j in range(6)}
    (note,) = doubts([table | {"b": NUMBERS}], ["x"])
    assert note.startswith(
        "columns 'c0', 'c1', 'c2' and 3 more of x are text that looks like numbers (but for 'name 0', 'name 1', "
        "'name 2', ...), such as "
    )
    assert note.endswith(
        "and count as labels: convert them, for example with pandas.to_numeric and errors='coerce', which makes the "
        "others missing. If labels are meant, make categories of them."
    )


def test_numbers_with_a_unit():
    kilograms = [f"{0.31 + 0.07 * i:.2f} kg" for i in range(40)]
    assert "is text that looks like numbers with a unit, such as '0.31 kg'" in str(Written.of(kilograms).note("w"))
    assert Written.of([f"{i}cm" for i in range(1, 30)]).what == "numbers with a unit"
    # Different words behind numbers are houses, or sides of them, or units that are not alike.
    for words in (
        [f"{i} {word}" for i in range(1, 20) for word in ("kg", "g")],
        [f"{i}{letter}" for i in range(1, 9) for letter in "abc"],
        [f"{i} Long Street" for i in range(1, 30)],
        [f"00{i}A" for i in range(1, 9)] + ["B", "C"],
    ):
        assert Written.of(words) is None, words


def test_advice_on_decimal_commas_says_what_helps_in_a_parquet_file():
    """There `--decimal ,` changes nothing, and the same advice came again."""
    (note,) = doubts([{"a": [f"{k},5" for k in range(30)]}], ["x"])
    assert "decimal=',' if the comma is a decimal mark, or thousands=',' if it separates thousands" in note
    assert "(Parquet files keep such cells as text: save them as CSV" in note
