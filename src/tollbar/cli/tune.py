"""`tollbar tune`: password hash parameters for a given time and concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tollbar.catalog import families
from tollbar.cli.layouts import DEFAULT_LAYOUT, Layout, read_seconds, show_answer
from tollbar.core import spelling, units
from tollbar.core.errors import ExitStatus, TollbarError, nearest
from tollbar.decide import tune as tuning
from tollbar.decide.tune.algorithms import ALGORITHMS
from tollbar.decide.tune.words import tune_answer
from tollbar.lab.servers import leftovers
from tollbar.report.terminal.progress import Progress

if TYPE_CHECKING:
    from tollbar.report.json_forms.form import Document

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
    """Find password-hash parameters for a target time at a given concurrency.

    The limits of this process's control group apply. Each proposal is measured at this concurrency and meets the
    policies; proposals are ordered by the cost of an attack. Status 1: no parameters were found.

    tollbar tune password-hash --within 250ms --at-once 8
    tollbar tune password-hash argon2id scrypt --within 250ms --at-once 8 --memory 512MiB
    tollbar tune password-hash --within 500ms --policy asvs-level-2-5.0.0

    Parameters
    ----------
    family
        `password-hash`: no other family has parameters that set its cost.
    choices
        Choices to tune: `argon2id`, `scrypt`, `bcrypt`, `pbkdf2-sha-256`, `pbkdf2-sha-512`, `pbkdf2-sha-1`; default:
        all.
    within
        Longest elapsed time of one hash at this concurrency, from 1 ms to 60 s, such as `250ms`. Required.
    at_once
        Number of hashes at the same time, such as `8`; default: one for each core.
    memory
        Memory limit of all hashes together, such as `512MiB`; default: the free memory of this machine.
    policy
        Policy that must be met: a name (its newest edition, unless you name one) or your own TOML file. Repeatable;
        default: the newest OWASP password storage policy.
    provider
        Provider of the hash: `libcrypto`, `rustcrypto` or `runner:./mine`. Repeatable; the fastest is used. Default:
        the engine's own and the system's libcrypto.
    """
    if family in ALGORITHMS:
        # The one family that can be tuned goes without saying.
        family, choices = tuning.FAMILY, (family, *choices)
    elif family not in families.families() and spelling.nearest(family, ALGORITHMS):
        raise TollbarError(f"no such password hash: `{family}`", hint=nearest(family, ALGORITHMS))
    if families.family(family).name != tuning.FAMILY:
        hint = f"only password hashes have parameters that set their cost, for example {EXAMPLE}"
        raise TollbarError(f"the family {family} cannot be tuned", hint=hint)
    if within is None:
        raise TollbarError(
            "is missing; it must be the longest time of one hash", where="--within", hint=f"for example {EXAMPLE}"
        )
    # A bare `250` are milliseconds, a bare `2` seconds.
    within_s = read_seconds("--within", within, ("ms", "s") if len(within.partition(".")[0]) > 1 else ("s", "ms"))
    if not LEAST_S <= within_s <= MOST_S:
        what = f"must be from {LEAST_S * 1e3:.0f} ms to {MOST_S:.0f} s, for example `250ms`"
        raise TollbarError(what, where=f"--within {within}")
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
        size = units.size_bytes(said, ("MiB", "GiB"))
    except ValueError as error:
        raise TollbarError(str(error), where=f"--memory {units.quoted(said)}") from error
    if size <= 0:
        raise TollbarError("must be greater than 0, for example `512MiB`", where=f"--memory {units.quoted(said)}")
    return size


def _document(found: tuning.Tuning) -> Document:
    from tollbar.decide.tune.document import document

    return document(found)
