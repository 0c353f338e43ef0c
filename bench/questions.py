"""Questions: one line for each family, with the seconds to the answer and its last line. Two minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import TOLLBAR, Figure, timed

QUESTIONS = (
    "digest sha-256 blake3",
    "mac hmac-sha-256 poly1305",
    "cipher aes-256-gcm chacha20-poly1305",
    "signature rsa-2048 ed25519 op=sign",
    "key-exchange x25519 x25519mlkem768",
    "password-hash bcrypt-10 argon2id-owasp-19m",
    "rsa-api key-cached key-from-pem",
    "tls plaintext tls-1.3",
    "web-auth anonymous session-cookie jwt",
    "storage plaintext aes-256-gcm op=read",
)
ANSWER_GOAL_S = 15.0


def figures() -> Iterator[Figure]:
    """Yield the time of each question, from the command to the sentence."""
    for question in QUESTIONS:
        with tempfile.TemporaryDirectory() as folder:
            done = timed(TOLLBAR, "ask", *question.split(), cwd=Path(folder))
        said = done.out.strip().splitlines()
        yield Figure(
            f"questions: `tollbar ask {question}`",
            f"at most {ANSWER_GOAL_S:.0f} s",
            f"{done.wall_s:.1f} s: {said[-1] if said else f'status {done.status}'}",
            done.wall_s <= ANSWER_GOAL_S and done.status == 0,
        )
