"""HTML from plain values: everything that comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tollbar.families import Standing
from tollbar.report import palette, words


def text(value: object) -> str:
    """The value as text that is safe between tags and inside quoted attributes."""
    return html.escape(str(value), quote=True)


def tag(name: str, *inside: str, **attributes: str | None) -> str:
    """An element around markup that is safe already; `class_` becomes `class`, `aria_label` `aria-label`."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def marked(value: object) -> str:
    """The same, with what stands between backticks as code: families and studies write it so."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value))


def paragraph(sentence: str, **attributes: str | None) -> str:
    """A paragraph of plain text; nothing where there is no text."""
    return tag("p", marked(sentence), **attributes) if sentence else ""


def folded(summary: str, *inside: str, **attributes: str | None) -> str:
    """Something that unfolds on demand."""
    return tag("details", tag("summary", text(summary)), *inside, **attributes)


def bullets(items: Iterable[str]) -> str:
    """A list of plain texts; nothing where there is none."""
    written = "".join(tag("li", marked(item)) for item in items)
    return tag("ul", written) if written else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell: what is read, what it sorts by if that is a number, and a second, smaller line."""

    says: str
    sorts: float | None = None
    small: str | None = None
    mark: str | None = None
    """Safe markup that stands before the words."""

    def html(self, name: str, **attributes: str | None) -> str:
        """The cell as a `td` or a `th`."""
        sorts = None if self.sorts is None else f"{self.sorts:.6g}"
        small = tag("small", marked(self.small)) if self.small else ""
        says = tag("span", self.mark, text(self.says), class_="kept") if self.mark else text(self.says)
        return tag(name, says, small, data_sort=sorts, **attributes)


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column."""

    title: str
    number: bool = False


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, sortable: bool = False) -> str:
    """A table with a caption, in a scroller of its own, whose first column names its rows."""
    heads = "".join(
        tag(
            "th",
            tag("button", text(c.title), type="button") if sortable else text(c.title),
            scope="col",
            class_="number" if c.number else None,
        )
        for c in columns
    )
    body = "".join(
        tag(
            "tr",
            *(
                cell.html("th", scope="row") if i == 0 else cell.html("td", class_="number" if column.number else None)
                for i, (column, cell) in enumerate(zip(columns, row, strict=True))
            ),
        )
        for row in rows
    )
    written = tag(
        "table",
        tag("caption", text(caption)),
        tag("thead", tag("tr", heads)),
        tag("tbody", body),
        class_="sortable" if sortable else None,
    )
    # A scroller takes the keyboard's focus, so that it scrolls without a mouse.
    return tag("div", written, class_="scroller", tabindex="0", role="region", aria_label=caption)


_SHAPES = {
    "circle": '<circle cx="6" cy="6" r="4.5"/>',
    "square": '<path d="M2 2h8v8H2z"/>',
    "triangle-up": '<path d="M6 1.5 10.8 10H1.2z"/>',
    "diamond": '<path d="M6 .5 10 6 6 11.5 2 6z"/>',
    "cross": '<path d="M4.2 1h3.6v3.2H11v3.6H7.8V11H4.2V7.8H1V4.2h3.2z"/>',
    "triangle-right": '<path d="M2 1.2 10.5 6 2 10.8z"/>',
}


def symbol(standing: Standing) -> str:
    """The mark that the charts draw for this standing, filled, eleven pixels wide."""
    drawn = _SHAPES[palette.SHAPES[standing]]
    return f'<svg class="symbol {standing}" viewBox="0 0 12 12" aria-hidden="true">{drawn}</svg>'


def legend(standings: Iterable[Standing], *extras: tuple[str, str]) -> str:
    """What the shapes of a chart mean; `extras` are pairs of a class of the stylesheet and its words."""
    present = set(standings)
    items = [tag("li", symbol(s), text(words.standing_words(s))) for s in words.STANDINGS if s in present] + [
        tag("li", tag("span", class_=f"key {name}", aria_hidden="true"), text(says)) for name, says in extras
    ]
    return tag("ul", *items, class_="legend", aria_label="Legend")


def line_legend(lines: Iterable[tuple[int, str]], *extras: tuple[str, str]) -> str:
    """What the lines of a chart mean: pairs of a line's number and its words."""
    items = [tag("li", _swatch(number), text(says)) for number, says in lines] + [
        tag("li", tag("span", class_=f"key {name}", aria_hidden="true"), text(says)) for name, says in extras
    ]
    return tag("ul", *items, class_="legend", aria_label="Legend")


def _swatch(number: int) -> str:
    colour, dash = palette.line_colour(number), palette.line_dash(number)
    line = f'<path d="M0 6h36" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash[0]} {dash[1]}"/>'
    mark = f'<g transform="translate(12 0)" fill="{colour}">{_SHAPES[palette.line_shape(number)]}</g>'
    return f'<svg class="swatch" viewBox="0 0 36 12" aria-hidden="true">{line}{mark}</svg>'


def part_legend(parts: Iterable[tuple[str, str]]) -> str:
    """What the parts of a stacked bar mean: pairs of a colour and its words."""
    items = (
        tag("li", f'<svg class="part" viewBox="0 0 14 14" aria-hidden="true">{_filled(colour)}</svg>', text(says))
        for colour, says in parts
    )
    return tag("ul", *items, class_="legend", aria_label="Legend")


def _filled(colour: str) -> str:
    return f'<rect width="14" height="14" fill="{colour}"/>'


def pairs(caption: str, values: Mapping[str, Any]) -> str:
    """A table of names and values, nested names joined by a space."""
    rows = [(Cell(name), Cell(value)) for name, value in _flat(values)]
    return table(caption, (Column("what"), Column("value")), rows) if rows else ""


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        words_of_name = f"{prefix}{name}".replace("_", " ").replace("-", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{words_of_name} ")
        elif isinstance(value, list | tuple):
            yield words_of_name, ", ".join(str(v) for v in value) or "none"
        elif value is None:
            yield words_of_name, "not known"
        else:
            yield words_of_name, {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def script_json(value: object) -> str:
    """JSON that may stand in a script element, whatever texts it holds."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # The line separators are text in JSON and line ends in older JavaScript.
    for character in "<>&\u2028\u2029":
        written = written.replace(character, f"\\u{ord(character):04x}")
    return written
