"""Exceptions of a policy: subject, last day, and refused forms."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from policy_lab import RULE, TODAY, of_rules
from tollbar.catalog.families import families
from tollbar.catalog.policies import Ruling, judged, policy
from tollbar.core.errors import TollbarError

EXCEPT = """
[[except]]
rule = "RULE"
where = { choice = "md5" }
because = "the old archive is read until it is moved"
until = 2026-12-31
"""


@pytest.mark.parametrize("rule", ["r0", "ours-2026:r0"])
def test_an_exception_holds_until_it_ends_and_then_says_so(rule: str, tmp_path: Path) -> None:
    path = Path(of_rules(tmp_path, 'never = { choice = ["md5", "sha-1"] }'))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", rule))
    ours, digest = policy(str(path)), families()["digest"]
    during = judged(ours, digest, {"choice": "md5"}, date(2026, 12, 31))
    assert (Ruling.MEETS, ()) == (during.ruling, during.broken)
    assert "the old archive" in (during.findings[0].excepted.because if during.findings[0].excepted else "")
    after = judged(ours, digest, {"choice": "md5"}, date(2027, 1, 1))
    assert Ruling.BREAKS is after.ruling
    assert [date(2026, 12, 31)] == [one.ended.until for one in after.ended if one.ended]
    assert Ruling.BREAKS is judged(ours, digest, {"choice": "sha-1"}, date(2026, 12, 31)).ruling


@pytest.mark.parametrize("where", ['choice = "argon2id-owasp-7m"', 'memory = "7168 KiB"', 'memory = "7MiB"'])
def test_an_exception_is_of_a_choice_or_of_its_parameters(where: str, tmp_path: Path) -> None:
    """A preset has its parameters like any rule's cell; a number is written as everywhere."""
    rule = 'family = "password-hash"\nat-least = [{ memory = "46 MiB" }]\nwhere = { choice = "argon2id*" }'
    path = Path(of_rules(tmp_path, rule))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0").replace('choice = "md5"', where))
    ours, hashes = policy(str(path)), families()["password-hash"]
    seven, nineteen = (judged(ours, hashes, {"choice": f"argon2id-owasp-{size}"}, TODAY) for size in ("7m", "19m"))
    assert (Ruling.MEETS, Ruling.BREAKS) == (seven.ruling, nineteen.ruling)
    assert seven.findings[0].excepted


def test_an_exception_of_a_rule_that_is_met_is_not_needed(tmp_path: Path) -> None:
    path = Path(of_rules(tmp_path, 'never = { choice = ["sha-1"] }'))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0"))
    ours, digest = policy(str(path)), families()["digest"]
    by_day = {on: judged(ours, digest, {"choice": "md5"}, on) for on in (date(2026, 12, 31), date(2027, 1, 1))}
    assert {Ruling.MEETS} == {one.ruling for one in by_day.values()}
    assert ["the old archive is read until it is moved", None] == [
        one.findings[0].unneeded and one.findings[0].unneeded.because for one in by_day.values()
    ]


def test_an_exception_of_a_rule_on_several_families_may_be_of_one(tmp_path: Path) -> None:
    rule = 'family = ["digest", "mac"]\nstanding = "recommended"'
    path = Path(of_rules(tmp_path, rule))
    text = path.read_text() + EXCEPT.replace("RULE", "r0")
    path.write_text(text.replace('choice = "md5"', 'choice = "hmac-sha-1"'))
    assert 1 == len(policy(str(path)).excepts)
    path.write_text(text.replace('choice = "md5"', 'choice = "aes-128-gcm"'))
    with pytest.raises(TollbarError, match="no `aes-128-gcm`"):
        policy(str(path))


# Where an exception holds, and the text of the error.
BAD_EXCEPTS = {
    "a choice's name": ('choice = "md-5"', "no `md-5` did you mean `md5`"),
    "a setting's name": ('chioce = "md5"', "no setting `chioce` did you mean `choice`"),
    "no choice at all": ("choice = []", "`except.0.where.choice`"),
    "a size without its unit": ('bytes = "64"', "`where.bytes`: `64` needs a unit"),
}


@pytest.mark.parametrize("fault", BAD_EXCEPTS)
def test_an_exception_that_can_never_hold_is_refused(fault: str, tmp_path: Path) -> None:
    """Otherwise a typing error would be found only when the rule is broken."""
    where, words = BAD_EXCEPTS[fault]
    path = Path(of_rules(tmp_path, RULE))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0").replace('choice = "md5"', where))
    with pytest.raises(TollbarError) as caught:
        policy(str(path))
    assert words in f"{caught.value.where}: {caught.value.what} {caught.value.hint or ''}"


@pytest.mark.parametrize("key", ["because", "until"])
def test_an_exception_has_a_reason_and_an_end(key: str, tmp_path: Path) -> None:
    path = Path(of_rules(tmp_path, RULE))
    whole = path.read_text() + EXCEPT.replace("RULE", "r0")
    path.write_text("\n".join(line for line in whole.splitlines() if not line.startswith(key)))
    with pytest.raises(TollbarError, match=f"`except.0.{key}` is missing"):
        policy(str(path))
    path.write_text(whole.replace('rule = "r0"', 'rule = "r1"'))
    with pytest.raises(TollbarError, match="no such rule: `r1`") as caught:
        policy(str(path))
    assert "r0" in (caught.value.hint or "")
