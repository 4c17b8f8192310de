"""
Writing your own oracle
=======================

The computation of messages is a plain function: here one that remembers its answers, audits itself, and draws more
points where necessary.
"""

import jax
import matplotlib.pyplot as plt
import numpy as np

from meanmap import ep

rng = np.random.default_rng(0)

# %%
# A factor that JAX cannot compile: a Python function, which is called on the host, here for many points at once. It
# stands for an existing simulator.

calls = []


def dose_response(dose):
    """Saturating, with a kink."""
    calls.append(len(dose))
    return np.where(dose > 0, np.tanh(dose), 0.2 * dose)


dose = ep.Variable("dose", ep.Normal(np.linspace(-2, 2, 12), 1.0))
effect = ep.Variable("effect", ep.Normal, plate=12)
observed = np.tanh(np.linspace(-1, 2, 12)) + 0.1 * rng.normal(size=12)
simulator = ep.BlackBox(dose_response, dose, effect, vectorised=True, name="simulator")
model = ep.FactorGraph(simulator, ep.Gaussian(effect, observed=observed, precision=100.0))
model.plot()

# %%
# In each sweep an oracle on the host receives the incoming messages of all twelve members. This one draws points from
# the strata of each cavity until the error of every belief is at most a twentieth of its standard deviation.


def careful(questions):
    """Two hundred points for each, and more for those that need them."""
    return questions.ask(ep.Stratified(200), error=0.05)


post = ep.infer(model, messages=careful, rng=0)
print(post.report)
print("points in the largest batch:", max(calls))

# %%
# State that persists between sweeps, and between models, lives in an object. This one answers from memory if a question
# resembles an earlier one, and audits one answer in each sweep.


class Remembering(ep.extending.HostOracle):
    """Old answers to questions that are near."""

    def __init__(self, oracle, reach):
        self.oracle, self.reach, self.old, self.audits, self.remembered = oracle, reach, None, [], 0

    def answer(self, questions):
        """From memory, or asked."""
        points = np.column_stack([eta for message in questions.incoming for eta in message.natural])
        if self.old is None:
            answer, new = questions.ask(self.oracle), np.arange(len(questions))
            self.old = points, answer
        else:
            distance = np.abs(points[:, None] - self.old[0]).max(-1)
            answer = self.old[1][distance.argmin(1)]
            new = np.flatnonzero(distance.min(1) > self.reach)
            if len(new):
                fresh = questions[new].ask(self.oracle)
                answer = answer.put(new, fresh)
                self.old = np.concatenate([self.old[0], points[new]]), joined(self.old[1], fresh)
        audited = questions.generator().integers(len(questions), size=1)
        exact = questions[audited].ask(self.oracle).messages[0]
        self.audits.append(float(answer.messages[0].precision[audited][0] - exact.precision[0]))
        self.remembered += len(questions) - len(new)
        return answer

    def counts(self, factor):
        """What the report shows beside the engine's own counts."""
        return {"answered from memory": self.remembered, "audits": len(self.audits)}


def joined(first, second):
    """One answer after another."""
    return jax.tree.map(lambda a, b: np.concatenate([a, b]), first, second)


remembering = Remembering(ep.Quadrature(), reach=0.01)
exact = ep.infer(model)
again = ep.infer(model, messages=remembering)
print(again.report)

# %%
# Both agree with quadrature.

figure, axes = plt.subplots()
for shift, (label, found) in enumerate({"quadrature": exact, "careful": post, "remembering": again}.items()):
    belief = found["dose"]
    axes.errorbar(np.arange(12) + 0.2 * shift, belief.mean(), belief.sd(), fmt="o", ms=4, capsize=2, label=label)
axes.set(xlabel="member of the plate", ylabel="dose: mean and standard deviation")
axes.legend()
plt.show()
