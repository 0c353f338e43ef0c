"""Hand-made judgements for the report's tests: a run of two studies, and one of a thousand cells."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp
from pathlib import Path

import by_hand
from report_families import DIGESTS, PASSWORDS, choice_of
from tollbar.analysis import ClaimResult, ClaimVerdict, Contrast, Judgement, Measurement, StudyJudgement, Verdict
from tollbar.catalog.families import Family, Standing, Value
from tollbar.core.intervals import Interval
from tollbar.core.records import RUNNER, Chunk, Outcome
from tollbar.results import Row, Run, StudyRun
from tollbar.study import Claim, Measure, Study

THRESHOLD = 0.03
BLOCKS, ROUNDS = 12, 10
# The run was judged once before, so less error is left for the second look.
CONFIDENCE = 0.995
# Factor by which neighbours raise the cost of most work here.
NOISY = 1.08
OPENSSL, RUSTCRYPTO = "libcrypto", "rustcrypto"
NAMES = {OPENSSL: "openssl 3.0.19", RUSTCRYPTO: "rustcrypto 0.10.9"}
"""Name of each provider in rows."""
NO_BLAKE3 = "OpenSSL 3.0.19 has no digest of the name BLAKE3"
WRONG_BCRYPT = "the runner's answer was not the known one: $2b$10$…"


def example() -> Judgement:
    """Return a run of two studies: digests (BLAKE3 missing from one of two providers) and password hashes."""
    return judgement([digests(), passwords()])


def judgement(studies: Sequence[StudyJudgement]) -> Judgement:
    """Return a run of these studies."""
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
            OPENSSL: {
                "name": NAMES[OPENSSL],
                "version": "OpenSSL 3.0.19 27 Jan 2026",
                "cflags": "-O2 -fstack-protector-strong",
            },
            RUSTCRYPTO: {"name": NAMES[RUSTCRYPTO], "version": "sha2 0.10.9, md-5 0.10.6", "profile": "release"},
        },
        studies=tuple(study.study for study in studies),
    )
    return Judgement(run, tuple(studies))


def _study(name: str, question: str, family: Family, vary: Mapping[str, tuple[Value, ...]], **more: object) -> Study:
    study = Study(
        name=name,
        text=f'question = "{question}"\nfamily = "{family.name}"\nproviders = ["openssl", "rustcrypto"]\n',
        question=question,
        family=family,
        source=None,
        choices=tuple(family.choices),
        providers=("openssl", "rustcrypto"),
        servers=(),
        load=None,
        vary=vary,
        baseline={},
        leave_out=(),
        measure=Measure("cpu", 0.005, ROUNDS, BLOCKS),
        threshold=THRESHOLD,
        claims=(),
        notes=(),
    )
    return replace(study, **more)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Cost:
    coordinates: Mapping[str, Value]
    nanoseconds: float | None
    reason: str | None = None
    memory: int = 0
    noise: float = 0.01
    noisy: float = NOISY


def digests() -> StudyJudgement:
    """Return costs in the proportions of an x86 machine with SHA instructions, with a little noise."""
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
                # Work that lives in the caches suffers more from neighbours.
                noisy = 1.16 if (choice, provider, size) == ("blake2b", OPENSSL, 16384) else NOISY
                costs.append(_Cost(at, float(found[i]) if found else None, reason, noise=noise, noisy=noisy))
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
        ({"choice": "none", "provider": OPENSSL}, "Copying the message is measured in the self-test."),
        ({"choice": "none", "provider": RUSTCRYPTO}, "Copying the message is measured in the self-test."),
    )
    judged = judge(study, costs, left_out, seed=1)
    fast = ("md5", "sha-1", "sha-256")
    contrasts = (
        _provider({"bytes": (64,)}, 6, (0.37, 0.93), Verdict.SAVES),
        _provider({"bytes": (16384,), "choice": fast}, 3, (0.99, 1.02), Verdict.FREE),
        _provider({"bytes": (16384,), "choice": ("sha3-256",)}, 1, (1.03, 1.03), Verdict.UNCLEAR, 25),
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
    return replace(judged, contrasts=contrasts, claims=claims)


def _provider(
    where: Mapping[str, tuple[Value, ...]],
    pairs: int,
    ratios: tuple[float, float],
    verdict: Verdict,
    more: int | None = None,
) -> Contrast:
    return _contrast("provider", RUSTCRYPTO, OPENSSL, where, pairs, ratios, verdict, more)


def _contrast(
    setting: str,
    value: Value,
    for_value: Value,
    where: Mapping[str, tuple[Value, ...]],
    pairs: int,
    ratios: tuple[float, float],
    verdict: Verdict,
    more: int | None = None,
) -> Contrast:
    least, most = ratios
    return Contrast(
        setting=setting,
        value=value,
        for_value=for_value,
        where=where,
        pairs=pairs,
        low=0.99 * least,
        high=1.01 * most,
        least=least,
        most=most,
        verdict=verdict,
        more_blocks=more,
    )


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
    return ClaimResult(
        Claim(
            says,
            {"choice": "md5"},
            {"choice": "sha-256"},
            metric="cost" if published is None else "capacity",
            ratio=None if published is None else (published, published),
            order="more" if published is None else None,
            note=note,
        ),
        at={"provider": provider, "bytes": size},
        ratio=ratio,
        all_samples=None if ratio is None else by_hand.scaled(ratio, 1.01),
        verdict=verdict,
        reason=reason,
    )


def passwords() -> StudyJudgement:
    """Return password hashes: five choices, one provider, memory and CPU."""
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


@cache
def large(choices: int = 20, providers: int = 5, sizes: int = 10) -> Judgement:
    """Return a run whose one study has choices × providers × sizes cells, 1,000 by default."""
    named = [choice_of(f"c{i}", f"Choice {i:02}", list(Standing)[i % 5], 64 + 16 * (i % 9)) for i in range(choices)]
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
        _contrast("bytes", a, b, {}, choices * providers, (0.9 * a / b, a / b), Verdict.COSTS)
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
    """Return the judgement of trials around the given costs."""
    chance = random.Random(seed)
    found = {by_hand.key(cost.coordinates): cost for cost in costs}
    against = {key: by_hand.key({**cost.coordinates, **study.baseline}) for key, cost in found.items()}
    batches = by_hand.batches(against)
    rows = tuple(_row(study, cost, key, against[key], batches[key], chance) for key, cost in found.items())
    return by_hand.judged(
        StudyRun(study, rows, left_out, interim_looks=(10, BLOCKS)),
        {key: cost.noisy for key, cost in found.items()},
        beside=_memory,
    )


def _memory(row: Row) -> Iterable[Measurement]:
    held = {t.block: t.memory_bytes for t in row.trials if t.memory_bytes}
    return [by_hand.measurement(row, "memory", "B", by_hand.interval(held, CONFIDENCE))] if held else []


def _row(study: Study, cost: _Cost, key: str, against: str, batches: Sequence[int], chance: random.Random) -> Row:
    choice = study.family.choices[str(cost.coordinates["choice"])]
    ok = cost.nanoseconds is not None
    failed = Outcome.UNSUPPORTED if "no digest" in (cost.reason or "") else Outcome.FAILED

    def chunks(block: int) -> Sequence[Chunk]:
        assert cost.nanoseconds is not None
        all_samples = cost.nanoseconds * cost.noisy * (1 - 0.0003 * block)
        # A process keeps its luck; its chunks scatter by themselves.
        own = chance.gauss(0, cost.noise)
        costs = [all_samples * exp(own + chance.gauss(0, cost.noise)) for _ in range(study.measure.rounds)]
        return [_chunk(number, nanoseconds) for number, nanoseconds in enumerate(costs)]

    trials, repeats = (
        tuple(
            by_hand.trials(
                study.name,
                key,
                repeat=repeat,
                blocks=study.measure.blocks,
                batches=batches,
                chunks=chunks,
                paid_by=(RUNNER,),
                chance=chance,
                memory=cost.memory,
            )
            if made
            else ()
        )
        for repeat, made in ((False, ok), (True, ok and key == against))
    )
    return Row(
        key=key,
        coordinates=cost.coordinates,
        provider=NAMES.get(provider := str(cost.coordinates["provider"]), provider),
        title=choice.title,
        standing=choice.standing,
        strength=choice.strength,
        against=against,
        outcome=Outcome.OK if ok else failed,
        reason=cost.reason,
        trials=trials,
        repeats=repeats,
    )


def _chunk(number: int, nanoseconds: float) -> Chunk:
    operations = max(1, round(5e6 / nanoseconds))
    return Chunk(number, operations, round(operations * nanoseconds * 1.02), {RUNNER: round(operations * nanoseconds)})


def _interval(estimate: float, half: float) -> Interval:
    return Interval(estimate, estimate - half, estimate + half, CONFIDENCE, BLOCKS)
