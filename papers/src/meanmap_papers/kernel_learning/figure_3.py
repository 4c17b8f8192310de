"""Figure 3: the witness of a normal and a Laplace sample, the lengthscale and the noise integrated out."""

from functools import partial

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Reading, Setting

__all__ = ["EXPERIMENT"]

LEVEL, LANDMARKS = 0.8, 10
# Draws of each of four chains, after as many of warm-up: the paper's, and the default of `sample_kernel`.
DRAWS = {"stan": 200, "tempered": 500}
NAMES = {"stan": "printed model", "tempered": "our model"}
MEASURED = R_HAT, EXCLUDED, NULL = "R-hat", "zero excluded", "zero excluded without a difference"
MORE = "share of places where zero is excluded, more than without a difference"


def run(setting: Setting) -> Outcome:
    """Sample the posterior of the kernel by NUTS, as printed and tempered, and draw the witness under both."""
    import numpy as np
    from matplotlib.figure import Figure
    from scipy.stats import laplace, norm

    import meanmap as mm
    from meanmap.learning import KernelDraws
    from meanmap_papers.kernel_learning.printed import sample_printed
    from meanmap_papers.kernel_learning.samples import normal_and_laplace

    most = setting.choose(smoke=50, quick=500, paper=500)
    repeats = setting.choose(smoke=1, quick=2, paper=6)
    grid = np.linspace(-4.0, 4.0, 161)
    numbers: dict[str, Number] = {}
    rows: list[tuple[str, ...]] = [
        ("points", "model", "lengthscale", "noise", "largest R-hat", "zero excluded", "without a difference")
    ]
    figure = Figure(figsize=(13, 7), layout="constrained")
    panels = figure.subplots(2, 3)
    density, hidden = panels[0, 0], panels[1, 0]
    density.plot(grid, norm.pdf(grid), label="N(0, 1)")
    density.plot(grid, laplace.pdf(grid, 0, np.sqrt(0.5)), label="Laplace(0, √0.5)")
    density.set_title("A: densities", fontsize="medium")
    density.legend(fontsize="small")
    hidden.set_axis_off()

    def bands(x: np.ndarray, y: np.ndarray, found: KernelDraws, printed: bool, rng: np.random.Generator) -> np.ndarray:
        """Mean, lower and upper ends of the witness on the grid, (3, points)."""
        if not printed:
            witness = mm.embeddings.posterior_witness(x, y, found)
            return np.array([witness.mean(grid), *witness.interval(grid, LEVEL)])
        # As in the paper: of each draw of lengthscale and noise one function is drawn, with landmarks at all points.
        functions = [
            (of_sample(x, scale, noise) - of_sample(y, scale, noise)).sample(grid, 1, rng)[0]
            for scale, noise in zip(found.kernel.lengthscale, found.noise.ravel(), strict=True)
        ]
        return np.array(
            [np.mean(functions, axis=0), *np.quantile(functions, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)]
        )

    def of_sample(sample: np.ndarray, scale: float, noise: float) -> mm.embeddings.PosteriorEmbedding:
        kernel = mm.kernels.RBF(scale)
        return mm.embeddings.posterior_embedding(sample, kernel, landmarks=sample, noise=float(noise))

    def measured(n: int, model: str, repeat: int) -> tuple[list[list[float]], list[float]]:
        """Bands, and their lengthscale, noise, R-hat, and where they exclude zero, of different distributions and of
        one.
        """
        x, y = normal_and_laplace(setting.rng(n, repeat), n)
        same = setting.rng(n, repeat, 1).normal(size=n)
        sampler = sample_printed if model == "stan" else mm.learning.sample_kernel
        seed, draws = 1000 * setting.seed + repeat, min(most, DRAWS[model])
        found = sampler(np.concatenate([x, y]), landmarks=LANDMARKS, warmup=draws, draws=draws, rng=seed)
        summary = found.summary()
        r_hat = max(entry["r_hat"] for entry in summary.values())
        shown, null = (
            bands(x, other, found, model == "stan", setting.rng(n, repeat, 2 + which))
            for which, other in enumerate((y, same))
        )
        shares = [float(np.mean((low > 0) | (high < 0))) for _, low, high in (shown, null)]
        return shown.tolist(), [summary["lengthscale"]["mean"], summary["noise"]["mean"], r_hat, *shares]

    for column, n in enumerate((50, 400), start=1):
        for row, model in enumerate(("stan", "tempered")):
            found = [
                setting.part(f"{model}, {n} points, {repeat}", partial(measured, n, model, repeat))
                for repeat in range(repeats)
            ]
            each = [Number.mean(values) for values in zip(*(numbers for _, numbers in found), strict=True)]
            largest = max(numbers[2] for _, numbers in found)
            numbers |= dict(zip((f"{what}, {NAMES[model]}, {n} points" for what in MEASURED), each[2:], strict=True))
            more = [shares[-2] - shares[-1] for _, shares in found]
            numbers[f"{MORE}, {NAMES[model]}, {n} points"] = Number.mean(more)
            scale, noise, _, excluded, null = map(str, each)
            rows.append((str(n), NAMES[model], scale, noise, f"{largest:.3f}", excluded, null))
            (mean, low, high), axes = np.array(found[0][0]), panels[row, column]
            axes.axhline(0, color="lightgrey", lw=1)
            axes.fill_between(grid, low, high, color="C0", alpha=0.3, lw=0)
            axes.plot(grid, mean, color="C0")
            # Where there are no data bands are as wide as the prior, which would hide the rest.
            axes.set_ylim(-2.5 * np.abs(mean).max(), 2.5 * np.abs(mean).max())
            words = "as printed" if model == "stan" else "tempered, empirical noise"
            axes.set_title(f"{'BC'[column - 1]}: n = {n}, {words}", fontsize="medium")
    order = ((EXCLUDED, 50), (EXCLUDED, 400), (NULL, 400))
    shares = [f"{numbers[f'{what}, {NAMES[m]}, {n} points'].value:.0%}" for m in NAMES for what, n in order]
    return Outcome(
        f"With the printed model 80% bands exclude zero on {shares[0]} of [−4, 4] with 50 points and on {shares[1]} "
        f"with 400, but on {shares[2]} with 400 for two samples of one distribution, too. With our model it is "
        f"{shares[3]} and {shares[4]}, and {shares[5]} for two samples of one distribution.",
        numbers,
        (
            (
                figure,
                "The densities, and the witness with 80% bands for 50 and 400 points, by both models.",
            ),
        ),
        tuple(rows),
        (
            (
                "The printed Stan program has mistakes (see the errata), and its posterior depends on them: with the "
                "mistakes corrected, lengthscales grow far into the tail of their prior. Our model tempers the "
                "likelihood and uses the empirical covariance as noise."
            ),
            "The paper does not state the number of landmarks, on which the lengthscale depends; here it is 10.",
            "Exact 80% bands would exclude zero in a fifth of places by chance alone.",
            (
                f"The printed model has four chains from random starts, {DRAWS['stan']} iterations of warm-up and "
                f"{DRAWS['stan']} draws of each, as in the paper. For each of the {4 * DRAWS['stan']} draws one "
                "function is drawn, and bands are quantiles of these. Our model has the defaults of the library: four "
                f"chains, {DRAWS['tempered']} iterations of warm-up and {DRAWS['tempered']} draws of each, 32 of which "
                "form the bands."
            ),
            f"Numbers are means over {repeats} pairs of samples; pictures show the first pair.",
        ),
    )


EXPERIMENT = Experiment(
    "kernel-learning-figure-3",
    "The witness function with its uncertainty",
    "Flaxman et al. (2016), figure 3",
    (
        Claim(
            "R-hat of the chains is about 1 (section 5): at most 1.01",
            (f"{R_HAT}, {NAMES['stan']}, 50 points", f"{R_HAT}, {NAMES['stan']}, 400 points"),
            high=1.01,
            scales=("quick", "paper"),
        ),
        Claim(
            "with 50 points the bands rarely exclude zero (figure 3B): in 30% of places or less",
            f"{EXCLUDED}, {NAMES['stan']}, 50 points",
            high=0.3,
            scales=("quick", "paper"),
        ),
        Claim(
            "with 400 points they mostly do (section 5), in half of the places or more, or much of the band does "
            "(caption of figure 3C), in a third or more",
            (tuple(Reading(f"{EXCLUDED}, {NAMES['stan']}, 400 points", low=low) for low in (0.5, 1 / 3)),),
            scales=("quick", "paper"),
        ),
        Claim(
            "with 400 points the model finds a clear difference (caption of figure 3C): zero is excluded in more "
            "places than for two samples of one distribution",
            f"{MORE}, {NAMES['stan']}, 400 points",
            low=0.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "R-hat of the chains with our model is at most 1.01",
            (f"{R_HAT}, {NAMES['tempered']}, 50 points", f"{R_HAT}, {NAMES['tempered']}, 400 points"),
            high=1.01,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "with our model and no difference, bands exclude zero in at most a fifth of places",
            (f"{NULL}, {NAMES['tempered']}, 50 points", f"{NULL}, {NAMES['tempered']}, 400 points"),
            high=0.2,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 2.0, "quick": 10.0, "paper": 30.0},
    run,
)
