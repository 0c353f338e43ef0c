"""Texts of a recorded request in which a secret may be, and the values that an answer brings."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from tollbar.core import wire
from tollbar.core.wire import MOST_OF_TEXT
from tollbar.study.har import MOST_PAIRS, Entry, Pair
from tollbar.study.scenario import SECRET

MOST_LEAVES = 1000
"""Limit of the values of an answer in which a later secret is looked for."""
MOST_JSON = 100_000
MOST_DEPTH = 64
MOST_OF_FIELDS = 200_000
"""Limit of the letters of all input fields of a page: those of a recording of 64 MiB took 13 s."""
MOST_POINTER = 1000
"""Limit of the letters of a value's place in a JSON answer: each value has its own, with all keys around it."""
MOST_OF_BODY = 64 * 1024
"""Limit of a form in letters; a JSON body is one text of a scenario."""
LEAST_BROUGHT = 4

_SENT = ("accept", "accept-language", "origin", "x-requested-with")
"""Headers that are kept next to secret ones: a server's answer hardly depends on any other."""
_NOT_SENT = ("cookie", "host", "connection", "content-length", "transfer-encoding")
_STATIC = re.compile(r"(image|font|audio|video)/|text/css|\w+/(x-)?javascript|application/wasm", re.IGNORECASE)
_STATIC_PATH = re.compile(r"\.(css|js|mjs|map|png|jpe?g|gif|svg|ico|webp|avif|woff2?|ttf|mp4)$", re.IGNORECASE)
_LONGEST_ENDING = len(".woff2")
_USER = re.compile(r"user|login|name|e-?mail|account", re.IGNORECASE)
_PASSWORD = re.compile(r"passw|pwd", re.IGNORECASE)
# A search for the whole form of a JWT takes a time that grows with the square of a text such as `eyJeyJ…`.
_JWT_PART = re.compile(r"([\w-]++)(\.(?=[\w-]++\.))?")
_JWT_BEGIN, _LEAST_AFTER_BEGIN = "eyJ", 8
# Python normalizes other letters of a host, which takes a time that grows with the square of their number.
_SITE = re.compile(r"https?://[!-.0->@-~]+", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9._-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
_PARTS = re.compile(r"[\[\].:]+")
_NOT_SENDABLE = re.compile(r"[^!-~]+")
_INPUT = re.compile(r"<input\b([^<>]{0,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(name|value|type)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a request: a header, a parameter, a field, or a part of the path."""

    name: str
    value: str
    kind: str
    is_secret: bool = False
    prefix: str = ""
    """Beginning that is no part of the secret, such as `Bearer `."""


@dataclass(frozen=True, slots=True)
class SignIn:
    """Sign-in by a header; the recording of Digest and Negotiate has no password."""

    by: str
    user: str = ""
    password: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Place of a value in an answer."""

    place: int
    """Number of the answer."""
    name: str
    capture: Mapping[str, str]
    is_secret: bool


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Values that an answer brings, and names of its form's password fields."""

    values: Sequence[tuple[str, Origin]]
    cookies: Set[str]
    passwords: Set[str]


@dataclass(slots=True)
class RecordedRequest:
    """Request as its texts, each with its place."""

    method: str
    path: str
    query: Sequence[tuple[str, Text]] = ()
    """Parts of the query as they were sent, each with its decoded value."""
    headers: list[Text] = field(default_factory=list)
    cookies: list[Text] = field(default_factory=list)
    form: list[Text] | None = None
    document: Any = None
    has_document: bool = False
    sign_in: SignIn | None = None
    credentials: list[Text] = field(default_factory=list)
    """Secrets of the sign-in, which no step sends."""
    is_left_out: bool = False
    """True if the request had a body that a scenario cannot send."""

    @property
    def texts(self) -> Iterator[Text]:
        yield from (_of_form("path", unquote(part), "path") for part in self.path.split("/"))
        yield from (
            _of_form("query", unquote_plus(sent.partition("=")[0]), "part of a query") for sent, _ in self.query
        )
        yield from (text for _, text in self.query)
        yield from (_of_form("field", text.name, text.kind) for text in self.form or ())
        yield from (*self.headers, *self.cookies, *(self.form or ()), *_leaves_of(self.document, ""))


def _of_form(name: str, value: str, kind: str) -> Text:
    """Return a text that is a secret only by its form."""
    return Text(name, value, kind, is_secret=_has_jwt(value))


def _has_jwt(text: str) -> bool:
    """Return whether a text contains three parts joined by dots, of which the first is the header of a JWT."""
    # The search for the second dot is as long as the part that the next match then passes.
    parts = (found[1] for found in _JWT_PART.finditer(text) if found[2])
    return any(_JWT_BEGIN in part[:-_LEAST_AFTER_BEGIN] for part in parts)


def place_of(url: str) -> tuple[str, str, str] | None:
    """Return the site, the path and the query of a URL, without a user and a password; None for one of no site."""
    if not (site := _SITE.match(url)) or url[site.end() : site.end() + 1] not in ("", "/", "?", "#"):
        return None
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2].lower()
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return None
    return f"{parts.scheme}://{host}", parts.path or "/", parts.query


def _sendable(text: str) -> str:
    """Return a part of a URL with each letter that cannot be sent percent-encoded."""
    return _NOT_SENDABLE.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), text
    )


def is_static(entry: Entry, path: str) -> bool:
    is_file = _STATIC.match(entry.response.content.mime_type) or _STATIC_PATH.search(path[-_LONGEST_ENDING:])
    return bool(is_file) and entry.request.method.upper() in ("GET", "HEAD")


def request_of(entry: Entry, cookies: Set[str], passwords: Set[str]) -> RecordedRequest:
    """Return a request. `cookies`: names that the load client sends by itself; `passwords`: names of such fields."""
    place = place_of(entry.request.url)
    _, path, query = place or ("", "/", "")
    path, query = _sendable(path), _sendable(query)
    method = entry.request.method.upper()
    request = RecordedRequest(method if re.fullmatch(r"[A-Z]{1,20}", method) else "GET", path)
    if query:
        request.query = [(part, _parameter(part)) for part in query.split("&")]
    for header in entry.request.headers:
        _take_header(request, header, cookies)
    if entry.request.post_data is not None:
        _take_body(request, entry, passwords)
    return request


def _parameter(part: str) -> Text:
    name, equals, value = part.partition("=")
    if not equals:
        return _of_form("query", unquote_plus(part), "part of a query")
    name, value = unquote_plus(name), unquote_plus(value)
    return Text(name, value, "query parameter", is_secret=bool(value) and _is_secret(name, value))


def _is_secret(name: str, value: str) -> bool:
    # Fields of a form may be `user[pin]`.
    return _has_jwt(value) or any(map(SECRET.search, (name, *_PARTS.split(name))))


def _take_header(request: RecordedRequest, header: Pair, cookies: Set[str]) -> None:
    name, value = header.name.lower(), header.value.strip()
    if name in ("authorization", "proxy-authorization"):
        _take_authorization(request, header.name, value)
    elif name == "cookie":
        for one in value.split(";", MOST_PAIRS)[:MOST_PAIRS]:
            cookie, _, secret = one.strip().partition("=")
            if secret and cookie not in cookies:
                request.cookies.append(Text(cookie, secret, "cookie", is_secret=True))
    elif value and name not in _NOT_SENT and not name.startswith((":", "sec-")):
        is_secret = _is_secret(name, value)
        if is_secret or name in _SENT:
            request.headers.append(Text(header.name, value, "header", is_secret=is_secret))


def _take_authorization(request: RecordedRequest, name: str, value: str) -> None:
    scheme, _, secret = value.partition(" ")
    match scheme.lower():
        # A longer one is no name with a password, and would be kept three times.
        case "basic" if len(secret) <= MOST_OF_TEXT:
            try:
                user, _, password = b64decode(secret).decode("utf-8", "replace").partition(":")
            except ValueError:
                user = password = ""
            request.sign_in = SignIn("basic", user, password)
            for one, kind in ((secret, "credentials"), (user, "user"), (password, "password")):
                request.credentials.append(Text(kind, one, "sign-in", is_secret=True))
        case "digest":
            request.sign_in = SignIn("digest")
        case "negotiate" | "ntlm":
            request.sign_in = SignIn("negotiate")
        case _ if secret and re.fullmatch(r"[\w-]+", scheme):
            request.headers.append(Text(name, secret.strip(), "header", is_secret=True, prefix=f"{scheme} "))
        case _ if value:
            request.headers.append(Text(name, value, "header", is_secret=True))


def _take_body(request: RecordedRequest, entry: Entry, passwords: Set[str]) -> None:
    data = entry.request.post_data
    assert data is not None
    kind = data.mime_type.partition(";")[0].strip().lower()
    body = data.body
    is_form = kind == "application/x-www-form-urlencoded"
    if is_form and len(body) <= MOST_OF_BODY and body.count("&") <= MOST_PAIRS:
        pairs = (
            parse_qsl(body, keep_blank_values=True) if body else [(one.name, one.value) for one in data.params or ()]
        )
        request.form = [*_fields_of(pairs, "form field", passwords)]
    elif body and "json" in kind and len(body) <= MOST_OF_TEXT:
        try:
            request.document = wire.read_json(body, MOST_OF_TEXT)
            wire.check_depth(request.document, MOST_DEPTH)
            request.has_document = True
            request.headers.append(Text("Content-Type", kind, "header"))
        except ValueError:
            request.document, request.is_left_out = None, True
    else:
        request.is_left_out = bool(body or data.params)


def _fields_of(pairs: Sequence[tuple[str, str]], kind: str, passwords: Set[str] = frozenset()) -> Iterator[Text]:
    """Yield the fields of a form or of a JSON object. The user's name next to a password is a value as well."""
    has_password = any(name in passwords or _PASSWORD.search(name) for name, _ in pairs)
    for name, value in pairs:
        is_user = has_password and bool(_USER.search(name))
        is_secret = is_user or name in passwords or _is_secret(name, value)
        yield Text(name, value, kind, is_secret=bool(value) and is_secret)


def scalar(value: object) -> str | None:
    """Return a text or a number of a JSON document as text; None for all others."""
    is_one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if is_one else None


def fields_of_object(value: Mapping[str, Any], name: str) -> Mapping[str, Text]:
    """Return the texts of a JSON object by their keys. All in an object with the name of a secret are secrets."""
    pairs = [(key, text) for key, inner in value.items() if (text := scalar(inner)) is not None]
    found = {one.name: one for one in _fields_of(pairs, "JSON value")}
    if SECRET.search(name):
        return {key: replace(one, is_secret=bool(one.value)) for key, one in found.items()}
    return found


def name_inside(name: str, key: str) -> str:
    """Return the name of a key's value, which is that of the object around it if that is a secret's."""
    return name if SECRET.search(name) else key


def _leaves_of(value: object, name: str) -> Iterator[Text]:
    if isinstance(value, dict):
        yield from fields_of_object(value, name).values()
        for key, inner in value.items():
            yield _of_form("key", key, "JSON value")
            if scalar(inner) is None:
                yield from _leaves_of(inner, name_inside(name, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves_of(inner, name)
    elif (text := scalar(value)) is not None:
        yield item_of_list(name, text)


def item_of_list(name: str, text: str) -> Text:
    return Text(name, text, "JSON value", is_secret=bool(text) and _is_secret(name, text))


def answer_of(entry: Entry, place: int) -> RecordedAnswer:
    """Return the values of an answer: cookies, headers with secrets, fields of forms, and values of JSON."""
    found: list[tuple[str, str, Mapping[str, str], bool]] = []
    cookies = set()
    for header in entry.response.headers:
        if header.name.lower() == "set-cookie":
            # Firefox joins several by newlines.
            for line in header.value.split("\n", MOST_PAIRS)[:MOST_PAIRS]:
                name, _, value = (part.strip() for part in line.partition(";")[0].partition("="))
                cookies.add(name)
                found.append((value, name, {"cookie": name}, True))
        elif SECRET.search(header.name):
            found.append((header.value.strip(), header.name, {"header": header.name}, True))
    kind = entry.response.content.mime_type.lower()
    passwords = set()
    if "html" in kind:
        for name, value, type_ in _inputs(entry.response.content.body):
            if type_ == "password":
                passwords.add(name)
            elif value:
                found.append((value, name, {"field": name}, bool(SECRET.search(name))))
    elif "json" in kind:
        found += _values_of_json(entry.response.content.body)
    values = [
        (value, Origin(place, name, capture, is_secret))
        for value, name, capture, is_secret in found
        if len(value) >= LEAST_BROUGHT and name
    ]
    return RecordedAnswer(values, cookies, passwords)


def _inputs(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and type of the input fields of a page."""
    letters = 0
    for _, found in zip(range(MOST_LEAVES), _INPUT.finditer(page), strict=False):
        letters += len(found[1])
        if letters > MOST_OF_FIELDS:
            return
        attributes = {
            one[1].lower(): unescape(next(filter(None, one.groups()[1:]), "")) for one in _ATTRIBUTE.finditer(found[1])
        }
        if attributes.get("name"):
            yield attributes["name"], attributes.get("value", ""), attributes.get("type", "").lower()


def _values_of_json(text: str) -> Iterator[tuple[str, str, Mapping[str, str], bool]]:
    try:
        document = wire.read_json(text, MOST_JSON)
        wire.check_depth(document, MOST_DEPTH)
    except ValueError:
        return
    for _, (value, pointer) in zip(range(MOST_LEAVES), _pointers(document, ""), strict=False):
        name = pointer.rpartition("/")[2]
        yield value, name or "value", {"json": pointer}, bool(SECRET.search(name))


def _pointers(value: object, pointer: str) -> Iterator[tuple[str, str]]:
    if len(pointer) > MOST_POINTER:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _pointers(inner, f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _pointers(inner, f"{pointer}/{number}")
    elif (text := scalar(value)) is not None:
        yield text, pointer
