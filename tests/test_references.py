"""References and null choices: measured for comparison only, so that no chart, table or answer calls one an option."""

from __future__ import annotations

import pytest

from fabricated import fabricated, shipped
from report_example import judgement
from test_sentences import asked
from tollbar.catalog import families
from tollbar.catalog.families import Standing, is_answer
from tollbar.report.blocks import standing_keys
from tollbar.report.chart import toll_charts
from tollbar.report.sections.answer import whole_answer
from tollbar.report.sections.columns import MainTable
from tollbar.report.standings import IN_GOOD_STANDING
from tollbar.report.terminal import show_judgement
from tollbar.report.ways import places

QUESTION = "tls-client system-trust no-trust none op=first"
COSTS_NS = (1.61e6, 32.5e6, 7.34e6)


def test_an_empty_trust_store_is_a_reference() -> None:
    family = families.family("tls-client")
    assert Standing.REFERENCE is family.choices["no-trust"].standing
    assert not is_answer(family, "no-trust")
    assert not is_answer(family, family.null.name)
    assert is_answer(family, "system-trust")


def test_a_reference_has_no_standing_of_an_option_in_chart_table_and_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    study = asked(QUESTION, COSTS_NS)
    (chart,) = toll_charts(study)
    assert {"no trust store": Standing.REFERENCE, "the system's trust store": Standing.ACCEPTABLE}.items() <= {
        dot.label: dot.standing
        for dot in chart.data.dots  # type: ignore[attr-defined]
    }.items()
    assert {"acceptable", "reference only", "no protection"} == {key.says for key in standing_keys(study.rows)}
    cells = {row.choice: MainTable(study).columns()[2][1](row).says for row in study.rows}
    assert {"none": "no protection", "no-trust": "reference only", "system-trust": "acceptable"} == cells
    show_judgement(judgement([study]))
    (line,) = [one for one in capsys.readouterr().out.splitlines() if one.startswith(" no-trust ")]
    assert line.rstrip().endswith("reference only")


def test_a_reference_is_no_part_of_an_answer() -> None:
    found = whole_answer(asked(QUESTION, COSTS_NS))
    assert found.says[0].startswith("the system's trust store: ")
    assert "no trust store" not in " ".join((*found.says, *found.choices.steps, *(b.name for b in found.choices.bars)))


def test_a_reference_alone_is_reported_against_the_baseline() -> None:
    says = whole_answer(asked("tls-client no-trust none op=first", COSTS_NS[::2])).says[0]
    assert says.startswith("Against ")
    assert "no trust store" in says


@pytest.mark.share(10)
@pytest.mark.parametrize("name", shipped())
def test_no_row_without_a_standing_of_an_option_has_one(name: str) -> None:
    study = fabricated(name)
    family = study.about.family
    others = {one.name for one in family.choices.values() if not one.standing.is_of_option}
    for row in study.rows:
        if row.choice in others:
            assert row.standing not in IN_GOOD_STANDING
    assert not [way.row.choice for place in places(study) for way in place.ways if way.row.choice in others]
