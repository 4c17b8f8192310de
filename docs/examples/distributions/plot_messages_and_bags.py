"""
Kernels on distributions
========================

Predict a number from a whole sample, or a message from other messages: each distribution is treated as a point, its
mean embedding, and kernels compare these points.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm
from meanmap.families import Beta, Normal
from meanmap.kernels import EmbeddingGaussian

rng = np.random.default_rng(0)

# %%
# The incoming messages of a factor are a tuple of distributions, here a normal and a Beta, 60 times. ``at_scale_of``
# takes the inner lengthscales from their spread and the outer width from the distances between their embeddings.

mean = np.sort(rng.normal(0, 2, 60))
messages = Normal(mean, rng.uniform(0.2, 2, 60)), Beta(rng.uniform(1, 9, 60), rng.uniform(1, 9, 60))
kernel = EmbeddingGaussian.at_scale_of(messages)
gram = kernel(messages)
figure, axes = plt.subplots()
figure.colorbar(axes.imshow(gram), ax=axes)
axes.set(title="60 pairs of messages, in the order of the normal mean", xlabel="pair", ylabel="pair")

# %%
# Two-stage random features map the kernel to finitely many coordinates, so that predicting a message costs the same
# however many messages there are. The error decreases as one over the root of the number of features.

upper = np.triu_indices(60, 1)
sizes = [(30, 50), (100, 200), (300, 500), (1000, 2000), (3000, 5000)]
errors = []
for d_in, d_out in sizes:
    psi = mm.features.TwoStage.draw(kernel, like=messages, d_in=d_in, d_out=d_out, rng=0)
    errors.append(np.sqrt(np.mean((psi(messages) @ psi(messages).T - gram)[upper] ** 2)))
figure, axes = plt.subplots()
axes.loglog([d_out for _, d_out in sizes], errors, "o-")
axes.set(xlabel="features of the second stage", ylabel="root mean square error of the Gram matrix")

# %%
# A list of samples is read as bags, of any sizes. Distribution regression predicts a number from a bag: here the
# standard deviation of the distribution that it was drawn from, by ridge regression with the kernel.

spread = rng.uniform(0.5, 3.0, 200)
bags = [rng.normal(rng.normal(), s, size=rng.integers(40, 120)) for s in spread]
train, test = slice(0, 120), slice(120, 200)
kernel = EmbeddingGaussian.at_scale_of(bags[train])
weights = np.linalg.solve(kernel(bags[train]) + 1e-2 * np.eye(120), spread[train])
figure, axes = plt.subplots()
axes.plot(spread[test], kernel(bags[test], bags[train]) @ weights, "o")
axes.plot([0.5, 3], [0.5, 3], "k--")
axes.set(xlabel="standard deviation of the distribution", ylabel="predicted from the bag")
plt.show()
