"""Whole stores on Apache Spark: the only room that knows pyspark.

Jobs divide the commit log into splits and walk each with the engine's own kernels; the driver joins the
results of the splits by the engine's own rules. pyspark is imported when a session is made, so the parts that
need no Spark (planning, walking, joining) work and are tested without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes ``spark.read.format("seglog")`` work in a session, on all of its machines that have seglog.

    Raises:
        MissingDependencyError: PySpark is older than 4.1, or newer than the versions that were tried.
    """
    from seglog.spark.packages import require_packages

    require_packages()
    from pyspark.errors import AnalysisException

    from seglog.spark.source.data_source import SeglogDataSource

    try:
        spark.dataSource.register(SeglogDataSource)
    except AnalysisException as error:
        # Before 4.3 Spark keeps the source that it found by itself in pyspark_seglog; it is the same source.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
