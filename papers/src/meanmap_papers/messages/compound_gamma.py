"""The compound gamma prior of a precision, problem after problem (figure 4 of the paper)."""

import math
import time

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# Chosen on seeds 401 to 404, which are not reported: a percent bears more doubt than the default, but not a novelty of
# 1 to 2, where one message in six is further off; and a first batch of a hundred leaves less to ask for later than the
# twenty of the paper.
THRESHOLD, INITIAL, D_IN, D_OUT, AUDIT = 1.0, 100, 300, 500, 0.005
# Nodes of the quadrature used as oracle, and problems that are timed.
NODES, TIMED = 2001, 1000


def problems(n: int, rng: np.random.Generator) -> np.ndarray:
    """Shape and rate of the likelihood of a precision τ under 10 to 100 draws from N(0, 1/τ), τ from the prior."""
    tau = rng.gamma(1.0, 1 / rng.gamma(1.0, 1.0, n))
    counts = rng.integers(10, 101, n)
    squares = np.array([(rng.normal(size=count) ** 2).sum() for count in counts]) / tau
    return np.stack([1 + counts / 2, squares / 2])


def run(setting: Setting) -> Outcome:
    """One message a problem into the factor ∫ Gamma(τ; 1, r) Gamma(r; 1, 1) dr = (1 + τ)⁻²."""
    import jax
    from matplotlib import pyplot

    from meanmap import ep
    from meanmap.ep.learned import KernelRegression, MessageOperator, log_compound_gamma
    from meanmap_papers.messages.judges import worst_z

    count = setting.choose(smoke=60, quick=2000, paper=10_000)
    factor = ep.Density(log_compound_gamma, ep.Variable("tau", ep.Gamma))
    came = ep.Gamma(*problems(count, setting.rng(0)))
    exact = came * ep.ask(factor, came, oracle=ep.Quadrature(points=NODES)).messages[0]
    operator = MessageOperator(KernelRegression(d_in=D_IN, d_out=D_OUT))
    initial = setting.choose(smoke=20, quick=INITIAL, paper=INITIAL)
    learned = ep.Learned(initial=initial, threshold=THRESHOLD, audit=AUDIT, operator=operator)
    learned.check(factor)
    natural, asked, spent = [], [], []
    for at in range(count):
        start = time.process_time()
        questions = ep.extending.Questions.of(factor, (came[at : at + 1],), 1.0, jax.random.key(at), at)
        natural.append(np.ravel(learned.answer(questions).messages[0].natural))
        asked.append(learned.diary(factor.name).sweeps[-1][0])
        spent.append(time.process_time() - start)
    timed = min(TIMED, count // 4)  # the last problems, when everything is compiled and learned
    always = []
    for at in range(count - timed - 1, count):
        start = time.process_time()
        ep.ask(factor, came[at : at + 1], oracle=ep.Quadrature(points=NODES))
        always.append(time.process_time() - start)
    always, just_in_time = 1e3 * np.array(always[1:]), 1e3 * np.array(spent[-timed:])
    posterior = came * ep.Gamma.from_natural(*np.transpose(natural))
    errors = np.stack([posterior.shape_parameter / exact.shape_parameter - 1, posterior.rate / exact.rate - 1])
    worst = abs(errors).max(axis=0)
    # The first batch is always computed by the oracle.
    quarters = np.array_split(np.array(asked[initial:]), 4)
    after, late = (Number.share([bool(each) for each in quarters[at]]) for at in (0, -1))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    left.loglog(exact.rate, np.maximum(worst, 1e-8), ".", markersize=2)
    left.axhline(0.01, color="0.6", linestyle=":")
    left.set(xlabel="rate of the posterior by quadrature", ylabel="relative error of shape or rate")
    window = min(100, count // 4)
    right.plot(np.convolve(asked, np.ones(window) / window, mode="valid"))
    right.set(xlabel="problem", ylabel=f"part asked, over {window} problems", ylim=(0, None))
    numbers = {
        "within 1%": Number(float((worst < 0.01).mean()), float(np.sqrt(0.01 * 0.99 / count))),
        "asked in the first quarter": after,
        "asked in the last quarter": late,
        "asked less in the last quarter": Number(
            after.value - late.value, math.hypot(after.error or 0, late.error or 0)
        ),
        "milliseconds a problem, quadrature": Number.mean(always),
        "milliseconds a problem, learned": Number.mean(just_in_time),
        "times less than quadrature": Number.ratio(always, just_in_time),
        "rms z": worst_z(learned.diary(factor.name).scores),
    }
    shares = ", ".join(f"{np.mean(quarter):.1%}" for quarter in quarters)
    text = (
        f"{numbers['within 1%'].value:.1%} of {count} posteriors have shape and rate within 1% of quadrature; after "
        f"the first batch {shares} of the four quarters of the problems were asked. A problem takes "
        f"{just_in_time.mean():.1f} ms learned and {always.mean():.1f} ms by quadrature."
    )
    return Outcome(
        text,
        numbers,
        ((figure, "Left, the error of each posterior. Right, how often the oracle was asked."),),
        notes=(
            (
                f"The oracle is quadrature with {NODES} nodes in log τ; 10⁶ nodes, as the code of the authors sets "
                "them, differ from it by less than 10⁻⁹."
            ),
            f"Both are timed on the last {timed} problems, one at a time, in processor seconds.",
            (
                "An earlier run at the paper's size was discarded (seed 2027, commit 86328da): with a threshold of 2 "
                "instead of 1, 98.6 ± .1% of its posteriors were within 1%, below the 99% that are required, and the "
                "root mean square z of audits was 1.4. The threshold was then chosen on seeds 401 to 404."
            ),
        ),
    )


EXPERIMENT = Experiment(
    "messages-compound-gamma",
    "The precision of a Gaussian under a compound gamma prior",
    "Jitkrittum et al. (2015), figure 4; its draft, figures 7 and 9",
    (
        Claim("posteriors are those of the oracle (figures 4a, 4b)", "within 1%", low=0.99, scales=("quick", "paper")),
        Claim(
            "the time is several orders of magnitude lower (figure 4c)",
            "times less than quadrature",
            low=100.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "fewer questions as problems are seen (experiment 2)",
            "asked less in the last quarter",
            low=0.0,
            scales=("quick", "paper"),
        ),
        Claim("errors found by audits are no larger than stated (root mean square z)", "rms z", high=1.0, ours=True),
    ),
    {"smoke": 0.3, "quick": 1, "paper": 4},
    run,
)
