"""`tollbar ask tls --url URL`: a look at the TLS that one's own server accepts, and the price of each change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tollbar import lab, study
from tollbar.catalog import policies, servers
from tollbar.cli import measuring
from tollbar.cli.layouts import Layout, command_line, read_seconds, show_answer
from tollbar.core import units
from tollbar.core.errors import ExitStatus, TollbarError, masked_url, nearest
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.decide.look.looked import EMBEDDED, FAMILY, Looked, looked, placed, priced, questions
from tollbar.decide.look.words import answer
from tollbar.decide.rulings import wanted
from tollbar.lab.measure import schedule
from tollbar.lab.tls.looking import look as look_at
from tollbar.lab.tls.url import found
from tollbar.report import terminal
from tollbar.report.json_forms.form import Document
from tollbar.study import plan

DEFAULT_FOR = "30 s"
# Servers of the lab by the names that servers give themselves.
KINDS = {"nginx": "nginx", "Apache": "httpd"}


def look(
    family: str,
    words: Sequence[str],
    url: str,
    policy: Sequence[str],
    on: str | None,
    owned: Sequence[str],
    for_: str | None,
    seed: int | None,
    libraries: Sequence[str],
    runs: Path,
    unusable: Mapping[str, object],
    layout: Layout,
) -> ExitStatus:
    """Look at a server, judge it, price its changes, and print the answer.

    `unusable` has options that a look does not read. Raises TollbarError if one of them is given.
    """
    for option, value in unusable.items():
        if value is not None:
            raise TollbarError("cannot be combined with `--url`", where=option, hint="remove one of them")
    if family != FAMILY:
        raise TollbarError(f"`--url` needs the family `{FAMILY}`", where=family, hint="`tollbar ask tls --url URL`")
    server = _server(words)
    asked = wanted(FAMILY, policy, (), on)
    policies.refuse_silent(asked.policies, FAMILY)
    within_s = read_seconds("--for", DEFAULT_FOR if for_ is None else for_)
    if not url.lower().startswith("https:"):
        raise TollbarError(
            "`--url` must begin with `https:` to look at TLS",
            where=masked_url(url),
            hint="for example `https://localhost:8443/`",
        )
    (remote,) = found([url], owned)
    for one in asked.policies:
        terminal.say(f"  policy     {one.name}: {one.title}, {one.edition}")
    terminal.say(f"  look       {remote.name}")
    seen = look_at(remote)
    judged = looked(seen, asked)
    if within_s:
        judged = placed(judged, server or _kind(seen.server))
        if to_measure := questions(judged):
            judged = _measured(judged, to_measure, within_s, seed, libraries, runs)
    said = answer(judged)

    def document() -> Document:
        from tollbar.decide.look.document import document as document_of

        return document_of(judged, said)

    show_answer(said, document, layout)
    if judged.breaks:
        return ExitStatus.SOME_FAILED
    return ExitStatus.CANNOT_TELL if judged.is_incomplete else ExitStatus.DONE


def _server(words: Sequence[str]) -> str | None:
    """Return the server on which changes are priced, of `server=NAME`, or None."""
    named = None
    for word in words:
        name, _, value = word.partition("=")
        if name != "server" or not value:
            hint = "only `server=NAME` can be added, for example `server=nginx`, which measures the changes"
            raise TollbarError("cannot be combined with `--url`", where=word, hint=hint)
        if value not in (able := [EMBEDDED, *KINDS.values()]):
            raise TollbarError(
                f"`{value}` does not serve TLS here; the server must be one that does",
                where=word,
                hint=nearest(value, able),
            )
        if isinstance(missing := servers.find(servers.all_servers()[value]), servers.Unavailable):
            raise TollbarError(f"not available here: {missing.reason}", where=word)
        named = value
    return named


def _kind(named: str | None) -> str:
    """Return the lab's server of the kind that a server names itself, if it is installed here."""
    kind = KINDS.get(named or "")
    is_here = kind is not None and isinstance(servers.find(servers.all_servers()[kind]), servers.Installed)
    return kind if kind is not None and is_here else EMBEDDED


def _measured(
    of: Looked,
    asked: Mapping[str, study.Question],
    within_s: float,
    seed: int | None,
    libraries: Sequence[str],
    runs: Path,
) -> Looked:
    """Return the look with prices, measured in about `within_s` seconds."""
    studies = [study.read(name, one.text(FEWEST_BLOCKS), where=name) for name, one in asked.items()]
    planned = plan.make(studies, seed=lab.drawn_seed(seed), named_libraries=libraries)
    needed_s = schedule.of_plan(planned)
    if needed_s > within_s:
        about = units.show_seconds(needed_s)
        terminal.say(f"  time       {FEWEST_BLOCKS} blocks, the fewest for an interval: about {about}")
    store = lab.begin_planned(planned, command=command_line(), runs=runs, named_libraries=libraries)
    how_long = lab.HowLong(within_s=within_s / len(studies))
    judged = measuring.carry_out(planned, store, report=False, how_long=how_long, briefly=True)
    return priced(of, judged.run)
