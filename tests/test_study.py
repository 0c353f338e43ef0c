"""Studies: what is refused and in what words, what is planned, and that every shipped one can be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollbar import beds, libraries, plan, study, units
from tollbar.errors import TollbarError
from tollbar.families import MadeOf, families
from tollbar.plan import heats
from tollbar.present.names import value_words
from tollbar.study.definition import CHOSEN_ELSEWHERE
from tollbar.workloads.request import _shape

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
beds      = ["embedded"]
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
    "unknown bed": ('"embedded"', '"nginz"', "no such bed: `nginz`", "`nginx`"),
    "no load": ("[load]", "[judge]", "`judge.users`: no such key", None),
    "unknown load key": ("users   =", "user =", "`load.user`: no such key", "`users`"),
    "no users": ("[1, 8]", "[0]", "whole numbers above zero", None),
    "open without rates": ("users   =", "shape = 'open'\nusers =", "an open load gives `rates`", None),
    "rate without unit": ("users   = [1, 8]", "shape = 'open'\nrates = [200]\nusers = [8]", "say the unit", None),
    "unknown coordinate": ("/bytes/{bytes}", "/bytes/{byte}", "no such coordinate: `byte`", "`bytes`"),
    "brace left open": ("/bytes/{bytes}", "/bytes/{bytes", "expected '}'", "doubled"),
    "a setting that means nothing": (
        "key-exchange = [",
        "dh-parameters = ['ffdhe2048']\nkey-exchange = [",
        "means nothing to any cell",
        "key-exchange",
    ),
    "cost of a runner": ("blocks = 6", "blocks = 6\ncost = 'cpu'", "`cpu` cannot be measured here", "`server-cpu`"),
    "url and beds": ("question ", "url = 'http://localhost/'\nquestion ", "not both", None),
}


CLAIM = "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\n"
TABLE = "[[table]]\ntitle = 'T'\nrows = 'choice'\ncolumns = 'bytes'\n[measure]"

# What is changed in a good study, the words that must be in the error, and those in its hint.
BAD = {
    "unknown key": ("[measure]", "[measure]\nround = 3", "`measure.round`: no such key", "`rounds`"),
    "a trial's length": ("[measure]", "[measure]\ntrial = '1 s'", "`measure.trial`: no such", "`measure.chunk`"),
    "a warm-up": ("[measure]", "[measure]\nwarm-up = '1 s'", "`measure.warm-up`: no such", "`measure.rounds`"),
    "unknown top key": ("question ", "speed = 1\nquestion ", "`speed`: no such key", None),
    "no unit": ('"10 ms"', "10", "`measure.chunk`: say the unit", None),
    "wrong unit": ('"10 ms"', '"10 KiB"', "`KiB` is not one of the units", None),
    "no time": ('"10 ms"', '"0 ms"', "`measure.chunk`: longer than nothing", None),
    "no rounds": ("blocks = 6", "blocks = 6\nrounds = 0", "at least one round", None),
    "no blocks": ("blocks = 6", "blocks = 0", "at least one block", None),
    "unknown family": ('"digest"', '"digests"', "no such family: `digests`", "`digest`"),
    "unknown choice": ('"md5"', '"md6"', "no such choice: `md6`", "`md5`"),
    "no choice": ('"md5", "sha-1", "sha-256"', '"non*"', "`choices`: none", "`none` is a choice only by its name"),
    "no provider": ('"rustcrypto"', "", "`providers`", None),
    "unknown baseline": ('baseline  = "sha-256"', 'baseline  = "sha-257"', "no such choice: `sha-257`", "`sha-256`"),
    "unknown provider": ('"rustcrypto"', '"rustcrpto"', "no such provider: `rustcrpto`", "`rustcrypto`"),
    "unknown library": ('"rustcrypto"', '"libcrypto:nix"', "no such libcrypto: `nix`", None),
    "unknown setting": ("bytes =", "byte =", "the family digest has no setting `byte`", "`bytes`"),
    "size without unit": ('"16 B"', '"16"', "`vary.bytes`: say the unit", None),
    "half a byte": ('"16 B"', '"0.5 B"', "not a whole number of bytes", None),
    "unknown value": ("[vary]", "[vary]\ncpu = ['slow']", "`slow` is not one of", None),
    "a setting of others": ("[vary]", "[vary]\nlookup = ['implicit']", "`vary.lookup` means nothing", "is python* or"),
    "a load without a server": (
        "[measure]", "[load]\nrequest = { get = '/' }\n[measure]", "a load needs a server", None
    ),
    "no value": ("[vary]", "[vary]\ncpu = []", "`vary.cpu`: no value", None),
    **{
        f"varied {name}": ("[vary]", f"[vary]\n{name} = ['md5']", f"`{name}` is not varied here", f"`{key}`")
        for name, key in CHOSEN_ELSEWHERE.items()
    },
    "impossible operation": ("[vary]", "[vary]\nop = ['sign']", "no such op: `sign`", "hash"),
    "baseline not there": ('"md5", "sha-1", "sha-256"', '"md5", "sha-1"', "no cell is the baseline", None),
    "nothing left": (
        "[measure]", "[[leave-out]]\nwhere = { choice = '*' }\nbecause = 'x'\n[measure]", "nothing to measure", None
    ),
    "leave-out without reason": (
        "[measure]", "[[leave-out]]\nwhere = { choice = 'md5' }\n[measure]", "because` is missing", None
    ),
    "claim without number": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\n[measure]",
        "a claim gives either",
        None,
    ),
    "claim of nothing": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\nover = { choice = 'sha-1' }\nratio = 0\n[measure]",
        "a `ratio` is a number above zero",
        None,
    ),
    "claim about throughput": (
        "[measure]",
        CLAIM + "metric = 'throughput'\nratio = 1\n[measure]",
        "`claim.metric`: `throughput` is what a load's users notice",
        None,
    ),
    "a claim of a component that no bed has": (
        "[measure]", CLAIM + "component = 'kernel'\nratio = 1\n[measure]", "no such component: `kernel`", "directory"
    ),
    "a claim of a component's response time": (
        "[measure]", CLAIM + "component = 'web'\nmetric = 'wall'\nratio = 1\n[measure]", "a `component` has", None
    ),
    "a range turned round": (
        "[measure]", CLAIM + "ratio = [3.7, 1.3]\n[measure]", "from the least to the most", None
    ),
    "a range of three": ("[measure]", CLAIM + "ratio = [1, 2, 3]\n[measure]", "the least and the most", None),
    "a figure without a unit": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['10,750']\n[measure]",
        "`10,750` is not a figure with its unit",
        None,
    ),
    "a figure of two cells": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1 ms', '2 ms']\n[measure]",
        "`published` is the figure of `of`",
        None,
    ),
    "untestable with a cell": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nuntestable = 'no'\nof = { choice = 'md5' }\n[measure]",
        "`untestable` is of no cell",
        None,
    ),
    "untestable with a ratio of cells": (
        "[measure]", CLAIM + "ratio = 1\nuntestable = 'no'\n[measure]", "`untestable` is of no cell", None
    ),
    "untestable without a reason": (
        "[measure]", "[[claim]]\nsays = 'x'\nuntestable = ' '\n[measure]", "and says why", None
    ),
    "an endless ratio": ("[measure]", CLAIM + "ratio = [0.5, inf]\n[measure]", "a `ratio` is a number above", None),
    "a ratio that is no number": ("[measure]", CLAIM + "ratio = nan\n[measure]", "a `ratio` is a number above", None),
    "growth from a value to itself": (
        "[measure]",
        CLAIM + "order = 'more'\ngrows = { bytes = ['16 B', '16 B'] }\n[measure]",
        "from one value to another",
        None,
    ),
    "wider at one place": ("[measure]", CLAIM + "order = 'wider'\n[measure]", 'what is "wider" `grows`', None),
    "a figure that grows": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1 ms']\n"
        "grows = { bytes = ['16 B', '1 KiB'] }\n[measure]",
        "what `grows` has an `order` or a `ratio`",
        None,
    ),
    "a figure with an exponent": (
        "[measure]",
        "[[claim]]\nsays = 'x'\nof = { choice = 'md5' }\npublished = ['1.5e3 ms']\n[measure]",
        "is not a figure with its unit",
        None,
    ),
    "an error of no figure": (
        "[measure]", CLAIM + "ratio = 1\nerror = '1 ms'\n[measure]", "stands beside a `published` figure", None
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
        "`1` is not a figure with its unit",
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
        "the `statistic` is of wall, and no `[[claim]]`",
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
        "[measure]", TABLE.replace("'bytes'", "'choice'"), "`choice` has the rows already", None
    ),
    "table without cells": (
        "[measure]",
        TABLE.replace("[measure]", "where = { op = 'hash', provider = 'aws-lc' }\n[measure]"),
        "bad: table “T”: no cell stands in it",
        "`where`",
    ),
    "table over nothing": (
        "[measure]", TABLE.replace("[measure]", "over = { bytes = '64 B' }\n[measure]"), "alike in all else", None
    ),
    "table with two cells in a place": (
        "[measure]", TABLE.replace("'bytes'", "'provider'"), "have one place in it", "`where` says which `bytes`"
    ),
    "not TOML": ("question", "question question", "not TOML", None),
}  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_study_is_refused_in_words(fault: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong with it, and the hint the nearest right thing."""
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
    """The error names what is wrong with the load, the bed or the cost."""
    find, replacement, words, hint = BAD_SERVED[fault]
    assert find in SERVED
    with pytest.raises(TollbarError) as caught:
        plan.make([study.read("bad", SERVED.replace(find, replacement, 1), where="bad.toml")], seed=0)
    assert words in str(caught.value)
    assert hint is None or hint in (caught.value.hint or "")


def test_a_study_of_servers_is_planned() -> None:
    """Each number of users is a cell of its own, held against the plaintext of as many."""
    (one,) = plan.make([study.read("good", SERVED, where="good.toml")], seed=0).studies
    assert {("plaintext", 1), ("plaintext", 8), ("tls-1.3", 1), ("tls-1.3", 8)} == {
        (cell.choice.name, cell.coordinates["users"]) for cell in one.cells
    }
    assert 6 == len(one.cells)
    users = {cell.key: cell.coordinates["users"] for cell in one.cells}
    assert all(cell.against and users[cell.against] == cell.coordinates["users"] for cell in one.cells)
    assert {("embedded", True)} == {(c.coordinates["bed"], (c.server or "").startswith("embedded ")) for c in one.cells}


AT_RATES = SERVED.replace("users   = [1, 8]", 'shape = "open"\nrates = ["0.5 /s", "0.2/s", "200 /s"]')


def test_a_rate_below_one_a_second_is_a_rate() -> None:
    """Half an arrival a second stays half: in the cell, its key, its words and what the load client is told."""
    (planned,) = plan.make([study.read("rates", AT_RATES, where="rates.toml")], seed=1).studies
    # Plaintext, and two certificates.
    assert {0.5: 3, 0.2: 3, 200: 3} == Counter(cell.coordinates["rate"] for cell in planned.cells)
    assert {'"rate":0.5', '"rate":0.2', '"rate":200'} == {
        re.findall('"rate":[^,}]*', cell.key)[0] for cell in planned.cells
    }
    assert {0.5, 0.2, 200.0} == {_shape(cell.load, cell.coordinates)["rate_hz"] for cell in planned.cells if cell.load}
    family = planned.study.family
    assert ["0.5\u00a0/s", "200\u00a0/s"] == [value_words(family, "rate", rate) for rate in (0.5, 200)]


def test_a_rate_is_named_as_a_number_with_or_without_a_fraction() -> None:
    """What is left out is found by its rate, however that was written; of users there is no half."""
    text = AT_RATES + '[[leave-out]]\nwhere = { rate = [0.5, 200.0] }\nbecause = "too slow, too fast"\n'
    (planned,) = plan.make([study.read("rates", text, where="rates.toml")], seed=1).studies
    assert {0.2} == {cell.coordinates["rate"] for cell in planned.cells}
    with pytest.raises(TollbarError, match="users are whole numbers here"):
        study.read("rates", text.replace("rate = [0.5, 200.0]", "users = 0.5"), where="rates.toml")


def test_a_provider_has_one_name_on_every_bed() -> None:
    """The library and the server in front of it are coordinates of their own, and each has its receipt."""
    text = SERVED.replace('["embedded"]', '["embedded", "nginx"]').replace('"aws-lc"', '"libcrypto", "aws-lc"')
    planned = plan.make([study.read("good", text, where="good.toml")], seed=0)
    (one,) = planned.studies
    places = {(cell.coordinates["bed"], cell.coordinates["provider"]) for cell in one.cells}
    assert {("embedded", "libcrypto"), ("embedded", "aws-lc"), ("nginx", "libcrypto")} == places
    named = {one.spec: one.name for one in libraries.resolve(["libcrypto", "aws-lc"])}
    assert named == {spec: receipt["name"] for spec, receipt in planned.receipts.items()}
    assert all(re.search(r"\d", name) for name in named.values())
    found = beds.find(beds.all_beds()["nginx"])
    name = f"nginx {found.version}" if isinstance(found, beds.Installed) else "nginx"
    assert {name} == {cell.server for cell in one.cells if cell.coordinates["bed"] == "nginx"}
    said = planned.servers["nginx"]
    assert (said.get("version") or "nginx") in name
    assert {"version", "program"} == set(said) or {"unavailable"} == set(said)


def test_a_baseline_may_stand_on_another_bed() -> None:
    """Cells are held against it where its bed has their provider; elsewhere they are held against nothing."""
    text = SERVED.replace('["embedded"]', '["embedded", "nginx"]').replace('"aws-lc"', '"libcrypto", "aws-lc"')
    text = text.replace('baseline  = "plaintext"', 'baseline  = { choice = "plaintext", bed = "nginx" }')
    (one,) = plan.make([study.read("good", text, where="good.toml")], seed=0).studies
    cells = {cell.key: cell for cell in one.cells}
    against = {
        (cell.coordinates["bed"], cell.provider.kind): cells[cell.against].coordinates["bed"] if cell.against else None
        for cell in one.cells
    }
    expected = {("nginx", "libcrypto"): "nginx", ("embedded", "libcrypto"): "nginx", ("embedded", "aws-lc"): None}
    assert expected == against


def test_the_least_that_a_study_says() -> None:
    """Question, family and choices are enough: the family's first of them is the baseline, on the system's library."""
    text = 'question = "?"\nfamily = "digest"\nchoices = ["sha-256", "md5"]\n'
    one = study.read("least", text, where="least.toml")
    assert ("md5", ("libcrypto",)) == (one.baseline["choice"], one.providers)
    assert (0.005, 10, 12) == (one.measure.chunk_s, one.measure.rounds, one.measure.blocks)
    (planned,) = plan.make([one], seed=0).studies
    assert {"md5"} == {cell.choice.name for cell in planned.cells if cell.is_baseline}


@pytest.mark.parametrize("words", ["libcrypto", "libcrypto:system", "libcrypto:*", "the name"])
def test_a_study_means_a_provider_by_its_spec_a_pattern_or_its_name(words: str) -> None:
    """Baseline and left-out cells alike; the system's library has a label that may be left out."""
    (system, _) = libraries.resolve(["libcrypto", "rustcrypto"])
    asked = words if words != "the name" else system.name
    text = GOOD.replace('"rustcrypto"', '"libcrypto", "rustcrypto"')
    text = text.replace('"sha-256"\n\n', f'{{ provider = "{asked}" }}\n\n', 1)
    left_out = f'[[leave-out]]\nwhere = {{ choice = "md5", provider = "{asked}" }}\nbecause = "asked"\n'
    (one,) = plan.make([study.read("meant", text + left_out, where="meant.toml")], seed=0).studies
    assert {"libcrypto"} == {cell.coordinates["provider"] for cell in one.cells if cell.is_baseline}
    assert {("md5", "libcrypto")} == {(at["choice"], at["provider"]) for at, _ in one.left_out}


@pytest.fixture
def broken_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A libcrypto that is found beside the system's and is none."""
    path = tmp_path / "libcrypto.so.3"
    path.write_text("no library")
    monkeypatch.setattr(libraries, "libcryptos", lambda: {"system": None, "broken": str(path)})
    libraries.open_provider.cache_clear()
    yield path
    libraries.open_provider.cache_clear()


LIBRARIES = GOOD.replace('"rustcrypto"', '"libcrypto:*"')


def test_a_pattern_passes_over_a_library_that_cannot_be_loaded(broken_library: Path) -> None:
    """What works is measured, and what does not is said with its reason."""
    planned = plan.make([study.read("all", LIBRARIES, where="all.toml")], seed=0)
    assert {"libcrypto"} == {cell.provider.spec for cell in planned.studies[0].cells}
    assert [str(broken_library)] == list(planned.broken)
    assert all(planned.broken.values())


@pytest.mark.parametrize(
    ("providers", "named"), [('"libcrypto:broken"', False), ('"libcrypto:*"', True), ('"libcrypto:bro*"', False)]
)
def test_a_library_that_was_asked_for_is_not_passed_over(broken_library: Path, providers: str, named: bool) -> None:
    """By its name, by the command, or as the only one that a pattern finds: then nothing starts."""
    one = study.read("one", LIBRARIES.replace('"libcrypto:*"', providers), where="one.toml")
    with pytest.raises(TollbarError, match=str(broken_library)):
        plan.make([one], seed=0, named_libraries=[str(broken_library)] if named else [])


def test_a_study_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A file that is not there, or not text, is said with its path."""
    with pytest.raises(TollbarError, match="cannot read the study"):
        study.load([str(tmp_path / "none.toml")])
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TollbarError, match="cannot read the study"):
        study.load([str(tmp_path / "binary.toml")])
    with pytest.raises(TollbarError, match="no such study: `digets`") as caught:
        study.load(["digets"])
    assert "did you mean `digests`?" == caught.value.hint


def test_a_good_study_is_planned(tmp_path: Path) -> None:
    """Every combination is a cell, each against the baseline of its own size, the baselines twice."""
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    (one,) = plan.make(study.load([str(path)]), seed=4).studies
    assert 6 == len(one.cells)
    baselines = {cell.key: cell.coordinates["bytes"] for cell in one.cells if cell.is_baseline}
    assert [16, 4096] == sorted(baselines.values())
    assert all(cell.against and baselines[cell.against] == cell.coordinates["bytes"] for cell in one.cells)


def test_a_block_visits_every_cell_in_heats_of_its_own(tmp_path: Path) -> None:
    """Each block has each cell once and each twin once, in other heats, which depend on the seed and nothing else."""
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    (one,) = plan.make(study.load([str(path)]), seed=4).studies

    def drawn(seed: int) -> list[tuple[frozenset[tuple[str, bool]], ...]]:
        return [
            tuple(frozenset((visit.cell.key, visit.twin) for visit in heat.visits) for heat in block)
            for block in heats.blocks(one, seed, 6)
        ]

    first = drawn(1)
    assert first == drawn(1)
    assert first != drawn(2)
    assert 1 < len(set(first))
    compared = {(cell.key, False) for cell in one.cells if not cell.is_baseline}
    twins = {(cell.key, True) for cell in one.cells if cell.is_baseline}
    for block in first:
        there = [visit for heat in block for visit in heat]
        assert sorted(compared | twins) == sorted(visit for visit in there if visit in compared | twins)
        # What is compared with a baseline is beside it, and so is its twin.
        against = {cell.key: (cell.against, False) for cell in one.cells}
        assert all(against[key] in heat for heat in block for key, _ in heat)


@pytest.mark.parametrize("name", study.shipped())
def test_every_shipped_study_can_be_planned(name: str) -> None:
    """Every study that comes with Tollbar reads, has cells and a baseline, and its claims name real cells."""
    for one in plan.make(study.load([name]), seed=0).studies:
        assert one.cells
        for claim in one.study.claims:
            for side in (claim.of, claim.over):
                wanted = [c for c in one.cells if all(c.coordinates.get(k) == v for k, v in side.items())]
                assert wanted, (claim.says, side)


def test_quick_asks_about_every_family() -> None:
    """`tollbar run` without arguments has a study for each family, but for what is made of others, for what needs a
    database's server, which few machines have, and for what is asked of two builds alone."""
    asked = {one.family.name for one in study.load(["quick"])}
    assert asked == {
        name
        for name, one in families().items()
        if not isinstance(one, MadeOf) and one.beds not in (("postgresql",), ("nginx",))
    }


@given(st.integers(min_value=0, max_value=10**9), st.sampled_from(sorted(units.BYTES)))
def test_sizes_are_read_as_they_are_written(number: int, unit: str) -> None:
    """A whole number and a unit give that many bytes, with or without a space."""
    assert number * units.BYTES[unit] == units.size_bytes(f"{number} {unit}") == units.size_bytes(f"{number}{unit}")


@given(st.text(max_size=30))
def test_no_text_makes_a_reader_fail_in_another_way(text: str) -> None:
    """Whatever stands there, a unit's reader gives a number or says what is wrong."""
    for reader in (units.seconds, units.size_bytes, units.share, units.per_second):
        try:
            assert reader(text) >= 0
        except ValueError as error:
            assert str(error)


@given(st.text(max_size=200))
def test_no_text_makes_the_study_reader_fail_in_another_way(text: str) -> None:
    """Whatever stands in a study's file, the reader gives a study or an error with the file's name."""
    try:
        study.read("any", text, where="any.toml")
    except TollbarError as error:
        assert "any.toml" in str(error)
