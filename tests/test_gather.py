"""Gathering: what is read of runs that others made, what is refused, and what is said of many side by side."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from bench.fleet import DIGESTS, FLAGS, fingerprint, run_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from conftest import Tollbar
from tollbar import families, gathering, judge, results
from tollbar.document.decisions.gather import document, toll_rows
from tollbar.errors import TollbarError
from tollbar.families import Value
from tollbar.gathering import Gathered, Unusable
from tollbar.gathering.kept import FILE, KeptJudgement, read_kept
from tollbar.gathering.reading import Doubt, Found
from tollbar.judge import Verdict
from tollbar.present.decisions.gather import gather_answer, gather_page, refusal_words
from tollbar.report.page import html
from tollbar.results import reading
from tollbar.study.definition import default_load

CHOICES = {"sha-256": 1000.0, "sha-512": 1500.0, "sha-1": 800.0, "blake3": 1000.0}
REHEARSAL = """
question  = "Does this lab tell?"
family    = "spin"
providers = ["spin"]
choices   = ["spin-1", "spin-2"]
baseline  = "spin-1"

[[claim]]
says   = "Twice the work costs twice as much"
of     = { choice = "spin-2" }
over   = { choice = "spin-1" }
metric = "cost"
ratio  = 2.0
"""


def cost(**changed: float) -> Callable[[Mapping[str, Value]], float]:
    """What each choice costs, some of them otherwise."""
    costs = {**CHOICES, **{name.replace("_", "-"): ns for name, ns in changed.items()}}
    return lambda at: costs[str(at["choice"])]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no test changes."""
    return run_of(tmp_path_factory.mktemp("made"), fingerprint("Example CPU 1"), cost())


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """A run of a test's own."""
    return Path(shutil.copytree(made, tmp_path / "runs" / "one"))


def told(*folders: Path) -> Gathered:
    return gathering.gather(gathering.read(folders))


def reason_of(directory: Path) -> str:
    """Why a directory is no run that can be read."""
    (one,) = gathering.read([directory])
    assert isinstance(one, Unusable)
    assert one.reason.isprintable()
    return one.reason


def test_machines_are_columns_and_tolls_are_rows(made: Path, tmp_path: Path) -> None:
    """Two processors: each its own ratio and verdict, and no figure of both."""
    run_of(tmp_path, fingerprint("Example CPU 2", flags=("aes",)), cost(sha_512=700.0))
    found = told(made, tmp_path)
    assert ["Example CPU 1", "Example CPU 2"] == [machine.processor for machine in found.machines]
    (row,) = [
        r for r in found.rows if (r.at["choice"], r.at["provider"], r.at["bytes"]) == ("sha-512", "libcrypto", 64)
    ]
    assert {0: Verdict.COSTS, 1: Verdict.SAVES} == row.verdicts
    assert row.differs
    assert "sha-256" == row.over["choice"]
    first, second = (row.places[machine].ratios[0].ratio for machine in (0, 1))
    assert first == pytest.approx(1.5, rel=0.02)
    assert second == pytest.approx(0.7, rel=0.02)


def test_what_is_kept_is_what_is_judged(run: Path) -> None:
    """The same tolls from the file as from the chunks; and what is not of this state is not believed."""
    kept = read_kept(run)
    (run / FILE).unlink()
    assert read_kept(run) is None
    assert kept == gathering.keep(judge.judge(results.read(run))) == read_kept(run)
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("delete from trial where block = 4")
    assert read_kept(run) is None
    (found,) = gathering.read([run])
    assert isinstance(found, Found)
    assert {4} == {toll.blocks for study in found.studies for toll in study.tolls if toll.ratio}
    # Judged once, it is read.
    assert read_kept(run) is not None


def test_several_runs_of_a_machine_are_a_range(made: Path, tmp_path: Path) -> None:
    """From the least to the most; a verdict is that of all, and none where they contradict one another."""
    same = fingerprint("Example CPU 1")
    run_of(tmp_path / "2", same, cost(sha_512=1600.0, sha_1=1300.0, blake3=1034.0), seed=2)
    found = told(made, tmp_path)
    assert [2] == [len(machine.runs) for machine in found.machines]
    places = {
        row.at["choice"]: row.places[0]
        for row in found.rows
        if (row.at["provider"], row.at["bytes"]) == ("rustcrypto", 64)
    }
    assert [1.5, 1.6] == sorted(round(toll.ratio or 0, 1) for toll in places["sha-512"].ratios)
    assert Verdict.COSTS is places["sha-512"].verdict
    assert places["sha-1"].verdict is None
    text = str(gather_answer(found, everything=True))
    assert "1.50 to 1.60" in text
    assert "runs differ" in text


def test_a_copy_is_no_further_run(run: Path, tmp_path: Path) -> None:
    """Sent twice, it would be two observations of one."""
    shutil.copytree(run, tmp_path / "runs" / "two")
    first, second = gathering.read([tmp_path / "runs"])
    assert isinstance(first, Found)
    assert isinstance(second, Unusable)
    assert f"the same run as {first.name}" == second.reason
    assert 1 == len(gathering.read([run, run, run / ".." / "one"]))
    # An earlier state of it is none either.
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("delete from trial where block = 4")
    first, second = gathering.read([tmp_path / "runs"])
    assert isinstance(first, Unusable)
    assert isinstance(second, Found)


def test_an_earlier_state_does_not_hide_what_is_refused(run: Path, tmp_path: Path) -> None:
    """A run that is doubtful as it has gone on is not told as it was before."""
    shutil.copytree(run, tmp_path / "runs" / "two")
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("delete from trial where block = 4")
    later = tmp_path / "runs" / "two" / FILE
    kept = KeptJudgement.model_validate_json(later.read_bytes())
    noisy = [study.model_copy(update={"noise_floor": 1.5}) for study in kept.studies]
    later.write_text(kept.model_copy(update={"studies": noisy}).model_dump_json())
    earlier, last = gathering.read([tmp_path / "runs"])
    assert isinstance(earlier, Unusable)
    assert isinstance(last, Found)
    assert [Doubt.NOISE] == [one.doubt for one in last.refused]


def test_runs_that_contradict_are_counted_by_themselves(made: Path, tmp_path: Path) -> None:
    """Not among what is decided on several machines, of which there is none."""
    run_of(tmp_path, fingerprint("Example CPU 1"), cost(sha_512=700.0), seed=2)
    said = gather_answer(told(made, tmp_path)).headline
    assert said.endswith(
        " on 1 machine: none is decided on more than one machine; of 4, runs of one machine contradict one another."
    )


def test_ratios_as_disturbed_are_marked(run: Path) -> None:
    """Of a core that nothing probed: in each form, and in the words of what a ratio is."""
    assert "~" not in str(gather_answer(told(run), everything=True))
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("delete from observation where metric like 'probe%'")
    (run / FILE).unlink()
    found = told(run)
    assert {True} == {toll.is_disturbed for row in found.rows for toll in row.places[0].ratios}
    answer = gather_answer(found, everything=True)
    assert "where `~` stands, as disturbed" in answer.how[0]
    assert "1.50~ [" in str(answer)
    (seen,) = {one.disturbed for toll in document(found).tolls for on in toll.on for one in on.runs if one.ratio}
    assert seen
    assert {True} == {row["disturbed"] for row in toll_rows(found) if row["ratio"]}


@pytest.mark.parametrize("name", ["users", "rates_hz", "utilisations", "clients"])
def test_what_is_a_coordinate_is_no_other_load(name: str) -> None:
    """How many, how often, how busy and from where: studies that vary them differently have cells in common."""
    values: dict[str, list[Any]] = {
        "users": [(8,), (1, 8)],
        "rates_hz": [(100.0,), (100.0, 200.0)],
        "utilisations": [(60,), (30, 60)],
        "clients": [("apart",), ("beside", "apart")],
    }
    load = default_load(families.family("web-auth"))
    one, other = (replace(load, **{name: value}).asked for value in values[name])
    assert one == other
    assert replace(load, think_s=1.0).asked != load.asked
    assert replace(load, rates_hz=(100.0,)).asked != load.asked


def test_what_is_not_alike_is_not_one_toll(made: Path, tmp_path: Path) -> None:
    """Another threshold or other parameters of a choice: rows of their own."""
    run_of(tmp_path, fingerprint("Example CPU 2"), cost(), text=f'{DIGESTS}\n[judge]\nworth = "10 %"\n')
    found = told(made, tmp_path)
    assert {1} == {len(row.places) for row in found.rows}
    assert {0.03, 0.10} == {row.worth for row in found.rows}


@pytest.mark.parametrize("beside", [(), ("avx2",)], ids=["alone", "with another"])
def test_a_flag_that_separates_is_a_pattern(tmp_path: Path, beside: tuple[str, ...]) -> None:
    """Two processors with it and two without: told as a pattern; one on a side tells nothing."""
    for number, has in enumerate((True, True, False, False)):
        flags = ("aes", *(("sha_ni", *beside) if has else ()))
        run_of(tmp_path, fingerprint(f"CPU {number}", flags=flags), cost(sha_512=2000.0 if has else 600.0), seed=number)
    runs = gathering.read([tmp_path])
    (pattern,) = gathering.gather(runs).patterns
    assert (*sorted(beside), "sha_ni") == pattern.flags
    assert (Verdict.COSTS, Verdict.SAVES) == (pattern.have, pattern.lack)
    assert (2, 2) == pattern.processors
    assert {"sha-512"} == {row.at["choice"] for row in pattern.rows}
    said = str(gather_answer(gathering.gather(runs)))
    assert "A pattern and not a cause" in said
    assert () == gathering.gather(runs[:3]).patterns


def test_doubtful_studies_are_refused(tmp_path: Path) -> None:
    """Noise above what is worth telling, no quiet moment, a failed rehearsal: each with its reason, and no toll."""
    machine = fingerprint("Example CPU")
    run_of(tmp_path / "noise", machine, cost(), twin=1.05, seed=1)
    disturbed = run_of(tmp_path / "busy", machine, cost(), quiet=False, seed=2)
    spun = {"spin-1": 1000.0, "spin-2": 1500.0, "spin-1-again": 1000.0, "none": 1.0}
    run_of(tmp_path / "wrong", machine, lambda at: spun[str(at["choice"])], text=REHEARSAL, name="rehearsal", seed=3)
    found = told(tmp_path)
    assert () == found.rows
    refused = {one.doubt: refusal_words(one) for run in found.runs for one in run.refused}
    assert {*Doubt} == {*refused}, disturbed
    assert "what was measured twice differed by 5.2 %, and 3 % is worth telling" == refused[Doubt.NOISE]
    assert "never a quiet moment" in refused[Doubt.NEVER_QUIET]
    assert "“Twice the work costs twice as much”" in refused[Doubt.REHEARSAL]
    assert "No toll can be told of 3 runs on 1 machine: below is why." == gather_answer(found).headline


def _schema(run: Path) -> None:
    _said(run, schema=4)


def _said(run: Path, **more: object) -> None:
    said = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**said, **more}))
    (run / FILE).unlink(missing_ok=True)


def _linked(run: Path) -> None:
    (run / "results.sqlite").rename(run.parent.parent / "elsewhere")
    (run / "results.sqlite").symlink_to(run.parent.parent / "elsewhere")


def _linked_study(run: Path) -> None:
    (run / "studies" / "digests.toml").unlink()
    (run / "studies" / "digests.toml").symlink_to("/etc/passwd")


def _climbing(run: Path) -> None:
    said = json.loads((run / "run.json").read_text())
    _said(run, studies={"../../../etc/x": said["studies"]["digests"]})


def _climbing_family(run: Path) -> None:
    text = (run / "studies" / "digests.toml").read_text()
    (run / "studies" / "digests.toml").write_text(text.replace('"digest"', '"../../../digest"'))
    (run / FILE).unlink()


def _viewed(run: Path, table: str = "trial", *, forged: bool = False, kept: bool = True) -> None:
    """A view that never ends under a table's name; `forged`: the schema says that it is a table."""
    with sqlite3.connect(run / "results.sqlite") as database:
        database.executescript(
            f"drop table {table}; create view {table} as with recursive n(i) as (select 1 union all select i + 1 from"
            " n) select i as study, i as block, i as key from n"
        )
        if forged:
            database.execute("pragma writable_schema = 1")
            database.execute("update sqlite_master set type = 'table' where name = ?", (table,))
    if not kept:
        (run / FILE).unlink()


def _cut(run: Path) -> None:
    os.truncate(run / "results.sqlite", 5000)


def _garbled(run: Path) -> None:
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("update observation set by_round = 'x'")
    (run / FILE).unlink()


def _fifo(run: Path) -> None:
    (run / FILE).unlink()
    os.mkfifo(run / FILE)


def _much(run: Path) -> None:
    for number in range(50):
        path = run / "studies" / f"{number}.toml"
        path.touch()
        os.truncate(path, 4 << 20)


def _large(run: Path) -> None:
    os.truncate(run / "studies" / "digests.toml", 1 << 30)


HOSTILE: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "another schema": (_schema, "before version 5 of the run format"),
    "no JSON": (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
    "deep JSON": (lambda run: (run / "run.json").write_text("[" * 100_000), "not as Tollbar writes it"),
    "no run": (lambda run: (run / "run.json").write_text("[]"), "not a run of schema 5"),
    "no studies": (lambda run: _said(run, studies=7), "not as Tollbar writes it"),
    "no fingerprint": (lambda run: _said(run, fingerprint="x"), "not as Tollbar writes it"),
    "a terminal's escape": (lambda run: _said(run, started="\x1b[2J"), "a control character, U+001B"),
    "a climbing study": (_climbing, "no name of a study"),
    "a climbing family": (_climbing_family, "a name, and no place"),
    "a linked database": (_linked, "`results.sqlite` is a symbolic link, which is not followed"),
    "a linked study": (_linked_study, "is a symbolic link, which is not followed"),
    "a pipe": (_fifo, "`judged.json` is neither a file nor a folder"),
    "a large file": (_large, "`studies/digests.toml` is larger than that of any run"),
    "many large files": (_much, "its files are larger than those of any run"),
    **{
        f"a view that never ends, {table}, {forged=}, {kept=}": (
            partial(_viewed, table=table, forged=forged, kept=kept),
            # SQLite holds the type against the text.
            f"malformed database schema ({table})" if forged else f"`{table}` is no table",
        )
        for table, forged, kept in product(("cell", "trial"), (False, True), (False, True))
    },
    "a cut database": (_cut, "the results cannot be read"),
    "no database": (lambda run: (run / "results.sqlite").unlink(), "cannot be read"),
    "no text of a study": (lambda run: shutil.rmtree(run / "studies"), "cannot be read"),
    "garbled rounds": (_garbled, "not as Tollbar writes it"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_others_send_is_a_reason(run: Path, what: str) -> None:
    """One line each, and nothing read that is not the run's."""
    spoil, expected = HOSTILE[what]
    spoil(run)
    assert expected in reason_of(run)


def test_reading_ends(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked of the results of another's making."""
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    monkeypatch.setattr(reading, "MOST_S", 0)
    monkeypatch.setattr(reading, "reach", lambda database: database.execute(endless).fetchall())
    with pytest.raises(TollbarError, match="take more than 0 s to be read"):
        results.present(run)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_die, "the process that judged it ended"),
        (lambda: time.sleep(600), "the process that judged it ended"),
        (lambda: bytearray(gathering.reading.MOST_ADDRESSES), "more memory than one run may have"),
    ],
    ids=["killed", "endless", "large"],
)
def test_one_that_dies_takes_no_other_with_it(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[], object], said: str
) -> None:
    """Those that shared its pool are judged all the same."""
    for seed in range(5):
        copied = Path(shutil.copytree(made, tmp_path / "runs" / f"{seed}"))
        _said(copied, seed=seed)
    really = judge.judge

    def judged(run: results.Run) -> judge.Judgement:
        if run.seed == 1:
            spoil()
        return really(run)

    monkeypatch.setattr(judge, "judge", judged)
    monkeypatch.setattr(gathering.reading, "MOST_S", 5)
    found = gathering.read([tmp_path / "runs"])
    reasons = [one.reason if isinstance(one, Unusable) else "" for one in found]
    assert said in reasons.pop(1)
    assert [""] * 4 == reasons


def test_what_is_kept_by_others_is_checked(run: Path) -> None:
    """A judgement that is not as it is written here is none; one with a control character is a reason."""
    kept = json.loads((run / FILE).read_text())
    kept["studies"][0]["question"] = "\x1b]0;title\x07"
    (run / FILE).write_text(json.dumps(kept))
    assert "a control character, U+001B" in reason_of(run)
    kept["studies"][0]["tolls"][0][0] = 10**6
    kept["studies"][0]["question"] = "What?"
    (run / FILE).write_text(json.dumps(kept))
    (found,) = gathering.read([run])
    assert isinstance(found, Found)
    assert json.loads((run / FILE).read_text())["studies"][0]["tolls"][0][0] < 10**6


JSONS = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=some.sampled_from(["fingerprint", "studies", "started", "providers", "tollbar", "schema"]), value=JSONS)
def test_whatever_a_run_says_is_read_or_refused(made: Path, tmp_path: Path, key: str, value: Any) -> None:
    """Any value in the place of any key: a run or a reason, and text that can be shown."""
    run = tmp_path / "any"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(made, run)
    kept = KeptJudgement.model_validate_json((run / FILE).read_bytes())
    _said(run, **{key: value})
    # As a sender would have it who wants it believed.
    (run / FILE).write_text(kept.model_copy(update={"of": _state(run)}).model_dump_json())
    found = told(run)
    assert 1 == len(found.runs) + len(found.unusable)
    json.dumps(document(found).model_dump(mode="json"), allow_nan=False)
    for listing in gather_answer(found, everything=True).listings:
        for table in listing.tables:
            assert all(cell.says.isprintable() or "\u00a0" in cell.says for row in table.rows for cell in row)


KEPT = ["worth", "noise_floor", "load", "family", "parameters", "cells", "tolls", "cells/0/0/bytes", "tolls/0/2",
        "cells/0/0", "wrong_claims", "tolls/0/7", "tolls/0/8", "cells/0/3"]  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=some.sampled_from(KEPT), value=JSONS)
def test_whatever_a_run_keeps_can_be_shown(made: Path, run: Path, place: str, value: Any) -> None:
    """Any value in any place of what was judged: believed where it is of its type, else judged again."""
    # Not that of the example before, which may have been believed.
    kept = json.loads((made / FILE).read_text())
    *way, last = place.split("/")
    at = kept["studies"][0]
    for step in way:
        at = at[int(step) if step.isdigit() else step]
    at[int(last) if last.isdigit() else last] = value
    (run / FILE).write_text(json.dumps(kept))
    found = told(run)
    assert 1 == len(found.runs) + len(found.unusable)
    print_json = json.dumps(document(found).model_dump(mode="json"), allow_nan=False)
    assert print_json.isprintable()
    gather_answer(found, everything=True)
    html(gather_page(found, "tollbar gather", run / "page.html"))


def _state(run: Path) -> str:
    from tollbar.gathering.kept import state

    try:
        return state(run)
    except (TollbarError, OSError):
        return ""


def test_directories_are_looked_into(made: Path, tmp_path: Path) -> None:
    """Runs some folders below; links and halves of runs are said, other files are passed over."""
    fleet = tmp_path / "fleet"
    (fleet / "node-1" / "runs").mkdir(parents=True)
    shutil.copytree(made, fleet / "node-1" / "runs" / "bad\x1b[2Jname")
    (fleet / "notes.txt").write_text("none")
    (fleet / "link").symlink_to(made)
    (fleet / "half").mkdir()
    (fleet / "half" / "results.sqlite").touch()
    found = gathering.read([fleet])
    (run,) = [one for one in found if isinstance(one, Found)]
    assert run.name.endswith("bad�[2Jname")
    reasons = {Path(one.name).name: one.reason for one in found if isinstance(one, Unusable)}
    assert {
        "link": "a symbolic link, which is not followed",
        "half": "not a run: it has results and no run.json",
    } == reasons


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: no such directory"),
        (["."], "has no run"),
        ([], "requires an argument"),
        ([".", "--output", "no/page.html"], "is no file that can be written"),
        ([".", "--markdown", "--json"], "one of them is printed"),
    ],
)
def test_unusable_arguments_are_one_line(tollbar: Tollbar, arguments: list[str], said: str) -> None:
    """What is wrong and where, before anything is read."""
    done = tollbar("gather", *arguments)
    assert 2 == done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_all_forms_are_written(tollbar: Tollbar, run: Path, tmp_path: Path) -> None:
    """A document of its schema, Markdown, rows in Parquet, and a page with a link to that of the run."""
    (run / "report.html").write_text("<!doctype html>")
    rows, page = tmp_path / "rows.parquet", tmp_path / "page.html"
    done = tollbar("gather", run.parent, "--json", "--output", page, "--parquet", rows)
    said = json.loads(done.stdout)
    assert {"runs", "machines", "tolls", "patterns", "refused", "schema"} == set(said)
    tolls = {(toll["cell"]["choice"], toll["cell"]["provider"], toll["cell"]["bytes"]): toll for toll in said["tolls"]}
    (seen,) = tolls["sha-1", "rustcrypto", 4096]["on"]
    assert "saves" == seen["verdict"]
    assert "broken" == tolls["sha-1", "rustcrypto", 4096]["standing"]
    table = parquet.read_table(rows).to_pylist()
    assert len(table) == sum(len(place["runs"]) for toll in said["tolls"] for place in toll["on"])
    assert {"sha-256"} == {row["over_choice"] for row in table}
    assert 'href="runs/one/report.html"' in page.read_text("utf-8")
    markdown = tollbar("gather", run.parent, "--markdown").stdout
    assert "| SHA-1" in markdown
    assert "saves" in markdown


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_room(tollbar: Tollbar, run: Path, width: int) -> None:
    """Tables are as wide as it is."""
    done = tollbar("gather", run, env={"COLUMNS": str(width)})
    assert max(map(len, done.stdout.splitlines())) <= width
    assert "SHA-512" in done.stdout


def test_refused_runs_give_status_1(tollbar: Tollbar, run: Path, tmp_path: Path) -> None:
    """Each is a row, and what is left is told."""
    _schema(Path(shutil.copytree(run, tmp_path / "runs" / "old")))
    done = tollbar("gather", tmp_path / "runs")
    assert 1 == done.returncode
    assert "Refused" in done.stdout
    assert "before version 5 of the run format" in done.stdout
    assert FLAGS[0] in done.stdout
