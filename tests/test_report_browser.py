"""The report in a browser: charts, requests, and the first screen."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from patience import PATIENCE_S
from report_example import digests, judgement, passwords
from report_lab import Pages, open_page, requests_of
from served_example import arrivals, asked_only, handshakes
from tollbar.report import html

# Empty frames: charts without lines, points or text.
_EMPTY = """
return [...document.querySelectorAll('.plot')]
  .filter(plot => !plot.closest('details:not([open])'))
  .filter(plot => !plot.querySelector('svg .role-mark path, svg .role-mark line, svg .role-mark rect'))
  .map(plot => plot.id)
"""


# Charts without a description, which is needed by readers who cannot see them.
_UNNAMED = """
return [...document.querySelectorAll('.plot')]
  .filter(plot => plot.querySelector('svg'))
  .filter(plot => !plot.matches('[aria-label]') && !plot.querySelector('[role=graphics-document][aria-label]'))
  .map(plot => plot.outerHTML.slice(0, 300))
"""


# Each width and each colour with every page, and all combinations with the fastest page.
_LOOKS = [(1300, False), (400, True)]


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("page", "width", "dark"),
    [
        ("small", 400, False),
        ("small", 1300, True),
        *((page, *look) for page in ("small", "large", "served") for look in _LOOKS),
    ],
)
def test_the_page_draws_without_a_word_or_a_request(
    browser: webdriver.Chrome, pages: Pages, page: str, width: int, dark: bool
) -> None:
    path: Path = getattr(pages, page)
    open_page(browser, path, width=width, dark=dark)
    assert [] == browser.get_log("browser")
    assert [path.as_uri()] == requests_of(browser)
    assert [] == browser.execute_script(_EMPTY)
    assert [] == browser.execute_script(_UNNAMED)
    wider = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0


@pytest.mark.share(0)
def test_charts_follow_the_colours_of_the_page(browser: webdriver.Chrome, pages: Pages) -> None:
    for dark in (False, True):
        open_page(browser, pages.small, dark=dark)
        ink, label = browser.execute_script(
            "const label = document.querySelector('.plot svg .role-axis-label text');"
            "return [getComputedStyle(document.body).color, getComputedStyle(label).fill]"
        )
        assert ink == label


@pytest.mark.share(0)
def test_folded_panels_are_drawn_when_they_are_unfolded(browser: webdriver.Chrome, pages: Pages) -> None:
    """A page of a thousand cells is only fast because most panels wait."""
    open_page(browser, pages.large)
    details = browser.find_element(By.XPATH, "//details[summary[contains(., 'more panels')]]")
    assert 0 == len(details.find_elements(By.CSS_SELECTOR, "svg"))
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    plots = len(details.find_elements(By.CSS_SELECTOR, ".plot"))
    deadline = time.monotonic() + PATIENCE_S
    while len(details.find_elements(By.CSS_SELECTOR, "svg.marks")) < plots and time.monotonic() < deadline:
        time.sleep(0.1)
    assert plots == len(details.find_elements(By.CSS_SELECTOR, "svg.marks"))
    assert [] == browser.get_log("browser")


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of a run of ten questions."""
    path = tmp_path_factory.mktemp("ten") / "report.html"
    studies = [digests(), passwords(), handshakes(), arrivals(), asked_only()]
    named = [
        replace(s, study=replace(s.study, study=replace(s.about, name=f"{s.about.name}-{n}")))
        for n in (1, 2)
        for s in studies
    ]
    html.write(judgement(named), path)
    return path


@pytest.mark.parametrize("width", [481, 620, 800])
def test_answers_keep_room_next_to_their_charts(browser: webdriver.Chrome, pages: Pages, width: int) -> None:
    """A question needs some forty letters a line in a narrow window too, which is no telephone."""
    open_page(browser, pages.small, width=width)
    widths = [one.size["width"] for one in browser.find_elements(By.CSS_SELECTOR, ".answers li > p")]
    assert widths
    assert min(widths) >= 280


@pytest.mark.share(0)
@pytest.mark.parametrize("width", [1280, 400])
def test_the_answers_are_in_the_first_thousand_pixels(
    browser: webdriver.Chrome, pages: Pages, ten: Path, width: int
) -> None:
    open_page(browser, ten, width=width)
    bottoms = browser.execute_script(
        "return [...document.querySelectorAll('.answers li')].map(line => line.getBoundingClientRect().bottom)"
    )
    assert 10 == len(bottoms)
    assert max(bottoms if width > 1000 else bottoms[:5]) <= 1000
    charts = browser.execute_script(
        "return [...document.querySelectorAll('.answers .costs')].map(chart => chart.getBoundingClientRect().height)"
    )
    assert 8 == len(charts)
    assert min(charts) > 0
    missing = browser.execute_script(
        "return [...document.querySelectorAll('.answers a')].filter(a => !document.querySelector(a.hash)).length"
    )
    assert 0 == missing
    open_page(browser, pages.large, width=width)
    assert [] == browser.find_elements(By.CSS_SELECTOR, ".answers")
    assert browser.execute_script("return document.querySelector('.answer').getBoundingClientRect().bottom") <= 1000


def test_a_chart_that_cannot_be_drawn_is_said_so(browser: webdriver.Chrome, pages: Pages, tmp_path: Path) -> None:
    text = pages.small.read_text("utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace('"layer":[', '"layer":["no layer",', 1), "utf-8")
    browser.get(broken.as_uri())
    deadline = time.monotonic() + PATIENCE_S
    ready = None
    while not ready and time.monotonic() < deadline:
        ready = browser.execute_script("return document.documentElement.dataset.ready")
        time.sleep(0.05)
    assert str(ready).startswith("failed: chart-1")
    assert "could not be drawn" in browser.find_element(By.ID, "chart-1").text


def test_a_page_without_charts_is_ready(browser: webdriver.Chrome, tmp_path: Path) -> None:
    study = digests()
    bare = replace(study, study=replace(study.study, rows=()), measurements=(), tolls=(), contrasts=(), claims=())
    html.write(judgement([bare]), tmp_path / "bare.html")
    open_page(browser, tmp_path / "bare.html")
    assert [] == browser.get_log("browser")
