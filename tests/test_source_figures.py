"""Figures that a source drew, drawn again from a run, and its set-up by role."""

from __future__ import annotations

from dataclasses import replace

import pytest
import vl_convert

from builders import row, study_run
from builders import study as study_of
from fabricated import fabricated, loaded
from report_example import judgement
from tollbar.analysis import judge_study
from tollbar.report.blocks import Chart, Figures, Section
from tollbar.report.chart import Dots
from tollbar.report.html.drawing import spec_of
from tollbar.report.page import page
from tollbar.report.sections.published.amounts import amounts_chart, nanoseconds
from tollbar.report.sections.published.drawn import Rates, Use, source_figures
from tollbar.report.sections.published.lines import Group, Line, of_source
from tollbar.report.sections.published.setup import advice_table, flow_table, setup_table
from tollbar.study import Amount, Claim, Figure, Series, sources

DRAWN = [
    "web-authentication/web-authentication",
    "services/services-digests",
    "services/services-ciphers",
    "services/services-signatures",
    "kerberos-and-ntlm/kerberos-and-ntlm",
    "kerberos-and-ntlm-users/kerberos-and-ntlm-users",
    "encrypted-columns/encrypted-columns-phases",
    "tls-certificates/tls-certificates",
]


def charts_of(section: Section) -> list[Chart]:
    return [chart for block in section.blocks if isinstance(block, Figures) for chart in block.charts]


@pytest.mark.parametrize("name", DRAWN)
def test_each_figure_of_a_source_is_drawn(name: str) -> None:
    judged = fabricated(name)
    found = list(source_figures(judged))
    assert [figure.title for figure in judged.about.figures] == [section.title for section in found]
    for section in found:
        for chart in charts_of(section):
            assert vl_convert.vegalite_to_vega({**spec_of(chart.data), "width": 400})["marks"]
            assert chart.description.startswith((section.title, "Requests a second", "Response time"))


def test_studies_with_figures_are_these() -> None:
    with_figures = {one.name for one in loaded("sources") if one.figures}
    assert {name.rpartition("/")[2] for name in DRAWN} == with_figures


def test_claims_alone_draw_no_figure() -> None:
    judged = fabricated("tls-certificates/tls-certificates")
    about = replace(judged.about, measure=replace(judged.about.measure, cells="claimed"))
    assert [] == list(source_figures(replace(judged, study=replace(judged.study, study=about))))
    assert [] == list(source_figures(None))


def test_bars_have_the_rate_of_one_core() -> None:
    rows = [row({"choice": name, "bytes": size}, [cost] * 6, repeats_ns=[cost] * 6) for name, size, cost in COSTS]
    figure = Figure("F", "rates", (Series("first", {"choice": "a"}), Series("second", {"choice": "b"})), "bytes")
    judged = judge_study(study_run(rows, (6,), replace(study_of(), figures=(figure,))))
    (section,) = source_figures(judged)
    (chart,) = charts_of(section)
    assert isinstance(chart.data, Rates)
    assert [1e9 / cost for _, _, cost in COSTS] == pytest.approx([one.of_a_core for one in chart.data.rates])
    assert {None} == {one.measured for one in chart.data.rates}
    assert "10,000\u00a0/s by one core's CPU time" in chart.description


def test_use_is_cpu_time_over_elapsed_time() -> None:
    figure = Figure("F", "use", (Series("first", {"choice": "a"}), Series("second", {"choice": "b"})))
    rows = [row({"choice": name}, [1e5] * 6, repeats_ns=[1e5] * 6) for name in "ab"]
    # The processor is idle for three quarters of the second one's time.
    slow = [
        replace(one, chunks=tuple(replace(chunk, wall_ns=4 * chunk.wall_ns) for chunk in one.chunks))
        for one in rows[1].trials
    ]
    rows[1] = replace(rows[1], trials=tuple(slow))
    (section,) = source_figures(judge_study(study_run(rows, (6,), replace(study_of(), figures=(figure,)))))
    (chart,) = charts_of(section)
    assert isinstance(chart.data, Use)
    for phase, expected in zip(chart.data.phases, (1.0, 0.25), strict=True):
        assert expected == pytest.approx(sum(phase.moments[0].busy.values()), rel=1e-3)
        assert " rows, " in phase.titles[1]
    quick, slow_one = chart.data.phases
    assert 4 == pytest.approx((slow_one.until_s - slow_one.since_s) / (quick.until_s - quick.since_s), rel=1e-3)
    assert quick.until_s == slow_one.since_s == quick.moments[-1].until_s


def test_names_of_phases_are_inside_the_drawing_and_above_its_bars() -> None:
    """A legend above the drawing covers nothing then."""
    judged = fabricated("encrypted-columns/encrypted-columns-phases")
    (section,) = source_figures(judged)
    (chart,) = charts_of(section)
    spec = spec_of(chart.data)
    tops = [layer["encoding"]["y"]["value"] for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    assert len(chart.data.phases) == len(set(tops)) == 4
    bars = spec["layer"][0]["encoding"]["y"]["scale"]["range"]
    assert 0 < min(tops) <= max(tops) < bars[1] < bars[0] == spec["height"]


def test_published_times_are_next_to_those_of_today() -> None:
    groups = of_source(sources()["rsa-apis"], judgement([fabricated("rsa-apis/rsa-apis")])).groups
    chart = amounts_chart(groups[0])
    assert chart is not None
    assert isinstance(chart.data, Dots)
    # Each way of the source's table once.
    assert [7.702e6, 7.760e6, 7.754e6, 7.760e6, 3.926e6, 2.127e6] == pytest.approx(
        [dot.then for dot in chart.data.dots]
    )


def test_a_mean_by_the_source_s_statistic_has_its_error() -> None:
    amounts = {name: Amount(float(n), "ms", f"{n} ms") for name, n in (("error", "0.0484"), ("deviation", "0.0429"))}
    said = Claim("x", {"choice": "a"}, metric="wall", published=(Amount(7.702, "ms", "7.702 ms"),), **amounts)
    rows = [row({"choice": "baseline"}, [100.0] * 6, repeats_ns=[100.0] * 6), row({"choice": "a"}, [2e6, 2.2e6] * 3)]
    judged = judge_study(study_run(rows, (6,), replace(study_of(claims=[said]), statistic="mean-error-deviation")))
    chart = amounts_chart(Group("study", (Line(judged.about, judged, judged.claims[0]),)))
    assert chart is not None
    assert isinstance(chart.data, Dots)
    (dot,) = chart.data.dots
    assert dot.value == pytest.approx(2.1e6, rel=1e-3)
    # Student's quantile for five degrees of freedom and 99.9 % is 6.869, and the deviation of six such blocks 0.1095.
    assert dot.high == pytest.approx(2.1e6 + 0.3072e6, rel=1e-3)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [("ms", 2e6), ("ms for 10,000", 200.0), ("MiB/s", None), ("bytes", None)],
)
def test_a_published_time_is_of_one_operation(unit: str, expected: float | None) -> None:
    assert expected == nanoseconds(Amount(2.0, unit, f"2 {unit}"))


def test_the_set_up_has_the_source_s_roles_and_those_of_the_run() -> None:
    source = sources()["security-design-choices"]
    judged = judgement([fabricated("web-authentication/web-authentication")])
    table = setup_table(source, judged.studies, judged.run)
    by_role = {cells[0].says: [cell.says for cell in cells[1:]] for cells in table.rows}
    assert ["client", "web", "application", "database", "directory"] == [*by_role]
    assert all("MHz" in said[0] for role, said in by_role.items() if role != "directory")
    assert "no role of its own here: with the web server" == by_role["application"][2]
    assert "httpd" in by_role["web"][2]


@pytest.mark.parametrize("name", sources())
def test_a_source_s_advice_is_by_environment(name: str) -> None:
    table = advice_table(sources()[name])
    assert len(table.rows) >= 2
    assert all(cell.says for cells in table.rows for cell in cells)
    assert len({cells[0].says for cells in table.rows}) == len(table.rows)
    source = sources()[name]
    titles = [column.title for column in table.columns]
    assert f"recommended by the source {f'in {source.year}' if source.year else 'then'}" == titles[1]
    assert "rating today, by Tollbar" == titles[3]


def test_advice_of_2014_is_rated_by_the_standings_of_today() -> None:
    table = advice_table(sources()["tls-certificates"])
    rated = {cells[0].says: cells[3].says for cells in table.rows}
    assert "RSA key exchange: disallowed; TLS 1.3 has no RSA key exchange" == rated["any client, however old"]
    assert "finite-field Diffie-Hellman: disallowed" == rated["Internet Explorer, every version"]


def test_a_sign_on_has_its_requests_and_their_number() -> None:
    judged = judgement([fabricated("web-authentication/web-authentication")])
    source = sources()["security-design-choices"]
    table = flow_table(source, judged.studies)
    assert {"Figure 2", "Figure 3", "–"} == {cells[1].says for cells in table.rows}
    counted = {cells[0].says: cells[3].says for cells in table.rows}
    assert "–" == counted.pop("Anonymous")
    assert all(counted.values())
    assert all("–" == cells[3].says for cells in flow_table(source, ()).rows)


def test_a_page_of_sources_has_their_figures_and_set_up() -> None:
    judged = judgement([fabricated(name) for name in ("tls-certificates/tls-certificates", "tls-today/tls-records")])
    (section,) = [one for one in page(judged).sections if one.name == "source-tls-certificates"]
    assert "Set-up by role" in [getattr(block, "caption", "") for block in section.blocks]
    inside = [block for one in section.blocks if isinstance(one, Section) for block in one.blocks]
    assert "Performance of different RSA key sizes" in [one.title for one in inside if isinstance(one, Section)]


COSTS = [("a", 64, 1e5), ("a", 128, 2e5), ("b", 64, 3e5), ("b", 128, 4e5)]
