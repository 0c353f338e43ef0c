"""The Go runner's own tests, which count what no line of the contract says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import lacking
from patience import PATIENCE_S
from tollbar.catalog import runners

HERE = Path(__file__).parent / "go"


@pytest.mark.servers
def test_what_go_counts(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        lacking("no Go: apt-get install golang-go")
    sources = [*Path(str(runners.all_platforms()["go"].folder)).glob("*.go"), *HERE.glob("*.go")]
    for source in sources:
        shutil.copy(source, tmp_path)
    # As the runner is built: without a go.mod, and with nothing that the user's configuration says.
    ended = subprocess.run(
        ["go", "test", *(source.name for source in sources)],
        cwd=tmp_path,
        env={**os.environ, "GOENV": "off", "XDG_CONFIG_HOME": "/dev/null"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
