"""`meanmap learn-kernel` and `meanmap ep`: the library's answers, from files."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import meanmap as mm
from meanmap.cli.commands import app
from meanmap.core import progress


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    rng = np.random.default_rng(0)
    dose, age = rng.normal(size=100), rng.normal(50, 10, size=100)
    cured = np.where(rng.uniform(size=100) < 1 / (1 + np.exp(-2 * dose)), "yes", "no")
    path = tmp_path_factory.mktemp("clinic") / "clinic.csv"
    path.write_text(
        "dose,age,cured\n"
        + "".join(f"{a!r},{b!r},{c}\n" for a, b, c in zip(dose.tolist(), age.tolist(), cured, strict=True))
    )
    return path, np.stack([dose, age], axis=1), cured


def test_a_regression_is_that_of_the_library(clinic, tmp_path):
    path, x, y = clinic
    found = json.loads(run("ep", "logistic", path, "--y", "cured", "--json", "--plot", tmp_path / "a.png").stdout)
    expected = mm.ep.models.logistic_regression({"dose": x[:, 0], "age": x[:, 1]}, y).to_dict()
    assert found["coefficients"] == expected["coefficients"]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "dose" in run("ep", "logistic", path, "--y", "cured", "--report", tmp_path / "a.html").stdout
    assert '<th scope="row">dose</th>' in (tmp_path / "a.html").read_text()


def test_a_learned_kernel_is_that_of_the_library(clinic, tmp_path):
    path, x, _ = clinic
    files = ["--output", tmp_path / "kernel", "--report", tmp_path / "a.html"]
    found = run("learn-kernel", path, "--columns", "dose", "--seed", 0, "--json", *files)
    assert "lengthscale" in (tmp_path / "a.html").read_text()
    fit = mm.learn_kernel(x[:, :1], rng=0)
    assert json.loads(found.stdout)["modes"][0]["lengthscale"] == pytest.approx(float(fit.kernel.lengthscale))
    assert mm.load(tmp_path / "kernel").lengthscale == fit.kernel.lengthscale


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["learn-kernel", "CLINIC"], "is a column of labels; expected numbers: name the columns to use with --columns"),
        (["ep", "robust", "CLINIC", "--y", "age"], "is a column of labels; expected numbers: name the columns to use"),
        (["learn-kernel", "CLINIC", "--columns", "weight"], "has no column 'weight'"),
        (["ep", "logistic", "CLINIC", "--y", "weight"], "has no column 'weight'"),
        (["ep", "logistic", "CLINIC", "--y", "age", "--x", "dose"], "expected two"),
        (["ep", "poisson", "CLINIC", "--y", "cured"], "y"),
        (["ep", "logistic", "CLINIC", "--y", "cured", "--levels", "no,yes"], "are for an ordinal outcome"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(clinic, arguments, said):
    found = run(*(clinic[0] if each == "CLINIC" else each for each in arguments))
    assert found.exit_code == 2, found.exception
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert said in found.stderr


class Begun(Exception):
    """The line of a long call was begun."""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ep", "logistic", "CLINIC", "--y", "cured"], "expectation propagation"),
        (["learn-kernel", "CLINIC", "--columns", "dose"], "learning a kernel"),
        (["discover", "CLINIC"], "discovering"),
        (["graph", "fit", "CLINIC", "-o", "CLINIC.meanmap", "--edges", "dose-cured"], "learning a model"),
    ],
)
def test_long_commands_say_what_they_do_before_they_do_it(clinic, monkeypatch, arguments, words):
    said, real = [], progress.waiting

    def waiting(description):
        if description != words:
            return real(description)  # of files that are read
        said.append(description)
        raise Begun

    monkeypatch.setattr(progress, "waiting", waiting)
    run(*(str(each).replace("CLINIC", str(clinic[0])) for each in arguments))
    assert said == [words]
