"""`choose`: which cells come into question, what is measured of them, and the answer in all its layouts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from conftest import FAKE_RUNNER, Tollbar
from test_choosing import COSTS, digests
from tollbar import plan, study
from tollbar.cli.choose import choose as command
from tollbar.cli.options import Layout
from tollbar.document.decisions.choose import made
from tollbar.errors import ExitStatus, TollbarError
from tollbar.families import Standing, family
from tollbar.judge.candidates import MOST_APART, deciding, nearby
from tollbar.judge.choosing import Candidate, Wanted, choose, wanted
from tollbar.policies import Ruling, with_edition
from tollbar.present.decisions import page_of
from tollbar.present.decisions.choose import Answered, answer
from tollbar.present.page import Brief
from tollbar.stats import FEWEST_BLOCKS

TODAY = date(2026, 11, 23)


def asked(family: str, *policies: str, threats: tuple[str, ...] = (), on: str | None = None) -> Wanted:
    return wanted(family, policies, threats, on, today=TODAY, standing=Standing.ACCEPTABLE)


def answered(want: Wanted) -> tuple[Answered, Brief]:
    found = Answered(want, choose(want, digests(), {}), (), "from a run")
    return found, answer(found)


def text_of(brief: Brief) -> str:
    """All that it says."""
    parts = [brief.headline, *brief.how, *brief.notes]
    for one in brief.listings:
        parts += [one.title, *one.sentences, *one.notes]
        parts += [f"{cell.says} {cell.small or ''}" for table in one.tables for row in table.rows for cell in row]
    return "\n".join(parts)


def test_the_answer_names_the_cheapest_that_qualifies_and_why_others_do_not() -> None:
    """With places, ratios, rules by id, and below their clauses."""
    found, brief = answered(asked("digest", "asvs-level-2"))
    assert brief.headline.startswith("blake3 costs least of the 4 that qualify and were measured: ")
    qualifying, refused = brief.listings[:2]
    assert ["1", "2", "", "4", "–"] == [row[0].says for row in qualifying.tables[0].rows]
    assert {"md5", "sha-224"} == {row[0].says for row in refused.tables[0].rows}
    (md5,) = [row for row in refused.tables[0].rows if row[0].says == "md5"]
    assert "md5 is refused (11.4.1-digest)" in (md5[0].small or "")
    said = text_of(brief)
    assert "asvs-level-1-5.0.0: `11.4.1-digest`, 11.4.1 and Appendix C: only approved hash functions" in said
    assert "not measured: the runner fell over" in said
    assert found.qualifies


def test_a_run_is_chosen_from_without_what_measures() -> None:
    """What measures takes a fifth of the time that such an answer takes."""
    script = (
        "import sys, tollbar.cli.choose; print(*{'tollbar.lab', 'tollbar.measure', 'tollbar.tls'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "\n" == done.stdout


def test_bad_standing_never_qualifies_whatever_a_policy_says() -> None:
    """MD5 is cheap, and no policy was named."""
    _, brief = answered(asked("digest"))
    assert "broken, below acceptable" in text_of(brief)
    assert "md5" not in {row[1].says for row in brief.listings[0].tables[0].rows}


def test_nothing_qualifies_and_the_nearest_are_named(tmp_path: Path) -> None:
    """With what they lack; and both clauses of policies that nothing meets together."""
    path = tmp_path / "ours-2026.toml"
    path.write_text(A_POLICY)
    found, brief = answered(asked("digest", "cnsa", str(path)))
    assert not found.qualifies
    assert "Nothing qualifies." == brief.headline
    contradictions, nearest = brief.listings[:2]
    assert "Policies that contradict each other" == contradictions.title
    assert "`hash`, p. 2-3: SHA-384 or SHA-512" in contradictions.sentences[0]
    assert "ours-2026: `one`, 1.1" in contradictions.sentences[0]
    assert "The nearest misses" == nearest.title
    assert {"sha-512", "sha3-256", "sha-384"} == {said.partition(":")[0] for said in nearest.sentences}


EXCEPT = """
[[except]]
rule = "one"
where = { choice = "blake3" }
because = "moved with release 9"
until = 2027-06-30
"""


def test_an_exception_that_carries_a_cell_is_said(tmp_path: Path) -> None:
    """Of which policy and rule, why and until when, wherever the cell stands; and by which key of the document."""
    (path := tmp_path / "ours-2026.toml").write_text(A_POLICY + EXCEPT)
    found, brief = answered(asked("digest", str(path)))
    assert brief.headline.startswith("blake3 costs least of the 2 that qualify")
    assert brief.headline.endswith("; it qualifies by an exception, until 2027-06-30.")
    expected = "excepted from ours-2026 one until 2027-06-30: moved with release 9 (blake3 is not approved)"
    assert expected in text_of(brief)
    assert "ours-2026: `one`, 1.1." in text_of(brief)
    (first,) = made(found, brief).places[0].ranks[0].candidates
    (excepted,) = first.excepted
    assert ("one", date(2027, 6, 30), None) == (excepted.rule, excepted.excepted_until, excepted.exception_ended)
    assert [] == first.broken


def test_an_exception_that_has_ended_counts_no_more_and_says_so(tmp_path: Path) -> None:
    """Beside the rule that is broken, in the table and where it is said what drops out."""
    (path := tmp_path / "ours-2026.toml").write_text(A_POLICY + EXCEPT)
    found, brief = answered(asked("digest", str(path), on="2027-07-01"))
    ended = "its exception ended on 2027-06-30 (moved with release 9) and counts no more"
    assert f"blake3 is not approved (one); {ended}" in text_of(brief)
    (dropping,) = [one for one in brief.listings if one.title.startswith("What drops out")]
    assert [f"blake3: blake3 is not approved (ours-2026, 1.1); {ended}"] == dropping.sentences
    (blake3,) = [one for one in made(found, brief).places[0].refused if one.choice == "blake3"]
    (broken,) = blake3.broken
    assert (None, date(2027, 6, 30)) == (broken.excepted_until, broken.exception_ended)
    assert [] == blake3.excepted


def test_two_studies_of_a_run_have_captions_of_their_own_and_all_counts() -> None:
    """What only the second refused is shown and counted, with its own cheapest beside it."""
    want = asked("digest", "asvs-level-2")
    one, other = digests(), digests({"sha-256": 4.0, "sha3-256": 9.0, "sha-1": 2.0, "md5": 3.0})
    other = replace(other, study=replace(other.study, name="again"))
    places = [place for each in (one, other) for place in choose(want, each, {})]
    brief = answer(Answered(want, places, (), "from a run"))
    qualifying, refused = brief.listings[:2]
    for listing in (qualifying, refused):
        captions = [table.caption for table in listing.tables]
        assert ["study", "again"] == [caption.partition(" · ")[0] for caption in captions]
    assert [["md5", "sha-224"], ["sha-1"]] == [sorted(row[0].says for row in table.rows) for table in refused.tables]
    (sha_1,) = refused.tables[1].rows
    assert "×\u00a00.50" == sha_1[-2].says
    assert "61 bits, under 128 (11.2.3)" in (sha_1[0].small or "")


def test_what_is_shown_and_what_is_left_is_all_there_is(tmp_path: Path) -> None:
    """In several places, and what was not measured at all."""
    (path := tmp_path / "ours-2026.toml").write_text(A_POLICY)
    want = asked("digest", str(path))
    first = digests()
    other = digests({f"sha-{bits}": 4.0 for bits in (1, 256, 512)})
    near = nearby(want, {})
    of = Answered(want, [p for o in (first, other) for p in choose(want, o, {})], near.candidates, "from a run")
    brief = answer(of)
    (refused,) = [one for one in brief.listings if one.title == "What does not qualify"]
    shown = sum(len(table.rows) for table in refused.tables)
    left = sum(int(found[1]) for note in refused.notes if (found := re.match(r"… (\d+) more row", note)))
    assert {str(one.coordinates["choice"]) for one in near.candidates if one.ruling is Ruling.BREAKS} >= {"sha-1"}
    every = {*(c for one in (first, other) for c in (r.choice for r in one.rows)), *map(_choice, near.candidates)}
    assert len(every - {"none", "sha3-256", "sha3-512"}) == shown + left


def _choice(one: Candidate) -> str:
    return str(one.coordinates["choice"])


def test_what_drops_out_by_a_day_is_said_with_its_rule() -> None:
    """SHA-224 until the end of 2030."""
    _, brief = answered(asked("digest", "sp800-131a", on="2032-01-01"))
    (dropping,) = [one for one in brief.listings if one.title == "What drops out by 2032-01-01"]
    (said,) = dropping.sentences
    assert said.startswith("sha-224: ")
    assert "sp800-131a-2024-11, Rev. 3 section 11, Table 12" in said


def test_document_and_page_have_what_the_terminal_has() -> None:
    """Every candidate of the run stands in the document, with its ruling, cost and clauses."""
    found, brief = answered(asked("digest", "asvs-level-2"))
    document = json.loads(json.dumps(made(found, brief).model_dump(mode="json", by_alias=True), allow_nan=False))
    (place,) = document["places"]
    ranked = [one["choice"] for rank in place["ranks"] for one in rank["candidates"]]
    everything = [*ranked, *(one["choice"] for part in ("unpriced", "refused", "cannot_say") for one in place[part])]
    assert {*COSTS, "sha-384"} == {*everything}
    assert ranked[0] == "blake3"
    (md5,) = [one for one in place["refused"] if one["choice"] == "md5"]
    assert {"11.4.1-digest", "11.2.3"} <= {one["rule"] for one in md5["broken"]}
    assert md5["over_cheapest"] > 1
    titles = [block.title for block in page_of(brief, ["tollbar"]).sections[0].blocks if hasattr(block, "title")]
    assert [one.title for one in brief.listings] == titles


def test_what_policies_rule_on_and_threats_depend_on_is_varied() -> None:
    """A choice in TLS is a whole cell; without either only choices differ."""
    assert ("certificate", "key-exchange", "cipher") == deciding(asked("tls", "tlsref-intermediate"))
    assert ("key-exchange",) == deciding(asked("tls", threats=("harvest-now-decrypt-later",)))
    assert () == deciding(asked("tls"))


def test_candidates_are_near_what_meets_and_the_nearest_are_measured_first() -> None:
    """Nothing differs in more settings than two; both versions of TLS are among a few; a third is for the others."""
    found = nearby(asked("tls", "tlsref-intermediate"), {"bed": ("nginx",)})
    base = {"certificate": "ecdsa-p256", "key-exchange": "x25519", "cipher": "aes-128-gcm"}
    for one in found.candidates:
        assert MOST_APART >= sum(one.coordinates[name] != value for name, value in base.items())
    some = found.to_measure(12)
    assert 12 == len(some)
    assert 8 == sum(one.ruling is Ruling.MEETS for one in some)
    meet = [one.coordinates for one in some if one.ruling is Ruling.MEETS]
    assert {"tls-1.2", "tls-1.3"} == {one["choice"] for one in meet}
    # What each setting costs, and not one of them alone.
    assert all(len({one[name] for one in meet}) > 1 for name in base)


def test_a_threat_leaves_only_what_mitigates_it() -> None:
    """Harvested today, decrypted later: only a hybrid key exchange qualifies."""
    found = nearby(asked("tls", "tlsref-intermediate", threats=("harvest-now-decrypt-later",)), {"bed": ("nginx",)})
    qualify = [one.coordinates for one in found.candidates if one.ruling is Ruling.MEETS]
    assert {("tls-1.3", "x25519mlkem768")} == {(at["choice"], at["key-exchange"]) for at in qualify}


def test_what_cannot_be_had_is_nothing_to_choose_from() -> None:
    """Neither measured nor refused: TLS 1.2 has no hybrid groups and no ML-DSA, TLS 1.3 no CBC."""
    want = asked("tls", "tlsref-intermediate", threats=("harvest-now-decrypt-later",))
    found = nearby(want, {"bed": ("nginx",)})
    assert {None} == {want.family.why_unsupported(one.coordinates) for one in found.candidates}
    assert {"tls-1.2", "tls-1.3"} == {str(one.coordinates["choice"]) for one in found.candidates}
    none = nearby(want, {"choice": ("tls-1.2",), "key-exchange": ("x25519mlkem768",)})
    assert () == none.candidates
    assert "TLS 1.2 has no hybrid groups" in (none.refusal or "")


def test_a_default_in_bad_standing_is_set_well_unless_it_is_given() -> None:
    """A password sent in the clear qualifies for nothing; over TLS it may."""
    found = nearby(asked("web-auth", threats=("database-theft=partly",)), {"bed": ("embedded",)})
    forms = [one for one in found.candidates if one.coordinates["choice"] == "form"]
    assert {"tls"} == {one.coordinates["transport"] for one in forms}
    given = nearby(asked("web-auth"), {"bed": ("embedded",), "transport": ("clear",), "choice": ("form",)})
    assert {Ruling.BREAKS} == {one.ruling for one in given.candidates}


def test_the_study_measures_these_cells_and_no_others() -> None:
    """Not all combinations of what they vary; each beside the first."""
    found = nearby(asked("tls", "tlsref-intermediate"), {"bed": ("nginx",)})
    cells = [found.cell(one) for one in found.to_measure(9)]
    question = study.of_candidates(asked("tls").family, ["bed=nginx"], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    names = cells[0].keys()
    assert {tuple(cell[n] for n in names) for cell in cells} == {
        tuple(cell.coordinates[n] for n in names) for cell in planned.cells
    }
    (baseline,) = {cell.against for cell in planned.cells}
    assert baseline in {cell.key for cell in planned.cells}


def test_what_a_policy_says_of_providers_is_judged_as_it_will_be_measured() -> None:
    """Fedora's policies are of the system's libraries: of two that can serve, the one that meets them is measured."""
    want = asked("tls", "fedora-default")
    given: dict[str, tuple[str, ...]] = {"bed": ("embedded",)}
    found = nearby(want, given, lambda cell: study.performing(want.family, cell))
    assert {"libcrypto"} == {one.coordinates["provider"] for one in found.candidates}
    assert Ruling.MEETS is found.candidates[0].ruling
    cells = [found.cell(one) for one in found.to_measure(6)]
    question = study.of_candidates(want.family, ["bed=embedded"], cells)
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    assert {"libcrypto"} == {cell.provider.spec for cell in planned.cells}
    assert {str(one["certificate"]) for one in cells} == {str(c.coordinates["certificate"]) for c in planned.cells}
    of_aws = nearby(want, {**given, "provider": ("aws-lc",)}, lambda cell: study.performing(want.family, cell))
    assert Ruling.CANNOT_SAY is of_aws.candidates[0].ruling
    assert "what governs a library that is not the system's" in {one.what for one in of_aws.candidates[0].missing}
    unknown = nearby(want, given)
    assert Ruling.CANNOT_SAY is unknown.candidates[0].ruling
    assert {"provider is not given"} == {one.what for one in unknown.candidates[0].missing}


def test_each_choice_has_a_provider_of_its_own_where_a_policy_rules_on_them() -> None:
    """The first that meets the policy, and of what none does the first that has it."""
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
    """A question takes one that performs all choices, which is known once they are."""
    found = nearby(asked("digest", "asvs-level-2"), {}, lambda cell: ["aws-lc"])
    assert {False} == {"provider" in one.coordinates for one in found.candidates}


def test_what_is_done_elsewhere_is_not_varied_to() -> None:
    """A signature of bytes that were hashed before is less work than one with its hash, and by which is not seen."""
    want = asked("signature", "tr-02102")
    varied = {one.coordinates.get("digest") for one in nearby(want, {}).candidates}
    assert {"sha-1", "sha-256", "sha-384", "sha-512", None} == varied
    given = nearby(want, {"digest": ("none",), "choice": ("ecdsa-p256", "rsa-3072")}).candidates
    assert {"none"} == {one.coordinates["digest"] for one in given}
    assert {("ecdsa-p256", None), ("rsa-3072", "pkcs1")} == {
        (one.coordinates["choice"], one.coordinates.get("padding")) for one in given
    }
    (curve,) = [one for one in given if one.coordinates["choice"] == "ecdsa-p256"]
    assert ["digest none: which hash they had before is not seen"] == [one.what for one in curve.missing]


@pytest.mark.parametrize(
    ("words", "op"), [((), "sign"), (("op=verify",), "verify"), (("op=generate-key",), "generate-key")]
)
def test_the_operation_is_one_to_which_what_is_varied_means_something(words: tuple[str, ...], op: str) -> None:
    """A policy rules on the digest that is signed: making a key, which has none, comes first in the family only."""
    want = asked("signature", "tr-02102")
    given: dict[str, tuple[str, ...]] = {"op": (op,)} if words else {}
    found = nearby(want, given)
    question = study.of_candidates(want.family, words, [found.cell(one) for one in found.to_measure(12)])
    (planned,) = plan.make((study.read("ask", question.text(6), where="ask"),), seed=0).studies
    assert {op} == {cell.coordinates["op"] for cell in planned.cells}
    assert (op != "generate-key") == any("digest" in cell.coordinates for cell in planned.cells)


def test_a_policy_without_its_edition_is_the_newest() -> None:
    """What is no name of a policy stays as it is."""
    expected = {
        "tlsref-intermediate": "tlsref-intermediate-6.0",
        "tr-02102": "tr-02102-2026-01",
        "cnsa": "cnsa-2.0-2024-12",
    }
    assert expected == {name: with_edition(name) for name in expected}
    assert "sp800-63b" == with_edition("sp800-63b")


A_POLICY = """
[policy]
title = "Ours"
by = "Us"
edition = "2026"
date = 2026-01-01
source = "our handbook"
seen = 2026-11-23
checked = true

[[rule]]
id = "one"
clause = "1.1"
family = "digest"
only = { choice = ["sha3-*"] }
unlisted = "not approved"
"""


def test_a_policy_of_ones_own_counts_as_those_that_ship(tmp_path: Path) -> None:
    """By its path."""
    path = tmp_path / "ours-2026.toml"
    path.write_text(A_POLICY)
    _, brief = answered(asked("digest", str(path)))
    assert brief.headline.startswith("sha3-256 is all that qualifies: ")


# What is asked, and what its one line says, the hint behind it.
MISTAKES: dict[str, tuple[tuple[str, ...], dict[str, object], str]] = {
    "family": (("digst",), {}, "no such family: `digst` did you mean `digest`"),
    "policy": (("digest",), {"policy": ("asvs-levl-2",)}, "no such policy: `asvs-levl-2` did you mean `asvs-level-2"),
    "threat": (("digest",), {"threat": ("colision",)}, "no such threat: `colision` did you mean `collision`"),
    "degree": (("digest",), {"threat": ("collision=partl",)}, "`partl` is not how far"),
    "day": (("digest",), {"on": "2032"}, "`2032` is not a day did you mean `2032-01-01`"),
    "coordinate": (("digest", "byts=4KiB"), {}, "no setting `byts` did you mean `bytes`"),
    "choice": (("digest", "sha256"), {}, "no such choice of digest: `sha256` did you mean `sha-256`"),
    "time": (("digest",), {"for_": "soon"}, "soon"),
    "no day": (("digest",), {"on": ""}, "`` is not a day as in `2032-01-01`"),
    "run": (("digest",), {"run": Path("none")}, "not a run"),
    "a run that is measured": (("digest",), {"run": Path("none"), "for_": "20s"}, "nothing is measured"),
    "a combination": (("tls", "tls-1.2", "key-exchange=x25519mlkem768"), {}, "ask: TLS 1.2 has no hybrid groups"),
    "a policy of other families": (
        ("mac",),
        {"policy": ("cnsa",)},
        "cnsa-2.0-2024-12: the policy has no rule on mac policies that have: asvs-level-1-5.0.0, ",
    ),
    "a level and no edition": (
        ("digest",),
        {"policy": ("asvs-level",)},
        "no such policy: `asvs-level` did you mean `asvs-level-",
    ),
    "a policy's file": (("digest",), {"policy": ("none.toml",)}, "no such policy: `none.toml`"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_with_the_nearest(mistake: str) -> None:
    """Before anything is measured."""
    words, options, expected = MISTAKES[mistake]
    with pytest.raises(TollbarError) as error:
        command(*words, layout=Layout(), **options)  # type: ignore[arg-type]
    assert expected in f"{error.value.where}: {error.value.what} {error.value.hint or ''}"


def test_a_run_answers_by_itself_and_without_the_family_says_what_it_has(
    fake_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Work of a known size by a fake runner: the run has no signature, and not every choice."""
    run = fake_runs / "one"
    command("spin", run=run, layout=Layout(json=True))
    assert "spin" == json.loads(capsys.readouterr().out)["family"]
    with pytest.raises(TollbarError, match="the run has no signature") as error:
        command("signature", run=run)
    assert error.value.hint == "it has spin"
    with pytest.raises(TollbarError, match="no row of the run has `choice=spin-5`"):
        command("spin", "spin-5", run=run)


ON_SPIN = A_POLICY.replace('family = "digest"', 'family = "spin"')


@pytest.mark.parametrize(("only", "status"), [("spin-5", ExitStatus.DONE), ("spin-6", ExitStatus.SOME_FAILED)])
def test_what_the_run_lacks_is_counted_and_qualifies(
    only: str, status: ExitStatus, fake_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A choice that meets the policy and was not measured is an answer, and no time would add it to the run."""
    (path := tmp_path / "ours-2026.toml").write_text(
        ON_SPIN.replace('["sha3-*"] }', f'["{only}"] }}\nabsent = ["{only}"]')
    )
    assert status is command("spin", policy=(str(path),), run=fake_runs / "one", layout=Layout(json=True))
    said = json.loads(capsys.readouterr().out)
    measured = {one["choice"] for place in said["places"] for one in place["refused"]}
    lacks = {one["choice"] for one in said["unmeasured"]}
    assert {"spin-5"} <= lacks
    assert set() == measured & lacks
    assert {
        name for name, one in family("spin").choices.items() if one.standing is not Standing.NULL
    } == measured | lacks
    assert status is command("spin", policy=(str(path),), run=fake_runs / "one")
    text = " ".join(capsys.readouterr().out.split())
    assert "--for" not in text
    if status is ExitStatus.DONE:
        assert "Nothing that was measured qualifies; spin-5 would, and was not." in text
        assert "Not in the run, and would qualify: spin-5; without `--run`, what matters is measured." in text
    else:
        assert "Nothing qualifies." in text
        assert "The nearest misses" in text


def test_without_a_run_what_qualifies_is_measured_and_kept(tollbar: Tollbar, tmp_path: Path) -> None:
    """By the fewest blocks that tell anything, where the time is over before they begin."""
    words = ("spin", "spin-1", "spin-2", f"provider=runner:{FAKE_RUNNER}", "--for", "0.1s", "--json")
    done = tollbar("choose", *words)
    assert 0 == done.returncode, done.stderr
    said = json.loads(done.stdout)
    (place,) = said["places"]
    assert ["spin-1", "spin-2"] == [one["choice"] for rank in place["ranks"] for one in rank["candidates"]]
    (made,) = (tmp_path / "runs").iterdir()
    (kept,) = json.loads((made / "run.json").read_text())["studies"].values()
    assert FEWEST_BLOCKS == kept["blocks"]
    again = json.loads(tollbar("choose", "spin", "--run", made, "--json").stdout)
    assert place["where"] == again["places"][0]["where"]
