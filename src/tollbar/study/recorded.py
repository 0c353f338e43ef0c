"""Scenario from a browser's recording (HAR): the requests of one site as steps, and each secret as a reference.

A value that an earlier answer brought, such as a form's token, is captured there. Any other secret becomes an
environment variable. A secret is found by the name of its header, field or parameter, by the form that asks for it, or
by its own form (a JWT), and is replaced wherever it is in the requests.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tollbar.core import wire
from tollbar.core.errors import TollbarError
from tollbar.core.files import MOST_WRITTEN_BYTES
from tollbar.study import har
from tollbar.study.hidden import Hidden, hidden_of
from tollbar.study.recorded_parts import (
    Origin,
    RecordedRequest,
    answer_of,
    fields_of_object,
    is_static,
    item_of_list,
    name_inside,
    place_of,
    request_of,
    scalar,
)
from tollbar.study.scenario import MOST_STEPS, MOST_VALUES, WireStep, quoted_keys
from tollbar.study.scenario_file import ScenarioFile

MOST_ROWS = 8
"""Steps up to which each has a row of its own; more take long to measure."""
CHALLENGES = "answer 401, because the load client signs in by itself"
UNFIT = "request or body that a scenario cannot contain, for example with more than 10,000 letters or 1,000 fields"
HINT = "record a visit, and save it with its content, for example by “Save all as HAR with content”"


@dataclass(frozen=True, slots=True)
class RecordedScenario:
    """Scenario of a recording, and remarks on the parts of the recording that it does not have."""

    text: str
    remarks: tuple[str, ...]


def scenario_of(path: Path) -> RecordedScenario:
    """Return the scenario of a recording. Raises TollbarError for a file that is no HAR or has no request."""
    where, left_out = str(path), Counter[str]()
    site, entries = _of_one_site(har.read(path), left_out)
    requests, known = _requests(entries)
    signed = next((request.sign_in for request in requests if request.sign_in), None)
    if signed is not None:
        accepted = [entry for entry in entries if entry.response.status != 401]
        left_out[CHALLENGES] += len(entries) - len(accepted)
        entries, (requests, known) = accepted, _requests(accepted)
    hidden = hidden_of(requests, known, where)
    sign_in: dict[str, str] = {}
    if signed is not None:
        sign_in = {"by": signed.by}
        for name, value in (("user", signed.user), ("password", signed.password)):
            secret = hidden.secrets.get(value)
            sign_in[name] = hidden.reference(value, secret) if secret else hidden.variable(name, "sign-in")
    steps: list[dict[str, Any]] = []
    for place, (entry, request) in enumerate(zip(entries, requests, strict=True)):
        steps += _steps(place, entry, request, hidden, left_out)
    if not steps:
        raise TollbarError("has no request to a site; it needs at least one with its answer", where=where, hint=HINT)
    if len(hidden.variables) > MOST_VALUES:
        what = f"has {len(hidden.variables):,} different secrets; a scenario has at most {MOST_VALUES} values"
        raise TollbarError(what, where=where, hint="record fewer pages")
    text = _written(site, hidden, sign_in, steps)
    _check(text, where)
    return RecordedScenario(text, tuple(f"left out: {count:,} × {kind}" for kind, count in left_out.items() if count))


def _of_one_site(found: Sequence[har.Entry], left_out: Counter[str]) -> tuple[str, list[har.Entry]]:
    """Return the site of the first page, and the entries that are requests for its pages and data."""
    answered = []
    for entry in found:
        if len(entry.request.url) > wire.MOST_OF_TEXT or entry.request.url.count("&") > har.MOST_PAIRS:
            left_out[UNFIT] += 1
            continue
        place = place_of(entry.request.url)
        if place is None or entry.response.status in (0, 101):
            left_out["request without an answer of a web server"] += 1
        else:
            answered.append((place, entry))
    pages = (place[0] for place, entry in answered if _is_page(entry))
    site = next(pages, answered[0][0][0] if answered else "")
    kept: list[har.Entry] = []
    for (its_site, path, _), entry in answered:
        if its_site != site:
            left_out["request to another site"] += 1
        elif is_static(entry, path):
            left_out["request for an image, font, style or script"] += 1
        elif len(kept) == MOST_STEPS.most:
            left_out[f"request after the first {len(kept)}, the limit of steps"] += 1
        else:
            kept.append(entry)
    return site, kept


def _is_page(entry: har.Entry) -> bool:
    return entry.response.status == 200 and "html" in entry.response.content.mime_type.lower()


def _requests(entries: Sequence[har.Entry]) -> tuple[Sequence[RecordedRequest], Mapping[str, Origin]]:
    """Return the requests, and the first place of each value that an answer brings."""
    requests: list[RecordedRequest] = []
    known: dict[str, Origin] = {}
    cookies: set[str] = set()
    passwords: set[str] = set()
    for place, entry in enumerate(entries):
        requests.append(request_of(entry, cookies, passwords))
        answer = answer_of(entry, place)
        cookies |= answer.cookies
        passwords |= answer.passwords
        for value, origin in answer.values:
            known.setdefault(value, origin)
    return requests, known


def _steps(
    place: int, entry: har.Entry, request: RecordedRequest, hidden: Hidden, left_out: Counter[str]
) -> Iterator[dict[str, Any]]:
    """Yield the step of a request, or none if a scenario cannot contain it."""
    target = _target(request, hidden)
    has_body = request.form is not None or request.has_document
    first: dict[str, Any] = {"get": target}
    if request.method != "GET" or has_body:
        first = {"method": request.method, "path": target}
    sent: dict[str, Any] = {}
    headers = {text.name: hidden.replaced(text) for text in request.headers}
    if request.cookies:
        headers["Cookie"] = "; ".join(f"{hidden.inside(text.name)}={hidden.replaced(text)}" for text in request.cookies)
    if headers:
        sent["headers"] = headers
    if request.form is not None:
        sent["form"] = _form(request, hidden)
    elif request.has_document:
        sent["body"] = json.dumps(_in_json(request.document, "", hidden))
    # A browser that has a page already gets 304, and a part of a file is 206.
    last: dict[str, Any] = {"expect": {"status": 200 if entry.response.status in (206, 304) else entry.response.status}}
    if place in hidden.captures:
        last["capture"] = dict(hidden.captures[place])
    if request.is_left_out:
        left_out["body that is neither a form nor JSON, or is too large"] += 1
    if _can_be(first | sent | last):
        yield first | sent | last
        return
    left_out[UNFIT] += 1
    # A later step may need its captures.
    if _can_be(first | last):
        yield first | last


def _target(request: RecordedRequest, hidden: Hidden) -> str:
    path = hidden.inside(request.path)
    parts = []
    for sent, text in request.query:
        name, equals, _ = sent.partition("=")
        whole = (hidden.inside(name) + equals if equals else "") + hidden.replaced(text)
        parts.append(whole if text.is_secret else hidden.inside(sent))
    return f"{path}?{'&'.join(parts)}" if parts else path


def _form(request: RecordedRequest, hidden: Hidden) -> dict[str, str | list[str]]:
    fields: dict[str, list[str]] = {}
    for text in request.form or ():
        fields.setdefault(hidden.inside(text.name), []).append(hidden.replaced(text))
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def _in_json(value: Any, name: str, hidden: Hidden) -> Any:
    """Return a JSON value with references in the place of its secrets; a number with one becomes a text."""
    if isinstance(value, dict):
        texts = fields_of_object(value, name)
        return {
            hidden.inside(key): _scalar(inner, hidden.replaced(texts[key]))
            if key in texts
            else _in_json(inner, name_inside(name, key), hidden)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_in_json(inner, name, hidden) for inner in value]
    text = scalar(value)
    return value if text is None else _scalar(value, hidden.replaced(item_of_list(name, text)))


def _scalar(value: Any, replaced: str) -> Any:
    return value if str(value) == replaced else replaced


def _can_be(step: dict[str, Any]) -> bool:
    try:
        wire.check_characters(step, "", most=wire.MOST_OF_TEXT)
        WireStep.model_validate(step)
    except (TollbarError, ValidationError):
        return False
    return True


def _written(site: str, hidden: Hidden, sign_in: Mapping[str, str], steps: Sequence[dict[str, Any]]) -> str:
    """Return the scenario's file."""
    lines = [
        f"# Recorded from {site}. `tollbar run --url {site}/ --scenario FILE` performs it.",
        '# Each answer must have its status; `expect = { status = 200, text = "…" }` also requires a text.',
    ]
    if len(steps) > MOST_ROWS:
        lines += ["", "each-step = false  # one row for all steps"]
    if hidden.variables:
        lines += [
            "",
            "# The recorded secrets are not in this file. Set each variable before a run, for example `export NAME=…`,",
            '# or use a CSV file with a row for each user: `password = { csv = "users.csv", column = "password" }`.',
            "[values]",
        ]
    for name, kind in hidden.variables.items():
        lines.append(f"{name} = {wire.written({'env': f'SITE_{name.upper()}'})}  # a {kind}")
    tables: dict[str, Any] = {"sign-in": sign_in, "step": [quoted_keys(step) for step in steps]}
    return "\n".join(lines) + "\n" + wire.text_of(tables)


def _check(text: str, where: str) -> None:
    """Raise TollbarError for a text that is no scenario."""
    fault = TollbarError("has requests that a scenario cannot contain", where=where, hint="record fewer pages")
    if len(text.encode()) > MOST_WRITTEN_BYTES:
        raise fault
    try:
        wire.parse(text, ScenarioFile, where=where).check_names(where)
    except TollbarError as error:
        # Its message may quote a text of the recording.
        raise fault from error
