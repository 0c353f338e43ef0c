"""The answer of `choose`: qualified and disqualified candidates with their rules, in all layouts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

from policy_lab import OURS, asked
from test_choosing import COSTS, digests, noisy
from tollbar.catalog.policies import Ruling, with_edition
from tollbar.decide.candidates import nearby
from tollbar.decide.choose.answered import Answered
from tollbar.decide.choose.document import made
from tollbar.decide.choose.words import answer
from tollbar.decide.choosing import choose
from tollbar.decide.rulings import Candidate, Wanted
from tollbar.decide.shared import page_of
from tollbar.report.numbers import NOISY
from tollbar.report.page import Brief


def answered(want: Wanted) -> tuple[Answered, Brief]:
    found = Answered(want, choose(want, digests(), {}), (), "from a run")
    return found, answer(found)


def text_of(brief: Brief) -> str:
    """Return the whole text of the answer."""
    parts = [brief.headline, *brief.how, *brief.notes]
    for one in brief.listings:
        parts += [one.title, *one.sentences, *one.notes]
        parts += [f"{cell.says} {cell.small or ''}" for table in one.tables for row in table.rows for cell in row]
    return "\n".join(parts)


def test_the_answer_names_the_default_and_why_others_do_not_qualify() -> None:
    found, brief = answered(asked("digest", "asvs-level-2"))
    assert brief.headline.startswith("SHA-256 (recommended, 128 bits): ")
    assert (
        "1 of the 3 other qualifying options costs less than it; it costs the same within 3 % as SHA-512"
        in brief.headline
    )
    (place,) = made(found, brief).places
    assert place.answer is not None
    assert ("sha-256", []) == (place.answer.choice, place.gives_up)
    qualifying, refused = brief.listings[:2]
    assert ["1", "2", "", "4", "–"] == [row[0].says for row in qualifying.tables[0].rows]
    assert {"md5", "sha-224"} == {row[0].says for row in refused.tables[0].rows}
    (md5,) = [row for row in refused.tables[0].rows if row[0].says == "md5"]
    assert "md5 is refused (11.4.1-digest)" in (md5[0].small or "")
    said = text_of(brief)
    assert "asvs-level-1-5.0.0: `11.4.1-digest`, 11.4.1 and Appendix C: only approved hash functions" in said
    assert "not measured: the runner fell over" in said
    assert found.qualifies


def test_costs_as_disturbed_are_marked() -> None:
    want = asked("digest", "asvs-level-2")
    quiet, busy = ([*choose(want, of, {})] for of in (digests(), noisy(digests(), *COSTS)))
    for places, has_marks in ((quiet, False), (busy, True)):
        found = Answered(want, places, (), "from a run")
        brief = answer(found)
        listing = brief.listings[0]
        assert has_marks == (f"{NOISY}." in brief.notes)
        assert has_marks == all("~" in row[-3].says for row in listing.tables[0].rows if row[-3].says != "–")
        assert has_marks == ("~ of CPU" in brief.headline)
        words = "noisy" if has_marks else "quiet"
        candidates = [one for rank in made(found, brief).places[0].ranks for one in rank.candidates]
        assert {words == "noisy"} == {one.noisy for one in candidates}
        assert {None, words == "noisy"} == {one.over_cheapest_noisy for one in candidates}
    nothing = asked("digest", "cnsa", "owasp-password-storage", threats=("length-extension",))
    none = answer(Answered(nothing, [*choose(nothing, noisy(digests(), *COSTS), {})], (), "from a run"))
    assert "Nothing qualifies." == none.headline
    assert f"{NOISY}." in none.notes


def test_a_cost_is_called_by_whose_it_is() -> None:
    of = digests()
    served = replace(of, study=replace(of.study, measure=replace(of.study.measure, cost="server-cpu")))
    want = asked("digest")
    assert "of server CPU a hash" in answer(Answered(want, choose(want, served, {}), (), "from a run")).headline


def test_bad_standing_never_qualifies_whatever_a_policy_says() -> None:
    _, brief = answered(asked("digest"))
    assert "broken, below acceptable" in text_of(brief)
    assert "md5" not in {row[1].says for row in brief.listings[0].tables[0].rows}


def test_nothing_qualifies_and_the_nearest_are_named(tmp_path: Path) -> None:
    path = tmp_path / "ours-2026.toml"
    path.write_text(OURS)
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
    (path := tmp_path / "ours-2026.toml").write_text(OURS + EXCEPT)
    found, brief = answered(asked("digest", str(path)))
    assert "sha-256 is not approved (ours-2026: 1.1). The other qualifying option costs less than it." in brief.headline
    (place,) = choose(asked("digest", str(path)), digests(), {})
    alone = replace(place, priced=tuple(one for one in place.priced if one.coordinates["choice"] == "blake3"))
    carried = answer(replace(found, places=[alone])).headline
    assert carried.startswith("BLAKE3 (acceptable): ")
    assert "It qualifies by an exception, until 2027-06-30." in carried
    expected = "excepted from ours-2026 one until 2027-06-30: moved with release 9 (blake3 is not approved)"
    assert expected in text_of(brief)
    assert "ours-2026: `one`, 1.1." in text_of(brief)
    (first,) = made(found, brief).places[0].ranks[0].candidates
    (excepted,) = first.excepted
    assert ("one", date(2027, 6, 30), None) == (excepted.rule, excepted.excepted_until, excepted.exception_ended)
    assert [] == first.broken


def test_an_exception_that_has_ended_counts_no_more_and_says_so(tmp_path: Path) -> None:
    (path := tmp_path / "ours-2026.toml").write_text(OURS + EXCEPT)
    found, brief = answered(asked("digest", str(path), on="2027-07-01"))
    ended = "its exception ended on 2027-06-30 (moved with release 9) and no longer counts"
    assert f"blake3 is not approved (one); {ended}" in text_of(brief)
    (dropping,) = [one for one in brief.listings if one.title.startswith("No longer qualified")]
    assert [f"blake3: blake3 is not approved (ours-2026, 1.1); {ended}"] == dropping.sentences
    (blake3,) = [one for one in made(found, brief).places[0].refused if one.choice == "blake3"]
    (broken,) = blake3.broken
    assert (None, date(2027, 6, 30)) == (broken.excepted_until, broken.exception_ended)
    assert [] == blake3.excepted


def test_two_studies_of_a_run_have_captions_of_their_own_and_all_counts() -> None:
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
    (path := tmp_path / "ours-2026.toml").write_text(OURS)
    want = asked("digest", str(path))
    first = digests()
    other = digests({f"sha-{bits}": 4.0 for bits in (1, 256, 512)})
    near = nearby(want, {})
    of = Answered(want, [p for o in (first, other) for p in choose(want, o, {})], near.candidates, "from a run")
    brief = answer(of)
    (refused,) = [one for one in brief.listings if one.title == "Not qualified"]
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
    (dropping,) = [one for one in brief.listings if one.title == "No longer qualified on 2032-01-01"]
    (said,) = dropping.sentences
    assert said.startswith("sha-224: ")
    assert "sp800-131a-2024-11, Rev. 3 section 11, Table 12" in said


def test_document_and_page_have_what_the_terminal_has() -> None:
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


def test_a_policy_without_its_edition_is_the_newest() -> None:
    expected = {
        "tlsref-intermediate": "tlsref-intermediate-6.0",
        "tr-02102": "tr-02102-2026-01",
        "cnsa": "cnsa-2.0-2024-12",
    }
    assert expected == {name: with_edition(name) for name in expected}
    assert "sp800-63b" == with_edition("sp800-63b")


def test_a_policy_of_ones_own_counts_as_those_that_ship(tmp_path: Path) -> None:
    path = tmp_path / "ours-2026.toml"
    path.write_text(OURS)
    _, brief = answered(asked("digest", str(path)))
    assert brief.headline.startswith("SHA3-256 (recommended): ")
    assert brief.headline.endswith(" It is the only qualifying option measured.")
