"""
For causal analysts: from a table to a graph, and how far to trust it
=====================================================================

Which variables cause which is written in the conditional independences of a table, as far as it is written anywhere.
This page reads it with kernel tests, adds what you know, asks how stable the answer is, and hands it to other packages.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm
from meanmap.structure import CallableTest

rng = np.random.default_rng(0)

# %%
# **A table whose causes we know**, because we made it. No relation is linear and one column is a label, so that tests
# of correlations would be lost: growth falls and rises with water.

n = 400
sun, water = rng.normal(size=(2, n))
growth = np.tanh(sun) + np.abs(water) + 0.2 * rng.normal(size=n)
harvest = growth**2 + 0.5 * rng.normal(size=n)
price = np.where(harvest + 0.5 * rng.normal(size=n) > 1.5, "low", "high")
garden = {"sun": sun, "water": water, "growth": growth, "harvest": harvest, "price": price}
print("correlation of water and growth:", round(float(np.corrcoef(water, growth)[0, 1]), 2))

# %%
# **The search.** PC starts with all variables joined, removes an edge when some set of neighbours makes its ends
# independent, and then turns arrows where a common effect shows itself.

found = mm.pc(garden, alpha=0.05, rng=0)
print(found)
places = {"sun": (0, 1), "water": (0, 0), "growth": (1, 0.5), "harvest": (2, 0.5), "price": (3, 0.5)}
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
found.plot(axes, positions=places)

# %%
# **Why?** Each missing edge has a reason that can be read and repeated.

print("sun and price were separated by", found.separators["sun", "price"])
print(mm.conditional_independence_test(sun, harvest, growth, rng=0))

# %%
# **What you know.** Prices do not make weather: tiers say which columns come first. ``required`` and ``forbidden``
# say it arrow by arrow.

known = mm.pc(garden, tiers=[["sun", "water"], ["growth", "harvest", "price"]], rng=0)
print(known.report)

# %%
# **How stable?** The same search on random halves of the rows: the share in which each edge was found, and had its
# direction.

halves = mm.pc(garden, half_samples=10, rng=0)
print(halves)

# %%
# **Before you search**, a tree of the strongest dependences shows what a table is about in a second, at any number of
# columns.

print(mm.chow_liu(garden, rng=0))

# %%
# **In other packages.** The same tests serve pgmpy as a callable (``PC(ci_test=CallableTest(table))``) and
# causal-learn by name (``pc(data, 0.05, register_in_causal_learn())``); on this garden both find the graph that is
# drawn above.

numbers = {name: column for name, column in garden.items() if name != "price"}
test = CallableTest(numbers, rng=0)
print("sun and harvest, given growth, look independent:", test("sun", "harvest", ["growth"]))
plt.show()

# %%
# **What could be wrong.** An unseen common cause, selection, or a test that had too little data to see an edge: PC
# cannot tell. Contradictions among tests are kept as undirected edges and named in ``found.report``. :doc:`/choosing`
# has the measured levels of these tests; ``found.to_networkx()`` and GraphML carry graphs elsewhere.
