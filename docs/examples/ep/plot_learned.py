"""
Messages learned just in time
=============================

The same factor occurs in problem after problem. An operator learns its messages: it predicts those of which it is sure,
asks an oracle for the others, and is reused in the next problem.
"""

import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep
from meanmap.ep.learned import Card, MessageOperator, Recorded
from meanmap_papers.rivals import Forest

rng = np.random.default_rng(0)


def problem(n=200, d=4):
    """A logistic regression with weights of its own."""
    X = rng.normal(size=(n, d))
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-X @ rng.normal(size=d)))
    w = ep.Variable("w", ep.MultivariateNormal.standard(d))
    z = ep.Variable("z", ep.Normal, plate=n)
    return ep.FactorGraph(ep.Dot(X, w, z), ep.Logistic(z, observed=y.astype(int)))


# %%
# Four problems in turn, with the same `Learned`: each asks less than the one before, and each posterior agrees with
# quadrature. (Quadrature is cheap, so that learning does not pay here: `ep.Learned()` would ask for every message, and
# the report would say so. With an oracle of its own it learns whatever that costs.)

learned, asked, post = ep.Learned(ep.Quadrature()), [], None
for _ in range(4):
    model = problem()
    post = ep.infer(model, messages=learned, rng=0)
    diary = learned.diary("Logistic(z)")
    asked += [part / all_ for part, all_, _ in diary.sweeps]
    print(f"asked {diary.asked + diary.audited:4d}, KL {float(ep.infer(model)['w'].kl(post['w'])):.1e}")
print(post)
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
axes.plot(asked)
axes.set(xlabel="sweep, over all problems", ylabel="share asked of the oracle")

# %%
# A learned operator can be saved, with a card for its users that says what it learned from and how large its errors are
# on other messages. ``meanmap operators build`` makes such files for common factors.

factor = problem().factors[1]
fresh = ep.Normal(rng.normal(size=200), rng.uniform(0.05, 2, 200)), rng.integers(0, 2, 200).astype(float)
exact = ep.extending.ask(ep.Logistic(ep.Variable("z", ep.Normal, plate=200), observed=fresh[1]), fresh[0])
operator = learned.trained(factor)
print(Card.of(operator, factor, Recorded.of(fresh, exact), advice=("alone: quadrature is quicker for this factor.",)))

# %%
# Extrapolation. Both operators learned messages with means between −4 and 4; along the line to 10 the doubt of the
# kernel regression rises, while every message beyond 4 ends in the same leaf of each tree.

factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
came = ep.Normal(rng.uniform(-4, 4, 512), np.exp(rng.uniform(-3, 1, 512)))
line = ep.Normal(np.linspace(0, 10, 101), 0.5)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for name, operator in (("kernel", MessageOperator()), ("forest", MessageOperator(Forest()))):
    said = operator.learn((came,), ep.extending.ask(factor, came)).predict((line,))
    axes.semilogy(line.mean(), said.novelty, label=name)
axes.axvline(4, color="0.7", linestyle=":")
axes.set(xlabel="mean of the incoming message", ylabel="novelty, in units of the noise")
axes.legend(frameon=False)
plt.show()
