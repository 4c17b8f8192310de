"""Columns with more labels than have a probability of their own: none is impossible, and all of them are drawn."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

import meanmap as mm
from meanmap.bp.conditionals.columns import MOST_LABELS, OTHERS, CodedColumn, CodedTable
from meanmap.bp.conditionals.dependency_network import MOST_WIDTH
from meanmap.core.errors import InputError

SMALL = [ExtraTreesRegressor(4, min_samples_leaf=20, random_state=0)]
RARE = "k9", "k199"


def make_table(n: int = 400) -> dict:
    """k has 200 labels, of which even ones make m large; the two of `RARE` come once."""
    rng = np.random.default_rng(0)
    chance = 1 / np.arange(1, 201)
    number = rng.choice(200, n, p=chance / chance.sum())
    number[np.isin(number, [9, 199])] = 0
    number[:2] = 9, 199
    return {"k": np.char.mod("k%d", number), "m": np.where(number % 2, -2.0, 2.0) + 0.3 * rng.normal(size=n)}


TABLE = make_table()
LABELS, COUNTS = np.unique(TABLE["k"], return_counts=True)
SHARES = dict(zip(LABELS.tolist(), COUNTS / 400, strict=True))
# What a label that never came is given.
ONCE = np.sum(COUNTS == 1) / 401
NEW = {"k": [*RARE, "k0", "zebra"], "m": [-2.0, -2.0, 2.0, 2.0]}


@pytest.fixture(scope="module")
def network():
    return mm.bp.DependencyNetwork(SMALL).fit(TABLE)


@pytest.fixture(scope="module")
def arrows():
    return mm.bp.BayesianNetwork([("k", "m")]).fit(TABLE)


def test_rare_labels_share_one_number_as_often_as_they_came():
    column = CodedColumn.of("k", TABLE["k"])
    numbers = column.read(TABLE["k"], "data")
    assert column.width == numbers.shape[1] == len(column.states) == MOST_LABELS + 1 < len(LABELS)
    assert column.states[-1] == OTHERS
    np.testing.assert_array_equal(numbers.sum(axis=1), 1)
    others = [label for label in LABELS.tolist() if label not in column.states]
    chance = np.linspace(1, 2, column.width)
    found = column.label_belief(chance / chance.sum()).probabilities()
    assert sum(found.values()) == pytest.approx(1)
    for label in LABELS.tolist():
        rest = sum(SHARES[each] for each in others)
        own = SHARES[label] / rest * chance[-1] if label in others else chance[column.states.index(label)]
        assert found[label] == pytest.approx(own / chance.sum())


def test_tables_of_many_labels_stay_narrow():
    """Each column keeps as many labels on its own as there is room for."""
    rng = np.random.default_rng(0)
    labels = {f"k{j}": np.char.mod("v%d", rng.integers(60, size=200)) for j in range(8)}
    whole = {"x": rng.normal(size=200), "yes": np.arange(200) > 50, **labels}
    table, each, _ = CodedTable.of(whole, widest=MOST_WIDTH)
    numbers = np.concatenate(list(each.values()), axis=1)
    assert {column.width for name, column in table.columns.items() if name in labels} == {18}
    assert table.columns["yes"].width == 2
    assert numbers.shape == (200, 1 + 2 + 8 * 18)
    assert numbers[:, 3:21].sum(axis=1).tolist() == [1] * 200


def test_labels_that_never_came_are_none_of_few():
    column = CodedColumn.of("k", np.repeat(["a", "b", "c"], 5))
    assert column.read(["b", "z", None], "new")[:2].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert column.states == ["a", "b", "c"]


def test_scores_are_those_of_beliefs(network):
    """What never came counts as those that came once did."""
    scores = network.score({"k": NEW["k"], "m": [np.nan] * 4})
    chances = network.query({}, ["k"])["k"].probabilities()
    expected = [np.log((1 - ONCE) * chances[label]) for label in NEW["k"][:3]]
    np.testing.assert_allclose(scores, [*expected, np.log(ONCE)])


def test_scores_along_arrows_are_those_of_beliefs(arrows):
    scores, chances = arrows.score(NEW), arrows.query({}, ["k"])["k"].probabilities()
    of_m = [arrows.columns["m"].read(NEW["m"], ""), np.log(arrows.columns["m"].scale)]
    laws = arrows.conditionals["m"].log_chance(arrows.columns["k"].read(NEW["k"], ""), of_m[0]) - of_m[1]
    expected = [np.log((1 - ONCE) * chances[label]) for label in NEW["k"][:3]]
    np.testing.assert_allclose(scores - laws, [*expected, np.log(ONCE)], atol=2e-4)  # laws have no tails


@pytest.mark.parametrize("name", ["network", "arrows"])
def test_all_labels_are_drawn_and_what_is_known_stays(name, request):
    model = request.getfixturevalue(name)
    drawn = model.sample(2000, rng=0)["k"]
    rare = np.isin(drawn, [label for label in LABELS if label not in CodedColumn.of("k", TABLE["k"]).states])
    expected = sum(SHARES[each] for each in set(drawn[rare].tolist()))
    assert len(set(drawn.tolist())) > 0.9 * len(LABELS)  # the rarest are expected five times
    assert abs(rare.mean() - expected) < 0.05  # four deviations of a share of 400 rows, and 2000 draws
    for label in RARE:
        assert set(model.sample(5, {"k": label}, rng=0)["k"].tolist()) == {label}


def test_tables_keep_the_labels_that_they_came_with(network):
    rows = {"k": [RARE[0], None, "a zebra with a long name"], "m": [2.0, 2.0, np.nan]}
    with pytest.warns(UserWarning, match="1 label never seen before, such as 'a zebra"):
        drawn = network.sample(3, rows, rng=0)["k"]
    assert drawn.shape == (3, 3)
    assert set(drawn[0].tolist()) == {RARE[0]}
    assert set(drawn[1].tolist()) <= set(LABELS.tolist())
    assert set(drawn[2].tolist()) == {"a zebra with a long name"}


def test_rare_labels_are_evidence_and_new_ones_are_refused_by_arrows(arrows):
    assert np.isfinite(arrows.query({"k": RARE[0]}, ["m"], rng=0)["m"].mean())
    with pytest.raises(InputError, match=r"\['k'\] has a label that none of the \d+ rows of the data has; .* 'k0'"):
        arrows.query({"k": "zebra"}, ["m"])


def test_truth_values_leave_no_room_for_others():
    flag = np.arange(60) % 3 == 0
    model = mm.bp.BayesianNetwork([("flag", "x")]).fit({"flag": flag, "x": flag + np.linspace(0, 1, 60)})
    column = model.columns["flag"]
    assert np.exp(column.log_chances([True, False], np.log([1 / 3, 2 / 3]), "new")).sum() == pytest.approx(1)


def test_columns_of_one_value_are_refused_by_name():
    with pytest.raises(InputError, match=r"data\['k'\] has the same value in all rows"):
        mm.bp.BayesianNetwork([("k", "m")]).fit({"k": ["a"] * 30, "m": np.arange(30.0)})
