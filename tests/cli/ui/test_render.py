"""What people see: sizes, times, tables and progress."""

from __future__ import annotations

import io
import sys
import time

import pytest
from click import unstyle
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from seglog.cli.ui import render
from tests.support.scale import scaled


class Terminal(io.StringIO):
    """Text that a terminal would get."""

    @override
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 62, "4096.0 PiB"),
    ],
)
def test_sizes_are_binary(size_bytes, shown):
    assert render.size_text(size_bytes) == shown


def test_counts_have_separators_and_plurals():
    assert render.count_text(200_000) == "200,000"
    assert render.count_text(1, "message") == "1 message"
    assert render.count_text(0, "message") == "0 messages"
    assert render.count_text(2, "entry", "entries") == "2 entries"


def test_a_time_outside_of_the_calendar_is_shown_as_its_number():
    assert render.time_text(1 << 62) == str(1 << 62)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2023-11-14 22:13:20.123Z"),
        ("Europe/Berlin", "2023-11-14 23:13:20.123+01:00"),
        ("America/St_Johns", "2023-11-14 18:43:20.123-03:30"),
    ],
)
def test_a_time_says_its_zone(monkeypatch, zone, shown):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert render.time_text(1_700_000_000_123) == shown
    finally:
        monkeypatch.undo()
        time.tzset()


def test_control_characters_are_escaped_and_other_scripts_are_not():
    assert render.printable("标签 é") == "标签 é"
    assert render.printable("a\x1b[2J\n\u202e") == "a\\x1b[2J\\n\\u202e"
    assert render.printable("\udc80") == "\\udc80"


def test_a_table_aligns_numbers_right_and_counts_wide_characters_twice(capsys):
    render.table(("name", "n", "x"), [("标签", "5", "a"), ("t", "1000", "b")], numbers=("n",))
    assert capsys.readouterr().out.splitlines() == ["name     n  x", "标签     5  a", "t     1000  b"]


@pytest.mark.parametrize(
    ("rows", "as_json", "shown"),
    [
        ([("t", 5), (None, 10)], False, ["name   n", "t      5", "-     10"]),
        ([("t", 5), (None, 10)], True, ['{"n":5}', '{"n":10}']),
        ([], False, ["no rows"]),
        ([], True, []),
    ],
)
def test_rows_are_lines_of_json_or_one_table_or_said_to_be_none(capsys, rows, as_json, shown):
    listing = render.Listing(("name", "n"), numbers=("n",), none="no rows", as_json=as_json)
    for name, number in rows:
        listing.add({"n": number}, name, number)
    assert listing.end() == (bool(rows) and not as_json)
    assert capsys.readouterr().out.splitlines() == shown


def _on_terminal(monkeypatch, columns, show):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    show()
    return [unstyle(line) for line in terminal.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (28, ["topic   lag  the status", "orders    1  a long status", "orders   22  ok"]),
        (24, ["topic   lag", "    the status", "orders    1", "    a long status", "orders   22", "    ok"]),
    ],
)
def test_rows_that_a_terminal_cannot_hold_go_on_in_further_lines(monkeypatch, columns, shown):
    rows = [("orders", "1", "a long status"), ("orders", "22", "ok")]

    def show():
        render.table(("topic", "lag", "the status"), rows, numbers=("lag",))

    assert _on_terminal(monkeypatch, columns, show) == shown


def test_a_last_cell_that_has_room_is_folded_where_it_stands(monkeypatch):
    words = "one two three four five six seven"
    shown = _on_terminal(monkeypatch, 34, lambda: render.table(("name", "text"), [("first", words)]))
    assert shown == ["name   text", "first  one two three four five six", "         seven"]


def test_a_line_goes_on_where_its_last_part_begins(monkeypatch):
    words = "a line of more words than a terminal has"
    shown = _on_terminal(monkeypatch, 32, lambda: render.say("  1. ", words))
    assert shown == ["  1. a line of more words than a", "       terminal has"]
    shown = _on_terminal(monkeypatch, 32, lambda: render.say(f"  {words}"))
    assert shown == ["  a line of more words than a", "    terminal has"]


def test_a_part_without_room_beside_the_others_begins_below_them(monkeypatch):
    shown = _on_terminal(monkeypatch, 20, lambda: render.say("lost      ", "at least 198 messages for good"))
    assert shown == ["lost", "  at least 198", "    messages for", "    good"]
    shown = _on_terminal(monkeypatch, 20, lambda: render.say(" " * 10, "commitlog/0, 129 messages"))
    assert shown == ["  commitlog/0, 129", "    messages"]
    shown = _on_terminal(monkeypatch, 20, lambda: render.say(" " * 10, "RocketMQ logs: ", "a line of it"))
    assert shown == ["RocketMQ logs:", "  a line of it"]


@settings(max_examples=scaled(40, 400), deadline=None)
@given(st.lists(st.text(st.sampled_from("ab c"), max_size=25), min_size=1, max_size=4), st.integers(12, 100))
def test_no_line_is_longer_than_the_terminal(parts, columns):
    with pytest.MonkeyPatch.context() as patch:
        shown = _on_terminal(patch, columns, lambda: render.say(*parts))
    if len("".join(parts[:-1]).strip()) <= columns:
        assert max(map(len, shown), default=0) <= columns
    assert "".join(shown).replace(" ", "") == "".join(parts).replace(" ", "")


def test_a_command_to_type_is_never_folded(monkeypatch):
    command = "seglog repair /a/store/with/a/long/name"
    assert _on_terminal(monkeypatch, 24, lambda: render.say("next  ", command)) == [f"next  {command}"]


def test_a_command_within_a_sentence_is_never_broken(monkeypatch):
    command = "`seglog repair --queue-file-bytes BYTES /a/b`:"
    shown = _on_terminal(monkeypatch, 40, lambda: render.say("  to do: ", f"{command} repair it now, say"))
    assert shown == [f"  to do: {command}", "           repair it now, say"]
    shown = _on_terminal(monkeypatch, 40, lambda: render.say(f"or run this: {command} it repairs"))
    assert shown == ["or run this:", f"  {command}", "  it repairs"]


def test_progress_is_silent_where_nobody_watches(monkeypatch):
    nobody = io.StringIO()
    monkeypatch.setattr(sys, "stderr", nobody)
    monkeypatch.setattr(render, "PROGRESS_AFTER_S", 0.0)
    with render.progress("reading") as tell:
        tell(1, 2)
    assert nobody.getvalue() == ""


@pytest.mark.parametrize("unit", ["bytes", "messages"])
def test_progress_shows_a_step_only_once_it_lasts(monkeypatch, unit):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with render.progress("reading", unit=unit) as tell:
        tell(1, 2)
        assert terminal.getvalue() == ""
        monkeypatch.setattr(render, "PROGRESS_AFTER_S", 0.0)
        tell(1, 2)
    assert "reading" in terminal.getvalue()
