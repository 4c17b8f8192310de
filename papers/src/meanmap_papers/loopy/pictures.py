"""What it is worth to learn the relations of neighbours from the clean picture that is restored."""

from typing import Any

import numpy as np

from meanmap_papers.dots import dots
from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

TOLERANCE = 1e-1  # at which constant and linear updates differ most in figure 1
SOURCES = ("itself", "another picture")
# Names of numbers.
LOST = "error of linear updates, relations of another picture minus its own"
APART = "constant minus linear, relations of {}"


def run(setting: Setting) -> Outcome:
    """Pictures of rings around random centres, restored with relations of themselves and of one another."""
    from matplotlib.figure import Figure

    from meanmap_papers.loopy.denoising import rings

    number, colours = setting.choose(smoke=2, quick=4, paper=4), 50
    size, pairs = setting.choose(smoke=12, quick=50, paper=50), setting.choose(smoke=60, quick=250, paper=1200)
    pictures = [rings(colours, size, tuple(setting.rng(at).random(2))) for at in range(number)]

    def measured(at: int) -> list[list[float]]:
        """Errors of constant and linear updates in one picture, by source."""
        return [restored(setting, pictures, at, source, pairs) for source in (at, (at + 1) % number)]

    found = np.array([setting.part(f"picture {at}", lambda at=at: measured(at)) for at in range(number)])
    constant, linear = found[..., 0], found[..., 1]  # (pictures, sources)
    numbers = {LOST: Number.mean(linear[:, 1] - linear[:, 0])}
    rows = [("relations of", "error, constant", "error, linear", "constant minus linear")]
    for at, source in enumerate(SOURCES):
        apart = Number.mean(constant[:, at] - linear[:, at])
        numbers[APART.format(source)] = apart
        errors = Number.mean(constant[:, at]), Number.mean(linear[:, at])
        rows.append((source, str(errors[0]), str(errors[1]), str(apart)))
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    names = [f"{at + 1}" for at in range(number)]
    dots(axes, names, {f"relations of {source}": linear[:, at] for at, source in enumerate(SOURCES)})
    axes.set(xlabel="picture", ylabel="root mean square error, grey levels")
    axes.legend(frameon=False)
    return Outcome(
        f"With relations learned from the picture itself the error of linear updates is {linear[:, 0].mean():.2f} grey "
        f"levels, with those of another picture {linear[:, 1].mean():.2f}. Errors of the {number} pictures, each "
        f"with its own relations, have a spread of {linear[:, 0].std(ddof=1):.2f}.",
        numbers,
        ((figure, "Errors of linear updates, by the picture from which relations are learned."),),
        tuple(rows),
        (
            (
                f"Pictures have rings around centres drawn uniformly from the picture, {size} × {size} pixels, "
                f"{colours} colours and noise of standard deviation 30. Relations are learned from {pairs} pairs of "
                "neighbours of the picture itself, or of the next picture, whose centre is another one. The likelihood "
                f"is the true one, and ε is {TOLERANCE:g}. Standard errors are over pictures, each with its own draw "
                "of the noise."
            ),
        ),
    )


def restored(setting: Setting, pictures: list[np.ndarray], at: int, source: int, pairs: int) -> list[float]:
    """Errors of constant and of linear updates in one picture, with the relations of one picture."""
    import meanmap as mm
    from meanmap import bp
    from meanmap_papers.loopy.denoising import error, noisy, true_likelihood

    seen, example = noisy(pictures[at], setting.rng(at, 1)), noisy(pictures[source], setting.rng(source, 2))

    def of(update: Any) -> float:
        model = mm.KernelGrid(update=update)
        model = model.fit(pictures[source], example, likelihood=true_likelihood, pairs=pairs, rng=setting.seed + at)
        return error(model.restore(seen).mean(), pictures[at])

    return [of(bp.Constant(TOLERANCE)), of(bp.Linear(TOLERANCE))]


EXPERIMENT = Experiment(
    "loopy-pictures",
    "Denoising pictures that were not learned from",
    "Ours: pictures like those of Song et al. (2011)",
    (
        Claim(
            "relations learned from another picture of rings restore less well than those of the picture itself",
            LOST,
            0.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "constant and linear updates differ by at most half a grey level, wherever the relations come from",
            tuple(APART.format(source) for source in SOURCES),
            -0.5,
            0.5,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.5, "quick": 2, "paper": 6},
    run,
)
