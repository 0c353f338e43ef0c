"""Control groups: location, rights to create them, and removal after any end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from patience import PATIENCE_S
from tollbar.core import control_groups, machine
from tollbar.lab.servers import leftovers
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox

BURN = "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done"
needs_groups = pytest.mark.skipif(control_groups.usable() is None, reason="no control group can be made here")


@pytest.mark.parametrize(
    ("mounts", "at"),
    [
        ("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "/sys/fs/cgroup"),
        (
            "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
            "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
            "/sys/fs/cgroup/unified",
        ),
        ("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", None),
    ],
)
def test_the_unified_hierarchy_is_found_where_it_is_mounted(mounts: str, at: str | None, tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(mounts)
    assert (Path(at) if at else None) == control_groups._mounted(tmp_path / "mounts")


def test_groups_are_known_by_the_name_of_a_run(tmp_path: Path) -> None:
    for name in (
        "tollbar-0123abcd.1",
        "below/tollbar-0123abcd.12",
        "tollbar-0123abcd",
        "tollbar-try-0123abcd",
        "web.1",
    ):
        (tmp_path / name).mkdir(parents=True)
    expected = [(tmp_path / name, "tollbar-0123abcd") for name in ("below/tollbar-0123abcd.12", "tollbar-0123abcd.1")]
    assert expected == control_groups.all_of_lab(tmp_path)


def test_the_fingerprint_names_the_method() -> None:
    expected = "control groups" if control_groups.usable() else "processes"
    assert expected == machine.fingerprint()["accounts"]
    assert ["accounts: control groups / processes"] == machine.differences(
        {"accounts": "control groups"}, {"accounts": "processes"}
    )


def until(found: Callable[[], object]) -> None:
    """Wait for an expected condition."""
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def guarded(sandbox: Sandbox, script: str) -> Guarded:
    """Return a shell under a guard, started like a component."""
    work_dir = sandbox.work_dir("web")
    words = ["/bin/sh", "-c", script]
    return Guarded(words, sandbox=sandbox, work_dir=work_dir, log=sandbox.log_of(work_dir, "web"), is_accounted=True)


def own_groups(sandbox: Sandbox) -> list[Path]:
    return [group for group, run in control_groups.all_of_lab() if run == sandbox.directory.name]


@needs_groups
def test_a_component_has_a_group_that_goes_with_it() -> None:
    with Sandbox() as sandbox:
        one, other = (guarded(sandbox, f"{BURN}; exec sleep 60") for _ in range(2))
        until(lambda: [2, 2] == [len(control_groups.processes(group)) for group in own_groups(sandbox)])
        one.end()
        assert 1 == len(own_groups(sandbox)), "the group of what was ended is removed"
        other.process.kill()
        other.end()
        assert [] == own_groups(sandbox), "also where its guard was killed"
    assert [] == own_groups(sandbox)


@needs_groups
def test_a_run_that_is_killed_leaves_no_group() -> None:
    """The lab is killed alone, and together with its guards: the keeper removes the groups then."""
    for kills_guards in (False, True):
        with lab() as child:
            name = until_named(child)
            guards = [pid for group in of(name) for pid in control_groups.processes(group)]
            assert guards
            os.kill(child.pid, signal.SIGSTOP)
            for pid in guards if kills_guards else ():
                os.kill(pid, signal.SIGKILL)
            child.kill()
        until(lambda name=name: not of(name))


@needs_groups
def test_a_group_that_everything_left_is_found_and_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    own = control_groups.usable()
    assert own is not None
    group = own / "tollbar-0000dead.1"
    group.mkdir()
    try:
        assert group not in {one.directory for one in leftovers.find()}, "one that was just made may be a run's"
        monkeypatch.setattr(leftovers, "MADE_LIMIT_S", -1.0)
        assert leftovers.Leftover(group, (), (group,)) in leftovers.find()
        leftovers.sweep()
        assert not group.exists()
    finally:
        control_groups.remove(group)


LAB = """
import time
from test_control_groups import guarded
from tollbar.lab.servers.sandbox import Sandbox
with Sandbox() as sandbox:
    guarded(sandbox, "exec sleep 600")
    print(sandbox.directory.name, flush=True)
    time.sleep(600)
"""


def lab() -> subprocess.Popen[str]:
    """Return another lab with one component."""
    return subprocess.Popen([sys.executable, "-c", LAB], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)


def until_named(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    name = child.stdout.readline().strip()
    until(lambda: any(len(control_groups.processes(group)) == 2 for group in of(name)))
    return name


def of(name: str) -> list[Path]:
    return [group for group, run in control_groups.all_of_lab() if run == name]
