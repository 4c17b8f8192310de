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
# The most nodes of the quadrature used as oracle, those of the quadrature in the code of the authors, and problems that
# are timed.
NODES, AUTHORS, TIMED = 2001, 1_000_000, 1000


def problems(n: int, rng: np.random.Generator) -> np.ndarray:
    """Shape and rate of the likelihood of a precision τ under 10 to 100 draws from N(0, 1/τ), τ from the prior."""
    tau = rng.gamma(1.0, 1 / rng.gamma(1.0, 1.0, n))
    counts = rng.integers(10, 101, n)
    squares = np.array([(rng.normal(size=count) ** 2).sum() for count in counts]) / tau
    return np.stack([1 + counts / 2, squares / 2])


def moments(shape: float, rate: float, nodes: int = AUTHORS) -> tuple[float, float]:
    """E τ and E log τ under Gamma(τ; shape, rate) (1 + τ)⁻², by the trapezium rule in log τ."""
    reach = 16 / math.sqrt(shape)
    logs = np.linspace(-reach, reach, nodes) + math.log(shape / rate)
    tau = np.exp(logs)
    heights = shape * logs - rate * tau - 2 * np.log1p(tau)
    weights = np.exp(heights - heights.max())
    return float(weights @ tau / weights.sum()), float(weights @ logs / weights.sum())


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
    plain = []
    for shape, rate in zip(came.shape_parameter[-timed:].tolist(), came.rate[-timed:].tolist(), strict=True):
        start = time.process_time()
        moments(shape, rate)
        plain.append(time.process_time() - start)
    always, plain, just_in_time = 1e3 * np.array(always[1:]), 1e3 * np.array(plain), 1e3 * np.array(spent[-timed:])
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
        "within 1%": Number.share([bool(each) for each in worst < 0.01]),
        "share asked, first quarter": after,
        "share asked, last quarter": late,
        "share asked, first quarter minus last": Number(
            after.value - late.value, math.hypot(after.error or 0, late.error or 0)
        ),
        "milliseconds a problem, the library's quadrature": Number.mean(always),
        "milliseconds a problem, quadrature with 10⁶ nodes": Number.mean(plain),
        "milliseconds a problem, learned": Number.mean(just_in_time),
        "time of quadrature with 10⁶ nodes over that of learned messages": Number.ratio(plain, just_in_time),
        "time of the library's quadrature over that of learned messages": Number.ratio(always, just_in_time),
        "rms z": worst_z(learned.diary(factor.name).scores),
    }
    shares = ", ".join(f"{np.mean(quarter):.1%}" for quarter in quarters)
    text = (
        f"{numbers['within 1%'].value:.1%} of {count} posteriors have shape and rate within 1% of those by "
        f"quadrature. After the first batch the oracle was asked in {shares} of the problems of each quarter. A "
        f"problem takes {just_in_time.mean():.1f} ms with learned messages, {plain.mean():.0f} ms by quadrature with "
        f"the 10⁶ nodes of the authors' code, and {always.mean():.1f} ms by the library's quadrature."
    )
    return Outcome(
        text,
        numbers,
        ((figure, "Left, the error of each posterior. Right, how often the oracle was asked."),),
        notes=(
            (
                f"The oracle is the library's quadrature in log τ, with at most {NODES} nodes. The code of the "
                "authors sets 10⁶ nodes, and the claim about time is judged against as many: a plain trapezium rule "
                "in NumPy, which gives the same moments to 10⁻⁹. Infer.NET itself, which the paper timed, was not "
                "run."
            ),
            (
                "The operator is the library's own, which learns derivatives of log Z with a threshold of 1. It is not "
                "the paper's, which does not state the threshold and the first batch of this experiment; the code of "
                "its authors learns the shape and the rate of the outgoing message. So the claims are ours. The "
                "standard error of a share is that of its problems, all of them with one operator."
            ),
            f"All are timed on the last {timed} problems, one at a time, in processor seconds.",
            (
                "An earlier run at the paper's size was discarded (seed 2027, commit 86328da): with a threshold of 2 "
                "instead of 1, 98.6 ± 0.1% of its posteriors were within 1%, below the 99% that we require, and the "
                "root mean square z of audits was 1.4. The threshold was then chosen on seeds 401 to 404, so that "
                "the claim of 99% is no independent test of it."
            ),
        ),
    )


EXPERIMENT = Experiment(
    "messages-compound-gamma",
    "The precision of a Gaussian under a compound gamma prior",
    "Jitkrittum et al. (2015), figure 4; its draft, figures 7 and 9",
    (
        Claim(
            "with the library's operator 99% of the posteriors are within 1% of those of the oracle (of figures "
            "4a, 4b)",
            "within 1%",
            low=0.99,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "its time is a hundredth of that of quadrature with 10⁶ nodes or less (of figure 4c)",
            "time of quadrature with 10⁶ nodes over that of learned messages",
            low=100.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "it asks the oracle less often as more problems are seen (of experiment 2)",
            "share asked, first quarter minus last",
            low=0.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim("the root mean square of the audits' z-scores is at most 1", "rms z", high=1.0, ours=True),
    ),
    {"smoke": 0.3, "quick": 1, "paper": 4},
    run,
)
