"""The doubt about every incoming message, in the order in which they come (figures 5 and 7 of the draft)."""

from typing import Any

import numpy as np

from meanmap_papers.experiment import Claim, Experiment, Number, Outcome, Setting

__all__ = ["EXPERIMENT"]

PROBLEMS = 4


def run(setting: Setting) -> Outcome:
    """Logistic regressions in sequence with one operator; its doubt is written down before it may ask."""
    from matplotlib import pyplot

    from meanmap import ep
    from meanmap.ep.learned import MessageOperator
    from meanmap_papers.messages.problems import four_synthetic, logistic_model

    rows = setting.choose(smoke=32, quick=300, paper=300)
    trace: list[tuple[int, np.ndarray]] = []
    current: list[MessageOperator] = []
    started = 0

    class Watched(ep.Learned):
        """Notes what the operator doubts."""

        def answer(self, questions: Any) -> Any:
            if questions.sweep is not None and current:
                trace.append((started, current[-1].predict(questions.incoming).novelty))
            answer = super().answer(questions)
            current[:] = [self.trained(questions.factor)]
            return answer

    learned = Watched(initial=setting.choose(smoke=40, quick=300, paper=300))
    columns = setting.choose(smoke=3, quick=5, paper=20)
    for X, y, *_ in four_synthetic(setting.seed, rows, columns):
        ep.infer(logistic_model(X, y), messages=learned, rng=setting.seed)
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
        "correlation a sweep apart": Number(float(same)),
        "correlation of other members": Number(float(shifted)),
        "least rise at a new problem": Number(float(rises)),
        "largest part left at its end": Number(float(falls)),
    }
    figure, axes = pyplot.subplots(figsize=(9, 3.2), constrained_layout=True)
    axes.semilogy(doubt.ravel(), linewidth=0.5)
    for those in sweeps[1:]:
        axes.axvline(those[0] * rows, color="k", linestyle=":")
    axes.axhline(learned.rules.threshold, color="C1", linewidth=1)
    axes.set(xlabel="incoming message", ylabel="novelty, in units of the noise", xlim=(0, doubt.size))
    text = (
        f"The doubt repeats itself every {rows} messages (correlation {same:.2f} from sweep to sweep, {shifted:.2f} "
        f"between other members). The largest rises {rises:.0f} times or more at each new problem, and falls with "
        "learning."
    )
    caption = "Dotted, a new problem begins; the line is the threshold above which the oracle is asked."
    return Outcome(text, numbers, ((figure, caption),))


EXPERIMENT = Experiment(
    "messages-doubt-in-time",
    "The doubt of every message, over a sequence of problems",
    "Jitkrittum et al. (2015), draft, figures 5 and 7",
    (
        Claim("doubt is periodic: it belongs to a member (figure 5)", "correlation a sweep apart", low=0.3),
        Claim("and not to others", "correlation of other members", -0.3, 0.3),
        Claim(
            "the largest rises on every new data set", "least rise at a new problem", low=1.0, scales=("quick", "paper")
        ),
        Claim("and falls with learning", "largest part left at its end", high=0.5, scales=("quick", "paper")),
    ),
    {"smoke": 0.3, "quick": 0.5, "paper": 1},
    run,
)
