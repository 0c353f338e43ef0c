"""Studies: refused content, and the errors' words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar import study
from tollbar.core import units
from tollbar.core.errors import TollbarError
from tollbar.study import plan
from tollbar.study.values import CHOSEN_ELSEWHERE

GOOD = """
question  = "?"
family    = "digest"
choices   = ["md5", "sha-1", "sha-256"]
providers = ["rustcrypto"]
baseline  = "sha-256"

[vary]
bytes = ["16 B", "4 KiB"]

[measure]
chunk  = "10 ms"
blocks = 6
"""

SERVED = """
question  = "?"
family    = "tls"
servers      = ["embedded"]
providers = ["aws-lc"]
choices   = ["plaintext", "tls-1.3"]
baseline  = "plaintext"

[vary]
op = ["connect"]
certificate = ["rsa-2048", "ecdsa-p256"]
key-exchange = ["x25519"]

[load]
users   = [1, 8]
request = { get = "/bytes/{bytes}" }
expect  = { bytes = "{bytes}" }

[measure]
blocks = 6
"""

# The same for a study of servers.
BAD_SERVED = {
    "unknown server": ('"embedded"', '"nginz"', "no such server: `nginz`", "`nginx`"),
    "no load": ("[load]", "[judge]", "`judge.users`: no such key", None),
    "unknown load key": ("users   =", "user =", "`load.user`: no such key", "`users`"),
    "no users": ("[1, 8]", "[0]", "at least one user", None),
    "open without rates": ("users   =", "shape = 'open'\nusers =", "`rates` or `utilisation` need", None),
    "rate of zero": ("users   = [1, 8]", "shape = 'open'\nrates = ['0 /s']\nusers = [8]", "or `unpaced`", None),
    "rates and a share": (
        "users   = [1, 8]",
        "shape = 'open'\nrates = ['5 /s']\nutilisation = ['60 %']\nusers = [8]",
        "`rates` or `utilisation`",
        None,
    ),
    "closed with rates and a share": (
        "users   = [1, 8]",
        "rates = ['5 /s']\nutilisation = ['60 %']\nusers = [8]",
        "`rates` or `utilisation` need",
        None,
    ),
    "a share of half a per cent": (
        "users   = [1, 8]",
        "shape = 'open'\nutilisation = ['0.5 %']\nusers = [8]",
        "a whole percentage",
        None,
    ),
    "rate without unit": ("users   = [1, 8]", "shape = 'open'\nrates = [200]\nusers = [8]", "needs a unit", None),
    "unknown coordinate": ("/bytes/{bytes}", "/bytes/{byte}", "no such coordinate: `byte`", "`bytes`"),
    "brace left open": ("/bytes/{bytes}", "/bytes/{bytes", "expected '}'", "a literal brace twice"),
    "a setting that means nothing": (
        "key-exchange = [",
        "dh-parameters = ['ffdhe2048']\nkey-exchange = [",
        "applies to no cell",
        "key-exchange",
    ),
    "cost of a runner": ("blocks = 6", "blocks = 6\ncost = 'cpu'", "`cpu` cannot be measured here", "`server-cpu`"),
    "url and servers": ("question ", "url = 'http://localhost/'\nquestion ", "cannot be combined", None),
}


CLAIM = "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\n"
TABLE = "[[table]]\ntitle = 'T'\nrows = 'choice'\ncolumns = 'bytes'\n[measure]"

# A change of a good study, words of the error, and words of its hint.
BAD = {
    "unknown key": ("[measure]", "[measure]\nround = 3", "`measure.round`: no such key", "`rounds`"),
    "a trial's length": ("[measure]", "[measure]\ntrial = '1 s'", "`measure.trial`: no such", "`measure.chunk`"),
    "a warm-up": ("[measure]", "[measure]\nwarm-up = '1 s'", "`measure.warm-up`: no such", "`measure.rounds`"),
    "unknown top key": ("question ", "speed = 1\nquestion ", "`speed`: no such key", None),
    "no unit": ('"10 ms"', "10", "`measure.chunk`: `10` needs a unit", None),
    "wrong unit": ('"10 ms"', '"10 KiB"', "`KiB` is not a unit here; for example", None),
    "no time": ('"10 ms"', '"0 ms"', "`measure.chunk`: `0.0` is out of range", None),
    "no rounds": ("blocks = 6", "blocks = 6\nrounds = 0", "at least one round", None),
    "no blocks": ("blocks = 6", "blocks = 0", "at least one block", None),
    "unknown family": ('"digest"', '"digset"', "no such family: `digset`", "`digest`"),
    "unknown choice": ('"md5"', '"md6"', "no such choice: `md6`", "`md5`"),
    "no choice": ('"md5", "sha-1", "sha-256"', '"non*"', "`choices` selects no choice", "no pattern selects `none`"),
    "no provider": ('"rustcrypto"', "", "`providers`", None),
    "unknown baseline": ('baseline  = "sha-256"', 'baseline  = "sha-257"', "no such choice: `sha-257`", "`sha-256`"),
    "unknown provider": ('"rustcrypto"', '"rustcrpto"', "no such provider: `rustcrpto`", "`rustcrypto`"),
    "unknown library": ('"rustcrypto"', '"libcrypto:nix"', "no such libcrypto: `nix`", None),
    "unknown setting": ("bytes =", "byte =", "the family digest has no setting `byte`", "`bytes`"),
    "size without unit": ('"16 B"', '"16"', "`vary.bytes`: `16` needs a unit", None),
    "half a byte": ('"16 B"', '"0.5 B"', "must be a whole number of bytes", None),
    "unknown value": ("[vary]", "[vary]\ncpu = ['slow']", "`slow` is not one of", None),
    "a setting of others": ("[vary]", "[vary]\nlookup = ['implicit']", "applies to no cell", "is python* or"),
    "a load without a server": (
        "[measure]", "[load]\nrequest = { get = '/' }\n[measure]", "a load needs a server", None
    ),
    "needs at least one value": ("[vary]", "[vary]\ncpu = []", "`vary.cpu` needs at least one value", None),
    **{
        f"varied {name}": ("[vary]", f"[vary]\n{name} = ['md5']", f"`{name}` cannot be in `[vary]`", f"`{key}`")
        for name, key in CHOSEN_ELSEWHERE.items()
    },
    "impossible operation": ("[vary]", "[vary]\nop = ['sign']", "no such op: `sign`", "hash"),
    "baseline not there": ('"md5", "sha-1", "sha-256"', '"md5", "sha-1"', "no cell has the coordinates", None),
    "nothing left": (
        "[measure]", "[[leave-out]]\nwhere = { choice = '*' }\nbecause = 'x'\n[measure]", "excludes every", None
    ),
    "leave-out without reason": (
        "[measure]", "[[leave-out]]\nwhere = { choice = 'md5' }\n[measure]", "because` is missing", None
    ),
    "claim without number": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\n[measure]",
        "a claim needs exactly one of",
        None,
    ),
    "claim of nothing": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\nratio = 0\n[measure]",
        "a `ratio` must be a number above zero",
        None,
    ),
    **{
        f"claim of {ratio}": (
            "[measure]",
            "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\n"
            f"ratio = {ratio}\n[measure]",
            "a `ratio` must be a number above zero, from 1e-9 to 1e9",
            None,
        )
        for ratio in ("1e-320", "1e308", "inf", "nan", "[1.0, 1e10]")
    },
    "claim about throughput": (
        "[measure]",
        CLAIM + "metric = 'throughput'\nratio = 1\n[measure]",
        "`claim.metric`: `throughput` needs a load",
        None,
    ),
    "a claim of a component that no server has": (
        "[measure]", CLAIM + "component = 'kernel'\nratio = 1\n[measure]", "no such component: `kernel`", "directory"
    ),
    "a claim of a component's response time": (
        "[measure]", CLAIM + "component = 'web'\nmetric = 'wall'\nratio = 1\n[measure]", "metric of a `component`", None
    ),
    "a range turned round": (
        "[measure]", CLAIM + "ratio = [3.7, 1.3]\n[measure]", "must have the smaller first", None
    ),
    "a range of three": ("[measure]", CLAIM + "ratio = [1, 2, 3]\n[measure]", "the least and the most", None),
    "a figure without a unit": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['10,750']\n[measure]",
        "`10,750` must be a figure with its unit",
        None,
    ),
    "a figure of two cells": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1 ms', '2 ms']\n[measure]",
        "`published` must be two figures",
        None,
    ),
    "untestable with a cell": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nuntestable = 'no'\nof = { choice = 'md5' }\n[measure]",
        "`untestable` needs a reason",
        None,
    ),
    "untestable with a ratio of cells": (
        "[measure]", CLAIM + "ratio = 1\nuntestable = 'no'\n[measure]", "`untestable` needs a reason", None
    ),
    "untestable without a reason": (
        "[measure]", "[[claim]]\nsays = 'x'\nuntestable = ' '\n[measure]", "`untestable` needs a reason", None
    ),
    "an endless ratio": ("[measure]", CLAIM + "ratio = [0.5, inf]\n[measure]", "a `ratio` must be a number", None),
    "a ratio that is no number": ("[measure]", CLAIM + "ratio = nan\n[measure]", "a `ratio` must be a number", None),
    "growth from a value to itself": (
        "[measure]",
        CLAIM + "order = 'more'\ngrows = { bytes = ['16 B', '16 B'] }\n[measure]",
        "`grows` needs two different values",
        None,
    ),
    "wider at one place": ("[measure]", CLAIM + "order = 'wider'\n[measure]", "needs `grows`", None),
    "a figure that grows": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1 ms']\n"
        "grows = { bytes = ['16 B', '1 KiB'] }\n[measure]",
        "`grows` needs an `order` or a `ratio`",
        None,
    ),
    "a figure with an exponent": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1.5e3 ms']\n[measure]",
        "must be a figure with its unit",
        None,
    ),
    "an error of no figure": (
        "[measure]", CLAIM + "ratio = 1\nerror = '1 ms'\n[measure]", "need a `published` figure", None
    ),
    "an error without its statistic": (
        "[measure]",
        CLAIM + "metric = 'wall'\nratio = 1\npublished = ['1 ms', '1 ms']\nerror = '1 ms'\n[measure]",
        '`statistic = "mean-error-deviation"`',
        None,
    ),
    "an error without a unit": (
        "question ",
        "statistic = 'mean-error-deviation'\n"
        "claim = [{ says = 'x', of.choice = 'md5', metric = 'wall', published = ['7 ms'], error = '1' }]\nquestion ",
        "`1` must be a figure with its unit",
        None,
    ),
    "claim about luck": (
        "[measure]",
        CLAIM + "metric = 'luck'\nratio = 1\n[measure]",
        "no such metric: `luck`",
        None,
    ),
    "unknown statistic": (
        "question ", "statistic = 'mean-error'\nquestion ", "no such value: `mean-error`", "mean-error-deviation"
    ),
    "a statistic of no claim": (
        "question ",
        "statistic = 'mean-error-deviation'\nquestion ",
        '`statistic` needs a `[[claim]]` with `metric = "wall"`',
        None,
    ),
    "table with an unknown key": (
        "[measure]", "[[table]]\ntitle = ''\nrow = 'choice'\n[measure]", "`table.0.row`: no such key", "`rows`"
    ),
    "table of an unknown coordinate": (
        "[measure]", TABLE.replace("'bytes'", "'byte'"), "the family digest has no setting `byte`", "`bytes`"
    ),
    "table over an unknown choice": (
        "[measure]", TABLE.replace("[measure]", "over.choice = 'md6'\n[measure]"), "no such choice: `md6`", "`md5`"
    ),
    "table with one coordinate on both sides": (
        "[measure]", TABLE.replace("'bytes'", "'choice'"), "must differ; both are `choice`", None
    ),
    "table without cells": (
        "[measure]",
        TABLE.replace("[measure]", "where = { op = 'hash', provider = 'aws-lc' }\n[measure]"),
        "bad: table “T”: the table selects no cells",
        "`table.where`",
    ),
    "table over nothing": (
        "[measure]", TABLE.replace("[measure]", "over = { bytes = '64 B' }\n[measure]"), "differs only in", None
    ),
    "table with two cells in a place": (
        "[measure]", TABLE.replace("'bytes'", "'provider'"), "have the same place", "set `bytes` in `table.where`"
    ),
    "not TOML": ("question", "question question", "not TOML", None),
}  # fmt: skip


def test_a_study_may_have_names_in_other_spellings(tmp_path: Path) -> None:
    said = {
        "family": "TLS", "choices": ["TLSv1.3"], "providers": ["AWS-LC"],
        "vary": {"certificate": ["P-256", "RSA2048"], "op": ["handshake"]},
    }  # fmt: skip
    text = "\n".join(
        [f"{key} = {json.dumps(value)}" for key, value in said.items() if key != "vary"]
        + ['question = "q"', "[vary]"]
        + [f"{key} = {json.dumps(value)}" for key, value in said["vary"].items()]  # type: ignore[attr-defined]
    )
    found = study.read("mine", text, where="mine")
    assert ("tls", ("tls-1.3",), ("aws-lc",)) == (found.family.name, found.choices, found.providers)
    assert {"certificate": ("ecdsa-p256", "rsa-2048"), "op": ("connect",)} == found.vary


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_study_is_refused_in_words(fault: str, tmp_path: Path) -> None:
    find, replacement, words, hint = BAD[fault]
    path = tmp_path / "bad.toml"
    assert find in GOOD
    path.write_text(GOOD.replace(find, replacement, 1))
    with pytest.raises(TollbarError) as caught:
        plan.make(study.load([str(path)]), seed=0)
    assert words in str(caught.value)
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize("fault", BAD_SERVED)
def test_a_bad_study_of_servers_is_refused_in_words(fault: str) -> None:
    find, replacement, words, hint = BAD_SERVED[fault]
    assert find in SERVED
    with pytest.raises(TollbarError) as caught:
        plan.make([study.read("bad", SERVED.replace(find, replacement, 1), where="bad.toml")], seed=0)
    assert words in str(caught.value)
    assert hint is None or hint in (caught.value.hint or "")


@given(st.integers(min_value=0, max_value=10**9), st.sampled_from(sorted(units.BYTES)))
def test_sizes_are_read_as_they_are_written(number: int, unit: str) -> None:
    assert number * units.BYTES[unit] == units.size_bytes(f"{number} {unit}") == units.size_bytes(f"{number}{unit}")


@given(st.text(max_size=30))
def test_no_text_makes_a_reader_fail_in_another_way(text: str) -> None:
    for reader in (units.seconds, units.size_bytes, units.share, units.per_second):
        try:
            assert reader(text) >= 0
        except ValueError as error:
            assert str(error)


@given(st.text(max_size=200))
def test_no_text_makes_the_study_reader_fail_in_another_way(text: str) -> None:
    try:
        study.read("any", text, where="any.toml")
    except TollbarError as error:
        assert "any.toml" in str(error)
