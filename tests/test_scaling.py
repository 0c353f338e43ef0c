"""Several threads: from a study to their verdict, with their cores, moments, and faults of accounts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import row, study, study_run, trials
from tollbar import study as studies
from tollbar.analysis import Scaling, ScalingResult, StudyJudgement, Verdict, judge_study
from tollbar.analysis.scaling import verdict_of
from tollbar.core import machine
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Moments
from tollbar.core.moments import Watch
from tollbar.core.records import ChunkRecord, Observed, Outcome
from tollbar.core.records.contract import ThreadRecord
from tollbar.core.runner import Session
from tollbar.lab import workloads
from tollbar.lab.measure import batch
from tollbar.lab.measure.members import Member
from tollbar.lab.measure.rounds import Rounds
from tollbar.lab.workloads import Given, Work
from tollbar.report.sections.answer import answer
from tollbar.report.sections.scaling import scaling_listing, scaling_sentences
from tollbar.results import Row
from tollbar.study import Measure, plan
from tollbar.study.plan.batches import Visit
from tollbar.study.plan.cells import Cell

THREADS = """
question  = "What does a hash cost with several threads?"
family    = "digest"
providers = ["{provider}"]
choices   = ["sha-256"]
baseline  = {{ threads = 1 }}
vary      = {{ threads = {threads}, bytes = ["64 B"] }}
"""
BLOCKS = 12


def cells(threads: Sequence[int] = (1, 2), provider: str = "rustcrypto") -> tuple[Cell, ...]:
    text = THREADS.format(threads=[*threads], provider=provider)
    (one,) = plan.make([studies.read("some", text, where="some.toml")], seed=1).studies
    return one.cells


OF_TLS = {
    '"digest"': '"tls"',
    '"sha-256"': '"tls-1.3"',
    "providers = [": "#",
    'bytes = ["64 B"]': 'op = ["connect"]',
}
ARRIVALS = 'shape = "open", rates = ["9/s"], users = [4], request = { get = "/" }, expect = { status = 200 }'


# From a study to a task.


def test_a_task_says_how_many_threads_where_the_study_does() -> None:
    one, two = cells()
    assert [1, 2] == [cell.task("measure", 7)["threads"] for cell in (one, two)]
    assert (one.key, one.key) == (one.against, two.against)
    assert "threads" not in one.task("measure", 7)["setting"]
    text = THREADS.format(threads=[1], provider="rustcrypto").replace("threads = [1], ", "")
    alone = studies.read("some", text.replace("{ threads = 1 }", '"sha-256"'), where="some.toml")
    (without,) = plan.make([alone], seed=1).cells
    assert "threads" not in without.task("measure", 7)
    assert "cores" not in workloads_task(without, core=1)


def workloads_task(cell: Cell, core: int | None) -> dict[str, object]:
    with workloads.of(cell).up(cell, 7, None, core, begins_on=0) as work:
        return dict(work.task)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"threads = [1, 2]": 'threads = ["two"]'}, "threads must be whole numbers"),
        ({"threads = [1, 2]": "threads = [0, 1]"}, "at least one thread"),
        ({"threads = [1, 2]": "threads = []"}, "needs at least one value"),
        (
            {
                **OF_TLS,
                "providers = [": 'url = ["https://localhost:8443/"]\n#',
                "vary ": "load = { users = [1] }\nvary ",
            },
            "the lab does not start your own server",
        ),
        ({**OF_TLS, "vary ": f"load = {{ {ARRIVALS} }}\nvary "}, "no core waits for arrivals"),
        (
            {'"digest"': '"storage"', '"sha-256"': '"plaintext"', ', bytes = ["64 B"]': ""},
            "the lab does not start the family storage",
        ),
    ],
)
def test_what_threads_cannot_be_is_refused(change: dict[str, str], words: str) -> None:
    text = THREADS.format(threads=[1, 2], provider="rustcrypto")
    for old, new in change.items():
        text = text.replace(old, new)
    with pytest.raises(TollbarError, match=words):
        studies.read("some", text, where="some.toml")


# Cores.


@pytest.mark.parametrize(
    ("siblings", "threads", "expected"),
    [
        ([{0}, {1}, {2}, {3}], 2, (3, 2)),
        ([{0, 1}, {2, 3}], 2, (3, 1)),
        ([{0, 1}, {2, 3}], 3, (3, 1, 2)),
        ([{0, 2}, {1, 3}], 4, (3, 2, 1, 0)),
        ([{0}, {1}, {2}, {3}], 9, (3, 2, 1, 0)),
    ],
)
def test_threads_have_physical_cores_before_hyperthreads(
    monkeypatch: pytest.MonkeyPatch, siblings: list[set[int]], threads: int, expected: tuple[int, ...]
) -> None:
    of = {core: frozenset(together) for together in siblings for core in together}
    monkeypatch.setattr(machine, "CORES", frozenset(of))
    monkeypatch.setattr(machine, "siblings", of.__getitem__)
    assert expected == machine.cores_for(threads, 3)
    shared = sorted(",".join(map(str, sorted(together))) for together in siblings if len(together) > 1)
    assert shared == machine.hyperthreads()


@pytest.mark.parametrize(("said", "expected"), [("0\n", {0}), ("0,4\n", {0, 4}), ("0-2,8\n", {0, 1, 2, 8}), ("", {0})])
def test_siblings_are_read_as_the_kernel_writes_them(
    monkeypatch: pytest.MonkeyPatch, said: str, expected: set[int]
) -> None:
    monkeypatch.setattr(machine, "_read", lambda path: said)
    assert expected == machine.siblings(0)


def test_a_run_of_before_is_of_the_same_machine() -> None:
    assert [] == machine.differences({"cpu": "one"}, {"cpu": "one", "hyperthreads": ["0,1"]})
    assert ["hyperthreads: [] / ['0,1']"] == machine.differences({"hyperthreads": []}, {"hyperthreads": ["0,1"]})


def test_more_threads_than_cores_are_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CORES", frozenset({0, 1}))
    cell = cells((1, 3))[1]
    proven = workloads.of(cell).prove(cell, 7, Given(None))
    expected = "3 threads need a core each; 2 cores can be used here (0, 1)"
    assert (Outcome.UNSUPPORTED, expected) == (proven.outcome, proven.reason)


def test_a_runner_that_knows_no_threads_is_not_asked_for_any() -> None:
    cell = cells()[1]
    other = replace(cell, provider=replace(cell.provider, kind="runner", name="mine 1.0", receipt={}))
    proven = workloads.of(other).prove(other, 7, Given(None))
    expected = "not available here: the runner of mine 1.0 performs on one thread"
    assert (Outcome.UNSUPPORTED, expected) == (proven.outcome, proven.reason)
    able = replace(other, provider=replace(other.provider, receipt={"threads": True}))
    assert not isinstance(workloads.of(able), workloads.UnsupportedWorkload)


# Accounts.


accounts = st.lists(
    st.builds(
        ThreadRecord,
        operations=st.integers(1, 10**6),
        cpu_ns=st.integers(1, 10**9),
        wall_ns=st.integers(10**6, 10**9),
    ),
    min_size=1,
    max_size=5,
)


def chunk_of(threads: Sequence[ThreadRecord], **changes: int) -> ChunkRecord:
    """Return the chunk of these accounts, with the given changes."""
    sums = {what: sum(getattr(one, what) for one in threads) for what in ("operations", "cpu_ns", "wall_ns")}
    sums["wall_ns"] //= len(threads)
    left_over_ns = changes.pop("left_over_ns", 0)
    return ChunkRecord(**{**sums, **changes}, observed=Observed(threads=tuple(threads), left_over_ns=left_over_ns))


@given(accounts)
def test_accounts_that_add_up_are_taken(threads: list[ThreadRecord]) -> None:
    """The elapsed time of an operation is its thread's, minus the time in which others had the core."""
    work, chunk = Work((), {}, 1, threads=len(threads)), chunk_of(threads)
    assert work.contradiction(chunk) is None
    assert sum(max(one.cpu_ns, one.wall_ns) for one in threads) == work.wall_ns(chunk)
    assert 0 == work.contended_ns(chunk)
    waiting = [one.model_copy(update={"run_queue_wait_ns": one.wall_ns}) for one in threads]
    assert sum(one.cpu_ns for one in threads) == work.wall_ns(chunk_of(waiting))


@given(accounts, st.sampled_from(["operations", "cpu_ns"]), st.integers(1, 1000))
def test_accounts_that_do_not_add_up_fail_the_trial(threads: list[ThreadRecord], what: str, more: int) -> None:
    chunk = chunk_of(threads)
    wrong = chunk.model_copy(update={what: getattr(chunk, what) + more})
    assert (Work((), {}, 1, threads=len(threads)).contradiction(wrong) or "").startswith(f"`{what}` is ")


def test_what_no_thread_accounts_for_fails_the_trial() -> None:
    """Work of a library's own thread would be missing from the cost; overhead of orders and answers is below this."""
    threads = [ThreadRecord(operations=10, cpu_ns=5_000_000, wall_ns=5_000_000)] * 2
    work = Work((), {}, 1, threads=2)
    assert work.contradiction(chunk_of(threads, left_over_ns=900_000)) is None
    alone = Work((), {}, 1, threads=1).contradiction(chunk_of(threads[:1], left_over_ns=600_000))
    assert "0.6 ms of the process's CPU time belong to no thread" == alone
    wrong = work.contradiction(chunk_of(threads, left_over_ns=1_100_000))
    assert "1.1 ms of the process's CPU time belong to no thread" == wrong
    assert "the runner reported 1 threads; 2 were requested" == work.contradiction(chunk_of(threads[:1]))
    assert "the runner reported 0 threads; 2 were requested" == work.contradiction(
        ChunkRecord(operations=1, cpu_ns=1, wall_ns=1)
    )


# Moments.


@pytest.mark.parametrize(
    ("waited_ns", "expected"), [(40_000, (25_000.0, 26_000.0)), (60_000, (25_000.0, 86_000.0, 26_000.0))]
)
def test_a_chunk_in_which_others_had_a_thread_s_core_is_noisy(
    monkeypatch: pytest.MonkeyPatch, waited_ns: int, expected: tuple[float, ...]
) -> None:
    """The longest waiting thread decides, whatever the chunk cost; its wait is no part of the elapsed time."""
    threads = [
        ThreadRecord(operations=10, cpu_ns=4_000_000, wall_ns=5_000_000, run_queue_wait_ns=waited)
        for waited in (0, waited_ns)
    ]
    monkeypatch.setattr("tollbar.lab.measure.rounds.round_of", lambda *_: chunk_of(threads))
    member = Member(Visit(cells()[1], False, 0, 0), work=Work((), {}, 1, threads=2))
    probe = SimpleNamespace(is_plain=False, lately=lambda: 25_000.0, read=lambda: 26_000.0)
    watch = Watch()
    Rounds([member], Measure("cpu", 0.005, 1, 1), random.Random(1), probe, watch)._advance(member, 0)  # type: ignore[arg-type]
    (chunk,) = member.chunks
    assert (expected, 10_000_000 - waited_ns) == (chunk.probes_ns, chunk.wall_ns)
    # A probe's reading is its own time.
    assert [25_000.0, 26_000.0] == [*watch.readings]


def test_each_core_of_a_thread_is_probed() -> None:
    """Cores of all members are probed, so that both sides of a ratio are of equal moments; unless one is unknown."""

    def member(paid_on: int | None, *cores: int) -> Member:
        work = Work((), {}, paid_on, paid_on=paid_on, cores=cores)
        return Member(Visit(cells()[0], False, 0, 0), session=SimpleNamespace(), work=work)  # type: ignore[arg-type]

    assert [1] == batch._probed_cores([member(1), member(1, 1)])
    assert [1, 0, 2] == batch._probed_cores([member(1, 1), member(1, 1, 0), member(1, 1, 0, 2)])
    assert [] == batch._probed_cores([member(None), member(None)])


# The engine.


@pytest.mark.parametrize("choice", ["spin-1", "spin-locked", "spin-waiting"])
def test_the_engine_keeps_the_accounts_of_its_threads(choice: str) -> None:
    threads = min(2, len(machine.CORES))
    text = (
        THREADS.format(threads=[threads], provider="spin")
        .replace('"digest"', '"spin"')
        .replace('"sha-256"', f'"{choice}"')
    )
    text = text.replace(', bytes = ["64 B"]', "").replace("threads = 1 ", f"threads = {threads} ")
    (cell,) = plan.make([studies.read("some", text, where="some.toml")], seed=1).cells
    assert Outcome.OK is workloads.of(cell).prove(cell, 7, Given(None)).outcome
    core = max(machine.CORES)
    with (
        workloads.of(cell).up(cell, 7, None, core, begins_on=min(machine.CORES)) as work,
        Session(work.command, work.task, core=work.core, account=work.account) as session,
    ):
        assert (threads, core, None) == (len(set(work.cores)), work.cores[0], work.begins_on)
        session.ready(30.0)
        for seconds, operations in ((0.005, 1), (0.0, 3)):
            chunks = [session.advance(seconds, operations, 30.0) for _ in range(9)]
            # On a busy machine orders and answers take longer, and more than such a short chunk may have left over.
            contradictions = [work.contradiction(chunk) for chunk in chunks]
            assert None in contradictions, contradictions
            assert all(one.operations >= operations for chunk in chunks for one in chunk.observed.threads)
        assert Outcome.OK is session.finish().outcome


def test_the_engine_refuses_cores_that_are_not_there() -> None:
    (cell, _) = cells()
    task = cell.task("measure", 7) | {"cores": [4095]}
    with Session(cell.provider.runner, task) as session, pytest.raises(Exception) as raised:  # noqa: PT011
        session.ready(30.0)
    assert "core 4095" in str(raised.value)


# The verdict.


def judged(
    cpu: float, elapsed: float, *, threads: int = 2, noise: float = 0.002, reason: str | None = None
) -> StudyJudgement:
    """Return the judgement of a cell at these multiples of one thread's CPU time and elapsed time."""
    source = random.Random(f"{cpu}/{elapsed}/{noise}")

    def costs(times: float) -> list[float]:
        return [1000 * times * exp(source.gauss(0, noise)) for _ in range(BLOCKS)]

    def waiting(of: Row) -> Row:
        longer = [
            replace(t, chunks=tuple(replace(c, wall_ns=round(c.wall_ns * elapsed / cpu)) for c in t.chunks))
            for t in of.trials
        ]
        return replace(of, trials=tuple(longer))

    one = row({"choice": "x", "threads": 1}, costs(1), repeats_ns=costs(1))
    failed = {"outcome": Outcome.UNSUPPORTED, "reason": reason} if reason else {}
    many = row({"choice": "x", "threads": threads}, costs(cpu) if not reason else (), against=one.key, **failed)
    about = replace(study(blocks=BLOCKS, vary={"threads": (1, threads)}), baseline={"threads": 1})
    return judge_study(study_run([one, waiting(many)], (BLOCKS,), about))


def only(judgement: StudyJudgement) -> ScalingResult:
    (found,) = judgement.scaling
    return found


@pytest.mark.parametrize(
    ("cpu", "elapsed", "verdict"),
    [
        (1.0, 1.0, Scaling.SCALES),
        (0.9, 1.0, Scaling.SCALES),
        (1.5, 1.5, Scaling.CONTENDED),
        (1.2, 2.0, Scaling.CONTENDED),
        (1.0, 1.5, Scaling.WAITS),
        (0.9, 1.2, Scaling.WAITS),
        (1.03, 1.03, Scaling.CANNOT_TELL),
        (1.0, 1.03, Scaling.CANNOT_TELL),
        (1.031, 1.5, Scaling.CANNOT_TELL),
    ],
)
def test_what_rises_decides_the_verdict(cpu: float, elapsed: float, verdict: Scaling) -> None:
    found = only(judged(cpu, elapsed))
    assert verdict is found.verdict
    assert found.cpu.ratio is not None
    assert found.elapsed.ratio is not None
    assert found.rate is not None
    assert pytest.approx(cpu, rel=0.01) == found.cpu.ratio.estimate
    assert pytest.approx(elapsed, rel=0.01) == found.elapsed.ratio.estimate
    assert pytest.approx(2 / found.elapsed.ratio.estimate) == found.rate.estimate
    assert found.rate.low < found.rate.estimate < found.rate.high


@pytest.mark.parametrize(("cpu", "elapsed"), [(1.5, 1.5), (1.0, 1.5)])
def test_a_rise_as_disturbed_is_not_laid_at_scaling_s_door(cpu: float, elapsed: float) -> None:
    """A thread that is preempted while it holds a lock stalls the others, so a rise under noise proves nothing."""
    found = only(judged(cpu, elapsed))
    noisy = [
        replace(toll, ratio=replace(toll.ratio, moments=Moments.ALL))
        for toll in (found.cpu, found.elapsed)
        if toll.ratio
    ]
    assert Scaling.CANNOT_TELL is verdict_of(*noisy)
    free = [replace(toll, verdict=Verdict.FREE) for toll in noisy]
    assert Scaling.SCALES is verdict_of(*free)


def test_equals_are_seldom_called_anything_else() -> None:
    verdicts = [only(judged(1.0, 1.0, noise=0.004 + seed / 1e6)).verdict for seed in range(40)]
    assert {Scaling.SCALES} >= {*verdicts} - {Scaling.CANNOT_TELL}
    assert 36 <= verdicts.count(Scaling.SCALES)


def test_what_was_not_measured_says_why() -> None:
    found = judged(1.0, 1.0, reason="3 threads take a core each")
    assert Scaling.CANNOT_TELL is only(found).verdict
    assert "3 threads take a core each" in (only(found).reason or "")
    assert () == scaling_sentences(found)
    listing = scaling_listing(found, {})
    assert listing is not None
    assert "not measured" == listing.tables[0].rows[0][-1].says


def test_a_cell_of_threads_alone_has_no_scaling() -> None:
    two = row({"choice": "x", "threads": 2}, [1000.0] * BLOCKS, repeats_ns=[1000.0] * BLOCKS)
    found = judge_study(study_run([two], (BLOCKS,), study(blocks=BLOCKS)))
    assert () == found.scaling
    assert scaling_listing(found, {}) is None


# Sentences.


@pytest.mark.parametrize(
    ("cpu", "elapsed", "begins"),
    [
        (1.0, 1.0, "X scales with 2 threads: CPU time × 1.00"),
        (1.5, 1.5, "X is contended with 2 threads: CPU time × 1.50"),
        (1.0, 1.5, "X waits with 2 threads: CPU time × 1.00"),
        (1.03, 1.03, "Whether x scales with 2 threads is undecided: CPU time × 1.03"),
    ],
)
def test_the_answer_says_what_scaling_costs(cpu: float, elapsed: float, begins: str) -> None:
    found = judged(cpu, elapsed)
    (said,) = scaling_sentences(found)
    assert begins == said.replace("\u00a0", " ")[: len(begins)]
    assert said in answer(found)


@pytest.mark.parametrize(
    ("hyperthreads", "cores", "said"),
    [([], 2, False), (["0,1"], 2, True), (["0,1", "2,3"], 4, False), (["0,1", "2,3"], 3, True)],
)
def test_hyperthreads_are_told_where_threads_share_a_core(hyperthreads: list[str], cores: int, said: bool) -> None:
    listing = scaling_listing(judged(1.3, 1.3), {"hyperthreads": hyperthreads, "cores": cores})
    assert listing is not None
    assert said is any("hyperthreads of one physical core" in note for note in listing.notes)
    assert any(f"{cores} cores can be used here" in note for note in listing.notes)


def test_trials_without_threads_are_as_they_were() -> None:
    assert [5.0] == [Work((), {}, 1).wall_ns(ChunkRecord(operations=1, cpu_ns=1, wall_ns=5))]
    assert trials([100.0])[0].wall_ns


def test_threads_that_are_compared_with_one_are_no_alternatives() -> None:
    found = judged(1.5, 1.5)
    assert scaling_sentences(found) == answer(found)
    listing = scaling_listing(found, {})
    assert listing is not None
    assert () == listing.sentences
    about = replace(found.about, baseline={"choice": "x"})
    beside = replace(found, study=replace(found.study, study=about))
    listing = scaling_listing(beside, {})
    assert listing is not None
    assert scaling_sentences(beside) == listing.sentences
    assert scaling_sentences(beside)[0] in answer(beside)[1:]
