"""Study of given cells of a family, without the other combinations of their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tollbar.catalog.families import Family, Value, fits
from tollbar.study.asking import Question, of_words, offering

NOT_ASKED = "It was not asked for."
# A chunk is one hash of up to seconds, so more rounds add little.
SLOW = {"rounds": 1}


def of_candidates(family: Family, words: Sequence[str], cells: Sequence[Mapping[str, Value]]) -> Question:
    """Return the question of these cells' costs, compared with the first, with the coordinates in `words`.

    A single cell is compared with the null choice. A cell has its choice, the settings that distinguish it, and its
    provider if that matters.
    """
    # In the family's order, in which a setting follows those that it depends on.
    names = [name for name in family.settings if any(name in cell for cell in cells)]
    cells = [{name: _written(family, name, value) for name, value in cell.items()} for cell in cells]
    vary = {name: [*dict.fromkeys(cell[name] for cell in cells if name in cell)] for name in names}
    choices = [*dict.fromkeys(str(cell["choice"]) for cell in cells)]
    performing = [*dict.fromkeys(cell["provider"] for cell in cells if "provider" in cell)]
    said = [word for word in words if word.partition("=")[0] not in (*vary, *(["provider"] * bool(performing)))]
    said += [f"provider={','.join(map(str, performing))}"] if performing else []
    if "op" not in [word.partition("=")[0] for word in said]:
        # One operation answers; the others are requested by name.
        said.append(f"op={_operation(family, names)}")
    asked = of_words(family.name, [*choices, *said], against=choices[0] if len(choices) > 1 else family.null.name)
    head, varied = dict(asked.tables[""]), dict(asked.tables["vary"])
    head["question"] = f"Which {family.name} costs least of those that qualify?"
    if len(cells) > 1:
        head |= {"choices": choices, "baseline": dict(cells[0])}
    by: dict[str, Sequence[Value]] = {"choice": choices, **({"provider": performing} if performing else {}), **vary}
    others = _others([*by], by, cells, {})
    left_out: list[Mapping[str, object]] = [{"where": where, "because": NOT_ASKED} for where in others]
    providers = [str(one) for one in head["providers"]] if isinstance(head["providers"], list) else []
    if len(providers) > 1 and "provider" not in [word.partition("=")[0] for word in said]:
        for choice in choices:
            first = offering(family, choice, providers)
            rest = [one for one in providers if one != first]
            if first is not None:
                left_out.append({"where": {"choice": choice, "provider": rest}, "because": f"{first} performs it."})
            if len(cells) > 1 and first is not None and choice == cells[0]["choice"]:
                head["baseline"] = {**cells[0], "provider": first}
    tables = {**asked.tables, "": head, "vary": {**varied, **vary}}
    return Question(tables, asked.echo, left_out, SLOW if family.parameters else {})


def _written(family: Family, name: str, value: Value) -> Value:
    """Return a cell's value as in a study file: numbers with a unit as text with it."""
    setting = family.settings.get(name)
    return setting.typed(value) if setting is not None and setting.unit is not None else value


def _operation(family: Family, names: Sequence[str]) -> str:
    """Return the first operation to which most distinguishing settings apply: signing, and not making a key."""
    telling = [one for one in family.settings.values() if one.about or one.name in names]
    return max(
        family.operations, key=lambda op: sum(fits({"op": one.only.get("op", ("*",))}, {"op": op}) for one in telling)
    )


def _others(
    names: Sequence[str],
    values: Mapping[str, Sequence[Value]],
    cells: Sequence[Mapping[str, Value]],
    at: Mapping[str, Value],
) -> Iterator[Mapping[str, object]]:
    """Yield the other combinations of these values briefly: the prefixes that no cell shares."""
    if not names:
        return
    name, *rest = names
    # A setting that does not apply to these cells is skipped.
    wanted = dict.fromkeys(cell.get(name) for cell in cells)
    others = [value for value in values[name] if value not in wanted]
    if others and [*wanted] != [None]:
        yield {**at, name: others}
    for value in wanted:
        here = at if value is None else {**at, name: value}
        yield from _others(rest, values, [cell for cell in cells if cell.get(name) == value], here)
