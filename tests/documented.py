"""Scripts that the documentation prints, for tests that run them as they stand there."""

import re
from pathlib import Path

__all__ = ["recipe"]

PAGE = Path(__file__).parents[1] / "docs" / "scaling.rst"


def recipe(word: str) -> str:
    """The one script on the page about scaling that holds a word."""
    (block,) = [b for b in re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text()) if word in b]
    return re.sub(r"^   ", "", block, flags=re.MULTILINE)
