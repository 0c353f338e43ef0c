"""Costs that a choice or a setting does not reveal: each is named where the cost is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Tollbar
from tollbar.catalog.families import families

DOCS = Path(__file__).parents[1] / "docs"
NAMED = {
    "who pays the iterations of SCRAM": ("database-sign-on", "scram-sha-256", "The client alone pays the iterations"),
    "which client derives SCRAM's key": ("database-sign-on", "scram-sha-256", "2.5 times its cost an iteration"),
    "what the passphrase of pgcrypto costs": ("storage", "pgp-sym-encrypt", "one of 8 characters costs 1.65 times"),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_choice_names_what_decides_its_cost(name: str) -> None:
    family, choice, words = NAMED[name]
    assert words in (families()[family].choices[choice].note or "")


def test_the_servers_of_a_header_and_of_bcrypt_are_named() -> None:
    """The limit of a header that members of many groups need, and the cost that `htpasswd -B` omits."""
    settings = families()["web-auth"].settings
    assert "592 groups or more with status 400" in settings["groups"].title
    assert "`htpasswd -B -C 10`" in (settings["password-hash"].about["bcrypt"].note or "")
    text = " ".join((DOCS / "web-authentication.md").read_text("utf-8").split())
    assert "members of 592 groups or more then get status 400" in text
    assert "`htpasswd -B` writes cost 5" in text


MOVED = "libcrypto does not have blake3, so rustcrypto performs all choices; add `provider=libcrypto` to measure"


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (("digest", "sha-256", "sha-512", "blake3"), True),
        (("digest", "sha-256", "sha-512"), False),
        (("digest", "blake3"), False),
        (("digest", "sha-256", "blake3", "provider=rustcrypto"), False),
    ],
)
def test_a_choice_that_moves_the_others_to_another_library_is_named(
    words: tuple[str, ...], warned: bool, tollbar: Tollbar
) -> None:
    done = tollbar("ask", *words, "--for", "1s", "--no-report")
    assert 0 == done.returncode, done.stderr
    assert warned == (MOVED in " ".join(done.stderr.split()))
