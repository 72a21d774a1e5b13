"""Prints results: tables and lines for people, one JSON object a line for programs.

Control characters in printed text are escaped, so data from a store cannot control the terminal; styles are
passed separately from the text. rich is loaded when the first table or progress bar is drawn.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click
from typing_extensions import override

from seglog import text as words
from seglog.cli.ui.folded import folded, wrapped

if TYPE_CHECKING:
    from rich.progress import Progress, Task

Cell = str | int | None
"""The value of a cell of a table; None is shown as ``-``."""

Tell = Callable[[int, int], None]
"""Called with the amount done and the total amount of a step; the total is 0 if it is unknown."""

PROGRESS_AFTER_S: Final = 1.0

_DELETE: Final = "\x7f"
_BETWEEN: Final = "  "
_LEAST_ROOM: Final = 20
"""With less room beside the other parts of a line, its last part begins below them."""
_NARROW_INDENT: Final = 2
_TYPED: Final = ("seglog ", "next: seglog ", "or:   seglog ")
"""Beginnings of lines that a user copies and types."""
WIDE: Final = "seglog.wide"
"""Key in the ``meta`` of a click context: whether lines are never folded."""

count_text, messages_text = words.count_text, words.messages_text
printable, size_text, time_text = words.printable, words.size_text, words.time_text


@dataclass(frozen=True, slots=True)
class Styled:
    """Bold text, in a colour if one is given."""

    text: str
    colour: str | None = None


def emit(fields: Mapping[str, object]) -> None:
    """Prints one JSON object as a line of its own; not flushed, unlike :func:`say`."""
    sys.stdout.write(json_text(fields) + "\n")


def emit_text(text: str) -> None:
    """Prints one JSON object that is already text, as :func:`json_text` returns it."""
    sys.stdout.write(text + "\n")


def json_text(fields: Mapping[str, object]) -> str:
    """Returns a JSON object as text, in ASCII and without control characters."""
    return _without_delete(json.dumps(fields, separators=(",", ":")))


def spaced_json_text(fields: Mapping[str, object]) -> str:
    """Returns a JSON object as :func:`json_text` does, with a space after commas and colons."""
    return _without_delete(json.dumps(fields))


def _without_delete(text: str) -> str:
    return text.replace(_DELETE, "\\u007f") if _DELETE in text else text


def say(*parts: str | Styled, err: bool = False) -> None:
    """Prints a line for people, on stdout or stderr.

    On a terminal a long last part continues on further lines, indented to where the part begins. A command to
    type is not folded, and a command in backticks is not broken, because the user copies it as one line.

    Args:
        parts: The parts of the line; they cannot end the line or control the terminal.
        err: Whether to print to stderr, where nothing is folded.
    """
    if parts and not err and is_screen():
        *before, last = parts
        begin = sum(len(_text(part)) for part in before)
        text = printable(_text(last))
        lead = "" if before else " " * (len(text) - len(text.lstrip(" ")))
        room = screen_width() - begin - len(lead)
        is_typed = text.lstrip(" ").startswith(_TYPED)
        if room < _LEAST_ROOM and len(text) > room + len(lead) and not is_typed:
            _say_below(before, last)
            return
        if len(text) > room - len(lead) and not is_typed:
            first, *others = wrapped(text[len(lead) :], room, keeps_commands=True)
            colour = last.colour if isinstance(last, Styled) else None
            click.echo("".join(map(_shown, (*before, _alike(last, lead + first, colour)))))
            for line in others:
                click.echo(_shown(_alike(last, " " * (begin + len(lead)) + line, colour)))
            return
    click.echo("".join(_shown(part) for part in parts), err=err)


def _say_below(before: Sequence[str | Styled], last: str | Styled) -> None:
    """Prints a line whose last part has no room beside the others: it begins on a line of its own."""
    head = "".join(_text(part) for part in before).rstrip()
    if head.strip():
        fits = len(head) <= screen_width()
        click.echo("".join(_shown(part) for part in before).rstrip() if fits else printable(head.strip()))
    lead = " " * _NARROW_INDENT if before else ""
    colour = last.colour if isinstance(last, Styled) else None
    text = printable(_text(last)).strip(" ")
    for line in wrapped(text, max(1, screen_width() - len(lead)), keeps_commands=True):
        click.echo(_shown(_alike(last, lead + line, colour)))


def _text(part: str | Styled) -> str:
    return part.text if isinstance(part, Styled) else part


def _alike(part: str | Styled, text: str, colour: str | None) -> str | Styled:
    return Styled(text, colour) if isinstance(part, Styled) else text


def is_screen() -> bool:
    """Returns whether lines must be folded: stdout is a terminal, and ``--wide`` was not given."""
    context = click.get_current_context(silent=True)
    return sys.stdout.isatty() and not (context is not None and context.meta.get(WIDE))


def screen_width() -> int:
    """Returns how many columns the terminal has."""
    return shutil.get_terminal_size().columns


def line_text(text: str) -> str:
    """Returns a line with a newline at its end, for callers that print many lines at once."""
    return printable(text) + "\n"


def facts(named: Mapping[str, str]) -> None:
    """Prints names and values, one pair a line, in two columns; a long value continues on further lines."""
    width = max(map(len, named))
    for name, value in named.items():
        say(Styled(f"{name:<{width}}"), _BETWEEN, value)


def _shown(part: str | Styled) -> str:
    if isinstance(part, Styled):
        return click.style(printable(part.text), fg=part.colour, bold=True)
    return printable(part)


def table(
    columns: Sequence[str],
    rows: Iterable[Iterable[Cell]],
    *,
    numbers: Sequence[str] = (),
) -> None:
    """Prints a table without frames; nothing is cut.

    Rows that are wider than the terminal continue on further lines. rich's own table drops the first columns
    if the last one is long, so only rich's measurement of widths is used.

    Args:
        columns: Headings.
        rows: Cells, as many as headings.
        numbers: The headings whose cells are set flush right.
    """
    from rich.cells import cell_len

    shown = [columns, *([_cell_text(cell) for cell in row] for row in rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*shown, strict=True)]
    needed = sum(widths) + len(_BETWEEN) * (len(widths) - 1)
    if is_screen() and needed > screen_width():
        for number, lines in enumerate(folded(columns, shown[1:], numbers, screen_width())):
            for line in lines:
                say(line if number else Styled(line))
        return
    for row in shown:
        cells: list[str] = []
        for cell, column, width in zip(row, columns, widths, strict=True):
            room = " " * (width - cell_len(cell))
            cells.append(room + cell if column in numbers else cell + room)
        line = _BETWEEN.join(cells).rstrip()
        say(Styled(line) if row is columns else line)


def _cell_text(cell: Cell) -> str:
    return "-" if cell is None else printable(str(cell))


class Listing:
    """Rows that are printed at once as lines of JSON, or at the end as one table in which nothing is cut.

    Args:
        columns: Headings of the table.
        numbers: The headings whose cells are set flush right.
        none: The text that is printed if there are no rows.
        as_json: Whether rows are lines of JSON.
    """

    def __init__(
        self, columns: Sequence[str], *, numbers: Sequence[str] = (), none: str, as_json: bool
    ) -> None:
        self._columns, self._numbers, self._none = columns, numbers, none
        self._as_json = as_json
        self._rows: list[Sequence[Cell]] = []

    def add(self, fields: Mapping[str, object], *cells: Cell) -> None:
        """Adds one row.

        Args:
            fields: The row as JSON.
            cells: The row in the table.
        """
        if self._as_json:
            emit(fields)
        else:
            self._rows.append(cells)

    def end(self) -> bool:
        """Prints the table, or the text for no rows; returns whether there were rows."""
        if self._rows:
            table(self._columns, self._rows, numbers=self._numbers)
        elif not self._as_json:
            say(self._none)
        return bool(self._rows)


@contextmanager
def progress(step: str, *, unit: str = "bytes") -> Iterator[Tell]:
    """Shows rate and remaining time of a long step on stderr, if stderr is a terminal.

    Args:
        step: Name of the step, such as ``reading the log``.
        unit: Unit of the amounts.

    Yields:
        A function that the step calls with the amount done and the total amount, as often as it likes.
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
        """Amount done, total amount if it is known, and rate per second."""

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
