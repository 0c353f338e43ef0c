"""A run's directory: order of writing, and reading on any disk and after any end."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from conftest import in_own_mounts
from patience import PATIENCE_S
from tollbar import results, study
from tollbar.core.errors import TollbarError
from tollbar.core.records import CLIENT, RUNNER, Chunk, ComponentRecord, LoadRecord, Outcome, Proven, SetAside, Trial
from tollbar.results import Row, Store, observations
from tollbar.results import store as storing
from tollbar.study import plan
from tollbar.study.plan import Plan

STUDY = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-1", "sha-256"]
providers = ["rustcrypto"]

[measure]
blocks = 8
"""


@pytest.fixture
def planned() -> Plan:
    """Return a plan of three cells, the first of which is the baseline."""
    return plan.make([study.read("hashes", STUDY, where="hashes.toml")], seed=1)


@pytest.fixture
def store(planned: Plan, tmp_path: Path) -> Iterator[Store]:
    """Yield a new run of the planned cells, all proved."""
    store = results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})
    for cell in planned.studies[0].cells:
        store.record_proof(Proven(cell.study, cell.key, Outcome.OK, None, 1, ("right",), ("wrong",), ("other: why",)))
    yield store
    store.close()


CHUNKS = (Chunk(0, 10, 1000, {RUNNER: 900}), Chunk(2, 12, 1300, {RUNNER: 1200}))


def trial(planned: Plan, cell: int = 0, **changes: object) -> Trial:
    """Return a successful trial of the cell with this number, with these changes."""
    return replace(
        Trial(
            study="hashes",
            cell=planned.studies[0].cells[cell].key,
            repeat=False,
            block=0,
            batch=0,
            order=cell,
            started_s=5.0 + cell,
            outcome=Outcome.OK,
            reason=None,
            chunks=CHUNKS,
            paid_by=(RUNNER,),
            memory_bytes=7,
            steal_ns=8,
            machine_load=0.5,
        ),
        **changes,  # type: ignore[arg-type]
    )


def failed(planned: Plan, cell: int = 0, **changes: object) -> Trial:
    """Return a failed trial."""
    return trial(planned, cell, **{"outcome": Outcome.FAILED, "reason": "it fell over", "chunks": (), **changes})


def rows_of(store: Store) -> Sequence[Row]:
    return results.read(store.directory).studies[0].rows


def test_a_trial_is_read_back_as_it_was_stored(planned: Plan, store: Store) -> None:
    load = LoadRecord(requests=3, wall_ns=9, components={"web": ComponentRecord(cpu_ns=4)}, client_libraries=("x",))
    chunks = (
        Chunk(0, 1, 10, {"web": 4, CLIENT: 2}),
        Chunk(1, 2, 20, {"web": 5, "directory": 7, CLIENT: 3}),
    )
    served = trial(planned, 1, chunks=chunks, paid_by=("web", "directory"), load=load)
    batch = [trial(planned), trial(planned, repeat=True, order=9), served, failed(planned, 2)]
    store.record(batch)
    first, second, third = rows_of(store)
    assert batch == [*first.trials, *first.repeats, *second.trials, *third.trials]
    assert (1, ("right",), ("wrong",), ("other: why",)) == (
        first.known_answers,
        first.accepted,
        first.refused,
        first.not_tried,
    )


def test_trials_come_in_the_order_of_blocks_and_batches(planned: Plan, store: Store) -> None:
    for order, (block, batch) in enumerate([(1, 1), (0, 3), (1, 0)]):
        store.record([trial(planned, block=block, batch=batch, order=order)])
    assert [(0, 3), (1, 0), (1, 1)] == [(one.block, one.batch) for one in rows_of(store)[0].trials]
    assert {("hashes", 1, 1), ("hashes", 0, 3), ("hashes", 1, 0)} == store.done()
    assert 3 == store.next_order()


def test_a_batch_is_kept_whole_or_not_at_all(planned: Plan, store: Store) -> None:
    with pytest.raises(TollbarError, match="cannot write the results"):
        store.record([trial(planned), trial(planned, 1), trial(planned)])
    assert set() == store.done()
    assert 0 == sum(len(row.trials) for row in rows_of(store))


def test_a_run_of_more_cells_than_are_read_is_not_begun(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollbar.results.stored.MOST_CELLS", len(planned.cells) - 1)
    with pytest.raises(TollbarError, match="cells; a run has at most"):
        results.create(planned, tmp_path / "runs", command=(), libraries=(), fingerprint={})
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("limit", ["MOST_VALUES", "MOST_VALUES_OF_SERIES", "MOST_SERIES", "MOST_TRIALS"])
def test_a_batch_beyond_what_is_read_is_not_recorded(
    planned: Plan, store: Store, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were written before can still be read."""
    first = trial(planned)
    store.record([first])
    most = {"MOST_VALUES": store.count.values, "MOST_VALUES_OF_SERIES": len(CHUNKS) - 1, "MOST_TRIALS": 1,
            "MOST_SERIES": store.count.series}  # fmt: skip
    monkeypatch.setattr(observations, limit, most[limit])
    with pytest.raises(TollbarError, match="the run is full") as raised:
        store.record([trial(planned, block=1, order=9)])
    assert "tollbar judge" in str(raised.value.hint)
    monkeypatch.undo()
    assert [first] == [one for row in rows_of(store) for one in row.trials]


def test_more_quarantines_than_are_read_are_not_recorded(
    planned: Plan, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tollbar.results.stored.MOST_SET_ASIDE", 1)
    one = SetAside("hashes", planned.studies[0].cells[0].key, 0, 1, 1, "it fell over", 1.0, None)
    store.record([failed(planned)], [one])
    with pytest.raises(TollbarError, match="the run is full: it has more than 1 quarantines"):
        store.record([failed(planned, block=1, order=1)], [replace(one, after=1)])
    assert [1] == [len(row.trials) for row in rows_of(store) if row.trials]


def test_a_run_of_more_left_out_coordinates_than_are_read_is_not_begun(
    planned: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (study,) = planned.studies
    many = replace(planned, studies=(replace(study, left_out=(({"choice": "md5", "op": "hash"}, "x"),)),))
    monkeypatch.setattr("tollbar.results.stored.MOST_LEFT_OUT", 1)
    with pytest.raises(TollbarError, match="2 coordinates of combinations that were left out; a run has at most 1"):
        results.create(many, tmp_path / "runs", command=(), libraries=(), fingerprint={})


def test_a_run_that_is_taken_up_again_has_its_values(planned: Plan, store: Store) -> None:
    store.record([trial(planned), failed(planned, 1)])
    store.close()
    again = results.reopen(store.directory)
    try:
        assert 0 < store.count.values
        assert store.count == again.count
    finally:
        again.close()


def test_a_batch_that_was_left_out_leaves_nothing(store: Store) -> None:
    store.record([])
    assert set() == store.done()


def test_trials_of_two_batches_are_not_one(planned: Plan, store: Store) -> None:
    with pytest.raises(ValueError, match="must be those of one batch"):
        store.record([trial(planned), trial(planned, 1, batch=1)])


# Outcomes of a cell's trials in order, and the cell's outcome.
ENDS = {
    "": (Outcome.OK, None),
    "ok": (Outcome.OK, None),
    "failed": (Outcome.FAILED, "failed 0"),
    "ok failed": (Outcome.FAILED, "failed 1"),
    "ok failed ok": (Outcome.OK, None),
    "failed ok ok": (Outcome.OK, None),
    "failed ok timed-out": (Outcome.TIMED_OUT, "timed-out 2"),
    "timed-out ok failed ok": (Outcome.FAILED, "failed 2"),
}


@pytest.mark.parametrize("ends", ENDS)
def test_a_cell_is_judged_by_most_of_its_trials(planned: Plan, store: Store, ends: str) -> None:
    """A few failures are ignored; from half on, the last failure is the reason."""
    outcomes = [Outcome(word) for word in ends.split()]
    for block, outcome in enumerate(outcomes):
        one = trial(planned, block=block, order=block)
        if outcome is not Outcome.OK:
            one = failed(planned, block=block, order=block, outcome=outcome, reason=f"{outcome} {block}")
        store.record([one])
    row = rows_of(store)[0]
    assert ENDS[ends] == (row.outcome, row.reason)
    assert set() == store.excluded()
    assert outcomes == [one.outcome for one in row.trials]


def test_a_cell_that_was_not_proved_stays_so(planned: Plan, store: Store) -> None:
    cells = planned.studies[0].cells
    store.record_proof(Proven("hashes", cells[1].key, Outcome.UNSUPPORTED, "not in this build", 0, (), ()))
    store.database.execute("update cell set outcome = null where key = ?", (cells[2].key,))
    store.database.commit()
    assert [
        (Outcome.OK, None),
        (Outcome.UNSUPPORTED, "not in this build"),
        (Outcome.FAILED, "the run ended before it was verified"),
    ] == [(row.outcome, row.reason) for row in rows_of(store)]
    assert {("hashes", cells[1].key)} == store.excluded()
    assert {("hashes", cells[2].key)} == store.unproven()


def test_each_look_is_noted_once(planned: Plan, store: Store) -> None:
    """Looking twice at the same trials counts once; after one more trial, even of the same block, again."""
    assert () == looks_of(store)
    store.note_interim_look()
    assert [] == noted(store)
    for batch, expected in ((0, [1]), (1, [1, 1])):
        store.record([trial(planned, block=0, batch=batch, order=batch)])
        for _ in range(2):
            store.note_interim_look()
            assert tuple(expected) == looks_of(store)
    store.record([trial(planned, block=1, order=5)])
    assert (1, 1, 2) == looks_of(store)
    assert 2 == len(noted(store))


def looks_of(store: Store) -> tuple[int, ...]:
    return results.read(store.directory).studies[0].interim_looks


def noted(store: Store) -> list[object]:
    looks: list[object] = results.about(store.directory)["studies"]["hashes"]["interim_looks"]
    return looks


def test_a_run_that_was_interrupted_pays_for_a_look(planned: Plan, store: Store) -> None:
    store.record([trial(planned)])
    store.close()
    assert results.note_interim_look(store.directory) is None
    again = results.reopen(store.directory)
    again.record([trial(planned, block=1)])
    again.note_interim_look()
    again.close()
    assert (1, 2) == looks_of(again)


def test_a_look_is_written_under_the_lock(planned: Plan, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.record([trial(planned)])
    store.close()
    write, locked = storing.write_atomically, []

    def watched(path: Path, text: str, mode: int) -> None:
        with open(store.directory / ".lock", "rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                locked.append(path.name)
        write(path, text, mode)

    monkeypatch.setattr(storing, "write_atomically", watched)
    assert results.note_interim_look(store.directory) is None
    assert ["run.json"] == locked


def test_a_run_that_is_being_written_is_judged_without_a_note(planned: Plan, store: Store) -> None:
    store.record([trial(planned)])
    assert "another process is writing this run" in (results.note_interim_look(store.directory) or "")
    assert (1,) == looks_of(store)
    assert [] == noted(store)


READ = "from pathlib import Path; import sys; from tollbar import results; at = Path(sys.argv[1]); "
READ += "print(results.note_interim_look(at)); print(len(results.read(at).studies[0].rows[0].trials))"


@pytest.mark.share(3)
@pytest.mark.parametrize("has_looked", [False, True])
@pytest.mark.parametrize("how", ["closed", "killed", "killed and alone"])
def test_a_run_is_read_on_a_read_only_disk(
    planned: Plan, store: Store, tmp_path: Path, how: str, has_looked: bool
) -> None:
    store.record([trial(planned)])
    if has_looked:
        store.note_interim_look()
    if how == "closed":
        store.close()
        assert [] == sorted(store.directory.glob("results.sqlite-*"))
    disk = tmp_path / "disk"
    shutil.copytree(store.directory, disk)
    assert (how == "closed") != (disk / "results.sqlite-wal").exists()
    if how == "killed and alone":
        (disk / "results.sqlite-shm").unlink()
    mount = f"mount --bind {disk} {disk} && mount -o remount,ro,bind {disk}"
    read = [*in_own_mounts(), "sh", "-c", f'{mount} && exec "$0" "$@"', sys.executable, "-c", READ, str(disk)]
    done = subprocess.run(read, capture_output=True, text=True, timeout=PATIENCE_S)
    look, trials = done.stdout.splitlines()
    assert "1" == trials, done.stderr
    assert "None" == look if has_looked else "Read-only file system" in look


@pytest.mark.parametrize(
    ("schema", "lacks"),
    [(1, "no chunks to be judged"), (2, "no chunks"), (3, "named by the versions"), (4, "have no probes")],
)
def test_an_old_run_is_told_why_not(store: Store, schema: int, lacks: str) -> None:
    about = results.about(store.directory)
    (store.directory / "run.json").write_text(json.dumps({**about, "schema": schema}))
    with pytest.raises(TollbarError, match=f"before version 5 of the run format: .*{lacks}") as caught:
        results.read(store.directory)
    assert f"the version that made it: {about['tollbar']}" in (caught.value.hint or "")
    with pytest.raises(TollbarError, match="before version 5"):
        results.reopen(store.directory)


@pytest.mark.parametrize("text", ['{"schema": 7}', "[]", '"run"', "{}"])
def test_what_is_no_run_is_refused(store: Store, text: str) -> None:
    (store.directory / "run.json").write_text(text)
    with pytest.raises(TollbarError, match="must have schema 5 or 6 of a run"):
        results.read(store.directory)


def test_receipts_are_kept(planned: Plan, store: Store) -> None:
    run = results.read(store.directory)
    assert {str(row.coordinates["provider"]) for row in run.studies[0].rows} == set(run.providers)
    assert {row.provider for row in run.studies[0].rows} == {receipt["name"] for receipt in run.providers.values()}
    assert ({}, {}) == (run.servers, run.broken)
    assert planned.receipts == run.providers


def test_every_chunk_is_exported(planned: Plan, store: Store, tmp_path: Path) -> None:
    served = trial(planned, 1, chunks=(Chunk(0, 4, 50, {"web": 30, CLIENT: 9}),), paid_by=("web",))
    store.record([trial(planned, block=3, batch=2), replace(served, block=3, batch=2)])
    store.record([failed(planned, 2, block=4)])
    run = results.read(store.directory)
    results.export(run, "json", tmp_path / "chunks.json")
    rows = json.loads((tmp_path / "chunks.json").read_text())
    assert [(3, 2, 0, 10, 900), (3, 2, 2, 12, 1200), (3, 2, 0, 4, 30), (4, 0, None, None, None)] == [
        (row["block"], row["batch"], row["round"], row["operations"], row["cpu_ns"]) for row in rows
    ]
    assert [(900, None, None), (1200, None, None), (None, 30, 9), (None, None, None)] == [
        (row.get("runner_cpu_ns"), row.get("web_cpu_ns"), row.get("client_cpu_ns")) for row in rows
    ]
    assert "it fell over" == rows[-1]["reason"]
    results.export(run, "csv", tmp_path / "chunks.csv")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "chunks.csv").read_text())))
    assert ["900", "1200", "", ""] == [line["runner_cpu_ns"] for line in lines]
    results.export(run, "parquet", tmp_path / "chunks.parquet")
    assert [0, 2, 0, None] == parquet.read_table(tmp_path / "chunks.parquet")["round"].to_pylist()


def test_a_look_at_one_study_costs_the_others_nothing(tmp_path: Path) -> None:
    """A study that continues until it is precise is judged again and again; the others are judged once."""
    both = plan.make([study.read(name, STUDY, where=f"{name}.toml") for name in ("hashes", "others")], seed=1)
    store = results.create(both, tmp_path / "runs", command=(), libraries=(), fingerprint={})
    for block in (0, 1):
        for name in ("hashes", "others"):
            store.record([replace(trial(both, block=block), study=name)])
        store.note_interim_look("hashes")
    said = results.about(store.directory)["studies"]
    assert [2, 0] == [len(said[name]["interim_looks"]) for name in ("hashes", "others")]
    store.close()
