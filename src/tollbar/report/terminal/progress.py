"""Progress of a measurement, and the remaining time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn
from rich.progress import Progress as Bar
from rich.table import Column

from tollbar.core import units
from tollbar.core.errors import one_line
from tollbar.report.terminal.streams import say, stderr

T = TypeVar("T")

# Frequent enough that a log shows activity, rare enough that it stays readable.
SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Live bar on a terminal; a line now and then elsewhere."""

    def __init__(self) -> None:
        self._bar = Bar(
            # Users name studies, and the names must not be read as markup.
            TextColumn("  {task.description:<10}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            # Text without room is cut; the report has it as a row later.
            TextColumn(
                "{task.fields[now]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            console=stderr(),
            transient=True,
            expand=True,
        )
        self._live = stderr().is_terminal
        self._rows: dict[str, TaskID] = {}
        self._last_line = time.monotonic()

    def __enter__(self) -> Progress:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def several(self, rows: Mapping[str, tuple[int, int | None, str]]) -> None:
        """Show the progress of several concurrent tasks: steps done, their number if known, and the current one."""
        now = time.monotonic()
        if self._live:
            for name in {*self._rows} - {*rows}:
                self._bar.remove_task(self._rows.pop(name))
            for name, (done, total, said) in rows.items():
                if name not in self._rows:
                    self._rows[name] = self._bar.add_task(one_line(name), total=None, left="", now="")
                self._bar.update(self._rows[name], completed=done, total=total, now=" ".join(said.split()))
        elif rows and now - self._last_line >= SECONDS_BETWEEN_LINES:
            for name, (done, total, said) in rows.items():
                say(f"  {name}: {f'{done} of {total} batches' if total else ' '.join(said.split()) or 'starting'}")
            self._last_line = now

    def follow(self, what: str, steps: Iterable[T], total: int, names: Sequence[str] = ()) -> Iterator[T]:
        """Yield the steps, and show how many are done, the remaining time, and the current one.

        `names` are those of the steps, in their order.
        """
        what, names = one_line(what), [one_line(name) for name in names]
        started = last_line = time.monotonic()
        task: TaskID | None = (
            self._bar.add_task(what, total=total, left="", now=names[0] if names else "") if self._live else None
        )
        for count, step in enumerate(steps, 1):
            yield step
            now = time.monotonic()
            left = f"{units.show_seconds((now - started) / count * (total - count))} left"
            name = names[count] if count < len(names) else ""
            if task is not None:
                self._bar.update(task, completed=count, left=left, now=name)
            elif now - last_line >= SECONDS_BETWEEN_LINES:
                say(f"  {what}: {count} of {total}, {left}{f', now {name}' if name else ''}")
                last_line = now
        if task is not None:
            self._bar.remove_task(task)
