"""Candidates of `choose`: cells that are considered, and cells that are measured."""

from __future__ import annotations

import pytest

from policy_lab import asked
from tollbar import study
from tollbar.catalog.families import Value, families, is_answer, is_default
from tollbar.catalog.policies import Ruling
from tollbar.decide.candidates import MOST_APART, deciding, nearby
from tollbar.report.ways import of_default
from tollbar.study import plan


def test_what_policies_rule_on_and_threats_depend_on_is_varied() -> None:
    assert ("certificate", "key-exchange", "cipher") == deciding(asked("tls", "tlsref-intermediate"))
    assert ("key-exchange",) == deciding(asked("tls", threats=("harvest-now-decrypt-later",)))
    assert () == deciding(asked("tls"))


def test_candidates_are_near_what_meets_and_the_nearest_are_measured_first() -> None:
    """At most two settings differ; both TLS versions are among the first; a third of the places is for the others."""
    found = nearby(asked("tls", "tlsref-intermediate"), {"server": ("nginx",)})
    base = {"certificate": "ecdsa-p256", "key-exchange": "x25519", "cipher": "aes-128-gcm"}
    for one in found.candidates:
        assert MOST_APART >= sum(one.coordinates[name] != value for name, value in base.items())
    some = found.to_measure(12)
    assert 12 == len(some)
    assert 8 == sum(one.ruling is Ruling.MEETS for one in some)
    meet = [one.coordinates for one in some if one.ruling is Ruling.MEETS]
    assert {"tls-1.2", "tls-1.3"} == {one["choice"] for one in meet}
    # Every setting varies, so that the cost of each is seen.
    assert all(len({one[name] for one in meet}) > 1 for name in base)


def test_a_threat_leaves_only_what_mitigates_it() -> None:
    found = nearby(asked("tls", "tlsref-intermediate", threats=("harvest-now-decrypt-later",)), {"server": ("nginx",)})
    qualify = [one.coordinates for one in found.candidates if one.ruling is Ruling.MEETS]
    assert {("tls-1.3", "x25519mlkem768")} == {(at["choice"], at["key-exchange"]) for at in qualify}


def test_what_cannot_be_had_is_nothing_to_choose_from() -> None:
    """TLS 1.2 has no hybrid groups and no ML-DSA; TLS 1.3 has no CBC."""
    want = asked("tls", "tlsref-intermediate", threats=("harvest-now-decrypt-later",))
    found = nearby(want, {"server": ("nginx",)})
    assert {None} == {want.family.why_unsupported(one.coordinates) for one in found.candidates}
    assert {"tls-1.2", "tls-1.3"} == {str(one.coordinates["choice"]) for one in found.candidates}
    none = nearby(want, {"choice": ("tls-1.2",), "key-exchange": ("x25519mlkem768",)})
    assert () == none.candidates
    assert "TLS 1.2 has no hybrid groups" in (none.refusal or "")


def test_a_default_in_bad_standing_is_set_well_unless_it_is_given() -> None:
    """A password sent in the clear never qualifies; over TLS it may."""
    found = nearby(asked("web-auth", threats=("database-theft=partly",)), {"server": ("embedded",)})
    forms = [one for one in found.candidates if one.coordinates["choice"] == "form"]
    assert {"tls"} == {one.coordinates["transport"] for one in forms}
    given = nearby(asked("web-auth"), {"server": ("embedded",), "transport": ("clear",), "choice": ("form",)})
    assert {Ruling.BREAKS} == {one.ruling for one in given.candidates}


def test_the_study_measures_these_cells_and_no_others() -> None:
    found = nearby(asked("tls", "tlsref-intermediate"), {"server": ("nginx",)})
    cells = [found.cell(one) for one in found.to_measure(9)]
    question = study.of_candidates(asked("tls").family, ["server=nginx"], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    names = cells[0].keys()
    assert {tuple(cell[n] for n in names) for cell in cells} == {
        tuple(cell.coordinates[n] for n in names) for cell in planned.cells
    }
    (baseline,) = {cell.against for cell in planned.cells}
    assert baseline in {cell.key for cell in planned.cells}


def test_what_a_policy_says_of_providers_is_judged_as_it_will_be_measured() -> None:
    """Fedora's policies concern the system's libraries: the provider that meets them is measured."""
    want = asked("tls", "fedora-default")
    given: dict[str, tuple[str, ...]] = {"server": ("embedded",)}
    found = nearby(want, given, lambda cell: study.performing(want.family, cell))
    assert {"libcrypto"} == {one.coordinates["provider"] for one in found.candidates}
    assert Ruling.MEETS is found.candidates[0].ruling
    cells = [found.cell(one) for one in found.to_measure(6)]
    question = study.of_candidates(want.family, ["server=embedded"], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    assert {"libcrypto"} == {cell.provider.spec for cell in planned.cells}
    assert {str(one["certificate"]) for one in cells} == {str(c.coordinates["certificate"]) for c in planned.cells}
    of_aws = nearby(want, {**given, "provider": ("aws-lc",)}, lambda cell: study.performing(want.family, cell))
    assert Ruling.CANNOT_SAY is of_aws.candidates[0].ruling
    assert "the rules for a library that is not the system's" in {one.what for one in of_aws.candidates[0].missing}
    unknown = nearby(want, given)
    assert Ruling.CANNOT_SAY is unknown.candidates[0].ruling
    assert {"provider is not given"} == {one.what for one in unknown.candidates[0].missing}


def test_each_choice_has_a_provider_of_its_own_where_a_policy_rules_on_them() -> None:
    want = asked("digest", "fedora-default")
    found = nearby(want, {}, lambda cell: {"sha-256": ["aws-lc", "libcrypto"]}.get(str(cell["choice"]), ["rustcrypto"]))
    by = {str(one.coordinates["choice"]): (one.coordinates["provider"], str(one.ruling)) for one in found.candidates}
    expected = {
        "sha-256": ("libcrypto", "meets"),
        "blake3": ("rustcrypto", "breaks"),
        "sha-512": ("rustcrypto", "cannot say"),
    }
    assert expected == {name: by[name] for name in expected}
    cells = [found.cell(one) for one in found.candidates if one.coordinates["choice"] in expected]
    question = study.of_candidates(want.family, [], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    assert {(name, provider) for name, (provider, _) in expected.items()} == {
        (cell.choice.name, cell.provider.spec) for cell in planned.cells
    }


def test_a_provider_is_no_matter_where_no_policy_rules_on_it() -> None:
    found = nearby(asked("digest", "asvs-level-2"), {}, lambda cell: ["aws-lc"])
    assert {False} == {"provider" in one.coordinates for one in found.candidates}


def test_what_is_done_elsewhere_is_not_varied_to() -> None:
    """Signing a prehashed message is less work than hashing and signing, and the provider does not show which."""
    want = asked("signature", "tr-02102")
    varied = {one.coordinates.get("digest") for one in nearby(want, {}).candidates}
    assert {"sha-1", "sha-256", "sha-384", "sha-512", None} == varied
    given = nearby(want, {"digest": ("none",), "choice": ("ecdsa-p256", "rsa-3072")}).candidates
    assert {"none"} == {one.coordinates["digest"] for one in given}
    assert {("ecdsa-p256", None), ("rsa-3072", "pkcs1")} == {
        (one.coordinates["choice"], one.coordinates.get("padding")) for one in given
    }
    (curve,) = [one for one in given if one.coordinates["choice"] == "ecdsa-p256"]
    assert ["digest none: the earlier hash is not seen here"] == [one.what for one in curve.missing]


@pytest.mark.parametrize(
    ("words", "op"), [((), "sign"), (("op=verify",), "verify"), (("op=generate-key",), "generate-key")]
)
def test_the_operation_is_one_to_which_what_is_varied_means_something(words: tuple[str, ...], op: str) -> None:
    """A policy rules on the signed digest, so key generation, though listed first, is not the operation."""
    want = asked("signature", "tr-02102")
    given: dict[str, tuple[str, ...]] = {"op": (op,)} if words else {}
    found = nearby(want, given)
    question = study.of_candidates(want.family, words, [found.cell(one) for one in found.to_measure(12)])
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    assert {op} == {cell.coordinates["op"] for cell in planned.cells}
    assert (op != "generate-key") == any("digest" in cell.coordinates for cell in planned.cells)


def test_given_parameters_are_judged_and_measured_as_given() -> None:
    want = asked("password-hash", "owasp-password-storage")
    given: dict[str, tuple[Value, ...]] = {"choice": ("argon2id",), "memory": (1 << 20, 19 << 20), "passes": (2,)}
    found = nearby(want, given)
    rulings = {one.coordinates["memory"]: one.ruling for one in found.candidates}
    assert {1 << 20: Ruling.BREAKS, 19 << 20: Ruling.MEETS} == rulings
    cells = [found.cell(one) for one in found.to_measure(2)]
    question = study.of_candidates(want.family, ["memory=1MiB,19MiB", "passes=2"], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    of_choice = [cell for cell in planned.cells if cell.choice.name == "argon2id"]
    assert {1 << 20, 19 << 20} == {cell.coordinates["memory"] for cell in of_choice}
    assert {2} == {cell.coordinates["passes"] for cell in of_choice}
    alone = study.of_candidates(want.family, ["memory=19MiB"], [cells[0]])
    assert {"choice": "none"} == alone.tables[""]["baseline"]
    refused = nearby(want, {"choice": ("argon2id",), "memory": (8 << 10,), "lanes": (4,)})
    assert not refused.candidates
    assert "need" in str(refused.refusal)


@pytest.mark.parametrize("family", sorted(name for name, one in families().items() if one.default))
def test_of_a_few_the_default_is_measured_first_and_all_qualify(family: str) -> None:
    """Without time for more candidates, the family's default is still measured."""
    want = asked(family)
    found = nearby(want, {})
    first, *others = found.to_measure(2)
    assert is_default(want.family, first.coordinates, {"choice", *want.family.parameters})
    qualify = sum(one.ruling is Ruling.MEETS for one in found.candidates)
    assert min(2, qualify) == sum(one.ruling is Ruling.MEETS for one in (first, *others))


@pytest.mark.parametrize("family", sorted(families()))
def test_what_is_never_an_answer_is_no_candidate(family: str) -> None:
    """An empty trust store costs least, and a client with it refuses every server."""
    want = asked(family)
    assert all(is_answer(want.family, str(one.coordinates["choice"])) for one in nearby(want, {}).candidates)


def test_an_empty_trust_store_is_no_candidate() -> None:
    (only,) = nearby(asked("tls-client"), {}).candidates
    assert "system-trust" == only.coordinates["choice"]


def test_the_default_of_the_family_is_among_the_candidates_unless_it_is_excluded() -> None:
    """Its settings may be others than the usual ones: TLS 1.3 with the hybrid."""
    for name, family in families().items():
        if family.default is None:
            continue
        want = asked(name)
        found = [one.coordinates for one in nearby(want, {}).candidates]
        assert any(is_default(family, at, of_default(family)) for at in found), name
    found = [one.coordinates for one in nearby(asked("tls"), {"key-exchange": ("x25519",)}).candidates]
    assert {"x25519"} == {at["key-exchange"] for at in found}
