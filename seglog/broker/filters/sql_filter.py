"""A filter that is an SQL92 expression over the properties of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seglog.storage.format.record import find_property
from seglog.storage.kernels.decode import decode_message

if TYPE_CHECKING:
    from seglog.remoting.sql92 import SqlExpression


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
