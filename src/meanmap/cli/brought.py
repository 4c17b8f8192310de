"""Commands of other packages, found by entry points of the group `meanmap.commands`."""

import functools
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import typer

from meanmap.cli.options import Command, Group, refused

__all__ = ["Commands"]

# Commands of the figures of the papers, which are a separate package.
OF_THE_PAPERS = ("list", "reproduce")


class Commands(Group):
    """The commands of meanmap; other packages are searched only for names that are not among them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, for help and for suggestions."""
        return [*super().list_commands(ctx), *_brought()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command with this name."""
        found = super().get_command(ctx, cmd_name) or _brought().get(cmd_name)
        if found is None and cmd_name in OF_THE_PAPERS:
            raise refused(
                f"'{cmd_name}' is part of a separate package with the figures of the papers. From a copy of this "
                "repository: pip install ./papers"
            )
        return found


@functools.cache
def _brought() -> Mapping[str, Any]:
    app, found = typer.Typer(), entry_points(group="meanmap.commands")
    for each in sorted(found, key=lambda each: each.name):
        app.command(each.name, cls=Command)(each.load())
    return typer.main.get_group(app).commands if found else {}
