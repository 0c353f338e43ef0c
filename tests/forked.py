"""The command as a fork of a process that has imported it, because importing takes longer than most commands.

Forks of one process have the same order of sets, and processes that outlive the command are not waited for: tests that
need either start a new process.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from unittest import mock

import tollbar
from patience import PATIENCE_S
from tollbar.cli import main

# Left out: modules that run at import, and modules that take seconds to import and are hardly ever used.
NOT_IMPORTED = ("tollbar.__main__", "tollbar.cluster.on_ray")
READ_BEFORE = "read_before"


@cache
def _forks() -> ForkServerContext:
    """Return the fork server, one for each process of the tests."""
    found = multiprocessing.get_context("forkserver")
    names = (module.name for module in pkgutil.walk_packages(tollbar.__path__, "tollbar."))
    found.set_forkserver_preload([*(name for name in names if name not in NOT_IMPORTED), READ_BEFORE])
    # The server finds that module, and the package under test, by its environment alone.
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    with mock.patch.dict(os.environ, {"PYTHONPATH": path}):
        forkserver.ensure_running()
    return found


def run(words: Sequence[str], folder: Path, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Run the command with these words in a folder, and return its output and status.

    Raises subprocess.TimeoutExpired.
    """
    files = [os.memfd_create(name) for name in ("stdout", "stderr")]
    outputs = [f"/proc/{os.getpid()}/fd/{file}" for file in files]
    process = _forks().Process(target=_become, args=(words, folder, dict(env), outputs))
    try:
        process.start()
        process.join(PATIENCE_S)
        said, messages = (os.pread(file, os.fstat(file).st_size, 0).decode() for file in files)
        if process.exitcode is None:
            raise subprocess.TimeoutExpired([*words], PATIENCE_S, said, messages)
        return subprocess.CompletedProcess([*words], process.exitcode, said, messages)
    finally:
        # For example after an interruption or a time-out.
        if process.is_alive():
            process.kill()
        for file in files:
            os.close(file)


def _become(words: Sequence[str], folder: Path, env: Mapping[str, str], outputs: Sequence[str]) -> None:
    """Run the command with these words in the forked process; does not return."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [*words]
    for number, output in enumerate(outputs, 1):
        file = os.open(output, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    main()
