"""
What causes what?
=================

Which variables cause which, as far as conditional independences reveal it: the PC algorithm with kernel tests, with
background knowledge, and with time series.
"""

import matplotlib.pyplot as plt
import networkx
import numpy as np

import meanmap as mm
from meanmap.structure import prewhiten

rng = np.random.default_rng(0)

# %%
# A garden. None of the relations is linear, and one variable is a label.

n = 400
sun, water = rng.normal(size=(2, n))
growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=n)
harvest = growth**2 + 0.5 * rng.normal(size=n)
price = np.where(harvest + 0.5 * rng.normal(size=n) > 1.5, "low", "high")
garden = {"sun": sun, "water": water, "growth": growth, "harvest": harvest, "price": price}

found = mm.pc(garden, half_samples=20, rng=0)
print(found)

# %%
# Sun and water are independent, but dependent among plants of the same size: this orients the two edges, and the others
# follow, because another arrow into growth would have been detected as well. Each edge shows the share of 20 random
# halves of the rows in which it was found, and in which it had this direction.

places = {"sun": (0, 1), "water": (0, 0), "growth": (1, 0.5), "harvest": (2, 0.5), "price": (3, 0.5)}
figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
found.plot(axes, positions=places)

# %%
# The separating sets of pairs that are not joined, and how close each edge was to being removed:

print(found.separators["sun", "price"], found.pvalues["harvest", "price"])
print(found.report)

# %%
# A chain has no collider, so its directions cannot be learned from independences. Knowing the order in time is enough.

a = rng.normal(size=n)
b = np.sin(2 * a) + 0.3 * rng.normal(size=n)
c = b**2 + 0.3 * rng.normal(size=n)
chain = {"yesterday": a, "today": b, "tomorrow": c}
print(mm.pc(chain, rng=0))
print(mm.pc(chain, tiers=[["yesterday"], ["today", "tomorrow"]], rng=0))

# %%
# Time series. Two unrelated, slowly varying series look dependent, because tests assume independent rows. The
# innovations, what is new at each time given the past of the same series, are independent over time.

steps = rng.normal(size=(2, 250))
x, y = (np.convolve(step, 0.95 ** np.arange(80))[:250] for step in steps)
z = np.tanh(x / 2) + 0.3 * rng.normal(size=250)
series = {"x": x, "y": y, "z": z}
raw, white = mm.pc(series, rng=0), mm.pc(prewhiten(series), rng=0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained")
for name, values in series.items():
    axes[0].plot(values / values.std(), label=name)
axes[0].legend()
circle = networkx.circular_layout(["x", "y", "z"])
for place, graph, title in ((axes[1], raw, "as they are"), (axes[2], white, "pre-whitened")):
    graph.plot(place, positions=circle)
    place.set_title(title)
plt.show()
