"""What rows of an archive hold, as Spark counts it: queue offsets in stretches without a gap, and sums."""

from __future__ import annotations

from typing import Final

PARTS: Final = """
    SELECT {keys}, min(queueOffset) AS first, max(queueOffset + slots) AS end,
           count_if(NOT placeholder) AS messages, count_if(placeholder) AS placeholders, sum(size) AS bytes,
           {wanted}
    FROM (SELECT *, sum(is_first) OVER (PARTITION BY {keys} ORDER BY queueOffset) AS part
          FROM (SELECT *, CASE WHEN queueOffset = lag(queueOffset + slots) OVER in_order
                          THEN 0 ELSE 1 END AS is_first,
                       queueOffset = lag(queueOffset) OVER in_order
                           OR physicalOffset < lag(physicalOffset) OVER in_order AS turned
                FROM {{rows}} WINDOW in_order AS (PARTITION BY {keys} ORDER BY queueOffset)))
    GROUP BY {keys}, part
"""
"""A row for each stretch, of ``rows`` with the column ``slots``."""
OF_QUEUE: Final = "topic, queueId"
OF_RUN: Final = "run, topic, queueId"
