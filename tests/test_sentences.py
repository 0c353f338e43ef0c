"""Sentences that answer a question: names, operations per second of a core, and limiting settings."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import pytest

from builders import lognormal, measured, row_of, run, study_run
from report_example import judgement
from tollbar import study
from tollbar.analysis import StudyJudgement, judge
from tollbar.catalog import families
from tollbar.catalog.families import Family, Standing, at_defaults
from tollbar.lab import tls
from tollbar.report.sections.against import MOST_SENTENCES, first_sentences, rates, sentences, weakness
from tollbar.report.terminal import show_judgement
from tollbar.study import Coordinates, plan

BLOCKS = 8
# Factor of `measured`'s ratios.
BASE_NS = 100


def asked(line: str, costs_ns: tuple[float, ...] = ()) -> StudyJudgement:
    """Return the judgement of a question whose cells have these costs in the plan's order.

    Without costs, no cell was measured.
    """
    family, *words = line.split()
    one = study.read(study.ASKED, study.of_words(family, words).text(BLOCKS), where=study.ASKED)
    cells = plan.make([one], seed=0).studies[0].cells
    noise, source = lognormal(0.001), random.Random(5)
    rows = []
    for number, cell in enumerate(cells):
        cost_ns = costs_ns[number] if costs_ns else None
        series = measured([cost_ns / BASE_NS] * 2, noise, source, blocks=BLOCKS) if cost_ns else [[], []]
        rows.append(row_of(cell, series[0], series[1], None if cost_ns else "not here"))
    (judged,) = judge(run(study_run(rows, (BLOCKS,), one))).studies
    return judged


def test_numbers_have_their_names() -> None:
    found = asked("password-hash argon2id memory=46MiB,64MiB passes=1 lanes=1", (45e6, 64e6))
    often, compared = sentences(found)
    assert compared.startswith("memory 64 MiB costs 1.42 times the CPU of memory 46 MiB [")
    assert " for Argon2id, with passes 1, lanes 1, on rustcrypto" in compared
    assert compared.endswith(": costs 42 % more; both recommended.")
    assert (
        "A second of one core is enough for 22.2 × argon2id with memory 46 MiB"
        " and 15.6 × argon2id with memory 64 MiB." == often
    )


def test_parameters_below_the_least_are_called_what_they_are() -> None:
    (*_, compared) = sentences(asked("password-hash bcrypt cost=10,8", (64e6, 16e6)))
    assert compared.startswith("cost 8 costs 0.25 of the CPU of cost 10 [")
    assert compared.endswith(": saves 75 %; disallowed, where cost 10 is deprecated.")


def test_a_baseline_is_named_with_what_it_alone_has() -> None:
    """Choices without the baseline's parameters are compared with it, so the sentence names them."""
    found = sentences(asked("password-hash argon2id bcrypt memory=19MiB,46MiB cost=10", (50e6, 25e6, 50e6)))
    assert any(said.startswith("bcrypt costs 2.00 times the CPU of argon2id with memory 19 MiB [") for said in found)


RATES = {
    "the most first, nothing done left out": (
        "password-hash none bcrypt-10 argon2id-owasp-19m",
        (1.0, 50e6, 25e6),
        "A second of one core is enough for 40.0 × argon2id-owasp-19m and 20.0 × bcrypt-10.",
    ),
    "by the library where these differ": (
        "key-exchange x25519 op=client provider=aws-lc,rustcrypto",
        (50e3, 100e3),
        "A second of one core is enough for 20,000 × x25519 with ",
    ),
    "sizes have a column": ("digest md5 sha-1", (1e3, 1e3), None),
    "several operations have tables": ("key-exchange x25519", (1.0, 50e3, 1.0, 50e3), None),
    "nothing measured": ("password-hash bcrypt-10 bcrypt-12", (), None),
}


@pytest.mark.parametrize("what", RATES)
def test_how_often_a_core_can_do_it(what: str) -> None:
    """Computed as a second of CPU time over the cost; omitted if tables show it better."""
    line, costs, words = RATES[what]
    said = rates(asked(line, costs))
    assert said is None if words is None else (said or "").startswith(words)


# A question, the setting that lowers the standing of all of it, and the alternatives.
WEAKNESS = {
    "web-auth anonymous session-cookie jwt transport=clear": (
        "Transport clear is disallowed (NIST, SP 800-63B-4 section 3.1.1.2); ask with `transport=tls`."
    ),
    "web-auth anonymous session-cookie jwt": None,
    "web-auth anonymous session-cookie jwt transport=clear,tls": None,
    "tls plaintext tls-1.2 certificate=rsa-1024": "`certificate=rsa-2048`",
    "password-hash salted-sha-1 salted-sha-256": None,
}


@pytest.mark.parametrize("line", WEAKNESS)
def test_a_setting_that_keeps_all_down_is_named(line: str) -> None:
    expected, said = WEAKNESS[line], weakness(asked(line))
    assert said is None if expected is None else expected in (said or "")


def every_cell(family: Family, server: str, choice: str) -> Iterator[Coordinates]:
    """Yield each combination of values with a standing, other settings at defaults, if the combination exists."""
    judged = {
        name: setting.values
        for name, setting in family.settings.items()
        if setting.values and any(one.standing for one in setting.about.values()) and name != "client-certificate"
    }
    for values in product(*judged.values()):
        said = {"choice": choice, "server": server, "op": "request", **dict(zip(judged, values, strict=True))}
        cell = at_defaults(family, said)
        if not family.why_unsupported(cell):
            yield cell


@pytest.mark.parametrize(
    ("name", "server"), [("web-auth", "embedded"), ("web-auth", "nginx"), ("web-auth", "httpd"), ("tls", "nginx")]
)
def test_no_advice_leads_to_what_cannot_be_had_or_stands_no_better(name: str, server: str) -> None:
    family = families.family(name)
    judged, advised = asked(f"{name} {family.null.name} *"), 0
    row = judged.rows[0]
    for choice in family.choices.values():
        cells = {tuple(cell.items()): cell for cell in every_cell(family, server, choice.name)}
        for cell in cells.values() if choice.standing is not Standing.NULL else ():
            standing = family.standing_of(cell)
            one = replace(row, coordinates=cell, standing=standing)
            said = weakness(replace(judged, study=replace(judged.study, rows=(one,)))) or ""
            for key, value in re.findall(r"`([a-z-]+)=([^`]+)`", said):
                instead = at_defaults(family, {**cell, key: value})
                assert instead[key] == value
                assert family.why_unsupported(instead) is None, (cell, said)
                assert family.standing_of(instead).is_above(standing), (cell, said)
                if name == "tls":
                    tls.Settings.read({n: v for n, v in instead.items() if n not in ("server", "op")})
                advised += 1
    assert advised


@pytest.mark.parametrize(
    ("server", "choice", "instead"),
    [
        ("nginx", "basic", {"store": "file", "password-hash": "bcrypt"}),
        ("httpd", "basic", {"store": "sql", "password-hash": "bcrypt"}),
        ("httpd", "form", {"store": "sql", "password-hash": "bcrypt"}),
        ("httpd", "digest", {"digest-algorithm": "md5"}),
        ("nginx", "kerberos", {"runs": "auth-request"}),
        ("embedded", "basic", {"store": "sql", "password-hash": "argon2id"}),
    ],
)
def test_a_default_is_what_the_server_has(server: str, choice: str, instead: Mapping[str, str]) -> None:
    family = families.family("web-auth")
    cell = at_defaults(family, {"choice": choice, "server": server, "op": "request"})
    assert {**cell, **instead, "transport": "tls"} == cell
    assert family.why_unsupported(cell) is None
    refused = family.why_unsupported({**cell, "password-hash": "argon2id"}) if "password-hash" in cell else None
    assert (
        server == "embedded" or "password-hash" not in cell or str(refused).endswith("ask with `password-hash=bcrypt`")
    )


def test_the_first_sentences_leave_the_rest_to_the_table() -> None:
    found = asked("digest *", tuple(1e3 + number for number in range(40)))
    comparisons = [row for row in found.rows if row.key != row.against]
    assert len(comparisons) > MOST_SENTENCES
    assert len(sentences(found)) == len(comparisons)
    more = len(comparisons) - MOST_SENTENCES
    assert f"{more} more comparisons in the table above." == first_sentences(found)[-1]
    assert Standing.NULL in {row.standing for row in found.rows}


def test_a_baseline_of_worse_standing_is_not_called_equal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_judgement(judgement([asked("password-hash bcrypt-12 argon2id-owasp-46m", (250e6, 50e6))]))
    text = capsys.readouterr().out
    assert "all recommended" not in text
    assert {"deprecated", "recommended"} <= set(text.split())
    show_judgement(judgement([asked("password-hash argon2id-owasp-19m argon2id-owasp-46m", (25e6, 50e6))]))
    assert "all recommended" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("costs_ns", "expected"),
    [
        (
            (20e3, 22e3, 17e3, 12.1e3),
            "credential cached costs less than credential verified each time from a hit share of 20 % on [",
        ),
        (
            (9e3, 22e3, 17e3, 12.1e3),
            "credential cached costs more than credential verified each time at any hit share that was measured",
        ),
        (
            (25e3, 22e3, 17e3, 12.1e3),
            "credential cached costs less than credential verified each time at every hit share that was measured",
        ),
        (
            (20e3, 22e3, 23e3, 24e3),
            "credential cached costs more than credential verified each time at any hit share that was measured",
        ),
    ],
)
def test_from_which_share_on_a_cache_pays(costs_ns: tuple[float, ...], expected: str) -> None:
    found = sentences(asked("web-auth jwt transport=tls verified=each-time,cached hit-share=0,0.5,0.99", costs_ns))
    assert [said for said in found if said.lower().startswith(expected)], found
