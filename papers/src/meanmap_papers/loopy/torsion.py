"""Torsion angles of chains from their residues: points on a torus, related along the chain."""

from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

# Helix, strand, coil, left-handed helix: means of φ and ψ in degrees, how concentrated both are, how ψ follows φ,
# and the probabilities of what comes next.
MEANS = np.radians([[-63, -43], [-118, 134], [-70, 148], [57, 40]])
CONCENTRATION = np.array([[40.0, 40.0], [10.0, 12.0], [14.0, 8.0], [20.0, 15.0]])
SLOPE = np.array([-0.7, 0.3, 0.0, -0.5])
NEXT = np.array([[0.91, 0.01, 0.07, 0.01], [0.01, 0.84, 0.13, 0.02], [0.12, 0.2, 0.6, 0.08], [0.15, 0.1, 0.6, 0.15]])
LETTERS = 20
ALPHABET = np.array(list("ACDEFGHIKLMNPQRSTVWY"))  # of amino acids
LENGTH = 40
METHODS = (
    "kernel belief propagation",
    "mean angle of each letter",
    "discrete belief propagation",
    "Gaussian belief propagation",
    "the best possible",
)
# Rivals of the abstract that these pages have for numbers only, and not for angles.
NOT_RUN = ("particle belief propagation", "mixtures of Gaussians")
LENGTHSCALES = (0.25, 0.5, 1.0)
# Bins of each angle, and what is added to each count.
DISCRETE = tuple((bins, added) for bins in (6, 12) for added in (1e-3, 1e-2, 1e-1))


def run(setting: Setting) -> Outcome:
    """Angular errors on held-out chains."""
    from matplotlib import pyplot

    train = setting.choose(smoke=30, quick=100, paper=200)
    test = setting.choose(smoke=10, quick=50, paper=100)
    repeats = setting.choose(smoke=1, quick=3, paper=6)
    errors: list[Any] = []
    held: tuple[Any, ...] = ()
    found: list[Any] = []
    for repeat in range(repeats):
        rng = setting.rng(repeat)
        emission = np.exp(1.2 * rng.normal(size=(len(MEANS), LETTERS)))
        emission /= emission.sum(axis=1, keepdims=True)
        angles, letters = chains(train + test, emission, rng)
        learn, held = (angles[:train], letters[:train]), (angles[train:], letters[train:])
        found = [*learned(*learn, held[1]), best_possible(held[1], emission, rng)]
        errors.append([loss(guess, held[0]).mean() for guess in found])
    # (methods, repetitions): chains of one repetition share a training set, letters and fitted models.
    each = np.array(errors).T
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 3.4), sharex=True, sharey=True, layout="constrained")
    for axis, cloud, title in zip(axes, (held[0], found[0], found[3]), ("truth", *METHODS[0::3]), strict=True):
        degrees = np.degrees(cloud if title == "truth" else np.angle(cloud)).reshape(-1, 2)
        axis.scatter(*degrees[:3000].T, s=2, alpha=0.3)
        axis.set(title=title, xlabel="φ, degrees", xlim=(-180, 180), ylim=(-180, 180))
    axes[0].set(ylabel="ψ, degrees")
    numbers = {}
    for i, name in enumerate(METHODS):
        gain = each[i] - each[0]
        if i:
            numbers[f"below {name}"] = Number.mean(gain)
    ours, best = each[1] - each[0], each[1] - each[-1]
    numbers |= {f"below {name}": Number(np.nan) for name in NOT_RUN}
    numbers["share of what neighbours can tell"] = Number.ratio(ours, best)
    table = [("method", "mean 1 − cos of the error", "standard error", "angle of that cosine")]
    for name, values in zip(METHODS, each, strict=True):
        angle = f"{np.degrees(np.arccos(1 - values.mean())):.1f}°"
        spread = f"{values.std(ddof=1) / np.sqrt(values.size):.4f}" if values.size > 1 else ""
        table.append((name, f"{values.mean():.4f}", spread, angle))
    return Outcome(
        f"Mean 1 − cos of the error of angles in {repeats * test} simulated chains that were left out: "
        + ", ".join(f"{values.mean():.3f} ({name})" for name, values in zip(METHODS, each, strict=True))
        + ".",
        numbers,
        ((figure, "Angles: the truth, and means of beliefs by kernel and by Gaussian belief propagation."),),
        tuple(table),
        notes=(
            (
                "The paper's proteins are not available: all results here are for simulated chains, not for proteins. "
                "Chains are drawn from a hidden Markov model of four secondary structures with von Mises "
                "angles, whose posterior is the best possible. "
                "`meanmap.datasets.torsion_angles` reads angles of real proteins."
            ),
            (
                "The lengthscale, and bins and smoothing of the discrete model, are chosen on the last fifth of the "
                "training chains. The Gaussian model is joint over cosines and sines of neighbours, and indicators of "
                "letters. Particles and mixtures are left out: their relations are densities on the real line, "
                "not on the torus."
            ),
            (
                f"A repetition has its own training set, letters and fitted models, and {test} test chains. Standard "
                f"errors are those of the means of {repeats} repetitions."
            ),
        ),
    )


def chains(number: int, emission: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Angles (number, LENGTH, 2) and letters (number, LENGTH) from the hidden Markov model."""
    state = np.empty((number, LENGTH), dtype=np.int64)
    state[:, 0] = rng.choice(len(MEANS), size=number, p=_stationary())
    for t in range(1, LENGTH):
        state[:, t] = (rng.random((number, 1)) > np.cumsum(NEXT[state[:, t - 1]], axis=1)[:, :-1]).sum(axis=1)
    letters = (rng.random((number, LENGTH, 1)) > np.cumsum(emission[state], axis=-1)[..., :-1]).sum(axis=-1)
    return angles_of(state, rng), letters


def angles_of(state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """φ and ψ for each state."""
    phi = rng.vonmises(0, CONCENTRATION[state, 0])
    psi = MEANS[state, 1] + SLOPE[state] * phi + rng.vonmises(0, CONCENTRATION[state, 1])
    return np.angle(np.exp(1j * np.stack([MEANS[state, 0] + phi, psi], axis=-1)))


def _stationary() -> np.ndarray:
    return np.linalg.matrix_power(NEXT, 200)[0]


def loss(guess: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """1 − cos of the error (chains, LENGTH · 2), from guesses as complex numbers whose angle counts."""
    return (1 - np.cos(np.angle(guess) - angles)).reshape(len(angles), -1)


def learned(angles: np.ndarray, letters: np.ndarray, new: np.ndarray) -> list[np.ndarray]:
    """Guesses for chains of new letters, by all methods that learn."""
    kept = len(angles) * 4 // 5
    tune = lambda guess: float(loss(guess, angles[kept:]).mean())  # noqa: E731
    early = angles[:kept], letters[:kept], letters[kept:]
    lengthscale = min(LENGTHSCALES, key=lambda option: tune(kernel(*early, option)))
    bins, added = min(DISCRETE, key=lambda option: tune(discrete(*early, *option)))
    mean = np.array([np.exp(1j * angles[letters == letter]).mean(axis=0) for letter in range(LETTERS)])
    return [
        kernel(angles, letters, new, lengthscale),
        mean[new],
        discrete(angles, letters, new, bins, added),
        gaussian(angles, letters, new),
    ]


def kernel(angles: np.ndarray, letters: np.ndarray, new: np.ndarray, lengthscale: float) -> np.ndarray:
    """Mean directions of beliefs on the torus, from operators along the chain and a likelihood operator of letters."""
    import meanmap as mm

    field = mm.KernelField(
        [(t, t + 1) for t in range(LENGTH - 1)],
        relations=["next"] * (LENGTH - 1),
        kernels=mm.kernels.Torus(lengthscale),
    ).fit(
        {"next": (angles[:, :-1].reshape(-1, 2), angles[:, 1:].reshape(-1, 2))},
        observed=(angles.reshape(-1, 2), ALPHABET[letters.ravel()]),
    )
    beliefs = field.query(observed=ALPHABET[new])
    return np.stack([beliefs[t].weights @ np.exp(1j * beliefs[t].points) for t in range(LENGTH)], axis=1)


def discrete(angles: np.ndarray, letters: np.ndarray, new: np.ndarray, bins: int, added: float) -> np.ndarray:
    """Angles by discrete belief propagation, with smoothed counts of bins of both angles."""
    from meanmap import bp

    place: Any = np.minimum(np.floor((angles + np.pi) / (2 * np.pi) * bins).astype(int), bins - 1) @ [bins, 1]
    joint, seen = np.full((bins**2, bins**2), added), np.full((bins**2, LETTERS), added)
    np.add.at(joint, (place[:, :-1].ravel(), place[:, 1:].ravel()), 1)
    np.add.at(seen, (place.ravel(), letters.ravel()), 1)
    marginal = seen.sum(axis=1) / seen.sum()
    ratio = joint / joint.sum() / marginal / marginal[:, None]
    network = bp.DiscreteGraph([(t, t + 1) for t in range(LENGTH - 1)], ratio, np.tile(marginal, (LENGTH, 1)))
    likelihood = (seen / seen.sum(axis=1, keepdims=True)).T
    beliefs = network.query({t: likelihood[new[:, t]] for t in range(LENGTH)})
    middle = (np.arange(bins) + 0.5) * 2 * np.pi / bins - np.pi
    middles = np.stack(np.meshgrid(middle, middle, indexing="ij"), axis=-1).reshape(-1, 2)
    return np.stack([beliefs[t] @ np.exp(1j * middles) for t in range(LENGTH)], axis=1)


def gaussian(angles: np.ndarray, letters: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Means of a Gaussian chain over cosines and sines, with letters as noisy linear observations of them."""
    both = np.concatenate([np.cos(angles), np.sin(angles)], axis=-1)
    mean = both.mean(axis=(0, 1))
    x = both - mean
    flat = x.reshape(-1, 4)
    covariance = flat.T @ flat / len(flat)
    lag = x[:, 1:].reshape(-1, 4).T @ x[:, :-1].reshape(-1, 4) / x[:, 1:, 0].size
    step = lag @ np.linalg.inv(covariance)
    names = np.eye(LETTERS)[:, 1:]  # one letter is known from the others
    frequency = names[letters.ravel()].mean(axis=0)
    see = (names[letters.ravel()] - frequency).T @ flat / len(flat) @ np.linalg.inv(covariance)
    noise = np.cov((names[letters.ravel()] - frequency - flat @ see.T).T) + 1e-9 * np.eye(LETTERS - 1)
    prior = np.zeros((LENGTH, 4, LENGTH, 4))
    for t in range(LENGTH):
        for s in range(t + 1):
            prior[t, :, s] = np.linalg.matrix_power(step, t - s) @ covariance
            prior[s, :, t] = prior[t, :, s].T
    size = 4 * LENGTH
    information = np.linalg.inv(prior.reshape(size, size))
    information += np.kron(np.eye(LENGTH), see.T @ np.linalg.solve(noise, see))
    pull = (names[new] - frequency) @ np.linalg.solve(noise, see)
    found = np.linalg.solve(information, pull.reshape(len(new), size).T).T.reshape(len(new), LENGTH, 4) + mean
    return found[..., :2] + 1j * found[..., 2:]


def best_possible(new: np.ndarray, emission: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mean directions under the posterior of the true model, by forward-backward recursion over its states."""
    likelihood = emission.T[new]
    forward, backward = np.empty_like(likelihood), np.ones_like(likelihood)
    forward[:, 0] = _stationary() * likelihood[:, 0]
    for t in range(1, LENGTH):
        forward[:, t] = (forward[:, t - 1] @ NEXT) * likelihood[:, t]
        forward[:, t] /= forward[:, t].sum(axis=1, keepdims=True)
    for t in range(LENGTH - 2, -1, -1):
        backward[:, t] = (backward[:, t + 1] * likelihood[:, t + 1]) @ NEXT.T
        backward[:, t] /= backward[:, t].sum(axis=1, keepdims=True)
    posterior = forward * backward
    draws = angles_of(np.repeat(np.arange(len(MEANS))[:, None], 100_000, axis=1), rng)
    directions: Any = np.exp(1j * draws).mean(axis=1)
    return (posterior / posterior.sum(axis=-1, keepdims=True)) @ directions


EXPERIMENT = Experiment(
    "loopy-torsion",
    "Torsion angles along simulated chains",
    "Song et al. (2011), abstract: protein configuration",
    (
        Claim(
            "significantly more accurate than classical and nonparametric belief propagation (abstract; here on "
            "simulated chains)",
            (f"below {METHODS[2]}", f"below {METHODS[3]}", *(f"below {name}" for name in NOT_RUN)),
            0.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "significantly more accurate than discrete and Gaussian belief propagation",
            (f"below {METHODS[2]}", f"below {METHODS[3]}"),
            0.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "errors are smaller than those of the mean angle of each letter, by 0.05 or more",
            f"below {METHODS[1]}",
            0.05,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "the reduction of the error is at least 70% of what is possible",
            "share of what neighbours can tell",
            0.7,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.3, "quick": 1, "paper": 5},
    run,
    stand_in="simulated chains in place of proteins, and without particles, mixtures and times",
)
