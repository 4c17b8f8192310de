"""Columns of kinds that NumPy, pandas and polars have and few people meet."""

import numpy as np
import polars as pl
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, NonFiniteError, ShapeError
from meanmap.core.tables.table import Table

FEW = {"n_permutations": 99, "rng": 0}
VALUES = np.random.default_rng(0).normal(size=40)
WORDS = np.where(VALUES > 0, "café", "bar")
NEW = WORDS.astype(np.dtypes.StringDType())


def test_fixed_vectors_of_polars_are_vectors():
    pairs = np.c_[VALUES, VALUES**2]
    column = pl.Series(pairs, dtype=pl.Array(pl.Float64, 2))
    np.testing.assert_array_equal(Table.of(pl.DataFrame({"a": column})).columns["a"], pairs)
    expected = mm.two_sample_test({"a": pairs}, {"a": pairs + 1}, **FEW)
    found = mm.two_sample_test(pl.DataFrame({"a": column}), {"a": pairs + 1}, **FEW)
    assert (found.pvalue, found.statistic) == (expected.pvalue, expected.statistic)


def test_structs_and_very_long_numbers_are_refused_in_words():
    frame = pl.DataFrame({"a": [{"u": value, "v": 1} for value in VALUES]})
    with pytest.raises(KindError, match=r"x\['a'\] holds structs; expected one value per row: split them"):
        mm.two_sample_test(frame, frame)
    long = pl.DataFrame({"a": pl.Series([2**100, *range(39)], dtype=pl.Int128)})
    with pytest.raises(KindError, match=r"x\['a'\] holds whole numbers of more than 64 bits.*\.cast\(polars\.String\)"):
        mm.two_sample_test(long, long)
    short = pl.DataFrame({"a": pl.Series(range(40), dtype=pl.Int128)})
    assert Table.of(short).columns["a"].tolist() == list(range(40))


def test_texts_of_numpys_new_kind():
    assert mm.two_sample_test(NEW, WORDS, **FEW).pvalue == 1.0
    assert mm.two_sample_test({"a": NEW}, {"a": WORDS}, **FEW).pvalue == 1.0
    assert mm.Schema.of({"a": NEW})["a"].labels == ("bar", "café")
    gaps = np.array([None, *WORDS[1:]], dtype=np.dtypes.StringDType(na_object=None))
    assert mm.two_sample_test({"a": gaps}, {"a": WORDS}, missing="drop", **FEW).sizes == (39, 40)
    with pytest.raises(NonFiniteError, match=r"x\['a'\] has 1 missing value"):
        mm.two_sample_test({"a": gaps}, {"a": WORDS})


def test_bytes_that_are_no_text():
    with pytest.raises(KindError, match=r"x\['a'\] holds bytes that are not UTF-8 text, first b'\\xff'"):
        mm.two_sample_test({"a": [b"\xff", b"v"] * 20}, {"a": [b"u", b"v"] * 20})


def test_halves_of_characters_are_labels():
    halves = ["\ud800", "v"] * 20
    assert mm.two_sample_test(halves, halves, **FEW).pvalue == 1.0
    assert mm.Schema.of({"a": halves})["a"].distinct == 2


@pytest.mark.parametrize("wrap", [list, lambda words: {"a": words}, lambda words: pl.DataFrame({"a": words})])
def test_one_text_of_many_characters_does_not_fill_the_memory(wrap):
    words = ["u", "v"] * 10_000
    words[17] = "w" * 200_000
    sample = wrap(words)
    with pytest.raises(ShapeError, match=r"20000 texts, and that of row 17 has 200000 characters: .* take 14.9 GiB"):
        mm.two_sample_test(sample, sample, **FEW)
