"""How well random features approximate their kernels, by the number in each stage (draft, appendix B)."""

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# The squared width of the draft's embedding kernel.
WIDTH = 3.0
INNER = OUTER = (50, 100, 200, 400, 800)


def run(setting: Setting) -> Outcome:
    """Gram matrices of one-dimensional Gaussians, exact and by random features."""
    from matplotlib import pyplot
    from matplotlib.ticker import NullLocator

    from meanmap import ep
    from meanmap.features import TwoStage
    from meanmap.kernels import RBF
    from meanmap.kernels.distributions import EmbeddingGaussian, ExpectedProduct

    size, repeats = setting.choose(smoke=(100, 2), quick=(300, 5), paper=(1000, 20))
    inner, outer = setting.choose(smoke=((50, 400), (50, 400)), quick=(INNER[::2], OUTER[::2]), paper=(INNER, OUTER))
    rng = setting.rng(0)
    messages = ep.Normal(3 * rng.normal(size=size), rng.gamma(2.0, 1.0, size))
    expected = ExpectedProduct(RBF(np.sqrt(WIDTH)))
    gaussian = EmbeddingGaussian.around(expected, messages)
    exact, gram = expected(messages), gaussian(messages)

    def off(kernel, truth, d_in, d_out):
        errors = []
        for at in range(repeats):
            seed = int(setting.rng(1, d_in, d_out, at).integers(2**31))
            phi = TwoStage.draw(kernel, like=messages, d_in=d_in, d_out=d_out, rng=seed)(messages)
            errors.append((np.abs(phi @ phi.T - truth).max(), np.linalg.norm(phi @ phi.T - truth)))
        return np.array(errors)

    each = np.array([off(expected, exact, d, d)[:, 0] for d in outer])  # (D, repeats)
    every = np.array([[off(gaussian, gram, d_in, d_out)[:, 1] for d_out in outer] for d_in in inner])
    largest, norms = each.mean(axis=-1), every.mean(axis=-1)
    slopes = np.polyfit(np.log(outer), np.log(each), 1)[0]  # one for each repeat
    slope = float(slopes.mean())
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    left.loglog(outer, largest, "o-")
    left.loglog(outer, largest[0] * np.sqrt(outer[0] / np.array(outer)), ":", color="0.6", label="D^(−1/2)")
    left.set(xlabel="features D", ylabel="largest error of an entry", title="expected product kernel")
    left.legend(frameon=False)
    for d_in, row in zip(inner, norms, strict=True):
        right.loglog(outer, row, "o-", label=f"D_in = {d_in}")
    right.set(xlabel="D_out", ylabel="Frobenius norm of the error", title="Gaussian kernel on embeddings")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xticks(outer, [str(d) for d in outer])
        axes.xaxis.set_minor_locator(NullLocator())
    gain, other = norms[-1, 0] / norms[-1, -1], norms[0, -1] / norms[-1, -1]
    numbers = {
        "slope of the error": Number.mean(slopes),
        "log lead of outer features": Number.mean(np.log(every[-1, 0] / every[0, -1])),
    }
    text = (
        f"The largest error of an entry of a Gram matrix is proportional to D^{slope:.2f}. With two stages, "
        f"{outer[-1] // outer[0]} times as many outer features divide the error by {gain:.1f}, and "
        f"{inner[-1] // inner[0]} times as many inner ones by {other:.1f}."
    )
    caption = f"Means over {repeats} draws of the features, for {size} messages and a squared inner width of {WIDTH:g}."
    table = [("D_in", *(f"D_out = {d}" for d in outer))]
    table += [(str(d_in), *(f"{value:.2f}" for value in row)) for d_in, row in zip(inner, norms, strict=True)]
    return Outcome(text, numbers, ((figure, caption),), tuple(table))


EXPERIMENT = Experiment(
    "messages-features",
    "Random features against the kernels they stand for",
    "Jitkrittum et al. (2015), draft, appendix B: the figures of sections B.3 and B.5",
    (
        Claim(
            "the error falls like D^(−1/2): its exponent",
            "slope of the error",
            -0.65,
            -0.35,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "D_out matters more than D_in (B.5): 16 times as many divide the error by more (the natural logarithm of "
            "the ratio of the two factors)",
            "log lead of outer features",
            low=0.0,
        ),
    ),
    {"smoke": 0.1, "quick": 0.5, "paper": 1},
    run,
)
