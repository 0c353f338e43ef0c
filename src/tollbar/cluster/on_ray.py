"""Ray cluster, the only module that imports Ray: its nodes, and one actor on each, called with a time limit.

Ray repeats no task: the run's journal decides what is left. Ray's output goes to a file of this connection; errors are
reported in one line.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import tempfile
from typing import IO, Any

import ray
from ray import cloudpickle, exceptions
from ray._private import services
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tollbar.cluster import node as node_module
from tollbar.cluster.cluster import ClusterNode, Lost, Said
from tollbar.core import hosts
from tollbar.core.errors import TollbarError

# Ray itself waits for ever for an address where nothing listens.
REACHED_LIMIT_S = 5.0
# An actor starts in seconds, unless another has its resource, or the node is gone.
PLACED_LIMIT_S = 60.0
# Names are unique in it, so a second driver cannot measure on a node at the same time.
NAMESPACE = "tollbar"
RESOURCE = "tollbar"
_PORT = re.compile(r"(.+):(\d+)")
DOCUMENT = "docs/many-machines.md says how to make a cluster"


class Cluster:
    """A connection with a cluster that is there."""

    def __init__(self, address: str | None) -> None:
        """Connect to the head at `address`, `HOST:PORT`; None: the one that Ray finds from here.

        Raises TollbarError.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Clusters with tokens by default require one to join.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        where = f"--cluster ray:{address}" if address else "--cluster ray"
        if address is None:
            address, where = _found_here(where)
        _check_reached(address, where)
        interrupted = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._quiet = _Quiet()
        try:
            ray.init(
                address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.CRITICAL,
                configure_logging=True,
            )  # fmt: skip
        except (exceptions.RayError, ConnectionError, ValueError, RuntimeError, OSError, AssertionError) as error:
            said = self._quiet.end()
            raise _not_connected(where, error, said) from error
        finally:
            for number, handler in interrupted.items():
                signal.signal(number, handler)
        cloudpickle.register_pickle_by_value(node_module)

    def places(self) -> list[ClusterNode]:
        """Return the nodes that are alive; only those with the resource `tollbar`, if any has it."""
        found = [one for one in ray.nodes() if one["Alive"]]
        with_it = [one for one in found if one["Resources"].get(RESOURCE, 0) >= 1]
        return [
            ClusterNode(
                one["NodeID"], one["NodeManagerHostname"], one["NodeManagerAddress"],
                {key: value for key, value in one["Labels"].items() if key != "ray.io/node-id"},
                holds_resource=bool(with_it),
            )
            for one in with_it or found
        ]  # fmt: skip

    def start(self, place: ClusterNode, name: str) -> Actor:
        """Start the node's agent under this name.

        Raises TollbarError where another driver has one there.
        """
        options = {
            "num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "name": f"node-{place.id}",
            "resources": {RESOURCE: 1} if place.holds_resource else None,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.id, soft=False),
        }  # fmt: skip
        try:
            return Actor(ray.remote(node_module.NodeAgent).options(**options).remote(name))
        except ValueError as error:
            raise TollbarError("another driver is measuring on this node; only one can at a time") from error

    def close(self) -> None:
        """Lets the cluster go, and with it all parts."""
        ray.shutdown()
        self._quiet.end()


class Actor:
    """A node's part that is asked, each time with a limit."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def call(self, method: str, *words: Any, limit_s: float = PLACED_LIMIT_S, **named: Any) -> Any:
        """Return the agent's answer.

        Raises Lost where none comes, and Said where the agent could not do the task.
        """
        try:
            return ray.get(getattr(self._handle, method).remote(*words, **named), timeout=limit_s)
        except exceptions.GetTimeoutError as error:
            raise Lost(f"no answer within {limit_s:.0f} s") from error
        except exceptions.RayTaskError as error:
            raise Said(_last_line(str(error.cause or error))) from error
        except exceptions.RayError as error:
            # Ray's own message has only internal names of actors and sockets.
            raise Lost(f"the node is gone, or Ray's part on it ({type(error).__name__})") from error

    def end(self) -> None:
        """End the agent; its run was stopped before, or ends with it."""
        ray.kill(self._handle)


class _Quiet:
    """Redirection of Ray's output to a file, and of Tollbar's to standard error."""

    def __init__(self) -> None:
        sys.stderr.flush()
        self._python, self._kept = (sys.stdout, sys.stderr), os.dup(2)
        self._file: IO[bytes] | None = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the connection
        os.dup2(self._file.fileno(), 2)
        # Ray prints its daemons' reports there; Tollbar prints its data after the cluster is released.
        sys.stdout = os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")
        sys.stderr = os.fdopen(os.dup(self._kept), "w", buffering=1, encoding="utf-8", errors="replace")

    def end(self) -> str:
        """Restore standard error, and return the redirected output."""
        if self._file is None:
            return ""
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        os.dup2(self._kept, 2)
        os.close(self._kept)
        sys.stdout, sys.stderr = self._python
        with self._file as file:
            file.seek(0)
            said = file.read().decode(errors="replace")
        self._file = None
        return said


def _found_here(where: str) -> tuple[str, str]:
    """Return the address that Ray would use, and its origin.

    Raises TollbarError where there is none.
    """
    if address := os.environ.get("RAY_ADDRESS"):
        return address, f"RAY_ADDRESS={address}"
    try:
        address = services.canonicalize_bootstrap_address_or_die("auto")
    except (ConnectionError, ValueError, OSError) as error:
        hint = f"{DOCUMENT}; `--simulate 3` simulates a cluster"
        raise TollbarError("no cluster is running on this machine", where=where, hint=hint) from error
    return address, f"{where}, by what Ray noted here: {address}"


def _check_reached(address: str, where: str) -> None:
    found = _PORT.fullmatch(address)
    if found is None:
        raise TollbarError(
            "must be the address of a cluster, `ray:HOST:PORT`",
            where=where,
            hint="for example `--cluster ray:10.1.2.3:6379`",
        )
    try:
        hosts.addresses(found[1], int(found[2]))
        socket.create_connection((found[1], int(found[2])), REACHED_LIMIT_S).close()
    # An invalid host name raises UnicodeError.
    except (OSError, OverflowError, UnicodeError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TollbarError(f"no cluster answers at this address: {said}", where=where, hint=DOCUMENT) from error


def _not_connected(where: str, error: Exception, said: str) -> TollbarError:
    if isinstance(error, exceptions.AuthenticationError) or "InvalidAuthToken" in said + str(error):
        hint = "set RAY_AUTH_TOKEN_PATH to a file with the cluster's token, or write it to ~/.ray/auth_token"
        return TollbarError("the token is missing, or the cluster refuses it", where=where, hint=hint)
    return TollbarError(
        f"cannot connect to the cluster: {_last_line(str(error), first=True)}", where=where, hint=DOCUMENT
    )


def _last_line(text: str, *, first: bool = False) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason was given"]
    return lines[0 if first else -1]
