"""Makes ``spark.read.format("seglog")`` work in every session of a Python that has seglog.

Spark looks for modules called ``pyspark_*`` when the first data source is asked for, and registers what each
has as ``DefaultSource`` (``pyspark/sql/worker/lookup_data_sources.py``). An error here would end that search
for the data sources of others too.
"""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):  # where pyarrow is missing, Spark has no data sources of Python at all
    from seglog.spark.source.data_source import SeglogDataSource as DefaultSource

__all__ = ["DefaultSource"]
