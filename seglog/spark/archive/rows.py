"""The rows of an archive, as Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seglog.spark.archive.columns import COLUMNS, FIRST_LAYOUT, IS_PLACEHOLDER
from seglog.spark.archive.folder import ArchiveFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_archive(spark: SparkSession, folder: Path, name: str | None) -> DataFrame | None:
    """Returns all rows of a store of an archive.

    Args:
        spark: The session.
        folder: The archive.
        name: The store; None for an archive of the first layout.

    Returns:
        :data:`~seglog.spark.archive.columns.COLUMNS`; of an archive of the first layout those of that, and
        ``placeholder``; None where nothing is archived.
    """
    archive = ArchiveFolder(folder)
    if not archive.is_finished():
        lock = archive.lock()
        try:
            archive.finish()
        finally:
            lock.release()
    runs = [run for run in archive.runs() if run.name == name]
    files = [str(archive.file(run, file)) for run in runs for file in run.files]
    if not files:
        return None
    reader = spark.read.schema(COLUMNS if name is not None else FIRST_LAYOUT)
    rows = reader.option("basePath", str(archive.path / "data")).parquet(*files)
    return rows if name is not None else rows.selectExpr("*", f"{IS_PLACEHOLDER} AS placeholder")
