"""The report: its tables, its safety as a file, and how it looks to a browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from report_example import NO_BLAKE3, WRONG_BCRYPT, digests, example, judgement, large, passwords
from served_example import arrivals, asked_only, handshakes
from tollbar import report
from tollbar.files import write_atomically
from tollbar.present import words
from tollbar.report import bundle
from tollbar.report.page import marked, script_json

# The file.


@dataclass(frozen=True, slots=True)
class Pages:
    """Reports written once for all tests."""

    small: Path
    large: Path
    served: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    folder = tmp_path_factory.mktemp("report")
    found = Pages(folder / "small.html", folder / "large.html", folder / "served.html")
    report.write(example(), found.small)
    report.write(large(), found.large)
    report.write(judgement([handshakes(), arrivals(), asked_only()]), found.served)
    return found


def test_every_row_and_every_reason_is_on_the_page(pages: Pages) -> None:
    """A failure keeps its row, a left-out combination its reason."""
    text = html.unescape(pages.small.read_text("utf-8"))
    body = text.partition("<main>")[2]
    tables = [part.partition("</table>")[0] for part in body.split("<caption>Every cell of the study")[1:]]
    assert [28, 5] == [table.count("<tr>") - 1 for table in tables]
    assert 2 == tables[0].count(NO_BLAKE3)
    assert 1 == tables[1].count(WRONG_BCRYPT)
    assert "2 combinations left out" in body
    assert "Copying the message is measured in the rehearsal." in body


def test_both_costs_stand_in_the_table_with_the_confidence_that_was_used(pages: Pages) -> None:
    """Nothing says a confidence that nothing has; a row whose two ratios are apart says so; capacity is named."""
    text = html.unescape(pages.small.read_text("utf-8")).partition("<main>")[2].partition('<script type="appl')[0]
    table = text.partition("<caption>Every cell of the study digests, with its 99.5 % interval")[2].partition(
        "</table"
    )[0]
    heads = re.findall(r"<button[^>]*>([^<]*)</button>", table)
    assert {"CPU time per operation, undisturbed", "typical", "against SHA-256", "typical ratio"} < set(heads)
    assert "95 %" not in text
    assert 1 == table.count("suffers more from neighbours than its baseline")
    assert "Capacity is one over CPU time per operation" in text
    assert "Intervals are at 99.5 % confidence." in text
    # Pairs are told from the least to the most.
    assert "×\u00a00.37 to ×\u00a00.93" in text


def test_every_source_is_named_with_its_date(pages: Pages) -> None:
    """Who says so, where, in what words, when; and whether the clause was read again."""
    text = html.unescape(pages.small.read_text("utf-8"))
    assert "IETF, RFC 6151 section 2: “not where collision resistance is required” (seen 2026-11-21)" in text
    assert "“not for generating signatures” (seen 2026-11-21; clause not re-read)" in text


def test_memory_stands_beside_the_password_hashes_only(pages: Pages) -> None:
    """Kilobytes of buffers are no property of a hash function."""
    text = pages.small.read_text("utf-8")
    assert 1 == text.count("Memory beside CPU")
    assert text.index("Memory beside CPU") > text.index('id="study-passwords"')


def test_the_commands_to_do_it_again(pages: Pages) -> None:
    """The run's own command with its seed, and what to do with what is there."""
    text = pages.small.read_text("utf-8")
    for command in (
        "tollbar run digests passwords --seed 20261121",
        "tollbar judge runs/2026-11-21-quick",
        "tollbar compare runs/2026-11-21-quick OTHER-RUN",
        "tollbar export runs/2026-11-21-quick --format csv",
    ):
        assert f"<code>{command}</code>" in text


def test_nothing_from_outside_becomes_markup(tmp_path: Path) -> None:
    """Names, questions, reasons and notes are text, in the page and in the charts' data alike."""
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    study = digests()
    rows = tuple(replace(r, title=evil, reason=evil if r.reason else None) for r in study.study.rows)
    family = study.study.study.family
    choices = {n: replace(c, title=evil + n, note=evil) for n, c in family.choices.items()}
    about = replace(
        study.study.study,
        question=evil,
        text=evil,
        notes=(evil,),
        family=replace(family, choices=choices, strength_means=evil),
    )
    trust = replace(study.trust, lattices={evil: (evil,)}, failed_trials=1, failures=(evil,))
    study = replace(study, study=replace(study.study, study=about, rows=rows), trust=trust)
    report.write(judgement([study]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<img" not in text.replace(bundle.script(), "")
    assert 3 == text.count("</script>")


def test_the_page_loads_nothing(pages: Pages) -> None:
    """No address in anything that a browser would fetch, and a policy that would refuse it."""
    text = pages.small.read_text("utf-8").replace(bundle.script(), "")
    assert [] == re.findall(r"https?://", text)
    assert {"data:,"} == {a for a in re.findall(r'(?:src|href)="([^"]*)"', text) if not a.startswith("#")}
    assert "url(" not in text
    assert "unsafe-eval" not in text
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text


@pytest.mark.parametrize("page", ["small", "served"])
def test_headings_are_in_order_and_tables_are_named(pages: Pages, page: str) -> None:
    """No level is skipped; each table has a caption and scoped headers."""
    text = (
        str(getattr(pages, page).read_text("utf-8"))
        .partition("<body>")[2]
        .partition('<script type="application/json"')[0]
    )
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert 1 == levels[0]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert text.count("<table") == text.count("<caption>")
    assert [] == re.findall(r"<th(?![^>]*scope=)(?!ead)[^>]*>", text)


@pytest.mark.parametrize("page", ["small", "served"])
def test_the_charts_are_valid_vega_lite(pages: Pages, page: str) -> None:
    """The schema that is not asked while a page is made is asked here."""
    import altair as alt

    text = str(getattr(pages, page).read_text("utf-8"))
    written = text.partition('<script type="application/json" id="charts">')[2].partition("</script>")[0]
    charts = json.loads(written)
    assert charts["charts"]
    for spec in charts["charts"].values():
        alt.LayerChart.from_dict(spec).to_dict()
    alt.Config.from_dict(charts["config"])


def test_templates_are_loaded_only_for_a_report() -> None:
    """What the terminal and the document need starts without them."""
    program = "import sys, tollbar.console, tollbar.report; print(*{'altair', 'jinja2'} & sys.modules.keys())"
    assert "\n" == subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure leaves the old file and no scraps; what is written is an ordinary readable file."""
    path = tmp_path / "report.html"
    write_atomically(path, "old")
    assert 0o444 == stat.S_IMODE(path.stat().st_mode) & 0o444

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, "new")
    assert [path] == list(tmp_path.iterdir())
    assert "old" == path.read_text("utf-8")


def test_the_runtime_is_kept_and_a_cache_that_cannot_be_written_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made once in the user's cache; where that is a file, made and used all the same."""
    made: list[str] = []

    def make() -> str:
        made.append("once")
        return "vegaEmbed"

    monkeypatch.setattr(bundle, "_make", make)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ["vegaEmbed", "vegaEmbed"] == [bundle.script(), bundle.script()]
    assert ["once"] == made
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "vegaEmbed" == bundle.script()
    assert ["once", "once"] == made


def test_a_page_of_a_thousand_rows_is_quick_and_not_heavy(tmp_path: Path) -> None:
    """Within five seconds of CPU time once the runtime is kept, and a few megabytes."""
    bundle.script()
    judged = large()
    begun = time.process_time()
    report.write(judged, tmp_path / "large.html")
    assert time.process_time() - begun < 5
    assert (tmp_path / "large.html").stat().st_size < 5_000_000


def test_backticks_become_code_and_nothing_else_becomes_markup() -> None:
    """Catalogue and studies write code between backticks, and markup there is text as anywhere."""
    assert "a &lt;b&gt; <code>c &lt;i&gt;</code>" == marked("a <b> `c <i>`")


def test_script_json_cannot_end_its_element() -> None:
    """What a string holds comes back the same, and never as a tag."""
    written = script_json({"a": "</script><!--&\u2028"})
    assert "<" not in written
    assert {"a": "</script><!--&\u2028"} == json.loads(written)


# The page in a browser.


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    program, driver = shutil.which("chromium") or shutil.which("chrome"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.fail("Chromium or its driver is missing: install the packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        # The discard port: whatever asks the network for something is refused, and seen in the log.
        "--proxy-server=127.0.0.1:9",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


def _open(browser: webdriver.Chrome, path: Path, *, width: int = 1300, dark: bool = False) -> None:
    for log in ("browser", "performance"):
        browser.get_log(log)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(path.as_uri())
    _wait(browser)


def _wait(browser: webdriver.Chrome) -> None:
    deadline = time.monotonic() + 60
    ready = None
    while not ready and time.monotonic() < deadline:
        ready = browser.execute_script("return document.documentElement.dataset.ready")
        time.sleep(0.05)
    assert "true" == ready


def _requests(browser: webdriver.Chrome) -> list[str]:
    sent: list[str] = []
    for entry in browser.get_log("performance"):
        message: dict[str, Any] = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            sent.append(message["params"]["request"]["url"])
    # The browser's own new tab is still loading when the first page is opened.
    return [url for url in sent if not url.startswith(("data:", "blob:", "chrome:"))]


# Charts that have neither lines, points nor text in them are empty frames.
_EMPTY = """
return [...document.querySelectorAll('.plot')]
  .filter(plot => !plot.closest('details:not([open])'))
  .filter(plot => !plot.querySelector('svg .role-mark path, svg .role-mark line, svg .role-mark rect'))
  .map(plot => plot.id)
"""


# A drawing without a description says nothing to a reader who cannot see it.
_UNNAMED = """
return [...document.querySelectorAll('.plot')]
  .filter(plot => plot.querySelector('svg'))
  .filter(plot => !plot.matches('[aria-label]') && !plot.querySelector('[role=graphics-document][aria-label]'))
  .map(plot => plot.outerHTML.slice(0, 300))
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 400], ids=["wide", "narrow"])
@pytest.mark.parametrize("page", ["small", "large", "served"])
def test_the_page_draws_without_a_word_or_a_request(
    browser: webdriver.Chrome, pages: Pages, page: str, width: int, dark: bool
) -> None:
    """Every chart drawn, nothing in the console, nothing asked of a network, no sideways scrolling."""
    path: Path = getattr(pages, page)
    _open(browser, path, width=width, dark=dark)
    assert [] == browser.get_log("browser")
    assert [path.as_uri()] == _requests(browser)
    assert [] == browser.execute_script(_EMPTY)
    assert [] == browser.execute_script(_UNNAMED)
    wider = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0


def test_charts_follow_the_colours_of_the_page(browser: webdriver.Chrome, pages: Pages) -> None:
    """The same drawing in light and dark: its text has the page's own ink."""
    for dark in (False, True):
        _open(browser, pages.small, dark=dark)
        ink, label = browser.execute_script(
            "const label = document.querySelector('.plot svg .role-axis-label text');"
            "return [getComputedStyle(document.body).color, getComputedStyle(label).fill]"
        )
        assert ink == label


def test_folded_panels_are_drawn_when_they_are_unfolded(browser: webdriver.Chrome, pages: Pages) -> None:
    """A thousand cells cost a quick page only because most panels wait."""
    _open(browser, pages.large)
    details = browser.find_element(By.XPATH, "//details[summary[contains(., 'more panels')]]")
    assert 0 == len(details.find_elements(By.CSS_SELECTOR, "svg"))
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    plots = len(details.find_elements(By.CSS_SELECTOR, ".plot"))
    deadline = time.monotonic() + 30
    while len(details.find_elements(By.CSS_SELECTOR, "svg.marks")) < plots and time.monotonic() < deadline:
        time.sleep(0.1)
    assert plots == len(details.find_elements(By.CSS_SELECTOR, "svg.marks"))
    assert [] == browser.get_log("browser")


def test_a_table_sorts_by_the_keyboard(browser: webdriver.Chrome, pages: Pages) -> None:
    """Numbers by what they are, what is missing last, and the state said to assistive technology."""
    _open(browser, pages.small)
    table = browser.find_element(By.XPATH, "//table[caption[contains(., 'study digests')]]")
    button = table.find_element(By.XPATH, ".//th/button[contains(., 'CPU time per operation')]")
    column = browser.execute_script("return arguments[0].closest('th').cellIndex", button)
    seen = []
    for _ in range(2):
        button.send_keys(Keys.ENTER)
        values = browser.execute_script(
            "return [...arguments[0].tBodies[0].rows].map(row => row.cells[arguments[1]].dataset.sort ?? null)",
            table,
            column,
        )
        numbers = [float(v) for v in values if v is not None]
        assert 26 == len(numbers)
        assert [None, None] == values[26:]
        seen.append((button.find_element(By.XPATH, "..").get_attribute("aria-sort"), numbers))
    (up, ascending), (down, descending) = seen
    assert ("ascending", "descending") == (up, down)
    assert sorted(ascending) == ascending
    assert sorted(ascending, reverse=True) == descending


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ten questions."""
    path = tmp_path_factory.mktemp("ten") / "report.html"
    studies = [digests(), passwords(), handshakes(), arrivals(), asked_only()]
    named = [
        replace(s, study=replace(s.study, study=replace(s.about, name=f"{s.about.name}-{n}")))
        for n in (1, 2)
        for s in studies
    ]
    report.write(judgement(named), path)
    return path


@pytest.mark.parametrize("width", [1280, 400])
def test_the_answers_are_in_the_first_thousand_pixels(
    browser: webdriver.Chrome, pages: Pages, ten: Path, width: int
) -> None:
    """Of ten questions each line, with a link to its section; of one question its answer."""
    _open(browser, ten, width=width)
    bottoms = browser.execute_script(
        "return [...document.querySelectorAll('.answers li')].map(line => line.getBoundingClientRect().bottom)"
    )
    assert 10 == len(bottoms)
    assert max(bottoms) <= 1000
    missing = browser.execute_script(
        "return [...document.querySelectorAll('.answers a')].filter(a => !document.querySelector(a.hash)).length"
    )
    assert 0 == missing
    _open(browser, pages.large, width=width)
    assert [] == browser.find_elements(By.CSS_SELECTOR, ".answers")
    assert browser.execute_script("return document.querySelector('.answer').getBoundingClientRect().bottom") <= 1000


def test_the_top_has_answers_and_neither_seed_nor_contents(pages: Pages) -> None:
    """The seed is for who does it again."""
    top, _, rest = pages.small.read_text("utf-8").partition("<body>")[2].partition("</header>")
    assert "SHA-256 (128 bits): 174 ns per digest" in top
    assert "20261121" not in top
    assert "How and on what" not in top
    assert "The seed, from which the order of all work was drawn, was 20261121." in rest.partition('id="again"')[2]


_IN_SIGHT = """
const scroller = arguments[0].querySelector('.scroller');
[scroller.scrollLeft, scroller.scrollTop] = [1e6, 1e6];
const box = scroller.getBoundingClientRect();
const [head, last] = [scroller.querySelector('thead tr'), scroller.querySelector('tbody tr:last-child')];
const kept = [...head.cells].slice(0, 3).concat([...last.cells].slice(0, 3)).map(cell => cell.getBoundingClientRect());
const right = head.cells[2].getBoundingClientRect().right;
return {
  scrolled: [scroller.scrollLeft > 50, scroller.scrollTop > 50],
  titles: [...head.cells].slice(0, 3).map(cell => cell.textContent.trim()),
  outside: kept.filter(k => k.left < box.left - 1 || k.right > box.right + 1).length,
  overlapping: [0, 1, 3, 4].filter(n => kept[n].right > kept[n + 1].left + 1).length,
  head: Math.abs(head.cells[0].getBoundingClientRect().top - box.top),
  room: box.right - right,
};
"""


@pytest.mark.parametrize("width", [1280, 400])
def test_choice_ratio_and_standing_stay_in_sight(browser: webdriver.Chrome, pages: Pages, width: int) -> None:
    """However far the full table is scrolled, and under its head; on a narrow screen too there is room for more."""
    _open(browser, pages.served, width=width)
    every = browser.find_element(By.CSS_SELECTOR, ".every")
    found = browser.execute_script(_IN_SIGHT, every)
    assert [True, True] == found["scrolled"]
    assert ["choice", "against no TLS", "standing"] == found["titles"]
    assert 0 == found["outside"]
    assert 0 == found["overlapping"]
    assert found["head"] <= 1
    assert found["room"] >= width / 5


_ROWS = """
return [...arguments[0].querySelectorAll('tbody tr')].map(row => ({
  name: row.cells[0].firstChild.textContent.trim(), ...row.cells[0].dataset, hidden: row.hidden,
  ratio: row.cells[1].dataset.sort, says: row.cells[1].firstChild?.textContent, verdict: row.cells[3].textContent,
}))
"""


_CELLS = "return [...arguments[0].querySelectorAll('th, td')].map(cell => [cell.innerHTML, cell.dataset.sort ?? null])"


def test_another_baseline_is_chosen_in_the_page(browser: webdriver.Chrome, pages: Pages) -> None:
    """Each ratio is one cost over the other's in the same place; nothing of it is called judged; and back again."""
    _open(browser, pages.small)
    every = browser.find_element(By.CSS_SELECTOR, "#study-digests .every")
    select, status = Select(every.find_element(By.CSS_SELECTOR, "select.baseline")), "[role=status]"
    before = browser.execute_script(_CELLS, every)
    assert "SHA-256 (the study's baseline)" == select.first_selected_option.text
    assert "" == every.find_element(By.CSS_SELECTOR, status).text
    select.select_by_visible_text("BLAKE3")
    rows = browser.execute_script(_ROWS, every)
    bases = {row["place"]: float(row["cost"]) for row in rows if row["name"] == "BLAKE3" and "cost" in row}
    assert 2 == len(bases)
    for row in rows:
        if "cost" in row and row["place"] in bases:
            assert float(row["ratio"]) == pytest.approx(float(row["cost"]) / bases[row["place"]], rel=1e-6)
            assert row["says"] == words.times(float(row["ratio"]))
            assert row["verdict"] == ("compared with" if row["name"] == "BLAKE3" else "not judged")
        else:
            # OpenSSL has no BLAKE3.
            assert ("–", None, "not judged") == (row["says"], row["ratio"], row["verdict"])
    said = every.find_element(By.CSS_SELECTOR, status).text
    assert "verdicts were judged against the study's own baseline only" in said
    assert "against BLAKE3" in every.find_element(By.TAG_NAME, "thead").text
    select.select_by_index(0)
    assert before == browser.execute_script(_CELLS, every)
    assert "" == every.find_element(By.CSS_SELECTOR, status).text
    assert [] == browser.get_log("browser")


def test_the_table_is_filtered_by_provider(browser: webdriver.Chrome, pages: Pages) -> None:
    """Only the rows of one are left, with the baseline's; how many is said."""
    _open(browser, pages.small)
    every = browser.find_element(By.CSS_SELECTOR, "#study-digests .every")
    Select(every.find_element(By.CSS_SELECTOR, "select.provider")).select_by_visible_text("rustcrypto 0.10.9")
    shown = [row for row in browser.execute_script(_ROWS, every) if not row["hidden"]]
    assert 14 == len(shown)
    assert {"1"} == {row["provider"] for row in shown}
    assert "14 of 28 cells are shown." == every.find_element(By.CSS_SELECTOR, "[role=status]").text
    # A study of one provider has nothing to filter.
    assert [] == browser.find_elements(By.CSS_SELECTOR, "#study-passwords select.provider")


def test_a_chart_that_cannot_be_drawn_is_said_so(browser: webdriver.Chrome, pages: Pages, tmp_path: Path) -> None:
    """The ready flag carries the failure, and the page says it in the chart's place."""
    text = pages.small.read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace('"layer":[', '"layer":["no layer",', 1), "utf-8")
    browser.get(broken.as_uri())
    deadline = time.monotonic() + 30
    ready = None
    while not ready and time.monotonic() < deadline:
        ready = browser.execute_script("return document.documentElement.dataset.ready")
        time.sleep(0.05)
    assert str(ready).startswith("failed: chart-1")
    assert "could not be drawn" in browser.find_element(By.ID, "chart-1").text


def test_a_page_without_charts_is_ready(browser: webdriver.Chrome, tmp_path: Path) -> None:
    """A run of which nothing is left has a page all the same."""
    study = digests()
    bare = replace(study, study=replace(study.study, rows=()), measurements=(), tolls=(), contrasts=(), claims=())
    report.write(judgement([bare]), tmp_path / "bare.html")
    _open(browser, tmp_path / "bare.html")
    assert [] == browser.get_log("browser")
