"""
Classification by a Gaussian process
====================================

A border of any shape, a probability at every point, and a kernel that the evidence chooses.
"""

import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(1)

# %%
# Two interleaved half moons, and nothing to choose: lengthscales are the medians times what the evidence finds best.

n = 150
angle = rng.uniform(0, np.pi, n)
upper = rng.uniform(size=n) < 0.5
X = np.where(upper[:, None], np.c_[np.cos(angle), np.sin(angle)], np.c_[1 - np.cos(angle), 0.4 - np.sin(angle)])
X += 0.2 * rng.normal(size=X.shape)
fit = ep.models.gp_classification(X, np.where(upper, "upper", "lower"))
print(fit)

# %%
# Between the moons it is sure, and far from all points it says so when it does not know.

figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
fit.plot(X, np.where(upper, "upper", "lower"), axes)
axes.set(title="probability of the upper moon")

# %%
# What was compared: a kernel that is too smooth or too rough makes the labels less probable.

figure, axes = plt.subplots(layout="constrained")
for variance in sorted({variance for _, variance, _ in fit.tried}):
    rows = [(float(np.mean(kernel.lengthscale)), value) for kernel, v, value in fit.tried if v == variance]
    axes.plot(*zip(*rows, strict=True), "o-", label=f"variance {variance:g}")
axes.set(xscale="log", xlabel="lengthscale", ylabel="log evidence")
axes.legend()
plt.show()
