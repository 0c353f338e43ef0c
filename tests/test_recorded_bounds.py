"""Recordings of any site: reading their texts is bounded in time and in memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from har_lab import entry, write_har
from tollbar.study import har, recorded_parts
from tollbar.study.har import MOST_LETTERS
from tollbar.study.recorded_parts import answer_of, is_static, place_of, request_of

MIB = 1 << 20
LONG = 16 * MIB
WIDE = "\N{GRINNING FACE}"
PLACES = ["url", "method", "name", "value", "mimeType", "text", "answer", "answer type"]


def _with(place: str, text: str) -> bytes:
    """Return a recording of one request, with this text in JSON in a place."""
    texts = dict.fromkeys(PLACES, "x") | {place: text}
    return (
        b'{"log": {"entries": [{"request": {"method": "%b", "url": "%b", "headers": [{"name": "%b", "value": "%b"}],'
        b' "postData": {"mimeType": "%b", "text": "%b"}}, "response": {"status": 200, "content": {"text": "%b",'
        b' "mimeType": "%b"}}}]}}' % tuple(texts[one].encode() for one in PLACES)
    )


def _read(path: Path) -> list[str]:
    (one,) = har.read(path)
    (header,) = one.request.headers
    data, content = one.request.post_data, one.response.content
    assert data is not None
    return [one.request.url, one.request.method, header.name, header.value, data.mime_type, data.body, content.body,
            content.mime_type]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_wide_letter_makes_no_long_text_wide(tmp_path: Path, place: str) -> None:
    """A recording of 64 MiB took 810 MB: Python has four bytes for each letter of a text with one such letter."""
    path = tmp_path / "site.har"
    path.write_bytes(_with(place, "a" * LONG + WIDE))
    tracemalloc.start()
    try:
        texts = _read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert MOST_LETTERS == max(map(len, texts))
    # The file twice while it is read, and its beginning.
    assert 2.5 * LONG + 8 * MIB > peak


@pytest.mark.parametrize("before", ["", "a", "aa", "aaa", "aaaaa"])
@pytest.mark.parametrize("letter", ["\u00e9", "\u20ac", WIDE, r"\u00e9", r"\ud83d\ude00", r"\n", r"\\", "b"])
def test_a_long_text_is_cut_between_letters(monkeypatch: pytest.MonkeyPatch, letter: str, before: str) -> None:
    monkeypatch.setattr(har, "_MOST_OF_RAW", 40)
    text = before + letter * 40
    said = har._decoded(msgspec.Raw(f'"{text}"'.encode()))
    assert said
    assert json.loads(f'"{text}"').startswith(said)


def test_a_text_that_is_none_is_empty() -> None:
    assert [""] * 4 == [har._decoded(msgspec.Raw(one)) for one in (b"7", b"null", b'"\xff"', rb'"\ud83d"')]


def test_a_value_deep_in_an_answer_is_not_captured(tmp_path: Path) -> None:
    """Each value has its place with all keys around it, and a thousand places of a megabyte took 1 GB."""
    key = "k" * recorded_parts.MOST_POINTER
    answer = {"token": "near-1234", key: {"token": "far-12345"}}
    path = write_har(tmp_path / "site.har", [entry("GET", "/", answer=("application/json", json.dumps(answer)))])
    (one,) = har.read(path)
    assert ["near-1234"] == [value for value, _ in answer_of(one, 0).values]


@pytest.mark.parametrize(
    "url", ["http://\u00e9.example/", "http://a\u0301:80/", "http://a\u2100b/", "ftp://a/", "http:///"]
)
def test_another_site_than_a_host_in_ascii_is_no_site(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python normalizes other letters, which takes a time that grows with the square of their number."""
    monkeypatch.setattr(recorded_parts, "urlsplit", lambda _: pytest.fail("read it"))
    assert place_of(url) is None


def test_a_site_in_ascii_may_have_any_path() -> None:
    assert ("https://a.example:8443", "/\u00e9", "\u00e9=1") == place_of("HTTPS://u:p@A.example:8443/\u00e9?\u00e9=1#x")
    assert ("http://[::1]:80", "/", "") == place_of("http://[::1]:80")
    assert ("http://a", "/", "b=1") == place_of("http://a?b=1")


def test_fields_beyond_the_limit_of_a_page_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "".join(f'<input name="f{number}" value="value-{number}">' for number in range(9))
    path = write_har(tmp_path / "site.har", [entry("GET", "/", answer=("text/html", page))])
    (one,) = har.read(path)
    assert 9 == len(answer_of(one, 0).values)
    monkeypatch.setattr(recorded_parts, "MOST_OF_FIELDS", len(' name="f0" value="value-0"') * 4)
    assert 4 == len(answer_of(one, 0).values)


def test_long_credentials_are_one_text(tmp_path: Path) -> None:
    headers = {"Authorization": "Basic " + "YTpi" * 10_000}
    path = write_har(tmp_path / "site.har", [entry("GET", "/", headers=headers)])
    (one,) = har.read(path)
    request = request_of(one, set(), set())
    assert (None, []) == (request.sign_in, request.credentials)
    assert [True] == [text.is_secret for text in request.headers]


@pytest.mark.parametrize("path", ["/a.css", "/a/b.woff2", "/a.JS"])
def test_a_file_of_a_page_is_known_by_its_ending(tmp_path: Path, path: str) -> None:
    (one,) = har.read(write_har(tmp_path / "site.har", [entry("GET", path)]))
    assert is_static(one, path)
    assert is_static(one, "/.css" * 2000 + path)
    assert not is_static(one, path + "/")
