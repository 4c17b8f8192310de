"""
Watching for drift
==================

Batches arrive and are compared with a reference. Testing each at level 0.05 would raise a false alarm once in twenty
batches; here the guarantee covers all batches together.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(0)

# %%
# A process with three columns. After batch 60 two of them become correlated, which no chart of means or spreads shows;
# after batch 100 it is repaired.


def produce(rows, together=0.0):
    x = rng.normal(size=(rows, 3))
    x[:, 1] = together * x[:, 0] + np.sqrt(1 - together**2) * x[:, 1]
    return x


monitor = mm.DriftMonitor.of(produce(4000), run_length=1000, rng=0)
for t in range(140):
    monitor = monitor.step(produce(100, together=0.7 * (60 <= t < 100)))
print(monitor)

# %%
# Evidence accumulates from batch to batch and is reset at each alarm, so that alarms continue while the drift does. A
# batch that raises an alarm never joins the pool of rows to which later batches are compared, and none joins it while
# the drift lasts. All others do, so a drift too slow for alarms becomes part of the pool. P-values are independent and
# uniform as long as there is no drift.

figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True)
monitor.plot(above)
below.plot(np.arange(1, 141), monitor.pvalues, ".")
below.set(xlabel="batch", ylabel="p-value")
for axes in (above, below):
    axes.axvspan(60.5, 100.5, color="0.93", zorder=0)

# %%
# What drifted? The two-sample test says which columns, and a saved monitor continues where it stopped.

result = mm.two_sample_test(produce(300), produce(300, together=0.7), rng=0)
print({name: round(share, 2) for name, share in result.driving_columns(rng=0).items()})
plt.show()
