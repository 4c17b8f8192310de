import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.always
@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL))
def test_every_snippet_runs(block):
    exec(compile(block, "README.md", "exec"), {})


def test_every_command_is_a_target():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    commands = set(re.findall(r"(?:^|`)make ([a-z-]+)", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test"} <= commands
    assert [name for name in commands if f"\n{name}:" not in makefile] == []
