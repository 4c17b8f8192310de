"""
For users of expectation propagation: any function as a factor
==============================================================

You have a model with a step that no library has a formula for. This page puts it into a factor graph, looks at what
inference says about itself, and makes a slow step fast by learning its messages.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(0)

# %%
# **Variables** have a family, which is the kind of belief they will get, and maybe a plate, which is how many there
# are. **Factors** join them. Here a dose acts through a link that is nobody's textbook's: half of the patients
# respond at most, and slowly.

n = 150
X = np.column_stack([np.ones(n), rng.normal(size=n)])
truth = np.array([0.5, 1.5])


def responds(z):
    """The probability of a response."""
    return 0.05 + 0.9 / (1 + jnp.exp(-z))


y = (rng.uniform(size=n) < np.asarray(responds(X @ truth))).astype(int)
w = ep.Variable("w", ep.MultivariateNormal.standard(2))
z, p = ep.Variable("z", ep.Normal, plate=n), ep.Variable("p", ep.Beta, plate=n)
model = ep.FactorGraph(ep.Dot(X, w, z), ep.BlackBox(responds, z, p), ep.Bernoulli(p, observed=y))
post = ep.infer(model, rng=0)
print(post)

# %%
# **Is it right?** The report says whether messages came to rest and what happened on the way. And the answer can be
# compared with one on a grid, which two weights still allow.

a, b = np.meshgrid(np.linspace(-1.5, 2.5, 161), np.linspace(-0.5, 4.0, 161), indexing="ij")
chance = np.asarray(responds(a[..., None] * X[:, 0] + b[..., None] * X[:, 1]))
log_density = np.log(np.where(y == 1, chance, 1 - chance)).sum(-1) - (a**2 + b**2) / 2
density = np.exp(log_density - log_density.max())
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
axes.contour(a, b, density / density.sum(), 6, cmap="Greys")
mean, root = np.asarray(post["w"].mean), np.linalg.cholesky(np.asarray(post["w"].cov))
circle = np.array([np.cos(t := np.linspace(0, 2 * np.pi, 100)), np.sin(t)])
axes.plot(*(mean[:, None] + 2 * root @ circle), label="two standard deviations by EP")
axes.plot(*truth, "x", color="C3", label="truth")
axes.set(xlabel="intercept", ylabel="effect of the dose")
axes.legend(fontsize="small")
share = density / density.sum()
print("means by a grid", round(float((share * a).sum()), 3), round(float((share * b).sum()), 3), "by EP", mean.round(3))

# %%
# **Who computes the messages?** By default quadrature. For functions of more arguments there is sampling, with a
# stated error for every message; ``post.doubt`` says how far a belief may be off for it, in standard deviations.

sampled = ep.infer(model, messages=ep.Stratified(2000), rng=0)
print("KL from quadrature:", float(post["w"].kl(sampled["w"])))
print({name: float(np.max(doubt)) for name, doubt in sampled.doubt.items()})

# %%
# **Learned messages.** An operator answers where it is sure and asks the oracle where it is not; what it learned
# serves the next data set. It pays for oracles that take more than about a third of a millisecond a message: the
# report says whether it did here.

link = ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y))
learned = ep.Learned()
first = ep.infer(link, messages=learned, rng=0)
again = ep.infer(link, messages=learned, rng=0)
diary = learned.diary("Logistic(z)")
print("asked the second time:", diary.asked + diary.audited, "of", n * (again.report.steps + 1))
print("KL from quadrature:", float(ep.infer(link)["w"].kl(again["w"])))

# %%
# **Ready models** need no graph: a data frame in, a table of coefficients out. For ArviZ, ``mm.io.to_arviz(fit)``.

fit = ep.models.logistic_regression({"dose": X[:, 1]}, y)
print(fit)
plt.show()

# %%
# **Next**: :func:`meanmap.ep.ask` asks one factor alone, :class:`meanmap.ep.HostOracle` is for a simulator in Python,
# and :func:`meanmap.families.from_numpyro` takes NumPyro's distributions as priors.
