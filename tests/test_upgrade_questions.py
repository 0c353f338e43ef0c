"""What an upgrade asks of both builds, and what they are held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders import row
from conftest import here, lacking
from tollbar import beds, plan, upgrading, workloads
from tollbar import study as studies
from tollbar.errors import TollbarError
from tollbar.families import Value, families
from tollbar.libraries import Provider, open_provider
from tollbar.plan.heats import blocks
from tollbar.upgrading import Thing, changed, questions
from upgrade_lab import NEW, OLD, side


def test_all_four_cells_meet_in_one_heat() -> None:
    """Old and new, by default and held: in each block together."""
    other = open_provider("libcrypto:psycopg")
    if not isinstance(other, Provider):
        lacking("there is no second libcrypto here")
    sides = Thing("a", "libcrypto", open_provider("libcrypto")), Thing("b", "libcrypto", other)  # type: ignore[arg-type]
    (asked,) = upgrading.studies(*sides, ["tls"], 4)
    (planned,) = plan.make([asked], seed=1).studies
    assert 4 == len(planned.cells)
    for heats in blocks(planned, 1, 4):
        assert any(len({visit.cell.key for visit in heat.visits}) == 4 for heat in heats)


@pytest.mark.parametrize("bed", ["nginx", "httpd"])
def test_a_server_as_shipped_is_told_nothing_but_its_versions(bed: str) -> None:
    """No group, suite or session by default; held, one of each but for sessions, which stay the server's own."""
    here(bed)
    text = SHOWN.format(bed=bed)
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
beds     = ["{bed}"]

[load.request]
get = "/bytes/4096"
"""


@pytest.mark.parametrize("kind", questions.questions())
def test_what_is_asked_is_there_to_be_asked(kind: str) -> None:
    """Each question is a study of a family that there is, whose choices it has: of libraries, servers and runtimes."""
    bed = beds.all_beds().get(kind)
    thing = defaulting(kind, OF_OLD)
    if bed is not None:
        here(kind)
        found = beds.find(bed)
        assert isinstance(found, beds.Installed)
        thing = replace(thing, bed=found, provider=open_provider(bed.runs_on[0]))  # type: ignore[arg-type]
    for one in upgrading.studies(thing, thing, (), 4):
        assert one.family.name in families()
        assert one.choices


def test_a_thing_that_is_asked_nothing_is_said() -> None:
    """With what can be asked."""
    with pytest.raises(TollbarError, match="a build of mariadb is asked nothing yet") as caught:
        upgrading.studies(defaulting("mariadb", OF_OLD), defaulting("mariadb", OF_NEW), (), 4)
    assert "postgresql" in (caught.value.hint or "")


# What builds take by themselves, as their runners say it.
OF_OLD = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 600_000}, "sign": {"choice": "rsa", "bits": 2048}}
OF_NEW = {"hash": {"choice": "pbkdf2-sha-256", "iterations": 1_000_000}, "sign": {"choice": "rsa", "bits": 3072}}


def defaulting(kind: str, defaults: Mapping[str, object], spec: str = "libcrypto") -> Thing:
    """A build whose runner says what it takes by itself."""
    system = open_provider("libcrypto")
    assert isinstance(system, Provider)
    return Thing(spec, kind, replace(system, spec=spec, receipt={"defaults": defaults}))


def test_both_are_held_to_what_the_old_one_takes_by_itself() -> None:
    """So that the parts are of what its callers have; with the unit that a study says."""
    old = defaulting("password", {"hash": {"choice": "argon2id", "memory": 102400 * 1024, "passes": 2, "lanes": 8}})
    (asked,) = upgrading.studies(old, defaulting("password", OF_NEW, "libcrypto:psycopg"), (), 4)
    assert ("by-default", "argon2id") == asked.choices
    assert {"op": ("hash",), "memory": (102400 * 1024,), "passes": (2,), "lanes": (8,)} == asked.vary
    assert {"provider": ("libcrypto", "libcrypto:psycopg"), "choice": ("by-default", "argon2id")} == asked.factors
    assert ("by-default", "rsa") == upgrading.studies(defaulting("java", OF_OLD), old, ["keys"], 4)[0].choices


def test_what_a_build_takes_by_itself_is_said_beside_the_parts() -> None:
    """By the family's words; held, it is what the cell says."""
    family = families()["defaults"]
    cells: Mapping[str, Value] = {"op": "hash", "provider": OLD}
    default, held = row({**cells, "choice": "by-default"}), row({**cells, "choice": "pbkdf2-sha-256", "iterations": 7})
    new = defaulting("password", OF_NEW)
    assert "PBKDF2-SHA-256, iterations 1,000,000" == changed.parameters(family, default, new)
    assert "PBKDF2-SHA-256, iterations 7" == changed.parameters(family, held, new)
    assert "" == changed.parameters(family, default, side(OLD))


def test_another_family_is_refused_with_those_there_are() -> None:
    """One line that names the nearest."""
    with pytest.raises(TollbarError, match="no such family to ask of it: `digets`") as caught:
        upgrading.studies(side(OLD), side(NEW), ["digets"], 4)
    assert caught.value.hint is not None
    assert "digest" in caught.value.hint
