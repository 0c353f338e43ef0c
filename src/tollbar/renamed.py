"""Words of earlier versions, each with today's: for hints, and for runs that were made with them."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "bed": "server",
    "beds": "servers",
    "worth": "threshold",
    "is-rehearsal": "is-self-test",
    "stretch": "span",
    "--no-rehearse": "--no-self-test",
    "rehearsal": "self-test",
    "rehearsal-uneven": "self-test-uneven",
    "rehearsal-parts": "self-test-parts",
    "rehearsal-company": "self-test-scaling",
    "in-company": "scaling",
    "servers-in-company": "servers-scaling",
    "company-contexts": "scaling-contexts",
    "company-digests": "scaling-digests",
    "company-key-exchange": "scaling-key-exchange",
    "company-signatures": "scaling-signatures",
    "cpu-typical": "cpu-all",
    "server-cpu-typical": "server-cpu-all",
    "client-cpu-typical": "client-cpu-all",
    "wall-typical": "wall-all",
}
"""Keys, settings, studies, options and metrics."""
