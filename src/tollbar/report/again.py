"""Reproduction: the commands that repeat a run or use it, by their purpose."""

from __future__ import annotations

import shlex

from tollbar.core.files import pasted
from tollbar.report.blocks import (
    Block,
    Commands,
    Paragraph,
)
from tollbar.results import Run

# Commands that measure and take a seed. `upgrade` is excluded: it downloads and loads the packages that it names.
REPEATABLE = ("run", "ask", "choose")
RECORDED = "The run records the first command. Studies, libraries and roles that a command names may start programs."


def again(run: Run) -> tuple[Block, ...]:
    seed = f"The seed of the random order was {run.seed}."
    found = commands(run)
    recorded = [Paragraph(RECORDED, "note")] if _same_run(run) in found.values() else []
    return Paragraph(seed, "note"), *recorded, Commands(found)


def commands(run: Run) -> dict[str, str]:
    """Return the commands that repeat the run or use it, by their purpose."""
    parts = run.directory.parts
    # A report may be published, and must not reveal where a home directory is.
    path = pasted("/".join(parts[-2:]) if run.directory.is_absolute() else run.directory)
    found = {
        "The same run, the same order": _same_run(run),
        "Judge the same trials again": f"tollbar judge {path}",
        "Compare with another run": f"tollbar compare {path} OTHER-RUN",
        "The numbers as a file": f"tollbar export {path} --format csv",
    }
    # A pasted control character would end the quotes around it.
    return {what: command for what, command in found.items() if command and command.isprintable()}


def _same_run(run: Run) -> str:
    """Return the command that the run records, with its seed; empty for a foreign command, because readers paste it."""
    command = list(run.command) or ["tollbar", "run"]
    if command[:1] != ["tollbar"] or command[1:2] not in [[name] for name in REPEATABLE]:
        return ""
    if not any(part == "--seed" or part.startswith("--seed=") for part in command):
        command += ["--seed", str(run.seed)]
    return shlex.join(command)
