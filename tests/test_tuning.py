"""A password hash to a time: what the machine allows, what is proposed, what an attacker gets, and what is pasted."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import argon2
import pytest

from tollbar import families, machine, policies, tuning
from tollbar.document.decisions.tune import document
from tollbar.errors import ExitStatus, TollbarError
from tollbar.judge.choosing import wanted
from tollbar.libraries import Provider
from tollbar.machine import Limit, Limits
from tollbar.policies import Ruling
from tollbar.present.decisions.tune import tune_answer
from tollbar.runner import Stopped
from tollbar.tuning import ALGORITHMS, Asked, Elapsed, Missed, Parameters, Tuned, attackers, fitting, together

FAMILY = families.family("password-hash")
MIB = 1024**2

# What /proc/self/cgroup says, the files of a group's folder, and how many cores' worth of time that is of four.
QUOTAS = {
    "version 2": ("0::/mine", {"sys/fs/cgroup/mine/cpu.max": "150000 100000"}, 1.5),
    "none": ("0::/mine", {"sys/fs/cgroup/mine/cpu.max": "max 100000"}, 4),
    "further up": (
        "0::/a/b",
        {"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "50000 100000"},
        0.5,
    ),
    "the least": ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "100000 100000", "sys/fs/cgroup/a/cpu.max": "2 1"}, 1),
    "version 1": (
        "3:cpu,cpuacct:/mine",
        {
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_period_us": "100000",
        },
        2,
    ),
    "version 1 without": ("3:cpu:/", {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, 4),
    "more than there are": ("0::/", {"sys/fs/cgroup/cpu.max": "900000 100000"}, 4),
}


def machine_of(folder: Path, files: Mapping[str, str]) -> Path:
    """A machine whose kernel says so."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("case", QUOTAS)
def test_the_quota_is_the_least_up_the_path(case: str, tmp_path: Path) -> None:
    """Of both versions of control groups; what says so is named."""
    group, files, expected = QUOTAS[case]
    meminfo = "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n"
    root = machine_of(tmp_path, {**files, "proc/self/cgroup": f"{group}\n", "proc/meminfo": meminfo})
    found = machine.limits(root, cores=4)
    assert expected == found.cores.amount
    assert ("cpuset" in found.cores.by) == (expected == 4)
    assert Limit(4 * MIB, "what is free on the machine") == found.memory


def test_memory_of_a_group_is_what_is_left_of_it(tmp_path: Path) -> None:
    """What programs hold counts, what is kept of files does not; a group further up may have less."""
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "proc/meminfo": "MemTotal: 9999999 kB\nMemAvailable: 9999999 kB\n",
        "sys/fs/cgroup/a/b/memory.max": str(64 * MIB),
        "sys/fs/cgroup/a/b/memory.stat": f"anon {16 * MIB}\nfile {40 * MIB}\n",
        "sys/fs/cgroup/a/memory.max": str(50 * MIB),
        "sys/fs/cgroup/a/memory.stat": f"anon {20 * MIB}\nfile 0\n",
    }
    found = machine.limits(machine_of(tmp_path, files), cores=1).memory
    assert Limit(30 * MIB, "what is free in the control group /a") == found


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("work", [1.3e6, 7.77e6, 1.23e8, 9.87e8])
def test_there_are_parameters_of_about_any_work(name: str, work: float) -> None:
    """Within a few percent, but for bcrypt, whose grain is a factor of two; and never beyond the memory."""
    algorithm, most = ALGORITHMS[name], 256 * MIB
    one = next(iter(algorithm.near(work, most)))
    assert algorithm.work(one) <= 1.011 * work
    assert algorithm.work(one) >= (0.49 if name == "bcrypt" else 0.975) * work
    assert FAMILY.choices[name].memory_bytes(one) <= most


def test_memory_comes_before_passes() -> None:
    """As RFC 9106 has it: as much memory as there may be, then passes."""
    near = ALGORITHMS["argon2id"].near
    assert 1 == next(iter(near(100 * MIB, 200 * MIB)))["passes"]
    assert 4 == next(iter(near(100 * MIB, 30 * MIB)))["passes"]


def test_every_rate_names_its_source_and_scales_by_the_work() -> None:
    """Half of the guesses at twice the work; each algorithm has a rate, which its memory bounds where it needs any."""
    for name, algorithm in ALGORITHMS.items():
        rates = [rate for rate in attackers().rate if rate.choice == name]
        assert rates
        assert all(rate.source and rate.tool and rate.parameters for rate in rates)
        one = next(iter(algorithm.near(5e8, 1e9)))
        twice = next(
            p for p in algorithm.near(2 * algorithm.work(one), 1e9) if p["passes" if "passes" in p else next(iter(p))]
        )
        found, less = (tuning.guesses(FAMILY, name, p, "rtx-4090") for p in (one, twice))
        assert found.published
        assert less.published
        ratio = algorithm.work(twice) / algorithm.work(one)
        assert found.published / less.published == pytest.approx(ratio)
        if found.by_memory:
            assert found.published < found.by_memory


def test_the_fastest_published_rate_counts() -> None:
    """An attacker has the faster tool, whether or not its source was read here."""
    found = tuning.guesses(FAMILY, "scrypt", {"n": 2**14, "r": 8, "p": 1}, "rtx-4090")
    assert 7126 == found.published
    assert found.rate
    assert not found.rate.checked


def test_a_rate_is_never_made_up() -> None:
    """Where nothing is published of a choice on a card, nothing is said."""
    assert tuning.guesses(FAMILY, "bcrypt", {"cost": 10}, "rtx-4090").by_memory is None


# What is pasted.

SETS: Mapping[str, Parameters] = {
    "argon2id": {"memory": 46 * MIB, "passes": 2, "lanes": 1},
    "scrypt": {"n": 2**16, "r": 10, "p": 2},
    "bcrypt": {"cost": 9},
    "pbkdf2-sha-1": {"iterations": 1_400_000},
    "pbkdf2-sha-256": {"iterations": 601_000},
    "pbkdf2-sha-512": {"iterations": 221_000},
}
# The attributes of Django 5.2's classes.
DJANGO = {
    "Argon2PasswordHasher": {"memory_cost", "time_cost", "parallelism"},
    "ScryptPasswordHasher": {"work_factor", "block_size", "parallelism", "maxmem"},
    "BCryptSHA256PasswordHasher": {"rounds"},
    "PBKDF2PasswordHasher": {"iterations", "digest", "algorithm"},
    "PBKDF2SHA1PasswordHasher": {"iterations", "digest", "algorithm"},
}
SPRING = re.compile(r"new (Argon2|SCrypt|BCrypt|Pbkdf2)PasswordEncoder\([\w.\", ]+\)")
# The identifier, an optional version, and parameters, as the format's specification has them.
PHC = re.compile(r"\$[a-z0-9-]{1,32}(\$v=[0-9]+)?\$[a-z0-9-]{1,32}=[0-9]+(,[a-z0-9-]{1,32}=[0-9]+)*")


@pytest.mark.parametrize("name", SETS)
def test_what_is_pasted_has_the_form_of_its_place(name: str) -> None:
    """Parsed by what reads it, or held against the names that its place has."""
    text = tuning.pasted(name, SETS[name])
    assert tuning.PLACES == tuple(text)
    phc, django, spring, keycloak = text.values()
    assert phc
    assert re.fullmatch(r"\$2b\$\d\d\$", phc) if name == "bcrypt" else PHC.fullmatch(phc)
    space: dict[str, Any] = {base: type(base, (), {}) for base in DJANGO} | {"hashlib": __import__("hashlib")}
    assert django
    exec(django, space)
    made = space["Tuned"]
    assert {one for one in vars(made) if not one.startswith("__")} <= DJANGO[made.__base__.__name__]
    assert spring
    assert SPRING.fullmatch(spring)
    assert keycloak is None or keycloak.startswith(("--spi-password-hashing--argon2--", "hashAlgorithm(pbkdf2"))


def test_the_phc_string_is_what_argon2_reads() -> None:
    """By the reference implementation's own reader, once salt and hash stand behind it."""
    text = tuning.pasted("argon2id", SETS["argon2id"])["PHC string"]
    found = argon2.extract_parameters(f"{text}$c2FsdHNhbHRzYWx0c2FsdA${'A' * 43}")
    assert (46 * 1024, 2, 1) == (found.memory_cost, found.time_cost, found.parallelism)


# What is proposed, on a machine that is made up.

RATES = {  # Work in a second of one core.
    "argon2id": 1.1e9, "scrypt": 1.7e7, "bcrypt": 2.0e4, "pbkdf2-sha-256": 1.2e7, "pbkdf2-sha-512": 4e6,
    "pbkdf2-sha-1": 9e6,
}  # fmt: skip
CORES = 2.0
# How much more a hash takes that needs more memory than caches have.
STEEP = [0.3]
MADE_UP = Provider("made-up", "made-up 1.0", "rustcrypto", None, ("made-up",), {})


def asking(within_s: float = 0.25, at_once: int = 8, memory: float = 4096 * MIB, **more: Any) -> Asked:
    limits = Limits(Limit(CORES, "the cores"), Limit(8192 * MIB, "free"))
    names = more.pop("policy", ["owasp-password-storage-2026-06"])
    choices = tuple(FAMILY.choices[name] for name in more.pop("choices", ALGORITHMS))
    return Asked(wanted("password-hash", names), within_s, at_once, memory, "asked", limits, choices, (), "rtx-4090")


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose hashes take a known time: memory that caches have not is slower."""

    def seconds(task: Mapping[str, Any]) -> float:
        name, setting = task["choice"], {k: v for k, v in task["setting"].items() if k != "cpu"}
        slower = 1 + STEEP[0] * min(1.0, FAMILY.choices[name].memory_bytes(setting) / (64 * MIB))
        return ALGORITHMS[name].work(setting) / RATES[name] * slower

    def elapsed(command: tuple[str, ...], task: Mapping[str, Any], at_once: int, for_s: float) -> Elapsed:
        cpu_s = seconds(task)
        wall_s = cpu_s * max(1.0, at_once / CORES)
        return Elapsed(at_once, 80, wall_s, 1.1 * wall_s, cpu_s, min(at_once, CORES))

    def fastest(asked: Asked, choice: families.Choice, floor: Parameters) -> tuple[Provider, float]:
        return MADE_UP, seconds({"choice": choice.name, "setting": floor})

    monkeypatch.setattr(together, "elapsed", elapsed)
    monkeypatch.setattr(fitting, "_fastest", fastest)


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("steep", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("within_s", [0.25, 0.4, 1.0])
def test_what_is_proposed_takes_nearly_the_time_and_is_above_the_floor(
    within_s: float, steep: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 5 % below it and never above, where the grain is that fine; no policy refuses it."""
    monkeypatch.setitem(globals(), "STEEP", [steep])
    found = tuning.of(asking(within_s), tuning.tune(asking(within_s)))
    assert found.tuned
    for one in (*found.tuned, *found.unsaid):
        took_s = one.measured.elapsed.median_s
        assert took_s <= within_s
        assert one.is_near == (took_s >= 0.95 * within_s)
        assert one.is_near or one.choice.name in ("bcrypt", "scrypt")
        assert one.candidate.ruling is not Ruling.BREAKS
        assert one.measured.memory_bytes * 8 <= 4096 * MIB
    by_policy = [policies.judged(p, FAMILY, one.candidate.coordinates, found.asked.wanted.on) for one in found.tuned
                 for p in found.asked.wanted.policies]  # fmt: skip
    assert {Ruling.MEETS} == {one.ruling for one in by_policy}


@pytest.mark.usefixtures("made_up")
def test_what_an_attacker_gets_least_of_stands_first() -> None:
    """By what was published; what cannot be said stands apart, with what is missing."""
    found = tuning.of(asking(1.0), tuning.tune(asking(1.0)))
    rates = [one.guesses.published or 0 for one in found.tuned]
    assert sorted(rates) == rates
    assert ["bcrypt"] == [one.choice.name for one in found.unsaid]
    assert "72 bytes" in found.unsaid[0].candidate.missing[0].what


@pytest.mark.usefixtures("made_up")
def test_bcrypt_says_what_the_next_cost_takes() -> None:
    """Its grain is a factor of two."""
    asked = asking(0.5, choices=["bcrypt"])
    (one,) = tuning.tune(asked)
    assert isinstance(one, Tuned)
    assert not one.is_near
    assert one.measured.elapsed.median_s <= 0.5 < 2 * one.measured.elapsed.median_s
    text = str(tune_answer(tuning.of(asked, [one])))
    assert f"cost {one.measured.parameters['cost'] + 1}" in text


@pytest.mark.usefixtures("made_up")
def test_what_is_too_slow_or_too_large_says_by_how_much() -> None:
    """The least that is not refused, and what it takes."""
    slow = tuning.of(asking(0.002), tuning.tune(asking(0.002)))
    assert not slow.tuned
    assert len(ALGORITHMS) == len(slow.missed)
    assert slow.nearest
    assert "Nothing is found" in tune_answer(slow).headline
    assert slow.nearest.choice.title in tune_answer(slow).headline
    (large,) = tuning.tune(asking(memory=16 * MIB, choices=["argon2id"]))
    assert isinstance(large, Missed)
    assert large.needs_bytes
    assert large.needs_bytes > 16 * MIB


@pytest.mark.usefixtures("made_up")
def test_nothing_that_is_refused_or_disallowed_is_proposed() -> None:
    """Whatever the policy: what is proposed breaks none, and is not disallowed."""
    names = [name for name in policies.shipped() if policies.policy(name).is_about("password-hash")]
    for policy in names:
        found = tuning.of(asking(1.0, policy=[policy]), tuning.tune(asking(1.0, policy=[policy])))
        for one in (*found.tuned, *found.unsaid):
            assert one.candidate.ruling is not Ruling.BREAKS
            assert "disallowed" not in one.standing.words
        for missed in found.missed:
            assert missed.measured or missed.needs_bytes or missed.reason or missed.candidate


@pytest.mark.usefixtures("made_up")
def test_terminal_and_document_say_what_was_found() -> None:
    """Every choice has its place; the document is JSON and has what is to be pasted."""
    found = tuning.of(asking(0.4), tuning.tune(asking(0.4)))
    answer, said = tune_answer(found), json.loads(document(found).model_dump_json(by_alias=True))
    assert {one["choice"] for key in ("tuned", "cannot_say", "missed") for one in said[key]} == {*ALGORITHMS}
    assert answer.headline == said["headline"]
    first = said["tuned"][0]
    assert first["paste"]["PHC string"].startswith("$")
    assert first["took"]["median_s"] <= 0.4
    assert not answer.warnings


@pytest.mark.usefixtures("made_up")
def test_a_busy_machine_is_said() -> None:
    """Where the hashes had fewer cores than they could have had."""
    asked = asking(1.0, choices=["argon2id"])
    (one,) = tuning.tune(asked)
    assert isinstance(one, Tuned)
    busy = replace(one, measured=replace(one.measured, elapsed=replace(one.measured.elapsed, cores=1.1)))
    (warning,) = tune_answer(tuning.of(asked, [busy])).warnings
    assert "1.1 of 2 cores" in warning


@pytest.mark.usefixtures("made_up")
def test_a_disturbed_measurement_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is wanted lies between two that contradict the model, and there is something between."""
    undisturbed, took = together.elapsed, []

    def elapsed(command: tuple[str, ...], task: Mapping[str, Any], at_once: int, for_s: float) -> Elapsed:
        found = undisturbed(command, task, at_once, for_s)
        took.append(found.median_s)
        return replace(found, median_s=2 * found.median_s) if len(took) == 1 else found

    monkeypatch.setattr(together, "elapsed", elapsed)
    (one,) = tuning.tune(asking(choices=["argon2id"]))
    assert isinstance(one, Tuned)
    assert one.is_near
    assert one.measured.elapsed.median_s in took[1:]


@pytest.mark.usefixtures("made_up")
def test_what_took_too_long_is_measured_again_before_its_shape_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another program had half of the cores: one pass over more memory comes before two."""
    alone, asked = together.elapsed, []

    def elapsed(command: tuple[str, ...], task: Mapping[str, Any], at_once: int, for_s: float) -> Elapsed:
        found = alone(command, task, at_once, for_s)
        asked.append(task["setting"])
        return replace(found, median_s=2 * found.median_s) if len(asked) <= 2 else found

    monkeypatch.setattr(together, "elapsed", elapsed)
    (one,) = tuning.tune(asking(0.4, choices=["argon2id"]))
    assert isinstance(one, Tuned)
    assert one.is_near
    assert 1 == one.measured.parameters["passes"]
    assert asked[1] == asked[2]
    assert asked[0] != asked[1]


@pytest.mark.usefixtures("made_up")
def test_what_takes_far_too_long_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other program makes a hash take so much longer."""
    alone, asked = together.elapsed, []

    def elapsed(command: tuple[str, ...], task: Mapping[str, Any], at_once: int, for_s: float) -> Elapsed:
        asked.append(task["setting"])
        return alone(command, task, at_once, for_s)

    monkeypatch.setattr(together, "elapsed", elapsed)
    assert {Missed} == {type(one) for one in tuning.tune(asking(0.002))}
    assert asked
    assert all(asked.count(one) == 1 for one in asked)


@pytest.mark.usefixtures("made_up")
def test_nothing_to_propose_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Which says the nearest."""
    from tollbar.cli.tune import tune

    assert ExitStatus.SOME_FAILED is tune(within="2ms", at_once=2)
    assert "Nothing is found" in capsys.readouterr().out
    assert ExitStatus.DONE is tune(within="1s", at_once=2)


# So many at once.

RUNNER = """
import json, os, sys, time
folder, first = {folder!r}, {first!r}
task = json.loads(sys.stdin.readline())
print(json.dumps({{"ready": {{"provider": "toy", "name": "toy", "operation_ns": 1e6}}}}), flush=True)
for line in sys.stdin:
    own = os.path.join(folder, str(os.getpid()))
    open(own, "w").close()
    begun = time.monotonic_ns()
    time.sleep(0.02)
    at_once = len(os.listdir(folder))
    if first:
        # It ends when the others have begun theirs, however late a busy machine lets them; who never begins shows.
        open(os.path.join(first, str(os.getpid())), "w").close()
        while (at_once := len(os.listdir(first))) < {at_once} and time.monotonic_ns() - begun < 60e9:
            time.sleep(0.005)
        first = None
    os.remove(own)
    if {fails} and at_once > 1:
        print(json.dumps({{"outcome": "failed", "reason": "it broke"}}), flush=True)
        break
    with open({log!r}, "a") as log:
        log.write(f"{{at_once}}\\n")
    wall = time.monotonic_ns() - begun
    print(json.dumps({{"operations": 1, "cpu_ns": wall // 2, "wall_ns": wall}}), flush=True)
else:
    print(json.dumps({{"outcome": "ok"}}), flush=True)
"""


AT_ONCE = 3


def toy(tmp_path: Path, *, fails: bool = False) -> tuple[tuple[str, ...], Path]:
    """A runner whose hash sleeps, and that writes down how many of them were under way."""
    folder, first, log = tmp_path / "under-way", tmp_path / "first", tmp_path / "log"
    folder.mkdir()
    first.mkdir()
    script = tmp_path / "runner.py"
    script.write_text(RUNNER.format(folder=str(folder), first=str(first), log=str(log), fails=fails, at_once=AT_ONCE))
    return (sys.executable, str(script)), log


def test_so_many_are_under_way_at_once(tmp_path: Path) -> None:
    """Each hash is timed while all the others are at work."""
    command, log = toy(tmp_path)
    found = together.elapsed(command, {"mode": "measure"}, AT_ONCE, 0.3)
    assert AT_ONCE == found.at_once
    assert found.hashes >= AT_ONCE * (together.FEWEST - 1)
    assert found.median_s >= 0.02
    assert found.p95_s >= found.median_s
    assert found.cores == pytest.approx(1.5, rel=0.2)
    assert AT_ONCE == max(map(int, log.read_text().split()))


def test_a_runner_that_fails_ends_all_of_them(tmp_path: Path) -> None:
    """With its own reason, and without waiting for what the others might still do."""
    command, _ = toy(tmp_path, fails=True)
    with pytest.raises(Stopped, match="it broke"):
        together.elapsed(command, {"mode": "measure"}, AT_ONCE, 30.0)


def test_the_engine_hashes_so_many_at_once() -> None:
    """By the contract that every runner speaks."""
    asked = tuning.asked(["pbkdf2-sha-256"], [], within_s=0.05, at_once=2, providers=["rustcrypto"])
    (provider,) = asked.providers
    point = tuning.measure(replace(asked, within_s=0.01), asked.choices[0], provider, {"iterations": 2000})
    assert 2 == point.elapsed.at_once
    assert point.elapsed.hashes > 2 * together.FEWEST
    assert point.elapsed.cpu_s > 0


# Bad input.

REFUSED = {
    ("--within", "abc"): "not a number with a unit",
    ("--within", "0ms"): "from 1 ms to 60 s",
    ("--within", "250"): "say the unit",
    ("--within", "2 min"): "from 1 ms to 60 s",
    ("--at-once", "0"): "from 1 to 48",
    ("--at-once", "1000"): "from 1 to 48",
    ("--memory", "4000GiB"): "more than there is",
    ("--memory", "0MiB"): "more than nothing",
    ("--memory", "512M"): "say the unit",
    ("--policy", "owasp"): "no such policy",
    ("--policy", "tlsref-modern-6.0"): "no rule on password-hash",
    ("--provider", "no-such"): "no such provider",
}


@pytest.mark.parametrize("option", REFUSED)
def test_what_cannot_be_meant_is_refused_in_one_line(option: tuple[str, str]) -> None:
    """Before anything is measured."""
    from tollbar.cli import _command

    given = {"--within": "250ms"} | {option[0]: option[1]}
    with pytest.raises(TollbarError) as refused:
        _command(["tune", "password-hash", *(word for pair in given.items() for word in pair)])
    assert REFUSED[option] in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["digest", "--within", "1s"], "cannot be tuned"),
        (["password", "--within", "1s"], "no such family"),
        (["password-hash", "md5", "--within", "1s"], "no such password hash"),
        (["password-hash"], "how long may one hash take"),
    ],
)
def test_another_family_or_choice_is_refused(words: list[str], expected: str) -> None:
    """With what can be tuned."""
    from tollbar.cli import _command

    with pytest.raises(TollbarError, match=expected) as refused:
        _command(["tune", *words])
    assert refused.value.hint
