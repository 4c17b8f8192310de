"""R^h of theorem 3: how the error of a belief grows with its distance from the evidence, messages as they are."""

from functools import partial

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting
from meanmap_papers.trees.operators import WAVES, features, spectrum

__all__ = ["EXPERIMENT", "bound", "errors", "true_messages"]

# Angles on a chain, each the one before plus noise: after eight edges the evidence still tells half of a circle.
NOISE, DEPTH = 0.5, 8
READINGS = ("as they are", "with mass one")


def _both(weights: np.ndarray) -> np.ndarray:
    """Numbers of each wave as numbers of each feature, cosines and sines."""
    return np.concatenate([weights, weights[1:]])


KEPT = _both(np.exp(-(np.arange(WAVES + 1) ** 2) * NOISE**2 / 2))  # diagonal of the true conditional embedding
VARIANCE = _both(spectrum() * np.where(np.arange(WAVES + 1) == 0, 1.0, 0.5))


def true_messages(seen: float) -> np.ndarray:
    """Coordinates of p(seen | x)/p(seen) at nodes 1 to DEPTH edges away, (DEPTH, features)."""
    first = KEPT / VARIANCE * features(np.array([seen]))[0]
    return first * KEPT ** np.arange(DEPTH)[:, None]


def bound(seen: float) -> np.ndarray:
    """Σ R^i over the nodes of a chain of 1 to DEPTH edges, R the largest of the constants 7 to 9 of the proof."""
    messages = true_messages(seen)
    sizes = np.linalg.norm(messages, axis=1)
    beliefs = np.linalg.norm(VARIANCE * messages, axis=1)
    constant = max((sizes[:-1] / sizes[1:]).max(), (sizes / beliefs).max(), 1 / sizes[0])
    return np.cumsum(constant ** np.arange(DEPTH + 1))[1:]


def errors(rng: np.random.Generator, pairs: int) -> list[list[float]]:
    """‖B̂ − B‖/‖B‖ at 1 to DEPTH edges from the evidence: of messages as they are, and of beliefs with mass one.

    Each edge has pairs of its own, and λ = m^(−1/5). Last, the bound of the theorem up to a constant.
    """
    seen = float(rng.uniform(-np.pi, np.pi))
    truth, found = VARIANCE * true_messages(seen), []
    message, ridge = features(np.array([seen]))[0], pairs ** (-1 / 5) * np.eye(len(KEPT))
    for depth in range(DEPTH):
        parent = rng.uniform(-np.pi, np.pi, pairs)
        first, second = features(parent), features(parent + NOISE * rng.normal(size=pairs))
        xx, yx, yy = first.T @ first / pairs, second.T @ first / pairs, second.T @ second / pairs
        if depth == 0:  # the likelihood of what was seen
            message = np.linalg.solve(yy + ridge, message)
        message = np.linalg.solve(xx + ridge, yx.T @ message)
        found.append(xx @ message)
    beliefs = np.array(found)
    scaled = beliefs * (truth[:, 0] / beliefs[:, 0])[:, None]
    sizes = np.linalg.norm(truth, axis=1)
    return [
        *((np.linalg.norm(each - truth, axis=1) / sizes).tolist() for each in (beliefs, scaled)),
        bound(seen).tolist(),
    ]


def run(setting: Setting) -> Outcome:
    """Errors at all depths, the factor by which an edge multiplies them, and the growth that the theorem allows."""
    from matplotlib.figure import Figure

    sizes = setting.choose(smoke=(300,), quick=(1000, 10_000), paper=(1000, 10_000, 100_000))
    repeats = setting.choose(smoke=3, quick=10, paper=20)
    found = np.array(
        [[setting.part(f"{m}, {at}", partial(errors, setting.rng(m, at), m)) for m in sizes] for at in range(repeats)]
    )  # (repeats, sizes, readings and bound, depths)
    numbers: dict[str, Number] = {}
    rows: list[tuple[str, ...]] = [("messages", "pairs", "1 edge", *(f"{h + 1} edges" for h in range(1, DEPTH)))]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for at, (axes, name) in enumerate(zip(figure.subplots(1, 2, sharey=True), READINGS, strict=True)):
        for i, m in enumerate(sizes):
            each = found[:, i, at]
            rows.append((name, f"{m:,}", *(str(Number.mean(each[:, h])) for h in range(DEPTH))))
            spread = each.std(axis=0, ddof=1) / np.sqrt(repeats)
            axes.errorbar(np.arange(1, DEPTH + 1), each.mean(axis=0), spread, fmt="o-", ms=4, label=f"{m:,} pairs")
        last = np.log(found[:, -1, at])
        numbers[f"growth of the error by an edge, {name}"] = Number.mean(
            np.exp((last[:, -1] - last[:, 0]) / (DEPTH - 1))
        )
        allowed = np.log(found[:, -1, 2] / found[:, -1, 2, :1])
        room = allowed[:, 1:] - (last[:, 1:] - last[:, :1])
        numbers[f"least room below the bound, {name}"] = min(
            (Number.mean(each) for each in room.T), key=lambda number: number.value
        )
        axes.set(xlabel="edges from the evidence", yscale="log", title=f"messages {name}")
    figure.axes[0].set_ylabel("relative error of the belief")
    figure.axes[0].legend(fontsize="small")
    # Growth of the bound by the last edge, which is the same wherever on the circle the evidence is.
    numbers["R of the theorem"] = Number(float((found[:, -1, 2, -1] / found[:, -1, 2, -2]).mean()), 0.0)
    growth = {name: numbers[f"growth of the error by an edge, {name}"].value for name in READINGS}
    told = " and ".join(f"{value:.3g} (messages {name})" for name, value in growth.items())
    return Outcome(
        f"With {sizes[-1]:,} pairs each edge more between evidence and belief multiplies the error by {told} on "
        f"average, and the bound of the theorem by {numbers['R of the theorem'].value:.3g}.",
        numbers,
        ((figure, "Error of the belief against its distance from the evidence, for several numbers of pairs."),),
        tuple(rows),
        (
            (
                "The variables are angles on a chain, each the one before plus normal noise, so that operators and "
                "beliefs are known. λ = m^(−1/5) on every edge, which has pairs of its own; messages are neither "
                "scaled nor clipped. “With mass one” the belief is divided by its integral, in which the shrinkage "
                "by λ cancels. These errors fall with the distance, because evidence fades, and far away all "
                "beliefs are near the marginal."
            ),
            (
                "R is the largest of the constants (7) to (9) of the proof at the true messages, and the bound "
                "after h edges is proportional to S_h = 1 + R + … + R^h. “Room below the bound” says by how much "
                "the bound has outgrown the error e_h: it is the smallest of log(S_h / S_1) − log(e_h / e_1) over "
                "h, and would be negative if the error had outgrown the bound. It is not judged: these errors are "
                "relative and end near 1, so that they could hardly exceed the bound."
            ),
        ),
    )


EXPERIMENT = Experiment(
    "trees-theorem-3-depth",
    "Theorem 3: errors against the distance from the evidence",
    "Song, Gretton & Guestrin (2010), theorem 3; its proof, and a measurement of ours",
    (
        Claim(
            "the error of messages as they are grows with each edge, on average: its factor",
            "growth of the error by an edge, as they are",
            low=1.0,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.1, "quick": 0.1, "paper": 0.5},
    run,
)
