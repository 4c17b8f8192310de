"""Files: saving and loading fitted models (safetensors with JSON in the header, no pickle), and reading tables. Also
draws of every posterior for ArviZ, which is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

from meanmap.core.errors import FileFormatError
from meanmap.core.saved.saving import FORMAT, load, save
from meanmap.io.tables import read_table

if TYPE_CHECKING:
    from meanmap.io.draws import posterior_draws, to_arviz

__all__ = ["FORMAT", "FileFormatError", "load", "posterior_draws", "read_table", "save", "to_arviz"]


if not TYPE_CHECKING:  # so that type checkers refuse other names

    def __getattr__(name: str) -> Any:
        if name not in ("posterior_draws", "to_arviz"):
            raise AttributeError(f"module 'meanmap.io' has no attribute {name!r}")
        from meanmap.io import draws

        return getattr(draws, name)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
