"""
For modellers: a model that is learned, and asked in any direction
==================================================================

You know which variables touch, and have a table; you do not know their distributions. This page learns the relations as
operators between function spaces, asks for beliefs, checks them, and keeps the model.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# **One relation first.** ``mm.condition`` learns p(y | x) from pairs, as an operator. Its answer is a whole
# distribution: here the noise grows and the law has two branches, which no regression line can say.

x = rng.uniform(-2, 2, 500)
y = np.where(rng.random(500) < 0.5, 1, -1) * np.sqrt(x + 2) + (0.05 + 0.1 * (x + 2)) * rng.normal(size=500)
operator = mm.condition(x, y)
grid = np.linspace(-4, 4, 200)
at = np.linspace(-1.8, 1.8, 60)
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.pcolormesh(at, grid, operator(at).density(grid).T, shading="auto", cmap="Blues")
axes.plot(x, y, ".", ms=2, color="C1")
axes.set(xlabel="x", ylabel="y", title="p(y | x), learned")

# %%
# **Several relations** make a graph. A patient's hidden state moves a marker up or down and decides about a symptom,
# which is a word; nothing is assumed about any distribution. Where there is no graph to begin with,
# ``mm.chow_liu(table)`` finds a tree.

m = 600
state = np.where(rng.random(m) < 0.5, 1.0, -1.0) + 0.3 * rng.normal(size=m)
table = {
    "state": state,
    "marker": state**2 + 0.2 * rng.normal(size=m),
    "symptom": np.where((state > 0) == (rng.random(m) < 0.8), "fever", "none"),
}
model = mm.KernelGraph([("state", "marker"), ("state", "symptom")]).fit(table)

# %%
# **Ask.** Evidence is a value, a likelihood or an embedding, at any variable; beliefs come back for any other. The
# marker alone leaves two possibilities, the symptom tips the balance.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
line = np.linspace(-2.2, 2.2, 200)
for evidence in ({"marker": 1.4}, {"marker": 1.4, "symptom": "fever"}):
    belief = model.query(evidence, targets=["state"])["state"]
    axes.plot(line, belief.density(line, bandwidth=0.12), label=str(evidence))
axes.set(xlabel="state", ylabel="density")
axes.legend(fontsize="small")
print("mode", round(float(belief.mode()), 2), " 5 % and 95 %", np.round(belief.quantile([0.05, 0.95]), 2))
beliefs = model.query({"state": 1.0})
print("symptom:", {label: round(float(p), 2) for label, p in beliefs.probabilities("symptom").items()})

# %%
# **Check.** Predict rows that were not used, and compare how often the truth lies in the middle 80 %.

new = np.where(rng.random(400) < 0.5, 1.0, -1.0) + 0.3 * rng.normal(size=400)
seen = new**2 + 0.2 * rng.normal(size=400)
fever = np.where((new > 0) == (rng.random(400) < 0.8), "fever", "none")
low, high = model.query({"marker": seen, "symptom": fever}, targets=["state"])["state"].quantile([0.1, 0.9]).T
print("in the middle 80 %:", np.mean((low <= new) & (new <= high)))
print(beliefs.report)

# %%
# **Discrete networks** with given tables are the case where nothing has to be learned. Messages on a tree are exact,
# and networks whose tables join more variables, such as those of pgmpy, become trees of cliques.

sprinkler = mm.bp.DiscreteGraph(
    [("rain", "grass"), ("grass", "shoes")],
    {("rain", "grass"): [[0.9, 0.1], [0.2, 0.8]], ("grass", "shoes"): [[0.95, 0.05], [0.3, 0.7]]},
)
print("rain, after wet shoes:", sprinkler.query({"shoes": 1}, targets=["rain"])["rain"].round(3))

# %%
# **Keep.** A file of arrays, that cannot run anything.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "clinic.meanmap"
    mm.save(model, path)
    again = mm.load(path)
print(again.query({"marker": 1.4}, targets=["state"])["state"].mean())
plt.show()

# %%
# **Next**: graphs with cycles are :class:`meanmap.KernelField`, images :class:`meanmap.KernelGrid`, growing chains
# :class:`meanmap.bp.Stream`; inside scikit-learn's pipelines, ``mm.estimators``.
