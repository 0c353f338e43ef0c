"""The machine: its properties, its cores and limits, and its current load."""

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

# Instruction sets that change the cost of a choice more than any other property of the processor.
FLAGS_THAT_MATTER = (
    "aes", "pclmulqdq", "sha_ni", "avx", "avx2", "avx512f", "avx512ifma", "vaes", "vpclmulqdq", "gfni", "bmi2", "adx",
)  # fmt: skip


def fingerprint() -> dict[str, Any]:
    """Return the properties of this machine that affect costs.

    Runs that differ in them are compared only on request.
    """
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
        **({"simulated": "a simulated node on this machine"} if os.environ.get(SIMULATED) else {}),
    }


SIMULATED = "TOLLBAR_SIMULATED"
"""Environment variable that marks a simulated node; its machine is this one."""


def interrupts_apart(root: Path = Path("/")) -> bool | str:
    """Return whether the kernel excludes interrupts from the CPU time of the interrupted process.

    It decides which side pays for a packet on loopback, which is received in an interrupt of its sender.
    """
    configuration = _kernel_configuration(root)
    if configuration:
        return "\nCONFIG_IRQ_TIME_ACCOUNTING=y\n" in f"\n{configuration}\n"
    fields = _read(str(root / "proc/stat")).split("\n", 1)[0].split()[1:]
    ticks = [int(field) for field in fields]
    if len(ticks) <= IRQ or sum(ticks) < ENOUGH_TICKS:
        return NOT_STATED
    # A kernel that accounts by ticks alone never attributes a tick to a hard interrupt, so its count is zero.
    return ticks[IRQ] > 0


# Index of hard interrupts in the first line of /proc/stat.
IRQ = 5
# Total ticks of all cores, some minutes: a kernel that accounts interrupts has counted some by then.
ENOUGH_TICKS = 30_000


# Properties that may be unknown, for example shortly after boot without a readable kernel configuration.
KNOWN_LATER = ("interrupts_apart", "hyperthreads")
NOT_STATED = "not stated"


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the differences of two fingerprints, one line each.

    A property that one of them could not know yet does not count, or a machine would differ from itself minutes after
    its boot.
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
    """Return the mean number of running and waiting processes over the last minute."""
    return os.getloadavg()[0]


def busy_cores(for_s: float = 0.25) -> float:
    """Return the number of cores that other programs use, measured over `for_s` seconds while this process sleeps.

    The load average is unsuitable, because it includes Tollbar's own work in the last minute.
    """
    before = _busy_ticks()
    time.sleep(for_s)
    return (_busy_ticks() - before) / os.sysconf("SC_CLK_TCK") / for_s


def _busy_ticks() -> int:
    """Return the ticks that all cores have spent on programs and interrupts since boot."""
    fields = [int(field) for field in _read("/proc/stat").split("\n", 1)[0].split()[1:8]]
    # User, nice and system, then hard and soft interrupts; idle and waiting for a disk (3 and 4) do not count.
    return sum(fields[:3]) + sum(fields[5:7])


def steal_ns() -> int:
    """Return the CPU time that the hypervisor gave to others since boot, over all cores, in nanoseconds."""
    fields = _read("/proc/stat").split("\n", 1)[0].split()
    ticks = int(fields[8]) if len(fields) > 8 else 0
    return ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


CORES = frozenset(os.sched_getaffinity(0))
"""Cores that this process may use and measure, read at import, before it leaves one of them."""


def lacks_cores(threads: int) -> str | None:
    """Return why `threads` threads cannot have a core each, or None if they can."""
    if threads <= len(CORES):
        return None
    has = "1 core" if len(CORES) == 1 else f"{len(CORES)} cores"
    named = ", ".join(map(str, sorted(CORES)))
    return f"{threads} threads need a core each; {has} can be used here ({named})"


def cores_for(threads: int, core: int) -> tuple[int, ...]:
    """Return a core for each of `threads` threads: the measuring core `core`, then others, the last first.

    Hyperthreads of a core that is already used come last.
    """
    taken: list[int] = [core]
    left = sorted(CORES - {core}, reverse=True)
    while left and len(taken) < threads:
        taken.append(next((one for one in left if not siblings(one).intersection(taken)), left[0]))
        left.remove(taken[-1])
    return tuple(taken)


def siblings(core: int) -> frozenset[int]:
    """Return the hyperthreads of this core's physical core, including itself, as the kernel knows them.

    A virtual machine may not expose them.
    """
    said = _read(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").strip()
    found: set[int] = {core}
    for part in said.split(",") if said else ():
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    return frozenset(found)


def hyperthreads() -> list[str]:
    """Return the usable cores that share a physical core, as the kernel knows them, for example `0,1`."""
    found = (siblings(core) & CORES for core in CORES)
    return sorted({",".join(map(str, sorted(together))) for together in found if len(together) > 1})


def measuring_core() -> int | None:
    """Return the core for runners: the last, because interrupts prefer the first. None if there is only one core."""
    cores = sorted(os.sched_getaffinity(0))
    return cores[-1] if len(cores) > 1 else None


def client_core(core: int | None = None) -> int:
    """Return the core for load clients: the last one of the lab other than the measuring core `core`."""
    cores = os.sched_getaffinity(0)
    return max(cores - {core} or cores)


def starting_cores(core: int | None) -> tuple[int | None, ...]:
    """Return the cores to start and warm up a process of `core` on: `core`, and another core of the same memory node.

    Memory stays in the node of the core that first touched it.
    """
    if core is None:
        return (None,)
    other = client_core(core)
    return (core, other) if other != core and _memory_of(core) == _memory_of(other) else (core,)


def _memory_of(core: int) -> list[str]:
    """Return the kernel's names of the memory nodes nearest to a core; empty if it does not distinguish several."""
    return sorted(node.name for node in Path(f"/sys/devices/system/cpu/cpu{core}").glob("node[0-9]*"))


def keep_off(core: int | None) -> None:
    """Move this process to the other cores, so that its own work is not measured."""
    if core is not None:
        others = os.sched_getaffinity(0) - {core}
        if others:
            os.sched_setaffinity(0, others)


def _kernel_configuration(root: Path) -> str:
    """Return the kernel's build configuration; empty if it is not available."""
    with suppress(OSError, EOFError), gzip.open(root / "proc/config.gz", "rt", encoding="utf-8") as file:
        return file.read()
    return _read(str(root / f"boot/config-{platform.release()}"))


@dataclass(frozen=True, slots=True)
class Limit:
    """Amount of a resource, and the source of that limit."""

    amount: float
    by: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Greatest resources that this process and its children may use."""

    cores: Limit
    """CPU time in cores; a quota may be a fraction."""
    memory: Limit
    """Bytes that can still be allocated before processes are swapped out or killed."""


def limits(root: Path = Path("/"), cores: int | None = None) -> Limits:
    """Return the lowest limits of the machine and of the control groups up the path, of version 2 and 1.

    `cores` is the number of cores that the cpuset allows; None: those of this process.
    """
    found = [Limit(cores or len(os.sched_getaffinity(0)), "the cores that this process may run on, by its cpuset")]
    for folder, name in _groups("cpu", root):
        quota, period = [*_read(str(folder / "cpu.max")).split(), "", ""][:2]
        if not quota:
            quota, period = (_read(str(folder / f"cpu.cfs_{part}_us")).strip() for part in ("quota", "period"))
        # Without a quota the value is `max` or -1.
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(Limit(int(quota) / int(period), f"the quota of the control group {name}"))
    return Limits(min(found, key=_amount), _memory_limit(root))


def available_memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes that can still be allocated before processes are swapped out or killed.

    The machine and its container both limit them.
    """
    return int(_memory_limit(root).amount)


def _memory_limit(root: Path) -> Limit:
    found = [Limit(_memory_bytes("MemAvailable", root), "the free memory of the machine")]
    for folder, name in _groups("memory", root):
        # The page cache does not count as used, because the kernel frees it on demand.
        for limit, taken in (("memory.max", "anon"), ("memory.limit_in_bytes", "total_rss")):
            text = _read(str(folder / limit)).strip()
            if text.isdecimal():
                used = re.search(rf"^{taken} (\d+)$", _read(str(folder / "memory.stat")), re.MULTILINE)
                free = max(0, int(text) - (int(used[1]) if used else 0))
                found.append(Limit(free, f"the free memory of the control group {name}"))
    return min(found, key=_amount)


def _amount(limit: Limit) -> float:
    return limit.amount


def _groups(controller: str, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders and names of this process's control groups with a controller, from its own upwards.

    Inside a container its own group is the visible root.
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
