"""
Gaussian and discretised belief propagation
===========================================

Two classical representations of messages about numbers: two parameters of a Gaussian, or a probability for each bin.
They take the same graphs, pairs and evidence as kernel belief propagation, so that changing one line changes the
method.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm
from meanmap import bp
from meanmap_papers import rivals

rng = np.random.default_rng(0)

# %%
# Gaussian messages solve linear systems. Here heat flows on a square plate, two sides of which are held at given
# temperatures: every point is the mean of its neighbours, except for a little heat that is lost everywhere. The loss
# makes the matrix diagonally dominant, so that messages are guaranteed to converge, and the report gives the residual
# of the equations.

size = 30
graph, _ = mm.graphs.grid(size, size)
row, column = np.divmod(np.arange(size * size), size)
laplacian = -graph.adjacency.astype(float).toarray()
laplacian[np.diag_indices(size * size)] = 4.05
rim = np.zeros(size * size)
rim[row == 0] += 100.0
rim[column == 0] += 50.0
found = bp.solve(laplacian, rim)
print(found.report)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
image = axes[0].imshow(found.x.reshape(size, size), cmap="inferno")
figure.colorbar(image, ax=axes[0], label="temperature")
axes[1].semilogy(found.report.residuals)
axes[1].set(xlabel="sweep", ylabel="largest change of a message")

# %%
# Other matrices are harder. Four variables repel one another strongly: the spectral radius is above 1, and plain
# messages diverge. Damping makes them converge, and at any fixed point the means are exact.

push = 0.35 + 0.65 * np.eye(4)
graph = bp.GaussianGraph(push, [1.0, 0.5, -1.0, 0.2])
for damping in (0.0, 0.5):
    beliefs = graph.query(damping=damping, schedule=mm.graphs.Flooding(500))
    print(f"damping {damping}:", beliefs.report.status, beliefs.report.measures)
print("means:", [round(float(beliefs[i].mean()), 4) for i in range(4)])
print("exact:", np.linalg.solve(push, [1.0, 0.5, -1.0, 0.2]).round(4).tolist())

# %%
# Fields learned from pairs. Neighbours on a ring tend to have opposite signs, so the distribution has a gap in the
# middle that no Gaussian can represent. Bins can, and so can kernels; only the line that names the class changes.

sign = np.where(rng.random(1500) < 0.5, 1.0, -1.0)
pairs = sign + 0.3 * rng.normal(size=1500), -sign + 0.3 * rng.normal(size=1500)
ring = [(i, (i + 1) % 8) for i in range(8)]
grid = np.linspace(-2.5, 2.5, 400)
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for name, kind in {"kernel": mm.KernelField, "Gaussian": rivals.GaussianField, "bins": rivals.DiscretizedField}.items():
    beliefs = kind(ring).fit(pairs).query({0: lambda x: 1 / (1 + np.exp(-np.asarray(x)))})
    axes.plot(grid, beliefs[1].density(grid), label=name)
axes.set(xlabel="value of a node whose neighbour is probably positive", ylabel="density")
axes.legend()

# %%
# The number of bins, their kind and the smoothing of counts were chosen on held-out pairs.

field = rivals.DiscretizedField(ring).fit(pairs)
print(field.bins["x"].number, "bins,", field.smoothing)
