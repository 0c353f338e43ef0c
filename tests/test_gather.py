"""Gathering: comparison of many runs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from bench.fleet import DIGESTS, fingerprint, run_of

from conftest import Tollbar
from gather_lab import cost, judged_again, made_in, told, why_not_current
from tollbar import analysis, results
from tollbar.analysis import Verdict
from tollbar.analysis.kept import FILE, KeptJudgement, read_kept
from tollbar.catalog import families
from tollbar.core import method
from tollbar.core.errors import TollbarError
from tollbar.decide import compare
from tollbar.decide.compare import Unusable
from tollbar.decide.compare.document import document, toll_rows
from tollbar.decide.compare.found_runs import Doubt, ReadRun
from tollbar.decide.compare.words import gather_answer, gather_page, how, refusal_words
from tollbar.study.values import default_load

SELF_TEST = """
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


def test_machines_are_columns_and_tolls_are_rows(one_run: Path, tmp_path: Path) -> None:
    run_of(tmp_path, fingerprint("Example CPU 2", flags=("aes",)), cost(sha_512=700.0))
    found = told(one_run, tmp_path)
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


def test_what_is_kept_is_what_is_judged(own_run: Path) -> None:
    kept = read_kept(own_run)
    (own_run / FILE).unlink()
    assert kept == compare.keep(analysis.judge(results.read(own_run))) == read_kept(own_run)
    _without_last_block(own_run)
    (found,) = compare.read([own_run])
    assert isinstance(found, ReadRun)
    assert {4} == {toll.blocks for study in found.studies for toll in study.tolls if toll.ratio}


def _without_last_block(run: Path) -> None:
    """Make the run an earlier state of itself, judged then."""
    with sqlite3.connect(run / "results.sqlite") as database:
        database.execute("delete from trial where block = 4")
    assert why_not_current(run)
    judged_again(run)


def test_several_runs_of_a_machine_are_a_range(one_run: Path, tmp_path: Path) -> None:
    same = fingerprint("Example CPU 1")
    run_of(tmp_path / "2", same, cost(sha_512=1600.0, sha_1=1300.0, blake3=1034.0), seed=2)
    found = told(one_run, tmp_path)
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


def test_a_copy_is_no_further_run(own_run: Path, tmp_path: Path) -> None:
    """A copy, sent twice, would count as two observations."""
    shutil.copytree(own_run, tmp_path / "runs" / "two")
    first, second = compare.read([tmp_path / "runs"])
    assert isinstance(first, ReadRun)
    assert isinstance(second, Unusable)
    assert f"the same run as {first.name}" == second.reason
    assert 1 == len(compare.read([own_run, own_run, own_run / ".." / "one"]))
    # An earlier state of the run is no further run either.
    _without_last_block(own_run)
    first, second = compare.read([tmp_path / "runs"])
    assert isinstance(first, Unusable)
    assert isinstance(second, ReadRun)


def of_first_method(run: Path, seed: int) -> Path:
    """Make the run one that was measured before versions were written."""
    path = run / "run.json"
    said = json.loads(path.read_text())
    assert method.VERSION == said.pop("method")
    path.write_text(json.dumps({**said, "seed": seed}))
    return judged_again(run)


def test_runs_of_the_newest_version_of_the_method_are_taken(own_run: Path, tmp_path: Path) -> None:
    earlier = of_first_method(Path(shutil.copytree(own_run, tmp_path / "runs" / "two")), seed=7)
    assert method.VERSION == read_kept(own_run).method
    first, second = compare.read([tmp_path / "runs"])
    assert isinstance(first, ReadRun)
    assert isinstance(second, Unusable)
    assert "measured by version 1 of the method" in second.reason
    assert "--across-methods" in second.reason
    both = compare.read([tmp_path / "runs"], across_methods=True)
    assert [method.VERSION, method.FIRST] == [one.method for one in both if isinstance(one, ReadRun)]
    # A single run is read: nothing is mixed.
    (alone,) = compare.read([earlier])
    assert isinstance(alone, ReadRun)


def test_an_earlier_state_does_not_hide_what_is_refused(own_run: Path, tmp_path: Path) -> None:
    shutil.copytree(own_run, tmp_path / "runs" / "two")
    _without_last_block(own_run)
    later = tmp_path / "runs" / "two" / FILE
    kept = KeptJudgement.model_validate_json(later.read_bytes())
    noisy = [study.model_copy(update={"noise_floor": 1.5}) for study in kept.studies]
    later.write_text(kept.model_copy(update={"studies": noisy}).model_dump_json())
    earlier, last = compare.read([tmp_path / "runs"])
    assert isinstance(earlier, Unusable)
    assert isinstance(last, ReadRun)
    assert [Doubt.NOISE] == [one.doubt for one in last.refused]


def test_runs_that_contradict_are_counted_by_themselves(one_run: Path, tmp_path: Path) -> None:
    run_of(tmp_path, fingerprint("Example CPU 1"), cost(sha_512=700.0), seed=2)
    said = gather_answer(told(one_run, tmp_path)).headline
    assert said.endswith(
        " on 1 machine: none is decided on more than one machine; runs of one machine contradict each other on 4."
    )


def test_ratios_as_disturbed_are_marked(own_run: Path) -> None:
    assert "~" not in str(gather_answer(told(own_run), everything=True))
    with sqlite3.connect(own_run / "results.sqlite") as database:
        database.execute("delete from observation where metric like 'probe%'")
    found = told(judged_again(own_run))
    assert {True} == {toll.is_noisy for row in found.rows for toll in row.places[0].ratios}
    answer = gather_answer(found, everything=True)
    assert "`~` marks noisy ratios" in answer.how[0]
    assert "1.50~ [" in str(answer)
    (seen,) = {one.noisy for toll in document(found).tolls for on in toll.on for one in on.runs if one.ratio}
    assert seen
    assert {True} == {row["noisy"] for row in toll_rows(found) if row["ratio"]}


@pytest.mark.parametrize("name", ["users", "rates_hz", "utilisations", "clients"])
def test_what_is_a_coordinate_is_no_other_load(name: str) -> None:
    """Numbers of users, rate, utilisation and clients' place: studies that vary them differently share cells."""
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


def test_what_is_not_alike_is_not_one_toll(one_run: Path, tmp_path: Path) -> None:
    run_of(tmp_path, fingerprint("Example CPU 2"), cost(), text=f'{DIGESTS}\n[judge]\nthreshold = "10 %"\n')
    found = told(one_run, tmp_path)
    assert {1} == {len(row.places) for row in found.rows}
    assert {0.03, 0.10} == {row.threshold for row in found.rows}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"load": "b", "name": "another"}, ("in another", "in digests")),
        ({"load": "b"}, ("in digests, version 1 of 2", "in digests, version 2 of 2")),
        ({"threshold": 0.1}, ("3 % threshold", "10 % threshold")),
    ],
)
def test_rows_of_one_name_say_what_tells_them_apart(
    one_run: Path, tmp_path: Path, changed: dict[str, Any], expected: Sequence[str]
) -> None:
    run_of(tmp_path, fingerprint("Example CPU 2"), cost())
    first, second = (one for one in compare.read([one_run, tmp_path]) if isinstance(one, ReadRun))
    other = replace(second, studies=[study.model_copy(update=changed) for study in second.studies])
    found = compare.gather([first, other])
    page = str(gather_page(found, "tollbar gather", tmp_path / "page.html"))
    for words in expected:
        assert words in str(gather_answer(found))
        assert words in page
    rows = [json.dumps({**toll.model_dump(exclude={"on"})}, sort_keys=True) for toll in document(found).tolls]
    studies = [toll.on[0].runs[0].study for toll in document(found).tolls]
    assert len(rows) == len({*zip(rows, studies, strict=True)})


def test_a_coordinate_of_others_takes_the_place_of_no_column(one_run: Path, tmp_path: Path) -> None:
    run_of(tmp_path, fingerprint("Example CPU 2"), cost())
    first, second = (one for one in compare.read([one_run, tmp_path]) if isinstance(one, ReadRun))
    for cell in (cell for study in second.studies for cell in study.cells):
        cell.coordinates.update(machine="mine", processor="mine", family="mine")
    rows = [*toll_rows(compare.gather([first, second]))]
    assert {("Example CPU 1", "digest", 0, None), ("Example CPU 2", "digest", 1, "mine")} == {
        (row["processor"], row["family"], row["machine"], row["setting_family"]) for row in rows
    }


@pytest.mark.parametrize("beside", [(), ("avx2",)], ids=["alone", "with another"])
def test_a_flag_that_separates_is_a_pattern(one_run: Path, tmp_path: Path, beside: tuple[str, ...]) -> None:
    """With fewer than three and four processors only the chance is reported, without a pattern."""
    sides = {True: ("aes", "sha_ni", *beside), False: ("aes",)}
    made = [
        run_of(tmp_path / str(has), fingerprint("CPU", flags=flags), cost(sha_512=2000.0 if has else 600.0))
        for has, flags in sides.items()
    ]
    runs = tmp_path / "runs"
    for number in range(7):
        has = number < 3
        copy = runs / str(number)
        shutil.copytree(made[not has], copy)
        said = json.loads((copy / "run.json").read_text())
        said |= {"seed": number, "fingerprint": fingerprint(f"CPU {number}", flags=sides[has])}
        (copy / "run.json").write_text(json.dumps(said))
        judged_again(copy)
    found = compare.read([runs])
    gathered = compare.gather(found)
    (pattern,) = gathered.patterns.told
    assert (*sorted(beside), "sha_ni") == pattern.flags
    assert (Verdict.COSTS, Verdict.SAVES) == (pattern.have, pattern.lack)
    assert (3, 4) == pattern.processors
    assert {"sha-512"} == {row.at["choice"] for row in pattern.rows}
    said_ = str(gather_answer(gathered))
    assert "A pattern is not a cause" in said_
    assert "In 1,000 random assignments of flags to processors" in said_
    few = compare.gather(found[1:5])
    assert ((), 1) == (few.patterns.told, few.patterns.not_told)
    assert "1 pattern not shown" in str(gather_answer(few))
    assert 0 == compare.gather(found[2:]).patterns.shuffles


def test_doubtful_studies_are_refused(tmp_path: Path) -> None:
    machine = fingerprint("Example CPU")
    run_of(tmp_path / "noise", machine, cost(), repeat=1.05, seed=1)
    noisy = run_of(tmp_path / "busy", machine, cost(), quiet=False, seed=2)
    spun = {"spin-1": 1000.0, "spin-2": 1500.0, "spin-1-again": 1000.0, "none": 1.0}
    run_of(tmp_path / "wrong", machine, lambda at: spun[str(at["choice"])], text=SELF_TEST, name="self-test", seed=3)
    apart = run_of(tmp_path / "apart", machine, cost(), seed=4)
    node = {"address": "10.1.2.3", "host": "web-1", "fingerprint": {"cpu": "Another"}, "is_simulated": False}
    results.update_about(apart, {"nodes": {"web": node}})
    judged_again(apart)
    found = told(tmp_path)
    assert () == found.rows
    refused = {one.doubt: refusal_words(one) for run in found.runs for one in run.refused}
    assert {*Doubt} == {*refused}, noisy
    assert "A/A pairs differed by 5.2 %, more than the 3 % threshold" == refused[Doubt.NOISE]
    assert "never quiet" in refused[Doubt.NEVER_QUIET]
    assert "“Twice the work costs twice as much”" in refused[Doubt.SELF_TEST]
    assert "4 runs on 1 machine have no toll to compare; the reasons are below." == gather_answer(found).headline


def test_directories_are_looked_into(one_run: Path, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    (fleet / "node-1" / "runs").mkdir(parents=True)
    shutil.copytree(one_run, fleet / "node-1" / "runs" / "bad\x1b[2Jname")
    (fleet / "notes.txt").write_text("none")
    (fleet / "link").symlink_to(one_run)
    (fleet / "half").mkdir()
    (fleet / "half" / "results.sqlite").touch()
    found = compare.read([fleet])
    (run,) = [one for one in found if isinstance(one, ReadRun)]
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
        ([], "needs runs, or folders of runs"),
        ([".", "--output", "no/page.html"], "there is no folder `no`"),
        ([".", "--markdown", "--json"], "cannot be combined"),
    ],
)
def test_unusable_arguments_are_one_line(tollbar: Tollbar, arguments: list[str], said: str) -> None:
    done = tollbar("compare", "--by", "machine", *arguments)
    assert 2 == done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_all_forms_are_written(tollbar: Tollbar, own_run: Path, tmp_path: Path) -> None:
    (own_run / "report.html").write_text("<!doctype html>")
    rows, page = tmp_path / "rows.parquet", tmp_path / "page.html"
    done = tollbar("compare", "--by", "machine", own_run.parent, "--json", "--output", page, "--parquet", rows)
    said = json.loads(done.stdout)
    assert {"runs", "machines", "tolls", "patterns", "shuffled", "refused", "schema"} == set(said)
    tolls = {(toll["cell"]["choice"], toll["cell"]["provider"], toll["cell"]["bytes"]): toll for toll in said["tolls"]}
    (seen,) = tolls["sha-1", "rustcrypto", 4096]["on"]
    assert "saves" == seen["verdict"]
    assert "broken" == tolls["sha-1", "rustcrypto", 4096]["standing"]
    table = parquet.read_table(rows).to_pylist()
    assert len(table) == sum(len(place["runs"]) for toll in said["tolls"] for place in toll["on"])
    assert {"sha-256"} == {row["over_choice"] for row in table}
    assert 'href="runs/one/report.html"' in page.read_text("utf-8")
    markdown = tollbar("compare", "--by", "machine", own_run.parent, "--markdown").stdout
    assert "| SHA-1" in markdown
    assert "saves" in markdown


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_room(tollbar: Tollbar, own_run: Path, width: int) -> None:
    done = tollbar("compare", "--by", "machine", own_run, env={"COLUMNS": str(width)})
    assert max(map(len, done.stdout.splitlines())) <= width
    assert "SHA-512" in done.stdout


def test_what_ran_on_other_machines_is_in_no_column(own_run: Path) -> None:
    here = analysis.judge(results.read(own_run))
    node = {"address": "10.1.2.3", "host": "web-1", "fingerprint": {"cpu": "Another"}, "is_simulated": False}
    results.update_about(own_run, {"nodes": {"web": node}})
    gathered = told(judged_again(own_run))
    assert () == gathered.rows
    (refused,) = gathered.runs[0].refused
    assert "parts of it ran on other machines (web on web-1), but a column is one machine" == refusal_words(refused)
    there = analysis.judge(results.read(own_run))
    with pytest.raises(TollbarError, match=r"different roles on other machines \(none / web\)"):
        analysis.compare(here, there, across_machines=True)
    results.update_about(own_run, {"nodes": {"web": {**node, "fingerprint": {"cpu": "A third"}}}})
    with pytest.raises(TollbarError, match="web: cpu: Another / A third"):
        analysis.compare(there, analysis.judge(results.read(own_run)))


def test_a_simulated_machine_is_called_so(own_run: Path) -> None:
    results.update_about(
        own_run, {"fingerprint": {**results.about(own_run)["fingerprint"], "simulated": "a made-up node"}}
    )
    gathered = told(judged_again(own_run))
    assert any(line.startswith("Simulated: 1 machine") for line in how(gathered))
    assert "a made-up node" == document(gathered).machines[0].fingerprint["simulated"]


def test_a_page_in_place_of_a_loop_of_links_links_to_its_runs(tmp_path: Path) -> None:
    run = made_in(tmp_path / "run")
    (run / "report.html").write_text("")
    loop = tmp_path / "loop.html"
    loop.symlink_to(loop)
    page = gather_page(told(run), "tollbar gather run", loop)
    assert "report.html" in repr(page)
