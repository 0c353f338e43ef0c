"""Sizing a mix: sums of rates times costs, what is refused, and what a load client finds."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import lognormal, measured, row, run, study, study_run
from conftest import Tollbar
from tollbar import families, stats
from tollbar import study as studies
from tollbar.document.decisions.size import document
from tollbar.errors import TollbarError
from tollbar.families import Standing, Value
from tollbar.judge import Verdict
from tollbar.judge.costs import Ledger
from tollbar.judge.decisions import Terms
from tollbar.policies import Ruling
from tollbar.present.decisions.size import questions, size_answer
from tollbar.records import ComponentRecord, LoadRecord
from tollbar.results import Run, StudyRun
from tollbar.sizing import read, size
from tollbar.sizing.checked import checked, to_ask
from tollbar.sizing.mix import Mix
from tollbar.sizing.sized import Sized
from tollbar.stats import Interval
from tollbar.study import default_load

TODAY = date(2026, 11, 23)
BLOCKS = 12
TLS: Mapping[str, Value] = {"op": "connect", "bed": "nginx", "certificate": "ecdsa-p256", "users": 8}
HANDSHAKES = {
    "full": {"choice": "tls-1.3", **TLS, "resumption": "none"},
    "resumed": {"choice": "tls-1.3", **TLS, "resumption": "ticket", "resumed": 100},
    "rsa": {"choice": "tls-1.3", **TLS, "resumption": "none", "certificate": "rsa-2048"},
    "rsa resumed": {"choice": "tls-1.3", **TLS, "resumption": "ticket", "resumed": 100, "certificate": "rsa-2048"},
    "bare": {"choice": "plaintext", "op": "connect", "bed": "nginx", "users": 8},
}
HANDSHAKE_TERM = """
[term.handshakes]
rate    = "{rate} /s"
family  = "tls"
choice  = "tls-1.3"
op      = "connect"
resumed = "{resumed} %"
off     = {{ choice = "plaintext" }}
"""
LOGIN_TERM = """
[term.logins]
rate   = "20 /s"
family = "web-auth"
choice = "form"
op     = "sign-on"
bed    = "embedded"
"""
HASH_TERM = """
[term.hashes]
rate   = "{rate} /s"
family = "digest"
choice = "{choice}"
"""


def mix(tmp_path: Path, text: str) -> Mix:
    (tmp_path / "mix.toml").write_text(text, "utf-8")
    return read(tmp_path / "mix.toml")


def made(
    family: str, cells: Mapping[str, Mapping[str, Value]], costs: Mapping[str, float], seed: int = 0, noise: float = 0.0
) -> StudyRun:
    """A study of these cells at these costs in nanoseconds; the first of them has a twin."""
    true = [next(iter(costs.values())), *costs.values()]
    twins, *found = measured([one / 100 for one in true], lognormal(noise), random.Random(seed), blocks=BLOCKS)
    first = next(iter(costs))
    rows = []
    for name, cost in zip(costs, found, strict=True):
        against, own = (None, twins) if name == first else (rows[0].key, ())
        is_null = cells[name]["choice"] == "plaintext"
        standing = Standing.NULL if is_null else Standing.ACCEPTABLE
        rows.append(row(cells[name], cost, against=against, twins_ns=own, standing=standing))
    return study_run(rows, (BLOCKS,), replace(study(blocks=BLOCKS), name=family, family=families.family(family)))


def hashes(costs: Mapping[str, float], seed: int = 0, noise: float = 0.0) -> StudyRun:
    cells = {name: {"choice": name, "op": "hash", "bytes": 4096} for name in costs}
    return made("digest", cells, costs, seed, noise)


COSTS = {"full": 300_000.0, "resumed": 100_000.0, "rsa": 600_000.0, "rsa resumed": 101_000.0, "bare": 30_000.0}


def handshakes(costs: Mapping[str, float] = COSTS, seed: int = 0, noise: float = 0.0) -> StudyRun:
    return made("tls", HANDSHAKES, costs, seed, noise)


def sized(of: Mix, *runs: StudyRun) -> Sized:
    return size(of, [run(*runs)] if runs else [], TODAY)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 10), st.floats(2, 60)), min_size=1, max_size=5))
def test_variances_of_what_is_independent_add(parts: list[tuple[float, float, float]]) -> None:
    """One estimate is itself; of several the sum, no surer than the least sure and no wider than all widths."""
    intervals = [
        Interval(middle, middle - half, middle + half, 0.95, 9, freedom=freedom) for middle, half, freedom in parts
    ]
    found = stats.total(intervals)
    assert sum(one.estimate for one in intervals) == pytest.approx(found.estimate)
    widest, all_of_them = max(half for _, half, _ in parts), sum(half for _, half, _ in parts)
    # Fewer degrees of freedom are not in the sum than in its least sure part, and not more than in all.
    assert min(one.freedom for one in intervals) - 0.1 <= found.freedom <= sum(one.freedom for one in intervals) + 0.1
    if len(parts) == 1:
        assert (intervals[0].low, intervals[0].high) == pytest.approx((found.low, found.high))
    assert found.high - found.estimate <= all_of_them * 1.5
    if len({freedom for *_, freedom in parts}) == 1:
        assert found.high - found.estimate <= all_of_them * (1 + 1e-9)
    assert found.high - found.estimate >= widest * 0.3
    unsure = Interval(1.0, -inf, inf, 0.95, 2)
    assert not stats.total([*intervals, unsure]).is_bounded


def test_sums_without_anything_left_have_no_ratio() -> None:
    """Nor a warning: a cell less itself is nought in every block."""
    (one,) = hashes({"sha-256": 7000.0}).rows
    ledger = Ledger([one], Terms(0.03, 1))
    assert ledger.ratio_of_sums([one], [0.0], [1.0]) is None


def test_sums_of_independent_estimates_cover_the_truth() -> None:
    """As often as they say, of two unequal means of normal draws."""
    source = random.Random(5)
    missed = 0
    for _ in range(600):
        parts = []
        for sigma, n in ((1.0, 5), (3.0, 9)):
            draws = [source.gauss(10.0, sigma) for _ in range(n)]
            mean = sum(draws) / n
            error = (sum((one - mean) ** 2 for one in draws) / (n - 1) / n) ** 0.5
            half = stats.student(n - 1.0, 0.95) * error
            parts.append(Interval(mean, mean - half, mean + half, 0.95, n, freedom=n - 1.0))
        found = stats.total(parts)
        missed += not found.low <= 20.0 <= found.high
    assert 0.02 <= missed / 600 <= 0.08


@settings(max_examples=25, deadline=None)
@given(
    rate=st.integers(1, 10**6),
    resumed=st.integers(0, 100),
    utilisation=st.integers(1, 90),
    hashed=st.integers(1, 10**6),
)
def test_cores_are_rates_times_costs_over_the_utilisation(
    tmp_path_factory: pytest.TempPathFactory, rate: int, resumed: int, utilisation: int, hashed: int
) -> None:
    """Of a mixture of two cells less a null in one study, and of a cell in another."""
    text = HANDSHAKE_TERM.format(rate=rate, resumed=resumed) + HASH_TERM.format(rate=hashed, choice="sha-256")
    of = mix(tmp_path_factory.mktemp("mix"), f'[mix]\nutilisation = "{utilisation} %"\n{text}')
    found = sized(of, handshakes(), hashes({"sha-256": 7000.0, "md5": 9000.0}))
    share = resumed / 100
    each = (1 - share) * COSTS["full"] + share * COSTS["resumed"] - COSTS["bare"]
    cores = [rate * each * 1e-9 / (utilisation / 100), hashed * 7000.0 * 1e-9 / (utilisation / 100)]
    assert cores == pytest.approx([term.cores.estimate for term in found.terms], rel=1e-6)
    assert found.cores is not None
    assert sum(cores) == pytest.approx(found.cores.estimate, rel=1e-6)


def test_intervals_cover_what_was_made(tmp_path: Path) -> None:
    """Cells of one study are summed block by block, and those of two as independent."""
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=80) + HASH_TERM.format(rate=10_000, choice="sha-256"))
    true = (100 * (0.2 * 300_000 + 0.8 * 100_000 - 30_000) + 10_000 * 9000) * 1e-9 / 0.6
    # A lognormal's mean is above its median.
    noise, missed = 0.02, 0
    for seed in range(100):
        cores = sized(of, handshakes(COSTS, seed, noise), hashes({"sha-256": 9000.0}, seed + 1000, noise)).cores
        assert cores is not None
        missed += not cores.low <= true * (1 + noise**2 / 2) <= cores.high
    assert missed <= 10


def test_swaps_say_what_they_save(tmp_path: Path) -> None:
    """Of a mixture all its cells are swapped; what noise may make is not told apart; a policy refuses by its rule."""
    costs = {"sha-256": 8000.0, "md5": 4000.0, "blake3": 2000.0, "sha3-256": 8010.0, "sha-512": 20_000.0}
    of = mix(tmp_path, '[mix]\npolicy = ["asvs-level-2"]\n' + HASH_TERM.format(rate=30_000, choice="sha-256"))
    found = sized(of, hashes(costs, noise=0.004))
    swaps = {str(one.value): one for one in found.terms[0].swaps}
    assert ["blake3", "md5"] == list(swaps)[:2]
    assert 30_000 * 6000 * 1e-9 / 0.6 == pytest.approx(swaps["blake3"].saved.estimate, rel=0.02)
    assert (Verdict.SAVES, Ruling.MEETS) == (swaps["blake3"].verdict, swaps["blake3"].judged.ruling)
    assert (Verdict.SAVES, Ruling.BREAKS) == (swaps["md5"].verdict, swaps["md5"].judged.ruling)
    assert swaps["sha3-256"].verdict in (Verdict.FREE, Verdict.UNCLEAR)
    assert Verdict.COSTS is swaps["sha-512"].verdict
    table = next(one for one in size_answer(found).listings if "swapping" in one.title).tables[0]
    words = {cells[1].says: [cell.says for cell in cells] for cells in table.rows}
    assert "refused" in words["MD5"]
    assert "not told apart" in words["SHA3-256"] or "no difference that matters" in words["SHA3-256"]
    refused = next(cells[1].small for cells in table.rows if cells[1].says == "MD5")
    assert refused is not None
    assert "asvs" in refused
    mixture = sized(mix(tmp_path, HANDSHAKE_TERM.format(rate=1000, resumed=50)), handshakes())
    (rsa,) = mixture.terms[0].swaps
    assert ("certificate", "rsa-2048") == (rsa.name, rsa.value)
    saved = -1000 * (0.5 * 300_000 + 0.5 * 1000) * 1e-9 / 0.6
    assert saved == pytest.approx(rsa.saved.estimate, rel=1e-6)


def test_swaps_of_choices_with_settings_of_their_own(tmp_path: Path) -> None:
    """Each row is one, by its own cost; those that differ in such a setting have its value in their name."""
    costs = {"session-cookie": 10_000.0, "sha-256": 11_000.0, "bcrypt": 60e6, "hmac": 12_000.0}
    at = {"op": "request", "bed": "embedded", "users": 8}
    cells: dict[str, Mapping[str, Value]] = {
        name: {"choice": "api-key", **at, "verifier": name} for name in [*costs][1:]
    } | {"session-cookie": {"choice": "session-cookie", **at}}
    term = LOGIN_TERM.replace('"form"', '"session-cookie"').replace("sign-on", "request")
    found = sized(mix(tmp_path, term), made("web-auth", cells, costs))
    saved = {str(one.row.coordinates["verifier"]): one.saved.estimate for one in found.terms[0].swaps}
    assert ["sha-256", "hmac", "bcrypt"] == [*saved]
    for name, cores in saved.items():
        assert 20 * (10_000 - costs[name]) * 1e-9 / 0.6 == pytest.approx(cores)
    table = next(one for one in size_answer(found).listings if "swapping" in one.title).tables[0]
    words = [cells[1].says for cells in table.rows]
    assert ["API key", True, True] == [words[0], "hmac" in words[1], "bcrypt" in words[2]]
    assert ["sha-256", "hmac", "bcrypt"] == [one.cell["verifier"] for one in document(found).terms[0].swaps]


@pytest.mark.parametrize("resumed", [0, 100])
def test_swaps_of_a_mixture_of_one_kind_are_named_by_what_is_swapped(tmp_path: Path, resumed: int) -> None:
    """A cell of no weight is swapped with the others: its row has the value and the standing."""
    (rsa,) = sized(mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=resumed)), handshakes()).terms[0].swaps
    assert ("certificate", "rsa-2048", "none") == (rsa.name, rsa.value, rsa.row.coordinates["resumption"])
    each = COSTS["resumed"] - COSTS["rsa resumed"] if resumed else COSTS["full"] - COSTS["rsa"]
    assert 100 * each * 1e-9 / 0.6 == pytest.approx(rsa.saved.estimate)


def test_a_term_that_comes_to_nothing_is_refused(tmp_path: Path) -> None:
    """Where a null costs more than what it is taken off; and what is not told apart from it is warned of."""
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=100))
    with pytest.raises(TollbarError, match="not above nought") as fault:
        sized(of, handshakes({**COSTS, "bare": 110_000.0}))
    assert "term.handshakes" in str(fault.value)
    near = sized(of, handshakes({**COSTS, "bare": 99_000.0}, seed=1, noise=0.05))
    assert near.terms[0].cores.low <= 0 < near.terms[0].cores.estimate
    (warning,) = size_answer(near).warnings
    assert "The interval of `handshakes` reaches nought or below: ask again for longer (`--for`)" == warning
    assert not size_answer(sized(of, handshakes())).warnings


def test_which_moments_costs_are_of_is_said(tmp_path: Path) -> None:
    """Without a probe none is undisturbed."""
    of = mix(tmp_path, HASH_TERM.format(rate=1000, choice="sha-256"))
    quiet = hashes({"sha-256": 7000.0})
    rows = [
        replace(
            one,
            trials=tuple(
                replace(trial, chunks=tuple(replace(chunk, probes_ns=None) for chunk in trial.chunks))
                for trial in one.trials
            ),
        )
        for one in quiet.rows
    ]
    for ran, words in ((quiet, "undisturbed"), (replace(quiet, rows=tuple(rows)), "as disturbed")):
        found = sized(of, ran)
        assert f"on the server's side, {words}, as measured" in size_answer(found).how[0]
        told = document(found)
        assert told.cores is not None
        assert [words, words] == [told.cores.moments, told.terms[0].cores.moments]


def test_machines_are_counted_by_the_far_end(tmp_path: Path) -> None:
    """What may fail is on top, and what the near end would give is said."""
    head = '[mix]\ncores-each = 2\nsurvive = 1\nutilisation = "50 %"\n'
    of = mix(tmp_path, head + HASH_TERM.format(rate=100_000, choice="sha-256"))
    found = sized(of, hashes({"sha-256": 20_000.0}, noise=0.01))
    assert found.cores is not None
    assert found.cores.low < 4.0 < found.cores.high
    assert (4, 3) == (found.machines(found.cores.high), found.machines(found.cores.low))
    assert (
        "4 machines of 2 cores, 1 of which may fail; by the interval's low end 3 would do"
        in size_answer(found).headline
    )
    few = study_run([replace(one, trials=one.trials[:2]) for one in hashes({"sha-256": 20_000.0}).rows], (2,))
    short = sized(of, replace(few, study=replace(few.study, family=families.family("digest"))))
    assert short.cores is not None
    assert short.machines(short.cores.high) is None
    assert "too few blocks" in size_answer(short).headline


def test_what_was_not_measured_is_answered_by_its_question(tmp_path: Path) -> None:
    """A command to paste, whose words `ask` understands; and the row that comes nearest."""
    of = mix(tmp_path, LOGIN_TERM + HANDSHAKE_TERM.format(rate=5, resumed=80))
    none = sized(of)
    assert none.cores is None
    first, second = questions(none)
    load = "utilisation=60% client=apart"
    assert f"tollbar ask web-auth form op=sign-on bed=embedded {load}" == first
    assert f"tollbar ask tls tls-1.3 plaintext op=connect resumption=none,ticket {load}" == second
    for one in (first, second):
        _, _, family, *words = shlex.split(one)
        assert studies.of_words(family, words).tables
    other = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256") + 'setting = { bytes = "1 KiB" }\n')
    found = sized(other, hashes({"sha-256": 7000.0}), handshakes())
    assert {"hashes": "the nearest that was measured has `bytes=4096` for `1024`"} == found.missing
    assert "no run here has the family web-auth" == sized(of, handshakes()).missing["logins"]
    assert (None, ["tollbar ask digest sha-256 op=hash bytes=1KiB"]) == (document(found).cores, document(found).ask)


def test_costs_of_other_requests_are_not_taken(tmp_path: Path) -> None:
    """In whatever order the runs are named: what is asked for must be what a question asks for."""
    of = mix(tmp_path, LOGIN_TERM)
    usual = made(
        "web-auth", {"form": {"choice": "form", "op": "sign-on", "bed": "embedded", "users": 8}}, {"form": 2e7}
    )
    load = default_load(usual.study.family)
    own = replace(usual, study=replace(usual.study, load=replace(load, users=(2,), rates_hz=(5.0,))))
    for other, said in (
        ({"get": "/bytes/1048576"}, f"`load.request.get=/bytes/1048576` for `{load.get}`"),
        ({"connection": "new"}, "`load.connection=new` for `–`"),
        ({"think_s": 0.5}, "`load.think=0.5` for `–`"),
        ({"unique_query": True}, "`load.request.unique=True` for `–`"),
    ):
        more = made("web-auth", {"form": usual.rows[0].coordinates}, {"form": 9e7})
        more = replace(more, study=replace(more.study, load=replace(load, **other)))  # type: ignore[arg-type]
        assert {"logins": f"the nearest that was measured has {said}"} == sized(of, more).missing
        for runs in ((more, own), (own, more)):
            found = sized(of, *runs)
            assert found.cores is not None
            assert 20 * 0.02 / 0.6 == pytest.approx(found.cores.estimate)


@pytest.mark.parametrize("words", [("digest", "sha-256", "bed=embedded"), ("tls", "tls-1.3"), ("web-auth", "form")])
def test_a_question_s_requests_are_those_that_a_mix_wants(words: tuple[str, ...]) -> None:
    """Of a family that only servers perform, and of another that one performs."""
    asked = studies.read("asked", studies.of_words(words[0], words[1:]).text(5), where="asked")
    assert default_load(families.family(words[0])) == asked.load


def test_costs_of_several_threads_are_not_taken(tmp_path: Path) -> None:
    """A row that says nothing of threads is of one."""
    of = mix(tmp_path, HASH_TERM.format(rate=1000, choice="sha-256"))
    sha: Mapping[str, Value] = {"choice": "sha-256", "op": "hash", "bytes": 4096}
    eight = made("digest", {"eight": {**sha, "threads": 8}}, {"eight": 20_000.0})
    assert {"hashes": "the nearest that was measured has `threads=8` for `1`"} == sized(of, eight).missing
    cells = {"eight": {**sha, "threads": 8}, "one": {**sha, "threads": 1}}
    found = sized(of, made("digest", cells, {"eight": 20_000.0, "one": 7000.0}))
    assert 1 == found.terms[0].cell.row.coordinates["threads"]


def test_a_provider_that_is_not_said_is_the_family_s(tmp_path: Path) -> None:
    """Or the only one; among others the mix says which."""
    text = HASH_TERM.format(rate=1000, choice="sha-256")

    def ran(**costs: float) -> StudyRun:
        sha: Mapping[str, Value] = {"choice": "sha-256", "op": "hash", "bytes": 4096}
        return made("digest", {name: {**sha, "provider": name} for name in costs}, costs)

    for runs in ((ran(go=5e4, libcrypto=7e3),), (ran(go=5e4), ran(libcrypto=7e3)), (ran(libcrypto=7e3), ran(go=5e4))):
        assert "libcrypto" == sized(mix(tmp_path, text), *runs).terms[0].cell.row.coordinates["provider"]
    assert "go" == sized(mix(tmp_path, text), ran(go=5e4)).terms[0].cell.row.coordinates["provider"]
    with pytest.raises(TollbarError, match="which provider") as fault:
        sized(mix(tmp_path, text), ran(java=6e4, go=5e4))
    assert "measured here: go, java" == fault.value.hint
    said = sized(mix(tmp_path, text + 'provider = "java"\n'), ran(go=5e4, java=6e4))
    assert "java" == said.terms[0].cell.row.coordinates["provider"]


def test_runs_of_two_machines_are_not_summed(tmp_path: Path) -> None:
    """The line names what differs."""
    of = mix(tmp_path, HASH_TERM.format(rate=1, choice="sha-256"))
    runs = [replace(run(hashes({"sha-256": 7000.0})), fingerprint={"cpu": cpu}) for cpu in ("one", "other")]
    with pytest.raises(TollbarError, match=r"another machine.*cpu: one / other"):
        size(of, runs, TODAY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOGIN_TERM.replace("20 /s", "0 /s"), "above nought"),
        (LOGIN_TERM.replace("20 /s", "20"), "say the unit"),
        (LOGIN_TERM.replace("rate ", "rat "), "did you mean `rate`"),
        (LOGIN_TERM.replace('"form"', '"fromm"'), "did you mean `form`"),
        (LOGIN_TERM.replace("web-auth", "web-aut"), "did you mean `web-auth`"),
        (LOGIN_TERM.replace("embedded", "embeded"), "did you mean `embedded`"),
        (LOGIN_TERM.replace('op     = "sign-on"', ""), "known: request, sign-on"),
        (LOGIN_TERM + 'setting = { signature = "rs256" }', "`signature` means nothing there"),
        (LOGIN_TERM + 'setting = { store = "sql,file" }', "one value"),
        (LOGIN_TERM + 'resumed = "20 %"', "resumes nothing"),
        (HANDSHAKE_TERM.format(rate=1, resumed=120), "a share of one at most"),
        (HANDSHAKE_TERM.format(rate=1, resumed=20).replace("plaintext", "plain"), "did you mean `plaintext`"),
        (LOGIN_TERM + 'off = "something"', '{ choice = "anonymous" }'),
        (HANDSHAKE_TERM.format(rate=1, resumed=20).replace("plaintext", "tls-1.2"), '`off = { choice = "plaintext" }`'),
        (LOGIN_TERM.replace("20 /s", f"{'9' * 400} /s"), "0.000001 to 1,000,000,000 a second"),
        (LOGIN_TERM.replace("20 /s", "0.0000001 /s"), "0.000001 to 1,000,000,000 a second"),
        (LOGIN_TERM + "at-once = inf", "finite"),
        ('[mix]\nutilisation = "0 %"\n' + LOGIN_TERM, "a whole percentage of 1 to 90"),
        ('[mix]\nutilisation = "95 %"\n' + LOGIN_TERM, "a whole percentage of 1 to 90"),
        ('[mix]\nutilisation = "unpaced"\n' + LOGIN_TERM, "a mix has arrivals"),
        ("[mix]\nsurvive = 1\n" + LOGIN_TERM, "cores-each"),
        ("[mix]\nsurvive = -1\n" + LOGIN_TERM, "greater than or equal to 0"),
        ('[mix]\npolicy = ["asvs-levl-2"]\n' + LOGIN_TERM, "did you mean"),
        ("[term]", "no term"),
        (LOGIN_TERM + HANDSHAKE_TERM.format(rate=1, resumed=20).partition("off")[0], "shares the path"),
    ],
)
def test_a_mix_that_cannot_be_meant_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    """What, where, and the nearest right name."""
    with pytest.raises(TollbarError) as fault:
        mix(tmp_path, text)
    assert said in f"{fault.value} {fault.value.hint}"
    assert "\n" not in f"{fault.value}"


def test_terms_that_share_a_path_say_so(tmp_path: Path) -> None:
    """What a second family takes off is named, or that its requests are its own."""
    bare = HANDSHAKE_TERM.format(rate=1, resumed=20).partition("off")[0]
    for off in ('off = { choice = "plaintext" }', 'off = "nothing"'):
        assert 2 == len(mix(tmp_path, f"{LOGIN_TERM}{bare}{off}").terms)


def _answered(one: StudyRun, name: str, cost_ns: float) -> StudyRun:
    """The study under another name, its stretches at this cost."""
    requests = 1000
    load = LoadRecord(
        requests=requests, wall_ns=10**9, components={"web": ComponentRecord(cpu_ns=round(cost_ns * requests))}
    )
    rows = [replace(row, trials=tuple(replace(trial, load=load) for trial in row.trials)) for row in one.rows]
    return replace(one, rows=tuple(rows), study=replace(one.study, name=name))


def test_predicted_and_measured_stand_side_by_side(tmp_path: Path) -> None:
    """In rounds and in stretches; what no server performs is not run."""
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=80) + HASH_TERM.format(rate=1, choice="sha-256"))
    found = sized(of, handshakes(), hashes({"sha-256": 7000.0}))
    whole, off = to_ask(found)
    assert ("term-handshakes", "off-handshakes") == (whole.name, off.name)
    asked = {"op=connect", "bed=nginx", "resumption=ticket", "resumed=80%", "utilisation=60%", "client=apart"}
    assert asked <= {*whole.words}
    for one in (whole, off):
        assert studies.of_words("tls", (one.choice, *one.words), "op=connect").tables
    cells = {"full": HANDSHAKES["full"]}
    ran: Run = run(
        _answered(made("tls", cells, {"full": 150_000.0}), whole.name, 170_000.0),
        _answered(made("tls", cells, {"full": 40_000.0}), off.name, 60_000.0),
    )
    side = checked(found, (whole, off), ran)
    first, second = side.terms
    assert first.sides is not None
    assert [0.011, 0.011, 0.011] == pytest.approx([first.predicted.estimate, *(side.estimate for side in first.sides)])
    assert (None, True) == (second.sides, "no server" in (second.reason or ""))
    assert side.total is not None
    assert 0.011 == pytest.approx(side.total.predicted.estimate)
    assert "took × 1.00 of what is predicted: not told apart." in size_answer(found, side).headline
    assert "Predicted and measured" in [one.title for one in size_answer(found, side).listings]
    assert document(found, side).check is not None


def test_the_command_answers_in_every_layout(tollbar: Tollbar, tmp_path: Path) -> None:
    """A term that was not measured has status 1 and its question, which measures it; then there are cores."""
    (tmp_path / "mix.toml").write_text(HASH_TERM.format(rate=50_000, choice="sha-256"), "utf-8")
    asked = ("size", "mix.toml")
    done = tollbar(*asked)
    assert 1 == done.returncode, done.stderr
    assert "tollbar ask digest sha-256 op=hash" in done.stdout
    (question,) = json.loads(tollbar(*asked, "--json").stdout)["ask"]
    measured_ = tollbar(*shlex.split(question)[1:], "--for", "1s", "--json")
    assert 0 == measured_.returncode, measured_.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    done = tollbar(*asked, "--run", folder, "--json", "--page", "page.html")
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert 0 < found["cores"]["interval"][0] < found["cores"]["interval"][1]
    assert [] == found["ask"]
    assert "cores" in (tmp_path / "page.html").read_text("utf-8")
    assert "| hashes" in tollbar(*asked, "--run", folder, "--markdown").stdout
    assert "no term is performed by a server" in tollbar(*asked, "--run", folder, "--check").stderr


def test_costs_of_the_mix_s_load_come_first(tmp_path: Path) -> None:
    """Wherever they are; of a server that always had the next request they are taken too, and that is said."""
    of = mix(tmp_path, LOGIN_TERM)
    form: Mapping[str, Value] = {"choice": "form", "op": "sign-on", "bed": "embedded"}
    at: Mapping[str, Value] = {**form, "client": "apart", "utilisation": 60}
    busy = made("web-auth", {"form": {**form, "users": 8}}, {"form": 20e6})
    idle = made("web-auth", {"form": at}, {"form": 25e6})
    less = made("web-auth", {"form": {**at, "utilisation": 30}}, {"form": 30e6})
    for runs, cost_s, at_load in (((busy,), 0.020, False), ((busy, less, idle), 0.025, True)):
        found = sized(of, *runs)
        assert found.cores is not None
        assert 20 * cost_s / 0.6 == pytest.approx(found.cores.estimate)
        assert (at_load, at_load) == (found.terms[0].is_at_load, document(found).terms[0].at_load)
        assert at_load != any("is woken for each" in note for note in size_answer(found).notes)
    found = sized(of, less)
    assert not found.terms[0].is_at_load
    (note,) = (note for note in size_answer(found).notes if "load" in note)
    assert (
        "By costs under another load than the mix's (that is `utilisation=60% client=apart` in a question):"
        " `logins` (30\u00a0% busy)." == note
    )
