"""Every provider against every known answer, in both directions; and the engine against invalid tasks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import share
from patience import PATIENCE_S
from tollbar import study
from tollbar.catalog.families import families
from tollbar.core.records import CONTRACT, Outcome, Proven, Record
from tollbar.core.runner import ask, engine
from tollbar.lab import measure
from tollbar.study import plan
from tollbar.study.plan.cells import Cell

PROVIDERS = '["libcrypto", "libcrypto:psycopg", "aws-lc", "rustcrypto"]'

# Seconds each; their cheaper siblings prove the same.
SLOW = {
    ("rsa-3072", "generate-key"),
    ("rsa-4096", "generate-key"),
    ("slh-dsa-128s", "generate-key"),
    ("pbkdf2-sha-1-1400k", "hash"),
    ("argon2id-rfc9106-2g", "hash"),
    ("scrypt-owasp", "hash"),
}
# Tenths of a second each, with the same code as the remaining ones.
DEARER = (
    *("pbkdf2-sha-256-600k", "pbkdf2-sha-512-220k", "scrypt-16m"),
    *("argon2id-owasp-7m", "argon2id-owasp-19m", "argon2id-owasp-46m", "argon2id-rfc9106-64m"),
)
# Cheap parameters prove as well that parameters are in effect.
CHEAP = '[vary]\niterations = [10000]\nn = ["2^12"]\nmemory = ["8 MiB"]\n'
LEFT_OUT = SLOW | share.of({(choice, "hash") for choice in DEARER}, set())

# In OpenSSL's legacy module, which comes with the system's library. The wheel has no such module: the system's would
# run the system's code.
LEGACY = {"des-cbc", "rc2-cbc", "rc4"}
# Choices that OpenSSL 3.5 does not support here: a driver that lost another algorithm would pass as *unsupported*.
LACKING = {
    "digest": {"blake3"},
    "mac": set[str](),
    "cipher": LEGACY,
    "signature": set[str](),
    "key-exchange": set[str](),
    "password-hash": {"bcrypt", "bcrypt-10", "bcrypt-12"},
    "rsa-api": {"key-from-store"},
}


@pytest.mark.share(1)
@pytest.mark.parametrize("family", LACKING)
def test_every_provider_meets_every_known_answer(family: str, tmp_path: Path) -> None:
    proven = {cell.key: (cell, one) for cell, one in proofs(family, tmp_path)}
    failed = [(cell.key, one.reason) for cell, one in proven.values() if one.outcome is Outcome.FAILED]
    assert [] == failed
    assert all(one.reason for _, one in proven.values() if one.outcome is Outcome.UNSUPPORTED)
    assert LACKING[family] == lacking(proven.values(), "libcrypto:psycopg")
    assert not LEGACY & lacking(proven.values(), "libcrypto:system")
    modern = [(cell, one) for cell, one in proven.values() if cell.provider.spec == "libcrypto:psycopg"]
    # New keys have no known answer: their signatures are checked instead.
    with_answers = [one for cell, one in modern if cell.coordinates["op"] != "generate-key" and cell.choice.answers]
    assert [one for one in with_answers if one.outcome is Outcome.OK]
    assert all(one.known_answers >= 1 and one.refused for one in with_answers if one.outcome is Outcome.OK)


def lacking(proven: Iterable[tuple[Cell, Proven]], spec: str) -> set[str]:
    """Return the choices that a provider reports as unsupported, except keys that it no longer makes."""
    return {
        cell.choice.name
        for cell, one in proven
        if cell.provider.spec == spec
        and one.outcome is Outcome.UNSUPPORTED
        and (cell.choice.name, cell.coordinates["op"]) != ("dsa-512", "generate-key")
    }


def proofs(family: str, folder: Path) -> list[tuple[Cell, Proven]]:
    """Return every cell of a family on every provider, with its proof."""
    path = folder / "every.toml"
    path.write_text(
        f'question = "?"\nfamily = "{family}"\nproviders = {PROVIDERS}\nbaseline = "none"\nchoices = ["*", "none"]\n'
        + share.of(CHEAP if family == "password-hash" else "", "")
    )
    (one,) = plan.make(study.load([str(path)]), seed=1).studies
    cells = [cell for cell in one.cells if (cell.choice.name, cell.coordinates["op"]) not in LEFT_OUT]
    return list(zip(cells, measure.prove(cells, 1), strict=True))


def test_a_wrong_known_answer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "one.toml"
    path.write_text(
        'question = "?"\nfamily = "digest"\nproviders = ["rustcrypto"]\nbaseline = "md5"\nchoices = ["md5", "sha-1"]\n'
    )
    (one,) = plan.make(study.load([str(path)]), seed=1).studies
    sha_1, md5 = families()["digest"].choices["sha-1"], one.cells[0]
    task = md5.task("verify", 1, sha_1.answers[0])
    record = ask(md5.provider.runner, task, limit_s=PATIENCE_S)
    assert record.proof is not None
    assert sha_1.answers[0].expected != record.proof.answer


def test_a_masked_processor_is_proved_by_the_library_itself() -> None:
    """A mask is in effect if the library's own capability vector shows it; otherwise the cell is refused."""
    for cpu, word, bit in (("no-sha", 1, 29), ("no-aes", 0, 57), ("no-vector", 0, 60)):
        record = hash_with(cpu, {"kind": "libcrypto"})
        if record.outcome is Outcome.UNSUPPORTED:
            assert "nothing to mask" in (record.reason or "")
            continue
        words = (
            record.receipt["cpu"].removeprefix("CPUINFO: ").removeprefix("OPENSSL_ia32cap=").split(" ")[0].split(":")
        )
        assert 0 == int(words[word], 16) >> bit & 1
    built_in = hash_with("no-sha", {"kind": "rustcrypto"})
    assert Outcome.UNSUPPORTED == built_in.outcome


def hash_with(cpu: str, provider: dict[str, str]) -> Record:
    """Return the record of one hash on a processor with this mask."""
    task = {"mode": "verify", "family": "digest", "op": "hash", "choice": "sha-256", "setting": {"cpu": cpu}}
    return ask([str(engine()), "op"], {**task, "provider": provider}, limit_s=PATIENCE_S)


def advance(seconds: float, operations: int) -> str:
    """Return a line that continues a session."""
    return json.dumps({"advance": {"seconds": seconds, "operations": operations}})


GOOD_TASK: dict[str, Any] = {
    "contract": CONTRACT,
    "mode": "measure",
    "provider": {"kind": "rustcrypto"},
    "family": "digest",
    "op": "hash",
    "choice": "sha-256",
    "setting": {"bytes": 64},
}

WRONG_TASKS = {
    "another contract": ({"contract": CONTRACT - 1}, "failed", f"this engine supports contract {CONTRACT}"),
    "no contract": ({"contract": None}, "failed", f"this engine supports contract {CONTRACT}"),
    "a time to be measured": ({"duration_s": 0.002}, "failed", "unknown field"),
    "a setting that nothing reads": ({"setting": {"padding": "pss"}}, "failed", "`padding` does not apply"),
    "an answer that nothing gives": (
        {"mode": "verify", "inputs": {"expected_hex": "00ff"}}, "failed", "an input of the known answer is missing",
    ),
    "unknown mode": ({"mode": "guess"}, "failed", "the task is not valid"),
    "unknown field": ({"speed": 3}, "failed", "unknown field"),
    "unknown provider": ({"provider": {"kind": "magic"}}, "failed", "no such provider"),
    "unknown family": ({"family": "luck"}, "unsupported", "luck"),
    "unknown choice": ({"choice": "md6"}, "unsupported", "md6"),
    "unknown operation": ({"op": "sing"}, "failed", "sing"),
    "unknown mask": ({"setting": {"cpu": "slow"}, "provider": {"kind": "libcrypto"}}, "failed", "no such `cpu`"),
    "a word for a number": ({"setting": {"bytes": "many"}}, "failed", "whole number"),
    "too much data": ({"setting": {"bytes": 1 << 40}}, "failed", "bytes are too many"),
    "no such library": (
        {"provider": {"kind": "libcrypto", "path": "/none.so"}},
        "failed",
        "/none.so cannot be loaded: cannot open",
    ),
    "answer that is no hexadecimal": ({"inputs": {"of_hex": "xyz"}}, "failed", "not hexadecimal"),
    "key that is none": (
        {"provider": {"kind": "libcrypto"}, "family": "signature", "op": "sign", "choice": "rsa-2048",
         "inputs": {"private_key_pem": "rubbish"}},
        "failed",
        "private key cannot be read",
    ),
    "key that is missing": (
        {"provider": {"kind": "libcrypto"}, "family": "signature", "op": "sign", "choice": "rsa-2048"},
        "failed",
        "`private_key_pem` is missing",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_TASKS)
def test_a_wrong_task_gets_a_record_with_a_reason(wrong: str) -> None:
    change, outcome, words = WRONG_TASKS[wrong]
    record = answer_of(json.dumps({**GOOD_TASK, **change}))
    assert (outcome, True) == (record["outcome"], words in record["reason"]), record


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00"])
def test_what_is_no_task_gets_a_record_too(text: str) -> None:
    assert "failed" == answer_of(text)["outcome"]


def test_a_good_task_is_measured() -> None:
    ready, short, many, last = answers_of(GOOD_TASK, advance(0.002, 1), advance(0, 5000))
    assert ready["ready"]["engine"].endswith("(optimised)")
    assert ready["ready"]["operation_ns"] > 0
    assert short["wall_ns"] >= 2_000_000
    assert many["operations"] >= 5000
    assert all(chunk["cpu_ns"] > 0 for chunk in (short, many))
    assert {"outcome": "ok"} == last


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rubbish", "not of the runner contract"),
        ("{}", "not of the runner contract"),
        (advance(0, 0), "cannot advance"),
        (advance(-1, 1), "cannot advance"),
        (advance(1e9, 1), "cannot advance"),
    ],
)
def test_what_cannot_be_advanced_ends_the_session(line: str, said: str) -> None:
    ready, last = answers_of(GOOD_TASK, line, advance(0.002, 1))
    assert "ready" in ready
    assert "failed" == last["outcome"]
    assert said in last["reason"]


def answer_of(text: str) -> dict[str, Any]:
    """Return the engine's single answer to this text."""
    (answer,) = said_to(text)
    return answer


def answers_of(task: dict[str, Any], *lines: str) -> list[dict[str, Any]]:
    """Return the engine's answers in a session."""
    return said_to("\n".join([json.dumps(task), *lines, ""]))


def said_to(text: str) -> list[dict[str, Any]]:
    """Return every line of the engine's answer, after a successful end."""
    done = subprocess.run([str(engine()), "op"], input=text, capture_output=True, text=True, timeout=PATIENCE_S)
    assert 0 == done.returncode
    return [json.loads(line) for line in done.stdout.splitlines()]
