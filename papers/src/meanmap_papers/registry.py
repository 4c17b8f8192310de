"""All experiments by id. An experiment is a module below one of the papers' folders that defines `EXPERIMENT`."""

import difflib
import re
from importlib import import_module
from pkgutil import iter_modules

from meanmap_papers.experiment import Experiment

__all__ = ["PAPERS", "all_experiments", "find", "matching"]

# Ids in a message about a name that is none.
MOST_NAMED = 6
# The folders of the papers, in the order in which they are listed.
PAPERS = {
    "kernel_learning": "Flaxman, Sejdinovic, Cunningham & Filippi (2016), Bayesian learning of kernel embeddings",
    "trees": "Song, Gretton & Guestrin (2010), Nonparametric tree graphical models",
    "loopy": "Song, Gretton, Bickson, Low & Guestrin (2011), Kernel belief propagation",
    "messages": "Jitkrittum et al. (2015), Just-in-time kernel regression for expectation propagation, and its draft",
}


def all_experiments() -> dict[str, Experiment]:
    """Every experiment by its id, papers in their order."""
    found: dict[str, Experiment] = {}
    for folder in PAPERS:
        package = import_module(f"meanmap_papers.{folder}")
        for module in sorted(iter_modules(package.__path__), key=lambda each: each.name):
            experiment = getattr(import_module(f"{package.__name__}.{module.name}"), "EXPERIMENT", None)
            if experiment is not None:
                if experiment.id in found:
                    raise RuntimeError(f"Two experiments have the id {experiment.id!r}.")
                found[experiment.id] = experiment
    return found


def matching(asked: str) -> list[Experiment]:
    """The experiments whose id, title or place has all words and numbers that are asked for; none if none is.

    Words may be cut short, and the letter of a panel does not count.

    Examples
    --------
    >>> [each.id for each in matching("Fig. 4c jitkrittum2015")]
    ['messages-compound-gamma', 'messages-doubt']
    """
    words = [word for word in _words(asked) if len(word) > 1 or word.isdigit()]
    return [each for each in all_experiments().values() if words and _has(each, words)]


def _has(experiment: Experiment, words: list[str]) -> bool:
    folder = experiment.run.__module__.split(".")[1]
    said = _words(f"{experiment.id} {experiment.title} {experiment.source} {PAPERS.get(folder, '')}")
    return all(any(each == word if word.isdigit() else each.startswith(word) for each in said) for word in words)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", text.lower())


def find(id: str) -> Experiment:
    """The experiment with this id.

    Raises
    ------
    ValueError
        If there is none; the message names those of that figure or paper, or the nearest ids.
    """
    known = all_experiments()
    if id not in known:
        of_figure = [each.id for each in matching(id)][:MOST_NAMED]
        near = of_figure or difflib.get_close_matches(id, known, n=3, cutoff=0.3)
        meant = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        raise ValueError(f"there is no figure {id!r}{meant}; `meanmap list` shows all.")
    return known[id]
