"""Effect sizes: against closed forms and quadrature, and how often their intervals cover."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import meanmap as mm
from meanmap.core.door import Door
from meanmap.core.errors import ParameterError, ShapeError
from meanmap.stats.effects.dependence import covariance_laws
from meanmap.stats.effects.groups import difference_of
from meanmap.stats.limits import DistanceLaw
from meanmap.stats.samples.samples import read_samples

FAILURE_RATE = 1e-5
LEVEL = 0.9


def gaussian_mean(square, *rows):
    """E exp(−uᵀu/2) for normal u with this mean and covariance."""
    covariance, mean = np.atleast_2d(square), np.array(rows or [0.0] * len(np.atleast_2d(square)))
    whole = np.eye(len(covariance)) + covariance
    return np.exp(-mean @ np.linalg.solve(whole, mean) / 2) / np.sqrt(np.linalg.det(whole))


def mmd_of_shift(shift):
    """Between N(0, I) and N(shift, I) in two dimensions under RBF(1)."""
    two = 2 * np.eye(2)
    return np.sqrt(2 * (gaussian_mean(two) - gaussian_mean(two, shift, shift)))


def hsic_of_normal(r):
    """Root of HSIC of two standard normals of correlation r under RBF(1), and the correlation of features."""

    def between(a, b):
        joint = gaussian_mean([[2, 2 * a], [2 * a, 2]])
        crossed = gaussian_mean([[2, a], [a, 2]])
        return joint + b - 2 * crossed

    alone = gaussian_mean([[2.0]]) ** 2
    # Of a variable with itself r = 1, as a limit.
    return np.sqrt(between(r, alone)), np.sqrt(between(r, alone) / between(1.0, alone))


@pytest.mark.parametrize("decay", [0.3, 0.9])
def test_no_direction_makes_the_law_fail(decay):
    """Normal elements of a Hilbert space whose covariance is known: every direction, zero to large."""
    rng, spectrum = np.random.default_rng(0), decay ** np.arange(12)
    law = DistanceLaw(30.0, spectrum)
    for norm in (0.0, 0.3, 1.0, 3.0):
        for direction in (np.eye(12)[0], np.eye(12)[1], np.eye(12)[-1], rng.normal(size=12)):
            mean = norm * direction / np.linalg.norm(direction)
            squares = np.sum((mean + np.sqrt(spectrum) * rng.normal(size=(200, 12))) ** 2, axis=1)
            # An interval covers where neither tail says that the norm is excluded.
            both = [(law.below(norm, t), law.below(norm, max(t, law.trace))) for t in squares]
            covered = sum(one < 0.95 and other > 0.05 for one, other in both)
            assert covered >= scipy.stats.binom.ppf(FAILURE_RATE, 200, LEVEL), (norm, direction, covered)
    low, high = law.interval(LEVEL)
    assert law.above(low) == pytest.approx(0.05, abs=1e-6)
    assert law.below(high) == pytest.approx(0.05, abs=1e-6)


def test_the_law_is_that_of_its_draws():
    law = DistanceLaw(0.7, np.array([0.3, 0.1, 0.05]))
    rng = np.random.default_rng(1)
    e = rng.normal(size=(20_000, 3)) * np.sqrt(law.spectrum) + [0.5, 0, 0]
    chance = np.mean(np.sum(e**2, axis=1) <= 0.7)
    assert law.below(0.5) == pytest.approx(chance, abs=0.015)
    assert law.above(0.5) == pytest.approx(1 - chance, abs=0.015)
    assert np.mean(law.draws(0.5, rng, 20_000) <= 0.7) == pytest.approx(chance, abs=0.015)


def test_grams_and_features_are_the_definition():
    """Distance and covariance of a linear kernel, whose features are the numbers themselves."""
    rng = np.random.default_rng(2)
    samples = [rng.normal(size=(n, 2)) for n in (20, 30, 25)]
    from meanmap.linalg.moments import Moments
    from meanmap.stats.effects.groups import _law_of_moments
    from meanmap.stats.samples.cells import Cells

    for used in (samples[:2], samples):
        pooled, cells = np.concatenate(used), Cells.of(list(map(len, used)), None)
        law = cells.law_of_gram(pooled @ pooled.T)
        for again in (
            _law_of_moments([Moments.of(sample) for sample in used]),
            cells.law_of_features(pooled.__getitem__)[0],
        ):
            assert law.squared == pytest.approx(again.squared)
            assert law.trace == pytest.approx(again.trace)
            assert law.spectrum.max() == pytest.approx(again.spectrum.max())
    x, y = samples[:2]
    law = Cells.of([20, 30], None).law_of_gram(np.concatenate([x, y]) @ np.concatenate([x, y]).T)
    assert law.squared == pytest.approx(np.sum((x.mean(axis=0) - y.mean(axis=0)) ** 2))
    assert law.trace == pytest.approx(np.trace(np.cov(x.T)) / 20 + np.trace(np.cov(y.T)) / 30)


def test_dependence_of_normal_variables():
    rng = np.random.default_rng(3)
    x = rng.normal(size=1000)
    y = 0.6 * x + 0.8 * rng.normal(size=1000)
    effect = mm.independence_effect(x, y, mm.kernels.RBF(1.0), rng=0)
    root, correlation = hsic_of_normal(0.6)
    assert effect.distance.low < root < effect.distance.high
    assert effect.correlation.low < correlation < effect.correlation.high
    assert mm.independence_effect(x, x, mm.kernels.RBF(1.0), rng=0).correlation.estimate == pytest.approx(1, abs=0.01)
    assert effect.share.estimate == pytest.approx(effect.distance.estimate / np.sqrt(2))


def test_a_shift_is_told_as_what_it_is():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(400, 3)) * [1, 10, 1000], (rng.normal(size=(400, 3)) + 0.5) * [1, 10, 1000]
    effect = mm.two_sample_effect(x, y, rng=0)
    assert effect.shift.low < 0.5 < effect.shift.high
    assert 0.3 < effect.shift.estimate < 0.7
    assert f"as far apart as after a shift of every column by {effect.shift} standard deviations; not a " in str(effect)
    assert effect.to_dict()["shift"][0] == effect.shift.estimate


def test_labels_have_no_shift_and_their_share_is_sharp():
    """Of two values with Delta, MMD over its largest is the share that must change itself."""
    x, y = ["a"] * 60 + ["b"] * 40, ["a"] * 30 + ["b"] * 70
    effect = mm.two_sample_effect(x, y, rng=0)
    assert effect.shift is None
    assert effect.share.low < 0.3 < effect.share.high


def test_many_rows_are_compared_by_features():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(3000, 2)), rng.normal(0.2, 1.0, size=(3000, 2))
    effect = mm.two_sample_effect(x, y, confidence=0.999, rng=0)
    assert effect.shift.low < 0.2 < effect.shift.high
    assert effect.shift.high < 0.3


def test_groups_of_a_table():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"g": np.repeat(["u", "v", "w"], 40), "a": rng.normal(size=120)})
    several = mm.k_sample_effect(frame, by="g", rng=0)
    assert several.distance.low == 0.0
    two = mm.two_sample_effect(frame[frame.g != "w"], by="g", rng=0)
    assert two.sizes == (40, 40)
    assert "difference between g=u and g=v" in str(two)
    assert "the normal approximation of means is doubtful for 40 rows." in two.warnings


def test_errors():
    with pytest.raises(ShapeError, match="x has 20 points and y has 10"):
        mm.independence_effect(range(20), range(10))
    with pytest.raises(ParameterError, match="confidence is 95"):
        mm.two_sample_effect(range(20), range(20), confidence=95)


# Each problem gives, for an effect, a draw of two samples with a kernel, and the true distance under the kernel used.
GRID = np.linspace(0, 40, 1500)


def exponential(scale):
    return np.diff(np.append(scipy.stats.expon.cdf(GRID, scale=scale), 1.0))


def scaled_truth(effect, kernel):
    """Of exponentials of scale 1 and 1 + effect, by a grid."""
    difference = exponential(1.0) - exponential(1.0 + effect)
    return float(np.sqrt(max(difference @ np.asarray(kernel(GRID[:, None])) @ difference, 0.0)))


LABELS = np.array([0.4, 0.3, 0.2, 0.1])
PROBLEMS = {
    "shift": (
        lambda rng, n, effect: (rng.normal(size=(n, 2)), rng.normal(effect, 1.0, size=(n, 2)), mm.kernels.RBF(1.0)),
        lambda effect, kernel: mmd_of_shift(effect),
        (0.0, 0.1, 1.0),
    ),
    "labels": (
        lambda rng, n, effect: (
            rng.choice(list("abcd"), n, p=LABELS),
            rng.choice(list("abcd"), n, p=LABELS + effect * np.array([-1, 0, 0, 1])),
            None,
        ),
        lambda effect, kernel: np.sqrt(2) * effect,
        (0.0, 0.05, 0.3),
    ),
    "scale, default kernels": (
        lambda rng, n, effect: (rng.exponential(size=n), rng.exponential(1 + effect, size=n), None),
        scaled_truth,
        (0.0, 0.2, 2.0),
    ),
}


def covered(problem, effect, n, trials, seed):
    draw, truth, _ = PROBLEMS[problem]
    found = 0
    for t in range(trials):
        rng = np.random.default_rng([seed, t])
        x, y, kernel = draw(rng, n, effect)
        with Door() as door:
            samples = read_samples((x, y), ("x", "y"), kernel, rng, door)
            difference = difference_of(samples, rng, door)
        low, high = difference.law.interval(LEVEL)
        found += low <= truth(effect, difference.kernel) + 1e-12 and truth(effect, difference.kernel) <= high
    return found


def least(trials):
    return scipy.stats.binom.ppf(0.01, trials, LEVEL)


@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_coverage(effect):
    assert covered("shift", effect, 50, 40, seed=7) >= scipy.stats.binom.ppf(FAILURE_RATE, 40, LEVEL)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1000, 100_000])
@pytest.mark.parametrize("size", ["zero", "small", "large"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_coverage_at_length(problem, size, n):
    """At least nominal: conservative where the difference does not point along the direction of most variation."""
    trials = {1000: 200, 100_000: 50}.get(n, 500)
    effect = PROBLEMS[problem][2][["zero", "small", "large"].index(size)]
    found = covered(problem, effect, n, trials, seed=8)
    print(f"coverage of {problem}, {size}, n = {n}: {found} of {trials}")
    assert found >= least(trials), found


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("effect", [0.0, 0.1, 1.0])
def test_coverage_of_three_samples(effect, n):
    """Shifted by nothing, the effect and twice the effect; the truth is a sum over the three pairs."""
    trials = 50 if n == 1000 else 200
    truth = np.sqrt((2 * mmd_of_shift(effect) ** 2 + mmd_of_shift(2 * effect) ** 2) / 9)
    found = 0
    for t in range(trials):
        rng = np.random.default_rng([10, t])
        samples = [rng.normal(k * effect, 1.0, size=(n, 2)) for k in range(3)]
        distance = mm.k_sample_effect(samples, mm.kernels.RBF(1.0), confidence=LEVEL, rng=t).distance
        found += distance.low <= truth + 1e-12 and truth <= distance.high
    print(f"coverage of three samples, {effect}, n = {n}: {found} of {trials}")
    assert found >= least(trials), found


DEPENDENCES = {"zero": 0.0, "small": 0.2, "large": 0.9}


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1000])
@pytest.mark.parametrize("size", DEPENDENCES)
def test_coverage_of_dependence(size, n):
    trials, r, both = 100 if n == 1000 else 500, DEPENDENCES[size], [0, 0]
    kernel, truths = mm.kernels.RBF(1.0), hsic_of_normal(DEPENDENCES[size])
    for t in range(trials):
        x, e = np.random.default_rng([9, t]).normal(size=(2, n))
        laws = covariance_laws(*(np.asarray(kernel(side[:, None])) for side in (x, r * x + np.sqrt(1 - r * r) * e)))
        for which, (law, truth) in enumerate(zip(laws, truths, strict=True)):
            low, high = law.interval(LEVEL)
            both[which] += low <= truth + 1e-12 and truth <= high
    print(f"coverage of dependence, {size}, n = {n}: {both} of {trials}")
    assert min(both) >= least(trials), both


def test_of_a_column_that_is_mostly_zeros_the_plain_differences_come_first():
    """A shift of .0009 standard deviations was all that was said of eleven percent more payers."""
    rng = np.random.default_rng(1)

    def paid(share):
        return np.where(rng.random(600) < share, rng.lognormal(3, 1, 600), 0.0)

    x, y = {"paid": paid(0.3), "age": rng.normal(size=600)}, {"paid": paid(0.4), "age": rng.normal(size=600)}
    found = mm.two_sample_effect(x, y, rng=0)
    assert {each.column for each in found.differences} == {"paid", "age"}  # none is hidden
    first = next(each for each in found.differences if each.label is not None)
    second = next(each for each in found.differences if each.without is not None)
    assert (first.label, second.without) == ("0", "0")
    shares = [(each["paid"] == 0).mean() for each in (x, y)]
    assert first.difference.estimate == pytest.approx(shares[1] - shares[0])
    means = [each["paid"][each["paid"] > 0].mean() for each in (x, y)]
    assert second.difference.estimate == pytest.approx(means[1] - means[0])
    said = str(found).splitlines()
    assert said[1].split(maxsplit=1)[1].startswith(("paid = 0: ", "mean paid where not 0: "))
    assert "intervals of columns       95%, simultaneous for 4 comparisons" in str(found)
    (note,) = (note for note in found.warnings if "standard deviations say little" in note)
    assert note.startswith("more than half of the rows have one number in paid (0): ")
    assert "shift of every column" not in str(found)
    assert {each["label"] for each in found.to_dict()["differences"]} == {"0", None}
    alone = mm.two_sample_effect(x["paid"], y["paid"], rng=0)
    assert [each.column for each in alone.differences] == ["value"] * 3
    plain = mm.two_sample_effect(np.asarray(x["age"]), np.asarray(y["age"]), rng=0)
    assert [each.column for each in plain.differences] == ["value"]
    assert [each["column"] for each in plain.to_dict()["differences"]] == ["value"]
    assert not any("say little" in note for note in plain.warnings)
    designed = mm.two_sample_effect(x, y, clusters=np.arange(1200) // 2, rng=0)
    assert [each.estimate for each in (found.difference for found in designed.differences)] == pytest.approx(
        [each.difference.estimate for each in mm.two_sample_effect(x, y, rng=0).differences]
    )
    assert any("say little" in note for note in designed.warnings)
    close = mm.closeness_test(x, y, 0.5, rng=0)
    assert any("say little" in note for note in close.warnings)


def test_an_interval_that_begins_at_zero_does_not_contradict_a_test():
    """Of 0 to .012 nobody knew why, as the test had rejected."""
    rng = np.random.default_rng(18_200_021)
    x, y = rng.normal(size=(100, 2)), rng.normal(size=(100, 2))
    said = "this distance alone leaves open whether there is any difference; a test, "
    assert said in str(mm.two_sample_effect(x, y, rng=0))
    assert said not in str(mm.two_sample_effect(x, y + 1, rng=0))
    assert said not in str(mm.independence_effect(x[:, 0], x[:, 1], rng=0))
