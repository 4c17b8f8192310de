"""Formulas and tables as people type them: equal ones agree, and what would be read as something else is refused."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("formulae")

from meanmap.core.errors import ColumnError, InputError, NonFiniteError, ParameterError
from meanmap.ep.linear import fit
from meanmap.ep.linear.formula import Formula
from tests.ep.linear.test_fit import DATA


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y ~ x == 1", r"cannot be read from '==' on; .* such as I\(x > 1\)"),
        ("y ~ x %in% k", "cannot be read from '%' on"),
        ("y ~ x, h", "cannot be read from ',' on"),
        ("y ~ x h", "cannot be read from 'h' on"),
        ("y ~ x) + h", r"cannot be read from '\)' on"),
        ("y ~ x**2", r"has x \*\* 2, which means no more than the column; type I\(x \*\* 2\)"),
        ("y ~ h + (1 + x**2 || g)", r"has x \*\* 2, which means no more"),
        ("y ~ `x`**3", r"has `x` \*\* 3, which means no more"),
        ("y ~ 2*x", r"has the number 2 as a term; .* type I\(2 \* x\)"),
        ("y ~ x + (2 | g)", "has the number 2 as a term"),
        ("y ~ np.log(x*1e6)", "numbers such as 1e3 are written out: 1000"),
        ("y - 1 ~ x", r"1 is subtracted from the response; type I\(y - 1\)"),
    ],
)
def test_what_a_parser_passes_over_is_refused(text, said):
    """`y ~ x == 1` and `y ~ x %in% k` were fits of `y ~ x`."""
    with pytest.raises(InputError, match=said):
        fit(text, DATA)


def test_nested_columns_are_those_of_their_interaction():
    """Labels of k/x stopped with an IndexError; a column over labels has one slope for each."""
    found, same = fit("y ~ k/x", DATA), fit("y ~ k + k:x", DATA)
    assert found.formula.names == ("Intercept", "k[lo]", "k[mid]", "k[hi]:x", "k[lo]:x", "k[mid]:x")
    np.testing.assert_allclose(found.mean, same.mean, rtol=1e-6)
    np.testing.assert_allclose(found.predict(DATA[:4]), same.predict(DATA[:4]), rtol=1e-6)
    fits = [np.polyfit(part.x, part.y, 1)[0] for _, part in DATA.groupby("k")]
    np.testing.assert_allclose(found.mean[3:], fits, atol=0.06)


def test_powers_and_operators_inside_of_functions_stay():
    square = fit("y ~ I(x**2)", DATA)
    np.testing.assert_allclose(square.mean, fit("y ~ {x ** 2}", DATA).mean)
    assert fit("y ~ (x + h)**2", DATA).formula.names == ("Intercept", "x", "h", "x:h")
    assert fit("y ~ I(x > 3)", DATA).formula.names == ("Intercept", "I(x > 3)")


def test_responses_and_names_that_are_no_numbers_and_no_text_are_refused():
    with pytest.raises(NonFiniteError, match=r"the response 'np.log\(x\)' is nan in row 2"), np.errstate(all="ignore"):
        fit("np.log(x) ~ h", DATA.assign(x=DATA.x.where(DATA.index != 2, -1.0)))
    with pytest.raises(ColumnError, match=r"the name of column 0 of data is no text; rename it"):
        fit("y ~ `0`", DATA.rename(columns={"x": 0}))
    found = fit("y ~ C(h)", DATA)
    with pytest.raises(ColumnError, match="holds 9 in row 0, a level that the data of the fit do not have"):
        found.predict(pd.DataFrame({"h": [9]}))


def test_rows_without_trials_count_as_nothing():
    """As in glm and lme4; they were refused."""
    rng = np.random.default_rng(2)
    table = {"g": np.arange(60) % 6, "x": rng.normal(size=60), "t": rng.integers(0, 6, 60)}
    table["s"] = rng.binomial(table["t"], 0.3)
    some = table["t"] > 0
    found = fit("p(s, t) ~ x + (1 | g)", table, "binomial")
    without = fit("p(s, t) ~ x + (1 | g)", {name: column[some] for name, column in table.items()}, "binomial")
    np.testing.assert_allclose(found.to_frame(), without.to_frame(), rtol=1e-8)
    assert found.log_evidence == pytest.approx(without.log_evidence, abs=1e-8)
    assert f"{(~some).sum()} rows of 'p(s, t)' have 0 trials: they count as nothing" in found.report.notes
    assert without.report.notes == ()
    np.testing.assert_allclose(found.predict()[some], without.predict(), rtol=1e-6)
    np.testing.assert_allclose(found.leave_one_out()[~some], 0, atol=1e-9)
    assert not found.simulate(draws=3, rng=0)[:, ~some].any()
    with pytest.raises(ParameterError, match="has 0 trials at row 0; expected 1 or more"):
        fit("p(s, t) ~ x", {**table, "s": 0 * table["s"], "t": 0 * table["t"]}, "binomial")


def test_labels_in_brackets_have_the_columns_of_shared_effects():
    """As in lme4; `(1 + x:k | g)` had no slope for the first label."""
    by_hand = DATA.assign(**{f"x_{k}": DATA.x * (DATA.k == k) for k in ("hi", "lo", "mid")})
    found = fit("y ~ x + (1 + x:k || g)", DATA)
    same = fit("y ~ x + (1 | g) + (0 + x_hi + x_lo + x_mid | g)", by_hand)
    assert found.formula.rows.groups[0].labels == ("Intercept", "x:k[hi]", "x:k[lo]", "x:k[mid]")
    np.testing.assert_allclose(found.predict(DATA[:5]), same.predict(by_hand[:5]), rtol=1e-3)
    for text, labels in (
        ("(1 + x:k | g)", ("Intercept", "x:k[hi]", "x:k[lo]", "x:k[mid]")),
        ("(1 + k/x | g)", ("Intercept", "k[lo]", "k[mid]", "k[hi]:x", "k[lo]:x", "k[mid]:x")),
        ("(0 + k*x | g)", ("k[hi]", "k[lo]", "k[mid]", "x", "k[lo]:x", "k[mid]:x")),
        ("(k * x | g)", ("Intercept", "k[lo]", "k[mid]", "x", "k[lo]:x", "k[mid]:x")),
    ):
        rows = Formula(f"y ~ {text}", DATA, "raise").rows
        assert rows.groups[0].labels == labels
        assert rows.groups[0].design.shape == (len(DATA), len(labels))
