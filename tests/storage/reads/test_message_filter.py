"""Tag filters choose by code first and by the tag itself after, because codes collide."""

from __future__ import annotations

import numpy as np
import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.format.record.tags import tags_code
from seglog.storage.reads.message_filter import TagFilter, make_filter
from tests.support.material.records import Record
from tests.support.rows import every_row


def record(tags: str) -> memoryview:
    return memoryview(Record(properties=f"TAGS\x01{tags}\x02".encode()).pack())


@pytest.mark.parametrize("wanted", [None, "*", " * ", ""])
def test_all_messages_need_no_filter(wanted):
    assert make_filter(wanted) is None


def test_filter_object_is_taken_as_it_is():
    chosen = TagFilter("a")
    assert make_filter(chosen) is chosen


EXPRESSIONS = (
    ("a", {"a"}),
    (" a ||b ", {"a", "b"}),
    ("a||a", {"a"}),
    ("a || || b", {"a", "b"}),
    ("a|b", {"a|b"}),
    ("𝄞", {"𝄞"}),
)


def test_expression_names_tags():
    with every_row() as row:
        for expression, tags in EXPRESSIONS:
            with row(expression, tags):
                assert TagFilter(expression).tags == tags


@pytest.mark.parametrize("expression", ["||", " || ", "\t"])
def test_expression_without_a_tag_is_refused(expression):
    with pytest.raises(InvalidArgumentError, match="names no tag"):
        TagFilter(expression)


def test_tag_that_is_no_text_is_refused():
    with pytest.raises(InvalidArgumentError):
        TagFilter("\ud800")


def test_codes_are_compared_for_many_units_at_once():
    codes = np.array([tags_code("a"), 0, tags_code("b"), -1], np.int64)
    assert TagFilter("a || b").matches_codes(codes).tolist() == [True, False, True, False]


def test_colliding_tag_passes_by_code_and_is_stopped_by_itself():
    exact, loose = TagFilter("Aa"), TagFilter("Aa", exact=False)
    assert exact.matches_codes(np.array([tags_code("BB")], np.int64)).all()
    assert (exact.matches(record("Aa")), exact.matches(record("BB"))) == (True, False)
    assert (loose.matches(record("Aa")), loose.matches(record("BB"))) == (True, True)
