"""Sizing a mix: sums of rates times costs, refusals, and checks by a load client."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import study_run
from conftest import Tollbar
from size_lab import (
    BLOCKS,
    COSTS,
    HANDSHAKE_TERM,
    HASH_TERM,
    LOGIN_TERM,
    handshakes,
    hashes,
    made,
    mix,
    sized,
)
from tollbar.analysis import Verdict
from tollbar.analysis.decisions import Terms
from tollbar.analysis.ledger import Ledger
from tollbar.catalog import families
from tollbar.catalog.families import Value
from tollbar.catalog.policies import Ruling
from tollbar.core.errors import TollbarError
from tollbar.core.intervals import Interval, Moments, student, total
from tollbar.decide.size.document import document
from tollbar.decide.size.words import size_answer
from tollbar.report.numbers import NOISY
from tollbar.results import Row


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 10), st.floats(2, 60)), min_size=1, max_size=5))
def test_variances_of_what_is_independent_add(parts: list[tuple[float, float, float]]) -> None:
    """A sum is no surer than its least sure part, and no wider than all widths together."""
    intervals = [
        Interval(middle, middle - half, middle + half, 0.95, 9, freedom=freedom) for middle, half, freedom in parts
    ]
    found = total(intervals)
    assert sum(one.estimate for one in intervals) == pytest.approx(found.estimate)
    widest, all_of_them = max(half for _, half, _ in parts), sum(half for _, half, _ in parts)
    # The sum's degrees of freedom are between those of its least sure part and those of all.
    assert min(one.freedom for one in intervals) - 0.1 <= found.freedom <= sum(one.freedom for one in intervals) + 0.1
    if len(parts) == 1:
        assert (intervals[0].low, intervals[0].high) == pytest.approx((found.low, found.high))
    assert found.high - found.estimate <= all_of_them * 1.5
    if len({freedom for *_, freedom in parts}) == 1:
        assert found.high - found.estimate <= all_of_them * (1 + 1e-9)
    assert found.high - found.estimate >= widest * 0.3
    unsure = Interval(1.0, -inf, inf, 0.95, 2)
    assert not total([*intervals, unsure]).is_bounded


def test_sums_without_anything_left_have_no_ratio() -> None:
    (one,) = hashes({"sha-256": 7000.0}).rows
    ledger = Ledger([one], Terms(0.03, 1))
    assert ledger.ratio_of_sums([one], [0.0], [1.0]) is None


def test_sums_of_independent_estimates_cover_the_truth() -> None:
    """Two unequal means of normal draws."""
    source = random.Random(5)
    missed = 0
    for _ in range(600):
        parts = []
        for sigma, n in ((1.0, 5), (3.0, 9)):
            draws = [source.gauss(10.0, sigma) for _ in range(n)]
            mean = sum(draws) / n
            error = (sum((one - mean) ** 2 for one in draws) / (n - 1) / n) ** 0.5
            half = student(n - 1.0, 0.95) * error
            parts.append(Interval(mean, mean - half, mean + half, 0.95, n, freedom=n - 1.0))
        found = total(parts)
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
    """A mixture of two cells less a null in one study, and a cell in another."""
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
    assert "breaks" in words["MD5"]
    assert "cannot tell" in words["SHA3-256"] or "costs the same" in words["SHA3-256"]
    refused = next(cells[1].small for cells in table.rows if cells[1].says == "MD5")
    assert refused is not None
    assert "asvs" in refused
    mixture = sized(mix(tmp_path, HANDSHAKE_TERM.format(rate=1000, resumed=50)), handshakes())
    (rsa,) = mixture.terms[0].swaps
    assert ("certificate", "rsa-2048") == (rsa.name, rsa.value)
    saved = -1000 * (0.5 * 300_000 + 0.5 * 1000) * 1e-9 / 0.6
    assert saved == pytest.approx(rsa.saved.estimate, rel=1e-6)


def test_swaps_of_choices_with_settings_of_their_own(tmp_path: Path) -> None:
    costs = {"session-cookie": 10_000.0, "sha-256": 11_000.0, "bcrypt": 60e6, "hmac": 12_000.0}
    at = {"op": "request", "server": "embedded", "users": 8}
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
    (rsa,) = sized(mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=resumed)), handshakes()).terms[0].swaps
    assert ("certificate", "rsa-2048", "none") == (rsa.name, rsa.value, rsa.row.coordinates["resumption"])
    each = COSTS["resumed"] - COSTS["rsa resumed"] if resumed else COSTS["full"] - COSTS["rsa"]
    assert 100 * each * 1e-9 / 0.6 == pytest.approx(rsa.saved.estimate)


def test_a_term_that_comes_to_nothing_is_refused(tmp_path: Path) -> None:
    of = mix(tmp_path, HANDSHAKE_TERM.format(rate=100, resumed=100))
    with pytest.raises(TollbarError, match="must be greater than 0") as fault:
        sized(of, handshakes({**COSTS, "bare": 110_000.0}))
    assert "term.handshakes" in str(fault.value)
    near = sized(of, handshakes({**COSTS, "bare": 99_000.0}, seed=1, noise=0.05))
    assert near.terms[0].cores.low <= 0 < near.terms[0].cores.estimate
    (warning,) = size_answer(near).warnings
    assert "The interval of `handshakes` reaches zero or below; measure longer with `--for`" == warning
    assert not size_answer(sized(of, handshakes())).warnings


def test_which_moments_costs_are_of_is_said(tmp_path: Path) -> None:
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
    for ran, words in ((quiet, "quiet"), (replace(quiet, rows=tuple(rows)), "noisy")):
        found = sized(of, ran)
        assert f"on the server's side, {words}, measured in" in size_answer(found).how[0]
        told = document(found)
        assert told.cores is not None
        assert [words == "noisy"] * 2 == [told.cores.noisy, told.terms[0].cores.noisy]
        (listing,) = size_answer(found).listings
        assert (words == "noisy") == (f"{NOISY}." in listing.notes)


def test_shares_are_of_the_same_moments(tmp_path: Path) -> None:
    terms = "".join(
        HASH_TERM.format(rate=1000, choice=one).replace("hashes", f"of-{number}")
        for number, one in enumerate(("sha-256", "sha-512"))
    )

    def is_quiet(one: Row, block: int) -> bool:
        return (block < BLOCKS // 2) == (one.choice == "sha-256")

    both = hashes({"sha-256": 7000.0, "sha-512": 14_000.0})
    rows = [
        replace(
            one,
            trials=tuple(
                trial
                if is_quiet(one, trial.block)
                else replace(trial, chunks=tuple(replace(chunk, probes_ns=None) for chunk in trial.chunks))
                for trial in one.trials
            ),
        )
        for one in both.rows
    ]
    found = sized(mix(tmp_path, terms), replace(both, rows=tuple(rows)))
    assert found.cores is not None
    assert [Moments.ALL, Moments.QUIET] == [found.cores.moments, found.terms[0].cores.moments]
    shares = [found.share(one) for one in found.terms]
    assert [1 / 3, 2 / 3] == pytest.approx(shares, rel=0.01)
    # The same holds if the parts are of two studies, one of which was never quiet.
    apart = [replace(hashes({"sha-256": 7000.0}), study=replace(both.study, name="one"))]
    busy = [
        replace(
            one,
            trials=tuple(replace(t, chunks=tuple(replace(c, probes_ns=None) for c in t.chunks)) for t in one.trials),
        )
        for one in hashes({"sha-512": 14_000.0}).rows
    ]
    apart.append(replace(hashes({"sha-512": 14_000.0}), rows=tuple(busy)))
    two = sized(mix(tmp_path, terms), *apart)
    assert 1.0 == pytest.approx(sum(two.share(one) or 0.0 for one in two.terms))


def test_what_no_policy_judges_meets_none(tmp_path: Path) -> None:
    term, ran = HASH_TERM.format(rate=1000, choice="md5"), hashes({"md5": 4000.0, "sha-256": 8000.0})
    for head, silent in (("", False), ('[mix]\npolicy = ["owasp-password-storage"]\n', True)):
        found = sized(mix(tmp_path, head + term), ran)
        (told,) = document(found).terms
        assert ["cannot say", "cannot say"] == [told.ruling, told.swaps[0].ruling]
        said = [note for note in size_answer(found).notes if "no rule on the sized choices" in note]
        assert silent == bool(said)
    broken = document(sized(mix(tmp_path, '[mix]\npolicy = ["asvs-level-2"]\n' + term), ran)).terms[0]
    assert ("breaks", "meets") == (broken.ruling, broken.swaps[0].ruling)


def test_a_cost_that_has_the_client_in_it_says_so(tmp_path: Path) -> None:
    """A database's client signs on by itself, so its cost includes that."""
    term = LOGIN_TERM.replace("web-auth", "database-sign-on").replace('"form"', '"scram-sha-256"')
    of = mix(tmp_path, term.replace("embedded", "postgresql"))
    at: Mapping[str, Value] = {"op": "sign-on", "server": "postgresql", "channel": "socket", "scram-iterations": 4096}
    one = made("database-sign-on", {"one": {"choice": "scram-sha-256", **at}}, {"one": 3e6})
    for cost, words in (("cpu", "side and for `logins` of the client, quiet"), ("server-cpu", "side, quiet")):
        ran = replace(one, study=replace(one.study, measure=replace(one.study.measure, cost=cost)))
        assert words in size_answer(sized(of, ran)).how[0]


def test_machines_are_counted_by_the_far_end(tmp_path: Path) -> None:
    """Spare machines are added on top; the number at the interval's near end is printed, too."""
    head = '[mix]\ncores-each = 2\nsurvive = 1\nutilisation = "50 %"\n'
    of = mix(tmp_path, head + HASH_TERM.format(rate=100_000, choice="sha-256"))
    found = sized(of, hashes({"sha-256": 20_000.0}, noise=0.01))
    assert found.cores is not None
    assert found.cores.low < 4.0 < found.cores.high
    assert (4, 3) == (found.machines(found.cores.high), found.machines(found.cores.low))
    assert "4 machines of 2 cores, 1 of which may fail; 3 at the interval's low end" in size_answer(found).headline
    few = study_run([replace(one, trials=one.trials[:2]) for one in hashes({"sha-256": 20_000.0}).rows], (2,))
    short = sized(of, replace(few, study=replace(few.study, family=families.family("digest"))))
    assert short.cores is not None
    assert short.machines(short.cores.high) is None
    assert "too few blocks" in size_answer(short).headline


def test_the_command_answers_in_every_layout(tollbar: Tollbar, tmp_path: Path) -> None:
    """An unmeasured term gives status 1 and a question that measures it; afterwards there are cores."""
    (tmp_path / "mix.toml").write_text(HASH_TERM.format(rate=50_000, choice="sha-256"), "utf-8")
    asked = ("size", "mix.toml", "--for", "0s")
    done = tollbar(*asked)
    assert 1 == done.returncode, done.stderr
    assert "tollbar ask digest sha-256 op=hash" in done.stdout
    (question,) = json.loads(tollbar(*asked, "--json").stdout)["ask"]
    measured_ = tollbar(*shlex.split(question)[1:], "--for", "1s", "--json")
    assert 0 == measured_.returncode, measured_.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    done = tollbar(*asked, "--run", folder, "--json", "--output", "page.html")
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert 0 < found["cores"]["interval"][0] < found["cores"]["interval"][1]
    assert [] == found["ask"]
    assert "cores" in (tmp_path / "page.html").read_text("utf-8")
    assert "| hashes" in tollbar(*asked, "--run", folder, "--markdown").stdout
    assert (
        "needs at least one term that a server performs"
        in tollbar("size", "mix.toml", "--run", folder, "--check").stderr
    )
    assert "`--check` needs time" in tollbar(*asked, "--run", folder, "--check").stderr
