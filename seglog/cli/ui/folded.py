"""Tables that are wider than the terminal: a row continues on further, indented lines.

Nothing is cut. All rows and the headings are folded in the same way, so a column keeps its position.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

INDENT: Final = 4
"""Indentation of the further lines of a row."""
_CELL_INDENT: Final = 2
"""Indentation of the further lines of a cell that is wider than the terminal."""
_LEAST: Final = 8
"""Least width of a cell, in columns of the terminal."""
_LAST_LEAST: Final = 24
"""With this much room the last cell is folded in its column; with less it is moved to its own line."""
_BETWEEN: Final = 2
_WORDS: Final = re.compile(r"\S+\s*|\s+")
_COMMAND: Final = "`seglog "
_WORDS_AND_COMMANDS: Final = re.compile(rf"{_COMMAND}[^`]*`\S*\s*|{_WORDS.pattern}")


class _Place(NamedTuple):
    """The position of a column: its number, its line within the row, its start in the line, and its width."""

    number: int
    line: int
    begin: int
    width: int


def folded(
    columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str], width: int
) -> Iterator[list[str]]:
    """Yields the lines of the headings, then those of each row.

    Args:
        columns: Headings.
        rows: Cells, as many as headings, without control characters.
        numbers: The headings whose cells are set flush right.
        width: Width of the terminal in columns; no line is longer, unless the width is below 12.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    places = _placed(widths, width)
    for row in (columns, *rows):
        lines: list[str] = []
        for number in range(places[-1].line + 1):
            of_line = [place for place in places if place.line == number]
            cells = [wrapped(row[place.number], place.width) for place in of_line]
            for depth in range(max(map(len, cells))):
                line = ""
                for place, pieces in zip(of_line, cells, strict=True):
                    piece = pieces[depth] if depth < len(pieces) else ""
                    begin = place.begin
                    if columns[place.number] in numbers:
                        begin += place.width - cell_len(piece)
                    line += " " * (begin - cell_len(line)) + piece
                if line.strip() or not lines:
                    lines.append(line.rstrip())
        yield lines


def _placed(widths: Sequence[int], room: int) -> list[_Place]:
    """Returns the position of each column; a line takes as many columns as fit."""
    places: list[_Place] = []
    line = begin = 0
    for number, width in enumerate(widths):
        is_folded_here = number == len(widths) - 1 and room - begin >= _LAST_LEAST
        if number and begin + width > room and not is_folded_here:
            line, begin = line + 1, INDENT
        shown = min(width, max(_LEAST, room - begin))
        places.append(_Place(number, line, begin, shown))
        begin += shown + _BETWEEN
    return places


def wrapped(text: str, width: int, *, keeps_commands: bool = False) -> list[str]:
    """Returns the lines of a cell, all but the first indented.

    The text is broken between words; a word is broken only if it is longer than a line.

    Args:
        text: The text of the cell, without control characters.
        width: Columns for it.
        keeps_commands: Whether a command in backticks is never broken, so that the user can copy it. A
            command that is wider than ``width`` gets a line of its own.
    """
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    begun = ""
    words = _WORDS_AND_COMMANDS if keeps_commands else _WORDS
    for word in words.findall(text):
        if cell_len((begun + word).rstrip()) > width and begun.strip():
            lines.append(begun.rstrip())
            begun = " " * _CELL_INDENT
        begun += word
        while cell_len(begun.rstrip()) > width and not (keeps_commands and word.startswith(_COMMAND)):
            head = _head(begun, width)
            lines.append(head)
            begun = " " * _CELL_INDENT + begun[len(head) :]
    if begun.strip():
        lines.append(begun.rstrip())
    return lines


def _head(text: str, width: int) -> str:
    """Returns the part of a text that fits into a width; a character of two columns is not split."""
    from rich.cells import cell_len

    end = 0
    while end < len(text) and cell_len(text[: end + 1]) <= width:
        end += 1
    return text[:end]
