"""Depth from two pictures, in real scenes not used for training, by kernel and discrete belief propagation."""

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Outcome, Setting
from meanmap_papers.loopy.depth import METHODS, compare, error, outcome

# Matching without learned relations, in addition to the methods of `depth`.
MATCHING = "window matching", "semi-global matching"
# What claims add to a method's name.
SAID = {"discrete belief propagation": "discrete belief propagation with 20 levels, which is not tuned"}


def run(setting: Setting) -> Outcome:
    """Errors of log-depth in scenes of kinds that were left out."""
    from meanmap.datasets import STEREO_SCENES
    from meanmap_papers.loopy.matching import MatchingLikelihood
    from meanmap_papers.loopy.scenes import stereo_scenes

    costs, depth = stereo_scenes()
    # Scenes of one name, such as Baby1 and Baby2, show the same things.
    kind = np.unique([name.rstrip("0123456789") for name in STEREO_SCENES], return_inverse=True)[1]
    order = setting.rng().permutation(kind.max() + 1)
    used = order[: setting.choose(smoke=9, quick=len(order), paper=len(order))]
    errors, pixels, shown = [], [], ()
    for third in range(setting.choose(smoke=1, quick=1, paper=3)):
        test = np.isin(kind, used[third::3])
        train = np.flatnonzero(np.isin(kind, used) & ~test)
        train = train[np.argsort(order[kind[train]], kind="stable")]
        features = costs.reshape(*costs.shape[:3], -1)
        learned, medians = compare(
            list(features[train]), list(depth[train]), features[test], setting, MatchingLikelihood
        )
        found = np.concatenate([learned, matched(costs[train], depth[train], costs[test])])
        errors.append(error(found, depth[test]))
        # Absolute errors ask for medians.
        read = np.concatenate([medians[None], found[1:]])
        pixels.append(np.nanmean(np.abs(np.exp(read) - np.exp(depth[test])), axis=(-2, -1)))
        shown = shown or (depth[test], found)
    methods = METHODS + MATCHING
    missed = np.concatenate(pixels, axis=1).mean(axis=1)
    told = ", ".join(f"{each:.2f} ({name})" for each, name in zip(missed, methods, strict=True))
    return outcome(
        np.concatenate(errors, axis=1),
        shown,
        "scenes",
        "Scenes are those of Middlebury 2006. What is observed of a cell is how much the two views differ at each "
        "disparity. Its likelihood has a peak at each possible match: a single guess with a spread would be wrong "
        "between them, and messages from neighbours could hardly correct it.",
        f"Mean absolute errors of the disparity, in pixels: {told}. Windows and penalties of matching are chosen on "
        "the training scenes.",
        methods=methods,
    )


def matched(costs: np.ndarray, depth: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Log-disparities of test scenes by matching alone, (2, n, h, w), with the best settings on others."""
    from meanmap_papers.loopy.matching import JUMPS, STEPS, semi_global, window
    from meanmap_papers.loopy.scenes import DISPARITIES, WINDOWS

    def alone(scenes: np.ndarray, size: int) -> np.ndarray:
        return np.log(window(scenes[..., size], DISPARITIES))

    def together(scenes: np.ndarray, size: int, step: float, jump: float) -> np.ndarray:
        return np.log([window(semi_global(scene[..., size], step, jump), DISPARITIES) for scene in scenes])

    sizes = range(len(WINDOWS))
    options = [(size, step, step * times) for size in sizes for step in STEPS for times in JUMPS]
    least = min(sizes, key=lambda size: error(alone(costs, size), depth).mean())
    best = min(options, key=lambda option: error(together(costs, *option), depth).mean())
    return np.stack([alone(test, least), together(test, *best)])


EXPERIMENT = Experiment(
    "loopy-stereo",
    "Depth of real scenes from two pictures",
    "Ours: depth as in Song et al. (2011), from two pictures instead of one",
    tuple(
        Claim(
            f"a smaller error than {SAID.get(name, name)}", f"below {name}", 0.0, scales=("quick", "paper"), ours=True
        )
        for name in (*METHODS[1:], *MATCHING)
    ),
    {"smoke": 1, "quick": 1, "paper": 3},
    run,
    data=("stereo",),
)
