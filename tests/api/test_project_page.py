"""The pages on PyPI: links of the README lead to the repository, and no release is built without its address."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import meanmap

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ADDRESS = "https://example.org/someone/meanmap"


@pytest.fixture
def page(monkeypatch):
    """What the build adds to the metadata, by the repository's address."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # hatchling is there in builds only
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    built = {}
    exec(compile((ROOT / "hatch_build.py").read_text(encoding="utf-8"), "hatch_build.py", "exec"), built)

    def of(address):
        hook, metadata = built["ProjectPage"](), {}
        hook.root, hook.config = str(ROOT), {"address": address}
        hook.update(metadata)
        return metadata

    return of


def relative(text):
    return re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)


def test_links_on_pypi_lead_to_the_files_of_the_release(page):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = relative(text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    found = page(ADDRESS + "/")
    shown, version = found["readme"]["text"], meanmap.__version__
    assert relative(shown) == []
    assert f"]({ADDRESS}/blob/v{version}/ARCHITECTURE.md)" in shown
    assert re.search(rf"!\[[^\]]*\]\({ADDRESS}/raw/v{version}/docs/_static/four\.png\)", shown)
    assert re.sub(rf"{ADDRESS}/(blob|raw)/v{version}/", "", shown) == text
    assert found["urls"]["Source"] == ADDRESS
    assert relative((ROOT / "papers" / "README.md").read_text(encoding="utf-8")) == []


def test_without_an_address_the_package_is_installed_and_says_none(page):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert page("") == {"readme": {"content-type": "text/markdown", "text": text}}
    assert {"readme", "urls"} <= set(PROJECT["project"]["dynamic"])


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_no_release_is_built_without_an_address(address, tmp_path):
    written = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    here = f'address = "{PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"]}"'
    assert written.count(f"\n{here}\n") == 1
    (tmp_path / "pyproject.toml").write_text(written.replace(here, f'address = "{address}"'), encoding="utf-8")
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run(["make", "address"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == bool(address)
    assert address or "fill in the address of the repository in pyproject.toml" in done.stdout
    assert "\ndist: address " in (ROOT / "Makefile").read_text(encoding="utf-8")
