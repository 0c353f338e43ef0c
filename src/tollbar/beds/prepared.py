"""Prepared state: what a component's preparation has made, kept for later runs and unpacked for each start.

It is packed in the sandbox of the run, and then kept in the user's cache directory under a key of all that it depends
on, where it has no name until it is whole: what ends a preparation half way leaves nothing that is found later.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tollbar.beds import Component, NotStarted, Preparation
from tollbar.beds.configuration import Request, render_preparation, text_of, write_files
from tollbar.beds.guarded import Guarded
from tollbar.beds.sandbox import Sandbox
from tollbar.files import cache_folder
from tollbar.records import Outcome

# For a gigabyte on a slow disk; a directory of 10,000 accounts takes less than a second.
TAR_LIMIT_S = 120.0
# State that no run has used for so long is removed when other state is kept.
UNUSED_LIMIT_S = 90 * 86400.0
POLL_S = 0.05


def unpack(request: Request, component: Component, preparation: Preparation, sandbox: Sandbox, work_dir: Path) -> None:
    """Puts the component's prepared state into its work directory; prepares it first, unless that was done before.

    Raises NotStarted where the preparation fails, or takes too long.
    """
    cache = _cache_folder()
    folders = [cache, sandbox.directory] if cache else [sandbox.directory]
    name = f"{key(request, component, preparation)}.tar"
    with _locked(folders[0], component, preparation):
        archive = next((folder / name for folder in folders if (folder / name).exists()), None)
        if archive is None:
            archive = _prepare(sandbox.directory / name, request, component, preparation, sandbox)
            archive = _keep(archive, cache) if cache else archive
        packed = open(archive, "rb")  # noqa: SIM115
    log = sandbox.directory / f"{work_dir.name}-unpack.log"
    logs = sandbox.logs / request.found.bed.name if sandbox.logs else None
    with packed:
        # Says when the state was last used.
        os.utime(packed.fileno())
        tar = Guarded(
            ["tar", "--extract", "--preserve-permissions"],
            sandbox=sandbox,
            work_dir=work_dir,
            log=log,
            # Its files are then of the account that the component has.
            account=sandbox.account_of(component),
            keeps=component.capabilities,
            stdin=packed,
        )
        try:
            _finish(tar, component, time.monotonic() + TAR_LIMIT_S, "unpacking", logs)
        except NotStarted:
            # It may be damaged: the next start is not to meet it again.
            archive.unlink(missing_ok=True)
            raise
        finally:
            log.unlink()


def key(request: Request, component: Component, preparation: Preparation) -> str:
    """The name of a component's prepared state; with another version, text or setting it is another one."""
    folder = request.found.bed.folder
    depends_on = {
        "bed": request.found.bed.name,
        "component": component.name,
        "version": request.found.versions[component.name],
        "commands": preparation.commands,
        "environment": dict(preparation.environment),
        "templates": {name: text_of(folder, name) for name in preparation.render},
        "settings": {name: request.settings.get(name) for name in preparation.settings},
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:32]


def _prepare(archive: Path, request: Request, component: Component, preparation: Preparation, sandbox: Sandbox) -> Path:
    """Runs the commands in an empty directory, and packs what is in it then. Returns the archive."""
    account = sandbox.account_of(component)
    directory = sandbox.work_dir(f"{component.name}-prepare", account)
    log = sandbox.directory / f"{directory.name}.log"
    logs = sandbox.logs / request.found.bed.name if sandbox.logs else None
    try:
        rendered = render_preparation(request, component, preparation, directory)
        write_files(rendered.files, directory, account)
        deadline = time.monotonic() + preparation.limit
        for words in rendered.commands:
            command = Guarded(
                words,
                sandbox=sandbox,
                work_dir=directory,
                log=log,
                account=account,
                keeps=component.capabilities,
                environment=rendered.environment,
            )
            _finish(command, component, deadline, "preparing", logs)
        # Not compressed: unpacking is what every start waits for.
        # There are keys and passwords in it, and others may pass through the directory.
        with os.fdopen(os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as packed:
            tar = Guarded(
                ["tar", "--create", "--sparse", "."],
                sandbox=sandbox,
                work_dir=directory,
                log=log,
                account=account,
                keeps=component.capabilities,
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


def _finish(command: Guarded, component: Component, deadline: float, doing: str, logs: Path | None) -> None:
    """Waits for a command to end with status 0. Raises NotStarted if it does not, and puts its output among `logs`."""
    try:
        if command.ends_well(deadline):
            return
        why = command.why_it_ended(component.refusals)
    except subprocess.TimeoutExpired:
        why = NotStarted(Outcome.TIMED_OUT, f"{command.name} took too long")
    if logs:
        with suppress(OSError):
            logs.mkdir(parents=True, exist_ok=True)
            (logs / f"{component.name}-{doing}.log").write_text(command.output() + "\n", "utf-8")
    raise NotStarted(why.outcome, f"{doing} the component {component.name}: {why.reason}")


def _keep(archive: Path, cache: Path) -> Path:
    """Moves an archive into the cache, and returns where it is then: where it was, if the cache does not take it."""
    kept = cache / archive.name
    # A full disk, or a file system that has no files without names: it is kept for this run alone.
    with suppress(OSError):
        for old in cache.glob("*.tar"):
            if time.time() - old.stat().st_mtime > UNUSED_LIMIT_S:
                old.unlink()
        # Without a name, it is gone with this process if that is killed.
        handle = os.open(cache, os.O_TMPFILE | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as copy, open(archive, "rb") as original:
            shutil.copyfileobj(original, copy, 1 << 20)
            copy.flush()
            os.fsync(handle)
            # Python follows the link only when it is given a folder too; for an absolute path the kernel ignores it.
            os.link(f"/proc/self/fd/{handle}", kept, src_dir_fd=handle, follow_symlinks=True)
        archive.unlink()
    return kept if kept.exists() else archive


def _cache_folder() -> Path | None:
    """Where prepared state is kept; None where this user has no such place, or another user owns it."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder() / "prepared"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What is unpacked here may be unpacked by root.
        if folder.stat().st_uid == os.geteuid():
            return folder
    return None


@contextmanager
def _locked(folder: Path, component: Component, preparation: Preparation) -> Iterator[None]:
    """Holds the folder's lock: of two runs that want the same state, one makes it. Raises NotStarted."""
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
