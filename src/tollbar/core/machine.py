"""The machine: what it is, and how quiet it is right now."""

from __future__ import annotations

import gzip
import os
import platform
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tollbar.core import control_groups

# Instruction sets that change what a choice costs by more than any other property of the processor.
FLAGS_THAT_MATTER = (
    "aes", "pclmulqdq", "sha_ni", "avx", "avx2", "avx512f", "avx512ifma", "vaes", "vpclmulqdq", "gfni", "bmi2", "adx",
)  # fmt: skip


def fingerprint() -> dict[str, Any]:
    """What this machine is, as far as it bears on costs; runs that differ here are compared only on request."""
    info = _read("/proc/cpuinfo")
    flags = _field(info, "flags").split() or _field(info, "Features").split()
    return {
        "cpu": _field(info, "model name") or platform.machine(),
        "family": f"{_field(info, 'cpu family')}/{_field(info, 'model')}/{_field(info, 'stepping')}",
        "flags": [flag for flag in FLAGS_THAT_MATTER if flag in flags],
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "interrupts_apart": interrupts_apart(),
        "accounts": control_groups.accounts(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or NOT_STATED,
        "virtual": "hypervisor" in flags,
        "memory_bytes": _memory_bytes(),
        "mitigations": _mitigations(),
        "hyperthreads": hyperthreads(),
        **({"simulated": "a node that is made up on this machine"} if os.environ.get(SIMULATED) else {}),
    }


SIMULATED = "TOLLBAR_SIMULATED"
"""The environment variable by which a run knows that its node is made up; the machine is the same all the same."""


def interrupts_apart(root: Path = Path("/")) -> bool | str:
    """Whether the kernel keeps the time of interrupts out of the CPU time of the process that was interrupted.

    On loopback a packet is received in an interrupt of its sender: this decides who pays for it.
    """
    configuration = _kernel_configuration(root)
    if configuration:
        return "\nCONFIG_IRQ_TIME_ACCOUNTING=y\n" in f"\n{configuration}\n"
    fields = _read(str(root / "proc/stat")).split("\n", 1)[0].split()[1:]
    ticks = [int(field) for field in fields]
    if len(ticks) <= IRQ or sum(ticks) < ENOUGH_TICKS:
        return NOT_STATED
    # A kernel that only samples, at each tick, what it has interrupted never finds a hard interrupt, and counts none.
    return ticks[IRQ] > 0


# The place of hard interrupts in the first line of /proc/stat.
IRQ = 5
# Of all cores: some minutes, in which a kernel that counts interrupts has counted some.
ENOUGH_TICKS = 30_000


# What a kernel without a configuration to read tells by what it has counted, which is nothing when it was just started.
KNOWN_LATER = ("interrupts_apart", "hyperthreads")
NOT_STATED = "not stated"


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """In what two fingerprints differ, a line each.

    What one of them could not know yet is no difference: it would make a machine another one minutes after its start.
    """
    names = sorted(set(one) | set(other))
    return [
        f"{name}: {one.get(name)} / {other.get(name)}"
        for name in names
        if one.get(name) != other.get(name)
        and name != "simulated"
        and not (name in KNOWN_LATER and NOT_STATED in (one.get(name, NOT_STATED), other.get(name, NOT_STATED)))
    ]


def load() -> float:
    """How many processes were running or wanted to, on average over the last minute."""
    return os.getloadavg()[0]


def busy_cores(for_s: float = 0.25) -> float:
    """How many cores are busy, over so many seconds in which this process sleeps: what other programs use.

    The load average would not do: it has the last minute in it, and with it what Tollbar itself did then.
    """
    before = _busy_ticks()
    time.sleep(for_s)
    return (_busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / for_s


def _busy_ticks() -> int:
    """What all cores spent on programs and interrupts since boot, in ticks."""
    fields = [int(field) for field in _read("/proc/stat").split("\n", 1)[0].split()[1:8]]
    # User, nice, system; not idle, nor waiting for a disk; interrupts, hard and soft.
    return sum(fields[:3]) + sum(fields[5:7])


def steal_ns() -> int:
    """CPU time that the hypervisor gave to others since boot, all cores, in nanoseconds."""
    fields = _read("/proc/stat").split("\n", 1)[0].split()
    ticks = int(fields[8]) if len(fields) > 8 else 0
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


CORES = frozenset(os.sched_getaffinity(0))
"""Those that this process may use, and what it measures: read before it keeps off one of them."""


def lacks_cores(threads: int) -> str | None:
    """Why so many threads cannot have a core each; None: they can."""
    if threads <= len(CORES):
        return None
    has = "1 core" if len(CORES) == 1 else f"{len(CORES)} cores"
    named = ", ".join(map(str, sorted(CORES)))
    return f"{threads} threads take a core each, and {has} may be used here ({named})"


def cores_for(threads: int, core: int) -> tuple[int, ...]:
    """A core for each of so many threads: the measuring core `core`, then others, the last first.

    Those that are no hyperthread of one taken already go before those that are.
    """
    taken: list[int] = [core]
    left = sorted(CORES - {core}, reverse=True)
    while left and len(taken) < threads:
        taken.append(next((one for one in left if not siblings(one).intersection(taken)), left[0]))
        left.remove(taken[-1])
    return tuple(taken)


def siblings(core: int) -> frozenset[int]:
    """The cores that are hyperthreads of one physical core with this one, itself among them, as the kernel knows them.

    A virtual machine may not be told.
    """
    said = _read(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").strip()
    found: set[int] = {core}
    for part in said.split(",") if said else ():
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return frozenset(found)


def hyperthreads() -> list[str]:
    """The cores that may be used and that are hyperthreads of one another, as the kernel knows them: `0,1`."""
    found = (siblings(core) & CORES for core in CORES)
    return sorted({",".join(map(str, sorted(together))) for together in found if len(together) > 1})


def measuring_core() -> int | None:
    """The core that runners are kept on: the last, because interrupts tend to the first. None where there is one."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[-1] if len(cores) > 1 else None


def client_core(core: int | None = None) -> int:
    """Where load clients are that are not on the measuring core `core`: the last that the lab may use beside it."""
    cores = os.sched_getaffinity(0)
    return max(cores - {core} or cores)


def starting_cores(core: int | None) -> tuple[int | None, ...]:
    """Where what will be measured on `core` becomes ready and warm: there, and on another core of the same memory.

    What a process has touched first is in the memory of the core that it was on then, and stays there.
    """
    if core is None:
        return (None,)
    other = client_core(core)
    return (core, other) if other != core and _memory_of(core) == _memory_of(other) else (core,)


def _memory_of(core: int) -> list[str]:
    """The kernel's names of the memory that is nearest to a core; none where it does not tell several apart."""
    return sorted(node.name for node in Path(f"/sys/devices/system/cpu/cpu{core}").glob("node[0-9]*"))


def keep_off(core: int | None) -> None:
    """Moves this process to the other cores, so that its own work is not part of what it measures."""
    if core is not None:
        others = os.sched_getaffinity(0) - {core}
        if others:
            os.sched_setaffinity(0, others)


def _kernel_configuration(root: Path) -> str:
    """How the kernel was built, if it says so."""
    with suppress(OSError, EOFError), gzip.open(root / "proc/config.gz", "rt", encoding="utf-8") as file:
        return file.read()
    return _read(str(root / f"boot/config-{platform.release()}"))


@dataclass(frozen=True, slots=True)
class Limit:
    """How much there is of something here, and what says so."""

    amount: float
    by: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What this process, and all that it starts, may use at most."""

    cores: Limit
    """Cores' worth of CPU time; a quota may be a fraction."""
    memory: Limit
    """Bytes that may still be taken before others are swapped out or ended."""


def limits(root: Path = Path("/"), cores: int | None = None) -> Limits:
    """The least of what the machine has and of what the control groups up the path allow, of version 2 and 1.

    `cores` are those that the process may run on, which its cpuset has part in; None: those of this process.
    """
    found = [Limit(cores or len(os.sched_getaffinity(0)), "the cores that this process may run on, by its cpuset")]
    for folder, name in _groups("cpu", root):
        quota, period = [*_read(str(folder / "cpu.max")).split(), "", ""][:2]
        if not quota:
            quota, period = (_read(str(folder / f"cpu.cfs_{part}_us")).strip() for part in ("quota", "period"))
        # Without a quota it is `max`, or -1.
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(Limit(int(quota) / int(period), f"the quota of the control group {name}"))
    return Limits(min(found, key=_amount), _memory_limit(root))


def available_memory_bytes(root: Path = Path("/")) -> int:
    """What a program may still take before others are swapped out or ended: of the machine, and of its container."""
    return int(_memory_limit(root).amount)


def _memory_limit(root: Path) -> Limit:
    found = [Limit(_memory_bytes("MemAvailable", root), "what is free on the machine")]
    for folder, name in _groups("memory", root):
        # What is kept of files is given back when a program needs the memory.
        for limit, taken in (("memory.max", "anon"), ("memory.limit_in_bytes", "total_rss")):
            text = _read(str(folder / limit)).strip()
            if text.isdecimal():
                used = re.search(rf"^{taken} (\d+)$", _read(str(folder / "memory.stat")), re.MULTILINE)
                free = max(0, int(text) - (int(used[1]) if used else 0))
                found.append(Limit(free, f"what is free in the control group {name}"))
    return min(found, key=_amount)


def _amount(limit: Limit) -> float:
    return limit.amount


def _groups(controller: str, root: Path) -> Iterator[tuple[Path, str]]:
    """The folders of this process's control groups that have a controller, and their names, from its own up.

    Inside a container its own group is the root of what can be seen.
    """
    for line in _read(str(root / "proc/self/cgroup")).splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mounted = root / "sys/fs/cgroup" / controllers
        path = PurePosixPath(group)
        for part in (path, *path.parents):
            yield mounted / str(part).lstrip("/"), str(part)


def _memory_bytes(field: str = "MemTotal", root: Path = Path("/")) -> int:
    match = re.search(rf"{field}:\s+(\d+) kB", _read(str(root / "proc/meminfo")))
    return int(match.group(1)) * 1024 if match else 0


def _mitigations() -> list[str]:
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    names = sorted(folder.iterdir()) if folder.is_dir() else []
    return [f"{name.name}: {text}" for name in names if (text := _read(str(name)).strip()) != "Not affected"]


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
