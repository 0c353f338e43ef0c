"""Scenarios for a user's own server: steps, values from lists and files, captures and a sign-in.

A scenario has no secret in it. Each names its place, a file or an environment variable, and only the load client gets
its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, Literal
from urllib.parse import unquote_plus

from pydantic import Field, model_validator

from tollbar.core import limits
from tollbar.core.errors import unknown
from tollbar.core.limits import Limits
from tollbar.core.wire import Wire, written

MOST_STEPS = Limits(1, 64, "from 1 to 64 steps", "3")
"""Limit of the load client, which counts the requests of a pass in a byte: a step may need three."""
MOST_VALUES = 100
MOST_ITEMS = 10_000
"""Limit of a list in a scenario; a CSV file may be longer."""
MOST_CAPTURES = 1000
"""Limit of the values that all steps of a scenario capture: each user of the load has all of them."""
MOST_REFERENCES = 10_000
"""Limit of the references in all steps of a scenario: each takes some memory in the load client for each user."""
LONGEST_REGEX = 1000
LONGEST_NAME = 60

SECRET = re.compile(
    r"pass(word|wd|phrase|code)?$|passw|pwd|secret|token|csrf|xsrf|nonce|api-?_?key|access-?_?key|auth|cookie|"
    r"credential|session|^sid$|signature|^otp$|^pin$|^code$|^state$|^key$|jwt|saml|bearer|viewstate|eventvalidation",
    re.IGNORECASE,
)
"""Names of headers, fields and parameters whose values are secrets."""
_REFERENCE = re.compile(r"(?<!\$)\$\{([^}]*)\}")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_TARGET_FIELDS = (
    # Parameters of a part of the path, such as `;jsessionid=`, and those of the query.
    re.compile(r";([^=;&?/\s]{1,200})=([^;&?/\s]*)"),
    re.compile(r"[&?]([^=&?\s]{1,200})=([^&\s]*)"),
)
_BODY_FIELDS = (
    # A form.
    re.compile(r"(?:^|[&?])([^=&?\s]{1,200})=([^&\s]*)"),
    # JSON, by its text: bodies with references in the place of numbers are none.
    re.compile(r'"([^"\\]{1,200})"\s*:\s*(?:\[\s*)?"?((?<=")(?:[^"\\]|\\.)*|[\d.+-][\w.+-]*)'),
    # A query in a JSON string, as GraphQL has it.
    re.compile(r'\b(\w{1,200})\s*:\s*\\"([^"\\]*)'),
    # Elements and attributes of XML.
    re.compile(r"<(?:[\w.-]{1,200}:)?([\w.-]{1,200})(?:\s[^<>]{0,2000})?>([^<>]*)</"),
    re.compile(r"""\s(?:[\w.-]{1,200}:)?([\w.-]{1,200})=["']([^"']*)"""),
    # A part of multipart/form-data.
    # Nothing is tried twice, because each name is searched to the end of its line.
    re.compile(r'\bname="([^"\r\n]{1,200})"[^\r\n]*+(?:\r?\n[^\r\n]++){0,20}+\r?\n\r?\n([^\r\n]*)'),
)
"""Fields of targets and bodies, each with a group for its name and one for its value."""


def references(text: str) -> list[str]:
    """Return the names of the values that a text refers to, such as `page` in `/articles/${page}`."""
    # Each `${` without an end would be searched to the end of the text.
    return _REFERENCE.findall(text, 0, text.rfind("}") + 1)


class WireValue(Wire):
    """Source of a value: a column of a CSV file, an environment variable, a file, a list or a range."""

    csv: str | None = None
    column: str | None = None
    env: str | None = None
    file: str | None = None
    items: Annotated[tuple[str, ...], Field(max_length=MOST_ITEMS)] | None = Field(default=None, alias="list")
    range: tuple[int, int] | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> WireValue:
        given = [one for one in (self.csv, self.env, self.file, self.items, self.range) if one is not None]
        if len(given) != 1:
            raise ValueError(
                "a value needs exactly one of `csv`, `env`, `file`, `list` and `range`, for example "
                '`{ csv = "users.csv", column = "name" }`'
            )
        if (self.csv is None) != (self.column is None):
            raise ValueError('`csv` and `column` belong together, for example `{ csv = "users.csv", column = "name" }`')
        if self.items == ():
            raise ValueError("`list` is empty; it needs at least one text")
        if self.range is not None and not 0 <= self.range[0] <= self.range[1] < 1 << 63:
            raise ValueError("`range` must have the smaller number first, for example `range = [1, 500]`")
        return self

    @property
    def is_secret(self) -> bool:
        """True if it comes from outside the scenario."""
        return self.items is None and self.range is None


class WireSignIn(Wire):
    by: Literal["basic", "digest", "negotiate", "bearer"]
    user: str = ""
    password: str = ""
    token: str = ""
    krb5_config: str | None = None

    @model_validator(mode="after")
    def _has_its_credentials(self) -> WireSignIn:
        needed = ("token",) if self.by == "bearer" else ("user", "password")
        for name in ("user", "password", "token"):
            if bool(getattr(self, name)) != (name in needed):
                words = " and ".join(f"`{one}`" for one in needed)
                raise ValueError(
                    f'`by = "{self.by}"` needs exactly {words}, for example `{needed[-1]} = "${{secret}}"`'
                )
        if not references(self.token or self.password):
            raise ValueError(f'`{needed[-1]}` must name a value, for example `"${{secret}}"`, and not contain it')
        return self


class WireCapture(Wire):
    """Place of a value in an answer."""

    header: str | None = None
    cookie: str | None = None
    pointer: str | None = Field(default=None, alias="json")
    field: str | None = None
    regex: Annotated[str, Field(max_length=LONGEST_REGEX)] | None = None

    @model_validator(mode="after")
    def _has_one_place(self) -> WireCapture:
        if len(self.named) != 1:
            raise ValueError(
                "a capture needs exactly one of `header`, `cookie`, `json`, `field` and `regex`, for example "
                '`{ field = "csrf_token" }`'
            )
        return self

    @property
    def named(self) -> dict[str, str]:
        return self.model_dump(by_alias=True, exclude_none=True)


class WireAnswer(Wire):
    status: int = 200
    text: str | None = None

    @model_validator(mode="after")
    def _is_a_status(self) -> WireAnswer:
        limits.STATUS.check(self.status)
        return self


class WireStep(Wire):
    name: str | None = None
    get: str | None = None
    method: str = "GET"
    path: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    form: dict[str, str | tuple[str, ...]] | None = None
    expect: WireAnswer = WireAnswer()
    capture: dict[str, WireCapture] = Field(default_factory=dict)
    once: bool = False

    @model_validator(mode="after")
    def _is_a_request(self) -> WireStep:
        if (self.get is None) == (self.path is None):
            raise ValueError('a step needs `get = "/path"`, or `method` and `path`')
        if not self.target.startswith("/"):
            raise ValueError(f"`{self.target}` must begin with `/`; the server is that of `--url`")
        if self.body is not None and self.form is not None:
            raise ValueError("`body` and `form` cannot be combined")
        if self.name is not None and (not 0 < len(self.name) <= LONGEST_NAME or "*" in self.name):
            raise ValueError(f"a `name` must have at most {LONGEST_NAME} characters, without `*`")
        for name, value in self.headers.items():
            if name.lower() in ("host", "connection", "content-length", "transfer-encoding"):
                raise ValueError(f"the header `{name}` cannot be set; the load client sends its own")
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not value.isprintable():
                raise ValueError(f"the header `{name}` cannot be sent as it is")
        for name, value in (*self.pairs, *self.inside):
            if SECRET.search(name) and value and not references(value):
                raise ValueError(_literal_secret(name))
        return self

    @property
    def target(self) -> str:
        return self.get if self.get is not None else str(self.path)

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """Headers and form fields."""
        return (*self.headers.items(), *self.fields)

    @property
    def inside(self) -> Iterator[tuple[str, str]]:
        """Parameters of the path, and fields of a body."""
        for text, patterns in ((self.target, _TARGET_FIELDS), (self.body or "", _BODY_FIELDS)):
            for pattern in patterns:
                yield from ((unquote_plus(name), value) for name, value in pattern.findall(text))

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        given = (self.form or {}).items()
        return [(name, one) for name, value in given for one in ((value,) if isinstance(value, str) else value)]

    @property
    def texts(self) -> Iterator[str]:
        """Texts in which values may be named."""
        yield from (self.target, *self.headers.values())
        yield from (text for pair in self.fields for text in pair)
        yield from (text for text in (self.body, self.expect.text) if text is not None)


class WireScenario(Wire):
    """Scenario as a study contains it."""

    values: Annotated[dict[str, WireValue], Field(max_length=MOST_VALUES)] = Field(default_factory=dict)
    sign_in: WireSignIn | None = None
    step: tuple[WireStep, ...]
    connection: Literal["user", "new"] = "user"
    each_step: bool = True
    trust: str | None = None
    """File with the certificates of authorities; None: those of the machine."""

    @model_validator(mode="after")
    def _can_be_performed(self) -> WireScenario:
        if not MOST_STEPS.takes(len(self.step)):
            raise ValueError(f"`step` has {len(self.step)} steps; it must have {MOST_STEPS.words}")
        for name in (*self.values, *(name for step in self.step for name in step.capture)):
            if not _NAME.fullmatch(name):
                raise ValueError(f"`{name}` cannot name a value; it needs letters, digits, `_` and `-`")
        for name, one in self.values.items():
            if SECRET.search(name) and one.items is not None:
                raise ValueError(_literal_secret(name))
        captured = sum(len(step.capture) for step in self.step)
        if captured > MOST_CAPTURES:
            raise ValueError(f"its steps capture {captured:,} values; the limit is {MOST_CAPTURES:,}")
        referred = sum(len(references(text)) for step in self.step for text in step.texts)
        if referred > MOST_REFERENCES:
            raise ValueError(f"its steps have {referred:,} references; the limit is {MOST_REFERENCES:,}")
        onces = [step.once for step in self.step]
        if onces != sorted(onces, reverse=True) or all(onces):
            raise ValueError("steps with `once = true` must precede all others, of which there must be at least one")
        if len({*self.names}) < len(self.names):
            raise ValueError("two steps have the same `name`; each needs its own")
        return self

    @property
    def names(self) -> Sequence[str]:
        """Name of each step in rows, with its number."""
        return [f"{number} {step.name or _called(step)}" for number, step in enumerate(self.step, 1)]

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the steps with which a measured pass ends."""
        counted = [name for name, step in zip(self.names, self.step, strict=True) if not step.once]
        return tuple(counted if self.each_step else counted[-1:])

    def check_names(self, where: str) -> None:
        """Raise TollbarError for a text that names no value, or one that a later step captures."""
        known = {*self.values}
        signed = (self.sign_in.user, self.sign_in.password, self.sign_in.token) if self.sign_in else ()
        _check(signed, known, f"{where}: `sign-in`")
        for name, step in zip(self.names, self.step, strict=True):
            _check(step.texts, known, f"{where}: step {name}")
            known |= step.capture.keys()

    @property
    def tables(self) -> Mapping[str, Mapping[str, object] | Sequence[Mapping[str, object]]]:
        """Its TOML tables in a study."""
        plain: dict[str, Any] = self.model_dump(by_alias=True, exclude_defaults=True)
        steps = [quoted_keys(step) for step in plain.pop("step")]
        values = quoted_keys(plain.pop("values", {}))
        signed = plain.pop("sign-in", {})
        return {"scenario": plain, "scenario.values": values, "scenario.sign-in": signed, "scenario.step": steps}


def _literal_secret(name: str) -> str:
    """Return the message for the value of a secret in the scenario itself."""
    return (
        f"the value of `{name}` is in the scenario; name its place, for example `${{secret}}` with "
        '`secret = { env = "SITE_SECRET" }` or `{ file = "secret.txt" }` in `[values]`'
    )


def _called(step: WireStep) -> str:
    method = "GET" if step.get is not None else step.method
    target = step.target.partition("?")[0].replace("*", "%2A")
    return f"{method} {target}"[:LONGEST_NAME]


def _check(texts: Iterator[str] | Sequence[str], known: Set[str], where: str) -> None:
    for text in texts:
        for name in references(text):
            if name not in known:
                raise unknown("value", name, known, where=where)


def quoted_keys(said: Any) -> Any:
    """Return nested tables with each key as TOML writes it."""
    if isinstance(said, Mapping):
        return {
            name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else written(name): quoted_keys(value)
            for name, value in said.items()
        }
    return said
