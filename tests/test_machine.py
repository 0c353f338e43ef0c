"""Facts about the machine, and the part of it that a program may use."""

from __future__ import annotations

import gzip
import os
import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from tollbar.core import machine
from tollbar.core.machine import Limit

MIB = 1024**2

IS_SET, IS_NOT = "CONFIG_IRQ_TIME_ACCOUNTING=y", "# CONFIG_IRQ_TIME_ACCOUNTING is not set"
COUNTED, NOT_COUNTED = "cpu  40395 0 3894 128834 2158 17 135 25 0 0", "cpu  40395 0 3894 128834 2158 0 135 25 0 0"
YOUNG = "cpu  395 0 34 1834 58 0 1 2 0 0"

# The kernel's configuration in /proc and in /boot, the first line of /proc/stat, and whether interrupts are counted
# separately.
KERNELS: dict[str, tuple[str | None, str | None, str, bool | str]] = {
    "it says so": (IS_SET, None, NOT_COUNTED, True),
    "it says that it does not": (IS_NOT, None, COUNTED, False),
    "its file says so": (None, IS_SET, NOT_COUNTED, True),
    "its file says that it does not": (None, IS_NOT, COUNTED, False),
    "it has counted some": (None, None, COUNTED, True),
    "it has counted none": (None, None, NOT_COUNTED, False),
    "it has just been started": (None, None, YOUNG, "not stated"),
    "it says nothing": (None, None, "", "not stated"),
}


@pytest.mark.parametrize("what", KERNELS)
def test_whether_interrupts_count_apart_is_found_out(what: str, tmp_path: Path) -> None:
    in_proc, in_boot, stat, expected = KERNELS[what]
    for folder in ("proc", "boot"):
        (tmp_path / folder).mkdir()
    if in_proc:
        (tmp_path / "proc/config.gz").write_bytes(gzip.compress(f"CONFIG_SMP=y\n{in_proc}\nCONFIG_X=m\n".encode()))
    if in_boot:
        (tmp_path / f"boot/config-{platform.release()}").write_text(f"{in_boot}\n")
    (tmp_path / "proc/stat").write_text(f"{stat}\n")
    assert expected == machine.interrupts_apart(tmp_path)


def test_machines_that_count_otherwise_differ() -> None:
    here = machine.fingerprint()
    assert here["interrupts_apart"] in (True, False, "not stated")
    known, other = ({**here, "interrupts_apart": at} for at in (True, "unlike any"))
    assert ["interrupts_apart: True / unlike any"] == machine.differences(known, other)


@pytest.mark.parametrize("now", [True, False, "not stated"])
def test_what_is_not_known_yet_is_no_difference(now: bool | str) -> None:
    """A machine that was just started does not know how it counts interrupts; minutes later it is the same machine."""
    young, here = ({"cpu": "one", "interrupts_apart": at} for at in ("not stated", now))
    assert [] == machine.differences(young, here)
    assert [] == machine.differences(here, young)
    assert ["cpu: one / another"] == machine.differences(young, {**here, "cpu": "another"})


def test_a_machine_that_counts_interrupts_apart_is_not_one_that_does_not() -> None:
    assert ["interrupts_apart: True / False"] == machine.differences(
        {"interrupts_apart": True}, {"interrupts_apart": False}
    )


def test_a_busy_machine_is_told_by_what_others_use_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seconds of work in a second of waiting are two cores; idle time and disk waits are not work."""
    hertz = os.sysconf("SC_CLK_TCK")
    lines = iter(["cpu  100 0 50 9000 70 1 2 30 0 0", f"cpu  {100 + hertz} 0 {50 + hertz} 9900 990 1 2 99 0 0"])
    monkeypatch.setattr(machine, "_read", lambda path: next(lines))
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: None)
    assert pytest.approx(2.0) == machine.busy_cores(1.0)


# The content of /proc/self/cgroup, files of a group's folder, and the quota in cores, of four.
QUOTAS = {
    "version 2": ("0::/mine", {"sys/fs/cgroup/mine/cpu.max": "150000 100000"}, 1.5),
    "none": ("0::/mine", {"sys/fs/cgroup/mine/cpu.max": "max 100000"}, 4),
    "further up": (
        "0::/a/b",
        {"sys/fs/cgroup/a/b/cpu.max": "max 100000", "sys/fs/cgroup/a/cpu.max": "50000 100000"},
        0.5,
    ),
    "the least": ("0::/a/b", {"sys/fs/cgroup/a/b/cpu.max": "100000 100000", "sys/fs/cgroup/a/cpu.max": "2 1"}, 1),
    "version 1": (
        "3:cpu,cpuacct:/mine",
        {
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu,cpuacct/mine/cpu.cfs_period_us": "100000",
        },
        2,
    ),
    "version 1 without": ("3:cpu:/", {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, 4),
    "more than there are": ("0::/", {"sys/fs/cgroup/cpu.max": "900000 100000"}, 4),
}


def machine_of(folder: Path, files: Mapping[str, str]) -> Path:
    """Return the root of a machine whose kernel has these files."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("case", QUOTAS)
def test_the_quota_is_the_least_up_the_path(case: str, tmp_path: Path) -> None:
    group, files, expected = QUOTAS[case]
    meminfo = "MemTotal: 8192 kB\nMemAvailable: 4096 kB\n"
    root = machine_of(tmp_path, {**files, "proc/self/cgroup": f"{group}\n", "proc/meminfo": meminfo})
    found = machine.limits(root, cores=4)
    assert expected == found.cores.amount
    assert ("cpuset" in found.cores.by) == (expected == 4)
    assert Limit(4 * MIB, "the free memory of the machine") == found.memory


def test_memory_of_a_group_is_what_is_left_of_it(tmp_path: Path) -> None:
    """Programs' memory counts, the file cache does not; an outer group may have less."""
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        "proc/meminfo": "MemTotal: 9999999 kB\nMemAvailable: 9999999 kB\n",
        "sys/fs/cgroup/a/b/memory.max": str(64 * MIB),
        "sys/fs/cgroup/a/b/memory.stat": f"anon {16 * MIB}\nfile {40 * MIB}\n",
        "sys/fs/cgroup/a/memory.max": str(50 * MIB),
        "sys/fs/cgroup/a/memory.stat": f"anon {20 * MIB}\nfile 0\n",
    }
    found = machine.limits(machine_of(tmp_path, files), cores=1).memory
    assert Limit(30 * MIB, "the free memory of the control group /a") == found
