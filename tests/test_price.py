"""Pricing an inventory: broken rules, replacements, their costs; and the command."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builders import lognormal, measured, row, run, study, study_run
from conftest import Tollbar
from test_choosing import COSTS, digests, noisy
from test_inventory import SAMPLES, algorithm, asset, made
from tollbar.analysis import Verdict
from tollbar.catalog import families, policies
from tollbar.catalog.families import Value
from tollbar.catalog.policies import Ruling
from tollbar.core.errors import TollbarError
from tollbar.decide.price import price, pricing, to_measure
from tollbar.decide.price.document import document
from tollbar.decide.price.priced import Pricing
from tollbar.decide.price.words import brief
from tollbar.decide.rulings import Candidate, Wanted, candidate
from tollbar.report.numbers import NOISY
from tollbar.results import StudyRun

TODAY = date(2026, 11, 23)


def priced(*components: object, policy: tuple[str, ...] = ("asvs-level-2-5.0.0",), measured: bool = True) -> Pricing:
    """Price these components under these policies, by a run of digests."""
    runs = [run(digests())] if measured else []
    return price(made(*components), [policies.policy(name) for name in policy], TODAY, TODAY, runs)


def test_assets_times_rules_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = policies.policy("asvs-level-2-5.0.0").all_of_it
    rules = [rule for part in parts for rule in part.rules if "digest" in rule.families]
    both = [algorithm("MD5", "a"), algorithm("SHA-256"), algorithm("SHA-256", "b")]
    monkeypatch.setattr(pricing, "MOST_RULED", 2 * len(rules))
    assert priced(*both).lines, "alike assets count once"
    monkeypatch.setattr(pricing, "MOST_RULED", 2 * len(rules) - 1)
    with pytest.raises(TollbarError, match="different assets and the policies' rules on them make more than"):
        priced(*both)


def test_what_breaks_a_policy_is_replaced_by_the_cheapest_that_meets_it() -> None:
    found = priced(algorithm("MD5", "a"), algorithm("md5", "b"), algorithm("SHA-256"))
    worst, good = found.lines
    assert (Ruling.BREAKS, 2, Ruling.MEETS) == (worst.ruling, worst.count, good.ruling)
    (use,) = worst.uses
    assert ["sha-256", "sha-512"] == [one.coordinates["choice"] for one in use.replacements]
    (cost,) = use.costs
    assert Verdict.COSTS is cost.toll.verdict
    assert cost.toll.ratio is not None
    assert 1.33 == pytest.approx(cost.toll.ratio.estimate, rel=0.01)
    assert ("asvs-level-2-5.0.0", "11.2.3") in [(policy, rule) for policy, rule, _ in found.broken]
    assert {2} == {*found.broken.values()}
    assert () == good.uses[0].replacements


def test_assets_that_differ_beyond_a_family_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def counted(wanted: Wanted, cell: Mapping[str, Value]) -> Candidate:
        judged.append(cell)
        return candidate(wanted, cell)

    monkeypatch.setattr(pricing, "candidate", counted)
    suite = {"name": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "tlsGroups": [f"secp{n}r1" for n in range(900, 950)]}
    found = priced(asset("front", "protocol", type="tls", version="1.2", cipherSuites=[suite]))
    assert 50 == len({use.use.beyond for line in found.lines for use in line.uses})
    assert 1 == len(judged)


def test_what_was_not_measured_says_so() -> None:
    sha_1, cipher = priced(algorithm("SHA-1"), algorithm("3DES-CBC")).lines
    assert "sha-1 is not in the runs" == sha_1.uses[0].unpriced
    assert sha_1.uses[0].replacements
    assert "no run here has the family cipher" == cipher.uses[0].unpriced
    found = priced(algorithm("3DES-CBC"), algorithm("RSA-1024", primitive="signature"), measured=False)
    assert "no run has measured the family cipher" == found.lines[0].uses[0].unpriced
    questions = to_measure(found)
    assert {"cipher", "signature"} == {*questions}
    words = questions["cipher"].words("cipher", 2)
    assert ("3des-cbc", 4, "op=encrypt,decrypt") == (words[0], len(words), words[-1])


def test_what_a_load_client_spends_prices_nothing() -> None:
    """The load client's CPU time is not the server's."""
    of = digests()
    clients = replace(of, study=replace(of.study, measure=replace(of.study.measure, cost="client-cpu")))
    found = price(made(algorithm("MD5")), [policies.policy("asvs-level-2-5.0.0")], TODAY, TODAY, [run(clients)])
    (use,) = found.lines[0].uses
    assert "of the family digest the runs have the load client's CPU time alone" == use.unpriced
    assert () == use.replacements


def test_a_cost_as_disturbed_is_marked() -> None:
    of = noisy(digests(), *COSTS)
    found = price(made(algorithm("MD5")), [policies.policy("asvs-level-2-5.0.0")], TODAY, TODAY, [run(of)])
    assert [True] == [one.noisy for one in document(found).lines[0].uses[0].costs]
    (listing,) = (one for one in brief(found).listings if one.tables)
    assert listing.tables[0].rows[0][-1].says.endswith("~")
    assert [f"{NOISY}."] == listing.notes


def measured_of(name: str, costs: Sequence[tuple[Mapping[str, Value], float]]) -> StudyRun:
    """Return a run of cells of a family at these costs."""
    found = measured([1.0, *(cost for _, cost in costs)], lognormal(0.003), random.Random(7), blocks=20)[1:]
    rows = [row(at, cost) for (at, _), cost in zip(costs, found, strict=True)]
    return study_run(rows, (20,), replace(study(blocks=20), family=families.family(name)))


def tls(certificate: str, exchange: str, **settings: Value) -> Mapping[str, Value]:
    at = {"choice": "tls-1.2", "server": "httpd", "op": "connect", "certificate": certificate, "key-exchange": exchange}
    return {**at, "cipher": "aes-128-gcm", **settings}


def suite_priced(suite: str, *costs: tuple[Mapping[str, Value], float]) -> Pricing:
    front = asset("front", "protocol", type="tls", version="1.2", cipherSuites=[{"name": suite}])
    asked = [policies.policy("tlsref-intermediate-6.0")]
    return price(made(front), asked, TODAY, TODAY, [run(measured_of("tls", costs))])


def test_what_an_asset_leaves_open_is_the_same_on_both_sides() -> None:
    """A suite does not name its certificate: a cheaper one is no part of the replacement's cost."""
    own, other = (tls("rsa-2048", "rsa"), 2.0), (tls("ecdsa-p256", "ecdhe-p256"), 1.0)
    suite = "TLS_RSA_WITH_AES_128_GCM_SHA256"
    found = suite_priced(suite, own, other, (tls("rsa-2048", "ecdhe-p256"), 3.0))
    (use,) = found.lines[0].uses
    assert use.own is not None
    assert own[0].items() <= use.own.coordinates.items()
    assert tls("rsa-2048", "ecdhe-p256").items() <= use.replacements[0].coordinates.items()
    (cost,) = use.costs
    assert cost.toll.ratio is not None
    assert 1.5 == pytest.approx(cost.toll.ratio.estimate, rel=0.02)
    text = " ".join(f"{cell.says} {cell.small}" for cell in brief(found).listings[1].tables[0].rows[0])
    assert "TLS 1.2 · rsa-2048 · ecdhe-p256" in text
    assert "compared with TLS 1.2 · rsa-2048 · " in text
    said = document(found).lines[0].uses[0].own
    assert said is not None
    assert "rsa-2048" == said["certificate"]

    (use,) = suite_priced(suite, own, other).lines[0].uses
    assert ("`certificate` is not given", None, ()) == (use.unpriced, use.own, use.costs)


def test_what_is_not_given_and_not_by_default_is_not_made_up() -> None:
    """The group of a suite with DHE is unknown, and its replacement has none."""
    suite, good = "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", (tls("rsa-2048", "ecdhe-p256"), 1.0)
    for group, why in (("modp-1024", "`dh-parameters` is not given"), ("ffdhe2048", None)):
        own = tls("rsa-2048", "dhe", **{"dh-parameters": group})
        (use,) = suite_priced(suite, (own, 2.0), good).lines[0].uses
        assert (why, why is None) == (use.unpriced, bool(use.costs))


def test_the_place_is_that_of_the_usual_operation_and_provider() -> None:
    usual = families.family("signature").providers[0]
    ratios = {("elsewhere", "verify"): 7.0, ("elsewhere", "sign"): 5.0, (usual, "verify"): 3.0, (usual, "sign"): 2.0}
    costs = [
        ({"choice": choice, "provider": provider, "op": op, "digest": "sha-256"}, cost)
        for (provider, op), ratio in ratios.items()
        for choice, cost in (("rsa-1024", 1.0), ("ecdsa-p256", ratio))
    ]
    asked = [policies.policy("asvs-level-2-5.0.0")]
    inventory = made(algorithm("RSA-1024", primitive="signature"))
    (line,) = price(inventory, asked, TODAY, TODAY, [run(measured_of("signature", costs))]).lines
    (use,) = line.uses
    assert use.own is not None
    assert ["rsa-1024", "ecdsa-p256"] == [one.coordinates["choice"] for one in (use.own, *use.replacements)]
    assert {(usual, "sign")} == {(one.coordinates["provider"], one.coordinates["op"]) for one in use.replacements}
    assert [(usual, "sign"), (usual, "verify")] == [(one.where["provider"], one.where["op"]) for one in use.costs]
    found = [one.toll.ratio.estimate for one in use.costs if one.toll.ratio]
    assert [2.0, 3.0] == pytest.approx(found, rel=0.02)


OURS = """
[policy]
title = "ours"
by = "Us"
edition = "1"
date = 2026-01-01
source = "s"
seen = 2026-01-01
checked = true
unlisted = "not approved"
not-judged = []
[[rule]]
id = "hash"
clause = "1"
family = "digest"
only = { choice = [%s] }
"""


def test_what_is_in_bad_standing_replaces_nothing(tmp_path: Path) -> None:
    """The policy does not refuse it, so it meets the policy itself."""
    (tmp_path / "ours.toml").write_text(OURS % '"sha-1", "sha-256"', "utf-8")
    asked = [policies.policy(str(tmp_path / "ours.toml"))]
    runs = [run(digests({"md5": 3.0, "sha-1": 1.5, "sha-256": 4.0}))]
    worst, sha_1 = price(made(algorithm("MD5"), algorithm("SHA-1")), asked, TODAY, TODAY, runs).lines
    (use,) = worst.uses
    assert (["sha-256"], ("sha-256",)) == ([one.coordinates["choice"] for one in use.replacements], use.qualifying)
    assert Ruling.MEETS is sha_1.ruling


@pytest.mark.parametrize(("until", "ruling"), [("2027-06-30", Ruling.MEETS), ("2026-06-30", Ruling.BREAKS)])
def test_an_exception_is_said(tmp_path: Path, until: str, ruling: Ruling) -> None:
    excepted = f'[[except]]\nrule = "hash"\nwhere = {{ choice = "sha-1" }}\nbecause = "old keys"\nuntil = {until}\n'
    (tmp_path / "ours.toml").write_text(OURS % '"sha-256"' + excepted, "utf-8")
    found = price(made(algorithm("SHA-1")), [policies.policy(str(tmp_path / "ours.toml"))], TODAY, TODAY)
    (line,) = found.lines
    assert ruling is line.ruling
    cells = [cell for one in brief(found).listings for table in one.tables for row in table.rows for cell in row]
    (said,) = (cell.small for cell in cells if cell.small and until in cell.small)
    assert "old keys" in said
    (reason,) = document(found).lines[0].uses[0].reasons
    dates = (reason.excepted_until, reason.exception_ended)
    assert (date.fromisoformat(until), None)[:: 1 if ruling is Ruling.MEETS else -1] == dates


def test_what_is_chosen_by_other_than_cost_is_not_priced() -> None:
    """A password hash is tuned; cells that only servers perform are measured by a study."""
    suite = {"name": "TLS_RSA_WITH_AES_128_CBC_SHA"}
    front = asset("front", "protocol", type="tls", version="1.2", cipherSuites=[suite])
    found = priced(algorithm("bcrypt"), front, policy=("asvs-level-2-5.0.0", "tlsref-intermediate-6.0"), measured=False)
    assert {} == to_measure(found)


def test_uses_that_differ_cannot_be_said() -> None:
    """An RSA key may sign, which may meet the policy, or transport keys, which breaks it."""
    (line,) = priced(algorithm("RSA-3072", primitive="pke")).lines
    assert [Ruling.CANNOT_SAY, Ruling.BREAKS] == [use.ruling for use in line.uses]
    assert Ruling.CANNOT_SAY is line.ruling


def test_a_padding_that_was_not_measured_breaks_nothing() -> None:
    """The policy refuses weak paddings such as PKCS #1 v1.5; OAEP is not one of them."""
    found = priced(
        algorithm("RSA-3072-OAEP", primitive="pke", padding="oaep"),
        algorithm("RSAES-PKCS1-v1_5", parameterSetIdentifier="3072"),
        policy=("asvs-level-1-5.0.0",),
    )
    assert {"RSA-3072-OAEP": Ruling.CANNOT_SAY, "RSAES-PKCS1-v1_5": Ruling.BREAKS} == {
        line.name: line.ruling for line in found.lines
    }


@pytest.mark.parametrize(("hash_", "ruling"), [("SHA", Ruling.BREAKS), ("SHA256", Ruling.CANNOT_SAY)])
def test_a_mac_that_was_not_measured_breaks_nothing(hash_: str, ruling: Ruling) -> None:
    """The policy lists CBC with SHA-256, and none with SHA-1."""
    front = {"name": f"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_{hash_}", "tlsGroups": ["secp256r1"]}
    (line,) = priced(
        asset("front", "protocol", type="tls", version="1.2", cipherSuites=[front]), policy=("tr-02102-2026-01",)
    ).lines
    assert ruling is line.ruling


def test_what_a_family_has_not_keeps_a_verdict_open() -> None:
    """A suite whose cipher Tollbar does not have may break a rule that its other parts meet."""
    suite = {"name": "TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_GCM_SHA256", "tlsGroups": ["x25519"]}
    front = asset("front", "protocol", type="tls", version="1.2", cipherSuites=[suite])
    (line,) = priced(front, policy=("cnsa-2.0-2024-12",)).lines
    assert Ruling.BREAKS is line.ruling
    (line,) = priced(front, policy=("bcp195-2026-07",)).lines
    assert Ruling.CANNOT_SAY is line.ruling
    assert "cipher camellia is not listed" in [reason.what for reason in line.uses[0].reasons]


def test_a_standing_that_rests_on_what_is_not_given_is_not_claimed() -> None:
    """With an unknown key exchange a suite has its standing at best; a password hash has it by its settings."""
    front = asset("front", "protocol", type="tls", version="1.3", cipherSuites=[{"name": "TLS_AES_128_GCM_SHA256"}])
    found = priced(front, algorithm("scrypt"), algorithm("MD5"), policy=())
    assert [False, False, True] == [line.uses[0].is_standing_sure for line in found.lines]
    (table,) = brief(found).listings[0].tables
    assert ["at best recommended", "by its settings", "broken"] == [row[3].says for row in table.rows]


def test_a_policy_that_has_no_rule_on_a_family_is_not_asked() -> None:
    (line,) = priced(algorithm("MD5"), policy=("tlsref-modern-6.0",)).lines
    assert Ruling.CANNOT_SAY is line.ruling
    assert ["no policy here has a rule on the family digest"] == [one.what for one in line.uses[0].reasons]
    (line,) = priced(algorithm("MD5"), policy=("tlsref-modern-6.0", "asvs-level-2-5.0.0")).lines
    assert Ruling.BREAKS is line.ruling


def test_that_a_policy_does_not_govern_some_providers_keeps_no_asset_from_being_judged() -> None:
    """An inventory names no provider: each asset is judged as by a governed one, which is stated once."""
    fedora = ("fedora-future-2026-02",)
    found = priced(algorithm("MD5"), algorithm("SHA-256"), policy=fedora)
    worst, good = found.lines
    assert (Ruling.BREAKS, Ruling.MEETS, ()) == (worst.ruling, good.ruling, good.uses[0].reasons)
    (use,) = worst.uses
    assert {"sha-256", "sha-512"} == {one.coordinates["choice"] for one in use.replacements}
    assert use.costs
    said = "fedora-default-2026-02 (own-library) is undecided: the rules for a library that is not the system's."
    assert 1 == sum(said in one for one in brief(found).how)
    (rule,) = document(found).ungoverned
    assert ("fedora-default-2026-02", "own-library", True) == (rule.policy, rule.rule, "aws-lc*" in rule.providers)
    assert () == priced(algorithm("MD5")).of_providers
    # Dependences on other missing facts stay open.
    (line,) = priced(algorithm("RSA-3072", primitive="signature"), policy=fedora).lines
    assert Ruling.CANNOT_SAY is line.ruling
    assert ["digest is not given"] == [one.what for one in line.uses[0].reasons]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ('only = { provider = ["go"] }', "provider is not given"),
        # The rule would govern no remaining provider, and its statement covers some choices alone.
        ('where = { provider = ["*"] }\ncannot-say = "which it is"', "provider is not given"),
        ('where = { provider = ["go*"], choice = ["sha-*"] }\ncannot-say = "whose it is"', "provider is not given"),
    ],
)
def test_a_policy_that_asks_for_a_provider_is_not_said_to_be_met(tmp_path: Path, rule: str, reason: str) -> None:
    (tmp_path / "ours.toml").write_text(
        OURS % '"sha-256"' + f'[[rule]]\nid = "by"\nclause = "2"\nfamily = "digest"\n{rule}\n', "utf-8"
    )
    (line,) = price(made(algorithm("SHA-256")), [policies.policy(str(tmp_path / "ours.toml"))], TODAY, TODAY).lines
    assert Ruling.CANNOT_SAY is line.ruling
    assert [reason] == [one.what for one in line.uses[0].reasons]


def test_a_replacement_is_by_the_provider_of_what_it_replaces() -> None:
    """If a policy rules on providers, those of a run share a place, but one library's cost is not another's."""
    costs = [
        ({"choice": choice, "provider": provider, "op": "hash", "bytes": 4096}, cost)
        for provider, both in {"aws-lc": (1.0, 0.5), "libcrypto": (3.0, 6.0)}.items()
        for choice, cost in zip(("md5", "sha-256"), both, strict=True)
    ]
    asked = [policies.policy("fedora-default-2026-02")]
    (line,) = price(made(algorithm("MD5")), asked, TODAY, TODAY, [run(measured_of("digest", costs))]).lines
    (use,) = line.uses
    assert use.own is not None
    assert ["libcrypto"] * 2 == [one.coordinates["provider"] for one in (use.own, *use.replacements)]
    (cost,) = use.costs
    assert cost.toll.ratio is not None
    assert 2.0 == pytest.approx(cost.toll.ratio.estimate, rel=0.02)


def test_policies_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    for name, only in (("one", "sha-256"), ("other", "sha-512")):
        (tmp_path / f"{name}.toml").write_text(
            f'[policy]\ntitle = "{name}"\nby = "Us"\nedition = "1"\ndate = 2026-01-01\nsource = "s"\n'
            'seen = 2026-01-01\nchecked = true\nunlisted = "not approved"\nnot-judged = []\n'
            f'[[rule]]\nid = "hash"\nclause = "{name} 1"\nfamily = "digest"\nonly = {{ choice = ["{only}"] }}\n',
            "utf-8",
        )
    found = priced(algorithm("MD5"), policy=tuple(str(tmp_path / f"{name}.toml") for name in ("one", "other")))
    ((family, both),) = found.contradictions
    assert ("digest", "one 1", "other 1") == (family.name, both.rule.clause, both.other_rule.clause)
    assert "nothing of the family digest is known to meet the policies" == found.lines[0].uses[0].unpriced
    assert "contradict" in brief(found).listings[1].title


def test_the_day_decides() -> None:
    inventory, policy = made(algorithm("X25519")), [policies.policy("tr-02102-2026-01")]
    rules = [
        {rule for _, rule, _ in price(inventory, policy, day, TODAY).broken} for day in (TODAY, date(2032, 1, 1))
    ]  # fmt: skip
    assert "kx-2031" not in rules[0]
    assert "kx-2031" in rules[1]


def test_words_and_document_say_the_same() -> None:
    found = priced(algorithm("MD5"), algorithm("AES"), algorithm("SHA-256"))
    said, made_ = brief(found), document(found)
    assert "3 assets in 3 rows: 1 breaks a policy" in said.headline
    assert {"breaks": 1, "cannot say": 1, "meets": 1} == made_.rulings
    titles = [one.title for one in said.listings]
    assert ["Broken rules", "Breaks a policy", "Undecided"] == titles[:3]
    (table,) = said.listings[1].tables
    columns = [column.title for column in table.columns]
    assert ["asset", "assets", "known as", "standing", "replacement", "cost ratio"] == columns
    text = " ".join(f"{cell.says} {cell.small}" for cell in table.rows[0])
    for part in ("MD5", "broken", "does not protect against collision", "11.2.3", "SHA-256", "[1.", "costs more"):
        assert part in text
    assert ["sha-256", "sha-512"] == [one["choice"] for one in made_.lines[0].uses[0].replacements]
    assert "no" == made_.lines[0].uses[0].mitigates["collision"]


def test_without_a_policy_standings_are_shown_and_nothing_is_priced() -> None:
    """Assets without an applicable rule meet nothing."""
    found = priced(algorithm("MD5"), policy=())
    # An asset without an applicable rule meets nothing.
    assert (0, 1) == (found.count(Ruling.MEETS), found.count(Ruling.CANNOT_SAY))
    assert "cannot say" == document(found).lines[0].uses[0].ruling
    said = brief(found)
    assert "judged by no policy" in said.headline
    assert "Known here" == said.listings[0].title
    assert "no cryptographic asset" in brief(priced({"type": "library", "name": "x"})).headline


@pytest.mark.parametrize("layout", [["--json"], ["--markdown"], []])
def test_the_command_answers_without_measuring(tollbar: Tollbar, tmp_path: Path, layout: list[str]) -> None:
    component = algorithm("MD5") | {
        "evidence": {"occurrences": [{"location": "<script>alert(1)</script>\x1b[31m | x"}]}
    }
    content = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [component]}
    (tmp_path / "cbom.json").write_text(json.dumps(content), "utf-8")
    options = ["--policy", "asvs-level-2", "--for", "0s", "--output", "page.html", *layout]
    done = tollbar("price", "cbom.json", *options)
    assert 0 == done.returncode, done.stderr
    assert "\x1b" not in done.stdout
    assert "11.2.3" in done.stdout
    assert "<script>alert" not in (tmp_path / "page.html").read_text("utf-8")
    if "--json" in layout:
        assert 1 == json.loads(done.stdout)["rulings"]["breaks"]


def test_the_command_measures_what_is_to_be_replaced(tollbar: Tollbar, tmp_path: Path) -> None:
    content = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [algorithm("MD5")]}
    (tmp_path / "cbom.json").write_text(json.dumps(content), "utf-8")
    asked = ("price", "cbom.json", "--policy", "cnsa-2.0-2024-12", "--json")
    done = tollbar(*asked, "--for", "2s")
    assert 0 == done.returncode, done.stderr
    first = json.loads(done.stdout)
    assert first["lines"][0]["uses"][0]["costs"][0]["ratio"] > 0
    again = tollbar(*asked, "--run", Path("runs") / first["runs"][0])
    use = json.loads(again.stdout)["lines"][0]["uses"][0]
    # They are the same work, so that either may come first.
    replacements = {one["choice"] for one in use["replacements"]}
    assert replacements
    assert replacements <= {"sha-384", "sha-512"}


def test_bad_input_is_one_line(tollbar: Tollbar, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("<bom/>", "utf-8")
    sample = SAMPLES[0]
    for arguments, said in (
        (["none.json"], "No such file"),
        (["bad.json"], "XML"),
        ([sample, "--policy", "asvs-levl-2"], "did you mean"),
        ([sample, "--date", "2032-01"], "2032-01-01"),
        ([sample, "--run", "nowhere"], "nowhere"),
    ):
        done = tollbar("price", *arguments)
        assert 2 == done.returncode
        assert said in done.stderr
        assert "Traceback" not in done.stderr
