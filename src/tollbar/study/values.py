"""Definition of a study after reading: nothing after this checks it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, model_validator
from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families import OF_A_LOAD, Family, Value
from tollbar.catalog.servers.places import RoleMachine
from tollbar.catalog.servers.remote import Remote
from tollbar.core import limits, units
from tollbar.core.patterns import matches
from tollbar.core.wire import KEYS, Strict
from tollbar.study.figures import Figure
from tollbar.study.scenario import WireScenario

Coordinates = Mapping[str, Value]
"""Coordinates of a cell.

They are `choice`, `provider`, `server`, `op`, every setting that applies to it, one of `LOADS`, and `client` or
`threads` if the study sets them.
"""


NOT_SETTINGS = ("choice", "provider", "server", "op", *OF_A_LOAD, "threads")
"""Coordinates that are not settings of a family."""

CHOSEN_ELSEWHERE = {
    "choice": "choices",
    "provider": "providers",
    "server": "servers",
    "users": "load.users",
    "rate": "load.rates",
    "utilisation": "load.utilisation",
    "client": "load.client",
    "step": "scenario.step",
}
"""Keys of a study that set these coordinates; varied elsewhere, they would only rename its cells."""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Combinations that are not measured, and the reason."""

    where: Mapping[str, tuple[Value, ...]]
    because: str

    def covers(self, coordinates: Coordinates) -> bool:
        """Return whether a cell at these coordinates is left out."""
        return all(matches(coordinates.get(name), values) for name, values in self.where.items())


@dataclass(frozen=True, slots=True)
class Amount:
    """Published figure, in the source's own unit."""

    value: float
    unit: str
    text: str
    """Text of the figure in the study's file."""


def _amount(text: object) -> Amount:
    if isinstance(text, Amount):
        return text
    if not isinstance(text, str):
        raise ValueError("Input should be a valid string")
    return Amount(*units.published(text), text)


_Amount = Annotated[Amount, BeforeValidator(_amount)]


# Metrics that a single component of a server has: those of its share of the CPU time.
OF_COMPONENTS = ("capacity", "cost")


def _least_and_most(given: object) -> object:
    if isinstance(given, int | float):
        return given, given
    if isinstance(given, list | tuple):
        if len(given) not in (1, 2):
            raise ValueError(_A_RATIO)
        return given[0], given[-1]
    return given


OF_DIFFERENCES = ("wider", "no-wider")
"""Orders of how much two differ, in either direction."""
_A_RATIO = f"a `ratio` must be {limits.RATIO.words}, or a list of the least and the most"
_Ratio = Annotated[tuple[float, float], BeforeValidator(_least_and_most)]


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Claim(Strict):
    """Published statement to reproduce: `of` had `ratio` times the metric of `over`, or more or less of it.

    Without either, it is an absolute figure of `of`, which is printed next to today's and not judged; or nothing here
    can test it, and `untestable` is the reason.
    """

    says: str
    of: dict[str, Value] = field(default_factory=dict)
    over: dict[str, Value] = field(default_factory=dict)
    metric: str = "capacity"
    """Compared metric.

    `cost`; `capacity`: work of one core, one over its cost; `wall`, the elapsed time; `throughput` and `latency-p50`,
    as users of a settled load notice them; or a metric of the family.
    """
    ratio: _Ratio | None = None
    """Least and greatest published ratio; equal, unless it depends on a setting that cannot be varied here."""
    order: Literal["more", "less", "wider", "no-wider"] | None = None
    """Published order; `wider` and `no-wider` belong to `grows`: the two differ by more or not, in either direction."""
    note: str | None = None
    component: str | None = None
    """Component whose CPU time is compared; None: all that pay the cost."""
    grows: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    """Setting with two values; the claim is about the ratio at the second value over the ratio at the first."""
    where: str | None = None
    """Table, figure or sentence of the publication."""
    published: tuple[_Amount, ...] = ()
    """Published figures of `of` and `over`, if any: a pair for each of several ratios."""
    untestable: str | None = None
    """Reason why nothing here can test it."""
    error: _Amount | None = None
    """Error that the source prints with the first figure: half of its 99.9 % interval."""
    deviation: _Amount | None = None
    """Standard deviation that the source prints with the first figure."""
    words: str | None = None
    """Source's own words in place of a number, such as `very similar`; `ratio` is then their reading."""
    throughout: Literal["more", "less"] | None = None
    """Published order of `of` and `over` at both values of `grows`; without it, a reversed order is not noticed."""

    @model_validator(mode="after")
    def _is_one_of_four_kinds(self) -> Claim:
        compares = self.ratio is not None or self.order is not None
        tried = self.untestable is None
        absolute = bool(self.published) and not compares
        if tried and (self.ratio is not None) + (self.order is not None) + absolute != 1:
            raise ValueError(
                "a claim needs exactly one of `ratio`, `order`, the `published` figure of one cell, and `untestable` "
                "with the reason"
            )
        if not tried and (self.of or self.over or not str(self.untestable).strip()):
            raise ValueError("`untestable` needs a reason, and cannot have `of` or `over`")
        if tried and (compares != bool(self.of and self.over) or (absolute and not self.of)):
            raise ValueError("a `ratio` or `order` needs `of` and `over`; a figure needs `of` alone")
        if self.ratio is not None and not all(map(limits.RATIO.takes, self.ratio)):
            raise ValueError(_A_RATIO)
        if self.ratio is not None and self.ratio[0] > self.ratio[1]:
            raise ValueError("a `ratio` of two numbers must have the smaller first, for example `[1.5, 2.0]`")
        if self.grows and not (tried and compares):
            raise ValueError(
                "`grows` needs an `order` or a `ratio`, of the ratio at the second value over that at the first"
            )
        if any(first == second for first, second in self.grows.values()):
            raise ValueError("`grows` needs two different values, for example `bytes = [64, 4096]`")
        if self.order in OF_DIFFERENCES and not self.grows:
            raise ValueError(f'`order = "{self.order}"` needs `grows`, for example `grows = {{ bytes = [64, 4096] }}`')
        if self.throughout and not self.grows:
            raise ValueError("`throughout` needs `grows`, for example `grows = { bytes = [64, 4096] }`")
        if self.words is not None and (self.ratio is None or not self.words.strip()):
            raise ValueError("`words` needs a `ratio`, which is the reading of these words")
        if tried and (len(self.published) % 2 if compares else len(self.published) > 1):
            raise ValueError("`published` must be two figures, of `of` and of `over`, or one without `over`")
        if (self.error or self.deviation) and not self.published:
            raise ValueError("`error` and `deviation` need a `published` figure")
        if self.component and self.metric not in OF_COMPONENTS:
            raise ValueError(f"the metric of a `component` must be {' or '.join(OF_COMPONENTS)}, not {self.metric}")
        return self

    @property
    def is_judged(self) -> bool:
        """True if it compares two cells, so that it has a verdict."""
        return self.untestable is None and (self.ratio is not None or self.order is not None)

    @property
    def is_ours(self) -> bool:
        """True if its `where` states that the study's source did not publish it."""
        return (self.where or "").startswith(OURS)

    @property
    def one_ratio(self) -> float | None:
        """Published ratio, if it is one number."""
        return self.ratio[0] if self.ratio is not None and self.ratio[0] == self.ratio[1] else None


OURS = ("Ours: ", "Not the source's: ")
"""Prefixes of `where` in claims that the source did not publish."""

Statistic = Literal["mean-error-deviation", "rate-after-first"]
"""Statistic that a source prints of each measurement.

`mean-error-deviation`: the mean, as error half of its 99.9 % interval, the standard deviation, and the ratio of the
means (BenchmarkDotNet's table). `rate-after-first`: requests a second, from the mean time of all runs but the first.
"""
STATISTIC_OF: Mapping[Statistic, str] = {"mean-error-deviation": "wall", "rate-after-first": "capacity"}
"""Metric of the claims next to which each statistic is printed."""


@read_dataclass(config=KEYS, frozen=True, slots=True)
class CrossTable(Strict):
    """Table with a row for each value of one coordinate, and a column for each of another."""

    title: str
    rows: str
    columns: str
    over: dict[str, Value] = field(default_factory=dict)
    """Coordinates of the reference cell, of whose cost each cell's is printed as a multiple; empty: plain costs."""
    where: dict[str, Value] = field(default_factory=dict)
    """Coordinates of the cells in the table; those that do not apply to a cell are ignored."""
    metric: str | None = None
    """Metric of the family to print instead of the cost."""

    @model_validator(mode="after")
    def _compares_costs(self) -> CrossTable:
        if self.metric and self.over:
            raise ValueError("a table cannot have both `metric` and `over`")
        return self


Cells = Literal["all", "claimed"]


@dataclass(frozen=True, slots=True)
class Measure:
    """Definition of cost, and duration and number of each cell's measurements."""

    cost: Cost
    chunk_s: float
    """Least duration of a trial's turn in its batch."""
    rounds: int
    """Number of chunks of each trial."""
    blocks: int
    pause_s: float = 0.0
    """Time in which the servers of a batch settle before its rounds."""
    precision: float | None = None
    """Target half-width of every toll's interval, as a share.

    Blocks are added until it is reached, or the time is over.
    """
    phase_every: int = 3
    """Blocks per throughput phase of a load; a claim about users' measures needs one in each block."""
    longest_s: float | None = None
    """Time limit of all measuring to reach the precision; None: a multiple of its own blocks' time."""
    cells: Cells = "all"
    """Selection of cells: all, or those that a claim is about, and their baselines."""
    is_adapted: bool = False
    """True if quick operations get shorter chunks and more rounds, because the study sets neither."""


ClientPlace = Literal["beside", "apart"]
"""Core of a load client in rounds: the server's, or another one."""
CLIENT_PLACES: tuple[ClientPlace, ...] = ("beside", "apart")


@dataclass(frozen=True, slots=True)
class Load:
    """Users' requests to a server: a closed loop of a number of users, or arrivals at a rate."""

    users: tuple[int, ...]
    """Closed loop: simultaneous users, each number a cell. Open loop: the most connections, one value."""
    rates_hz: tuple[float, ...]
    """Open loop: arrivals a second, each a cell; empty for the closed loop, and with utilisations."""
    think_s: float
    connection: Literal["new", "user"] | None
    """A connection for every request, or one for each user; None: the operation's default."""
    get: str | None
    """Path with coordinates in braces; None: that of the server's own URL."""
    unique_query: bool
    status: int
    expected_bytes: str | None
    """Expected length of the answer's body, as a template of a whole number; None: not checked."""
    clients: tuple[ClientPlace, ...] = ()
    """Places of the load client in rounds, each a cell.

    Empty: on the core of the lab's own servers, on another core than the user's; then it is not a coordinate.
    """
    utilisations: tuple[int, ...] = ()
    """Open loop: the percentage of a core's time that the server is kept busy, each a cell."""
    scenario: WireScenario | None = None
    """Steps of each pass; None: one request."""

    @property
    def is_open(self) -> bool:
        return bool(self.rates_hz or self.utilisations)

    @property
    def asked(self) -> Load:
        """The load without its coordinates: number, rate and place of users belong to each cell."""
        users = self.users if self.is_open else ()
        return replace(self, users=users, rates_hz=(), utilisations=(), clients=())


def is_paced(at: Coordinates) -> bool:
    """Return whether requests arrive independently of the server's answers, so that it has idle time."""
    return bool(at.get("rate") or at.get("utilisation"))


USUAL_USERS = 8
"""Users that keep one core of a server busy, and few enough that each is answered within milliseconds."""


def default_load(family: Family) -> Load:
    """Return the default load: requests for a page, or for the operation if a runner can also perform it."""
    size = "{bytes}" if "bytes" in family.settings else None
    operation = f"/op/{family.name}/{{choice}}?op={{op}}{f'&bytes={size}' if size else ''}"
    return Load(
        users=(USUAL_USERS,),
        rates_hz=(),
        think_s=0.0,
        connection=None if family.servers else "user",
        get=f"/bytes/{size or 4096}" if family.servers else operation,
        unique_query=False,
        status=200,
        expected_bytes=size if family.servers else None,
    )


Cost = Literal["cpu", "server-cpu", "client-cpu"]
"""Components whose CPU time is the cost: all, the server's, or the client's."""


@dataclass(frozen=True, slots=True)
class Study:
    """Question and all that is needed to answer it."""

    name: str
    text: str
    """Text of the file."""
    question: str
    family: Family
    source: str | None
    choices: tuple[str, ...]
    providers: tuple[str, ...]
    servers: tuple[str, ...]
    """Servers through which it is measured, each a cell; empty if the runner itself is measured."""
    load: Load | None
    vary: Mapping[str, tuple[Value, ...]]
    baseline: Coordinates
    leave_out: tuple[LeaveOut, ...]
    measure: Measure
    threshold: float
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    statistic: Statistic | None = None
    """Statistic of the claims' source, to print for the cells measured here too."""
    tables: tuple[CrossTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    factors: Mapping[str, tuple[Value, Value]] = field(default_factory=dict)
    """Coordinates of two values each, the first without and the second with something.

    All of their combinations are measured in one batch, so that their common cost can be compared with the sum of their
    single costs.
    """
    remotes: tuple[Remote, ...] = ()
    """Servers of the user instead of the lab's; once found, each has its address, which is not looked up again."""
    places: tuple[RoleMachine, ...] = ()
    """Machines of roles; empty: all on one machine, unless the command line sets roles."""


DEFAULT_THRESHOLD = 0.03
# On a host with foreign sibling threads quiet lasts 1 to 2 ms. Hardly any chunk of 5 ms is wholly quiet, and four
# fifths of these are. The ratio of a slower operation, such as a signature, changes with its chunk.
QUICK_OPERATION_S = 20e-6
# With the turns between them, a hundred take as long as ten of 5 ms.
QUICK_CHUNK_S, QUICK_ROUNDS = 0.0002, 100
DEFAULT_MEASURE = Measure(cost="cpu", chunk_s=0.005, rounds=10, blocks=12, is_adapted=True)
