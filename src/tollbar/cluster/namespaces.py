"""Network namespaces: several machines made up on this one, joined by a bridge, none of it on the host's addresses.

Each has an address, a name and process ids of its own, and the files of the host. A process holds each; when that ends
all that runs there is killed, and with the last holder the network is gone: nothing has to be removed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tollbar.core import proc
from tollbar.core.errors import TollbarError
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox, first_line

# The bridge has the first, and is itself a machine: the one from which the others are asked.
NETWORK, BITS = "10.77.0", 24
HUB = "hub"
# Limit of one bridge, far above the number that one machine can usefully simulate.
MOST = 100
# Making a namespace takes milliseconds; a machine that swaps may take its time.
MADE_LIMIT_S = 10.0
# A machine is killed at once; the pause is needed because its guard merges two signals that come together.
GRACE_S = 0.05
CLONE_NEWNET = 0x40000000
# Namespaces of the hub and of a machine, as `unshare` and `nsenter` name them; the hub shares this machine's processes.
OF_HUB, OF_MACHINE = ("--net", "--uts"), ("--net", "--uts", "--mount", "--pid")
# Holder of the namespaces, which reports that it is ready. A process that is number 1 there ignores SIGTERM.
HOLD = 'hostname "$1" && ip link set lo up && echo ready && exec sleep infinity'
HINT = "this needs root, or a user namespace: unshare --user --map-root-user tollbar …; and iproute2 and util-linux"


@dataclass(frozen=True, slots=True)
class Space:
    """A made-up machine."""

    name: str
    address: str
    kinds: tuple[str, ...]
    """The namespaces that it has of its own."""
    pid: int
    """Process that holds the namespaces, as the host numbers it (number 1 inside, if it has process ids of its own)."""
    holder: Guarded
    directory: Path
    """Directory of the machine, in the sandbox, for temporary and kept files."""

    def words(self, *command: str) -> tuple[str, ...]:
        """Return the words that run a command there, from its directory."""
        return ("nsenter", "--target", str(self.pid), *self.kinds, "--", "env", "-C", str(self.directory), *command)

    def start(self, sandbox: Sandbox, *command: str, environment: Mapping[str, str] | None = None) -> Guarded:
        """Start a program there that ends with the machine, and with the lab. Raises OSError."""
        return Guarded(
            self.words(*command), sandbox=sandbox, work_dir=self.directory,
            log=self.directory / f"{Path(command[0]).name}.log", grace_s=GRACE_S, environment=environment, is_lab=True,
        )  # fmt: skip


@dataclass(slots=True)
class Network:
    """Machines joined by a bridge, as long as the sandbox is there."""

    sandbox: Sandbox
    hub: Space
    """The bridge's own: it reaches all, and has nothing measured in it."""
    spaces: dict[str, Space] = field(default_factory=dict)

    def enter(self) -> None:
        """Moves this thread, and those that it starts from now on, to the hub's network; files and ids stay."""
        with open(f"/proc/{self.hub.pid}/ns/net", "rb") as place:
            library = ctypes.CDLL(None, use_errno=True)
            if library.setns(place.fileno(), CLONE_NEWNET) != 0:
                why = os.strerror(ctypes.get_errno())
                raise TollbarError(f"the private network cannot be entered: {why}", hint=HINT)

    def add(self, name: str) -> Space:
        """Add a machine to the bridge.

        Raises TollbarError.
        """
        number = len(self.spaces) + 1
        if number > MOST:
            raise TollbarError(f"at most {MOST} machines can be simulated on one")
        space = _made(self.sandbox, name, f"{NETWORK}.{number + 1}", OF_MACHINE)
        cable = _cable(space)
        self._ip(self.hub, f"link add {cable} type veth peer name eth0 netns {space.pid}")
        self._ip(self.hub, f"link set {cable} master {HUB} up")
        _addressed(space, "eth0")
        self.spaces[name] = space
        return space

    def cut(self, space: Space) -> None:
        """Cut a machine off the network, without a notice to it."""
        self._ip(self.hub, f"link set {_cable(space)} nomaster")

    def mend(self, space: Space) -> None:
        """Reconnect the machine."""
        self._ip(self.hub, f"link set {_cable(space)} master {HUB} up")

    def end(self, space: Space) -> None:
        """End a machine as if it lost its power: all processes there are killed."""
        with suppress(ProcessLookupError):
            os.kill(space.pid, signal.SIGKILL)
        space.holder.end()

    def _ip(self, space: Space, words: str) -> None:
        _run(_in_network(space, "ip", *words.split()))


def network(sandbox: Sandbox, names: Sequence[str]) -> Network:
    """Return a private network of machines of these names, which lasts as long as the sandbox.

    Raises TollbarError.
    """
    hub = _made(sandbox, HUB, f"{NETWORK}.1", OF_HUB)
    made = Network(sandbox, hub)
    _run(_in_network(hub, "ip", "link", "add", HUB, "type", "bridge"))
    _addressed(hub, HUB)
    for name in names:
        made.add(name)
    return made


def _made(sandbox: Sandbox, name: str, address: str, kinds: tuple[str, ...]) -> Space:
    directory = sandbox.work_dir(name)
    # With process ids of its own it needs a /proc that shows them.
    made_of = (*kinds, *(["--mount-proc"] if "--pid" in kinds else []), "--fork", "--kill-child=SIGKILL")
    try:
        holder = Guarded(
            ("unshare", *made_of, "--", "sh", "-c", HOLD, "sh", name), sandbox=sandbox, work_dir=directory,
            log=sandbox.log_of(directory, "holder"), grace_s=GRACE_S, stdout=subprocess.PIPE, is_lab=True,
        )  # fmt: skip
        # A process that ended prints nothing, and the reason is in its log.
        if (said := first_line(holder.process, MADE_LIMIT_S)) != b"ready":
            why = f"no answer within {MADE_LIMIT_S:g} s" if said is None else holder.fault()
            holder.end()
            raise TollbarError(f"no namespaces can be made here: {why}", hint=HINT)
    except OSError as error:
        raise TollbarError(f"no namespaces can be made here: {error}", hint=HINT) from error
    # Guard, `unshare`, and number 1 of the namespaces, last.
    return Space(name, address, kinds, proc.tree(holder.pid)[-1], holder, directory)


def _addressed(space: Space, device: str) -> None:
    _run(_in_network(space, "ip", "address", "add", f"{space.address}/{BITS}", "dev", device))
    _run(_in_network(space, "ip", "link", "set", device, "up"))


def _cable(space: Space) -> str:
    """Return the hub's end of a machine's cable, by its address: a device's name has at most 15 characters."""
    return f"cable{space.address.rpartition('.')[2]}"


def _in_network(space: Space, *command: str) -> list[str]:
    return ["nsenter", "--target", str(space.pid), "--net", "--", *command]


def _run(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=MADE_LIMIT_S, check=False)
    if done.returncode:
        command = " ".join(words[words.index("--") + 1 :])
        raise TollbarError(f"`{command}`: {(done.stderr or done.stdout).strip()}", hint=HINT)
