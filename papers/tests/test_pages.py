"""The pages of reproductions are those of the kept records, with pictures that load quickly."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from meanmap_papers.experiment import Number, Setting
from meanmap_papers.registry import all_experiments
from meanmap_papers.reproduce import run_one
from papers import pages as papers


def told(record):
    """What was written after a run."""
    return " ".join([record.get("afterwards", ""), *record.get("more", ())])


def test_every_page_is_the_one_that_kept_records_make():
    for path, text in papers.written(papers.kept()).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: type python -m papers.pages"


@pytest.mark.parametrize("record", papers.kept().values(), ids=lambda record: record["id"])
def test_a_number_has_a_standard_error_or_the_record_says_why_not(record):
    without = [name for name, (_, error, *_) in record["numbers"].items() if error is None]
    assert all(f"{name} of" in told(record) for name in without), without
    assert not without or "no standard error, because" in told(record)


@pytest.mark.parametrize("record", papers.kept().values(), ids=lambda record: record["id"])
def test_a_number_with_a_standard_error_of_zero_is_exact_and_the_record_says_why(record):
    exact = [name for name, (_, error, *_) in record["numbers"].items() if error == 0]
    assert all(name in told(record) for name in exact), exact
    assert not exact or "exact" in told(record)


@pytest.mark.parametrize("record", papers.kept().values(), ids=lambda record: record["id"])
def test_what_is_not_folded_in_is_short_and_earlier_runs_have_a_page_of_their_own(record):
    assert len(record["answer"].split()) <= 100
    assert len(record.get("afterwards", "").split()) <= 100
    assert not re.search("[Tt]his run (replaces|repeats|has the seed)|[Uu]ntil (20|Nov)", told(record))


def test_earlier_runs_name_the_figures_that_have_not_been_run_again():
    said = (
        (papers.FOLDER / "earlier.rst")
        .read_text(encoding="utf-8")
        .split("not been run since")[1]
        .split("Where single")[0]
    )
    old = {id for id, record in papers.kept().items() if record["date"] < "2026-11-25"}
    assert set(re.findall(":ref:`([^`]+)`", said)) == old


def test_every_record_has_its_pictures():
    for id, record in papers.kept().items():
        pictures = sorted(papers.FOLDER.glob(f"{id}-[0-9].png"))
        assert len(pictures) == len(record["captions"])
        assert all(path.stat().st_size <= papers.LARGEST for path in pictures)


def test_errata_stand_beside_the_figures_that_they_name():
    known, pages = all_experiments(), papers.written({})
    for paper, told in papers.errata().items():
        for each in told["errata"] if paper != "about" else ():
            page, read = pages[papers.FOLDER / f"{paper}.rst"], " ".join(each["read"].split())
            assert page.count(read) == len(each.get("figures", ()))
            for figure in each.get("figures", ()):
                _, section = page.split(f".. _{figure}:")
                assert paper in known[figure].run.__module__.replace("_", "-")
                assert read in section.split(".. _")[0]


def test_a_page_says_how_each_claim_is_judged_with_its_number():
    id, records = "kernel-learning-figure-2", papers.kept()
    page, says = papers.FOLDER / "kernel-learning.rst", "with the median distance the test always fails to reject"
    numbers, name = records[id]["numbers"], "type II error, median kernel, ratio"
    numbers |= {f"{name} {ratio}": [0.95, 0.01] for ratio in (2, 3, 4, 6, 10, 15)}
    for found, word in (([0.95, 0.01], "yes"), ([0.84, 0.01], "not settled"), ([0.6, 0.01], "no")):
        numbers[f"{name} 10"] = found
        row = papers.written(records)[page].split(says)[1].split("   * - ")[0]
        assert str(Number(*found)) + f" ({name} 10)" in row
        assert row.split("     - ")[3].splitlines()[0].split(":")[0] == word


def test_code_in_the_text_of_a_record_is_code_on_its_page():
    records = papers.kept()
    records["messages-methods"]["notes"] = ["`Learned.published` is a_ * name."]
    page = papers.written(records)[papers.FOLDER / "messages.rst"]
    assert "``Learned.published`` is a\\_ \\* name." in page


def test_claims_of_ours_stand_apart_from_those_of_the_paper():
    page = papers.written(papers.kept())[papers.FOLDER / "kernel-learning.rst"]
    section = page.split(".. _kernel-learning-figure-3:")[1].split("\n.. _")[0]
    ours = section.index("our claim, which does not enter the verdict")
    assert section.index("the paper's claim") < section.index("R-hat of the chains is about 1") < ours
    assert ours < section.index("R-hat of the chains with our model")


def test_large_pictures_become_small_ones_and_small_ones_stay():
    noise = np.random.default_rng(0).integers(0, 255, size=(800, 900, 3), dtype=np.uint8)
    written = io.BytesIO()
    Image.fromarray(noise).save(written, format="PNG")
    found = papers.small(written.getvalue())
    assert len(found) <= papers.LARGEST
    assert papers.small(found) == found


def test_a_smaller_scale_does_not_replace_a_larger_one(tmp_path, monkeypatch):
    for name in ("FOLDER", "RECORDS"):
        monkeypatch.setattr(papers, name, tmp_path / name)
        (tmp_path / name).mkdir()
    id = "loopy-figure-2"
    run_one(id, Setting("smoke", 3), tmp_path)
    papers.take(tmp_path, "abc")
    kept = papers.kept()[id]
    assert (kept["commit"], kept["seed"], kept["scale"]) == ("abc", 3, "smoke")
    assert (papers.FOLDER / f"{id}-1.png").exists()
    large = papers.RECORDS / f"{id}.json"
    text = large.read_text(encoding="utf-8")
    large.write_text(text.replace("{", '{"afterwards": "Measured since.",', 1), encoding="utf-8")
    papers.take(tmp_path, "abd")
    assert (papers.kept()[id]["commit"], papers.kept()[id]["afterwards"]) == ("abd", "Measured since.")
    large.write_text(large.read_text(encoding="utf-8").replace('"smoke"', '"paper"'), encoding="utf-8")
    papers.take(tmp_path, "def")
    assert papers.kept()[id]["scale"] == "paper"
    text = papers.written(papers.kept())[papers.FOLDER / "loopy.rst"]
    assert f"meanmap reproduce {id} --scale paper --seed 3" in text
    assert "Not run yet" in text
