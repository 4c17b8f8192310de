"""
Where a camera points
=====================

A camera turns, and sees the directions of three lamps with much noise. A tree is learned from images at known
rotations; then the rotation is tracked from images alone. The most probable one is found on the rotation group.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.transform import Rotation, Slerp

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# The camera turns smoothly from one random rotation to the next, in twenty frames each, mostly to the left and right.

LAMPS = np.array([[0.0, 0.0, 1.0], [0.8, 0.0, 0.6], [0.0, 0.8, 0.6]])


def record(n):
    """Rotations, and what is seen at each: three directions, nine numbers."""
    stops = Rotation.from_euler("YXZ", rng.normal(size=(n // 20 + 2, 3)) * [0.8, 0.25, 0.1])
    turns = Slerp(np.arange(len(stops)) * 20, stops)(np.arange(n))
    seen = np.stack([turns.apply(lamp, inverse=True) for lamp in LAMPS], axis=1).reshape(n, 9)
    return turns, seen + 0.5 * rng.normal(size=seen.shape)


turns, seen = record(601)
table = {"now": turns[:-1], "next": turns[1:], "seen": seen[:-1]}
kernels = {"now": mm.kernels.Rotation(0.7), "next": mm.kernels.Rotation(0.7)}
model = mm.KernelGraph([("now", "next"), ("now", "seen")], kernels=kernels).fit(table)

# %%
# One frame by itself, compared with all frames so far: a stream keeps the belief about the latest rotation. A belief
# about a rotation is an embedding like any other, and its mode is a rotation.

truth, frames = record(120)
alone = model.query({"seen": frames}, targets=["now"])["now"].mode()
stream, followed = mm.bp.Stream.of(model, "now", "next"), []
for frame in frames:
    stream = stream.step({"seen": frame})
    followed.append(stream.belief.mode())


def degrees(found):
    """The angle between what was found and the truth."""
    return np.degrees((Rotation.from_matrix(np.array(found)) * truth.inv()).magnitude())


figure, axes = plt.subplots(figsize=(8, 3.2))
for found, name, colour in ((alone, "each frame alone", "lightgrey"), (followed, "all frames so far", "C0")):
    error = degrees(found)
    axes.plot(error, color=colour, label=f"{name}: {error.mean():.0f} degrees on average")
axes.set(xlabel="frame", ylabel="degrees from the truth")
axes.legend()
figure.tight_layout()
plt.show()
