"""
A graphical model learned from data
===================================

Only the graph is assumed, not the distributions of the variables. Each edge is learned from observed pairs, and any
variable can be queried given any others.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A hidden state moves in a double well; a sensor measures its square, so it cannot distinguish the wells; a label names
# the well, but is wrong one time in five; and the next state depends on the current one.

m = 600
state = np.where(rng.random(m) < 0.5, 1.0, -1.0) + 0.3 * rng.normal(size=m)
table = {
    "state": state,
    "sensor": state**2 + 0.2 * rng.normal(size=m),
    "well": np.where((state > 0) == (rng.random(m) < 0.8), "right", "left"),
    "next": 1.2 * np.tanh(2 * state) + 0.25 * rng.normal(size=m),
}
model = mm.KernelGraph([("state", "sensor"), ("state", "well"), ("state", "next")]).fit(table)
model

# %%
# Evidence about the sensor leaves two possibilities; the label makes one of them more probable. Every belief is an
# embedding, with a mean, quantiles, samples and a density.

grid = np.linspace(-2.5, 2.5, 250)
queries = {
    "sensor = 1.4": {"sensor": 1.4},
    "sensor = 1.4, well = right": {"sensor": 1.4, "well": "right"},
    "next near 1.2": {"next": mm.embed([1.1, 1.2, 1.3], mm.kernels.RBF(0.2))},
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for label, evidence in queries.items():
    beliefs = model.query(evidence, targets=["state", "next"])
    axes[0].plot(grid, beliefs["state"].density(grid, bandwidth=0.12), label=label)
    axes[1].plot(grid, beliefs["next"].density(grid, bandwidth=0.12), label=label)
axes[0].set(title="belief about the state", xlabel="state")
axes[1].set(title="belief about what comes next", xlabel="next")
axes[1].legend(fontsize="small")

# %%
# Many queries are answered together, and each report says how much data supports its beliefs.

sensors = np.linspace(0.2, 2.2, 60)
beliefs = model.query({"sensor": sensors, "well": "right"}, targets=["state"])
figure, axes = plt.subplots()
axes.pcolormesh(sensors, grid, beliefs["state"].density(grid, bandwidth=0.12).T, shading="auto")
axes.plot(sensors, np.sqrt(sensors), color="white", linestyle="--", label="± the square root of the sensor")
axes.plot(sensors, -np.sqrt(sensors), color="white", linestyle="--")
axes.set(title="state, given the sensor and the label 'right'", xlabel="sensor", ylabel="state")
axes.legend(loc="upper left")
print(beliefs.report)
plt.show()
