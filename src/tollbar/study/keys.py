"""Keys of a study's file, and their values (explained in `docs/studies.md`)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tollbar.catalog.families import Value
from tollbar.core import limits, units
from tollbar.core.limits import Limits
from tollbar.core.wire import Plain, Wire
from tollbar.study.figures import Figure
from tollbar.study.scenario import WireScenario
from tollbar.study.values import (
    DEFAULT_MEASURE,
    DEFAULT_THRESHOLD,
    STATISTIC_OF,
    Cells,
    Claim,
    ClientPlace,
    Cost,
    CrossTable,
    Statistic,
)

# Keys of earlier versions, and the hint for each.
GONE = {
    "measure.trial": "use `measure.rounds` and `measure.chunk`; default: 10 rounds of 5 ms",
    "measure.warm-up": "remove it; runners warm up by themselves, and `measure.rounds` sets how long they are measured",
}


def _unit(reader: object) -> BeforeValidator:
    return BeforeValidator(reader)  # type: ignore[arg-type]


def within(limits: Limits) -> AfterValidator:
    return AfterValidator(limits.check)


def _arrivals(text: str | int | float) -> float:
    rate_hz = units.arrivals(text)
    # Zero means users who do not wait.
    return limits.RATE_HZ.check(rate_hz) if rate_hz else rate_hz


Seconds = Annotated[float, _unit(units.seconds)]
Share = Annotated[float, _unit(units.share)]
Rate = Annotated[float, _unit(_arrivals)]
Utilisation = Annotated[int, _unit(units.utilisation)]
MOST_URLS = 100
"""Limit of the servers of a study: each is looked at before a run, and replaced by its printed name in the text."""
Urls = Annotated[
    tuple[str, ...], Field(max_length=MOST_URLS), _unit(lambda said: (said,) if isinstance(said, str) else said)
]


# Each name is compared with all existing ones; no family has this number of choices, and no machine of providers.
Names = Annotated[tuple[str, ...], Field(max_length=1000)]
Providers = Annotated[tuple[str, ...], Field(max_length=100)]
# Thirty times those of the longest study. Judging a claim takes 2 ms.
MOST_ITEMS = 1000
MOST_LEFT_OUT = 10_000
"""Limit of the values that all of `leave-out` have: each may be a pattern, which takes 0.1 ms to make."""


class WireLeaveOut(Wire):
    where: dict[str, Value | tuple[Value, ...]]
    because: str


class WireRequest(Wire):
    get: str | None = None
    unique: bool = False


class WireExpect(Wire):
    status: Annotated[int, within(limits.STATUS)] = 200
    bytes: Annotated[int, within(limits.BODY_BYTES)] | str | None = None


class WireLoad(Wire):
    shape: Literal["closed", "open"] = "closed"
    users: tuple[Annotated[int, within(limits.USERS)], ...] = (1,)
    rates: tuple[Rate, ...] = ()
    utilisation: tuple[Utilisation, ...] = ()
    think: Annotated[Seconds, within(limits.THINK_S)] = 0.0
    client: tuple[ClientPlace, ...] = ()
    connection: Literal["new", "user"] | None = None
    request: WireRequest = WireRequest()
    expect: WireExpect = WireExpect()

    @model_validator(mode="after")
    def _is_one_of_two_shapes(self) -> WireLoad:
        if not self.users:
            raise ValueError("`users` is empty; it needs the number of users, for example `users = [8]`")
        if bool(self.rates) + bool(self.utilisation) != (self.shape == "open"):
            raise ValueError('`rates` or `utilisation` need `shape = "open"`, which needs exactly one of them')
        if self.shape == "open" and len(self.users) > 1:
            raise ValueError(
                "an open load must have one number of `users`, its connections, for example `users = [64]`"
            )
        return self


class WireMeasure(Wire):
    cost: Cost | None = None
    chunk: Annotated[Seconds, within(limits.CHUNK_S)] = DEFAULT_MEASURE.chunk_s
    rounds: Annotated[int, within(limits.ROUNDS)] = DEFAULT_MEASURE.rounds
    blocks: Annotated[int, within(limits.BLOCKS)] = DEFAULT_MEASURE.blocks
    pause: Annotated[Seconds, within(limits.PAUSE_S)] = DEFAULT_MEASURE.pause_s
    precision: Annotated[Share, within(limits.PRECISION)] | None = None
    longest: Annotated[Seconds, within(limits.LONGEST_S)] | None = None
    cells: Cells = "all"


class WireJudge(Wire):
    threshold: Annotated[Share, within(limits.THRESHOLD)] = DEFAULT_THRESHOLD


class WireRoles(Wire):
    client: str | None = None
    web: str | None = None
    database: str | None = None
    directory: str | None = None


class WireStudy(Wire):
    question: str
    family: Plain
    source: str | None = None
    statistic: Statistic | None = None
    choices: Names = ("*",)
    providers: Providers | None = None
    servers: Names = ()
    url: Urls = ()
    load: WireLoad | None = None
    scenario: WireScenario | None = None
    roles: WireRoles = WireRoles()
    baseline: str | dict[str, Value] | None = None
    vary: dict[str, tuple[Value, ...]] = {}
    factors: Names = ()
    leave_out: Annotated[tuple[WireLeaveOut, ...], Field(max_length=MOST_ITEMS)] = ()
    measure: WireMeasure = WireMeasure()
    judge: WireJudge = WireJudge()
    claim: Annotated[tuple[Claim, ...], Field(max_length=MOST_ITEMS)] = ()
    table: Annotated[tuple[CrossTable, ...], Field(max_length=MOST_ITEMS)] = ()
    figure: Annotated[tuple[Figure, ...], Field(max_length=MOST_ITEMS)] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_what_is_measured(self) -> WireStudy:
        left_out = sum(len(some) for one in self.leave_out for some in one.where.values() if isinstance(some, tuple))
        if left_out > MOST_LEFT_OUT:
            raise ValueError(f"`leave-out` has {left_out:,} values; the limit is {MOST_LEFT_OUT:,}")
        if self.providers == ():
            raise ValueError("`providers` is empty; remove it to use the family's default")
        if self.url and self.servers:
            raise ValueError("`servers` and `url` cannot be combined")
        if self.scenario is not None and not self.url:
            raise ValueError('`scenario` needs `url`, for example `url = "https://localhost:8443/"`')
        metric = STATISTIC_OF[self.statistic] if self.statistic else None
        if metric and metric not in {claim.metric for claim in self.claim}:
            raise ValueError(f'`statistic` needs a `[[claim]]` with `metric = "{metric}"`')
        if self.statistic != "mean-error-deviation" and any(claim.error or claim.deviation for claim in self.claim):
            raise ValueError('`error` and `deviation` need `statistic = "mean-error-deviation"`')
        return self
