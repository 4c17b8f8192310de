"""Theorem 3: beliefs at the end of a chain converge with the number of pairs, more slowly for longer chains."""

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# Correlation along an edge: after eight edges the evidence still determines a fifth of the standard deviation.
CORRELATION = 0.95


def relative_error(rng: np.random.Generator, pairs: int, depth: int, ridge: float | None) -> float:
    """‖B̂ − B‖ / ‖B‖ in the RKHS of a Gaussian kernel of width 1, for evidence `depth` edges away."""
    from meanmap import KernelGraph, embed, families, kernels
    from meanmap.embeddings import PointEmbedding

    table = [rng.normal(size=pairs)]
    for _ in range(depth):
        table.append(CORRELATION * table[-1] + np.sqrt(1 - CORRELATION**2) * rng.normal(size=pairs))
    seen = float(np.clip(rng.normal(), -1.5, 1.5))
    model = KernelGraph([(i, i + 1) for i in range(depth)], ridge=ridge).fit(np.stack(table, axis=1))
    belief = model.query({0: seen}, targets=[depth])[depth]
    kernel, share = kernels.RBF(1.0), CORRELATION**depth
    found = PointEmbedding(kernel, belief.points, belief.weights, True)
    truth = embed(families.Normal(share * seen, 1 - share**2), kernel)
    return float((found - truth).norm() / truth.norm())


def run(setting: Setting) -> Outcome:
    """Errors for all numbers of pairs and depths, and the exponent of their fall."""
    from matplotlib.figure import Figure

    sizes = setting.choose(smoke=(40, 160), quick=(100, 300, 1000), paper=(100, 300, 1000, 3000))
    depths = setting.choose(smoke=(1, 3), quick=(1, 4), paper=(1, 2, 4, 8))
    repeats = setting.choose(smoke=4, quick=6, paper=20)
    ways = {"chosen": lambda m: None, "λ = m^(−1/5)": lambda m: m ** (-1 / 5)}

    def measured(way: str, repeat: int, depth: int, m: int) -> float:
        rng, ridge = setting.rng(repeat, depth, m), ways[way](m)
        return setting.part(f"{way}, {repeat}, {depth}, {m}", lambda: relative_error(rng, m, depth, ridge))

    # errors[way]: (repeats, depths, sizes)
    errors = {
        way: np.array([[[measured(way, run, depth, m) for m in sizes] for depth in depths] for run in range(repeats)])
        for way in ways
    }
    numbers = {}
    for way, found in errors.items():
        word = "chosen" if way == "chosen" else "rule"
        logs = np.log(found)
        spread = np.log(sizes) - np.mean(np.log(sizes))
        slopes = (logs * spread).sum(axis=-1) / (spread**2).sum()  # (repeats, depths)
        for depth, slope in zip(depths, slopes.T, strict=True):
            numbers[f"exponent, {word}, depth {depth}"] = Number.mean(slope)
        numbers[f"largest exponent, {word}"] = max(
            (Number.mean(slope) for slope in slopes.T), key=lambda number: number.value
        )
        growth = logs[:, -1].mean(axis=-1) - logs[:, 0].mean(axis=-1)
        numbers[f"log growth with depth, {word}"] = Number.mean(growth)
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axes, (way, found) in zip(figure.subplots(1, 2, sharey=True), errors.items(), strict=True):
        for i, depth in enumerate(depths):
            mean, error = found[:, i].mean(axis=0), found[:, i].std(axis=0, ddof=1) / np.sqrt(repeats)
            axes.errorbar(sizes, mean, error, label=f"depth {depth}", marker="o", markersize=3)
        axes.set(xscale="log", yscale="log", xlabel="pairs", title=way)
    figure.axes[0].set(ylabel="relative error of the belief")
    figure.axes[0].legend(fontsize="small")
    rows = [("depth", *(f"m = {m}" for m in sizes))]
    rows += [(str(d), *(f"{v:.3f}" for v in errors["chosen"][:, i].mean(axis=0))) for i, d in enumerate(depths)]
    worst = numbers["largest exponent, chosen"]
    return Outcome(
        "With λ chosen from the data errors fall with the number of pairs m at every depth, like m to the power "
        f"{worst} or faster; with the rule λ = m^(−1/5) of the theorem this power is "
        f"{numbers['largest exponent, rule']}.",
        numbers,
        ((figure, "Error of the belief at the end of a chain against the number of pairs; longer chains lie higher."),),
        tuple(rows),
        (
            (
                "Theorem 3 bounds the error by λ^(1/2) + λ^(−2) m^(−1/2), times a factor R^depth. The bound is least, "
                "up to a constant, at λ = m^(−1/5), where it falls like m^(−1/10). It is an upper bound, so that "
                "errors may fall faster. The factor is not measured, only that errors grow with the depth."
            ),
            (
                "“Log growth with depth” is the logarithm of the ratio of two errors: that at the largest depth "
                "and that at the smallest, averaged over numbers of pairs."
            ),
            "Variables are normal. Beliefs are compared as embeddings, whose true values are known in closed form.",
            f"Numbers are means over {repeats} repetitions.",
        ),
    )


EXPERIMENT = Experiment(
    id="trees-theorem-3",
    title="Convergence of beliefs along chains of growing depth",
    source="Song, Gretton & Guestrin (2010), theorem 3",
    claims=(
        Claim(
            "errors fall at least like m^(−1/10) up to 3000 pairs already where λ = m^(−1/5)",
            "largest exponent, rule",
            high=-0.1,
            ours=True,
        ),
        Claim("errors fall at least like m^(−1/10) with λ chosen", "largest exponent, chosen", high=-0.1, ours=True),
        Claim(
            "errors grow with the depth of the chain where λ = m^(−1/5), as the bound does",
            "log growth with depth, rule",
            low=0.0,
            ours=True,
        ),
    ),
    minutes={"smoke": 0.5, "quick": 2, "paper": 11},
    run=run,
)
