"""Theorems 1 and 2: operators of one edge converge with the number of pairs, measured where the truth is known."""

from functools import partial

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT", "errors", "spectrum", "truth"]

# Angles x uniform on the circle and y = x + noise: cosines and sines of j x are the features of a kernel with weights
# a_j, and diagonalise every operator. With noise this smooth the conditions of both theorems hold.
WAVES, NOISE = 20, 1.5
CHUNK = 20_000
# λ balances both terms of a bound: λ^½ + λ^(−3/2) m^(−½), and λ^½ + λ^(−2) m^(−½).
THEOREMS = {"conditional embedding": (-1 / 4, -1 / 8), "likelihood operator": (-1 / 5, -1 / 10)}


def spectrum() -> np.ndarray:
    """Weights a_j of the kernel Σ a_j cos(j (x − x')), which is 1 where x = x'."""
    weights = (1.0 + np.arange(WAVES + 1)) ** -2.0
    return weights / weights.sum()


def features(angles: np.ndarray) -> np.ndarray:
    """(n, 2 WAVES + 1) of angles (n,)."""
    phases = angles[:, None] * np.arange(1, WAVES + 1)
    root = np.sqrt(spectrum())
    return np.concatenate([np.full((len(angles), 1), root[0]), root[1:] * np.cos(phases), root[1:] * np.sin(phases)], 1)


def truth() -> tuple[np.ndarray, np.ndarray]:
    """Diagonals of C_YX C_XX⁻¹ and of C_YY⁻¹ C_YX C_XX⁻¹."""
    kept = np.exp(-(np.arange(WAVES + 1) ** 2) * NOISE**2 / 2)  # E cos(j noise)
    variance = spectrum() * np.where(np.arange(WAVES + 1) == 0, 1.0, 0.5)
    both = [np.concatenate([each, each[1:]]) for each in (kept, kept / variance)]
    return both[0], both[1]


def errors(rng: np.random.Generator, pairs: int) -> list[float]:
    """Hilbert-Schmidt norms of the errors of both operators over those of the truth, λ as the theorems balance it."""
    size = 2 * WAVES + 1
    xx, yx, yy = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    for begin in range(0, pairs, CHUNK):
        x = rng.uniform(-np.pi, np.pi, min(CHUNK, pairs - begin))
        first, second = features(x), features(x + NOISE * rng.normal(size=len(x)))
        xx, yx, yy = xx + first.T @ first, yx + second.T @ first, yy + second.T @ second
    found = []
    for (power, _), diagonal in zip(THEOREMS.values(), truth(), strict=True):
        ridge = pairs**power * np.eye(size)
        operator = np.linalg.solve(xx / pairs + ridge, yx.T / pairs).T
        if len(found) == 1:
            operator = np.linalg.solve(yy / pairs + ridge, operator)
        found.append(float(np.linalg.norm(operator - np.diag(diagonal)) / np.linalg.norm(diagonal)))
    return found


def run(setting: Setting) -> Outcome:
    """Errors for all numbers of pairs, and the exponents of their fall."""
    from matplotlib.figure import Figure

    sizes = setting.choose(smoke=(100, 1000), quick=(100, 1000, 10_000), paper=(100, 1000, 10_000, 100_000, 1_000_000))
    repeats = setting.choose(smoke=2, quick=10, paper=20)
    found = np.array(
        [[setting.part(f"{m}, {at}", partial(errors, setting.rng(m, at), m)) for m in sizes] for at in range(repeats)]
    )  # (repeats, sizes, theorems)
    numbers, rows = {}, [("operator", *(f"m = {m:,}" for m in sizes))]
    figure = Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    for at, (name, (_, rate)) in enumerate(THEOREMS.items()):
        slopes = np.polyfit(np.log(sizes), np.log(found[..., at]).T, 1)[0]
        numbers[f"exponent, {name}"] = Number.mean(slopes)
        last = np.log(found[:, -1, at] / found[:, -2, at]) / np.log(sizes[-1] / sizes[-2])
        numbers[f"exponent of the last step, {name}"] = Number.mean(last)
        rows.append((name, *(str(Number.mean(found[:, m, at])) for m in range(len(sizes)))))
        (line,) = axes.loglog(sizes, found[..., at].mean(axis=0), "o-", ms=4, label=name)
        bound = found[:, 0, at].mean() * (np.array(sizes) / sizes[0]) ** rate
        axes.loglog(sizes, bound, ":", color=line.get_color(), label=f"m^{rate:g}")
    axes.set(xlabel="pairs", ylabel="relative error")
    axes.legend(fontsize="small")
    told = "; ".join(f"{name} {numbers[f'exponent of the last step, {name}']}" for name in THEOREMS)
    return Outcome(
        f"Between the two largest m errors fall like powers of m with these exponents: {told}. The rates of the "
        "theorems are −1/8 and −1/10 or below.",
        numbers,
        ((figure, "Errors of both operators against the number of pairs; dotted, the rates of the theorems."),),
        tuple(rows),
        (
            (
                "The theorems bound errors by λ^½ + λ^(−3/2) m^(−½) and λ^½ + λ^(−2) m^(−½). Up to the constants "
                "√3 and 4^(2/5) these are least at λ = m^(−1/4) and m^(−1/5), which are used here. The theorems "
                "are about m → ∞, so that the two largest numbers of pairs m are judged."
            ),
            (
                "x is uniform on a circle and y = x + noise, so that sines and cosines are eigenfunctions of all "
                "operators, and the true operators are diagonal. The paper has no such experiment."
            ),
        ),
    )


EXPERIMENT = Experiment(
    "trees-theorems-1-2",
    "Convergence of conditional embeddings and likelihood operators",
    "Song, Gretton & Guestrin (2010), theorems 1 and 2",
    tuple(
        Claim(
            f"{words} at least like m^({fraction}) from 100,000 to a million pairs already ({place})",
            f"exponent of the last step, {name}",
            high=rate,
            scales=("paper",),
            ours=True,
        )
        for (name, (_, rate)), words, fraction, place in zip(
            THEOREMS.items(),
            ("errors of conditional embeddings fall", "errors of likelihood operators fall"),
            ("−1/8", "−1/10"),
            ("the rate of theorem 1", "the rate of theorem 2"),
            strict=True,
        )
    ),
    {"smoke": 0.1, "quick": 0.1, "paper": 1},
    run,
)
