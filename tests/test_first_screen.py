"""The first screen: a recommendation for each question, the cost of more security, a small chart, and links."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from builders import row_of
from fabricated import fabricated, planned
from report_example import digests, judgement, passwords
from report_lab import Pages, open_page, wait
from served_example import handshakes
from tollbar.analysis import ClaimVerdict, Compared, StudyJudgement, Verdict, judge_study
from tollbar.catalog.families import family
from tollbar.core.intervals import Interval, Moments
from tollbar.core.moments import Known
from tollbar.report import html
from tollbar.report.page import page
from tollbar.report.sections.accuracy import FIRST_RUN, accuracy, date_words, machine_words, quiet_range_words
from tollbar.report.sections.answer import headline, whole_answer
from tollbar.report.sections.results import results
from tollbar.report.ways import places
from tollbar.results import StudyRun

X = "×\u00a0"


def test_what_to_take_and_what_more_bits_and_a_recommended_one_add() -> None:
    choices = whole_answer(digests()).choices
    assert choices.says.startswith("SHA-256 (acceptable, 128 bits): 174 ns of CPU per digest")
    ranked, bits, recommended = choices.steps
    assert "On openssl 3.0.19, at 64 B: SHA-256 is the cheapest of 4 options in good standing." == ranked
    assert f"For 256-bit strength: BLAKE2b-512 costs 62.9 ns more ({X}1.36)." == bits
    assert f"For a recommended standing: SHA3-256 costs 227 ns more ({X}2.31)." == recommended
    assert ["SHA-256", "BLAKE2b-512", "SHA-512", "SHA3-256"] == [bar.name for bar in choices.bars]
    assert all(bar.is_told for bar in choices.bars)
    assert [1.0] == [bar.share for bar in choices.bars if bar.share == max(bar.share for bar in choices.bars)]
    assert "CPU time per operation: on openssl 3.0.19, at 64 B" == choices.caption


def test_what_is_not_told_apart_is_said_and_drawn_hollow() -> None:
    choices = whole_answer(passwords()).choices
    undecided = "this run cannot distinguish it from “Argon2id, 19 MiB, 2 passes”."
    assert f"It has the lowest cost of 3 options in good standing; {undecided}" == choices.steps[0]
    assert choices.steps[1].endswith("costs 98.5 ms (unclear).")
    assert [True, False, True] == [bar.is_told for bar in choices.bars]
    assert choices.caption.endswith("hollow: may equal the first (joint intervals)")


def test_noisy_costs_have_no_difference() -> None:
    """They are of other moments than their ratio, and 98 ms next to 29 ms contradicts × 3.59."""
    study = digests()
    noisy = replace(study, measurements=tuple(replace(one, moments=Moments.ALL) for one in study.measurements))
    choices = whole_answer(noisy).choices
    assert "174 ns~ of CPU per digest" in choices.says
    assert f"For 256-bit strength: BLAKE2b-512 costs more ({X}1.36)." == choices.steps[1]
    assert choices.caption.endswith("; ~ noisy: compare ratios")
    assert "~" not in whole_answer(study).choices.caption


def test_a_cheaper_choice_that_gives_up_nothing_is_followed_by_the_reason_of_the_default() -> None:
    planned_ = planned("quick/sign-in")
    costs = {"form": 750.0, "session-cookie": 1000.0}
    rows = tuple(
        row_of(cell, *([costs.get(cell.choice.name, 3000.0) * (1 + 0.001 * block) for block in range(6)],) * 2)
        for cell in planned_.cells
    )
    said = whole_answer(judge_study(StudyRun(planned_.study, rows, (), (6,)))).choices
    cheaper = next(step for step in said.steps if "saves" in step)
    assert cheaper.endswith("; session cookie is the default because " + family("web-auth").default.reason + ".")  # type: ignore[union-attr]


def test_the_sentences_are_about_the_library_with_most_approved_choices() -> None:
    planned_ = planned("quick/digests")
    rows = tuple(
        row_of(cell, *([(1000.0 + 500 * number) * (1 + 0.001 * block) for block in range(6)],) * 2)
        for number, cell in enumerate(planned_.cells)
        if (cell.choice.name, cell.coordinates["provider"]) != ("blake3", planned_.cells[0].coordinates["provider"])
    )
    study = judge_study(StudyRun(planned_.study, rows, (), (6,)))
    choices = whole_answer(study).choices
    assert "BLAKE3" in {bar.name for bar in choices.bars}
    assert choices.steps[0].startswith("On rustcrypto")


def test_a_recommended_option_is_named_so_where_a_cheaper_one_serves_as_well() -> None:
    planned_ = planned("quick/digests")
    costs = {"sha-256": 3000.0, "blake3": 1000.0, "sha3-256": 9000.0, "sha-512": 6000.0, "blake2b-512": 5000.0}
    rows = tuple(
        row_of(cell, *([costs.get(cell.choice.name, 4000.0) * (1 + 0.001 * block) for block in range(6)],) * 2)
        for cell in planned_.cells
    )
    said = whole_answer(judge_study(StudyRun(planned_.study, rows, (), (6,)))).choices
    assert any(
        one.startswith("For protection against length extension by a recommended option: SHA3-256")
        for one in said.steps
    )


@pytest.mark.parametrize("study", [digests(), passwords(), handshakes()], ids=lambda one: str(one.about.name))
def test_without_a_judgement_nothing_is_the_cheapest(study: StudyJudgement) -> None:
    bare = replace(study, tolls=(), contrasts=(), claims=(), tables=(), ledger=None)
    choices = whole_answer(bare).choices
    assert not any("cheapest" in step or X in step for step in choices.steps)
    assert all("not compared" in step for step in choices.steps[1:])
    assert [False] * (len(choices.bars) - 1) == [bar.is_told for bar in choices.bars[1:]]


@pytest.mark.parametrize("study", [digests(), passwords(), handshakes()], ids=lambda one: str(one.about.name))
def test_a_bar_is_told_only_by_a_verdict(study: StudyJudgement) -> None:
    told = {bar.cost: bar.is_told for bar in whole_answer(study).choices.bars[1:]}
    pairs = Compared(study)
    place = next(place for place in places(study) if place.good)
    verdicts = [pair.verdict for way in place.good[1:] if (pair := pairs.of(way.row, place.good[0].row))]
    assert sum(told.values()) <= sum(verdict in (Verdict.COSTS, Verdict.SAVES) for verdict in verdicts)
    assert {"recommended", "acceptable"} >= {str(bar.standing) for bar in whole_answer(study).choices.bars}


def test_a_self_test_is_no_recommended_choice() -> None:
    study = passwords()
    self_tested = replace(study.about, name="self-test", family=replace(study.about.family, is_self_test=True))
    self_test = replace(study, study=replace(study.study, study=self_tested))
    made = page(judgement([self_test, digests()]))
    assert ["study-digests", "study-self-test"] == [entry.name for entry in made.answers]
    (said,) = made.answers[1].says
    assert () == said.steps == said.bars  # type: ignore[attr-defined]
    assert said.says.startswith("Against “PBKDF2-SHA256, 600,000”, ")  # type: ignore[attr-defined]
    assert family("spin").is_self_test


def test_the_headline_still_has_what_comes_next() -> None:
    assert headline(passwords()).endswith("(unclear).")
    assert "PBKDF2-SHA256, 600,000 (acceptable): 97.9 ms of CPU a hash." == whole_answer(passwords()).choices.says


@pytest.mark.share(1)
@pytest.mark.parametrize("which", ["small", "large", "served"])
def test_names_are_made_once_and_every_link_leads_somewhere(pages: Pages, which: str) -> None:
    text = getattr(pages, which).read_text("utf-8").partition("<body>")[2].partition('<script type="appl')[0]
    names = re.findall(r' id="([^"]*)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(names)
    if which == "small":
        assert {"study-digests-every-result", "digests-sha-256-libcrypto-digest-64", "how", "again"} <= set(names)


def test_ratios_to_other_baselines_are_in_words() -> None:
    found = results(digests())
    ratios = [str(facts["ratios"]).split("|") for facts in found.facts if "ratios" in facts]
    assert {len(found.ways)} == set(map(len, ratios))
    assert all(row[int(str(facts["way"]))] == f"{X}1.00" for row, facts in zip(ratios, _with_cost(found), strict=True))


def _with_cost(found: object) -> list[dict[str, object]]:
    return [dict(facts) for facts in found.facts if "cost" in facts]  # type: ignore[attr-defined]


def test_a_link_to_a_folded_row_unfolds_it(browser: webdriver.Chrome, pages: Pages) -> None:
    open_page(browser, pages.small)
    name = browser.execute_script("return document.querySelector('details:not([open]) tbody tr[id]').id")
    browser.execute_script("location.hash = arguments[0]", name)
    wait(browser)
    row = browser.find_element(By.ID, name)
    assert row.is_displayed()
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top", row)
    assert 0 <= top <= 900


def test_paper_has_what_is_folded(browser: webdriver.Chrome, pages: Pages) -> None:
    open_page(browser, pages.small)
    folded = browser.execute_script("return document.querySelectorAll('details:not([open])').length")
    browser.execute_script(
        "addEventListener('afterprint', () => { window.drawn = [...document.querySelectorAll('.plot')]"
        ".filter(plot => !plot.querySelector('svg.marks')).map(plot => plot.id) })"
    )
    pdf = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")
    assert [] == browser.execute_script("return window.drawn")
    assert folded == browser.execute_script("return document.querySelectorAll('details:not([open])').length")


_STOPS = """
return [...document.querySelectorAll('a[href], button, select, summary, [tabindex]')]
  .filter(one => one.tabIndex >= 0 && one.checkVisibility()).length
"""


def test_there_are_few_stops_of_the_tabulator(browser: webdriver.Chrome, tmp_path: Path) -> None:
    html.write(judgement([digests()]), tmp_path / "one.html")
    open_page(browser, tmp_path / "one.html")
    assert browser.execute_script(_STOPS) <= 20
    heads = "return [...document.querySelectorAll('.every th button')].filter(one => one.tabIndex >= 0).length"
    assert 1 == browser.execute_script(heads)


def test_one_line_has_machine_date_and_accuracy() -> None:
    """The median half-width is that of the tolls, and a quiet share is given only where it is known."""
    study = digests()
    widths = sorted(t.ratio.half_width for t in study.tolls if t.ratio and t.ratio.is_bounded and t.row != t.against)
    found = accuracy([study])
    assert found is not None
    assert widths[0] <= found <= widths[-1]
    assert accuracy([replace(study, tolls=())]) is None
    quiet = [replace(study, trust=replace(study.trust, quiet_share=share)) for share in (0.17, 0.611)]
    assert "the core quiet 17 % of the time" == quiet_range_words(quiet[:1])
    assert "the core quiet 17 % to 61 % of the time" == quiet_range_words(quiet)
    unknown = replace(study, trust=replace(study.trust, quiet_share=0.9, known_by=Known.NOTHING))
    assert f"first run on this processor: {FIRST_RUN}" == quiet_range_words([*quiet, unknown])
    machine = {"cpu": "AMD EPYC", "cores": 2, "kernel": "6.18.44-cloud"}
    assert "AMD EPYC, 2 cores, Linux 6.18.44" == machine_words(machine)
    assert "" == machine_words({"cpu": {"model": 1}, "cores": "two"})
    assert ["27 November 2026", "today"] == [date_words(one) for one in ("2026-11-27T23:59:00+01:00", "today")]


def test_a_self_test_is_answered_by_its_known_ratios() -> None:
    judged = fabricated("self-test/self-test")
    measured = {true: Interval(true, 0.99 * true, 1.01 * true, 0.96, 4) for true in (1.0, 2.0, 5.0)}
    claims = [
        replace(one, ratio=measured[one.claim.ratio[0]], verdict=ClaimVerdict.STILL_TRUE)
        for one in judged.claims
        if one.claim.ratio
    ]
    assert 3 == len(claims)
    right = replace(judged, claims=tuple(claims))
    (answer,) = whole_answer(right).says
    assert answer.startswith(f"Yes: {X}1.00 [0.99, 1.01] where {X}1 is true, {X}2.00 [1.98, 2.02] where {X}2 is true ")
    for verdict, head in ((ClaimVerdict.LARGER, "No: "), (ClaimVerdict.CANNOT_TELL, "This run cannot tell: ")):
        wrong = replace(judged, claims=(replace(claims[0], verdict=verdict), *claims[1:]))
        assert whole_answer(wrong).says[0].startswith(head)
