"""A runner that is wrong in one line is caught by its own proof: the Go one, spoiled line by line and built."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runner_folders import ROOT, command_of, platforms
from tollbar import families
from tollbar.runner import Outcome, ask

# Each builds a program with its platform's own tool: `make platforms` runs them.
pytestmark = pytest.mark.platforms

LIMIT_S = 60.0
(GO,) = (platform for platform in platforms() if platform.name == "go")
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
# What is spoiled: its file, the text that is replaced, by what; the task that notices, and its words.
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
def test_a_spoiled_runner_is_caught(what: str, tmp_path: Path) -> None:
    """What was spoiled fails in words that name it, before anything is timed."""
    if GO.missing:
        pytest.skip(f"{', '.join(GO.missing)} not installed: {GO.description['install']}")
    file, right, wrong, (choice, op), words = SPOILED[what]
    folder = shutil.copytree(ROOT / "go", tmp_path / "go")
    text = (folder / file).read_text("utf-8")
    assert 1 == text.count(right)
    (folder / file).write_text(text.replace(right, wrong), "utf-8")
    inputs = families.family("rsa-api").choices["key-cached"].inputs
    task = {"mode": "verify", "family": "rsa-api", "op": op, "choice": choice, "provider": {"kind": "go"}}
    task |= {"contract": 2, "setting": {"bytes": 60}, "inputs": dict(inputs), "seed": 3}
    record = ask(command_of(folder), task, limit_s=LIMIT_S)
    assert Outcome.FAILED == record.outcome
    assert words in (record.reason or "")
