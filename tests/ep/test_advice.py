"""Code in messages of `ep` can be typed: names exist, and calls take what is passed."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meanmap as mm
from meanmap import ep
from meanmap.core import InputError, KindError, ParameterError, ShapeError

FOLDER = Path(str(ep.__file__)).parent
NAMES: dict[str, Any] = {"ep": ep, "mm": mm}


def texts():
    """Texts of the source, with ` _ ` where values go in."""
    for file in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield (
                    file.name,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else " _ " for part in node.values),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield file.name, node.value


def call_at(text, start):
    """The call that begins here, parsed; None if it does not end or is no code."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if text[at] == ")" and depth == 0:
            try:
                return ast.parse(text[start : at + 1].strip(), mode="eval").body
            except SyntaxError:
                return None
    return None


def test_names_in_messages_exist_and_calls_fit_their_signatures():
    seen, wrong = 0, []
    for file, text in texts():
        for match in re.finditer(r"(?<![\w.])(ep|mm)((?:\.[A-Za-z]\w*)+)", text):
            found = NAMES[match[1]]
            if match[0].endswith((".py", "._")):
                continue
            try:
                for name in match[2][1:].split("."):
                    found = getattr(found, name)
            except AttributeError:
                wrong.append(f"{file}: {match[0]}")
                continue
            seen += 1
            call = call_at(text, match.start()) if text[match.end() : match.end() + 1] == "(" else None
            if isinstance(call, ast.Call) and not any(isinstance(each, ast.Starred) for each in call.args):
                words = {each.arg: None for each in call.keywords if each.arg}
                some = any(isinstance(each, ast.Constant) and each.value is ... for each in call.args)
                taken = inspect.signature(found)
                try:
                    (taken.bind_partial if some else taken.bind)(*call.args, **words)
                except TypeError as error:
                    wrong.append(f"{file}: {text[match.start() :][:70]}: {error}")
    assert not wrong
    assert seen > 100


def code_after(message, words):
    """What stands after these words, up to the end of the call."""
    start = message.index(words) + len(words)
    call = call_at(message, start)
    assert call is not None
    return ast.unparse(call)


# Variables without a prior that only a function is about.
WITHOUT = {
    "Normal": lambda: ep.Variable("x", ep.Normal, plate=4),
    "Gamma": lambda: ep.Variable("x", ep.Gamma),
    "Beta": lambda: ep.Variable("x", ep.Beta),
    "Bernoulli": lambda: ep.Variable("x", ep.Bernoulli, plate=4),
    "MultivariateNormal": lambda: ep.Variable("x", ep.MultivariateNormal, dimension=3),
}


@pytest.mark.parametrize("family", WITHOUT)
def test_a_prior_to_type_is_one(family):
    x = WITHOUT[family]()
    with pytest.raises(InputError) as error:
        ep.infer(ep.FactorGraph(ep.Density(lambda x: -0.5 * (x**2).sum(), x, name="about x")))
    made = eval(code_after(str(error.value), "such as "), NAMES)
    assert (made.family, made.plate, made.dimension) == (x.family, x.plate, x.dimension)
    assert made.prior is not None


@pytest.mark.parametrize("family", ["MultivariateNormal", "Dirichlet", "Categorical"])
def test_a_variable_of_vectors_or_labels_is_said_as_it_is_typed(family):
    with pytest.raises(ParameterError) as error:
        ep.Variable("x", getattr(ep, family))
    assert eval(code_after(str(error.value), "for example "), NAMES).dimension == 3


def test_labels_of_tables_are_said_as_they_are_typed():
    with pytest.raises(KindError) as error:
        ep.Table([0.5, 0.5], ep.Variable("x", ep.Bernoulli))
    x = eval(code_after(str(error.value), "second label: "), NAMES)
    seen = np.random.default_rng(0).random((20, 2))
    with pytest.raises(ShapeError) as error:
        ep.Table(seen, x)
    message = str(error.value)
    x = eval(code_after(message, "such as x = "), NAMES)
    post = ep.infer(ep.FactorGraph(ep.Table(seen, eval(message.split("for each table: ")[1][:-1], {"x": x}))))
    weights = seen.prod(0)
    np.testing.assert_allclose(post["x"].mean()[0], weights / weights.sum(), rtol=1e-9)
