"""Servers whose OpenSSL leaves instructions unused: recorded at their start, and proved from their memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import here, lacking
from server_lab import SETTINGS, anything_goes, ask, start
from tollbar.catalog import libraries
from tollbar.catalog.libraries import Provider
from tollbar.core import proc
from tollbar.core.records import Outcome, Record
from tollbar.lab.servers import masking
from tollbar.lab.servers.driver import NotStarted
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.tls import request

# Servers whose OpenSSL is loaded as they start.
SERVERS = ["httpd", "nginx"]
MASKED = {**SETTINGS, "cpu": "no-aes"}
# Bit 57 of the first word: instructions for AES.
AES = 1 << 57


def words(said: str) -> list[int]:
    """Return the 64-bit words of a capability vector as OpenSSL prints it."""
    return [int(word, 16) for word in said.partition("=")[2].split(" ")[0].split(":")]


@pytest.fixture
def able(system: Provider) -> Provider:
    """Return the system's library on a processor that has the masked instructions, or skip."""
    if not words(system.receipt["cpu"])[0] & AES:
        lacking("this processor has no instructions for AES")
    return system


@pytest.mark.parametrize("spec", ["libcrypto", "libcrypto:psycopg"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_masked_server_says_so_by_its_memory(at: Sandbox, able: Provider, name: str, spec: str) -> None:
    (provider,) = libraries.resolve([spec])
    with start(at, here(name), provider, MASKED) as server:
        assert "200" == ask(server.address, anything_goes()).status
        masked, native = words(server.receipt["cpu"]), words(provider.receipt["cpu"])
    assert len(native) == len(masked)
    assert not masked[0] & AES
    assert native[0] & AES
    # The mask adds nothing that the processor does not have.
    assert [0] * len(native) == [with_mask & ~without for with_mask, without in zip(masked, native, strict=True)]


@pytest.mark.parametrize("name", SERVERS)
def test_a_mask_that_is_not_in_effect_is_no_row(
    at: Sandbox, able: Provider, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking.Mask, "environment", property(lambda mask: {}))
    with pytest.raises(NotStarted, match="`no-aes` has no effect on") as caught:
        start(at, here(name), able, MASKED)
    assert Outcome.FAILED == caught.value.outcome
    assert [] == at.running


def test_a_server_that_cannot_be_looked_into_is_no_row(
    at: Sandbox, able: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:

    def forbidden(pid: int, library: str) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(proc, "data_of", forbidden)
    with pytest.raises(NotStarted, match=r"`no-aes` cannot be verified in .*: Operation not permitted") as caught:
        start(at, here("nginx"), able, MASKED)
    assert Outcome.UNSUPPORTED == caught.value.outcome


def test_a_library_that_does_not_say_what_it_was_told_is_not_masked(
    at: Sandbox, able: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that does not report its capabilities cannot be checked, and is refused before anything starts."""
    silent = Record(outcome=Outcome.OK, receipt={"path": able.path, "cpu": "OPENSSL_ia32cap=0x1:0x2"})
    monkeypatch.setattr(masking, "_told", lambda kind, path, cpu: silent)
    with pytest.raises(NotStarted, match="does not report the processor features in use") as caught:
        request(at, here("nginx"), able, MASKED)
    assert Outcome.UNSUPPORTED == caught.value.outcome


def test_the_embedded_server_cannot_be_masked(at: Sandbox, system: Provider) -> None:
    """The embedded server is the engine, which binds its libraries by itself: the row gives the reason."""
    with pytest.raises(NotStarted, match="has no switch for instruction sets") as caught:
        request(at, here("embedded"), system, MASKED)
    assert Outcome.UNSUPPORTED == caught.value.outcome


def test_an_unknown_mask_is_refused_in_the_engines_words(at: Sandbox, system: Provider) -> None:
    with pytest.raises(NotStarted, match="no-aes") as caught:
        request(at, here("nginx"), system, {**SETTINGS, "cpu": "no-see"})
    assert Outcome.FAILED == caught.value.outcome


def test_what_a_library_holds_is_read_of_that_library_alone() -> None:
    assert b"" == proc.data_of(os.getpid(), "/usr/lib/none.so")
    libc = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    assert proc.data_of(os.getpid(), libc)
    with pytest.raises(OSError, match="No such"):
        proc.data_of(2**22 + 1, libc)
