"""Rows that are wider than the terminal go on in further lines, and nothing of them is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from seglog.cli.ui.folded import INDENT, folded

COLUMNS = ("time", "group", "next", "change")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (
            40,
            [
                ["time      group                   next", "    change"],
                ["10:00:00  billing                   42", "    three commits"],
                ["10:00:01  a-group-with-a-name  1000000", "    a reset"],
            ],
        ),
        (
            24,
            [
                ["time", "    group", "       next", "    change"],
                ["10:00:00", "    billing", "         42", "    three commits"],
            ],
        ),
    ],
)
def test_columns_that_have_no_room_stand_in_further_lines_below_each_other(width, shown):
    rows = [
        ("10:00:00", "billing", "42", "three commits"),
        ("10:00:01", "a-group-with-a-name", "1000000", "a reset"),
    ]
    found = list(folded(COLUMNS, rows, {"next"}, width))
    assert found[: len(shown)] == shown


def test_a_cell_that_is_too_wide_is_broken_between_words_and_goes_on_indented():
    row = ("billing", "orders TagA || TagB, %RETRY%billing, a-very-long-topic-name-of-somebody")
    found = list(folded(("group", "subscribes to"), [row], (), 30))
    assert found[1] == [
        "billing",
        "    orders TagA || TagB,",
        "      %RETRY%billing,",
        "      a-very-long-topic-name-o",
        "      f-somebody",
    ]


def test_characters_that_are_twice_as_wide_are_not_halved():
    (_, lines) = folded(("group", "topic"), [("g" * 10, "标签" * 10)], (), 15)
    assert max(map(cell_len, lines)) <= 15
    assert "".join(line.strip() for line in lines) == "g" * 10 + "标签" * 10


CELL = st.text(st.sampled_from("ab -,/标é\u0301"), max_size=90).map(str.strip)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.tuples(*[CELL] * n), max_size=4)), st.integers(12, 90))
def test_no_line_is_too_long_and_every_character_is_there(rows, width):
    columns = tuple(f"column {number}" for number in range(len(rows[0]) if rows else 2))
    found = list(folded(columns, rows, columns[1:2], width))
    assert len(found) == len(rows) + 1
    for cells, lines in zip((columns, *rows), found, strict=True):
        assert max(map(cell_len, lines)) <= width
        characters = sorted("".join(cells).replace(" ", ""))
        assert sorted("".join(lines).replace(" ", "")) == characters
        assert all(line.startswith(" " * INDENT) for line in lines[1:] if cell_len(cells[0]) <= width)
