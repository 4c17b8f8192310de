"""What is typed by people who know formulas of regressions, or nearly a name: the error says what to type."""

import numpy as np
import pandas as pd
import pytest

import meanmap as mm
from meanmap.core.errors import ColumnError, EmptyError, KindError, NonFiniteError, ParameterError
from meanmap.stats.asking.grammar import Question

RNG = np.random.default_rng(0)
SITE = np.repeat(["a", "b"], 30)
TABLE = pd.DataFrame({"x": RNG.normal(size=60), "y": RNG.normal(size=60), "z": RNG.normal(size=60), "site": SITE})


@pytest.mark.parametrize(
    ("question", "match"),
    [
        ("y ~ log(x)", r"a question cannot compute anything\. Make a column of log\(x\)"),
        ("y ~ np.log(x) + z", r"Make a column of np.log\(x\)"),
        ("y ~ x:z", r"x:z would be an interaction.*write \+ instead"),
        ("y ~ x * z", r"x \* z would be an interaction"),
        ("y ~ x^2", r"x\^2 would be a power"),
        ("y ~ C(site)", r"pass kinds=\{'site': 'label'\} to make site a label"),
        ("y ~ factor(site)", r"pass kinds=\{'site': 'label'\} to make site a label"),
        ("as.factor(site) ~ x", r"pass kinds=\{'site': 'label'\} to make site a label"),
        ("y ~ x / z", r"x / z would be an interaction"),
        ("y ~ x - 1", r"has neither subtraction nor an intercept: leave - 1 out"),
        ("y ~ . - z", r"has neither subtraction nor an intercept: leave - z out"),
        ("y ~ 0 + x", r"a question has no intercept: leave 0 out"),
        ("y ~ x + 1", r"a question has no intercept: leave 1 out"),
        ("y ~ x + (1 | site)", "within='site' to compare within groups, or clusters='site' to keep groups whole"),
        ("y ~ x + (1|site)", "within='site' to compare within groups"),
    ],
)
def test_terms_of_formulas_get_their_remedy(question, match):
    with pytest.raises(ParameterError, match=match):
        mm.test(question, TABLE)


def test_columns_whose_names_look_like_terms_are_columns():
    names = ["log(x)", "a:b", "x^2", "C(site)", "-a", "1", "a/b"]
    assert Question.read("`log(x)` + `a:b` ~ `x^2` + `C(site)`", names).names == tuple(names[:4])
    assert Question.read("log(x) ~ a:b", names).names == ("log(x)", "a:b")
    assert Question.read("-a ~ 1 + a/b", names).names == ("-a", "1", "a/b")


def test_a_point_in_backticks_is_a_column():
    assert Question.read("`.` ~ y", [".", "y", "z"]).left == (".",)
    assert Question.read(". ~ y", [".", "y", "z"]).left == (".", "z")
    with pytest.raises(ColumnError, match=r"the table has no column '\.'; it has 'x', 'y'"):
        mm.test("`.` ~ y", TABLE)


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda: mm.test("y ~ X", TABLE), r"has no column 'X' \(did you mean 'x'\?\)"),
        (lambda: mm.test("y ~ x | Site", TABLE), r"has no column 'Site' \(did you mean 'site'\?\)"),
        (lambda: mm.test("y ~ x", TABLE, within="Site"), r"within names 'Site', and .* \(did you mean 'site'\?\)"),
        (
            lambda: mm.test("y ~ x", TABLE, clusters=["Site"]),
            r"clusters names 'Site', and .* \(did you mean 'site'\?\)",
        ),
        (lambda: mm.independence_test("X", "y", data=TABLE), r"x names 'X' \(did you mean 'x'\?\)"),
        (lambda: mm.k_sample_test(TABLE, by="Site"), r"has no column 'Site' \(did you mean 'site'\?\)"),
        (
            lambda: mm.two_sample_test(TABLE, TABLE, kinds={"Site": "label"}),
            r"kinds names 'Site' \(did you mean 'site'",
        ),
        (lambda: mm.k_sample_test(TABLE, by="site", within="Z"), r"within names 'Z', and site=a .* mean 'z'\?\)"),
        (lambda: mm.DriftMonitor.of(TABLE, within="Site"), r"within names 'Site' \(did you mean 'site'\?\)"),
    ],
)
def test_names_of_columns_that_are_nearly_right(ask, match):
    with pytest.raises(ColumnError, match=match):
        ask()


def test_names_of_options_and_functions_that_are_nearly_right():
    options = {"n_permutation": 3}
    with pytest.raises(TypeError, match=r"test\(\) takes no n_permutation= \(did you mean 'n_permutations'\?\)"):
        mm.test("y ~ x", TABLE, **options)
    with pytest.raises(AttributeError, match=r"no attribute 'two_sampletest'; did you mean 'two_sample_test'\?"):
        _ = mm.two_sampletest
    with pytest.raises(
        KindError, match=r"kernel is 'medain' \(did you mean 'median'\?\); .*'median', 'learned', 'deep' or"
    ):
        mm.two_sample_test(TABLE.x, TABLE.y, kernel="medain")
    for wrong in (
        lambda: mm.k_sample_test([TABLE.x, TABLE.y, TABLE.z], kernel="lerned"),
        lambda: mm.independence_test(TABLE.x, TABLE.y, kernel_y="lerned"),
        lambda: mm.conditional_independence_test(TABLE.x, TABLE.y, TABLE.z, kernel="lerned"),
        lambda: mm.pc(TABLE[["x", "y", "z"]], kernel="lerned"),
        lambda: mm.DriftMonitor.of(TABLE[["x", "y"]], kernel="lerned"),
    ):
        with pytest.raises(KindError, match=r"is 'lerned' \(did you mean 'learned'\?\); .*'median', 'learned' or None"):
            wrong()
    with pytest.raises(ColumnError, match=r"kinds names 'q'; the columns of x and y are 'x', 'y'"):
        mm.two_sample_test(TABLE[["x", "y"]], TABLE[["x", "y"]], kinds={"q": "label"})
    with pytest.raises(ParameterError, match=r"statistic is 'unbias' \(did you mean 'unbiased'\?\)"):
        mm.two_sample_test(TABLE.x, TABLE.y, statistic="unbias")


@pytest.mark.parametrize("question", ["y ~ .", "y ~ . | z", ". ~ site"])
def test_missing_values_are_said_of_their_column(question):
    table = TABLE.rename(columns={"x": "ln_x"})
    table.loc[3, "ln_x"] = np.nan
    with pytest.raises(NonFiniteError, match=r"the table has missing values in 'ln_x' \(1\): fill them in, or pass"):
        mm.test(question, table)


WRONG = {
    "kinds, a list": (
        lambda: mm.two_sample_test(TABLE, TABLE, kinds=["x"]),
        KindError,
        "kinds is a list; expected a map",
    ),
    "kinds, of pc": (lambda: mm.pc(TABLE, kinds=["x"]), KindError, "kinds is a list"),
    "kinds, of a question": (lambda: mm.test("y ~ x", TABLE, kinds=["x"]), KindError, "kinds is a list"),
    "features_x": (
        lambda: mm.independence_test(TABLE.x, TABLE.y, features_x=3),
        KindError,
        "features_x is 3; expected",
    ),
    "features_y": (
        lambda: mm.independence_test(TABLE.x, TABLE.y, features_y=3),
        KindError,
        "features_y is 3; expected",
    ),
    "within of a monitor": (lambda: mm.DriftMonitor.of(TABLE, within=3), KindError, "within is 3; expected the name"),
    "within of a question": (lambda: mm.test("y ~ x", TABLE, within=3), KindError, "within is 3; expected the name"),
    "statistic": (
        lambda: mm.two_sample_test(TABLE.x, TABLE.y, statistic=[]),
        ParameterError,
        r"statistic is \[\]; exp",
    ),
    "null": (lambda: mm.independence_test(TABLE.x, TABLE.y, null={}), ParameterError, r"null is \{\}; expected one of"),
    "clusters": (
        lambda: mm.two_sample_test(TABLE.x, TABLE.y, clusters=2**70),
        ParameterError,
        "no more than the largest sample has, 60",
    ),
    "half_samples": (lambda: mm.pc(TABLE, half_samples=None), ParameterError, "half_samples is None; expected a whole"),
    "question": (
        lambda: mm.test(["y ~ x"], TABLE),
        KindError,
        r"the question is \['y ~ x'\]; expected a question such as",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_of_the_wrong_kind(name):
    call, error, match = WRONG[name]
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("ask", [mm.two_sample_test, mm.independence_test])
def test_refusals_come_without_warnings_of_arithmetic(ask):
    """Notes on wild cells, order and means look at columns before the reader refuses them; warnings are errors here."""
    x, y = np.random.default_rng(0).normal(size=(2, 50, 2))
    with pytest.raises(NonFiniteError, match="not finite, the first"):
        ask(np.where([True, False], np.inf, x), y, rng=0)
    with pytest.raises(EmptyError, match="x has 1 point; expected at least 5"):
        ask(x[:1], y[:1] if ask is mm.independence_test else y, rng=0)
