"""Files of a component's directory: each is the lab's, or belongs to the component's account only.

In root's lab every component has its own account. A file that one component makes for another passes through the lab:
it is copied into a folder that only the lab writes, and each reader gets its own copy.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tollbar.catalog.servers import Component
from tollbar.core.errors import TollbarError
from tollbar.core.files import write
from tollbar.core.runner.confined import Account
from tollbar.lab.servers import prepared, shipping
from tollbar.lab.servers.configuration import Rendered, Request
from tollbar.lab.servers.sandbox import Sandbox
from tollbar.lab.servers.shipping import MOST_GIVEN, MOST_GIVEN_BYTES, is_given, plain_file

if TYPE_CHECKING:
    from tollbar.lab.servers.running import Running


def lay_out(
    sandbox: Sandbox, request: Request, component: Component, told: Rendered, work_dir: Path, account: Account | None
) -> Rendered:
    """Fill the work directory of a component, and give it to its account. Raises NotStarted and OSError.

    Returns the component's configuration, with the names of its own copies of files.
    """
    if component.prepare:
        _give(work_dir, account)
        prepared.unpack(request, component, component.prepare, sandbox, work_dir, account)
        _give(work_dir, Account(os.geteuid()) if account else None)
    for name in component.writable:
        folder = work_dir / name
        folder.mkdir()
        # Independent of the user's umask.
        folder.chmod(0o750 if component.has_sockets else 0o700)
        _give(folder, account)
    told = Rendered(**own_copies(sandbox, asdict(told), work_dir, account))
    owner = account.number if account else None
    for name, text in told.files.items():
        write(work_dir / name, text.encode(), 0o600, owner)
    # Last, so that no process of the account can plant a link before the lab writes.
    _give(work_dir, account)
    return told


def own_copies(sandbox: Sandbox, told: Any, folder: Path, account: Account | None) -> Any:
    """Return a value in which each private file of the lab is replaced by the reader's copy.

    The copies belong to the account, in a folder that only the lab writes, next to the reader's own `folder`, so that
    no process of the account can plant a link. Without an account the value is unchanged.
    """
    if account is None:
        return told
    copies: dict[str, str] = {}
    for path in shipping.named(shipping.texts_of(told), sandbox.directory):
        about = path.lstat()
        is_closed = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & stat.S_IROTH
        if is_closed and not path.is_relative_to(folder):
            copy = sandbox.copies_of(folder) / str(path.relative_to(sandbox.directory)).replace("/", "-")
            copy.parent.mkdir(exist_ok=True)
            copy.parent.chmod(0o711)
            if not copy.exists():
                write(copy, path.read_bytes(), 0o600, account.number)
            copies[str(path)] = str(copy)
    return shipping.replaced(told, sandbox.directory, copies)


def collect(work_dir: Path, rendered: Mapping[str, str], gives: Sequence[str], store: Path) -> None:
    """Copy the files that a component gives to others from its directory into `store`, which only the lab can write.

    The lab's own version is used for rendered files. Raises TollbarError for anything but plain files, or too much.
    """
    given = {name: text.encode() for name, text in rendered.items() if is_given(name, gives)}
    if gives:
        store.mkdir(mode=0o700, exist_ok=True)
        left_bytes = MOST_GIVEN_BYTES
        for name in sorted(os.listdir(work_dir)):
            if is_given(name, gives) and name not in given:
                given[name] = plain_file(work_dir / name, left_bytes)
                left_bytes -= len(given[name])
        if len(given) > MOST_GIVEN:
            raise TollbarError(
                f"a component gives {len(given)} files to others; the limit is {MOST_GIVEN}", where=str(work_dir)
            )
    for name, data in given.items():
        write(store / name, data, 0o600)


def client_folder(sandbox: Sandbox, account: Account | None) -> Path:
    """Return the folder of the clients with this account: their copies of files, and data they keep between trials."""
    folder = sandbox.folder_of(f"client-{account.number if account else 'own'}")
    with sandbox.starting:
        if not folder.exists():
            folder.mkdir(mode=0o700)
            _give(folder, account)
    return folder


def _give(folder: Path, account: Account | None) -> None:
    """Give a folder to an account. Raises OSError if it is a link."""
    if account:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            account.owns(handle)
        finally:
            os.close(handle)


def groups(running: Iterable[Running]) -> tuple[int, ...]:
    """Return the groups of components with sockets for others, to which later components may connect."""
    return tuple(sorted({one.account.number for one in running if one.account and one.has_sockets}))
