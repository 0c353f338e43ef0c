"""The runners of other platforms: each proves everything it offers, and keeps the contract."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S
from test_conformance import held
from tollbar.catalog import families, runners
from tollbar.catalog.families import Answer
from tollbar.catalog.runners import Platform
from tollbar.core import proc
from tollbar.core.records import CONTRACT, Outcome
from tollbar.core.runner import Session, Stopped, ask

PACKAGES = [(platform, package) for platform in runners.all_platforms().values() for package in platform.packages]
each_package = pytest.mark.parametrize(
    ("platform", "package"), PACKAGES, ids=[f"{platform.name}:{package}" for platform, package in PACKAGES]
)
# Offers of every platform's runner: by family, its choices, operations, and settings with their values, the usual value
# first.
FAMILIES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Mapping[str, tuple[Any, ...]]]] = {
    "rsa-api": (
        (
            "key-cached",
            "key-from-pem",
            "key-from-der",
            "key-from-parameters",
            "key-from-store",
            "key-pooled",
        ),
        ("sign", "verify"),
        {"bytes": (60,), "digest": ("fetched", "implicit")},
    ),
    "signature": (
        ("ecdsa-p256",),
        ("sign", "verify"),
        {"bytes": (32,), "digest": ("sha-256",), "key": ("kept", "from-pem", "from-der")},
    ),
    "digest": (("sha-256",), ("hash",), {"bytes": (64,), "lookup": ("fetched", "implicit")}),
    "cipher": (
        ("aes-256-gcm",),
        ("encrypt", "decrypt"),
        {"bytes": (1024,), "key": ("fresh", "kept")},
    ),
}
# Further offers of one platform.
BESIDES: Mapping[str, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "java": {
        "digest": (("md5", "sha-1", "sha-512"), ("hash",)),
        "cipher": (("aes-256-gcm", "aes-256-cbc"), ("encrypt", "decrypt", "round-trip")),
    },
}


def task_of(
    platform: Platform, package: str, family: str, op: str, choice: str, setting: Mapping[str, Any], **rest: Any
) -> dict[str, Any]:
    """Return a task as the lab makes it."""
    known = families.family("rsa-api").choices["key-cached"] if family == "rsa-api" else None
    return {
        "contract": CONTRACT,
        "mode": "verify",
        "family": family,
        "op": op,
        "choice": choice,
        "provider": {"kind": platform.name, "package": package},
        "setting": dict(setting),
        "inputs": {**(known.inputs if known else {}), **rest.get("inputs", {})},
        "seed": 3,
    }


def settings_of(family: str) -> Iterator[dict[str, Any]]:
    """Yield the usual setting, and each that differs from it in one value."""
    values = FAMILIES[family][2]
    usual = {name: first for name, (first, *_) in values.items()}
    yield usual
    for name, (_, *others) in values.items():
        yield from ({**usual, name: other} for other in others)


def answer_of(family: str, choice: str, op: str) -> Answer | None:
    """Return a known answer that needs no other setting than these tasks have."""
    known = families.family(family).choices["key-cached" if family == "rsa-api" else choice]
    usual = next(settings_of(family))
    return next((answer for answer in known.answers if answer.setting.items() <= usual.items()), None)


@cache
def built(platform: Platform) -> tuple[str, ...]:
    """Return the command of a runner whose platform must be installed.

    Its version is asked once, because Java takes as long as an answer.
    """
    return runners.command_of(platform)


@pytest.fixture(autouse=True, scope="module")
def quickly_compiled() -> Iterator[None]:
    """Limit Java to its first compiler: for a few answers the second one costs more than it gains."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield


@cache
def offers_of(platform: Platform, package: str) -> dict[str, list[str]]:
    """Return the choices that a runner lists, by family."""
    asked = {"mode": "list", "provider": {"kind": platform.name, "package": package}}
    record = ask(built(platform), asked, limit_s=PATIENCE_S)
    assert Outcome.OK == record.outcome, record.reason
    assert record.receipt["provider"]
    assert any(character.isdigit() for character in record.receipt["name"])
    found: dict[str, list[str]] = {}
    for offer in record.offers:
        found.setdefault(offer.family, []).append(offer.choice)
    return found


@pytest.mark.share(2)
@each_package
@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_runner_offers_is_proved(platform: Platform, package: str, family: str) -> None:
    _prove(platform, package, family, *FAMILIES[family][:2])


@pytest.mark.share(1)
@pytest.mark.parametrize(
    ("platform", "package", "family"),
    [
        pytest.param(platform, package, family, id=f"{platform.name}:{package}-{family}")
        for platform, package in PACKAGES
        for family in BESIDES.get(platform.name, ())
    ],
)
def test_what_one_runner_offers_besides_is_proved(platform: Platform, package: str, family: str) -> None:
    choices, operations = BESIDES[platform.name][family]
    assert {*choices} <= {*offers_of(platform, package)[family]}
    _prove(platform, package, family, choices, operations)


def _prove(
    platform: Platform, package: str, family: str, choices: tuple[str, ...], operations: tuple[str, ...]
) -> None:
    offered = offers_of(platform, package)[family]
    assert "none" in offered
    proved = set()
    for choice, op, setting in itertools.product(choices, operations, list(settings_of(family))):
        # Other settings are the same for each route to a key, and a process for each takes its time. But a platform may
        # not support the usual setting of all routes.
        if choice not in offered or ((choice, op) in proved and choice != offered[1]):
            continue
        answer = answer_of(family, choice, op)
        assert answer is not None
        inputs = {**answer.inputs, "expected_hex": answer.expected}
        record = ask(
            built(platform), task_of(platform, package, family, op, choice, setting, inputs=inputs), limit_s=PATIENCE_S
        )
        where = f"{choice} {op} {setting}: {record.reason}"
        if record.outcome is Outcome.UNSUPPORTED:
            assert record.reason, where
            continue
        assert Outcome.OK == record.outcome, where
        assert record.proof is not None, where
        assert answer.expected == record.proof.answer, where
        assert record.proof.accepted, where
        assert len(record.proof.refused) >= (1 if family == "digest" else 2), where
        proved.add((choice, op))
    assert {(choice, op) for choice in choices if choice in offered for op in operations} == proved


@pytest.mark.parametrize("platform", runners.all_platforms().values(), ids=lambda platform: platform.name)
def test_a_runner_that_is_killed_leaves_no_file(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a good end would remove such a file of the runtime."""
    command = built(platform)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    task = task_of(platform, platform.packages[0], "digest", "hash", "sha-256", next(settings_of("digest")))
    with Session(command, {**task, "mode": "measure"}) as session:
        session.ready(PATIENCE_S)
        for pid in proc.tree(session.pid)[1:]:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(Stopped):
            session.advance(0.001, 1, PATIENCE_S)
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.share(0)
def test_the_collector_s_rounds_begin_anywhere_in_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go's warm-up must not always end with a round of the collector.

    Otherwise the first round fell into the first chunk in half of all sessions, and none into the next one. About one
    in fifty of the times at which a session can begin is within a round.
    """
    task = task_of(
        runners.all_platforms()["go"], "crypto", "digest", "hash", "sha-256", {"bytes": 4096, "lookup": "implicit"}
    )
    # The collector prints each of its rounds, whatever the scheduler does in that chunk.
    monkeypatch.setenv("GODEBUG", "gctrace=1")
    trace = tmp_path / "rounds"
    command = ("/bin/sh", "-c", 'exec "$@" 2> "$0"', str(trace), *built(runners.all_platforms()["go"]))

    def rounds_of(session: Session, operations: int) -> int:
        """Return the collector's rounds in this number of operations; a busy machine does fewer in a given time."""
        before = trace.read_text().count("gc ")
        session.advance(0, operations, PATIENCE_S)
        # The collector ends its round meanwhile.
        time.sleep(0.03)
        return trace.read_text().count("gc ") - before

    # One core, as in the lab, so that the collector has no other.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    begun, warmed_ns = 0, []
    for _ in range(24):
        with Session(command, {**task, "mode": "measure"}) as session:
            session.ready(PATIENCE_S)
            time.sleep(0.03)
            warmed_ns.append(proc.cpu_ns(proc.tree(session.pid)))
            begun += rounds_of(session, 600) > 0
            assert rounds_of(session, 60_000), "where no round comes at all, none at the start would mean nothing"
    # By chance alone nine are rarer than one in a million, and 24 within half of the 200 ms one in 600,000.
    assert 9 > begun
    assert 100e6 < max(warmed_ns) - min(warmed_ns)


@pytest.mark.share(4)
@each_package
@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_runner_does_not_read_is_refused(platform: Platform, package: str, family: str) -> None:
    choices, operations, _ = FAMILIES[family]
    usual = next(settings_of(family))
    changes: list[tuple[Outcome, str, str, dict[str, Any]]] = [
        (Outcome.FAILED, choices[0], operations[0], {**usual, "colour": "red"}),
        (Outcome.UNSUPPORTED, "no-such-choice", operations[0], usual),
        (Outcome.UNSUPPORTED, choices[0], "no-such-operation", usual),
    ]
    for outcome, choice, op, setting in changes:
        record = ask(built(platform), task_of(platform, package, family, op, choice, setting), limit_s=PATIENCE_S)
        assert outcome == record.outcome, f"{choice} {op} {setting}: {record.reason}"
        assert record.reason


@pytest.mark.share(4)
@each_package
def test_a_route_that_a_platform_lacks_is_said(platform: Platform, package: str) -> None:
    offered = offers_of(platform, package)
    for family, (choices, operations, _) in FAMILIES.items():
        for choice in choices:
            if choice not in offered[family]:
                task = task_of(platform, package, family, operations[0], choice, next(settings_of(family)))
                record = ask(built(platform), task, limit_s=PATIENCE_S)
                assert Outcome.UNSUPPORTED == record.outcome, f"{choice}: {record.reason}"
                assert len(record.reason or "") > 20


@pytest.mark.share
@each_package
@pytest.mark.parametrize("family", FAMILIES)
def test_null_choices_do_nothing(platform: Platform, package: str, family: str) -> None:
    task = task_of(platform, package, family, FAMILIES[family][1][0], "none", next(settings_of(family)))
    record = ask(built(platform), task, limit_s=PATIENCE_S)
    assert Outcome.OK == record.outcome, record.reason
    assert record.proof is not None
    assert () == record.proof.refused
    assert record.proof.not_tried


@pytest.mark.share(1)
@each_package
@pytest.mark.parametrize(("family", "op"), [("rsa-api", "sign"), ("digest", "hash")])
def test_a_runner_keeps_the_contract(platform: Platform, package: str, family: str, op: str) -> None:
    choice = FAMILIES[family][0][0]
    if choice not in offers_of(platform, package)[family]:
        pytest.skip(f"{package} performs another family, and says so")
    answer = answer_of(family, choice, op)
    assert answer is not None
    inputs = {**answer.inputs, "expected_hex": answer.expected}
    # A platform may not support the usual setting.
    tasks = (task_of(platform, package, family, op, choice, setting, inputs=inputs) for setting in settings_of(family))
    command = built(platform)
    verify = next(task for task in tasks if ask(command, task, limit_s=PATIENCE_S).outcome is Outcome.OK)
    findings = held(command, {**verify, "mode": "measure"}, verify)
    assert [] == [one for one in findings if one.kept is not True]


@pytest.mark.share(0)
@pytest.mark.parametrize("package", ["jdk", "bouncy-castle"])
def test_the_size_of_java_s_keys_is_found_once(package: str, tmp_path: Path) -> None:
    words = runners.command_of(runners.all_platforms()["java"])
    command = [f"-Djna.tmpdir={tmp_path}" if word.startswith("-Djna.tmpdir=") else word for word in words]
    task = {"mode": "list", "provider": {"kind": "java", "package": package}}

    def bits() -> int:
        record = ask(command, task, limit_s=PATIENCE_S)
        assert record.outcome is Outcome.OK, record.reason
        return int(record.receipt["defaults"]["sign"]["bits"])

    found = bits()
    assert found >= 2048
    (kept,) = tmp_path.iterdir()
    assert f"{found}" == kept.read_text()
    kept.write_text("1234")
    assert 1234 == bits()
    kept.write_text("")
    assert found == bits()
    assert (f"{found}", [kept]) == (kept.read_text(), [*tmp_path.iterdir()])
