"""Reading a scenario's file, which has its load next to its steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tollbar.core import limits
from tollbar.core.files import full_path
from tollbar.core.wire import Wire, read
from tollbar.study.keys import Rate, Seconds, within
from tollbar.study.scenario import WireScenario

OPEN_USERS = 64
"""Connections of an open load, if the scenario does not set them."""


class WireUsers(Wire):
    users: Annotated[tuple[Annotated[int, within(limits.USERS)], ...], Field(min_length=1)] | None = None
    rates: tuple[Rate, ...] = ()
    think: Annotated[Seconds, within(limits.THINK_S)] = 0.0

    def table(self, users: tuple[int, ...]) -> Mapping[str, object]:
        """Return the `[load]` of a study, with these users unless the scenario sets its own."""
        own = self.users or ((OPEN_USERS,) if self.rates else users)
        paced = {"shape": "open", "rates": [f"{rate:g} /s" for rate in self.rates]} if self.rates else {}
        think = {"think": f"{self.think:g} s"} if self.think else {}
        return {"users": [*own], **paced, **think}


class ScenarioFile(WireScenario):
    load: WireUsers = WireUsers()

    @property
    def scenario(self) -> WireScenario:
        """Scenario as a study contains it."""
        return WireScenario.model_validate(self.model_dump(by_alias=True, exclude_defaults=True, exclude={"load"}))


def read_scenario(path: Path) -> ScenarioFile:
    """Return a scenario with absolute paths. Raises TollbarError with the file, the key and the nearest valid one."""
    found = read(path, ScenarioFile)
    found.check_names(str(path))
    folder = full_path(path).parent

    def placed(table: Wire, *names: str) -> dict[str, Any]:
        return {name: str(folder / said) for name in names if (said := getattr(table, name)) is not None}

    values = {name: one.model_copy(update=placed(one, "csv", "file")) for name, one in found.values.items()}
    sign_in = found.sign_in and found.sign_in.model_copy(update=placed(found.sign_in, "krb5_config"))
    return found.model_copy(update={"values": values, "sign_in": sign_in, **placed(found, "trust")})
