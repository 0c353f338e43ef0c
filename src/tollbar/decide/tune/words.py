"""Answer of `tune`: parameters for the requested time, and an attacker's guesses against each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tollbar.catalog.families import Family
from tollbar.core import units
from tollbar.core.words import counted, enumeration
from tollbar.decide.shared import excepted_words, reason_words
from tollbar.decide.tune import (
    ALGORITHMS,
    NEAR,
    Asked,
    Elapsed,
    Measured,
    Missed,
    Parameters,
    Rate,
    Tuned,
    Tuning,
    attackers,
    pasted,
)
from tollbar.report.blocks import DASH, Brief, Column, Listing, Table, TableCell, row_names
from tollbar.report.coordinates import Form, named_value
from tollbar.report.numbers import figure_words, percent_of
from tollbar.report.standings import standing_words

# Share of the available cores below which other programs were at work as well.
QUIET = 0.9


def tune_answer(found: Tuning) -> Brief:
    """Return the answer about a tuning."""
    asked = found.asked
    names = enumeration([f"`{policy.name}`" for policy in asked.wanted.policies])
    tables = [_table(asked, "met" if found.unsaid else "", found.tuned), _table(asked, "undecided", found.unsaid)]
    return Brief(
        f"Which password hash takes at most {_time(asked.within_s)}, {_at_once(asked)}, and meets {names}?",
        _headline(found),
        how=tuple(_how(found)),
        listings=tuple(_listings(found, [table for table in tables if table.rows])),
        notes=tuple(_notes(asked)),
        warnings=tuple(_warnings(found)),
    )


def parameter_words(family: Family, parameters: Parameters) -> str:
    """Return parameters in words: `memory 46 MiB, passes 1, lanes 1`."""
    return ", ".join(named_value(family, name, value, Form.QUESTION) for name, value in parameters.items())


def rate_words(rate: Rate) -> str:
    """Return the publisher of a rate, and whether the source was read."""
    dated = f", {rate.dated}" if rate.dated else ""
    return f"{rate.source}{dated}; {'read' if rate.checked else 'seen'} {rate.seen}"


def _time(seconds: float) -> str:
    return units.show_nanoseconds(seconds * 1e9)


def _at_once(asked: Asked) -> str:
    return "one at a time" if asked.at_once == 1 else f"{asked.at_once} at once"


def _headline(found: Tuning) -> str:
    asked = found.asked
    if found.tuned:
        first = found.tuned[0]
        words = parameter_words(asked.family, first.measured.parameters)
        took = f"{first.choice.title} with {words} takes {_time(first.measured.elapsed.median_s)}, {_at_once(asked)}"
        rate = first.guesses.published
        if rate is None:
            return f"{took}."
        guesses = (
            f"{figure_words(rate)} guesses" if len(found.tuned) == 1 else f"the fewest guesses, {figure_words(rate)}"
        )
        card = first.guesses.card.title
        said = f"{took}, and leaves an attacker {guesses} a second on a {card}, by published rates"
        other = _first_by_memory(found)
        # Compare by memory only if the first is bounded by memory too.
        if other is not None and other is not first and first.guesses.by_memory:
            return f"{said}; by memory bandwidth, {other.choice.title} leaves the fewest."
        return f"{said}."
    said = f"No password hash meets them within {_time(asked.within_s)}"
    if found.unsaid:
        return f"{said}; {enumeration([one.choice.title for one in found.unsaid])} may: facts are missing."
    if found.nearest and found.nearest.measured:
        one = found.nearest
        took_s = found.nearest.measured.elapsed.median_s
        words = parameter_words(asked.family, found.nearest.measured.parameters)
        return f"{said}. The nearest is {one.choice.title} with {words}: {_time(took_s)}."
    needs = min((one.needs_bytes for one in found.missed if one.needs_bytes), default=None)
    more = f" and in less memory than {units.show_bytes(needs)}" if needs else ""
    return f"{said}{more}."


def _first_by_memory(found: Tuning) -> Tuned | None:
    """Return the result with the fewest guesses by memory; None where memory bounds fewer than two."""
    fed = [(one.guesses.by_memory, one) for one in found.tuned if one.guesses.by_memory]
    return min(fed, key=lambda pair: pair[0])[1] if len(fed) > 1 else None


def _how(found: Tuning) -> Iterator[str]:
    asked = found.asked
    cores, memory = asked.limits.cores, asked.limits.memory
    waits = ", so each waits for others" if asked.at_once > cores.amount else ""
    under_way = "one runs" if asked.at_once == 1 else f"{asked.at_once} run at once"
    yield (
        f"Times are the median elapsed time of one hash while {under_way} on {figure_cores(cores.amount)}"
        f" ({cores.by}){waits}, measured again after the search."
    )
    together = "The hash" if asked.at_once == 1 else "All hashes together"
    if asked.memory_by == memory.by:
        yield f"{together} may use {units.show_bytes(memory.amount)} of memory ({memory.by})."
    else:
        yield (
            f"{together} may use {units.show_bytes(asked.memory_bytes)} of memory ({asked.memory_by}) of"
            f" {units.show_bytes(memory.amount)} ({memory.by})."
        )
    card = attackers().card[asked.card]
    if found.tuned or found.unsaid:
        yield (
            f"Guesses a second are for a {card.title}: the published rate, scaled by the work; and the limit of its"
            f" memory bandwidth, {card.bytes_per_second / 1e9:,.0f} GB a second."
        )


def figure_cores(cores: float) -> str:
    """Return cores in words: `2 cores`, `1.5 cores`."""
    return counted(int(cores), "core") if cores == int(cores) else f"{cores:.2g} cores"


def _listings(found: Tuning, tables: Sequence[Table]) -> Iterator[Listing]:
    tuned = [*found.tuned, *found.unsaid]
    missed = Listing("Hashes without suitable parameters", [_missed(found.asked, one) for one in found.missed])
    if not tuned:
        yield missed
        return
    yield Listing("Parameters, fewest published guesses first", tables=tables, heads="policies")
    if found.missed:
        yield missed
    yield Listing(
        "To paste",
        tables=[
            Table(
                one.choice.title,
                (*row_names("where"), Column("setting")),
                [
                    [TableCell(place), TableCell(f"`{text}`" if text else "not supported")]
                    for place, text in pasted(one.choice.name, one.measured.parameters).items()
                ],
            )
            for one in tuned
        ],
        heads="hash",
        notes=[
            "Times are those of the library named above. Another implementation, for example Bouncy Castle in Spring"
            " and Keycloak, has other times."
        ],
    )
    rates = [(one, one.guesses.rate) for one in tuned if one.guesses.rate]
    yield Listing(
        "Published rates",
        tables=[
            Table(
                "",
                (*row_names("hash"), Column("guesses/s", True), Column("parameters"), Column("tool", leaves=1)),
                [_published(found.asked, one, rate) for one, rate in rates],
            )
        ],
    )


def _published(asked: Asked, one: Tuned, rate: Rate) -> list[TableCell]:
    with_ = {name: int(asked.family.settings[name].read(value)) for name, value in rate.parameters.items()}
    return [
        TableCell(one.choice.title, small=f"scaled by {ALGORITHMS[one.choice.name].rule}; {rate_words(rate)}"),
        TableCell(f"{rate.per_second:,.0f}", rate.per_second),
        TableCell(parameter_words(asked.family, with_)),
        TableCell(rate.tool),
    ]


def _table(asked: Asked, caption: str, tuned: Sequence[Tuned]) -> Table:
    columns = (
        *row_names("hash"),
        Column("parameters", names=True),
        Column("median time", True),
        Column("95 % within", True, leaves=2),
        Column("memory, all", True, leaves=3),
        Column("guesses/s, published", True),
        Column("guesses/s, by memory", True),
    )
    return Table(caption, columns, [_row(asked, one) for one in tuned])


def _row(asked: Asked, one: Tuned) -> list[TableCell]:
    elapsed, memory = one.measured.elapsed, one.measured.memory_bytes * asked.at_once
    return [
        TableCell(one.choice.title, small="; ".join(_remarks(asked, one)), standing=one.standing),
        TableCell(parameter_words(asked.family, one.measured.parameters)),
        TableCell(_time(elapsed.median_s), elapsed.median_s),
        TableCell(_time(elapsed.p95_s), elapsed.p95_s),
        TableCell(units.show_bytes(memory), memory) if memory else DASH,
        _guesses(one.guesses.published),
        _guesses(one.guesses.by_memory),
    ]


def _guesses(rate: float | None) -> TableCell:
    return DASH if rate is None else TableCell(figure_words(rate), rate)


def _remarks(asked: Asked, one: Tuned) -> Iterator[str]:
    yield f"{standing_words(one.standing)}; by {one.provider.name}"
    yield from (reason_words(reason) for reason in one.candidate.missing)
    yield from map(excepted_words, one.candidate.excepted)
    yield from (f"advice not followed: {reason_words(reason)}" for reason in one.candidate.advice)
    if one.guesses.published is None:
        yield "no published rate of guesses"
    if one.guesses.by_memory is None:
        yield "memory does not limit guesses"
    if not one.is_near:
        if one.measured.elapsed.median_s < (1 - NEAR) * asked.within_s:
            yield f"{percent_of(1 - one.measured.elapsed.median_s / asked.within_s)} below the limit"
        if one.beyond:
            yield _took(asked, one.beyond)
        elif one.choice.name == "bcrypt":
            cost, took_s = one.measured.parameters["cost"], one.measured.elapsed.median_s
            yield f"cost {cost + 1} would take twice as long, about {_time(2 * took_s)}"


def _took(asked: Asked, one: Measured) -> str:
    return f"{parameter_words(asked.family, one.parameters)} takes {_time(one.elapsed.median_s)}"


def _missed(asked: Asked, one: Missed) -> str:
    name = one.choice.title
    if one.reason:
        return f"{name}: {one.reason}"
    least = "the cheapest allowed parameters"
    if one.measured:
        times = units.show_ratio(one.measured.elapsed.median_s / asked.within_s)
        words = parameter_words(asked.family, one.measured.parameters)
        return f"{name}: {least}, {words}, take {_time(one.measured.elapsed.median_s)}, {times} times the limit."
    if one.needs_bytes:
        needs, most = units.show_bytes(one.needs_bytes), units.show_bytes(asked.memory_bytes)
        return f"{name}: {least} need {needs} of memory, {_at_once(asked)}; the limit is {most}."
    broken = [reason_words(reason) for reason in one.candidate.broken] if one.candidate else []
    return f"{name}: {'; '.join(broken) or 'its standing is disallowed or worse with all parameters'}."


def _notes(asked: Asked) -> Iterator[str]:
    for policy in asked.wanted.policies:
        what = "; ".join(one.what for one in policy.not_judged)
        if what:
            yield f"`{policy.name}` has requirements that are not judged here: {what}."


def _warnings(found: Tuning) -> Iterator[str]:
    measured = [(one.choice.title, one.measured.elapsed) for one in (*found.tuned, *found.unsaid)]
    measured += [(one.choice.title, one.measured.elapsed) for one in found.missed if one.measured]
    could = min(found.asked.at_once, found.asked.limits.cores.amount)
    noisy = [(name, elapsed) for name, elapsed in measured if was_contended(found.asked, elapsed)]
    if noisy:
        least = min(elapsed.cores for _, elapsed in noisy)
        yield (
            f"other programs used the cores: {enumeration([name for name, _ in noisy])} got as little as {least:.2g} of"
            f" {figure_cores(could)}; on an idle machine the times are shorter"
        )


def was_contended(asked: Asked, elapsed: Elapsed) -> bool:
    """Return true if the hashes had fewer cores than they could have had."""
    return elapsed.cores < QUIET * min(asked.at_once, asked.limits.cores.amount)
