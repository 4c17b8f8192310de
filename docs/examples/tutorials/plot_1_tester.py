"""
For testers: are these two things the same?
===========================================

You have measurements from before and after, from two machines, from a model and from reality. This page goes from
"are they the same?" to "where do they differ?", "how many rows would I have needed?" and "tell me when it happens
again".
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# **Two samples.** A sensor before and after a repair: same mean, same spread, and yet something is different, because
# temperature and pressure now go together. A table is a dictionary of columns, a data frame, or an array.


def sensor(rows, together=0.0):
    temperature = rng.normal(20, 3, rows)
    pressure = together * (temperature - 20) / 3 + np.sqrt(1 - together**2) * rng.normal(size=rows)
    return {"temperature": temperature, "pressure": pressure, "noise": rng.normal(size=rows)}


before, after = sensor(250), sensor(250, together=0.6)
result = mm.two_sample_test(before, after, rng=0)
print(result)

# %%
# The p-value comes from 1000 permutations, so it is right at every sample size and for every distribution. Nothing
# had to be chosen: the default looks at five scales at once. (Columns are not rescaled by themselves, so bring them
# to comparable units, or pass ``mm.default_kernel(table)``.)
#
# **Where.** Shuffling one column at a time shows which of them matter; the witness is positive where the first sample
# has more mass.

units = {"temperature": 3.0, "pressure": 1.0, "noise": 1.0}
scaled = [{name: column / units[name] for name, column in table.items()} for table in (before, after)]
result = mm.two_sample_test(*scaled, rng=0)
print({name: round(share, 2) for name, share in result.driving_columns(rng=0).items()})
pair = [{name: table[name] for name in ("temperature", "pressure")} for table in scaled]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
result.plot(left)
mm.two_sample_test(*pair, rng=0).plot_witness(right)

# %%
# **Dependence** is the same question, asked about a joint distribution and the product of its margins. A kernel test
# sees what a correlation cannot.

dose = rng.uniform(-2, 2, 200)
effect = dose**2 + 0.5 * rng.normal(size=200)
print("correlation", round(float(np.corrcoef(dose, effect)[0, 1]), 3))
print(mm.independence_test(dose, effect, rng=0))

# %%
# And with a third variable that may explain it all: both follow the season, and given the season nothing is left.

season = rng.uniform(0, 2 * np.pi, 300)
ice_cream, drowning = (np.sin(season) + 0.4 * rng.normal(size=300) for _ in range(2))
print("p =", mm.independence_test(ice_cream, drowning, rng=0).pvalue, "as they come")
print("p =", mm.conditional_independence_test(ice_cream, drowning, season, rng=0).pvalue, "given the season")

# %%
# **How many rows?** Before an experiment, simulate it. Power is how often a true difference is seen, with its
# binomial interval.

curve = mm.power_curve(
    mm.two_sample_test,
    lambda n, rng: (rng.normal(size=(n, 2)), rng.normal([0.5, 0.0], 1.0, size=(n, 2))),
    sizes=[20, 40, 80, 160],
    repeats=40,
    rng=0,
)
curve.plot()
print(curve)

# %%
# **From now on.** A monitor compares every batch with the reference. Its promise is about all batches together: at
# most one alarm in 1000 batches is expected while nothing changes.

reference = sensor(1500)
monitor = mm.DriftMonitor.of(np.column_stack([reference[name] / units[name] for name in units]), run_length=1000, rng=0)
for t in range(60):
    batch = sensor(50, together=0.0 if t < 40 else 0.8)
    monitor = monitor.step(np.column_stack([batch[name] / units[name] for name in units]))
print(monitor)
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
monitor.plot(axes)
axes.axvline(40.5, color="0.7", ls=":")
plt.show()

# %%
# **Next**: :doc:`/choosing` says when to leave the defaults, :func:`meanmap.k_sample_test` compares more than two
# samples, and ``meanmap test two-sample before.csv after.csv --report page.html`` does it all from a shell.
