"""
The tree of the strongest dependences
=====================================

Which columns of a table are related most strongly? Chow-Liu trees with kernels: which measure of dependence finds the
tree, how well its edges are supported, and how to query it.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A cause with two wiggly effects, and an effect of one of these. Both effects depend on the cause as sin 2x, so that
# their relation to each other is linear: HSIC, which is most sensitive to linear relations, joins them. The kernel
# generalised variance, an estimate of the mutual information, respects the data processing inequality: information can
# only be lost on the path through the cause.

n = 300
cause = rng.normal(size=n)
first, second = (np.sin(2 * cause) + 0.5 * rng.normal(size=n) for _ in range(2))
third = second**2 + 0.2 * rng.normal(size=n)
table = {"cause": cause, "first": first, "second": second, "third": third, "noise": rng.normal(size=n)}

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
places = {"cause": (0, 1), "first": (-1, 0), "second": (1, 0), "third": (1, -1), "noise": (-1, -1)}
axes[0].scatter(first, second, c=cause, s=8)
axes[0].set(xlabel="first", ylabel="second", title="colour: the cause")
for place, measure in ((axes[1], "information"), (axes[2], "normalised")):
    tree = mm.chow_liu(table, measure=measure, level=0.05, half_samples=50, rng=0)
    tree.plot(place, positions=places)
    place.set_title(f'measure="{measure}"')
    print(tree)

# %%
# The numbers at edges are shares of 50 random halves of the rows. With ``level`` the tree is cut into a forest: an edge
# stays only if it is stronger than the strongest of all pairs among permuted columns. Independent noise stays
# unconnected.
#
# How often the whole tree is recovered: random trees of eight variables, with edges drawn from sin 2x, x², abs x, cos
# 2x, tanh 2x and x, and noise as large as the signal.

functions = [lambda v: np.sin(2 * v), np.square, np.abs, lambda v: np.cos(2 * v), lambda v: np.tanh(2 * v), lambda v: v]


def draw(rows):
    """A table and the edges of its tree."""
    edges = [(int(rng.integers(child)), child) for child in range(1, 8)]
    columns = np.empty((rows, 8))
    columns[:, 0] = rng.normal(size=rows)
    for parent, child in edges:
        signal = functions[rng.integers(6)](columns[:, parent])
        columns[:, child] = signal / signal.std() + rng.normal(size=rows)
        columns[:, child] /= columns[:, child].std()
    return columns, set(edges)


sizes, measures = (50, 100, 200), ("information", "normalised", "hsic", "ranks")
rates = {measure: np.zeros(len(sizes)) for measure in measures}
for i, rows in enumerate(sizes):
    for _ in range(20):
        columns, edges = draw(rows)
        for measure in measures:
            rates[measure][i] += set(map(tuple, mm.chow_liu(columns, measure=measure).edges.tolist())) == edges
figure, axes = plt.subplots()
for measure, found in rates.items():
    axes.plot(sizes, found / 20, "o-", label=measure)
axes.set(xlabel="rows", ylabel="share of data sets with exactly the true tree", ylim=(0, 1.05))
axes.legend()

# %%
# A tree is a graph: with operators learned on its edges, any variable can be predicted from any other.

tree = mm.chow_liu(table, level=0.05, rng=0)
model = mm.KernelGraph(tree).fit(table)
belief = model.query({"cause": 0.8}, targets=["third"])["third"]
print(f"third given cause = 0.8: {belief.mean():.2f}; sin²1.6 + 0.16 = {np.sin(1.6) ** 2 + 0.16:.2f}")
plt.show()
