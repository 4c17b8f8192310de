"""Claims, verdicts, records and the report, on an experiment made for the purpose."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm, t
from typer.testing import CliRunner

from meanmap.cli.commands import app
from meanmap.core.errors import InputError, KindError
from meanmap_papers import commands, registry, reproduce
from meanmap_papers.experiment import SCALES, Claim, Experiment, Number, Outcome, Reading, Setting, how_judged, verdict
from meanmap_papers.parts import Parts
from meanmap_papers.record import read_record, record_of, record_path
from meanmap_papers.report import claim_tables, measured, report
from meanmap_papers.reproduce import Failure, run_one


def measure(setting: Setting) -> Outcome:
    from matplotlib import pyplot

    sample = setting.rng().normal(size=setting.choose(smoke=100, quick=1000, paper=10_000))
    figure, axes = pyplot.subplots(figsize=(2, 1))
    axes.hist(sample)
    error = float(np.std(sample) / np.sqrt(len(sample)))
    return Outcome("It is <about> 0.", {"mean": Number(float(np.mean(sample)), error)}, ((figure, "A histogram."),))


TOY = Experiment(
    "toy-figure-1",
    "The mean of a standard normal",
    "Nobody (2000), figure 1",
    (Claim("the mean is 0", "mean", -1.0, 1.0), Claim("the mean is 5", "mean", 4.0, 6.0, scales=("paper",))),
    dict.fromkeys(SCALES, 0.01),
    measure,
)


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setattr(reproduce, "find", {TOY.id: TOY}.__getitem__)


def test_few_runs_are_judged_by_students_t_and_the_page_says_so():
    better = Claim("ahead of the rival", "lead", low=0.0)
    words = [better.judged(Number(2.5, 1.0, runs)) for runs in (3, 5, 100, None)]
    assert [word.split(":")[0] for word in words] == ["not settled", "not settled", "yes", "yes"]
    assert [round(float(t.ppf(norm.cdf(2), runs - 1)), 1) for runs in (3, 5, 10)] == [4.5, 2.9, 2.3]
    page = report([TOY], [record_of(TOY, Setting("smoke"), measure(Setting("smoke")), 0.1)])
    assert "wider, by Student&#x27;s t: 4.5 standard errors for 3 runs, 2.9 for 5 and 2.3 for 10" in page


def test_a_verdict_on_other_data_than_the_papers_says_so():
    assert TOY.said("partly") == "partly"
    other = replace(TOY, stand_in="a toy in place of the sample")
    assert other.said("partly") == "partly, with a toy in place of the sample"
    text = report([other], [Failure(other.id, "none")]) + report(
        [other], [record_of(other, Setting("smoke"), measure(Setting("smoke")), 0.1)]
    )
    assert "Reproduced, with a toy in place of the sample (scale smoke)" in text
    ours = replace(other, claims=(Claim("ours", "mean", 0.0, ours=True),))
    assert ours.said("no claim of the paper") == "no claim of the paper"


def test_superiority_is_ahead_by_two_standard_errors():
    better, fewer = Claim("better", "a", low=1.0), Claim("fewer", "a", high=1.0)
    assert [better.holds(Number(value, 0.1)) for value in (0.9, 1.0, 1.19, 1.21)] == [False, False, False, True]
    assert [fewer.holds(Number(value, 0.1)) for value in (0.79, 0.81, 1.0)] == [True, False, False]


def test_what_is_behind_by_less_than_two_standard_errors_is_not_refuted():
    better, fewer = Claim("better", "a", low=1.0), Claim("fewer", "a", high=1.0)
    words = [better.judged(Number(value, 0.1)).split(":")[0] for value in (0.79, 0.81, 1.19, 1.21)]
    assert words == ["no", "not settled", "not settled", "yes"]
    assert [fewer.judged(Number(value, 0.1)) for value in (0.79, 0.81, 1.19, 1.21)] == [
        "yes",
        "not settled: the interval crosses the band",
        "not settled: the interval crosses the band",
        "no",
    ]


@pytest.mark.parametrize("runs", [3, 6, 10])
def test_a_null_effect_is_called_better_as_rarely_by_few_repetitions_as_by_many(runs):
    better = Claim("better", "a", low=0.0)
    words = [better.judged(Number.mean(each)) for each in np.random.default_rng(runs).normal(size=(20_000, runs))]
    allowed = 3 * np.sqrt(0.02275 * 0.97725 / 20_000)
    assert [np.mean([word == wanted for word in words]) for wanted in ("yes", "no")] == pytest.approx(
        [0.02275, 0.02275], abs=allowed
    )


def test_repetitions_are_counted_where_the_standard_error_is_their_spread():
    three = [1.0, 2.0, 4.0]
    ways = Number.mean(three), Number.ratio(three, [1.0, 1.5, 1.0]), Number.root_mean_square(three)
    assert [number.runs for number in ways] == [3, 3, 3]
    assert Number.share([True, False, True]).runs is None
    assert Number.mean(three).reach == pytest.approx(4.5266 * Number.mean(three).error, rel=1e-4)
    assert Number(1.0, 0.1).reach == 0.2


def test_what_has_no_standard_error_settles_nothing_unless_it_is_exact():
    claim = Claim("better", "a", low=1.0)
    assert claim.judged(Number(2.0)) == "not settled: no standard error"
    assert verdict((claim,), {"a": Number(2.0)}, "smoke") == "not settled"
    assert claim.holds(Number(1.0, 0.0))


def test_claims_of_ours_do_not_enter_a_verdict():
    claims = (Claim("as printed", "a", low=1.0), Claim("as we say", "b", low=1.0, ours=True))
    numbers = {"a": Number(2.0, 0.1), "b": Number(0.0, 0.1)}
    assert verdict(claims, numbers, "smoke") == "reproduced"
    assert verdict(claims[1:], numbers, "smoke") == "no claim of the paper"
    assert [how_judged(claims, numbers, "smoke", ours=ours) for ours in (False, True)] == [{"yes": 1}, {"no": 1}]


def test_where_no_claim_holds_one_that_is_refuted_is_enough():
    claims = Claim("a", "a", low=1.0), Claim("b", "b", low=1.0), Claim("c", "c", low=1.0)
    held, open, refuted = Number(2.0, 0.1), Number(1.0, 0.1), Number(0.0, 0.1)
    said = {
        (held, held, held): "reproduced",
        (held, open, open): "partly",
        (held, refuted, open): "partly",
        (open, refuted, open): "not reproduced",
        (open, open, open): "not settled",
    }
    for found, word in said.items():
        assert verdict(claims, dict(zip("abc", found, strict=True)), "smoke") == word


def test_a_statement_about_several_numbers_is_as_good_as_the_worst_of_them():
    claim = Claim("better than all", ("a", "b", "c"), low=0.0)
    well, behind, unknown = Number(1.0, 0.1), Number(0.1, 0.1), Number(1.0)
    assert claim.judged(well, well, well) == "yes"
    assert claim.judged(well, unknown, well) == "not settled: no standard error"
    assert claim.judged(unknown, Number(-1.0, 0.1), well) == "no"
    assert claim.judged(behind, well, well) == "not settled: the interval crosses the band"
    numbers = {"a": well, "b": behind}
    with pytest.raises(KeyError, match="did not measure 'c'"):
        verdict((claim,), numbers, "smoke")
    assert verdict((claim,), numbers | {"c": well}, "smoke") == "not settled"
    assert verdict((claim,), numbers | {"c": Number(-1.0, 0.1)}, "smoke") == "not reproduced"
    assert how_judged((claim,), numbers | {"c": well}, "smoke") == {"not settled": 1}


def test_where_readings_disagree_nothing_is_settled():
    claim = Claim("better in both ways", (("a", "a by ratio"), "b"), low=0.0)
    assert claim.names == ("a", "a by ratio", "b")
    well, no, behind = Number(1.0, 0.1), Number(-1.0, 0.1), Number(0.1, 0.1)
    assert claim.judged(well, well, well) == "yes"
    assert claim.judged(no, no, well) == "no"
    assert claim.judged(well, no, well) == "not settled: it depends on the reading"
    assert claim.judged(well, behind, well) == "not settled: no reading refutes it"
    assert claim.judged(no, behind, well) == "not settled: no reading confirms it"
    assert claim.judged(well, no, no) == "no"
    assert claim.judged(behind, behind, well) == "not settled: the interval crosses the band"


def test_the_error_of_a_share_is_never_zero():
    assert Number.share([False] * 100).error == pytest.approx(np.sqrt(1 / 102 * 101 / 102 / 100))
    draws = np.random.default_rng(0).random((2000, 100)) < 0.3
    found = [Number.share(list(each)) for each in draws]
    spread = np.std([number.value for number in found])
    assert np.mean([number.error for number in found]) == pytest.approx(spread, rel=4 / np.sqrt(2 * 2000))


def test_a_number_alone_has_no_standard_error_and_says_so():
    assert Number.mean([2.0]) == Number(2.0)
    assert str(Number.mean([2.0])) == "2, no standard error"
    assert Number.mean([1.0, 2.0, 3.0]) == Number(2.0, 1 / np.sqrt(3), 3)


def test_a_poor_measurement_does_not_help_a_printed_number():
    claim = Claim("it is 1.4", "a", 1.3, 1.5)
    assert claim.judged(Number(1.4, 0.3)) == "not settled: the interval crosses the band"
    assert claim.judged(Number(1.4, 0.01)) == "yes"
    with pytest.raises(ValueError, match=r"low < high, got \[1.4, 1.4\]"):
        Claim("it is 1.4", "a", 1.4, 1.4)


def test_things_are_alike_where_the_whole_interval_lies_in_the_band():
    claim = Claim("between 1 and 2", "a", 1.0, 2.0)
    words = [claim.judged(Number(value, 0.1)).split(":")[0] for value in (0.79, 0.81, 1.19, 1.21, 1.79, 2.19, 2.21)]
    assert words == ["no", "not settled", "not settled", "yes", "yes", "not settled", "no"]
    assert claim.judged(Number(1.5, 1.0)) == "not settled: the interval crosses the band"


def test_a_reading_may_have_a_band_of_its_own():
    """One number of which more or less is asked, and two numbers in different units."""
    high = Claim("errors are very high", ((Reading("a", low=0.5), Reading("a", low=0.85)),))
    words = [high.judged(*[Number(value, 0.04)] * 2) for value in (0.95, 0.74, 0.4)]
    assert words == ["yes", "not settled: it depends on the reading", "no"]
    units = Claim("nothing changes", ((Reading("a", -0.1, 0.1), Reading("b", high=2.0)),))
    assert units.judged(Number(0.0, 0.01), Number(1.5, 0.01)) == "yes"
    assert [_ends(claim) for claim in (high, units)] == [
        "at least 0.5, or at least 0.85",
        "-0.1 to 0.1 (a); at most 2 (b)",
    ]
    with pytest.raises(ValueError, match="needs a band with low < high"):
        Claim("nothing", (Reading("a"),), low=0.0)


def test_a_reading_that_was_not_measured_leaves_the_statement_open():
    claim = Claim("better", (("a", "b"),), low=0.0)
    for value in (1.0, -1.0):
        assert claim.judged(*claim.of({"a": Number(value, 0.1)})) == "not settled: not measured"
    (_, row) = claim_tables((claim,), {"a": Number(1.0, 0.1)}, "smoke")[0]
    assert row[2] == "1.00 ± 0.10 (a); not measured (b)"


def test_the_spread_of_problems_of_one_run_is_no_standard_error():
    claim = Claim("better", "a", low=0.0, over="problems of one run")
    assert claim.judged(Number(5.0, 0.1, 4)) == "not settled: no standard error"
    assert measured(claim, [Number(5.0, 0.1, 4)]) == ["5 from 4 problems of one run, whose spread over √4 is 0.1"]


def test_a_number_of_several_readings_is_shown_once():
    claim = Claim("x", (("a", "b"), ("c", "b")), low=0.0)
    assert measured(claim, [Number(each) for each in (1.0, 2.0, 3.0, 2.0)]) == [
        f"{each}, no standard error ({name})" for each, name in ((1, "a"), (2, "b"), (3, "c"))
    ]


def _ends(claim):
    (_, (_, band, *_)) = claim_tables((claim,), dict.fromkeys(claim.names, Number(0.0, 0.1)), "paper")[0]
    return band


def test_the_verdict_speaks_of_the_claims_that_the_scale_can_show():
    numbers = {"mean": Number(0.0, 0.0)}
    assert verdict(TOY.claims, numbers, "smoke") == "reproduced"
    assert verdict(TOY.claims, numbers, "paper") == "partly"
    assert verdict(TOY.claims[1:], numbers, "paper") == "not reproduced"
    assert verdict(TOY.claims[1:], numbers, "smoke") == "not shown at this scale"
    with pytest.raises(KeyError, match="did not measure 'mean'"):
        verdict(TOY.claims, {}, "smoke")


def test_a_record_is_read_back_whole_and_saves_the_second_run(tmp_path):
    setting = Setting("smoke", 3)
    first = run_one(TOY.id, setting, tmp_path)
    path = record_path(tmp_path, TOY.id, setting)
    assert read_record(path) == first
    assert first.figures[0][0].startswith(b"\x89PNG")
    marked = json.loads(path.read_text())
    marked["answer"] = "kept"
    path.write_text(json.dumps(marked))
    assert run_one(TOY.id, setting, tmp_path).answer == "kept"
    assert run_one(TOY.id, Setting("smoke", 4), tmp_path).answer != "kept"
    path.write_text(json.dumps({**marked, "numbers": {"other": [0.0, None]}}))  # of an earlier form of the experiment
    assert run_one(TOY.id, setting, tmp_path).answer != "kept"
    assert run_one(TOY.id, Setting("quick", 3), tmp_path).answer != "kept"


def test_an_executor_runs_experiments(tmp_path):
    """With the folder that all share; it stays open."""
    setting = Setting("smoke", 3)
    with ThreadPoolExecutor(1) as threads:
        first, second = reproduce.reproduce([TOY, TOY], setting, tmp_path, executor=threads)
        assert threads.submit(int).result() == 0
    assert first == second == read_record(record_path(tmp_path, TOY.id, setting))
    with pytest.raises(KindError, match=r"executor is an int; expected a concurrent\.futures\.Executor"):
        reproduce.reproduce([TOY], setting, tmp_path, executor=4)


def test_the_workers_of_a_scheduler_run_experiments(tmp_path, monkeypatch):
    """By the command, which leaves no client behind."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(registry, "find", {TOY.id: TOY}.__getitem__)
    monkeypatch.setattr(commands, "PATIENCE", 2)
    command = ["reproduce", TOY.id, "--scale", "smoke", "--seed", "3", "--folder", str(tmp_path), "--scheduler"]
    one_here = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**one_here) as cluster:
        done = CliRunner().invoke(app, [*command, cluster.scheduler_address])
        assert not cluster.scheduler.clients.keys() - {"fire-and-forget"}
        address = cluster.scheduler_address
    assert done.stdout.startswith("toy-figure-1: reproduced (scale smoke). It is <about> 0.")
    assert done.exit_code == 0
    kept = read_record(record_path(tmp_path, TOY.id, Setting("smoke", 3)))
    assert kept is not None
    assert kept.numbers == dict(measure(Setting("smoke", 3)).numbers)
    refused = CliRunner().invoke(app, [*command, address])
    assert refused.exit_code == 2
    assert "no scheduler answers at" in refused.stderr


def test_the_command_fails_if_nothing_ran(tmp_path, monkeypatch):
    def lacks_data(setting: Setting) -> Outcome:
        raise InputError("data are missing")

    lacking = Experiment(**{**vars(TOY), "run": lacks_data})
    monkeypatch.setattr(registry, "find", {TOY.id: lacking}.__getitem__)
    monkeypatch.setattr(commands, "_workers_of", lambda _: nullcontext(ThreadPoolExecutor(1)))
    monkeypatch.setattr(reproduce, "find", lambda _: lacking)
    done = CliRunner().invoke(app, ["reproduce", TOY.id, "--scale", "smoke", "--folder", str(tmp_path)])
    assert "not run: InputError: data are missing" in done.stdout
    assert done.exit_code == 1


def test_what_was_measured_before_a_stop_is_not_measured_again(tmp_path, monkeypatch):
    measured = []

    def long(setting: Setting) -> Outcome:
        def part(at: int) -> float:
            measured.append(at)
            if measured == [0, 1, 2]:
                raise KeyboardInterrupt
            return 0.1 * at

        total = sum(setting.part(f"number {at}", lambda at=at: part(at)) for at in range(4))
        return Outcome("It adds up.", {"mean": Number(total)})

    monkeypatch.setattr(reproduce, "find", lambda _: Experiment(**{**vars(TOY), "run": long}))
    setting = Setting("smoke", 3)
    with pytest.raises(KeyboardInterrupt):
        run_one(TOY.id, setting, tmp_path)
    (left,) = tmp_path.glob("*.parts")
    # The last of two parts was being written.
    left.write_text(left.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    record = run_one(TOY.id, setting, tmp_path)
    assert measured == [0, 1, 2, 1, 2, 3]
    assert record.numbers["mean"].value == sum(0.1 * at for at in range(4))
    assert list(tmp_path.iterdir()) == [record_path(tmp_path, TOY.id, setting)]


def test_seconds_are_those_of_all_runs(tmp_path):
    path = tmp_path / "a.parts"
    path.write_text('\n["one", 1, 20.5]\n["two", [2], 1]')
    parts = Parts(path)
    assert (parts.measured("one", lambda: 5), parts.measured("three", lambda: 3)) == (1, 3)
    assert parts.seconds == 21.5
    assert Parts(path).measured("three", lambda: 5) == 3


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"format": 99}', '{"format": 1, "id": 3}', "\x00\xff"])
def test_what_is_no_record_is_run_again(tmp_path, content):
    setting = Setting("smoke")
    record_path(tmp_path, TOY.id, setting).write_text(content, encoding="latin-1")
    assert run_one(TOY.id, setting, tmp_path).verdict == "reproduced"


def test_the_report_sets_claims_beside_numbers(tmp_path):
    record = run_one(TOY.id, Setting("smoke", 3), tmp_path)
    page = report([TOY, TOY], [record, Failure(TOY.id, "no data & no net")])
    for expected in (
        "1 reproduced",
        "judged at scale smoke",
        "Reproduced (scale smoke).",
        "1 not run",
        "1 yes",
        "no data &amp; no net",
        "It is &lt;about&gt; 0.",
        "-1 to 1",
        "A histogram.",
    ):
        assert expected in page
    assert "meanmap reproduce toy-figure-1 --scale smoke --seed 3" in page


def test_workers_end_with_the_process_that_started_them():
    work = "import time; print('begun', flush=True); time.sleep(600)"
    begin = "from meanmap_papers.reproduce import _pool\nwith _pool(1) as pool: "
    script = f"{begin}pool.submit(exec, {work!r}).result()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.kill()
        running.communicate(timeout=30)  # which waits until no process can write any more


@pytest.mark.slow
def test_a_killed_reproduction_goes_on_where_it_was(tmp_path):
    ids = ["kernel-learning-figure-1", "loopy-figure-2"]
    command = [sys.executable, "-c", "from meanmap.cli import main; main()", "reproduce", *ids]
    command += ["--scale", "smoke", "--workers", "1", "--folder", str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    paths = [record_path(tmp_path, id, Setting("smoke")) for id in ids]
    while running.poll() is None and not any(path.exists() for path in paths):
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = [path for path in paths if path.exists()]
    kept = {path: path.read_bytes() for path in done}
    assert all(read_record(path) is not None for path in done)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert all(read_record(path) is not None for path in paths)
    assert all(path.read_bytes() == content for path, content in kept.items())  # not run again
    assert (tmp_path / "report.html").exists()


def test_bad_input_is_told():
    with pytest.raises(ValueError, match="scale is 'big'; expected smoke, quick or paper"):
        Setting("big")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="needs a band"):
        Claim("nothing", "a")
    with pytest.raises(ValueError, match="minutes at the scale 'paper'"):
        Experiment("a", "b", "c", (), {"smoke": 1, "quick": 1}, measure)
    with pytest.raises(ValueError, match="there is no figure 'toy'"):
        registry.find("toy")


def test_every_experiment_has_an_id_of_its_own_that_names_its_paper():
    for id, experiment in registry.all_experiments().items():
        assert id.split("-")[0] in {"kernel", "trees", "loopy", "messages", "draft"}
        assert experiment.claims
        assert experiment.minutes["smoke"] <= 2.0


# Figures with measurements in them; the first of each version of the paper on messages is a drawing of a model.
FIGURES = {
    "Flaxman": range(1, 5),
    "Song, Gretton & Guestrin (2010)": range(1, 3),
    "Song et al. (2011), appendix": range(1, 5),
    "Jitkrittum et al. (2015)": range(2, 5),
    "its draft": range(2, 11),
}


def test_every_figure_of_the_papers_has_an_experiment():
    shown = {paper: set() for paper in FIGURES}
    for experiment in registry.all_experiments().values():
        for part in experiment.source.replace("(2015), draft", "(2015); its draft").split(";"):
            paper = next((name for name in FIGURES if name in part), None)
            words = re.search(r"figures? ([\d, and]+)", part)
            if paper is not None and words is not None:
                shown[paper] |= {int(number) for number in re.findall(r"\d+", words[1])}
    assert shown == {paper: set(figures) for paper, figures in FIGURES.items()}
