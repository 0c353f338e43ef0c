"""Agreement of `choose`, `check`, `price` and `tune` on the same settings under the same policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tollbar.catalog import policies
from tollbar.catalog.families import Family, Setting, Standing, Value, at_defaults, families
from tollbar.catalog.policies import Ruling
from tollbar.cli import choose as command
from tollbar.core import wire
from tollbar.decide.candidates import nearby
from tollbar.decide.rulings import Wanted, candidate
from tollbar.decide.tune import fitting
from tollbar.decide.tune.algorithms import ALGORITHMS
from tollbar.decide.tune.answers import Asked
from tollbar.study import coordinates_of

TODAY = date(2026, 11, 27)
POLICIES = [
    (name, family)
    for name in policies.shipped()
    for family in families().values()
    if policies.policy(name).is_about(family.name)
]


def values_of(setting: Setting) -> st.SearchStrategy[Value]:
    """Draw values of a setting, including numbers near its default and at its bounds."""
    if setting.values is not None:
        return st.sampled_from(setting.values)
    if setting.is_share:
        return st.integers(0, 100)
    if not setting.is_number:
        return st.just(setting.default)
    default = int(setting.default)
    step = max(setting.multiple_of, 1)
    if setting.unit == "power-of-two":
        return st.sampled_from([default >> 7, default >> 3, default >> 1, default, default << 1])
    near = [default // 20, default // 2, default, default * 2, default * 4, setting.least or step]
    allowed = [n - n % step for n in near if (setting.least or 0) <= n - n % step <= (setting.most or n)]
    return st.sampled_from(sorted(set(allowed)) or [default])


@st.composite
def cells(draw: st.DrawFn, family: Family) -> Mapping[str, Value]:
    """Draw whole cells of a family, some settings of which are not at their defaults."""
    places = [
        {"op": family.operations[0], **({"server": server} if server else {})} for server in family.servers or ("",)
    ]
    named = [{"choice": one.name, **at} for one in family.choices.values() for at in places]
    protecting = [at for at in named if family.choices[at["choice"]].standing is not Standing.NULL]
    possible = [at for at in protecting if is_possible(family, at_defaults(family, at))]
    at: dict[str, Value] = dict(draw(st.sampled_from(possible)))
    for name, setting in family.settings.items():
        if draw(st.booleans()):
            tried = {**at, name: draw(values_of(setting))}
            if is_possible(family, at_defaults(family, tried)):
                at = tried
    return at_defaults(family, at)


def is_possible(family: Family, cell: Mapping[str, Value]) -> bool:
    """Return whether a cell can exist."""
    return family.why_unsupported(cell) is None and family.contradiction(cell) is None


def words_of(family: Family, cell: Mapping[str, Value]) -> list[str]:
    """Return the words that a user types for a cell after the choice."""
    typed = {n: family.settings[n].typed(v) if n in family.settings else str(v) for n, v in cell.items()}
    return [f"{name}={value}" for name, value in typed.items() if name != "choice"]


def by_choose(wanted: Wanted, cell: Mapping[str, Value]) -> Ruling:
    """Return the ruling of `choose` on a fully named cell."""
    said = coordinates_of(wanted.family, words_of(wanted.family, cell))
    given_words = command._given(wanted.family, [str(cell["choice"])], said)
    near = nearby(wanted, command._judged_by(wanted, given_words))
    assume(near.candidates)
    return max((one.ruling for one in near.candidates), key=[Ruling.BREAKS, Ruling.CANNOT_SAY, Ruling.MEETS].index)


def by_check(family: Family, policy: str, cell: Mapping[str, Value], folder: Path) -> Ruling:
    """Return the ruling of `check policy` on a project that uses the cell."""
    written = {n: one.typed(cell[n]) if one.is_number else cell[n] for n, one in family.settings.items() if n in cell}
    setting = {**{name: value for name, value in cell.items() if name != "choice"}, **written}
    path = folder / "tollbar.toml"
    use = {"family": family.name, "choice": cell["choice"], "policy": [policy]}
    path.write_text(wire.text_of({"uses.it": use, "uses.it.setting": setting}))
    (found,) = policies.check_project(policies.read_project(path), TODAY)
    return found.ruling


@pytest.mark.parametrize(("policy", "family"), POLICIES, ids=lambda one: getattr(one, "name", one))
def test_every_command_judges_alike(policy: str, family: Family, tmp_path: Path) -> None:
    asked = Wanted(family, (policies.policy(policy),), {}, TODAY, TODAY, Standing.ACCEPTABLE)

    @settings(max_examples=20, deadline=None)
    @given(cells(family))
    def agree(cell: Mapping[str, Value]) -> None:
        assume(is_possible(family, cell))
        checked = by_check(family, policy, cell, tmp_path)
        standing = family.standing_of(cell)
        is_low = policies.is_worse(standing, Standing.ACCEPTABLE)
        assert (Ruling.BREAKS if is_low else checked) is by_choose(asked, cell)
        without_places = {name: value for name, value in cell.items() if name not in ("op", "server")}
        priced = candidate(replace(asked, standing=None, by_governed=True), without_places).ruling
        # An asset names neither operation nor provider, so that one of the two may leave more open.
        assert priced is checked or {priced, checked} == {Ruling.CANNOT_SAY, Ruling.MEETS}
        if tuning and cell["choice"] in ALGORITHMS:
            parameters = {name: int(value) for name, value in cell.items() if name in family.parameters}
            is_allowed = fitting._is_allowed(tuning, family.choices[str(cell["choice"])], parameters)
            is_refused = checked is Ruling.BREAKS or policies.is_worse(standing, fitting.LEAST_STANDING)
            assert is_refused is not is_allowed

    tuning = tuning_by(policy) if family.name == fitting.FAMILY else None
    agree()


def tuning_by(policy: str) -> Asked:
    """Return the requirements of `tune` under a policy."""
    return fitting.asked([], [policy], within_s=0.25, at_once=1, memory_bytes=1 << 27, today=TODAY)


@pytest.mark.parametrize("policy", [name for name, family in POLICIES if family.name == fitting.FAMILY])
def test_tune_proposes_nothing_that_check_refuses(policy: str, tmp_path: Path) -> None:
    tuning = tuning_by(policy)

    @settings(max_examples=20, deadline=None)
    @given(st.sampled_from(sorted(ALGORITHMS)), st.floats(0, 8))
    def agree(name: str, times: float) -> None:
        choice, algorithm = tuning.family.choices[name], ALGORITHMS[name]
        leasts = [*fitting._leasts(tuning, choice).values()]
        usual = fitting._cell(tuning, choice, {})
        work = algorithm.work({n: int(v) for n, v in usual.items() if n in tuning.family.parameters})
        proposed = [*leasts, *islice(fitting._proposals(tuning, choice, times * work), 8)]
        for parameters in proposed:
            cell = fitting._cell(tuning, choice, parameters)
            assert by_check(tuning.family, policy, cell, tmp_path) is not Ruling.BREAKS
            assert not policies.is_worse(tuning.family.standing_of(cell), fitting.LEAST_STANDING)

    agree()
