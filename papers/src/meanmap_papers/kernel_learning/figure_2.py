"""Figure 2: samples from two grids of normals, which a learned lengthscale separates and the median's does not."""

import math
from functools import partial
from typing import Any

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Reading, Setting

__all__ = ["EXPERIMENT"]

SIZE = 900
# At all of these the median's kernel is said to fail.
LARGE = (2.0, 3.0, 4.0, 6.0, 10.0, 15.0)
# The paper does not state its number of landmarks. It says that the likelihood is largest at a lengthscale of 0.85,
# which of the numbers in `constants` 90 alone gives. With 25 it is 7; what the test finds then is a claim of ours.
LANDMARKS = (25,)
APART = "type II error, median kernel more than the learned, ratio 2"
READ_AT = (2.0, 4.0)


def kernels_for(pooled: Any, rng: int) -> dict[str, Any]:
    """The kernels compared: the learned one alone, as in the paper (by name it is fused with others), and two more."""
    import meanmap as mm

    return {"learned": mm.learn_kernel(pooled, rng=rng).kernel, "median": "median", "default": None}


def with_landmarks(landmarks: int, ratio: float) -> str:
    """The name of the type II error with another number of landmarks."""
    return f"type II error, learned kernel with {landmarks} landmarks, ratio {ratio:g}"


def run(setting: Setting) -> Outcome:
    """Draw panels A to E; errors of the second kind by simulation."""
    import numpy as np
    from matplotlib.figure import Figure

    import meanmap as mm
    from meanmap_papers.kernel_learning.samples import grid_of_normals

    runs, reads = setting.choose(smoke=2, quick=20, paper=100), setting.choose(smoke=1, quick=10, paper=40)
    ratios = setting.choose(
        smoke=(1.0, 2.0, 4.0), quick=(1.0, 1.5, 2.0, 3.0, 4.0), paper=(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 15.0)
    )

    def pair(ratio: float, run: int) -> tuple[np.ndarray, np.ndarray]:
        rng = setting.rng(round(10 * ratio), run)
        return grid_of_normals(rng, SIZE, 1.0, balanced=True), grid_of_normals(rng, SIZE, ratio, balanced=True)

    def told_apart(ratio: float, run: int) -> list[bool]:
        x, y = pair(ratio, run)
        kernels = kernels_for(np.concatenate([x, y]), run)
        found = (mm.two_sample_test(x, y, kernel, n_permutations=199, rng=run) for kernel in kernels.values())
        return [bool(result.reject(0.05)) for result in found]

    def told_apart_with(landmarks: int, ratio: float, run: int) -> bool:
        x, y = pair(ratio, run)
        kernel = mm.learn_kernel(np.concatenate([x, y]), landmarks=landmarks, rng=run).kernel
        return bool(mm.two_sample_test(x, y, kernel, n_permutations=199, rng=run).reject(0.05))

    names = ("learned", "median", "default")
    rejected = {name: [] for name in names}
    for ratio in ratios:
        found = [setting.part(f"{ratio:g}, {run}", partial(told_apart, ratio, run)) for run in range(runs)]
        for name, share in zip(names, np.mean(found, axis=0), strict=True):
            rejected[name].append(float(share))

    def errors(name: str, ratio: float) -> Number:
        lost = round((1 - rejected[name][ratios.index(ratio)]) * runs)
        return Number.share([True] * lost + [False] * (runs - lost))

    x, y = pair(2.0, 0)
    pooled = np.concatenate([x, y])
    fit = mm.learn_kernel(pooled, rng=0)
    median = mm.median_heuristic(pooled, rng=0)
    level = errors("learned", 1.0)
    numbers = {"level, learned kernel": Number(1 - level.value, level.error)}
    for name in ("learned", "median"):
        for ratio in (1.5, *LARGE):
            if ratio in ratios:
                numbers[f"type II error, {name} kernel, ratio {ratio:g}"] = errors(name, ratio)
    learned, by_median = (errors(name, 2.0) for name in ("learned", "median"))
    numbers[APART] = Number(by_median.value - learned.value, math.hypot(by_median.error or 0, learned.error or 0))

    for ratio in READ_AT:
        for m in LANDMARKS:
            told = (
                setting.part(f"{ratio:g}, {m}, {at}", partial(told_apart_with, m, ratio, at)) for at in range(reads)
            )
            numbers[with_landmarks(m, ratio)] = Number.share([not each for each in told])

    figure = Figure(figsize=(13, 7), layout="constrained")
    (a, b, c), (d, e, _unused) = figure.subplots(2, 3)
    _unused.set_axis_off()
    for axes, ratio, panel in ((a, 2.0, "A"), (b, 4.0, "B")):
        for sample, colour in zip(pair(ratio, 0), ("black", "C3"), strict=True):
            axes.plot(*sample.T, ".", ms=2, color=colour)
        axes.set_title(f"{panel}: samples, ratio {ratio:g}", fontsize="medium")
    for (name, shares), size in zip(rejected.items(), (10, 7, 4), strict=True):  # curves that coincide stay visible
        c.plot(ratios, 1 - np.array(shares), "o-", ms=size, lw=size / 3, label=name)
    c.set(xlabel="ratio of eigenvalues", ylabel="share not rejected", ylim=(-0.02, 1.02))
    c.set_title("C: errors of the second kind (at ratio 1: 1 − level)", fontsize="medium")
    c.legend(fontsize="small", loc="center right")
    fit.plot(d)
    d.axvline(median, color="black", ls=":", label="median distance")
    d.legend(fontsize="small", framealpha=1, loc="upper right")
    d.set_title("D: the objective", fontsize="medium")
    near = mm.embeddings.posterior_witness(x, y, fit.kernel)
    side = np.linspace(-5.0, 5.0, 60)
    mesh = np.stack(np.meshgrid(side, side), axis=-1)
    values = near.mean(mesh.reshape(-1, 2)).reshape(60, 60)
    top = float(np.abs(values).max())
    e.contourf(side, side, values, levels=21, cmap="RdBu", vmin=-top, vmax=top)
    e.set_title("E: the posterior witness about one component, ratio 2", fontsize="medium")

    def missed(name: str, ratio: int) -> str:
        return f"{numbers[f'type II error, {name} kernel, ratio {ratio}'].value:.0%}"

    table = [("ratio", *names)]
    table += [(f"{ratio:g}", *(f"{1 - rejected[name][i]:.2f}" for name in names)) for i, ratio in enumerate(ratios)]
    return Outcome(
        f"The test with the learned lengthscale misses {missed('learned', 2)} of the differences where the covariance "
        f"of each component has eigenvalues with a ratio of 2, and {missed('learned', 4)} at a ratio of 4; the test "
        f"with the median distance misses {missed('median', 2)} and {missed('median', 4)}.",
        numbers,
        ((figure, "Samples of two grids of normals, type II errors, objective and witness."),),
        tuple(table),
        (
            (
                "The paper does not state its number of landmarks, which in two dimensions determines the lengthscale, "
                "but it does state the lengthscale with which its test rejects: 0.85. Medians of the learned "
                "lengthscale are 7.2 with 25 landmarks, 1.25 with 50, 0.859 with 90 and 0.61 with 200 (first section "
                "of this page). The paper's sentences are therefore judged with 90 landmarks, 5% of the pooled sample, "
                "and the 0.85 is not judged. Tests with 25 landmarks, which the 0.85 rules out, are a claim of ours, "
                f"from {reads} pairs of samples."
            ),
            "The paper does not state the spacing of its grid; here it is 10.",
            (
                "Of the covariances of the second sample the paper states the ratio of their eigenvalues only, and "
                "that they are rotated. Here the eigenvalues are 1 and the ratio, and the angle is 45 degrees. Ratios "
                "below 1, with which figure 2C begins, were not run. Landmarks and the lengthscale are drawn and "
                "learned anew for each pair of samples."
            ),
            (
                "As in the paper each component has exactly 100 points. Permuted samples do not have this balance, so "
                "that the tests are conservative."
            ),
        ),
    )


EXPERIMENT = Experiment(
    "kernel-learning-figure-2",
    "Two grids of normals",
    "Flaxman et al. (2016), figure 2A, B, C and E",
    (
        Claim(
            "with the lengthscale of largest likelihood, 0.85, the test rejects even at a ratio of 2 (section 5)",
            "type II error, learned kernel, ratio 2",
            high=0.2,
            scales=("quick", "paper"),
        ),
        Claim(
            "with the lengthscale of largest likelihood there are no type II errors at larger ratios, here at 4",
            "type II error, learned kernel, ratio 4",
            high=0.05,
            ours=True,
        ),
        Claim(
            "with the median distance the test always fails to reject, even at large ratios (section 5)",
            tuple(f"type II error, median kernel, ratio {ratio:g}" for ratio in LARGE),
            low=0.85,
            scales=("paper",),
        ),
        Claim(
            "below a ratio of 2 the type II error is very high with either kernel (section 5): in half of the tests or "
            "more, or, as the same sentence says, “always”",
            tuple(
                tuple(Reading(f"type II error, {name} kernel, ratio 1.5", low=low) for low in (0.5, 0.85))
                for name in ("learned", "median")
            ),
            scales=("paper",),
        ),
        Claim(
            "tests are very sensitive to the kernel and its lengthscale (sections 1, 2.4): at a ratio of 2 one of the "
            "two misses at most a fifth of the differences and the other 85% or more, or the other misses half of all "
            "differences more",
            (
                (Reading("type II error, learned kernel, ratio 2", high=0.2), Reading(APART, low=0.5)),
                (Reading("type II error, median kernel, ratio 2", low=0.85), Reading(APART, low=0.5)),
            ),
            scales=("paper",),
        ),
        *(
            Claim(
                "with 25 landmarks, which do not give the paper's lengthscale, the test rejects at a ratio of "
                f"{ratio:g}, too",
                with_landmarks(25, ratio),
                high=high,
                scales=("quick", "paper"),
                ours=True,
            )
            for ratio, high in zip(READ_AT, (0.2, 0.05), strict=True)
        ),
    ),
    {"smoke": 1.0, "quick": 6.0, "paper": 35},
    run,
    stand_in="90 landmarks and a spacing of 10, which were chosen to give printed numbers",
)
