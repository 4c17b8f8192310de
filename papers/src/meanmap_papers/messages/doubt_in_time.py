"""The uncertainty about every incoming message, in order (figure 2 of the paper, figures 5 and 7 of the draft)."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Reading, Setting
from meanmap_papers.messages.problems import PUBLISHED

__all__ = ["EXPERIMENT"]

# Sweeps of a problem, the paper's limit.
SWEEPS = 10
# The draft sees the variance level off after roughly 1000 messages.
LEVEL = 1000


def traced(problems: Iterable[Any], setting: Setting, seed: int) -> list[list[np.ndarray]]:
    """Predictive variances of the messages of each sweep of each problem, by one operator that is never reset.

    The first sweep of the first problem has none: the oracle answers all of it.
    """
    from meanmap import ep
    from meanmap_papers.messages.problems import observed_beta_model

    found: list[list[np.ndarray]] = []
    current: list[Any] = []

    class Watched(ep.Learned):
        """Records the variance of the operator before it can call the oracle."""

        def answer(self, questions: Any) -> Any:
            if questions.sweep is not None and current:
                said = current[-1].predict(questions.incoming)
                found[-1].append(current[-1].regression.noise * (1 + said.novelty))
            answer = super().answer(questions)
            current[:] = [self.trained(questions.factor)]
            return answer

    learned = Watched.published(ep.Quadrature(), initial=setting.choose(smoke=40, quick=300, paper=300))
    for X, y, *_ in problems:
        found.append([])
        ep.infer(observed_beta_model(X, y), messages=learned, rng=seed, sweeps=SWEEPS, improper="force")
    return found


def of_real(setting: Setting, repeat: int) -> tuple[dict[str, float], list[list[np.ndarray]]]:
    """The least rise at a new problem, and the fall after it, on the four UCI sets in the order of the paper."""
    from meanmap_papers.messages.problems import PRINTED, four_uci

    seed = 1000 * setting.seed + repeat
    rows = setting.choose(smoke=32, quick=200, paper=200)
    found = traced(four_uci(seed, rows, PRINTED), setting, seed)
    # The largest variance of each sweep.
    high = [np.array([sweep.max() for sweep in sweeps]) for sweeps in found]
    rises = [each.max() / before[-1] for before, each in pairwise(high)]
    # Of the first problem the first sweep has no variance: the oracle answers all of it.
    after = [each[1] / each[0] for each in high[1:]]
    left = [each[-1] / each.max() for each in high]
    steps = np.concatenate([np.diff(each[each.argmax() :]) for each in high])
    numbers = {RISE: np.log10(min(rises)), AFTER: np.log10(min(after)), LEFT: max(left), STEADY: np.mean(steps < 0)}
    return {name: float(value) for name, value in numbers.items()}, found


def of_drawn(setting: Setting, repeat: int) -> dict[str, float]:
    """The period of the variance, and whether it levels off, on synthetic problems."""
    from meanmap_papers.messages.problems import four_synthetic

    rows = setting.choose(smoke=32, quick=300, paper=300)
    seed = 1000 * setting.seed + repeat
    problems = four_synthetic(seed, rows, setting.choose(smoke=3, quick=5, paper=20))
    found = [np.log(sweeps) for sweeps in traced(problems, setting, seed)]
    # Sweeps of one problem that follow each other: member by member, and with the members of the second one shifted.
    pairs = [pair for sweeps in found for pair in pairwise(sweeps)]
    first = found[0]  # its sweeps start with the second one
    at = min(max(LEVEL // rows - 1, 0), len(first) - 1)
    return {
        SAME: float(np.median([np.corrcoef(before, after)[0, 1] for before, after in pairs])),
        OTHER: float(np.median([np.corrcoef(before, np.roll(after, rows // 2))[0, 1] for before, after in pairs])),
        LATER: float((np.median(first[at]) - np.median(first[-1])) / np.log(10)),
    }


SAME, OTHER = "correlation a sweep apart", "correlation of other members"
RISE, LEFT = "log₁₀ of the least rise at a new problem", "largest part left at its end"
STEADY = "share of sweeps that lower the largest variance, after its peak"
AFTER = "log₁₀ of the least rise from the first sweep of a new problem to its second"
LATER = "decades from message 1000 to the end of the first problem"


def run(setting: Setting) -> Outcome:
    """Several sequences of problems, of both kinds."""
    from matplotlib import pyplot

    repeats = range(setting.choose(smoke=1, quick=3, paper=25))
    real = [of_real(setting, repeat) for repeat in repeats]
    drawn = [of_drawn(setting, repeat) for repeat in repeats]
    numbers = {name: Number.mean([each[name] for each in drawn]) for name in drawn[0]}
    numbers |= {name: Number.mean([each[name] for each, _ in real]) for name in real[0][0]}
    sets = [np.concatenate(sweeps) for sweeps in real[0][1]]
    figure, axes = pyplot.subplots(figsize=(9, 3.2), constrained_layout=True)
    axes.semilogy(np.concatenate(sets), linewidth=0.5)
    for begin in np.cumsum([len(each) for each in sets])[:-1]:
        axes.axvline(begin, color="k", linestyle=":")
    axes.axhline(np.exp(-9), color="C1", linewidth=1)
    axes.set(xlabel="incoming message", ylabel="predictive variance", xlim=(0, sum(map(len, sets))))
    text = (
        "On synthetic problems the uncertainty about an observation has a correlation of "
        f"{numbers[SAME].value:.2f} with that in the next sweep, and of {numbers[OTHER].value:.2f} with that about "
        "other observations. On the UCI sets the largest uncertainty of a sweep rises by "
        f"{numbers[RISE].value:.1f} decades when a new problem begins, by {numbers[AFTER].value:.1f} decades from its "
        f"first sweep to its second, and falls in {numbers[STEADY].value:.0%} of the sweeps after its peak; at the end "
        f"of the problem {numbers[LEFT].value:.1%} of the peak is left."
    )
    caption = (
        "The UCI sets: banknote, transfusion, fertility, ionosphere. Dotted lines: a new problem begins. Solid line: "
        "the threshold above which the oracle is asked."
    )
    note = (
        "The operator is that of the paper (`Learned.published`), with quadrature as its oracle instead of a sampler, "
        f"and {SWEEPS} sweeps per problem. The rise and the fall are measured on the four UCI sets of figure 2, the "
        "period and the levelling off on synthetic problems with 300 observations, as in the draft, and 20 columns. "
        "UCI sets have 200 rows (fertility 50), and the first batch has 300 messages. Numbers are means "
        f"over {len(repeats)} sequences of each kind. Of the problems of a sequence the one with the least rise "
        "counts, and for what is left at the end the one with the most. Uncertainty is the predictive variance, "
        "noise included, as in the paper. “Levels off” means that the median changes by at most a factor of two from "
        "the sweep after message 1000 to the last one of the first problem. The first sequence is shown."
    )
    return Outcome(text, numbers, ((figure, caption),), notes=(note, PUBLISHED))


EXPERIMENT = Experiment(
    "messages-doubt-in-time",
    "The uncertainty of every message, over a sequence of problems",
    "Jitkrittum et al. (2015), figure 2; its draft, figures 5 and 7",
    (
        Claim(
            "uncertainty is periodic, with the number of observations as its period (draft, figure 5)",
            SAME,
            low=0.5,
            scales=("quick", "paper"),
        ),
        Claim(
            "uncertainty levels off after about 1000 messages (draft, section 6.3)",
            LATER,
            -np.log10(2),
            np.log10(2),
            scales=("quick", "paper"),
        ),
        Claim(
            "uncertainty rises rapidly after the first EP iteration of each problem (text to figure 2), tenfold or "
            "more: from the first sweep to the second, or over what it was at the end of the problem before",
            ((AFTER, RISE),),
            low=1.0,
            scales=("quick", "paper"),
        ),
        Claim(
            "uncertainty then falls steadily (figure 2): after the peak of a problem in most sweeps, read as more than "
            "half or as nine of ten",
            ((Reading(STEADY, low=0.5), Reading(STEADY, low=0.9)),),
            scales=("quick", "paper"),
        ),
        Claim(
            "the uncertainties of different observations are not correlated",
            OTHER,
            -0.3,
            0.3,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.5, "quick": 1, "paper": 5},
    run,
    data=("uci",),
)
