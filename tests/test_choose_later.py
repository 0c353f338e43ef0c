"""The answer of `choose` about a later day on which nothing qualifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policy_lab import asked, of_rules
from tollbar.cli.choose import choose as command
from tollbar.cli.layouts import Layout
from tollbar.core.errors import ExitStatus
from tollbar.decide.candidates import nearby
from tollbar.decide.choose.answered import Answered, distinguishing
from tollbar.decide.choose.headline import first_sentences
from tollbar.decide.choosing import chosen
from tollbar.decide.rulings import Wanted

FIRST = 'only = { choice = ["sha-256", "sha-384"] }\nunlisted = "not approved"'
LATER = 'only = { choice = ["sha3-256"] }\nunlisted = "not approved"\nfrom = 2030-01-01'
WORDS = ("sha-256", "sha-384")


def said(want: Wanted, *choices: str) -> str:
    near = nearby(want, {"choice": choices} if choices else {})
    found = Answered(want, [chosen(want, {}, near.candidates)], (), "nothing was measured", is_unpriced=True)
    return first_sentences(found, distinguishing(found))


def test_the_last_day_and_the_rule_that_begins_are_named() -> None:
    text = said(asked("key-exchange", "tr-02102-2026-01", on="2036-01-01"))
    assert text.startswith("Nothing qualifies on 2036-01-01. Until 2031-12-31 ")
    assert " and 1 more qualify; then " in text
    clause = "Part 1 version 2026-01, section 2.1: classical key agreement alone until the end of 2031"
    assert f" is not recommended (tr-02102-2026-01: {clause}), by the rule `kx-2031`. " in text
    assert text.endswith("No choice of the family key-exchange near the requested ones qualifies on that day.")


@pytest.mark.parametrize("on", [None, "2026-01-02"])
def test_about_today_nothing_ends(on: str | None, tmp_path: Path) -> None:
    assert "Nothing qualifies." == said(asked("digest", of_rules(tmp_path, FIRST), on=on), "sha-512")


def test_choices_that_end_on_several_days_have_the_last_one(tmp_path: Path) -> None:
    first = 'never = { choice = ["sha-256"] }\nfrom = 2028-01-01'
    text = said(asked("digest", of_rules(tmp_path, FIRST, first, LATER), on="2031-01-01"), *WORDS)
    assert (
        "Until 2029-12-31 sha-384 qualifies; then sha-384 is not approved (ours-2026: 2.1), by the rule `r2`." in text
    )


def test_a_rule_that_approved_and_ended_is_named(tmp_path: Path) -> None:
    text = said(asked("digest", of_rules(tmp_path, f"{FIRST}\nuntil = 2029-12-31"), on="2031-01-01"), *WORDS)
    assert "Until 2029-12-31 sha-256 and sha-384 qualify; then the rule `r0` of ours-2026 ends (0.1): it has no" in text


def test_choices_that_never_qualified_do_not_end(tmp_path: Path) -> None:
    text = said(asked("digest", of_rules(tmp_path, FIRST, LATER), on="2031-01-01"), "sha-512")
    assert text.startswith("Nothing qualifies on 2031-01-01. No choice")


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ((*WORDS,), "On that day sha3-256 qualifies instead."),
        (("sha-256", "bytes=4KiB"), "On that day sha3-256 qualifies instead."),
    ],
)
def test_choices_that_were_not_asked_for_and_qualify_are_named(
    words: tuple[str, ...], instead: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = of_rules(tmp_path, f"{FIRST}\nuntil = 2029-12-31", LATER)
    given = {"policy": (policy,), "on": "2031-01-01", "for_": "0s"}
    assert ExitStatus.SOME_FAILED is command("digest", *words, layout=Layout(json=True), **given)  # type: ignore[arg-type]
    document = json.loads(capsys.readouterr().out)
    assert document["headline"].startswith("Nothing qualifies on 2031-01-01. Until 2029-12-31 sha-256")
    assert document["headline"].endswith(instead)
    assert {"sha3-256"} == {one["choice"] for one in document["instead"]}


def test_another_setting_is_named_if_no_other_choice_qualifies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 'family = "tls"\nonly = { key-exchange = ["x25519"] }\nunlisted = "not approved"\nuntil = 2029-12-31'
    later = now.replace("x25519", "x25519mlkem768").replace("until = 2029-12-31", "from = 2030-01-01")
    policy = of_rules(tmp_path, now, later)
    given = {"policy": (policy,), "on": "2031-01-01", "for_": "0s", "layout": Layout(json=True)}
    assert ExitStatus.SOME_FAILED is command("tls", "key-exchange=x25519", **given)  # type: ignore[arg-type]
    document = json.loads(capsys.readouterr().out)
    assert {"x25519mlkem768"} == {one["setting"]["key-exchange"] for one in document["instead"]}
    assert "x25519mlkem768" in document["headline"].partition("On that day ")[2]
