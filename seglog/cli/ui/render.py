"""How results look: tables and plain words for people, one JSON object a line for programs.

All that is said here is shown with its control characters escaped, so that nothing that a store holds can
steer the terminal that it is shown on; styles are given beside the text. rich is loaded when the first table
or progress bar is drawn.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
from typing_extensions import override

from seglog import text as words
from seglog.cli.ui.folded import folded, wrapped

if TYPE_CHECKING:
    from rich.progress import Progress, Task

Cell = str | int | None
"""What a table shows in a cell; ``-`` for None."""

Tell = Callable[[int, int], None]
"""Called with how much of a step is done and how much there is in all; 0 in all if that is unknown."""

PROGRESS_AFTER_S: Final = 1.0

_DELETE: Final = "\x7f"
_BETWEEN: Final = "  "
_LEAST_ROOM: Final = 20

count_text, messages_text = words.count_text, words.messages_text
printable, size_text = words.printable, words.size_text


@dataclass(frozen=True, slots=True)
class Styled:
    """Text in a colour, or bold."""

    text: str
    colour: str | None = None


def emit(fields: Mapping[str, object]) -> None:
    """Prints one JSON object as a line of its own; not flushed, unlike :func:`say`."""
    sys.stdout.write(json_text(fields) + "\n")


def emit_text(text: str) -> None:
    """Prints one JSON object that is text already, as :func:`json_text` makes it."""
    sys.stdout.write(text + "\n")


def json_text(fields: Mapping[str, object]) -> str:
    """Returns one JSON object, all in ASCII and without control characters."""
    return _without_delete(json.dumps(fields, separators=(",", ":")))


def spaced_json_text(fields: Mapping[str, object]) -> str:
    """Returns the same with a space after commas and colons."""
    return _without_delete(json.dumps(fields))


def _without_delete(text: str) -> str:
    return text.replace(_DELETE, "\\u007f") if _DELETE in text else text


def say(*parts: str | Styled, err: bool = False) -> None:
    """Prints a line for people, on stdout or stderr.

    Args:
        parts: What it is made of; nothing in them can end the line, or steer a terminal.
        err: Whether it goes to stderr.
    """
    click.echo("".join(_shown(part) for part in parts), err=err)


def line_text(text: str) -> str:
    """Returns a line with the newline at its end, for who prints many of them at once."""
    return printable(text) + "\n"


def facts(named: Mapping[str, str], *, is_folded: bool = False) -> None:
    """Prints names and values, one a line, in two columns.

    Args:
        named: The values by name.
        is_folded: Whether a value that a terminal has no room for goes on in further lines.
    """
    width = max(map(len, named))
    room = shutil.get_terminal_size().columns - width - len(_BETWEEN)
    for name, value in named.items():
        shown = printable(value)
        lines = wrapped(shown, max(room, _LEAST_ROOM)) if is_folded and sys.stdout.isatty() else [shown]
        for number, line in enumerate(lines):
            say(Styled(f"{'' if number else name:<{width}}"), f"{_BETWEEN}{line}")


def _shown(part: str | Styled) -> str:
    if isinstance(part, Styled):
        return click.style(printable(part.text), fg=part.colour, bold=True)
    return printable(part)


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[Cell]],
    *,
    numbers: Sequence[str] = (),
    is_whole: bool = False,
    is_folded: bool = False,
) -> None:
    """Prints a table without frames; on a terminal the last column gives way, in a pipe nothing is cut.

    Where a terminal has no room for the heading of the last column, each row is a block, a line for a cell.
    So it is where there is no room for all of a last column that has to be whole.
    rich's own table lets the first columns go where the last one is long, so only its measures are used.

    Args:
        columns: Headings.
        rows: Cells, as many as headings.
        numbers: The headings whose cells are set flush right.
        is_whole: Whether no cell of the last column may be cut; numbers never are.
        is_folded: Whether a row that a terminal has no room for goes on in further lines, so that none of its
            cells is cut.
    """
    from rich.cells import cell_len

    shown = [columns, *([_cell_text(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*shown, strict=True)]
    if is_folded and _is_too_wide(widths):
        whole = shutil.get_terminal_size().columns
        for number, lines in enumerate(folded(columns, shown[1:], numbers, whole)):
            for line in lines:
                say(line if number else Styled(line))
        return
    keeps_last = is_whole or columns[-1] in numbers
    if _is_too_wide(widths if keeps_last else [*widths[:-1], cell_len(columns[-1])]):
        _blocks(columns, shown[1:])
        return
    for row in shown:
        cells: list[str] = []
        for cell, column, width in zip(row, columns, widths, strict=True):
            room = " " * (width - cell_len(cell))
            cells.append(room + cell if column in numbers else cell + room)
        line = fitted(_BETWEEN.join(cells).rstrip())
        say(Styled(line) if row is columns else line)


def _is_too_wide(widths: Sequence[int]) -> bool:
    """Returns whether a terminal cannot show columns of some widths side by side; a pipe always can."""
    needed = sum(widths) + len(_BETWEEN) * (len(widths) - 1)
    return sys.stdout.isatty() and needed > shutil.get_terminal_size().columns


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    width = max(map(len, columns))
    for number, row in enumerate(rows):
        if number:
            say()
        for name, cell in zip(columns, row, strict=True):
            say(Styled(f"{name:<{width}}"), _BETWEEN, cell)


def _cell_text(cell: Cell) -> str:
    return "-" if cell is None else printable(str(cell))


class Listing:
    """Rows that are shown as they come, as lines of JSON, or at the end, as one table with nothing cut.

    Args:
        columns: Headings of the table.
        numbers: The headings whose cells are set flush right.
        none: What is said in place of a table without rows.
        as_json: Whether rows are lines of JSON.
    """

    def __init__(
        self, columns: Sequence[str], *, numbers: Sequence[str] = (), none: str, as_json: bool
    ) -> None:
        self._columns, self._numbers, self._none = columns, numbers, none
        self._as_json = as_json
        self._rows: list[Sequence[Cell]] = []

    def add(self, fields: Mapping[str, object], *cells: Cell) -> None:
        """Shows one row.

        Args:
            fields: The row as JSON.
            cells: The row in the table.
        """
        if self._as_json:
            emit(fields)
        else:
            self._rows.append(cells)

    def end(self) -> bool:
        """Prints the table, or that there is nothing; returns whether there was a table."""
        if self._rows:
            table(self._columns, self._rows, numbers=self._numbers, is_folded=True)
        elif not self._as_json:
            say(self._none)
        return bool(self._rows)


def fitted(line: str) -> str:
    """Returns a line that ends at the right border if stdout is a terminal."""
    if not sys.stdout.isatty():
        return line
    from rich.cells import cell_len, set_cell_size

    width = shutil.get_terminal_size().columns
    return line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"


@contextmanager
def progress(step: str, *, unit: str = "bytes") -> Iterator[Tell]:
    """Shows rate and time left of a step that lasts, if a person may be watching stderr.

    Args:
        step: What is being done, such as ``reading the log``.
        unit: What is counted.

    Yields:
        What the step calls with bytes done and bytes in all, as often as it likes.
    """
    if not sys.stderr.isatty():
        yield _tell_nobody
        return
    begun_s = time.monotonic()
    shown: list[Progress] = []

    def tell(done: int, total: int) -> None:
        if not shown:
            if time.monotonic() - begun_s < PROGRESS_AFTER_S:
                return
            shown.append(_open_progress(step, unit))
        shown[0].update(shown[0].task_ids[0], completed=done, total=total or None)

    try:
        yield tell
    finally:
        if shown:
            shown[0].stop()


def rate_text(count: int, seconds: float) -> str:
    """Returns ``62,500 messages/s``."""
    return f"{count / max(seconds, 1e-6):,.0f} messages/s"


def time_text(timestamp_ms: int) -> str:
    """Returns a time stamp in local time with milliseconds; the bare number where no calendar reaches."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{timestamp_ms % 1000:03d}"


def _tell_nobody(_done: int, _total: int) -> None:
    pass


def _open_progress(step: str, unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.text import Text

    class CountColumn(TextColumn):
        """How much is done, of how much where that is known, and how much a second."""

        @override
        def render(self, task: Task) -> Text:
            of_total = "" if task.total is None else f" of {task.total:,.0f}"
            return Text(f"{task.completed:,.0f}{of_total} {unit}, {task.speed or 0:,.0f}/s")

    is_bytes = unit == "bytes"
    amount = (DownloadColumn(binary_units=True), TransferSpeedColumn()) if is_bytes else (CountColumn(""),)
    shown = Progress(
        "{task.description}",
        BarColumn(bar_width=30),
        *amount,
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    shown.add_task(step, total=None)
    shown.start()
    return shown
