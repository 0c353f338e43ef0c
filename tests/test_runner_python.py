"""The Python runner does the work it counts: imports and signatures, counted by the interpreter's profiler."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S
from test_runners import answer_of, settings_of, task_of
from tollbar.catalog.runners import Platform, all_platforms, command_of
from tollbar.core.records import Outcome
from tollbar.core.runner import ask

PYTHON: Platform = all_platforms()["python"]
# Runs the runner with the interpreter's profiler, which sees every call, and prints on standard error how often each
# name was called since the runner was ready.
COUNTER = """
import collections, json, runpy, sys
counts = collections.Counter()
def count(frame, event, argument):
    if event in ("call", "c_call"):
        name = frame.f_code.co_name if event == "call" else argument.__name__
        if name == "say" and "ready" in frame.f_locals["line"]:
            counts.clear()
        counts[name] += 1
sys.setprofile(count)
try:
    runpy.run_path(sys.argv[1], run_name="__main__")
finally:
    sys.setprofile(None)
    print(json.dumps(counts), file=sys.stderr)
"""
CHUNKS, OPERATIONS = 3, 12
# Before the clocks of a chunk of four operations start, one is performed.
PERFORMED = OPERATIONS + CHUNKS
# The runner's own method has the name of the package's call in it.
BOTH = 2

# The call that imports a key, by package, route and operation.
IMPORTS = {
    ("cryptography", "key-from-pem", "verify"): "load_pem_public_key",
    ("cryptography", "key-from-der", "verify"): "load_der_public_key",
    ("cryptography", "key-from-parameters", "verify"): "public_key",
    ("cryptography", "key-from-pem", "sign"): "load_pem_private_key",
    ("cryptography", "key-from-der", "sign"): "load_der_private_key",
    ("cryptography", "key-from-parameters", "sign"): "private_key",
    ("pycryptodome", "key-from-pem", "verify"): "import_key",
    ("pycryptodome", "key-from-der", "verify"): "import_key",
    ("pycryptodome", "key-from-parameters", "verify"): "construct",
}


def counted(
    runner: Path, package: str, choice: str, op: str, family: str = "rsa-api", **setting: str
) -> tuple[int, Mapping[str, int]]:
    """Return the operations of some chunks, and the calls of each function in them."""
    # `cryptography` signs without a digest that was looked up before.
    said = {**next(settings_of(family)), **({"digest": "implicit"} if family == "rsa-api" else setting)}
    task = task_of(PYTHON, package, family, op, choice, said) | {"mode": "measure"}
    advance = {"advance": {"seconds": 0, "operations": OPERATIONS // CHUNKS}}
    lines: list[dict[str, Any]] = [task, *[advance] * CHUNKS]
    python, *_ = command_of(PYTHON)
    done = subprocess.run(
        [python, "-I", "-B", "-c", COUNTER, str(runner)],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    _, *chunks, last = (json.loads(line) for line in done.stdout.splitlines())
    assert {"outcome": "ok"} == last
    return sum(chunk["operations"] for chunk in chunks), json.loads(done.stderr.splitlines()[-1])


@pytest.mark.share(3)
@pytest.mark.parametrize(("package", "choice", "op"), IMPORTS)
def test_a_key_is_imported_in_each_call(package: str, choice: str, op: str) -> None:
    operations, calls = counted(PYTHON.folder / "runner.py", package, choice, op)
    assert (OPERATIONS, PERFORMED) == (operations, calls[IMPORTS[package, choice, op]])
    assert BOTH * PERFORMED == calls[op]


@pytest.mark.parametrize("package", PYTHON.packages)
@pytest.mark.parametrize("choice", ["key-cached", "key-pooled"])
def test_a_key_that_is_kept_is_not_imported_again(package: str, choice: str) -> None:
    operations, calls = counted(PYTHON.folder / "runner.py", package, choice, "verify")
    assert OPERATIONS == operations
    assert {} == {name: calls[name] for name in IMPORTS.values() if name in calls}
    assert BOTH * PERFORMED == calls["verify"]


@pytest.mark.parametrize(("lookup", "copies"), [("fetched", True), ("implicit", False)])
def test_a_hash_that_is_kept_is_copied_and_not_looked_up(lookup: str, copies: bool) -> None:
    """An object that holds only the algorithm's name is looked up each time."""
    operations, calls = counted(PYTHON.folder / "runner.py", "cryptography", "sha-256", "hash", "digest", lookup=lookup)
    # The interpreter makes one unrelated copy.
    assert (OPERATIONS, copies) == (operations, calls.get("copy", 0) >= OPERATIONS)


# Changes in a copy of the runner: file, old text, new text.
CACHES = ("operations.py", "make = makers[route]", "make = __import__('functools').cache(makers[route])")
COUNTS_TWICE = (
    "runner.py",
    "perform_so_often(perform, count)\n            operations",
    "perform_so_often(perform, count // 2)\n            operations",
)
PADS_WRONGLY = (
    "with_cryptography.py",
    "padding.PKCS1v15()",
    "padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)",
)


def spoiled(folder: Path, file: str, old: str, new: str) -> Path:
    """Return the main file of a copy of the runner with one change."""
    copy = Path(shutil.copytree(PYTHON.folder, folder / "spoiled", ignore=shutil.ignore_patterns("__pycache__")))
    text = (copy / file).read_text("utf-8")
    assert 1 == text.count(old)
    (copy / file).write_text(text.replace(old, new))
    return copy / "runner.py"


def test_a_runner_that_keeps_what_it_should_import_is_caught(tmp_path: Path) -> None:
    operations, calls = counted(spoiled(tmp_path, *CACHES), "cryptography", "key-from-pem", "verify")
    assert OPERATIONS == operations
    assert calls.get("load_pem_public_key", 0) <= 1


def test_a_runner_that_counts_what_it_did_not_do_is_caught(tmp_path: Path) -> None:
    operations, calls = counted(spoiled(tmp_path, *COUNTS_TWICE), "cryptography", "key-cached", "verify")
    assert OPERATIONS == operations
    assert BOTH * (OPERATIONS // 2 + CHUNKS) == calls["verify"]


def test_a_runner_that_pads_wrongly_is_caught(tmp_path: Path) -> None:
    """The changed runner accepts its own signatures, but does not give the known answer."""
    answer = answer_of("rsa-api", "key-cached", "sign")
    assert answer is not None
    inputs = {**answer.inputs, "expected_hex": answer.expected}
    setting = {"bytes": 60, "digest": "implicit"}
    task = task_of(PYTHON, "cryptography", "rsa-api", "sign", "key-cached", setting, inputs=inputs)
    python, *rest = command_of(PYTHON)
    for runner, is_right in ((PYTHON.folder / "runner.py", True), (spoiled(tmp_path, *PADS_WRONGLY), False)):
        record = ask([python, *rest[:-1], str(runner)], task, limit_s=PATIENCE_S)
        assert record.outcome in (Outcome.OK, Outcome.FAILED), record.reason
        answered = record.proof.answer if record.proof else None
        assert is_right == (Outcome.OK == record.outcome and answer.expected == answered)


# A package of password hashes that work in another thread, as Argon2's lanes do.
THREADED = """
import hashlib, threading
NAME, BACKEND = "threaded 1", "hashlib"

def password_hash(choice, held):
    rounds, salts = (held or {"iterations": 2000})["iterations"], iter(range(1 << 30))
    def hash_of(password, salt=None):
        salt, made = str(next(salts) if salt is None else salt), []
        work = lambda: made.append(hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), rounds).hex())
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return f"{salt}${rounds}${made[0]}"
    return hash_of, lambda made, password: made == hash_of(password, made.partition("$")[0])

def password_default():
    return {"choice": "pbkdf2-sha-256", "iterations": 2000}
"""
STARTS = """
import runner
runner.PACKAGES = ("threaded",)
runner.run()
"""


@pytest.fixture
def threaded(tmp_path: Path) -> tuple[str, ...]:
    """Return the runner with that package alone, as an upgrade starts it."""
    (tmp_path / "with_threaded.py").write_text(THREADED)
    (tmp_path / "started.py").write_text(f"import sys\nsys.path[:0] = {[str(PYTHON.folder), str(tmp_path)]!r}{STARTS}")
    return (sys.executable, "-B", str(tmp_path / "started.py"))


def of_defaults(mode: str, **more: Any) -> dict[str, Any]:
    return {
        "contract": 2,
        "mode": mode,
        "family": "defaults",
        "op": "hash",
        "choice": "by-default",
        "provider": {"kind": "runner"},
        "setting": {},
        "inputs": {},
        "seed": 5,
    } | more


def test_a_package_says_what_it_has_and_takes_by_itself(threaded: tuple[str, ...]) -> None:
    record = ask(threaded, of_defaults("list"), limit_s=PATIENCE_S)
    assert {"defaults"} == {offer.family for offer in record.offers}
    assert {"hash": {"choice": "pbkdf2-sha-256", "iterations": 2000}} == record.receipt["defaults"]
    other = ask(threaded, of_defaults("verify", family="digest", choice="sha-256"), limit_s=PATIENCE_S)
    assert Outcome.UNSUPPORTED == other.outcome


@pytest.mark.parametrize(
    ("choice", "setting"), [("by-default", {}), ("pbkdf2-sha-256", {"iterations": 100}), ("none", {})]
)
def test_password_hashes_are_proved(choice: str, setting: Mapping[str, int], threaded: tuple[str, ...]) -> None:
    record = ask(threaded, of_defaults("verify", choice=choice, setting=setting), limit_s=PATIENCE_S)
    assert Outcome.OK == record.outcome, record.reason
    assert record.proof is not None
    assert (("another password", "the same hash twice") if setting or choice != "none" else ()) == record.proof.refused


def test_what_other_threads_did_since_a_chunk_is_never_less_than_nothing(threaded: tuple[str, ...]) -> None:
    """Two clocks are read one after the other, and the difference of finished threads may shrink."""
    lines = [json.dumps(of_defaults("measure")), *['{"advance": {"seconds": 0.001, "operations": 1}}'] * 200]
    done = subprocess.run(
        threaded, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    chunks = [said for line in done.stdout.splitlines() if "observed" in (said := json.loads(line))]
    assert 200 == len(chunks)
    assert all(one["observed"]["background_ns"] >= 0 for one in chunks)
