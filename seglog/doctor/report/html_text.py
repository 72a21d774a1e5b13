"""Small pieces of HTML: escaped text, numbers for people, tables, bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from seglog.text import printable


def text(value: object) -> str:
    """Returns text escaped for any place in a page; invisible characters are shown as escapes."""
    return escape(printable(str(value)))


def facts(named: Iterable[tuple[str, str]]) -> str:
    """Returns a list of names and values; values are HTML."""
    rows = "".join(f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in named)
    return f"<dl>{rows}</dl>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = ()) -> str:
    """Returns a table; cells are HTML.

    Args:
        columns: Headings.
        rows: Cells, as many as headings.
        numbers: The headings whose cells are set flush right.
    """
    classes = [' class="n"' if column in numbers else "" for column in columns]
    head = "".join(f"<th{kind}>{text(column)}</th>" for column, kind in zip(columns, classes, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, classes, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def bar(share: float) -> str:
    """Returns a bar that fills a share of its cell, from 0 to 1."""
    percent = 100 * min(1.0, max(0.0, share))
    return f'<span class="bar"><span style="width:{percent:.1f}%"></span></span>'


def section(title: str, body: str, note: str = "") -> str:
    """Returns a part of the page; the body is HTML, the note a sentence."""
    below = f'<p class="note">{text(note)}</p>' if note else ""
    return f"<section><h2>{text(title)}</h2>{below}{body}</section>"
