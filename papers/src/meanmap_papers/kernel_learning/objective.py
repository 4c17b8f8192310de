"""Figure 2D: where the objective of kernel learning is largest, and where the median lies."""

from functools import partial
from typing import Any

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

SIZE, RATIO = 900, 2.0
# Of 1800 points: the paper does not state its number.
LANDMARKS = (25, 50, 90, 200)
USUAL = 90
SEVERAL, BETWEEN = "several modes", "the median lies between the two main modes"


def of(name: str, landmarks: int) -> str:
    """The name of a share with so many landmarks."""
    return name if landmarks == USUAL else f"{name}, {landmarks} landmarks"


def run(setting: Setting) -> Outcome:
    """Modes of the objective on samples of two grids, for four numbers of landmarks, and the median distance."""
    import numpy as np
    from matplotlib.figure import Figure

    import meanmap as mm
    from meanmap_papers.kernel_learning.samples import grid_of_normals

    runs = setting.choose(smoke=2, quick=5, paper=20)
    size = setting.choose(smoke=200, quick=SIZE, paper=SIZE)

    def pooled(run: int) -> np.ndarray:
        rng = setting.rng(run)
        return np.concatenate([grid_of_normals(rng, size, ratio, balanced=True) for ratio in (1.0, RATIO)])

    def learned(run: int, landmarks: int) -> Any:
        return mm.learn_kernel(pooled(run), landmarks=landmarks, rng=run)

    def modes(run: int, landmarks: int) -> list[float]:
        """Lengthscales of the modes, the highest first."""
        return [float(np.exp(mode.vector[0])) for mode in learned(run, landmarks).modes]

    found = {
        m: [setting.part(f"{m} landmarks, {run}", partial(modes, run, m)) for run in range(runs)] for m in LANDMARKS
    }
    medians = [float(mm.median_heuristic(pooled(run), rng=run)) for run in range(runs)]
    numbers = {f"learned lengthscale, {m} landmarks": Number.mean([each[0] for each in found[m]]) for m in LANDMARKS}
    numbers["median distance"] = Number.mean(medians)
    numbers["median distance times √2"] = Number.mean([median * 2**0.5 for median in medians])
    for m, each in found.items():
        numbers[of(SEVERAL, m)] = Number.share([len(modes) > 1 for modes in each])
        # The two main modes are the two highest.
        between = (
            len(modes) > 1 and min(modes[:2]) < median < max(modes[:2])
            for modes, median in zip(each, medians, strict=True)
        )
        numbers[of(BETWEEN, m)] = Number.share(list(between))
    figure = Figure(figsize=(12, 3), layout="constrained")
    for axes, m in zip(figure.subplots(1, len(LANDMARKS)), LANDMARKS, strict=True):
        learned(0, m).plot(axes)
        axes.axvline(medians[0], color="black", ls=":")
        axes.set_title(f"{m} landmarks", fontsize="medium")
    rows = [("landmarks", "learned lengthscale", "from", "to", "modes of the first sample, the highest first")]
    for m, each in found.items():
        best = [modes[0] for modes in each]
        shown = ", ".join(f"{mode:.2g}" for mode in each[0])
        rows.append((str(m), str(Number.mean(best)), f"{min(best):.2f}", f"{max(best):.2f}", shown))
    return Outcome(
        "The learned lengthscale is "
        + ", ".join(f"{numbers[f'learned lengthscale, {m} landmarks']} with {m} landmarks" for m in LANDMARKS)
        + f"; the median distance is {numbers['median distance']}.",
        numbers,
        ((figure, "The objective of the first sample against the lengthscale; dotted, the median distance."),),
        tuple(rows),
        (
            f"As in the paper each component has {size // 9} points of each sample.",
            (
                "The paper does not state its number of landmarks, on which the lengthscale depends. Of the four that "
                f"were tried, {USUAL}, 5% of the sample, gives the printed lengthscale of 0.85 most nearly. The "
                f"paper's claims are judged with {USUAL}, in figure 2C as well, so that the 0.85 itself is not tested. "
                "What is said about 25 and 50 landmarks are claims of ours."
            ),
            (
                "The printed median distance of 20 cannot be tested either, since the spacing of the grid is not "
                "stated. With a spacing of 10 the median distance is 14.1. Section 2.4 has two parameterisations; "
                "in the other one, exp(−d²/ℓ²), the same kernel has a lengthscale √2 times as long, which is 20."
            ),
        ),
    )


FEWER = tuple(m for m in LANDMARKS if m < USUAL)

EXPERIMENT = Experiment(
    "kernel-learning-objective",
    "The objective against the lengthscale",
    "Flaxman et al. (2016), figure 2D",
    (
        Claim(
            "there are several local optima (section 5), in 80% of samples or more",
            SEVERAL,
            low=0.8,
            scales=("quick", "paper"),
        ),
        Claim(
            "the median heuristic lies between the two main modes (section 5)",
            BETWEEN,
            low=0.5,
            scales=("quick", "paper"),
        ),
        *(
            Claim(f"{words}, with {m} landmarks, too", of(name, m), low=low, scales=("quick", "paper"), ours=True)
            for name, words, low in (
                (SEVERAL, "there are several local optima in 80% of samples or more", 0.8),
                (BETWEEN, "the median lies between the two main modes", 0.5),
            )
            for m in FEWER
        ),
    ),
    {"smoke": 0.2, "quick": 0.6, "paper": 2},
    run,
    stand_in="90 landmarks and a spacing of 10, which were chosen to give printed numbers",
)
