"""
Kernels and their Gram matrices
===============================

How similar are two points? A kernel says so, and most methods use the data only through its Gram matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A kernel is an immutable object. Calling it on points gives the Gram matrix; sums, products, multiples and powers of
# kernels are kernels.

x = np.linspace(-3, 3, 200)
members = {
    "RBF(1)": mm.kernels.RBF(1.0),
    "Laplace(1)": mm.kernels.Laplace(1.0),
    "Matern(1)": mm.kernels.Matern(1.0),
    "½ RBF(0.3) + ½ RBF(2)": 0.5 * mm.kernels.RBF(0.3) + 0.5 * mm.kernels.RBF(2.0),
}
figure, axes = plt.subplots()
for name, k in members.items():
    axes.plot(x, k(x, [0.0])[:, 0], label=name)
axes.set(xlabel="x", ylabel="k(x, 0)")
axes.legend()

# %%
# The Gram matrix of a sample shows its clusters. Here the lengthscale is the median distance between points.

clusters = np.concatenate([rng.normal(centre, 0.4, size=(40, 2)) for centre in (-2.0, 0.0, 3.0)])
k = mm.kernels.RBF(mm.median_heuristic(clusters))
figure, axes = plt.subplots()
image = axes.imshow(k(clusters))
axes.set(title="three clusters of 40 points", xlabel="point", ylabel="point")
figure.colorbar(image, ax=axes)

# %%
# The mean of the kernel over a sample is the sample's mean embedding, here evaluated on a grid: a smooth picture of
# where the sample lies. ``k.mean`` computes it in pieces, so that a large sample needs no large matrix.

sample = np.concatenate([rng.normal(-1, 0.5, 30_000), rng.normal(1.5, 0.3, 20_000)])
grid = np.linspace(-4, 4, 300)
figure, axes = plt.subplots()
for lengthscale in (0.1, 0.4, 1.5):
    axes.plot(grid, mm.kernels.RBF(lengthscale).mean(grid, sample), label=f"lengthscale {lengthscale}")
axes.set(xlabel="x", ylabel="mean embedding of 50,000 points")
axes.legend()
plt.show()
