"""Code and parameters of a run, as `run.json` keeps them, and their differences from the installed ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tollbar.catalog import libraries
from tollbar.core import method
from tollbar.study.plan import Plan

# Keys of a provider's receipt that do not identify its code, or are reported once for the engine.
_NOT_THE_CODE = ("path", "engine", "offers", "name")
# Hexadecimal digits of a digest: enough to distinguish two builds by eye.
_DIGITS = 16


def made_with(plan: Plan) -> dict[str, Any]:
    """Return the code and the parameters that the cells of a plan are measured with."""
    return {
        "method": method.VERSION,
        "engine": libraries.engine_build(),
        "providers": dict(plan.receipts),
        "servers": dict(plan.servers),
        "broken": dict(plan.broken),
        "choices": {
            one.study.name: {
                cell.choice.name: {"setting": dict(cell.choice.setting), "inputs": _digest(cell.choice.inputs)}
                for cell in one.cells
            }
            for one in plan.studies
        },
    }


def changes(begun: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences between a run's code and parameters and today's, a line each.

    Trials of both would be mixed in one cell, and their mean would be the cost of neither.
    """
    return [
        *_method(begun.get("method", method.FIRST), now.get("method", method.FIRST)),
        *_engine(begun.get("engine"), now["engine"]),
        *_providers(begun["providers"], now["providers"]),
        *_servers(begun["servers"], now["servers"]),
        *_choices(begun.get("choices", {}), now["choices"]),
    ]


def _method(begun: int, now: int) -> Iterator[str]:
    if begun != now:
        yield f"the version of the method: {begun} → {now}"


def _engine(begun: str | None, now: str) -> Iterator[str]:
    if begun is not None and begun != now:
        yield f"the engine: {begun} → {now}"


def _providers(begun: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for spec in begun.keys() & now.keys():
        one, other = begun[spec], now[spec]
        if one["name"] != other["name"]:
            yield f"{spec}: {one['name']} → {other['name']}"
            continue
        for name in sorted({*one, *other} - {*_NOT_THE_CODE}):
            if one.get(name) != other.get(name):
                yield f"{spec}: its {name}: {one.get(name)} → {other.get(name)}"
    for spec in begun.keys() - now.keys():
        yield f"{spec}: {begun[spec]['name']} → not here"


def _servers(begun: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for server, found in begun.items():
        # Cells of a server that was not available have no trials that others could be mixed with.
        if "version" in found and found["version"] != (version := now.get(server, {}).get("version")):
            yield f"{server}: {found['version']} → {version or 'not available here'}"


def _choices(begun: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    said: dict[str, None] = {}
    for study, choices in begun.items():
        for choice, one in choices.items():
            other = now.get(study, {}).get(choice)
            if other is None:
                continue
            for name in sorted({*one["setting"], *other["setting"]}):
                was, is_now = (each["setting"].get(name) for each in (one, other))
                if was != is_now:
                    said[f"the choice {choice}: its {name}: {was} → {is_now}"] = None
            if one["inputs"] != other["inputs"]:
                said[f"the choice {choice}: its key or other inputs are not those of the run"] = None
    yield from said


def _digest(inputs: Mapping[str, str]) -> str:
    """Return a digest that identifies inputs without their text: a run's directory may be published, keys may not."""
    text = json.dumps(dict(inputs), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
