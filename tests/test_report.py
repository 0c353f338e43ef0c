"""The report: its sentences, its tables, its safety as a file, and how it looks to a browser."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from report_example import NO_BLAKE3, WRONG_BCRYPT, digests, example, judgement, large, passwords
from served_example import arrivals, asked_only, handshakes
from tollbar import report
from tollbar.errors import TollbarError
from tollbar.files import write_atomically
from tollbar.judge import StudyJudgement, Toll, Verdict
from tollbar.measure import Outcome
from tollbar.report import bundle, markup, prose, prose_trust, words
from tollbar.report.scales import log_ticks
from tollbar.report.strength import frontier
from tollbar.stats import Interval

X = "×\u00a0"


# Sentences.


def test_the_answer_says_what_costs_and_saves_everywhere_and_then_the_rest() -> None:
    """Broken choices are called so, a choice that one setting divides is split by it, gaps are counted."""
    expected = (
        f"Against SHA-256, in every cell measured, SHA-512 ({X}1.41 to {X}2.41),"
        f" MD5 (broken, {X}1.09 to {X}2.62) and SHA3-256 ({X}2.31 to {X}4.36) cost more,"
        f" and SHA-1 (disallowed, {X}0.88 to {X}0.95) costs less.",
        f"BLAKE3 costs more at 64 B and costs less at 16 KiB; BLAKE2b-512 ({X}1.01 to {X}1.83) costs more"
        " in 3 and is unclear in 1 of 4 cells; 2 cells could not be measured.",
    )
    assert expected == prose.answer(digests())


def test_names_with_commas_stand_in_quotation_marks() -> None:
    """A list of names that hold commas themselves stays readable, and one cell shows its interval."""
    study = passwords()
    expected = (
        f"Against “PBKDF2-SHA256, 600,000”, “scrypt, N = 2^17, r = 8” ({X}4.09 [4.07, 4.12]) costs more, and"
        f" “One SHA-256, salted” (disallowed, {X}1/239,000 [1/241,000, 1/238,000]) costs less.",
        "“Argon2id, 19 MiB, 2 passes” is unclear; “bcrypt, cost 10” (deprecated) was not measured.",
    )
    assert expected == prose.answer(study)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (
            {"md5": Verdict.FREE, "sha-1": Verdict.FREE},
            (
                "Against SHA-256, nothing is found to cost more or to cost less.",
                "MD5 (broken) and SHA-1 (disallowed) are free (within 3 %).",
            ),
        ),
        (
            {"md5": Verdict.COSTS},
            (
                f"Against SHA-256, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more.",
                "The 1 cell compared is decided.",
            ),
        ),
        (
            {"md5": Verdict.COSTS, "sha3-256": Verdict.UNCLEAR},
            (f"Against SHA-256, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more.", "SHA3-256 is unclear."),
        ),
    ],
)
def test_the_answer_follows_the_verdicts(verdicts: Mapping[str, Verdict], expected: tuple[str, str]) -> None:
    """Each verdict has its own words, one choice or several."""
    assert expected == prose.answer(_one_size(verdicts))


def test_many_choices_are_told_by_the_least_and_the_greatest() -> None:
    """A sentence names at most a handful of choices."""
    expected = (
        "Against Choice 03, in every cell measured, 16 cost more, from Choice 04"
        f" (broken, {X}1.09 to {X}1.10) to Choice 19 (broken, {X}2.48 to {X}2.52),"
        f" and Choice 00 ({X}0.71 to {X}0.72), Choice 01 ({X}0.81 to {X}0.82)"
        f" and Choice 02 (deprecated, {X}0.90 to {X}0.91) cost less.",
        "All 950 cells compared are decided.",
    )
    assert expected == prose.answer(large().studies[0])


def test_each_operation_has_its_own_answer() -> None:
    """What holds for making a signature says nothing of checking it."""
    study = _one_size({"md5": Verdict.COSTS, "sha-1": Verdict.SAVES})
    tolls = [
        replace(t, row=replace(t.row, coordinates={**t.row.coordinates, "op": operation}))
        for t, operation in zip(study.tolls, ("sign", "verify"), strict=True)
    ]
    expected = (
        f"Against SHA-256, for `sign`, MD5 (broken, {X}2.00 [1.90, 2.10]) costs more;"
        f" for `verify`, SHA-1 (disallowed, {X}0.50 [0.45, 0.55]) costs less.",
        "All 2 cells compared are decided.",
    )
    assert expected == prose.answer(replace(study, tolls=tuple(tolls)))


def test_nothing_measured_is_said_with_its_reason() -> None:
    """No number, no ratio: only why."""
    study = _one_size({"md5": Verdict.NOT_MEASURED})
    rows = tuple(replace(r, outcome=Outcome.FAILED, reason="no library.", trials=()) for r in study.study.rows)
    study = replace(study, study=replace(study.study, rows=rows))
    expected = ("Nothing was measured against SHA-256.", "The first reason given: no library.")
    assert expected == prose.answer(study)


def test_claims_are_counted_by_verdict() -> None:
    """One sentence for the published comparisons."""
    expected = "6 comparisons with what was published: 1 still true, 1 smaller, 3 inverted and 1 cannot be told."
    assert expected == prose.claims(digests())


def test_trust_is_told_in_numbers() -> None:
    """Checks, noise, drift and steal, each a sentence."""
    study = digests()
    expected = [
        "26 of 28 cells gave the right answer before they were timed; 2 unsupported.",
        f"Each baseline is measured twice in every block. They came out apart by up to {X}1.006 here:"
        " no verdict is given below that.",
        "From the first to the last third of the blocks the median cell's cost changed by −0.4 %;"
        " ratios are formed within blocks, so this cancels.",
    ]
    assert expected == [prose_trust.checked(study), prose_trust.noise(study), prose_trust.drift(study)]
    assert prose_trust.steal(study).startswith("The hypervisor gave 1.")
    loaded = "The machine's load, with the lab's own one or two processes in it, was 1.2 (from 0.5 to 1.2)."
    assert loaded == prose_trust.load(study)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(2.1, f"{X}2.10"), (0.0000042, f"{X}1/238,000"), (12345.0, f"{X}12,300"), (0.55, f"{X}0.55")],
)
def test_ratios_have_three_figures(ratio: float, expected: str) -> None:
    """Very small ratios are one over something, very large ones are rounded."""
    assert expected == words.times(ratio)


def test_too_few_blocks_give_no_interval() -> None:
    """An interval from nothing to infinity is said in words."""
    assert words.TOO_FEW == words.bracket(Interval(1.1, 0.0, inf, 0.95, 3))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.4, 6.0, (0.5, 1.0, 2.0, 5.0)),
        (0.95, 1.08, (0.96, 0.98, 1.0, 1.02, 1.04, 1.06, 1.08)),
        (0.5, 300.0, (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)),
        (0.00001, 4.0, (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0)),
    ],
)
def test_log_axes_are_labelled_at_round_numbers(low: float, high: float, expected: tuple[float, ...]) -> None:
    """Between four and eight labels, and always at one where one is inside."""
    assert expected == log_ticks(low, high)


def test_the_frontier_is_the_cheapest_for_at_least_so_many_bits() -> None:
    """A stronger and cheaper choice makes a weaker one pointless."""
    assert [(128, 10.0), (256, 20.0)] == frontier([(112, 15.0), (128, 10.0), (192, 30.0), (256, 20.0), (128, 12.0)])


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
    study = replace(study, study=replace(study.study, study=about, rows=rows), warnings=(evil,))
    report.write(judgement([study]), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "<script>alert" not in text
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


def test_the_toll_chart_as_a_picture(tmp_path: Path) -> None:
    """SVG with every row's name, in colours of its own; an unknown study is an error with a hint."""
    report.chart_svg(example(), "digests", tmp_path / "tolls.svg")
    text = (tmp_path / "tolls.svg").read_text("utf-8")
    assert "SHA3-256 · rustcrypto 0.10.9" in text
    assert "recommended" in text
    assert "var(--" not in text
    with pytest.raises(TollbarError, match="digest"):
        report.chart_svg(example(), "digest", tmp_path / "tolls.svg")


def test_script_json_cannot_end_its_element() -> None:
    """What a string holds comes back the same, and never as a tag."""
    written = markup.script_json({"a": "</script><!--&\u2028"})
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


# A drawing without a description is nothing to whoever cannot see it.
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
    seen = []
    for _ in range(2):
        button.send_keys(Keys.ENTER)
        values = browser.execute_script(
            "return [...arguments[0].tBodies[0].rows].map(row => row.cells[3].dataset.sort ?? null)", table
        )
        numbers = [float(v) for v in values if v is not None]
        assert [None, None] == values[26:]
        seen.append((button.find_element(By.XPATH, "..").get_attribute("aria-sort"), numbers))
    (up, ascending), (down, descending) = seen
    assert ("ascending", "descending") == (up, down)
    assert sorted(ascending) == ascending
    assert sorted(ascending, reverse=True) == descending


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


def _one_size(verdicts: Mapping[str, Verdict]) -> StudyJudgement:
    """The digests at one size on one provider, with these verdicts and round ratios."""
    ratios = {
        Verdict.COSTS: Interval(2.0, 1.9, 2.1, 0.95, 20),
        Verdict.SAVES: Interval(0.5, 0.45, 0.55, 0.95, 20),
        Verdict.FREE: Interval(1.0, 0.99, 1.01, 0.95, 20),
        Verdict.UNCLEAR: Interval(1.03, 0.99, 1.07, 0.95, 20),
        Verdict.NOT_MEASURED: None,
    }
    study = digests()
    tolls: list[Toll] = []
    for toll in study.tolls:
        row = toll.row
        if row.choice in verdicts and row.provider.startswith("openssl") and row.coordinates["bytes"] == 64:
            verdict = verdicts[row.choice]
            tolls.append(replace(toll, verdict=verdict, ratio=ratios[verdict]))
    return replace(study, tolls=tuple(tolls))
