"""Uncertainty against error, and in regions that were never seen (figures 3, 4 and 10 of the draft)."""

from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# Training means end at the edge; messages far away reach beyond it.
EDGE, FAR, LINE = 4.0, 7.0, np.linspace(0, 10, 81)
# Features of both stages, as in section 6.1 of the draft.
D_IN, D_OUT = 500, 1000
# Corners of the picture of errors against uncertainties: a tenth of the messages each way.
TENTH = 0.1
RISE = "rise of the predictive variance, decades"
AGREE = "rank correlation of uncertainty and error"
WRONG = "confident and wrong"
TIMID = "uncertain and right"
ALIKE = "test over training error, decades"
# Growth of the variance is followed until it is this part of its largest: near the prior's variance it has to end.
GROWN = 0.1
GROWTH = "growth a unit of distance, second half over first"
GROWTH_BEYOND = "the same, of the variance beyond the noise"
RELIABLE = "rank correlation far away, above that of forests"
BEYOND = "library: errors above twice the uncertainty"
OUTSIDE = "library: share without a finite uncertainty"


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's; values with ties have their mean rank."""
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def growth(variance: np.ndarray) -> float:
    """The growth of log variance in the second half of the way out divided by that in the first: 1 if exponential.

    The way leads from the edge of the training region to where the variance is `GROWN` of its largest.
    """
    logs, far = np.log(variance), LINE >= EDGE
    end = LINE[far][np.argmax(variance[far] >= GROWN * variance.max())]
    start, middle, stop = np.interp([EDGE, (EDGE + end) / 2, end], LINE, logs)
    return float((stop - middle) / (middle - start))


def measured(setting: Setting, repeat: int) -> dict[str, Any]:
    """Operators trained on means in one region predict new messages of it, far ones, and a line that leaves it."""
    from meanmap import ep
    from meanmap.ep.learned import KernelRegression, MessageOperator
    from meanmap_papers.rivals import Forest

    size, tests = setting.choose(smoke=(256, 200), quick=(1000, 1000), paper=(5000, 2000))
    factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    rng = setting.rng(repeat)

    def drawn(n: int, reach: float) -> Any:
        return ep.Normal(rng.uniform(-reach, reach, n), np.exp(rng.uniform(np.log(0.05), np.log(3), n)))

    came, test, far = drawn(size, EDGE), drawn(tests, EDGE), drawn(tests, FAR)
    answer = ep.extending.ask(factor, came)
    features = setting.choose(smoke=(50, 100), quick=(D_IN, D_OUT), paper=(D_IN, D_OUT))
    operators = {
        "kernel": MessageOperator(KernelRegression(d_in=features[0], d_out=features[1]), "tilted moments"),
        "extremely randomised": MessageOperator(Forest(), "tilted moments"),
        "Breiman": MessageOperator(Forest("breiman"), "tilted moments"),
    }
    operators = {name: operator.learn((came,), answer) for name, operator in operators.items()}

    def found(operator: Any, messages: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """The predictive standard deviation of the mean, and the divergence of the belief from that by quadrature."""
        said, truth = operator.predict((messages,)), messages * ep.extending.ask(factor, messages).messages[0]
        belief = messages * said.messages[0]
        proper = np.asarray(belief.is_proper())
        error = np.full(len(proper), np.finfo(float).max)  # of an improper belief it is infinite
        error[proper] = np.maximum(np.asarray(truth[proper].kl(belief[proper])), 1e-15)
        return said.deviation[:, 0], error, said

    line = ep.Normal(LINE, 0.5)
    variances = {name: 1 + operator.predict((line,)).novelty for name, operator in operators.items()}
    stated, error, _ = found(operators["kernel"], test)
    _, trained, _ = found(operators["kernel"], came)
    away = {name: rank_correlation(*found(operator, far)[:2]) for name, operator in operators.items()}
    low, high = np.quantile(stated, [TENTH, 1 - TENTH])
    small, large = np.quantile(error, [TENTH, 1 - TENTH])

    ours = MessageOperator().learn((came,), answer)
    _, ours_error, said = found(ours, far)
    ours_stated = ours.doubt((far,), said)
    return {
        GROWTH: growth(variances["kernel"]),
        GROWTH_BEYOND: growth(variances["kernel"] - 1),
        "variances": variances,
        "stated": stated,
        "error": error,
        RISE: float(np.log10(variances["kernel"][-1] / variances["kernel"][LINE < EDGE].max())),
        AGREE: rank_correlation(stated, error),
        WRONG: ((stated <= low) & (error >= large)).tolist(),
        TIMID: ((stated >= high) & (error <= small)).tolist(),
        ALIKE: float(np.log10(np.median(error) / np.median(trained))),
        RELIABLE: away["kernel"] - max(of for name, of in away.items() if name != "kernel"),
        BEYOND: (np.sqrt(2 * ours_error) > 2 * ours_stated).tolist(),
        OUTSIDE: (~np.isfinite(ours_stated)).tolist(),
    }


def share(every: list[list[bool]]) -> Number:
    """A share of messages over trainings; its error is the larger of that over trainings and that of one sample."""
    over, pooled = (
        Number.mean([sum(each) / len(each) for each in every]),
        Number.share([far for each in every for far in each]),
    )
    return pooled if not over.error or over.error < (pooled.error or 0) else over


def run(setting: Setting) -> Outcome:
    """Several operators, each trained on its own messages."""
    from matplotlib import pyplot

    every = [measured(setting, repeat) for repeat in range(setting.choose(smoke=1, quick=3, paper=25))]
    variances, stated, error = (every[0][what] for what in ("variances", "stated", "error"))
    numbers = {
        name: Number.mean([one[name] for one in every])
        for name in (RISE, GROWTH, GROWTH_BEYOND, AGREE, ALIKE, RELIABLE)
    }
    numbers |= {name: share([one[name] for one in every]) for name in (WRONG, TIMID, BEYOND, OUTSIDE)}
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for name, variance in variances.items():
        left.plot(LINE, variance / variance[LINE < EDGE].max(), label=name)
    left.axvline(EDGE, color="0.7", linestyle=":")
    left.set(
        xlabel="mean of the incoming message (trained up to 4)",
        ylabel="predictive variance, over its largest where trained",
        yscale="log",
    )
    left.legend(frameon=False)
    right.loglog(stated**2, error, ".", markersize=3)
    right.set(xlabel="predictive variance of the mean", ylabel="KL divergence of the belief")
    text = (
        "Outside the training region the predictive variance of the kernel operator grows by "
        f"{numbers[RISE].value:.1f} decades. Among messages like those that it was trained on, the rank correlation of "
        f"predictive variance and error is {numbers[AGREE].value:.2f}."
    )
    caption = (
        "Left, the predictive variance along a line that leaves the training region at 4. Right, the error against the "
        "predictive variance, for messages drawn like those of the training set."
    )
    return Outcome(text, numbers, ((figure, caption),), notes=NOTES)


NOTES = (
    (
        "At the scale paper an operator learns 5000 messages and is judged on 2000 others, as in the draft. Variances "
        "of messages are log-uniform on (0.05, 3), and 0.5 along the line of the picture; the draft has two such "
        "curves, which it draws and does not describe."
    ),
    (
        "The operator is that of the draft: a Gaussian kernel on embeddings, 500 and 1000 random features, trained on "
        "the mean and the log variance of the tilted distribution. Its lengthscale is chosen by the probability of "
        "left-out numbers, that of the draft by their squared errors. Its noise is fixed; the draft chooses it by "
        "leave-one-out errors, too. Messages are drawn, with means uniform on (-4, 4); the draft collects them from "
        "runs of EP. The label is known, which determines the second message, as in figure 3."
    ),
    (
        "The draft describes a picture: no points at the bottom right or at the top left. Here a message is "
        "confident (uncertain) if its predictive variance is among the smallest (largest) tenth, and right (wrong) "
        "if its error is. If the two were independent, 1% of the messages would be confident and wrong, and 1% "
        "uncertain and right; the claims hold if each is a tenth of that or less. Errors on training and on test "
        "messages are alike if their medians differ by at most a factor of two."
    ),
    (
        "Growth is exponential if the logarithm of the variance grows as fast in the second half of the way out as "
        "in the first, within a factor of two (a band of ours). The way leads from the edge of the training region "
        "to where the variance is a tenth of its largest: farther out it levels off, at the variance of the prior. "
        "It is measured with the noise, as it is drawn, and without."
    ),
    (
        "That the uncertainty of forests does not grow outside the training region follows from how trees predict: "
        "all points beyond it fall into the same leaves. It is shown and not judged. The library's operator learns "
        "derivatives of log Z and states an infinite uncertainty outside the range of its training messages; these "
        "messages count among those whose error is not above twice the uncertainty. Forests have 64 trees on means "
        "and log variances (the draft: 100 in scikit-learn's defaults), and learn the same numbers. They are "
        "compared by the rank correlation of their variance and their error, on messages with means between -7 and "
        "7, of which 57% lie where both were trained; the better forest counts. Standard errors are over "
        "trainings, and those of shares at least as large as over messages. The pictures are of the first training."
    ),
)
BANDS: tuple[tuple[str, str | tuple[tuple[str, ...], ...], float, float], ...] = (
    (
        "uncertainty is high far away from the training set (section 6.2): a hundred times the variance or more",
        RISE,
        2.0,
        np.inf,
    ),
    (
        "uncertainty grows exponentially (6.2, in an unfinished note): as many decades a unit, within a factor of two",
        ((GROWTH, GROWTH_BEYOND),),
        0.5,
        2.0,
    ),
    ("uncertainty and error are positively correlated (figure 10)", AGREE, 0.0, np.inf),
    ("there is no large error where the operator is confident (figure 10)", WRONG, -np.inf, TENTH**3),
    ("the operator is not uncertain where the error is small (figure 10)", TIMID, -np.inf, TENTH**3),
    ("errors on training and test messages are alike (section 6.2)", ALIKE, -np.log10(2), np.log10(2)),
    (
        "the uncertainty of the operator is much more reliable than that of forests (introduction), by 0.1 or more",
        RELIABLE,
        0.1,
        np.inf,
    ),
)

EXPERIMENT = Experiment(
    "messages-doubt",
    "Uncertainty against error, and outside the training region",
    "Jitkrittum et al. (2015), draft, figures 3, 4 and 10; its introduction",
    (
        *(Claim(says, name, low, high, scales=("quick", "paper")) for says, name, low, high in BANDS),
        Claim(
            "of the library's operator at most 1% of the errors exceed twice the stated one",
            BEYOND,
            high=0.01,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 5},
    run,
)
