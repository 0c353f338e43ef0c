"""`tollbar ask`: a question in one line, and its answer in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tollbar import lab, results, study
from tollbar.catalog import families
from tollbar.catalog.families import Standing
from tollbar.cli import measuring
from tollbar.cli.layouts import (
    AsJson,
    AsMarkdown,
    Date,
    For,
    Layout,
    Libraries,
    RunsFolder,
    Seed,
    command_line,
    layout_of,
    read_seconds,
    write_anew,
)
from tollbar.cli.options import full_paths, read_precision
from tollbar.cli.output import show, status_of
from tollbar.core import units
from tollbar.core.errors import ExitStatus, TollbarError, one_line
from tollbar.core.files import write_named
from tollbar.core.intervals import FEWEST_BLOCKS
from tollbar.core.words import enumeration
from tollbar.lab.measure import schedule
from tollbar.lab.workloads.operation import beyond_memory
from tollbar.report import terminal
from tollbar.study import Question, Study, asking, plan
from tollbar.study.plan import Plan

# A question is answered while its asker waits; a precision may take the patience of one who wants it.
DEFAULT_FOR, DEFAULT_FOR_PRECISION = "8 s", "1 min"


def ask(
    family: str | None = None,
    /,
    *words: str,
    against: Annotated[str | None, Parameter(name="--baseline")] = None,
    for_: For = None,
    precision: str | None = None,
    save: Path | None = None,
    url: str | None = None,
    policy: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    on: Date = None,
    i_own_this_server: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    seed: Seed = None,
    library: Libraries = (),
    runs: RunsFolder = Path("runs"),
    markdown: AsMarkdown = False,
    json: AsJson = False,
    report: bool = True,
) -> ExitStatus:
    """Answer one question in one sentence, without a study file.

    A word without `=` is a choice. A word with `=` is a coordinate: a setting of the family, or op, provider, server,
    users, rate. The other choices are compared with the first. A single choice is compared with itself at the first of
    the values that vary, or else with the choice that does nothing.

    tollbar ask digest sha-256 blake3
    tollbar ask digest blake3 --baseline sha-256 bytes=64B,4KiB
    tollbar ask digest sha-256 provider=libcrypto,libcrypto:psycopg
    tollbar ask signature rsa-2048 ed25519 op=sign --for 20s
    tollbar ask tls tls-1.3 server=nginx certificate=ecdsa-p256,rsa-2048
    tollbar ask web-auth anonymous jwt session-cookie users=8
    tollbar ask cipher aes-256-gcm chacha20-poly1305 --save my-study.toml
    tollbar ask tls --url https://localhost:8443/ --policy tlsref-intermediate

    Parameters
    ----------
    family
        Family of the choices, such as `digest` (`tollbar list families`).
    words
        Choices (`sha-256`, `aes-*`), and coordinates with their values (`bytes=64B,4KiB`).
    against
        Choice that the others are compared with, such as `sha-256`, or a coordinate with one value, such as
        `provider=aws-lc`; default: the first choice.
    for_
        Approximate measuring time, such as `20s`; default: 8 s, at most 1 min with `--precision`, or 30 s with `--url`.
        The fewest blocks that give an interval are always measured.
    precision
        Add blocks until every toll's interval is at most this wide to either side, such as `1%`, or `--for` is over.
    save
        New study file for the question, such as `my-study.toml`; `tollbar run` measures it again.
    url
        URL of your own server, such as `https://localhost:8443/`: a look at the TLS that it accepts, by at most 150
        connections, and the price of each change. `server=nginx` sets the server on which changes are priced; default:
        the kind that yours names itself, or `embedded`. `--for 0s` measures nothing.
    policy
        Policy that the `--url` must meet: a name (its newest edition, unless you name one) or your own TOML file.
        Repeatable; default: standings decide.
    i_own_this_server
        Host of the `--url`, such as `test.example.org`, to confirm that the server is yours. Repeatable.
    json
        Print one JSON document instead of tables; the sentences are in it, under `answers`.
    report
        Write `report.html` into the run's directory; default: on.
    """
    layout = layout_of("terminal", markdown=markdown, json=json)
    if family is None:
        hint = f"for example `tollbar ask digest sha-256 blake3`; families: {', '.join(families.families())}"
        raise TollbarError("`tollbar ask` needs a family and its choices", hint=hint)
    if url is not None:
        # Only a look needs its imports.
        from tollbar.cli.look import look

        given = {"--baseline": against, "--precision": precision, "--save": save}
        return look(
            family,
            words,
            url,
            policy,
            on,
            i_own_this_server,
            for_,
            seed,
            full_paths(library),
            runs,
            given,
            Layout(markdown=markdown, json=json),
        )
    _refuse_without_url({"--policy": policy, "--date": on, "--i-own-this-server": i_own_this_server})
    usual = DEFAULT_FOR if precision is None else DEFAULT_FOR_PRECISION
    within_s = read_seconds("--for", usual if for_ is None else for_)
    question = study.of_words(family, words, against)
    half = None if precision is None else read_precision(precision)
    named = full_paths(library)
    planned = plan.make((_read(question, FEWEST_BLOCKS),), seed=lab.drawn_seed(seed), named_libraries=named)
    _refuse_beyond_memory(planned, words)
    fitted = schedule.blocks_within(planned.studies[0], planned.seed, within_s, FEWEST_BLOCKS)
    with _kept(save, question) as keep:
        keep(fitted)
        _say(question, planned)
        for moved in _moved(words, planned):
            terminal.say(f"warning: {moved}", "yellow")
        needed_s = schedule.of_plan(planned)
        if needed_s > measuring.ABOUT * within_s:
            about = units.show_seconds(needed_s)
            terminal.say(f"  time       an interval needs at least {FEWEST_BLOCKS} blocks: about {about}")
        asked = lab.with_precision((_read(question, fitted if half is None else FEWEST_BLOCKS),), half, None)
        planned = planned.measured_as(asked)
        store = lab.begin_planned(planned, command=command_line(), runs=runs, named_libraries=named)
        try:
            # An operation's time is unknown before its proof.
            judged = measuring.carry_out(
                planned,
                store,
                report=report,
                how_long=lab.HowLong(within_s=within_s),
                briefly=True,
                expected_s=max(within_s, needed_s),
            )
        finally:
            # The number of measured blocks, because an operation's time was unknown before its proof.
            keep(results.about(store.directory)["studies"][study.ASKED]["blocks"])
    if save is not None:
        terminal.say(f"  study      {one_line(str(save))}")
    if layout == "markdown":
        terminal.show_markdown(judged)
    elif layout == "json":
        show(judged, as_json=True)
    else:
        terminal.show_judgement(judged, asked=True)
    return status_of(judged)


def _refuse_without_url(given: Mapping[str, object]) -> None:
    """Raise TollbarError for an option that only a look at a server has."""
    option = next((name for name, value in given.items() if value), None)
    if option is not None:
        hint = "for example `tollbar ask tls --url https://localhost:8443/ --policy tlsref-intermediate`"
        raise TollbarError(f"`{option}` needs `--url`", hint=hint)


@contextmanager
def _kept(save: Path | None, question: Question) -> Iterator[Callable[[int], None]]:
    """Yield a function that writes the question to a new file with a number of blocks; later calls replace it.

    An attempt that ends in an error leaves no file, so that it can be repeated; an interrupted one does.
    """
    made = False

    def keep(blocks: int) -> None:
        nonlocal made
        if save is not None and not made:
            write_anew(save, question.text(blocks))
            made = True
        elif save is not None:
            write_named(save, question.text(blocks))

    try:
        yield keep
    except Exception:
        if save is not None and made:
            save.unlink(missing_ok=True)
        raise


def _refuse_beyond_memory(planned: Plan, words: Sequence[str]) -> None:
    """Raise TollbarError for a named choice whose parameters need more memory than is free here.

    A choice selected by a pattern may need more: its row has the reason why it was not measured.
    """
    for cell in planned.studies[0].cells:
        reason = beyond_memory(cell) if cell.choice.name in words else None
        if reason:
            by = [f"`{name}`" for name in cell.choice.memory if name in cell.coordinates]
            hint = f"it is set by {' and '.join(by)}" if by else None
            raise TollbarError(f"{cell.choice.name}: {reason}", hint=hint)


def _read(question: Question, blocks: int) -> Study:
    return study.read(study.ASKED, question.text(blocks), where=study.ASKED)


def _say(question: Question, planned: Plan) -> None:
    """Print each coordinate of the question with its values, if the user wants details."""
    names = ", ".join(dict.fromkeys(str(receipt["name"]) for receipt in planned.receipts.values()))
    terminal.say_detail(f"  question   {planned.studies[0].study.question}")
    for name, values in {**question.echo, "provider": names}.items():
        terminal.say_detail(f"  {name:<10} {values}")


def _moved(words: Sequence[str], planned: Plan) -> Iterator[str]:
    """Yield that one choice has the others performed by another library than their usual one."""
    if any(word.partition("=")[0] in ("provider", "server") for word in words):
        return
    cells = [cell for cell in planned.cells if cell.standing is not Standing.NULL and cell.server is None]
    taken = {cell.provider.spec for cell in cells}
    choices = {cell.choice.name: asking.performing(families.family(cell.family), cell.coordinates) for cell in cells}
    usual = next((specs[0] for specs in choices.values() if specs and specs[0] not in taken), None)
    alone = [name for name, specs in choices.items() if usual not in specs]
    if usual is not None and alone and len(taken) == 1:
        (spec,) = taken
        yield (
            f"{usual} does not have {enumeration(alone)}, so {spec} performs all choices; add `provider={usual}` to"
            f" measure the others with {usual}"
        )
