"""Small studies that the bench measures, and readers of their documents."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import TOLLBAR, timed

SERVED = """
[load]
shape   = "closed"
users   = [8]
request = { get = "/bytes/{bytes}" }
expect  = { status = 200, bytes = "{bytes}" }
"""

# Certificates against each other and TLS against plaintext, on these servers (a TOML list).
HANDSHAKES = """
question  = "What does a handshake cost a server?"
family    = "tls"
servers      = {servers}
providers = ["libcrypto"]
choices   = ["plaintext", "tls-1.3"]
baseline  = "plaintext"

[vary]
op           = ["connect"]
certificate  = ["rsa-2048", "ecdsa-p256"]
key-exchange = ["x25519"]
bytes        = ["4 KiB"]
{served}
[measure]
{measure}
"""

Document = Mapping[str, Any]


class Unmeasured(Exception):
    """Error of a study without a document, or of a document without the requested part."""


def measured(text: str, *arguments: str, name: str = "study") -> Document:
    """Run the one study of this text and return its document.

    `measured_s` is the seconds of a cell's chunks, averaged over the cells. Raises Unmeasured.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.toml"
        path.write_text(text)
        done = timed(TOLLBAR, "run", str(path), "--json", "--no-report", *arguments, cwd=Path(folder), done=(0, 1))
        try:
            run = json.loads(done.out)
        except ValueError:
            raise Unmeasured(f"`tollbar run` ended with status {done.status}") from None
        exported = timed(TOLLBAR, "export", run["run"], "--format", "json", cwd=Path(folder))
        chunks = json.loads(exported.out)
    (study,) = run["studies"]
    cells = {json.dumps([toll["choice"], toll["provider"], toll["server"], toll["setting"]]) for toll in study["tolls"]}
    measured_s = sum(chunk["wall_ns"] for chunk in chunks if not chunk["repeat"]) / 1e9 / max(len(cells), 1)
    return {**study, "wall_s": done.wall_s, "measured_s": measured_s}


def toll(study: Document, choice: str, **setting: object) -> Document:
    """Return the toll of the one cell that has this choice and these settings.

    Raises Unmeasured.
    """
    found = [
        one
        for one in study["tolls"]
        if one["choice"] == choice and not one["aa"] and all(one["setting"].get(k) == v for k, v in setting.items())
    ]
    if len(found) != 1 or found[0]["ratio"] is None:
        raise Unmeasured(f"{len(found)} tolls of {choice} {setting}: {[one['reason'] for one in found]}")
    only: Document = found[0]
    return only


def half_width(low: float | None, high: float | None) -> float:
    """Return half the width of a ratio's interval, as a share of it; infinite if it has no ends."""
    return math.log(high / low) / 2 if low and high else math.inf


def halves(tolls: Sequence[Document]) -> list[float]:
    """Return the half widths of all tolls that have a ratio, A/A pairs left out."""
    return [half_width(one["low"], one["high"]) for one in tolls if one["ratio"] is not None and not one["aa"]]
