"""
For modellers: learn a model and query it
=========================================

Variables of any kind, a graph that says which of them are directly related, and a table to learn from: then any
variable can be queried given any others.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(11)

# %%
# The data
# --------
#
# Hourly records of a street: the hour of the day, which is an angle because 23 is next to 0; the traffic; the weather,
# a label; and the concentration of soot. A quarter of the soot readings are missing.

n = 800
hour = rng.uniform(0, 24, n)
weather = rng.choice(["calm", "wind", "rain"], n, p=[0.4, 0.4, 0.2])
rush = np.exp(-(((hour - 8) / 1.5) ** 2)) + np.exp(-(((hour - 18) / 2) ** 2))
traffic = 200 + 1500 * rush + 100 * rng.normal(size=n)
factor = np.where(weather == "calm", 1.0, np.where(weather == "wind", 0.45, 0.3))
soot = factor * (5 + traffic / 60) * np.exp(0.15 * rng.normal(size=n))
soot[rng.random(n) < 0.25] = np.nan
street = {"hour": hour * np.pi / 12, "traffic": traffic, "soot": soot, "weather": weather}

# %%
# The model
# ---------
#
# Only the edges are stated; the relation along each edge is learned from the pairs of values in the table. Rows in
# which one of a pair is missing are not used for that edge. Kernel widths and ridges are chosen by cross-validation,
# and labels are recognised by their type; only the fact that hours are angles has to be stated.

edges = [("hour", "traffic"), ("traffic", "soot"), ("soot", "weather")]
model = mm.KernelGraph(edges, kernels={"hour": mm.kernels.Torus(0.5)}).fit(street)
print(model)
model.plot()

# %%
# Queries
# -------
#
# Evidence about some variables gives beliefs about others. A belief is an embedding, so it has a mean, quantiles,
# samples, a mode and a density; it may have several peaks. Nobody watched the street, but the soot meter reads 25: what
# was the traffic, and when was it?

beliefs = model.query({"soot": 25.0}, targets=["traffic", "hour"])
print("traffic:", np.round(beliefs["traffic"].mean()), "between", np.round(beliefs["traffic"].quantile([0.1, 0.9])))

angle = np.linspace(0, 2 * np.pi, 200)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for value in (5.0, 15.0, 25.0):
    belief = model.query({"soot": value}, targets=["hour"])["hour"]
    axes.plot(angle * 12 / np.pi, belief.density(angle), label=f"soot {value:g}")
axes.set(xlabel="hour", ylabel="belief", xticks=range(0, 25, 3))
axes.legend()

# %%
# A graph is an assumption
# ------------------------
#
# With little soot, either the street was empty or the rain washed the air, so the weather should matter. But in this
# graph soot lies between weather and traffic: given the soot, weather and traffic are independent, and the two curves
# of the left panel coincide. No amount of data changes that; a different graph does. Here soot and weather become one
# variable with several columns.

air = np.column_stack([np.log(soot), *(weather == kind for kind in ("calm", "wind", "rain"))])
better = mm.KernelGraph([("traffic", "air")]).fit({"traffic": traffic, "air": air})
grid = np.linspace(0, 2000, 200)
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharex=True)
for kind, sky in {"rain": [0, 0, 1], "calm": [1, 0, 0]}.items():
    first = model.query({"soot": 8.0, "weather": kind}, targets=["traffic"])
    second = better.query({"air": np.array([np.log(8.0), *sky])}, targets=["traffic"])
    for place, answer in zip(axes, (first, second), strict=True):
        place.plot(grid, answer["traffic"].density(grid), label=f"soot 8, {kind}")
axes[0].set(xlabel="traffic", ylabel="belief", title="soot between weather and traffic")
axes[1].set(xlabel="traffic", title="soot and weather together")
axes[1].legend()

# %%
# Which graph is right is a question for the data: `mm.pc` finds the graph that tests of conditional independence
# support, and `mm.chow_liu` finds the tree of strongest dependences, which `mm.KernelGraph` accepts directly.
#
# Many queries at once
# --------------------
#
# Evidence with an additional axis is a batch. The report describes the run and gives the effective number of training
# points behind each belief: far from all data an answer is a guess, and the report says so.

meter = np.linspace(4, 34, 30)
answers = model.query({"soot": meter}, targets=["traffic"])
print(answers.report)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.plot(street["soot"], street["traffic"], ".", ms=3, color="lightgrey")
axes.plot(meter, answers["traffic"].mean(), color="C3", label="mean of the belief")
axes.set(xlabel="soot", ylabel="traffic")
axes.legend()

# %%
# Is it right?
# ------------
#
# Rows that were not used for learning show it: how many of the central 80% intervals contain the truth?

late = rng.uniform(0, 24, 300)
peaks = np.exp(-(((late - 8) / 1.5) ** 2)) + np.exp(-(((late - 18) / 2) ** 2))
truth = 200 + 1500 * peaks + 100 * rng.normal(size=300)
low, high = model.query({"hour": late * np.pi / 12}, targets=["traffic"])["traffic"].quantile([0.1, 0.9]).T
print(f"in the central 80%: {np.mean((low <= truth) & (truth <= high)):.2f}")

# %%
# Saving the model
# ----------------
#
# A file holds arrays and descriptions. Loading never executes code, so files from others are safe to load.

with tempfile.TemporaryDirectory() as folder:
    mm.save(model, Path(folder) / "street.meanmap")
    again = mm.load(Path(folder) / "street.meanmap")
print(again.query({"soot": 25.0}, targets=["traffic"])["traffic"].mean() == beliefs["traffic"].mean())

# %%
# Not shown here: chains that grow by a step each hour (:ref:`sphx_glr_gallery_graphs_plot_stream.py`), graphs with
# cycles and images (:ref:`sphx_glr_gallery_graphs_plot_denoise.py`), and pairs from different tables that were never
# observed together, which `fit` takes as a mapping from edges to pairs of samples.
plt.show()
