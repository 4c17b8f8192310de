"""What the packages' pages on PyPI say: the README with links that work there, and the addresses of the project.

The repository's address is written once, in pyproject.toml under [tool.hatch.metadata.hooks.custom]. Without it links
stay as they are, which is enough to install; `make dist` refuses to build a release.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# [text](place) and ![picture](place), where the place is a file or folder of the repository.
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, address: str, version: str) -> str:
    """Markdown whose links lead to the files of this version in the repository."""

    def whole(found: re.Match) -> str:
        picture, words, place = found.groups()
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/v{version}/{place})"

    return LINK.sub(whole, text)


class ProjectPage(MetadataHookInterface):
    """Description and addresses, which pyproject.toml declares as dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict) -> None:
        """Add them to the metadata of a build."""
        root, address = Path(self.root), self.config["address"].rstrip("/")
        text = (root / "README.md").read_text(encoding="utf-8")
        version = re.search(r'^__version__ = "(.*)"$', (root / "src/meanmap/__init__.py").read_text("utf-8"), re.M)[1]
        if address:
            text = absolute(text, address, version)
            changes = f"{address}/blob/v{version}/CHANGELOG.md"
            metadata["urls"] = {"Source": address, "Issues": f"{address}/issues", "Changelog": changes}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
