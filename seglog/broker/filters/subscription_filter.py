"""The filter that a subscription stands for.

A broker compares tagsCodes only. They collide, so clients compare the tags of what they get.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from seglog.broker.filters.sql_filter import SqlFilter
from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import ALL_TAGS, SQL_TYPE, parse_subscription
from seglog.storage.reads import TagFilter

KEPT_FILTERS: Final = 1_024
"""Filters are kept by their text: clients ask with the same one again and again."""


def tag_filter(expression: str | None) -> TagFilter | None:
    """Returns the filter for some tags, None for all messages.

    Raises:
        InvalidArgumentError: The expression names no tag.
    """
    return _tag_filter(expression) if expression and expression != ALL_TAGS else None


def expression_filter(expression: str, expression_type: str | None) -> SqlFilter:
    """Returns the filter that an expression is.

    Raises:
        InvalidArgumentError: It is none, or in another language than SQL92.
    """
    if expression_type != SQL_TYPE:
        raise InvalidArgumentError(f"messages cannot be filtered by {expression_type}")
    return _sql_filter(expression)


@lru_cache(KEPT_FILTERS)
def _tag_filter(expression: str) -> TagFilter:
    return TagFilter(parse_subscription(expression).expression, exact=False)


@lru_cache(KEPT_FILTERS)
def _sql_filter(expression: str) -> SqlFilter:
    from seglog.remoting.sql92 import compile_sql  # its parser is made for those who filter so

    return SqlFilter(compile_sql(expression))
