"""Conditional tests of the tables that people have: columns of every kind, by name, with gaps, strata and clusters."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import ColumnError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.stats.texts import text_coordinates

FEW = {"n_permutations": 199, "rng": 0}
WORDS = (["fine", "sunny", "lovely", "bright"], ["poor", "rainy", "dreadful", "dark"])


def text(mood, rng):
    """Six words a row, of one list the more the higher the mood."""
    chosen = rng.random((len(mood), 6)) < 1 / (1 + np.exp(-3 * mood[:, None]))
    return [" ".join(rng.choice(WORDS[int(not good)]) for good in row) + f" {rng.integers(999)}" for row in chosen]


def column(kind, values, rng):
    """A column of this kind that follows some numbers, and what it has to be told to be."""
    levels = np.array(["low", "middle", "high"])[np.digitize(values, [-0.5, 0.5])]
    day = pd.Timestamp("2026-03-01") + pd.to_timedelta(4 * values, unit="h")
    return {
        "number": lambda: (values, None),
        "count": lambda: (np.round(np.exp(values)), None),
        "label": lambda: (levels, None),
        "boolean": lambda: (values > 0, None),
        "ordered label": lambda: (pd.Categorical(levels, ["low", "middle", "high"], ordered=True), None),
        "rank": lambda: (pd.Categorical(levels, ["low", "middle", "high"], ordered=True), "rank"),
        "text": lambda: (text(values, rng), None),
        "vector": lambda: (list(np.c_[values, rng.normal(size=(len(values), 2))]), None),
        "angle": lambda: (values, "angle"),
        "time": lambda: (day, None),
        "time of day": lambda: (day, "time of day"),
    }[kind]()


KINDS = (
    "number",
    "count",
    "label",
    "boolean",
    "ordered label",
    "rank",
    "text",
    "vector",
    "angle",
    "time",
    "time of day",
)


def asked(kinds_of, parts, rng, **settings):
    made = {name: column(kind, part, rng) for name, kind, part in zip("xyz", kinds_of, parts, strict=True)}
    frame = pd.DataFrame({name: values for name, (values, _) in made.items()})
    told = {name: kind for name, (_, kind) in made.items() if kind}
    return mm.conditional_independence_test("x", "y", "z", data=frame, kinds=told or None, **FEW, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_kind_is_seen_and_conditioned_on(kind):
    """Each kind as x, and as the z that explains all there is."""
    rng = np.random.default_rng(3)
    cause, z, *noise = rng.normal(size=(4, 150))
    y = cause + 0.4 * noise[0]
    assert asked((kind, "number", "number"), (cause, y, z), rng).pvalue < 0.02
    x, y = (cause + 0.7 * e for e in noise)
    assert asked(("number", "number", kind), (x, y, z), rng).pvalue < 0.02
    # Whoever follows the column alone is independent given it.
    shown = {"boolean": cause > 0, "count": np.round(np.exp(cause)), "text": 0 * cause}
    shown |= dict.fromkeys(("label", "ordered label", "rank"), np.digitize(cause, [-0.5, 0.5]))
    x, y = (shown.get(kind, cause) + e for e in noise)
    assert asked(("number", "number", kind), (x, y, cause), rng).pvalue > 0.02


def test_texts_are_told_and_read_by_their_principal_coordinates():
    rng = np.random.default_rng(4)
    mood = rng.normal(size=100)
    result = asked(("text", "number", "number"), (mood, rng.normal(size=100), rng.normal(size=100)), rng)
    assert "x holds texts that differ in nearly every row: the test uses their first 10" in result.warnings[0]
    texts = text(mood, rng)
    pieces = [[f"  {t} "[i : i + 3] for i in range(len(t) + 1)] for t in texts]
    known = sorted({p for row in pieces for p in row})
    counts = np.array([[row.count(p) for p in known] for row in pieces], float)
    shares = counts / np.linalg.norm(counts, axis=1)[:, None]
    left, values, _ = np.linalg.svd(shares - shares.mean(axis=0), full_matrices=False)
    found = text_coordinates(np.array(texts), "x")
    assert found.shape == (100, 10)
    np.testing.assert_allclose(np.abs(found), np.abs(left[:, :10] * values[:10]), atol=1e-8)


def garden(n=120, seed=5):
    """A site decides on sun and on harvest; sun does nothing else, and water does."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 4, n)
    water = rng.normal(size=n)
    sun = site + water + rng.normal(size=n)
    return pd.DataFrame(
        {
            "site": np.array(list("abcd"))[site],
            "water": water,
            "sun": sun,
            "harvest": 2 * site + water + rng.normal(size=n),
        }
    )


def test_names_of_columns_are_as_good_as_the_columns():
    frame = garden()
    ours = mm.conditional_independence_test("sun", ["harvest"], ["water", "site"], data=frame, **FEW)
    plain = mm.conditional_independence_test(frame["sun"], frame[["harvest"]], frame[["water", "site"]], **FEW)
    assert (ours.statistic, ours.pvalue) == (plain.statistic, plain.pvalue)
    alone = mm.independence_test("sun", "harvest", data=frame, **FEW)
    assert alone.statistic == mm.independence_test(frame["sun"], frame["harvest"], **FEW).statistic
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    sun, harvest = (list(frame.columns).index(name) for name in ("sun", "harvest"))
    assert alone.statistic == mm.independence_test(sun, [harvest], data=numbered, **FEW).statistic
    one, other = (
        mm.independence_effect("sun", "harvest", data=frame, rng=0),
        mm.independence_effect(frame["sun"], frame["harvest"], rng=0),
    )
    assert one.correlation.estimate == other.correlation.estimate
    one = mm.conditional_independence_effect("sun", "harvest", "water", data=frame, within="site", rng=0)
    other = mm.conditional_independence_effect(
        frame["sun"], frame["harvest"], frame["water"], within=frame["site"], rng=0
    )
    assert one.correlation.estimate == other.correlation.estimate


def test_strata_are_conditioned_on():
    frame = garden()
    settings = {"data": frame, **FEW}
    without = mm.conditional_independence_test("sun", "harvest", "water", **settings)
    within = mm.conditional_independence_test("sun", "harvest", "water", within="site", **settings)
    assert without.pvalue < 0.01 < 0.1 < within.pvalue
    assert "within strata" in within.method
    given = mm.conditional_independence_test("sun", "harvest", ["water", "site"], **settings)
    assert within.pvalue == pytest.approx(given.pvalue, abs=0.2)
    frame["harvest"] += frame["sun"]
    assert mm.conditional_independence_test("sun", "harvest", "water", within="site", **settings).pvalue < 0.01
    assert mm.test("sun ~ harvest | water", frame, within="site", rng=0).method == within.method


def clustered(n, seed, size=5):
    """Rows of one person share what is left of x, and of y: independent, but not from row to row."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n // size), size)
    z = rng.normal(size=n)
    x, y = (z + rng.normal(size=n // size)[person] + 0.3 * rng.normal(size=n) for _ in range(2))
    return x, y, z, person


def test_rows_of_a_cluster_may_depend_on_each_other():
    found = {"rows": 0, "clusters": 0}
    for seed in range(40):
        x, y, z, person = clustered(200, seed)
        found["rows"] += mm.conditional_independence_test(x, y, z, n_permutations=99, rng=0).reject()
        found["clusters"] += mm.conditional_independence_test(
            x, y, z, clusters=person, n_permutations=99, rng=0
        ).reject()
    assert found["rows"] > 10
    assert found["clusters"] <= scipy.stats.binom.isf(1e-5, 40, 0.05), found
    x, y, z, person = clustered(200, 1)
    result = mm.conditional_independence_test(x, y + x, z, clusters=5, **FEW)
    assert result.pvalue < 0.01
    assert "of 40 clusters" in result.method
    assert result.pvalue == mm.conditional_independence_test(x, y + x, z, clusters=person, **FEW).pvalue
    few = mm.conditional_independence_test(x, y, z, clusters=20, **FEW)
    assert any("there are 10 clusters" in text for text in few.warnings)


def test_rows_with_gaps_are_left_out_of_all_variables_and_counted():
    frame = garden()
    holes = frame.copy()
    holes.loc[:9, "sun"] = np.nan
    holes.loc[8:12, "site"] = None
    with pytest.raises(NonFiniteError, match="missing='drop'"):
        mm.conditional_independence_test("sun", "harvest", "water", data=holes, **FEW)
    found = mm.conditional_independence_test(
        "sun", "harvest", "water", data=holes, within="site", missing="drop", **FEW
    )
    whole = mm.conditional_independence_test("sun", "harvest", "water", data=frame[13:], within="site", **FEW)
    assert (found.statistic, found.pvalue) == (whole.statistic, whole.pvalue)
    assert found.warnings[0].startswith("13 of 120 rows of x, y, z and within were left out: a value is missing in")
    blocks = mm.conditional_independence_test("sun", "harvest", "water", data=holes, clusters=5, missing="drop", **FEW)
    assert "of 22 clusters" in blocks.method  # the first two have no row left


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda f: mm.conditional_independence_test("sun", "harvest", "water"), KindError, "needs the table, as data="),
        (lambda f: mm.conditional_independence_test("sun", "rain", "water", data=f), ColumnError, "y names 'rain'"),
        (
            lambda f: mm.conditional_independence_test(f.sun, "harvest", "water", data=f),
            KindError,
            "the name of a column",
        ),
        (
            lambda f: mm.conditional_independence_test(f.sun, f.harvest, f.water, within="site"),
            KindError,
            "within is 'site': the name of a column needs the table",
        ),
        (
            lambda f: mm.conditional_independence_test(f.sun, f.harvest, f.water, within=3),
            KindError,
            "within is 3; expected the name of a column, as text",
        ),
        (
            lambda f: mm.conditional_independence_test(f.sun, f.harvest, f.water, within=f.site[:9]),
            ShapeError,
            "within has 9 values",
        ),
        (
            lambda f: mm.conditional_independence_test(f.sun, f.harvest[1:], f.water, missing="drop"),
            ShapeError,
            "x has 120, y has 119, z has 120 points; expected the same number of each",
        ),
        (
            lambda f: mm.conditional_independence_test(f.sun, f.harvest, f.water, clusters=5, null="gamma"),
            ParameterError,
            "method='kci' with null='bootstrap'",
        ),
    ],
)
def test_errors_say_what_to_do(call, error, words):
    with pytest.raises(error, match=words):
        call(garden())


GAPS = ("given z", "given z and x", "both at once")


def gapped(kind, n, seed):
    """x and y independent given z, and holes in them that hang on z, on z and x, or in z on both x and y."""
    rng = np.random.default_rng([seed, 909])
    z = rng.normal(size=n)
    x, y = z + rng.normal(size=n), np.sin(2 * z) + rng.normal(size=n)
    away = {"given z": z, "given z and x": x - 0.5 * z, "both at once": np.abs(x - y)}[kind]
    away = rng.random(n) < 0.4 / (1 + np.exp(-2 * (away - away.mean())))
    frame = pd.DataFrame({"x": x, "y": y, "z": z})
    frame.loc[away, "z" if kind == "both at once" else "y"] = np.nan
    if kind == "given z":
        frame.loc[rng.random(n) < 0.2 / (1 + np.exp(2 * z)), "x"] = np.nan
    return frame


@pytest.mark.slow
@pytest.mark.parametrize("kind", GAPS)
def test_level_with_gaps(kind):
    found = 0
    for seed in range(500):
        settings = {"missing": "drop", "n_permutations": 199, "rng": seed}
        found += mm.conditional_independence_test("x", "y", "z", data=gapped(kind, 200, seed), **settings).reject()
    low, high = scipy.stats.binom.interval(0.99, 500, 0.05)
    if kind == "both at once":
        assert found > high, found  # the docstring says so
    else:
        assert low <= found <= high, found
