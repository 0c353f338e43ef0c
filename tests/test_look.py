"""A look at a server, judged: its facts by policy and standing, changes with the cells that price them, and words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pytest

from look_lab import STRONG, WEAK, look_of
from report_example import digests
from tollbar.catalog import families
from tollbar.catalog.policies import Ruling, policy, shipped
from tollbar.decide.look import offered
from tollbar.decide.look.document import document
from tollbar.decide.look.looked import Looked, looked, placed, questions
from tollbar.decide.look.offered import FACTS, Offered, judged
from tollbar.decide.look.pasted import approved, pasted
from tollbar.decide.look.proposed import Change
from tollbar.decide.look.words import KEYS, answer
from tollbar.decide.rulings import wanted
from tollbar.lab.tls.code_points import groups, suites
from tollbar.lab.tls.looking import Look, Prime
from tollbar.report.terminal import show_brief, show_brief_markdown
from tollbar.study import plan, read

TLSREF = "tlsref-intermediate"


def found(look: Look, *policies: str, on: str | None = None) -> Looked:
    return looked(look, wanted("tls", policies, (), on))


def breaking(of: Looked) -> dict[str, list[str]]:
    return {fact.setting: [one.value for one in fact.breaking] for fact in of.breaking}


def change(of: Looked, words: str) -> Change:
    (one,) = [one for one in of.changes if one.words == words]
    return one


def test_a_weak_server_breaks_the_policy_by_each_of_its_values() -> None:
    one = found(WEAK, TLSREF)
    assert {
        "choice": ["tls-1.1", "tls-1.0"],
        "key-exchange": ["rsa"],
        "cipher": ["3des-cbc", "aes-128-cbc"],
    } == breaking(one)
    assert one.breaks
    headline = answer(one).headline
    assert "breaks tlsref-intermediate-6.0 in 3 of 6 facts" in headline
    assert "TLS 1.1, TLS 1.0, RSA key exchange, 3DES-CBC and AES-128-CBC" in headline


def test_the_headline_has_the_price_of_a_required_change_before_that_of_an_improvement() -> None:
    toll = next(one for one in digests().tolls if one.ratio)
    of = found(WEAK, TLSREF)
    first = of.changes[0]
    better, needed = (
        replace(first, words=words, setting="certificate", is_needed=is_needed, toll=toll)
        for words, is_needed in (("offer tickets", False), ("remove RSA-1024", True))
    )
    exchange = replace(better, words="offer X25519", setting="key-exchange")
    assert " Remove RSA-1024: ×" in answer(replace(of, changes=(better, needed))).headline
    assert " Offer tickets: ×" in answer(replace(of, changes=(better,))).headline
    assert " Offer X25519: ×" in answer(replace(of, changes=(better, needed, exchange))).headline


def test_a_strong_server_meets_it() -> None:
    one = found(STRONG, TLSREF)
    assert {} == breaking(one)
    assert not one.breaks
    assert () == one.changes
    assert "meets tlsref-intermediate-6.0" in answer(one).headline


def test_an_incomplete_look_is_no_promise() -> None:
    unseen = replace(STRONG, doubts=["an offer of TLS 1.2 got no answer within 5 s"])
    for one in (found(unseen, TLSREF), found(unseen)):
        assert one.is_incomplete
        assert "the rest is unknown" in answer(one).headline
    whole = found(STRONG, TLSREF)
    assert not whole.is_incomplete
    assert "unknown" not in answer(whole).headline


def test_without_a_policy_standings_decide() -> None:
    one = found(WEAK)
    assert {"choice", "key-exchange", "cipher", "signature"} == {*breaking(one)}
    assert "4 of 6 facts" in answer(one).headline
    assert not found(STRONG).breaks


@pytest.mark.parametrize(
    ("policy", "setting", "value", "version", "ruling"),
    [
        # Values that the lab does not measure: listed by a policy, refused by name, or no better than a refused one.
        (TLSREF, "key-exchange", "ecdhe-p384", "tls-1.3", Ruling.MEETS),
        (TLSREF, "key-exchange", "ecdhe-p521", "tls-1.3", Ruling.BREAKS),
        (TLSREF, "choice", "ssl-3", "ssl-3", Ruling.BREAKS),
        ("asvs-level-1", "choice", "tls-1.0", "tls-1.0", Ruling.BREAKS),
        ("asvs-level-2", "cipher", "3des-cbc", "tls-1.2", Ruling.BREAKS),
        ("asvs-level-2", "cipher", "aes-256-cbc-sha-2", "tls-1.2", Ruling.CANNOT_SAY),
        ("bcp195", "choice", "tls-1.1", "tls-1.1", Ruling.BREAKS),
        ("bcp195", "key-exchange", "anon", "tls-1.2", Ruling.BREAKS),
        ("bcp195", "cipher", "3des-cbc", "tls-1.2", Ruling.CANNOT_SAY),
        ("tr-02102", "key-exchange", "brainpool-p256", "tls-1.3", Ruling.MEETS),
        ("tr-02102", "cipher", "aes-128-cbc-sha-2", "tls-1.2", Ruling.CANNOT_SAY),
        ("tr-02102", "cipher", "aes-256-cbc", "tls-1.2", Ruling.BREAKS),
        ("tr-02102", "cipher", "aria-128-gcm", "tls-1.2", Ruling.BREAKS),
        ("tr-02102", "cipher", "aes-128-ccm", "tls-1.2", Ruling.MEETS),
        ("fedora-default", "cipher", "aes-128-ccm-8", "tls-1.2", Ruling.BREAKS),
        ("fedora-default", "cipher", "aes-256-cbc", "tls-1.2", Ruling.MEETS),
        ("fedora-default", "key-exchange", "x448", "tls-1.3", Ruling.MEETS),
        ("fedora-default", "cipher", "rc4", "tls-1.2", Ruling.BREAKS),
        ("sp800-131a", "key-exchange", "ecdhe-p384", "tls-1.3", Ruling.MEETS),
        ("sp800-131a", "key-exchange", "ecdhe-p192", "tls-1.2", Ruling.BREAKS),
        ("cnsa-2.0", "key-exchange", "x25519mlkem768", "tls-1.3", Ruling.BREAKS),
    ],
)
def test_a_value_is_judged_by_its_policy(policy: str, setting: str, value: str, version: str, ruling: Ruling) -> None:
    assert ruling is judged(Offered(setting, value, version, value), wanted("tls", [policy])).ruling


def test_rules_that_approve_further_values_are_those_of_shipped_policies() -> None:
    known = {f"{name}:{rule.id}": rule for name in shipped() for rule in policy(name).rules}
    for row in offered._rows():
        for one in (*row.approved_by, *row.open):
            assert row.setting in {**known[one].only, **known[one].never}
        if row.no_better_than is not None:
            assert offered._is_measured(row.setting, row.no_better_than)


def test_every_value_that_a_look_may_see_is_judged() -> None:
    seen = [("key-exchange", one.value) for one in groups().values()]
    seen += [("key-exchange", one.key_exchange) for one in suites().values() if one.key_exchange not in ("", "ecdhe")]
    seen += [("cipher", one.cipher) for one in suites().values()]
    for setting, value in dict.fromkeys(seen):
        one = judged(Offered(setting, value, "tls-1.2", value), wanted("tls", [TLSREF]))
        assert one.standing is not None, value
        # A measured value has its authority in the family.
        assert (one.because is None) == (value in (families.family("tls").settings[setting].values or ()))


def test_each_change_has_the_cells_that_price_it_or_the_reason_why_not() -> None:
    one = found(WEAK, TLSREF)
    assert {
        "remove TLS 1.1 and TLS 1.0": True,
        "offer TLS 1.3": False,
        "remove RSA key exchange": True,
        "offer X25519MLKEM768 with TLS 1.3": False,
        "remove 3DES-CBC and AES-128-CBC": True,
        "remove rsa_pkcs1_sha1": False,
        "add a certificate with an ECDSA P-256 key": False,
        "offer tickets": False,
    } == {each.words: each.is_needed for each in one.changes}
    for each in one.changes:
        assert 1 == sum((each.pair is not None, each.free_for is not None, each.unpriced is not None)), each.words
    rsa = change(one, "remove RSA key exchange").pair
    assert rsa
    assert ("connect", "rsa", "ecdhe-p256") == (rsa.op, rsa.before["key-exchange"], rsa.after["key-exchange"])
    assert {"rsa-2048"} == {rsa.before["certificate"], rsa.after["certificate"]}
    cbc = change(one, "remove 3DES-CBC and AES-128-CBC").pair
    assert cbc
    assert ("request", "aes-128-cbc") == (cbc.op, cbc.before["cipher"])
    tickets = change(one, "offer tickets").pair
    assert tickets
    assert ("none", "ticket") == (tickets.before["resumption"], tickets.after["resumption"])
    for each in one.changes:
        for cell in (each.pair.before, each.pair.after) if each.pair else ():
            assert families.family("tls").why_unsupported(cell) is None


def test_a_server_without_an_approved_value_is_told_to_offer_one() -> None:
    look = look_of({"tls-1.2": ["AES128-SHA", "AES256-SHA"]}, of_groups={})
    one = found(look, TLSREF)
    assert change(one, "offer X25519, remove RSA key exchange").is_needed
    assert change(one, "offer AES-128-GCM, remove AES-128-CBC and AES-256-CBC").is_needed
    modern = found(look, "tlsref-modern")
    assert change(modern, "offer TLS 1.3 and remove TLS 1.2").is_needed
    assert change(modern, "replace RSA-2048 by ECDSA P-256").is_needed


def test_a_prime_is_judged_by_known_parameters_of_its_size() -> None:
    for bits, value in ((1024, "modp-1024"), (2047, "modp-1024"), (2048, "modp-2048"), (4096, "modp-4096")):
        look = look_of({"tls-1.2": ["DHE-RSA-AES128-GCM-SHA256"]}, of_groups={}, primes=[Prime(bits, None)])
        (fact,) = [one for one in found(look, "fedora-default").facts if one.setting == "key-exchange"]
        (one,) = fact.offered
        assert {"dh-parameters": value} == one.also
        assert (bits < 2048) == (one.ruling is Ruling.BREAKS)


@pytest.mark.parametrize(
    ("kind", "measured"), [("rsa-1536", "rsa-1024"), ("rsa-2560", "rsa-2048"), ("rsa-8192", "rsa-4096")]
)
def test_an_rsa_key_is_judged_by_the_next_smaller_one(kind: str, measured: str) -> None:
    look = look_of({"tls-1.3": ["TLS_AES_128_GCM_SHA256"]}, of_groups={"tls-1.3": ["x25519"]}, certificates=[kind])
    (fact,) = [one for one in found(look, TLSREF).facts if one.setting == "certificate"]
    assert (measured, kind.upper()) == (fact.offered[0].value, fact.offered[0].title)


def test_the_day_decides() -> None:
    look = look_of(
        {"tls-1.2": ["ECDHE-ECDSA-AES128-GCM-SHA256"]},
        of_groups={"tls-1.2": ["ecdhe-p256"]},
        certificates=["ecdsa-p256"],
    )
    assert not found(look, "tr-02102", on="2030-01-01").breaks
    assert {"choice": ["tls-1.2"], "key-exchange": ["ecdhe-p256"]} == breaking(found(look, "tr-02102", on="2032-01-01"))


def test_the_studies_of_prices_have_their_cells_alone() -> None:
    one = placed(found(WEAK, TLSREF), "nginx")
    asked = questions(one)
    assert {f"look-{each.server}-{each.pair.op}" for each in one.changes if each.pair} == {*asked}
    for name, question in asked.items():
        study = read(name, question.text(5), where=name)
        (planned,) = plan.make((study,), seed=0).studies
        cells = [
            cell
            for each in one.changes
            if each.pair and name == f"look-{each.server}-{each.pair.op}"
            for cell in (each.pair.before, each.pair.after)
        ]
        found_cells = [cell.coordinates for cell in planned.cells]
        assert all(any(cell.items() <= there.items() for there in found_cells) for cell in cells)
        assert len({frozenset(cell.items()) for cell in cells}) == len(found_cells)


@pytest.mark.parametrize("policy", [(), *((name,) for name in sorted(shipped()) if "tls" in name or "tr-" in name)])
def test_lines_to_paste_offer_approved_values_alone(policy: tuple[str, ...]) -> None:
    of = approved(wanted("tls", policy))
    known = {one.name: one for one in suites().values()}
    for name in (*of.suites, *of.suites_of_13):
        one = judged(Offered("cipher", known[name].cipher, of.versions[-1], name), wanted("tls", policy))
        assert Ruling.MEETS is one.ruling
    lines = pasted(of)
    for text in lines.values():
        assert all(suite in text for suite in of.suites_of_13)
        assert ":".join(of.groups) in text


def test_lines_to_paste_have_two_certificates() -> None:
    lines = pasted(approved(wanted("tls", [TLSREF])))
    assert {"nginx", "Apache", "HAProxy"} == {*lines}
    assert "ssl_protocols TLSv1.2 TLSv1.3;" in lines["nginx"]
    assert "ssl_ecdh_curve X25519MLKEM768:X25519:prime256v1:secp384r1;" in lines["nginx"]
    assert 2 == lines["nginx"].count("ssl_certificate ")
    assert 2 == lines["Apache"].count("SSLCertificateFile ")
    assert 2 == lines["HAProxy"].count("crt ")
    assert "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256" in lines["nginx"]
    assert all("# Smallest approved keys: ECDSA P-256 and RSA-2048.\n" in text for text in lines.values())
    modern = pasted(approved(wanted("tls", ["tlsref-modern"])))
    assert "ssl_ciphers" not in modern["nginx"]
    assert 1 == modern["nginx"].count("ssl_certificate ")


@pytest.mark.parametrize(
    ("policy", "keys"),
    [
        (["tr-02102"], ["ecdsa-p256", "rsa-3072"]),
        (["fedora-future"], ["ecdsa-p256", "rsa-3072"]),
        (["fedora-default"], ["ecdsa-p256", "rsa-2048"]),
        (["tlsref-intermediate", "tr-02102"], ["ecdsa-p256", "rsa-3072"]),
        (["tlsref-modern"], ["ecdsa-p256"]),
    ],
)
def test_lines_to_paste_name_the_smallest_approved_keys(policy: list[str], keys: list[str]) -> None:
    of = approved(wanted("tls", policy))
    assert keys == [*of.keys]
    for text in pasted(of).values():
        assert all(f"example-{key}.pem" in text for key in keys)


def test_the_answer_is_printed_with_rules_keys_and_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_brief(answer(found(WEAK, TLSREF)))
    said = capsys.readouterr().out
    assert "tls_versions: TLSv1.2, TLSv1.3" in said
    assert " ".join(KEYS.split()) in " ".join(said.split())
    # Lines are whole, however narrow the terminal is.
    assert "\nssl_protocols TLSv1.2 TLSv1.3;\n" in said
    show_brief_markdown(answer(found(WEAK, TLSREF)))
    assert "```\n# Smallest approved keys: " in capsys.readouterr().out


def test_a_certificate_controls_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    look = look_of(
        {"tls-1.3": ["TLS_AES_128_GCM_SHA256"]}, of_groups={"tls-1.3": ["x25519"]}, subject="\x1b[31mred\u202e"
    )
    show_brief(answer(found(look, TLSREF)))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_the_document_has_all_of_it() -> None:
    one = found(WEAK, TLSREF, on="2026-12-01")
    said = json.loads(document(one, answer(one)).model_dump_json(by_alias=True))
    assert 3 == said["schema"]
    assert said["breaks"]
    assert str(date(2026, 12, 1)) == said["on"]
    assert [*FACTS.values()] == [fact["fact"] for fact in said["facts"]]
    assert {"nginx", "Apache", "HAProxy"} == said["paste"].keys()
    assert "groups" in {
        reason["rule"] for fact in said["facts"] for each in fact["offered"] for reason in each["broken"]
    }
    assert "DES-CBC3-SHA" in said["suites"]["tls-1.2"]
