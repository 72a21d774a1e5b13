"""Times of messages as Spark timestamps that Python can represent.

Microseconds in 64 bits reach 292,000 years in both directions, and Java supports all of them. PySpark makes a
``datetime`` of each in the zone of the process when it collects rows, and ends the query at one that is out
of range. The range is the years 1 to 9999; zones are up to 16 hours off, and Python looks back a day from a
time to determine summer time. So a time within two days of either end, or beyond, is null; as ``bigint`` it
is unchanged.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seglog.spark.source.values.columns import TIMESTAMP

_US_PER_MS: Final = 1000
_EDGE_MS: Final = 2 * 86_400_000
FIRST_MS: Final = -62_135_596_800_000 + _EDGE_MS
"""The third day of the year 1: earlier times are null."""
END_MS: Final = 253_402_300_800_000 - _EDGE_MS
"""The last but one day of the year 9999: times from it on are null."""


def timestamps(times_ms: npt.NDArray[np.int64]) -> pa.Array:
    """Returns times as timestamps, null for times that Python cannot represent.

    Args:
        times_ms: Milliseconds since 1970, shape (n,).
    """
    fits = (times_ms >= FIRST_MS) & (times_ms < END_MS)
    mask = None if fits.all() else ~fits
    return pa.array(np.where(fits, times_ms, 0) * _US_PER_MS, pa.int64(), mask=mask).view(TIMESTAMP)
