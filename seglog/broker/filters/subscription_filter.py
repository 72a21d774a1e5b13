"""The filter that a subscription stands for.

A broker compares tagsCodes only. They collide, so clients compare the tags of what they get.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import ALL_TAGS, SQL_TYPE, parse_subscription
from seglog.storage.format.record import find_property
from seglog.storage.kernels.decode import decode_message
from seglog.storage.reads import TagFilter

if TYPE_CHECKING:
    from seglog.remoting.sql92 import SqlExpression

KEPT_FILTERS: Final = 1_024
"""Filters are kept by their text: clients ask with the same one again and again."""


class SqlFilter:
    """Messages that an expression is true for. Queue units say nothing of properties, so each record is read.

    Args:
        expression: What they must meet.
    """

    def __init__(self, expression: SqlExpression) -> None:
        self._expression = expression
        self._names = tuple((name, name.encode()) for name in sorted(expression.names))

    def matches_codes(self, tags_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Passes all."""
        return np.ones(len(tags_codes), np.bool_)

    def matches(self, record: memoryview) -> bool:
        """Asks the expression; of the properties only those are decoded that it names."""
        raw = decode_message(record).properties_raw
        found = ((name, find_property(raw, encoded)) for name, encoded in self._names)
        return self._expression.matches(
            {name: value.decode("utf-8", "replace") for name, value in found if value is not None}
        )


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
