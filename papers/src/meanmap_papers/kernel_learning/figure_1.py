"""Figure 1: the prior of a mean embedding, its empirical estimate, and its posterior."""

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

LENGTHSCALE, LEVEL = 0.25, 0.8


def run(setting: Setting) -> Outcome:
    """Draw the three panels, and measure the coverage of intervals, as printed and with our noise."""
    import numpy as np
    from matplotlib.figure import Figure

    import meanmap as mm
    from meanmap_papers.kernel_learning.samples import three_normals, three_normals_embedding

    kernel = mm.kernels.RBF(LENGTHSCALE)
    grid = np.linspace(-3.0, 3.0, 121)
    inside = np.linspace(-2.5, 2.5, 101)
    runs = setting.choose(smoke=5, quick=30, paper=100)

    def coverage(n: int, scale: float, printed: bool, stream: int) -> Number:
        shares = []
        for run in range(runs):
            x = three_normals(setting.rng(stream, run), n)
            one = mm.kernels.RBF(scale)
            g = (
                mm.embeddings.posterior_embedding(x, one, landmarks=x, noise=1.0)
                if printed
                else mm.embeddings.posterior_embedding(x, one)
            )
            low, high = g.interval(inside, LEVEL)
            true = three_normals_embedding(inside, scale)
            shares.append(float(np.mean((low < true) & (true < high))))
        return Number(float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(runs)), runs)

    numbers, rows = {}, [("points", "lengthscale", "as printed", "empirical noise")]
    for k, (n, scale) in enumerate(((50, 0.25), (400, 0.25), (400, 1.0))):
        printed, ours = coverage(n, scale, True, k), coverage(n, scale, False, k)
        case = f"{n} points, lengthscale {scale:g}"
        numbers |= {f"printed noise, {case}": printed, f"empirical noise, {case}": ours}
        rows.append((str(n), f"{scale:g}", str(printed), str(ours)))

    x = three_normals(setting.rng(9), 50)
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    prior, empirical, posterior = figure.subplots(1, 3, sharex=True)
    covariance = mm.kernels.Smoothed(kernel)(grid) + 1e-10 * np.eye(len(grid))
    draws = np.linalg.cholesky(covariance) @ setting.rng(10).normal(size=(len(grid), 3))
    prior.plot(grid, draws)
    prior.set_title("A: draws from the prior", fontsize="medium")
    empirical.plot(grid, mm.embed(x, kernel)(grid), color="black")
    empirical.plot(x, np.zeros_like(x), "|", color="black", ms=8)
    empirical.set_title("B: the empirical embedding", fontsize="medium")
    g = mm.embeddings.posterior_embedding(x, kernel)
    low, high = g.interval(grid, LEVEL)
    posterior.fill_between(grid, low, high, color="lightgrey", label="80% intervals")
    posterior.plot(grid, g.mean(grid), color="black", label="posterior mean")
    posterior.plot(grid, three_normals_embedding(grid, LENGTHSCALE), color="C0", label="truth")
    posterior.set_title("C: the posterior", fontsize="medium")
    posterior.legend(fontsize="small")
    chosen = (f"{noise} noise, {case}" for noise in ("printed", "empirical") for case in (CASES[0], CASES[-1]))
    shown = [f"{numbers[name].value:.0%}" for name in chosen]
    return Outcome(
        f"With the noise that the paper prints, nominal 80% intervals cover the true embedding at {shown[0]} of places "
        f"(50 points, lengthscale 0.25) and at {shown[1]} (400 points, lengthscale 1). With the empirical covariance "
        f"as noise they cover it at {shown[2]} and {shown[3]}.",
        numbers,
        (
            (
                figure,
                "Three draws from the prior, the empirical embedding of 50 points, and the posterior with the truth.",
            ),
        ),
        tuple(rows),
        (
            (
                "The paper draws one example, promises closed-form uncertainty (section 4.2) and states no "
                "coverage, so that the claims are ours. It does not state its mixture: ours has three normals of "
                "equal weight, with means −1.5, 0 and 1.2 and standard deviation 0.4. Coverage is the share of 101 "
                "places between −2.5 and 2.5 where the interval contains the true embedding, averaged over "
                "samples. The paper's lengthscale is 0.25 in the text and 0.1 in the caption; here it is 0.25."
            ),
            (
                "As printed, errors at different landmarks are independent with variance τ²/n, where τ² = 1, and "
                "the landmarks are the data. The denser the landmarks, the narrower are the bands, whatever the "
                "data."
            ),
        ),
    )


CASES = ("50 points, lengthscale 0.25", "400 points, lengthscale 0.25", "400 points, lengthscale 1")
EXPERIMENT = Experiment(
    "kernel-learning-figure-1",
    "Prior, estimate and posterior of a mean embedding",
    "Flaxman et al. (2016), figure 1",
    (
        Claim(
            "80% intervals with the printed noise cover the truth in about 80% of places",
            tuple(f"printed noise, {case}" for case in CASES),
            0.75,
            0.85,
            ours=True,
        ),
        Claim(
            "80% intervals with the empirical covariance as noise cover it in about 80% of places",
            tuple(f"empirical noise, {case}" for case in CASES),
            0.75,
            0.85,
            ours=True,
        ),
    ),
    {"smoke": 0.3, "quick": 1.0, "paper": 3.0},
    run,
)
