"""`meanmap cite`: what to cite, as BibTeX."""

import typer

from meanmap import __version__

__all__ = ["cite"]

SOFTWARE = (
    "@software{meanmap,",
    "  title = {meanmap: kernel mean embeddings of distributions},",
    "  author = {{The meanmap developers}},",
    f"  version = {{{__version__}}},",
    "}",
)
# key, what it stands behind, authors, title, conference, year.
PAPERS = (
    (
        "flaxman2016",
        "learning kernels, posterior embeddings, causal discovery",
        "Flaxman, Seth and Sejdinovic, Dino and Cunningham, John P. and Filippi, Sarah",
        "Bayesian Learning of Kernel Embeddings",
        "Uncertainty in Artificial Intelligence",
        2016,
    ),
    (
        "song2010",
        "KernelGraph on trees",
        "Song, Le and Gretton, Arthur and Guestrin, Carlos",
        "Nonparametric Tree Graphical Models via Kernel Embeddings",
        "Artificial Intelligence and Statistics",
        2010,
    ),
    (
        "song2011",
        "kernel belief propagation on graphs with cycles",
        "Song, Le and Gretton, Arthur and Bickson, Danny and Low, Yucheng and Guestrin, Carlos",
        "Kernel Belief Propagation",
        "Artificial Intelligence and Statistics",
        2011,
    ),
    (
        "jitkrittum2015",
        "messages learned just in time",
        "Jitkrittum, Wittawat and Gretton, Arthur and Heess, Nicolas and Eslami, S. M. Ali and "
        "Lakshminarayanan, Balaji and Sejdinovic, Dino and Szab{\\'o}, Zolt{\\'a}n",
        "Kernel-Based Just-In-Time Learning for Passing Expectation Propagation Messages",
        "Uncertainty in Artificial Intelligence",
        2015,
    ),
)


def cite() -> None:
    """Print what to cite, as BibTeX: the library, and the paper whose method was used."""
    typer.echo("\n".join(SOFTWARE))
    for key, use, authors, title, conference, year in PAPERS:
        typer.echo(f"\n% for {use}\n@inproceedings{{{key},")
        typer.echo(
            f"  author = {{{authors}}},\n  title = {{{title}}},\n  booktitle = {{{conference}}},\n  year = {{{year}}},\n}}"
        )
