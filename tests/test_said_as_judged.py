"""Printed claims match the judgement: words claim no more than the comparisons show."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from math import inf

import pytest
from rich.console import Console

from builders import example, row, study_run
from report_example import digests, judgement, passwords
from served_example import asked_only, handshakes
from test_comparison import SYSTEM, compared, measured, slower
from tollbar.analysis import Compared, StudyJudgement, Verdict, compare, judge, judge_study
from tollbar.catalog import families
from tollbar.catalog.families import Degree, Standing
from tollbar.core import units
from tollbar.core.intervals import Interval
from tollbar.core.machine import differences
from tollbar.core.markdown import escaped
from tollbar.report import json_forms
from tollbar.report.changes import comparison_notes, comparison_tables, increase_lines
from tollbar.report.sections.against import against_baseline, rates, sentences
from tollbar.report.sections.answer import answer, headline, whole_answer
from tollbar.report.sections.effects import effects
from tollbar.report.sections.published.lines import within
from tollbar.report.sections.published.tables import published_tables
from tollbar.report.sections.results import results
from tollbar.report.sections.uses import Candidate, Offer, Uses, WayCost, use_sentences, why_open
from tollbar.report.terminal import progress
from tollbar.report.ways import places

ROUGHLY = {"sha-256": 100.0, "sha3-256": 200.0, "blake3": 100.1}


def choices(*names: str) -> StudyJudgement:
    """Return a study of these choices of good standing, compared with the first."""
    cells = []
    for name in names:
        costs = [ROUGHLY[name] * (1 + 0.0001 * (block % 3)) for block in range(20)]
        repeats = costs if name == names[0] else ()
        against = None if name == names[0] else names[0]
        cells.append(row({"choice": name}, costs, repeats_ns=repeats, against=against, standing=Standing.RECOMMENDED))
    study = study_run(cells)
    return judge_study(replace(study, study=replace(study.study, baseline={"choice": names[0]})))


def test_the_cheapest_is_one_that_every_comparison_calls_so() -> None:
    told = " ".join(answer(choices("sha-256", "sha3-256")))
    assert "is the cheapest of 2" in told
    alike = " ".join(answer(choices("sha-256", "sha3-256", "blake3")))
    assert "cheapest" not in alike
    assert "It has the lowest cost of 3 options; it costs the same within 3 % as blake3" in alike


OPEN = {
    Verdict.FREE: ("it costs the same within 3 % as blake3", "blake3 costs the same within 3 %"),
    Verdict.UNCLEAR: ("this run cannot distinguish it from blake3", "(unclear)"),
    None: ("it was not compared with blake3", "(not compared)"),
}


@pytest.mark.parametrize("verdict", OPEN, ids=str)
def test_equal_undecided_and_uncompared_costs_have_a_sentence_each(verdict: Verdict | None) -> None:
    study = choices("sha-256", "sha3-256", "blake3")
    (toll,) = [one for one in study.tolls if one.row.choice == "blake3"]
    rest = tuple(one for one in study.tolls if one is not toll)
    assert toll.ratio is not None
    wide = replace(toll, ratio=replace(toll.ratio, low=0.9, high=1.1), verdict=Verdict.UNCLEAR)
    tolls = {Verdict.FREE: study.tolls, Verdict.UNCLEAR: (*rest, wide), None: rest}[verdict]
    said = " ".join(answer(replace(study, tolls=tolls, contrasts=(), ledger=None)))
    for one, words in OPEN.items():
        assert (one is verdict) is all(text in said.lower() for text in words), (one, said)
    # A way that no verdict separates from the answer never makes it the cheapest.
    assert "It has the lowest cost of 3 options; " in said
    assert "is the cheapest" not in said


def test_ways_that_cost_less_are_counted_as_people_count() -> None:
    """The default is SHA-256; one other option, all of them, or some of them cost less."""

    def ranked(*less: float) -> str:
        costs = {"sha-256": 100.0, **dict(zip(("blake3", "sha3-256", "sha-512"), less, strict=False))}
        cells = []
        for name, cost in costs.items():
            blocks = [cost * (1 + 0.0001 * (block % 3)) for block in range(20)]
            repeats, against = (blocks, None) if name == "sha-256" else ((), "sha-256")
            cells.append(
                row({"choice": name}, blocks, repeats_ns=repeats, against=against, standing=Standing.RECOMMENDED)
            )
        about = replace(study_run(cells).study, family=families.family("digest"), baseline={"choice": "sha-256"})
        return whole_answer(judge_study(study_run(cells, (20,), about))).choices.steps[0]

    assert "The other option costs less than it." == ranked(50.0)
    assert "All 3 other options cost less than it." == ranked(50.0, 60.0, 70.0)
    assert "1 of the 2 other options costs less than it." == ranked(50.0, 200.0)


def test_a_free_baseline_that_costs_more_has_not_the_least_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROUGHLY, "sha-256", ROUGHLY["blake3"] * 1.01)
    said = " ".join(answer(choices("sha-256", "blake3")))
    assert "It costs the same within 3 % as blake3" in said
    assert "least cost" not in said
    assert "highest" not in said


def test_two_cells_that_no_toll_compares_are_compared_by_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = choices("sha-256", "sha3-256", "blake3")
    rows = {one.choice: one for one in judged.rows}
    found = Compared(judged).of(rows["sha3-256"], rows["blake3"])
    assert found is not None
    assert Verdict.COSTS is found.verdict
    assert Verdict.SAVES is (Compared(judged).of(rows["blake3"], rows["sha3-256"]) or found).verdict
    monkeypatch.setattr(sys.modules[Compared.__module__], "MOST_MADE", 1)
    pairs = Compared(judged)
    assert found == pairs.of(rows["sha3-256"], rows["blake3"]) == pairs.of(rows["sha3-256"], rows["blake3"])
    assert pairs.of(rows["blake3"], rows["sha3-256"]) is None
    # Without the trials nothing can be compared.
    assert Compared(replace(judged, ledger=None)).of(rows["sha3-256"], rows["blake3"]) is None


def test_counts_are_of_the_place_that_is_named() -> None:
    for text in answer(digests())[1:]:
        assert "here and in" not in text


@pytest.mark.parametrize("study", [digests(), passwords(), handshakes(), asked_only()], ids=lambda s: s.about.name)
def test_a_headline_says_what_its_costs_are_of(study: StudyJudgement) -> None:
    whose = {"cpu": " of CPU", "server-cpu": " of server CPU", "client-cpu": " of client CPU"}
    assert whose[study.about.measure.cost] in headline(study)


def test_what_a_client_pays_is_no_measure_of_a_server() -> None:
    assert rates(passwords()) is not None
    about = replace(passwords().about, measure=replace(passwords().about.measure, cost="client-cpu"))
    client = replace(
        passwords(),
        study=replace(passwords().study, study=about),
        measurements=tuple(replace(m, metric="client-cpu") for m in passwords().measurements if m.metric == "cpu"),
    )
    assert rates(client) is None


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [(999.4, "999 ns"), (999.7, "1.00 µs"), (1000.0, "1.00 µs"), (999_700.0, "1.00 ms"), (0.9997e9, "1.00 s")],
)
def test_a_thousand_of_a_unit_is_one_of_the_next(nanoseconds: float, expected: str) -> None:
    assert expected == units.show_nanoseconds(nanoseconds)


def test_a_subject_of_several_cells_has_the_worst_standing() -> None:
    study = digests()
    worse = {r.key for r in study.rows if r.choice == "sha-512" and r.coordinates["bytes"] == 16384}
    tolls = tuple(
        replace(t, row=replace(t.row, standing=Standing.DISALLOWED)) if t.row.key in worse else t for t in study.tolls
    )
    assert "SHA-512 (disallowed, " in against_baseline(replace(study, tolls=tolls))[0]
    assert "SHA-512 (disallowed, " not in against_baseline(study)[0]


def test_a_range_of_several_intervals_is_not_called_one() -> None:
    several = effects(digests()).brief[0].columns
    assert "all intervals" in [column.title for column in several]
    assert not any("% interval" in column.title for column in several)
    alone = replace(digests(), contrasts=tuple(c for c in digests().contrasts if c.pairs == 1))
    assert any("% interval" in column.title for column in effects(alone).brief[0].columns)


def test_standing_stands_wherever_a_choice_is_named_with_a_cost() -> None:
    (table,) = comparison_tables(slower(1.10)).values()
    assert "standing" in [column.title for column in table.columns]
    part = within(judgement([digests()]), digests())
    assert part is not None
    study = digests()
    claims = tuple(replace(c, claim=replace(c.claim, of={"choice": "md5"})) for c in study.claims[:1])
    part = within(judgement([study]), replace(study, claims=claims))
    assert part is not None
    assert "MD5 is broken." in (published_tables(part)[0].rows[0][0].small or "")
    judged = judge_study(study_run(example()))
    (one, other, *_) = [replace(r, standing=s) for r, s in zip(judged.rows, (Standing.BROKEN, *Standing), strict=False)]
    member = replace(judged.tolls[1], row=one, against=other)
    contrasts = tuple(replace(c, members=(member,)) for c in study.contrasts)
    found = effects(replace(study, contrasts=contrasts)).table
    assert "recommended → broken" in [row[found.index("standing")].says for row in found.rows]
    assert any("; acceptable, where " in said or "; both " in said for said in sentences(passwords()))


def test_unknown_ends_are_null_everywhere() -> None:
    study = digests()
    unknown = Interval(1.1, 0.0, inf, 0.975, 3)
    study = replace(
        study,
        measurements=tuple(replace(m, low=0.0, high=inf) for m in study.measurements),
        tolls=tuple(replace(t, ratio=unknown, all_samples=unknown, noise=unknown) for t in study.tolls),
        contrasts=tuple(replace(c, low=0.0, high=inf) for c in study.contrasts),
    )
    (found,) = json.loads(json.dumps(json_forms.of_run(judgement([study])), allow_nan=False))["studies"]
    for part in ("results", "tolls", "contrasts"):
        assert {(None, None)} == {(one["low"], one["high"]) for one in found[part]}
    assert [None, None] == found["tolls"][0]["all_interval"]
    cells = list(json_forms.cell_rows(judgement([study])))
    for name in ("cost_low_ns", "cost_high_ns", "ratio_low", "ratio_high"):
        assert {None} == {cell[name] for cell in cells}


def test_alternatives_are_held_against_each_other_in_one_place() -> None:
    uses = Uses(handshakes())
    cheap, *_, dear = uses.offers
    here, there = ({c.place.at.get("server"): c for c in offer.costs} for offer in (cheap, dear))
    both = sorted(server for server in here.keys() & there.keys() if server is not None)
    assert both
    server = str(both[0])
    on_this = Candidate((replace(dear, costs=(there[server],)),), Degree.YES)
    assert on_this.is_beaten_by(Candidate((replace(cheap, costs=(here[server],)),), Degree.YES))
    elsewhere = replace(
        here[server], place=replace(here[server].place, at={**here[server].place.at, "server": "another"})
    )
    assert not on_this.is_beaten_by(Candidate((replace(cheap, costs=(elsewhere,)),), Degree.YES))


def test_intervals_that_lie_apart_are_no_verdict() -> None:
    """Half a percent is measured well but is below the study's threshold: neither is cheaper."""
    study = choices("sha-256", "sha3-256", "blake3")
    pairs, (place,) = Compared(study), places(study)
    cost = {way.row.choice: WayCost(place, way, None, pairs) for way in place.ways}
    assert not cost["sha-256"].is_surely_less(cost["blake3"])
    assert cost["blake3"].is_surely_less(cost["sha3-256"])


def test_from_the_cheapest_is_an_order_that_was_told() -> None:
    """Overlapping neighbouring intervals leave the order to the estimates."""
    study = handshakes()
    wide = tuple(replace(t, ratio=replace(t.ratio, low=0.1, high=99.0)) if t.ratio else t for t in study.tolls)
    for text in use_sentences(Uses(replace(study, tolls=wide))):
        assert "from the cheapest" not in text
    uncompared = use_sentences(Uses(replace(study, tolls=wide, contrasts=(), ledger=None)))
    assert any(", by measured cost (not all were compared)" in text for text in uncompared)


def test_an_open_order_has_its_reason() -> None:
    study = choices("sha-256", "sha3-256", "blake3")
    (toll,) = [one for one in study.tolls if one.row.choice == "blake3"]
    assert toll.ratio is not None
    wide = replace(toll, ratio=replace(toll.ratio, low=0.9, high=1.1), verdict=Verdict.UNCLEAR)
    for tolls, expected in (
        ((toll,), ["some cost the same within 3 %"]),
        ((wide,), ["this run cannot distinguish some"]),
        ((), ["not all were compared"]),
    ):
        judged = replace(study, tolls=tolls, contrasts=(), ledger=None)
        pairs, (place,) = Compared(judged), places(judged)
        offers = {
            way.row.choice: Offer(way.row.choice, "hash", (WayCost(place, way, None, pairs),)) for way in place.ways
        }
        assert expected == why_open(judged, offers["sha-256"], offers["blake3"])


def test_runs_of_different_machines_say_what_differs() -> None:
    one, other = (measured({SYSTEM: ("openssl 3.0.19", 2.0)}) for _ in range(2))
    here, there = ({"cpu": name, "cores": 2, "kernel": "6.1"} for name in ("A", "B"))
    found = differences(here, there)
    assert found
    comparison = compare(
        judge(replace(one, fingerprint=here)), judge(replace(other, fingerprint=there)), across_machines=True
    )
    assert [f"measured on different machines: {one}" for one in found] == comparison_notes(comparison)[: len(found)]


def test_a_limit_says_how_many_rows_could_have_shown_a_rise() -> None:
    same = slower(1.0)
    assert "2 of 3 rows could have shown it." in increase_lines(same, (), 0.05)[-1]
    assert 2 == same.tellable("ratio")
    few = tuple(replace(p, other=replace(p.other, low=0.0, high=inf)) if p.other else p for p in same.pairs)
    none = replace(same, studies={"study": few})
    assert 0 == none.tellable("ratio")
    assert ["No row could have shown a rise by more than 5 %: every interval of a change is wider."] == increase_lines(
        none, (), 0.05
    )
    gone = compared(measured({SYSTEM: ("openssl 3.0.19", 2.0)}), measured({SYSTEM: ("openssl 3.0.19", 2.0)}, choices=1))
    assert ["c1"] == [one.choice for one in gone.gone["study"]]
    assert any(line.startswith("gone: c1") for line in increase_lines(gone, (), 0.05))


def test_names_are_no_markup_in_progress_and_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    monkeypatch.setattr(progress, "stderr", lambda: console)
    with progress.Progress() as bar:
        for _ in bar.follow("[bold]x[/]", [1], 1, ["[b]study[/]: a cell"]):
            pass
    assert "[bold]x[/]" in written.getvalue()
    assert "[b]study[/]: a cell" in written.getvalue()
    assert r"[a]\(javascript:x\)" == escaped("[a](javascript:x)").replace(")", r"\)")
    assert r"\~~a\~~" == escaped("~~a~~")


def test_a_standing_that_a_setting_lowers_says_which() -> None:
    """An acceptable version of TLS is not acceptable with a certificate of RSA-1024."""
    study = handshakes()
    at_fault = {
        (row.choice, row.coordinates["certificate"]) for row in study.rows if row.standing is Standing.DISALLOWED
    }
    assert ("tls-1.2", "rsa-1024") in at_fault
    assert study.about.family.choices["tls-1.2"].standing is not Standing.DISALLOWED
    assert "disallowed by rsa-1024: tls-1.2" in results(study).marks
    assert not [mark for mark in results(digests()).marks if " by " in mark.partition(":")[0]]
