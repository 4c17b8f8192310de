"""
Classification by a Gaussian process
====================================

Two interleaved half moons of points: to which does a new point belong, and how sure is that? A Gaussian process draws a
boundary of any shape and gives a probability at every point; the evidence chooses its kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(1)

# %%
# No settings are needed: lengthscales are the median distances, times a factor chosen by the evidence.

n = 150
angle = rng.uniform(0, np.pi, n)
upper = rng.uniform(size=n) < 0.5
X = np.where(upper[:, None], np.c_[np.cos(angle), np.sin(angle)], np.c_[1 - np.cos(angle), 0.4 - np.sin(angle)])
X += 0.2 * rng.normal(size=X.shape)
fit = ep.models.gp_classification(X, np.where(upper, "upper", "lower"))
print(fit)

# %%
# Between the moons the predictions are confident; far from all points they become uncertain.

figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
fit.plot(X, np.where(upper, "upper", "lower"), axes)
axes.set(title="probability of the upper moon")

# %%
# The evidence of each kernel that was tried: one that is too smooth or too rough makes the labels less probable.

figure, axes = plt.subplots(layout="constrained")
for variance in sorted({variance for _, variance, _ in fit.tried}):
    rows = [(float(np.mean(kernel.lengthscale)), value) for kernel, v, value in fit.tried if v == variance]
    axes.plot(*zip(*rows, strict=True), "o-", label=f"variance {variance:g}")
axes.set(xscale="log", xlabel="lengthscale", ylabel="log evidence")
axes.legend()
plt.show()
