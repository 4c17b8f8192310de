"""Type checkers see what the main calls return: `tests/api/user.py` is a script as people write it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import meanmap as mm

USER = Path(__file__).with_name("user.py")
REVEALED = (
    "result",
    "result.pvalue",
    "result.driving_columns(rng=0)",
    "related.reject(0.05)",
    "given.pvalue",
    "mm.k_sample_test([before, after])",
    "causes.report",
    "mm.chow_liu(table)",
    "learned.kernel",
    "embedded",
    "operator",
    "model",
    "beliefs",
    "belief",
    "monitor.alarms",
    "posterior",
    "posterior['w']",
    "fit.summary()",
)
# Arrays, of NumPy or JAX.
ARRAYS = (
    "posterior['w'].mean()",
    "posterior['w'].cov()",
    "posterior['w'].log_density([0.0])",
    "embedded([0.0])",
    "belief.mean()",
)
# Names that are not there, which type checkers refuse.
MISSPELT = ("mm.two_sampel_test", "mm.estimators.FourierFeature", "mm.io.to_arvis")
# Names that load when they are first used.
LATE = ("mm.fit", "mm.graphs.Graph", "mm.core.Table", "mm.features", "mm.estimators.FourierFeatures", "mm.io.to_arviz")
CHECKERS = {
    "basedpyright": (["--pythonpath", sys.executable], r'Type of ".*" is "(.*)"', "0 errors"),
    "mypy": (["--strict", "--python-executable", sys.executable], r'Revealed type is "(.*)"', "Success"),
}


def test_the_package_says_that_it_is_typed():
    assert (Path(mm.__file__).parent / "py.typed").exists()


def test_the_script_is_one_that_people_would_write():
    assert 50 <= len(USER.read_text(encoding="utf-8").splitlines()) <= 70
    compile(USER.read_text(encoding="utf-8"), "user.py", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_main_calls_have_types(checker, tmp_path):
    pytest.importorskip(checker, reason=f"pip install {checker}, and this test runs")
    arguments, pattern, fine = CHECKERS[checker]
    script = tmp_path / "user.py"
    calls = [f"reveal_type({call})" for call in (*REVEALED, *ARRAYS)]
    script.write_text(USER.read_text(encoding="utf-8") + "\n".join(calls) + "\n")
    command = [sys.executable, "-m", checker, *arguments, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    revealed = re.findall(pattern, done.stdout)
    assert len(revealed) == len(calls), done.stdout + done.stderr
    assert all(re.search(r"Values|ndarray.*Array", kind) for kind in revealed[len(REVEALED) :]), revealed
    revealed = revealed[: len(REVEALED)]
    assert [
        f"{call}: {kind}" for call, kind in zip(REVEALED, revealed, strict=True) if re.search(r"Any|Unknown", kind)
    ] == []
    assert fine in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_names_that_are_not_there_are_found(checker, tmp_path):
    """Whatever a module looks up when it is asked, so that importing it costs little."""
    pytest.importorskip(checker, reason=f"pip install {checker}, and this test runs")
    script = tmp_path / "user.py"
    script.write_text("import meanmap as mm\n" + "".join(f"print({name})\n" for name in (*LATE, *MISSPELT)))
    command = [sys.executable, "-m", checker, *CHECKERS[checker][0], str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    wrong = [int(line) for line in re.findall(r"user\.py:(\d+)(?::\d+)?(?: -|:) error", done.stdout)]
    assert wrong == [len(LATE) + 2 + k for k in range(len(MISSPELT))], done.stdout + done.stderr
