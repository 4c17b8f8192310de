"""Texts: the same pages in nine languages."""

from pathlib import Path

from meanmap.datasets.files import DataNotFoundError, own

__all__ = ["LANGUAGES", "parallel_help"]

LANGUAGES = ("da", "de", "en", "es", "fr", "it", "nl", "pt", "sv")


def parallel_help() -> dict[str, list[str]]:
    """876 pages of the help of LibreOffice 7.4 in nine languages: by language, one text a page, in the same order.

    The texts are not downloaded: put ``da.txt``, ``de.txt``, ... (UTF-8, one page a line, line k the same page in each)
    in ``parallel_help`` below the folder that MEANMAP_DATA names. They are made from the Debian packages
    ``libreoffice-help-da``, ``-de``, ``-en-us``, ...: the main text of each page of 50 to 1500 words. Licence: MPL-2.0.
    """
    return {language: _pages(language) for language in LANGUAGES}


def _pages(language: str) -> list[str]:
    path: Path | None = own(f"parallel_help/{language}.txt")
    if path is None:
        raise DataNotFoundError(
            f"parallel_help/{language}.txt is not in the folder that MEANMAP_DATA names. It is not downloaded; "
            "`help(meanmap.datasets.parallel_help)` says what it is made from."
        )
    return path.read_text(encoding="utf-8").splitlines()
