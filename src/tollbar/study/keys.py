"""The keys that a study's file may have, and what each may say (`docs/studies.md` explains them)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tollbar import limits, units
from tollbar.families import Value
from tollbar.limits import Limits
from tollbar.study.definition import (
    DEFAULT_MEASURE,
    DEFAULT_THRESHOLD,
    STATISTIC_OF,
    Cells,
    ClientPlace,
    Cost,
    Statistic,
)
from tollbar.wire import Plain, Wire

# What studies of earlier versions say, and what is said instead.
GONE = {
    "measure.trial": "a trial is so many `measure.rounds` of a `measure.chunk` each, by default 10 of 5 ms",
    "measure.warm-up": "a runner is warm when it says so; how long it works is `measure.chunk` times `measure.rounds`",
}

# What a component of a server has of its own: a share of the CPU time.
OF_COMPONENTS = ("capacity", "cost")


def _unit(reader: object) -> BeforeValidator:
    return BeforeValidator(reader)  # type: ignore[arg-type]


def _within(limits: Limits) -> AfterValidator:
    return AfterValidator(limits.check)


def _arrivals(text: str | int | float) -> float:
    rate_hz = units.arrivals(text)
    # Zero is that of users who do not wait.
    return limits.RATE_HZ.check(rate_hz) if rate_hz else rate_hz


Seconds = Annotated[float, _unit(units.seconds)]
Share = Annotated[float, _unit(units.share)]
Rate = Annotated[float, _unit(_arrivals)]
Utilisation = Annotated[int, _unit(units.utilisation)]
Urls = Annotated[tuple[str, ...], _unit(lambda said: (said,) if isinstance(said, str) else said)]


# Each name is looked for among all that there are; no family has so many choices, and no machine so many providers.
Names = Annotated[tuple[str, ...], Field(max_length=1000)]
Providers = Annotated[tuple[str, ...], Field(max_length=100)]
# Thirty times those of the longest study. To judge a claim takes 2 ms.
MOST_ITEMS = 1000


class WireLeaveOut(Wire):
    where: dict[str, Value | tuple[Value, ...]]
    because: str


class WireRequest(Wire):
    get: str | None = None
    unique: bool = False


class WireExpect(Wire):
    status: Annotated[int, _within(limits.STATUS)] = 200
    bytes: Annotated[int, _within(limits.BODY_BYTES)] | str | None = None


class WireLoad(Wire):
    shape: Literal["closed", "open"] = "closed"
    users: tuple[Annotated[int, _within(limits.USERS)], ...] = (1,)
    rates: tuple[Rate, ...] = ()
    utilisation: tuple[Utilisation, ...] = ()
    think: Annotated[Seconds, _within(limits.THINK_S)] = 0.0
    client: tuple[ClientPlace, ...] = ()
    connection: Literal["new", "user"] | None = None
    request: WireRequest = WireRequest()
    expect: WireExpect = WireExpect()

    @model_validator(mode="after")
    def _is_one_of_two_shapes(self) -> WireLoad:
        if not self.users:
            raise ValueError("`users` is empty; say the number of users, for example `users = [8]`")
        if bool(self.rates) + bool(self.utilisation) != (self.shape == "open"):
            raise ValueError("an open load gives `rates` or `utilisation`, a closed one `users`")
        if self.shape == "open" and len(self.users) > 1:
            raise ValueError("an open load has one number of `users`: the most connections it may use")
        return self


class WireMeasure(Wire):
    cost: Cost | None = None
    chunk: Annotated[Seconds, _within(limits.CHUNK_S)] = DEFAULT_MEASURE.chunk_s
    rounds: Annotated[int, _within(limits.ROUNDS)] = DEFAULT_MEASURE.rounds
    blocks: Annotated[int, _within(limits.BLOCKS)] = DEFAULT_MEASURE.blocks
    precision: Annotated[Share, _within(limits.PRECISION)] | None = None
    longest: Annotated[Seconds, _within(limits.LONGEST_S)] | None = None
    cells: Cells = "all"


class WireJudge(Wire):
    threshold: Annotated[Share, _within(limits.THRESHOLD)] = DEFAULT_THRESHOLD


class WireClaim(Wire):
    says: str
    where: str | None = None
    of: dict[str, Value] = {}
    over: dict[str, Value] = {}
    metric: str = "capacity"
    component: str | None = None
    ratio: Annotated[
        tuple[float, ...] | None, _unit(lambda said: (said,) if isinstance(said, int | float) else said)
    ] = None
    order: Literal["more", "less", "wider"] | None = None
    grows: dict[str, tuple[Value, Value]] = {}
    published: tuple[str, ...] = ()
    error: str | None = None
    deviation: str | None = None
    untestable: str | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _is_one_of_four_kinds(self) -> WireClaim:
        compares = self.ratio is not None or self.order is not None
        tried = self.untestable is None
        absolute = bool(self.published) and not compares
        if tried and (self.ratio is not None) + (self.order is not None) + absolute != 1:
            raise ValueError(
                "a claim gives either a `ratio` or an `order`; or the `published` figure of one cell; or it is "
                "`untestable`, with the reason"
            )
        if not tried and (self.of or self.over or not str(self.untestable).strip()):
            raise ValueError("what is `untestable` is of no cell, and says why")
        if tried and (compares != bool(self.of and self.over) or (absolute and not self.of)):
            raise ValueError("a `ratio` or `order` is `of` one cell `over` another, a figure `of` one")
        if self.ratio is not None and (len(self.ratio) not in (1, 2) or not all(map(limits.RATIO.takes, self.ratio))):
            raise ValueError(f"a `ratio` is {limits.RATIO.words}, or the least and the most of several")
        if self.ratio is not None and self.ratio[0] > self.ratio[-1]:
            raise ValueError("a `ratio` of two numbers goes from the least to the most")
        if self.grows and not (tried and compares):
            raise ValueError(
                "what `grows` has an `order` or a `ratio`: of the ratio at the second value over that at the first"
            )
        if any(first == second for first, second in self.grows.values()):
            raise ValueError("what `grows` goes from one value to another")
        if self.order == "wider" and not self.grows:
            raise ValueError('what is "wider" `grows`, from one value of a setting to another')
        if tried and (len(self.published) % 2 if compares else len(self.published) > 1):
            raise ValueError("`published` is the figure of `of`, and then that of `over`")
        if (self.error or self.deviation) and not self.published:
            raise ValueError("an `error` or a `deviation` stands beside a `published` figure")
        if self.component and self.metric not in OF_COMPONENTS:
            raise ValueError(f"a `component` has {' and '.join(OF_COMPONENTS)} of its own, and no {self.metric}")
        return self


class WireTable(Wire):
    title: str
    rows: str
    columns: str
    over: dict[str, Value] = {}
    where: dict[str, Value] = {}
    metric: str | None = None

    @model_validator(mode="after")
    def _compares_costs(self) -> WireTable:
        if self.metric and self.over:
            raise ValueError("a table of a `metric` shows what was seen: it has no `over`")
        return self


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
    roles: WireRoles = WireRoles()
    baseline: str | dict[str, Value] | None = None
    vary: dict[str, tuple[Value, ...]] = {}
    factors: Names = ()
    leave_out: Annotated[tuple[WireLeaveOut, ...], Field(max_length=MOST_ITEMS)] = ()
    measure: WireMeasure = WireMeasure()
    judge: WireJudge = WireJudge()
    claim: Annotated[tuple[WireClaim, ...], Field(max_length=MOST_ITEMS)] = ()
    table: Annotated[tuple[WireTable, ...], Field(max_length=MOST_ITEMS)] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _says_what_is_measured(self) -> WireStudy:
        if self.providers == ():
            raise ValueError("`providers` is empty: left out, it is what the family has by default")
        if self.url and self.servers:
            raise ValueError("a study is measured through `servers` or on a `url`, not both")
        metric = STATISTIC_OF[self.statistic] if self.statistic else None
        if metric and metric not in {claim.metric for claim in self.claim}:
            raise ValueError(
                f'the `statistic` is of {metric}, and no `[[claim]]` of the study has `metric = "{metric}"`'
            )
        if self.statistic != "mean-error-deviation" and any(claim.error or claim.deviation for claim in self.claim):
            raise ValueError('an `error` or a `deviation` is of the `statistic = "mean-error-deviation"`')
        return self
