"""Java's text of names and values, in which a broker's configuration is written; pure.

Source: ``java.util.Properties load``, ``MixAll.java string2Properties``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from seglog.errors import CorruptError

_LINE = re.compile(r"\r\n|[\r\n]")
# Possessive: what was taken is the name, and a long one keeps nothing to go back to.
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f]++)*+)[ \t\f]*+[=:]?[ \t\f]*+(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
"""What would end a value, or be taken for the beginning of an escape; RocketMQ writes it as it is."""


def parse_java_properties(data: bytes) -> dict[str, str]:
    """Returns names and values; of a name that occurs several times the last.

    Raises:
        CorruptError: The bytes are no text.
    """
    return {name: value for name, value, _ in numbered_java_properties(data)}


def numbered_java_properties(data: bytes) -> list[tuple[str, str, int]]:
    """Returns names and values in their order, each with the number of its line, from 1 on.

    Raises:
        CorruptError: The bytes are no text.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CorruptError("not-text", position_bytes=error.start, expected="UTF-8") from error
    entries = ((_ENTRY.fullmatch(line), number) for line, number in _logical_lines(text))
    return [
        (_unescaped(entry[1]), _unescaped(entry[2]), number) for entry, number in entries if entry is not None
    ]


def java_properties_text(values: Mapping[str, str]) -> str:
    """Returns names and values as a text of lines, by name; it is read back as they are."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in sorted(values.items()))


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Yields lines without comments and blank ones, those that end with a backslash joined to the next.

    Beside each stands the number of the first line that it is of.
    """
    pieces: list[str] = []
    first = 0
    for number, natural in enumerate(_LINE.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not pieces and (not line or line[0] in "#!"):
            continue
        first = first if pieces else number
        if (len(line) - len(line.rstrip("\\"))) % 2:
            if len(line) > 1:
                pieces.append(line[:-1])
            continue
        yield "".join((*pieces, line)), first
        pieces.clear()
    if pieces:
        yield "".join(pieces), first


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_one_unescaped, text)


def _one_unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPED.get(code, code)
