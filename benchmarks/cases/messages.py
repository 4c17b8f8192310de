"""Messages of expectation propagation: a learned operator against the oracle that taught it."""

from functools import cache
from typing import Any

import jax
import numpy as np

from benchmarks.harness import Case
from meanmap import ep
from meanmap.ep.learned import KernelRegression, MessageOperator

FACTOR = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
# What the paper draws for every message, and a thousandth of that: the whole would take minutes for a plate.
DRAWS, PART = 500_000, 1000


def cavities(n: int) -> Any:
    """Incoming messages: means and variances as in the sweeps of a logistic regression."""
    rng = np.random.default_rng(n)
    return ep.Normal(2 * rng.normal(size=n), np.exp(rng.uniform(np.log(0.05), np.log(3), n)))


@cache
def trained() -> MessageOperator:
    """The operator at the size of the paper, 300 and 500 features."""
    came = cavities(1024)
    return MessageOperator(KernelRegression(tune=None)).learn((came,), ep.extending.ask(FACTOR, came))


def predicted(came: Any) -> np.ndarray:
    """Precisions of the outgoing messages, with error estimates."""
    return trained().predict((came,)).messages[0].precision


def sampled(came: Any) -> np.ndarray:
    """The same by importance sampling with a thousandth of the paper's draws, for each message."""
    oracle = ep.ImportanceSampling(DRAWS // PART, proposal=ep.Normal(0.0, 200.0), paired=False)
    return ep.extending.ask(FACTOR, came, oracle=oracle, rng=0).messages[0].precision


def by_quadrature(came: Any) -> np.ndarray:
    """The same by quadrature."""
    return ep.extending.ask(FACTOR, came).messages[0].precision


def beyond_a_factor_of_ten(ours: np.ndarray, theirs: np.ndarray) -> float:
    """How far the median message is off beyond a factor of ten, which is what a thousandth of the draws leaves."""
    return max(0.0, float(np.median(np.abs(np.log(np.abs(ours / theirs))))) - np.log(10.0))


BLACK_BOX = ep.BlackBox(jax.nn.sigmoid, ep.Variable("z", ep.Normal), ep.Variable("p", ep.Beta))


def to_a_black_box(n: int) -> Any:
    """Incoming messages of the sigmoid as a black box."""
    return cavities(n), ep.Beta(np.full(n, 2.0), np.ones(n))


def box_by_quadrature(came: Any) -> np.ndarray:
    """Precisions of the messages to z."""
    return ep.extending.ask(BLACK_BOX, *came, oracle=ep.Quadrature()).messages[0].precision


def box_by_points(came: Any) -> np.ndarray:
    """The same from 1000 stratified points, with their errors."""
    return ep.extending.ask(BLACK_BOX, *came, oracle=ep.Stratified(1000), rng=0).messages[0].precision


def beyond_sampling(ours: np.ndarray, theirs: np.ndarray) -> float:
    """How far precisions are apart beyond what 1000 points leave."""
    return max(0.0, float(np.max(np.abs(ours - theirs))) - 0.05)


CASES = (
    Case(
        name="black-box-messages",
        title="n pairs of messages of the sigmoid as a black box, by quadrature.",
        sizes=(10_000,),
        setup=to_a_black_box,
        ours=box_by_quadrature,
        peers={"1000 stratified points": box_by_points},
        difference=beyond_sampling,
    ),
    Case(
        name="learned-messages",
        title="n messages of the logistic factor, with error estimates, by an operator of 300 and 500 features, "
        f"float64. Importance sampling has a thousandth of the paper's {DRAWS} draws: multiply its time by a thousand.",
        sizes=(256, 4096),
        setup=cavities,
        ours=predicted,
        peers={"importance sampling, 1/1000": sampled, "quadrature": by_quadrature},
        difference=beyond_a_factor_of_ten,
    ),
)
