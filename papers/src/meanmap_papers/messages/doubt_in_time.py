"""The doubt about every incoming message, in order (figures 5 and 7 of the draft)."""

from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

PROBLEMS = 4


def measured(setting: Setting, repeat: int) -> tuple[dict[str, float], Any]:
    """Numbers of one sequence of logistic regressions with one operator, and the recorded doubt."""
    from meanmap import ep
    from meanmap.ep.learned import MessageOperator
    from meanmap_papers.messages.problems import four_synthetic, logistic_model

    rows = setting.choose(smoke=32, quick=300, paper=300)
    trace: list[tuple[int, np.ndarray]] = []
    current: list[MessageOperator] = []
    started = 0

    class Watched(ep.Learned):
        """Records the doubt of the operator before it can call the oracle."""

        def answer(self, questions: Any) -> Any:
            if questions.sweep is not None and current:
                trace.append((started, current[-1].predict(questions.incoming).novelty))
            answer = super().answer(questions)
            current[:] = [self.trained(questions.factor)]
            return answer

    learned = Watched(initial=setting.choose(smoke=40, quick=300, paper=300))
    columns = setting.choose(smoke=3, quick=5, paper=20)
    seed = 1000 * setting.seed + repeat
    for X, y, *_ in four_synthetic(seed, rows, columns):
        ep.infer(logistic_model(X, y), messages=learned, rng=seed)
        started += 1
    which = np.array([at for at, _ in trace])
    doubt = np.array([novelty for _, novelty in trace])
    logs = np.log(doubt)
    # Sweeps of one problem that follow each other: member by member, and with the members of the second one shifted.
    pairs = [at for at in range(1, len(which)) if which[at] == which[at - 1]]
    same = np.median([np.corrcoef(logs[at - 1], logs[at])[0, 1] for at in pairs])
    shifted = np.median([np.corrcoef(logs[at - 1], np.roll(logs[at], rows // 2))[0, 1] for at in pairs])
    # The largest doubt of a sweep: in the first one of a problem cavities are the prior, which is known by then.
    high, sweeps = doubt.max(axis=1), [np.flatnonzero(which == at) for at in range(PROBLEMS)]
    peaks = [high[those].max() for those in sweeps]
    ends = [high[those[-1]] for those in sweeps]
    rises = min(peak / end for peak, end in zip(peaks[1:], ends[:-1], strict=True))
    falls = max(end / peak for peak, end in zip(peaks, ends, strict=True))
    numbers = {
        "correlation a sweep apart": float(same),
        "correlation of other members": float(shifted),
        "log₁₀ of the least rise at a new problem": float(np.log10(rises)),
        "largest part left at its end": float(falls),
    }
    return numbers, (doubt, [those[0] * rows for those in sweeps[1:]], learned.rules.threshold)


def run(setting: Setting) -> Outcome:
    """Several sequences of problems."""
    from matplotlib import pyplot

    found = [measured(setting, repeat) for repeat in range(setting.choose(smoke=1, quick=2, paper=5))]
    numbers = {name: Number.mean([each[name] for each, _ in found]) for name in found[0][0]}
    doubt, begins, threshold = found[0][1]
    figure, axes = pyplot.subplots(figsize=(9, 3.2), constrained_layout=True)
    axes.semilogy(doubt.ravel(), linewidth=0.5)
    for begin in begins:
        axes.axvline(begin, color="k", linestyle=":")
    axes.axhline(threshold, color="C1", linewidth=1)
    axes.set(xlabel="incoming message", ylabel="novelty, in units of the noise", xlim=(0, doubt.size))
    same, shifted, rise, left = (number.value for number in numbers.values())
    text = (
        f"The uncertainty has a period of {doubt.shape[1]} messages: its correlation with the same observations in the "
        f"next sweep is {same:.2f}, with other observations {shifted:.2f}. At a new problem its maximum over a sweep "
        f"becomes {10**rise:.0f} times as large or more, of which at most {left:.1%} is left at the end of the problem."
    )
    caption = "Dotted lines: a new problem begins. Solid line: the threshold above which the oracle is asked."
    note = (
        f"Numbers are means over {len(found)} sequences of {PROBLEMS} problems, in each of which the least rise and "
        "the largest remainder are taken; some sequences are worse than the mean. The first sequence is shown. The "
        "operator is the library's own, on synthetic problems, and not that of the paper (`Learned.published`) "
        "on its UCI "
        "sets: so the claims are ours."
    )
    return Outcome(text, numbers, ((figure, caption),), notes=(note,))


EXPERIMENT = Experiment(
    "messages-doubt-in-time",
    "The uncertainty of every message, over a sequence of problems",
    "Jitkrittum et al. (2015), draft, figures 5 and 7",
    (
        Claim(
            "uncertainty is periodic, with the number of observations as its period (of the draft's figure 5)",
            "correlation a sweep apart",
            low=0.5,
            ours=True,
            scales=("quick", "paper"),
        ),
        Claim(
            "it rises sharply at each new problem (of figure 2 of the paper): ten times or more",
            "log₁₀ of the least rise at a new problem",
            low=1.0,
            ours=True,
            scales=("quick", "paper"),
        ),
        Claim(
            "and then falls steadily (of figure 2 of the paper): a tenth or less is left",
            "largest part left at its end",
            high=0.1,
            ours=True,
            scales=("quick", "paper"),
        ),
        Claim(
            "the uncertainties of different observations are not correlated",
            "correlation of other members",
            -0.3,
            0.3,
            scales=("quick", "paper"),
            ours=True,
        ),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 1},
    run,
)
