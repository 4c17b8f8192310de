"""`meanmap cite`: what to cite, as BibTeX."""

import typer

from meanmap import __version__

__all__ = ["cite"]

BIBTEX = r"""@software{meanmap,
  title = {meanmap: kernel mean embeddings of distributions},
  author = {{The meanmap developers}},
  version = {VERSION},
}

% learning kernels, posterior embeddings, causal discovery
@inproceedings{flaxman2016,
  title = {Bayesian Learning of Kernel Embeddings},
  author = {Flaxman, Seth and Sejdinovic, Dino and Cunningham, John P. and Filippi, Sarah},
  booktitle = {Uncertainty in Artificial Intelligence},
  year = {2016},
}

% trees learned from data
@inproceedings{song2010,
  title = {Nonparametric Tree Graphical Models via Kernel Embeddings},
  author = {Song, Le and Gretton, Arthur and Guestrin, Carlos},
  booktitle = {Artificial Intelligence and Statistics},
  year = {2010},
}

% kernel belief propagation on graphs with cycles
@inproceedings{song2011,
  title = {Kernel Belief Propagation},
  author = {Song, Le and Gretton, Arthur and Bickson, Danny and Low, Yucheng and Guestrin, Carlos},
  booktitle = {Artificial Intelligence and Statistics},
  year = {2011},
}

% messages learned just in time
@inproceedings{jitkrittum2015,
  title = {Kernel-Based Just-In-Time Learning for Passing Expectation Propagation Messages},
  author = {Jitkrittum, Wittawat and Gretton, Arthur and Heess, Nicolas and Eslami, S. M. Ali and
            Lakshminarayanan, Balaji and Sejdinovic, Dino and Szab{\'o}, Zolt{\'a}n},
  booktitle = {Uncertainty in Artificial Intelligence},
  year = {2015},
}"""


def cite() -> None:
    """Print what to cite, as BibTeX: the library, and the paper whose method was used."""
    typer.echo(BIBTEX.replace("VERSION", __version__))
