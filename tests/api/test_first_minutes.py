"""The README's snippets where people paste them: a notebook, which shows the pictures, and a plain script."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
PICTURE = "result.plot_witness()"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:4]


def test_a_script_shows_the_picture(tmp_path):
    """`show` of a windowless matplotlib is replaced by one that says how many pictures it was given."""
    assert f"`{PICTURE}` draws" in README.read_text(encoding="utf-8")
    snippet = f"{SNIPPETS[0]}\n{PICTURE}"
    lines = ["import matplotlib.pyplot", "show = lambda: print('shown:', len(matplotlib.pyplot.get_fignums()))"]
    script = tmp_path / "first.py"
    script.write_text("\n".join([*lines, "matplotlib.pyplot.show = show", snippet, "matplotlib.pyplot.show()"]))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("shown: 1")
    assert done.stderr == ""


@pytest.mark.slow
def test_a_notebook_shows_pictures_and_short_results(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="pip install nbconvert ipykernel, and this test runs")
    preprocessors = pytest.importorskip("nbconvert.preprocessors", reason="pip install nbconvert ipykernel")
    pytest.importorskip("ipykernel", reason="pip install ipykernel, and this test runs")
    snippets, last = [f"{SNIPPETS[0]}\n{PICTURE}", *SNIPPETS[1:]], ["result", "causes", "belief", "post"]
    cells = [cell for snippet, name in zip(snippets, last, strict=True) for cell in (snippet, name)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    preprocessors.ExecutePreprocessor(timeout=600).preprocess(notebook, {"metadata": {"path": str(tmp_path)}})
    outputs = [cell.outputs for cell in notebook.cells]
    assert any("image/png" in output.get("data", {}) for output in outputs[0]), "plot_witness showed no picture"
    for name, of_cell in zip(last, outputs[1::2], strict=True):
        (shown,) = of_cell
        assert shown.data["text/plain"].count("\n") < 10, name
    assert not [output for of_cell in outputs for output in of_cell if output.get("name") == "stderr"]
