"""Prepared state: the result of a component's preparation, kept for later runs and unpacked for each start.

It is packed in the sandbox of the run, and then kept in the user's cache directory under a key of all that it depends
on. It has no name there until it is complete, so an interrupted preparation leaves nothing that is found later.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path

from tollbar.catalog.servers import Component, NotStarted, Preparation
from tollbar.core.files import cache_folder, write
from tollbar.core.records import Outcome
from tollbar.core.runner.confined import Account
from tollbar.lab.servers.configuration import Request, render_preparation, text_of
from tollbar.lab.servers.guarded import Guarded
from tollbar.lab.servers.sandbox import Sandbox

# For a gigabyte on a slow disk; a directory of 10,000 accounts takes less than a second.
TAR_LIMIT_S = 120.0
# State that was unused for this time is removed when other state is kept.
UNUSED_LIMIT_S = 90 * 86400.0
POLL_S = 0.05
# Longer work is logged, and again at each further interval, because a silent terminal makes users end the run.
QUICK_S, STILL_S = 2.0, 20.0
# Format of archives. Those of format 1 were made under an account shared with other programs, which could have changed
# them.
FORMAT = 2
# A run's account has no name on the system; this library provides one.
NAME_LIBRARIES = ("/usr/lib/*/libnss_wrapper.so", "/usr/lib64/libnss_wrapper.so")


@contextmanager
def told_meanwhile(words: str) -> Iterator[None]:
    """Log the work in progress after a moment, and at intervals until it is done."""
    done, log = threading.Event(), logging.getLogger("tollbar")

    def tell() -> None:
        wait_s, began_s = QUICK_S, time.monotonic()
        while not done.wait(wait_s):
            taken = f" ({time.monotonic() - began_s:.0f} s by now)" if wait_s == STILL_S else ""
            log.info("%s%s", words, taken)
            wait_s = STILL_S

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        done.set()
        telling.join()


def unpack(
    request: Request,
    component: Component,
    preparation: Preparation,
    sandbox: Sandbox,
    work_dir: Path,
    account: Account | None,
) -> None:
    """Unpack the component's prepared state into its work directory, after preparing it if necessary.

    `account` owns the directory, and all processes that read or write the state, so that none is root's. Raises
    NotStarted if the preparation fails, or takes too long.
    """
    cache = _cache_folder()
    folders = [cache, sandbox.directory] if cache else [sandbox.directory]
    name = f"{key(request, component, preparation)}.tar"
    with _locked(folders[0], component, preparation):
        archive = next((folder / name for folder in folders if (folder / name).exists()), None)
        if archive is None:
            archive = _prepare(sandbox.directory / name, request, component, preparation, sandbox, account)
            archive = _keep(archive, cache) if cache else archive
        packed = open(archive, "rb")  # noqa: SIM115
    log = sandbox.log_of(work_dir, "unpack")
    logs = sandbox.logs / request.found.server.name if sandbox.logs else None
    with packed:
        # Marks the last use of the state.
        os.utime(packed.fileno())
        tar = Guarded(
            ["tar", "--extract", "--preserve-permissions"],
            sandbox=sandbox,
            work_dir=work_dir,
            log=log,
            account=account,
            stdin=packed,
        )
        try:
            _finish(tar, component, time.monotonic() + TAR_LIMIT_S, "unpacking", logs)
        except NotStarted:
            # The archive may be damaged, so the next start must not use it.
            archive.unlink(missing_ok=True)
            raise
        finally:
            log.unlink()


def key(request: Request, component: Component, preparation: Preparation) -> str:
    """Return the name of a component's prepared state, which differs for another version, text or setting."""
    folder = request.found.server.folder
    depends_on = {
        "format": FORMAT,
        "server": request.found.server.name,
        "component": component.name,
        "version": request.found.versions[component.name],
        "commands": preparation.commands,
        "environment": dict(preparation.environment),
        "templates": {name: text_of(folder, name) for name in preparation.render},
        "settings": {name: request.settings.get(name) for name in preparation.settings},
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:32]


def _prepare(
    archive: Path,
    request: Request,
    component: Component,
    preparation: Preparation,
    sandbox: Sandbox,
    account: Account | None,
) -> Path:
    """Run the commands in an empty directory, and pack its content. Return the archive."""
    directory = sandbox.work_dir(f"{component.name}-prepare")
    log = sandbox.log_of(directory, "commands")
    logs = sandbox.logs / request.found.server.name if sandbox.logs else None
    try:
        rendered = render_preparation(request, component, preparation, directory)
        owner = account.number if account else None
        for name, text in rendered.files.items():
            write(directory / name, text.encode(), 0o600, owner)
        environment = {
            **rendered.environment,
            **(_named(directory, account, component) if preparation.has_name else {}),
        }
        if account:
            os.chown(directory, account.number, account.number)
        deadline = time.monotonic() + preparation.limit
        server = request.found.server
        with told_meanwhile(f"preparing {server.title}, once: the accounts and data of its component {component.name}"):
            for words in rendered.commands:
                command = Guarded(
                    words,
                    sandbox=sandbox,
                    work_dir=directory,
                    log=log,
                    account=account,
                    environment=environment,
                )
                _finish(command, component, deadline, "preparing", logs)
        # Not compressed, because every start waits for the unpacking. The archive has keys and passwords, and others
        # may enter the directory, so only the owner may read it.
        with os.fdopen(os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as packed:
            tar = Guarded(
                ["tar", "--create", "--sparse", "."],
                sandbox=sandbox,
                work_dir=directory,
                log=log,
                account=account,
                stdout=packed,
            )
            _finish(tar, component, time.monotonic() + TAR_LIMIT_S, "packing", logs)
    except BaseException:
        archive.unlink(missing_ok=True)
        raise
    finally:
        log.unlink(missing_ok=True)
        shutil.rmtree(directory, ignore_errors=True)
    return archive


def names_library() -> str | None:
    """Return the library that lets programs look up names in files of their own; None if it is not installed."""
    return next((path for pattern in NAME_LIBRARIES for path in sorted(glob(pattern))), None)


def _named(directory: Path, account: Account | None, component: Component) -> dict[str, str]:
    """Return the environment in which commands find a name for their account. Raises NotStarted without the library."""
    if account is None:
        return {}
    library = names_library()
    if library is None:
        reason = f"preparing the component {component.name}: run as root, its commands need a named account,"
        hint = "which libnss_wrapper provides; to install it: apt-get install libnss-wrapper"
        raise NotStarted(Outcome.UNSUPPORTED, f"{reason} {hint}")
    number = account.number
    texts = {"PASSWD": f"tollbar:x:{number}:{number}::/:/bin/false\n", "GROUP": f"tollbar:x:{number}:\n"}
    for name, text in texts.items():
        # Next to the directory, which is packed as a whole.
        write(directory.with_name(f"{directory.name}-{name.lower()}"), text.encode(), 0o644)
    return {
        "LD_PRELOAD": library,
        **{f"NSS_WRAPPER_{name}": str(directory.with_name(f"{directory.name}-{name.lower()}")) for name in texts},
    }


def _finish(command: Guarded, component: Component, deadline: float, doing: str, logs: Path | None) -> None:
    """Wait for a command to end with status 0. Raises NotStarted if it does not, and writes its output to `logs`."""
    try:
        if command.ends_well(deadline):
            return
        why = command.why_it_ended(component.refusals)
    except subprocess.TimeoutExpired:
        why = NotStarted(Outcome.TIMED_OUT, f"{command.name} did not end within its time limit")
    if logs:
        with suppress(OSError):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{component.name}-{doing}.log").write_text(command.output() + "\n", "utf-8")
    raise NotStarted(why.outcome, f"{doing} the component {component.name}: {why.reason}")


def _keep(archive: Path, cache: Path) -> Path:
    """Move an archive into the cache. Return its new path, or the old one if the cache does not accept it."""
    kept = cache / archive.name
    # On a full disk, or a file system without unnamed files, it is kept for this run only.
    with suppress(OSError):
        for old in cache.glob("*.tar"):
            if time.time() - old.stat().st_mtime > UNUSED_LIMIT_S:
                old.unlink()
        # An unnamed file vanishes if this process is killed.
        handle = os.open(cache, os.O_TMPFILE | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as copy, open(archive, "rb") as original:
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fsync(handle)
            # Python follows the link only if a folder is passed too; the kernel ignores it for an absolute path.
            os.link(f"/proc/self/fd/{handle}", kept, src_dir_fd=handle, follow_symlinks=True)
        archive.unlink()
    return kept if kept.exists() else archive


def _cache_folder() -> Path | None:
    """Return the folder of prepared state; None if this user has none, or another user owns it."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder() / "prepared"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Root may unpack archives from this folder.
        if folder.stat().st_uid == os.geteuid():
            return folder
    return None


@contextmanager
def _locked(folder: Path, component: Component, preparation: Preparation) -> Iterator[None]:
    """Hold the folder's lock, so that only one of two runs prepares the same state. Raises NotStarted."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + preparation.limit + TAR_LIMIT_S
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    reason = f"preparing the component {component.name}: another run holds the lock of {folder}"
                    raise NotStarted(Outcome.TIMED_OUT, reason) from None
                time.sleep(POLL_S)
        yield
    finally:
        os.close(handle)
