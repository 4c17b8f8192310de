"""
For causal analysts: which arrows do the data allow?
=====================================================

From a table to a graph of causes: what independences can tell about directions and what they cannot, how sure each
edge is, and how to use what is known beforehand.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm
from meanmap.structure import CallableTest

rng = np.random.default_rng(3)

# %%
# A table with a known truth
# --------------------------
#
# To learn what a method can do it helps to know the answer. In this made-up lake, sunshine warms the water and feeds
# algae, fertiliser feeds algae too, algae use up oxygen, and fish need oxygen. No relation is linear.

n = 500
sun, fertiliser = rng.uniform(-2, 2, (2, n))
warmth = np.tanh(1.5 * sun) + 0.4 * rng.normal(size=n)
algae = np.exp(0.5 * sun) + np.abs(fertiliser) + 0.3 * rng.normal(size=n)
oxygen = 2 * np.cos(0.7 * algae) + 0.4 * rng.normal(size=n)
fish = np.where(oxygen + 0.5 * rng.normal(size=n) > 0, "many", "few")
lake = {"sun": sun, "fertiliser": fertiliser, "warmth": warmth, "algae": algae, "oxygen": oxygen, "fish": fish}

# %%
# Correlation sees nothing of the fertiliser, because its effect is the same in both directions. A kernel test of
# independence does.

print("correlation", round(float(np.corrcoef(fertiliser, algae)[0, 1]), 3))
print("independence: p =", mm.independence_test(fertiliser, algae, rng=0).pvalue)

# %%
# Independent given what?
# -----------------------
#
# Warmth and algae go together. Once the sun is known, nothing is left: they are two effects of one cause. Sun and
# fertiliser are independent, but among lakes with the same algae they are not: less sun means more fertiliser. This
# second pattern, a collider, is what gives arrows their heads.

for x, y, z in (("warmth", "algae", "sun"), ("sun", "fertiliser", "algae")):
    alone = mm.independence_test(lake[x], lake[y], rng=0).pvalue
    given = mm.conditional_independence_test(lake[x], lake[y], lake[z], rng=0).pvalue
    print(f"{x} and {y}: p = {alone:.3f} alone, {given:.3f} given {z}")

# %%
# The search
# ----------
#
# The PC algorithm asks such questions in an order that keeps the conditions small, removes an edge when some condition
# separates its ends, and turns what remains into arrows where colliders force it. `half_samples` repeats the search on
# random halves of the rows: the share in which an edge and its direction were found is its support.

found = mm.pc(lake, half_samples=10, rng=0)
print(found)
places = {
    "sun": (0, 1),
    "fertiliser": (0, 0),
    "warmth": (1, 1.2),
    "algae": (1, 0.4),
    "oxygen": (2, 0.4),
    "fish": (3, 0.4),
}
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
found.plot(axes, positions=places)

# %%
# Edges without heads are no failure. Sun and warmth are joined, but "sun causes warmth" and "warmth causes sun" imply
# the same independences, so no amount of data decides between them by this route. The result is the set of all graphs
# that fit, drawn as one.
#
# What is known beforehand
# ------------------------
#
# Nothing in the lake moves the sun, and nobody fertilises because there are fish. Tiers say so: arrows never point to
# an earlier tier. They may be wrong, as any assumption may; contradictory knowledge is refused.

known = mm.pc(lake, tiers=[["sun", "fertiliser"], ["warmth", "algae", "oxygen", "fish"]], rng=0)
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
known.plot(axes, positions=places)

# %%
# Why was an edge left out? The set that separates its ends is kept, and so is the largest p-value of each edge that
# stayed: close to the level of the test means that it was close to being removed.

print("sun and oxygen are separated by", found.separators["sun", "oxygen"])
for (x, y), p in sorted(found.pvalues.items(), key=lambda item: -item[1]):
    if x < y:
        print(f"{x} and {y}: p = {p:.3g}")

# %%
# When the rows are not independent
# ---------------------------------
#
# Tests take rows for independent draws. Two slow series that have nothing to do with each other look dependent because
# each of them resembles its own past. `prewhiten` keeps what is new at each time.

steps = rng.normal(size=(2, 300))
slow, other = (np.convolve(step, 0.95 ** np.arange(80))[:300] for step in steps)
white = mm.structure.prewhiten({"slow": slow, "other": other})
print("as they are: p =", mm.independence_test(slow, other, rng=0).pvalue)
print("pre-whitened: p =", round(mm.independence_test(white["slow"], white["other"], rng=0).pvalue, 3))

# %%
# Many variables, few rows: a tree
# --------------------------------
#
# Where a full search asks too much of the data, the tree of strongest dependences is found from pairs alone. It has no
# directions, but it can be turned into a model that answers questions (the tutorial for modellers).

tree = mm.chow_liu(lake, rng=0)
print(tree)

# %%
# Taking it elsewhere
# -------------------
#
# Results are ordinary graphs, for NetworkX or as GraphML files; and the tests can serve the searches of other packages:
# pgmpy takes a callable, ``PC(ci_test=CallableTest(table))``, and causal-learn a name,
# ``pc(data, 0.05, register_in_causal_learn())``.

print(sorted(known.to_networkx().edges))
test = CallableTest({name: column for name, column in lake.items() if name != "fish"}, rng=0)
print("warmth and algae, given the sun, look independent:", test("warmth", "algae", ["sun"]))

# %%
# From the command line: ``meanmap discover lake.csv --tiers sun,fertiliser/warmth,algae --plot causes.png``.
#
# What this did not show: hidden common causes. PC assumes that there are none; two effects of a cause that nobody
# measured are joined by an edge here, and its arrow means nothing.
plt.show()
