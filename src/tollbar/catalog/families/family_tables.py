"""Tables of a family's file, as TOML has them, with the limits of their sizes."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from tollbar.catalog.families.answer_file import WireAnswer
from tollbar.catalog.families.coordinates import Unsupported, Value
from tollbar.catalog.families.definition import DEFAULT_PROVIDERS, Default
from tollbar.catalog.families.settings import Unit
from tollbar.catalog.families.standing import Authority, Standing
from tollbar.core.errors import nearest
from tollbar.core.wire import Plain, Wire

# Each part adds all settings of its family. Shipped families have at most three parts.
MOST_PARTS = 20
# Of patterns, each of which takes 0.1 ms to make.
MOST_CHOICES_OF_PART = 200

MOST_OPERATIONS = 100
"""Limit of the operations of a family, each of which makes cells of its own."""

MOST_SETTINGS = 200
"""Limit of the settings of a family, many times the most that ships: each cell is looked at setting by setting."""

MOST_LIKE = 10_000
"""Limit of the values that choices of a family take from those they are `like`, ten times the most that ships: a file
of 1 MiB could take a hundred million."""

MOST_ANSWERS = 1_000
"""Limit of the known answers of a family, ten times the most that ships: each may stand in a file of its own."""


class WireCase(Wire):
    """Statement on a threat: the first whose `when` fits counts, and the last has none."""

    is_: Literal["yes", "no"] | None = Field(default=None, alias="is")
    partly: str | None = None
    when: dict[str, tuple[str, ...]] = {}

    @model_validator(mode="after")
    def _says_one_thing(self) -> WireCase:
        if (self.is_ is None) == (self.partly is None):
            raise ValueError('must have either `is` or `partly`, for example `is = "yes"` or `partly = "with TLS"`')
        return self


def _cases(said: Any) -> Any:
    """Return a list of statements: a single one may be written as `"yes"`, `"no"`, or a table with `partly`."""
    if isinstance(said, list):
        return said
    return [{"is": said} if isinstance(said, str) else said]


def _ends(cases: tuple[WireCase, ...]) -> tuple[WireCase, ...]:
    if not cases or [bool(case.when) for case in cases] != [True] * (len(cases) - 1) + [False]:
        raise ValueError("only the last case must have no `when`; each case before it needs one")
    return cases


WireMitigations = dict[str, Annotated[tuple[WireCase, ...], BeforeValidator(_cases), AfterValidator(_ends)]]


class WireLevel(Wire):
    at_least: dict[str, Value] = {}
    standing: Standing
    authority: tuple[Authority, ...]


class WireChoice(Wire):
    like: str | None = None
    title: str
    spec: str
    year: int | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing | None = None
    level: tuple[WireLevel, ...] = ()
    memory: tuple[Value, ...] = ()
    authority: tuple[Authority, ...] = ()
    answers: tuple[WireAnswer, ...] = ()
    mitigates: WireMitigations = {}
    setting: dict[str, Value] = {}
    key: str | None = None
    note: str | None = None
    unsupported: tuple[Unsupported, ...] = ()
    servers: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_a_standing(self) -> WireChoice:
        if (self.standing is None) == (not self.level):
            raise ValueError('a choice needs either a `standing` or `level`s, for example `standing = "acceptable"`')
        if self.level and self.authority:
            raise ValueError("`authority` must be in each `level`, not in the choice")
        if self.level and self.level[-1].at_least:
            raise ValueError(
                "the last `level` cannot have `at-least`, because it covers all values below the other levels"
            )
        return self


class WireValue(Wire):
    title: str
    spec: str | None = None
    strength: int | None = None
    strength_from: str | None = None
    standing: Standing | None = None
    authority: tuple[Authority, ...] = ()
    mitigates: WireMitigations = {}
    only: dict[str, tuple[str, ...]] = {}
    note: str | None = None
    raises: tuple[str, ...] = ()
    elsewhere: str | None = None


class WireSetting(Wire):
    title: str
    unit: Unit | None = None
    values: tuple[Value, ...] | None = None
    least: Value | None = None
    most: Value | None = None
    multiple_of: Value | None = None
    least_each: dict[str, Value] = {}
    breaks_even_with: dict[str, Value] = {}
    how: bool = False
    default: Value
    only: dict[str, tuple[str, ...]] = {}
    in_words: dict[str, str] = {}
    value: dict[str, WireValue] = {}
    unsupported: tuple[Unsupported, ...] = ()


class WireSource(Wire):
    of: tuple[str, ...] = ("*",)
    by: str
    where: str
    says: str
    seen: date
    checked: bool = False


class WireThreat(Wire):
    title: str
    authority: tuple[WireSource, ...] = ()


class WireMetric(Wire):
    title: str
    unit: str
    more_is_better: bool = False


class WireHead(Wire):
    title: str
    operations: Annotated[tuple[str, ...], Field(max_length=MOST_OPERATIONS)]
    unanswered: tuple[str, ...] = ()
    strength_means: str | None = None
    providers: tuple[str, ...] = DEFAULT_PROVIDERS
    load: bool = True
    servers: tuple[str, ...] = ()
    built_in: tuple[str, ...] = ()
    is_self_test: bool = False

    @model_validator(mode="after")
    def _knows_its_operations(self) -> WireHead:
        for operation in self.unanswered:
            if operation not in self.operations:
                raise ValueError(f"`unanswered`: no such operation: `{operation}`; known: {', '.join(self.operations)}")
        return self


class WirePart(Wire):
    title: str
    family: Plain
    choices: Annotated[tuple[str, ...], Field(max_length=MOST_CHOICES_OF_PART)] = ("*",)
    default: str
    op: str | None = None
    leave_out: tuple[str, ...] = ()
    given: dict[str, Value | dict[str, Value]] = {}


def _completed(choices: Any) -> Any:
    """Return the choices, completed by the values of those that they are `like`."""
    if not isinstance(choices, dict):
        return choices
    complete: dict[str, Any] = {}
    taken = 0
    for name, choice in choices.items():
        like = choice.get("like") if isinstance(choice, dict) else None
        if like is not None and not isinstance(complete.get(str(like)), dict):
            # A choice must follow the one it is like, so that none is like itself.
            raise ValueError(f"`{name}.like`: `{like}` must be a choice above this one; {nearest(str(like), complete)}")
        if like is not None:
            other = {key: value for key, value in complete[str(like)].items() if key not in choice}
            taken += sum(map(_values_in, other.values()))
            if taken > MOST_LIKE:
                what = (
                    f"more than {MOST_LIKE:,} values of choices are taken from those they are like, which is the limit"
                )
                raise ValueError(f"`{name}.like`: {what}")
            choice = other | choice
        complete[name] = choice
    return complete


def _values_in(said: Any) -> int:
    """Return the number of values in a value of TOML, itself among them."""
    if isinstance(said, dict):
        return 1 + sum(map(_values_in, said.values()))
    return 1 + sum(map(_values_in, said)) if isinstance(said, list) else 1


class WireFamily(Wire):
    family: WireHead
    default: Default | None = None
    threat: dict[str, WireThreat] = {}
    metric: dict[str, WireMetric] = {}
    setting: Annotated[dict[str, WireSetting], Field(max_length=MOST_SETTINGS)] = {}
    part: Annotated[dict[str, WirePart], Field(max_length=MOST_PARTS)] = {}
    choice: Annotated[dict[str, WireChoice], BeforeValidator(_completed)]

    @field_validator("default", mode="before")
    @classmethod
    def _without_never(cls, default: Any) -> Any:
        # Runs of earlier builds keep families whose default lists the choices that are now references.
        return {key: one for key, one in default.items() if key != "never"} if isinstance(default, dict) else default

    @model_validator(mode="after")
    def _has_few_answers(self) -> WireFamily:
        if (count := sum(len(choice.answers) for choice in self.choice.values())) > MOST_ANSWERS:
            raise ValueError(f"`choice`: {count:,} known answers of all choices; the limit is {MOST_ANSWERS:,}")
        return self
