"""Does every link inside the built documentation lead somewhere? python docs/check_links.py docs/_build/html."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    """The places a page has, and those it points at."""

    def __init__(self, path: Path):
        super().__init__()
        self.places, self.targets = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name"):
                self.places.add(value)
            elif (name == "href" or (name == "src" and tag == "img")) and value:
                self.targets.append(value)


def broken(root: Path) -> list[str]:
    """Every link that leads nowhere, with its page."""
    pages = {path.resolve(): Page(path) for path in root.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.targets:
            address, place = urldefrag(link)
            address = address.split("?")[0]
            if ":" in address.split("/")[0] or address.startswith("//"):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            missing = not target.exists()
            lost = bool(place) and target in pages and unquote(place) not in pages[target].places
            if missing or lost:
                found.append(f"{path.relative_to(root.resolve())}: {link}")
    return sorted(set(found))


if __name__ == "__main__":
    lost = broken(Path(sys.argv[1]))
    print("\n".join(lost) or "every internal link leads somewhere")
    sys.exit(bool(lost))
