"""The time of a short question: an operation that proves to be slow is reported before it is measured."""

from __future__ import annotations

import pytest

from tollbar.cli.measuring import say_estimate
from tollbar.lab.events import Estimated


@pytest.mark.parametrize(("about_s", "is_said"), [(2.0, False), (2.4, False), (2.6, True), (22.0, True)])
def test_a_time_beyond_the_requested_one_is_printed_without_verbose(
    about_s: float, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    details: list[str] = []
    say_estimate(Estimated(4, about_s), details.append, expected_s=2.0)
    printed = capsys.readouterr().err
    assert is_said == ("an interval needs at least 4 blocks: about" in printed)
    assert is_said != bool(details)


def test_without_a_requested_time_the_estimate_is_a_detail(capsys: pytest.CaptureFixture[str]) -> None:
    details: list[str] = []
    say_estimate(Estimated(4, 22.0), details.append)
    assert ["  measure    4 batches, about 22 s (estimated from the proofs)"] == details
    assert "" == capsys.readouterr().err
