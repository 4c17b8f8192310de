"""
Distributions as elements, relations as operators
=================================================

Where do two distributions differ, and how is y distributed at each x? A sample becomes a function, its mean embedding;
a regression becomes an operator whose answer is a whole distribution.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# The embeddings of two distributions are elements of the same space, and their difference, the witness function, shows
# where the distributions differ. The embedding of a known distribution is exact.

k = mm.kernels.RBF(0.5)
sample = mm.embed(rng.normal(size=200), k)
law = mm.embed(mm.families.Laplace(0.0, 0.7), k)
grid = np.linspace(-4, 4, 200)
figure, axes = plt.subplots()
axes.plot(grid, sample(grid), label="200 normal draws")
axes.plot(grid, law(grid), label="Laplace distribution, exact")
axes.plot(grid, (sample - law)(grid), label="difference")
axes.set(title=f"distance {(sample - law).norm():.3f}", xlabel="x")
axes.legend()

# %%
# The conditional operator is learned from pairs, with ridge and lengthscale chosen from the data. Here y has two
# branches, so no single curve describes the cloud, but the belief about y at each x does.

x = rng.uniform(-3, 3, 1500)
y = np.sin(x) + np.where(rng.random(1500) < 0.5, 1.0, -1.0) * (x > 0) + 0.15 * rng.normal(size=1500)
operator = mm.condition(x, y)
at, levels = np.linspace(-2.8, 2.8, 120), np.linspace(-2.5, 2.5, 150)
beliefs = operator(at)
figure, axes = plt.subplots()
axes.pcolormesh(at, levels, beliefs.density(levels, bandwidth=0.12).T, shading="auto")
axes.plot(at, beliefs.mean(), color="white", label="mean")
axes.plot(at, beliefs.quantile([0.1, 0.9]), color="white", linestyle="--", linewidth=1)
axes.set(title=repr(operator), xlabel="x", ylabel="y")
axes.legend()

# %%
# An operator applies to any element, not only to points: the sum rule maps a distribution of x to one of y.

prior = mm.embed(rng.normal(1.5, 0.2, size=400), operator.input.space)
predicted = mm.embeddings.sum_rule(operator, prior)
figure, axes = plt.subplots()
axes.plot(levels, predicted.density(levels, bandwidth=0.12))
axes.set(title="y when x is near 1.5", xlabel="y", ylabel="density")
plt.show()
