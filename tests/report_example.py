"""Judgements made by hand, for the report's tests: a run of two studies, and one of a thousand cells."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import exp, log
from pathlib import Path
from statistics import fmean, stdev

from tollbar.catalogue import Authority, Choice, Family, Setting, Standing, Value
from tollbar.judge import (
    ClaimResult,
    ClaimVerdict,
    Contrast,
    Judgement,
    Measurement,
    StudyJudgement,
    Toll,
    Verdict,
)
from tollbar.measure import Outcome, Trial
from tollbar.results import Row, Run, StudyRun
from tollbar.stats import Interval
from tollbar.study import Measure, Study

SEEN = date(2026, 11, 21)
WORTH = 0.03
BLOCKS = 20
OPENSSL, RUSTCRYPTO = "openssl 3.0.19", "rustcrypto 0.10.9"
NO_BLAKE3 = "OpenSSL 3.0.19 has no digest of the name BLAKE3"
WRONG_BCRYPT = "the runner's answer was not the known one: $2b$10$…"


def example() -> Judgement:
    """A run of two studies: digests (BLAKE3 missing from one of two providers) and password hashes."""
    return judgement([digests(), passwords()])


def judgement(studies: Sequence[StudyJudgement]) -> Judgement:
    """A run of these studies."""
    run = Run(
        directory=Path("runs/2026-11-21-quick"),
        name="2026-11-21-quick",
        command=("tollbar", "run", "digests", "passwords"),
        seed=20261121,
        started="2026-11-21T09:14:05+00:00",
        fingerprint={
            "cpu": {"model": "Example CPU 3.1 GHz", "cores": 2, "flags": ["aes", "sha_ni", "vaes"]},
            "kernel": "6.1.0-40-amd64",
            "governor": None,
        },
        providers={
            OPENSSL: {"version": "OpenSSL 3.0.19 27 Jan 2026", "cflags": "-O2 -fstack-protector-strong"},
            RUSTCRYPTO: {"version": "sha2 0.10.9, md-5 0.10.6", "profile": "release"},
        },
        studies=tuple(study.study for study in studies),
    )
    return Judgement(run, tuple(studies))


def _choice(
    name: str,
    title: str,
    standing: Standing,
    strength: int | None,
    authority: str = "NIST | SP 800-57 part 1 revision 5, table 3 | approved",
    checked: bool = True,
) -> Choice:
    by, where, says = authority.split(" | ")
    return Choice(
        name=name,
        title=title,
        spec="FIPS 180-4",
        year=2001,
        strength=strength,
        strength_from=None if strength is None else "half the output, against collisions",
        standing=standing,
        authority=() if standing is Standing.NULL else (Authority(by, where, says, SEEN, checked),),
        answers=(),
        setting={},
        inputs={},
        note=None,
    )


def _family(
    name: str, title: str, strength_means: str | None, settings: Sequence[Setting], choices: Sequence[Choice]
) -> Family:
    return Family(
        name=name,
        title=title,
        operations=("hash",),
        strength_means=strength_means,
        settings={setting.name: setting for setting in settings},
        choices={choice.name: choice for choice in choices},
    )


def _study(name: str, question: str, family: Family, vary: Mapping[str, tuple[Value, ...]], **more: object) -> Study:
    study = Study(
        name=name,
        text=f'question = "{question}"\nfamily = "{family.name}"\nproviders = ["openssl", "rustcrypto"]\n',
        question=question,
        family=family,
        source=None,
        choices=tuple(family.choices),
        providers=("openssl", "rustcrypto"),
        beds=(),
        url=None,
        load=None,
        vary=vary,
        baseline={},
        leave_out=(),
        measure=Measure("cpu", 0.1, 0.02, BLOCKS),
        worth=WORTH,
        claims=(),
        notes=(),
    )
    return replace(study, **more)  # type: ignore[arg-type]


_IETF_MD5 = "IETF | RFC 6151 section 2 | not where collision resistance is required"
_NIST_SHA_1 = "NIST | SP 800-131A revision 2, section 9 | not for generating signatures"
_OWASP = "OWASP | Password Storage Cheat Sheet | "

DIGESTS = _family(
    "digest",
    "Hash function",
    "bits against the best known collision attack",
    [Setting("bytes", "message size", None, True, 4096, {})],
    [
        _choice("none", "No hash", Standing.NULL, None),
        _choice("md5", "MD5", Standing.BROKEN, 0, _IETF_MD5),
        _choice("sha-1", "SHA-1", Standing.DISALLOWED, 61, _NIST_SHA_1, checked=False),
        _choice("sha-256", "SHA-256", Standing.ACCEPTABLE, 128),
        _choice("sha-512", "SHA-512", Standing.ACCEPTABLE, 256),
        _choice("sha3-256", "SHA3-256", Standing.RECOMMENDED, 128, "NIST | FIPS 202 | approved"),
        _choice("blake2b", "BLAKE2b-512", Standing.ACCEPTABLE, 256, "IETF | RFC 7693 | specified"),
        _choice("blake3", "BLAKE3", Standing.ACCEPTABLE, 128, "its authors | section 1 | 128 bits", False),
    ],
)

PASSWORDS = _family(
    "password-hash",
    "Password hash",
    None,
    [],
    [
        _choice("sha-256", "One SHA-256, salted", Standing.DISALLOWED, None, _OWASP + "not a password hash"),
        _choice("bcrypt-10", "bcrypt, cost 10", Standing.DEPRECATED, None, _OWASP + "for legacy systems"),
        _choice("pbkdf2", "PBKDF2-SHA256, 600,000", Standing.ACCEPTABLE, None, _OWASP + "where FIPS rules"),
        _choice("scrypt", "scrypt, N = 2^17, r = 8", Standing.ACCEPTABLE, None, _OWASP + "second choice"),
        _choice("argon2id", "Argon2id, 19 MiB, 2 passes", Standing.RECOMMENDED, None, _OWASP + "first choice"),
    ],
)


@dataclass(frozen=True, slots=True)
class _Cost:
    coordinates: Mapping[str, Value]
    nanoseconds: float | None
    reason: str | None = None
    memory: int = 0
    noise: float = 0.01


def digests() -> StudyJudgement:
    """Costs in the proportions one x86 machine with SHA instructions shows, with a little noise."""
    here = {
        ("md5", OPENSSL): (190, 26_300), ("md5", RUSTCRYPTO): (142, 26_900),
        ("sha-1", OPENSSL): (165, 9_100), ("sha-1", RUSTCRYPTO): (80, 9_050),
        ("sha-256", OPENSSL): (174, 10_400), ("sha-256", RUSTCRYPTO): (86, 10_300),
        ("sha-512", OPENSSL): (246, 23_900), ("sha-512", RUSTCRYPTO): (182, 24_800),
        ("sha3-256", OPENSSL): (402, 39_700), ("sha3-256", RUSTCRYPTO): (372, 44_800),
        ("blake2b", OPENSSL): (238, 19_100), ("blake2b", RUSTCRYPTO): (87, 16_300),
        ("blake3", RUSTCRYPTO): (91, 5_700),
    }  # fmt: skip
    costs = []
    for choice in ("md5", "sha-1", "sha-256", "sha-512", "sha3-256", "blake2b", "blake3"):
        for provider in (OPENSSL, RUSTCRYPTO):
            for i, size in enumerate((64, 16384)):
                at: dict[str, Value] = {"choice": choice, "provider": provider, "op": "digest", "bytes": size}
                found = here.get((choice, provider))
                noise = 0.09 if (choice, provider, size) == ("blake2b", RUSTCRYPTO, 64) else 0.008
                reason = None if found else NO_BLAKE3
                costs.append(_Cost(at, float(found[i]) if found else None, reason, noise=noise))
    study = _study(
        "digests",
        "What does each hash function cost, by message size and library?",
        DIGESTS,
        {"bytes": (64, 16384)},
        baseline={"choice": "sha-256"},
        source="Published comparison of hash functions, 2005",
        notes=("One thread on one core: a tree hash such as BLAKE3 could use more.",),
    )
    left_out: tuple[tuple[Mapping[str, Value], str], ...] = (
        ({"choice": "none", "provider": OPENSSL}, "Copying the message is measured in the rehearsal."),
        ({"choice": "none", "provider": RUSTCRYPTO}, "Copying the message is measured in the rehearsal."),
    )
    judged = judge(study, costs, left_out, seed=1)
    fast = ("md5", "sha-1", "sha-256")
    contrasts = (
        _provider({"bytes": (64,)}, 6, _interval(0.59, 0.11), Verdict.SAVES),
        _provider({"bytes": (16384,), "choice": fast}, 3, _interval(1.002, 0.012), Verdict.FREE),
        _provider({"bytes": (16384,), "choice": ("sha3-256",)}, 1, _interval(1.03, 0.04), Verdict.UNCLEAR, 25),
    )
    md5, blake3 = "MD5 runs at 1.6 times the speed of SHA-256", "BLAKE3 runs at 4 times the speed of SHA-256"
    old = "Before processors had SHA instructions."
    claims = (
        _claim(md5, 1.6, 0.916, ClaimVerdict.INVERTED, OPENSSL, 64, note=old),
        _claim(md5, 1.6, 0.395, ClaimVerdict.INVERTED, OPENSSL, 16384),
        _claim(md5, 1.6, 0.605, ClaimVerdict.INVERTED, RUSTCRYPTO, 64),
        _claim("SHA-512 costs more than SHA-256", None, 1.41, ClaimVerdict.STILL_TRUE, OPENSSL, 64),
        _claim(blake3, 4.0, 1.81, ClaimVerdict.SMALLER, RUSTCRYPTO, 16384),
        _claim(blake3, 4.0, None, ClaimVerdict.CANNOT_TELL, OPENSSL, 16384, reason=NO_BLAKE3),
    )
    warnings = ("2 cores: the lab itself shares caches and power with what it measures.",)
    return replace(judged, contrasts=contrasts, claims=claims, warnings=warnings)


def _provider(
    where: Mapping[str, tuple[Value, ...]],
    pairs: int,
    ratio: Interval,
    verdict: Verdict,
    more: int | None = None,
) -> Contrast:
    return Contrast("provider", RUSTCRYPTO, OPENSSL, where, pairs, ratio, verdict, more)


def _claim(
    says: str,
    published: float | None,
    here: float | None,
    verdict: ClaimVerdict,
    provider: str,
    size: int,
    note: str | None = None,
    reason: str | None = None,
) -> ClaimResult:
    ratio = None if here is None else _interval(here, 0.01 * here)
    order = "more" if published is None else None
    at: dict[str, Value] = {"provider": provider, "bytes": size}
    return ClaimResult(says, published, order, ratio, verdict, at, note, reason)


def passwords() -> StudyJudgement:
    """Password hashes: five choices, one provider, memory beside CPU."""
    measured = (
        ("sha-256", 410, 4096, 0.01),
        ("bcrypt-10", None, 0, 0.01),
        ("pbkdf2", 98e6, 8192, 0.01),
        ("scrypt", 402e6, 128 * 1024**2, 0.01),
        ("argon2id", 99.4e6, 19 * 1024**2, 0.03),
    )
    costs = [
        _Cost(
            {"choice": name, "provider": OPENSSL, "op": "hash"},
            nanoseconds,
            None if nanoseconds else WRONG_BCRYPT,
            memory,
            noise,
        )
        for name, nanoseconds, memory, noise in measured
    ]
    study = _study(
        "passwords",
        "What does checking one password cost in CPU time and memory?",
        PASSWORDS,
        {},
        baseline={"choice": "pbkdf2"},
    )
    return judge(study, costs, (), seed=2)


def large(choices: int = 20, providers: int = 5, sizes: int = 10) -> Judgement:
    """A run whose one study has choices × providers × sizes cells: 1,000 unless told otherwise."""
    named = [_choice(f"c{i}", f"Choice {i:02}", list(Standing)[i % 5], 64 + 16 * (i % 9)) for i in range(choices)]
    family = replace(DIGESTS, choices={c.name: c for c in named})
    steps = [64 * 4**i for i in range(sizes)]
    costs = [
        _Cost(
            {"choice": c.name, "provider": f"library 1.{p}", "op": "digest", "bytes": size},
            (90 + size) * (1 + 0.13 * i) * (1 + 0.05 * p),
        )
        for i, c in enumerate(named)
        for p in range(providers)
        for size in steps
    ]
    study = _study(
        "large",
        "What if there are a thousand cells?",
        family,
        {"bytes": tuple(steps)},
        baseline={"choice": "c3"},
    )
    judged = judge(study, costs, (), seed=3)
    contrasts = tuple(
        Contrast("bytes", a, b, {}, choices * providers, _interval(a / b, 0.01 * a / b), Verdict.COSTS, None)
        for i, a in enumerate(steps)
        for b in steps[:i]
    )
    return judgement([replace(judged, contrasts=contrasts)])


def judge(
    study: Study,
    costs: Iterable[_Cost],
    left_out: tuple[tuple[Mapping[str, Value], str], ...],
    seed: int,
) -> StudyJudgement:
    """Trials around the given costs, and what a judge would make of them."""
    chance = random.Random(seed)
    rows = [_row(study, cost, chance) for cost in costs]
    by_key = {row.key: row for row in rows}
    measurements, tolls = [], []
    for row in rows:
        if row.trials:
            cost = _summary([t.cost_ns for t in row.trials])
            measurements.append(Measurement(row, "cpu", "ns/op", cost.estimate, cost.low, cost.high, cost.n))
            if any(t.memory_bytes for t in row.trials):
                memory = _summary([float(t.memory_bytes) for t in row.trials])
                measurements.append(Measurement(row, "memory", "B", memory.estimate, memory.low, memory.high, memory.n))
        if row.against is not None:
            tolls.append(_toll(row, by_key[row.against]))
    return StudyJudgement(
        study=StudyRun(study, tuple(rows), left_out, looks=(10, BLOCKS)),
        noise_floor=1.006,
        measurements=tuple(measurements),
        tolls=tuple(tolls),
        contrasts=(),
        claims=(),
        drift=0.996,
        warnings=(),
    )


def _row(study: Study, cost: _Cost, chance: random.Random) -> Row:
    choice = study.family.choices[str(cost.coordinates["choice"])]
    against = {**cost.coordinates, **study.baseline}
    key = _key(cost.coordinates)
    ok = cost.nanoseconds is not None
    failed = Outcome.UNSUPPORTED if "no digest" in (cost.reason or "") else Outcome.FAILED
    trials = _trials(study, cost, key, False, chance) if ok else ()
    twins = _trials(study, cost, key, True, chance) if ok and key == _key(against) else ()
    return Row(
        key=key,
        coordinates=cost.coordinates,
        title=choice.title,
        standing=choice.standing,
        strength=choice.strength,
        against=_key(against),
        outcome=Outcome.OK if ok else failed,
        reason=cost.reason,
        trials=trials,
        twins=twins,
    )


def _trials(study: Study, cost: _Cost, key: str, twin: bool, chance: random.Random) -> tuple[Trial, ...]:
    assert cost.nanoseconds is not None
    trials = []
    for block in range(BLOCKS):
        nanoseconds = cost.nanoseconds * exp(chance.gauss(0, cost.noise)) * (1 - 0.0003 * block)
        operations = max(1, round(1e8 / nanoseconds))
        memory = 0 if not cost.memory else cost.memory + chance.randrange(4096)
        trials.append(
            Trial(
                study=study.name,
                cell=key,
                twin=twin,
                block=block,
                order=block,
                started_s=1.8e9 + block,
                outcome=Outcome.OK,
                reason=None,
                operations=operations,
                cpu_ns=round(operations * nanoseconds),
                wall_ns=round(operations * nanoseconds * 1.02),
                memory_bytes=memory,
                batches=((operations, round(operations * nanoseconds)),),
                steal_ns=chance.choice((0, 0, 0, 10_000_000)),
                machine_load=1.25 if block else 0.5,
            )
        )
    return tuple(trials)


def _key(coordinates: Mapping[str, Value]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(coordinates.items()))


def _toll(row: Row, against: Row) -> Toll:
    if not row.trials or not against.trials:
        return Toll(row, against, "cpu", None, None, Verdict.NOT_MEASURED, None, None, row.reason or against.reason)
    own = row.twins if row is against else row.trials
    ratio = _summary([a.cost_ns / b.cost_ns for a, b in zip(own, against.trials, strict=True)])
    difference = fmean(t.cost_ns for t in row.trials) - fmean(t.cost_ns for t in against.trials)
    verdict = Verdict.UNCLEAR
    if ratio.low > 1 + WORTH:
        verdict = Verdict.COSTS
    elif ratio.high < 1 / (1 + WORTH):
        verdict = Verdict.SAVES
    elif ratio.low > 1 / (1 + WORTH) and ratio.high < 1 + WORTH:
        verdict = Verdict.FREE
    more = 25 if verdict is Verdict.UNCLEAR else None
    return Toll(row, against, "cpu", ratio, difference, verdict, 1.006, more, None)


def _summary(values: Sequence[float]) -> Interval:
    logs = [log(v) for v in values]
    # Close enough to a 95 % interval over twenty blocks for an example.
    half = 2.1 * stdev(logs) / len(logs) ** 0.5
    middle = fmean(logs)
    return Interval(exp(middle), exp(middle - half), exp(middle + half), 0.95, len(values))


def _interval(estimate: float, half: float) -> Interval:
    return Interval(estimate, estimate - half, estimate + half, 0.95, BLOCKS)
