"""Quotients of the two probes: the throughput-bound one over the chain, on a quiet core, by the processor's model.

Both contain the clock's frequency. A neighbour slows the first by a third and the chain hardly, so that a first run on
a listed processor can detect a neighbour that never leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from tollbar.core.wire import Wire, read

FILE = Path(__file__).with_name("quotients.toml")


class Listed(Wire):
    """Processor model, identified by its fingerprint."""

    title: str
    cpu: str
    """Beginning of the processor's name."""
    family: str
    """Family and model, without the stepping: `25/1`."""
    quotient: float
    source: str
    measured: date


class Quotients(Wire):
    """The file `quotients.toml`."""

    processor: tuple[Listed, ...]


@cache
def listed() -> tuple[Listed, ...]:
    """Read the table that ships."""
    return read(FILE, Quotients).processor


def by_chain_ns(fingerprint: Mapping[str, Any], chain_ns: float | None) -> float | None:
    """Return the duration of a probe on a quiet core of this processor whose chain takes `chain_ns`.

    None if no chain was read or the model is not listed.
    """
    if chain_ns is None:
        return None
    cpu, family = str(fingerprint.get("cpu", "")), str(fingerprint.get("family", ""))
    found = (one for one in listed() if cpu.startswith(one.cpu) and family.startswith(f"{one.family}/"))
    return next((chain_ns * one.quotient for one in found), None)
