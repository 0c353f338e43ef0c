"""What a run was made with, as `run.json` keeps it, and in what that differs from what is installed now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tollbar.catalog import libraries
from tollbar.core import method
from tollbar.study.plan import Plan

# Of a provider's receipt: where its code lies, and what is said of the engine once. The rest is which code it is.
_NOT_THE_CODE = ("path", "engine", "offers", "name")
# Of a digest: as many hexadecimal digits as tell two builds apart by eye.
_DIGITS = 16


def made_with(plan: Plan) -> dict[str, Any]:
    """The code and the parameters that the cells of a plan are measured with."""
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
    """In what a run's code and parameters differ from those of now, a line each.

    Trials of both would be one cell's, and their mean the cost of neither.
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
        # Cells of a server that was not here have no trials that others could be mixed with.
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
    """What tells inputs from others, without their text: a run's directory is handed on, and keys are not."""
    text = json.dumps(dict(inputs), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
