"""How a learned lengthscale depends on its constants: noise, landmarks, their draws, and the sample."""

import math
from collections.abc import Mapping
from functools import partial

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Reading, Setting

__all__ = ["EXPERIMENT"]

# The constants that are varied one at a time, and their values; the others are as in figure 2.
USUAL = {"noise": 1.0, "landmarks": 90, "draws": 5, "points": 1800}
VALUES = {
    "noise": (0.1, 1.0, 10.0, 100.0),
    "landmarks": (25, 50, 90, 200),
    "draws": (1, 5, 20),
    "points": (450, 900, 1800),
}
# Ratios of variances in figure 2 at which the test is neither blind nor always right.
RATIOS = (1.5, 2.0)
# Names of what a change of τ² does: to errors of the test, at both ratios, and to the lengthscale.
CHANGED = tuple(f"largest change of the type II error by τ², ratio {ratio:g}" for ratio in RATIOS)
DECADES = "largest over smallest lengthscale by τ², decades"
# Lengthscales around one resolve the clusters of figure 2, those above five resolve their grid alone.
WITHIN = 5.0


def run(setting: Setting) -> Outcome:
    """Lengthscales of `learn_kernel` on the grid of normals of figure 2, one constant changed at a time."""
    import numpy as np
    from matplotlib.figure import Figure

    import meanmap as mm
    from meanmap_papers.kernel_learning.samples import grid_of_normals

    runs = setting.choose(smoke=1, quick=3, paper=20)
    values = setting.choose(smoke={"noise": (0.1, 1.0, 10.0)}, quick=VALUES, paper=VALUES)
    usual = USUAL | setting.choose(smoke={"points": 200, "landmarks": 20, "draws": 1}, quick={}, paper={})

    def lengthscale(run: int, **changed: float) -> float:
        """That of a pooled sample, half of it with round clusters and half with clusters twice as wide one way."""
        constants = usual | changed
        rng, half = setting.rng(run), int(constants["points"]) // 2
        pooled = np.concatenate([grid_of_normals(rng, half, ratio, balanced=True) for ratio in (1.0, 2.0)])
        fit = mm.learn_kernel(
            pooled,
            landmarks=int(constants["landmarks"]),
            noise=constants["noise"],
            draws=int(constants["draws"]),
            rng=run,
        )
        return float(fit.kernel.lengthscale)  # pyright: ignore[reportAttributeAccessIssue]

    found = {
        name: np.array(
            [
                [setting.part(f"{name} {value:g}, {i}", partial(lengthscale, i, **{name: value})) for i in range(runs)]
                for value in each
            ]
        )
        for name, each in values.items()
    }
    changes = {name: _change(lengths) for name, lengths in found.items()}
    numbers = {f"by {name}": change for name, change in changes.items()}
    numbers[DECADES] = _decades(changes["noise"])
    tests = setting.choose(smoke=2, quick=20, paper=100)
    numbers |= errors_by_noise(
        setting, dict(zip(values["noise"], np.median(found["noise"], axis=1), strict=True)), tests
    )
    figure = Figure(figsize=(2.6 * len(found), 2.8), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (name, lengths) in zip(panels, found.items(), strict=True):
        axes.plot(values[name], lengths, ".", color="C0", alpha=0.5)
        axes.plot(values[name], np.median(lengths, axis=1), "-", color="black")
        axes.set(xlabel=name, xscale="log", yscale="log")
        axes.set_xticks(values[name], [f"{value:g}" for value in values[name]])
        axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
        axes.minorticks_off()
    panels[0].set_ylabel("learned lengthscale")
    rows = [("constant", "value", "median lengthscale", "from", "to", "share that resolves the clusters")]
    for name, lengths in found.items():
        for value, each in zip(values[name], lengths, strict=True):
            numbers_of = (f"{np.median(each):.3g}", f"{each.min():.3g}", f"{each.max():.3g}")
            rows.append((name, f"{value:g}", *numbers_of, f"{np.mean(each < WITHIN):.0%}"))
    order = sorted(changes, key=lambda name: -changes[name].value)
    told = ", ".join(f"{changes[name].value:.2g} ({name})" for name in order)
    return Outcome(
        f"The largest median lengthscale over the smallest, when one constant at a time is changed: {told}.",
        numbers,
        ((figure, "Learned lengthscales when one constant is changed at a time; lines are medians."),),
        tuple(rows),
        (
            "The sample is that of figure 2 with a ratio of 2; all other constants are as there: "
            + ", ".join(f"{name} {value:g}" for name, value in usual.items())
            + ". The paper does not state its number of landmarks, and shows no measurement.",
        ),
    )


def errors_by_noise(setting: Setting, lengthscales: Mapping[float, float], tests: int) -> dict[str, Number]:
    """Type II errors of figure 2's test with the lengthscale of each τ², and their largest change from τ² = 1."""
    import numpy as np

    import meanmap as mm
    from meanmap_papers.kernel_learning.figure_2 import SIZE
    from meanmap_papers.kernel_learning.samples import grid_of_normals

    def retained(ratio: float, run: int) -> list[bool]:
        rng = setting.rng(round(10 * ratio), run)
        x, y = (grid_of_normals(rng, SIZE, each, balanced=True) for each in (1.0, ratio))
        found = (
            mm.two_sample_test(x, y, mm.kernels.RBF(float(each)), n_permutations=199, rng=run)
            for each in lengthscales.values()
        )
        return [not result.reject(0.05) for result in found]

    numbers = {}
    for name, ratio in zip(CHANGED, RATIOS, strict=True):
        missed = np.array([setting.part(f"errors {ratio:g}, {i}", partial(retained, ratio, i)) for i in range(tests)])
        for place, noise in enumerate(lengthscales):
            numbers[f"type II error, ratio {ratio:g}, τ² = {noise:g}"] = Number.share(missed[:, place].tolist())
        more = missed - missed[:, [list(lengthscales).index(USUAL["noise"])]].astype(float)
        numbers[name] = Number.mean(more[:, np.abs(more.mean(axis=0)).argmax()])
    return numbers


def _decades(ratio: Number) -> Number:
    """Its decimal logarithm."""
    error = None if ratio.error is None else ratio.error / (ratio.value * math.log(10))
    return Number(math.log10(ratio.value), error, ratio.runs)


def _change(lengths) -> Number:
    """The largest over the smallest median, with the standard error over repetitions, on the logarithm."""
    import numpy as np

    logarithms = np.log(lengths)
    medians = np.median(logarithms, axis=1)
    ratio = float(np.exp(np.ptp(medians)))
    if lengths.shape[1] < 2:
        return Number(ratio)
    # A median's variance is about half as large again as that of a mean; two medians differ.
    variances = 1.57 * logarithms.var(axis=1, ddof=1) / lengths.shape[1]
    return Number(ratio, ratio * float(np.sqrt(variances[medians.argmax()] + variances[medians.argmin()])))


EXPERIMENT = Experiment(
    "kernel-learning-constants",
    "Which constants matter to a learned lengthscale",
    "Flaxman et al. (2016), section 5: results were not sensitive to τ²",
    (
        Claim(
            "results are not sensitive to τ² (section 5). First reading: type II errors of the test change by at most "
            "0.1, at both ratios. Second reading: the learned lengthscale changes by at most a tenth of a decade. The "
            "range of τ², 0.1 to 100, is ours",
            tuple((Reading(change, -0.1, 0.1), Reading(DECADES, 0.0, 0.1)) for change in CHANGED),
            scales=("quick", "paper"),
        ),
        Claim(
            "from 25 to 200 landmarks the learned lengthscale changes at most twofold",
            "by landmarks",
            high=2.0,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.2, "quick": 5, "paper": 7},
    run,
)
