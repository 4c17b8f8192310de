"""`meanmap operators`: files with cards, which the library reads."""

import json

import pytest
from typer.testing import CliRunner

from meanmap import ep
from meanmap.cli.commands import app


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_an_operator_is_built_told_and_read(tmp_path):
    built = run("operators", "build", "logistic", "--folder", tmp_path / "new", "--messages", 1200, "--seed", 3)
    assert built.exit_code == 0, built.output
    path = tmp_path / "new" / "logistic.operator"
    card = ep.learned.read_card(path)
    assert str(card) in built.stdout
    assert "seed 3" in built.stdout
    assert str(card) in run("operators", "card", path).stdout
    assert json.loads(run("operators", "card", path, "--json").stdout)[str(path)]["learned"] == card.learned
    z = ep.Variable("z", ep.Normal([0.0, 1.0], 1.0))
    model = ep.FactorGraph(ep.Logistic(z, observed=[1, 0]))
    operator = ep.learned.load_operator(path, model.factors[0])
    post = ep.infer(model, messages=ep.Learned(audit=0).reuse(model.factors[0], operator))
    assert post.report.counts["Logistic(z): asked of the oracle"] < 10  # without it 20 would come first
    assert float(ep.infer(model)["z"].kl(post["z"]).max()) < 1e-3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["build", "logit"], "there is no operator 'logit'; available are logistic, sigmoid"),
        (["card", "NONE"], "there is no file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, said):
    found = run("operators", *(tmp_path / "none" if each == "NONE" else each for each in arguments))
    assert found.exit_code == 2, found.exception
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
