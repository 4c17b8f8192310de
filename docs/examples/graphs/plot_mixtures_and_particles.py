"""
Mixtures and particles
======================

Two more representations of messages about numbers, compared with kernel belief propagation on a chain: mixtures of
Gaussians, and weighted particles. Both use a conditional density that is learned from pairs.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm
from meanmap_papers import rivals

rng = np.random.default_rng(0)

# %%
# Neighbours on the chain mostly have the same sign, and opposite signs one time in seven. The conditional density of a
# neighbour given a value has two modes; least squares estimates it in closed form, from 800 pairs.

x = rng.choice([-1.5, 1.5], 800) + 0.4 * rng.normal(size=800)
y = np.where(rng.random(800) < 6 / 7, 1, -1) * x + 0.3 * rng.normal(size=800)
density = rivals.least_squares_density(x, y)
grid = np.linspace(-3.2, 3.2, 200)
figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.scatter(x, y, s=4, color="lightgray")
for at in (-1.5, 1.0):
    curve = np.exp(density.log_density(np.full(200, at), grid))
    axes.plot(at + 0.8 * curve, grid, label=f"given {at}")
axes.set(xlabel="a variable", ylabel="its neighbour")
_ = axes.legend(loc="center left")

# %%
# Five variables; the first was observed exactly, the last with noise. Changing one line changes the method.

chain = [(i, i + 1) for i in range(4)]
evidence = {0: 1.3, 4: lambda x: np.exp(-((x + 0.3) ** 2))}
methods = {
    "kernel": mm.KernelField(chain),
    "mixture": rivals.MixtureField(chain, components=100),
    "particle": rivals.ParticleField(chain, particles=100),
    "particle, adaptive": rivals.ParticleField(chain, particles=100, proposal=rivals.Adaptive()),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3), sharey=True, layout="constrained")
for name, method in methods.items():
    field = method.fit((x, y))
    beliefs = field.query(evidence) if name == "kernel" else field.query(evidence, rng=0)
    for node, axis in zip((1, 2, 3), axes, strict=True):
        axis.plot(grid, beliefs[node].density(grid, bandwidth=0.2), label=name)
        axis.set(xlabel=f"variable {node}")
    print(f"{name}: P(variable 3 > 0) = {beliefs[3].expect(lambda x: x > 0):.2f}")
axes[0].set(ylabel="density of the belief")
_ = axes[0].legend(fontsize=8)

# %%
# Particles are weighted, and a few of them may carry all the weight; the report gives the effective number of
# particles.

print(beliefs.report)

# %%
# The belief of a node is a product of mixtures, with too many components to enumerate. A tree over the components draws
# from it exactly. Here are two mixtures of 300 components, whose product has 90,000.

means = np.stack([rng.normal(-0.5, 1, (300, 1)), rng.normal(0.8, 0.7, (300, 1))])[None]
factors = rivals.mixtures.Mixtures.of(np.ones((1, 2, 300)), means, np.full((1, 2, 1), 0.15**2))
draws = rivals.mixtures.sample_product(factors, 4000, rivals.Multiscale(), rng=0)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.hist(draws.points[0, :, 0], bins=60, density=True, color="lightgray", label="4000 draws")
logs = factors.log_density(grid[:, None])[0]
for i in range(2):
    axes.plot(grid, np.exp(logs[i]), linewidth=1, label=f"factor {i + 1}")
exact = rivals.mixtures.product(factors)
axes.plot(grid, np.exp(exact.log_density(grid[:, None]))[0], color="black", label="product")
axes.set(xlabel="value", ylabel="density")
_ = axes.legend()
plt.show()
