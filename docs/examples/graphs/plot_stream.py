"""
A chain that grows
==================

One step of a chain is learned, and beliefs about its latest states are updated as evidence arrives: filtering,
prediction and smoothing, at a cost per step that does not depend on the length of the chain.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A state jumps between two wells and fluctuates within them. The sensor is so noisy that a single reading often points
# to the wrong well. The model of one step is learned from a record of states and readings.


def record(n):
    """States and readings."""
    state = np.zeros(n)
    side = 1.0
    for i in range(n):
        side = -side if rng.random() < 0.04 else side
        state[i] = side + 0.2 * rng.normal()
    return state, state + 0.9 * rng.normal(size=n)


state, reading = record(801)
table = {"now": state[:-1], "next": state[1:], "reading": reading[:-1]}
model = mm.KernelGraph([("now", "next"), ("now", "reading")]).fit(table)
model.plot()

# %%
# Then the state is hidden. Each reading advances the stream by one step; with a lag of ten it also gives the smoothed
# belief about the state ten steps earlier.

hidden, readings = record(160)
lag = 10
stream = mm.bp.Stream.of(model, "now", "next", lag=lag)
filtered, smoothed = [], []
for value in readings:
    stream = stream.step({"reading": value})
    filtered.append(stream.belief.mean())
    smoothed.append(stream.smooth()[0].mean())
print(stream.report)

# %%
# Smoothing corrects errors due to single readings.

figure, axes = plt.subplots(figsize=(8, 3.2))
axes.plot(readings, ".", color="lightgrey", label="readings")
axes.plot(hidden, color="black", linewidth=1, label="hidden state")
axes.plot(filtered, color="C0", linewidth=1, label="filtered")
axes.plot(np.arange(len(readings) - lag), smoothed[lag:], color="C3", label=f"smoothed, {lag} steps later")
axes.set(xlabel="step", ylim=(-3, 3))
axes.legend(loc="upper right", ncols=4, fontsize="small")
for name, means in (("filtered", filtered[:-lag]), ("smoothed", smoothed[lag:])):
    print(name, np.sqrt(np.mean((np.array(means) - hidden[:-lag]) ** 2)).round(2))
plt.show()
