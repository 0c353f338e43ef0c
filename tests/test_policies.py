"""Policies: shipped files never change and match the review; rules of a file are judged one by one."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import pytest

from policy_lab import A_POLICY, TODAY, of_rules
from policy_table import table
from tollbar.catalog.families import families
from tollbar.catalog.policies import Judged, Ruling, check, judged, policy, shipped

GOLDEN = Path(__file__).parent / "golden"


def test_a_policy_that_has_shipped_is_never_changed() -> None:
    """A new edition is a new file: each file keeps its content, and none is removed."""
    expected = dict(reversed(line.split()) for line in (GOLDEN / "policies.sha256").read_text().splitlines())
    assert expected == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in shipped().values()}


def test_shipped_policies_say_of_every_choice_what_was_reviewed() -> None:
    # A change of a family or of judging shows here: review the difference, then write the table again
    # (policy_table.py).
    assert (GOLDEN / "policies.txt").read_text() == table() + "\n"


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_policy_names_what_there_is(name: str) -> None:
    found = policy(name)
    check(found, name)
    assert name == found.name
    assert found.rules
    for part in found.all_of_it:
        for rule in part.rules:
            assert rule.clause
            assert rule.source
        assert "compliant" not in shipped()[part.name].read_text().lower()


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


def said(folder: Path, rule: str, family: str = "digest", *, on: date = TODAY, **cell: str | int) -> Judged:
    """Return the ruling of a policy with this one rule on a cell."""
    path = of_rules(folder, rule if "family" in rule else f'family = "{family}"\n{rule}')
    named = {name.replace("_", "-"): value for name, value in cell.items()}
    return judged(policy(path), families()[family], named, on)


OF_AWS, NO_AWS = 'where = { provider = "aws-lc*" }\ncannot-say = "whose it is"', 'never = { provider = ["aws-lc*"] }'
NO_SHORT_DH = 'never = { dh-parameters = ["modp-1024"] }'
HASHED_BEFORE: dict[str, str | int] = {"choice": "ecdsa-p256", "digest": "none"}
# A rule, the cell (its family first), the ruling, and words of the reason.
RULES: list[tuple[str, str, dict[str, str | int], str, str]] = [
    ('only = { choice = ["sha-*"] }', "digest", {"choice": "sha-256"}, "meets", ""),
    ('unlisted = "not approved"\nonly = { choice = ["sha-*"] }', "digest", {"choice": "blake3"}, "breaks", "is not"),
    ('only = { choice = ["sha-*"] }', "digest", {"choice": "blake3"}, "cannot say", "blake3 is not listed"),
    ('never = { choice = ["md5"] }', "digest", {"choice": "md5"}, "breaks", "md5 is refused"),
    ("strength = 128", "digest", {"choice": "sha-224"}, "breaks", "112 bits, under 128"),
    ("strength = 128", "digest", {"choice": "sha-256"}, "meets", ""),
    ("strength = 128", "password-hash", {"choice": "bcrypt"}, "cannot say", "its strength in bits"),
    ("strength = 112", "tls", {"choice": "tls-1.3", "certificate": "rsa-1024"}, "breaks", "80 bits"),
    ("strength = 112", "tls", {"choice": "tls-1.3", "certificate": "ecdsa-p256"}, "cannot say", "key-exchange and"),
    ('standing = "acceptable"', "digest", {"choice": "md5"}, "breaks", "broken, below acceptable"),
    ('standing = "acceptable"', "digest", {"choice": "sha-224"}, "meets", ""),
    ('mitigates = { collision = "yes" }', "digest", {"choice": "sha-256"}, "meets", ""),
    ('mitigates = { collision = "yes" }', "digest", {"choice": "md5"}, "breaks", "two inputs with the same digest"),
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
    ('never = { server = ["nginx"] }', "tls", {"choice": "tls-1.3"}, "cannot say", "server is not given"),
    ('never = { server = ["nginx"] }', "digest", {"choice": "sha-256"}, "cannot say", "no rule on this"),
    ('where = { op = "sign" }\nstrength = 128', "signature", {"choice": "rsa-2048"}, "cannot say", "op is not given"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.2"}, "cannot say", "dh-parameters is not given"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.3"}, "cannot say", "no rule on this"),
    (NO_SHORT_DH, "tls", {"choice": "tls-1.2", "key-exchange": "x25519"}, "cannot say", "no rule on this"),
    ('never = { digest = ["sha-1"] }', "signature", HASHED_BEFORE, "cannot say", "digest none: the earlier hash"),
    ('only = { digest = ["sha-*"] }', "signature", HASHED_BEFORE, "cannot say", "digest none: the earlier hash"),
    ('where = { digest = "sha-1" }\nstrength = 192', "signature", HASHED_BEFORE, "cannot say", "digest none: the"),
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
    rule, family, cell, ruling, why = case
    found = said(tmp_path, rule, family, **cell)
    assert Ruling(ruling) is found.ruling
    words = [found.missing or "", *(one.why for one in (*found.broken, *found.unknown))]
    assert why in " ".join(words)
    if found.ruling is Ruling.MEETS:
        assert not any(words)


def test_advice_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    found = said(tmp_path, 'should = true\nnever = { choice = ["md5"] }', choice="md5")
    assert [("r0", "md5 is refused")] == [(one.rule.id, one.why) for one in found.advice]


def test_a_rule_holds_from_its_first_day_to_its_last(tmp_path: Path) -> None:
    rule = 'never = { choice = ["sha-1"] }\nfrom = 2027-01-01\nuntil = 2027-12-31'
    days = {date(2026, 12, 31): "cannot say", date(2027, 1, 1): "breaks", date(2027, 12, 31): "breaks"}
    days[date(2028, 1, 1)] = "cannot say"
    assert days == {on: str(said(tmp_path, rule, on=on, choice="sha-1").ruling) for on in days}
    assert (date(2027, 1, 1), date(2028, 1, 1)) == policy(of_rules(tmp_path, rule)).turns
    before = said(tmp_path, 'never = { choice = ["md5"] }', on=date(2025, 12, 31), choice="md5")
    assert (Ruling.CANNOT_SAY, "this edition is dated 2026-01-01") == (before.ruling, before.missing)


def test_what_is_extended_must_be_met_too(tmp_path: Path) -> None:
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
    """A local policy may be older than the one it extends: its own rules count all the same."""
    head = A_POLICY.replace("2026-01-01", "2025-01-01") + 'extends = ["asvs-level-1-5.0.0"]\n'
    ours = policy(of_rules(tmp_path, 'never = { choice = ["sha-224"] }', head=head))
    digest, on = families()["digest"], date(2025, 5, 29)
    before = judged(ours, digest, {"choice": "md5"}, on)
    expected = (Ruling.CANNOT_SAY, "it extends asvs-level-1-5.0.0, which is dated 2025-05-30")
    assert expected == (before.ruling, before.missing)
    assert Ruling.BREAKS is judged(ours, digest, {"choice": "sha-224"}, on).ruling
    assert Ruling.BREAKS is judged(ours, digest, {"choice": "md5"}, date(2025, 5, 30)).ruling


@pytest.mark.parametrize(
    ("choice", "setting", "ruling"),
    [
        ("argon2id", {"memory": 1 << 20}, "breaks"),
        ("argon2id", {"memory": 46 << 20}, "cannot say"),
        ("argon2id", {"passes": 1}, "cannot say"),
        ("scrypt", {"n": 1024}, "breaks"),
        ("scrypt", {"r": 1}, "breaks"),
        ("scrypt", {"p": 1}, "cannot say"),
        ("scrypt", {"n": 1 << 17, "p": 1}, "cannot say"),
        ("scrypt", {"n": 1 << 15, "p": 1}, "breaks"),
        ("pbkdf2-sha-256", {"iterations": 1000}, "breaks"),
    ],
)
def test_one_parameter_that_is_too_small_for_each_set_breaks_the_rule(
    choice: str, setting: dict[str, int], ruling: str
) -> None:
    asked = policy("asvs-level-2-5.0.0")
    cell = {"choice": choice, **setting}
    assert ruling == judged(asked, families()["password-hash"], cell, date(2026, 11, 23)).ruling
