"""The demo's part on Gram matrices of any data, features, and embeddings of samples too large for a Gram matrix."""

import time

import numpy as np

from meanmap import features, kernels
from meanmap.learning import default_kernel, median_heuristic
from meanmap.plots.page import Section

__all__ = ["sections"]


def sections(rng: np.random.Generator) -> list[Section]:
    """One section per basic idea."""
    return [_gram(rng), _features(rng), _pivots(rng), _embedding(rng)]


def _canvas(columns: int = 1):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * columns, 3.2), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, columns))


def _gram(rng: np.random.Generator) -> Section:
    n = 60
    group = np.repeat(["north", "south"], n // 2)
    table = {
        "height": np.where(group == "north", 180.0, 168.0) + rng.normal(scale=3, size=n),
        "weight": np.where(group == "north", 80.0, 66.0) + rng.normal(scale=4, size=n),
        "region": group,
    }
    mixed = default_kernel(table)(table)
    x = rng.normal(size=(4000, 10))
    k = kernels.RBF(median_heuristic(x))
    difference = np.abs(k(x) - _gram_in_numpy(x, float(k.lengthscale))).max()
    figure, (axes,) = _canvas()
    image = axes.imshow(mixed, cmap="viridis", vmin=0, vmax=1)
    axes.set(title="k(table) for 60 people", xlabel="person", ylabel="person")
    figure.colorbar(image, ax=axes)
    return Section(
        "Kernels for any kind of data",
        f"4000 points in 10 dimensions: the Gram matrix and that of NumPy by hand differ by {difference:.0e} at most.",
        "Inputs may be lists, NumPy and JAX arrays, pandas, polars and sparse matrices; JAX arrays give JAX arrays, "
        "all others NumPy. The picture is "
        "the default kernel of a table with two numeric columns and one of labels.",
        "k = mm.default_kernel(table)\nk(table)",
        ((figure, "Gram matrix of a mixed table: two blocks, since people from one region are similar."),),
    )


def _features(rng: np.random.Generator) -> Section:
    x = rng.normal(size=(300, 5))
    k = kernels.RBF(2.0)
    exact = k(x)
    sizes = np.array([10, 20, 50, 100, 200, 500, 1000, 2000, 5000]) * 2
    errors = {}
    for orthogonal in (False, True):
        draws = [features.Fourier.draw(k, x, int(size), orthogonal=orthogonal, rng=rng)(x) for size in sizes]
        errors[orthogonal] = [np.sqrt(np.mean((phi @ phi.T - exact) ** 2)) for phi in draws]
    figure, (axes,) = _canvas()
    axes.loglog(sizes, errors[False], "o-", label="random")
    axes.loglog(sizes, errors[True], "s-", label="orthogonal")
    axes.loglog(sizes, errors[False][0] * np.sqrt(sizes[0] / sizes), ":", color="grey", label="rate D^(-1/2)")
    axes.set(xlabel="features D", ylabel="rms error of the Gram matrix", title="Random Fourier features")
    axes.legend()
    return Section(
        "Random features",
        f"With {sizes[-1]} random features the Gram matrix is right to {errors[False][-1]:.1e}; orthogonal ones reach "
        f"{errors[True][-1]:.1e}.",
        "Every shift-invariant kernel has random Fourier features. Their error decreases like one over the square root "
        "of their number, in any dimension.",
        "phi = mm.features.Fourier.draw(k, x, n_features=1000, orthogonal=True, rng=0)\nphi(x) @ phi(x).T   # ≈ k(x)",
        ((figure, "Error of random features against their number; the theoretical rate is dotted."),),
    )


def _pivots(rng: np.random.Generator) -> Section:
    angle = rng.uniform(0, 2 * np.pi, 20_000)
    x = np.c_[np.cos(angle), np.sin(2 * angle)] + 0.1 * rng.normal(size=(20_000, 2))
    phi, seconds = _timed(lambda: features.PivotedCholesky.fit(kernels.RBF(0.3), x, tolerance=1e-6))
    figure, (left, right) = _canvas(2)
    left.semilogy(phi.report.residuals)
    left.set(xlabel="features r", ylabel="trace(K − ΦΦᵀ) / trace(K)", title="Certified error")
    right.plot(*x[::10].T, ".", ms=1, color="lightgrey")
    right.plot(*np.asarray(phi.pivots)[:60].T, "o", ms=3, color="C3")
    right.set(title="The first 60 points chosen", aspect="equal")
    return Section(
        "Gram matrices without n² memory",
        f"20,000 points, {phi.size} features, relative trace error {phi.relative_error:.0e}, in {seconds:.1f} s.",
        "Pivoted incomplete Cholesky adds the point that is represented worst so far. The remainder is positive "
        "semidefinite, so its trace bounds every error: the number is a certificate, not an estimate.",
        "phi = mm.features.PivotedCholesky.fit(k, x, tolerance=1e-6)\nphi.relative_error",
        ((figure, "Left: error against features, on a logarithmic scale. Right: the first points that were chosen."),),
    )


def _embedding(rng: np.random.Generator) -> Section:
    n = 20_000
    p = rng.normal(size=n)
    q = np.where(rng.random(n) < 0.5, rng.normal(-0.8, 0.6, n), rng.normal(0.8, 0.6, n))
    grid = np.linspace(-4, 4, 200)
    k = kernels.RBF(0.3)
    (mean_p, mean_q), seconds = _timed(lambda: (k.mean(grid, p), k.mean(grid, q)))
    figure, (axes,) = _canvas()
    axes.plot(grid, mean_p, label="μ_P: one bump")
    axes.plot(grid, mean_q, label="μ_Q: two bumps, same mean and variance")
    axes.plot(grid, mean_p - mean_q, color="black", label="witness μ_P − μ_Q")
    axes.axhline(0, color="grey", lw=0.8)
    axes.set(title="Two distributions as functions", xlabel="x", ylim=(-0.08, 0.46))
    axes.legend(fontsize="small", loc="upper center")
    worst = grid[np.argmax(np.abs(mean_p - mean_q))]
    return Section(
        "A distribution is a function",
        f"The two samples of {n} differ most near x = {round(worst, 1) + 0.0:g}; both embeddings took {seconds:.2f} s.",
        "A mean embedding is the average of the kernel over a sample. Where two embeddings differ, the distributions "
        "do: their difference is the witness function of the two-sample test. Sums over large samples are streamed.",
        "k.mean(grid, p) - k.mean(grid, q)",
        ((figure, "Mean embeddings of a Gaussian and a two-bump sample, and their difference."),),
    )


def _timed(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def _gram_in_numpy(x: np.ndarray, lengthscale: float) -> np.ndarray:
    """What a user would write by hand, for comparison."""
    squares = (x**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * x @ x.T
    return np.exp(-np.maximum(distances, 0) / (2 * lengthscale**2))
