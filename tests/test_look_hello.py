"""A handshake's first bytes, and answers of strangers: whatever they are, one outcome and no more."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from look_lab import answering, mute
from tollbar.catalog.servers.remote import Remote
from tollbar.core.errors import TollbarError
from tollbar.lab.tls import hello, looking, opening, sessions
from tollbar.lab.tls.code_points import VERSIONS, groups, schemes, suites
from tollbar.lab.tls.hello import Agreement, NotTls, Offer, Refusal, ask
from tollbar.lab.tls.presented import presented

OFFER = Offer("tls-1.2", (0xC02F, 0x009C), (0x001D,), (0x0804,), "localhost")
ALERT = bytes.fromhex("15 0303 0002 0228")
RSA_SUITE, ECDHE_SUITE = 0x009C, 0xC02F


def record(body: bytes, kind: int = 22) -> bytes:
    return bytes([kind, 3, 3]) + len(body).to_bytes(2) + body


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3) + body


def server_hello(suite: int = RSA_SUITE, version: int = 0x0303, extensions: bytes = b"") -> bytes:
    body = version.to_bytes(2) + bytes(32) + b"\0" + suite.to_bytes(2) + b"\0"
    return message(2, body + (len(extensions).to_bytes(2) + extensions if extensions else b""))


def test_every_number_is_offered_once() -> None:
    assert len(suites()) == len({one.name for one in suites().values()})
    assert len(groups()) == len({one.name for one in groups().values()})
    assert len(schemes()) == len({one.name for one in schemes().values()})
    # Some servers refuse more suites than these.
    assert len(suites()) < 128


def test_each_version_is_offered_alone() -> None:
    for version, number in VERSIONS.items():
        offer = Offer(version, (0x1301,), (0x001D,), (0x0403,), "example.org")
        said = hello._hello(offer)
        assert min(number, 0x0303).to_bytes(2) == said[4:6]
        # Only TLS 1.3 names its version in an extension.
        assert (version == "tls-1.3") == (b"\x00\x2b\x00\x03\x02\x03\x04" in said)
        assert (version != "ssl-3") == (b"example.org" in said)


def test_an_agreement_is_read() -> None:
    flight = record(server_hello() + message(11, bytes.fromhex("000006 000003 616263")) + message(14, b""))
    with answering(flight) as address:
        assert Agreement("tls-1.2", RSA_SUITE, certificate=b"abc") == ask(address, OFFER, 5)


def test_a_message_in_several_records_is_read() -> None:
    whole = server_hello() + message(14, b"")
    flight = b"".join(record(whole[at : at + 3]) for at in range(0, len(whole), 3))
    with answering(flight) as address:
        assert Agreement("tls-1.2", RSA_SUITE) == ask(address, OFFER, 5)


def test_the_key_exchange_has_group_and_scheme() -> None:
    exchange = message(12, bytes.fromhex("03 001d 01 aa 0804 0000"))
    with answering(record(server_hello(0xC02F) + exchange + message(14, b""))) as address:
        assert Agreement("tls-1.2", 0xC02F, 0x001D, 0x0804) == ask(address, OFFER, 5)


def test_an_alert_is_a_refusal_with_its_name() -> None:
    with answering(ALERT) as address:
        assert Refusal("handshake_failure") == ask(address, OFFER, 5)


def test_a_warning_of_an_unknown_name_ends_no_handshake() -> None:
    """OpenSSL's and Java's servers send one, and go on with another certificate."""
    warning = bytes.fromhex("15 0303 0002 0170")
    with answering(warning + record(server_hello() + message(14, b""))) as address:
        assert Agreement("tls-1.2", RSA_SUITE) == ask(address, OFFER, 5)
    with answering(warning) as address:
        assert Refusal("the connection was closed") == ask(address, OFFER, 5)


def test_a_closed_connection_is_a_refusal() -> None:
    with answering(b"") as address:
        assert isinstance(ask(address, OFFER, 5), Refusal)


def test_another_version_is_a_refusal() -> None:
    with answering(record(server_hello(version=0x0301))) as address:
        assert Refusal("it chose tls-1.0") == ask(address, OFFER, 5)


def test_silence_ends_at_the_limit() -> None:
    with answering(b"", stays=True) as address:
        assert Refusal("no answer within 0.2 s", is_timeout=True) == ask(address, OFFER, 0.2)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        record(b"\x02\xff\xff\xff"),
        bytes([22, 3, 3, 0xFF, 0xFF]),
        record(server_hello()[:20]) + b"\x16\x03",
        record(server_hello(0xEEEE)),
        record(message(2, b"\x03\x03")),
        record(b"data", kind=23),
        record(message(1, b"abc")),
        record(server_hello() + message(11, bytes.fromhex("000006 ffffff"))),
        # Records without content forever.
        record(b"") * 60_000,
        record(message(4, bytes(16_000))) * 20,
    ],
)
def test_anything_else_is_not_tls(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(NotTls) as caught:
        ask(address, OFFER, 5)
    assert len(str(caught.value)) < 100


@given(st.binary(max_size=300), st.booleans())
def test_whatever_follows_a_hello_has_one_outcome(rest: bytes, is_13: bool) -> None:
    version = bytes.fromhex("002b 0002 0304")
    begun = server_hello(0x1301, extensions=version + b"\x00\x33\x00\x02\x00\x1d") if is_13 else server_hello(0xC02F)
    offer = Offer("tls-1.3", (0x1301,), (0x001D,), share=opening.share_of(0x001D)) if is_13 else OFFER
    server, client = socket.socketpair()
    with server, client:
        server.sendall(record(begun) + rest)
        server.shutdown(socket.SHUT_WR)
        try:
            found = hello._answer(client, offer, b"", time.monotonic() + 5)
        except NotTls as error:
            assert str(error).isprintable() or "`" in str(error)
        else:
            assert isinstance(found, Agreement | Refusal)


def test_a_server_that_stops_answering_leaves_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its refusals look like those of a server that has nothing else, for example behind a limit of connections."""
    monkeypatch.setattr(looking, "SILENCE_LIMIT_S", 0.4)
    for most, said in ((None, False), (12, True)):
        with mute(tmp_path, most, closes=True) as address:
            found = looking.look(Remote("https://localhost/", address))
        assert said == any("refused an offer that it had accepted" in one for one in found.doubts)


@pytest.mark.parametrize("version", ["tls-1.3", "tls-1.2"])
def test_a_server_without_an_answer_shows_no_tickets(tmp_path: Path, version: str) -> None:
    """TLS 1.3 sends them after the handshake, which a server may end because it wants a certificate of the client."""
    with mute(tmp_path, tickets=False) as address:
        found = sessions.resumed(Remote("https://localhost/", address), version, by_ticket=True, limit_s=0.2)
    assert not found.done
    assert (version == "tls-1.3") == (found.why is not None)


@pytest.mark.parametrize("group", opening.GROUPS)
def test_a_share_of_another_group_is_refused(group: int) -> None:
    share = opening.share_of(group)
    with pytest.raises(opening.NotOpened, match="not of its group"):
        opening.secrets(share, b"\1\2\3", "TLS_AES_128_GCM_SHA256", b"")


@pytest.mark.parametrize("suite", opening.SUITES)
def test_a_record_of_other_keys_is_refused(suite: str) -> None:
    one, other = opening.share_of(0x001D), opening.share_of(0x001D)
    keys = opening.secrets(one, other.public, suite, b"hello")
    with pytest.raises(opening.NotOpened, match="cannot be opened"):
        keys.opened(b"\x17\x03\x03\x00\x20", bytes(32))


def test_a_certificate_of_noise_has_no_kind() -> None:
    assert "unknown" == presented(b"\x30\x03abc").kind
    assert "unknown" == presented(b"").kind


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the answer is not TLS: the answer begins with `HTTP/`"),
        (ALERT, "the server accepts no version of TLS (TLS 1.3: handshake_failure; TLS 1.2"),
        (b"\x1b[31mred\x1b[0m", "the answer is not TLS"),
    ],
)
def test_a_look_at_no_tls_is_one_line(answer: bytes, words: str) -> None:
    with answering(answer) as address, pytest.raises(TollbarError) as caught:
        looking.look(Remote(f"https://localhost:{address.rpartition(':')[2]}/", address))
    assert words in caught.value.what
    assert "\n" not in caught.value.what


def test_a_look_at_a_silent_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "SILENCE_LIMIT_S", 0.4)
    monkeypatch.setattr(looking, "LEAST_ANSWER_LIMIT_S", 0.05)
    with answering(b"", stays=True) as address, pytest.raises(TollbarError) as caught:
        looking.look(Remote("https://localhost/", address))
    assert "the server accepts connections and sends no answer (" in caught.value.what
    assert "handshakes in 0.4 s); it must speak TLS" in caught.value.what


def limits_of(monkeypatch: pytest.MonkeyPatch, answered: Callable[[Offer], bool]) -> list[float]:
    """Return a list that gets the limit of each offer that is left without an answer; others are accepted."""
    waited = list[float]()

    def ask_server(address: str, offer: Offer, limit_s: float) -> Agreement | Refusal:
        if answered(offer):
            return Agreement(offer.version, offer.suites[0])
        waited.append(limit_s)
        return Refusal(f"no answer within {limit_s:g} s", is_timeout=True)

    monkeypatch.setattr(looking, "ask", ask_server)
    monkeypatch.setattr(looking, "PAUSE_S", 0.0)
    return waited


def test_a_silent_server_gets_a_limited_time_for_all_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five versions, each with the whole limit of a handshake, took 26 s."""
    waited = limits_of(monkeypatch, lambda _: False)
    with pytest.raises(TollbarError) as caught:
        looking.look(Remote("https://localhost/", "127.0.0.1:1"))
    assert len(VERSIONS) <= len(waited)
    assert sum(waited) <= looking.SILENCE_LIMIT_S
    assert f"({len(waited)} handshakes in {sum(waited):.1f} s)" in caught.value.what
    assert caught.value.hint


def test_time_outs_of_a_look_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may answer one version and drop all other offers."""
    waited = limits_of(monkeypatch, lambda offer: offer.version == "tls-1.2" and len(offer.suites) > 1)
    monkeypatch.setattr(looking.sessions, "resumed", lambda *_, **__: sessions.Resumed(True))
    monkeypatch.setattr(looking.sessions, "unverified", lambda *_: None)
    found = looking.look(Remote("https://localhost/", "127.0.0.1:1"))
    assert ("tls-1.2",) == found.versions
    assert sum(waited) <= looking.SILENCE_LIMIT_S
    assert (
        f"the server left offers without an answer for {looking.SILENCE_LIMIT_S:g} s; no more were made" in found.doubts
    )


def test_a_server_that_answers_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only silence counts, so that a slow server has its time for each of its handshakes."""
    looker = looking._Looker(Remote("https://localhost/", "127.0.0.1:1"))
    seen = list[float]()

    def ask_slow(address: str, offer: Offer, limit_s: float) -> Refusal:
        seen.append(limit_s)
        return Refusal("handshake_failure")

    monkeypatch.setattr(looking, "ask", ask_slow)
    monkeypatch.setattr(looking, "PAUSE_S", 0.0)
    for _ in range(20):
        looker._ask(OFFER)
    assert {looking.SILENCE_LIMIT_S / 2} == {*seen}


@pytest.mark.parametrize("version", ["tls-1.3", "tls-1.2"])
def test_a_server_of_another_protocol_resumes(tmp_path: Path, version: str) -> None:
    with mute(tmp_path) as address:
        found = sessions.resumed(Remote("https://localhost/", address), version, by_ticket=True, limit_s=0.2)
    assert sessions.Resumed(True) == found


def test_a_server_that_selects_anything_is_looked_at_a_limited_number_of_times() -> None:
    """A server that answers each offer with the same suite is asked twice for the rest, and then no more."""
    with answering(record(server_hello() + message(14, b""))) as address:
        found = looking.look(Remote("https://localhost/", address))
    assert ["AES128-GCM-SHA256"] == [one.name for one in found.suites["tls-1.2"]]
    assert any("was selected though it was not offered" in one for one in found.doubts)
    assert found.connections < 20


def test_schemes_after_an_error_of_the_server_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL selects a scheme whose digest does not fit into an RSA key of 512 bits, and fails at it."""
    by_name = {one.name: number for number, one in schemes().items()}
    fits = [by_name[f"rsa_pkcs1_{digest}"] for digest in ("sha256", "sha224", "sha1")]
    too_long = [by_name[f"rsa_pkcs1_{digest}"] for digest in ("sha384", "sha512")]

    def ask_openssl(address: str, offer: Offer, limit_s: float) -> Agreement | Refusal:
        selected = next((one for one in offer.schemes if one in (*fits, *too_long)), None)
        if selected is None:
            return Refusal("handshake_failure")
        return Refusal("internal_error") if selected in too_long else Agreement("tls-1.2", ECDHE_SUITE, scheme=selected)

    monkeypatch.setattr(looking, "ask", ask_openssl)
    monkeypatch.setattr(looking, "PAUSE_S", 0.0)
    looker = looking._Looker(Remote("https://localhost/", "127.0.0.1:1"))
    found = looker._schemes("tls-1.2", [suites()[ECDHE_SUITE]], [groups()[0x001D]])
    assert fits == [one.number for one in found]
    # Twice the list, then each of the rest.
    assert len(schemes()) + 1 == looker.connections
    assert [] == looker.doubts


def test_the_reason_of_a_certificate_has_no_full_stop() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "Hostname mismatch, certificate is not valid for 'localhost'."
    assert "Hostname mismatch, certificate is not valid for 'localhost'" == sessions.unverified_words(error)
