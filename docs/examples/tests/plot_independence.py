"""
Are variables independent, and how many points does a test need?
=================================================================

One call for numbers, labels and whole tables, for a few rows or a stream of them; and a simulation of the level and
power of a test.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A fine wave: no correlation, and no dependence visible at the scale of the median distance. The default uses five
# lengthscales of each variable, twenty pairs, and keeps the level exactly.

x = rng.uniform(-np.pi, np.pi, 150)
y = np.sin(4 * x) + 0.5 * rng.normal(size=150)
result = mm.independence_test(x, y, rng=0)
print(result)
print("with the median heuristic: p =", mm.independence_test(x, y, "median", rng=0).pvalue)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(x, y, ".")
left.set(xlabel="x", ylabel="y", title=f"correlation {np.corrcoef(x, y)[0, 1]:.2f}")
result.plot(right)

# %%
# Labels and mixed tables are variables like any other.

town = rng.choice(["Aalen", "Bonn", "Celle"], 200)
income = rng.normal(size=200) * np.where(town == "Bonn", 2.0, 1.0)
print(mm.independence_test({"town": town, "age": rng.normal(size=200)}, income, rng=0))

# %%
# Three variables can be pairwise independent without being jointly independent.

a, b, noise = rng.normal(size=(3, 200))
c = np.abs(noise) * np.sign(a * b)
print(mm.independence_test(a, c, rng=0).pvalue, mm.joint_independence_test([a, b, c], rng=0).pvalue)

# %%
# Data that do not fit in memory come in pieces: memory-mapped arrays, Parquet files, or an iterator.


def pieces():
    for _ in range(10):
        first = rng.normal(size=5000)
        yield first, 0.03 * first**2 + rng.normal(size=5000)


print(mm.independence_test(pieces(), rng=0))

# %%
# Does a test keep its level, and how many points does it need? Simulation answers both for any test, from any library.


def test(x, y, rng):
    return mm.independence_test(x, y, n_permutations=199, rng=rng)


def independent(generator):
    return generator.normal(size=50), generator.exponential(size=50)


def wave(n, generator):
    x = generator.uniform(-np.pi, np.pi, n)
    return x, np.sin(2 * x) + generator.normal(size=n)


level = mm.stats.rejection_rate(test, independent, repeats=200, rng=0)
power = mm.stats.power_curve(test, wave, [25, 50, 100, 200], repeats=50, rng=0)
print(level)
print(power)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
level.plot(left)
power.plot(right)
