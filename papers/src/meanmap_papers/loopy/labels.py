"""Topics of papers from fewer numbers than there are topics: figure 4 with a projection that compresses."""

from meanmap_papers.experiment import Experiment, Number, Outcome, Setting
from meanmap_papers.loopy import figure_4

__all__ = ["EXPERIMENT"]

PROJECTED = 3  # d, of 5 topics
AT = 1, 2, 3  # k; matching pursuit takes no more topics than there are numbers
# Which methods are compared, by their place in the list of names; recall lost is that of regression alone.
COMPARED = {
    "over regression": (0, 1),
    "over direct regression": (0, 2),
    "lost by regression": (2, 1),
    "over label propagation": (0, 4),
}


def run(setting: Setting) -> Outcome:
    """As in figure 4, with 3 numbers for 5 topics."""
    recalls = figure_4.recalls_of(PROJECTED, setting)
    numbers = {
        f"{what}, k = {k}": Number.mean(recalls[upper, :, k - 1] - recalls[lower, :, k - 1])
        for what, (upper, lower) in COMPARED.items()
        for k in AT
    }
    ours, projected, direct, _, spread = recalls.mean(axis=1)
    return Outcome(
        f"With {PROJECTED} numbers for 5 topics recall at 1 is {ours[0]:.3f} for kernel belief propagation, "
        f"{projected[0]:.3f} for independent regression of the same numbers and {direct[0]:.3f} for that of each "
        f"topic, which compresses nothing; label propagation, which does not read the papers, has {spread[0]:.3f}.",
        numbers,
        ((figure_4.drawn(recalls), figure_4.CAPTION),),
        figure_4.table_of(recalls),
        notes=(
            (
                "The paper projects 367 categories to 100 numbers; its sentence on independent regression is judged "
                f"once, with figure 4. From {PROJECTED} numbers matching pursuit finds "
                f"{PROJECTED} topics at most, so that recall at 4 has no meaning for the first two methods and is not "
                "compared."
            ),
            figure_4.DECODING,
            figure_4.PROPAGATION,
        ),
    )


EXPERIMENT = Experiment(
    "loopy-labels",
    "Topics of papers from fewer numbers than topics",
    "Song et al. (2011), appendix 4",
    figure_4.claims_at(
        AT,
        (
            "over regression",
            "kernel belief propagation is better than independent regression of the same numbers",
            True,
        ),
        (
            "over direct regression",
            "kernel belief propagation is better than regression of each topic, which compresses nothing",
            True,
        ),
        ("lost by regression", "compression costs independent regression recall", True),
        (
            "over label propagation",
            "kernel belief propagation is better than label propagation, which does not read the papers",
            True,
        ),
    ),
    {"smoke": 0.5, "quick": 1.5, "paper": 5},
    run,
    data=("citation",),
)
