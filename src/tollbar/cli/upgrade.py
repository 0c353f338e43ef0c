"""`tollbar upgrade`: two builds of one thing side by side, and the rows that became more expensive."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tollbar import lab, results
from tollbar.analysis import Judgement
from tollbar.cli import measuring
from tollbar.cli.layouts import (
    DEFAULT_LAYOUT,
    For,
    Layout,
    RunsFolder,
    Seed,
    command_line,
    read_seconds,
    read_share,
    show_answer,
)
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.decide import upgrade as upgrading
from tollbar.decide.upgrade import Kind, Thing
from tollbar.decide.upgrade.words import upgrade_answer
from tollbar.report import terminal

if TYPE_CHECKING:
    from tollbar.report.json_forms.form import Document

DEFAULT_FOR = "2 min"


def upgrade(
    old: str,
    new: str,
    /,
    *families: str,
    fail_above: str | None = None,
    for_: For = None,
    seed: Seed = None,
    runs: RunsFolder = Path("runs"),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Compare two builds of a library, server or runtime: costs that changed, operations new or gone.

    The costs of TLS, a password hash or a key by default are split: the change by the library, and the change by its
    new defaults. All is measured on one core.

    tollbar upgrade libcrypto libcrypto:psycopg
    tollbar upgrade libcrypto pycurl==7.49.0 tls --for 100s
    tollbar upgrade libssl3=3.0.17-1~deb12u2 libssl3=3.0.20-1~deb12u2 --fail-above 5%
    tollbar upgrade cryptography==42.0.0 cryptography==44.0.0 --markdown
    tollbar upgrade node@20.18.0 node@22.11.0
    tollbar upgrade ./old/libcrypto.so.3 ./new/libcrypto.so.3 digest cipher

    Parameters
    ----------
    old
        Build: the name of a libcrypto (`tollbar list providers`), a file or folder, or a Debian package, wheel, Node
        or Go with its version, such as `node@20.18.0`. Packages are fetched and verified by apt, pip, npm or go, kept
        in the cache, and never installed.
    new
        Another build of the same thing, such as `node@22.11.0`.
    families
        Families to measure, for a libcrypto such as digest, cipher, mac, password-hash, signature, key-exchange,
        rsa-api, tls; default: all that the build is used for.
    fail_above
        Largest accepted increase, such as `5%`. The status is 1 if a row rose by more, its whole interval beyond it,
        or is gone. It is 3 if no row could have shown it.
    for_
        Approximate measuring time of all families together, such as `100s`; default: 2 min.
    """
    within_s = read_seconds("--for", DEFAULT_FOR if for_ is None else for_)
    if within_s == 0:
        raise TollbarError(
            "must be greater than 0, because an upgrade is measured",
            where=f"--for {for_}",
            hint="for example `--for 20s`",
        )
    above = None if fail_above is None else read_share("--fail-above", fail_above, most=None)
    one, other = upgrading.both(old, new)
    asked = upgrading.studies(one, other, families, FEWEST_BLOCKS)
    # One look only: a second one would widen every interval by half.
    for name, reason in upgrading.not_asked(one, other, families).items():
        terminal.say(f"warning: {name} is not measured: {reason}: {upgrading.LIBSSL_HINT}", "yellow")
    kept = {
        "old": old,
        "new": new,
        "families": [*families],
        "folder": os.getcwd(),
        "within_s": within_s,
        "fail_above": above,
    }
    planned, store = lab.begin(asked, command=command_line(), runs=runs, seed=seed, more={"upgrade": kept})
    judged = measuring.carry_out(planned, store, report=False, how_long=lab.HowLong(within_s=within_s / len(asked)))
    return AskedUpgrade(one, other, families, within_s, above).answered(judged, layout)


@dataclass(frozen=True, slots=True)
class AskedUpgrade:
    """An upgrade as it was asked, to be answered by its run now or when that is resumed."""

    old: Thing
    new: Thing
    families: Sequence[str]
    within_s: float
    fail_above: float | None

    def answered(self, judged: Judgement, layout: Layout) -> ExitStatus:
        """Print the upgrade's answer, and return its status."""
        above, skipped = self.fail_above, upgrading.not_asked(self.old, self.new, self.families)
        found = upgrading.upgrade(self.old, self.new, judged, skipped)
        show_answer(upgrade_answer(found, above), lambda: _document(found, above), layout)
        gone = above is not None and (found.above(above) or found.of(Kind.GONE))
        if gone or found.of(Kind.FAILED) or not found.changes:
            return ExitStatus.SOME_FAILED
        return ExitStatus.DONE if above is None or found.tellable(above) else ExitStatus.CANNOT_TELL


def of_run(run: Path) -> AskedUpgrade | None:
    """Return the upgrade that a run was made by; None for any other run.

    Its builds are found again, which makes their servers and runtimes known. Raises TollbarError for one that is gone.
    """
    said = results.about(run).get("upgrade")
    if said is None:
        return None
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(contextlib.chdir(said["folder"]))
        except OSError as error:
            what = f"the folder of the upgrade cannot be entered: {error.strerror}"
            hint = "repeat the `tollbar upgrade` command as a new run"
            raise TollbarError(what, where=said["folder"], hint=hint) from error
        one, other = upgrading.both(said["old"], said["new"])
    return AskedUpgrade(one, other, said.get("families", ()), said["within_s"], said.get("fail_above"))


def _document(found: upgrading.Upgrade, above: float | None) -> Document:
    from tollbar.decide.upgrade.document import document

    return document(found, above)
