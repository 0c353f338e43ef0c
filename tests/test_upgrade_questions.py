"""Questions of an upgrade to both builds, and their held settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from builders import row
from conftest import here, lacking
from tollbar import study as studies
from tollbar.catalog import servers
from tollbar.catalog.families import Value, at_defaults, families
from tollbar.catalog.libraries import Provider, open_provider
from tollbar.core import wire
from tollbar.core.errors import TollbarError
from tollbar.core.records import Outcome, Record, failed
from tollbar.decide import upgrade
from tollbar.decide.upgrade import Thing, changed, questions
from tollbar.decide.upgrade.shared import with_shared
from tollbar.decide.upgrade.words import upgrade_answer
from tollbar.lab import workloads
from tollbar.study import plan
from tollbar.study.plan.batches import blocks
from upgrade_lab import NEW, OLD, of, pair, side


def test_all_four_cells_meet_in_one_batch() -> None:
    other = open_provider("libcrypto:psycopg")
    if not isinstance(other, Provider):
        lacking("there is no second libcrypto here")
    sides = Thing("a", "libcrypto", open_provider("libcrypto")), Thing("b", "libcrypto", other)  # type: ignore[arg-type]
    (asked,) = upgrade.studies(*sides, ["tls"], 4)
    (planned,) = plan.make([asked], seed=1).studies
    assert 4 == len(planned.cells)
    for batches in blocks(planned, 1, 4):
        assert any(len({visit.cell.key for visit in batch.visits}) == 4 for batch in batches)


@pytest.mark.parametrize("server", ["nginx", "httpd"])
def test_a_server_as_shipped_is_told_nothing_but_its_versions(server: str) -> None:
    here(server)
    text = SHOWN.format(server=server)
    (planned,) = plan.make([studies.read("shown", text, where="shown")], seed=1).studies
    made = {cell.choice.name: workloads.of(cell).shown(cell, 1).configuration or "" for cell in planned.cells}
    for word in ("X25519", "AES_256", "SessionCache", "session_cache", "ickets", "NumTickets"):
        assert word not in made["by-default"]
    assert "X25519" in made["held"]
    assert "TLS_AES_256_GCM_SHA384" in made["held"]
    assert "ickets" not in made["held"]
    assert "TLSv1.2" not in made["held"]


SHOWN = """
question = "?"
family   = "tls-defaults"
choices  = ["by-default", "held"]
servers     = ["{server}"]

[load.request]
get = "/bytes/4096"
"""


@pytest.mark.parametrize("kind", questions.questions())
def test_what_is_asked_is_there_to_be_asked(kind: str) -> None:
    server = servers.all_servers().get(kind)
    thing = defaulting(kind, OF_OLD)
    if server is not None:
        here(kind)
        found = servers.find(server)
        assert isinstance(found, servers.Installed)
        thing = replace(thing, server=found, provider=open_provider(server.runs_on[0]))  # type: ignore[arg-type]
    for one in upgrade.studies(thing, thing, (), 4):
        assert one.family.name in families()
        assert one.choices


def test_a_thing_that_is_asked_nothing_is_said() -> None:
    with pytest.raises(TollbarError, match="`tollbar upgrade` does not support builds of mariadb") as caught:
        upgrade.studies(defaulting("mariadb", OF_OLD), defaulting("mariadb", OF_NEW), (), 4)
    assert "postgresql" in (caught.value.hint or "")


# Builds' own defaults, as their runners report them.
OF_OLD = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 600_000}, "sign": {"choice": "rsa", "bits": 2048}}
OF_NEW = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 1_000_000}, "sign": {"choice": "rsa", "bits": 3072}}


def defaulting(kind: str, defaults: Mapping[str, object], spec: str = "libcrypto") -> Thing:
    """Return a build whose runner reports these defaults."""
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    return Thing(spec, kind, replace(system, spec=spec, receipt={"defaults": defaults}))


def test_both_are_held_to_what_the_old_one_takes_by_itself() -> None:
    old = defaulting("password", {"hash": {"choice": "argon2id", "memory": 102400 * 1024, "passes": 2, "lanes": 8}})
    (asked,) = upgrade.studies(old, defaulting("password", OF_NEW, "libcrypto:psycopg"), (), 4)
    assert ("by-default", "argon2id") == asked.choices
    assert {"op": ("hash",), "memory": (102400 * 1024,), "passes": (2,), "lanes": (8,)} == asked.vary
    assert {"provider": ("libcrypto", "libcrypto:psycopg"), "choice": ("by-default", "argon2id")} == asked.factors
    assert ("by-default", "rsa") == upgrade.studies(defaulting("java", OF_OLD), old, ["keys"], 4)[0].choices


def test_what_a_build_takes_by_itself_is_said_beside_the_parts() -> None:
    family = families()["defaults"]
    cells: Mapping[str, Value] = {"op": "hash", "provider": OLD}
    default, held = row({**cells, "choice": "by-default"}), row({**cells, "choice": "pbkdf2-sha-256", "iterations": 7})
    new = defaulting("password", OF_NEW)
    assert "PBKDF2-SHA-256, iterations 1,000,000" == changed.parameters(family, default, new)
    assert "PBKDF2-SHA-256, iterations 7" == changed.parameters(family, held, new)
    assert "" == changed.parameters(family, default, side(OLD))


def test_another_family_is_refused_with_those_there_are() -> None:
    with pytest.raises(TollbarError, match="no such family of this build: `digets`") as caught:
        upgrade.studies(side(OLD), side(NEW), ["digets"], 4)
    assert caught.value.hint is not None
    assert "digest" in caught.value.hint


def asking(supported: Callable[[str, Mapping[str, Any]], bool]) -> Callable[..., Record]:
    """Return a `runner.ask` for builds that support the settings for which this is true."""

    def ask(command: object, task: Mapping[str, Any], **_: object) -> Record:
        spec = "old" if command == ("old",) else "new"
        setting = {**task["setting"], "choice": task["choice"], "op": task["op"]}
        return failed("no", Outcome.OK if supported(spec, setting) else Outcome.UNSUPPORTED)

    return ask


def build(name: str) -> Provider:
    """Return a build whose runner has its name."""
    return Provider(name, f"{name} 1", "runner", None, (name,), {})


UNSERVED = [
    (kind, name, asked)
    for kind, asked_of in questions.questions().items()
    for name, asked in asked_of.items()
    if name != "as" and asked.get("family", name) in families() and not families()[asked.get("family", name)].servers
    and "family" not in asked and name != "storage"
]  # fmt: skip


def study_of(name: str, asked: Mapping[str, Any]) -> studies.Study:
    """Return the study of both builds before anything is known of them."""
    text = wire.text_of(
        {
            "": {
                "question": "?",
                "family": name,
                "choices": asked["choices"],
                "providers": ["libcrypto"],
                "baseline": {"choice": asked["choices"][0]},
            },
            "vary": asked.get("vary", {}),
        }
    )
    return studies.read(name, text, where=name)


@pytest.mark.parametrize(("kind", "name", "asked"), UNSERVED, ids=lambda one: one if isinstance(one, str) else "")
def test_both_builds_are_asked_with_the_first_value_that_both_support(
    kind: str, name: str, asked: Mapping[str, Any]
) -> None:
    study = study_of(name, asked)
    for setting in study.family.settings.values():
        for value in setting.values or ():
            if setting.name in study.vary or value == setting.default:
                continue

            def supported(_: object, at: Mapping[str, Any], name: str = setting.name, value: Value = value) -> bool:
                return name not in at or at[name] == value

            vary, leave_out = with_shared(study, build("old"), build("new"), asking(supported))
            applied = [c for c in study.choices if setting.name in at_defaults(study.family, {"choice": c})]
            if vary:
                assert {setting.name: (value,)} == vary
                assert [] == leave_out
            else:
                assert not applied or setting.only or setting.unsupported
            # Settings that both support at the default stay.
            assert ({}, []) == with_shared(study, build("old"), build("new"), asking(lambda *_: True))


def test_a_default_that_one_build_alone_has_is_asked_too() -> None:
    """A new default is measured, and the shared value shows the change."""
    study = study_of("rsa-api", questions.questions()["package"]["rsa-api"])
    lacking_old = asking(lambda spec, at: spec == "new" or at.get("digest") == "implicit")
    vary, leave_out = with_shared(study, build("old"), build("new"), lacking_old)
    assert ({"digest": ("fetched", "implicit")}, []) == (vary, leave_out)


def test_a_choice_that_has_its_default_keeps_it() -> None:
    study = study_of("rsa-api", questions.questions()["package"]["rsa-api"])
    some = asking(lambda _, at: at["choice"] != "key-from-pem" or at.get("digest") == "implicit")
    vary, leave_out = with_shared(study, build("old"), build("new"), some)
    assert {"digest": ("fetched", "implicit")} == vary
    where = [one["where"] for one in leave_out]
    assert {"choice": "key-from-pem", "op": "sign", "digest": ["fetched"]} in where
    assert {"choice": "key-cached", "op": "verify", "digest": ["implicit"]} in where
    assert 6 == len(where)


def test_what_neither_build_has_is_said_once_and_what_was_asked_is_named() -> None:
    found = of(*pair("a", 1.0, lacks="both"), *pair("a", 1.0, lacks="both"), *pair("b", 1.1))
    missing = [line for line in upgrade_answer(found).missing if line.startswith("Neither")]
    assert 1 == len(missing)
    (one,) = {one.study.about.name for one in found.changes}
    about = replace(found.judged.studies[0].about, name="rsa-api", vary={"op": ("sign",), "digest": ("implicit",)})
    assert one
    assert ["digest"] == upgrade.shared_settings("package", replace(about, family=families()["rsa-api"]))
