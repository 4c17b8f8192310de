"""What smooth effects leave out is noted, weekdays, hours and steps: effects adjusted for them alone are off."""

import numpy as np
import pytest

import meanmap as mm
from meanmap.bp.conditionals import codes
from meanmap.bp.conditionals.columns import CodedTable
from meanmap.bp.conditionals.seasons import seasons
from meanmap.core.tables.cycles import DIFFERENT, differ, notes_on_cycles

ARROWS = [("when", "t"), ("when", "y"), ("t", "y")]
ASKED = {"of": "t", "from_": "old", "to": "new", "rng": 0}


def table(seed: int, unit: str, busy: float) -> dict[str, np.ndarray]:
    """A treatment whose effect is 1, given more often at the weekend, at night, or late in the month, when
    outcomes are higher.
    """
    rng = np.random.default_rng([16_000_000, seed])
    n = 600
    when = np.datetime64("2024-01-01", "s") + (np.sort(rng.uniform(0, 365 * 86400, n))).astype("timedelta64[s]")
    seconds = when.astype(int)
    weekday, hour = (seconds // 86400 + 3) % 7, seconds // 3600 % 24
    late = (when.astype("datetime64[D]") - when.astype("datetime64[M]")).astype(int) >= 25
    often = {"weekday": weekday >= 5, "hour": hour < 6, "day of the month": late}[unit]
    treated = rng.random(n) < np.where(often, 0.5 + 0.3 * busy, 0.4)
    season = np.sin(2 * np.pi * seconds / (365 * 86400))
    y = treated + 2 * busy * often + season + rng.normal(size=n)
    return {"when": when, "t": np.where(treated, "new", "old"), "y": y}


def notes(data: dict[str, np.ndarray]) -> list[str]:
    network = mm.bp.BayesianNetwork(ARROWS)
    both = network.effect(data, "y", **ASKED).notes, network.fit(data).notes
    return [note for each in both for note in each if "make it a column of its own" in note]


def test_weekdays_hours_and_days_of_the_month_that_matter_are_noted():
    for unit in (units := ("weekday", "hour", "day of the month")):
        found = notes(table(0, unit, 1.0))
        assert len(found) == 2
        for note in found:
            assert [each for each in units if f"'y' varies with the {each} of 'when'" in note] == [unit]


def test_a_counterfactual_has_the_notes_on_what_changes():
    """With a shift of 2 of the outcome at weekends counterfactuals were off by 2 for 1, without a word."""
    data = table(20, "weekday", 1.0)
    data["t"] = (data["t"] == "new") + 0.5 * np.random.default_rng(0).normal(size=600)
    model = mm.bp.BayesianNetwork(ARROWS).fit(data)
    row = {name: column[0] for name, column in data.items()}
    with pytest.warns(UserWarning, match="'y' varies with the weekday of 'when'") as told:
        model.counterfactual(row, {"t": row["t"] + 0.1}, ["y"])
    assert not any("'t' varies" in str(each.message) for each in told)


def test_discovery_and_tests_note_weekdays():
    data = table(21, "weekday", 1.0)
    note = "'t' and 'y' vary with the weekday of 'when': make it a column of its own"
    assert any(note in each for each in mm.pc(data, rng=0).report.notes)
    found = mm.conditional_independence_test(data["t"], data["y"], data["when"], rng=0)
    assert "vary with the weekday of 'z'" in str(found)


def test_what_is_smooth_in_time_has_no_weekday():
    """At a p-value of 1e-4 each, of 40 columns one would have a note once in 100 times."""
    for seed in range(10):
        data = table(30 + seed, "weekday", 0.0)
        data["walk"] = np.random.default_rng(seed).normal(size=600).cumsum()
        assert not notes_on_cycles(data, data)


def test_a_season_alone_is_not():
    """At a p-value of 1e-4 each, 8 tables would have a note once in 300 times."""
    assert not [note for seed in range(8) for note in notes(table(1 + seed, "weekday", 0.0))]


def stepped(seed: int, height: float) -> dict[str, np.ndarray]:
    """A treatment whose effect is 1; it and the outcome go up and down with every unit of z."""
    rng = np.random.default_rng([16_100_000, seed])
    z = rng.uniform(0, 10, 800)
    up = np.floor(z) % 2
    t = rng.random(800) < 0.5 + 0.3 * height * (up - 0.5)
    smooth = np.sin(z) + 0.3 * z
    return {"z": z, "t": np.where(t, "new", "old"), "y": t + 3 * height * up + smooth + rng.normal(size=800)}


def test_steps_are_noted_and_smooth_effects_are_not():
    """At a p-value of 1e-6, 8 tables would have a note once in 100,000 times."""
    network = mm.bp.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")])
    notes = network.effect(stepped(0, 1.0), "y", **ASKED).notes
    assert any("'y' varies with it in steps or waves" in note for note in notes)
    for seed in range(8):
        assert not any("steps" in note for note in network.effect(stepped(1 + seed, 0.0), "y", **ASKED).notes)


def of_clusters(seed: int) -> dict[str, np.ndarray]:
    """Sixty clusters of ten rows that differ, and a confounder that is measured of each."""
    rng = np.random.default_rng([16_300_000, seed])
    c = np.repeat(np.arange(60), 10)
    u, z = rng.normal(size=60)[c], rng.normal(size=60)[c]
    t = rng.random(600) < 1 / (1 + np.exp(-z))
    return {"z": z, "t": np.where(t, "new", "old"), "y": t + z + u + rng.normal(size=600), "c": c}


def test_differences_of_clusters_are_no_steps():
    """With a confounder of each cluster, declared or not, all of 20 tables had the note."""
    network = mm.bp.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")])
    for seed in range(4):
        for clusters in ("c", None):
            notes = network.effect(of_clusters(seed), "y", clusters=clusters, **ASKED).notes
            assert not any("smooth effects" in note for note in notes)


def test_steps_of_a_number_in_clusters_and_of_rounded_numbers_are_noted():
    network = mm.bp.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")])
    data = stepped(20, 0.5)
    data["c"] = np.arange(800) // 10
    data["y"] = data["y"] + np.random.default_rng(0).normal(size=80)[data["c"]]
    notes = network.effect(data, "y", clusters="c", **ASKED).notes
    assert any("'y' varies with it in steps or waves" in note for note in notes)
    rounded = stepped(21, 0.5)
    wave = np.sign(np.sin(6 * rounded["z"].round(1)))
    rounded |= {"z": rounded["z"].round(1), "y": rounded["y"] + 2 * wave}
    notes = network.effect(rounded, "y", **ASKED).notes
    assert any("they may differ for other reasons" in note for note in notes)


def test_means_of_units_in_groups_are_compared():
    """Rows of a unit are copies of one number: as rows they differ among groups, as units they do not."""
    rng = np.random.default_rng(3)
    units = np.repeat(np.arange(40), 25)
    left, group = rng.normal(size=40)[units], units // 8
    assert differ(left, group) < 1e-3
    by_hand = differ(left[::25], group[::25])
    assert differ(left, group, units) == pytest.approx(by_hand)
    assert by_hand > 0.01


def test_a_part_of_one_row_beside_many_equal_numbers_has_no_spread():
    rng = np.random.default_rng(16_200_000)
    values = np.concatenate([np.full(409, 0.5), 1 + rng.random(91)])
    group = codes._parts(values, np.arange(500))
    assert np.bincount(group).min() == 1
    with np.errstate(divide="raise", invalid="raise"):
        assert differ(3 * (values > 1) + rng.normal(size=500), group, unequal=True) < DIFFERENT


@pytest.mark.parametrize(("seed", "sizes"), [(2, [60]), (1, [60, 60, 1000])])
def test_rounding_errors_of_an_exact_line_are_neither_steps_nor_waves(seed, sizes):
    # Tables that showed a wave, or ten breaks, in residuals of 1e-15.
    generator = np.random.default_rng(seed)
    z = [generator.normal(size=size) for size in sizes][-1]
    t = np.random.default_rng(seed).random(len(z)) < 1 / (1 + np.exp(-(z - z.mean()) / z.std()))
    data = {"z": z, "t": np.where(t, "new", "old"), "y": 2 * z + t}
    effect = mm.BayesianNetwork([("z", "t"), ("z", "y"), ("t", "y")]).effect(data, "y", **ASKED)
    assert not [note for note in effect.notes if "steps or waves" in note]
    assert float(effect.difference()) == pytest.approx(1, abs=1e-9)


def test_of_money_that_may_act_as_its_logarithm_that_is_said():
    """Tables of 20,000 rows with effects of the logarithm had a note on steps or waves alone, in 4 of 6."""
    rng, n = np.random.default_rng(6), 2000
    logs, near, noise = rng.normal(size=(3, n))
    rows = {"money": np.exp(1.5 * logs), "near": near, "y": noise}
    coded, numbers, _ = CodedTable.of(rows)
    for name, by, told in (("money", logs, True), ("near", near, False)):
        left = noise + np.sign(np.sin(4 * by))
        (note,) = codes.notes_of_codes(
            coded.columns, coded.standardised(numbers), (name,), "y", left, rows["y"][:, None]
        )
        assert "but 'y' varies with it in steps or waves" in note
        assert ("if its logarithm may be what acts" in note) == told


def of_costs(seed: int, codes_matter: bool, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Geometric numbers of 1 to 15, and skewed costs that grow smoothly along them, or differ among them as codes."""
    rng = np.random.default_rng([16_500_000, seed])
    number = np.minimum(rng.geometric(0.2, n), 15 if codes_matter else n)
    level = np.exp(rng.normal(size=16))[number] if codes_matter else 1 + 0.1 * number
    costs = level * np.exp(rng.normal(size=n))
    powers = np.vander((number - number.mean()) / number.std(), 3)
    return number, costs - powers @ np.linalg.lstsq(powers, costs, rcond=None)[0]


def test_skewed_costs_are_seldom_taken_for_codes_and_codes_still_are():
    """By the F test alone a sixth of such smooth tables had a p-value below 1e-6."""

    def found(codes_matter, compare):
        tables = (of_costs(seed, codes_matter) for seed in range(40))
        return sum(compare(left, np.unique(n, return_inverse=True)[1], None) < codes.UNEVEN for n, left in tables)

    assert found(False, differ) >= 4
    assert found(False, codes._among_codes) <= 1
    assert found(True, codes._among_codes) >= 32


def test_codes_of_few_rows_each_are_compared():
    rng = np.random.default_rng(5)
    site = rng.integers(0, 200, 1000)
    assert codes._among_codes(2 * rng.normal(size=200)[site] + rng.normal(size=1000), site, None) < codes.UNEVEN


def by_date(seed, rows, days, period, strength=2.0):
    """A cause that is more frequent where a wave of the date is high, an effect of .5, and the wave in the outcome."""
    rng = np.random.default_rng([77, seed])
    day = np.floor(rng.uniform(0, days, rows)).astype(int)
    wave = np.sin(2 * np.pi * day / period + 1)
    t = rng.random(rows) < 1 / (1 + np.exp(-strength * wave))
    when = np.datetime64("2019-03-01") + day
    return {"when": when, "t": t, "y": 0.5 * t + strength * wave + rng.normal(size=rows)}


def effect_by_date(data):
    graph = [("when", "t"), ("when", "y"), ("t", "y")]
    return mm.BayesianNetwork(graph).effect(data, "y", of="t", from_=False, to=True, rng=0)


def test_the_season_of_dates_is_adjusted_for():
    """It was not: 1.3 for .5 in tables of four years, where the standard deviation among tables is .12."""
    found = [effect_by_date(by_date(seed, 300, 1461, 365.25)) for seed in range(3)]
    assert np.mean([float(each.difference()) for each in found]) == pytest.approx(0.5, abs=4 * 0.12 / np.sqrt(3))
    assert not any(each.notes for each in found)


def test_other_waves_of_dates_are_noted():
    (note,) = effect_by_date(by_date(1, 600, 800, 67.0)).notes
    assert "but 'y' varies with it in steps or waves" in note


def test_dates_within_a_year_have_no_season():
    for days, parts in ((300, 0), (800, 2)):
        data = by_date(2, 100, days, 365.25)
        table, *_ = CodedTable.of(data)
        values = table.standardised(table.numbers(data, 100, "data"))
        assert len(seasons(table.columns["when"], values["when"])) == parts
        assert not seasons(table.columns["y"], values["y"])
