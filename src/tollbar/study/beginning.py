"""Template of a study: every key of one family, with its meaning and its default."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from tollbar.catalog import families
from tollbar.catalog.families import Choice, Family, Setting, Standing, Value
from tollbar.catalog.families.settings import IN_BYTES
from tollbar.core.wire import written
from tollbar.study.asking import of_words
from tollbar.study.values import DEFAULT_MEASURE, DEFAULT_THRESHOLD

GOOD = (Standing.RECOMMENDED, Standing.ACCEPTABLE)
# The least number that allows a comparison.
CHOICES = 2
WIDTH = 110


def begun(name: str) -> str:
    """Return the text of a study of this family, ready to run. Raises TollbarError for an unknown family."""
    return "\n".join(_lines(families.family(name))).lstrip("\n") + "\n"


def _lines(family: Family) -> Iterator[str]:
    real = [one for one in family.choices.values() if one.standing.is_of_option and not one.is_set_by_study]
    first = ([one for one in real if one.standing in GOOD] or real)[:CHOICES]
    tables = of_words(family.name, [choice.name for choice in first]).tables
    head, varied = tables[""], dict(tables["vary"])
    yield from _said(f"A study of the family {family.name}: {family.title}. Every key is explained in docs/studies.md.")
    yield from _key("question", head["question"])
    yield from _key("family", family.name)
    yield from _said("The choices to compare, by name or by a pattern such as `*`:")
    width = max(map(len, family.choices))
    yield from (f"#   {choice.name:<{width}}  {_standing(choice)}" for choice in family.choices.values())
    yield from _key("choices", head["choices"])
    if "servers" in head:
        yield from _said("The servers to measure through; `tollbar list servers` lists the installed ones.")
        yield from _key("servers", head["servers"])
    yield from _said("The libraries that perform the choices; `tollbar list providers` lists the installed ones.")
    yield from _key("providers", head["providers"])
    yield from _said("The cell that others are compared with, everything else equal; default: the first choice.")
    yield from _key("baseline", head["baseline"])
    yield from _vary(family, varied)
    if tables["load"]:
        yield from _said(
            "The users' requests: `users` are simultaneous users, a cell for each number; `think` is a user's pause"
            " between requests."
        )
        yield "[load]"
        yield from (f"{key} = {written(value)}" for key, value in tables["load"].items())
        yield '# think = "0 s"'
    yield from _measure()
    yield from _examples(family, [choice.name for choice in first])


def _vary(family: Family, varied: dict[str, object]) -> Iterator[str]:
    yield from _said("Each combination of these values is a cell. Omitted settings have their default.")
    yield "[vary]"
    operations = varied.get("op", family.operations)
    yield f"# The operations: {', '.join(family.operations)}; default: all of them."
    yield f"op = {written(operations)}"
    for setting in family.settings.values():
        yield ""
        yield from (f"# {line}" for line in wrap(f"{setting.title}{_values(setting)}", WIDTH))
        if setting.only:
            yield from (f"# {line}" for line in wrap(f"It applies if {_places(setting)}.", WIDTH))
        yield f"# {setting.name} = {written([_default(setting)])}"


def _values(setting: Setting) -> str:
    if setting.unit in IN_BYTES:
        return f": a size with its unit; default: {setting.words(setting.default)}"
    known = f": {', '.join(map(str, setting.values))}" if setting.values else ""
    known = ": a power of two" if setting.unit == "power-of-two" else ": a whole number" if setting.is_count else known
    return f"{known}; default: {setting.words(setting.default)}"


def _places(setting: Setting) -> str:
    said = ((name, [value or "absent" for value in values]) for name, values in setting.only.items())
    return " and ".join(f"{name} is {' or '.join(values)}" for name, values in said)


def _default(setting: Setting) -> Value:
    return setting.default if setting.is_count or setting.values else setting.words(setting.default)


def _measure() -> Iterator[str]:
    yield from _said(
        "The measurements of each cell: the length of a chunk, the chunks of a trial (`rounds`), and the repetitions"
        " with fresh processes (`blocks`). More blocks make intervals narrower."
    )
    yield "[measure]"
    yield f'# chunk = "{DEFAULT_MEASURE.chunk_s * 1000:g} ms"'
    yield f"# rounds = {DEFAULT_MEASURE.rounds}"
    yield f"# blocks = {DEFAULT_MEASURE.blocks}"
    yield from _said("Differences below this threshold are ignored.")
    yield "# [judge]"
    yield f'# threshold = "{DEFAULT_THRESHOLD:.0%}"'


def _examples(family: Family, names: list[str]) -> Iterator[str]:
    yield from _said("Combinations that are not measured, with the reason.")
    yield "# [[leave-out]]"
    yield f"# where = {{ choice = {written(names[-1])}, op = {written(family.operations[-1])} }}"
    yield '# because = "…"'
    yield from _said("A published comparison to test again here: a `ratio`, or an `order`.")
    yield "# [[claim]]"
    yield '# says = "…"'
    yield f"# of = {{ choice = {written(names[-1])} }}"
    yield f"# over = {{ choice = {written(names[0])} }}"
    yield '# metric = "cost"'
    yield "# ratio = 2.0"


def _standing(choice: Choice) -> str:
    return f"{choice.title}: {choice.standing_text}"


def _said(text: str) -> Iterator[str]:
    yield ""
    yield from (f"# {line}" for line in wrap(text, WIDTH))


def _key(name: str, value: object) -> Iterator[str]:
    yield f"{name} = {written(value)}"
