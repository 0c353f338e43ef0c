"""Settings that both builds support: where one of them has not a family's default, another value is asked of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from tollbar.catalog.families import Standing, Value, at_defaults
from tollbar.catalog.libraries import Provider
from tollbar.core.records import Outcome, Record
from tollbar.core.runner import ask
from tollbar.lab.workloads.instead import settings_instead
from tollbar.lab.workloads.operation import PROOF_LIMIT_S
from tollbar.study import Study
from tollbar.study.plan.cells import Cell

Ask = Callable[..., Record]

Values = Mapping[str, tuple[Value, ...]]
"""Values of one setting with which a choice is asked."""


def with_shared(study: Study, old: Provider, new: Provider, ask: Ask = ask) -> tuple[Values, list[dict[str, object]]]:
    """Return the values that a study varies so that both builds have its choices, and the combinations that it omits.

    A choice keeps its default where both have it, or have no other value in common. A default of only one build is
    included too: it is new, or gone.
    """
    wanted = {place: _values(study, *place, (old, new), ask) for place in _places(study)}
    vary: dict[str, tuple[Value, ...]] = {}
    leave_out: list[dict[str, object]] = []
    for name in dict.fromkeys(name for values in wanted.values() for name in values):
        usual = {place: _cell(study, *place, old).coordinates.get(name) for place in wanted}
        used = {
            place: values.get(name, (value,)) for place, values in wanted.items() if (value := usual[place]) is not None
        }
        vary[name] = tuple(dict.fromkeys(value for values in used.values() for value in values))
        for (choice, op), values in used.items():
            if idle := [value for value in vary[name] if value not in values]:
                where = {"choice": choice, "op": op, name: idle}
                leave_out.append({"where": where, "because": f"both builds are asked with `{name}={values[-1]}`"})
    return vary, leave_out


def _places(study: Study) -> Iterator[tuple[str, str]]:
    ops = map(str, study.vary.get("op", study.family.operations))
    return product(study.choices, ops)


def _values(study: Study, choice: str, op: str, sides: tuple[Provider, Provider], ask: Ask) -> Values:
    """Return the setting, if any, that takes another value than its default at a choice and operation."""
    cells = [_cell(study, choice, op, side) for side in sides]
    has_default = [_supports(cell, ask) for cell in cells]
    if all(has_default) or cells[0].standing is Standing.NULL:
        return {}
    for name, value, old in settings_instead(cells[0]):
        if name in study.vary:
            continue
        new = next((one for also, its, one in settings_instead(cells[1]) if (also, its) == (name, value)), None)
        if new is not None and _supports(old, ask) and _supports(new, ask):
            default = (cells[0].coordinates[name],) if any(has_default) else ()
            return {name: (*default, value)}
    return {}


def _cell(study: Study, choice: str, op: str, provider: Provider) -> Cell:
    family = study.family
    varied = {name: values[0] for name, values in study.vary.items()}
    at = at_defaults(family, {**varied, "choice": choice, "provider": provider.spec, "op": op})
    return Cell(
        study.name, family.name, family.choices[choice], provider, None, None, at, family.standing_of(at), None, None
    )


def _supports(cell: Cell, ask: Ask) -> bool:
    record = ask(cell.provider.runner, cell.task("verify", seed=1), limit_s=PROOF_LIMIT_S)
    return record.outcome is not Outcome.UNSUPPORTED
