"""The filter that a subscription stands for.

A broker compares tagsCodes only. They collide, so clients compare the tags of what they get.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from seglog.remoting.subscription import ALL_TAGS, parse_subscription
from seglog.storage.message_filter import TagFilter

KEPT_FILTERS: Final = 1_024
"""Filters are kept by their text: clients ask with the same one again and again."""


def tag_filter(expression: str | None) -> TagFilter | None:
    """Returns the filter for some tags, None for all messages.

    Raises:
        InvalidArgumentError: The expression names no tag.
    """
    return _tag_filter(expression) if expression and expression != ALL_TAGS else None


@lru_cache(KEPT_FILTERS)
def _tag_filter(expression: str) -> TagFilter:
    return TagFilter(parse_subscription(expression).expression, exact=False)
