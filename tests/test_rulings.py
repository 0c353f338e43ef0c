"""Rulings on cells without costs: requirements in words, contradictions of policies, and the nearest cells."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tollbar.catalog.families import Value, cells_of, families
from tollbar.catalog.policies import Ruling
from tollbar.core.errors import TollbarError
from tollbar.decide.choosing import Choosing, chosen
from tollbar.decide.rulings import Wanted, candidate, wanted

TODAY = date(2026, 11, 23)


def asked(family: str, *policies: str, threats: tuple[str, ...] = (), on: str | None = None) -> Wanted:
    return wanted(family, policies, threats, on, today=TODAY)


def unpriced(want: Wanted, **given: tuple[Value, ...]) -> Choosing:
    cells = cells_of(want.family, {name.replace("_", "-"): some for name, some in given.items()})
    return chosen(want, {}, [candidate(want, cell) for cell in cells])


def choices(some: object) -> set[str]:
    return {str(one.coordinates["choice"]) for one in some}  # type: ignore[attr-defined]


def test_policies_that_contradict_each_other_are_named_with_both_clauses() -> None:
    """The first policy refuses ML-KEM by itself, the second everything else: nothing meets both."""
    found = unpriced(asked("key-exchange", "tr-02102-2026-01", "cnsa-2.0-2024-12"))
    assert () == found.qualifies
    (said,) = [one for one in found.contradictions if (one.rule.id, one.other_rule.id) == ("kem", "kem")]
    assert "in a hybrid" in said.rule.clause
    assert "ML-KEM-1024" in said.other_rule.clause
    assert ("tr-02102-2026-01", "cnsa-2.0-2024-12") == (said.policy, said.other_policy)


def test_a_rule_that_asks_for_what_is_not_there_contradicts_one_that_refuses_it() -> None:
    """CNSA's pure ML-KEM is no group of TLSRef's, whether Tollbar supports it or not."""
    found = unpriced(asked("tls", "cnsa-2.0-2024-12", "tlsref-intermediate-6.0", "asvs-level-2-5.0.0"))
    said = {(one.rule.id, one.other_policy, one.other_rule.id) for one in found.contradictions}
    assert ("tls-kem", "tlsref-intermediate-6.0", "groups") in said
    # Browsers' authorities do not issue certificates of ML-DSA-87.
    assert {("tls-sign", "asvs-level-1-5.0.0", "12.2.2")} == {one for one in said if one[1].startswith("asvs")}


@pytest.mark.parametrize(("on", "known"), [("2020-01-01", False), ("2025-01-01", False), ("2026-11-23", True)])
def test_before_its_edition_a_policy_says_and_contradicts_nothing(on: str, known: bool) -> None:
    """TR-02102 of January 2026 does not exist in 2025; CNSA does."""
    found = unpriced(asked("key-exchange", "tr-02102-2026-01", "cnsa-2.0-2024-12", on=on))
    assert known == bool(found.contradictions)
    assert () == found.qualifies
    for one in (*found.refused, *found.unsaid):
        by_tr, by_cnsa = one.judged
        assert known == bool(by_tr.findings)
        if not known:
            assert (Ruling.CANNOT_SAY, "this edition is dated 2026-01-") == (by_tr.ruling, (by_tr.missing or "")[:30])
        assert (on >= "2024-12") == bool(by_cnsa.findings)


def test_policies_that_only_differ_do_not_contradict_each_other() -> None:
    found = unpriced(asked("digest", "tr-02102-2026-01", "cnsa-2.0-2024-12"))
    assert {"sha-384", "sha-512"} == choices(found.qualifies)
    assert () == found.contradictions


def test_a_later_day_shows_what_drops_out_by_then() -> None:
    signatures = {"padding": ("pkcs1", "pss")}
    now = unpriced(asked("signature", "tr-02102-2026-01"), **signatures)
    in_2032 = unpriced(asked("signature", "tr-02102-2026-01", on="2032-01-01"), **signatures)
    expected = {"rsa-3072", "rsa-4096", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521"}
    assert expected == choices(now.qualifies) == choices(in_2032.qualifies)
    assert () == in_2032.dropping
    in_2036 = unpriced(asked("signature", "tr-02102-2026-01", on="2036-01-01"), **signatures)
    assert () == in_2036.qualifies
    assert expected == choices(in_2036.dropping)
    assert {"sign-2035"} == {r.rule.id for one in in_2036.dropping for r in one.broken if r.rule}


def test_where_nothing_qualifies_the_nearest_are_named() -> None:
    """Nearest means the fewest broken rules, then the fewest missing facts."""
    found = unpriced(asked("tls", "cnsa-2.0-2024-12"), certificate=("*",), cipher=("*",))
    assert () == found.qualifies
    assert {"tls-1.3"} == choices(found.nearest)
    assert {("ml-dsa-87", "aes-256-gcm")} == {
        (one.coordinates["certificate"], one.coordinates["cipher"]) for one in found.nearest
    }
    assert {("tls-kem",)} == {tuple(r.rule.id for r in one.broken if r.rule) for one in found.nearest}


@pytest.mark.parametrize(("client", "qualify"), [("none", 1), ("ml-dsa-87", 1), ("ecdsa-p256", 0)])
def test_tls_meets_cnsa_by_one_key_exchange_certificate_and_cipher(client: str, qualify: int) -> None:
    """ML-KEM-1024 alone, ML-DSA-87 on both sides, AES-256-GCM; no hybrid."""
    every = dict.fromkeys(("key-exchange", "certificate", "cipher"), ("*",))
    found = unpriced(asked("tls", "cnsa-2.0-2024-12"), **every, **{"client-certificate": (client,)})
    expected = {"choice": "tls-1.3", "key-exchange": "mlkem1024", "certificate": "ml-dsa-87", "cipher": "aes-256-gcm"}
    assert qualify == len(found.qualifies)
    for one in found.qualifies:
        assert expected.items() <= one.coordinates.items()


def test_silence_of_a_policy_is_no_yes() -> None:
    found = unpriced(asked("mac", "cnsa-2.0-2024-12"))
    assert () == found.qualifies + found.refused
    reasons = [one.missing[0] for one in found.unsaid]
    assert {("it has no rule on the family mac", None, None)} == {(one.what, one.rule, one.excepted) for one in reasons}


def test_the_cells_of_a_family_are_its_choices_with_these_values() -> None:
    """`*` expands to all values; a setting without a meaning makes no second cell; the null choice is left out."""
    family = families()["signature"]
    found = cells_of(family, {"choice": ("rsa-3072", "ed25519"), "padding": ("*",)})
    assert [("rsa-3072", "pkcs1"), ("rsa-3072", "pss"), ("ed25519", None)] == [
        (one["choice"], one.get("padding")) for one in found
    ]
    assert {*family.choices} - {family.null.name} == {str(one["choice"]) for one in cells_of(family, {})}


def test_a_cell_is_what_its_rulings_are() -> None:
    want = asked("digest", "asvs-level-1-5.0.0")
    found = unpriced(want)
    assert {Ruling.MEETS} == {one.ruling for one in found.qualifies}
    advised = {str(one.coordinates["choice"]) for one in found.qualifies if one.advice}
    assert {"sha-1", "sha-224"} == advised


BAD = {
    "family": (("digst", (), (), None), "`digest`"),
    "policy": (("digest", ("asvs-level-5.0.0",), (), None), "`asvs-level-"),
    "threat": (("digest", (), ("colision",), None), "`collision`"),
    "degree": (("digest", (), ("collision=part",), None), "`partly`"),
    "no threats": (("spin", (), ("collision",), None), "has no threats"),
    "year": (("digest", (), (), "2032"), "`2032-01-01`"),
    "month": (("digest", (), (), "2032-06"), "`2032-06-01`"),
    "day": (("digest", (), (), "2032-02-30"), "for example `--date 2032-01-01`"),
}


@pytest.mark.parametrize("fault", BAD)
def test_what_is_not_known_has_the_nearest_in_one_line(fault: str) -> None:
    (family, policies, threats, on), words = BAD[fault]
    with pytest.raises(TollbarError) as caught:
        wanted(family, policies, threats, on)
    line = f"{caught.value.what} {caught.value.hint or ''}"
    assert words in line
    assert "\n" not in line


def test_a_policy_of_ones_own_is_chosen_by(tmp_path: Path) -> None:
    path = tmp_path / "ours-1.toml"
    path.write_text(
        '[policy]\ntitle = "Ours"\nby = "Us"\nedition = "1"\ndate = 2026-01-01\nsource = "our handbook"\n'
        'seen = 2026-01-01\n[[rule]]\nid = "one"\nclause = "1"\nfamily = "digest"\nonly = { choice = ["sha3-*"] }\n'
        'unlisted = "not approved"\n'
    )
    assert {"sha3-256", "sha3-512"} == choices(unpriced(asked("digest", str(path))).qualifies)
