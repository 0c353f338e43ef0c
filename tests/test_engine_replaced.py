"""The engine is replaced or removed while a run needs it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.ground import trials_of

from patience import PATIENCE_S
from test_run import BATCH, batches_there, runs_in, wait_for
from tollbar.core.runner import programs

# The `tollbar` command with the engine in this folder.
WITH_ENGINE_IN = """
import sys, sysconfig
sysconfig.get_path = lambda name, folder=sys.argv.pop(1): folder
from tollbar.cli import main
main()
"""
# Ways in which the engine is replaced.
REPLACED: dict[str, Callable[[Path], object]] = {
    "Permission denied": lambda engine: engine.chmod(0),
    "No such file or directory": lambda engine: engine.unlink(),
    "Exec format error": lambda engine: _put_an_empty_one(engine),
}


def _put_an_empty_one(engine: Path) -> None:
    """Replace the engine in one step: between two the lab would find no engine at all."""
    empty = engine.with_suffix(".new")
    empty.touch(0o755)
    empty.replace(engine)


@pytest.mark.share(0)
@pytest.mark.parametrize("program", ["tollbar-engine", "tollbar-primitives"])
@pytest.mark.parametrize("why", REPLACED)
def test_a_run_whose_engine_is_replaced_can_go_on(short_study: Path, tmp_path: Path, why: str, program: str) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for one in programs():
        shutil.copy(one, folder)
    own = folder / program
    original = programs()[0].with_name(program)
    words = [sys.executable, "-c", WITH_ENGINE_IN, str(own.parent), "run"]
    begun = [*words, str(short_study), "--no-report", "--blocks", "40"]
    with subprocess.Popen(begun, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as lab:
        wait_for(lambda: batches_there(tmp_path / "runs"))
        REPLACED[why](own)
        _, talk = lab.communicate(timeout=PATIENCE_S)
    assert 2 == lab.returncode, talk
    assert f"cannot be started: {why}" in " ".join(talk.split())
    assert "--resume" in talk
    assert "Traceback" not in talk
    (run,) = runs_in(tmp_path / "runs")
    kept = trials_of(run)
    assert {"ok"} == {trial.outcome for trial in kept}
    own.unlink(missing_ok=True)
    shutil.copy(original, own)
    # The blocks are given again, because a resumed run would otherwise add some on a busy machine.
    resumed = [*words, "--resume", str(run), "--no-report", "--blocks", "40"]
    on = subprocess.run(resumed, capture_output=True, text=True, timeout=PATIENCE_S)
    assert 0 == on.returncode, on.stderr
    assert kept == trials_of(run)[: len(kept)]
    assert 40 * BATCH == len(trials_of(run))
