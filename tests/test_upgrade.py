"""An upgrade: two builds, fetched packages, and changes that are more expensive, cheaper, new or gone."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from math import exp
from pathlib import Path

import pytest

import share
from builders import row, run, study, study_run
from conftest import Tollbar, command
from tollbar import results
from tollbar.analysis import Judgement, StudyJudgement, Verdict, judge, judge_study
from tollbar.catalog import servers
from tollbar.catalog.families import Value
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.cli.options import Options, resumed
from tollbar.core.errors import TollbarError
from tollbar.core.records import LoadRecord, Negotiated, Outcome
from tollbar.decide import upgrade
from tollbar.decide.upgrade import Kind, questions
from tollbar.decide.upgrade.document import document
from tollbar.decide.upgrade.words import apart_sentence, upgrade_answer
from tollbar.results import Row
from upgrade_lab import BLOCKS, NEW, OLD, of, pair, side, texts_of

RATIOS = {"dearer": 1.10, "cheaper": 0.90, "no change": 1.0}


@pytest.mark.parametrize("kind", RATIOS)
def test_a_row_is_what_its_ratio_says(kind: str) -> None:
    """For 10 % more, 10 % less and none; the whole interval decides."""
    (change,) = of(*pair(kind, RATIOS[kind])).changes
    assert kind == change.kind
    assert change.ratio is not None
    assert change.ratio.estimate == pytest.approx(RATIOS[kind], rel=0.01)


def of_nothing(seed: int, rows: int) -> list[Row]:
    """Return rows of two builds of equal cost; each process has a luck of 10 %, which its repeat happens to share."""
    source, found = random.Random(seed), []
    for number in range(rows):
        one, other = ([100 * exp(source.gauss(0, 0.1)) for _ in range(BLOCKS)] for _ in range(2))
        against = row({"choice": f"{number}", "provider": OLD}).key
        for name, costs in ((OLD, one), (NEW, other)):
            at = {"choice": f"{number}", "provider": name}
            found.append(row(at, costs, repeats_ns=one if name == OLD else (), against=against))
    return found


def test_of_many_rows_that_cost_the_same_none_is_told() -> None:
    """Single rows would be wrong once in 25; an answer of twenty rows must be wrong no oftener than one of one row."""
    alone, wrong = 0, 0
    answers = share.of(8, 20)
    for seed in range(answers):
        found = of(*of_nothing(seed, 20))
        (judged,) = found.judged.studies
        alone += any(toll.verdict in (Verdict.COSTS, Verdict.SAVES) for toll in judged.tolls)
        wrong += bool(found.of(Kind.DEARER) or found.of(Kind.CHEAPER))
        assert 20 == found.among
        assert "hold jointly, all 20, at 96 %" in upgrade_answer(found).how[0]
    assert alone >= answers / 4
    assert wrong <= share.of(1, 3)


def test_one_row_has_the_interval_that_it_has_by_itself() -> None:
    """Several rows have wider intervals, corrected for their number, which decide their kinds."""
    found = of(*pair("a", 1.0), *pair("b", 1.0))
    one, _ = found.changes
    assert one.ratio is not None
    assert one.study.ledger is not None
    alone = one.study.ledger.compare(one.row, one.old_row).ratio
    assert alone is not None
    assert alone.estimate == one.ratio.estimate
    assert 1.1 < (one.ratio.high - one.ratio.low) / (alone.high - alone.low) < 1.4
    assert (0.96, 0.98) == (alone.confidence, one.ratio.confidence)
    said = document(of(*pair("a", 1.0), *pair("b", 1.0)))
    assert 2 == said.among
    assert [0.98, 0.98] == [change.ratio.confidence for change in said.changes if change.ratio]


def test_what_one_build_lacks_is_new_or_gone() -> None:
    found = of(
        *pair("a", 1.0, lacks=OLD),
        *pair("b", 1.0, lacks=NEW),
        *pair("c", 1.0, lacks="both"),
        *pair("d", 1.0, lacks=NEW, why=Outcome.FAILED),
    )
    kinds = {change.row.choice: change.kind for change in found.changes}
    assert kinds == {"a": Kind.NEW, "b": Kind.GONE, "d": Kind.FAILED}
    assert [f"{NEW} has no b"] == [change.reason for change in found.of(Kind.GONE)]
    assert ["c"] == [change.row.choice for change in found.neither]
    assert 0 == found.tellable(0.5)


@pytest.mark.parametrize("crashed", [OLD, NEW])
def test_a_crash_is_neither_new_nor_gone(crashed: str) -> None:
    for other in (Outcome.OK, Outcome.UNSUPPORTED):
        rows = pair("a", 1.0) if other is Outcome.OK else pair("a", 1.0, lacks="both")
        number = (OLD, NEW).index(crashed)
        rows[number] = replace(rows[number], outcome=Outcome.FAILED, reason="SIGSEGV", trials=(), repeats=())
        (change,) = of(*rows).changes
        assert (Kind.FAILED, "SIGSEGV") == (change.kind, change.reason)


def test_what_this_machine_lacks_is_not_said_of_the_build(tmp_path: Path) -> None:
    alone = tmp_path / "libcrypto.so.3"
    alone.touch()
    (old, new) = pair("a", 1.0, lacks=NEW)
    rows = [replace(one, coordinates={**one.coordinates, "server": "embedded"}) for one in (old, new)]
    bare = replace(side(NEW), provider=replace(side(NEW).provider, path=str(alone)))
    about = replace(study(threshold=0.01, blocks=BLOCKS), baseline={"provider": OLD})
    judged = judge(run(study_run(rows, (BLOCKS,), about)))
    assert [Kind.FAILED] == [one.kind for one in upgrade.upgrade(side(OLD), bare, judged).changes]
    (tmp_path / "libssl.so.3").touch()
    assert [Kind.GONE] == [one.kind for one in upgrade.upgrade(side(OLD), bare, judged).changes]


def test_without_a_server_neither_build_is_said_to_lack_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "find", lambda server: servers.Unavailable(server.name, "not installed"))
    monkeypatch.setattr(questions, "libssl_beside", lambda path: path)
    rows = [replace(one, coordinates={**one.coordinates, "server": "nginx"}) for one in pair("a", 1.0, lacks="both")]
    found = of(*rows)
    assert not found.neither
    assert not found.changes
    assert upgrade_answer(found).missing[0].startswith("Not measured: ")
    old, new = (
        replace(one, provider=replace(one.provider, path="/lib/libcrypto.so.3"))
        for one in (side(OLD), side(NEW, "libcrypto:psycopg"))
    )
    (asked,) = upgrade.studies(old, new, ["tls"], 4)
    assert ("embedded",) == asked.servers


def loud(one: Row) -> Row:
    """Return the row without a probe that found the core quiet."""
    trials, repeats = (
        tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in some)
        for some in (one.trials, one.repeats)
    )
    return replace(one, trials=trials, repeats=repeats)


def test_what_is_as_disturbed_is_called_so() -> None:
    found = of(*map(loud, pair("dearer", 1.10)))
    answer = upgrade_answer(found)
    assert "noisy" in answer.how[0]
    assert "quiet" not in answer.how[0]
    assert texts_of(answer)["more expensive"][0][-1].endswith("%~")
    assert 1 == sum(note.startswith("~ noisy") for note in answer.notes)
    ratio = document(found).changes[0].ratio
    assert ratio is not None
    assert ratio.noisy
    quiet = upgrade_answer(of(*pair("dearer", 1.10)))
    assert "quiet" in quiet.how[0]
    assert "~" not in f"{texts_of(quiet)}{quiet.notes}"


def test_only_what_is_above_with_its_whole_interval_fails() -> None:
    found = of(*pair("dearer", 1.10), *pair("cheaper", 0.9))
    assert ["dearer"] == [change.row.choice for change in found.above(0.05)]
    assert not found.above(0.12)
    assert 2 == found.tellable(0.05)
    # Neither interval nor noise is that narrow.
    assert 0 == found.tellable(0.00001)


def test_the_answer_says_on_one_core() -> None:
    """Locks cost time only with several threads."""
    answer = upgrade_answer(of(*pair("dearer", 1.10), *pair("gone", 1.0, lacks=NEW)), 0.05)
    assert "openssl 3.0.19 → 3.5.9, on one core: 1 more expensive and 1 gone." == answer.headline
    assert answer.question.endswith(", on one core?")
    assert any(note.startswith("Rose by more than 5 %") for note in answer.notes)
    assert document(of(*pair("dearer", 1.10)), 0.05).changes[0].above


def test_the_document_has_each_row() -> None:
    said = document(of(*pair("dearer", 1.10), *pair("new", 1.0, lacks=OLD)), None)
    assert [("dearer", True), ("new", False)] == [(one.kind, one.ratio is not None) for one in said.changes]
    assert said.changes[1].old_ns is None
    assert said.changes[0].old_ns == pytest.approx(100, rel=0.02)


# By default and held, in microseconds: the old one, then the new one.
DEFAULTS = {("by-default", OLD): 200.0, ("by-default", NEW): 248.0, ("held", OLD): 200.0, ("held", NEW): 210.0}
GROUPS = {("by-default", OLD): "x25519", ("by-default", NEW): "X25519MLKEM768"}


def taken_apart(made_of: Mapping[tuple[str, str], float] = DEFAULTS, noise: float = 0.002) -> StudyJudgement:
    """Return a study of four cells with these costs: by default the library costs 5 % more, and its new group 19 %."""
    source, rows = random.Random(3), []
    for (choice, provider), cost in made_of.items():
        costs, repeats = ([cost * exp(source.gauss(0, noise)) for _ in range(BLOCKS)] for _ in range(2))
        against = row({"choice": choice, "provider": OLD}).key
        made = row(
            {"choice": choice, "provider": provider},
            costs,
            repeats_ns=repeats if provider == OLD else (),
            against=against,
        )
        group = GROUPS.get((choice, provider), "x25519")
        load = LoadRecord(wall_ns=1, negotiated=(Negotiated(version="TLS 1.3", suite="A", group=group, count=9),))
        rows.append(replace(made, trials=tuple(replace(trial, load=load) for trial in made.trials)))
    factors: dict[str, tuple[Value, Value]] = {"provider": (OLD, NEW), "choice": ("by-default", "held")}
    about = replace(study(threshold=0.01, blocks=BLOCKS), baseline={"provider": OLD}, factors=factors)
    return judge_study(study_run(rows, (BLOCKS,), about))


def test_a_change_by_default_is_taken_apart() -> None:
    """24 % are 5 of the library and 19 of the new group; the intervals of the parts cover the true values."""
    judged = taken_apart()
    (found,) = judged.factors
    assert found.split is not None
    parts = {"whole": 1.24, "alike": 1.05, "rest": 1.19}
    for name, made in parts.items():
        got = getattr(found.split, name)
        assert got.low <= made <= got.high
        assert got.half_width < 0.01
    split = found.split
    added = split.alike.estimate - 1 + split.rest.estimate - 1
    assert split.whole.estimate - 1 == pytest.approx(added, rel=1e-9)


def test_parts_hold_together_with_the_rows() -> None:
    """Two rows and three parts: each has a fifth of the error, which leaves some undecided."""
    # The library takes 4 % more, and each process has a luck of 1 %.
    judged = taken_apart({**DEFAULTS, ("held", NEW): 208.0}, 0.0125)
    found = upgrade.upgrade(side(OLD), side(NEW), Judgement(run(judged.study), (judged,)))
    (apart,) = found.apart
    (alone,), split = judged.factors, apart.found.split
    assert split is not None
    assert alone.split is not None
    assert 5 == found.among == document(found).among
    for name in ("whole", "alike", "rest"):
        wider, own = getattr(split, name), getattr(alone.split, name)
        assert (0.04 / 5) == pytest.approx(1 - wider.confidence)
        assert own.estimate == wider.estimate
        assert 1.2 < (wider.high - wider.low) / (own.high - own.low) < 1.6
    assert (Verdict.COSTS, Verdict.COSTS, Verdict.COSTS) == alone.split.verdicts
    assert (Kind.DEARER, Kind.OPEN, Kind.DEARER) == apart.kinds
    assert "+4.3 % the library (cannot tell)" in apart_sentence(apart)


def test_what_was_negotiated_is_said_beside_the_parts() -> None:
    judged = taken_apart()
    found = upgrade.upgrade(side(OLD), side(NEW), Judgement(run(judged.study), (judged,)))
    (apart,) = found.apart
    assert ("TLS 1.3, x25519, A", "TLS 1.3, X25519MLKEM768, A") == apart.negotiated[:2]
    said = apart_sentence(apart)
    assert "X25519MLKEM768, where it was x25519" in said
    assert "on one core: +24 %" in said
    # The printed parts add up to the printed whole.
    assert "+19 % the new defaults" in said
    assert "+5.0 % the library" in said or "+4.9 % the library" in said


def test_each_part_has_the_verdict_of_its_own_ratio() -> None:
    """The library's 2.4 of 200 is more expensive when held, and 2.4 of 250 is no change as shipped."""
    costs = {("by-default", OLD): 250.0, ("by-default", NEW): 252.4, ("held", OLD): 200.0, ("held", NEW): 202.4}
    judged = taken_apart(costs, 0.0001)
    found = upgrade.upgrade(side(OLD), side(NEW), Judgement(run(judged.study), (judged,)))
    (apart,) = found.apart
    assert (Kind.SAME,) * 3 == apart.kinds
    answer = upgrade_answer(found, 0.01)
    assert ["no change"] * 3 == [cells[3] for cells in texts_of(answer)[""]]
    # A row that `--fail-above` names is in a table, with the ratio that decided.
    assert ["held"] == [one.row.choice for one in found.above(0.01)]
    assert ["+1.2 %"] == [cells[3] for cells in texts_of(answer)["more expensive"]]
    assert "x25519; no change)" in apart_sentence(apart)
    assert "the library (no change)" in apart_sentence(apart)
    library = document(found).apart[0].library
    assert library is not None
    assert "no change" == library.kind


@pytest.mark.share(0)
def test_an_upgrade_of_nothing_from_command_to_page(tollbar: Tollbar, tmp_path: Path) -> None:
    """Compares a copy of the library with the library: rows with intervals, none new or gone, and a page.

    `python -m bench upgrade` checks the verdicts, because an interval may miss, however seldom.
    """
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    copied = tmp_path / "copy"
    copied.mkdir()
    shutil.copy(str(system.path), copied / "libcrypto.so.3")
    page = tmp_path / "upgrade.html"
    done = tollbar("upgrade", "libcrypto", str(copied), "digest", "--for", "4s", "--json", "--output", str(page))
    assert done.returncode in (0, 3), done.stderr
    said = json.loads(done.stdout)
    assert 6 == len(said["changes"])
    assert {one["kind"] for one in said["changes"]} <= {"dearer", "cheaper", "no change", "cannot tell"}
    assert all(
        low < one["ratio"]["estimate"] < high for one in said["changes"] for low, high in [one["ratio"]["interval"]]
    )
    assert "on one core" in page.read_text()


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_resumed_upgrade_keeps_its_answer_and_its_status(interrupted: bool, tollbar: Tollbar, tmp_path: Path) -> None:
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    copied = tmp_path / "copy"
    copied.mkdir()
    shutil.copy(str(system.path), copied / "libcrypto.so.3")
    words = ["upgrade", "libcrypto", "./copy", "digest", "--fail-above", "0.01%", "--for", "4s"]
    if interrupted:
        with subprocess.Popen([command(), *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as first:
            assert first.stderr is not None
            next(line for line in first.stderr if line.strip().startswith("measure "))
            first.send_signal(signal.SIGINT)
        status, before = 3, None
    else:
        done = tollbar(*words, "--json")
        status, before = done.returncode, json.loads(done.stdout)
    (run,) = (tmp_path / "runs").iterdir()
    again = tollbar("run", "--resume", f"runs/{run.name}", "--json")
    said = json.loads(again.stdout)
    assert 6 == len(said["changes"]), again.stderr
    assert "./copy" == said["new"]["said"]
    if before is not None:
        kinds = [[(one["cell"], one["kind"], one["above"]) for one in found["changes"]] for found in (before, said)]
        assert kinds[0] == kinds[1]
        assert status == again.returncode
    # No interval is that narrow: only the option gives this status.
    assert {status, again.returncode} <= {1, 3}


def test_a_server_upgrades_run_is_not_resumed_with_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the command knows its servers, so the hint names the options."""

    def studies_of(directory: Path, *, to_measure: bool) -> object:
        raise TollbarError("no such server: `nginx=1`", hint="did you mean `nginx`?")

    monkeypatch.setattr(results, "studies", studies_of)
    for name, hint in (
        ("upgrade", "repeat the `tollbar upgrade` command as a new run"),
        ("run", "did you mean `nginx`?"),
    ):
        about = {"command": ["tollbar", name, "nginx=1", "nginx=2"]}
        monkeypatch.setattr(results, "about", lambda directory, about=about: about)
        with pytest.raises(TollbarError) as caught:
            resumed(Path("run"), (), Options())
        assert hint == caught.value.hint


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (("libcrypto", "libcrypto"), 2, "both builds are this file"),
        (("libcrypto", "libcrypto:nothing"), 2, "no such libcrypto: `nothing`"),
        (("libcrypto", "libcrypto:psycopg", "--fail-above", "0%"), 2, "must be greater than 0 %"),
        (
            ("libcrypto", "libcrypto:psycopg", "--fail-above", "-5%"),
            2,
            "needs a value; `-5%` begins with a dash",
        ),
        (("libcrypto", "libcrypto:psycopg", "--fail-above"), 2, "--fail-above: needs a value"),
        (("libcrypto",), 2, "needs two builds"),
        *(
            (("libcrypto", "libcrypto:psycopg", "--for", none), 2, "must be greater than 0")
            for none in ("0s", "0ms", "0.0s")
        ),
        (("libcrypto", "libcrypto:psycopg", "nothing"), 2, "no such family of this build"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], status: int, error: str, tollbar: Tollbar) -> None:
    done = tollbar("upgrade", *words)
    assert status == done.returncode
    assert error in done.stderr
    assert "Traceback" not in done.stderr
