"""A single study of a run, read and analysed alone, has the same numbers as among the others."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tollbar import analysis, results
from tollbar.analysis.probes import readings
from tollbar.analysis.so_far import so_far_of

RECORDED = Path(__file__).with_name("recorded") / "format-5.tar.gz"


def test_one_study_is_read_and_analysed_as_among_the_others(tmp_path: Path) -> None:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    whole = results.read(tmp_path / "run")
    probes_ns = sorted(readings(row for one in whole.studies for row in one.rows))
    assert whole.probes_ns is None
    for judged in analysis.judge(whole).studies:
        alone = results.read(whole.directory, name=judged.about.name)
        assert probes_ns == sorted(alone.probes_ns or ())
        assert [judged.rows] == [one.rows for one in alone.studies]
        widest = so_far_of(whole.directory, judged.about.name).widest
        halves = [toll.ratio.half_width for toll in judged.tolls if toll.ratio and toll.row.key != toll.against.key]
        assert widest is not None
        assert max(halves) == widest.half
