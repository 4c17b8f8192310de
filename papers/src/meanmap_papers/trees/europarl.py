"""Figure 1 on the corpus of the paper, which is not sent along: python -m meanmap_papers.trees.europarl SCALE SEED.

    curl -O https://www.statmt.org/europarl/v7/europarl.tgz              # 1.5 GB
    mkdir -p data/europarl && tar xzf europarl.tgz -C data/europarl
    MEANMAP_DATA=data python -m meanmap_papers.trees.europarl paper 2029

It prints what was found and how the claims of `trees-figure-1` are judged. No record is kept, because the corpus could
not be had where the records were made.
"""

import sys

from meanmap_papers.experiment import Outcome, Setting
from meanmap_papers.trees import retrieval

__all__ = ["run"]

# The 300 that are searched for are drawn from this many of the longest chapters; pairs to learn from are of the others.
DOCUMENTS = 876
NOTES = (
    (
        f"The {DOCUMENTS} longest chapters of Europarl, whole; 300 of them are looked for, and training pairs come "
        "from the others, which is harder than pairs of the same 300, as in the paper."
    ),
)


def run(setting: Setting) -> Outcome:
    """Figure 1 on whole chapters of the proceedings of the European Parliament."""
    from meanmap.datasets import europarl

    return retrieval.searched_in(europarl(DOCUMENTS), setting, words=None, notes=NOTES)


def main(scale: str = "quick", seed: str = "0") -> None:
    """Print the outcome, its table, and how each claim is judged."""
    setting = Setting(scale, int(seed))  # pyright: ignore[reportArgumentType]
    found = run(setting)
    print(found.answer, *("; ".join(row) for row in found.table), *found.notes, sep="\n")
    judged = [claim for claim in retrieval.EXPERIMENT.claims if setting.scale in claim.scales]
    for claim in judged:
        numbers = claim.of(found.numbers)
        print(f"{claim.says}: {'; '.join(map(str, numbers))}: {claim.judged(*numbers)}")
    if not judged:
        print(f"Claims are not judged at the scale {setting.scale!r}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
