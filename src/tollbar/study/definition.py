"""What a study is, once it has been read: nothing after this checks it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import BeforeValidator, model_validator
from pydantic.dataclasses import dataclass as read_dataclass

from tollbar.catalog.families import OF_A_LOAD, Family, Value
from tollbar.catalog.servers.places import RoleMachine
from tollbar.catalog.servers.remote import Remote
from tollbar.core import limits, units
from tollbar.core.patterns import is_like
from tollbar.core.wire import KEYS, Strict

Coordinates = Mapping[str, Value]
"""Where a cell stands: `choice`, `provider`, `server`, `op`, every setting that applies to it, and one of `LOADS`; and
`client` or `threads`, where the study says it."""

NOT_SETTINGS = ("choice", "provider", "server", "op", *OF_A_LOAD, "threads")
"""Coordinates that are no settings of a family."""

CHOSEN_ELSEWHERE = {
    "choice": "choices",
    "provider": "providers",
    "server": "servers",
    "users": "load.users",
    "rate": "load.rates",
    "utilisation": "load.utilisation",
    "client": "load.client",
}
"""Where a study says which values of these coordinates it has: varied elsewhere, they would only rename its cells."""


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Combinations that are not measured, and why."""

    where: Mapping[str, tuple[Value, ...]]
    because: str

    def covers(self, coordinates: Coordinates) -> bool:
        """Whether a cell at these coordinates is left out."""
        return all(matches(coordinates.get(name), values) for name, values in self.where.items())


@dataclass(frozen=True, slots=True)
class Amount:
    """A published figure, in the source's own unit."""

    value: float
    unit: str
    text: str
    """As the study's file has it."""


def _amount(text: object) -> Amount:
    if isinstance(text, Amount):
        return text
    if not isinstance(text, str):
        raise ValueError("Input should be a valid string")
    return Amount(*units.published(text), text)


_Amount = Annotated[Amount, BeforeValidator(_amount)]


# What a component of a server has of its own: a share of the CPU time.
OF_COMPONENTS = ("capacity", "cost")


def _least_and_most(given: object) -> object:
    if isinstance(given, int | float):
        return given, given
    if isinstance(given, list | tuple):
        if len(given) not in (1, 2):
            raise ValueError(_A_RATIO)
        return given[0], given[-1]
    return given


_A_RATIO = f"a `ratio` is {limits.RATIO.words}, or the least and the most of several"
_Ratio = Annotated[tuple[float, float], BeforeValidator(_least_and_most)]


@read_dataclass(config=KEYS, frozen=True, slots=True)
class Claim(Strict):
    """What was published, to be tried again: `of` had `ratio` times the metric of `over`, or more or less of it.

    Without either, what was published is an absolute figure of `of`, which is shown beside today's and not judged; or
    nothing here can try it, and `untestable` says why.
    """

    says: str
    of: dict[str, Value] = field(default_factory=dict)
    over: dict[str, Value] = field(default_factory=dict)
    metric: str = "capacity"
    """`cost`; `capacity`: how much one core can do, which is one over its cost; `wall`, the time that passes in it;
    `throughput` and `latency-p50`, as users of a settled load notice them; or a metric of the family."""
    ratio: _Ratio | None = None
    """The least and the most that was published: the same twice, but for a setting that cannot be varied here."""
    order: Literal["more", "less", "wider"] | None = None
    """`wider` is of what grows: the two differ by more, whichever of them has more."""
    note: str | None = None
    component: str | None = None
    """The one whose CPU time is compared; None: that of all who pay the cost."""
    grows: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    """The claim is of the ratio at the second of these values over the ratio at the first."""
    where: str | None = None
    """The table, figure or sentence in which it was published."""
    published: tuple[_Amount, ...] = ()
    """The source's figure of `of` and that of `over`, where it has any: a pair for each of several ratios."""
    untestable: str | None = None
    """Why nothing here can try it."""
    error: _Amount | None = None
    """What the source prints beside the first figure: half of its 99.9 % interval."""
    deviation: _Amount | None = None
    """The standard deviation that the source prints beside it."""

    @model_validator(mode="after")
    def _is_one_of_four_kinds(self) -> Claim:
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
        if self.ratio is not None and not all(map(limits.RATIO.takes, self.ratio)):
            raise ValueError(_A_RATIO)
        if self.ratio is not None and self.ratio[0] > self.ratio[1]:
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

    @property
    def is_judged(self) -> bool:
        """Whether it compares two cells, so that it has a verdict."""
        return self.untestable is None and (self.ratio is not None or self.order is not None)

    @property
    def is_ours(self) -> bool:
        """Whether it says in `where` that its study's source did not publish it."""
        return (self.where or "").startswith(OURS)

    @property
    def one_ratio(self) -> float | None:
        """What was published, where that is one number."""
        return self.ratio[0] if self.ratio is not None and self.ratio[0] == self.ratio[1] else None


OURS = ("Ours: ", "Not the source's: ")
"""How the `where` of a claim begins that stands beside a source's own."""

Statistic = Literal["mean-error-deviation", "rate-after-first"]
"""What a source prints of each of its measurements. `mean-error-deviation`: the mean, as error half of its 99.9 %
interval, the standard deviation, and the ratio of the means (BenchmarkDotNet's table). `rate-after-first`: requests a
second, from the mean time of all runs but the first."""
STATISTIC_OF: Mapping[Statistic, str] = {"mean-error-deviation": "wall", "rate-after-first": "capacity"}
"""Beside which metric's claims each is shown."""


@read_dataclass(config=KEYS, frozen=True, slots=True)
class CrossTable(Strict):
    """A table with a row for each value of one coordinate, and a column for each of another."""

    title: str
    rows: str
    columns: str
    over: dict[str, Value] = field(default_factory=dict)
    """Each cell's cost is shown as a multiple of that of the cell that differs in these alone; empty: as it is."""
    where: dict[str, Value] = field(default_factory=dict)
    """Which cells stand in it. What means nothing to a cell is not asked of it."""
    metric: str | None = None
    """A metric of the family to be shown instead of the cost."""

    @model_validator(mode="after")
    def _compares_costs(self) -> CrossTable:
        if self.metric and self.over:
            raise ValueError("a table of a `metric` shows what was seen: it has no `over`")
        return self


Cells = Literal["all", "claimed"]


@dataclass(frozen=True, slots=True)
class Measure:
    """What counts as cost, and how long and how often each cell is measured."""

    cost: Cost
    chunk_s: float
    """How long a trial works at a time, at least, before the next of its batch has its turn."""
    rounds: int
    """Chunks of each trial."""
    blocks: int
    precision: float | None = None
    """Half of every toll's interval, as a share: blocks are added until all are so narrow, or the time is over."""
    phase_every: int = 3
    """A load's users are looked at in one of so many blocks; a claim about what they notice needs each."""
    longest_s: float | None = None
    """How long all of its measuring may take to reach the precision; None: some times what its own blocks take."""
    cells: Cells = "all"
    """Which cells are measured: all, or those that a claim is about, and their baselines."""
    is_adapted: bool = False
    """Whether quick operations have shorter chunks and more of them: the study names neither."""


ClientPlace = Literal["beside", "apart"]
"""Where a load client is in rounds: on the server's core, or on a core of its own."""
CLIENT_PLACES: tuple[ClientPlace, ...] = ("beside", "apart")


@dataclass(frozen=True, slots=True)
class Load:
    """What users ask of a server: a closed loop of so many at a time, or arrivals at a rate."""

    users: tuple[int, ...]
    """Closed loop: how many at a time, each a cell of its own. Open loop: the most connections, one value."""
    rates_hz: tuple[float, ...]
    """Open loop: arrivals a second, each a cell of its own; empty for the closed loop, and where utilisations are."""
    think_s: float
    connection: Literal["new", "user"] | None
    """A connection for every request, or one for each user; None: what the operation says."""
    get: str | None
    """The path, with coordinates in braces; None: that of the server's own URL."""
    unique_query: bool
    status: int
    expected_bytes: str | None
    """How long the answer's body must be, as a template that gives a whole number; None: not said."""
    clients: tuple[ClientPlace, ...] = ()
    """Where the load client is in rounds, each a cell of its own. Empty: beside the lab's own servers, apart from the
    user's; and then it is no coordinate."""
    utilisations: tuple[int, ...] = ()
    """Open loop: the percentage of a core's time that the server is kept busy, each a cell of its own."""

    @property
    def is_open(self) -> bool:
        return bool(self.rates_hz or self.utilisations)

    @property
    def asked(self) -> Load:
        """What users ask; how many, how often and from where is a coordinate of each cell."""
        users = self.users if self.is_open else ()
        return replace(self, users=users, rates_hz=(), utilisations=(), clients=())


def is_paced(at: Coordinates) -> bool:
    """Whether requests arrive whether or not the server keeps up, so that it has time to spare."""
    return bool(at.get("rate") or at.get("utilisation"))


USUAL_USERS = 8
"""Enough at a time to keep one core of a server at work, and few enough that each is answered within milliseconds."""


def default_load(family: Family) -> Load:
    """What users ask of a server where nothing else is said: a page, or the operation of what is no server's alone."""
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
"""Whose CPU time an operation costs: that of all that take part, all of the server's, or the client's."""


@dataclass(frozen=True, slots=True)
class Study:
    """One question and all it takes to answer it."""

    name: str
    text: str
    """The file as it was."""
    question: str
    family: Family
    source: str | None
    choices: tuple[str, ...]
    providers: tuple[str, ...]
    servers: tuple[str, ...]
    """The servers it is measured through, each a cell of its own; empty where the runner itself is measured."""
    load: Load | None
    vary: Mapping[str, tuple[Value, ...]]
    baseline: Coordinates
    leave_out: tuple[LeaveOut, ...]
    measure: Measure
    threshold: float
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]
    statistic: Statistic | None = None
    """What the claims' source prints of each cell, to be shown of what was measured here too."""
    tables: tuple[CrossTable, ...] = ()
    factors: Mapping[str, tuple[Value, Value]] = field(default_factory=dict)
    """Coordinates of two values each, the first without and the second with something: all of their combinations are
    measured in one batch, so that what they cost together is told from the sum of what each costs."""
    remotes: tuple[Remote, ...] = ()
    """Servers of the user's own, instead of servers; once they were found each with its address, not looked up
    again."""
    places: tuple[RoleMachine, ...] = ()
    """The machines of roles; empty: all is on one, unless the command line says otherwise."""


DEFAULT_THRESHOLD = 0.03
# On a host whose sibling threads belong to others quiet lasts 1 to 2 ms. Hardly any chunk of 5 ms is wholly quiet, and
# four fifths of these are. The ratio of a slower operation, such as a signature, moves with its chunk.
QUICK_OPERATION_S = 20e-6
# With the turns between them, a hundred take as long as ten of 5 ms.
QUICK_CHUNK_S, QUICK_ROUNDS = 0.0002, 100
DEFAULT_MEASURE = Measure(cost="cpu", chunk_s=0.005, rounds=10, blocks=12, is_adapted=True)


def matches(value: Value | None, patterns: Sequence[Value]) -> bool:
    """Whether a coordinate's value is one of these, where a word may hold `*`."""
    # A word is always its own pattern, whatever is in it: the address in a URL may be in brackets.
    return value is not None and any(value == one or is_like(str(value), str(one)) for one in patterns)
