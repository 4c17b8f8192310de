"""Depth from two pictures: real scenes that were not learned from, by kernel and by discrete belief propagation."""

import numpy as np

from meanmap.experiments.experiment import Experiment, Outcome, Setting
from meanmap.experiments.loopy.depth import CLAIMS, compare, error, outcome


def run(setting: Setting) -> Outcome:
    """Errors of log-depth in scenes of kinds that were left out."""
    from meanmap.datasets import STEREO_SCENES
    from meanmap.experiments.loopy.scenes import stereo_scenes

    features, depth = stereo_scenes()
    # Scenes of one name, such as Baby1 and Baby2, show the same things.
    kind = np.unique([name.rstrip("0123456789") for name in STEREO_SCENES], return_inverse=True)[1]
    order = setting.rng().permutation(kind.max() + 1)
    used = order[: setting.choose(smoke=9, quick=len(order), paper=len(order))]
    errors, shown = [], ()
    for third in range(setting.choose(smoke=1, quick=1, paper=3)):
        test = np.isin(kind, used[third::3])
        train = np.flatnonzero(np.isin(kind, used) & ~test)
        train = train[np.argsort(order[kind[train]], kind="stable")]
        found = compare(list(features[train]), list(depth[train]), features[test], setting)
        errors.append(error(found, depth[test]))
        shown = shown or (depth[test], found)
    note = "Scenes are those of Middlebury 2006; a cell is seen by how alike both views are at each disparity."
    return outcome(np.concatenate(errors, axis=1), shown, "scenes", note)


EXPERIMENT = Experiment(
    "loopy-stereo",
    "Depth of real scenes from two pictures",
    "Song et al. (2011), section 6: depth reconstruction",
    CLAIMS,
    {"smoke": 1, "quick": 1, "paper": 3},
    run,
    data=("stereo",),
)
