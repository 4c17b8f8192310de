"""Without the extras: what most calls need is there, and what is missing is named with what to type."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import meanmap as mm
from meanmap import cli, datasets, demo
from meanmap.core import progress
from meanmap.core.errors import MissingPackageError
from meanmap.core.extras import EXTRAS, optional
from meanmap.families import Normal, to_numpyro

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
# What developers install.
GROUPS = ("test", "dev", "docs", "audit", "bench")
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)

rng = np.random.default_rng(0)
x, y = rng.normal(size=(2, 30))
graph = mm.graphs.PDAG.of([("a", "b")])

# Other packages, such as scikit-learn, ask `sys.modules` what is there: a None in it is no absence to them.
WITHOUT = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in sys.argv else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path = [Without(finder) for finder in sys.meta_path]
exec(sys.stdin.read(), {})
"""


def names(requirements):
    return [re.split(r"[\[>=]", each)[0] for each in requirements]


CALLS = {
    "a picture": ("matplotlib", "plots", lambda: mm.two_sample_test(x, y, "median", n_permutations=19, rng=0).plot()),
    "a picture of a graph": ("networkx", "graphs", graph.plot),
    "the demo": ("matplotlib", "plots", demo.run),
    "a graph for NetworkX": ("networkx", "graphs", graph.to_networkx),
    "GraphML": ("networkx", "graphs", lambda: mm.graphs.write_graphml(graph, "graph.graphml")),
    "d-separation": ("networkx", "graphs", lambda: mm.pc(mm.structure.DSeparation([("a", "b")]))),
    "NUTS": ("numpyro", "sampling", lambda: mm.learning.sample_kernel(x, rng=0)),
    "a distribution of NumPyro": ("numpyro", "sampling", lambda: to_numpyro(Normal(0.0, 1.0))),
    "a data set": ("pooch", "data", lambda: datasets.ozone()),
    "Parquet": ("polars", "tables", lambda: mm.two_sample_test("before.parquet", "after.parquet")),
    "a frame": ("pandas", "tables", lambda: mm.stats.adjusted([0.1]).to_frame()),
    "a formula": ("formulae", "formulas", lambda: mm.fit("y ~ x", {"x": x, "y": y})),
    "ArviZ": ("arviz", "arviz", lambda: mm.io.to_arviz(Normal(0.0, 1.0))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_package_is_named_with_the_extra_to_install(name, monkeypatch):
    package, extra, call = CALLS[name]
    monkeypatch.delenv("MEANMAP_DATA", raising=False)
    for module in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    said = rf'{package}, which is not installed here: type pip install "meanmap\[{extra}\]"\.'
    with pytest.raises(MissingPackageError, match=said):
        call()


def test_a_picture_of_a_graph_asks_once_for_all_that_it_needs(monkeypatch):
    tree = mm.chow_liu({"x": x, "y": y}, rng=0)
    for package in ("matplotlib", "networkx"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=r'drawing a graph needs matplotlib.*"meanmap\[plots\]"\.') as raised:
        tree.plot()
    with pytest.raises(MissingPackageError, match=re.escape(str(raised.value))):
        graph.plot()


def test_edges_are_rows_of_a_frame_without_networkx(monkeypatch):
    tree = mm.chow_liu({"x": x, "y": y}, rng=0)
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert list(tree.to_frame().columns) == ["from", "to", "weight"]
    assert list(mm.structure.pc({"x": x, "y": y}, rng=0).to_frame().columns)[:2] == ["from", "to"]


def test_every_extra_is_known_to_errors_as_it_is_declared():
    declared = {
        (package, extra)
        for extra, requirements in OPTIONAL.items()
        if extra not in (*GROUPS, "all", "dask")  # Dask is there wherever one of its collections is
        for package in names(requirements)
        if package != "meanmap"
    }
    assert set(EXTRAS.items()) == declared - {("pandas", "formulas")}


def test_all_is_all_but_arviz_and_developers_install_it():
    (whole,) = OPTIONAL["all"]
    assert set(re.findall(r"\[(.*)\]", whole)[0].split(",")) == set(OPTIONAL) - {*GROUPS, "all", "arviz"}
    assert "``all`` leaves out ArviZ" in (ROOT / "docs" / "install.rst").read_text(encoding="utf-8")
    for group in set(GROUPS) - {"audit"}:
        assert {"meanmap[all]", "meanmap[test]"} & set(OPTIONAL[group])


def test_the_page_of_installing_lists_every_extra():
    text = (ROOT / "docs" / "install.rst").read_text(encoding="utf-8")
    assert set(re.findall(r"^   \* - ``(\w+)``$", text, re.MULTILINE)) == set(OPTIONAL) - set(GROUPS)


def test_what_a_package_itself_lacks_is_its_own_error():
    with pytest.raises(ModuleNotFoundError, match="nowhere"), optional("drawing"):
        import nowhere  # noqa: F401  # pyright: ignore[reportMissingImports]


def test_loops_are_silent_without_rich(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress.track(range(3), "counting")) == [0, 1, 2]
    with progress.waiting("counting"):
        pass
    assert capsys.readouterr().err == ""


def test_the_command_without_its_extra_says_what_to_install(monkeypatch, capsys):
    for module in [each for each in sys.modules if each.startswith(("typer", "meanmap.cli."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as found:
        cli.main()
    assert found.value.code == 2
    assert capsys.readouterr().err == (
        'meanmap: the meanmap command needs typer, which is not installed here: type pip install "meanmap[cli]".\n'
    )


@pytest.mark.oldest
@pytest.mark.parametrize("block", range(4))
def test_the_snippets_of_the_readme_run_without_extras(block):
    """In a process of its own, in which no package of an extra is found."""
    command = [sys.executable, "-c", WITHOUT, *EXTRAS, "dask", "distributed", "pyarrow"]
    done = subprocess.run(command, input=SNIPPETS[block], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
