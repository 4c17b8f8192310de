"""Representations of a user's own in tests: what they see, what is refused, and that levels hold."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.errors import InputError, KindError, NonFiniteError, ParameterError, ShapeError
from meanmap.stats.encoding import encoded

FEW = {"n_permutations": 99, "rng": 0}


def pictures(n, rng, twist=0.0):
    """Noise of 8 × 8 pixels whose neighbours go together, along rows or, as far as `twist` says, along columns."""
    noise = rng.normal(size=(n, 8, 8))
    along = noise + np.roll(noise, 1, axis=2)
    across = noise + np.roll(noise, 1, axis=1)
    return np.where(rng.random((n, 1, 1)) < twist, across, along)


def texture(batch):
    """Products of neighbours, which a network of one layer would find."""
    return np.stack([(batch * np.roll(batch, 1, axis=axis)).mean(axis=(1, 2)) for axis in (1, 2)], axis=1)


def test_a_function_of_rows_sees_what_pixels_do_not():
    rng = np.random.default_rng(0)
    x, y = pictures(60, rng), pictures(60, rng, twist=0.7)
    assert mm.two_sample_test(x, y, features=texture, **FEW).pvalue < 0.02
    assert mm.two_sample_test(x, pictures(60, rng), features=texture, **FEW).pvalue > 0.02
    given = mm.two_sample_test(texture(x), texture(y), rng=3, n_permutations=99)
    assert mm.two_sample_test(x, y, features=texture, rng=3, n_permutations=99).sizes == given.sizes


def test_variables_of_an_independence_test_have_features_each():
    rng = np.random.default_rng(1)
    x = pictures(60, rng, twist=0.5)
    y = texture(x)[:, 0] + 0.3 * rng.normal(size=60)
    assert mm.independence_test(x, y, features_x=texture, **FEW).pvalue < 0.02
    words = ["long " * int(np.clip(5 + 2 * value, 1, 20)) for value in y]
    result = mm.independence_test(x, words, features_x=texture, features_y=lambda texts: list(map(len, texts)), **FEW)
    assert result.pvalue < 0.02
    frame = pd.DataFrame({"word": words, "y": y, "site": rng.choice(["a", "b"], 60)})
    settings = {"data": frame, "within": "site", "features_x": lambda part: part["word"].str.len().to_numpy()}
    assert mm.independence_test("word", "y", **settings, **FEW).pvalue < 0.02


class Mean:
    """The direction from one mean to the other, learned from labels."""

    def fit(self, rows, labels):
        self.direction = rows[labels == 1].mean(axis=0) - rows[labels == 0].mean(axis=0)
        return self

    def transform(self, rows):
        return rows @ self.direction


def test_what_is_fitted_is_compared_on_the_other_half():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 60, 30))
    result = mm.two_sample_test(x, y + 0.4, features=Mean(), **FEW)
    assert result.pvalue < 0.02
    assert result.sizes == (30, 30)
    assert "features were fitted to half of the rows, 60, and the test uses the other half." in result.warnings
    rejected = 0
    for _ in range(60):
        x, y = rng.normal(size=(2, 30, 30))
        rejected += mm.two_sample_test(x, y, "median", features=Mean(), n_permutations=19, rng=0).reject()
    assert rejected <= scipy.stats.binom.isf(1e-5, 60, 0.05), rejected


def test_every_row_is_encoded_once_in_order():
    seen = []

    def function(batch):
        seen.append(len(batch))
        return np.asarray(batch, float)

    rows = np.arange(600.0)
    assert (encoded(rows, function, "x", np.random.default_rng(0))[:, 0] == rows).all()
    assert seen == [256, 256, 88, 4]


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        (lambda rows: rows - rows.mean(axis=0), InputError, "evaluation mode"),
        (lambda rows: rows[:-1], ShapeError, "expected a vector of numbers for each row"),
        (lambda rows: np.full(len(rows), np.nan), NonFiniteError, "not finite"),
        (lambda rows: rows.astype(str), ShapeError, "gave <U"),
        ("encoder", KindError, "a function from rows to vectors"),
    ],
)
def test_errors_say_what_to_do(features, error, words):
    x, y = np.random.default_rng(3).normal(size=(2, 20, 3))
    with pytest.raises(error, match=words):
        mm.two_sample_test(x, y, features=features, **FEW)


def test_what_is_fitted_needs_arrays_and_no_design():
    x, y = (pd.DataFrame(part) for part in np.random.default_rng(3).normal(size=(2, 20, 3)))
    with pytest.raises(KindError, match="arrays or lists"):
        mm.two_sample_test(x, y, features=Mean(), **FEW)
    with pytest.raises(ParameterError, match="without within="):
        mm.two_sample_test(x, y, features=Mean(), clusters=2, **FEW)
