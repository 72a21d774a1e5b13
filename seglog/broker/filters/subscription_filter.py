"""The filter of a subscription.

A broker compares tagsCodes only. These may collide, so clients compare the tags of the messages that they
get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from seglog.broker.filters.kept_filters import KeptFilters
from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import ALL_TAGS, SQL_TYPE, parse_subscription
from seglog.storage.format.record import find_property
from seglog.storage.kernels.decode import decode_message
from seglog.storage.reads import TagFilter

if TYPE_CHECKING:
    from seglog.remoting.sql92 import SqlExpression

MAX_SQL_CHARACTERS: Final = 1 << 16
"""Most characters of an expression: each message is tested against all of it. RocketMQ has no limit."""


class SqlFilter:
    """Passes messages for which an expression is true. Units hold no properties, so each record is read.

    Args:
        expression: The condition.
    """

    def __init__(self, expression: SqlExpression) -> None:
        self._expression = expression
        self._names = tuple((name, name.encode()) for name in sorted(expression.names))

    def matches_codes(self, tags_codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Passes all."""
        return np.ones(len(tags_codes), np.bool_)

    def matches(self, record: memoryview) -> bool:
        """Evaluates the expression; only the properties that it names are decoded."""
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
    return _TAG_FILTERS.get(expression) if expression and expression != ALL_TAGS else None


def expression_filter(expression: str, expression_type: str | None) -> SqlFilter:
    """Returns the filter of an expression.

    Raises:
        InvalidArgumentError: It is not valid, is too long, or is in another language than SQL92.
    """
    if expression_type != SQL_TYPE:
        raise InvalidArgumentError(f"messages cannot be filtered by {expression_type}")
    if len(expression) > MAX_SQL_CHARACTERS:
        raise InvalidArgumentError(
            f"an expression has {len(expression)} characters, at most {MAX_SQL_CHARACTERS} are compiled"
        )
    return _SQL_FILTERS.get(expression)


def _tag_filter(expression: str) -> TagFilter:
    return TagFilter(parse_subscription(expression).expression, exact=False)


def _sql_filter(expression: str) -> SqlFilter:
    from seglog.remoting.sql92 import compile_sql  # its parser is built at import

    return SqlFilter(compile_sql(expression))


_TAG_FILTERS: Final = KeptFilters(_tag_filter)
_SQL_FILTERS: Final = KeptFilters(_sql_filter)
