"""Recordings of a browser, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SITE = "https://shop.example:8443"


def entry(
    method: str,
    target: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    body: tuple[str, str] | None = None,
    answer: tuple[str, str] = ("text/html; charset=utf-8", "<h1>Hello</h1>"),
    answer_headers: dict[str, str] | None = None,
    site: str = SITE,
) -> dict[str, Any]:
    """Return an entry of a recording; `body` and `answer` are a type and a text."""
    request: dict[str, Any] = {"method": method, "url": site + target, "headers": _pairs(headers), "cookies": []}
    if body is not None:
        request["postData"] = {"mimeType": body[0], "text": body[1]}
    content = {"mimeType": answer[0], "text": answer[1], "size": len(answer[1])}
    return {
        "startedDateTime": "2026-11-28T12:00:00Z",
        "time": 12.5,
        "request": request,
        "response": {"status": status, "headers": _pairs(answer_headers), "content": content},
    }


def _pairs(headers: dict[str, str] | None) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in (headers or {}).items()]


def write_har(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"log": {"version": "1.2", "creator": {"name": "test"}, "entries": entries}}))
    return path
