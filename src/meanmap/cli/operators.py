"""`meanmap operators ...`: learned messages of common factors, each with a card."""

from pathlib import Path
from typing import Annotated

import typer

from meanmap.cli.options import AsJson, Command, Group, Seed, refused, say

__all__ = ["app"]

app = typer.Typer(
    help="Operators that predict messages: build those of common factors, and read their cards.",
    no_args_is_help=True,
    cls=Group,
)


@app.command(cls=Command)
def build(
    names: Annotated[list[str] | None, typer.Argument(help="Names of operators; all unless given.")] = None,
    folder: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("meanmap-operators"),
    messages: Annotated[int, typer.Option(min=1200, help="Training messages for each operator.")] = 8000,
    seed: Seed = None,
) -> None:
    """Train operators of common factors, audit them, and write one file for each, with its card."""
    from meanmap.core.rng import Rng
    from meanmap.ep.learned import READY, build_operator, save_operator

    unknown = sorted(set(names or ()) - set(READY))
    if unknown:
        raise refused(f"there is no operator {unknown[0]!r}; available are {', '.join(READY)}")
    folder.mkdir(parents=True, exist_ok=True)
    used = Rng.of(seed).seed
    for name in names or READY:
        operator, card, factor = build_operator(name, messages, rng=used)
        path = save_operator(operator, folder / f"{name}.operator", factor, card=card)
        say(f"{name}: {READY[name].about}\n{card}\n{path}\n")
    say(f"seed {used}\nIn Python: ep.Learned().reuse(factor, ep.learned.load_operator(path, factor))")


@app.command(cls=Command)
def card(
    files: Annotated[list[Path], typer.Argument(help="Files that `meanmap operators build` wrote.")],
    json: AsJson = False,
) -> None:
    """Print the cards of operators: their training messages, their errors, and when not to use them."""
    from meanmap.cli.outputs import tell_json
    from meanmap.ep.learned import read_card

    cards = {str(path): read_card(path) for path in files}
    if json:
        tell_json({path: each.to_dict() for path, each in cards.items()})
        return
    say("\n\n".join(f"{path}\n{each}" for path, each in cards.items()))
