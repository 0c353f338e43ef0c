"""Contents of a run's directory, and errors when it cannot be written or read: place and advice."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import builders
from conftest import command, in_own_mounts
from tollbar import results, study
from tollbar.core.errors import TollbarError
from tollbar.core.records import Chunk, Chunks, LoadRecord, Outcome, Proven, SetAside
from tollbar.results import Store, stored
from tollbar.results.observations import chunks_of, refuse_odd, series_of
from tollbar.study import plan
from tollbar.study.plan import Plan

TEXT = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-256"]
providers = ["rustcrypto"]
[measure]
blocks = 8
"""
PROBED = (
    Chunk(0, 10, 1000, {"web": 900, "client": 7}, {("", "background"): 3.0}, (25_000.0, 26_000.0)),
    Chunk(3, 20, 2000, {"web": 1900}, {("web", "reads"): 5.0}, (25_000.0, 31_000.0, 27_000.0), is_made_up=True),
    Chunk(4, 30, 3000, {"web": 2900}, {("", "background"): 4.0}),
)


@pytest.mark.parametrize("number", [4, 100])
def test_all_values_of_a_trial_are_kept_in_arrays(number: int) -> None:
    """In lists they take three times the memory, and as objects ten times."""
    chunks = [Chunk(n, 10 + n, 1000, {"web": 900}, {("", "background"): 3.0}, (2.0, 2.5)) for n in range(number)]
    texts = [text for _, _, text in series_of(chunks)]
    read = chunks_of(dict(zip([key[:2] for key in series_of(chunks)], stored.series(texts), strict=True)))
    assert isinstance(read, Chunks)
    assert {array} == {*map(type, (read.rounds, read.operations, read.wall_ns, read.cpu_ns["web"], *read.probes_ns))}
    assert chunks == [*read]
    assert (chunks[-1], (chunks[3],)) == (read[-1], read[3:4])
    with pytest.raises(IndexError):
        read[number]
    assert not [name for name in vars(read) if name not in Chunks.__dataclass_fields__]


@pytest.fixture
def planned() -> Plan:
    return plan.make([study.read("hashes", TEXT, where="hashes.toml")], seed=1)


@pytest.fixture
def store(planned: Plan, tmp_path: Path) -> Iterator[Store]:
    """Yield a new run, all cells proved, under folders that did not exist."""
    store = results.create(planned, tmp_path / "of" / "runs", command=("run",), libraries=(), fingerprint={"cpu": "x"})
    for cell in planned.cells:
        store.record_proof(Proven(cell.study, cell.key, Outcome.OK, None, 2, ("right",), ("wrong",), ("other: why",)))
    yield store
    store.close()


def record(store: Store, planned: Plan, *chunks: Chunk, block: int = 0, load: LoadRecord | None = None) -> None:
    """Record one trial of the second cell with these chunks."""
    of = {"study": "hashes", "cell": planned.cells[1].key, "chunks": chunks, "paid_by": ("web",), "load": load}
    store.record([replace(builders.trial(1.0, block=block), **of)])


def refused(do: object, *arguments: object) -> TollbarError:
    with pytest.raises(TollbarError) as caught:
        do(*arguments)  # type: ignore[operator]
    return caught.value


def test_chunks_come_back_with_probes_parts_and_what_was_seen() -> None:
    """The slowest of several probes within a chunk is kept; missing parts stay missing."""
    series = {(component, metric): json.loads(text) for component, metric, text in series_of(PROBED)}
    assert PROBED == chunks_of(series)
    many = replace(PROBED[1], probes_ns=(1.0, 5.0, 9.0, 7.0, 2.0))
    (one,) = chunks_of({(c, m): json.loads(text) for c, m, text in series_of([many])})
    assert (1.0, 9.0, 2.0) == one.probes_ns
    assert () == chunks_of({})
    assert [] == [*series_of([])]
    bare = [Chunk(0, 10, 1000, {"web": 900})]
    assert ["round", "operations", "wall", "cpu"] == [metric for _, metric, _ in series_of(bare)]
    assert tuple(bare) == chunks_of({(c, m): json.loads(text) for c, m, text in series_of(bare)})


def test_chunks_in_rows_say_what_they_say_one_by_one() -> None:
    read = Chunks.of(chunks_of({(c, m): json.loads(text) for c, m, text in series_of(PROBED)}))
    for chunks in Chunks.of(PROBED), read:
        assert PROBED == chunks
        assert PROBED[1:] == chunks[1:]
        assert PROBED[0] == chunks[0]
        assert [900, 1900, 2900] == chunks.paid(["web"])
        assert [907, 1900, 2900] == chunks.paid(["client", "web", "none such"])
        assert [0, 0, 0] == chunks.paid(["none such"])
        assert [("", "background"), ("web", "reads")] == chunks.seen
        assert [one.probes_ns for one in PROBED] == chunks.probed
    assert [None] == Chunks.of([replace(PROBED[2], observed={})]).probed


def checked(series: Mapping[tuple[str, str], Any]) -> Sequence[Chunk]:
    """Return the chunks of series whose values are checked first, as of a run that is read."""
    for (_, metric), values in series.items():
        refuse_odd(metric, [values])
    return chunks_of(series)


@pytest.mark.parametrize("metric", ["round", "operations", "wall", "cpu", "probe-before", "reads"])
@pytest.mark.parametrize(
    "odd", ["[1]", "true", '"1"', "NaN", "Infinity", "1e999", "null", "1.5", "9223372036854775808"]
)
def test_values_that_are_not_tollbars_are_refused(metric: str, odd: str) -> None:
    series = {(c, m): json.loads(text) for c, m, text in series_of(PROBED)}
    (key,) = (key for key in series if key[1] == metric and key[0] != "client")
    series[key][0] = json.loads(odd)
    may_be = {"null": metric in ("cpu", "probe-before", "reads"), "1.5": metric in ("probe-before", "reads")}
    if may_be.get(odd, odd.isdigit() and metric in ("probe-before", "reads")):
        assert len(PROBED) == len(checked(series))
    else:
        with pytest.raises(ValueError, match=metric):
            checked(series)


@pytest.mark.parametrize("spoiled", ["round", "wall"])
def test_a_trial_without_its_rounds_or_its_time_is_refused(spoiled: str) -> None:
    series = {(c, m): json.loads(text) for c, m, text in series_of(PROBED)}
    with pytest.raises(ValueError, match="must have a value for each round"):
        checked({**series, ("", spoiled): [1]})
    for odd in (1, 0, None, "1", {}, True):
        with pytest.raises(ValueError, match="operations: must have a value for each round"):
            checked({**series, ("", "operations"): odd})
    for probe in ("probe-before", "probe-after"):
        with pytest.raises(ValueError, match=r"a trial cannot have probe-.* alone"):
            checked({key: values for key, values in series.items() if key[1] != probe})
    del series["", spoiled]
    with pytest.raises(ValueError, match=f"a trial needs {spoiled}"):
        checked(series)


def test_each_chunk_is_exported_with_all_that_is_known_of_it(store: Store, planned: Plan, tmp_path: Path) -> None:
    load = LoadRecord(requests=5, wall_ns=1000, client_cpu_ns=250, bytes_sent=77, client_libraries=("a", "b", "a"))
    record(store, planned, *PROBED, load=load)
    run = results.read(store.directory)
    assert [(), ("a", "b")] == [row.client_libraries for row in run.studies[0].rows]
    results.export(run, "json", tmp_path / "chunks.json")
    rows = json.loads((tmp_path / "chunks.json").read_text())
    of_cell = {"study": "hashes", "choice": "sha-256", "provider": run.studies[0].rows[1].provider}
    of_cell |= {
        "server_version": None,
        "standing": "recommended",
        "strength": 128,
        "repeat": False,
        "outcome": "ok",
        "bytes_sent": 77,
    }
    of_cell |= {"client_busy": 0.25, "requests": 5, "requests_per_s": 5e6, "steal_ns": 0, "machine_load": 1.0}
    assert [of_cell] * 3 == [{name: row[name] for name in of_cell} for row in rows]
    names = ("round", "made_up", "probe_before_ns", "probe_within_ns", "probe_after_ns", "operations", "cpu_ns")
    assert [
        (0, False, 25_000.0, None, 26_000.0, 10, 900),
        (3, True, 25_000.0, 31_000.0, 27_000.0, 20, 1900),
        (4, False, None, None, None, 30, 2900),
    ] == [tuple(row[name] for name in names) for row in rows]
    assert [(7, 3.0, None), (None, None, 5.0), (None, 4.0, None)] == [
        (row.get("client_cpu_ns"), row.get("background"), row.get("web_reads")) for row in rows
    ]


def test_rows_are_written_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1.23456789, "b": None}, {"a": "x|y\nz", "c": 2, "b": None}]
    results.write(lambda: rows, "markdown", None)
    assert "| a | c |\n| --- | --- |\n| 1.23457 |  |\n| x\\|y z | 2 |\n" == capsys.readouterr().out
    results.write(lambda: rows, "json", None)
    assert rows == json.loads(capsys.readouterr().out)
    results.write(lambda: rows, "csv", tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text()
    assert [{"a": "1.23456789", "b": "", "c": ""}, {"a": "x|y\nz", "b": "", "c": "2"}] == [
        *csv.DictReader(io.StringIO(text, newline=""))
    ]
    for form in ("csv", "parquet"):
        fault = refused(results.write, lambda: rows[:1], form, tmp_path / "gone" / "rows")
        assert ("cannot be written", str(tmp_path / "gone" / "rows")) == (fault.what.split(":")[0], fault.where)
    fault = refused(results.write, lambda: rows, "parquet", None)
    assert ("`--format parquet` needs `--output`", "for example `--output chunks.parquet`") == (fault.what, fault.hint)
    fault = refused(results.export, None, "markdown", None)
    assert "`tollbar export RUN --per cell --format markdown`" == fault.hint


def test_a_study_is_judged_by_the_families_of_its_run(store: Store) -> None:
    kept = store.directory / "families" / "digest" / "family.toml"
    was = results.studies(store.directory)[0].family.title
    text = kept.read_text()
    assert 1 == text.count(f'"{was}"')
    kept.write_text(text.replace(f'"{was}"', '"As it was"'))
    assert "As it was" == results.studies(store.directory)[0].family.title
    assert was == results.studies(store.directory, to_measure=True)[0].family.title
    assert "As it was" == results.read(store.directory).studies[0].study.family.title
    for path in sorted((store.directory / "families").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (store.directory / "families").rmdir()
    assert was == results.studies(store.directory)[0].family.title


def test_what_the_command_asked_for_is_kept(store: Store) -> None:
    said = results.about(store.directory)
    entry = {"interim_looks": [], "blocks": 8, "precision": None, "longest_s": None, "cells": "all"}
    assert {"hashes": entry} == said["studies"]
    asked = {**entry, "blocks": 21, "precision": 0.01, "longest_s": 60.0, "cells": "claimed"}
    results.update_about(store.directory, {"studies": {"hashes": asked}})
    (one,) = results.studies(store.directory)
    measure = one.measure
    assert (21, 0.01, 60.0, "claimed") == (measure.blocks, measure.precision, measure.longest_s, measure.cells)
    assert asked == {"interim_looks": [], **results.measured_as(one)}
    run = results.read(store.directory)
    assert (("run",), 1, {"cpu": "x"}, None) == (run.command, run.seed, run.fingerprint, run.best_probe_ns)


def test_what_was_set_aside_is_tried_again_when_it_is_resumed(store: Store, planned: Plan) -> None:
    cell = planned.cells[1].key
    aside = SetAside("hashes", cell, 4, 2, 3, "it fell over", 5.0)
    of = {"study": "hashes", "cell": cell, "outcome": Outcome.FAILED, "reason": "it fell over", "chunks": ()}
    store.record([replace(builders.trial(1.0), **of)], [aside])
    assert aside == results.read(store.directory).studies[0].rows[1].set_aside
    assert [1, 0] == [store.resume(), store.resume()]
    one = results.read(store.directory).studies[0]
    assert one.rows[1].set_aside is None
    (noted,) = one.set_aside
    assert aside == replace(noted, tried_again_s=None)
    assert noted.tried_again_s
    assert [("resumed",)] * 2 == list(store.database.execute("select what from event"))


def test_runs_of_one_second_have_directories_of_their_own(planned: Plan, tmp_path: Path) -> None:
    made = [storing_directory(tmp_path) for _ in range(3)]
    assert ["x", "x-2", "x-3"] == [path.name for path in made]
    assert all(path.is_dir() for path in made)
    for number in range(4, 1000):
        (tmp_path / f"x-{number}").mkdir()
    with pytest.raises(FileExistsError, match=f"{tmp_path}/x and a thousand like it"):
        storing_directory(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(TollbarError) as caught:
        results.create(planned, tmp_path / "file", command=(), libraries=(), fingerprint={})
    assert (str(tmp_path / "file"), "choose another folder, for example `--runs /var/tmp/runs`") == (
        caught.value.where,
        caught.value.hint,
    )
    assert caught.value.what.startswith("cannot make the run's directory: ")


@pytest.mark.parametrize(
    "fault", [OSError(28, "full"), sqlite3.OperationalError("full"), KeyboardInterrupt()], ids=repr
)
@pytest.mark.parametrize(
    "step", ["_keep", "_locked", "_to_be_written", "_insert_plan", "write_atomically", "check_files"]
)
def test_a_run_that_cannot_be_made_leaves_nothing(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, fault: BaseException
) -> None:

    def fail(*_: object) -> None:
        raise fault

    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(f"tollbar.results.store.{step}", fail)
    with pytest.raises(KeyboardInterrupt if isinstance(fault, KeyboardInterrupt) else TollbarError):
        results.create(planned, tmp_path, command=(), libraries=(), fingerprint={})
    assert ["theirs"] == [path.name for path in tmp_path.iterdir()]


def test_a_run_that_could_not_be_read_is_not_begun(planned: Plan, tmp_path: Path) -> None:
    with pytest.raises(TollbarError, match="; the limit is "):
        results.create(planned, tmp_path, command=("x" * 2**20,), libraries=(), fingerprint={})
    assert [] == list(tmp_path.iterdir())


@pytest.mark.share(3)
@pytest.mark.parametrize("size", ["4k", "16k", "32k", "64k", "96k", "128k", "192k"])
def test_a_full_disk_leaves_a_run_or_nothing(fake_study: Path, tmp_path: Path, size: str) -> None:
    (tmp_path / "disk").mkdir()
    script = f"""
        mount -t tmpfs -o size={size} none disk || exit 9
        {command()} run {fake_study} --runs disk/runs --blocks 1 --no-report --json > /dev/null 2> messages; echo $?
        for run in disk/runs/*/; do test ! -d "$run" -o -e "$run/run.json" || echo "half: $run"; done
    """
    done = subprocess.run(
        [*in_own_mounts(), "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    status, *half = done.stdout.splitlines()
    message = (tmp_path / "messages").read_text()
    assert [] == half, message
    assert "Traceback" not in message
    assert status in {"0", "1", "2"}
    assert (status == "2") == ("error:" in message)


def storing_directory(parent: Path) -> Path:
    from tollbar.results.store import _new_directory

    return _new_directory(parent, "x")


def test_a_run_that_cannot_be_had_says_where_and_what_to_do(store: Store, tmp_path: Path) -> None:
    at = str(store.directory)
    fault = refused(results.reopen, store.directory)
    assert ("another process is writing this run; only one can", at, "wait until it ends") == (
        fault.what,
        fault.where,
        fault.hint,
    )
    fault = refused(results.about, tmp_path)
    assert ("is not a run; a run's directory must have a run.json", str(tmp_path)) == (fault.what, fault.where)
    assert (fault.hint or "").startswith("give a directory that `tollbar run` made")
    store.close()
    (path,) = store.directory.glob("studies/*.toml")
    path.write_bytes(b"\xff")
    fault = refused(results.studies, store.directory)
    assert (str(path), True) == (fault.where, fault.what.startswith("cannot be read: "))
    database = store.directory / "results.sqlite"
    database.write_text("no database at all, and long enough to be looked at" * 20)
    for read in (results.read, results.present):
        fault = refused(read, store.directory)
        assert (str(database), True) == (fault.where, fault.what.startswith("the results cannot be read: "))
    database.unlink()
    database.mkdir()
    fault = refused(results.reopen, store.directory)
    assert "results.sqlite" in f"{fault.where}: {fault.what}"
    database.rmdir()
    (store.directory / "run.json").write_text("{")
    fault = refused(results.about, store.directory)
    assert (f"{at}/run.json", True) == (fault.where, fault.what.startswith("cannot be read: "))


def test_what_cannot_be_written_says_that_the_rest_is_safe(store: Store, planned: Plan) -> None:
    store.database.close()
    store.database = sqlite3.connect(f"file:{store.directory}/results.sqlite?mode=ro", uri=True)
    with pytest.raises(TollbarError) as caught:
        record(store, planned, *PROBED)
    hint = "committed results are safe; free some space and continue with `tollbar run --resume RUN`"
    assert (str(store.directory), hint) == (caught.value.where, caught.value.hint)
    assert caught.value.what.startswith("cannot write the results: ")


def test_what_differs_between_two_makes_is_a_line_each() -> None:

    def made(**more: object) -> dict[str, object]:
        choice = {"setting": {"rounds": 5, "old": 1}, "inputs": "ab"}
        provider = {"name": "aws 1", "digest": "1", "path": "/x", "engine": "7", "offers": []}
        return {
            "engine": "7",
            "providers": {"aws": provider, "gone": {"name": "gone 2"}},
            "servers": {"nginx": {"version": "1.2"}, "httpd": {"unavailable": "not installed"}},
            "choices": {"study": {"x": choice}, "other": {"x": choice}},
            **more,
        }

    begun = made()
    assert [] == results.changes(begun, made())
    assert ["the engine: 7 → 8"] == results.changes(begun, made(engine="8"))
    assert [] == results.changes({**begun, "engine": None}, made(engine="8"))
    other = {"name": "aws 1", "digest": "2", "path": "/y", "engine": "9", "offers": [1]}
    assert ["aws: its digest: 1 → 2", "gone: gone 2 → not here"] == results.changes(
        begun, made(providers={"aws": other})
    )
    other = {"name": "aws 2", "digest": "2"}
    assert ["aws: aws 1 → aws 2", "gone: gone 2 → not here"] == results.changes(begun, made(providers={"aws": other}))
    servers = {"nginx": {"version": "1.3"}, "httpd": {"version": "2"}}
    assert ["nginx: 1.2 → 1.3"] == results.changes(begun, made(servers=servers))
    assert ["nginx: 1.2 → not available here"] == results.changes(begun, made(servers={}))
    choice = {"setting": {"rounds": 6, "new": 2}, "inputs": "cd"}
    assert [
        "the choice x: its new: None → 2",
        "the choice x: its old: 1 → None",
        "the choice x: its rounds: 5 → 6",
        "the choice x: its key or other inputs are not those of the run",
    ] == results.changes(begun, made(choices={"study": {"x": choice}, "other": {"x": choice}}))
    assert [] == results.changes(begun, made(choices={"other": {"y": choice}}))
