"""Requests and answers of an HTTP archive (HAR), which browsers write.

The file is untrusted data. msgspec skips all that is not read here. A text is decoded only when a step needs it, and
only its beginning: most of such a file is pages and images, and one wide letter makes four bytes of each letter.
"""

from __future__ import annotations

import codecs
import re
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from tollbar.core.errors import TollbarError
from tollbar.core.files import read_bytes

MOST_BYTES = 64 * 1024 * 1024
"""Size limit of a recording: some hundred pages with their images."""
MOST_LETTERS = 1024 * 1024
"""Limit of a text: the load client looks for captures in as much of an answer."""
MOST_PAIRS = 1000
"""Limit of the headers and of the fields of a request or an answer: each takes some 200 bytes of memory."""
MOST_NAMES = 500_000
"""Limit of the headers, cookies and fields of a recording: msgspec reads a list whole before it counts it."""
MOST_ENTRIES = 50_000
"""Limit of the requests of a recording, each of which takes half a kilobyte of memory."""
# No program escapes these letters, but a key such as `n\u0061me` is another spelling of `name`.
_ESCAPED_LETTERS = (b"\\u006", b"\\u007")

_NO_TEXT = Raw(b'""')
_MOST_OF_RAW = 12 * MOST_LETTERS
"""Bytes of the longest text that is read: a letter has at most two escapes of six bytes."""
# Whole letters and escapes, without the second half of a letter.
_LETTERS = re.compile(
    rb"""(?:[^\\]++|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u(?![dD][89a-fA-F])....|\\[^u])*+""", re.DOTALL
)


class Pair(Struct, gc=False):
    """Header or field of a form."""

    raw_name: Raw = msgspec.field(name="name")
    raw_value: Raw = msgspec.field(default=_NO_TEXT, name="value")

    @property
    def name(self) -> str:
        return _decoded(self.raw_name)

    @property
    def value(self) -> str:
        return _decoded(self.raw_value)


Pairs = Annotated[list[Pair], Meta(max_length=MOST_PAIRS)]


class PostData(Struct):
    raw_mime_type: Raw = msgspec.field(default=_NO_TEXT, name="mimeType")
    text: Raw = _NO_TEXT
    params: Pairs | None = None

    @property
    def mime_type(self) -> str:
        return _decoded(self.raw_mime_type)

    @property
    def body(self) -> str:
        """Text of the body; empty if the recording does not have it."""
        return _decoded(self.text)


class Request(Struct):
    raw_method: Raw = msgspec.field(name="method")
    raw_url: Raw = msgspec.field(name="url")
    headers: Pairs = []
    post_data: PostData | None = msgspec.field(default=None, name="postData")

    @property
    def method(self) -> str:
        return _decoded(self.raw_method)

    @property
    def url(self) -> str:
        return _decoded(self.raw_url)


class Content(Struct):
    raw_mime_type: Raw = msgspec.field(default=_NO_TEXT, name="mimeType")
    text: Raw = _NO_TEXT
    encoding: Raw = _NO_TEXT

    @property
    def mime_type(self) -> str:
        return _decoded(self.raw_mime_type)

    @property
    def body(self) -> str:
        """Beginning of the text; empty if the recording does not have it."""
        text = _decoded(self.text)
        if _decoded(self.encoding) != "base64":
            return text
        try:
            return b64decode(text[: len(text) // 4 * 4]).decode("utf-8", "replace")
        except ValueError:
            return ""


class Response(Struct):
    status: int
    headers: Pairs = []
    content: Content = msgspec.field(default_factory=Content)


class Entry(Struct):
    """Request of a recording, and its answer."""

    request: Request
    response: Response


class _Log(Struct):
    entries: list[Entry]


class _Recording(Struct):
    log: _Log


def read(path: Path) -> Sequence[Entry]:
    """Return the entries of a recording in its order. Raises TollbarError: one line with the fault, no text of it."""
    content = read_bytes(path, MOST_BYTES)
    escaped = sum(map(content.count, _ESCAPED_LETTERS))
    limits = {
        b'"name"': (MOST_NAMES, "headers, cookies and fields"),
        b'"request"': (MOST_ENTRIES, "requests"),
    }
    for key, (most, kind) in limits.items():
        if content.count(key) + escaped > most:
            raise TollbarError(f"has more than {most:,} {kind}", where=str(path), hint="record fewer pages")
    try:
        return msgspec.json.decode(content.removeprefix(codecs.BOM_UTF8), type=_Recording).log.entries
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        # An undecodable text is not quoted: it may be a secret.
        fault = str(error) if isinstance(error, msgspec.MsgspecError) else "nested too deeply or not UTF-8"
        hint = "a browser writes one in the Network tab of its developer tools: “Save all as HAR”"
        raise TollbarError(f"is not a HAR file: {fault}", where=str(path), hint=hint) from error


def _decoded(text: Raw) -> str:
    """Return the beginning of a JSON text; empty for any other value."""
    whole = memoryview(text)
    try:
        return msgspec.json.decode(whole if len(whole) <= _MOST_OF_RAW else _cut(whole), type=str)[:MOST_LETTERS]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def _cut(text: memoryview) -> bytes:
    """Return the beginning of a long JSON text as a JSON text."""
    found = _LETTERS.match(text[:_MOST_OF_RAW])
    beginning = found[0] if found else b""
    # The last letter may be cut: up to three bytes after its first.
    for _ in range(3):
        beginning = beginning[:-1] if beginning[-1:] and beginning[-1] & 0xC0 == 0x80 else beginning
    return (beginning[:-1] if beginning[-1:] >= b"\xc0" else beginning) + b'"'
