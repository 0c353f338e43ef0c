"""Policies: what ships is never changed and says what was reviewed; a file's rules are judged one by one."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import pytest

from policy_table import table
from tollbar.errors import TollbarError
from tollbar.families import families
from tollbar.policies import (
    Judged,
    Ruling,
    check,
    check_project,
    judged,
    policies,
    policy,
    read_project,
    shipped,
    with_edition,
)

GOLDEN = Path(__file__).parent / "golden"
TODAY = date(2026, 11, 23)


def test_a_policy_that_has_shipped_is_never_changed() -> None:
    """A new edition is a new file: each file has the content that it was shipped with, and none is gone."""
    expected = dict(reversed(line.split()) for line in (GOLDEN / "policies.sha256").read_text().splitlines())
    assert expected == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in shipped().values()}


def test_shipped_policies_say_of_every_choice_what_was_reviewed() -> None:
    """Of each choice at its defaults and with each value that is ruled on, today and when a rule begins to hold."""
    # A change of a family or of judging shows here: review the difference, then write the table anew (policy_table.py).
    assert (GOLDEN / "policies.txt").read_text() == table() + "\n"


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_policy_names_what_there_is(name: str) -> None:
    """Families, settings, values and threats are known ones; each rule has its clause and its source."""
    found = policy(name)
    check(found, name)
    assert name == found.name
    assert found.rules
    for part in found.all_of_it:
        for rule in part.rules:
            assert rule.clause
            assert rule.source
        assert "compliant" not in shipped()[part.name].read_text().lower()


A_POLICY = """
[policy]
title = "Ours"
by = "Us"
edition = "2026"
date = 2026-01-01
source = "our handbook"
seen = 2026-11-23
checked = true
"""


def of_rules(folder: Path, *rules: str, head: str = A_POLICY) -> str:
    """The path of a policy with these rules, each of the family digest unless it says another."""
    texts = []
    for number, rule in enumerate(rules):
        start = f'[[rule]]\nid = "r{number}"\nclause = "{number}.1"\n'
        texts.append(start + ("" if "family" in rule else 'family = "digest"\n') + rule)
    path = folder / "ours-2026.toml"
    path.write_text(head + "\n" + "\n".join(texts))
    return str(path)


def said(folder: Path, rule: str, family: str = "digest", *, on: date = TODAY, **cell: str | int) -> Judged:
    """What a policy with this one rule says of a cell."""
    path = of_rules(folder, rule if "family" in rule else f'family = "{family}"\n{rule}')
    named = {name.replace("_", "-"): value for name, value in cell.items()}
    return judged(policy(path), families()[family], named, on)


OF_AWS, NO_AWS = 'where = { provider = "aws-lc*" }\ncannot-say = "whose it is"', 'never = { provider = ["aws-lc*"] }'
NO_SHORT_DH = 'never = { dh-parameters = ["modp-1024"] }'
HASHED_BEFORE: dict[str, str | int] = {"choice": "ecdsa-p256", "digest": "none"}
# A rule, the cell (its family first), the ruling, and words of why.
RULES: list[tuple[str, str, dict[str, str | int], str, str]] = [
    ('only = { choice = ["sha-*"] }', "digest", {"choice": "sha-256"}, "meets", ""),
    ('unlisted = "not approved"\nonly = { choice = ["sha-*"] }', "digest", {"choice": "blake3"}, "breaks", "is not"),
    ('only = { choice = ["sha-*"] }', "digest", {"choice": "blake3"}, "cannot say", "blake3 is not listed"),
    ('never = { choice = ["md5"] }', "digest", {"choice": "md5"}, "breaks", "md5 is refused"),
    ("strength = 128", "digest", {"choice": "sha-224"}, "breaks", "112 bits, under 128"),
    ("strength = 128", "digest", {"choice": "sha-256"}, "meets", ""),
    ("strength = 128", "password-hash", {"choice": "bcrypt"}, "cannot say", "nothing in bits"),
    ("strength = 112", "tls", {"choice": "tls-1.3", "certificate": "rsa-1024"}, "breaks", "80 bits"),
    ("strength = 112", "tls", {"choice": "tls-1.3", "certificate": "ecdsa-p256"}, "cannot say", "key-exchange and"),
    ('standing = "acceptable"', "digest", {"choice": "md5"}, "breaks", "broken, below acceptable"),
    ('standing = "acceptable"', "digest", {"choice": "sha-224"}, "meets", ""),
    ('mitigates = { collision = "yes" }', "digest", {"choice": "sha-256"}, "meets", ""),
    ('mitigates = { collision = "yes" }', "digest", {"choice": "md5"}, "breaks", "two inputs are found"),
    ('mitigates = { collision = "yes" }', "digest", {"choice": "sha-224"}, "cannot say", "2^112"),
    ('mitigates = { collision = "partly" }', "digest", {"choice": "sha-224"}, "meets", ""),
    ("at-least = [{ cost = 12 }]", "password-hash", {"choice": "bcrypt-10"}, "breaks", "cost 10: less than cost 12"),
    ("at-least = [{ cost = 12 }]", "password-hash", {"choice": "bcrypt-12"}, "meets", ""),
    ("at-least = [{ cost = 12 }]", "password-hash", {"choice": "bcrypt"}, "cannot say", "cost is not given"),
    ("at-least = [{ cost = 12 }]", "password-hash", {"choice": "bcrypt", "cost": 13}, "meets", ""),
    ('cannot-say = "whether a pepper is used"', "password-hash", {"choice": "bcrypt"}, "cannot say", "a pepper"),
    ('where = { choice = "md5" }\nstrength = 128', "digest", {"choice": "sha-1"}, "cannot say", "no rule on this"),
    ('never = { cipher = ["aes-128-cbc"] }', "tls", {"choice": "tls-1.3"}, "cannot say", "cipher is not given"),
    ('never = { cipher = ["aes-128-cbc"] }', "tls", {"choice": "plaintext"}, "cannot say", "no rule on this"),
    ('never = { choice = ["md5"] }', "digest", {"choice": "none"}, "cannot say", "it protects nothing"),
    ('where = { key-exchange = "dhe" }\nstrength = 128', "tls", {"choice": "tls-1.2"}, "cannot say", "key-exchange"),
    ('never = { padding = ["pkcs1"] }', "signature", {"choice": "ed25519"}, "cannot say", "no rule on this"),
    ('should = true\nnever = { choice = ["md5"] }', "digest", {"choice": "md5"}, "meets", ""),
    (OF_AWS, "tls", {"choice": "tls-1.3"}, "cannot say", "provider is not given"),
    ('only = { provider = ["libcrypto"] }', "digest", {"choice": "sha-256"}, "cannot say", "provider is not given"),
    (NO_AWS, "digest", {"choice": "sha-256", "provider": "aws-lc"}, "breaks", "provider aws-lc is refused"),
    ('never = { bed = ["nginx"] }', "tls", {"choice": "tls-1.3"}, "cannot say", "bed is not given"),
    ('never = { bed = ["nginx"] }', "digest", {"choice": "sha-256"}, "cannot say", "no rule on this"),
    ('where = { op = "sign" }\nstrength = 128', "signature", {"choice": "rsa-2048"}, "cannot say", "op is not given"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.2"}, "cannot say", "dh-parameters is not given"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.3"}, "cannot say", "no rule on this"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.2", "key-exchange": "x25519"}, "cannot say", "no rule on this"),
    ('never = { digest = ["sha-1"] }', "signature", HASHED_BEFORE, "cannot say", "digest none: which hash"),
    ('only = { digest = ["sha-*"] }', "signature", HASHED_BEFORE, "cannot say", "digest none: which hash"),
    ('where = { digest = "sha-1" }\nstrength = 192', "signature", HASHED_BEFORE, "cannot say", "digest none: which"),
    ('never = { digest = ["none"] }', "signature", HASHED_BEFORE, "breaks", "digest none is refused"),
    ('never = { memory = ["7168 KiB"] }', "password-hash", {"choice": "argon2id-owasp-7m"}, "breaks", "memory"),
    ('only = { memory = ["19 MiB"] }', "password-hash", {"choice": "argon2id-owasp-19m"}, "meets", ""),
    ('where = { n = "2^17" }\ncannot-say = "why"', "password-hash", {"choice": "scrypt-owasp"}, "cannot say", "why"),
    ('never = { memory = ["*"] }', "password-hash", {"choice": "argon2id-owasp-19m"}, "breaks", "memory"),
]  # fmt: skip


@pytest.mark.parametrize("case", RULES, ids=lambda case: f"{case[2]['choice']}: {case[0].splitlines()[-1]}")
def test_a_rule_is_met_or_broken_or_cannot_be_said(
    case: tuple[str, str, dict[str, str | int], str, str], tmp_path: Path
) -> None:
    """With what breaks it, or with what is missing: nothing that is not known passes."""
    rule, family, cell, ruling, why = case
    found = said(tmp_path, rule, family, **cell)
    assert Ruling(ruling) is found.ruling
    words = [found.missing or "", *(one.why for one in (*found.broken, *found.unknown))]
    assert why in " ".join(words)
    if found.ruling is Ruling.MEETS:
        assert not any(words)


def test_advice_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    """Of what a policy only advises, the verdict is the same and the advice stands beside it."""
    found = said(tmp_path, 'should = true\nnever = { choice = ["md5"] }', choice="md5")
    assert [("r0", "md5 is refused")] == [(one.rule.id, one.why) for one in found.advice]


def test_a_rule_holds_from_its_first_day_to_its_last(tmp_path: Path) -> None:
    """And none holds before the edition was there."""
    rule = 'never = { choice = ["sha-1"] }\nfrom = 2027-01-01\nuntil = 2027-12-31'
    days = {date(2026, 12, 31): "cannot say", date(2027, 1, 1): "breaks", date(2027, 12, 31): "breaks"}
    days[date(2028, 1, 1)] = "cannot say"
    assert days == {on: str(said(tmp_path, rule, on=on, choice="sha-1").ruling) for on in days}
    assert (date(2027, 1, 1), date(2028, 1, 1)) == policy(of_rules(tmp_path, rule)).turns
    before = said(tmp_path, 'never = { choice = ["md5"] }', on=date(2025, 12, 31), choice="md5")
    assert (Ruling.CANNOT_SAY, "this edition is of 2026-01-01") == (before.ruling, before.missing)


def test_what_is_extended_must_be_met_too(tmp_path: Path) -> None:
    """Both policies' rules are judged, and each finding names the one that its rule stands in."""
    head = A_POLICY + 'extends = ["asvs-level-1-5.0.0"]\n'
    found = policy(of_rules(tmp_path, 'never = { choice = ["sha-224"] }', head=head))
    digest = families()["digest"]
    broken = {
        choice: [(one.policy, one.rule.id) for one in judged(found, digest, {"choice": choice}, TODAY).broken]
        for choice in ("md5", "sha-224", "sha-256")
    }
    expected = {"md5": [("asvs-level-1-5.0.0", "11.4.1-digest")], "sha-224": [("ours-2026", "r0")], "sha-256": []}
    assert expected == broken


def test_an_edition_that_is_extended_says_nothing_before_its_day(tmp_path: Path) -> None:
    """A policy of ours may be older than what it extends: its own rules are broken all the same."""
    head = A_POLICY.replace("2026-01-01", "2025-01-01") + 'extends = ["asvs-level-1-5.0.0"]\n'
    ours = policy(of_rules(tmp_path, 'never = { choice = ["sha-224"] }', head=head))
    digest, on = families()["digest"], date(2025, 5, 29)
    before = judged(ours, digest, {"choice": "md5"}, on)
    expected = (Ruling.CANNOT_SAY, "asvs-level-1-5.0.0, which it extends, is of 2025-05-30")
    assert expected == (before.ruling, before.missing)
    assert Ruling.BREAKS is judged(ours, digest, {"choice": "sha-224"}, on).ruling
    assert Ruling.BREAKS is judged(ours, digest, {"choice": "md5"}, date(2025, 5, 30)).ruling


def test_in_2036_no_side_of_tls_signs_by_what_a_quantum_computer_breaks() -> None:
    """SP 800-131A: by then a client's certificate is as much a signature as the server's."""
    cell = {
        "choice": "tls-1.3",
        "certificate": "ml-dsa-65",
        "key-exchange": "secp256r1mlkem768",
        "cipher": "aes-128-gcm",
    }
    found = {
        client: judged(
            policy("sp800-131a-2024-11"), families()["tls"], {**cell, "client-certificate": client}, date(2036, 1, 1)
        ).ruling
        for client in ("none", "ml-dsa-87", "ecdsa-p256")
    }
    assert {"none": Ruling.MEETS, "ml-dsa-87": Ruling.MEETS, "ecdsa-p256": Ruling.BREAKS} == found


EXCEPT = """
[[except]]
rule = "RULE"
where = { choice = "md5" }
because = "the old archive is read until it is moved"
until = 2026-12-31
"""


@pytest.mark.parametrize("rule", ["r0", "ours-2026:r0"])
def test_an_exception_holds_until_it_ends_and_then_says_so(rule: str, tmp_path: Path) -> None:
    """While it lasts the rule need not be met; afterwards it counts no more, and stands beside the broken rule."""
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
    """A preset has its parameters by itself, as a rule sees them; a number is written as everywhere."""
    rule = 'family = "password-hash"\nat-least = [{ memory = "46 MiB" }]\nwhere = { choice = "argon2id*" }'
    path = Path(of_rules(tmp_path, rule))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0").replace('choice = "md5"', where))
    ours, hashes = policy(str(path)), families()["password-hash"]
    seven, nineteen = (judged(ours, hashes, {"choice": f"argon2id-owasp-{size}"}, TODAY) for size in ("7m", "19m"))
    assert (Ruling.MEETS, Ruling.BREAKS) == (seven.ruling, nineteen.ruling)
    assert seven.findings[0].excepted


def test_an_exception_of_a_rule_that_is_met_is_not_needed(tmp_path: Path) -> None:
    """It is said of the finding while the exception lasts, and no longer."""
    path = Path(of_rules(tmp_path, 'never = { choice = ["sha-1"] }'))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0"))
    ours, digest = policy(str(path)), families()["digest"]
    by_day = {on: judged(ours, digest, {"choice": "md5"}, on) for on in (date(2026, 12, 31), date(2027, 1, 1))}
    assert {Ruling.MEETS} == {one.ruling for one in by_day.values()}
    assert ["the old archive is read until it is moved", None] == [
        one.findings[0].unneeded and one.findings[0].unneeded.because for one in by_day.values()
    ]


# What an exception says of where it holds, and what the one line says.
BAD_EXCEPTS = {
    "a choice's name": ('choice = "md-5"', "no `md-5` did you mean `md5`"),
    "a setting's name": ('chioce = "md5"', "no setting `chioce` did you mean `choice`"),
    "no choice at all": ("choice = []", "`except.0.where.choice`"),
    "a size without its unit": ('bytes = "64"', "`where.bytes`: say the unit"),
}


@pytest.mark.parametrize("fault", BAD_EXCEPTS)
def test_an_exception_that_can_never_hold_is_refused(fault: str, tmp_path: Path) -> None:
    """A slip of the pen in it would be found when the rule is broken, and not before."""
    where, words = BAD_EXCEPTS[fault]
    path = Path(of_rules(tmp_path, RULE))
    path.write_text(path.read_text() + EXCEPT.replace("RULE", "r0").replace('choice = "md5"', where))
    with pytest.raises(TollbarError) as caught:
        policy(str(path))
    assert words in f"{caught.value.where}: {caught.value.what} {caught.value.hint or ''}"


def test_an_exception_of_a_rule_on_several_families_may_be_of_one(tmp_path: Path) -> None:
    """A choice of either is known; one of neither is not."""
    rule = 'family = ["digest", "mac"]\nstanding = "recommended"'
    path = Path(of_rules(tmp_path, rule))
    text = path.read_text() + EXCEPT.replace("RULE", "r0")
    path.write_text(text.replace('choice = "md5"', 'choice = "hmac-sha-1"'))
    assert 1 == len(policy(str(path)).excepts)
    path.write_text(text.replace('choice = "md5"', 'choice = "aes-128-gcm"'))
    with pytest.raises(TollbarError, match="no `aes-128-gcm`"):
        policy(str(path))


RULE = 'never = { choice = ["md5"] }'
# Rules, what is changed in the file, and what the one line says, its hint behind it.
BAD: dict[str, tuple[str, str, str, str]] = {
    "no clause": (RULE, 'clause = "0.1"\n', "", "`rule.0.clause` is missing"),
    "an empty clause": (RULE, 'clause = "0.1"', 'clause = ""', "`rule.0.clause`"),
    "no source": (RULE, 'source = "our handbook"\n', "", "`policy.source` is missing"),
    "no date": (RULE, "date = 2026-01-01\n", "", "`policy.date` is missing"),
    "no day": (RULE, "date = 2026-01-01", 'date = "soon"', "`policy.date`"),
    "two conditions": (RULE + "\nstrength = 128", "", "", "asks 2 things: one of `standing`"),
    "no condition": ("", "", "", "asks 0 things"),
    "unknown key": (RULE + '\nnevre = { choice = ["x"] }', "", "", "`rule.0.nevre`: no such key"),
    "unknown family": ('family = "digst"\n' + RULE, "", "", "no such family: `digst` did you mean `digest`"),
    "unknown choice": ('never = { choice = ["sha-265"] }', "", "", "no `sha-265` did you mean `sha-256`"),
    "unknown setting": ('never = { chioce = ["md5"] }', "", "", "no setting `chioce` did you mean `choice`"),
    "unknown threat": ('mitigates = { colision = "yes" }', "", "", "no threat `colision` did you mean `collision`"),
    "unknown parameter": ("at-least = [{ byts = 2 }]", "", "", "no setting `byts` did you mean `bytes`"),
    "a size without unit": ("at-least = [{ bytes = 2 }]", "", "", "`at-least.bytes`: say the unit"),
    "a size that fits nothing": ('never = { bytes = ["64"] }', "", "", "`never.bytes`: say the unit"),
    "a pattern of numbers": ('never = { bytes = ["6*"] }', "", "", "`6*` is no number `at-least` asks for numbers"),
    "a word that is at least": (
        'family = "signature"\nat-least = [{ digest = "sha-256" }]',
        "",
        "",
        "`at-least.digest`: it is no number",
    ),
    "at least nothing": ("at-least = [{}]", "", "", "has a set in `at-least` that asks nothing"),
    "a threat that need not be mitigated": ('mitigates = { collision = "no" }', "", "", "asks nothing about collision"),
    "no family": ("family = []\n" + RULE, "", "", "`rule.0.family`"),
    "less than no bits": ("strength = -1", "", "", "`rule.0.strength`"),
    "a blank clause": (RULE, 'clause = "0.1"', 'clause = "  "', "`rule.0.clause`"),
    "a blank source": (RULE, '"our handbook"', '" "', "`policy.source`"),
    "ends before it begins": (RULE + "\nfrom = 2027-01-01\nuntil = 2026-01-01", "", "", "ends before it begins"),
    "extends none": (RULE, "checked = true", 'extends = ["asvs-level-1"]', "did you mean `asvs-level-1-5.0.0`"),
    "extends itself": (RULE, "checked = true", 'extends = ["ours-2026.toml"]', "extends itself"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_policy_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    """With the file, what is wrong, and the nearest right name."""
    rule, find, replacement, words = BAD[fault]
    path = Path(of_rules(tmp_path, rule))
    path.write_text(path.read_text().replace(find, replacement, 1) if find else path.read_text())
    with pytest.raises(TollbarError) as caught:
        policy(str(path))
    line = f"{caught.value.where}: {caught.value.what} {caught.value.hint or ''}"
    assert words in line
    assert "ours-2026.toml" in line
    assert "\n" not in line


@pytest.mark.parametrize("key", ["because", "until"])
def test_an_exception_has_a_reason_and_an_end(key: str, tmp_path: Path) -> None:
    """Without either the file is refused; so is one of a rule that there is not."""
    path = Path(of_rules(tmp_path, RULE))
    whole = path.read_text() + EXCEPT.replace("RULE", "r0")
    path.write_text("\n".join(line for line in whole.splitlines() if not line.startswith(key)))
    with pytest.raises(TollbarError, match=f"`except.0.{key}` is missing"):
        policy(str(path))
    path.write_text(whole.replace('rule = "r0"', 'rule = "r1"'))
    with pytest.raises(TollbarError, match="no such rule: `r1`") as caught:
        policy(str(path))
    assert "r0" in (caught.value.hint or "")


def test_an_unknown_policy_has_the_nearest_beside_it(tmp_path: Path) -> None:
    """In the hint, as every other name has; a file of one's own too."""
    with pytest.raises(TollbarError, match="no such policy: `asvs-level-2`") as caught:
        policy("asvs-level-2")
    assert "`asvs-level-2-5.0.0`" in (caught.value.hint or "")
    of_rules(tmp_path, RULE)
    for name in ("ours-2062.toml", "ours-2026.tml"):
        with pytest.raises(TollbarError, match=f"no such policy: `{name}`") as caught:
            policy(name, beside=tmp_path)
        assert "`ours-2026.toml`" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("asvs-level", "`asvs-level-1-5.0.0`"), ("sp800", "sp800-63b-aal1-4"), ("asvs", "asvs-level-1")],
)
def test_a_name_that_several_policies_begin_with_is_none_of_them(name: str, nearest: str) -> None:
    """The digit behind it is a level, and no edition: none is picked in silence."""
    assert name == with_edition(name)
    with pytest.raises(TollbarError, match=f"no such policy: `{name}`") as caught:
        policy(with_edition(name))
    assert nearest in (caught.value.hint or "")


def test_of_several_editions_of_a_policy_the_newest_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have one title; a second policy whose name begins so leaves it open which is meant."""
    folder = tmp_path / "policies"
    folder.mkdir()
    for edition in ("2025", "2026"):
        head = A_POLICY.replace("date = 2026-01-01", f"date = {edition}-01-01")
        Path(of_rules(folder, RULE, head=head)).rename(folder / f"our-{edition}.toml")
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    assert "our-2026" == with_edition("our")
    Path(of_rules(folder, RULE, head=A_POLICY.replace('"Ours"', '"Others"'))).rename(folder / "our-2-2026.toml")
    assert "our" == with_edition("our")


def test_policies_on_the_search_path_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in `policies/` there stands beside those that ship, and takes the place of none."""
    folder = tmp_path / "policies"
    folder.mkdir()
    of_rules(folder, RULE)
    (folder / "cnsa-2.0-2024-12.toml").write_text("nothing")
    monkeypatch.setenv("TOLLBAR_PATH", str(tmp_path))
    assert sorted([*shipped(), "ours-2026"]) == list(policies())
    assert "Ours" == policy("ours-2026").title
    assert "CNSA 2.0" == policy("cnsa-2.0-2024-12").title


PROJECT = """
policy = ["tlsref-intermediate-6.0", "ours-2026.toml"]

[uses.front]
family = "tls"
choice = "tls-1.3"
setting = { certificate = "ecdsa-p256", key-exchange = "x25519", cipher = "aes-128-gcm", client-certificate = "none" }
threats = ["eavesdropping"]
standing = "acceptable"

[uses.archive]
family = "digest"
choice = "sha-1"
standing = "acceptable"
"""


def project(folder: Path, text: str = PROJECT) -> Path:
    """A project's file, with a policy beside it."""
    of_rules(folder, RULE)
    path = folder / "tollbar.toml"
    path.write_text(text)
    return path


def test_a_project_is_checked_without_measuring(tmp_path: Path) -> None:
    """Each use by each policy and threat; a standing that fell is a finding, with who says so and where."""
    front, archive = check_project(read_project(project(tmp_path)), TODAY)
    assert [("tlsref-intermediate-6.0", Ruling.MEETS)] == [(one.policy.name, one.ruling) for one in front.judged]
    assert {"eavesdropping": (Ruling.MEETS, "")} == front.threats
    assert (Ruling.MEETS, None) == (front.ruling, front.fell)
    assert ["ours-2026"] == [one.policy.name for one in archive.judged]
    assert archive.fell is not None
    assert (Ruling.BREAKS, "broken", "SHA-1") == (archive.ruling, str(archive.standing), archive.fell.title)
    assert any("section 11" in one.where for one in archive.fell.authority)


def test_a_use_that_no_policy_speaks_of_is_not_passed_in_silence(tmp_path: Path) -> None:
    """It cannot be said, whatever its threats; a policy of its own is asked in any case."""
    text = PROJECT.replace('"digest"', '"mac"').replace('"sha-1"', '"hmac-sha-256"')
    _, archive = check_project(read_project(project(tmp_path, text)), TODAY)
    assert (Ruling.CANNOT_SAY, ()) == (archive.ruling, archive.judged)
    assert "no policy here has a rule on the family mac" == archive.missing
    # The newest edition, where none is named.
    for name in ("asvs-level-1-5.0.0", "asvs-level-1"):
        _, own = check_project(read_project(project(tmp_path, text + f'policy = "{name}"\n')), TODAY)
        assert (Ruling.MEETS, None) == (own.ruling, own.missing)
        assert ["asvs-level-1-5.0.0"] == [one.policy.name for one in own.judged]


def test_a_use_says_what_performs_it(tmp_path: Path) -> None:
    """A policy of a system's libraries rules on the provider: where that is not given, it cannot be said."""
    text = 'policy = ["fedora-default"]\n[uses.front]\nfamily = "tls"\nchoice = "tls-1.3"\nsetting = { SETTING }\n'
    said = 'certificate = "ecdsa-p256", key-exchange = "x25519", cipher = "aes-128-gcm", client-certificate = "none"'
    found = {}
    for provider in (None, "libcrypto", "aws-lc"):
        setting = f'{said}, provider = "{provider}"' if provider else said
        (front,) = check_project(read_project(project(tmp_path, text.replace("SETTING", setting))), TODAY)
        found[provider] = (str(front.ruling), *(one.why for one in front.judged[0].unknown))
    assert {
        None: ("cannot say", "provider is not given"),
        "libcrypto": ("meets",),
        "aws-lc": ("cannot say", "what governs a library that is not the system's"),
    } == found


BAD_PROJECTS = {
    "unknown policy": ("tlsref-intermediate-6.0", "tlsref-6.0", "no such policy", "`tlsref-"),
    "unknown choice": ('"tls-1.3"', '"tls-1.4"', "no such choice: `tls-1.4`", "`tls-1.3`"),
    "unknown setting": ("key-exchange =", "key-exchnage =", "no such setting", "`key-exchange`"),
    "unknown value": ('"x25519"', '"x25591"', "`x25591` is not one of", "`x25519`"),
    "unknown threat": ('"eavesdropping"', '"eavesdroping"', "no such threat", "`eavesdropping`"),
    "unknown standing": ('standing = "acceptable"', 'standing = "acceptible"', "no such value", "`acceptable`"),
    "a setting of another cell": ("client-certificate", "dh-parameters", "", "is not one of"),
}


@pytest.mark.parametrize("fault", BAD_PROJECTS)
def test_a_bad_project_is_refused_in_one_line(fault: str, tmp_path: Path) -> None:
    """With the file, the key, and the nearest right name."""
    find, replacement, words, hint = BAD_PROJECTS[fault]
    path = project(tmp_path, PROJECT.replace(find, replacement, 1))
    with pytest.raises(TollbarError) as caught:
        read_project(path)
    assert words in caught.value.what
    assert hint in caught.value.what + (caught.value.hint or "")
    assert "tollbar.toml" in (caught.value.where or "")


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    """`docs/choosing.md` has a policy and a project that hold: a reader may begin with them."""
    text = (Path(__file__).parents[1] / "docs" / "choosing.md").read_text("utf-8")
    blocks = [block.partition("```")[0] for block in text.split("```toml\n")[1:]]
    (ours,) = [block for block in blocks if block.startswith("[policy]")]
    (tmp_path / "ours-2026-11.toml").write_text(ours)
    found = policy(str(tmp_path / "ours-2026-11.toml"))
    assert ["groups"] == [rule.id for rule in found.rules]
    # Its exception is of something that breaks the rule, and is needed.
    (excepted,) = found.excepts
    for choice in excepted.where["choice"]:
        said = judged(found, families()["password-hash"], {"choice": choice}, TODAY)
        assert [(excepted.rule, excepted)] == [(one.rule.id, one.excepted) for one in said.findings if one.excepted]
        assert Ruling.MEETS is said.ruling
    (written,) = [block for block in blocks if "[uses." in block]
    (tmp_path / "tollbar.toml").write_text(written)
    assert [Ruling.MEETS] == [one.ruling for one in check_project(read_project(tmp_path / "tollbar.toml"), TODAY)]
