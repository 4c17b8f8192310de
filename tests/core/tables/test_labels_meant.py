"""Labels that may stand for missing values, and blanks around labels, are told of; other labels are not."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.tables.doubts import doubts

WORDS = np.array(["u", "v", "w"] * 20, dtype=object)
NUMBERS = np.random.default_rng(0).normal(size=60)


def with_label(label):
    words = WORDS.copy()
    words[5] = label
    return words


@pytest.mark.parametrize("label", ["nan", "NaN", "None", "<NA>", "NA", "n/a", "NULL", "", "  "])
def test_words_for_what_is_missing_are_told_of_and_can_be_passed_as_marks(label):
    words = with_label(label)
    (note,) = doubts([words], ["x"])
    mark, files = [label.strip()], "" if label.strip() else ", while commands read an empty cell as missing"
    said = f"x has the label {label!r}, treated like any other{files}: if it stands for a missing value, "
    assert note == f"{said}pass missing={mark}."
    result = mm.independence_test(words, NUMBERS, rng=0, n_permutations=99)
    assert note in result.warnings
    left = mm.independence_test(words, NUMBERS, rng=0, n_permutations=99, missing=mark)
    assert left.sizes == (59,)
    assert not any("has the label" in each for each in left.warnings)


def test_what_numpy_makes_of_none_is_told_of():
    (note,) = doubts([{"a": with_label(None).astype(str)}], ["x"])
    assert note.startswith("column 'a' of x has the label 'None', treated like any other")


def test_labels_that_differ_in_blanks_are_told_of():
    frame = pd.DataFrame({"a": with_label("u "), "b": with_label(" v")})
    end = "which differ only in spaces and count as two: write them alike, as .str.strip() does, if they are one."
    assert doubts([frame, frame], ["x", "y"]) == (
        f"column 'a' of x and y has the labels 'u ' and 'u', {end} The same is true of labels in 'b'.",
    )
    assert doubts([frame[["b"]]], ["x"]) == (f"column 'b' of x has the labels ' v' and 'v', {end}",)


def test_codes_of_two_letters_in_two_spellings_are_named_with_the_other_columns():
    device, lands = ["mobile", "Mobile", "tablet"] * 20, ["de", "DE", "at", "AT", "ch", "ch"] * 10
    (note,) = doubts([pd.DataFrame({"device": device, "country": lands})], ["x"])
    assert note.startswith("column 'device' of x has the labels 'Mobile' and 'mobile', which differ only in capitals")
    assert note.endswith("The same is true of labels in 'country'.")
    (alone,) = doubts([{"country": lands}], ["x"])
    assert "has the labels 'AT' and 'at' (and 1 more), which differ only in capitals" in alone
    (single,) = doubts([{"country": ["de", "DE", "at", "ch"] * 10}], ["x"])
    assert "has the labels 'DE' and 'de', which differ only in capitals" in single


@pytest.mark.parametrize("labels", [["AA", "Aa", "aa", "BB", "Bb", "bb"], ["a", "A", "b", "B"], ["mm", "MM", "cm"]])
def test_genotypes_and_letters_are_not_taken_for_codes_in_two_spellings(labels):
    assert doubts([{"a": labels * 10}], ["x"]) == ()


def test_labels_that_differ_in_spaces_and_capitals_are_named():
    said = {"Yes": ("capitals", ".str.lower()"), "Yes ": ("spaces or capitals", ".str.strip().str.lower()")}
    for label, (what, how) in said.items():
        words = np.array(["yes", "no", "perhaps"] * 20, dtype=object)
        words[5] = label
        (note,) = doubts([words], ["x"])
        assert note == (
            f"x has the labels {label!r} and 'yes', which differ only in {what} and count as two: write them alike, as "
            f"{how} does, if they are one."
        )


def test_categories_that_differ_in_spaces_are_named():
    (note,) = doubts([pd.Categorical(with_label("u "))], ["x"])
    assert note.startswith("x has the labels 'u ' and 'u', which differ only in spaces")


@pytest.mark.parametrize("label", ["none", "nanny", "Nan", "U", "u.", "north east", None])
def test_other_labels_are_not_told_of(label):
    assert doubts([with_label(label)], ["x"]) == ()
    assert doubts([pd.Categorical(with_label("nan"))], ["x"]) == ()
    assert doubts([{"a": with_label("nan")}], ["x"], told=["a"]) == ()
