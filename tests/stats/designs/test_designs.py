"""Exchanges within strata, of whole clusters, of pairs and of blocks: against enumeration, and their levels."""

import itertools

import dask.dataframe
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.cli.wording import in_options
from meanmap.core.errors import (
    ColumnError,
    EmptyError,
    InputError,
    KindError,
    NonFiniteError,
    ParameterError,
    ShapeError,
)
from meanmap.stats.designs.exchanges import Exchange

KERNEL = mm.kernels.RBF(1.0)
FAILURE_RATE = 1e-5


def adjusted(points, first, strata, weights):
    """The squared mean difference within strata, by sums over strata of weighted embeddings."""
    total, size = 0.0, 0.0
    for s in np.unique(strata):
        x, y = (strata == s) & first, (strata == s) & ~first
        a, b = weights[x].sum(), weights[y].sum()
        if a and b:
            share = a * b / (a + b)
            size += share
            total = total + share * (np.where(x, weights / a, 0) - np.where(y, weights / b, 0))
    return float(total @ KERNEL(points) @ total) / size**2


def assignments_of_units(first, units, strata):
    """All ways to give the labels of units to the units of their stratum."""
    labels = [first[units == u][0] for u in range(units.max() + 1)]
    places = [strata[units == u][0] for u in range(units.max() + 1)]
    members = [[u for u, place in enumerate(places) if place == s] for s in np.unique(places)]
    parts = [set(itertools.permutations([labels[u] for u in group])) for group in members]
    for combination in itertools.product(*parts):
        given = {
            u: label
            for group, got in zip(members, combination, strict=True)
            for u, label in zip(group, got, strict=True)
        }
        yield np.array([given[u] for u in units])


CASES = {
    "strata": ([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2], range(12), [0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0]),
    "pairs": (np.repeat(range(6), 2), range(12), [0, 1] * 6),
    "clusters": ([0] * 12, [0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 4, 4], [0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1]),
    "clusters in strata": (
        [0] * 6 + [1] * 6,
        [0, 0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 6],
        [0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1],
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_draws_are_the_exchanges_that_enumeration_finds(case, weighted):
    """Every value of the statistic, how often it comes, and hence the p-value."""
    rng = np.random.default_rng(0)
    strata, units, first = (np.array(part) for part in CASES[case])
    first, points = first == 0, rng.normal(size=(12, 2))
    points[first] += 0.5
    weights = rng.uniform(0.5, 2.0, 12) if weighted else np.ones(12)
    order = np.argsort(~first, kind="stable")
    said = {"within": strata[order], "clusters": units[order]}
    said |= {"weights": weights[order]} if weighted else {}
    result = mm.two_sample_test(points[first], points[~first], KERNEL, n_permutations=4000, rng=0, **said)
    expected = [adjusted(points, given, strata, weights) for given in assignments_of_units(first, units, strata)]
    value = adjusted(points, first, strata, weights)
    shift = value - result.statistic  # the mean over exchanges, which is taken off
    near = np.abs(result.null.draws[:, None] + shift - np.array(expected)).argmin(axis=1)
    np.testing.assert_allclose(result.null.draws + shift, np.array(expected)[near], atol=1e-6)
    assert len({round(e, 7) for e in expected}) == len({round(expected[i], 7) for i in near})
    p = np.mean(np.array(expected) >= value - 1e-9)
    assert scipy.stats.binomtest(round(result.pvalue * 4001) - 1, 4000, p).pvalue > FAILURE_RATE


def hsic_by_hand(k, gram, strata):
    h = np.eye(len(k))
    for s in np.unique(strata):
        h -= np.outer(strata == s, strata == s) / np.sum(strata == s)
    return float(np.trace(h @ k @ h @ gram)) / len(k) ** 2


@pytest.mark.parametrize("constant", [False, True])
def test_pairings_are_the_exchanges_that_enumeration_finds(constant):
    """Clusters of 2, 2, 3, 3 and 3 rows take the values of one of their size; where y is theirs as a whole, of any."""
    rng = np.random.default_rng(1)
    units = np.array([0, 1, 1, 2, 2, 2, 0, 3, 3, 3, 4, 4, 4])
    x = rng.normal(size=13)
    own = np.array([0.0, 1.0, 3.0, 4.5, 7.1])
    y = own[units] if constant else rng.normal(size=13)
    kernels = mm.kernels.RBF(1.0), mm.kernels.RBF(2.0)
    result = mm.independence_test(
        x, y, kernel_x=kernels[0], kernel_y=kernels[1], clusters=units, n_permutations=4000, rng=0
    )
    rows = [np.flatnonzero(units == u) for u in range(5)]
    values = []
    for order in itertools.permutations(range(5)):
        if constant:
            turned = own[list(order)][units]
        elif all(len(rows[u]) == len(rows[v]) for u, v in enumerate(order)):
            turned = y.copy()
            for u, v in enumerate(order):
                turned[rows[u]] = y[rows[v]]
        else:
            continue
        values.append(hsic_by_hand(kernels[0](x), kernels[1](turned), np.zeros(13)))
    assert len(values) == (120 if constant else 12)
    assert result.statistic == pytest.approx(values[0], rel=1e-3)
    distances = np.abs(result.null.draws[:, None] - np.array(values))
    assert distances.min(axis=1).max() < 1e-3 * max(values)
    assert len(set(distances.argmin(axis=1))) >= 0.98 * len(values)  # two may lie closer than features tell
    assert bool(result.warnings) == (not constant)  # twelve exchanges are few
    p = np.mean(np.array(values) >= values[0] * (1 - 1e-6))
    assert scipy.stats.binomtest(round(result.pvalue * 4001) - 1, 4000, p).pvalue > FAILURE_RATE


def test_orders_stay_within_strata_and_are_uniform():
    design = Exchange(np.array([0, 0, 0, 1, 1]), np.arange(5), np.ones(5))
    orders = design.orders(6000, np.random.default_rng(2))[1:]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 12
    assert scipy.stats.chisquare(counts).pvalue > FAILURE_RATE


def test_free_rows_are_permuted_and_those_of_a_unit_have_one_sign():
    labels = np.repeat(np.int32([0, 1]), [3, 4])
    draws = Exchange.of(7).labels(labels, 50, np.random.default_rng(0))
    assert draws.dtype == labels.dtype
    assert (draws[0] == labels).all()
    assert (draws.sum(axis=1) == 4).all()
    assert len(np.unique(draws, axis=0)) > 20
    units = np.array([0, 0, 1, 2, 2])
    signs = Exchange(np.zeros(5, int), units, np.ones(5)).signs(60, np.random.default_rng(0))
    assert (signs[0] == 1).all()
    assert len(np.unique(signs, axis=0)) == 8
    assert (signs[:, [0, 3]] == signs[:, [1, 4]]).all()


def clinics(rng, effect=0.0, n=60):
    """Sites that differ, in values and in the share of each group."""
    site = rng.integers(0, 4, n)
    group = rng.random(n) < 0.2 + 0.2 * site
    group[:6] = [0, 0, 0, 1, 1, 1]
    u = 2.0 * site + rng.standard_t(3, n) + effect * group
    return pd.DataFrame({"group": np.where(group, "b", "a"), "site": site.astype(str), "u": u, "v": rng.normal(size=n)})


def households(rng):
    """Rows of one household are alike, and are in one group."""
    sizes = rng.integers(1, 5, 24)
    home = np.repeat(np.arange(24), sizes)
    level = rng.exponential(size=24)[home]
    group = np.arange(24)[home] % 2
    return pd.DataFrame({"g": group, "home": home, "u": level + 0.3 * rng.normal(size=len(home))})


def people(rng):
    """Before and after, of people who differ."""
    level = rng.normal(0, 5, 20)
    u = np.concatenate([level, level]) + rng.normal(size=40)
    return pd.DataFrame({"when": np.repeat([0, 1], 20), "who": np.tile(np.arange(20), 2), "u": u})


def surveyed(rng):
    """Weights that go with the values, in both groups alike."""
    u = rng.normal(size=50)
    return pd.DataFrame({"g": np.arange(50) % 2, "w": np.exp(u / 2) * rng.uniform(0.5, 1.5, 50), "u": u})


def series(rng, n=96):
    """Blocks of four rows that go together: exchangeable as blocks, not as rows."""
    x, y = (np.repeat(rng.normal(size=n // 4), 4) + 0.3 * rng.normal(size=n) for _ in range(2))
    return x, y


def confounded(rng, n=60):
    site = rng.integers(0, 4, n)
    return 2.0 * site + rng.normal(size=n), site + rng.standard_t(3, n), site


FEW = {"n_permutations": 99}
NULLS = {
    "strata": lambda rng, s: mm.two_sample_test(clinics(rng), by="group", within="site", rng=s, **FEW),
    "pairs": lambda rng, s: mm.two_sample_test(people(rng), by="when", within="who", rng=s, **FEW),
    "clusters": lambda rng, s: mm.two_sample_test(households(rng), by="g", clusters="home", rng=s, **FEW),
    "weights": lambda rng, s: mm.two_sample_test(surveyed(rng), by="g", weights="w", rng=s, **FEW),
    "three groups": lambda rng, s: mm.k_sample_test(
        clinics(rng).assign(group=lambda f: np.arange(len(f)) % 3), by="group", within="site", rng=s, **FEW
    ),
    "independence in strata": lambda rng, s: independent(*confounded(rng), s),
    "independence of blocks": lambda rng, s: mm.independence_test(*series(rng), clusters=4, rng=s, **FEW),
}


def independent(x, y, site, seed):
    return mm.independence_test(x, y, within=site, rng=seed, **FEW)


def rejections(test, trials, seed):
    return sum(NULLS[test](np.random.default_rng([seed, t]), t).reject(0.05) for t in range(trials))


@pytest.mark.parametrize("test", ["strata", "clusters", "independence in strata"])
def test_levels(test):
    assert scipy.stats.binomtest(rejections(test, 40, 3), 40, 0.05).pvalue > FAILURE_RATE


@pytest.mark.slow
@pytest.mark.parametrize("test", NULLS)
def test_levels_at_length(test):
    low, high = scipy.stats.binom.interval(0.99, 1000, 0.05)
    found = rejections(test, 1000, 4)
    print(f"level of {test}: {found} of 1000")
    assert low <= found <= high, found


def test_without_the_design_these_levels_are_lost():
    """What the designs are for: sites, households and blocks make plain permutations wrong."""
    wrong = 0
    for t in range(20):
        frame = clinics(np.random.default_rng([5, t]))
        wrong += mm.two_sample_test(frame.drop(columns="site"), by="group", rng=t, **FEW).reject(0.05)
    assert wrong >= 6  # which a level of .05 exceeds once in ten thousand


def test_pairs_see_what_lies_between_people():
    """A shift of one standard deviation of the differences, a fifth of that between people."""
    frame = people(np.random.default_rng(6))
    frame.loc[frame.when == 1, "u"] += 2.0
    assert mm.two_sample_test(frame, by="when", within="who", rng=0).reject(0.01)
    assert not mm.two_sample_test(frame.drop(columns="who"), by="when", rng=0).reject(0.05)


def test_columns_and_arrays_are_one():
    frame = clinics(np.random.default_rng(7), effect=1.0)
    named = mm.two_sample_test(frame, by="group", within="site", rng=0, **FEW)
    a, b = (frame[frame.group == g] for g in "ab")
    split = [part[["site", "u", "v"]] for part in (a, b)]
    both = mm.two_sample_test(*split, within="site", rng=0, **FEW)
    sites = np.concatenate([a.site, b.site])
    arrays = mm.two_sample_test(a[["u", "v"]], b[["u", "v"]], within=sites, rng=0, **FEW)
    assert named.pvalue == both.pvalue == arrays.pvalue
    assert "of group=a and group=b, squared mean difference within strata" in named.method


def test_rows_left_out_take_their_stratum_with_them():
    frame = clinics(np.random.default_rng(8), effect=1.0)
    holes = pd.concat([frame, frame.iloc[:3].assign(site=None), frame.iloc[:2].assign(u=np.nan)])
    found = mm.two_sample_test(holes, by="group", within="site", missing="drop", rng=0, **FEW)
    assert found.pvalue == mm.two_sample_test(frame, by="group", within="site", rng=0, **FEW).pvalue
    assert any("left out" in warning for warning in found.warnings)


def test_clusters_that_lie_in_several_strata_are_refused():
    """Parts of one user on two devices were exchanged as two clusters: 19 of 60 null tables were rejected at .05."""
    rng = np.random.default_rng(12)
    user = np.repeat(np.arange(30), 6)
    frame = pd.DataFrame({
        "arm": np.where(user % 2, "a", "b"), "user": user, "u": rng.normal(size=180), "v": rng.normal(size=180),
        "device": np.tile(["ios", "web"], 90), "team": user % 5,
    })  # fmt: skip
    said = r"30 of 30 clusters have rows in several strata .* (pass|combine both in) clusters="
    design = {"within": frame.device, "clusters": frame.user}
    for call in (
        lambda: mm.two_sample_test(frame, by="arm", within="device", clusters="user"),
        lambda: mm.k_sample_test(frame, by="team", within="device", clusters="user"),
        lambda: mm.two_sample_effect(frame, by="arm", within="device", clusters="user"),
        lambda: mm.test("u + v ~ arm | device", frame, clusters="user"),
        lambda: mm.independence_test(frame.u, frame.v, **design),
    ):
        with pytest.raises(InputError, match=said):
            call()
    both = mm.two_sample_test(frame, by="arm", within="device", clusters=["user", "device"], rng=0, **FEW)
    assert "within strata of 60 clusters" in both.method


@pytest.mark.parametrize("ask", ["by", "question", "variables", "arrays"])
def test_the_refusal_of_clusters_across_strata_can_be_typed_and_names_strata_written_in_two_ways(ask, monkeypatch):
    rng = np.random.default_rng(5)
    user = np.repeat(np.arange(30), 6)
    land = np.tile(["de", "DE ", "at"], 60)
    frame = pd.DataFrame({"arm": np.where(user % 2, "a", "b"), "user": user, "u": rng.normal(size=180), "land": land})
    frame["v"] = rng.normal(size=180)
    call = {
        "by": lambda: mm.two_sample_test(frame, by="arm", within="land", clusters="user"),
        "question": lambda: mm.test("u + v ~ arm | land", frame, clusters="user"),
        "variables": lambda: mm.independence_test("u", "v", within="land", clusters="user", data=frame),
        "arrays": lambda: mm.independence_test(frame.u, frame.v, within=land, clusters=user),
    }[ask]
    with pytest.raises(InputError) as caught:
        call()
    said = str(caught.value)
    assert "has the labels 'DE ' and 'de', which differ only in spaces or capitals and count as two" in said
    if ask == "arrays":
        assert said.endswith("combine both in clusters=.")
        assert "--clusters." in in_options(said, {"clusters": "--clusters"})
        return
    assert said.endswith("pass clusters=['user', 'land'].")
    assert in_options(said, {"clusters": "--clusters"}).endswith("pass --clusters user,land.")
    assert "labels 'at'" not in said


def test_what_says_nothing_is_told():
    frame = clinics(np.random.default_rng(9))
    frame.loc[len(frame)] = ["a", "far", 0.0, 0.0]
    result = mm.two_sample_test(frame, by="group", within="site", rng=0, **FEW)
    assert "1 of 61 rows are in strata with only one group and contribute nothing." in result.warnings


FRAME = clinics(np.random.default_rng(10))
X, Y = np.random.default_rng(11).normal(size=(2, 20))
HALF, PARITY = np.repeat([0, 1], 20), np.tile([0, 1], 20)
APART = (HALF == PARITY) * 1.0  # all weight of x in one stratum, all of y in the other


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mm.two_sample_test(FRAME), ParameterError, "two samples, or one table and by="),
        (lambda: mm.two_sample_test(X, Y, by="g"), ParameterError, "two samples, or one table and by="),
        (lambda: mm.two_sample_test(FRAME, by="x"), ColumnError, "no column 'x'; it has 'group'"),
        (lambda: mm.two_sample_test(FRAME, by="site"), InputError, "4 groups by 'site'; expected two: k_sample_test"),
        (lambda: mm.two_sample_test(FRAME, by="u"), EmptyError, "has 1 row; expected at least 5"),
        (lambda: mm.two_sample_test(X, by="u"), KindError, "name of a column of the one table"),
        (lambda: mm.two_sample_test(FRAME, by="group", within="x"), ColumnError, "and group=a has no column 'x'; it"),
        (lambda: mm.two_sample_test(X, Y, within="x"), KindError, "no columns with names"),
        (lambda: mm.two_sample_test(X, Y, within=[1, 2]), ShapeError, "within has 2 values; expected one for each"),
        (lambda: mm.two_sample_test(X, Y, within=np.repeat([0, 1], 20)), InputError, "nothing can be exchanged"),
        (lambda: mm.two_sample_test(X, Y, clusters=np.tile(range(20), 2)), InputError, "pass them as within="),
        (lambda: mm.two_sample_test(X, Y, clusters=1), ParameterError, "at least 2 consecutive rows"),
        (lambda: mm.two_sample_test(X, Y, clusters=4, null="gamma"), ParameterError, "expected 'auto' or"),
        (lambda: mm.two_sample_test(iter([X]), Y, clusters=4), ParameterError, "in memory"),
        (lambda: mm.two_sample_test(X, Y, weights=-np.ones(40)), NonFiniteError, "weights has negative"),
        (lambda: mm.two_sample_test(X, Y, weights=["a"] * 40), KindError, "expected numbers"),
        (lambda: mm.two_sample_test(X, Y + 5, weights=HALF), InputError, "all weights of x are 0"),
        (lambda: mm.k_sample_test([Y, X], weights=1 - HALF), InputError, "all weights of .*1.* are 0"),
        (lambda: mm.two_sample_effect(X, Y, weights=HALF), InputError, "all weights of x are 0"),
        (lambda: mm.two_sample_test(X, Y, within=np.arange(40)), InputError, "no stratum has rows of two samples"),
        (lambda: mm.k_sample_test([X, Y], within=np.arange(40)), InputError, "no stratum has rows of two samples"),
        (lambda: mm.two_sample_test(X, Y, within=PARITY, weights=APART), InputError, "positive weight of two samples"),
        (lambda: mm.two_sample_test(FRAME, by="group", within="group"), ParameterError, "within names 'group', whose"),
        (lambda: mm.two_sample_test(FRAME, by="group", clusters=["group", "site"]), ParameterError, "clusters names"),
        (lambda: mm.test("u ~ group", FRAME, within="group"), ParameterError, "whose values define the samples"),
        (lambda: mm.test("u ~ group", FRAME, clusters="group"), ParameterError, "clusters names 'group', whose values"),
        (lambda: mm.two_sample_test(X, Y, within=X, missing="drop"), ParameterError, "make it a column"),
        (lambda: mm.two_sample_test(FRAME, by="group", within=FRAME.site), ParameterError, "by= puts rows into groups"),
        (lambda: mm.two_sample_test({"u": X > 0}, {"u": Y > 0}, within="u"), ColumnError, "no column left to test"),
        (lambda: mm.independence_test(X, Y, within=np.arange(20)), InputError, "no stratum has two rows"),
        (lambda: mm.independence_test(X, Y, within=X > 0, null="gamma"), ParameterError, "expected 'auto'"),
        (lambda: mm.independence_test(iter([(X, Y)]), within=X > 0), ParameterError, "in memory"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_one_array_for_each_sample_is_refused_with_what_to_type():
    x, y, site = *np.random.default_rng(0).normal(size=(2, 20)), np.repeat(["a", "b"], 10)
    for argument in ("within", "clusters"):
        said = rf"{argument} holds an array for each sample; .* all 40 rows: pass {argument}=numpy"
        with pytest.raises(ShapeError, match=said):
            mm.two_sample_test(x, y, **{argument: (site, site)})


def test_a_table_of_its_groups_alone_is_refused():
    with pytest.raises(ColumnError, match="the table has no column but 'g', which names the groups"):
        mm.two_sample_test(pd.DataFrame({"g": ["u", "v"] * 30}), by="g", rng=0)


BY = [mm.two_sample_test, mm.k_sample_test, mm.two_sample_effect, mm.k_sample_effect]


@pytest.mark.parametrize("ask", [*BY, lambda table, by: mm.closeness_test(table, by=by, margin=0.1)])
def test_a_table_that_is_not_in_memory_cannot_be_taken_apart(ask, tmp_path):
    frame = pd.DataFrame({"g": ["p", "q"] * 20, "a": np.arange(40.0)})
    frame.to_parquet(tmp_path / "a.parquet")
    for path, read in (
        (str(tmp_path / "a.parquet"), "parquet"),
        (tmp_path / "a.parquet", "parquet"),
        (str(tmp_path), "parquet"),
        ("a.csv", "csv"),
    ):
        expected = f"by= is for a table in memory, and .* is the name of a file: read it .* pandas.read_{read}."
        with pytest.raises(KindError, match=expected):
            ask(path, by="g")
    with pytest.raises(KindError, match=r"the table is a frame of Dask, .*: pass what its compute\(\) returns"):
        ask(dask.dataframe.from_pandas(frame, npartitions=2), by="g")


def test_switches_are_no_designs_and_blocks_fit_into_a_sample():
    x = np.random.default_rng(0).normal(size=(63, 2))
    for ask in (lambda **o: mm.two_sample_test(x, x[:50], **o), lambda **o: mm.independence_test(x, x[:, 0], **o)):
        with pytest.raises(
            ParameterError, match=r"clusters is True; expected the name of a column, or an array .* or a"
        ):
            ask(clusters=True)
        with pytest.raises(ParameterError, match=r"clusters is 2.0; expected the name of a column, or an array"):
            ask(clusters=2.0)
        with pytest.raises(ParameterError, match="within is False; expected the name of a column, or an array with a"):
            ask(within=False)
    with pytest.raises(ParameterError, match="no more than the largest sample has, 63"):
        mm.two_sample_test(x, x[:50], clusters=0)
    with pytest.raises(ParameterError, match="no more than there are, 63"):
        mm.independence_test(x, x[:, 0], clusters=64)


@pytest.mark.parametrize("other", ["a", " A"])
def test_groups_that_differ_only_in_capitals_or_spaces_are_named(other):
    table = {"arm": np.repeat(["A", other, "B"], 10), "x": np.random.default_rng(0).normal(size=30)}
    found = mm.k_sample_test(table, by="arm", n_permutations=19, rng=0)
    (note,) = [note for note in found.warnings if "which differ only in" in note]
    assert "column 'arm'" in note
    assert "count as two" in note


@pytest.mark.parametrize("function", [mm.two_sample_test, mm.two_sample_effect, mm.k_sample_test])
def test_clusters_in_both_samples_are_counted_and_named(function):
    user = np.repeat(np.arange(50), 4)
    arm = np.where(user % 2 == 0, "A", "B")
    arm[:8] = list("AABB") * 2
    table = pd.DataFrame({"user": user, "arm": arm, "y": np.random.default_rng(18_200_006).normal(size=200)})
    said = r"2 of 50 clusters have rows in more than one sample \('0', '1'\).*: leave out the rows"
    with pytest.raises(InputError, match=said):
        function(table, by="arm", clusters="user", rng=0)
    table["arm"] = np.tile(list("AABB"), 50)
    with pytest.raises(InputError, match=r"50 of 50 clusters .*\('0', '1', '2', …\).*: pass them as within="):
        function(table, by="arm", clusters="user", rng=0)


def test_a_label_that_is_constant_in_every_stratum_has_an_interval():
    """The share is the same in both samples of each stratum, which leaves no variance to estimate."""
    user, arm = np.repeat(np.arange(6), 4), np.tile(list("AABB"), 6)
    rare = np.where(user == 2, "x", "z")
    table = pd.DataFrame(
        {"user": user, "arm": arm, "rare": rare, "y": np.random.default_rng(18_200_007).normal(size=24)}
    )
    found = mm.two_sample_test(table, by="arm", within="user", rng=0)
    (of_label,) = [each for each in found.differences if each.column == "rare"]
    assert of_label.difference.estimate == pytest.approx(0.0, abs=1e-12)
    assert -1 < of_label.difference.low < -0.01 < 0.01 < of_label.difference.high < 1
