"""Columns that separate a response are named, with what to type; others are not."""

import numpy as np
import pytest

pytest.importorskip("formulae")

from meanmap.ep.linear import fit
from meanmap.ep.linear.separation import _overlaps as overlaps
from meanmap.ep.linear.separation import _separates as separates
from meanmap.ep.linear.separation import separating

X, Z, NOISE = np.random.default_rng(0).normal(size=(3, 60))
RARE = np.arange(60) >= 56
FEW = np.random.default_rng(1)


def notes(formula, response, family, **columns):
    data = {"x": X, "z": Z, "g": np.arange(60) % 10, "y": response, **columns}
    return [note for note in fit(formula, data, family).report.notes if "separate" in note]


def test_one_column_that_separates_all_labels_is_named_with_a_tighter_prior():
    (note,) = notes("y ~ x + z + (1 | g)", (X > 0.1) * 1, "bernoulli")
    assert note.startswith("'x' separates the response: ")
    typed = {"x": (0.0, float(f"{1 / X.std():.2g}"))}
    assert note.endswith(f"priors={typed}")
    data = {"x": X, "z": Z, "y": (X > 0.1) * 1}
    loose, tight = (fit("y ~ x + z", data, "bernoulli", priors=given).to_frame() for given in (None, typed))
    assert tight.loc["x", "estimate"] < 0.7 * loose.loc["x", "estimate"]


def test_columns_that_separate_together_are_one_note_and_the_third_is_left_out():
    (note,) = notes("y ~ x + z + w", (X + Z > 0.1) * 1, "bernoulli", w=NOISE)
    assert note.startswith("'x', 'z' together separate the response: the likelihood has no maximum")


@pytest.mark.parametrize(
    ("family", "response"),
    [
        ("bernoulli", np.where(RARE, 1, FEW.integers(2, size=60))),
        ("poisson", np.where(RARE, 0, FEW.poisson(1, size=60))),
    ],
)
def test_a_level_that_knows_one_outcome_separates_some_rows(family, response):
    (note,) = notes("y ~ x + c", response, family, c=np.where(RARE, "rare", "often"))
    assert note.startswith("'c[rare]' separates the response in some rows: ")


def test_successes_of_trials_separate_where_all_or_none_succeed():
    response = np.where(X > 0.1, 3, 0)
    (note,) = notes("p(y, n) ~ x", response, "binomial", n=np.full(60, 3))
    assert note.startswith("'x' separates")
    response[X.argmax()] = 1
    assert not notes("p(y, n) ~ x", response, "binomial", n=np.full(60, 3))


def test_ordinary_tables_are_not_said_to_be_separated():
    """Labels whose odds depend on a column are separated by chance in no table of this size."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = np.column_stack([np.ones(80), rng.normal(size=(80, 3))])
        signs = np.where(rng.random(80) < 1 / (1 + np.exp(-columns[:, 1])), 1, -1)
        assert separating(columns, signs, 0) == []


def test_two_columns_that_each_separate_have_a_note_each_and_copies_do_not_confuse():
    signs = np.where(X > 0.1, 1, -1)
    other = signs + 0.3 * np.tanh(Z)
    found = separating(np.column_stack([np.ones(60), X, other, Z, Z]), signs, 0)
    assert sorted(found) == [((1,), True), ((2,), True)]
    overlapping = np.where(Z > 0.1, signs, -signs)
    assert separating(np.column_stack([np.ones(60), Z, Z]), overlapping, 0) == []


@pytest.mark.parametrize("family", ["poisson", "negativebinomial"])
def test_counts_without_zeros_separate_nothing(family):
    """The linear program had no rows, and the fit ended with SciPy's error."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=40)
    found = fit("y ~ x", {"y": 1 + rng.poisson(np.exp(1 + 0.3 * x)), "x": x}, family)
    assert not any("separate" in note for note in found.report.notes)


def test_weights_prove_an_overlap_only_where_no_combination_separates():
    rng = np.random.default_rng(0)
    proved = 0
    for _ in range(200):
        columns = np.column_stack([np.ones(14), rng.integers(-2, 3, size=(14, 2))]).astype(float)
        signs = np.where(columns @ rng.normal(size=3) + rng.normal(size=14) > 0, 1.0, -1.0)
        if overlaps(columns * signs[:, None]):
            proved += 1
            assert not separates(columns, signs)
    assert proved > 50


def test_a_response_that_never_varies_is_answered_from_the_prior_with_a_note():
    """Zeros and ones were refused, while the same data as counts of trials were fitted."""
    rows = 10
    zero, trials = {"y": np.zeros(rows)}, {"y": [0], "n": [rows]}
    binary, counts = fit("y ~ 1", zero, "bernoulli"), fit("p(y, n) ~ 1", trials, "binomial")
    a = np.linspace(-25, 10, 20_001)
    logs = -rows * np.logaddexp(0, a) - (a / 2.5) ** 2 / 2
    chance = np.exp(logs - logs.max())
    mean = a @ chance / chance.sum()
    sd = np.sqrt((a - mean) ** 2 @ chance / chance.sum())
    for found in (binary, counts):
        note, *_ = found.report.notes
        assert note.startswith("the response is 0 in all rows: the likelihood has no maximum")
        assert abs(found.to_frame().loc["Intercept", "estimate"] - mean) < 0.15 * sd
        assert abs(found.to_frame().loc["Intercept", "sd"] / sd - 1) < 0.1
    (note,) = fit("y ~ x", {"y": np.ones(60), "x": X}, "bernoulli").report.notes
    assert note.startswith("the response is as large as it can be in all rows")


def test_zeros_and_ones_under_a_family_of_numbers_get_a_note():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    table = {"x": x, "yes": rng.random(80) < 0.5, "y": x + rng.normal(size=80)}
    note = "the response 'yes' has only the values 0 and 1, and family='gaussian' models its mean as linear"
    assert any(each.startswith(note) for each in fit("yes ~ x", table).report.notes)
    assert not any("values 0 and 1" in each for each in fit("y ~ x", table).report.notes)
    assert not any("values 0 and 1" in each for each in fit("yes ~ x", table, family="bernoulli").report.notes)


def test_a_level_without_events_is_named_in_tables_of_any_size():
    level = np.arange(300_000) % 5
    y = np.zeros(len(level), int)
    y[[1, 2, 3, 6, 7, 8, 11]] = 1
    found = fit("y ~ 0 + C(level)", {"y": y, "level": level}, "bernoulli")
    assert sum("separates the response" in note for note in found.report.notes) == 2
