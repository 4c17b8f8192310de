"""
For users of probabilistic programs: beliefs by messages
========================================================

A model is a graph of variables and factors; expectation propagation passes Gaussian, Beta and Gamma messages until they
agree. Factors may be any function, and each answer comes with an estimate of its error.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(5)

# %%
# Ready-made models
# -----------------
#
# Most regressions need no hand-written graph: a table goes in, a table of coefficients comes out.

trial = {"dose": rng.gamma(2.0, 1.0, 150), "age": rng.normal(55, 12, 150)}
chance = 1 / (1 + np.exp(-(1.2 * trial["dose"] - 0.05 * (trial["age"] - 55) - 1.5)))
recovered = rng.uniform(size=150) < chance
print(ep.models.logistic_regression(trial, recovered))

# %%
# Your own model
# --------------
#
# Now a model that is not ready-made. Ten machines lose a liquid: the amount that drips out in an hour is a saturating
# function of the width of the leak, and each machine was weighed once, with noise. A variable with a plate of ten
# represents all ten machines.

true_leaks = rng.normal(0.5, 1.0, 10)
drip = 3 / (1 + np.exp(-2 * true_leaks))
weighed = drip + 0.2 * rng.normal(size=10)


def loss(leak):
    """Litres per hour, given the logarithm of a leak's width."""
    return 3.0 / (1.0 + jnp.exp(-2.0 * leak))


leak = ep.Variable("leak", ep.Normal(np.full(10, 0.5), 1.0))
lost = ep.Variable("lost", ep.Normal, plate=10)
model = ep.FactorGraph(ep.BlackBox(loss, leak, lost), ep.Gaussian(lost, observed=weighed, precision=1 / 0.2**2))
model.plot()

# %%
# The function is a factor like any other. Its messages are integrals, computed by quadrature for one input and one
# output; the report says whether the messages converged, and what the run cost.

post = ep.infer(model)
print(post.report)
belief = post["leak"]
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
axes.errorbar(range(10), belief.mean(), 2 * belief.sd(), fmt="o", capsize=3, label="belief, two standard deviations")
axes.plot(range(10), true_leaks, "kx", label="truth")
axes.set(xlabel="machine", ylabel="logarithm of the leak")
axes.legend()

# %%
# Where the function is flat, for the machines with large leaks, the weights say little and beliefs are wider. "Improper
# messages" are not an error here: the message of a steep function is larger at both ends than in the middle, a shape
# that no Normal has; the beliefs, products of all messages, are proper. The evidence compares models: is the noise .2?

for noise in (0.1, 0.2, 0.5):
    seen = ep.Gaussian(lost, observed=weighed, precision=1 / noise**2)
    print(noise, round(ep.infer(ep.FactorGraph(ep.BlackBox(loss, leak, lost), seen)).log_evidence, 2))

# %%
# How sure is a message?
# ----------------------
#
# Quadrature is one of several oracles. Sampling oracles handle more inputs and random functions, and every oracle
# states its doubt: by how many standard deviations the belief may be off. Higher accuracy can be requested.

cavity = ep.Normal(np.array([0.0, 2.0]), 1.0)
factor = ep.BlackBox(loss, ep.Variable("leak", ep.Normal), ep.Variable("lost", ep.Normal))
outcome = ep.Normal(np.array([1.5, 2.9]), 0.1)
for oracle in (ep.Quadrature(), ep.ImportanceSampling(2000), ep.Stratified(1000)):
    answer = ep.extending.ask(factor, cavity, outcome, oracle=oracle, rng=0)
    print(f"{type(oracle).__name__:20} doubt {np.max(answer.doubt):.1e}")

# %%
# When a factor is expensive
# --------------------------
#
# If each call runs a simulator, nearly the same messages are requested again and again. `ep.Learned` learns to predict
# them during inference: if it is sure of a message, it returns it; otherwise it asks the oracle, and learns from the
# answer. It audits itself, and carries over from one problem to the next. The function below is quick, so that
# `ep.Learned()` would learn nothing, and say so; with an oracle of its own it learns whatever that costs.

learned = ep.Learned(ep.Quadrature())
for day in range(4):
    again = 3 / (1 + np.exp(-2 * rng.normal(0.5, 1.0, 200))) + 0.2 * rng.normal(size=200)
    many = ep.Variable("leak", ep.Normal(np.full(200, 0.5), 1.0))
    out = ep.Variable("lost", ep.Normal, plate=200)
    problem = ep.FactorGraph(
        ep.BlackBox(loss, many, out, name="loss"), ep.Gaussian(out, observed=again, precision=1 / 0.2**2)
    )
    quick, exact = ep.infer(problem, messages=learned, rng=0), ep.infer(problem)
    diary = learned.diary("loss")
    difference = float(np.max(exact["leak"].kl(quick["leak"])))
    print(f"day {day}: asked {diary.asked + diary.audited} times, largest KL to quadrature {difference:.1e}")

# %%
# A function in JAX is cheap, so nothing was gained here, and the report says so. Nor is there much to gain from a slow
# function of one or two numbers: by default `ep.infer` keeps its values and interpolates between them. Learned messages
# are for slow functions of three or more numbers, and save most in the first data sets (:doc:`/choosing`).
#
# Not shown here: Gaussian processes and rankings (``ep.models``), your own oracles
# (:ref:`sphx_glr_gallery_ep_plot_own_oracle.py`), saving a learned operator for colleagues (`mm.save`), random
# simulators (``ep.models.simulator``), and draws for ArviZ (``mm.io.to_arviz``).
plt.show()
