"""Calls of one operation of each choice: docs/generated/parity.md against its tables, and one pair counted again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bench import parity
from bench.parity import counting, document, reasons, trace, turns
from bench.parity.counting import Absent, Row
from bench.parity.parts import PARTS, UNCOUNTED

from conftest import lacking
from tollbar.catalog import families
from tollbar.core.errors import TollbarError


@pytest.fixture(scope="module")
def parts() -> dict[str, document.Part]:
    """Return the parsed document."""
    return document.read(parity.DOCUMENT.read_text("utf-8"))


def _key(one: Row | Absent) -> tuple[str, str, str, str]:
    return one.choice, one.settings, one.operation, one.by


def test_every_family_has_its_table(parts: dict[str, document.Part]) -> None:
    assert set(families.families()) == {*PARTS, *UNCOUNTED}
    text = parity.DOCUMENT.read_text("utf-8")
    assert all(f"`{family}`: {why}" in text for family, why in UNCOUNTED.items())
    assert list(PARTS) == list(parts)


@pytest.mark.parametrize("family", PARTS)
def test_what_is_asked_is_a_row_or_listed_with_why_not(family: str, parts: dict[str, document.Part]) -> None:
    part = parts[family]
    try:
        asked = [_key(one) for _, one in counting.cells(PARTS[family])]
    except TollbarError as error:
        lacking(str(error))
    said = [_key(one) for one in (*part.rows, *part.absent)]
    assert sorted(asked) == sorted(said)
    assert all(one.reason for one in part.absent)


@pytest.mark.parametrize("family", PARTS)
def test_every_choice_is_named(family: str, parts: dict[str, document.Part]) -> None:
    part = parts[family]
    named = {one.choice for one in (*part.rows, *part.absent)}
    assert {name for name in families.family(family).choices if name != "none"} == named - {"none"}


@pytest.mark.parametrize("family", PARTS)
def test_every_difference_has_a_reason(family: str, parts: dict[str, document.Part]) -> None:
    found = reasons.differences(family, parts[family].rows)
    assert [] == [str(one) for one in found if reasons.reason(family, one) is None]


def test_every_reason_explains_something(parts: dict[str, document.Part]) -> None:
    assert [] == reasons.unused({family: part.rows for family, part in parts.items()})


def test_every_kind_has_choices_of_its_own(parts: dict[str, document.Part]) -> None:
    for family, kinds in reasons.KINDS.items():
        assert {kind.name for kind in kinds} == {reasons.kind_of(family, row) for row in parts[family].rows}


def test_the_document_says_what_its_tables_and_the_reasons_say(parts: dict[str, document.Part]) -> None:
    assert parity.DOCUMENT.read_text("utf-8") == document.written(parts)


def test_a_session_and_an_opaque_token_do_the_same(parts: dict[str, document.Part]) -> None:
    rows = {row.choice: row for row in parts["web-auth"].rows if (row.operation, row.by) == ASKED}
    cookie, token = rows["session-cookie"], rows["opaque-token"]
    assert {"SHA-256": 1.0, "SQL statement": 1.0} == cookie.calls == token.calls
    assert _compared(cookie) == _compared(token)
    assert cookie.sent == token.sent
    assert cookie.received is not None
    assert token.received is not None
    # `Cookie: ticket=…` and `Authorization: Bearer …`.
    assert len("Authorization: Bearer ") - len("Cookie: ticket=") == token.received - cookie.received


ASKED = ("request", "embedded, aws-lc")


def _compared(row: Row) -> dict[str, float]:
    return {
        name: count
        for name, count in row.system.items()
        if name in row.does and not reasons.varies("web-auth", reasons.Difference(row, name, count, 0.0))
    }


@pytest.mark.parametrize(
    ("by", "receives"),
    [
        ("embedded, libcrypto", (1, 1)),
        ("embedded, aws-lc", (1, 1)),
        ("nginx, libcrypto", (1, 2)),
        ("httpd, libcrypto", (2, 2)),
    ],
)
def test_a_request_is_one_wait_in_clear_and_under_tls(
    by: str, receives: tuple[int, int], parts: dict[str, document.Part]
) -> None:
    """For each cipher and version. Receives are equal too, except nginx's last one under TLS."""
    requests = [row for row in parts["tls"].rows if (row.operation, row.by) == ("request", by)]
    assert {"plaintext", "tls-1.2", "tls-1.3"} == {row.choice for row in requests}
    for row in requests:
        expected = {"waits": 1.0, "receives": float(receives[row.choice != "plaintext"])}
        assert expected == pytest.approx(row.taken, abs=reasons.MORE_TURNS / 2), row.label


# Calls of a request on a server in clear; other rows are compared with them.
CLEAR = Row("plaintext", "", "request", "embedded, x", {}, {"epoll_pwait": 1.0, "recvfrom": 1.0, "sendto": 1.0})


@pytest.mark.parametrize(
    ("system", "more"),
    [
        ({"epoll_pwait": 1.05, "read": 1.0}, []),
        ({"epoll_pwait": 1.06, "read": 1.0}, ["waits 1.06, elsewhere 1"]),
        ({"epoll_pwait": 1.0, "read": 1.0, "recvfrom": 0.8}, ["receives 1.8, elsewhere 1"]),
        ({"epoll_wait": 0.5, "recvfrom": 1.0}, ["waits 1, elsewhere 0.5"]),
        # Calls of components behind the server count separately.
        ({"epoll_pwait": 1.0, "read": 1.0, "database: recvfrom": 0.1}, ["database: receives 0.1, elsewhere 0"]),
    ],
)
def test_waits_and_receives_of_a_request_are_compared_across_kinds(system: dict[str, float], more: list[str]) -> None:
    secured = Row("tls-1.3", "", "request", "embedded, x", {}, system)
    found = [str(one).partition(": ")[2] for one in reasons.differences("tls", [CLEAR, secured])]
    assert more == found


def test_the_kernel_counts_by_component() -> None:
    assert {"web: epoll_pwait": 1, "web: recvfrom": 1, "database: read": 1} == turns.calls(
        KERNEL, {7: "web", 8: "database"}
    )
    assert {"web: epoll_pwait": 1, "web: recvfrom": 1, "web: read": 2} == turns.calls(KERNEL, {7: "web"})
    with pytest.raises(OSError, match="3 of 4"):
        turns.calls(KERNEL.replace("4/4", "3/4"), {7: "web"})


KERNEL = """\
# tracer: nop
# entries-in-buffer/entries-written: 4/4   #P:2
   tollbar-engine-7     [001] .....  48.1: sys_epoll_pwait(epfd: 5, events: 55, maxevents: 200, timeout: 0)
   tollbar-engine-7     [001] .....  48.2: sys_recvfrom(fd: 9, ubuf: 7f, size: 8000, flags: 0)
         postgres-8     [001] d..3.  48.3: sys_read(fd: 3, buf: 7f, count: 10)
           ended-1-9     [001] .....  48.4: sys_read(fd: 3, buf: 7f, count: 10)
"""


def test_what_is_looked_up_is_looked_up_alike(parts: dict[str, document.Part]) -> None:
    """Counted again: one received, one sent, and two locks, for each kind of credential, as in the document."""
    if shutil.which("strace") is None:
        lacking("strace is not installed")
    looked_up = ("session-cookie", "opaque-token", "hmac")
    text = PARTS["web-auth"][0].replace('"anonymous", "*"', ", ".join(f'"{choice}"' for choice in looked_up))
    text = text.replace('signature        = ["hs256", "rs256", "es256", "eddsa"]\n', "")
    text = text.replace('digest-algorithm = ["sha-256", "md5"]\n', "").replace('store = ["sql", "file"]\n', "")
    found = {row.choice: row for row in counting.count([text]) if isinstance(row, Row) and row.operation == "request"}
    said = {row.choice: row for row in parts["web-auth"].rows if (row.operation, row.by) == ASKED}
    for choice in looked_up:
        assert {"fcntl": 2.0, "sendto": 1.0} == _compared(found[choice]), choice
        # The kernel counts for root, if its trace files are mounted.
        if turns.can_count():
            assert {"waits": 1.0, "receives": 1.0} == pytest.approx(found[choice].taken, abs=reasons.MORE_TURNS), choice
        assert said[choice].calls == found[choice].calls
        assert said[choice].sent == found[choice].sent


# A document part whose rows are easily recognised.
ROWS = [Row("a", "", "do", "x", {"f": 1.0}), Row("b", "n=1", "do", "x", {"f": 2.0, "g": 0.1}, {"getpid": 3.0})]


def test_numbers_are_compared_and_what_varies_is_not() -> None:
    (found,) = reasons.differences("family", ROWS)
    assert ("b n=1 (do, x): f 2, elsewhere 1", "f") == (str(found), found.what)


@pytest.mark.parametrize(
    ("reason", "explains"),
    [
        (("family", "f", "b+*"), True),
        (("family", "f", "*+n=1+*"), True),
        (("family", "g", "b+*"), False),
        (("family", "f", "a+*"), False),
        (("another", "f", "b+*"), False),
    ],
)
def test_a_reason_says_of_which_choices_it_speaks(reason: tuple[str, str, str], explains: bool) -> None:
    """The reason names the family, the kind, and the choice with its settings."""
    (found,) = reasons.differences("family", ROWS)
    assert explains == reasons.Reason(*reason, "it is so").explains("family", found)


def test_rows_are_read_as_they_were_written() -> None:
    rows = [*ROWS, Row("c", "", "do", "server, x", {}, {"database: read": 1.5}, 10.0, 20.0)]
    part = document.Part(rows, [Absent("d", "n=1", "do", "x", "it has none"), Absent("d", "n=1", "undo", "x", "none")])
    assert {"digest": part} == document.read(document.written({"digest": part}))


def test_a_trace_is_read_between_a_line_and_its_answer(tmp_path: Path) -> None:
    """Calls of threads may interleave, and one call may be split into two lines."""
    file = tmp_path / "trace"
    file.write_text(TRACE)
    traced = trace.read(file, is_session=True)
    assert {"sendto": 1, "recvfrom": 1, "fcntl": 1} == traced.calls
    assert (5, 7) == (traced.sent, traced.received)


TRACE = """\
10 brk(NULL) = 0x1
10 read(0<pipe:[1]>, ""..., 8192) = 30
10 sendto(3<UNIX-STREAM:[1->2, "/tmp/a b"]>, ""..., 5, MSG_NOSIGNAL, NULL, 0) = 5
10 recvfrom(3<TCP:[127.0.0.1:1->127.0.0.1:2]>,  <unfinished ...>
11 fcntl(8</tmp/file>, F_SETLK, {l_type=F_RDLCK}) = 0
10 <... recvfrom resumed>""..., 4096, 0, NULL, NULL) = 7
10 write(2<pipe:[1]>, ""..., 10) = 10
10 write(1<pipe:[1]>, ""..., 10) = 10
10 fcntl(8</tmp/file>, F_SETLK, {l_type=F_UNLCK}) = 0
"""


@pytest.mark.parametrize(
    ("database", "said", "run"),
    [
        # Parse, Bind, Execute, Sync; then a simple query.
        ("postgresql", b"P\0\0\0\4B\0\0\0\6abE\0\0\0\4S\0\0\0\4Q\0\0\0\5x", 2),
        # COM_STMT_EXECUTE, COM_PING, COM_QUERY.
        ("mariadb", b"\3\0\0\0\x17ab\1\0\0\0\x0e\2\0\0\0\x03x", 2),
    ],
)
def test_statements_are_counted_by_their_messages(database: str, said: bytes, run: int) -> None:
    assert run == trace.statements(database, said)
