"""
For testers: did anything change?
=================================

Two samples, one question, and an answer that can be defended: what the p-value means, where the difference is, whether
the test keeps its level on data like yours, and how many rows the next study needs.
"""

import matplotlib.pyplot as plt
import numpy as np

import meanmap as mm

rng = np.random.default_rng(7)

# %%
# The question
# ------------
#
# A dairy has changed the supplier of its feed. Before and after the change, 250 cows were weighed, milked and graded.
# The average yield is the same. Has anything else changed?
#
# Tables are passed as they are, as a mapping of columns or a data frame, with numbers and labels side by side.


def herd(n, rng, after):
    """Yield, fat and grade. After the change yields vary more, and fat no longer falls with yield."""
    health = rng.normal(size=n)
    spread = 1.6 if after else 1.0
    milk = 25 + 3 * spread * health + rng.normal(size=n)
    fat = 4.2 - (0.0 if after else 0.25) * health + 0.3 * rng.normal(size=n)
    grade = np.where(health + 0.5 * rng.normal(size=n) > 0, "A", "B")
    return {"milk": milk, "fat": fat, "weight": rng.normal(600, 40, n), "grade": grade}


before, after = herd(250, rng, False), herd(250, rng, True)
for column in ("milk", "fat", "weight"):
    print(f"{column:7} {before[column].mean():7.2f} {after[column].mean():7.2f}")

# %%
# The test
# --------
#
# Each sample is represented by its mean embedding, the average of a kernel's features over the sample, and the
# statistic is the squared distance between the two embeddings. With a characteristic kernel the distance is zero only
# if the distributions are equal, so the test responds to any kind of change: in a mean, a spread, a correlation, a
# share of labels.

result = mm.two_sample_test(before, after, rng=0)
print(result)

# %%
# The p-value is that of a permutation test. If nothing had changed, the labels "before" and "after" would be arbitrary,
# and any permutation of them would be as likely to give a statistic at least as large as the observed one. This
# argument needs no assumption about the distributions and no large sample: a true null hypothesis gives a p-value below
# .05 with a probability of at most 5%. The seed is part of the result and reproduces the same number.

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
result.plot(axes)

# %%
# Where is the difference?
# ------------------------
#
# A rejection alone is of little use. Permuting one column at a time over both samples shows how much of the difference
# it accounts for, through its own values or its relation to other columns. Milk accounts for most, then grade and fat,
# which are related to milk. Weight plays no part: without it the difference is even detected slightly better.

for column, share in result.driving_columns(rng=0).items():
    print(f"{column:7} {share:6.1%} of MMD² is lost when it is shuffled")

# %%
# The witness is the difference of the two embeddings, a function on the data space: high where "before" has more mass,
# low where "after" has. Here it is shown for two columns: the middle has emptied, and the tilt is gone.

pair = [np.column_stack([sample["milk"], sample["fat"]]) for sample in (before, after)]
scaled = [(sample - pair[0].mean(0)) / pair[0].std(0) for sample in pair]
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
mm.two_sample_test(*scaled, rng=0).plot_witness(axes)
axes.set(xlabel="milk, standardised", ylabel="fat, standardised")

# %%
# Is the level kept, and was the sample large enough?
# ---------------------------------------------------
#
# Both questions are about repeated samples, and can be answered by simulation. `rejection_rate` takes any test and any
# function that draws data; the interval after the rate reflects the number of repetitions. First, data in which nothing
# changed.


def quick(x, y, rng):
    """The same test with fewer permutations, for simulations."""
    return mm.two_sample_test(x, y, n_permutations=199, rng=rng)


def nothing_changed(rng):
    """Two herds from the same year."""
    return herd(60, rng, False), herd(60, rng, False)


print(mm.stats.rejection_rate(quick, nothing_changed, repeats=100, rng=1))

# %%
# Then data in which something did: how many cows must be measured to detect it nine times in ten?


def changed(n, rng):
    """Herds of n cows before and after."""
    return herd(n, rng, False), herd(n, rng, True)


curve = mm.stats.power_curve(quick, changed, [25, 50, 100, 150], repeats=40, rng=2)
print(curve)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
curve.plot(axes)

# %%
# Which kernel?
# -------------
#
# For tables with labels the default is one kernel over all columns. For numbers alone it is five at once, from fine to
# coarse, because the usual choice, the median distance, misses differences on much finer scales. A kernel may also be
# learned from the pooled sample. Do not try several tests and report the best: pass them together, as a list, and the
# maximum of their statistics is calibrated as one statistic.

coarse = rng.uniform(0, 10, 400)
fine = coarse + 0.3 * np.sin(2 * np.pi * coarse)
x, y = coarse[:200], fine[200:]
kernels = {"default": None, "median": "median", "learned": "learned", "two": [mm.kernels.RBF(0.2), mm.kernels.RBF(2.0)]}
for name, kernel in kernels.items():
    print(f"{name:8} p = {mm.two_sample_test(x, y, kernel, rng=0).pvalue:.3f}")

# %%
# Independence is the same question
# ---------------------------------
#
# Two variables are independent if their pairs have the same distribution as permuted pairs. `independence_test` takes
# numbers, labels and tables; `conditional_independence_test` asks whether any dependence is left given a third
# variable.

print(mm.independence_test(before["milk"], before["fat"], rng=0).pvalue)
print(mm.independence_test(before["milk"], before["weight"], rng=0).pvalue)
print(mm.conditional_independence_test(before["milk"], before["fat"], before["grade"], rng=0).pvalue)

# %%
# From now on
# -----------
#
# A test once a week will raise a false alarm some week. A monitor compares every batch with the reference, and its
# guarantee covers all batches together: while nothing changes, at most one alarm in 1000 batches is expected.

reference = herd(1500, rng, False)
monitor = mm.DriftMonitor.of(np.column_stack([reference["milk"], reference["fat"]]), rng=0)
for week in range(60):
    batch = herd(50, rng, after=week >= 40)
    monitor = monitor.step(np.column_stack([batch["milk"], batch["fat"]]))
print(monitor)
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
monitor.plot(axes)
axes.axvline(40.5, color="0.7", linestyle=":")

# %%
# From the command line
# ---------------------
#
# The same on files, with a page that can be shared:
#
# .. code-block:: sh
#
#    meanmap test two-sample before.csv after.csv --report difference.html
#    meanmap test independence before.csv --x milk --y fat
#
# :doc:`/choosing` explains when to change the defaults. Not shown here: samples of a million rows or from a stream,
# which use the same call (:ref:`sphx_glr_gallery_tests_plot_two_samples.py`); dependent rows such as time series, to
# which these permutation arguments do not apply directly; and more than two samples at once
# (:func:`~meanmap.stats.k_sample_test`).
plt.show()
