"""Roles on the command line and in studies: syntax, refusals, and precedence."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from patience import PATIENCE_S
from roles_lab import STUDY, TOLLBAR
from tollbar import study
from tollbar.catalog.servers.places import RoleMachine, read_places
from tollbar.cli.options import Options, places_for
from tollbar.core.errors import TollbarError

ROLES = Path(__file__).parent.parent / "docs" / "roles.md"


def test_roles_are_read() -> None:
    assert read_places(["web=10.0.0.1,client=10.0.0.2", "directory=10.0.0.3+10.0.0.4 by a b"]) == (
        RoleMachine("web", "10.0.0.1", ("ssh", "-T", "-o", "BatchMode=yes", "10.0.0.1")),
        RoleMachine("client", "10.0.0.2"),
        RoleMachine("directory", "10.0.0.3", ("a", "b"), ("10.0.0.4",)),
    )
    assert read_places(["web=10.0.0.1 by a -o b,c, client=10.0.0.2"]) == (
        RoleMachine("web", "10.0.0.1", ("a", "-o", "b,c")),
        RoleMachine("client", "10.0.0.2"),
    )


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("proxy=10.0.0.1", "no component has the role `proxy`"),
        ("web=here", "`here` is not an IPv4 address"),
        ("web=10.0.0.1+2001:db8::7", "`2001:db8::7` is not an IPv4 address"),
        ("web=10.0.0.1,web=10.0.0.2", "the role `web` is given twice"),
        ("client=10.0.0.1 by ssh x", "the role `client` cannot have a command"),
        ("database=10.0.0.1", "needs the address of this machine"),
    ],
)
def test_roles_that_cannot_be(said: str, expected: str) -> None:
    with pytest.raises(TollbarError, match=expected):
        read_places([said])


def test_a_study_without_servers_has_no_roles(tmp_path: Path) -> None:
    words = [str(TOLLBAR), "run", "digests", "--roles", "web=10.0.0.1", "--runs", str(tmp_path / "runs")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (2, False) == (done.returncode, (tmp_path / "runs").exists())
    assert "needs a study with servers" in done.stderr


@pytest.mark.parametrize(
    ("said", "where", "expected"),
    [
        ('web = "10.0.0.1"\nproxy = "10.0.0.2"', "one.toml", "`roles.proxy`: no such key"),
        ("web = 7", "one.toml", "`roles.web`: Input should be a valid string"),
        ('web = "here"', "one.toml: `roles.web`", "`here` is not an IPv4 address"),
        ('web = "10.0.0.1 by ssh \'x"', "one.toml: `roles.web`", "`ssh 'x` is not a command: No closing quotation"),
        ('client = "10.0.0.1 by ssh x"', "one.toml: `roles.client`", "the role `client` cannot have a command"),
        ('database = "10.0.0.1"', "one.toml: `roles`", "needs the address of this machine"),
    ],
)
def test_roles_of_a_study_that_cannot_be(said: str, where: str, expected: str) -> None:
    with pytest.raises(TollbarError) as error:
        study.read("one", f"{STUDY}[roles]\n{said}\n", where="one.toml")
    assert (where, True) == (error.value.where, expected in error.value.what)
    assert "\n" not in error.value.what


def test_a_study_says_roles_in_the_words_of_the_command_line() -> None:
    text = re.findall(r"<!-- roles -->\n```toml\n(.*?)```", ROLES.read_text("utf-8"), re.DOTALL)[0]
    one = study.read("one", STUDY + text, where="one.toml")
    assert one.places == read_places(["client=192.0.2.1,web=192.0.2.7 by ssh bench@192.0.2.7"])
    several = study.read("one", STUDY + '[roles]\nweb = "10.0.0.3+10.0.0.4"', where="one.toml")
    assert several.places == read_places(["web=10.0.0.3+10.0.0.4"])
    assert () == study.read("one", STUDY, where="one.toml").places


def test_a_run_has_the_same_roles_for_all_studies() -> None:
    one, other, none = (
        study.read(name, STUDY + said, where=name)
        for name, said in (("one", '[roles]\nweb = "10.0.0.1"'), ("other", '[roles]\nweb = "10.0.0.2"'), ("none", ""))
    )
    assert one.places == places_for([one, one], Options())
    assert () == places_for([none, none], Options())
    for pair, names in (([one, other], "one and other"), ([one, none], "one and none")):
        with pytest.raises(TollbarError, match=f"the studies {names} have different `.roles.`"):
            places_for(pair, Options())
    told = Options(roles=("database=10.0.0.9,client=10.0.0.8",))
    assert read_places(told.roles) == places_for([one, other], told)


def test_a_study_with_roles_is_no_fleets(tmp_path: Path) -> None:
    """A node of a fleet measures the whole by itself."""
    (tmp_path / "one.toml").write_text(STUDY + '[roles]\nweb = "10.0.0.1"')
    words = [str(TOLLBAR), "run", "one.toml", "--cluster", "ray"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, cwd=tmp_path)
    assert (2, False) == (done.returncode, (tmp_path / "runs").exists())
    assert "`roles` cannot be combined with `--cluster`" in " ".join(done.stderr.split())


def test_a_plan_refuses_a_role_that_no_component_has() -> None:
    said = ",".join(f"web{number}=10.0.0.1" for number in range(5_000))
    done = subprocess.run([str(TOLLBAR), "plan", "digests", "--roles", said], capture_output=True, text=True)
    assert (2, "") == (done.returncode, done.stdout)
    assert "no component has the role `web0`" in done.stderr
    assert "known: client, web, database, directory" in done.stderr
