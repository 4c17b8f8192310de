"""Parallel texts: the same pages, or the same debates, in nine languages."""

import heapq
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from meanmap.datasets.files import DataNotFoundError, own

__all__ = ["LANGUAGES", "europarl", "parallel_help"]

LANGUAGES = ("da", "de", "en", "es", "fr", "it", "nl", "pt", "sv")


def parallel_help() -> dict[str, list[str]]:
    """876 pages of the help of LibreOffice 7.4 in nine languages: by language, one text per page, in the same order.

    The texts are not downloaded: put `da.txt`, `de.txt`, ... (UTF-8, one page per line, line k the same page in each)
    in `parallel_help` below the folder that MEANMAP_DATA names. They are made from the Debian packages
    `libreoffice-help-da`, `-de`, `-en-us`, ...: the main text of each page of 50 to 1500 words. Licence: MPL-2.0.
    """
    return {language: _pages(language) for language in LANGUAGES}


def _pages(language: str) -> list[str]:
    path: Path | None = own(f"parallel_help/{language}.txt")
    if path is None:
        raise DataNotFoundError(
            f"parallel_help/{language}.txt is not in the folder that MEANMAP_DATA names. It is not downloaded; "
            "`help(meanmap.datasets.parallel_help)` explains how to make it."
        )
    return path.read_text(encoding="utf-8").splitlines()


def europarl(documents: int = 300) -> dict[str, list[str]]:
    """The longest chapters of the proceedings of the European Parliament in nine languages (Koehn 2005).

    They are not downloaded: unpack the source release `europarl.tgz` (1.5 GB, https://www.statmt.org/europarl) below
    the folder that MEANMAP_DATA names, which gives `europarl/txt/da/ep-00-01-17.txt` and so on.

    Parameters
    ----------
    documents : int
        The number of chapters, by their length in English, among those present in all nine languages.

    Returns
    -------
    dict
        By language, one text per chapter, in the same order; speakers and paragraphs are not marked. Bytes that
        are not UTF-8 become �.
    """
    folder = Path(os.environ.get("MEANMAP_DATA") or ".", "europarl", "txt")
    missing = next((language for language in LANGUAGES if not (folder / language).is_dir()), None)
    if missing is not None:
        raise DataNotFoundError(
            f"europarl/txt/{missing} is not in the folder that MEANMAP_DATA names. It is not downloaded: unpack "
            "europarl.tgz of https://www.statmt.org/europarl in a folder europarl there."
        )
    sittings = set.intersection(
        *({path.name for path in (folder / language).glob("ep-*.txt")} for language in LANGUAGES)
    )
    # All chapters together take several gigabytes: only the longest so far are kept.
    longest = heapq.nsmallest(
        documents, _in_all_languages(folder, sorted(sittings)), key=lambda found: (-len(found[2]["en"]), *found[:2])
    )
    return {language: [texts[language] for _, _, texts in longest] for language in LANGUAGES}


def _in_all_languages(folder: Path, sittings: Iterable[str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The chapters present in all languages: sitting, number, and the text by language."""
    for sitting in sittings:
        chapters = {language: _chapters(folder / language / sitting) for language in LANGUAGES}
        for number in set.intersection(*(set(each) for each in chapters.values())):
            yield sitting, number, {language: chapters[language][number] for language in LANGUAGES}


def _chapters(path: Path) -> dict[str, str]:
    """The text of each chapter that has any, by its number."""
    parts = re.split(r'<CHAPTER ID="?0*([\w-]+)"?>', path.read_text(encoding="utf-8", errors="replace"))
    texts = {
        number: " ".join(re.sub(r"</?[A-Za-z][^<>\n]*>", " ", text).split())
        for number, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {number: text for number, text in texts.items() if text}
