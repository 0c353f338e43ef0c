"""The study that measures some cells of a family beside each other, and no others of what they vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from tollbar.families import Family, Value, at_defaults
from tollbar.study.asking import Question, of_words, offering

NOT_ASKED = "It was not asked for."
# A chunk is one hash of up to seconds: few of them tell as much of it as many.
SLOW = {"rounds": 1}


def of_candidates(family: Family, words: Sequence[str], cells: Sequence[Mapping[str, Value]]) -> Question:
    """The question what these cells cost, beside the first of them, with the coordinates that words say.

    A cell has its choice, and the settings by which it is told from the others.
    """
    names = list(dict.fromkeys(name for cell in cells for name in cell if name != "choice"))
    vary = {name: [*dict.fromkeys(cell[name] for cell in cells if name in cell)] for name in names}
    choices = [*dict.fromkeys(str(cell["choice"]) for cell in cells)]
    said = [word for word in words if word.partition("=")[0] not in vary]
    if "op" not in [word.partition("=")[0] for word in said]:
        # One operation answers, as in `ask`; the others are asked for by name.
        said.append(f"op={family.operations[0]}")
    asked = of_words(family.name, [*choices, *said], against=choices[0])
    head, varied = dict(asked.tables[""]), dict(asked.tables["vary"])
    head["question"] = f"Which {family.name} costs least of those that qualify?"
    head["baseline"] = dict(cells[0])
    beds = head.get("beds")
    at = {"bed": str(beds[0])} if isinstance(beds, list) and beds else {}
    wanted = [{**cell} for cell in cells]
    left_out: list[Mapping[str, object]] = []
    for choice, *values in product(choices, *vary.values()):
        cell = at_defaults(family, {**at, "choice": choice, **dict(zip(vary, values, strict=True))})
        where = {name: cell[name] for name in ("choice", *vary) if name in cell}
        if where not in wanted and {"where": where, "because": NOT_ASKED} not in left_out:
            left_out.append({"where": where, "because": NOT_ASKED})
    providers = [str(one) for one in head["providers"]] if isinstance(head["providers"], list) else []
    if len(providers) > 1 and "provider" not in [word.partition("=")[0] for word in said]:
        for choice in choices:
            first = offering(family, choice, providers)
            others = [one for one in providers if one != first]
            if first is not None:
                left_out.append({"where": {"choice": choice, "provider": others}, "because": f"{first} performs it."})
            if first is not None and choice == cells[0]["choice"]:
                head["baseline"] = {**cells[0], "provider": first}
    tables = {**asked.tables, "": head, "vary": {**varied, **vary}}
    return Question(tables, asked.echo, left_out, SLOW if family.parameters else {})
