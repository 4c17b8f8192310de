import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.always
@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))
def test_every_snippet_runs(block):
    exec(compile(block, "README.md", "exec"), {})


def test_it_begins_with_what_a_person_can_do_and_when_to_use_something_else():
    text = README.read_text(encoding="utf-8")
    parts = [part.split("\n", 1)[0] for part in text.split("\n## ")]
    assert parts[:3] == ["# meanmap", "Install", "When to use it, and when to use something else"]
    assert "\npip install ." in text
    table = text.split("## When to use it")[1].split("\n## ")[0]
    others = ("scipy", "scikit-learn", "causal-learn", "pgmpy", "PyMC", "NumPyro", "Evidently")
    assert [name for name in others if name not in table] == []
    landing = (README.parent / "docs" / "index.rst").read_text(encoding="utf-8")
    assert landing.index(":start-after: ## When to use it") < landing.index("**1. Compare samples.**")


def test_every_command_is_a_target():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    commands = set(re.findall(r"(?:^|`)make ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= commands
    assert [name for name in commands if f"\n{name}:" not in makefile] == []


def test_nothing_says_to_install_the_package_from_where_it_is_not():
    """Extras are another matter: `pip install "meanmap[plots]"` adds packages to the meanmap that is installed."""
    root = README.parent
    texts = [README, *root.glob("docs/*.rst"), *root.glob("docs/examples/**/*.py"), *root.glob("src/**/*.py")]
    assert [
        str(text) for text in texts if re.search(r"install [\"']?meanmap(?!\[)", text.read_text(encoding="utf-8"))
    ] == []
