"""The tables of docs/json.md, written from the forms: `python -m tollbar.decide.reference docs/json.md`."""

from __future__ import annotations

import sys
from pathlib import Path

from tollbar.decide.schema import DECISIONS
from tollbar.report.json_forms.form import Form
from tollbar.report.json_forms.study import StudyForm
from tollbar.report.json_forms.whole_run import RunDocument


def with_tables(reference: str) -> str:
    """Return the reference with its tables written again: of a run's document, of a study's part, of each decision's.

    Raises ValueError where it has fewer or more.
    """
    tables = [_table(RunDocument), _table(StudyForm), *map(_table, DECISIONS.values())]
    lines: list[str] = []
    for line in reference.split("\n"):
        if not line.startswith("|"):
            lines.append(line)
        elif not lines[-1].startswith("|"):
            if not tables:
                raise ValueError(f"no document has the table of {line}")
            lines += tables.pop(0)
    if tables:
        raise ValueError(f"no table for {tables[0][2]}")
    return "\n".join(lines)


def _table(form: type[Form]) -> list[str]:
    rows = [
        f"| `{field.alias or name}` | {' '.join((field.description or '').split())} |"
        for name, field in form.model_fields.items()
    ]
    return ["| key | holds |", "| --- | --- |", *rows]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_tables(path.read_text("utf-8")), "utf-8")
