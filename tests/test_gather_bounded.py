"""Judgements of other senders: reading one costs little time and memory, up to the limit of the file."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from gather_lab import made_in, reason_of, why_not_current
from tollbar import analysis, results
from tollbar.analysis.kept import FILE, MOST_VALUES, NUMBERS, read_kept, state
from tollbar.core.wire import read_json
from tollbar.decide import compare
from tollbar.decide.compare import found_runs
from tollbar.decide.compare.found_runs import ReadRun, Unusable
from tollbar.results.directory import MOST_BYTES

MIB = 1 << 20
# The goal is 5 s and 300 MiB for any file, in CPU time, so that a busy machine changes nothing.
MOST_CPU_S, MOST_MORE = 5, 300 * MIB
LARGEST = MOST_BYTES[FILE]
HEAD, TAIL = f'{{"numbers":{NUMBERS},"of":"x","began_s":null,"studies":[', "]}"
CELLS, PARAMETERS = '{"name":"a","cells":[', '{"name":"a","parameters":{'


def _items(item: str, size: int) -> str:
    return ",".join([item] * (size // (len(item) + 1)))


def _keys(value: str, size: int) -> str:
    return ",".join(f'"{number:07x}":{value}' for number in range(size // (len(value) + 11)))


HOSTILE: dict[str, Callable[[int], str]] = {
    "no document": lambda size: f"[{_items('[]', size)}]",
    "empty cells": lambda size: f"{HEAD}{CELLS}{_items('[]', size)}]}}{TAIL}",
    "cells that are tables": lambda size: f"{HEAD}{CELLS}{_items('{}', size)}]}}{TAIL}",
    "cells without coordinates": lambda size: f"{HEAD}{CELLS}{_items('[{},{},{},{}]', size)}]}}{TAIL}",
    "empty studies": lambda size: HEAD + _items("{}", size) + TAIL,
    "unknown keys": lambda size: f"{{{_keys('0', size)}}}",
    "unknown keys of a study": lambda size: f"{HEAD}{{{_keys('0', size)}}}{TAIL}",
    "wrong parameters": lambda size: f"{HEAD}{PARAMETERS}{_keys('0', size)}}}}}{TAIL}",
    "wrong values of parameters": lambda size: f'{HEAD}{PARAMETERS}"a":{{{_keys("[]", size)}}}}}}}{TAIL}',
    "wrong coordinates": lambda size: f'{HEAD}{CELLS}[{{{_keys("[]", size)}}},"p",null,"acceptable"]]}}{TAIL}',
    "one key again and again": lambda size: "{" + _items('"of":"x"', size) + "}",
    "a long text": lambda size: json.dumps({"of": "x" * (size - 20)}),
    "a wide text": lambda size: '{"of":"' + "\N{GRINNING FACE}" * (size // 4 - 20) + '"}',
    "half characters": lambda size: '{"of":"' + "\\ud83d" * (size // 6 - 20) + '"}',
    "long numbers": lambda size: f"[{_items('9' * 4200, size)}]",
    "numbers without end": lambda size: f"[{_items('1e999', size)}]",
    "deep lists": lambda size: "[" * size,
    "deep tables": lambda size: '{"a":' * (size // 5),
}


def _within_limits(run: Path) -> None:
    """Read a run within limits, in a process of its own.

    Exits with 1 if the run was refused because memory ran out.
    """
    (pages, *_) = Path("/proc/self/statm").read_text().split()
    most = int(pages) * resource.getpagesize() + MOST_MORE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    found = found_runs._read(run)
    raise SystemExit(1 if "MemoryError" in getattr(found, "reason", "MemoryError") else 0)


@pytest.mark.share(12)
@pytest.mark.parametrize("size", [LARGEST - 100, LARGEST // 8], ids=["largest", "an eighth"])
@pytest.mark.parametrize("what", HOSTILE)
def test_any_judgement_is_read_within_limits(own_run: Path, what: str, size: int) -> None:
    """The run is refused; the eighth judgement has about the largest accepted number of values."""
    content = HOSTILE[what](size)
    (own_run / FILE).write_text(content, "utf-8")
    assert LARGEST >= (own_run / FILE).stat().st_size
    process = get_context("fork").Process(target=_within_limits, args=(own_run,))
    process.start()
    process.join()
    assert 0 == process.exitcode
    assert "`tollbar report " in reason_of(own_run)


FACTS: dict[str, Callable[[int], object]] = {
    "a list of lists": lambda size: {"cpu": "x", "fact": [[]] * (size // 4)},
    "lists": lambda size: {"cpu": "x"} | {f"{number:06x}": [] for number in range(size // 14)},
    "flags that are none": lambda size: {"cpu": "x", "flags": [[]] * (size // 4)},
}


@pytest.mark.parametrize("what", FACTS)
def test_any_fingerprint_is_refused_within_limits(own_run: Path, what: str) -> None:
    path = own_run / "run.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"fingerprint": FACTS[what](MOST_BYTES[path.name] - 10_000)}))
    kept = json.loads((own_run / FILE).read_text())
    (own_run / FILE).write_text(json.dumps(kept | {"of": state(own_run)}))
    process = get_context("fork").Process(target=_within_limits, args=(own_run,))
    process.start()
    process.join()
    assert 0 == process.exitcode
    assert any(words in reason_of(own_run) for words in ("not as Tollbar writes it", "keys; the limit is"))


def _repeated(run: Path, cells: int, tolls: int, **changed: str) -> None:
    """Write a judgement of many tolls that name few cells, each with these coordinates."""
    kept = json.loads((run / FILE).read_text())
    (study,) = kept["studies"]
    (at, *more), toll = study["cells"][0], study["tolls"][0]
    study["cells"] = [[at | changed | {"bytes": number}, *more] for number in range(cells)]
    study["tolls"] = [[number % cells, number // cells % cells, *toll[2:]] for number in range(tolls)]
    (run / FILE).write_text(json.dumps(kept))


def test_few_cells_in_all_pairs_are_not_believed(own_run: Path) -> None:
    _repeated(own_run, 110, 12_000)
    assert not why_not_current(own_run)
    _repeated(own_run, 110, 12_001)
    assert "`judged.json` is too large to compare" in why_not_current(own_run)
    assert "tollbar report" not in reason_of(own_run)


@pytest.mark.parametrize("where", ["coordinates", "parameters", "study"])
def test_a_long_text_that_many_tolls_name_is_not_believed(own_run: Path, where: str) -> None:
    """Otherwise a file of 5 MB would become a document of 1.2 GB."""
    _repeated(own_run, 2, 5000, **({"op": "x" * 3000} if where == "coordinates" else {}))
    kept = json.loads((own_run / FILE).read_text())
    (study,) = kept["studies"]
    if where == "parameters":
        choice = study["cells"][0][0]["choice"]
        study["parameters"][choice] = {f"p{number}": number for number in range(300)}
    elif where == "study":
        study["name"] = "x" * 3000
    (own_run / FILE).write_text(json.dumps(kept))
    assert "`judged.json` is too large to compare" in why_not_current(own_run)
    study["tolls"] = study["tolls"][:500]
    (own_run / FILE).write_text(json.dumps(kept))
    assert not why_not_current(own_run)


def test_another_run_is_answered_next_to_it(own_run: Path, tmp_path: Path) -> None:
    shutil.copytree(own_run, tmp_path / "runs" / "other")
    other = made_in(tmp_path / "good")
    (own_run / FILE).write_text(HOSTILE["empty cells"](LARGEST - 100))
    found = compare.read([own_run, other])
    assert [Unusable, ReadRun] == [type(one) for one in found]


def test_too_large_a_judgement_is_one_line(own_run: Path) -> None:
    (own_run / FILE).write_text(" " * (LARGEST + 1))
    (found,) = compare.read([own_run])
    assert "`judged.json` has 8.0 MiB; the limit is " in getattr(found, "reason", "")


def test_a_larger_judgement_than_is_read_is_not_kept(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run would be refused from then on."""
    (own_run / FILE).unlink(missing_ok=True)
    monkeypatch.setitem(MOST_BYTES, FILE, 100)
    compare.keep(analysis.judge(results.read(own_run)))
    assert not (own_run / FILE).exists()
    monkeypatch.undo()
    compare.keep(analysis.judge(results.read(own_run)))
    assert (own_run / FILE).exists()


def test_a_run_of_many_cells_keeps_its_judgement(own_run: Path) -> None:
    """Ten thousand cells and tolls, in ten studies, are well within the limits."""
    kept = read_kept(own_run)
    (study,) = kept.studies
    many = study.model_copy(update={"cells": study.cells * 63, "tolls": study.tolls * 80})
    assert (1008, 960) == (len(many.cells), len(many.tolls))
    text = kept.model_copy(update={"studies": [many] * 10}).model_dump_json()
    (own_run / FILE).write_text(text)
    again = read_kept(own_run)
    assert 10 * [many] == again.studies
    assert LARGEST > 2 * len(text)
    assert read_json(text, MOST_VALUES * 2 // 3)


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}}', "[1, 2, 3]"])
def test_what_is_no_document_within_limits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra|at most 2 values"):
        read_json(text, 2)
    assert [1, 2] == read_json("[1, 2]", 2)


def test_a_deep_document_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json("[" * 100_000, MOST_VALUES)
