"""Many numbers that functions join: their standard deviations by chains, beside exact ones."""

import numpy as np

from meanmap import ep
from meanmap.ep.inference.beside import by_draws
from meanmap.ep.inference.chains import chains
from meanmap.ep.inference.few_numbers import FewNumbers
from meanmap.families import Normal

PEOPLE, ITEMS = 24, 4


def answers(seed, probit=False):
    """Item responses: discrimination × ability − difficulty decides which answers are right."""
    r = np.random.default_rng(seed)
    ability, slope, difficulty = r.normal(size=PEOPLE), np.exp(0.3 * r.normal(size=ITEMS)), r.normal(size=ITEMS)
    noise = r.normal(size=(PEOPLE, ITEMS)) if probit else r.logistic(size=(PEOPLE, ITEMS))
    return (ability[:, None] * slope - difficulty + noise > 0).astype(int)


def item_response(y, variance):
    person, item = np.repeat(np.arange(PEOPLE), ITEMS), np.tile(np.arange(ITEMS), PEOPLE)
    slope = ep.Variable("slope", ep.Normal(1.0, variance), plate=ITEMS)
    ability = ep.Variable("ability", ep.Normal(0.0, 1.0), plate=PEOPLE)
    difficulty = ep.Variable("difficulty", ep.Normal(0.0, 1.0), plate=ITEMS)
    t, z = (ep.Variable(name, ep.Normal, plate=y.size) for name in "tz")
    return ep.FactorGraph(
        ep.Product(slope[item], ability[person], t, name="product"),
        ep.Sum(t, difficulty[item], out=z, weights=(1, -1)),
        ep.Logistic(z, observed=y.ravel()),
    )


def exactly(y, variance, steps=6000, count=16):
    """Means and standard deviations of slopes, abilities and difficulties by random walks of one kind after another."""
    r = np.random.default_rng(0)
    signs = 2.0 * y - 1
    now = [r.normal(1, np.sqrt(variance), (count, ITEMS)), *(r.normal(size=(count, n)) for n in (PEOPLE, ITEMS))]
    priors, widths, kept = [(1.0, variance), (0.0, 1.0), (0.0, 1.0)], [np.sqrt(variance), 1.4, 0.8], []

    def logs(slope, ability, difficulty):
        return -np.logaddexp(0, -signs * (slope[:, None] * ability[:, :, None] - difficulty[:, None]))

    height = logs(*now)
    for step in range(steps):
        for at, (mean, spread) in enumerate(priors):
            tried = [*now]
            tried[at] = now[at] + widths[at] * r.normal(size=now[at].shape)
            there = logs(*tried)
            axis = 2 if at == 1 else 1
            gained = (there - height).sum(axis) - ((tried[at] - mean) ** 2 - (now[at] - mean) ** 2) / (2 * spread)
            taken = np.log(r.random(gained.shape)) < gained
            now[at] = np.where(taken, tried[at], now[at])
            height = np.where(taken[:, :, None] if at == 1 else taken[:, None], there, height)
        if step >= steps // 5:
            kept.append(np.concatenate(now, axis=1))
    found = np.concatenate(kept)
    return found.mean(0), found.std(0)


def beliefs_like(mean, sd):
    """Separate beliefs with these moments."""
    ends = np.cumsum([0, ITEMS, PEOPLE, ITEMS])
    names = ("slope", "ability", "difficulty")
    return {
        name: Normal(mean[low:high], sd[low:high] ** 2)
        for name, low, high in zip(names, ends[:-1], ends[1:], strict=True)
    }


def test_chains_have_the_moments_of_the_posterior():
    y = answers(31)
    model = item_response(y, 1.0)
    mean, sd = exactly(y, 1.0)
    few = FewNumbers.of(model.variables, model.factors, meetings=2, most=500, plates=True)
    centre, expected = np.empty(len(sd)), np.empty(len(sd))
    own = dict(zip(few.priors, np.split(np.arange(len(sd)), np.cumsum(few.sizes)[:-1]), strict=True))
    place = np.concatenate([own["slope"], own["ability"], own["difficulty"]])
    centre[place], expected[place] = mean, sd
    found = chains(few, centre, 0.8 * expected, np.random.default_rng(0))  # from beliefs that are too narrow
    np.testing.assert_allclose(np.log(found.sd / expected), 0, atol=0.1)
    assert np.abs(np.log(found.sd / expected)).mean() < 0.03
    assert found.worth.min() > 300


def test_beliefs_that_are_too_narrow_are_told_from_right_ones():
    y = answers(47)
    model = item_response(y, 1.0)
    mean, sd = exactly(y, 1.0)
    assert by_draws(model.variables, model.factors, beliefs_like(mean, sd), 0.0) == ("", "")
    narrow = np.where(np.arange(len(sd)) < ITEMS, 0.75 * sd, sd)
    said, _ = by_draws(model.variables, model.factors, beliefs_like(mean, narrow), 0.0)
    assert said.startswith("weighted draws give standard deviations 1.")
    assert "for 'slope[" in said
    assert "'ability[" not in said
    assert "'slope' and 'ability' have separate beliefs and meet in rows of product" in said
