"""The report's controls: sorting, scrolling, another baseline, one provider."""

from __future__ import annotations

import time
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from patience import PATIENCE_S
from report_lab import Pages, open_page
from tollbar.report.numbers import times


def test_a_table_sorts_by_the_keyboard(browser: webdriver.Chrome, pages: Pages) -> None:
    open_page(browser, pages.small)
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


@pytest.mark.share(0)
@pytest.mark.parametrize("width", [1280, 400])
def test_choice_ratio_and_standing_stay_in_sight(browser: webdriver.Chrome, pages: Pages, width: int) -> None:
    open_page(browser, pages.served, width=width)
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
    open_page(browser, pages.small)
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
            assert row["says"] == times(float(row["ratio"]))
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


_DOTS = """
return [...arguments[0].querySelectorAll('.tolls .plot')].map(plot => ({
  title: plot.querySelector('svg .role-axis-title text')?.textContent,
  notes: [...plot.querySelectorAll('svg .role-mark text')].map(text => text.textContent),
  labels: [...plot.querySelectorAll('svg .role-axis-label text')].map(text => text.textContent),
}))
"""


def test_the_chart_follows_another_baseline(browser: webdriver.Chrome, pages: Pages) -> None:
    open_page(browser, pages.small)
    study = browser.find_element(By.ID, "study-digests")
    upper, lower = (Select(one) for one in study.find_elements(By.CSS_SELECTOR, "select.baseline"))
    before = browser.execute_script(_DOTS, study)
    assert any("costs" in note for dots in before for note in dots["notes"])
    upper.select_by_visible_text("BLAKE3")
    assert "BLAKE3" == lower.first_selected_option.text
    after = _redrawn(browser, study, before)
    ratios = {row["says"] for row in browser.execute_script(_ROWS, study.find_element(By.CSS_SELECTOR, ".every"))}
    assert len(before) == len(after)
    for dots in after:
        assert set(dots["notes"]) <= ratios
        assert "CPU time per operation, as a multiple of BLAKE3 (log scale)" == dots["title"]
    assert any("×\u00a01.00" in dots["notes"] for dots in after)
    lower.select_by_index(0)
    assert before == _redrawn(browser, study, after)
    assert [] == browser.get_log("browser")


def _redrawn(browser: webdriver.Chrome, study: WebElement, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the panels once the title of each names another baseline; they are drawn one after the other."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found: list[dict[str, Any]] = browser.execute_script(_DOTS, study)
        pairs = [(now["title"], then["title"]) for now, then in zip(found, before, strict=True)]
        if all(now and now != then for now, then in pairs) or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_the_table_is_filtered_by_provider(browser: webdriver.Chrome, pages: Pages) -> None:
    open_page(browser, pages.small)
    every = browser.find_element(By.CSS_SELECTOR, "#study-digests .every")
    Select(every.find_element(By.CSS_SELECTOR, "select.provider")).select_by_visible_text("rustcrypto 0.10.9")
    shown = [row for row in browser.execute_script(_ROWS, every) if not row["hidden"]]
    assert 14 == len(shown)
    assert {"1"} == {row["provider"] for row in shown}
    assert "14 of 28 cells are shown." == every.find_element(By.CSS_SELECTOR, "[role=status]").text
    # A study of one provider has nothing to filter.
    assert [] == browser.find_elements(By.CSS_SELECTOR, "#study-passwords select.provider")
