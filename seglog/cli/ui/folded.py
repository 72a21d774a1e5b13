"""Tables on a terminal that has no room for their rows: a row goes on in further lines, which are indented.

Nothing is cut. All rows are folded alike, and the headings with them, so that what stands in one column stays
in one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

INDENT: Final = 4
"""Of the lines that a row goes on in."""
_CELL_INDENT: Final = 2
"""Of the lines that a cell goes on in which is wider than the terminal."""
_LEAST: Final = 8
"""A cell is never narrower for want of room."""
_LAST_LEAST: Final = 24
"""With so much room the last cell is folded where it stands, and not moved to a line of its own."""
_BETWEEN: Final = 2
_WORDS: Final = re.compile(r"\S+\s*|\s+")
_COMMAND: Final = "`seglog "
_WORDS_AND_COMMANDS: Final = re.compile(rf"{_COMMAND}[^`]*`\S*\s*|{_WORDS.pattern}")


class _Place(NamedTuple):
    """Where a column stands: its number, the line of the row, where it begins in it, and how wide it is."""

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
        width: Of the terminal; no line is longer, unless it is narrower than 12.
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
    """Returns where columns stand: as many in a line as it has room for."""
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

    It is broken between words, and in a word only where that is too long.

    Args:
        text: What it holds, without control characters.
        width: Columns that it has.
        keeps_commands: Whether a command to type, in backticks, is never broken, so that it can be copied:
            one that is wider than that has a line of its own.
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
    """Returns as much of a text as has room; a character that is twice as wide is not halved."""
    from rich.cells import cell_len

    end = 0
    while end < len(text) and cell_len(text[: end + 1]) <= width:
        end += 1
    return text[:end]
