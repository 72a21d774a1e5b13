"""Names and values in Java's text of lines are read as Java reads them, in one pass."""

from __future__ import annotations

import time
import tracemalloc

from seglog.storage.format.config.java_properties import numbered_java_properties, parse_java_properties
from tests.support.rows import every_row

LINES = (
    ("a=\\\nb\\\n  c\nd=e", [("a", "bc", 1), ("d", "e", 4)]),
    ("a=b\\\\\nc=d", [("a", "b\\", 1), ("c", "d", 2)]),
    ("a=b\\", [("a", "b", 1)]),
    ("\\\n#c\na=b", [("a", "b", 3)]),
    ("a\\\n#b", [("a#b", "", 1)]),
    ("a\\ b\\=c\\:d e", [("a b=c:d", "e", 1)]),
    ("a : b", [("a", "b", 1)]),
    ("=b", [("", "b", 1)]),
)


def test_lines_are_joined_and_split():
    with every_row() as row:
        for text, found in LINES:
            with row(text, found):
                assert numbered_java_properties(text.encode()) == found


def test_many_joined_lines_take_no_longer_than_they_are():
    count = 1_000_000
    begun = time.process_time()
    assert parse_java_properties(b"a=\\\n" + b"b\\\n" * count) == {"a": "b" * count}
    assert time.process_time() - begun < 10


def test_a_long_name_keeps_nothing_to_go_back_to():
    name = "k" * 1_000_000
    tracemalloc.start()
    try:
        assert parse_java_properties(name.encode()) == {name: ""}
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 20 * len(name)
