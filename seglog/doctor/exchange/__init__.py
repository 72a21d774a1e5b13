"""Exchange: messages as rows of JSON lines or Parquet, out of a store and into one.

Called by ``seglog export``, ``seglog import`` and the Spark writer.
Truth: a row holds all that a record says.
"""

from __future__ import annotations

from seglog.doctor.exchange.export import Selection, iter_rows
from seglog.doctor.exchange.import_rows import Import, check_row
from seglog.doctor.exchange.parquet_rows import read_parquet, write_parquet

__all__ = [
    "Import",
    "Selection",
    "check_row",
    "iter_rows",
    "read_parquet",
    "write_parquet",
]
