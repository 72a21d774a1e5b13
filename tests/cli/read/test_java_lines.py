"""Text is escaped and sorted as the compared dump escapes and sorts it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.cli.read import java_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", '"plain"'),
        ('quote " and \\ back', r'"quote \" and \\ back"'),
        ("tab\tline\nreturn\rback\bfeed\f", r'"tab\u0009line\u000areturn\u000dback\u0008feed\u000c"'),
        (r"no \n escape", r'"no \\n escape"'),
        ("\\\n", r'"\\\u000a"'),
        ("杭州", r'"\u676d\u5dde"'),
        ("\x7f", r'"\u007f"'),
        ("😀", r'"\ud83d\ude00"'),
    ],
)
def test_json_text_uses_long_escapes_in_lower_case(text, shown):
    assert java_lines.json_text(text) == shown


@given(st.text())
def test_json_text_reads_back_and_is_printable_ascii(text):
    shown = java_lines.json_text(text)
    assert json.loads(shown) == text
    assert all(" " <= char <= "~" for char in shown)


def test_names_sort_by_utf16_units_as_in_a_java_tree_map():
    # U+1F600 starts with the unit D83D, which comes before U+FF5E.
    assert sorted(["～", "😀", "a"], key=java_lines.java_order) == ["a", "😀", "～"]
    assert java_lines._sorted({"～": "", "😀": "", "B": "", "a": ""}) == ["B", "a", "😀", "～"]
