"""Search for parameters of a password hash that take a given time at a given concurrency and meet the policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from math import inf, log
from typing import Any

from tollbar.catalog import libraries, policies
from tollbar.catalog.families import Choice, Standing, Value, at_defaults
from tollbar.catalog.libraries import Provider
from tollbar.catalog.policies import Ruling
from tollbar.core import machine, units
from tollbar.core.errors import TollbarError, unknown
from tollbar.core.records import Outcome
from tollbar.core.runner import Stopped
from tollbar.decide.rulings import candidate, wanted
from tollbar.decide.tune import together
from tollbar.decide.tune.algorithms import ALGORITHMS, Parameters
from tollbar.decide.tune.answers import Asked, Measured, Missed, Tuned, Tuning
from tollbar.decide.tune.attackers import attackers, guesses
from tollbar.lab.workloads import Given
from tollbar.lab.workloads.operation import OperationWorkload
from tollbar.study.plan.cells import Cell

FAMILY = "password-hash"
DEFAULT_POLICY = "owasp-password-storage-*"
DEFAULT_PROVIDERS = ("libcrypto", "aws-lc", "rustcrypto")
# A proposal is near enough if it takes at most this share less than the requested time; the search aims at the middle.
NEAR, AIM = 0.05, 0.975
# Shortest measurement, and number of hashes of each runner.
LEAST_S, EACH = 2.5, 10
# The cost of memory at another size takes two to five measurements to find, and noise never settles.
MOST_MEASUREMENTS = 8
# Largest number of confirmations of the answer: after each that does not fit, one step less work is tried.
MOST_CONFIRMATIONS = 3
# Other programs at work make a hash take longer: up to twice as long where they want each core that hashes want.
BUSY = 2.0
NEVER_AGAIN = "all fitting parameters took too long when measured again; repeat on an idle machine"
# Nothing that authorities disallow is proposed. bcrypt is deprecated at any cost, and its users must still set one.
LEAST_STANDING = Standing.DEPRECATED


def asked(
    choices: Sequence[str],
    policy_names: Iterable[str],
    *,
    within_s: float,
    at_once: int | None,
    memory_bytes: int | None = None,
    providers: Sequence[str] = (),
    today: date | None = None,
    seed: int = 0,
) -> Asked:
    """Return the requirements of a tuning from words.

    Raises TollbarError with the nearest choice, policy or provider.
    """
    names = list(policy_names) or [max(name for name in policies.shipped() if name.startswith(DEFAULT_POLICY[:-1]))]
    said = wanted(FAMILY, names, today=today, standing=LEAST_STANDING)
    policies.refuse_silent(said.policies, FAMILY)
    for name in choices:
        if name not in ALGORITHMS:
            raise unknown("password hash with parameters to tune", name, ALGORITHMS)
    limits = machine.limits()
    number = at_once if at_once is not None else max(1, int(limits.cores.amount))
    if not 1 <= number <= together.MOST_AT_ONCE:
        what = f"must be from 1 to {together.MOST_AT_ONCE}, because each needs a process"
        raise TollbarError(what, where=f"--at-once {number}")
    if memory_bytes is not None and memory_bytes > limits.memory.amount:
        raise TollbarError(
            f"must be at most {units.show_bytes(limits.memory.amount)}, {limits.memory.by}",
            where=f"--memory {units.show_size(memory_bytes)}",
        )
    found = libraries.resolve(tuple(providers) or DEFAULT_PROVIDERS)
    return Asked(
        said,
        within_s,
        number,
        memory_bytes=limits.memory.amount if memory_bytes is None else memory_bytes,
        memory_by=limits.memory.by if memory_bytes is None else "as asked for",
        limits=limits,
        choices=tuple(said.family.choices[name] for name in (dict.fromkeys(choices) or ALGORITHMS)),
        providers=found,
        card=next(iter(attackers().card)),
        seed=seed,
    )


def tune(asked: Asked) -> Iterator[Tuned | Missed]:
    """Yield the result of each choice as it is found.

    Measures, and leaves no process behind.
    """
    for choice in asked.choices:
        yield _tuned(asked, choice)


def of(asked: Asked, found: Iterable[Tuned | Missed]) -> Tuning:
    """Return the results, the proposals in order of an attacker's published guesses, fewest first."""
    all_of_it = list(found)
    tuned = sorted((one for one in all_of_it if isinstance(one, Tuned)), key=_guessed)
    missed = tuple(one for one in all_of_it if isinstance(one, Missed))
    too_slow = [one for one in missed if one.measured]
    return Tuning(
        asked,
        tuned=tuple(one for one in tuned if one.candidate.ruling is Ruling.MEETS),
        unsaid=tuple(one for one in tuned if one.candidate.ruling is not Ruling.MEETS),
        missed=missed,
        nearest=min(too_slow, key=lambda one: one.measured.elapsed.median_s if one.measured else 0, default=None),
    )


def _guessed(one: Tuned) -> tuple[bool, float]:
    published = one.guesses.published
    return (published is None, published or 0.0)


def _tuned(asked: Asked, choice: Choice) -> Tuned | Missed:
    leasts = _leasts(asked, choice)
    if not leasts:
        return Missed(choice, candidate(asked.wanted, _cell(asked, choice, {})))
    # Shapes that fit into memory come first, because all of them may need more than there is.
    leasts = {shape: one for shape, one in leasts.items() if choice.memory_bytes(one) <= asked.each_bytes} or leasts
    floor = next(iter(leasts.values()))
    least = candidate(asked.wanted, _cell(asked, choice, floor))
    memory = choice.memory_bytes(floor)
    if memory > asked.each_bytes:
        return Missed(choice, least, needs_bytes=memory * asked.at_once)
    try:
        found = _fastest(asked, choice, floor)
        if isinstance(found, str):
            return Missed(choice, least, reason=found)
        return _fitted(asked, choice, leasts, *found)
    except Stopped as stopped:
        return Missed(choice, least, reason=stopped.record.reason)


def _fitted(
    asked: Asked, choice: Choice, leasts: Mapping[int, Parameters], provider: Provider, alone_s: float
) -> Tuned | Missed:
    work_of = ALGORITHMS[choice.name].work
    floor = next(iter(leasts.values()))
    # Until a measurement at this concurrency, the time is estimated from one hash by itself.
    expected_s = alone_s * max(1.0, asked.at_once / asked.limits.cores.amount)
    work = work_of(floor) * AIM * asked.within_s / expected_s
    parameters: Parameters | None = next(_proposals(asked, choice, work), floor)
    points: list[Measured] = []
    while parameters and len(_quickest(points)) < MOST_MEASUREMENTS:
        points.append(measure(asked, choice, provider, parameters))
        if (1 - NEAR) * asked.within_s <= points[-1].elapsed.median_s <= asked.within_s:
            break
        parameters = _next(asked, choice, leasts, points)
    beyond = [point for point in _quickest(points) if point.elapsed.median_s > asked.within_s]
    fits = [point for point in _quickest(points) if point.elapsed.median_s <= asked.within_s]
    best = max(fits, key=lambda one: one.elapsed.median_s, default=None)
    again = _confirmations(asked, choice, provider, leasts, best, points) if best else []
    found = again[-1] if again and again[-1].elapsed.median_s <= asked.within_s else None
    beyond += again[:-1] if found else again
    least_beyond = min(beyond, key=lambda one: work_of(one.parameters), default=None)
    if found is None:
        assert least_beyond is not None
        least = candidate(asked.wanted, _cell(asked, choice, least_beyond.parameters))
        return Missed(choice, least, least_beyond, reason=NEVER_AGAIN if len(again) == MOST_CONFIRMATIONS else None)
    cell = {**_cell(asked, choice, found.parameters), "provider": provider.spec}
    return Tuned(
        choice,
        provider,
        candidate(asked.wanted, cell),
        asked.family.standing_of(cell),
        found,
        is_near=found.elapsed.median_s >= (1 - NEAR) * asked.within_s,
        beyond=least_beyond,
        guesses=guesses(asked.family, choice.name, found.parameters, asked.card),
        points=(*points, *again),
    )


def _confirmations(
    asked: Asked,
    choice: Choice,
    provider: Provider,
    leasts: Mapping[int, Parameters],
    best: Measured,
    points: Sequence[Measured],
) -> list[Measured]:
    """Return repeated measurements with fresh processes, the best fit first, then a step less work each time.

    The search selects a measurement that fits, so it is too short more often than too long; nothing selects a
    repetition. The last repetition is the answer, or does not fit because no less work is allowed or the tries are used
    up.
    """
    found: list[Measured] = []
    parameters: Parameters | None = best.parameters
    while parameters is not None and len(found) < MOST_CONFIRMATIONS:
        found.append(measure(asked, choice, provider, parameters))
        if found[-1].elapsed.median_s <= asked.within_s:
            break
        parameters = _lower(asked, choice, leasts, [*points, *found])
    return found


def _lower(
    asked: Asked, choice: Choice, leasts: Mapping[int, Parameters], points: Sequence[Measured]
) -> Parameters | None:
    """Return parameters of a little less work than the last that was measured; None where no less is allowed.

    Whatever the last took, the step is at most `NEAR`: another program may have been at work.
    """
    algorithm, last = ALGORITHMS[choice.name], points[-1]
    work, shape = algorithm.work(last.parameters), algorithm.shape(last.parameters)
    less = work * max(AIM * asked.within_s / last.elapsed.median_s, 1 - NEAR)
    too_long = [one.parameters for one in points if one.elapsed.median_s > asked.within_s]
    others = [one.parameters for one in points if one.parameters not in too_long]
    of_shape = (one for one in (*_proposals(asked, choice, less), *leasts.values()) if algorithm.shape(one) == shape)
    lower = (one for one in of_shape if algorithm.work(one) < work and one not in too_long)
    return next(lower, max(others, key=algorithm.work, default=None))


def _next(
    asked: Asked, choice: Choice, leasts: Mapping[int, Parameters], points: Sequence[Measured]
) -> Parameters | None:
    """Return the next parameters to measure, between fits and misses; None: nothing is between them.

    Within a shape time is taken to be proportional to the work, or, between two measurements, a power of it. If the
    smallest of a shape takes too long, or its largest not long enough, other shapes follow. Too long a measurement is
    repeated before its shape is left, unless other programs alone cannot explain it.
    """
    algorithm, aim_s = ALGORITHMS[choice.name], AIM * asked.within_s
    quickest = _quickest(points)
    known = [(algorithm.work(one.parameters), one.elapsed.median_s) for one in quickest]
    shapes = [algorithm.shape(one.parameters) for one in quickest]
    below, above = _bracket(asked, [pair for pair, shape in zip(known, shapes, strict=True) if shape == shapes[-1]])
    if below[0] and above[0] < inf:
        work = below[0] * (above[0] / below[0]) ** (log(aim_s / below[1]) / log(above[1] / below[1]))
    else:
        work = known[-1][0] * aim_s / known[-1][1]
    proposals = list(_proposals(asked, choice, work))
    of_shape = [one for one in proposals if algorithm.shape(one) == shapes[-1]]
    if not below[0]:
        of_shape += [leasts[shapes[-1]]] if shapes[-1] in leasts else []
    others = [one for one in (*proposals, *leasts.values()) if algorithm.shape(one) not in shapes]
    if below[0] and above[0] < inf:
        others = []
    seen = [one.parameters for one in points]
    if not below[0] and known[-1][1] <= BUSY * asked.within_s and seen.count(seen[-1]) == 1:
        others = [seen[-1]]
    return next(
        (one for one in of_shape if below[0] < algorithm.work(one) < above[0] and one not in seen),
        next(iter(others), None),
    )


def _quickest(points: Sequence[Measured]) -> Sequence[Measured]:
    """Return each set of parameters once, by its fastest measurement: other programs only make it longer."""
    found: dict[frozenset[tuple[str, int]], Measured] = {}
    for one in points:
        at = frozenset(one.parameters.items())
        found[at] = min(found.get(at, one), one, key=lambda each: each.elapsed.median_s)
    return [*found.values()]


def _bracket(asked: Asked, known: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the pairs of work and time nearest below and above the requested time."""
    below = max((one for one in known if one[1] <= asked.within_s), default=(0.0, 0.0))
    above = min((one for one in known if one[1] > asked.within_s), default=(inf, inf))
    # If less work took longer, one of the two was disturbed.
    return (below, above) if below[0] < above[0] else ((0.0, 0.0), (inf, inf))


def _proposals(asked: Asked, choice: Choice, work: float) -> Iterator[Parameters]:
    """Yield parameters of about this work that the policies do not refuse, in order of preference."""
    settings = asked.family.settings
    for one in ALGORITHMS[choice.name].near(work, asked.each_bytes):
        bounds = ((settings[name], value) for name, value in one.items())
        if all((s.least or 0) <= value <= (s.most or value) for s, value in bounds) and _is_allowed(asked, choice, one):
            yield one


def _leasts(asked: Asked, choice: Choice) -> Mapping[int, Parameters]:
    """Return the smallest allowed parameters of each shape that a policy or the family names, the smallest first."""
    named = [level.at_least for level in choice.levels if level.at_least]
    named += [
        {name: int(asked.family.settings[name].read(value)) for name, value in one.items()}
        for policy in asked.wanted.policies
        for part in policy.all_of_it
        for rule in part.rules
        if FAMILY in rule.families
        for one in rule.at_least
    ]
    defaults = {name: int(value) for name, value in _cell(asked, choice, {}).items() if name in asked.family.parameters}
    found = [{**defaults, **one} for one in ({}, *named) if one.keys() <= defaults.keys()]
    allowed = [one for one in found if _is_allowed(asked, choice, one)]
    algorithm, leasts = ALGORITHMS[choice.name], dict[int, Parameters]()
    for one in sorted(allowed, key=lambda one: (algorithm.work(one), choice.memory_bytes(one))):
        leasts.setdefault(algorithm.shape(one), one)
    return leasts


def _is_allowed(asked: Asked, choice: Choice, parameters: Parameters) -> bool:
    return candidate(asked.wanted, _cell(asked, choice, parameters)).ruling is not Ruling.BREAKS


def _cell(asked: Asked, choice: Choice, parameters: Parameters) -> Mapping[str, Value]:
    return at_defaults(asked.family, {"choice": choice.name, "op": asked.family.operations[0], **parameters})


def _fastest(asked: Asked, choice: Choice, floor: Parameters) -> tuple[Provider, float] | str:
    """Return the fastest provider proved to hash correctly, and its CPU seconds; or the reason why none does."""
    found: list[tuple[float, Provider]] = []
    reasons: list[str] = []
    for provider in asked.providers:
        try:
            if provider.fault:
                reasons.append(provider.fault[1])
            else:
                found.append((together.alone_s(*_work(asked, choice, provider, floor)), provider))
        except Stopped as stopped:
            reasons.append(f"{provider.name}: {stopped.record.reason}")
    for alone_s, provider in sorted(found, key=lambda one: one[0]):
        proven = OperationWorkload().prove(_planned(asked, choice, provider, floor), asked.seed, Given(None))
        if proven.outcome is Outcome.OK:
            return provider, alone_s
        reasons.append(f"{provider.name}: {proven.reason}")
    return "; ".join(reasons)


def measure(asked: Asked, choice: Choice, provider: Provider, parameters: Parameters) -> Measured:
    """Return the measured time of one hash with these parameters at this concurrency.

    Raises Stopped.
    """
    command, task = _work(asked, choice, provider, parameters)
    found = together.elapsed(command, task, asked.at_once, max(LEAST_S, EACH * asked.within_s))
    return Measured(parameters, choice.memory_bytes(parameters), found)


def _work(
    asked: Asked, choice: Choice, provider: Provider, parameters: Parameters
) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    return provider.runner, _planned(asked, choice, provider, parameters).task("measure", asked.seed)


def _planned(asked: Asked, choice: Choice, provider: Provider, parameters: Parameters) -> Cell:
    family = asked.family
    given: dict[str, Value] = {
        "choice": choice.name,
        "provider": provider.spec,
        "op": family.operations[0],
        **parameters,
    }
    coordinates = at_defaults(family, given)
    standing, strength = family.standing_of(coordinates), family.strength_of(coordinates)
    return Cell("tune", family.name, choice, provider, None, None, coordinates, standing, strength, against=None)
