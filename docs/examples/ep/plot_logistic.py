"""
Any function as a factor
========================

Logistic regression with the sigmoid as a black box: the posterior of the weights, a single message, and its error.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(0)

# %%
# Two weights, 80 labels. The model has three factors: a linear map, a black-box function, and Bernoulli observations. A
# plate of 80 members is one variable.

X = rng.normal(size=(80, 2))
y = (rng.uniform(size=80) < 1 / (1 + np.exp(-X @ [2.0, -1.0]))).astype(int)
w = ep.Variable("w", ep.MultivariateNormal.standard(2))
z = ep.Variable("z", ep.Normal, plate=80)
p = ep.Variable("p", ep.Beta, plate=80)
model = ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(jax.nn.sigmoid, z, p), ep.Bernoulli(p, observed=y))
print(model)
post = ep.infer(model)
print(post)

# %%
# The posterior on a grid, normalised by summation, is what expectation propagation approximates by a Gaussian.

grid = np.linspace(-3, 5, 161)
a, b = np.meshgrid(grid, grid)
points = np.stack([a, b], -1)
log_posterior = -(points**2).sum(-1) / 2 - np.logaddexp(0, (1 - 2 * y) * (points @ X.T)).sum(-1)
figure, axes = plt.subplots()
axes.contourf(a, b, np.exp(log_posterior - log_posterior.max()), levels=12, cmap="Blues")
axes.contour(a, b, np.exp(post["w"].log_density(points)), levels=6, colors="tab:orange", linewidths=1)
axes.set(xlabel="first weight", ylabel="second weight", title="exact (blue) and EP (orange)", xlim=(0, 4), ylim=(-3, 1))

# %%
# One message, requested directly: a thousand stratified points of the cavity, compared with quadrature, which is exact
# here. The bars are the errors that the oracle reports.

factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
means = np.linspace(-6, 6, 25)
incoming = ep.Normal(means, 0.5)
exact = ep.extending.ask(factor, incoming).messages[0].precision
sampled = ep.extending.ask(factor, incoming, oracle=ep.Stratified(1000), rng=0)
figure, axes = plt.subplots()
axes.errorbar(
    means,
    sampled.messages[0].precision / exact - 1,
    1.96 * sampled.errors[0].precision / exact,
    fmt="o",
    ms=4,
    capsize=2,
)
axes.axhline(0, color="k", lw=0.8)
axes.set(xlabel="mean of the incoming message", ylabel="relative error of the outgoing precision")
plt.show()
