"""
Finding a text by its translations
==================================

Which French text is the translation of an English one, if texts were only ever translated through a third language? A
tree is learned edge by edge. Given an English text, French candidates are ranked by how much more probable it makes
them.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# Each text is about one or two of a few themes, and each language has several words for each theme.

WORDS = {
    "en": [
        "rain storm wet",
        "sun heat dry",
        "bread oven flour",
        "train rails ticket",
        "book page read",
        "ball goal kick",
    ],
    "de": [
        "regen sturm nass",
        "sonne hitze duerr",
        "brot ofen mehl",
        "zug gleis karte",
        "buch seite lesen",
        "ball tor tritt",
    ],
    "fr": [
        "pluie orage eau",
        "soleil chaud sec",
        "pain four farine",
        "train voie billet",
        "livre page lire",
        "balle but tir",
    ],
}


def texts(themes, *languages):
    """The same themes, told in each language in words of its own."""
    told = []
    for language in languages:
        words = [WORDS[language][theme].split() for pair in themes for theme in pair]
        told.append(
            [" ".join(rng.choice(a, 2)) + " " + rng.choice(b) for a, b in zip(words[::2], words[1::2], strict=True)]
        )
    return told


pairs = {
    ("en", "de"): tuple(texts(rng.integers(6, size=(150, 2)), "en", "de")),
    ("de", "fr"): tuple(texts(rng.integers(6, size=(150, 2)), "de", "fr")),
}
model = mm.KernelGraph(list(pairs), kernels={name: mm.kernels.Spectrum(3) for name in WORDS}).fit(pairs)

# %%
# Thirty English texts are given, and as many French ones, none of them seen before. A belief is a function of the
# point: ``ratio`` is p(candidate | evidence) / p(candidate). The variance of this estimate differs between candidates,
# so each is compared with its mean over all queries.

themes = np.stack([np.arange(30) // 5, np.concatenate([np.delete(np.arange(6), i) for i in range(6)])], axis=1)
given, candidates = texts(themes, "en", "fr")
belief = model.query({"en": given}, targets=["fr"])["fr"]
ratio = belief.ratio(candidates)
score = (ratio - ratio.mean(axis=0)) / ratio.std(axis=0)
ranks = (score > np.diag(score)[:, None]).sum(axis=1)
print(f"its own translation is among the first three for {np.mean(ranks < 3):.0%} of the texts")
for i in (0, 17):
    print(f"{given[i]!r} → {candidates[score[i].argmax()]!r}")

# %%
# Texts are ordered by theme: the translations lie on the diagonal, and the blocks share their main theme.

figure, axes = plt.subplots(figsize=(4.5, 4))
axes.imshow(score, cmap="RdBu_r", vmin=-4, vmax=4)
axes.set(xlabel="French candidate", ylabel="English text", title="how much more probable the candidate became")
figure.tight_layout()
plt.show()
