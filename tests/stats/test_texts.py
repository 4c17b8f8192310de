"""Texts, of which nearly every row has its own: all tests read them alike, and labels stay labels."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.kernels.discrete import Spectrum
from meanmap.stats.texts import read_texts

FEW = {"n_permutations": 100, "rng": 0}
WORDS = (["fine", "sunny", "lovely", "bright"], ["poor", "rainy", "dreadful", "dark"])
N = 60


def reviews(good, rng):
    """Five words a row, of one list the more the greater the chance, and a number."""
    chosen = rng.random((len(good), 5)) < np.asarray(good)[:, None]
    return [" ".join(rng.choice(WORDS[int(not each)]) for each in row) + f" {rng.integers(9999)}" for row in chosen]


@pytest.fixture(scope="module")
def pair():
    """Two samples of reviews that differ, and stars that do not."""
    rng = np.random.default_rng(1)
    return [
        pd.DataFrame({"stars": rng.normal(size=N), "review": reviews(np.full(N, share), rng)}) for share in (0.4, 0.85)
    ]


def test_samples_of_texts_are_told_apart(pair):
    x, y = pair
    result = mm.two_sample_test(x, y, **FEW)
    assert result.pvalue < 0.01
    assert (
        "column 'review' holds texts that differ in nearly every row: the test uses their first 10"
        in result.warnings[0]
    )
    plain = mm.two_sample_test(list(x["review"]), y["review"].to_numpy(), **FEW)
    assert plain.pvalue < 0.01
    assert plain.warnings[0].startswith("x and y hold texts")
    assert mm.k_sample_test([x[:30], x[30:], y], **FEW).pvalue < 0.01
    together = pd.concat([x.assign(site="a"), y.assign(site="b")])
    assert mm.test("review ~ site", together, **FEW).pvalue < 0.01
    assert mm.two_sample_effect(x, y, rng=0).distance.low > 0
    assert mm.closeness_test(x, y, 0.01, claim="far", rng=0).pvalue < 0.05


def test_variables_of_texts_are_seen():
    rng = np.random.default_rng(2)
    mood = rng.normal(size=N)
    frame = pd.DataFrame(
        {"review": reviews(1 / (1 + np.exp(-2 * mood)), rng), "mood": mood, "noise": rng.normal(size=N)}
    )
    seen = mm.independence_test("review", "mood", data=frame, **FEW)
    assert seen.pvalue < 0.01
    assert seen.warnings[0].startswith("x holds texts")
    assert mm.independence_test("review", "noise", data=frame, **FEW).pvalue > 0.05
    assert mm.joint_independence_test(frame, **FEW).pvalue < 0.05
    assert mm.independence_effect("review", "mood", data=frame, rng=0).correlation.low > 0
    within = mm.independence_test("review", "mood", data=frame.assign(site=list("ab") * (N // 2)), within="site", **FEW)
    assert within.pvalue < 0.03
    found = mm.pc(frame, rng=0)
    assert found.skeleton.edges.tolist() == [[0, 1]]
    assert found.report.notes[0].startswith("column 'review' of table holds texts")


def test_coordinates_do_not_know_the_samples(pair):
    x, y = ([*part["review"]] for part in pair)
    (first, second), _ = read_texts([x, y], "xy")
    (other, one), _ = read_texts([x[30:] + y[30:], x[:30] + y[:30]], "xy")
    apart = np.concatenate([one["text"], other["text"]])
    whole = np.concatenate([first["text"], second["text"]])
    order = [*range(30), *range(N, N + 30), *range(30, N), *range(N + 30, 2 * N)]
    np.testing.assert_allclose(np.abs(apart), np.abs(whole[order]), atol=1e-9)


def test_labels_and_chosen_kernels_stay_what_they_are(pair):
    x, y = pair
    labels = pd.DataFrame({"town": ["a", "b", "c"] * 10, "size": pd.Categorical(list("sml") * 10)})
    for given in ([labels, labels], [["a", "b"] * 15], [np.ones(30)], [{"x": np.ones(30)}], [["a", "b", "c"]]):
        found, notes = read_texts(given, "xy"[: len(given)])
        assert all(part is came for part, came in zip(found, given, strict=True))
        assert notes == ()
    for told in ({"kinds": {"review": "label"}}, {"kernel": Spectrum(3)}):
        found, notes = read_texts([x, y], "xy", **told)
        assert found[0] is x
        assert notes == ()
    spectrum = mm.two_sample_test(list(x["review"]), list(y["review"]), Spectrum(3), **FEW)
    assert spectrum.kernel == Spectrum(3)
    assert not any("texts" in note for note in spectrum.warnings)


def test_where_texts_stay_labels_a_sentence_says_so(pair):
    x, y = pair
    says = "nearly every row of column 'review' has its own label"
    told = mm.two_sample_test(x, y, kinds={"review": "label"}, **FEW)
    assert any(says in note for note in told.warnings)
    monitor = mm.DriftMonitor.of(pd.concat([x, y]), n_permutations=99, rng=0)
    left_out = "'review' holds texts that differ in nearly every row and is left out"
    assert any(left_out in note for note in monitor.notes)
    with pytest.warns(UserWarning, match="nearly every row of x and y has its own label"):
        mm.stats.TwoSampleBet.of(list(x["review"]), list(y["review"]), rng=0)
    with pytest.warns(UserWarning, match="nearly every row of x has its own label"):
        mm.stats.IndependenceBet.of(list(x["review"]), x["stars"].to_numpy(), rng=0)
