"""The answer to a question: the cheapest choice of good standing with its cost, and verdicts on the others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

import builders
from builders import row, study_run
from fabricated import fabricated, shipped
from report_example import OPENSSL, digests, judgement, large, passwords
from served_example import arrivals, asked_only, handshakes
from tollbar.analysis import Compared, Contrast, StudyJudgement, Toll, Verdict, judge_study
from tollbar.catalog import families
from tollbar.catalog.families import Degree, Standing, Value, at_defaults
from tollbar.core.intervals import Interval
from tollbar.core.records import Outcome
from tollbar.report.sections import telling
from tollbar.report.sections.answer import answer, headline
from tollbar.report.sections.factors import told_apart
from tollbar.report.sections.scaling import is_asked
from tollbar.report.sections.telling import MOST_IN_HEADLINE, Telling
from tollbar.report.standings import IN_GOOD_STANDING
from tollbar.report.terminal import show_judgement, streams
from tollbar.report.ways import options, places
from tollbar.results import Row
from tollbar.study.plan.pairs import contrasted

X = "×\u00a0"
# Four lines of a wide terminal, eight of a narrow one.
MOST_LETTERS = 480
EXAMPLES: dict[str, Callable[[], StudyJudgement]] = {
    "digests": digests,
    "passwords": passwords,
    "large": lambda: large(8, 2, 2).studies[0],
    "handshakes": handshakes,
    "arrivals": arrivals,
    "asked only": asked_only,
}


@pytest.fixture(params=EXAMPLES)
def study(request: pytest.FixtureRequest) -> StudyJudgement:
    return EXAMPLES[request.param]()


def test_the_answer_names_the_cheapest_in_good_standing_and_what_others_cost_beside_it() -> None:
    argon2id = "“Argon2id, 19 MiB, 2 passes” costs 98.5 ms (unclear)"
    expected = (
        f"PBKDF2-SHA256, 600,000 (acceptable): 97.9 ms of CPU a hash. {argon2id.replace('” ', '” (recommended) ')}.",
        "It has the lowest cost of 3 options in good standing;"
        " this run cannot distinguish it from “Argon2id, 19 MiB, 2 passes”."
        f" {argon2id}"
        f" and “scrypt, N = 2^17, r = 8” costs 305 ms more ({X}4.12)."
        f" “One SHA-256, salted” (disallowed) would save 97.9 ms ({X}0.0000042).",
    )
    assert expected == answer(passwords())


def test_strengths_are_said_and_what_more_strength_costs() -> None:
    line, *rest = answer(digests())
    assert line.startswith(
        "SHA-256 (acceptable, 128 bits): 174 ns of CPU per digest (at 64 B, on openssl 3.0.19), 10.4 µs (at 16 KiB); "
    )
    (blake3,) = [
        text for text in rest if text.startswith("On rustcrypto 0.10.9, at 16 KiB: BLAKE3 has the lowest cost of 5")
    ]
    assert "BLAKE2b-512 has the lowest cost with 256 bits, 16.3 µs." in blake3
    assert "BLAKE3 has the lowest cost of 5 options in good standing; it was not compared with BLAKE2b-512, " in blake3
    assert blake3.endswith(
        "SHA-1 (disallowed) costs 9.05 µs (not compared) and MD5 (broken) costs 26.8 µs (not compared)."
    )


def test_no_place_has_something_cheaper_in_good_standing_than_what_is_named_first(study: StudyJudgement) -> None:
    pairs = Compared(study)
    found = places(study)
    assert found
    for place in found:
        assert all(way.row.standing is not Standing.NULL for way in place.ways)
        assert all(way.row.standing in IN_GOOD_STANDING for way in place.good)
        for way in place.good:
            pair = pairs.of(way.row, place.good[0].row)
            assert way.cost >= place.good[0].cost or (pair and pair.verdict in (Verdict.FREE, Verdict.COSTS))


def test_without_a_judgement_only_costs_are_said(study: StudyJudgement) -> None:
    study = replace(study, tolls=(), contrasts=(), claims=(), tables=())
    for text in answer(study):
        for word in (" more (", "cannot distinguish the", "would save", "the same within", "protection costs"):
            assert word not in text
    said = " ".join(answer(study))
    assert re.search(r" costs \d\S* \S?s\b|Without protection \(", said)


def test_an_unclear_verdict_is_said_to_be_unclear(study: StudyJudgement) -> None:
    study = replace(study, tolls=tuple(replace(t, verdict=Verdict.UNCLEAR) for t in study.tolls), contrasts=())
    said = " ".join(answer(study))
    pairs = Compared(study)
    judged = [pairs.of(p.good[0].row, of.row) for p in places(study) for of in (*p.good, p.null) if of]
    unclear = re.search("[Tt]his run cannot distinguish ", said)
    assert (unclear is not None) is any(judged)
    assert all(word not in said for word in (" more (", "would save", "the same within"))


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_no_answer_gives_up_a_threat_without_naming_it(name: str) -> None:
    study = fabricated(name)
    if is_asked(study) or told_apart(study):
        return  # The answer names no choice: it is about the cost of threads, or whether changes add up.
    family, telling = study.about.family, Telling(study)
    said = " ".join(answer(study))
    for place in telling.places:
        if place.answer is None or place.is_of_one_choice:
            continue
        own = place.answer.row
        assert own.standing in IN_GOOD_STANDING
        if place not in [one.places[0] for one in telling.findings[:MOST_IN_HEADLINE]]:
            continue
        if family.default is not None and "choice" in own.coordinates:
            usual = {**own.coordinates, **family.default.setting, "choice": family.default.choice}
            wanted = family.mitigations_of(at_defaults(family, usual))
            for threat, done in family.mitigations_of(own.coordinates).items():
                if list(Degree).index(done.degree) < list(Degree).index(wanted[threat].degree):
                    assert threat.replace("-", " ") in said, (threat, said)


def test_the_answer_is_the_default_or_what_protects_as_it_does() -> None:
    family_of_macs = families.family("mac")
    costs = {"none": 1.0, "poly1305": 2.0, "hmac-sha-256": 10.0, "hmac-sha-512": 14.0, "hmac-sha-1": 6.0}

    def said(*names: str) -> str:
        rows, against = [], ""
        for number, name in enumerate(("none", *names)):
            chance = random.Random(number)
            at: dict[str, Value] = {"choice": name, "op": "authenticate", "bytes": 4096}
            ns, again = ([1000 * costs[name] * chance.gauss(1, 0.002) for _ in range(20)] for _ in range(2))
            standing = family_of_macs.choices[name].standing
            rows.append(row(at, ns, against=against or None, repeats_ns=() if against else again, standing=standing))
            against = against or rows[0].key
        about = replace(builders.study(blocks=20), family=family_of_macs)
        return headline(judge_study(study_run(rows, (20,), about)))

    assert said("poly1305", "hmac-sha-256", "hmac-sha-512").startswith("HMAC-SHA-256 (recommended")
    assert "Poly1305 saves 7.99 µs" in said("poly1305", "hmac-sha-256")
    # One key authenticates one message; the key of an HMAC authenticates any number.
    losses = "protects only in part against forgery, key recovery and quantum search"
    assert said("poly1305", "hmac-sha-256").endswith(f"{losses}.")
    assert "gives up" not in said("poly1305", "hmac-sha-256")
    assert said("poly1305", "hmac-sha-512").startswith("HMAC-SHA-512 (recommended")
    alone = said("poly1305", "hmac-sha-1")
    assert alone.startswith("Poly1305 (acceptable")
    assert f"unlike the default (HMAC-SHA-256), it {losses}" in alone


def test_a_library_is_named_although_a_setting_implies_it() -> None:
    apis = families.family("rsa-api")
    cells = (
        ("none", OPENSSL, "fetched"),
        ("key-cached", OPENSSL, "fetched"),
        ("key-from-pem", OPENSSL, "fetched"),
        ("key-cached", "node 20.19.2", "implicit"),
    )
    rows: list[Row] = []
    for number, (choice, provider, digest) in enumerate(cells):
        chance = random.Random(number)
        at: dict[str, Value] = {"choice": choice, "provider": provider, "op": "sign", "bytes": 60, "digest": digest}
        ns, again = ([1000 * (number + 1) * chance.gauss(1, 0.002) for _ in range(20)] for _ in range(2))
        standing = apis.choices[choice].standing
        rows.append(
            row(at, ns, against=rows[0].key if rows else None, repeats_ns=() if rows else again, standing=standing)
        )
    study = judge_study(study_run(rows, (20,), replace(builders.study(blocks=20), family=apis)))
    assert headline(study).startswith(f"key kept · {OPENSSL} · digest fetched once: ")


def test_a_multiple_of_next_to_nothing_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "MOST_TIMES", 10)
    _, paragraph, _ = answer(replace(handshakes()))
    assert "Protection costs 287 µs: without protection (no TLS) the cost is 31.5 µs." in paragraph


def test_the_null_choice_is_what_protection_costs_and_no_option() -> None:
    line, paragraph, _ = answer(handshakes())
    assert line.startswith(
        "TLS 1.3 · ecdsa-p256 · x25519mlkem768 (recommended, 128 bits): 318 µs of server CPU a connection on Tollbar's"
        " own server; "
    )
    # The default was not measured on the other server: its answer names the threat that it leaves open.
    assert line.endswith("unlike the default (x25519mlkem768), it is open to harvest now decrypt later.")
    assert f"Protection costs 287 µs ({X}10.1): without protection (no TLS) the cost is 31.5 µs." in paragraph
    assert 1 == paragraph.count("no TLS")
    # The cost's owner is named if it is not the operation.
    assert "By server CPU per connection, no other of 6 options in good standing is known to cost less" in paragraph
    assert "µs of client CPU a connection" in headline(asked_only())


def test_two_values_of_a_setting_are_compared_by_their_contrast() -> None:
    study = handshakes()
    keys = "x25519mlkem768", "x25519"
    rows = [r for r in study.rows if r.coordinates.get("key-exchange") in (*keys, None)]
    rows = [r for r in rows if r.coordinates.get("certificate") != "rsa-2048" and r.server == "embedded"]
    ratio = Interval(1.18, 1.17, 1.19, study.confidence, 12)
    pairs = [(one, other) for name, one, other in contrasted(study.about, rows) if name == "key-exchange"]
    members = tuple(Toll(one, other, "server-cpu", ratio, verdict=Verdict.COSTS) for one, other in pairs)
    contrast = Contrast("key-exchange", *keys, {}, len(pairs), 1.17, 1.19, 1.18, 1.18, Verdict.COSTS, None, members)
    study = replace(study, study=replace(study.study, rows=tuple(rows)), contrasts=(contrast,))
    classical = f"With x25519 it saves 51.2 µs ({X}0.85)"
    line, paragraph = answer(study)
    assert line.startswith("TLS 1.3 · x25519mlkem768 (recommended): ")
    assert line.endswith(f". {classical} and gives up protection against harvest now decrypt later.")
    assert classical in paragraph
    assert "by" not in line
    elsewhere = replace(study, contrasts=(replace(contrast, members=()),))
    assert "saves" not in headline(elsewhere)


def test_a_pair_reads_both_ways() -> None:
    row, other = passwords().rows[:2]
    toll = Toll(row, other, "cpu", Interval(2.0, 1.6, 2.5, 0.95, 12), difference=8.0, verdict=Verdict.COSTS)
    less = Interval(0.5, 0.4, 0.625, 0.95, 12)
    assert Toll(other, row, "cpu", less, difference=-8.0, verdict=Verdict.SAVES) == toll.turned
    assert toll == toll.turned.turned
    # An infinite end becomes an end of 0 in the other direction.
    unknown = Toll(row, other, "cpu", Interval(1.0, 0.0, inf, 0.95, 2), verdict=Verdict.UNCLEAR)
    assert unknown.ratio == unknown.turned.ratio
    assert Interval(1.0, 0.2, inf, 0.95, 2) == Interval(1.0, 0.0, 5.0, 0.95, 2).inverse


def test_where_all_protect_alike_the_cheapest_way_and_the_dearest_are_the_finding() -> None:
    study = digests()
    rows = {r.key: replace(r, standing=Standing.ACCEPTABLE) for r in study.rows if r.coordinates["bytes"] == 64}
    study = replace(
        study,
        study=replace(study.study, rows=tuple(rows.values())),
        measurements=tuple(replace(m, row=rows[m.row.key]) for m in study.measurements if m.row.key in rows),
        tolls=tuple(replace(t, row=rows[t.row.key]) for t in study.tolls if t.row.key in rows),
    )
    assert ["choice", "provider"] == options(study)
    line, paragraph = answer(study)
    assert line.startswith("SHA-1 · rustcrypto 0.10.9 (61 bits): 79.8 ns of CPU per digest at 64 B. SHA3-256 · ")
    assert line.endswith(", the highest cost measured.")
    assert paragraph.startswith(
        "It has the lowest cost of 13 options; it was not compared with 11 of them. Among the 12 other options, "
    )
    assert "good standing" not in paragraph
    # With several operations there is only room for the range.
    coordinates = {key: {**r.coordinates, "op": "sign" if i else "verify"} for i, (key, r) in enumerate(rows.items())}
    rows = {key: replace(r, coordinates=coordinates[key]) for key, r in rows.items()}
    study = replace(
        study,
        study=replace(study.study, rows=tuple(rows.values())),
        measurements=tuple(replace(m, row=rows[m.row.key]) for m in study.measurements),
        tolls=(),
    )
    assert re.search(r"; sign: SHA-1 · rustcrypto .* \(the highest of 12 costs is 401 ns\)\.$", headline(study))


def test_a_baseline_without_a_choice_asks_what_else_changes() -> None:
    study = digests()
    elsewhere = {(r.choice, r.coordinates["bytes"]): r.key for r in study.rows if r.coordinates["provider"] == OPENSSL}
    rows = tuple(replace(r, against=elsewhere[r.choice, r.coordinates["bytes"]]) for r in study.rows)
    about = replace(study.about, baseline={"provider": OPENSSL})
    study = replace(study, study=replace(study.study, study=about, rows=rows))
    assert ["provider"] == options(study)
    line, *rest = answer(study)
    assert line.startswith("Against “openssl 3.0.19” on one core, “")
    # A single named thread is no question about scaling.
    for threads, words in ((1, " on one core, “"), (8, ", “")):
        named = tuple(replace(r, coordinates={**r.coordinates, "threads": threads}) for r in rows)
        (line_of, *_) = answer(replace(study, study=replace(study.study, rows=named)))
        assert line_of.startswith(f"Against “openssl 3.0.19”{words}")
    count = sum(t.ratio is not None for t in study.tolls if t.row.key != t.row.against)
    assert count == sum(int(number) for number in re.findall(r"(?<=of )\d+(?= cells)", line))
    # Each verdict is counted once.
    assert count == sum(int(number) for number in re.findall(r"(?<= in )\d+", line))
    words = ": “rustcrypto 0.10.9” has the lowest cost of 2 options; it was not compared with "
    assert any(words in text for text in rest)
    assert all(word not in " ".join(rest) for word in ("standing", "disallowed", "broken"))


def test_nothing_in_good_standing_is_said() -> None:
    study = digests()
    rows = tuple(r for r in study.rows if r.choice in ("md5", "sha-1") and r.coordinates["bytes"] == 64)
    keys = {r.key for r in rows}
    study = replace(
        study,
        study=replace(study.study, rows=rows),
        measurements=tuple(m for m in study.measurements if m.row.key in keys),
    )
    none = "No option in good standing was measured; SHA-1 · "
    assert headline(study).startswith(none)
    assert headline(study).endswith(
        " (disallowed) has the lowest cost of the others, 79.8 ns of CPU per digest at 64 B."
    )


def test_each_operation_has_its_own_answer() -> None:
    study = passwords()

    def named(operation: str) -> StudyJudgement:
        rows = {
            r.key: replace(r, key=f"{operation} {r.key}", coordinates={**r.coordinates, "op": operation})
            for r in study.rows
        }
        return replace(
            study,
            study=replace(study.study, rows=tuple(rows.values())),
            measurements=tuple(replace(m, row=rows[m.row.key]) for m in study.measurements),
            tolls=(),
        )

    one, other = named("sign"), named("verify")
    cheaper = tuple(replace(m, value=m.value / (1000 if "scrypt" in m.row.key else 1)) for m in other.measurements)
    both = replace(
        one,
        study=replace(one.study, rows=(*one.rows, *other.rows)),
        measurements=(*one.measurements, *cheaper),
    )
    assert (
        "sign: “PBKDF2-SHA256, 600,000” (acceptable), 97.9 ms of CPU (verify with it: 97.9 ms); "
        "verify: “scrypt, N = 2^17, r = 8” (acceptable), 403 µs of CPU (sign with it: 403 ms)." == headline(both)
    )
    assert all(" has the lowest cost of 3 options in good standing; " in text for text in answer(both)[1:])
    assert ["Sign", "Verify"] == [text.partition(":")[0] for text in answer(both)[1:]]


def test_nothing_measured_is_said_with_its_reason() -> None:
    study = digests()
    rows = tuple(replace(r, outcome=Outcome.FAILED, reason="no library.", trials=()) for r in study.rows)
    bare = replace(study, study=replace(study.study, rows=rows), measurements=(), tolls=(), contrasts=())
    assert ("Nothing was measured. The first reason given: no library.",) == answer(bare)


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_every_shipped_study_has_a_line(name: str) -> None:
    line, *rest = answer(fabricated(name))
    assert "\n" not in line
    assert len(line) <= MOST_LETTERS
    assert rest
    for text in (line, *rest):
        assert text.endswith(".")
        assert not re.search(r"\.\.|[;,] ?[;.]|  |\(\)|None", text)
    assert re.search(r"\d (ns|µs|ms|s)\b|×", line)


def test_the_terminal_says_the_same(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    streams.stdout.cache_clear()
    show_judgement(judgement([passwords()]))
    streams.stdout.cache_clear()
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(" ".join(f"{passwords().about.question} {headline(passwords())}".split()))
