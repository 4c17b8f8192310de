"""`meanmap cite`: what to cite, as BibTeX."""

from typing import Annotated

import typer

from meanmap import __version__
from meanmap.cli.options import refused

__all__ = ["cite"]

# The library, and the paper behind each of its parts.
ENTRIES = {
    "meanmap": r"""@software{meanmap,
  title = {meanmap: kernel mean embeddings of distributions},
  author = {{The meanmap developers}},
  version = {VERSION},
}""",
    "learning": r"""% learning kernels, posterior embeddings, causal discovery
@inproceedings{flaxman2016,
  title = {Bayesian Learning of Kernel Embeddings},
  author = {Flaxman, Seth and Sejdinovic, Dino and Cunningham, John P. and Filippi, Sarah},
  booktitle = {Uncertainty in Artificial Intelligence},
  year = {2016},
}""",
    "trees": r"""% trees learned from data
@inproceedings{song2010,
  title = {Nonparametric Tree Graphical Models via Kernel Embeddings},
  author = {Song, Le and Gretton, Arthur and Guestrin, Carlos},
  booktitle = {Artificial Intelligence and Statistics},
  year = {2010},
}""",
    "loopy": r"""% kernel belief propagation on graphs with cycles
@inproceedings{song2011,
  title = {Kernel Belief Propagation},
  author = {Song, Le and Gretton, Arthur and Bickson, Danny and Low, Yucheng and Guestrin, Carlos},
  booktitle = {Artificial Intelligence and Statistics},
  year = {2011},
}""",
    "messages": r"""% messages learned just in time
@inproceedings{jitkrittum2015,
  title = {Kernel-Based Just-In-Time Learning for Passing Expectation Propagation Messages},
  author = {Jitkrittum, Wittawat and Gretton, Arthur and Heess, Nicolas and Eslami, S. M. Ali and
            Lakshminarayanan, Balaji and Sejdinovic, Dino and Szab{\'o}, Zolt{\'a}n},
  booktitle = {Uncertainty in Artificial Intelligence},
  year = {2015},
}""",
}


def cite(
    part: Annotated[str | None, typer.Argument(help=f"Part to cite, {', '.join(ENTRIES)}; all unless given.")] = None,
) -> None:
    """Print BibTeX entries of the library and of the papers whose methods it implements."""
    if part is not None and part not in ENTRIES:
        raise refused(f"there is no part {part!r}; expected one of {', '.join(ENTRIES)}.")
    chosen = [text for name, text in ENTRIES.items() if part is None or name in ("meanmap", part)]
    typer.echo("\n\n".join(chosen).replace("VERSION", __version__))
