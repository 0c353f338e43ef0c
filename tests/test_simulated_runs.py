"""A run of a simulated machine is labelled: in its document, on its page and in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import fleet as made_up

import forked
from conftest import command
from tollbar import analysis, results
from tollbar.core.errors import TollbarError
from tollbar.report import html, json_forms
from tollbar.report.json_forms.whole_run import RunDocument

SAID = "Simulated node on the lab"
WEB = {"address": "10.77.0.2", "host": "web", "fingerprint": {"cpu": "A"}, "is_simulated": True}


def a_run(folder: Path, **more: object) -> Path:
    """Return a run whose machine has these additional facts."""
    return made_up.run_of(
        folder, made_up.fingerprint("A", **more), lambda at: 100.0 + 50.0 * (at["choice"] == "sha-512")
    )


@pytest.mark.parametrize(
    ("more", "nodes", "is_simulated"),
    [
        ({"simulated": "a simulated node on this machine"}, {}, True),
        ({}, {"web": WEB}, True),
        ({}, {"web": WEB | {"is_simulated": False}}, False),
        ({}, {}, False),
    ],
)
def test_the_document_says_whether_a_machine_is_made_up(
    tmp_path: Path, more: dict[str, str], nodes: dict[str, Any], is_simulated: bool
) -> None:
    run = a_run(tmp_path, **more)
    results.update_about(run, {"nodes": nodes})
    said = json_forms.of_run(analysis.judge(results.read(run)))
    assert is_simulated is said["simulated"]
    assert nodes == said["nodes"]
    RunDocument.model_validate(said)


@pytest.mark.parametrize("more", [{"simulated": "a simulated node on this machine"}, {}])
def test_page_and_terminal_say_it_above_the_answer(tmp_path: Path, more: dict[str, str]) -> None:
    run = a_run(tmp_path, **more)
    html.write(analysis.judge(results.read(run)), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert bool(more) == (SAID in page)
    assert not more or page.index(SAID) < page.index('class="answer"')
    for words in ((), ("--format", "markdown")):
        done = forked.run([command(), "judge", str(run), *words], tmp_path)
        assert 0 == done.returncode, done.stderr
        assert bool(more) == (SAID in " ".join(done.stdout.split()))


@pytest.mark.parametrize("nodes", [[], {"web": 1}, {"web": {"host": "web"}}, {"web": WEB | {"fingerprint": 1}}])
def test_machines_of_roles_that_no_run_says_are_one_line(tmp_path: Path, nodes: object) -> None:
    """In a run from another sender."""
    run = a_run(tmp_path)
    results.update_about(run, {"nodes": nodes})
    with pytest.raises(TollbarError, match="not as Tollbar writes it: `nodes"):
        results.read(run)
