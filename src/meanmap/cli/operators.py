"""`meanmap operators ...`: learned messages of common factors, each with a card."""

import json as plain_json
from pathlib import Path
from typing import Annotated

import typer

from meanmap.cli.options import AsJson, Seed, refusals, refused

__all__ = ["app"]

app = typer.Typer(help="Operators of learned messages: build those of common factors, read their cards.")


@app.command()
def build(
    names: Annotated[list[str] | None, typer.Argument(help="Which; all unless given.")] = None,
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("meanmap-operators"),
    messages: Annotated[int, typer.Option(min=1200, help="Messages that are drawn for each.")] = 8000,
    seed: Seed = None,
) -> None:
    """Train operators of common factors, audit them, and write one file for each, with its card."""
    with refusals():
        from meanmap.core.rng import Rng
        from meanmap.ep.learned import READY, build_operator, save_operator

        unknown = sorted(set(names or ()) - set(READY))
        if unknown:
            raise refused(f"no operator is called {unknown[0]!r}; ready are {', '.join(READY)}")
        folder.mkdir(parents=True, exist_ok=True)
        used = Rng.of(seed).seed
        for name in names or READY:
            operator, card, factor = build_operator(name, messages, rng=used)
            path = save_operator(operator, folder / f"{name}.operator", factor, card=card)
            typer.echo(f"{name}: {READY[name].about}\n{card}\n{path}\n")
        typer.echo(f"seed {used}\nIn Python: ep.Learned().reuse(factor, ep.learned.load_operator(path, factor))")


@app.command()
def card(
    files: Annotated[list[Path], typer.Argument(help="Files that `meanmap operators build` wrote.")],
    json: AsJson = False,
) -> None:
    """Print the cards of operators: what they learned from, how far they were off, when not to use them."""
    with refusals():
        from meanmap.ep.learned import read_card

        cards = {str(path): read_card(path) for path in files}
        if json:
            typer.echo(plain_json.dumps({path: each.to_dict() for path, each in cards.items()}, indent=1))
            return
        typer.echo("\n\n".join(f"{path}\n{each}" for path, each in cards.items()))
