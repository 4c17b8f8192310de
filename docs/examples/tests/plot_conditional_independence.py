"""
Independent given what?
=======================

Two effects of one cause are dependent, but independent given the cause. Two causes of one effect are independent, but
dependent given the effect.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A common cause. The test knows neither curve; after regressing each variable on z only noise is left.

n = 400
z = rng.uniform(-2, 2, n)
x, y = np.sin(2 * z) + 0.3 * rng.normal(size=n), z**2 / 2 + 0.3 * rng.normal(size=n)
alone, given = mm.independence_test(x, y, rng=0), mm.conditional_independence_test(x, y, z, rng=0)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].scatter(x, y, c=z, s=9)
axes[0].set(title=f"p = {alone.pvalue:.2g} alone, {given.pvalue:.2g} given z (colour)", xlabel="x", ylabel="y")
given.plot(axes[1])
axes[1].set_title("the null and the statistic, given z")

# %%
# A common effect. The causes are independent, but dependent given the effect.

u, v = rng.normal(size=(2, n))
effect = u + v + 0.3 * rng.normal(size=n)
alone, given = mm.independence_test(u, v, rng=0), mm.conditional_independence_test(u, v, effect, rng=0)
figure, axes = plt.subplots()
axes.scatter(u, v, c=effect, s=9)
axes.set(title=f"p = {alone.pvalue:.2g} alone, {given.pvalue:.2g} given their effect (colour)", xlabel="u", ylabel="v")

# %%
# Dependence that cancels over z. The sign of v is that of u where z is positive and the opposite where z is negative,
# so that u and v are independent marginally, and so are their residuals: only a test that takes z into account detects
# it.

z, u, size = rng.normal(size=(3, n))
v = np.abs(size) * np.sign(u * z)
for method in ("kci", "residuals"):
    print(mm.conditional_independence_test(u, v, z, method=method, rng=0))

# %%
# The condition may be labels or a table, and 100,000 rows take seconds.

town = rng.choice(["north", "south", "west"], 100_000)
age = rng.uniform(20, 60, 100_000)
income = age / 20 + (town == "south") + rng.normal(size=100_000)
tea = np.where(rng.random(100_000) < np.where(town == "south", 0.7, 0.3), "tea", "coffee")
print(mm.conditional_independence_test(income, tea, {"town": town, "age": age}, rng=0))
plt.show()
