"""What cells, settings, servers and costs are called, in sentences and tables alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tollbar.families import LOADS, Family, Setting, Standing, Value
from tollbar.units import UNPACED

if TYPE_CHECKING:
    # What measures nothing is answered without the judge, which takes longer to import than all else.
    from tollbar.judge import StudyJudgement
    from tollbar.results import Row
    from tollbar.study import Cost

STANDINGS = tuple(Standing)
# Standings that a reader must meet beside the name, wherever the name stands.
CALLED_OUT = (Standing.DEPRECATED, Standing.DISALLOWED, Standing.BROKEN)
# A mark beside each verdict, so that a column of them reads without colour.
VERDICT_MARKS: Mapping[str, str] = {"costs": "▲", "saves": "▼", "free": "=", "unclear": "?", "not measured": "–"}
EMBEDDED_SERVER = "Tollbar's own server"
"""What the server `embedded` is to a reader who never wrote a study."""
LIMIT_MARKS: Mapping[str, str] = {"client-bound": "†", "not saturated": "‡", "contended": "§"}
"""What stands behind requests a second and response times that something other than the server limited."""
# What every family has; a value of one of these says by itself what it is.
_TITLES = {
    "choice": "choice",
    "provider": "provider",
    "op": "operation",
    "server": "server",
    "users": "users",
    "rate": "arrivals a second",
    "utilisation": "share of a core",
    "threads": "threads",
}
_CLIENT_PLACES = {"beside": "on the server's core", "apart": "on a core of its own"}


def column_title(family: Family, name: str) -> str:
    """A coordinate's name in a word or two: a setting's own title may be a sentence about its values."""
    setting = family.settings.get(name)
    return setting.title if setting is not None and setting.is_size else _TITLES.get(name, name.replace("-", " "))


def value_words(family: Family, name: str, value: Value) -> str:
    """A coordinate's value by itself: a choice by its title, a size with its unit, `fresh`."""
    if name == "choice" and value in family.choices:
        return family.choices[str(value)].title
    if name == "server" and str(value).partition(" ")[0] == "embedded":
        return EMBEDDED_SERVER
    if name == "client":
        return _CLIENT_PLACES.get(str(value), str(value))
    if isinstance(value, str):
        return value
    if name in ("users", "threads"):
        return f"1 {name.removesuffix('s')}" if value == 1 else f"{value:,} {name}"
    if name == "rate":
        return f"{value:,}\u00a0/s" if value else UNPACED
    if name == "utilisation":
        return f"{value}\u00a0% busy" if value else UNPACED
    setting = family.settings.get(name)
    return f"{value:,}" if setting is None else setting.words(value)


def named_value(family: Family, name: str, value: Value) -> str:
    """The same with its name where it says nothing by itself: `key fresh`, but `SHA-256` and `4 KiB`."""
    setting = family.settings.get(name)
    clear = name in _TITLES or (setting is not None and (setting.is_size or _is_known(family, setting, value)))
    words = value_words(family, name, value)
    return words if clear else f"{name.replace('-', ' ')} {words}"


def coordinate(family: Family, name: str, value: Value) -> str:
    """A coordinate as a command has it: a choice by its name, a number with its own: `blake3`, `4 KiB`, `cost 12`."""
    return named_value(family, name, value) if name in family.settings or name in ("client", "threads") else str(value)


def _is_known(family: Family, setting: Setting, value: Value) -> bool:
    """Whether a setting's value is a thing with a name of its own, such as `x25519`, and which one is plain."""
    earlier = list(family.settings)[: list(family.settings).index(setting.name)]
    others = (known for name in earlier for known in family.settings[name].values or ())
    names_itself = isinstance(value, str) and value not in _ANSWERS
    return names_itself and value in setting.about and not any(str(other).startswith(str(value)) for other in others)


_ANSWERS = ("on", "off", "yes", "no", "clear", "plain")
"""Values that say something only of what they are asked about."""


def place_of(family: Family, coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
    """Where a cell stands along these coordinates: `SHA-256 · openssl 3.0.19 · 4 KiB`.

    A server and the library that it runs on are one thing to a reader: `nginx 1.22.1, openssl 3.0.19`.
    """
    said: dict[str, str] = {n: named_value(family, n, coordinates[n]) for n in names if n in coordinates}
    if "server" in said and "provider" in said:
        said["server"] = f"{said['server']}, {said.pop('provider')}"
    return " · ".join(said.values())


def where_in(family: Family, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """What some cells have in common: `at 64 B, on openssl 3.0.19`; each list cut to `most` values."""
    parts: list[tuple[str, str]] = []
    for name, values in where.items():
        first = named_value(family, name, values[0])
        shown = [first, *(value_words(family, name, v) for v in values[1:most])]
        shown = [quoted(w) if name == "choice" else w for w in shown]
        if len(values) > most:
            shown.append(f"{len(values) - most} more")
        setting = family.settings.get(name)
        is_size = name in LOADS or (setting is not None and setting.is_size)
        other = "at" if is_size else "with"
        preposition = {"choice": "for", "provider": "on", "server": "on", "op": "for"}.get(name, other)
        # Settings that follow one another have one word before them: `with passes 1, lanes 1`.
        follows = bool(parts) and preposition == parts[-1][0] == "with"
        parts.append((preposition, f"{'' if follows else preposition + ' '}{enumeration(shown)}"))
    return ", ".join(text for _, text in parts)


def quoted(name: str) -> str:
    """A name as it stands in a sentence: in quotation marks where its own comma or phrase would confuse."""
    phrase = " " in name and name[0].islower()
    return f"“{name}”" if "," in name or phrase else name


def capitalised(text: str) -> str:
    """The text with the capital that opens a sentence."""
    return text[:1].upper() + text[1:]


def slug(text: str) -> str:
    """The text as part of a link: `every-result`, `key-fresh-aes-128-gcm`."""
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 cell`, `2 cells`, `2 batches`."""
    plural = f"{noun}es" if noun.endswith(("ch", "s", "x")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def enumeration(words: Sequence[str], joint: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {joint} {words[-1]}"


def worst(rows: Iterable[Row]) -> Standing | None:
    """The worst standing of these cells, the null choice left out; None where no other is among them."""
    found = [row.standing for row in rows if row.standing is not Standing.NULL]
    return max(found, key=STANDINGS.index, default=None)


def standing_words(standing: Standing) -> str:
    """A standing for people."""
    return standing.words


# What one may choose today: only these make the frontier.
IN_GOOD_STANDING = (Standing.RECOMMENDED, Standing.ACCEPTABLE)
# What this share of the cells have alike is said once, and not in every name.
PREVAILS = 0.8
# Coordinates that rows show with a version.
VERSIONED = ("server", "provider")
PlaceWords = Callable[[Mapping[str, Value], Iterable[str]], str]
"""Writes coordinates in words, along the names given."""


def baseline_words(study: StudyJudgement) -> str:
    """What the tolls are against, as the study names it: `SHA-256`, `RSA-2048 · padding pss`."""
    baseline = study.about.baseline
    named = {name: study.study.named(name, value) for name, value in baseline.items()}
    return place_of(study.about.family, named, baseline) or "the baseline"


def on_one_core(study: StudyJudgement, names: Iterable[str]) -> str:
    """What is said of libraries that are compared, unless with threads: locks show only with several threads."""
    with_threads = any(row.coordinates.get("threads", 1) != 1 for row in study.rows)
    return " on one core" if "provider" in names and not with_threads else ""


def varying(rows: Iterable[Row], always: Sequence[str] = ()) -> tuple[str, ...]:
    """The coordinates with more than one value among these rows: choice, server and provider first, then the rest.

    Those of `always` that any row has stand among them, whatever their values.
    """
    first: dict[str, Value] = {}
    found: set[str] = set()
    for row in rows:
        for name, value in row.coordinates.items():
            if first.setdefault(name, value) != value:
                found.add(name)
    found |= first.keys() & {*always}
    # The load comes last: rows of one cell differ in nothing else.
    ordered = dict.fromkeys(
        ["choice", "server", "provider", "op", *(name for name in first if name not in LOADS), *LOADS]
    )
    return tuple(name for name in ordered if name in found)


def place_words(study: StudyJudgement) -> PlaceWords:
    """Gives each place its words, with versions of server and library: `nginx 1.22.1, openssl 3.0.19 · rsa-2048`."""
    family = study.about.family
    versioned = [
        (name, row.coordinates[name], row.shown[name])
        for row in study.rows
        for name in VERSIONED
        if name in row.coordinates
    ]
    named = {(name, value): shown for name, value, shown in versioned}

    def place(coordinates: Mapping[str, Value], names: Iterable[str]) -> str:
        shown = {name: named.get((name, value), value) for name, value in coordinates.items()}
        return place_of(family, shown, names)

    return place


def where_words(study: StudyJudgement, where: Mapping[str, Sequence[Value]], most: int = 4) -> str:
    """What some cells have in common: `at 64 B, on openssl 3.0.19`; each list cut to `most` values."""
    named = {name: [study.study.named(name, value) for value in values] for name, values in where.items()}
    return where_in(study.about.family, named, most)


def labels(study: StudyJudgement, names: Sequence[str], *, whole: bool = False) -> Callable[[Row], str]:
    """Gives each row its name along these coordinates: `RSA-2048`, but `RSA-2048 · padding pss`.

    Without what is as in the baseline, unless the `whole` name is wanted, and without what prevails.
    """
    place = place_words(study)
    silent: Mapping[str, Value] = prevailing(study) | ({} if whole else dict(study.about.baseline))

    def label(row: Row) -> str:
        said = [n for n in names if n == "choice" or n not in silent or row.coordinates.get(n) != silent[n]]
        return place(row.coordinates, said) or row.title

    return label


def whole_labels(study: StudyJudgement) -> Callable[[Row], str]:
    """Gives each row the name that tells its cell from all others of the study, whatever the load."""
    return labels(study, cell_names(study), whole=True)


def cell_names(study: StudyJudgement) -> list[str]:
    """The coordinates that tell the study's cells apart, whatever the load."""
    return [n for n in varying(study.rows) if n not in LOADS] or ["choice"]


def prevailing(study: StudyJudgement) -> dict[str, Value]:
    """The settings that nearly all cells have at their default, with that default."""
    rows = study.rows
    vary = varying(rows)
    found: dict[str, Value] = {}
    for name, setting in study.about.family.settings.items():
        values = [r.coordinates[name] for r in rows if name in r.coordinates]
        if name in vary and not setting.is_size and values.count(setting.default) > PREVAILS * len(values):
            found[name] = setting.default
    return found


EMBEDDED = "embedded"


def plain(family: Family | None, name: str, value: Value | None) -> str:
    """A coordinate as a study writes it, numbers with their units."""
    if value is None:
        return ""
    if name in LOADS and not value:
        return UNPACED
    setting = family.settings.get(name) if family else None
    return str(value) if setting is None else setting.words(value)


def said_plain(study: StudyJudgement, name: str, value: Value) -> str:
    """The same where no column is headed by its name: `users 5`, `key fresh`, but `4 KiB` and `openssl 3.0.19`."""
    if name in ("choice", "provider", "server", "op"):
        return EMBEDDED_SERVER if name == "server" and str(value).startswith(EMBEDDED) else str(value)
    if name in (*LOADS, "threads"):
        return value_words(study.about.family, name, value)
    setting = study.about.family.settings.get(name)
    words_ = plain(study.about.family, name, value)
    return words_ if setting is not None and setting.is_size else f"{name} {words_}"


def interval_title(study: StudyJudgement) -> str:
    """`96 % interval`."""
    return f"{100 * study.confidence:.4g} % interval"


@dataclass(frozen=True, slots=True)
class CostWords:
    """What one kind of cost is called."""

    title: str
    """At the head of an axis or a column."""
    cpu: str
    """Whose CPU time it is: `67 µs of server CPU`."""
    short: str
    """In a list of things that are multiplied: `times the server CPU`."""
    column: str
    """At the head of a terminal's column."""
    in_sentence: str
    """As the object of a sentence: `server CPU per request`."""
    method: str
    """How it comes about."""


_IN_BLOCKS = (
    "In each block every cell is a fresh {}, in a batch with its baseline and a few other cells that is drawn anew: all"
    " are up at once on one core and work in turn, in random order, a few milliseconds at a time."
)
COST_WORDS: Mapping[Cost, CostWords] = {
    "cpu": CostWords(
        title="CPU time per operation",
        cpu="CPU",
        short="CPU time",
        column="CPU / op",
        in_sentence="CPU time per operation",
        method="Cost is CPU time per operation, user and system. " + _IN_BLOCKS.format("process"),
    ),
    "server-cpu": CostWords(
        title="Server CPU per request",
        cpu="server CPU",
        short="server CPU",
        column="server CPU",
        in_sentence="server CPU per request",
        method="Through a server, cost is the CPU time per request, user and system, of all the server's processes."
        " The load client's own is not counted, whether it shares their core in rounds, as it does unless the study"
        " says otherwise, or has another; nothing is in flight when the accounts are opened or closed. "
        + _IN_BLOCKS.format("server"),
    ),
    "client-cpu": CostWords(
        title="Client CPU per request",
        cpu="client CPU",
        short="client CPU",
        column="client CPU",
        in_sentence="client CPU per request",
        method="Here cost is the load client's own CPU time per request, user and system, and not the server's. "
        + _IN_BLOCKS.format("client"),
    ),
}
_FOUND = (
    "On a server of the user's own, cost is the CPU time per request, user and system, of its processes that were"
    " named and of all below them. It ran as it was found: one server for all blocks, on whichever cores it chose; what"
    " it did meanwhile for others, or by itself, is in the cost. " + _IN_BLOCKS.format("client")
)


def cost_words(study: StudyJudgement) -> CostWords:
    """What this study's cost is called."""
    words = COST_WORDS[study.about.measure.cost]
    is_found = study.about.remotes and study.about.measure.cost == "server-cpu"
    return replace(words, method=_FOUND) if is_found else words


_ONE = {
    "authenticate": "a tag",
    "connect": "a connection",
    "connection": "a connection",
    "context": "a context",
    "decrypt": "a decryption",
    "encrypt": "an encryption",
    "first": "a fresh process",
    "generate-key": "a key",
    "hash": "a hash",
    "request": "a request",
    "round-trip": "a round trip",
    "sign": "a signature",
    "sign-on": "a sign-on",
    "verify": "a verification",
}
"""One of each, in the words of the field. An operation that is not here is called by its name."""


def each_words(study: StudyJudgement, operation: Value | None) -> str:
    """What stands behind a cost of one operation: `of CPU a signature`."""
    one = "an operation" if operation is None else _ONE.get(str(operation), f"per {operation}")
    return f"of {cost_words(study).cpu} {one}"


def sizes_of(study: StudyJudgement, coordinates: Mapping[str, Value]) -> dict[str, Value]:
    """The sizes at which a cost stands, without which it says nothing: all that an operation works on."""
    settings = study.about.family.settings
    return {n: v for n, v in coordinates.items() if n in settings and settings[n].is_size}
