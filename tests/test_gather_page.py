"""The page of many runs in a browser: filters, keyboard, no requests to the network."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.fleet import fingerprint, run_of
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from report_lab import open_page, requests_of
from tollbar.decide import compare
from tollbar.decide.compare import Gathered
from tollbar.decide.compare.words import gather_page
from tollbar.report import html

HOSTILE = '</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Gathered, Path]:
    """Return three gathered machines, one with a hostile name and one with different results, and their page."""
    folder = tmp_path_factory.mktemp("fleet")
    for number, (cpu, flags, sha_512) in enumerate(
        (("CPU one", ("aes", "avx2"), 1500.0), ("CPU two", ("aes",), 700.0), (HOSTILE, ("aes",), 1500.0))
    ):
        costs = {"sha-256": 1000.0, "sha-512": sha_512, "sha-1": 800.0, "blake3": 1000.0}
        run = run_of(
            folder / "runs", fingerprint(cpu, flags=flags), lambda at, costs=costs: costs[at["choice"]], seed=number
        )
        (run / "report.html").write_text("<!doctype html><title>of one run</title>")
    found = compare.gather(compare.read([folder]))
    html.write_page(gather_page(found, "tollbar gather runs", folder / "page.html"), folder / "page.html")
    return found, folder / "page.html"


@pytest.mark.share(2)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1300, 400], ids=["wide", "narrow"])
def test_the_page_is_drawn_and_asks_for_nothing(
    browser: webdriver.Chrome, fleet: tuple[Gathered, Path], width: int, dark: bool
) -> None:
    found, path = fleet
    open_page(browser, path, width=width, dark=dark)
    assert [] == browser.get_log("browser")
    assert [path.as_uri()] == requests_of(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    assert "Tollbar: many machines" == browser.title
    heads, *rows = [
        [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]
        for row in browser.find_elements(By.CSS_SELECTOR, ".matrix tr")
    ]
    assert {"CPU one", "CPU two", HOSTILE} == {head.splitlines()[0] for head in heads[1:]}
    assert len(found.rows) == len(rows)
    at = {head.splitlines()[0]: number for number, head in enumerate(heads)}
    said = {row[0].splitlines()[0]: row for row in rows}["SHA-512 · rustcrypto · 4 KiB"]
    ratio, interval, verdict = said[at["CPU two"]].splitlines()
    assert ("× 0.70", "▼ saves") == (ratio, verdict)
    assert interval.startswith("[0.")
    assert ["over SHA-256", "recommended"] == said[0].splitlines()[1:]


def shown(browser: webdriver.Chrome) -> tuple[int, int]:
    """Return the number of visible rows and machines."""
    rows = browser.find_elements(By.CSS_SELECTOR, ".matrix tbody tr")
    return len(rows), len(browser.find_elements(By.CSS_SELECTOR, ".matrix thead th")) - 1


def test_filters_leave_what_they_say(browser: webdriver.Chrome, fleet: tuple[Gathered, Path]) -> None:
    found, path = fleet
    open_page(browser, path)
    every = len(found.rows), 3
    assert every == shown(browser)
    for name, option, expected in (
        ("processor", "CPU two", 1),
        ("flag", "with avx2", 1),
        ("flag", "without avx2", 2),
        ("family", "Hash functions", 3),
    ):
        select = Select(browser.find_element(By.CSS_SELECTOR, f"select.{name}"))
        select.select_by_visible_text(option)
        assert expected == shown(browser)[1], option
        status = browser.find_element(By.CSS_SELECTOR, ".matrix [role=status]").text
        assert f"{expected} of 3 machines" in status
        select.select_by_index(0)
    # By keyboard alone, which must reach everything.
    differing = browser.find_element(By.CSS_SELECTOR, "input.differing")
    differing.send_keys(Keys.SPACE)
    assert sum(row.differs for row in found.rows) == shown(browser)[0]
    differing.send_keys(Keys.SPACE)
    browser.find_element(By.CSS_SELECTOR, "input.name").send_keys("sha-512 · rust")
    assert 2 == shown(browser)[0]


def test_each_run_is_linked_to(browser: webdriver.Chrome, fleet: tuple[Gathered, Path]) -> None:
    _, path = fleet
    open_page(browser, path)
    links = browser.find_elements(By.XPATH, "//section[h2='The runs']//a")
    assert 3 == len(links)
    links[0].click()
    assert "of one run" == browser.title


def test_many_rows_are_shown_in_parts(browser: webdriver.Chrome, fleet: tuple[Gathered, Path]) -> None:
    _, path = fleet
    text = path.read_text("utf-8")
    few = path.with_name("few.html")
    assert "const MOST_CELLS = 5000;" in text
    few.write_text(
        text.replace("const MOST_CELLS = 5000;", "const MOST_CELLS = 12;").replace("Math.max(20,", "Math.max(2,")
    )
    open_page(browser, few)
    first = browser.find_element(By.CSS_SELECTOR, ".matrix tbody th").text
    assert 4 == shown(browser)[0]
    browser.find_element(By.CSS_SELECTOR, "button.later").send_keys(Keys.ENTER)
    assert first != browser.find_element(By.CSS_SELECTOR, ".matrix tbody th").text
    browser.find_element(By.CSS_SELECTOR, "button.earlier").send_keys(Keys.ENTER)
    assert first == browser.find_element(By.CSS_SELECTOR, ".matrix tbody th").text
