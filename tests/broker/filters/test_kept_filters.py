"""Filters are found by their text, and those that are kept have a bound in characters, not only in number."""

from __future__ import annotations

import gc

import pytest

from seglog.broker.filters.kept_filters import KEPT_CHARACTERS, KeptFilters
from seglog.broker.filters.subscription_filter import (
    _TAG_FILTERS,
    MAX_SQL_CHARACTERS,
    expression_filter,
    tag_filter,
)
from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import SQL_TYPE
from seglog.storage.threads import WouldWaitError, without_waiting


class Made:
    """What is made of a text."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_a_filter_is_made_once_while_it_is_kept_and_the_oldest_go_first():
    kept = KeptFilters(Made, 4_000)
    first = kept.get("a")
    assert kept.get("a") is first
    for number in range(100):
        kept.get(f"text {number}")
        kept.get("a")
        assert kept.characters <= 4_000
    assert kept.get("a") is first
    assert 10 < len(kept) < 17


def test_long_filters_are_not_kept_and_are_found_while_somebody_uses_them():
    kept = KeptFilters(Made, 100_000)
    for number in range(50):
        kept.get(f"{number}" + "x" * 15_000)
    assert kept.characters == 0
    used = kept.get("y" * 15_000)
    assert kept.get("y" * 15_000) is used
    before = id(used)
    del used
    gc.collect()
    assert len(kept) == 0
    assert kept.get("z" * 15_000) is not None, before


def test_tags_of_any_length_keep_no_more_than_the_bound():
    for number in range(40):
        found = tag_filter("||".join(f"{number}-{tag}" for tag in range(10_000)))
        assert found is not None
        assert len(found.tags) == 10_000
    assert _TAG_FILTERS.characters <= KEPT_CHARACTERS


def test_a_long_filter_is_not_compiled_by_a_thread_that_must_not_wait():
    text = "||".join(f"tag-{number}" for number in range(3_000))
    with without_waiting(), pytest.raises(WouldWaitError):
        tag_filter(text)
    used = tag_filter(text)
    with without_waiting():
        assert tag_filter(text) is used


def test_an_expression_that_is_too_long_to_test_each_message_is_refused():
    fits = "a = 1" + " OR a = 1" * ((MAX_SQL_CHARACTERS - 5) // 9)
    assert len(fits) > MAX_SQL_CHARACTERS - 9
    with pytest.raises(InvalidArgumentError, match="at most 65536"):
        expression_filter(f"{fits} OR a = 1", SQL_TYPE)
