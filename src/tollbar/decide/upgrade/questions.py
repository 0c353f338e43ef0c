"""Questions to both builds: a study for each family, with the old and the new build in the same batches."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from tollbar.catalog import servers
from tollbar.catalog.families import Setting, Value, family
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.core import wire
from tollbar.core.errors import TollbarError, unknown
from tollbar.decide.upgrade.shared import with_shared
from tollbar.decide.upgrade.things import LIBCRYPTO, Thing
from tollbar.lab.servers.loading import libssl_beside, name_end
from tollbar.study import Study, choice_homes, read

TLS, DEFAULTS = "tls-defaults", "defaults"
"""The families that take a library and its defaults apart."""
LIBSSL_HINT = "name the folder that has both below it, or copy libssl.so next to libcrypto.so"
THRESHOLD = "1%"
"""Smallest reported change, as a study's `threshold`: programs call the upgraded thing thousands of times."""


def studies(old: Thing, new: Thing, families: Sequence[str], blocks: int) -> tuple[Study, ...]:
    """Return the studies of these families, or of all that apply to such a thing and to both builds.

    Raises TollbarError for another family, and for one that does not apply.
    """
    known = _asked_of(old.kind)
    for name in families:
        if name not in known:
            homes = [home for home in choice_homes(name) if home in known]
            if homes:
                what = f"`{name}` is a choice; an upgrade measures whole families"
                raise TollbarError(what, where=new.said, hint=f"did you mean `{homes[0]}`?")
            raise unknown("family of this build", name, known, where=new.said)
    out_of_reach = not_asked(old, new, families)
    for name, reason in out_of_reach.items():
        if name in families:
            raise TollbarError(reason, hint=LIBSSL_HINT)
    names = [name for name in known if (name in families or not families) and name not in out_of_reach]
    return tuple(_study(name, known[name], old, new, blocks) for name in names)


def not_asked(old: Thing, new: Thing, families: Sequence[str]) -> Mapping[str, str]:
    """Return the questions that one side has no library for, each with the reason.

    That is known before anything is measured.
    """
    reasons = [_without_libssl(side) for side in (old, new) if side.server is None]
    reason = next(filter(None, reasons), None)
    if reason is None:
        return {}
    asked = {name: one for name, one in _asked_of(old.kind).items() if name in families or not families}
    return {name: reason for name, one in asked.items() if one.get("family") == TLS}


def _without_libssl(side: Thing) -> str | None:
    path = side.provider.path
    if side.provider.kind != LIBCRYPTO or path is None or libssl_beside(Path(path)) is not None:
        return None
    return f"there is no libssl next to {path}; TLS needs the libssl of the same build"


def _study(name: str, asked: Mapping[str, Any], old: Thing, new: Thing, blocks: int) -> Study:
    if asked.get("family") == DEFAULTS:
        asked = {**asked, **_held(old, asked["vary"])}
    study = read(name, _text(name, asked, old, new, blocks), where=name)
    if study.servers or study.family.name == DEFAULTS:
        return study
    vary, leave_out = with_shared(study, old.provider, new.provider)
    if not vary:
        return study
    asked = {**asked, "vary": {**asked.get("vary", {}), **vary}, "leave-out": leave_out}
    return read(name, _text(name, asked, old, new, blocks), where=name)


def _text(name: str, asked: Mapping[str, Any], old: Thing, new: Thing, blocks: int) -> str:
    apart = ("vary", "leave-out", "measure")
    return wire.text_of(
        {
            "": {
                "question": f"What does {name} cost on {new.name}, against {old.name}?",
                "family": name,
                **{key: value for key, value in asked.items() if key not in apart},
                **({"servers": [_server_of(old, new)]} if asked.get("family") == TLS else {}),
                **_sides(old, new),
            },
            "vary": asked.get("vary", {}),
            "leave-out": asked.get("leave-out", []),
            "measure": {"blocks": blocks, **asked.get("measure", {})},
            "judge": {"threshold": THRESHOLD},
        }
    )


def shared_settings(kind: str, study: Study) -> Sequence[str]:
    """Return the settings of a study that are varied because one build has not their default."""
    asked = _asked_of(kind).get(study.name)
    if asked is None or asked.get("family") in (TLS, DEFAULTS):
        return ()
    return [name for name in study.vary if name not in asked.get("vary", {})]


def _held(old: Thing, vary: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the old build's defaults as fixed settings of both, so that the split covers its callers' settings."""
    (op,) = vary["op"]
    choice, parameters = old.default(op)
    settings = family(DEFAULTS).settings
    return {
        "choices": ["by-default", choice],
        "factors": ["provider", "choice"],
        "vary": {**vary, **{name: [_written(settings[name], value)] for name, value in parameters.items()}},
    }


def _written(setting: Setting, value: int) -> Value:
    """Return a value as a study writes it, with its unit if it has one."""
    return setting.words(value) if setting.unit else value


def _sides(old: Thing, new: Thing) -> Mapping[str, object]:
    """Return the two builds as a study's varied values, the old one as the baseline."""
    if old.server is None or new.server is None:
        return {"providers": [old.provider.spec, new.provider.spec], "baseline": {"provider": old.provider.spec}}
    names = [old.server.server.name, new.server.server.name]
    return {"servers": names, "providers": [old.provider.spec], "baseline": {"server": names[0]}}


def _server_of(old: Thing, new: Thing) -> str:
    """Return `nginx`, which is linked with the system's libssl, if it is installed and both builds have that name.

    Else return the engine, which binds any library.
    """
    system = open_provider(LIBCRYPTO)
    own = system.path if isinstance(system, Provider) else None
    ends = {name_end(Path(path)) for path in (own, old.provider.path, new.provider.path) if path}
    has_nginx = isinstance(servers.find(servers.all_servers()["nginx"]), servers.Installed)
    return "nginx" if has_nginx and len(ends) == 1 else "embedded"


def _asked_of(kind: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the questions of this kind of thing, with those of the kind that it is `as`.

    Raises TollbarError for none.
    """
    found: Mapping[str, Any] = questions().get(kind, {})
    if not found:
        raise TollbarError(
            f"`tollbar upgrade` does not support builds of {kind}", hint=f"it supports {', '.join(questions())}"
        )
    own = {name: asked for name, asked in found.items() if name != "as"}
    return {**questions()[found["as"]], **own} if "as" in found else own


@cache
def questions() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return tomllib.loads((files(__package__) / "questions.toml").read_text("utf-8"))
