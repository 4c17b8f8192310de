"""Doubt against error, and in regions that were never seen (figures 3, 4 and 10 of the draft)."""

from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

# Training means end at the edge.
EDGE, LINE = 4.0, np.linspace(0, 10, 81)
RISE = "rise of the kernel's doubt, decades of variance"
BEYOND = "errors above twice the doubt"
NOT_A_MEAN = ("doubts", "expected", "error", BEYOND)


def rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's, of values without ties."""
    return float(np.corrcoef(np.argsort(np.argsort(x)), np.argsort(np.argsort(y)))[0, 1])


def measured(setting: Setting, repeat: int) -> dict[str, Any]:
    """Operators trained on means in one region predict along a line that leaves it, and for new messages."""
    from meanmap import ep
    from meanmap.ep.learned import MessageOperator
    from meanmap_papers.rivals import Forest

    size = setting.choose(smoke=256, quick=1000, paper=5000)
    factor = ep.Logistic(ep.Variable("z", ep.Normal), observed=1)
    rng = setting.rng(repeat)
    came = ep.Normal(rng.uniform(-4, 4, size), np.exp(rng.uniform(np.log(0.05), np.log(3), size)))
    answer = ep.ask(factor, came)
    operators = {
        "kernel": MessageOperator(),
        "extremely randomised": MessageOperator(Forest()),
        "Breiman": MessageOperator(Forest("breiman")),
    }
    operators = {name: operator.learn((came,), answer) for name, operator in operators.items()}

    # Means from the middle of the training region to far beyond it, at a training variance.
    line = ep.Normal(LINE, 0.5)
    doubts = {name: np.sqrt(operator.predict((line,)).novelty) for name, operator in operators.items()}
    last, edge = doubts["kernel"][-1], doubts["kernel"][LINE < EDGE].max()

    test = ep.Normal(rng.uniform(-7, 7, 1000), np.exp(rng.uniform(np.log(0.05), np.log(3), 1000)))
    exact, said = ep.ask(factor, test), operators["kernel"].predict((test,))
    expected = operators["kernel"].doubt((test,), said)
    beliefs, predicted = test * exact.messages[0], test * said.messages[0]
    proper = np.asarray(predicted.is_proper()) & np.isfinite(expected)
    error = np.sqrt(2 * np.asarray(beliefs[proper].kl(predicted[proper])))
    return {
        "doubts": doubts,
        "expected": expected[proper],
        "error": error,
        RISE: 2 * np.log10(last / edge),
        "rank correlation of doubt and error": rank_correlation(expected[proper], error),
        BEYOND: (error > 2 * expected[proper]).tolist(),
    }


def run(setting: Setting) -> Outcome:
    """Several operators, each trained on its own messages."""
    from matplotlib import pyplot

    every = [measured(setting, repeat) for repeat in range(setting.choose(smoke=1, quick=3, paper=5))]
    doubts, expected, error = (every[0][what] for what in ("doubts", "expected", "error"))
    numbers = {name: Number.mean([one[name] for one in every]) for name in every[0] if name not in NOT_A_MEAN}
    numbers[BEYOND] = Number.share([far for one in every for far in one[BEYOND]])
    agreement = numbers["rank correlation of doubt and error"].value
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    for name, doubt in doubts.items():
        left.plot(LINE, doubt / doubt[LINE < EDGE].max(), label=name)
    left.axvline(EDGE, color="0.7", linestyle=":")
    left.set(
        xlabel="mean of the incoming message (trained up to 4)",
        ylabel="doubt, over its largest where trained",
        yscale="log",
    )
    left.legend(frameon=False)
    right.loglog(expected, np.maximum(error, 1e-8), ".", markersize=3)
    ends = np.array([expected.min(), expected.max()])
    right.plot(ends, ends, color="0.6")
    right.set(xlabel="doubt of the belief (s.d.)", ylabel="error of the belief, √2KL (s.d.)")
    text = (
        "Outside the training region the predictive variance of the kernel operator grows by "
        f"{numbers[RISE].value:.1f} decades. The rank correlation of predictive standard deviation and error is "
        f"{agreement:.2f}."
    )
    caption = (
        "Left, the predictive standard deviation (“doubt”) along a line that leaves the training region at 4. Right, "
        "the error against the predictive standard deviation; on the line both are equal."
    )
    note = (
        "That the uncertainty of forests does not grow outside the training region follows from how trees predict: "
        "all points beyond it fall into the same leaves. It is shown and not judged. The pictures are of the first of "
        "several trainings."
    )
    return Outcome(text, numbers, ((figure, caption),), notes=(note,))


EXPERIMENT = Experiment(
    "messages-doubt",
    "Uncertainty against error, and outside the training region",
    "Jitkrittum et al. (2015), draft, figures 3, 4 and 10",
    (
        Claim(
            "uncertainty is high far away from the training set (section 6.2): a hundred times the variance or more",
            RISE,
            low=2.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "uncertainty and error are positively correlated (figure 10)",
            "rank correlation of doubt and error",
            low=0.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "no large error where the operator is confident (section 6.2): at most 1% exceed twice the stated one",
            BEYOND,
            high=0.01,
            scales=("quick", "paper"),
        ),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 1},
    run,
)
