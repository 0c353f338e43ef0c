"""A runner with one wrong line is caught by its own proof: the Go runner, changed line by line and built."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from patience import PATIENCE_S
from tollbar.catalog import families
from tollbar.catalog.runners import all_platforms, command_of, read
from tollbar.core.records import Outcome
from tollbar.core.runner import ask

GO = all_platforms()["go"]
CACHED = """var cached crypto.Signer

func (k *keys) takePrivate() (crypto.Signer, error) {
	if cached == nil {
		cached, _ = k.importPrivate()
	}
	return cached, nil
}

func (k *keys) importPrivate() (crypto.Signer, error) {"""
PSS = "key.Sign(rand.Reader, s.hasher.sum(message), &rsa.PSSOptions{SaltLength: 32, Hash: crypto.SHA256})"
PKCS1 = "rsa.VerifyPKCS1v15(key, crypto.SHA256, digest, signature) == nil"
BOTH = f"{PKCS1} || rsa.VerifyPSS(key, crypto.SHA256, digest, signature, nil) == nil"
# The changed file, old and new text, the task that notices, and words of its failure.
SPOILED = {
    "a key that is imported once": (
        "keys.go",
        "func (k *keys) takePrivate() (crypto.Signer, error) {",
        CACHED,
        ("key-from-pem", "sign"),
        "another key, put in the place of the first",
    ),
    "another padding made": (
        "signatures.go",
        "key.Sign(rand.Reader, s.hasher.sum(message), crypto.SHA256)",
        PSS,
        ("key-cached", "sign"),
        "not accepted: its own signature",
    ),
    "another padding accepted": (
        "signatures.go",
        PKCS1,
        BOTH,
        ("key-cached", "verify"),
        "not refused: another padding",
    ),
    "anything accepted": (
        "signatures.go",
        "right := verifies(public, s.hasher.sum(message), signature)",
        "right := public != nil",
        ("key-from-der", "verify"),
        "not refused: a tampered message",
    ),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_spoiled_runner_is_caught(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The builds are temporary; Go's compiled standard library is reused.
    compiled = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", compiled)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file, right, wrong, (choice, op), words = SPOILED[what]
    folder = shutil.copytree(GO.folder, tmp_path / "go")
    text = (folder / file).read_text("utf-8")
    assert 1 == text.count(right)
    (folder / file).write_text(text.replace(right, wrong), "utf-8")
    inputs = families.family("rsa-api").choices["key-cached"].inputs
    task = {"mode": "verify", "family": "rsa-api", "op": op, "choice": choice, "provider": {"kind": "go"}}
    task |= {"contract": 2, "setting": {"bytes": 60}, "inputs": dict(inputs), "seed": 3}
    record = ask(command_of(read(folder)), task, limit_s=PATIENCE_S)
    assert Outcome.FAILED == record.outcome
    assert words in (record.reason or "")
