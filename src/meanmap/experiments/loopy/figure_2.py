"""Rank of the features and of the tensor features against the number of colours, for three tolerances."""

import numpy as np

from meanmap.experiments.experiment import Claim, Experiment, Number, Outcome, Setting

TOLERANCES = (1e-1, 1e-2, 1e-3)


def run(setting: Setting) -> Outcome:
    """Ranks at one lengthscale, that of the median rule, for all numbers of colours."""
    from matplotlib import pyplot

    import meanmap as mm
    from meanmap import bp
    from meanmap.experiments.loopy.denoising import rings

    colours = setting.choose(smoke=(10, 50), quick=(10, 25, 50, 100, 200), paper=(10, 25, 50, 100, 150, 200, 256))
    ranks = np.zeros((2, len(TOLERANCES), len(colours)), dtype=int)
    for c, number in enumerate(colours):
        picture = rings(number, 100)
        kernel = mm.kernels.RBF(0.25 * mm.median_heuristic(picture.ravel(), rng=setting.seed))
        for t, tolerance in enumerate(TOLERANCES):
            model = mm.KernelGrid(kernel=kernel, ridge=1e-3, update=bp.Constant(tolerance))
            learned = model.fit(picture, pairs=2000, rng=setting.seed).field.learned
            variable = learned.variables["x"]
            ranks[:, t, c] = variable.features.size, variable.size
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for t, tolerance in enumerate(TOLERANCES):
        (line,) = axes.plot(colours, ranks[0, t], marker="o", linestyle="--", label=f"features, ε = {tolerance:g}")
        axes.plot(colours, ranks[1, t], marker="s", color=line.get_color(), label=f"tensor features, ε = {tolerance:g}")
    axes.set(xlabel="colours", ylabel="rank")
    figure.legend(loc="outside right center", fontsize="small")
    growth = ranks[1, 1, -1] / ranks[1, 1, -2]
    return Outcome(
        f"At {colours[-1]} colours ε = 0.1, 0.01 and 0.001 need {', '.join(map(str, ranks[0, :, -1]))} features and "
        f"{', '.join(map(str, ranks[1, :, -1]))} tensor features.",
        {
            "growth at the end": Number(float(growth)),
            "tensor over plain": Number(float(np.min(ranks[1] / ranks[0]))),
            "fine over coarse": Number(float(np.min(ranks[:, 2, -1] / ranks[:, 0, -1]))),
        },
        ((figure, "Rank of plain and tensor features against the number of colours, for three ε."),),
        notes=("The lengthscale is a quarter of the median distance; messages multiply three others (q = 3).",),
    )


EXPERIMENT = Experiment(
    "loopy-figure-2",
    "Rank of features and tensor features",
    "Song et al. (2011), appendix, figure 2",
    (
        Claim("a smaller ε needs a higher rank (appendix 3, figure 2)", "fine over coarse", 1.001),
        Claim("tensor features need a rank at least as high (appendix 3, figure 2)", "tensor over plain", 1.0),
        Claim("the rank hardly grows once colours are many", "growth at the end", 0.9, 1.2, scales=("quick", "paper")),
    ),
    {"smoke": 0.2, "quick": 0.5, "paper": 1},
    run,
)
