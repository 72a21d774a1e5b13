"""The rows of an archive as a Spark frame."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from seglog.spark.archive.columns import COLUMNS, FIRST_LAYOUT, IS_PLACEHOLDER
from seglog.spark.archive.folder import ArchiveFolder
from seglog.spark.archive.held import check_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_archive(spark: SparkSession, folder: Path, name: str | None) -> DataFrame | None:
    """Returns all rows of a store of an archive.

    Args:
        spark: The session.
        folder: The archive.
        name: The store; None for an archive of the first layout.

    Returns:
        :data:`~seglog.spark.archive.columns.COLUMNS`; for an archive of the first layout its columns, and
        ``placeholder``; None if nothing is archived.
    """
    archive = ArchiveFolder(folder)
    every = archive.runs()
    check_files(archive, every)
    # The files of a run that was interrupted before they were moved are in another folder than the others.
    places: dict[Path, list[str]] = {}
    for run in every:
        for file in run.files if run.name == name else ():
            path = archive.file(run, file)
            places.setdefault(path.parents[file.count("/")], []).append(str(path))
    reader = spark.read.schema(COLUMNS if name is not None else FIRST_LAYOUT)
    # Pages have checksums of their own, which readers of Parquet verify only with this option.
    reader = reader.option("parquet.page.verify-checksum.enabled", "true")
    parts = [reader.option("basePath", str(base)).parquet(*files) for base, files in places.items()]
    if not parts:
        return None
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    return rows if name is not None else rows.selectExpr("*", f"{IS_PLACEHOLDER} AS placeholder")
