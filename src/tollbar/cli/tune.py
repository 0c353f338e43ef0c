"""`tollbar tune`: password hash parameters for a given time and concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar.catalog import families
from tollbar.cli.options import DEFAULT_LAYOUT, Layout, read_seconds, show_answer
from tollbar.core import units
from tollbar.core.errors import ExitStatus, TollbarError
from tollbar.decide import tune as tuning
from tollbar.decide.tune.algorithms import ALGORITHMS
from tollbar.decide.tune.words import tune_answer
from tollbar.lab.servers import leftovers
from tollbar.report.terminal.progress import Progress

if TYPE_CHECKING:
    from tollbar.report.document.form import Document

# A faster hash is unfit for passwords; a slower one makes users wait without a benefit.
LEAST_S, MOST_S = 0.001, 60.0
EXAMPLE = "`tollbar tune password-hash --within 250ms --at-once 8`"


def tune(
    family: str = tuning.FAMILY,
    /,
    *choices: str,
    within: str | None = None,
    at_once: int | None = None,
    memory: str | None = None,
    policy: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    provider: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    layout: Layout = DEFAULT_LAYOUT,
) -> ExitStatus:
    """Find the parameters of a password hash that take a given time with so many at once.

    The limits of this process's control group are read. What is proposed was itself measured with so many at once,
    meets the policies, and stands in the order of what an attacker gets of it. Status 1: nothing was found.

    tollbar tune password-hash --within 250ms --at-once 8
    tollbar tune password-hash argon2id scrypt --within 250ms --at-once 8 --memory 512MiB
    tollbar tune password-hash --within 500ms --policy asvs-level-2-5.0.0

    Parameters
    ----------
    family
        `password-hash`: no other family has parameters that set its cost.
    choices
        Those to tune: `argon2id`, `scrypt`, `bcrypt`, `pbkdf2-sha-256`, `pbkdf2-sha-512`, `pbkdf2-sha-1`; default: all.
    within
        How long one hash may take (`250ms`), elapsed, while so many are under way.
    at_once
        How many are under way; default: one for each core.
    memory
        What all of them may take together (`512MiB`); default: what is free here.
    policy
        What the parameters must meet: a name or a file, again for more; default: the newest of OWASP's password
        storage.
    provider
        Whose code hashes (`libcrypto`, `rustcrypto`, `runner:./mine`), again for more; the fastest is taken.
        Default: the engine's own and the system's libcrypto.
    """
    if family in ALGORITHMS:
        # The one family that can be tuned goes without saying.
        family, choices = tuning.FAMILY, (family, *choices)
    if families.family(family).name != tuning.FAMILY:
        hint = f"only password hashes have parameters that set what they cost: {EXAMPLE}"
        raise TollbarError(f"the family {family} cannot be tuned", hint=hint)
    if within is None:
        raise TollbarError("how long may one hash take?", where="--within", hint=EXAMPLE)
    within_s = read_seconds("--within", within)
    if not LEAST_S <= within_s <= MOST_S:
        raise TollbarError(f"from {LEAST_S * 1e3:.0f} ms to {MOST_S:.0f} s", where=f"--within {within}")
    asked = tuning.asked(
        choices,
        policy,
        within_s=within_s,
        at_once=at_once,
        memory_bytes=None if memory is None else _read_size(memory),
        providers=provider,
    )
    # Leftovers of killed runs would use the measured cores.
    leftovers.sweep()
    with Progress() as progress:
        found = tuning.of(asked, progress.follow("tuning", tuning.tune(asked), len(asked.choices)))
    show_answer(tune_answer(found), lambda: _document(found), layout)
    return ExitStatus.DONE if found.tuned else ExitStatus.SOME_FAILED


def _read_size(said: str) -> int:
    try:
        size = units.size_bytes(said)
    except ValueError as error:
        raise TollbarError(str(error), where=f"--memory {units.quoted(said)}") from error
    if size <= 0:
        raise TollbarError("more than nothing", where=f"--memory {units.quoted(said)}")
    return size


def _document(found: tuning.Tuning) -> Document:
    from tollbar.decide.tune.document import document

    return document(found)
