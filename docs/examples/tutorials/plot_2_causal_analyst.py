"""
For causal analysts: which arrows do the data allow?
=====================================================

From a table to a causal graph: what independences reveal about directions and what they cannot, how well supported each
edge is, and how to use background knowledge.
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
# It is easier to see what a method can do if the answer is known. In this simulated lake, sunshine warms the water and
# feeds algae, fertiliser feeds algae too, algae use up oxygen, and fish need oxygen. No relation is linear.

n = 500
sun, fertiliser = rng.uniform(-2, 2, (2, n))
warmth = np.tanh(1.5 * sun) + 0.4 * rng.normal(size=n)
algae = np.exp(0.5 * sun) + np.abs(fertiliser) + 0.3 * rng.normal(size=n)
oxygen = 2 * np.cos(0.7 * algae) + 0.4 * rng.normal(size=n)
fish = np.where(oxygen + 0.5 * rng.normal(size=n) > 0, "many", "few")
lake = {"sun": sun, "fertiliser": fertiliser, "warmth": warmth, "algae": algae, "oxygen": oxygen, "fish": fish}

# %%
# Correlation misses the effect of fertiliser, because it is the same in both directions. A kernel test of independence
# detects it.

print("correlation", round(float(np.corrcoef(fertiliser, algae)[0, 1]), 3))
print("independence: p =", mm.independence_test(fertiliser, algae, rng=0).pvalue)

# %%
# Independent given what?
# -----------------------
#
# Warmth and algae are dependent. Given the sun they are independent: they are two effects of one cause. Sun and
# fertiliser are independent, but dependent among lakes with the same algae: less sun then means more fertiliser. This
# second pattern, a collider, is what orients edges.

for x, y, z in (("warmth", "algae", "sun"), ("sun", "fertiliser", "algae")):
    alone = mm.independence_test(lake[x], lake[y], rng=0).pvalue
    given = mm.conditional_independence_test(lake[x], lake[y], lake[z], rng=0).pvalue
    print(f"{x} and {y}: p = {alone:.3f} alone, {given:.3f} given {z}")

# %%
# The search
# ----------
#
# The PC algorithm runs such tests in an order that keeps the conditioning sets small, removes an edge when some set
# separates its ends, and orients the remaining edges where colliders require it. `half_samples` repeats the search on
# random halves of the rows: the support of an edge, or of its direction, is the share of halves in which it was found.

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
# Edges without arrowheads are not a failure. Sun and warmth are joined, but "sun causes warmth" and "warmth causes sun"
# imply the same independences, so no amount of data decides between them in this way. The result is the set of all
# graphs that fit (the Markov equivalence class), drawn as one.
#
# Background knowledge
# --------------------
#
# Nothing in the lake affects the sun, and nobody fertilises because there are fish. Tiers express this: arrows never
# point to an earlier tier. Like any assumption, tiers may be wrong; contradictory ones raise an error.

known = mm.pc(lake, tiers=[["sun", "fertiliser"], ["warmth", "algae", "oxygen", "fish"]], rng=0)
figure, axes = plt.subplots(figsize=(8, 3.2), layout="constrained")
known.plot(axes, positions=places)

# %%
# Why was an edge removed? The result keeps the set that separates its ends, and the largest p-value of each edge that
# stayed: a value close to the level of the test means that the edge was nearly removed.

print("sun and oxygen are separated by", found.separators["sun", "oxygen"])
for (x, y), p in sorted(found.pvalues.items(), key=lambda item: -item[1]):
    if x < y:
        print(f"{x} and {y}: p = {p:.3g}")

# %%
# When the rows are not independent
# ---------------------------------
#
# The tests assume independent rows. Two unrelated, slowly varying series look dependent because each is autocorrelated.
# `prewhiten` keeps what is new at each time.

steps = rng.normal(size=(2, 300))
slow, other = (np.convolve(step, 0.95 ** np.arange(80))[:300] for step in steps)
white = mm.structure.prewhiten({"slow": slow, "other": other})
print("as they are: p =", mm.independence_test(slow, other, rng=0).pvalue)
print("pre-whitened: p =", round(mm.independence_test(white["slow"], white["other"], rng=0).pvalue, 3))

# %%
# Many variables, few rows: a tree
# --------------------------------
#
# If the data are too few for a full search, the tree of strongest dependences can be found from pairs alone. It has no
# directions, but it can be turned into a model that answers queries (see the tutorial for modellers).

tree = mm.chow_liu(lake, rng=0)
print(tree)

# %%
# Use with other packages
# -----------------------
#
# Results are ordinary graphs, for NetworkX or as GraphML files, and the tests can be used by the searches of other
# packages: pgmpy takes a callable, ``PC(ci_test=CallableTest(table))``, and causal-learn a name, ``pc(data, 0.05,
# register_in_causal_learn())``.

print(sorted(known.to_networkx().edges))
test = CallableTest({name: column for name, column in lake.items() if name != "fish"}, rng=0)
print("warmth and algae, given the sun, look independent:", test("warmth", "algae", ["sun"]))

# %%
# From the command line: ``meanmap discover lake.csv --tiers sun,fertiliser/warmth,algae --plot causes.png``.
#
# Not shown here: hidden common causes. PC assumes that there are none; two effects of an unmeasured cause are joined by
# an edge here, and its arrow means nothing.
plt.show()
