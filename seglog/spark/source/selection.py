"""Which messages are wanted: a mask over the rows of a walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seglog.storage.kernels.walk import Rows


@dataclass(frozen=True, slots=True)
class Selection:
    """What messages have to be like.

    Attributes:
        topics: Their topics; empty for any.
    """

    topics: frozenset[str] = frozenset()

    def choose(self, rows: Rows, queues: Sequence[tuple[str, int]]) -> Rows:
        """Returns those of the rows that are wanted.

        Args:
            rows: ``(n,) ROW``.
            queues: Topic and number by the rows' ``queue``.
        """
        if not self.topics:
            return rows
        wanted = np.array([topic in self.topics for topic, _queue_id in queues], np.bool_)
        chosen: Rows = rows[wanted[rows["queue"]]]
        return chosen
