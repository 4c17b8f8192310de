"""The compound gamma prior of a precision, problem after problem (figure 4 of the paper)."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# The library's operator. Chosen on seeds 401 to 404, which are not reported: a percent bears more doubt than the
# default, but not a novelty of 1 to 2, where one message in six is further off; and a first batch of a hundred leaves
# less to ask for later than twenty.
THRESHOLD, INITIAL, D_IN, D_OUT, AUDIT = 1.0, 100, 300, 500, 0.005
# The operator of the authors' code for this experiment, for which the paper states nothing: the limit on the logarithm
# of the predictive variance, the first batch, and features of both stages.
CODE_LIMIT, CODE_INITIAL, CODE_IN, CODE_OUT = -6.0, 20, 400, 800
# The most nodes of the quadrature used as oracle, and those of the quadrature in the code of the authors.
NODES, AUTHORS = 2001, 1_000_000
LIBRARY, CODE = "library", "authors' code"
OWN, PLAIN = "milliseconds a problem, the library's quadrature", "milliseconds a problem, quadrature with 10⁶ nodes"
# Messages in a batch once training is over, how often it is sent, and a threshold that no message in doubt exceeds.
BATCH, TIMES, NEVER = 1000, 5, 1e9
TOGETHER = f"in batches of {BATCH}"
ASKED = "milliseconds a message by the library's quadrature"
OVER_OWN = "time of the library's quadrature over its own"
OVER_TRAINED = "time of the library's quadrature over that of a trained message"
PLAIN_OVER_TRAINED = "time of quadrature with 10⁶ nodes over that of a trained message"
NEVER_ASKED = "within 1% once trained, where nothing is asked"


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


def operators() -> dict[str, Any]:
    """Both operators, which know nothing yet."""
    from meanmap import ep
    from meanmap.ep.learned import KernelRegression, MessageOperator

    library = MessageOperator(KernelRegression(d_in=D_IN, d_out=D_OUT))
    # Learns the logarithms of shape and rate of the message; every message is replaced by a Normal for its embedding.
    regression = KernelRegression(d_in=CODE_IN, d_out=CODE_OUT, widths="within", tune=None, as_normal=True)
    oracle, limit = ep.Quadrature(points=NODES), math.exp(CODE_LIMIT) / regression.noise - 1
    published = MessageOperator(regression, "tilted moments")
    return {
        LIBRARY: ep.Learned(oracle, threshold=THRESHOLD, initial=INITIAL, audit=AUDIT, operator=library),
        CODE: ep.Learned(oracle, threshold=limit, initial=CODE_INITIAL, audit=0.0, refresh=False, operator=published),
    }


@dataclass(frozen=True)
class Followed:
    """What an operator did in a sequence of problems.

    Attributes
    ----------
    worst : array (n,)
        The relative error of each posterior's shape or rate, whichever is larger.
    asked : array (n,)
        Whether the oracle was asked.
    spent : array (n,)
        Processor milliseconds.
    scores : list
        The z-scores of audits.
    initial : int
        The size of the first batch.
    """

    worst: np.ndarray
    asked: np.ndarray
    spent: np.ndarray
    scores: list[Any]
    initial: int

    @property
    def quarters(self) -> list[float]:
        """How often the oracle was asked, in each quarter of what follows the first batch, which it always answers."""
        return [float(part.mean()) for part in np.array_split(self.asked[self.initial :], 4)]


def followed(learned: Any, factor: Any, came: Any, exact: Any) -> Followed:
    """One message a problem."""
    learned.check(factor)
    natural, asked, spent = [], [], []
    for at in range(len(came)):
        start = time.process_time()
        answer = learned.answer(questions(factor, came[at : at + 1], at))
        natural.append(np.ravel(answer.messages[0].natural))
        spent.append(1e3 * (time.process_time() - start))
        asked.append(learned.diary(factor.name).sweeps[-1][0])
    posterior = came * type(came).from_natural(*np.transpose(natural))
    errors = np.stack([posterior.shape_parameter / exact.shape_parameter - 1, posterior.rate / exact.rate - 1])
    scores = learned.diary(factor.name).scores
    return Followed(abs(errors).max(axis=0), np.array(asked), np.array(spent), scores, learned.rules.initial)


def questions(factor: Any, came: Any, number: int) -> Any:
    """Messages into the factor, as an oracle meets them."""
    import jax

    from meanmap import ep

    return ep.extending.Questions.of(factor, (came,), 1.0, jax.random.key(number), number)


def quadratures(factor: Any, came: Any) -> tuple[float, float]:
    """Mean milliseconds of a message by the library's quadrature and by that with 10⁶ nodes."""
    from meanmap import ep

    always, plain = [], []
    for at in range(len(came)):
        start = time.process_time()
        questions(factor, came[at : at + 1], at).ask(ep.Quadrature(points=NODES))
        always.append(1e3 * (time.process_time() - start))
        start = time.process_time()
        moments(float(came.shape_parameter[at]), float(came.rate[at]))
        plain.append(1e3 * (time.process_time() - start))
    return float(np.mean(always[1:])), float(np.mean(plain))


@dataclass(frozen=True)
class Trained:
    """Processor milliseconds of a message once training is over, and the share of posteriors within 1%."""

    alone: float
    together: float
    within: float


def once_trained(learned: Any, factor: Any, came: Any, exact: Any, alone: int) -> Trained:
    """Of a trained operator that asks no more; messages outside the range of training are learned first."""
    from meanmap import ep

    frozen = ep.Learned(ep.Quadrature(points=NODES), threshold=NEVER, audit=0.0, refresh=False)
    frozen.reuse(factor, learned.trained(factor)).check(factor)

    def sent(came: Any, sweep: int) -> Any:
        return frozen.answer(questions(factor, came, sweep)).messages[0]

    message, sweep = sent(came, 0), 0
    while frozen.diary(factor.name).sweeps[-1][0] and sweep < 9:
        sweep += 1
        message = sent(came, sweep)
    learned_by = sweep + 1
    posterior = came * message
    errors = np.stack([posterior.shape_parameter / exact.shape_parameter - 1, posterior.rate / exact.rate - 1])
    together = milliseconds(lambda at: sent(came, 10 + at), TIMES) / len(came)
    one = milliseconds(lambda at: sent(came[at : at + 1], 10 + at), alone)
    assert not sum(asked for asked, *_ in frozen.diary(factor.name).sweeps[learned_by:])
    return Trained(one, together, float(np.mean(abs(errors).max(axis=0) < 0.01)))


def always_asked(factor: Any, came: Any, alone: int) -> tuple[float, float]:
    """Milliseconds of a message by the library's quadrature, alone and in a batch."""
    from meanmap import ep

    oracle = ep.Quadrature(points=NODES)
    one = milliseconds(lambda at: questions(factor, came[at : at + 1], at).ask(oracle), alone)
    return one, milliseconds(lambda at: questions(factor, came, at).ask(oracle), TIMES) / len(came)


def milliseconds(call: Callable[[int], Any], times: int) -> float:
    """The mean of several calls, after one that compiles."""
    call(0)
    start = time.process_time()
    for at in range(times):
        call(at)
    return 1e3 * (time.process_time() - start) / times


def run(setting: Setting) -> Outcome:
    """One message a problem into the factor ∫ Gamma(τ; 1, r) Gamma(r; 1, 1) dr = (1 + τ)⁻²."""
    from matplotlib import pyplot

    from meanmap import ep
    from meanmap.ep.learned import log_compound_gamma
    from meanmap_papers.messages.judges import worst_z

    count, repeats = setting.choose(smoke=(120, 1), quick=(250, 3), paper=(500, 5))
    timed = setting.choose(smoke=10, quick=50, paper=50)  # the last problems, when everything is compiled and learned
    factor = ep.Density(log_compound_gamma, ep.Variable("tau", ep.Gamma))
    every: dict[str, list[Followed]] = {LIBRARY: [], CODE: []}
    quadrature, rates, batch = [], [], setting.choose(smoke=100, quick=BATCH, paper=BATCH)
    asking: list[tuple[float, float]] = []
    trained: dict[str, list[Trained]] = {LIBRARY: [], CODE: []}
    for repeat in range(repeats):
        came = ep.Gamma(*problems(count, setting.rng(repeat)))
        exact = came * ep.extending.ask(factor, came, oracle=ep.Quadrature(points=NODES)).messages[0]
        new = ep.Gamma(*problems(batch, setting.rng(repeat, 1)))
        posterior = new * ep.extending.ask(factor, new, oracle=ep.Quadrature(points=NODES)).messages[0]
        asking.append(always_asked(factor, new, timed))
        for name, learned in operators().items():
            every[name].append(followed(learned, factor, came, exact))
            trained[name].append(once_trained(learned, factor, new, posterior, timed))
        quadrature.append(quadratures(factor, came[-timed:]))
        rates.append(exact.rate)
    always, plain = np.transpose(quadrature)
    numbers = {
        OWN: Number.mean(always),
        PLAIN: Number.mean(plain),
    }
    for name, sequences in every.items():
        quarters = np.array([one.quarters for one in sequences])
        spent = np.array([one.spent[-timed:].mean() for one in sequences])
        numbers |= {
            f"{name}: within 1%": Number.mean([float(np.mean(one.worst < 0.01)) for one in sequences]),
            f"{name}: share asked, first quarter": Number.mean(quarters[:, 0]),
            f"{name}: share asked, last quarter": Number.mean(quarters[:, -1]),
            f"{name}: share asked, first quarter minus last": Number.mean(quarters[:, 0] - quarters[:, -1]),
            f"{name}: milliseconds a problem": Number.mean(spent),
            f"{name}: time of quadrature with 10⁶ nodes over its own": Number.ratio(plain, spent),
            f"{name}: {OVER_OWN}": Number.ratio(always, spent),
            f"{name}: {NEVER_ASKED}": Number.mean([one.within for one in trained[name]]),
        }
        for how, own, theirs in (
            ("alone", [one.alone for one in trained[name]], [one for one, _ in asking]),
            (TOGETHER, [one.together for one in trained[name]], [each for _, each in asking]),
        ):
            numbers[f"{ASKED}, {how}"] = Number.mean(theirs)
            numbers[f"{name}: milliseconds a trained message, {how}"] = Number.mean(own)
            numbers[f"{name}: {OVER_TRAINED}, {how}"] = Number.ratio(theirs, own)
            numbers[f"{name}: {PLAIN_OVER_TRAINED}, {how}"] = Number.ratio(plain, own)
    numbers["library: rms z"] = worst_z([one.scores for one in every[LIBRARY]])
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    window = count // 20
    for name, label in ((CODE, "the authors' code"), (LIBRARY, "the library")):
        left.loglog(rates[0], np.maximum(every[name][0].worst, 1e-8), ".", markersize=2, label=label)
        asked = np.mean([one.asked for one in every[name]], axis=0)
        right.plot(np.arange(window, count + 1), np.convolve(asked, np.ones(window) / window, "valid"), label=label)
    left.axhline(0.01, color="0.6", linestyle=":")
    left.set(xlabel="rate of the posterior by quadrature", ylabel="relative error of shape or rate")
    right.set(xlabel="problem", ylabel=f"share asked, of {window} problems", ylim=(0, None))
    right.legend(frameon=False, fontsize=8)
    caption = (
        "Left, the error of each posterior of the first sequence; dotted, one percent. Right, how often the oracle was "
        f"asked, over {window} problems and all sequences."
    )
    return Outcome(_text(numbers), numbers, ((figure, caption),), notes=_notes(count, repeats, timed))


def _text(numbers: dict[str, Number]) -> str:
    def of(name: str) -> float:
        return numbers[name].value

    return (
        f"With the settings of the authors' code {of(f'{CODE}: within 1%'):.1%} of the posteriors have shape and rate "
        f"within 1% of those by quadrature. The oracle is asked in {of(f'{CODE}: share asked, first quarter'):.0%} of "
        f"the problems in the first quarter after the first batch, and {of(f'{CODE}: share asked, last quarter'):.0%} "
        f"in the last. A problem takes {of(f'{CODE}: milliseconds a problem'):.1f} ms, by quadrature {of(PLAIN):.0f} "
        f"ms (with 10⁶ nodes, as in that code) or {of(OWN):.1f} ms (the library's). Once nothing is asked any more, "
        f"{of(f'{CODE}: {NEVER_ASKED}'):.0%} of the posteriors are within 1%, and a message takes "
        f"{of(f'{CODE}: milliseconds a trained message, alone'):.1f} ms alone and "
        f"{of(f'{CODE}: milliseconds a trained message, {TOGETHER}'):.3f} ms {TOGETHER} (by the library's quadrature "
        f"{of(f'{ASKED}, alone'):.1f} and {of(f'{ASKED}, {TOGETHER}'):.3f} ms)."
    )


def _notes(count: int, repeats: int, timed: int) -> tuple[str, ...]:
    return (
        (
            f"Sequences: {repeats}, of {count} problems each, with a new operator for each sequence; the paper does "
            "not say how many problems it had. Standard errors are over sequences."
        ),
        (
            f"The oracle is the library's quadrature in log τ, with at most {NODES} nodes. The code of the authors "
            "sets 10⁶ nodes, and times are compared with as many: a plain trapezium rule in NumPy, which gives the "
            "same moments to 10⁻⁹. Infer.NET itself, which the paper timed, was not run: as everywhere on these pages, "
            "times compare implementations of ours. “Several orders of magnitude” is read as a hundredth or less, "
            "“much lower” as a tenth."
        ),
        (
            "The paper does not state the settings of this experiment. Its claims are judged with those of its "
            f"authors' code: a limit of {CODE_LIMIT:g} on the logarithm of the predictive variance, a first batch of "
            f"{CODE_INITIAL}, {CODE_IN} and {CODE_OUT} features, widths from the first batch, and as outputs the "
            "logarithms of shape and rate of the message. As in that code, an improper answer of the oracle is not "
            "learned. Unlike there it is sent as it is, outputs are standardised, and the oracle is also asked where a "
            "message lies outside the range of those that were learned."
        ),
        (
            "The library's operator learns derivatives of log Z, with a threshold of 1 and a first batch of "
            f"{INITIAL}. This threshold was chosen on seeds 401 to 404, after a run with a threshold of 2 (seed 2027, "
            "commit 86328da) in which 98.6 ± 0.1% of the posteriors were within 1%, below the 99% that we require."
        ),
        (
            f"Times are those of the last {timed} problems of each sequence, one at a time, in processor seconds. For "
            f"a trained message there are {BATCH} new problems for each operator: messages outside its range of "
            "training are learned first, and then the oracle is never asked, whatever the variance. It is timed alone, "
            f"and {TOGETHER}. Compilation is left out everywhere."
        ),
    )


EXPERIMENT = Experiment(
    "messages-compound-gamma",
    "The precision of a Gaussian under a compound gamma prior",
    "Jitkrittum et al. (2015), figure 4; its draft, figures 7 and 9",
    (
        Claim(
            "posteriors agree with those of the oracle (figures 4a, 4b): 99% of them within 1%",
            "authors' code: within 1%",
            low=0.99,
            scales=("quick", "paper"),
        ),
        Claim(
            "the oracle is asked less often as more problems are seen (figure 4c)",
            "authors' code: share asked, first quarter minus last",
            low=0.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "the run time with the operator is several orders of magnitude lower (figure 4c), a hundredth or less of "
            "that of quadrature: of a problem, or of one of many messages at a time, so that the cost of a call is not "
            "timed",
            (
                (
                    f"{CODE}: time of quadrature with 10⁶ nodes over its own",
                    f"{CODE}: {OVER_OWN}",
                    f"{CODE}: {PLAIN_OVER_TRAINED}, {TOGETHER}",
                    f"{CODE}: {OVER_TRAINED}, {TOGETHER}",
                ),
            ),
            low=100.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "the cost of the operator is much lower (experiment 2), at most a tenth of that of quadrature: of a whole "
            "problem including calls of the oracle, or of one message after training, alone or as one of many",
            (
                (
                    f"{CODE}: time of quadrature with 10⁶ nodes over its own",
                    f"{CODE}: {OVER_OWN}",
                    f"{CODE}: {PLAIN_OVER_TRAINED}, alone",
                    f"{CODE}: {OVER_TRAINED}, alone",
                    f"{CODE}: {PLAIN_OVER_TRAINED}, {TOGETHER}",
                    f"{CODE}: {OVER_TRAINED}, {TOGETHER}",
                ),
            ),
            low=10.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "once trained, the mapping performs as well as that of the oracle (section 5), here 99% of the posteriors "
            "within 1%: once it no longer asks, or while it asks where it is uncertain",
            ((f"{CODE}: {NEVER_ASKED}", f"{CODE}: within 1%"),),
            low=0.99,
            scales=("quick", "paper"),
        ),
        Claim(
            "with the library's operator 99% of the posteriors are within 1%",
            "library: within 1%",
            low=0.99,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "the library's operator asks the oracle less often as more problems are seen",
            "library: share asked, first quarter minus last",
            low=0.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        Claim(
            "with the library's operator the time is at most a hundredth of that of quadrature with 10⁶ nodes",
            "library: time of quadrature with 10⁶ nodes over its own",
            low=100.0,
            scales=("quick", "paper"),
            ours=True,
        ),
        *(
            Claim(
                f"once training is over, a message takes less time {words} than by the library's quadrature, {how}",
                f"{name}: {OVER_TRAINED}, {how}",
                low=1.0,
                scales=("quick", "paper"),
                ours=True,
            )
            for name, words in ((CODE, "with the authors' settings"), (LIBRARY, "with the library's operator"))
            for how in ("alone", TOGETHER)
        ),
        Claim(
            "errors that its audits find are no larger than stated: their root mean square ratio is at most 1",
            "library: rms z",
            high=1.0,
            ours=True,
        ),
    ),
    {"smoke": 0.3, "quick": 1, "paper": 6},
    run,
    stand_in="quadrature of ours in place of Infer.NET",
)
