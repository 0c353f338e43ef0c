"""Requests a second and response times that say little of the server: which they are, and how they are marked."""

from __future__ import annotations

from tollbar.judge import Limit, Measurement
from tollbar.report import words

MARKS = {Limit.CLIENT_BOUND: "†", Limit.NOT_SATURATED: "‡", Limit.CONTENDED: "§"}
"""What stands behind requests a second and response times that say little of the server."""


def limited(measured: Measurement) -> str:
    """The value with its unit, and a mark behind it where it is limited by other than the server."""
    mark = f"\u00a0{MARKS[measured.limit]}" if measured.limit else ""
    return words.amount(measured.value, measured.unit) + mark
