"""Rank of the features and of the tensor features against the number of colours, for three tolerances."""

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

TOLERANCES = (1e-1, 1e-2, 1e-3)
# With fewer colours ranks are limited by the number of colours.
MANY = 50


def run(setting: Setting) -> Outcome:
    """Ranks at a quarter of the median lengthscale, for all numbers of colours and several draws of pairs."""
    from matplotlib import pyplot

    colours = setting.choose(smoke=(10, 50), quick=(10, 25, 50, 100, 200), paper=(10, 25, 50, 100, 150, 200, 256))
    draws = setting.choose(smoke=2, quick=3, paper=10)
    found = [setting.part(f"draw {at}", lambda at=at: ranks(colours, setting, at)) for at in range(draws)]
    every = np.array(found, dtype=float)  # (draws, 2, tolerances, colours): of features and of tensor features
    mean = every.mean(axis=0)
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for t, tolerance in enumerate(TOLERANCES):
        (line,) = axes.plot(colours, mean[0, t], marker="o", linestyle="--", label=f"features, ε = {tolerance:g}")
        axes.plot(colours, mean[1, t], marker="s", color=line.get_color(), label=f"tensor features, ε = {tolerance:g}")
    axes.set(xlabel="colours", ylabel="rank")
    figure.legend(loc="outside right center", fontsize="small")
    return Outcome(
        f"At {colours[-1]} colours ε = 0.1, 0.01 and 0.001 need {_listed(mean[0, :, -1])} features and "
        f"{_listed(mean[1, :, -1])} tensor features, respectively.",
        {
            "growth": Number.mean((every[:, 1, :, -1] / every[:, 1, :, 0]).min(axis=1)),
            "growth at the end": Number.mean((every[:, 1, :, -1] / every[:, 1, :, colours.index(MANY)]).min(axis=1)),
            "tensor over plain": Number.mean((every[:, 1] / every[:, 0]).min(axis=(1, 2))),
            "fine over coarse": Number.mean((every[:, :, 2, -1] / every[:, :, 0, -1]).min(axis=1)),
        },
        ((figure, "Rank of plain and tensor features against the number of colours, for three ε."),),
        notes=(
            (
                "The lengthscale is a quarter of the median distance; each message is computed from a product of three "
                "others (q = 3)."
            ),
            (
                "Standard errors are over draws of the training pairs. Of the three ε the one with the least growth "
                "is judged."
            ),
            (
                "That a smaller ε needs a higher rank, and tensor features no lower one, follows from how they are "
                "chosen, so that these two statements of the paper are shown and not judged."
            ),
        ),
    )


def ranks(colours: tuple[int, ...], setting: Setting, draw: int) -> list[list[list[int]]]:
    """Of features and of tensor features, for each tolerance and number of colours."""
    import meanmap as mm
    from meanmap import bp
    from meanmap_papers.loopy.denoising import rings

    found = np.zeros((2, len(TOLERANCES), len(colours)), dtype=int)
    for c, number in enumerate(colours):
        picture = rings(number, 100)
        kernel = mm.kernels.RBF(0.25 * mm.median_heuristic(picture.ravel(), rng=setting.rng(draw, c)))
        for t, tolerance in enumerate(TOLERANCES):
            model = mm.KernelGrid(kernel=kernel, ridge=1e-3, update=bp.Constant(tolerance))
            learned = model.fit(picture, pairs=2000, rng=setting.rng(draw, c)).field.learned
            variable = learned.variables["x"]
            found[:, t, c] = variable.features.size, variable.size
    return found.tolist()


def _listed(values: np.ndarray) -> str:
    *others, last = [f"{value:.0f}" for value in values]
    return f"{', '.join(others)} and {last}"


EXPERIMENT = Experiment(
    "loopy-figure-2",
    "Rank of features and tensor features",
    "Song et al. (2011), appendix, figure 2",
    (
        Claim(
            f"tensor features need a higher rank as colours grow (appendix 3): from 10 on, or from {MANY} on, where "
            "their number does not limit the rank",
            (("growth", "growth at the end"),),
            1.0,
            scales=("quick", "paper"),
        ),
    ),
    {"smoke": 0.2, "quick": 0.5, "paper": 1},
    run,
    stand_in="pictures of ours",
)
