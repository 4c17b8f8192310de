"""Pages in a browser: every interaction, and that its numbers are those of Python. Needs chromium and selenium."""

import json
import re
import shutil

import numpy as np
import pytest

from meanmap.plots.page import Section, render
from tests.api.test_hostile_pages import HOSTILE, KINDS
from tests.api.test_result_pages import RESULTS

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui", reason="selenium is not installed").WebDriverWait
BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not installed")
FLAGS = ["headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-sync"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in [*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}", "window-size=1280,900"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()


@pytest.fixture
def opened(browser, tmp_path):
    def of(result):
        path = result.page(tmp_path / "a.html")
        browser.get(path.as_uri())
        assert not browser.get_log("browser")
        return json.loads(re.findall(r'id="facts">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[0])["charts"]

    return of


def css(browser, selector):
    return browser.find_elements("css selector", selector)


def chosen(browser, place, value):
    browser.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))",
        place,
        value,
    )


def shares(text):
    """What is read at a bar, by series."""
    return {name: float(value) for name, value in re.findall(r"(\w+): % of rows ([\d.e-]+)", text)}


@pytest.mark.parametrize("width", [420, 1280])
def test_a_table_of_sentences_fits_and_a_wider_one_scrolls_in_its_frame(browser, tmp_path, width):
    """What was measured begins with a digit and goes on as a sentence: such cells once stood on one line of 1500."""
    said = "0.4680 ± 0.0022 (growth a unit of distance, second half over first); 0.3220 ± 0.0034 (the same)"
    claims = (("the paper's claim", "band", "measured", "holds"), ("it grows exponentially", "0.5 to 2", said, "no"))
    wide = (("task", *(f"a_long_column_{k}" for k in range(9))), ("denoising", *["0.123 ± 0.012"] * 9))
    path = tmp_path / "a.html"
    path.write_text(render("A page", "About.", [Section("First", "It is so.", tables=(claims, wide))]), "utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.get(path.as_uri())
    over = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
    frames = "return [...document.querySelectorAll('.scroll')].map(each => each.scrollWidth - each.clientWidth)"
    assert browser.execute_script(over) == 0
    assert browser.execute_script(frames)[0] == 0
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_column_is_chosen_and_its_bars_are_read_by_arrow_keys(browser, opened):
    charts = opened(RESULTS["two samples"]())
    (place,) = css(browser, "figure:first-of-type select")
    handle = css(browser, "[role=slider].plot")[0]
    for k in range(3):
        chosen(browser, place, k)
        marks = charts[0]["panels"][k]["marks"]
        handle.send_keys("\ue011")  # Home
        for i in range(3):
            said = handle.get_attribute("aria-valuetext")
            assert said == css(browser, ".said")[0].get_property("textContent")
            for mark in marks:
                assert shares(said)[mark["series"]] == pytest.approx(mark["y"][i], rel=1e-3, abs=1e-3)
            handle.send_keys("\ue014")  # arrow to the right


def test_a_value_is_read_under_the_mouse(browser, opened):
    (chart, *_) = opened(RESULTS["monitor"]())
    handle = css(browser, ".plot")[0]
    webdriver.ActionChains(browser).move_to_element_with_offset(handle, 250, 0).perform()
    said = css(browser, ".said")[0].text
    evidence = [float(each) for each in re.findall(r"evidence ([\d.]+)", said)]
    assert evidence
    assert evidence[0] == pytest.approx(chart["panels"][0]["marks"][0]["y"][-1], rel=1e-2)


def test_the_evidence_is_moved(browser, opened):
    *_, chart = opened(RESULTS["network"]())
    figure = css(browser, "figure.chart")[-1]
    slider = figure.find_element("css selector", "input[type=range]")
    slider.send_keys("\ue011")
    notes = []
    for k in range(len(chart["controls"][2]["choices"])):
        notes.append(figure.find_element("css selector", ".note").text)
        assert notes[-1] == chart["panels"][len(chart["controls"][2]["choices"]) + k]["note"]
        assert slider.get_attribute("aria-valuetext") == chart["controls"][2]["choices"][k]
        slider.send_keys("\ue014")
    assert len(set(notes)) == len(notes)


def test_tables_are_sorted_by_click_and_by_keyboard(browser, opened):
    opened(RESULTS["model"]())
    button = css(browser, "table.sortable th button")[1]
    head = css(browser, "table.sortable th")[1]

    def column():
        return [float(each.text) for each in css(browser, "table.sortable tbody tr td:nth-child(2)")]

    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column() == sorted(column())
    button.send_keys("\ue007")  # Enter
    assert head.get_attribute("aria-sort") == "descending"
    assert column() == sorted(column(), reverse=True)


def test_values_are_listed_and_arrows_are_drawn(browser, opened):
    (chart,) = opened(RESULTS["causes"]())
    css(browser, "summary")[0].click()  # the table is written by an event, after the click
    cells = WebDriverWait(browser, 30).until(lambda _: css(browser, ".values tbody td:first-child"))
    listed = [each.text for each in cells]
    nodes, links = chart["panels"][0]["marks"][-1], chart["panels"][0]["marks"][:-1]
    assert sorted(listed) == sorted([*nodes["text"], *(each.split("\n")[0] for mark in links for each in mark["text"])])


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("width", [1280, 420])
def test_pages_fit_and_no_script_fails(browser, opened, kind, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        charts = opened(RESULTS[kind]())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert len(css(browser, ".plot > svg")) == len(charts)
        assert np.all([each.size["width"] <= width for each in css(browser, ".plot > svg")])
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_execute_nothing(browser, opened, kind):
    opened(KINDS[kind](HOSTILE))  # an alert would fail the next command
    for place in css(browser, "figure.chart select, figure.chart input"):
        last = len(css(place, "option")) - 1 if place.tag_name == "select" else place.get_attribute("max")
        chosen(browser, place, str(last))
    for place in css(browser, "details summary"):
        place.click()
    assert css(browser, "img, iframe, object, [onerror], [onload], [onclick]") == []
    assert len(css(browser, "script")) == 4
    assert not browser.get_log("browser")
